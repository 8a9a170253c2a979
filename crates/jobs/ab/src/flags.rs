//! Flags of `plimsoll ab`.

use clap::Args;
use plimsoll_core::units::{Share, Span};
use plimsoll_decide::rule::Rule;
use plimsoll_job::flags::ResultFlags;
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  Two addresses under the same open load; is B slower?
    plimsoll ab --a http://old:8080 --b http://new:8080 -- load --rate 1000 --arrivals poisson
  Two settings of the same job; exit code 1 if B's p99 is surely more than 5 % higher:
    plimsoll ab --b-flags --no-keepalive --fail-on 'p99>+5%' \\
      -- load http://127.0.0.1:8080/ --rate 1000
  Two servers that ab starts and stops:
    plimsoll ab --a-command 'plimsoll serve queue --service exponential:1ms' \\
      --b-command 'plimsoll serve queue --service exponential:1.1ms' -- load --rate 500
  Two builds of plimsoll as load generators:
    plimsoll ab --a-bin ./old --b-bin ./new --on cpu -- load http://127.0.0.1:8080/ --clients 64
  The highest rate under a limit, by steps in turn:
    plimsoll ab --a http://old:8080 --b http://new:8080 -- seek --slo p95=50ms
  Two search engines:
    plimsoll ab --a index --b scan -- search --sizes 4MB --users 1
  Another load tool, by its run time or by a number that it prints:
    plimsoll ab --command --a http://old:8080/ --b http://new:8080/ \\
      --number 'Requests/sec: +([0-9.]+)' --higher-is-better -- wrk -d 2 {target}

Exit codes: 0 answered (also: cannot tell), 1 --fail-on: worse, 2 --fail-on: cannot tell, 3 the
generator was the limit, the comparison was stopped, or a block failed, 4 a target failed, 64 wrong
usage.";

/// Find out whether B is better or worse than A, in pairs of blocks
///
/// plimsoll runs short blocks of the same load against A and B in turn (A B B A ..., at random in each pair) and compares the
/// pairs. For each metric the answer is better, worse, the same within --margin, or cannot tell, with an interval. --error bounds
/// the chance of a wrong claim.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct AbArgs {
    /// Address of A: takes the place of the job's target
    ///
    /// An address without a path has the path of the job's own. For search, an engine such as index or NAME=URL. With --command,
    /// it takes the place of {target}.
    #[arg(long, value_name = "URL", help_heading = "Sides")]
    pub a: Option<String>,
    /// Address of B
    #[arg(long, value_name = "URL", help_heading = "Sides")]
    pub b: Option<String>,
    /// More flags for the job of A, such as '--http2'
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Sides")]
    pub a_flags: Option<String>,
    /// More flags for the job of B
    #[arg(long, value_name = "FLAGS", allow_hyphen_values = true, help_heading = "Sides")]
    pub b_flags: Option<String>,
    /// Command that starts the target of A
    ///
    /// plimsoll waits until it prints 'ready NAME URL', as plimsoll serve does, or until the address of --a answers; it sends
    /// SIGTERM at the end. The word plimsoll is this program. A 'serve queue' without --seed gets one.
    #[arg(long, value_name = "COMMAND", help_heading = "Sides")]
    pub a_command: Option<String>,
    /// Command that starts the target of B
    #[arg(long, value_name = "COMMAND", help_heading = "Sides")]
    pub b_command: Option<String>,
    /// Program that makes the load of A, such as another build of plimsoll
    ///
    /// Then the generators are compared: cpu is the generator's own CPU time, and a generator that is the limit is a result.
    #[arg(long, value_name = "PROGRAM", help_heading = "Sides")]
    pub a_bin: Option<PathBuf>,
    /// Program that makes the load of B
    #[arg(long, value_name = "PROGRAM", help_heading = "Sides")]
    pub b_bin: Option<PathBuf>,
    /// The words after -- are any program, not a job
    ///
    /// A block is one run of it. Its metric is time, or number with --number.
    #[arg(long, help_heading = "Sides")]
    pub command: bool,
    /// Number that the program of --command prints
    ///
    /// A JSON pointer such as /latency/p99, or a regular expression with one group.
    #[arg(long, value_name = "WHERE", requires = "command", help_heading = "Sides")]
    pub number: Option<String>,
    /// A higher --number is better
    #[arg(long, requires = "number", help_heading = "Sides")]
    pub higher_is_better: bool,

    /// Metrics that get an answer, such as rate,p99,cpu
    ///
    /// rate, p50, p90, p95, p99, p99.9, mean, max, max-rate, cpu, errors, documents, accepted, bytes; time and number with
    /// --command. The default fits the job: p50,p95,p99 of an open load, rate of a closed one, max-rate of seek. More metrics
    /// take more time.
    #[arg(long, value_name = "METRICS", value_delimiter = ',', help_heading = "Decision")]
    pub on: Vec<String>,
    /// Two sides are the same if they differ by less
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Decision")]
    pub margin: Share,
    /// Largest chance of any wrong claim, at most 20%
    #[arg(long, value_name = "PERCENT", default_value = "5%", help_heading = "Decision")]
    pub error: Share,
    /// Time for the comparison; it ends early if all is decided
    #[arg(long, value_name = "TIME", default_value = "3m", help_heading = "Decision")]
    pub budget: Span,
    /// Rule; exit code 1 if it fails, 2 if that cannot be judged: 'p99>+5%'
    ///
    /// 'METRIC>+N%' fails if the metric of B is surely more than N % higher, 'METRIC<-N%' if it is lower. May be repeated.
    #[arg(long, value_name = "RULE", help_heading = "Decision")]
    pub fail_on: Vec<Rule>,
    /// Seed of all random choices
    ///
    /// The order in each pair, and the seed of its blocks: both have the same schedule.
    #[arg(long, value_name = "N", default_value_t = 1, help_heading = "Decision")]
    pub seed: u64,
    /// Run both blocks of a pair at once, each on processors of its own
    ///
    /// It needs a processor for each generator and for each target on this machine.
    #[arg(long, help_heading = "Decision")]
    pub duet: bool,
    /// Destinations of the results.
    #[command(flatten)]
    pub output: ResultFlags,
    /// In the wrong place: each block watches for itself.
    #[arg(long, hide = true, value_name = "PROCESS", value_parser = of_the_job)]
    pub watch: Option<String>,

    /// Job that makes a block, with its flags; after --
    #[arg(last = true, required = true, value_name = "JOB")]
    pub words: Vec<String>,
}

/// Refuses a flag that the job takes.
fn of_the_job(_: &str) -> Result<String, String> {
    Err("the blocks watch: write it after --, with the job's flags".to_owned())
}
