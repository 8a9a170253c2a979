//! `plimsoll search`: compares engines over users, corpus sizes, shards and queries.

mod alone;
mod at_rest;
mod crew;
mod engine;
mod filling;
mod import;
mod loading;
mod matrix;
mod measuring;
mod part;
mod probing;
mod reading;
mod recall;
mod server;
mod server_cpu;
mod shown;
mod state;
mod text;
mod words;

use crate::builtin::{Words, ten_as_toml};
use crate::forms::FORMS;
use crate::sessions::Order;
use crate::spec::{MatrixFile, MatrixSpec, read, read_foreign, usual_users, wrong_in};
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::assertion::Assertion;
use plimsoll_core::schedule::Slice;
use plimsoll_core::units::Span;
use plimsoll_job::exit;
use plimsoll_job::flags::{PartFlag, PauseFlags, ResultFlags, WatchFlags};
use plimsoll_job::job::{AgentWords, Job, Program};
use plimsoll_job::output::{Output, note, print_out, style, with_files};
use plimsoll_job::prepare::only_whole;
use plimsoll_job::requests::RowsFlags;
use plimsoll_job::results::{Shown, write_results};
use plimsoll_job::together::{has_agents, is_agent, parts_in_all};
use plimsoll_job::usage::usage;
use plimsoll_record::RunRecord;
use plimsoll_report::forms::Forms;
use plimsoll_report::plain::printable;
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source, SyntheticOptions, synthetic};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Your own engine, ten queries, 1 to 20 users, two sizes of text:
    plimsoll search --engine mine=http://127.0.0.1:9200 --sizes 10MB,50MB
  The embedded engines and OpenSearch (plimsoll install opensearch), with a table for each:
    plimsoll search --engine index --engine automaton --engine opensearch --sizes 64MB \\
      --groups 2x5,4x1
  Everything in a file; after an interruption the same command resumes the matrix:
    plimsoll search matrix.toml
  The same with the users of each cell on four machines (docs/fleet.md):
    plimsoll search matrix.toml --agents 4 --bus nats://bus.internal:4222
  Print the requests in the language of each engine, without sending them:
    plimsoll search matrix.toml --show
  The built-in queries, to edit and pass to --queries:
    plimsoll search --print-queries > mine.toml
  Import a printed table (Markdown) as a record, and compare it with your own:
    plimsoll search --import table.md && plimsoll compare runs/OLD runs/NEW

A cell shows the successful requests per second in the steady window. If any request failed, it
shows '-' and the reason.
Exit codes: 0 measured, 2 an assertion was missed, 3 stopped before its end, 4 no cell has a number,
64 wrong usage.";

