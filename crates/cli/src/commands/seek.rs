//! `plimsoll seek`: the highest rate that holds the limits.

use super::common::{ArrivalsFlag, OutputFlags};
use super::goal::{Wish, timeout};
use super::method::{Method, results, search_as, unless_dead, verdict_of};
use super::requests::RequestFlags;
use crate::contact::reach;
use crate::execute::{code, print_out, style, write_json};
use crate::keeping::{About, Finished, JobEnd, carry_out};
use crate::prepare::{SessionForm, http_of, open};
use crate::search_progress::SearchProgress;
use crate::usage::usage;
use anyhow::Result;
use clap::Args;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_core::seek::finding::Measured;
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::search::seek;
use plimsoll_core::seek::watch::watch;
use plimsoll_core::slo::Slo;
use plimsoll_core::units::Span;
use plimsoll_engine::plant::{EnginePlant, PlantPlan};
use plimsoll_engine::shard::ShardPlan;
use std::cell::RefCell;

const EXAMPLES: &str = "\
Examples:
  The highest rate at which 95 % of the requests are answered within 100 ms:
    plimsoll seek http://127.0.0.1:8080/ --slo p95=100ms
  Several limits at once, a query log, and ten minutes at most:
    plimsoll seek http://127.0.0.1:8080 --queries queries.txt --check vespa \\
      --slo p95=100ms --slo p99=1s --slo errors=0.1% --budget 10m --width 3%
  The line over half an hour, for a target that scales or warms up; Ctrl-C ends it earlier:
    plimsoll seek http://127.0.0.1:8080/ --slo p95=100ms --watch --budget 30m
  A target to try it on; its own limit is known (M/M/4, 163.04 a second):
    plimsoll serve queue --servers 4 --service exponential:20ms --port 8080

Exit codes: 0 a rate was certified (--watch: a stretch has an interval), 2 no rate holds the limits, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Share of the connections that may be busy at the line before it is put in doubt.
const CONNECTIONS_BUSY: f64 = 0.8;

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
    /// Follow the line: offer load around it until the budget is over, and report it over time.
    #[arg(long, conflicts_with = "strategy", help_heading = "Search")]
    watch: bool,

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
        if !(self.start_rate > 0.0 && self.start_rate <= self.max_rate) {
            return Err(usage(
                "--start-rate: use a rate above 0 and at most --max-rate, in requests per second",
            ));
        }
        let wish = Wish {
            slo: &self.slo,
            budget: self.budget,
            width: &self.width,
            confidence: &self.confidence,
            seed: self.seed,
            start_per_s: self.start_rate,
            most_per_s: self.max_rate,
            method: self.strategy,
        };
        let (goal, limits_ns) = wish.goal()?;
        let mut scenario = self.requests.scenario()?;
        let arrivals = match self.arrivals {
            ArrivalsFlag::Poisson => Arrivals::Poisson,
            ArrivalsFlag::Uniform => Arrivals::Uniform,
        };
        scenario.job = "seek".to_owned();
        scenario.load = LoadModel::Open { rate_per_s: self.start_rate, arrivals };
        scenario.duration = Some(self.budget);
        scenario.connections = self.connections;
        scenario.timeout = self.timeout.unwrap_or(timeout(&goal));
        scenario.connect_timeout = self.connect_timeout;
        scenario.threads = self.threads;
        scenario.seed = self.seed;
        scenario.spin = self.spin;
        scenario.slo.clone_from(&self.slo);
        Ok(Task { scenario, goal, limits_ns, connections_fixed: self.connections.is_some() })
    }
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
    reach(&prepared.plan.targets, task.scenario.connect_timeout)?;
    let about = About {
        plan: &prepared.plan,
        class_names: prepared.class_names,
        distinct_requests: prepared.distinct_requests,
        troubles: prepared.troubles,
    };
    let progress = SearchProgress::new(&task.goal, output.quiet);
    let http = http_of(&task.scenario);
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
            EnginePlant::new(plan, move || http, &mut sessions, keeping.sink, &mut second, stop);
        let (results, verdict, warnings) = match args.strategy.rival() {
            None => {
                let search = if args.watch { watch } else { seek };
                let finding = search(&mut plant, &task.goal, &mut |event| progress.event(event));
                let own = args
                    .connections
                    .zip(finding.certified.as_ref())
                    .and_then(|(fixed, at_line)| held_by_connections(at_line, fixed));
                let repeated = repeated(finding.repeated);
                let own = own.into_iter().chain(repeated).collect();
                (results(&finding), verdict_of(&finding), own)
            }
            Some(rival) => {
                let (results, verdict, _) = search_as(rival, &mut plant, &task.goal);
                (results, verdict, Vec::new())
            }
        };
        progress.done();
        let end = plant.finish()?;
        if let Some(error) = sessions_error.take() {
            return Err(error);
        }
        let end =
            end.ok_or_else(|| usage("--budget: no load was offered; give the search more time"))?;
        let verdict = Some(unless_dead(verdict, &end));
        Ok(JobEnd { end, results, verdict, warnings })
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

/// Says how much of the search was measured anew.
fn repeated(parts: u32) -> Option<String> {
    (parts > 0).then(|| {
        format!(
            "the generator was late in {parts} part{} of the search, which {} measured once more: this machine \
             stands still now and then, or has too little to do this",
            if parts == 1 { "" } else { "s" },
            if parts == 1 { "was" } else { "were" },
        )
    })
}

/// Says so when a fixed number of connections was nearly all in use at the line, which then may be theirs. By
/// Little's law the rate times the mean response time is how many requests were under way or waiting to be.
fn held_by_connections(at_line: &Measured, fixed: u32) -> Option<String> {
    let busy = at_line.rate_per_s * at_line.response_mean_s;
    (busy >= CONNECTIONS_BUSY * f64::from(fixed)).then(|| {
        format!(
            "{busy:.1} requests were under way or waiting at the line, with {fixed} connections: the line may be \
             theirs; use more, or leave --connections out"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::seek::plant::Window;

    #[test]
    fn a_line_that_all_connections_are_busy_at_may_be_theirs() {
        let counts = Window { scheduled: 1000, response_sum_s: 50.0, ..Window::default() };
        let certified = Measured::new(100.0, 10.0, 1, &counts);
        assert!(
            held_by_connections(&certified, 6).is_some_and(|text| text.contains("5.0 requests"))
        );
        assert!(held_by_connections(&certified, 7).is_none());
    }
}
