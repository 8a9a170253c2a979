//! `plimsoll rank`: FeedSim's runner and a search for the load line of the ranking server.

mod instances;
mod runs;
mod stages;

use crate::page::FORMS;
use crate::sessions::{RankSessions, payload};
use anyhow::Result;
use clap::{Args, ValueEnum};
use instances::Instances;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::notes::Arriving;
use plimsoll_core::seek::search::seek;
use plimsoll_core::seek::steps::{Step, StepKind};
use plimsoll_core::slo::{ClassSlo, Slo};
use plimsoll_core::units::Span;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::plant::{EnginePlant, PlantPlan};
use plimsoll_engine::windows::WindowLimit;
use plimsoll_job::execute::print;
use plimsoll_job::flags::{OutputFlags, PartFlag};
use plimsoll_job::goal::{SearchFlags, Wish};
use plimsoll_job::job::{Job, Program};
use plimsoll_job::keeping::{About, JobEnd, Staff, carry_out, nothing_measured};
use plimsoll_job::method::{result, search_as, verdict_of};
use plimsoll_job::output::{Output, put_result, with_files};
use plimsoll_job::prepare::{only_whole, plan_of};
use plimsoll_job::progress::SearchProgress;
use plimsoll_job::signals::{Stopped, is_stopped};
use plimsoll_job::together::{has_agents, is_agent, parts_word};
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_record::rank::RankRun;
use plimsoll_report::forms::Forms;
use plimsoll_wire::Protocol as _;
use plimsoll_wire::Sessions;
use plimsoll_wire::rank::Rank;
use runs::{Plant, Row, csv};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Find the highest rate at which the mini server holds its limit, and check it for a minute:
    plimsoll rank --preset mini --budget 4m -d 60
  FeedSim's own sizes, its limit and its fixed rates:
    plimsoll rank --preset feedsim -q 20,40,60 -d 300 -w 120
  Two instances on separate processors, at the same rate:
    plimsoll rank -n 2

Exit codes: 0 every limit was met, 2 a limit was missed, 3 not valid, 4 the target failed,
64 wrong usage.";

/// Sizes of the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Preset {
    /// Two processors, about 60 MB, about 13 ms of CPU per request.
    Mini,
    /// FeedSim's own sizes.
    Feedsim,
}