/// Compare search engines over users, corpus sizes, shards and queries.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SearchArgs {
    /// Matrix file (TOML); flags override it
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,

    /// Engine: index, scan, opensearch, ..., or NAME=URL
    ///
    /// index, automaton, scan and vespa-api are in plimsoll; opensearch, elasticsearch and postgresql are started if they are
    /// installed; NAME=KIND names one of them. NAME=URL is a running server, NAME=URL,DIALECT if its query language must be
    /// named. May be repeated.
    #[arg(long, value_name = "ENGINE", help_heading = "Matrix")]
    engine: Vec<String>,
    /// Text: synthetic, bundled, debian or ndjson:FILE [default: synthetic]
    ///
    /// synthetic is generated, with known answers; ndjson:FILE is your own.
    #[arg(long, value_name = "SOURCE", help_heading = "Matrix")]
    corpus: Option<String>,
    /// Sizes of the text, such as 64MB,320MB; or 'all'
    ///
    /// 'all' is the whole text, for a text that is not synthetic. The default is 64MB for synthetic, otherwise 'all'.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Matrix")]
    sizes: Vec<String>,
    /// Numbers of shards of the index [default: 1]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Matrix")]
    shards: Vec<u32>,
    /// Edit distances [default: 2]
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Matrix")]
    distance: Vec<u8>,
    /// Pairs of distance and shards, such as 2x5,4x1
    ///
    /// They replace --distance and --shards, which make every combination.
    #[arg(long, value_name = "DxS", value_delimiter = ',', help_heading = "Matrix")]
    groups: Vec<String>,
    /// Numbers of concurrent users [default: 1,5,10,20]
    ///
    /// Closed model: each user waits for its reply before it sends again. On agents, numbers below that of the agents are left
    /// out of the default.
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Matrix")]
    users: Vec<u32>,
    /// File of queries [default: ten that fit the text]
    ///
    /// --print-queries prints the ten, to edit.
    #[arg(long, value_name = "FILE", help_heading = "Matrix")]
    queries: Option<PathBuf>,
    /// Hits that each query asks for [default: its own number]
    ///
    /// The built-in queries ask for 1000.
    #[arg(long = "query-hits", alias = "hits", value_name = "N", help_heading = "Matrix")]
    hits: Option<u32>,

    /// Order of queries: block, interleaved, shuffle [default: interleaved]
    ///
    /// block: each query its number of times, then the next, so that all users send the same query at the same time;
    /// interleaved: one query after the other in a circle, from another position of the list for each user; shuffle: a random
    /// order for each user and each pass.
    #[arg(long, value_enum, hide_possible_values = true, help_heading = "Cells")]
    order: Option<OrderFlag>,
    /// Length of the measured part [default: 10s]
    ///
    /// plimsoll measures in a steady window, in which all users of the cell are at work.
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    duration: Option<Span>,
    /// Warm-up time; requests are sent but not counted [default: 2s]
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    warmup: Option<Span>,
    /// Times that each user sends the list
    ///
    /// Instead of --duration. The window ends when the first user has finished.
    #[arg(long, value_name = "N", help_heading = "Cells")]
    passes: Option<u32>,
    /// Repeats of each cell, for an interval [default: 1]
    #[arg(long, value_name = "N", help_heading = "Cells")]
    repeat: Option<u32>,
    /// Longest time from sending a request to its last byte [default: 60s]
    ///
    /// A cell with a slower request is withheld.
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    timeout: Option<Span>,
    #[command(flatten)]
    pauses: PauseFlags,
    /// Arrival of the users, such as 'ramp {users} during 10s'
    ///
    /// By default all users come at once. {users} is the number of the cell; 'constant {users}/s during 1m randomized' and
    /// other steps are described in docs/users.md. Each user sends the list --passes times and leaves. The steps take the place
    /// of --duration.
    #[arg(long = "users-profile", alias = "profile", value_name = "STEPS", help_heading = "Cells")]
    profile: Option<String>,
    #[command(flatten)]
    rows: RowsFlags,
    /// Condition for a successful reply, such as time<500ms
    ///
    /// It must hold in addition to the conditions of the engine's query language: hits>=1, time<500ms, '/json/pointer>=1'.
    /// May be repeated.
    #[arg(long, value_name = "CHECK", help_heading = "Cells")]
    check: Vec<String>,
    /// Assertion on the result; exit code 2 if it fails
    ///
    /// It must hold in every cell: 'global p95 < 500ms', 'each failed.count is 0', 'class "one word" rate > 10/s'. May be
    /// repeated.
    #[arg(long = "assert", value_name = "ASSERTION", help_heading = "Cells")]
    assertions: Vec<Assertion>,
    /// Report a cell whose engine rejects some queries
    ///
    /// The cell has the rate of the other queries, marked, instead of being withheld.
    #[arg(long, help_heading = "Cells")]
    skip_refused: bool,
    /// Header of every request, 'Name: value' or @FILE
    ///
    /// ${VARIABLE} in the value is taken from the environment; @FILE has one header a line. The value of the variable and the
    /// contents of the file are not recorded. May be repeated; all are sent.
    #[arg(long, value_name = "LINE|@FILE", help_heading = "Cells")]
    header: Vec<String>,
    /// Seed of all random choices [default: 1]
    #[arg(long, value_name = "N", help_heading = "Cells")]
    seed: Option<u64>,
    /// Number of connections that ingest the text
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Cells",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    loaders: u32,
    /// Keep the indexes in engines given by URL
    ///
    /// Existing indexes of the same text are used again.
    #[arg(long, help_heading = "Cells")]
    keep_indexes: bool,

    /// Unfinished matrix to resume
    ///
    /// By default, plimsoll resumes an unfinished matrix under --runs that has the same settings.
    #[arg(long, value_name = "DIR", conflicts_with = "no_record", help_heading = "Resume")]
    resume: Option<PathBuf>,
    /// Start a new matrix even if one could be resumed
    #[arg(long, conflicts_with = "resume", help_heading = "Resume")]
    fresh: bool,
    /// Folder of generated texts, for later runs too
    #[arg(long, value_name = "DIR", default_value = ".plimsoll/search", help_heading = "Resume")]
    data: PathBuf,

    /// Print the requests for each engine, send nothing
    #[arg(long, conflicts_with = "print_queries", help_heading = "Instead of measuring")]
    show: bool,
    /// Print the list of queries as TOML
    #[arg(long, help_heading = "Instead of measuring")]
    print_queries: bool,
    /// Import a printed table (Markdown) as a run record
    #[arg(long, value_name = "FILE.md", conflicts_with_all = import::OF_A_MATRIX, help_heading = "Instead of measuring")]
    import: Option<PathBuf>,

    #[command(flatten)]
    results: ResultFlags,
    #[command(flatten)]
    watching: WatchFlags,
    #[command(flatten)]
    part: PartFlag,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderFlag {
    /// Each query its number of times, then the next; all users send the same query at the same time.
    Block,
    /// One query after the other in a circle; each user begins at another position of the list.
    Interleaved,
    /// A random order for each user and each pass.
    Shuffle,
}

