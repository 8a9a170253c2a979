//! `plimsoll search`: engines over users, corpus sizes, shards and queries.

mod alone;
mod at_rest;
mod engine;
mod filling;
mod import;
mod loading;
mod matrix;
mod measuring;
mod probing;
mod reading;
mod recall;
mod server;
mod server_cpu;
mod shown;
mod state;
mod text;

use crate::builtin::{Words, ten_as_toml};
use crate::forms::FORMS;
use crate::sessions::Order;
use crate::spec::{MatrixFile, MatrixSpec, OnRefused, read};
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::assertion::Assertion;
use plimsoll_core::schedule::Pause;
use plimsoll_core::units::Span;
use plimsoll_job::exit;
use plimsoll_job::flags::OutputFlags;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{note, print_out, style, with_files, write_json};
use plimsoll_job::requests::RowsFlags;
use plimsoll_job::usage::usage;
use plimsoll_record::RunRecord;
use plimsoll_report::forms::Forms;
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source, SyntheticOptions, synthetic};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  An engine of yours, ten queries, 1 to 20 users, two sizes of text:
    plimsoll search --engine mine=http://127.0.0.1:9200 --sizes 10MB,50MB
  The embedded engines against OpenSearch (plimsoll install opensearch), as a table each:
    plimsoll search --engine index --engine automaton --engine opensearch --sizes 64MB --groups 2x5,4x1
  Everything in a file; killed in the middle, the same command goes on where it was:
    plimsoll search matrix.toml
  What would be asked, in the languages of the engines, without asking it:
    plimsoll search matrix.toml --show
  The built-in queries, to change them and hand them back with --queries:
    plimsoll search --print-queries > mine.toml
  A printed table (markdown) as a record, to lay beside one of your own:
    plimsoll search --import table.md && plimsoll compare runs/OLD runs/NEW

A cell is the successful requests per second in the steady window; '-' with its reason where any request failed.
Exit codes: 0 measured, 2 an assertion was missed, 3 stopped before its end, 4 no cell has a number, 64 wrong usage.";

/// Compare search engines over users, corpus sizes, shards and queries: the whole matrix, honest to the last cell.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct SearchArgs {
    /// The matrix as TOML; flags go before what it says.
    #[arg(value_name = "FILE.toml")]
    file: Option<PathBuf>,

    /// index, automaton, scan, vespa-api, opensearch, elasticsearch, postgresql, NAME=KIND, NAME=URL, or NAME=URL,DIALECT.
    #[arg(long, value_name = "ENGINE", help_heading = "Matrix")]
    engine: Vec<String>,
    /// Text: synthetic (its answers are known), bundled, debian, or ndjson:FILE.
    #[arg(long, value_name = "SOURCE", help_heading = "Matrix")]
    corpus: Option<String>,
    /// Sizes of the text, such as 64MB,320MB; 'all' takes all of a text that is not synthetic.
    #[arg(long, value_name = "SIZES", value_delimiter = ',', help_heading = "Matrix")]
    sizes: Vec<String>,
    /// Shards of the index.
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Matrix")]
    shards: Vec<u32>,
    /// Edit distances.
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Matrix")]
    distance: Vec<u8>,
    /// Distances and shards together, instead of all of them with all: 2x5,4x5,4x1.
    #[arg(long, value_name = "DxS", value_delimiter = ',', help_heading = "Matrix")]
    groups: Vec<String>,
    /// Users at a time, each waiting for its answer [default: 1,5,10,20].
    #[arg(long, value_name = "N", value_delimiter = ',', help_heading = "Matrix")]
    users: Vec<u32>,
    /// List of queries; without it ten of our own for the text.
    #[arg(long, value_name = "FILE", help_heading = "Matrix")]
    queries: Option<PathBuf>,
    /// Hits that each query asks for, instead of its own number (1000).
    #[arg(long, value_name = "N", help_heading = "Matrix")]
    hits: Option<u32>,

    /// In which order a user asks [default: interleaved].
    #[arg(long, value_enum, help_heading = "Cells")]
    order: Option<OrderFlag>,
    /// Length of the steady window [default: 10s].
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    duration: Option<Span>,
    /// Load of the same kind before each window [default: 2s].
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    warmup: Option<Span>,
    /// Instead of a duration: every user asks the whole list so often; the window ends when the first is done.
    #[arg(long, value_name = "N", help_heading = "Cells")]
    passes: Option<u32>,
    /// Repeats of each cell, for an interval [default: 1].
    #[arg(long, value_name = "N", help_heading = "Cells")]
    repeat: Option<u32>,
    /// Longest time of a request; a cell with a slower one is withheld [default: 60s].
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    timeout: Option<Span>,
    /// What users wait between an answer and their next request: '2s', 'uniform 1s 3s', 'exponential 2s', 'normal 2s
    /// 500ms'.
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    think: Option<Pause>,
    /// Time from one intended start of a user to its next; a late user catches up.
    #[arg(long, value_name = "TIME", help_heading = "Cells")]
    pace: Option<Span>,
    /// How users come, instead of all at once, with {users} for the cell's number: 'ramp {users} during 10s', 'constant
    /// {users}/s during 1m randomized' ... (docs/users.md). Each asks the list --passes times and leaves.
    #[arg(long, value_name = "STEPS", help_heading = "Cells")]
    profile: Option<String>,
    #[command(flatten)]
    rows: RowsFlags,
    /// What a reply must be beside what the engine's language says: hits>=1, time<500ms, '/json/pointer>=1'; may be
    /// repeated.
    #[arg(long, value_name = "CHECK", help_heading = "Cells")]
    check: Vec<String>,
    /// What every cell must be, or exit code 2: 'global p95 < 500ms', 'each failed.count is 0', 'class "one word" rate >
    /// 10/s'; may be repeated.
    #[arg(long = "assert", value_name = "ASSERTION", help_heading = "Cells")]
    assertions: Vec<Assertion>,
    /// Count cells whose engine refuses some queries by the others, and mark them, instead of withholding them.
    #[arg(long, help_heading = "Cells")]
    skip_refused: bool,
    /// A header of every request, 'Name: value'; may be repeated.
    #[arg(long, value_name = "LINE", help_heading = "Cells")]
    header: Vec<String>,
    /// Seed of texts and orders.
    #[arg(long, value_name = "N", help_heading = "Cells")]
    seed: Option<u64>,
    /// Connections that load the text.
    #[arg(long, value_name = "N", default_value_t = 4, help_heading = "Cells",
          value_parser = clap::value_parser!(u32).range(1..=1024))]
    loaders: u32,
    /// Leave the indexes in engines at an address, and use those that are there.
    #[arg(long, help_heading = "Cells")]
    keep_indexes: bool,

    /// Go on with this unfinished matrix; without DIR an unfinished one of the same kind under --runs is found by
    /// itself.
    #[arg(long, value_name = "DIR", help_heading = "Going on")]
    resume: Option<PathBuf>,
    /// Begin anew even where an unfinished one could be gone on with.
    #[arg(long, conflicts_with = "resume", help_heading = "Going on")]
    fresh: bool,
    /// Folder of texts, each made once.
    #[arg(long, value_name = "DIR", default_value = ".plimsoll/search", help_heading = "Going on")]
    data: PathBuf,

    /// Print what each engine would be asked, and ask nothing.
    #[arg(long, help_heading = "Instead of measuring")]
    show: bool,
    /// Print the list of queries as TOML.
    #[arg(long, help_heading = "Instead of measuring")]
    print_queries: bool,
    /// Keep a printed table as a record.
    #[arg(long, value_name = "FILE.md", help_heading = "Instead of measuring")]
    import: Option<PathBuf>,

    #[command(flatten)]
    output: OutputFlags,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum OrderFlag {
    /// Each query its number of times, then the next: all users ask the same at the same time.
    Block,
    /// Round and round, each user from another place of the list.
    Interleaved,
    /// An order of each user's own, another one each time.
    Shuffle,
}

