//! Sessions that ask HTTP requests from files and judge the replies.

mod judge;
mod output;
mod server_time;
mod source;
mod trace;
mod troubles;

pub use judge::Judge;
pub use judge::plain_body;
use judge::{DECODED_MAX, Judged, SHOWN_MAX, beginning, shown, status_hint};
pub use output::OutputFile;
pub use server_time::ServerClock;
pub use source::{Order, Rendered, Stream, Way, shuffled};
pub use trace::{TRACEPARENT, TRACEPARENT_BLANK, Tracing};
pub use troubles::Troubles;

use crate::classes::Classes;
use crate::render::{FbenchForm, HttpForm};
use crate::rows::{RowFeed, TemplateSet};
use crate::script::Script;
use plimsoll_core::outcome::{Failure, Outcome, ServerTime};
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::UserTurn;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::{Judgement, Sessions, Submission, Turn};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The way requests are written.
#[derive(Clone, Debug)]
pub enum Form {
    /// As vespa-fbench does, header for header.
    Fbench(FbenchForm),
    /// plimsoll's own.
    Own {
        /// Headers and connection handling.
        form: HttpForm,
        /// Method of requests whose source names none.
        method: String,
        /// A body that every request carries.
        body: Option<Vec<u8>>,
    },
}

/// State of one reader of requests.
pub enum Cursor {
    /// Requests in memory, in the reader's own order.
    Rendered(Arc<Rendered>, Way),
    /// Requests in memory, in an order for each user.
    Users(Arc<Rendered>, Script),
    /// Requests that are read from a file during the run.
    Stream(Stream),
}

/// The HTTP sessions of one shard.
pub struct HttpSessions {
    /// One for each client, or a single one for all of them.
    cursors: Vec<Cursor>,
    /// One form a target, for streamed requests.
    forms: Arc<Vec<Form>>,
    classes: Classes,
    judge: Judge,
    keep: Keep,
    /// True if a check is about the number of hits.
    counts_for_checks: bool,
    /// One a client, where replies are written to files.
    outputs: Vec<OutputFile>,
    append: Vec<u8>,
    scratch: Vec<u8>,
    troubles: Troubles,
    /// Number of clients, of all shards, that have nothing left to ask.
    exhausted: Arc<AtomicU32>,
    park: Option<Sender<Stream>>,
    filling: Option<Filling>,
    /// Header with the server's own time, if replies are asked for it.
    server_clock: Option<ServerClock>,
    /// Trace ids of requests, if they have some.
    tracing: Option<Tracing>,
    /// User whose request comes next, in models of users.
    turn: UserTurn,
    /// Conditions of the reply judged last, to explain its failure.
    judged: Judged,
}

/// Fills rendered requests with the values of rows.
struct Filling {
    /// One a target, cut from its rendered requests.
    templates: Arc<Vec<TemplateSet>>,
    feed: RowFeed,
    body: Vec<u8>,
}

/// A place where one reader of a file waits between the parts of a run, so that each part asks on from where the
/// one before it ended.
pub struct Park {
    entrance: Sender<Stream>,
    exit: Receiver<Stream>,
}

impl Default for Park {
    fn default() -> Self {
        let (entrance, exit) = channel();
        Self { entrance, exit }
    }
}

impl Park {
    /// The reader, where one waits.
    #[must_use]
    pub fn take(&self) -> Option<Stream> {
        self.exit.try_iter().last()
    }
}

impl HttpSessions {
    /// Sessions that read from `cursors`: client i from cursor i modulo their number.
    #[must_use]
    pub fn new(
        cursors: Vec<Cursor>,
        forms: Arc<Vec<Form>>,
        classes: Classes,
        judge: Judge,
    ) -> Self {
        let (keep, counts_for_checks) = (judge.keep(), judge.checks.needs_hits());
        Self {
            counts_for_checks,
            cursors,
            forms,
            classes,
            judge,
            keep,
            outputs: Vec::new(),
            append: Vec::new(),
            scratch: Vec::new(),
            troubles: Troubles::default(),
            exhausted: Arc::default(),
            park: None,
            filling: None,
            server_clock: None,
            tracing: None,
            turn: UserTurn::default(),
            judged: Judged::default(),
        }
    }

    /// Fills the rendered requests with rows. `templates` has one set a target, cut from its requests.
    #[must_use]
    pub fn with_rows(mut self, templates: Arc<Vec<TemplateSet>>, feed: RowFeed) -> Self {
        self.filling = Some(Filling { templates, feed, body: Vec::new() });
        self
    }

    /// Reads the server's own time from replies.
    #[must_use]
    pub fn with_server_time(mut self, clock: Option<ServerClock>) -> Self {
        self.keep.head |= clock.is_some();
        self.server_clock = clock;
        self
    }

    /// Gives each request a trace id; they must have been rendered with [`TRACEPARENT_BLANK`].
    #[must_use]
    pub fn with_tracing(mut self, tracing: Option<Tracing>) -> Self {
        self.tracing = tracing;
        self
    }

