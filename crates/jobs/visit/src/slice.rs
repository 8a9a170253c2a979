//! One slice of a visit: where it stands, and what it makes of the replies.

use super::form::VisitForm;
use super::format::DocumentFormat;
use super::ids::{IdSet, number_of};
use super::item::{Entry, Item};
use super::output::Lines;
use super::reply::{ReplyForm, ReplyReader};
use super::reply_error::{ReplyError, form};
use super::unpacked::Unpacked;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::outcome::Failure;
use plimsoll_core::recorder::Times;
use plimsoll_core::secrets::without_remembered;
use plimsoll_workloads::id_digest::IdDigest;
use plimsoll_workloads::output::Waits;
use serde::{Deserialize, Serialize};

/// Pause after the first failure, ns; half as much again after each further one.
const PAUSE_MIN_NS: u64 = 200 * MILLISECOND_NS;
/// Longest pause, ns.
const PAUSE_MAX_NS: u64 = 10 * SECOND_NS;

/// State of a slice, as it is kept for a resume.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SliceProgress {
    /// Index of the bucket space it is in.
    pub space: usize,
    /// Continuation token; `None` at the beginning of a bucket space.
    pub token: Option<String>,
    /// True if it is through.
    pub done: bool,
    /// Progress in its bucket space, 0 to 100.
    pub percent: f64,
    /// Documents written.
    pub documents: u64,
    /// Traces of removed documents written.
    pub removes: u64,
    /// Entries that came a second time and were left out.
    pub duplicates: u64,
    /// Entries in replies that came to their end.
    pub received: u64,
    /// Number of documents that these replies announced.
    pub claimed: u64,
    /// Replies whose claim was another than what they held.
    pub inconsistent: u64,
    /// Replies that came to their end.
    pub replies: u64,
    /// Body bytes received.
    pub bytes: u64,
    /// Digest of ids written, in a state that an older plimsoll has kept: each slice had its own.
    #[serde(default)]
    pub digest: IdDigest,
    /// Everything of this slice that stands before this byte of its file is covered by the token.
    pub since: u64,
}

/// Account of a slice's time, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct SliceTimes {
    /// Between the end of a reply and the next request.
    pub turn_ns: u64,
    /// From a request to the first byte of its reply.
    pub wait_ns: u64,
    /// From there to the last byte.
    pub receive_ns: u64,
}

/// Time lost to the output until some moments; it belongs to neither side of the network.
#[derive(Clone, Copy, Default)]
struct Lost {
    ended: Waits,
    begun: Waits,
    first: Waits,
}

/// Contents of the current reply so far.
#[derive(Default)]
struct Reply {
    entries: u64,
    claimed: Option<u64>,
    /// The last progress it reported: where to go on, or that nothing is left.
    last: Option<Option<String>>,
    message: Option<String>,
    broken: Option<ReplyError>,
    first_ns: u64,
    /// True if it is an object that names the path that was asked for.
    names_path: bool,
    /// True if it has an array of documents.
    has_documents: bool,
}

/// Result of a reply.
#[derive(Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is whole.
    Whole,
    /// It must be asked again, for this reason.
    Again(Failure, String),
    /// The server will never answer this.
    Never(String),
}

/// A slice at work.
#[derive(Default)]
pub struct Slice {
    /// State that is kept of it.
    pub progress: SliceProgress,
    /// Account of its time.
    pub times: SliceTimes,
    /// Reason why it was given up.
    pub given_up: Option<String>,
    /// Failures since it last came forward.
    pub failures: u32,
    /// Time at which it may ask again after a failure, ns.
    pub retry_at_ns: Option<u64>,
    /// In which form the server answers, once it has.
    pub form: Option<ReplyForm>,
    /// True if it is among those that ask now, where not all do at once.
    pub admitted: bool,
    /// True if the next request must not stream, so that its status can say what is wrong.
    pub plain: bool,
    reader: ReplyReader,
    unpacked: Unpacked,
    reply: Reply,
    lost: Lost,
    /// Documents of the current reply.
    current: IdSet,
    /// Documents of replies that failed, or before a resume, and not again since: no token covers it.
    uncovered: IdSet,
    last_ended_ns: u64,
    /// Token of the request whose reply is awaited.
    asked: Option<String>,
}

