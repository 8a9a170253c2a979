//! `plimsoll seek`: the highest rate that holds the limits.

mod asking;
mod feeding;
mod searching;
mod users;

use crate::page::FORMS;
use anyhow::Result;
use clap::Args;
use plimsoll_core::scenario::{RowOrder, Scenario};
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::slo::ClassSlo;
use plimsoll_core::units::{Rate, Span};
use plimsoll_engine::windows::WindowLimit;
use plimsoll_job::execute::print;
use plimsoll_job::flags::{ArrivalsFlag, GeneratorFlags, OutputFlags, PartFlag, status};
use plimsoll_job::goal::{SearchFlags, Wish, timeout};
use plimsoll_job::job::{Job, Program};
use plimsoll_job::method::Method;
use plimsoll_job::requests::RequestFlags;
use plimsoll_job::usage::usage;
use plimsoll_load::volt;
use plimsoll_report::forms::Forms;
use std::path::PathBuf;
use users::SoughtUsers;

const SHORT: &str = "plimsoll seek --help explains each option and has examples.";

const EXAMPLES: &str = "\
Examples:
  The highest rate at which 95 % of the requests are answered within 100 ms:
    plimsoll seek http://127.0.0.1:8080/ --slo p95=100ms
  Several limits at once, a query log, and 10 minutes at most:
    plimsoll seek http://127.0.0.1:8080 --queries queries.txt --check vespa \\
      --slo p95=100ms --slo p99=1s --slo errors=0.1% --budget 10m --width 3%
  The load line over half an hour, for a target that scales or warms up; Ctrl-C ends it earlier:
    plimsoll seek http://127.0.0.1:8080/ --slo p95=100ms --over-time --budget 30m
  A limit for one kind of query of a mix, and another one for all:
    plimsoll seek http://127.0.0.1:8080 --queries queries.txt --class fuzzy=fuzzy \\
      --slo 'p95{class=fuzzy}=200ms' --slo p99=1s
  One SQL statement of PostgreSQL (password: PGPASSWORD):
    plimsoll seek postgres://me@127.0.0.1:5432/db --body 'SELECT 1' --slo p95=20ms
  Votes of VoltDB, each a transaction; or one statement (password: VOLTDB_PASSWORD):
    plimsoll seek volt://127.0.0.1:21212 --slo p99=10ms
    plimsoll seek volt://127.0.0.1:21212 --body 'SELECT count(*) FROM votes' --slo p99=10ms
  Users who send 10 requests each, with pauses; the result is how many can arrive per second:
    plimsoll seek http://127.0.0.1:8080 --queries q.txt --users constant --user-requests 10 \\
      --think 'exponential 2s' --slo p95=100ms
  Operations on documents of a file, written again and again:
    plimsoll seek http://127.0.0.1:8080 --feed music.ndjson.zst --slo 'p99{class=put}=50ms'
  A target whose load line is known, to try it on (M/M/4, 163.04 per second at p95=100ms):
    plimsoll serve queue --servers 4 --service exponential:20ms --port 8080

Exit codes: 0 a rate was certified (--over-time: a stretch has an interval), 2 no rate holds the
limits, 3 not valid, 4 the target failed, 64 wrong usage.";

/// Find the highest rate at which limits hold, with an interval
///
/// This rate is the load line (maximum sustainable throughput, saturation rate under an SLO): the highest rate at which
/// limits on latency and errors hold. plimsoll reports it with a confidence interval.
#[derive(Args, Debug)]
#[command(after_help = SHORT, after_long_help = EXAMPLES, allow_negative_numbers = true)]
pub struct SeekArgs {
    #[command(flatten)]
    requests: RequestFlags,
    /// Send votes, as plimsoll voter does
    ///
    /// This is the default for volt:// without --body and --queries. It also works with postgres://.
    #[arg(long, help_heading = "Requests")]
    votes: bool,
    /// File of document operations to send again and again
    ///
    /// A file of plimsoll feed, at most 256 MiB unpacked: operations on documents (put, update, remove) for /document/v1.
    /// They are sent in their order.
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    feed: Option<PathBuf>,
    /// Statuses that count as accepted besides 2xx: 404, 412
    ///
    /// For --feed: 404 (no such document or type), 412 (condition not met).
    #[arg(long, value_name = "STATUS", value_delimiter = ',', value_parser = status, help_heading = "Replies")]
    accept: Vec<u16>,
    #[command(flatten)]
    users: SoughtUsers,