/// Run FeedSim's ranking benchmark against a ranking server
///
/// plimsoll starts the server, finds the highest rate that meets the limit, and checks it.
#[derive(Args, Debug)]
// As in FeedSim's script the last one given counts: a job's extra_args can override its flags.
#[command(after_help = EXAMPLES, allow_negative_numbers = true, args_override_self = true)]
#[command(mut_arg("strategy", |flag| flag.alias("method")))]
pub struct RankArgs {
    /// Threads that take requests through their stages
    ///
    /// Of each server (FeedSim's thrift threads).
    #[arg(short = 't', long, value_name = "N", help_heading = "FeedSim's flags")]
    threads: Option<usize>,
    /// Threads, and tasks of a request, for PageRank
    ///
    /// Of each server.
    #[arg(short = 'c', long, value_name = "N", help_heading = "FeedSim's flags")]
    cpu_threads: Option<usize>,
    /// Threads, and tasks of a request, that build stories
    ///
    /// Of each server.
    #[arg(short = 's', long, value_name = "N", help_heading = "FeedSim's flags")]
    srv_io_threads: Option<usize>,
    /// Set the generator's threads by the rate
    ///
    /// One per 4 requests per second of the highest rate of -q, and at most a fifth of the processors. A search has one for each
    /// instance.
    #[arg(short = 'a', long, help_heading = "FeedSim's flags")]
    auto_driver_threads: bool,
    /// Fixed rates instead of a search, such as 20,40,60
    ///
    /// In requests per second to each instance.
    #[arg(
        short = 'q',
        long,
        value_name = "LIST",
        value_delimiter = ',',
        help_heading = "FeedSim's flags"
    )]
    qps: Vec<f64>,
    /// Duration of each fixed rate, seconds
    ///
    /// Also of the final run of a search; the final run lasts at least 32 times the limit, and 2 to 8 s depending on the
    /// budget.
    #[arg(
        short = 'd',
        long,
        value_name = "SECONDS",
        default_value_t = 60,
        help_heading = "FeedSim's flags"
    )]
    seconds: u32,
    /// Warm-up before the first fixed rate, seconds
    ///
    /// Requests are sent but not counted.
    #[arg(
        short = 'w',
        long,
        value_name = "SECONDS",
        default_value_t = 10,
        help_heading = "FeedSim's flags"
    )]
    warmup: u32,
    /// Port of the first server; 0: any free ones
    ///
    /// The other servers have the following ports.
    #[arg(
        short = 'p',
        long,
        value_name = "PORT",
        default_value_t = 0,
        help_heading = "FeedSim's flags"
    )]
    port: u16,
    /// File for FeedSim's table of 15 columns [default: feedsim_results.txt]
    ///
    /// With --no-record, plimsoll writes the file only if you name it.
    #[arg(short = 'o', long, value_name = "FILE", help_heading = "FeedSim's flags")]
    out: Option<PathBuf>,
    /// Functions in the instruction walk of a request
    #[arg(short = 'i', long, value_name = "N", help_heading = "FeedSim's flags")]
    icache: Option<u64>,
    /// Number of servers [default: one per 100 processors]
    ///
    /// Each server has its own processors. Logical processors count.
    #[arg(short = 'n', long, value_name = "N", help_heading = "FeedSim's flags")]
    instances: Option<usize>,

    /// Set of defaults: mini or feedsim
    ///
    /// mini: two processors, about 60 MB, about 13 ms of CPU per request; feedsim: FeedSim's own sizes.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        default_value = "mini",
        help_heading = "Server"
    )]
    preset: Preset,
    /// Size of the graph: 2^N nodes
    #[arg(long, value_name = "N", help_heading = "Server")]
    scale: Option<u32>,
    /// Running server, rank://HOST:PORT
    ///
    /// plimsoll uses it instead of starting one. May be repeated.
    #[arg(long, value_name = "URL", help_heading = "Server")]
    target: Vec<String>,

    /// Limit that must hold, such as p95=500ms
    ///
    /// The default is p95=150ms with --preset mini, p95=500ms with --preset feedsim. May be repeated.
    #[arg(long, value_name = "LIMIT", help_heading = "Search")]
    slo: Vec<Slo>,
    #[command(flatten)]
    search: SearchFlags,
    /// Longest time from sending a request to its last byte
    #[arg(long, value_name = "TIME", default_value = "30s", help_heading = "Search")]
    timeout: Span,
    /// Seed of all random choices
    ///
    /// The same seed sends the same requests at the same intended starts.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Search")]
    seed: u64,
    #[command(flatten)]
    part: PartFlag,
    #[command(flatten)]
    output: OutputFlags,
}

impl RankArgs {
    fn slo(&self) -> Vec<ClassSlo> {
        if !self.slo.is_empty() {
            return self.slo.iter().copied().map(ClassSlo::from).collect();
        }
        let ms = if self.preset == Preset::Mini { 150 } else { 500 };
        vec![Slo::Quantile { quantile: 0.95, limit: Span { ns: ms * 1_000_000 } }.into()]
    }

    fn check(&self, program: &Program) -> Result<()> {
        if self.qps.iter().any(|rate| !(*rate > 0.0 && *rate <= 1e6)) {
            return Err(usage("-q: rates must be above 0 and at most 1,000,000 per second"));
        }
        if self.seconds == 0 || self.seconds > 86_400 || self.warmup > 86_400 {
            return Err(usage("-d: use 1 to 86400 seconds; -w: 0 to 86400"));
        }
        if self.timeout.ns == 0 {
            return Err(usage("--timeout: must be more than 0; every wait has a limit"));
        }
        self.check_servers()?;
        let slice = self.part.slice();
        if self.target.is_empty() && has_agents() {
            let word = parts_word();
            return Err(usage(format!(
                "--target: name running servers that all {word} can reach; {word} start none"
            )));
        }
        if self.qps.is_empty() && !has_agents() {
            only_whole(
                slice,
                "a search",
                "each rate follows from all replies; name rates with -q",
            )?;
        }
        if self.target.is_empty() {
            only_whole(slice, "a run that starts its servers", "name running ones with --target")?;
            (program.check_ranker)(&instances::arguments(self, 0)[1..])?;
        }
        Ok(())
    }