    /// Leaves the reader of the only cursor in `park` at the end.
    #[must_use]
    pub fn with_park(mut self, park: &Park) -> Self {
        self.park = Some(park.entrance.clone());
        self
    }

    /// Writes what each client gets to its file. `append` is what `-a` adds to every URL.
    #[must_use]
    pub fn with_outputs(mut self, outputs: Vec<OutputFile>, append: &str) -> Self {
        self.keep = Keep { head: true, body: true, stream: false };
        self.outputs = outputs;
        self.append = append.as_bytes().to_vec();
        self
    }

    /// Leaves what goes wrong beside the requests in `troubles`, at the latest at the end.
    #[must_use]
    pub fn with_troubles(mut self, troubles: Troubles) -> Self {
        self.troubles = troubles;
        self
    }

    /// Counts the clients that have nothing left to ask in `exhausted`.
    #[must_use]
    pub fn with_exhausted(mut self, exhausted: Arc<AtomicU32>) -> Self {
        self.exhausted = exhausted;
        self
    }

    #[inline]
    fn write_next(&mut self, client: u32, target: u32, request: &mut Request) -> Turn {
        request.bytes.clear();
        let cursors = self.cursors.len().max(1);
        let Some(cursor) = self.cursors.get_mut(client as usize % cursors) else {
            return Turn::Exhausted;
        };
        let (class, item) = match cursor {
            Cursor::Rendered(rendered, way) => {
                let Some(index) = way.next_index() else { return Turn::Exhausted };
                let written = (&**rendered, target as usize, index, self.turn);
                match write(written, &mut self.filling, &self.troubles, &mut request.bytes) {
                    Some(about) => about,
                    None => return Turn::Exhausted,
                }
            }
            Cursor::Users(rendered, script) => {
                let index = script.index(self.turn);
                let written = (&**rendered, target as usize, index, self.turn);
                match write(written, &mut self.filling, &self.troubles, &mut request.bytes) {
                    Some(about) => about,
                    None => return Turn::Exhausted,
                }
            }
            Cursor::Stream(stream) => {
                let form = &self.forms[target as usize % self.forms.len()];
                match stream.next(form, &mut request.bytes) {
                    Ok(Some((line, tag))) => {
                        let (head, body) = parts_of(&request.bytes);
                        let target = target_of(head);
                        let class = self.classes.classify(tag.as_deref(), target, body);
                        (class.map_or(0, u16::from), line)
                    }
                    Ok(None) => return Turn::Exhausted,
                    Err(error) => {
                        self.troubles.add(format!("requests ended early: {error}"));
                        return Turn::Exhausted;
                    }
                }
            }
        };
        if let Some(tracing) = &mut self.tracing {
            tracing.patch(&mut request.bytes);
        }
        request.head = request.bytes.starts_with(b"HEAD ");
        request.keep = self.keep;
        if !self.outputs.is_empty() {
            let files = self.outputs.len();
            self.outputs[client as usize % files].begin(&request.bytes, &self.append);
        }
        Turn::Ask(Submission { class, item, idempotent: is_idempotent(&request.bytes) })
    }

    fn output(&mut self, client: u32) -> Option<&mut OutputFile> {
        let files = self.outputs.len();
        if files == 0 { None } else { self.outputs.get_mut(client as usize % files) }
    }
}

/// Writes a rendered request, filled where there are rows; its class and line are returned. `None` when the rows are used
/// up.
#[inline]
fn write(
    (rendered, target, index, turn): (&Rendered, usize, usize, UserTurn),
    filling: &mut Option<Filling>,
    troubles: &Troubles,
    out: &mut Vec<u8>,
) -> Option<(u16, u64)> {
    let sets = &rendered.per_target;
    let which = target % sets.len();
    let set = &sets[which];
    let about = (u16::from(set.class(index)), set.line(index));
    let Some(Filling { templates, feed, body }) = filling else {
        out.extend_from_slice(set.bytes(index));
        return Some(about);
    };
    let Some(row) = feed.next_row(turn) else {
        let (rows, path) = (feed.rows(), feed.rows().path().display());
        troubles.add_once(format!(
            "the {} rows of {path} are used up: the run ended with them; \
             use --rows-order circular or more rows",
            rows.len()
        ));
        return None;
    };
    templates[which].fill(set.bytes(index), index, feed.rows(), row, body, out);
    Some(about)
}

impl Sessions<Http> for HttpSessions {
    fn user(&mut self, _client: u32, turn: UserTurn) {
        self.turn = turn;
    }

    fn next(&mut self, client: u32, target: u32, request: &mut Request) -> Turn {
        let turn = self.write_next(client, target, request);
        if turn == Turn::Exhausted {
            self.exhausted.fetch_add(1, Ordering::Relaxed);
        }
        turn
    }