impl Job for SearchArgs {
    const NAME: &'static str = "search";
    const FORMS: Forms = FORMS;

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }

    fn words_for_agents(&self) -> Result<AgentWords> {
        words::for_agents(self)
    }
}

/// Runs the command.
///
/// # Errors
/// Wrong usage, or a program failure. A failed engine is a result, not an error.
fn run(args: &SearchArgs) -> Result<u8> {
    if let Some(path) = &args.import {
        return import::run(path, args);
    }
    let spec = args.spec()?;
    if args.print_queries {
        print_out(&spec.queries)?;
        return Ok(exit::FINE);
    }
    if args.show {
        print_out(&shown_queries(&spec)?)?;
        return Ok(exit::FINE);
    }
    let output = Output { watch: args.watching.watch.clone(), ..args.results.output() };
    output.check()?;
    let slice = args.part.slice();
    if !has_agents() && !slice.is_whole() {
        let why = "all of its cells have one coordinator; use --agents or --processes";
        only_whole(slice, "a matrix", why)?;
    }
    let finished = match is_agent() {
        true => part::run(&spec, slice, &output)?,
        false => matrix::run(&spec, args, &output)?,
    };
    print(&finished.record, finished.folder.as_deref(), args)?;
    if finished.record.verdict.kind != plimsoll_core::verdict::VerdictKind::Valid {
        let reasons = printable(&finished.record.verdict.reasons.join("; "));
        note(&format!("plimsoll: {}: {reasons}", finished.record.verdict.kind.name()));
    }
    Ok(with_files(exit::of_record(&finished.record)))
}

fn print(record: &RunRecord, folder: Option<&Path>, args: &SearchArgs) -> Result<()> {
    let shown = Shown { record, folder, course: None };
    if !write_results(&args.results.output(), shown, &[FORMS])? {
        print_out(&plimsoll_report::text::render(
            record,
            folder,
            &style(args.results.verbose),
            &[FORMS],
        ))?;
    }
    Ok(())
}

fn wrong(error: crate::SearchError) -> anyhow::Error {
    usage(error.to_string())
}

impl SearchArgs {
    /// The matrix of the file and the flags.
    fn spec(&self) -> Result<MatrixSpec> {
        let (mut file, mut written) = (MatrixFile::default(), String::new());
        if let Some(path) = &self.file {
            written = reading::read_text(path, &path.display().to_string(), "a matrix file")?;
            file = match is_agent() {
                // It came over the bus, and may name no file of this machine.
                true => read_foreign(&written, path).map_err(wrong)?,
                false => {
                    let (own, hints) = read(&written, path).map_err(wrong)?;
                    hints.iter().for_each(|hint| note(&format!("plimsoll: {hint}")));
                    own
                }
            };
        }
        self.put_into(&mut file);
        if file.users.is_empty() && has_agents() {
            file.users = usual_users(parts_in_all(Slice::WHOLE));
        }
        if let Some(rows) = self.rows.scenario()? {
            file.put_rows(rows);
        }
        if file.engines.is_empty() && file.engine.is_empty() && self.print_queries {
            file.engines.push("index".to_owned());
        }
        let queries = queries(&file)?;
        file.resolve(&queries).map_err(|error| match &self.file {
            Some(path) => usage(wrong_in(&written, path, &error)),
            None => wrong(error),
        })
    }