    /// Rejects flags of servers that are started beside running ones.
    fn check_servers(&self) -> Result<()> {
        let given = [
            ("--threads", self.threads.is_some()),
            ("--cpu-threads", self.cpu_threads.is_some()),
            ("--srv-io-threads", self.srv_io_threads.is_some()),
            ("--icache", self.icache.is_some()),
            ("--port", self.port != 0),
            ("--scale", self.scale.is_some()),
        ];
        match given.iter().find(|(_, is)| *is).filter(|_| !self.target.is_empty()) {
            Some((flag, _)) => Err(usage(format!(
                "{flag} is for servers that plimsoll starts, and --target names running ones; leave out {flag} or --target"
            ))),
            None => Ok(()),
        }
    }

    /// The goal of the search, and the longest response time of each limit, ns.
    fn goal(&self) -> Result<(Goal, Vec<u64>)> {
        let wish = Wish {
            slo: &self.slo(),
            budget: self.search.budget,
            width: &self.search.width,
            confidence: "95%",
            seed: self.seed,
            start_per_s: 4.0,
            most_per_s: 1e5,
            method: self.search.strategy,
        };
        wish.goal()
    }

    /// Returns the duration of the whole job, s.
    fn whole_s(&self, goal: &Goal) -> f64 {
        match self.qps.len() {
            0 => goal.budget_s + f64::from(self.seconds),
            rates => f64::from(self.warmup) + rates as f64 * f64::from(self.seconds),
        }
    }

    fn scenario(&self, targets: Vec<String>) -> Scenario {
        let fastest = self.qps.iter().copied().fold(4.0, f64::max) * targets.len().max(1) as f64;
        let most = (instances::processors().len() / 5).max(1) as u32;
        Scenario {
            job: "rank".to_owned(),
            targets,
            load: LoadModel::Open { rate_per_s: fastest, arrivals: Arrivals::Poisson },
            duration: Some(self.search.budget),
            threads: if self.auto_driver_threads {
                ((fastest / 4.0) as u32).clamp(1, most)
            } else {
                1
            },
            slice: self.part.slice(),
            timeout: self.timeout,
            seed: self.seed,
            slo: self.slo(),
            ..Scenario::default()
        }
    }
}

impl Job for RankArgs {
    const NAME: &'static str = "rank";
    const FORMS: Forms = FORMS;