/// Longest continuation token: it is part of the address of the next request.
const TOKEN_BYTES_MAX: usize = 32 << 10;

/// Facts about the visit that a slice needs.
pub struct Surroundings<'a> {
    /// The visit's form.
    pub form: &'a VisitForm,
    /// Prefix of all document ids, if the path names it.
    pub id_front: Option<&'a str>,
    /// Time lost to the output so far.
    pub waits: Waits,
    /// Documents of an interrupted visit that may come again in any slice.
    pub earlier: &'a IdSet,
    /// The way lines are written.
    pub format: DocumentFormat,
    /// Length of the slice's file when the visit was last saved, bytes.
    pub saved_bytes: u64,
}

impl Slice {
    /// Goes on from what was kept; `uncovered` was written and may come again.
    pub fn resumed(progress: SliceProgress, uncovered: IdSet) -> Self {
        Self { progress, uncovered, ..Self::default() }
    }

    /// Begins a request; `waits` is the time lost to the output so far.
    pub fn begin(&mut self, waits: Waits) {
        self.asked = self.progress.token.clone();
        self.reader.clear();
        self.unpacked.clear();
        self.reply = Reply::default();
        self.lost.begun = waits;
    }

    /// Time for which the reply that is not through has been received, ns, without what was lost to the output.
    pub fn receiving_ns(&self, now_ns: u64, waits: Waits) -> u64 {
        let is_through = self.reply.first_ns == 0 || self.last_ended_ns >= self.reply.first_ns;
        let held_ns = waits.held_ns.saturating_sub(self.lost.first.held_ns);
        let passed_ns = now_ns.saturating_sub(self.reply.first_ns).saturating_sub(held_ns);
        if is_through { 0 } else { passed_ns }
    }

    /// Returns whether nothing of the reply has come yet.
    pub fn awaits_first(&self) -> bool {
        self.reply.first_ns == 0
    }

    /// Notes the first byte of the reply. Returns the time since the request, ns; `None` if receiving was held up by the
    /// output meanwhile, because the byte may have arrived earlier.
    pub fn first(&mut self, times: Times, waits: Waits) -> Option<u64> {
        let wait_ns = times.done_ns.saturating_sub(times.sent_ns);
        self.reply.first_ns = times.done_ns;
        self.times.wait_ns += wait_ns;
        if self.last_ended_ns > 0 {
            // Before it asked it may have waited for room; since then the engine has put off its start.
            let waited_ns = self.lost.begun.limited_ns - self.lost.ended.limited_ns;
            let put_off_ns = waits.held_ns - self.lost.begun.held_ns;
            let turn_ns = times.sent_ns.saturating_sub(self.last_ended_ns);
            self.times.turn_ns += turn_ns.saturating_sub(waited_ns + put_off_ns);
        }
        self.lost.first = waits;
        (waits.held_ns == self.lost.begun.held_ns).then_some(wait_ns)
    }

    /// Reads a piece of the reply; whole lines are appended to `lines`.
    pub fn piece(&mut self, bytes: &[u8], around: &Surroundings<'_>, lines: &mut Lines) {
        self.progress.bytes += bytes.len() as u64;
        if self.reply.broken.is_some() {
            return;
        }
        let mut unpacked = std::mem::take(&mut self.unpacked);
        let mut reader = std::mem::take(&mut self.reader);
        let read = unpacked
            .plain(bytes, |plain| reader.feed(plain, &mut |item| self.take(item, around, lines)));
        self.form = reader.form().or(self.form);
        (self.reader, self.unpacked) = (reader, unpacked);
        // A document of another path has been noticed on the way.
        self.reply.broken = self.reply.broken.take().or(read.err());
    }

    /// Returns whether more of the reply is wanted.
    pub fn is_wanted(&self) -> bool {
        self.reply.broken.is_none()
    }