    /// Overrides the file's values with the flags; a list replaces the whole list.
    fn put_into(&self, file: &mut MatrixFile) {
        fn list<T: Clone>(flag: &[T], field: &mut Vec<T>) -> bool {
            if !flag.is_empty() {
                *field = flag.to_vec();
            }
            !flag.is_empty()
        }
        fn one<T: Clone>(flag: &Option<T>, field: &mut Option<T>) {
            *field = flag.clone().or(field.take());
        }
        if list(&self.engine, &mut file.engines) {
            file.engine.clear();
        }
        list(&self.sizes, &mut file.sizes);
        list(&self.header, &mut file.headers);
        list(&self.users, &mut file.users);
        list(&self.check, &mut file.checks);
        list(&self.assertions, &mut file.assertions);
        // `groups` replaces `distances` and `shards`, and the other way round.
        if list(&self.groups, &mut file.groups) {
            file.shards.clear();
            file.distances.clear();
        }
        if list(&self.shards, &mut file.shards) | list(&self.distance, &mut file.distances)
            && self.groups.is_empty()
        {
            file.groups.clear();
        }
        one(&self.corpus, &mut file.corpus);
        one(&self.hits, &mut file.query_hits);
        one(&self.duration, &mut file.duration);
        one(&self.warmup, &mut file.warmup);
        one(&self.passes, &mut file.passes);
        one(&self.repeat, &mut file.repeat);
        one(&self.timeout, &mut file.timeout);
        one(&self.pauses.think, &mut file.think);
        one(&self.pauses.pace, &mut file.pace);
        one(&self.profile, &mut file.users_profile);
        one(&self.seed, &mut file.seed);
        one(&self.queries.as_ref().map(|path| path.display().to_string()), &mut file.queries);
        let order = self.order.map(|order| match order {
            OrderFlag::Block => Order::Block,
            OrderFlag::Interleaved => Order::Interleaved,
            OrderFlag::Shuffle => Order::Shuffle,
        });
        one(&order, &mut file.order);
        if self.skip_refused {
            file.skip_refused = true;
        }
    }
}

/// The list of queries: a file's, the matrix's own, or ten for the text.
fn queries(file: &MatrixFile) -> Result<String> {
    if let Some(path) = &file.queries {
        let text = reading::read_text(Path::new(path), path, "a list of queries")?;
        crate::query::parse(&text, path).map_err(wrong)?;
        return Ok(text);
    }
    if !file.query.is_empty() {
        let mut list = toml::Table::new();
        let tables = file.query.iter().cloned().map(toml::Value::Table).collect();
        list.insert("query".to_owned(), toml::Value::Array(tables));
        return Ok(toml::to_string(&list)?);
    }
    let words = match file.corpus.as_deref().unwrap_or("synthetic") {
        "synthetic" => {
            // The planted words depend on the seed only, not on the size.
            let size = synthetic::Size::Documents(synthetic::DOCUMENTS_MIN);
            let options = SyntheticOptions::new(file.seed.unwrap_or(1), size);
            let corpus = Corpus::open(&Source::Synthetic(options), &CorpusOptions::default())?;
            corpus.synthetic().and_then(Words::planted)
        }
        "bundled" => Some(Words::bundled()),
        "debian" => Some(Words::debian()),
        other => text::own_text(other).map(|_| None)?,
    };
    let words = words.ok_or_else(|| {
        usage("--corpus: your own text needs a list of queries; use --queries FILE (plimsoll search --print-queries prints an example)")
    })?;
    Ok(ten_as_toml(&words))
}

/// The requests for each engine, as text.
fn shown_queries(spec: &MatrixSpec) -> Result<String> {
    let list = spec.list().map_err(wrong)?;
    let mut text = String::new();
    let mut dialects = Vec::new();
    for engine in &spec.engines {
        if dialects.contains(&engine.dialect) {
            continue;
        }
        dialects.push(engine.dialect);
        for group in &spec.groups {
            let title = format!("# {}, distance {}\n", engine.dialect.name(), group.distance);
            if text.contains(&title) {
                continue;
            }
            text += &title;
            for query in &list {
                text += &match engine.dialect.shown("INDEX", query, group.distance) {
                    Ok(said) => format!("{}: {said}\n", query.name),
                    Err(why) => format!("{}: - ({why})\n", query.name),
                };
            }
            text.push('\n');
        }
    }
    Ok(text)
}
