//! Fixed rate: how late a generator sends, and how regularly its requests arrive.

use super::bare_timer::{Paced, bare_timer};
use super::{Bench, Claim, Section};
use crate::generator::{CONNECTIONS, Tool, Variant};
use crate::reply::{Own, Sample};
use crate::server::Server;
use crate::statistics::{median, short, spread, whole};
use crate::table::Table;
use anyhow::{Context, Result};
use serde_json::Value;

/// Requests a second.
const RATE: u32 = 5000;

/// One run, and what the target saw of it.
struct Run {
    sample: Sample,
    gap_cv: f64,
    rate_per_s: f64,
}

/// Lag, arrivals at the target, and CPU per request, beside the one peer of Debian that holds a rate.
///
/// # Errors
/// When a tool fails.
pub fn lag(bench: &Bench) -> Result<Section> {
    // A target that sleeps would time its own waking up, not the arrival.
    let server = Server::plimsoll(bench, "null", &["--busy-poll"])?;
    let rate = RATE.to_string();
    let a_client = format!("--rps={}", f64::from(RATE) / f64::from(CONNECTIONS));
    let own = |name: &str, extra: &[&str]| {
        let flags = [&["--rate", rate.as_str()], extra].concat();
        Variant::new(bench, Tool::Plimsoll, name, &flags)
    };
    let poisson = ["--arrivals", "poisson"];
    let variants = [
        own("plimsoll, uniform", &[])?,
        own("plimsoll, uniform, --spin 60us", &["--spin", "60us"])?,
        own("plimsoll, Poisson", &poisson)?,
        own("plimsoll, Poisson, --spin 60us", &[&poisson[..], &["--spin", "60us"]].concat())?,
        Variant::new(bench, Tool::H2load, "h2load --rps", &[&a_client])?,
    ];
    let mut runs: Vec<Vec<Run>> = variants.iter().map(|_| Vec::new()).collect();
    let seconds = bench.seconds.div_ceil(2);
    bench.alternate(&variants, |at, variant| {
        server.get_json("/_stats?reset=1")?;
        // Each round draws other Poisson arrivals, so that no one sample decides.
        let seeded = variant.with_seed(runs[at].len() + 1);
        let sample = seeded.run(bench, &server.url, seconds)?;
        let seen = server.get_json("/_stats")?;
        let figure = |path: &str| {
            seen.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
        };
        let (gap_cv, rate_per_s) = (figure("/gaps/cv")?, figure("/rate_per_s")?);
        runs[at].push(Run { sample, gap_cv, rate_per_s });
        Ok(())
    })?;
    let bare = (0..bench.rounds)
        .map(|_| bare_timer(bench.cores.generator, RATE, seconds))
        .collect::<Result<Vec<_>>>()?;
    Ok(section(&variants, &runs, &bare))
}

fn section(variants: &[Variant], runs: &[Vec<Run>], bare: &[Paced]) -> Section {
    let mut table = Table::new(&[
        "generator",
        "arrivals/s",
        "cv of gaps at the target",
        "lag p50 us",
        "lag p99 us",
        "response p50 us",
        "response p99 us",
        "CPU us/request",
    ]);
    for (variant, runs) in variants.iter().zip(runs) {
        let own = |value: fn(&Own) -> f64| spread(&own_column(runs, value), short);
        table.row(vec![
            variant.name.clone(),
            whole(median(&column(runs, |run| run.rate_per_s))),
            spread(&column(runs, |run| run.gap_cv), |cv| format!("{cv:.2}")),
            own(|own| own.lag_p50_us),
            own(|own| own.lag_p99_us),
            own(|own| own.response_p50_us),
            own(|own| own.response_p99_us),
            spread(&column(runs, |run| run.sample.cpu_us()), short),
        ]);
    }
    let floor = |value: fn(&Paced) -> f64| bare.iter().map(value).collect::<Vec<_>>();
    let mut row = vec!["bare timer, no network".to_owned(), whole(f64::from(RATE))];
    row.push(spread(&floor(|paced| paced.gap_cv), |cv| format!("{cv:.2}")));
    row.push(spread(&floor(|paced| paced.lag_p50_us), short));
    row.push(spread(&floor(|paced| paced.lag_p99_us), short));
    row.extend(["-", "-", "-"].map(str::to_owned));
    table.row(row);
    let cv = |at: usize| median(&column(&runs[at], |run| run.gap_cv));
    let lag = |at: usize| median(&own_column(&runs[at], |own| own.lag_p99_us));
    let claims = vec![
        Claim::most("p99 of lag, uniform, us", lag(0), 100.0),
        Claim::most("p99 of lag, uniform, --spin 60us, us", lag(1), 100.0),
        Claim::most("cv of uniform arrivals", cv(0), 0.1),
        Claim::most("cv of uniform arrivals, --spin 60us", cv(1), 0.1),
        Claim::least("cv of Poisson arrivals", cv(2), 0.95),
        Claim::most("cv of Poisson arrivals", cv(2), 1.05),
    ];
    let notes = vec![
        "cv is the standard deviation of the gaps between arrivals over their mean, as the target saw them: 0 for \
         perfectly even arrivals, 1 for Poisson arrivals, more for bursts. wrk and ab cannot hold a rate and are \
         missing here; h2load has no arrival process and reports no percentiles. The bare timer is a loop that \
         only sleeps until each due time: what this machine's wake-ups allow a generator that sleeps."
            .to_owned(),
    ];
    let title =
        format!("Fixed rate: {RATE}/s to `serve null --busy-poll`, {CONNECTIONS} connections");
    Section { title, tables: vec![table], claims, notes }
}

fn column(runs: &[Run], value: impl Fn(&Run) -> f64) -> Vec<f64> {
    runs.iter().map(value).collect()
}

fn own_column(runs: &[Run], value: fn(&Own) -> f64) -> Vec<f64> {
    column(runs, |run| run.sample.own.as_ref().map_or(f64::NAN, value))
}