    #[inline]
    fn judge(
        &mut self,
        client: u32,
        _what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let plain = plain_body(reply, &mut self.scratch, DECODED_MAX);
        let body = plain.0;
        let service_ns = times.done_ns.saturating_sub(times.sent_ns);
        // Counting hits may cost a walk through the body, which a failed reply is spared.
        let early = if self.counts_for_checks { self.judge.count(reply, body) } else { None };
        self.judged = Judged { hits: early, service_ns };
        let failure = self.judge.failure(reply, plain, self.judged);
        let hits = match failure {
            None if self.counts_for_checks => early,
            None => self.judge.count(reply, body),
            Some(_) => None,
        };
        if let Some(output) = self.output(client) {
            output.reply(reply, failure.is_none(), times);
        }
        Judgement {
            outcome: failure.map_or(Outcome::Ok, Outcome::Failed),
            status: reply.status,
            hits,
            body_bytes: reply.body_bytes,
        }
    }

    fn asks_server_time(&self) -> bool {
        self.server_clock.is_some()
    }

    fn server_time(&self, reply: &Reply<'_>) -> ServerTime {
        self.server_clock.as_ref().map_or(ServerTime::Missing, |clock| clock.read(reply))
    }

    fn trace_id(&self, request: &Request) -> Option<String> {
        self.tracing.as_ref().and_then(|_| trace::trace_id(request))
    }

    fn lost(&mut self, client: u32, _what: &Submission, _failure: Failure, times: Times) {
        if let Some(output) = self.output(client) {
            output.lost(times);
        }
    }

    fn finish(mut self: Box<Self>, _now_ns: u64) {
        for file in &mut self.outputs {
            if let Err(error) = file.finish() {
                self.troubles.add(format!("an output file (-o) is incomplete: {error}"));
            }
        }
        if let (Some(park), Some(Cursor::Stream(stream))) = (&self.park, self.cursors.pop()) {
            // If no part follows, the reader stays in the park.
            let _ = park.send(stream);
        }
    }

    fn describe(&self, _what: &Submission, request: &Request) -> String {
        let (head, body) = parts_of(&request.bytes);
        let line_end = head.windows(2).position(|w| w == b"\r\n").unwrap_or(head.len());
        let line = head[..line_end].strip_suffix(b" HTTP/1.1").unwrap_or(&head[..line_end]);
        let mut text = shown(line);
        if !body.is_empty() {
            text.push(' ');
            text.push_str(&shown(&body[..body.len().min(SHOWN_MAX.saturating_sub(text.len()))]));
        }
        text
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let mut scratch = Vec::new();
        let plain = plain_body(reply, &mut scratch, DECODED_MAX);
        let reason = match self.judge.checks.explain(&self.judged.seen(reply.status, plain)) {
            Some(reason) => reason + &status_hint(reply),
            None => format!(
                "{} body bytes, fewer than the limit of {}",
                reply.body_bytes, self.judge.body_min_bytes
            ),
        };
        (reason, beginning(reply, plain.0))
    }
}

/// Splits rendered bytes into head and body.
fn parts_of(request: &[u8]) -> (&[u8], &[u8]) {
    match memchr::memmem::find(request, b"\r\n\r\n") {
        Some(at) => (&request[..at], &request[at + 4..]),
        None => (request, b""),
    }
}

/// The request target of rendered bytes.
fn target_of(request: &[u8]) -> &[u8] {
    let line_end = memchr::memchr(b'\r', request).unwrap_or(request.len());
    let line = &request[..line_end];
    let start = memchr::memchr(b' ', line).map_or(0, |at| at + 1);
    // The query files of the original may hold blanks, so the last one ends the target.
    let end = memchr::memrchr(b' ', line).filter(|&end| end >= start).unwrap_or(line.len());
    &line[start..end]
}

/// Returns true for methods that can be sent twice (RFC 9110, 9.2.2); all others, also `PURGE` and `DEBIT`, cannot.
fn is_idempotent(request: &[u8]) -> bool {
    const METHODS: [&[u8]; 6] = [b"GET ", b"HEAD ", b"PUT ", b"DELETE ", b"OPTIONS ", b"TRACE "];
    METHODS.iter().any(|method| request.starts_with(method))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_and_methods_are_read_from_rendered_bytes() {
        assert_eq!(target_of(b"GET /a b HTTP/1.1\r\nHost: x\r\n\r\n"), b"/a b");
        let idempotent = |method: &str| is_idempotent(format!("{method} / HTTP/1.1").as_bytes());
        assert!(["GET", "HEAD", "PUT", "DELETE", "OPTIONS", "TRACE"].into_iter().all(idempotent));
        assert!(
            !["POST", "PATCH", "PURGE", "DEBIT", "GRANT", "TRANSFER"].into_iter().any(idempotent)
        );
        assert_eq!(parts_of(b"POST / HTTP/1.1\r\n\r\nbody").1, b"body");
    }
}
