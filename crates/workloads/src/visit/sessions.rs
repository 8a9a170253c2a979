//! The visit as the engine's sessions: one client a slice.

use super::coverage::Coverage;
use super::form::VisitForm;
use super::output::{Destination, DocumentFormat, Output, Packing, lines_between};
use super::slice::{IdSet, Slice, SliceProgress, SliceTimes, Surroundings, Verdict};
use super::{IdDigest, ReplyForm};
use crate::render::HttpForm;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_wire::http1::{Keep, Reply, Request};
use plimsoll_wire::{Judgement, Protocol, Sessions, Submission, Turn};
use serde::{Deserialize, Serialize};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use thiserror::Error;

/// The name and version of the file that a resume reads.
const STATE_SCHEMA: &str = "plimsoll.visit-state/1";

/// Why a visit cannot begin or go on.
#[derive(Debug, Error)]
pub enum VisitError {
    /// A file cannot be used.
    #[error("{path}: {error}")]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        error: io::Error,
    },
    /// The resume file belongs to something else.
    #[error(
        "{path}: {what}; give the flags of the interrupted visit, or remove the file to begin anew"
    )]
    OtherVisit {
        /// The resume file.
        path: PathBuf,
        /// What differs.
        what: String,
    },
}

/// What is kept to go on after an interruption.
#[derive(Serialize, Deserialize)]
struct State {
    schema: String,
    form: VisitForm,
    destination: Destination,
    format: DocumentFormat,
    packing: Packing,
    /// How long each file was.
    bytes: Vec<u64>,
    slices: Vec<SliceProgress>,
}

/// A slice that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unfinished {
    /// Which slice.
    pub slice: u32,
    /// Why.
    pub reason: String,
    /// Where it would go on.
    pub token: Option<String>,
}

/// All slices together.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct VisitTotals {
    /// Documents written.
    pub documents: u64,
    /// Traces of removed documents written.
    pub removes: u64,
    /// Entries that came a second time and were left out.
    pub duplicates: u64,
    /// Entries in replies that came to their end.
    pub received: u64,
    /// What these replies said they held.
    pub claimed: u64,
    /// Replies whose claim was another than what they held.
    pub inconsistent: u64,
    /// Replies that came to their end.
    pub replies: u64,
    /// Body bytes received.
    pub bytes: u64,
    /// Digest of the ids written.
    pub digest: IdDigest,
    /// Mean over the slices of how far they have come, 0 to 100.
    pub percent: f64,
    /// Slices that are through.
    pub slices_done: u32,
    /// Slices.
    pub slices: u32,
    /// Where the slices' time went.
    pub times: SliceTimes,
    /// In which form the server answers.
    pub form: Option<ReplyForm>,
    /// What did not come to its end.
    pub unfinished: Vec<Unfinished>,
}

impl VisitTotals {
    /// Whether everything that was asked for has come, as far as the server's own counts can tell.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unfinished.is_empty()
            && self.slices_done == self.slices
            && self.inconsistent == 0
            && self.claimed == self.received
    }
}

/// A visit under way; shared by the sessions of all shards and whoever shows its progress.
pub struct Visit {
    form: VisitForm,
    destination: Destination,
    output: Output,
    slices: Vec<Mutex<Slice>>,
    earlier: IdSet,
    /// How long each file was when the visit was last saved.
    saved_bytes: Vec<AtomicU64>,
    failures_max: u32,
    stopped: AtomicBool,
    trouble: Mutex<Option<String>>,
}

impl Visit {
    /// Begins a visit.
    ///
    /// # Errors
    /// When a destination cannot be written.
    pub fn begin(
        form: VisitForm,
        destination: Destination,
        format: DocumentFormat,
        packing: Packing,
        failures_max: u32,
    ) -> Result<Self, VisitError> {
        let slices = (0..form.slices).map(|_| Slice::default()).collect();
        let output = Output::open(&destination, format, packing, form.slices, None)
            .map_err(|(path, error)| VisitError::File { path, error })?;
        Ok(Self::of(form, destination, output, slices, IdSet::default(), failures_max))
    }

