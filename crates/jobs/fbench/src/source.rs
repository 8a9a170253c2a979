//! The query and output files of `plimsoll fbench`, one or several, shared out to clients.

use anyhow::Result;
use plimsoll_core::schedule::Slice;
use plimsoll_core::system_error::with_advice;
use plimsoll_job::usage::usage;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_workloads::checks::{Checks, HitCounter};
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::error::InputError;
use plimsoll_workloads::http::{
    Cursor, Form, HttpSessions, Judge, OutputFile, Rendered, Stream, Troubles, Way,
};
use plimsoll_workloads::query_file::{
    ByteRange, FilePattern, Passes, Queries, ReadOptions, Record, RecordKind, RecordReader,
    SourceFile,
};
use std::fs::File;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

/// File options of the command line.
pub struct SourceOptions<'a> {
    /// `-q`.
    pub pattern: &'a str,
    /// `-o`.
    pub output: Option<&'a str>,
    /// `-n`.
    pub clients: u32,
    /// The part of the clients that is carried out here.
    pub slice: Slice,
    /// `-P`.
    pub post: bool,
    /// `-d`.
    pub base64: bool,
    /// `-m`.
    pub max_line: usize,
    /// `-r`.
    pub restart: i64,
    /// `-z`.
    pub shared: bool,
}

/// Query files together may take this much memory; the rest is streamed.
const PRELOAD_ALL_MAX_BYTES: usize = 256 << 20;

/// One query file.
enum Queried {
    Rendered(Arc<Rendered>),
    Stream(Box<SourceFile>),
}

/// All files of a run, opened and checked.
pub struct Sources {
    files: Vec<Queried>,
    options: ReadOptions,
    passes: Passes,
    clients: u32,
    slice: Slice,
    shared: bool,
    outputs: Option<FilePattern>,
    /// Lines that were too long, over all clients of this part, a pass each.
    pub skipped: u64,
    /// Requests in all files of this part.
    pub records: u64,
    /// Number of clients that have nothing left to ask.
    pub exhausted: Arc<AtomicU32>,
}

impl Sources {
    /// Opens the files and checks every record in them.
    ///
    /// # Errors
    /// The first file or line that cannot be used.
    pub fn open(asked: &SourceOptions<'_>, forms: &[Form]) -> Result<Self> {
        let kind = if asked.post { RecordKind::Post } else { RecordKind::Get };
        let options = ReadOptions {
            line_max_bytes: asked.max_line,
            base64: asked.base64,
            ..ReadOptions::new(kind)
        };
        let pattern = FilePattern::parse(asked.pattern)?;
        let outputs = asked.output.map(FilePattern::parse).transpose()?;
        if let Some(outputs) = &outputs
            && !outputs.is_numbered()
            && asked.clients > 1
        {
            return Err(usage(format!(
                "-o {}: {} clients would overwrite each other's file; put %03d into the name",
                asked.output.unwrap_or_default(),
                asked.clients
            )));
        }
        let mut sources = Self {
            files: Vec::new(),
            options,
            passes: match u64::try_from(asked.restart) {
                Ok(again) => Passes::Count(again + 1),
                Err(_) => Passes::Unlimited,
            },
            clients: asked.clients,
            slice: asked.slice,
            shared: asked.shared,
            outputs,
            skipped: 0,
            records: 0,
            exhausted: Arc::default(),
        };
        let own = asked.slice.share(asked.clients.into());
        let each = pattern.is_numbered() && !asked.shared;
        let mut memory = 0;
        for client in 0..if each { own } else { 1 } {
            let number = if each { asked.slice.global(client) } else { 0 };
            sources.open_file(&pattern.path(number), forms, &mut memory)?;
        }
        if !each && !asked.shared {
            sources.skipped *= own;
        }
        Ok(sources)
    }

