//! Closed loop at full speed: requests a second, and what a request costs the generator.

use super::{Bench, Claim, Section};
use crate::generator::{CONNECTIONS, Tool, Variant};
use crate::reply::Sample;
use crate::server::Server;
use crate::statistics::{median, ratios, short, spread, whole};
use crate::table::Table;
use anyhow::Result;

/// One run, with what it cost the target.
struct Run {
    sample: Sample,
    server_cpu_s: f64,
}

impl Run {
    fn server_cpu_us(&self) -> f64 {
        self.server_cpu_s * 1e6 / self.sample.requests
    }
}

/// The runs of one variant, a round each.
type Runs = Vec<Run>;

fn column(runs: &Runs, value: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

fn measure(bench: &Bench, server: &Server, variants: &[Variant]) -> Result<Vec<Runs>> {
    // Nobody pays for the target's first requests.
    variants[0].run(bench, &server.url, 1)?;
    let mut runs: Vec<Runs> = variants.iter().map(|_| Runs::new()).collect();
    bench.alternate(variants, |at, variant| {
        let before_s = server.cpu_s()?;
        let sample = variant.run(bench, &server.url, bench.seconds)?;
        runs[at].push(Run { sample, server_cpu_s: server.cpu_s()? - before_s });
        Ok(())
    })?;
    Ok(runs)
}

/// Ratios to wrk, which is the last of the variants.
fn table(variants: &[Variant], runs: &[Runs]) -> Table {
    let mut table = Table::new(&[
        "generator",
        "requests/s",
        "ratio to wrk",
        "CPU us/request",
        "ratio to wrk",
        "target CPU us/request",
        "p50 us",
        "p99 us",
    ]);
    let base = &runs[runs.len() - 1];
    let base_rate = column(base, |run| run.sample.per_s);
    let base_cpu = column(base, |run| run.sample.cpu_us());
    for (variant, runs) in variants.iter().zip(runs) {
        let rate = column(runs, |run| run.sample.per_s);
        let cpu = column(runs, |run| run.sample.cpu_us());
        table.row(vec![
            variant.name.clone(),
            spread(&rate, whole),
            spread(&ratios(&rate, &base_rate), |ratio| format!("{ratio:.2}")),
            spread(&cpu, short),
            spread(&ratios(&cpu, &base_cpu), |ratio| format!("{ratio:.2}")),
            short(median(&column(runs, Run::server_cpu_us))),
            latency(runs, |sample| sample.p50_us),
            latency(runs, |sample| sample.p99_us),
        ]);
    }
    table
}

fn latency(runs: &Runs, value: impl Fn(&Sample) -> f64) -> String {
    let middle = median(&column(runs, |run| value(&run.sample)));
    if middle.is_nan() { "-".to_owned() } else { whole(middle) }
}

/// plimsoll's response time, which counts from the moment a request was due.
fn response_note(variants: &[Variant], runs: &[Runs]) -> String {
    let mut parts = Vec::new();
    for (variant, runs) in variants.iter().zip(runs) {
        let own = |value: fn(&crate::reply::Own) -> f64| {
            median(&column(runs, |run| run.sample.own.as_ref().map_or(f64::NAN, value)))
        };
        let (p50, p99) = (own(|own| own.response_p50_us), own(|own| own.response_p99_us));
        if !p50.is_nan() {
            parts.push(format!("{} {} / {}", variant.name, whole(p50), whole(p99)));
        }
    }
    format!(
        "p50 and p99 are the tools' own, medians of the rounds: from sending to the last byte; ab knows whole \
         milliseconds only, h2load no percentiles. plimsoll's response time, from when a request was due, p50 / p99 \
         us: {}.",
        parts.join(", ")
    )
}

/// The median of the rounds' ratios of a variant to wrk.
fn ratio(runs: &[Runs], at: usize, value: impl Fn(&Run) -> f64) -> f64 {
    median(&ratios(&column(&runs[at], &value), &column(&runs[runs.len() - 1], &value)))
}

/// Against nginx, which is the limit itself: CPU per request tells.
///
/// # Errors
/// When a tool fails.
pub fn nginx(bench: &Bench) -> Result<Section> {
    let server = Server::nginx(bench)?;
    let variants = [
        Variant::new(bench, Tool::Plimsoll, "plimsoll", &[])?,
        Variant::new(bench, Tool::Plimsoll, "plimsoll --no-batching", &["--no-batching"])?,
        Variant::new(bench, Tool::H2load, "h2load --h1", &[])?,
        Variant::new(bench, Tool::Ab, "ab -k", &[])?,
        Variant::new(bench, Tool::Wrk, "wrk", &[])?,
    ];
    let runs = measure(bench, &server, &variants)?;
    let cpu = ratio(&runs, 0, |run| run.sample.cpu_us());
    Ok(Section {
        title: format!("Full speed against nginx: one worker, 1 KB, {CONNECTIONS} connections"),
        tables: vec![table(&variants, &runs)],
        claims: vec![
            Claim::most("generator CPU per request, of wrk's", cpu, 0.95),
            Claim::most("the same, the goal", cpu, 0.85),
        ],
        notes: vec![response_note(&variants, &runs)],
    })
}

/// Against the null target, where the generator is the limit.
///
/// # Errors
/// When a tool fails.
pub fn null(bench: &Bench) -> Result<Section> {
    let variants = [
        Variant::new(bench, Tool::Plimsoll, "plimsoll", &[])?,
        Variant::new(bench, Tool::Plimsoll, "plimsoll --no-batching", &["--no-batching"])?,
        Variant::new(bench, Tool::Ab, "ab -k", &[])?,
        Variant::new(bench, Tool::Wrk, "wrk", &[])?,
    ];
    let (mut tables, mut claims, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    for (kind, flags) in [("serve null", &[][..]), ("serve null --busy-poll", &["--busy-poll"])] {
        let server = Server::plimsoll(bench, "null", flags)?;
        let runs = measure(bench, &server, &variants)?;
        tables.push(table(&variants, &runs));
        let rate = ratio(&runs, 0, |run| run.sample.per_s);
        claims.push(Claim::least(&format!("requests/s against {kind}, of wrk's"), rate, 1.15));
        notes.push(format!("{kind}. {}", response_note(&variants, &runs)));
    }
    Ok(Section {
        title: format!(
            "Full speed against `plimsoll serve null` (first table) and with --busy-poll (second), {CONNECTIONS} \
             connections"
        ),
        tables,
        claims,
        notes,
    })
}