    /// The reason why the reply is of no use, if it is of none.
    pub fn broken(&self) -> Option<String> {
        self.reply.broken.as_ref().map(ToString::to_string)
    }

    fn take(&mut self, item: Item<'_>, around: &Surroundings<'_>, lines: &mut Lines) {
        match item {
            Item::Path(path) => self.reply.names_path |= around.form.is_path(&path),
            Item::Documents => self.reply.has_documents = true,
            Item::Document { entry, id, id_json, rest } => {
                if around.id_front.is_some_and(|front| !id.starts_with(front)) {
                    let other = form("a document does not belong to the requested path", &id_json);
                    self.reply.broken.get_or_insert(other);
                    return;
                }
                self.reply.entries += 1;
                let number = number_of(&id);
                let known = self.uncovered.contains(&number) || around.earlier.contains(&number);
                if !self.current.insert(number) || known {
                    self.progress.duplicates += 1;
                    return;
                }
                self.failures = 0;
                match entry {
                    Entry::Put => self.progress.documents += 1,
                    Entry::Remove => self.progress.removes += 1,
                }
                around.format.line(entry, &id_json, &rest, &mut lines.text);
                lines.mark(&id);
            }
            Item::Progress { token, percent } => {
                if let Some(percent) = percent {
                    self.progress.percent = percent;
                }
                if token.as_ref().is_some_and(|token| token.len() > TOKEN_BYTES_MAX) {
                    self.reply.broken.get_or_insert(ReplyError::LongToken);
                    return;
                }
                if let Some(token) = &token {
                    self.adopt(token);
                }
                self.reply.last = Some(token);
            }
            Item::Count(count) => self.reply.claimed = Some(count),
            Item::Closing(count) => {
                self.reply.claimed = Some(count);
                // The last progress is still to come.
                self.reply.last = None;
            }
            Item::Message { text, is_error } => {
                if is_error {
                    self.reply.message = Some(text);
                }
            }
        }
    }

    /// All that the token covers has arrived.
    fn adopt(&mut self, token: &str) {
        if self.progress.token.as_deref() != Some(token) {
            self.failures = 0;
            self.progress.token = Some(token.to_owned());
        }
    }

    /// The reply is through; `refusal` is the body of one that is no success.
    pub fn ended(
        &mut self,
        status: u16,
        refusal: &[u8],
        times: Times,
        around: &Surroundings<'_>,
        lines: &mut Lines,
    ) -> Verdict {
        self.last_ended_ns = times.done_ns;
        self.lost.ended = around.waits;
        if self.reply.first_ns > 0 {
            let held_ns = around.waits.held_ns.saturating_sub(self.lost.first.held_ns);
            let receive_ns = times.done_ns.saturating_sub(self.reply.first_ns);
            self.times.receive_ns += receive_ns.saturating_sub(held_ns);
        } else {
            self.times.wait_ns += times.done_ns.saturating_sub(times.sent_ns);
        }
        if status != 200 {
            return refused(status, refusal);
        }
        let held_back = self.unpacked.end();
        let mut reader = std::mem::take(&mut self.reader);
        let end = match self.reply.broken.take() {
            Some(error) => Err(error),
            None => held_back
                .and_then(|rest| reader.feed(&rest, &mut |item| self.take(item, around, lines)))
                .and_then(|()| reader.end(&mut |item| self.take(item, around, lines))),
        };
        self.reader = reader;
        if let Err(error) = end {
            let kind = match error {
                ReplyError::Truncated => Failure::Short,
                ReplyError::Form(_) => Failure::Check,
                ReplyError::TooLong | ReplyError::LongToken | ReplyError::NoRoom => {
                    Failure::Protocol
                }
            };
            return Verdict::Again(kind, error.to_string());
        }
        if let Some(error) = self.reply.broken.take() {
            return Verdict::Again(Failure::Check, error.to_string());
        }
        if let Some(message) = self.reply.message.take() {
            return Verdict::Again(Failure::App, format!("the server says: {message}"));
        }
        let is_object = self.reader.form() == Some(ReplyForm::Object);
        if is_object && !(self.reply.names_path && self.reply.has_documents) {
            let what = match (self.reply.names_path, self.reply.has_documents) {
                (false, false) => "it has neither the requested 'pathId' nor 'documents'",
                (false, true) => "it does not have the requested 'pathId'",
                _ => "it has no 'documents'",
            };
            return Verdict::Again(Failure::Check, format!("{NOT_A_VISIT}: {what}"));
        }
        self.whole(around)
    }