    /// Limit that must hold, such as p95=500ms
    ///
    /// A limit is p95=500ms, p99=2s, mean=50ms or errors=0.1%. A limit on one class is written 'p95{class=fuzzy}=50ms'. May
    /// be repeated.
    #[arg(long, value_name = "LIMIT", required = true, help_heading = "Search")]
    slo: Vec<ClassSlo>,
    #[command(flatten)]
    search: SearchFlags,
    /// Confidence level of the interval
    #[arg(long, value_name = "PERCENT", default_value = "95%", help_heading = "Search")]
    confidence: String,
    /// Rate to begin with, requests per second
    #[arg(long, value_name = "PER_S", default_value = "8", help_heading = "Search")]
    start_rate: Rate,
    /// Highest rate to offer, requests per second
    #[arg(long, value_name = "PER_S", default_value = "1000000", help_heading = "Search")]
    max_rate: Rate,
    /// Gaps between requests, uniform or poisson
    ///
    /// uniform: equal gaps; poisson: independent exponential gaps, as of many independent users.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "GAPS",
        default_value = "poisson",
        help_heading = "Search"
    )]
    arrivals: ArrivalsFlag,
    /// Report the load line over time, until --budget is over
    ///
    /// plimsoll offers load around the line until the budget is over.
    #[arg(long, conflicts_with = "strategy", help_heading = "Search")]
    over_time: bool,

    /// Number of connections [default: as needed]
    ///
    /// For votes on volt:// it is the number to each host. The default is 1.5 times the requests that can be in flight within
    /// the limits; 64 for postgres://; one for each host and thread for volt://.
    #[arg(long, value_name = "N", help_heading = "Run")]
    connections: Option<u32>,
    /// Longest time from sending a request to its last byte
    ///
    /// The default is twice the longest limit, and 1 s.
    #[arg(long, value_name = "TIME", help_heading = "Run")]
    timeout: Option<Span>,
    /// Longest time to open a connection, TLS included
    #[arg(long, value_name = "TIME", default_value = "5s", help_heading = "Run")]
    connect_timeout: Span,
    #[command(flatten)]
    generator: GeneratorFlags,
    /// Seed of all random choices
    ///
    /// The same seed sends the same requests at the same intended starts.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Run")]
    seed: u64,
    #[command(flatten)]
    part: PartFlag,
    #[command(flatten)]
    output: OutputFlags,
}

/// A search, ready to start.
struct Task {
    scenario: Scenario,
    goal: Goal,
    method: Method,
    /// True if the line is followed over time.
    watches: bool,
    arrivals: Arrivals,
    limits_ns: Vec<u64>,
    connections_fixed: bool,
}

impl SeekArgs {
    fn check(&self) -> Result<()> {
        if self.max_rate.per_s <= 0.0 {
            return Err(usage("--max-rate must be above 0 requests per second"));
        }
        if !(self.start_rate.per_s > 0.0 && self.start_rate <= self.max_rate) {
            return Err(usage(format!(
                "--start-rate: use a rate above 0 and at most --max-rate, which is {}/s",
                self.max_rate.per_s
            )));
        }
        Ok(())
    }

