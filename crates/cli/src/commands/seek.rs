//! `plimsoll seek`: the highest rate that holds the limits.

use super::common::{ArrivalsFlag, OutputFlags};
use super::method::{Method, search_as};
use super::requests::RequestFlags;
use crate::execute::{code, print_out, style, write_json};
use crate::keeping::{About, Finished, JobEnd, carry_out};
use crate::prepare::{SessionForm, open};
use crate::search_progress::SearchProgress;
use crate::usage::usage;
use anyhow::Result;
use clap::Args;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_core::seek::finding::{Finding, Verdict as Found};
use plimsoll_core::seek::goal::{Goal, Limit};
use plimsoll_core::seek::plant::LIMITS_MAX;
use plimsoll_core::seek::search::seek;
use plimsoll_core::slo::Slo;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::plant::{EnginePlant, PlantPlan};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_wire::http1::Http1;
use serde_json::{Map, Value, json};
use std::cell::RefCell;

const EXAMPLES: &str = "\
Examples:
  The highest rate at which 95 % of the requests are answered within 100 ms:
    plimsoll seek http://127.0.0.1:8080/ --slo p95=100ms
  Several limits at once, a query log, and ten minutes at most:
    plimsoll seek http://127.0.0.1:8080 --queries queries.txt --check vespa \\
      --slo p95=100ms --slo p99=1s --slo errors=0.1% --budget 10m --width 3%
  A target to try it on; its own limit is known (M/M/4, 163.04 a second):
    plimsoll serve queue --servers 4 --service exponential:20ms --port 8080

Exit codes: 0 a rate was certified, 2 no rate holds the limits, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Longest budget.
const BUDGET_MAX: Span = Span::seconds(24 * 3600);

/// Find the highest rate that holds limits on latency and errors, with an interval.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES, allow_negative_numbers = true)]
pub struct SeekArgs {
    #[command(flatten)]
    requests: RequestFlags,

    /// A limit to hold: p95=500ms, p99=2s, mean=50ms or errors=0.1%; may be repeated.
    #[arg(long, value_name = "LIMIT", required = true, help_heading = "Search")]
    slo: Vec<Slo>,
    /// Time for the whole search.
    #[arg(long, value_name = "TIME", default_value = "5m", help_heading = "Search")]
    budget: Span,
    /// The interval is narrow enough when it reaches no further than this to either side.
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Search")]
    width: String,
    /// How many of a hundred such intervals shall hold the true line.
    #[arg(long, value_name = "PERCENT", default_value = "95%", help_heading = "Search")]
    confidence: String,
    /// Rate to begin with, requests per second.
    #[arg(long, value_name = "PER_S", default_value_t = 8.0, help_heading = "Search")]
    start_rate: f64,
    /// Highest rate to offer, requests per second.
    #[arg(long, value_name = "PER_S", default_value_t = 1_000_000.0, help_heading = "Search")]
    max_rate: f64,
    /// How requests follow each other.
    #[arg(long, value_enum, default_value = "poisson", help_heading = "Search")]
    arrivals: ArrivalsFlag,

    /// Search as another tool does, for comparison.
    #[arg(long, value_enum, default_value = "plimsoll", help_heading = "Search")]
    strategy: Method,

    /// Connections; by default as many as requests can be under way in time, and half as many again.
    #[arg(long, value_name = "N", help_heading = "Run")]
    connections: Option<u32>,
    /// Longest time from sending a request to its last byte; by default twice the longest limit, and a second more.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    timeout: Option<Span>,
    /// Longest time for a connection, TLS included.
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    connect_timeout: Span,
    /// Threads; each owns a share of connections and schedule.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    threads: u32,
    /// Seed of every random choice.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    seed: u64,
    /// Poll this long before each intended start instead of sleeping: less lag, more CPU (60us is enough).
    #[arg(long, value_name = "TIME", default_value = "0s", help_heading = "Run")]
    spin: Span,
    #[command(flatten)]
    output: OutputFlags,
}

/// A search, ready to start.
struct Task {
    scenario: Scenario,
    goal: Goal,
    limits_ns: Vec<u64>,
    connections_fixed: bool,
}