    /// A reply came to its end without an error: is it all that it claims to be?
    fn whole(&mut self, around: &Surroundings<'_>) -> Verdict {
        let last = self.reply.last.take();
        if last.is_none() && self.reader.form() == Some(ReplyForm::Lines) {
            let text = "the reply has no continuation token or end: it was cut";
            return Verdict::Again(Failure::Short, text.to_owned());
        }
        if last.as_ref().is_some_and(|token| token.is_some() && *token == self.asked) {
            let text =
                "the reply has the continuation token of its request: the visit does not advance";
            return Verdict::Again(Failure::Check, text.to_owned());
        }
        let progress = &mut self.progress;
        progress.replies += 1;
        progress.received += self.reply.entries;
        let claimed = self.reply.claimed.unwrap_or(self.reply.entries);
        progress.claimed += claimed;
        progress.inconsistent += u64::from(claimed != self.reply.entries);
        // What has come is covered by the token that goes on from here; without a count, lines may have been cut
        // behind a token that does not cover the last of them.
        if self.reply.claimed.is_none() {
            self.uncovered.extend(self.current.drain());
        }
        if self.uncovered.is_empty() {
            self.current.clear();
            if around.earlier.is_empty() {
                progress.since = around.saved_bytes;
            }
        } else {
            // The replies that failed may have come further than this one.
            for id in self.current.drain() {
                self.uncovered.remove(&id);
            }
        }
        if last.flatten().is_none() {
            progress.token = None;
            progress.space += 1;
            progress.done = progress.space >= around.form.bucket_spaces.len().max(1);
            progress.percent = if progress.done { 100.0 } else { 0.0 };
            self.failures = 0;
        }
        self.plain = false;
        Verdict::Whole
    }

    /// Something failed: pauses, longer each time, or gives up after `failures_max` failures in a row.
    pub fn failed(&mut self, reason: &str, now_ns: u64, failures_max: u32) {
        // A stream that brings nothing may hide why: its status was sent before the request was looked at.
        self.plain = !self.plain && self.reply.entries == 0 && self.reply.last.is_none();
        self.begin(self.lost.begun);
        self.uncovered.extend(self.current.drain());
        self.failures += 1;
        if self.failures > failures_max {
            self.given_up = Some(reason.to_owned());
            return;
        }
        let growth = 1.5f64.powi(self.failures.min(30) as i32 - 1);
        let pause_ns = (PAUSE_MIN_NS as f64 * growth).min(PAUSE_MAX_NS as f64) as u64;
        self.retry_at_ns = Some(now_ns + pause_ns);
    }
}

/// Name of a 200 reply that is not the reply to a visit.
pub(super) const NOT_A_VISIT: &str = "HTTP 200, but the reply is not that of a visit";

/// Meaning of a status other than 200 for the visit.
pub(super) fn refused(status: u16, body: &[u8]) -> Verdict {
    let said = serde_json::from_slice::<serde_json::Value>(body)
        .ok()
        .and_then(|body| body.get("message")?.as_str().map(str::to_owned))
        .unwrap_or_else(|| String::from_utf8_lossy(&body[..body.len().min(200)]).into_owned());
    let said = without_remembered(said);
    let mut reason = format!("HTTP {status}: {}", said.trim_end());
    if said.contains("'cluster' parameter") || said.contains("one of the content clusters") {
        reason += "; use --cluster NAME";
    }
    match status {
        408 | 429 | 500..=599 => Verdict::Again(Failure::Status, reason),
        _ => Verdict::Never(reason),
    }
}