    /// Goes on where an interrupted visit was saved last.
    ///
    /// # Errors
    /// When the file is that of another visit, or what was written cannot be read.
    pub fn resume(
        path: &Path,
        form: VisitForm,
        destination: Destination,
        format: DocumentFormat,
        packing: Packing,
        failures_max: u32,
    ) -> Result<Self, VisitError> {
        let file = |path: &Path| {
            let path = path.to_owned();
            move |error| VisitError::File { path, error }
        };
        let state = State::read(path)?;
        let wanted = (&form, &destination, format, packing);
        if let Some(what) = state.differs(wanted) {
            return Err(VisitError::OtherVisit { path: path.to_owned(), what });
        }
        let output = Output::open(&destination, format, packing, form.slices, Some(&state.bytes))
            .map_err(|(path, error)| VisitError::File { path, error })?;
        let mut coverage = Coverage::new(&state.slices);
        for (index, path) in output.paths().iter().enumerate() {
            let from = state.since(index, output.paths().len());
            let to = state.bytes.get(index).copied().unwrap_or(0);
            let mut each = |line: &[u8]| coverage.line(line);
            lines_between(path, packing, from, to, &mut each).map_err(file(path))?;
        }
        let (uncovered, unknown) = (coverage.uncovered, coverage.unknown);
        let slices = state.slices.into_iter().zip(uncovered);
        let slices = slices.map(|(kept, uncovered)| Slice::resumed(kept, uncovered)).collect();
        let visit = Self::of(form, destination, output, slices, unknown, failures_max);
        for (saved, bytes) in visit.saved_bytes.iter().zip(&state.bytes) {
            saved.store(*bytes, Ordering::Relaxed);
        }
        Ok(visit)
    }

    fn of(
        form: VisitForm,
        destination: Destination,
        output: Output,
        slices: Vec<Slice>,
        earlier: IdSet,
        failures_max: u32,
    ) -> Self {
        let files = output.paths().len().max(1);
        Self {
            form,
            destination,
            output,
            slices: slices.into_iter().map(Mutex::new).collect(),
            earlier,
            saved_bytes: (0..files).map(|_| AtomicU64::new(0)).collect(),
            failures_max,
            stopped: AtomicBool::new(false),
            trouble: Mutex::new(None),
        }
    }

    /// How many slices a saved visit has.
    ///
    /// # Errors
    /// When the file cannot be read.
    pub fn saved_slices(path: &Path) -> Result<u32, VisitError> {
        Ok(State::read(path)?.form.slices)
    }

    /// The files that are written.
    #[must_use]
    pub fn files(&self) -> &[PathBuf] {
        self.output.paths()
    }

    /// What is asked.
    #[must_use]
    pub fn form(&self) -> &VisitForm {
        &self.form
    }