    fn task(&self) -> Result<Task> {
        self.check()?;
        let wish = Wish {
            slo: &self.slo,
            budget: self.search.budget,
            width: &self.search.width,
            confidence: &self.confidence,
            seed: self.seed,
            start_per_s: self.start_rate.per_s,
            most_per_s: self.max_rate.per_s,
            method: self.search.strategy,
        };
        let (goal, limits_ns) = wish.goal()?;
        let mut scenario = self.requests.scenario()?;
        let has_end = |order| matches!(order, RowOrder::Queue | RowOrder::Shuffle);
        if scenario.rows.as_ref().is_some_and(|rows| has_end(rows.order)) {
            return Err(usage(
                "--rows-order: queue and shuffle end with the last row, and a search needs rows without end; write \
                 circular or random",
            ));
        }
        if let Some(rows) = &mut scenario.rows {
            // In the order of the file each part of the search would begin with the same rows, which a cache then has.
            rows.order = RowOrder::Random;
        }
        let arrivals = match self.arrivals {
            ArrivalsFlag::Poisson => Arrivals::Poisson,
            ArrivalsFlag::Uniform => Arrivals::Uniform,
        };
        scenario.job = "seek".to_owned();
        scenario.load = match self.users.load(self.search.budget)? {
            Some(users) => users,
            None => LoadModel::Open { rate_per_s: self.start_rate.per_s, arrivals },
        };
        scenario.repeat = self.users.repeats();
        scenario.duration = Some(self.search.budget);
        scenario.connections = self.connections;
        scenario.timeout = self.timeout.unwrap_or(timeout(&goal));
        scenario.connect_timeout = self.connect_timeout;
        scenario.threads = self.generator.threads;
        scenario.seed = self.seed;
        scenario.slice = self.part.slice();
        scenario.spin = self.generator.spin;
        scenario.slo.clone_from(&self.slo);
        let is_database = |target: &String| {
            plimsoll_job::postgres::is_address(target) || volt::is_address(target)
        };
        let connections_fixed =
            self.connections.is_some() || scenario.targets.iter().any(is_database);
        let (method, watches) = (self.search.strategy, self.over_time);
        Ok(Task { scenario, goal, method, watches, arrivals, limits_ns, connections_fixed })
    }
}

impl Task {
    /// The limits as requests are counted by them. `has_class` says whether there are requests of a class.
    fn limits(
        &self,
        names: &[String],
        has_class: impl Fn(u16) -> bool,
    ) -> Result<Vec<WindowLimit>> {
        let limit = |(at, &limit_ns): (usize, &u64)| {
            let own = self.scenario.slo.get(at);
            let Some((slo, class)) = own.and_then(|slo| Some((slo, slo.class.as_ref()?))) else {
                return Ok(WindowLimit::of_all(limit_ns));
            };
            // An unknown one was rejected when the requests were read.
            let place = names.iter().position(|name| name == class).map(|place| place as u16);
            if !place.is_some_and(&has_class) {
                return Err(usage(format!("--slo '{slo}': no request is of class '{class}'")));
            }
            Ok(WindowLimit { limit_ns, class: place })
        };
        self.limits_ns.iter().enumerate().map(limit).collect()
    }

    /// Learns how many requests each user has, which is known when they have been read.
    fn know_users(&mut self, load: &LoadModel) {
        if let LoadModel::Users { .. } = load {
            let (start_per_s, random) = (self.goal.start_per_s, self.arrivals == Arrivals::Poisson);
            self.scenario.load =
                users::recorded(load.clone(), start_per_s, self.scenario.length(), random);
        }
    }
}

impl Job for SeekArgs {
    const NAME: &'static str = "seek";
    const FORMS: Forms = FORMS;

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a program failure.
fn run(args: &SeekArgs) -> Result<u8> {
    let task = args.task()?;
    let output = args.output.output();
    let targets = &task.scenario.targets;
    let has = |is: fn(&str) -> bool| targets.iter().any(|target| is(target));
    let (is_sql, is_volt) = (has(plimsoll_job::postgres::is_address), has(volt::is_address));
    let says_requests = task.scenario.queries.is_some() || task.scenario.has_body();
    let finished = if let Some(file) = &args.feed {
        feeding::of_feed(task, file, &args.accept, args.votes, &output)?
    } else if !args.accept.is_empty() {
        return Err(usage(
            "--accept goes with --feed; for other requests write --check status=...",
        ));
    } else if args.votes || (is_volt && !says_requests) {
        asking::of_votes(args, &task, &output)?
    } else if is_volt {
        asking::of_calls(task, &output)?
    } else if is_sql {
        asking::of_sql(task, &output)?
    } else {
        asking::of_http(task, &output)?
    };
    print(&finished, &output, &FORMS)
}
