//! Sources of requests: one URL, a query file, or NDJSON.

use crate::url::{Url, servers};
use crate::usage::usage;
use anyhow::{Context, Result};
use plimsoll_core::scenario::Scenario;
use plimsoll_workloads::authority::Authority;
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::http::{Form, Rendered};
use plimsoll_workloads::ndjson::NdjsonReader;
use plimsoll_workloads::query_file::{
    ByteRange, LINE_MAX_BYTES, PRELOAD_MAX_BYTES, Passes, Queries, ReadOptions, Record, RecordKind,
    RecordReader, RequestSet, SourceFile,
};
use plimsoll_workloads::render::RenderedSet;
use std::path::Path;
use std::sync::Arc;

/// A source of requests, opened and checked.
pub(super) struct Source {
    pub kind: SourceKind,
    pub classes: Classes,
    pub class_names: Vec<String>,
    pub looks_like_search: bool,
}

pub(super) enum SourceKind {
    Rendered(Arc<Rendered>),
    RecordStream(SourceFile, ReadOptions, u64),
    NdjsonStream(SourceFile, Arc<[Authority]>, u64),
}

impl Source {
    pub fn open(scenario: &Scenario, urls: &[Url], forms: &[Form]) -> Result<Self> {
        let mut classes = Classes::new(&scenario.classes)?;
        let mut search = SearchDetector::default();
        let kind = match &scenario.queries {
            None => single(urls, forms, &mut classes, &mut search)?,
            Some(path) => {
                if let Some(url) = urls.iter().find(|url| url.target != "/") {
                    return Err(usage(format!(
                        "the URL has a path ('{}') and --queries has paths too; write only \
                         scheme, host and port",
                        url.target
                    )));
                }
                let mut source = SourceFile::open_any(path)?;
                if is_ndjson(&mut source)? {
                    check_of_lines(scenario, path)?;
                    ndjson(source, (urls, forms), &mut classes, &mut search)?
                } else {
                    records(scenario, source, (urls, forms), &mut classes, &mut search)?
                }
            }
        };
        let mut class_names: Vec<String> = classes.names().into_iter().map(str::to_owned).collect();
        if matches!(kind, SourceKind::RecordStream(..)) {
            // The class of requests that no rule matches has no request yet.
            classes.classify(None, b"", b"")?;
            class_names = classes.names().into_iter().map(str::to_owned).collect();
        }
        Ok(Self { kind, classes, class_names, looks_like_search: search.found })
    }

    pub fn distinct(&self) -> Option<u64> {
        match &self.kind {
            SourceKind::Rendered(rendered) => rendered.per_target.first().map(|s| s.len() as u64),
            SourceKind::RecordStream(_, _, records) | SourceKind::NdjsonStream(_, _, records) => {
                Some(*records)
            }
        }
    }
}

/// Detects requests to the search API of Vespa or Elasticsearch, for which counting hits makes sense.
#[derive(Default)]
struct SearchDetector {
    found: bool,
}

impl SearchDetector {
    fn look(&mut self, target: &[u8]) {
        let path = target.split(|&b| b == b'?').next().unwrap_or_default();
        self.found |=
            path.starts_with(b"/search") || path.ends_with(b"/_search") || path == b"_search";
    }
}

fn single(
    urls: &[Url],
    forms: &[Form],
    classes: &mut Classes,
    search: &mut SearchDetector,
) -> Result<SourceKind> {
    let mut per_target = Vec::new();
    for (url, form) in urls.iter().zip(forms) {
        let target = url.target.as_bytes();
        search.look(target);
        let class = classes.classify(None, target, b"")?;
        let mut set = RenderedSet::default();
        set.push(class, 1, |out| form.record(target, b"", out));
        per_target.push(set);
    }
    Ok(SourceKind::Rendered(Arc::new(Rendered { per_target })))
}