impl Job for SearchArgs {
    const NAME: &'static str = "search";
    const FORMS: Forms = FORMS;

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
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
    let output = args.output.output();
    output.check()?;
    let finished = matrix::run(&spec, args, &output)?;
    print(&finished.record, finished.folder.as_deref(), args)?;
    if finished.record.verdict.kind != plimsoll_core::verdict::VerdictKind::Valid {
        let reasons = finished.record.verdict.reasons.join("; ");
        note(&format!("plimsoll: {}: {reasons}", finished.record.verdict.kind.name()));
    }
    Ok(with_files(exit::of_record(&finished.record)))
}

fn print(record: &RunRecord, folder: Option<&Path>, args: &SearchArgs) -> Result<()> {
    if !write_json(&args.output.output(), record)? {
        print_out(&plimsoll_report::text::render(record, folder, &style(), &[FORMS]))?;
    }
    Ok(())
}

fn wrong(error: crate::SearchError) -> anyhow::Error {
    usage(error.to_string())
}

impl SearchArgs {
    /// The matrix that flags and file ask for.
    fn spec(&self) -> Result<MatrixSpec> {
        let mut file = match &self.file {
            None => MatrixFile::default(),
            Some(path) => {
                let shown = path.display().to_string();
                let text = reading::read_text(path, &shown, "a matrix file")?;
                read(&text, &shown).map_err(wrong)?
            }
        };
        self.put_into(&mut file);
        file.rows = self.rows.scenario()?.or(file.rows.take());
        if file.engines.is_empty() && file.engine.is_empty() && self.print_queries {
            file.engines.push("index".to_owned());
        }
        let queries = queries(&file)?;
        file.resolve(&queries).map_err(|error| match &self.file {
            Some(path) => usage(format!("{}: {error}", path.display())),
            None => wrong(error),
        })
    }

    /// Flags go before what the file says; lists as a whole.
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
        // Groups, and distances with shards, are two ways to say the same.
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
        one(&self.hits, &mut file.hits);
        one(&self.duration, &mut file.duration);
        one(&self.warmup, &mut file.warmup);
        one(&self.passes, &mut file.passes);
        one(&self.repeat, &mut file.repeat);
        one(&self.timeout, &mut file.timeout);
        one(&self.think, &mut file.think);
        one(&self.pace, &mut file.pace);
        one(&self.profile, &mut file.profile);
        one(&self.seed, &mut file.seed);
        one(&self.queries.as_ref().map(|path| path.display().to_string()), &mut file.queries);
        let order = self.order.map(|order| match order {
            OrderFlag::Block => Order::Block,
            OrderFlag::Interleaved => Order::Interleaved,
            OrderFlag::Shuffle => Order::Shuffle,
        });
        one(&order, &mut file.order);
        if self.skip_refused {
            file.refused = Some(OnRefused::Skip);
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
            // The planted words follow from the seed alone, whatever the size.
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
        usage("a text of your own needs a list of queries: --queries FILE (plimsoll search --print-queries shows one)")
    })?;
    Ok(ten_as_toml(&words))
}

/// What each engine would be asked.
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
