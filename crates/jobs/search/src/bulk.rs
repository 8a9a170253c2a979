//! Ingesting a text through an engine's own bulk interface: every document acknowledged, or reported as failed.
//!
//! The text is NDJSON as this program writes it (`id` first), which becomes a bulk body by copying. A document that is turned
//! away with 429 is sent again after a pause that doubles; a request whose connection broke is sent again too, since
//! writing a document under its id twice is as good as once.

mod copy;

use super::dialect::{Dialect, Feeding};
use super::sessions::plain;
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use plimsoll_workloads::render::{HttpForm, RequestParts};
use std::io::BufRead;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

pub use copy::CopySessions;

/// A bulk body is ended when it has reached this many bytes ...
pub const BATCH_BYTES: usize = 1 << 20;
/// ... or this many documents.
pub const BATCH_DOCUMENTS: usize = 1000;
/// First pause after 429, ns; each next one is twice as long.
const PAUSE_NS: u64 = 50 * MILLISECOND_NS;
/// Longest pause, ns.
const PAUSE_MAX_NS: u64 = 2_000 * MILLISECOND_NS;
/// Times that a body is rejected with 429 before its documents count as failed: about a minute.
const TURNED_AWAY_MAX: u32 = 35;
/// Times that a request is sent again after its connection broke.
const BROKEN_MAX: u32 = 3;

/// Progress of ingesting; read by other threads during it.
#[derive(Debug, Default)]
pub struct LoadTally {
    /// Documents acknowledged.
    pub documents: AtomicU64,
    /// Body bytes of requests that were acknowledged.
    pub bytes: AtomicU64,
    /// Documents that failed for good.
    pub failed: AtomicU64,
    /// Documents that were rejected and sent again, and requests whose connection broke.
    pub retried: AtomicU64,
    /// Time at which the first request was sent and the last one acknowledged, ns.
    pub span_ns: Mutex<(u64, u64)>,
    /// The first failure, in the engine's words.
    pub trouble: Mutex<Option<String>>,
}

impl LoadTally {
    fn note(&self, text: impl FnOnce() -> String) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert_with(text);
    }

    /// Counts documents that were acknowledged.
    fn taken(&self, documents: u64, bytes: u64, times: Times) {
        self.documents.fetch_add(documents, Ordering::Relaxed);
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        let mut span = self.span_ns.lock().unwrap_or_else(PoisonError::into_inner);
        if span.0 == 0 || times.sent_ns < span.0 {
            span.0 = times.sent_ns;
        }
        span.1 = span.1.max(times.done_ns);
    }

    /// The first failure, in the engine's words.
    #[must_use]
    pub fn first_trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From the first request to the last acknowledgement, s.
    #[must_use]
    pub fn seconds(&self) -> f64 {
        let (from_ns, to_ns) = *self.span_ns.lock().unwrap_or_else(PoisonError::into_inner);
        to_ns.saturating_sub(from_ns) as f64 / 1e9
    }
}

/// A body in flight, one a client.
#[derive(Default)]
struct Batch {
    body: Vec<u8>,
    /// Beginnings of each document's lines in the body.
    starts: Vec<usize>,
    /// The path, where each document has its own.
    path: String,
    turned_away: u32,
    broken: u32,
    /// Wait until then before it is sent again, ns.
    rest_ns: Option<u64>,
    again: bool,
}

impl Batch {
    fn clear(&mut self) {
        self.body.clear();
        self.starts.clear();
        self.turned_away = 0;
        self.broken = 0;
        self.again = false;
    }

    fn document(&self, index: usize) -> &[u8] {
        let end = self.starts.get(index + 1).copied().unwrap_or(self.body.len());
        &self.body[self.starts[index]..end]
    }
}

/// The clients that load a text, all on one thread.
pub struct BulkSessions<R> {
    text: R,
    line: Vec<u8>,
    over: bool,
    form: HttpForm,
    dialect: Dialect,
    path: String,
    headers: Vec<(String, String)>,
    batches: Vec<Batch>,
    tally: Arc<LoadTally>,
    give_up: Arc<AtomicBool>,
    scratch: Vec<u8>,
}

impl<R: BufRead> BulkSessions<R> {
    /// Clients that read `text`, NDJSON with the id first. They set `give_up` when nothing is taken any more.
    #[must_use]
    pub fn new(
        text: R,
        form: HttpForm,
        dialect: Dialect,
        index: &str,
        clients: u32,
        tally: Arc<LoadTally>,
        give_up: Arc<AtomicBool>,
    ) -> Self {
        let (path, content_type) = dialect.bulk_path(index);
        Self {
            text,
            line: Vec::new(),
            over: false,
            form,
            dialect,
            path,
            headers: vec![("Content-Type".to_owned(), content_type.to_owned())],
            batches: (0..clients.max(1)).map(|_| Batch::default()).collect(),
            tally,
            give_up,
            scratch: Vec::new(),
        }
    }