    fn run(&self, program: &Program) -> Result<u8> {
        run(self, program)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a server that does not start.
fn run(args: &RankArgs, program: &Program) -> Result<u8> {
    args.check(program)?;
    let (goal, limits_ns) = args.goal()?;
    let output = args.output.output();
    output.check()?;
    // From here on Ctrl-C shuts down the benchmark and its servers cleanly.
    plimsoll_job::signals::stop_flag()?;
    let instances = match Instances::start(args) {
        Ok(instances) => instances,
        Err(error) => {
            let stopped = error.downcast::<Stopped>()?;
            let finished = nothing_measured(&args.scenario(Vec::new()), &output, &stopped)?;
            return print(&finished, &output, &FORMS);
        }
    };
    let scenario = args.scenario(instances.urls.clone());
    let targets = instances.targets()?;
    let plan = plan_of(&scenario, targets, None, instances.urls.len());
    let names: Vec<String> = (1..=instances.urls.len()).map(|i| format!("instance {i}")).collect();
    let about = About {
        plan: &plan,
        class_names: names,
        distinct_requests: None,
        troubles: plimsoll_workloads::http::Troubles::default(),
    };
    let progress = SearchProgress::lasting(args.whole_s(&goal), goal.budget_s, output.voice());
    let mut rows = Vec::new();
    let finished = carry_out(&scenario, &about, &output, |keeping| {
        let mut sessions = |_seed: u64| sessions(&scenario, instances.urls.len());
        let mut second = |interval: &_| progress.second(interval);
        let plant_plan = PlantPlan {
            base: plan.clone(),
            arrivals: Arrivals::Poisson,
            users: None,
            limits: limits_ns.iter().copied().map(WindowLimit::of_all).collect(),
            connections_fixed: false,
            shards: scenario.threads,
            depth: Rank::default().depth(),
        };
        let mut crew = Staff::new(keeping, Rank::default, &mut second);
        let mut plant = EnginePlant::new(plant_plan, &mut sessions, &mut crew);
        let (mut job, verdict) =
            measure(&mut plant, (args, &goal), about.class_names.len(), &progress, &mut rows);
        progress.done();
        let end = plant
            .finish()?
            .ok_or_else(|| usage("--budget is too short for a single request; use a longer one"))?;
        let verdict = runs::verdict(verdict, &rows, &end, &goal, !args.qps.is_empty());
        let mut result = runs::record(&rows, instances.urls.len());
        if args.target.is_empty() {
            result.stages = stages::of_servers(&plan.targets);
        }
        if let (Some(found), true) = (job.seek_mut(), args.qps.is_empty()) {
            found.finding.steps.extend(result.runs.iter().map(step));
        }
        job.put(result);
        Ok(JobEnd { end, results: job, verdict: Some(verdict), warnings: Vec::new() })
    });
    progress.done();
    let finished = finished?;
    let code = print(&finished, &output, &FORMS)?;
    put_table(args, &output, &rows);
    Ok(with_files(code))
}

/// Sessions of each thread of the generator, which send the same payload to each instance in turn.
fn sessions(scenario: &Scenario, instances: usize) -> Vec<Box<dyn Sessions<Rank> + Send>> {
    let payload = payload(scenario.seed);
    let own = |slice| RankSessions::new(payload.clone(), instances as u16, slice);
    let own = |slice| Box::new(own(slice)) as Box<dyn Sessions<Rank> + Send>;
    scenario.shards().map(own).collect()
}

/// Writes FeedSim's table where `-o` says, or beside a kept record.
fn put_table(args: &RankArgs, output: &Output, rows: &[Row]) {
    if is_agent() {
        return;
    }
    let kept = output.runs.is_some().then(|| PathBuf::from("feedsim_results.txt"));
    if let Some(path) = args.out.clone().or(kept) {
        put_result("-o", &path, &csv(rows));
    }
}

/// A final run as a step of the search.
fn step(run: &RankRun) -> Step {
    Step {
        kind: StepKind::Run,
        at_s: run.to_s,
        rate_per_s: Some(run.requested_qps),
        low_per_s: None,
        high_per_s: None,
        held: Some(run.held),
    }
}

/// Searches or runs the fixed rates; returns the results for the record, and the verdict.
fn measure(
    plant: &mut Plant<'_>,
    (args, goal): (&RankArgs, &Goal),
    instances: usize,
    progress: &SearchProgress,
    rows: &mut Vec<Row>,
) -> (JobResults, Verdict) {
    if !args.qps.is_empty() {
        *rows = runs::fixed(plant, args, goal, instances);
        return (JobResults::default(), Verdict::new(VerdictKind::Valid, Vec::new()));
    }
    if let Some(rival) = args.search.strategy.rival() {
        let (found, verdict, rate_per_s) = search_as(rival, plant, goal);
        if rate_per_s > 0.0 && !is_stopped() {
            // The original always reports its last run, and so does its imitation.
            *rows = vec![runs::measure(plant, rate_per_s, 0.0, f64::from(args.seconds), goal)];
        }
        return (found, verdict);
    }
    let mut observe = |event: &_| progress.event(event);
    let found = seek(plant, goal, &mut observe);
    // A short search may know the line but have no time to certify a rate: the lower end of its interval is tried.
    let certified = found.certified.as_ref().map(|run| run.rate_per_s);
    let rate_per_s = certified.or(found.interval_per_s.map(|(low, _)| low));
    if let Some(rate_per_s) = rate_per_s.filter(|_| !is_stopped()) {
        *rows = runs::final_run(plant, rate_per_s, f64::from(args.seconds), goal, &mut observe);
    }
    let finding = runs::checked(found, rows, goal);
    let mut found = result(&finding, Arrivals::Poisson, Arriving::Requests);
    found.searched_rate_per_s = Some(rate_per_s);
    (JobResults::of(found), verdict_of(&finding))
}