    fn slice(&self, index: u32) -> MutexGuard<'_, Slice> {
        self.slices[index as usize].lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn around(&self, index: u32) -> Surroundings<'_> {
        Surroundings {
            earlier: &self.earlier,
            format: self.output.format(),
            spaces: self.form.bucket_spaces.len().max(1),
            saved_bytes: self.saved_bytes[index as usize % self.saved_bytes.len()]
                .load(Ordering::Relaxed),
        }
    }

    /// Ends the visit for a reason that no other try will mend.
    fn stop(&self, reason: String) {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(reason);
        self.stopped.store(true, Ordering::Relaxed);
    }

    fn write(&self, slice: u32, lines: &[u8]) {
        if let Err(error) = self.output.writer(slice).write(lines) {
            self.stop(format!("the documents cannot be written: {error}"));
        }
    }

    /// Writes everything out, and how to go on from here to `path`, whole or not at all.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), VisitError> {
        let error = |error| VisitError::File { path: path.to_owned(), error };
        // While all slices are held, files and tokens stand still together.
        let held: Vec<_> = (0..self.slices.len() as u32).map(|index| self.slice(index)).collect();
        let bytes = self.output.checkpoint().map_err(error)?;
        let state = State {
            schema: STATE_SCHEMA.to_owned(),
            form: self.form.clone(),
            destination: self.destination.clone(),
            format: self.output.format(),
            packing: self.output.packing(),
            bytes,
            slices: held.iter().map(|slice| slice.progress.clone()).collect(),
        };
        for (saved, bytes) in self.saved_bytes.iter().zip(&state.bytes) {
            saved.store(*bytes, Ordering::Relaxed);
        }
        drop(held);
        let text = serde_json::to_string_pretty(&state).map_err(|e| error(e.into()))?;
        let mut whole = path.as_os_str().to_owned();
        whole.push(".new");
        std::fs::write(&whole, text).map_err(error)?;
        std::fs::rename(&whole, path).map_err(error)
    }

    /// Writes out what is held back.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn flush(&self) -> io::Result<()> {
        self.output.checkpoint().map(drop)
    }

    /// Why the visit as a whole was ended early.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.trouble.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Where all slices stand together.
    #[must_use]
    pub fn totals(&self) -> VisitTotals {
        let mut totals = VisitTotals { slices: self.slices.len() as u32, ..Default::default() };
        let mut percent = 0.0;
        let spaces = self.form.bucket_spaces.len().max(1) as f64;
        for index in 0..totals.slices {
            let slice = self.slice(index);
            let own = &slice.progress;
            totals.documents += own.documents;
            totals.removes += own.removes;
            totals.duplicates += own.duplicates;
            totals.received += own.received;
            totals.claimed += own.claimed;
            totals.inconsistent += own.inconsistent;
            totals.replies += own.replies;
            totals.bytes += own.bytes;
            totals.digest.add(own.digest);
            totals.slices_done += u32::from(own.done);
            totals.times.turn_ns += slice.times.turn_ns;
            totals.times.wait_ns += slice.times.wait_ns;
            totals.times.receive_ns += slice.times.receive_ns;
            totals.form = totals.form.or(slice.form);
            percent +=
                if own.done { 100.0 } else { (own.space as f64 * 100.0 + own.percent) / spaces };
            if !own.done {
                let reason = slice.given_up.clone().unwrap_or_else(|| "it was stopped".to_owned());
                totals.unfinished.push(Unfinished {
                    slice: index,
                    reason,
                    token: own.token.clone(),
                });
            }
        }
        totals.percent = percent / f64::from(totals.slices.max(1));
        totals
    }
}

impl State {
    fn read(path: &Path) -> Result<Self, VisitError> {
        let error = |error| VisitError::File { path: path.to_owned(), error };
        let text = std::fs::read_to_string(path).map_err(error)?;
        serde_json::from_str(&text).map_err(|error| VisitError::OtherVisit {
            path: path.to_owned(),
            what: format!("it does not hold a visit's state ({error})"),
        })
    }

    /// The first thing in which the saved visit is another one.
    fn differs(
        &self,
        (form, destination, format, packing): (&VisitForm, &Destination, DocumentFormat, Packing),
    ) -> Option<String> {
        let own = &self.form;
        let same = [
            ("form of the file", self.schema == STATE_SCHEMA),
            ("path", own.path == form.path),
            ("cluster", own.cluster == form.cluster),
            ("selection", own.selection == form.selection),
            ("field set", own.field_set == form.field_set),
            ("--from or --to", (own.from_us, own.to_us) == (form.from_us, form.to_us)),
            ("--include-removes", own.include_removes == form.include_removes),
            ("bucket spaces", own.bucket_spaces == form.bucket_spaces),
            ("number of slices", own.slices == form.slices),
            ("number of slices", self.slices.len() == form.slices as usize),
            ("output", self.destination == *destination),
            ("format", self.format == format),
            ("compression", self.packing == packing),
        ];
        let (what, _) = same.into_iter().find(|(_, same)| !same)?;
        Some(format!("the interrupted visit had another {what}"))
    }

    /// From where on the file with this index may hold what no token covers.
    fn since(&self, file: usize, files: usize) -> u64 {
        let in_file = |index: usize| files == 1 || index == file;
        let slices = self.slices.iter().enumerate().filter(|(index, _)| in_file(*index));
        slices.map(|(_, slice)| slice.since).min().unwrap_or(0)
    }
}

