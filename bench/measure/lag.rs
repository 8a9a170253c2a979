//! Fixed rate: how late a generator sends, and how regularly its requests arrive.

use super::bare_timer::{Paced, bare_client, bare_timer};
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
    let mut floor = Floor::default();
    bench.alternate(&variants, |at, variant| {
        if at == 0 {
            floor.measure(bench, &server, seconds)?;
        }
        server.get_json("/_stats?reset=1")?;
        // Each round draws other Poisson arrivals, so that no one sample decides.
        let seeded = variant.with_seed(runs[at].len() + 1);
        let sample = seeded.run(bench, &server.url, seconds)?;
        let (gap_cv, rate_per_s) = arrivals(&server)?;
        runs[at].push(Run { sample, gap_cv, rate_per_s });
        Ok(())
    })?;
    Ok(section(&variants, &runs, &floor))
}

/// What nobody can be better than on this machine, measured in the same rounds as the generators.
#[derive(Default)]
struct Floor {
    timer: Vec<Paced>,
    client: Vec<Paced>,
    /// cv of the gaps between the bare client's requests, as the target saw them, and their rate.
    client_arrivals: Vec<(f64, f64)>,
}

impl Floor {
    fn measure(&mut self, bench: &Bench, server: &Server, seconds: u32) -> Result<()> {
        let core = bench.cores.generator;
        self.timer.push(bare_timer(core, RATE, seconds)?);
        server.get_json("/_stats?reset=1")?;
        self.client.push(bare_client(core, server.address(), CONNECTIONS, RATE, seconds)?);
        self.client_arrivals.push(arrivals(server)?);
        Ok(())
    }

    fn rows(&self, table: &mut Table) {
        let rate = |seen: &(f64, f64)| seen.1;
        let client_rate = median(&self.client_arrivals.iter().map(rate).collect::<Vec<_>>());
        let client_cv: Vec<f64> = self.client_arrivals.iter().map(|seen| seen.0).collect();
        let timer_cv: Vec<f64> = self.timer.iter().map(|paced| paced.gap_cv).collect();
        let rows = [
            ("bare client", client_rate, &client_cv, &self.client),
            ("bare timer, no network", f64::from(RATE), &timer_cv, &self.timer),
        ];
        for (name, rate, cv, paced) in rows {
            let lag = |value: fn(&Paced) -> f64| {
                spread(&paced.iter().map(value).collect::<Vec<_>>(), short)
            };
            let mut row = vec![name.to_owned(), whole(rate), spread(cv, two_places)];
            row.push(lag(|paced| paced.lag_p50_us));
            row.push(lag(|paced| paced.lag_p99_us));
            row.extend(["-", "-", "-"].map(str::to_owned));
            table.row(row);
        }
    }

    /// Median over the rounds of how much less even the arrivals of `runs` were than the bare client's.
    fn cv_ratio(&self, runs: &[Run]) -> f64 {
        let pairs = runs.iter().zip(&self.client_arrivals);
        median(&pairs.map(|(run, (bare_cv, _))| run.gap_cv / bare_cv).collect::<Vec<_>>())
    }
}

/// The cv of the gaps, and the rate, that the target has seen since its counters were reset.
fn arrivals(server: &Server) -> Result<(f64, f64)> {
    let seen = server.get_json("/_stats")?;
    let figure = |path: &str| {
        seen.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
    };
    Ok((figure("/gaps/cv")?, figure("/rate_per_s")?))
}

fn two_places(value: f64) -> String {
    format!("{value:.2}")
}

fn section(variants: &[Variant], runs: &[Vec<Run>], floor: &Floor) -> Section {
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
            spread(&column(runs, |run| run.gap_cv), two_places),
            own(|own| own.lag_p50_us),
            own(|own| own.lag_p99_us),
            own(|own| own.response_p50_us),
            own(|own| own.response_p99_us),
            spread(&column(runs, |run| run.sample.cpu_us()), short),
        ]);
    }
    floor.rows(&mut table);
    let cv = |at: usize| median(&column(&runs[at], |run| run.gap_cv));
    let lag = |at: usize| median(&own_column(&runs[at], |own| own.lag_p99_us));
    let claims = vec![
        Claim::most("p99 of lag, uniform, us", lag(0), 100.0),
        Claim::most("p99 of lag, uniform, --spin 60us, us", lag(1), 100.0),
        Claim::most("cv of uniform arrivals, --spin 60us", cv(1), 0.1),
        Claim::most("cv of uniform arrivals", cv(0), 0.1),
        Claim::most("the same, of the bare client's", floor.cv_ratio(&runs[0]), 1.1),
        Claim::least("cv of Poisson arrivals", cv(2), 0.95),
        Claim::most("cv of Poisson arrivals", cv(2), 1.05),
    ];
    let notes = vec![
        "cv is the standard deviation of the gaps between arrivals over their mean, as the target saw them: 0 for \
         perfectly even arrivals, 1 for Poisson arrivals, more for bursts. wrk and ab cannot hold a rate and are \
         missing here; h2load has no arrival process and reports no percentiles. The bare timer is a loop that \
         only sleeps until each due time, the bare client one that sends a request then and reads the reply later: \
         what this machine allows a generator that sleeps. A virtual machine whose host takes its cores away for \
         milliseconds shows that in their rows too."
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