impl SeekArgs {
    fn task(&self) -> Result<Task> {
        let (limits, limits_ns) = limits(&self.slo)?;
        let longest_ns =
            limits_ns.iter().copied().filter(|&ns| ns < u64::MAX).max().unwrap_or(1_000_000_000);
        if self.budget.ns == 0 || self.budget.ns > BUDGET_MAX.ns {
            return Err(usage("--budget: use a time above 0 and at most 24h, such as 5m"));
        }
        if !(self.start_rate > 0.0 && self.start_rate <= self.max_rate) {
            return Err(usage(
                "--start-rate: use a rate above 0 and at most --max-rate, in requests per second",
            ));
        }
        let mut scenario = self.requests.scenario()?;
        let arrivals = match self.arrivals {
            ArrivalsFlag::Poisson => Arrivals::Poisson,
            ArrivalsFlag::Uniform => Arrivals::Uniform,
        };
        scenario.job = "seek".to_owned();
        scenario.load = LoadModel::Open { rate_per_s: self.start_rate, arrivals };
        scenario.duration = Some(self.budget);
        scenario.connections = self.connections;
        scenario.timeout = self.timeout.unwrap_or(Span { ns: 2 * longest_ns + 1_000_000_000 });
        scenario.connect_timeout = self.connect_timeout;
        scenario.threads = self.threads;
        scenario.seed = self.seed;
        scenario.spin = self.spin;
        scenario.slo.clone_from(&self.slo);
        let goal = Goal {
            limits,
            limit_s: longest_ns as f64 / 1e9,
            budget_s: self.budget.as_seconds(),
            width: share("--width", &self.width)?,
            confidence: share("--confidence", &self.confidence)?,
            seed: self.seed,
            start_per_s: self.start_rate,
            most_per_s: self.max_rate,
        };
        goal.check().map_err(usage)?;
        let limits_ns = self.strategy.limits_ns(&goal, limits_ns)?;
        Ok(Task { scenario, goal, limits_ns, connections_fixed: self.connections.is_some() })
    }
}

/// What the search calls the limits, and each limit's longest response time, ns.
pub fn limits(slo: &[Slo]) -> Result<(Vec<Limit>, Vec<u64>)> {
    if slo.len() > LIMITS_MAX {
        return Err(usage(format!("--slo: at most {LIMITS_MAX} limits at once")));
    }
    let mut limits = Vec::new();
    let mut limits_ns = Vec::new();
    for limit in slo {
        let label = limit.to_string();
        let (own, ns) = match *limit {
            Slo::Quantile { limit: Span { ns: 0 }, .. } | Slo::Mean(Span { ns: 0 }) => {
                return Err(usage(format!("--slo {label}: nothing is answered in no time")));
            }
            Slo::Quantile { quantile, limit } if quantile < 1.0 => {
                (Limit::late(&label, 1.0 - quantile), limit.ns)
            }
            Slo::Errors(share) if share > 0.0 && share < 1.0 => {
                (Limit::late(&label, share), u64::MAX)
            }
            Slo::Mean(limit) => (Limit::mean(&label, limit.as_seconds()), limit.ns),
            Slo::Errors(_) => {
                return Err(usage(format!(
                    "--slo {label}: a search needs a share above 0 % and below 100 %; write errors=0.1%"
                )));
            }
            Slo::Quantile { .. } | Slo::Max(_) => {
                return Err(usage(format!(
                    "--slo {label}: no load can promise that every request is in time; write p99.9={}",
                    label.split_once('=').map_or("1s", |(_, limit)| limit)
                )));
            }
            Slo::Rate(_) => {
                return Err(usage(
                    "--slo rate: the rate is what is sought; see --start-rate, --max-rate",
                ));
            }
        };
        limits.push(own);
        limits_ns.push(ns);
    }
    Ok((limits, limits_ns))
}