/// The sessions of one shard.
pub struct VisitSessions {
    visit: Arc<Visit>,
    /// One a target.
    forms: Arc<Vec<HttpForm>>,
    /// The shard's number, and how many there are: client i is slice `i * shards + shard`.
    shard: (u32, u32),
    lines: Vec<u8>,
    /// Why the last reply was refused.
    reason: String,
}

impl VisitSessions {
    /// The sessions of shard `shard` of `shards`; `forms` holds one form for each target.
    #[must_use]
    pub fn new(visit: Arc<Visit>, forms: Arc<Vec<HttpForm>>, shard: u32, shards: u32) -> Self {
        Self { visit, forms, shard: (shard, shards), lines: Vec::new(), reason: String::new() }
    }

    fn index(&self, client: u32) -> u32 {
        client * self.shard.1 + self.shard.0
    }
}

impl<P> Sessions<P> for VisitSessions
where
    P: for<'a> Protocol<Request = Request, Reply<'a> = Reply<'a>>,
{
    fn next(&mut self, client: u32, target: u32, request: &mut Request) -> Turn {
        let index = self.index(client);
        let mut slice = self.visit.slice(index);
        let stopped = self.visit.stopped.load(Ordering::Relaxed);
        if stopped || slice.progress.done || slice.given_up.is_some() {
            return Turn::Exhausted;
        }
        if let Some(until_ns) = slice.retry_at_ns.take() {
            return Turn::Rest { until_ns };
        }
        slice.begin();
        request.bytes.clear();
        let http = &self.forms[target as usize % self.forms.len()];
        let (space, token) = (slice.progress.space, slice.progress.token.as_deref());
        self.visit.form.render(http, index, space, token, &mut request.bytes);
        request.head = false;
        request.keep = Keep { head: false, body: true, stream: true };
        Turn::Ask(Submission { class: 0, item: u64::from(index), idempotent: true })
    }

    fn part(&mut self, client: u32, _what: &Submission, bytes: &[u8], times: Times) {
        let index = self.index(client);
        let mut slice = self.visit.slice(index);
        self.lines.clear();
        slice.piece(bytes, times, &self.visit.around(index), &mut self.lines);
        // Under the slice's lock, so that whoever saves the visit sees both or neither.
        self.visit.write(index, &self.lines);
    }

    fn judge(
        &mut self,
        client: u32,
        _what: &Submission,
        reply: &Reply<'_>,
        times: Times,
    ) -> Judgement {
        let index = self.index(client);
        let mut slice = self.visit.slice(index);
        self.lines.clear();
        let around = self.visit.around(index);
        let verdict = slice.ended(reply.status, reply.body, times, &around, &mut self.lines);
        self.visit.write(index, &self.lines);
        let outcome = match verdict {
            Verdict::Whole => Outcome::Ok,
            Verdict::Again(kind, reason) => {
                slice.failed(&reason, times.done_ns, self.visit.failures_max);
                self.reason = reason;
                Outcome::Failed(kind)
            }
            Verdict::Never(reason) => {
                self.visit.stop(reason.clone());
                self.reason = reason;
                Outcome::Failed(Failure::Status)
            }
        };
        Judgement { outcome, status: reply.status, hits: None, body_bytes: reply.body_bytes }
    }

    fn lost(&mut self, client: u32, _what: &Submission, failure: Failure, times: Times) {
        let reason = format!("the request failed: {}", failure.name());
        let mut slice = self.visit.slice(self.index(client));
        slice.failed(&reason, times.done_ns, self.visit.failures_max);
    }

    fn describe(&self, what: &Submission, request: &Request) -> String {
        let line = request.bytes.split(|byte| *byte == b'\r').next().unwrap_or_default();
        // Rendered lines are ASCII; a token is most of their length.
        let line = &line[..line.len().min(480)];
        format!("slice {}: {}", what.item, String::from_utf8_lossy(line))
    }

    fn explain(&self, _what: &Submission, reply: &Reply<'_>) -> (String, String) {
        let shown = &reply.body[..reply.body.len().min(200)];
        let text = format!("HTTP {}: {}", reply.status, String::from_utf8_lossy(shown));
        (self.reason.clone(), text)
    }
}