    fn open_file(&mut self, path: &Path, forms: &[Form], memory: &mut usize) -> Result<()> {
        let source = SourceFile::open_any(path).map_err(|error| match error {
            InputError::Missing { path } => usage(format!(
                "{}: no such file or folder; name the query files with -q, or make them with \
                 plimsoll split-file",
                path.display()
            )),
            error => error.into(),
        })?;
        match Queries::of(source.clone(), &self.options)? {
            Queries::Preloaded(set) => {
                self.skipped += set.skipped();
                self.records += set.len() as u64;
                let rendered =
                    plimsoll_job::prepare::render_set(&set, forms, &mut Classes::default())?;
                let size: usize = rendered.per_target.iter().map(|set| set.memory_bytes()).sum();
                if *memory + size <= PRELOAD_ALL_MAX_BYTES {
                    *memory += size;
                    self.files.push(Queried::Rendered(Arc::new(rendered)));
                } else {
                    self.files.push(Queried::Stream(Box::new(source)));
                }
            }
            Queries::Streaming(source, scan) => {
                self.skipped += scan.skipped;
                self.records += scan.records;
                self.files.push(Queried::Stream(Box::new(source)));
            }
        }
        Ok(())
    }

    /// The sessions of every shard: client i of a shard is client `shard + i * shards` of the whole run.
    ///
    /// # Errors
    /// When a file cannot be opened a second time, or an output file cannot be made.
    pub fn sessions(
        &self,
        shards: u32,
        forms: Vec<Form>,
        limit: u64,
        append: &str,
        troubles: &Troubles,
    ) -> Result<Vec<Box<dyn Sessions<Http> + Send>>> {
        let forms = Arc::new(forms);
        let judge = Judge {
            checks: Checks::default(),
            body_min_bytes: limit,
            hits: Some(HitCounter::default()),
            hits_from_header_only: true,
        };
        let mut all: Vec<Box<dyn Sessions<Http> + Send>> = Vec::new();
        for index in 0..shards {
            let slice = self.slice.cut(index, shards);
            let numbers = (0..slice.share(u64::from(self.clients))).map(|own| slice.global(own));
            let cursors =
                numbers.clone().map(|client| self.cursor(client)).collect::<Result<Vec<_>>>()?;
            let outputs = match &self.outputs {
                None => Vec::new(),
                Some(pattern) => numbers
                    .map(|client| output_file(pattern, client))
                    .collect::<Result<Vec<_>>>()?,
            };
            let sessions =
                HttpSessions::new(cursors, forms.clone(), Classes::default(), judge.clone())
                    .with_troubles(troubles.clone())
                    .with_exhausted(self.exhausted.clone());
            all.push(if outputs.is_empty() {
                Box::new(sessions)
            } else {
                Box::new(sessions.with_outputs(outputs, append))
            });
        }
        Ok(all)
    }

    fn cursor(&self, client: u64) -> Result<Cursor> {
        // Each of this part's clients has a file, or all have the same.
        let own = client / u64::from(self.slice.of);
        let file = &self.files[own as usize % self.files.len()];
        let of = if self.shared { u64::from(self.clients) } else { 1 };
        let part = ByteRange { index: if self.shared { client } else { 0 }, of };
        match file {
            Queried::Rendered(rendered) => {
                let length = rendered.per_target[0].len();
                let (start, end) = part.bounds(length as u64);
                let way = Way::new(start as usize..end as usize, 0, 1, self.passes);
                Ok(Cursor::Rendered(rendered.clone(), way))
            }
            Queried::Stream(source) => {
                let mut source = source.clone();
                let reader = RecordReader::open(&mut source, &self.options, part, self.passes)?;
                Ok(Cursor::Stream(Stream::Records(Box::new(reader), Record::default())))
            }
        }
    }
}

fn output_file(pattern: &FilePattern, client: u64) -> Result<OutputFile> {
    let path = pattern.path(client);
    File::create(&path)
        .and_then(OutputFile::new)
        .map_err(|error| usage(format!("-o {}: {}", path.display(), with_advice(&error))))
}

#[cfg(test)]
mod tests;