fn records(
    scenario: &Scenario,
    source: SourceFile,
    (urls, forms): (&[Url], &[Form]),
    classes: &mut Classes,
    search: &mut SearchDetector,
) -> Result<SourceKind> {
    let kind = if scenario.post { RecordKind::Post } else { RecordKind::Get };
    let options = ReadOptions { own: Some(servers(urls)), ..ReadOptions::new(kind) };
    match Queries::of(source, &options)? {
        Queries::Preloaded(set) => {
            none_is_left_out(scenario, set.skipped())?;
            set.iter().take(100).for_each(|request| search.look(request.target));
            let rendered = render_set(&set, forms, classes)?;
            Ok(SourceKind::Rendered(Arc::new(rendered)))
        }
        Queries::Streaming(mut source, scan) => {
            none_is_left_out(scenario, scan.skipped)?;
            let mut record = Record::default();
            let mut first =
                RecordReader::open(&mut source, &options, ByteRange::WHOLE, Passes::Count(1))?;
            for _ in 0..100 {
                if !first.next_record(&mut record)? {
                    break;
                }
                search.look(&record.target);
            }
            Ok(SourceKind::RecordStream(source, options, scan.records))
        }
    }
}

/// Renders a whole query file for every target.
pub fn render_set(set: &RequestSet, forms: &[Form], classes: &mut Classes) -> Result<Rendered> {
    let mut per_target = vec![RenderedSet::default(); forms.len()];
    for request in set.iter() {
        let class = classes.classify(None, request.target, request.body)?;
        for (own, form) in per_target.iter_mut().zip(forms) {
            own.push(class, request.line, |out| form.record(request.target, request.body, out));
        }
    }
    Ok(Rendered { per_target })
}

fn is_ndjson(source: &mut SourceFile) -> Result<bool> {
    let options = ReadOptions::new(RecordKind::Line);
    let mut reader = RecordReader::open(source, &options, ByteRange::WHOLE, Passes::Count(1))?;
    let mut record = Record::default();
    // A first line that cannot be read is reported when the whole file is read.
    Ok(matches!(reader.next_record(&mut record), Ok(true))
        && record.target.trim_ascii_start().starts_with(b"{"))
}

/// Rejects a file of which the reader has left out records: what is measured would be another mix than that of the file.
fn none_is_left_out(scenario: &Scenario, skipped: u64) -> Result<()> {
    if skipped == 0 {
        return Ok(());
    }
    let path = scenario.queries.as_deref().unwrap_or(Path::new("-"));
    Err(usage(format!(
        "{}: the URL of {skipped} records has {LINE_MAX_BYTES} bytes or more, or their body is too long; shorten them, or remove them",
        path.display()
    )))
}

/// Rejects what each line of NDJSON says for itself.
fn check_of_lines(scenario: &Scenario, path: &Path) -> Result<()> {
    let has_body = scenario.body.is_some() || scenario.body_file.is_some();
    let given =
        [("--method", scenario.method.is_some()), ("--body", has_body), ("--post", scenario.post)];
    match given.iter().find(|(_, is)| *is) {
        Some((flag, _)) => Err(usage(format!(
            "{}:1: a line of NDJSON has its own method and body; write them there, and leave {flag} out",
            path.display()
        ))),
        None => Ok(()),
    }
}

fn ndjson(
    source: SourceFile,
    (urls, forms): (&[Url], &[Form]),
    classes: &mut Classes,
    search: &mut SearchDetector,
) -> Result<SourceKind> {
    let small = source
        .fits(PRELOAD_MAX_BYTES)
        .with_context(|| format!("reading {}", source.path().display()))?;
    let mut per_target = vec![RenderedSet::default(); forms.len()];
    let own = servers(urls);
    let reader = NdjsonReader::of(source.clone(), ByteRange::WHOLE, Passes::Count(1))?;
    let mut reader = reader.going_to(own.clone());
    let mut count = 0;
    while let Some(request) = reader.next_request()? {
        count += 1;
        let target = request.path.as_bytes();
        let body = request.body.as_deref().unwrap_or_default();
        let class = classes.classify(request.class.as_deref(), target, body)?;
        if count <= 100 {
            search.look(target);
        }
        if small {
            for (set, form) in per_target.iter_mut().zip(forms) {
                set.push(class, request.line, |out| form.ndjson(&request, out));
            }
        }
    }
    if count == 0 {
        return Err(plimsoll_workloads::error::InputError::Empty {
            path: source.path().to_owned(),
        }
        .into());
    }
    Ok(if small {
        SourceKind::Rendered(Arc::new(Rendered { per_target }))
    } else {
        SourceKind::NdjsonStream(source, own, count)
    })
}