    fn read_line(&mut self) -> bool {
        self.line.clear();
        match self.text.read_until(b'\n', &mut self.line) {
            Ok(0) => false,
            Ok(_) => {
                while self.line.last().is_some_and(u8::is_ascii_whitespace) {
                    self.line.pop();
                }
                true
            }
            Err(error) => {
                self.tally.note(|| format!("the text cannot be read: {error}"));
                self.give_up.store(true, Ordering::Relaxed);
                false
            }
        }
    }

    /// Fills a client's body with the next documents; false at the end of the text.
    fn fill(&mut self, at: usize) -> bool {
        self.batches[at].clear();
        let single = matches!(self.dialect.feeding(), Feeding::Single(_));
        while !self.over {
            if !self.read_line() {
                self.over = true;
                break;
            }
            if self.line.is_empty() {
                continue;
            }
            let batch = &mut self.batches[at];
            let Some((id, rest)) = split(&self.line) else {
                self.tally.failed.fetch_add(1, Ordering::Relaxed);
                self.tally.note(|| "a line of the text has no id at its beginning".to_owned());
                continue;
            };
            batch.starts.push(batch.body.len());
            if single {
                let name: String = serde_json::from_slice(id).unwrap_or_default();
                batch.path.clear();
                batch.path.push_str(&self.path);
                batch.path.extend(percent_encode(name.as_bytes(), NON_ALPHANUMERIC));
                put(&mut batch.body, &[b"{\"fields\":{", rest, b"}"]);
                return true;
            }
            put(&mut batch.body, &[b"{\"index\":{\"_id\":", id, b"}}\n{", rest, b"\n"]);
            if batch.body.len() >= BATCH_BYTES || batch.starts.len() >= BATCH_DOCUMENTS {
                return true;
            }
        }
        !self.batches[at].starts.is_empty()
    }

    /// Puts a body off, or gives its documents up after too many tries.
    fn put_off(&mut self, at: usize, now_ns: u64) {
        let batch = &mut self.batches[at];
        batch.turned_away += 1;
        if batch.turned_away > TURNED_AWAY_MAX {
            self.tally.failed.fetch_add(batch.starts.len() as u64, Ordering::Relaxed);
            self.tally.note(|| format!("rejected with 429 {TURNED_AWAY_MAX} times"));
            batch.clear();
            return;
        }
        self.tally.retried.fetch_add(batch.starts.len() as u64, Ordering::Relaxed);
        let doubled = PAUSE_NS << (batch.turned_away - 1).min(10);
        batch.rest_ns = Some(now_ns + doubled.min(PAUSE_MAX_NS));
        batch.again = true;
    }

    fn judge_items(&mut self, at: usize, body: &[u8], times: Times) -> Option<Failure> {
        let Some(statuses) = item_statuses(body) else {
            let documents = self.batches[at].starts.len() as u64;
            self.tally.failed.fetch_add(documents, Ordering::Relaxed);
            self.tally.note(|| "the reply to a bulk request cannot be read".to_owned());
            self.batches[at].clear();
            return Some(Failure::Check);
        };
        let batch = &mut self.batches[at];
        let (mut good, mut failed) = (0, 0u64);
        let (mut left, mut starts) = (Vec::new(), Vec::new());
        for (index, status) in statuses.iter().enumerate().take(batch.starts.len()) {
            match status {
                200..=299 => good += 1,
                429 => {
                    starts.push(left.len());
                    left.extend_from_slice(batch.document(index));
                }
                _ => failed += 1,
            }
        }
        // Items that the reply does not speak of were not acknowledged.
        failed += batch.starts.len().saturating_sub(statuses.len()) as u64;
        let bytes = (batch.body.len() - left.len()) as u64;
        batch.body = left;
        batch.starts = starts;
        let again = !batch.starts.is_empty();
        self.tally.taken(good, if good > 0 { bytes } else { 0 }, times);
        if failed > 0 {
            self.tally.failed.fetch_add(failed, Ordering::Relaxed);
            self.tally.note(|| self.dialect.message(200, item_error(body)));
        }
        if again {
            self.put_off(at, times.done_ns);
        } else {
            self.batches[at].clear();
        }
        (failed > 0 || again).then_some(Failure::Check)
    }
}

fn put(out: &mut Vec<u8>, pieces: &[&[u8]]) {
    for piece in pieces {
        out.extend_from_slice(piece);
    }
}