/// Reads `5%` or `0.05`.
pub fn share(flag: &str, text: &str) -> Result<f64> {
    let (digits, scale) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 0.01));
    let share = digits.trim().parse::<f64>().ok().map(|value| value * scale);
    share.filter(|share| *share > 0.0 && *share < 1.0).ok_or_else(|| {
        usage(format!("{flag} '{text}': write a share above 0% and below 100%, such as 5%"))
    })
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a program failure.
pub fn run(args: &SeekArgs) -> Result<u8> {
    let task = args.task()?;
    let output = args.output.output();
    let (plan, form) = open(&task.scenario)?;
    let prepared = form.prepared(&task.scenario, plan)?;
    output.check()?;
    let about = About {
        plan: &prepared.plan,
        class_names: prepared.class_names,
        distinct_requests: prepared.distinct_requests,
        troubles: prepared.troubles,
    };
    let progress = SearchProgress::new(&task.goal, output.quiet);
    let finished = carry_out(&task.scenario, &about, &output, |keeping| {
        let mut second = |interval: &_| progress.second(interval);
        let sessions_error = RefCell::new(None);
        let mut sessions = |seed: u64| match form.sessions(&part(&task.scenario, &form, seed)) {
            Ok(sessions) => sessions,
            Err(error) => {
                sessions_error.borrow_mut().get_or_insert(error);
                Vec::new()
            }
        };
        let stop = keeping.stop;
        let plan = plant_plan(&task, about.plan);
        let mut plant =
            EnginePlant::new(plan, Http1::default, &mut sessions, keeping.sink, &mut second, stop);
        let (results, verdict) = match args.strategy.rival() {
            None => {
                let finding = seek(&mut plant, &task.goal, &mut |event| progress.event(event));
                (results(&finding), verdict_of(&finding))
            }
            Some(rival) => {
                let (results, verdict, _) = search_as(rival, &mut plant, &task.goal);
                (results, verdict)
            }
        };
        progress.done();
        let end = plant.finish()?;
        if let Some(error) = sessions_error.take() {
            return Err(error);
        }
        let end =
            end.ok_or_else(|| usage("--budget: no load was offered; give the search more time"))?;
        Ok(JobEnd { end, results, verdict: Some(verdict) })
    });
    progress.done();
    print(&finished?, &output)
}

fn print(finished: &Finished, output: &crate::execute::Output) -> Result<u8> {
    if !write_json(output, &finished.record)? {
        let folder = finished.folder.as_deref();
        print_out(&plimsoll_report::text::render(&finished.record, folder, &style()))?;
    }
    Ok(code(finished))
}

/// The scenario of one part of the search: a seed of its own, so that no two parts ask the same requests in the
/// same order.
fn part(scenario: &Scenario, form: &SessionForm, seed: u64) -> Scenario {
    let mut part = scenario.clone();
    part.seed = seed;
    if part.order == "file" && form.length().is_some_and(|length| length > 1) {
        part.order = "shuffle".to_owned();
    }
    part
}

fn plant_plan(task: &Task, base: &ShardPlan) -> PlantPlan {
    let arrivals = match task.scenario.load {
        LoadModel::Open { arrivals, .. } => arrivals,
        _ => Arrivals::Poisson,
    };
    PlantPlan {
        base: base.clone(),
        arrivals,
        limits_ns: task.limits_ns.clone(),
        connections_fixed: task.connections_fixed,
        shards: task.scenario.threads,
    }
}

/// What the record holds under `seek`.
pub fn results(finding: &Finding) -> Map<String, Value> {
    let mut found = serde_json::to_value(finding).unwrap_or_default();
    if let Some(object) = found.as_object_mut() {
        let certified = finding.certified.as_ref().map(|measured| measured.rate_per_s);
        object.insert("certified_rate_per_s".to_owned(), json!(certified));
    }
    Map::from_iter([("seek".to_owned(), found)])
}

pub fn verdict_of(finding: &Finding) -> Verdict {
    let kind = match finding.verdict {
        Found::Ok | Found::NeverViolated { .. } | Found::BudgetTooSmall => VerdictKind::Valid,
        Found::GeneratorLimited => VerdictKind::GeneratorLimited,
        Found::Infeasible => VerdictKind::Infeasible,
        Found::NonMonotone | Found::Drifting => VerdictKind::Unstable,
        Found::TargetFailed => VerdictKind::TargetFailed,
        Found::Interrupted => VerdictKind::Partial,
    };
    Verdict { kind, reasons: vec![finding.reason.clone()] }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_read_as_percent_or_fraction() {
        assert!((share("--width", "5%").unwrap() - 0.05).abs() < 1e-12);
        assert!((share("--width", "0.03").unwrap() - 0.03).abs() < 1e-12);
        for wrong in ["", "5", "0%", "100%", "-1%", "x%"] {
            assert!(share("--width", wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn limits_that_no_load_can_promise_are_refused() {
        let read = |text: &str| limits(&[text.parse().unwrap()]);
        let (own, ns) = read("p95=100ms").unwrap();
        assert!((own[0].allowed() - 0.05).abs() < 1e-12);
        assert_eq!(ns, [100_000_000]);
        assert_eq!(read("errors=0.1%").unwrap().1, [u64::MAX]);
        for wrong in ["max=1s", "p100=1s", "rate=100", "errors=0%", "p95=0s", "mean=0s"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
