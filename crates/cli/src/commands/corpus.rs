//! `plimsoll corpus`: real and synthetic texts, and queries that fit them.

use anyhow::Result;
use clap::{Args, Subcommand};
use plimsoll_core::system_error::with_advice;
use plimsoll_core::units::Size;
use plimsoll_job::exit;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{note, print_out};
use plimsoll_job::usage::usage;
use plimsoll_workloads::corpus::{
    Corpus, CorpusOptions, Document, Source, SyntheticOptions, synthetic,
};
use plimsoll_workloads::query_mix::{MixOptions, Rendering, make};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  The bundled text and its licence:
    plimsoll corpus info
  A gigabyte of synthetic text, and the counts of its planted typos:
    plimsoll corpus write --source synthetic --size 1GB --out corpus.ndjson --manifest truth.json
  Queries of six kinds with real words of the bundled text, for 'plimsoll load --queries':
    plimsoll corpus queries --each 200 --out queries.ndjson";

/// Write texts to search, and queries that match them
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct CorpusArgs {
    #[command(subcommand)]
    what: What,
}

const INFO_EXAMPLES: &str = "\
Examples:
  The bundled text:                     plimsoll corpus info
  A text of your own:                   plimsoll corpus info --source ndjson:documents.ndjson";

const WRITE_EXAMPLES: &str = "\
Examples:
  The bundled text, to look at:         plimsoll corpus write | head -n 1
  100 documents, as requests that ingest them into Vespa:
    plimsoll corpus write --limit 100 --format feed --out feed.ndjson
  10 MB of synthetic text, with the counts of the words that are planted in it:
    plimsoll corpus write --source synthetic --size 10MB --out corpus.ndjson --manifest truth.json";

const QUERIES_EXAMPLES: &str = "\
Examples:
  200 queries of each of six kinds:     plimsoll corpus queries --each 200 --out queries.ndjson
  For vespa-fbench, as GET requests:    plimsoll corpus queries --format get --out queries.txt";

#[derive(Subcommand, Debug)]
enum What {
    /// Print name, size, licence and origin.
    #[command(after_help = INFO_EXAMPLES)]
    Info(SourceArgs),
    /// Write the documents as NDJSON.
    #[command(after_help = WRITE_EXAMPLES)]
    Write(WriteArgs),
    /// Write queries made of words of the text, tagged by class.
    #[command(after_help = QUERIES_EXAMPLES)]
    Queries(QueryArgs),
}

/// Size of a synthetic text whose size is not given.
const SIZE: Size = Size { bytes: 10_000_000 };

/// Source of the text.
#[derive(Args, Debug)]
pub struct SourceArgs {
    /// Text: bundled, debian, synthetic or ndjson:FILE
    #[arg(long, value_name = "SOURCE", default_value = "bundled")]
    source: String,
    /// Largest number of documents
    #[arg(long, value_name = "N")]
    limit: Option<u64>,
    /// Synthetic: size of the text, 100kB to 10GB [default: 10MB]
    #[arg(long, value_name = "SIZE")]
    size: Option<Size>,
    /// Seed of all random choices
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
}

#[derive(Args, Debug)]
struct WriteArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Output file; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
    /// Form of the documents: documents or feed
    ///
    /// feed: requests that ingest them through Vespa's document API, for plimsoll load --queries.
    #[arg(long, value_name = "FORMAT", default_value = "documents")]
    format: String,
    /// Synthetic: write the planted words and their counts
    ///
    /// As JSON.
    #[arg(long, value_name = "FILE")]
    manifest: Option<PathBuf>,
}

#[derive(Args, Debug)]
struct QueryArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Queries of each class
    #[arg(long, value_name = "N", default_value_t = 100)]
    each: u64,
    /// Form of the queries: ndjson, get or post
    ///
    /// ndjson: tagged by class; get and post: vespa-fbench's query files.
    #[arg(long, value_name = "FORMAT", default_value = "ndjson")]
    format: String,
    /// Output file; - is stdout
    #[arg(long, value_name = "FILE", default_value = "-")]
    out: PathBuf,
}

impl SourceArgs {
    /// Opens the text.
    ///
    /// # Errors
    /// When there is no such source, or it cannot be read.
    pub fn open(&self) -> Result<Corpus> {
        let is_synthetic = self.source == "synthetic";
        if self.size.is_some() && !is_synthetic {
            return Err(usage(
                "--size belongs to --source synthetic; use --limit to take fewer documents",
            ));
        }
        let source = match self.source.as_str() {
            "bundled" => Source::Bundled,
            "debian" => Source::Debian,
            "synthetic" => Source::Synthetic(SyntheticOptions::new(
                self.seed,
                synthetic::Size::Bytes(self.size.unwrap_or(SIZE).bytes),
            )),
            other => match other.strip_prefix("ndjson:") {
                Some(path) if !path.is_empty() => Source::Ndjson(PathBuf::from(path)),
                _ => {
                    return Err(usage(format!(
                        "--source '{other}': write bundled, debian, synthetic or ndjson:FILE"
                    )));
                }
            },
        };
        let flag = if is_synthetic { "--size: " } else { "" };
        Corpus::open(&source, &CorpusOptions { limit: self.limit })
            .map_err(|error| usage(format!("{flag}{error}")))
    }
}