/// Splits `{"id":"x","title":...}` into `"x"` and `"title":...}`.
fn split(line: &[u8]) -> Option<(&[u8], &[u8])> {
    let inside = line.strip_prefix(b"{\"id\":")?;
    let mut at = 1;
    if inside.first() != Some(&b'"') {
        return None;
    }
    while *inside.get(at)? != b'"' {
        at += if inside[at] == b'\\' { 2 } else { 1 };
    }
    let (id, rest) = inside.split_at(at + 1);
    Some((id, rest.strip_prefix(b",")?))
}

/// The statuses of a bulk reply's items, in their order; none when it is no such reply.
fn item_statuses(body: &[u8]) -> Option<Vec<u16>> {
    let value: serde_json::Value = serde_json::from_slice(body).ok()?;
    let items = value.get("items")?.as_array()?;
    items
        .iter()
        .map(|item| {
            let (_, result) = item.as_object()?.iter().next()?;
            u16::try_from(result.get("status")?.as_u64()?).ok()
        })
        .collect()
}

/// The reply from its first error on, where the reason stands.
fn item_error(body: &[u8]) -> &[u8] {
    memchr::memmem::find(body, b"\"error\":{").map_or(body, |at| &body[at..])
}

/// Returns true if a bulk reply says that all went well, without a look at its items.
fn no_errors(body: &[u8]) -> bool {
    let head = &body[..body.len().min(200)];
    memchr::memmem::find(head, b"\"errors\":false").is_some()
}

impl<R: BufRead> Sessions<Http> for BulkSessions<R> {
    fn next(&mut self, client: u32, _target: u32, request: &mut Request) -> Turn {
        let at = client as usize % self.batches.len();
        if let Some(until_ns) = self.batches[at].rest_ns.take() {
            return Turn::Rest { until_ns };
        }
        if self.batches[at].again {
            self.batches[at].again = false;
        } else if !self.fill(at) {
            return Turn::Exhausted;
        }
        let batch = &self.batches[at];
        let single = matches!(self.dialect.feeding(), Feeding::Single(_));
        let parts = RequestParts {
            method: "POST",
            target: if single { batch.path.as_bytes() } else { self.path.as_bytes() },
            headers: &self.headers,
            body: Some(&batch.body),
        };
        request.bytes.clear();
        self.form.render(&parts, &mut request.bytes);
        request.head = false;
        request.keep = Keep { head: false, body: !single, stream: false };
        Turn::Ask(Submission { class: 0, item: at as u64, idempotent: true })
    }

    fn judge(
        &mut self,
        client: u32,
        _what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let at = client as usize % self.batches.len();
        let mut scratch = std::mem::take(&mut self.scratch);
        let body = plain(reply, &mut scratch);
        let (documents, bytes) =
            (self.batches[at].starts.len() as u64, self.batches[at].body.len() as u64);
        let bulk = self.dialect.feeding() == Feeding::Bulk;
        let failure = match reply.status {
            429 => {
                self.put_off(at, times.done_ns);
                Some(Failure::Status)
            }
            200..=299 if !bulk || no_errors(body) => {
                self.tally.taken(documents, bytes, times);
                self.batches[at].clear();
                None
            }
            200..=299 => {
                let body = body.to_vec();
                self.judge_items(at, &body, times)
            }
            status => {
                self.tally.failed.fetch_add(documents, Ordering::Relaxed);
                self.tally.note(|| self.dialect.message(status, body));
                self.batches[at].clear();
                Some(Failure::Status)
            }
        };
        self.scratch = scratch;
        Judgement {
            outcome: failure.map_or(Outcome::Ok, Outcome::Failed),
            status: reply.status,
            hits: None,
            body_bytes: reply.body_bytes,
        }
    }

    fn lost(&mut self, client: u32, _what: &Submission, failure: Failure, times: Times) {
        let at = client as usize % self.batches.len();
        let batch = &mut self.batches[at];
        batch.broken += 1;
        if batch.broken > BROKEN_MAX {
            self.tally.failed.fetch_add(batch.starts.len() as u64, Ordering::Relaxed);
            self.tally.note(|| format!("{} while ingesting", failure.name()));
            self.give_up.store(true, Ordering::Relaxed);
            self.over = true;
            batch.clear();
            return;
        }
        self.tally.retried.fetch_add(batch.starts.len() as u64, Ordering::Relaxed);
        batch.rest_ns = Some(times.done_ns + PAUSE_NS * 4);
        batch.again = true;
    }

    fn describe(&self, _what: &Submission, _request: &Request) -> String {
        self.path.clone()
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let mut scratch = Vec::new();
        let said = self.dialect.message(reply.status, plain(reply, &mut scratch));
        (said.clone(), said)
    }
}

#[cfg(test)]
mod tests;