fn writer(path: &Path) -> Result<Box<dyn Write>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::new(std::io::stdout().lock())));
    }
    let file = File::create(path)
        .map_err(|error| usage(format!("--out {}: {}", path.display(), with_advice(&error))))?;
    Ok(Box::new(BufWriter::with_capacity(1 << 20, file)))
}

impl Job for CorpusArgs {
    const NAME: &'static str = "corpus";

    fn run(&self, _program: &Program) -> Result<u8> {
        run(self)
    }
}

/// Runs the command.
///
/// # Errors
/// A source that cannot be read, or a file that cannot be written.
fn run(args: &CorpusArgs) -> Result<u8> {
    match &args.what {
        What::Info(source) => info(source),
        What::Write(args) => write(args),
        What::Queries(args) => queries(args),
    }
}

fn info(args: &SourceArgs) -> Result<u8> {
    let corpus = args.open()?;
    let documents = match corpus.len_hint() {
        Some(documents) => documents,
        None => corpus.documents()?.count() as u64,
    };
    print_out(&format!(
        "name       {}\ndocuments  {documents}\nlicence    {}\norigin     {}\n",
        corpus.name(),
        corpus.licence(),
        corpus.origin()
    ))?;
    Ok(exit::FINE)
}

fn write(args: &WriteArgs) -> Result<u8> {
    let feed = match args.format.as_str() {
        "documents" => false,
        "feed" => true,
        other => return Err(usage(format!("--format '{other}': write documents or feed"))),
    };
    let corpus = args.source.open()?;
    if args.manifest.is_some() && args.source.limit.is_some() {
        return Err(usage(
            "--manifest: its counts are those of the whole text; leave out --limit, or use a smaller --size",
        ));
    }
    if let Some(path) = &args.manifest {
        let truth = corpus.synthetic().map(|synthetic| synthetic.truth()).ok_or_else(|| {
            usage("--manifest: only a synthetic text has planted words; use --source synthetic")
        })?;
        let text = serde_json::to_string_pretty(&truth)?;
        std::fs::write(path, text + "\n").map_err(|error| {
            usage(format!("--manifest {}: {}", path.display(), with_advice(&error)))
        })?;
    }
    let mut out = writer(&args.out)?;
    let (mut line, mut documents, mut bytes) = (Vec::new(), 0u64, 0u64);
    for document in corpus.documents()? {
        line.clear();
        if feed {
            feed_line(&document?, &mut line);
        } else {
            document?.to_ndjson(&mut line);
        }
        if !line.ends_with(b"\n") {
            line.push(b'\n');
        }
        if let Err(error) = out.write_all(&line) {
            return broken_pipe_is_fine(error);
        }
        documents += 1;
        bytes += line.len() as u64;
    }
    if let Err(error) = out.flush() {
        return broken_pipe_is_fine(error);
    }
    note(&format!("{documents} documents, {:.1} MB of {}", bytes as f64 / 1e6, corpus.name()));
    Ok(exit::FINE)
}

/// The request that writes a document, as a line of NDJSON.
fn feed_line(document: &Document, line: &mut Vec<u8>) {
    let path = format!("/document/v1/plimsoll/doc/docid/{}", document.id);
    line.extend_from_slice(b"{\"method\":\"POST\",\"path\":");
    line.extend_from_slice(serde_json::Value::from(path).to_string().as_bytes());
    line.extend_from_slice(b",\"body\":");
    document.to_fields_json(line);
    line.push(b'}');
}

fn broken_pipe_is_fine(error: std::io::Error) -> Result<u8> {
    if error.kind() == std::io::ErrorKind::BrokenPipe { Ok(exit::FINE) } else { Err(error.into()) }
}

fn queries(args: &QueryArgs) -> Result<u8> {
    let corpus = args.source.open()?;
    let mix = make(&corpus, &MixOptions::even(args.source.seed, args.each))
        .map_err(|error| usage(format!("--each {}: {error}", args.each)))?;
    let write = match args.format.as_str() {
        "ndjson" => Rendering::write_ndjson,
        "get" => Rendering::write_fbench_get,
        "post" => Rendering::write_fbench_post,
        other => {
            return Err(usage(format!("--format '{other}': write ndjson, get or post")));
        }
    };
    // Opened last: a file that is there stays as it is after wrong usage.
    let mut out = writer(&args.out)?;
    let written = write(&Rendering::default(), &mix, &mut out);
    if let Err(error) = written.and_then(|()| out.flush()) {
        return broken_pipe_is_fine(error);
    }
    note(&format!("{} queries of 6 classes over {}", mix.len(), corpus.name()));
    Ok(exit::FINE)
}
