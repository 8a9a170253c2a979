//! A visit as a whole: its slices, its output, and what is kept to go on after an interruption.

use super::at_once::{Climb, Step};
use super::coverage::Coverage;
use super::error::VisitError;
use super::form::VisitForm;
use super::format::DocumentFormat;
use super::ids::IdSet;
use super::output::{Destination, Output};
use super::saver::{self, Saving};
use super::slice::{Slice, SliceTimes, Surroundings};
use super::state::State;
use super::{IdDigest, ReplyForm};
use plimsoll_workloads::output::{Packing, Waits, lines_between};
use serde::Serialize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A slice that did not come to its end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Unfinished {
    /// Index of the slice.
    pub slice: u32,
    /// The reason.
    pub reason: String,
    /// Continuation token.
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
    /// Number of documents that these replies announced.
    pub claimed: u64,
    /// Replies whose claim was another than what they held.
    pub inconsistent: u64,
    /// Replies that came to their end.
    pub replies: u64,
    /// Body bytes received.
    pub bytes: u64,
    /// Digest of the ids written by now; what waits for the output is not in it.
    pub digest: IdDigest,
    /// Mean over the slices of how far they have come, 0 to 100.
    pub percent: f64,
    /// Slices that are through.
    pub slices_done: u32,
    /// Slices.
    pub slices: u32,
    /// Account of the slices' time.
    pub times: SliceTimes,
    /// In which form the server answers.
    pub form: Option<ReplyForm>,
    /// Unfinished slices.
    pub unfinished: Vec<Unfinished>,
}

impl VisitTotals {
    /// Returns true if everything that was asked for has come, as far as the server's own counts can tell.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        self.unfinished.is_empty()
            && self.slices_done == self.slices
            && self.inconsistent == 0
            && self.claimed == self.received
    }
}

/// The way documents are written.
#[derive(Clone, Debug)]
pub struct Written {
    /// Destination of the documents.
    pub destination: Destination,
    /// Format of a line.
    pub format: DocumentFormat,
    /// The way files are packed.
    pub packing: Packing,
}

/// A visit in flight; shared by the sessions of all shards and whoever shows its progress.
pub struct Visit {
    form: VisitForm,
    id_front: Option<String>,
    destination: Destination,
    pub(super) output: Output,
    slices: Vec<Mutex<Slice>>,
    earlier: IdSet,
    /// Digest of what an interrupted visit had written.
    earlier_digest: IdDigest,
    /// Length of each file when the visit was last saved, bytes.
    saved_bytes: Arc<Vec<AtomicU64>>,
    /// True if a saving is not through yet.
    is_saving: Arc<AtomicBool>,
    /// Savings begun so far, and the number of the latest one that was carried out.
    savings: AtomicU64,
    last_saving: Arc<Mutex<u64>>,
    pub(super) failures_max: u32,
    stopped: AtomicBool,
    trouble: Mutex<Option<String>>,
    /// Number of slices that may ask at once, and how many do.
    at_once: AtomicU32,
    asking: AtomicU32,
    climb: Mutex<Option<Climb>>,
    /// Body bytes received in this run.
    bytes: AtomicU64,
    /// Requests that took their whole time and brought nothing.
    unanswered: AtomicU32,
}

impl Visit {
    /// Begins a visit.
    ///
    /// # Errors
    /// When a destination cannot be written.
    pub fn begin(form: VisitForm, to: Written, failures_max: u32) -> Result<Self, VisitError> {
        let slices = form.visited().map(|_| Slice::default()).collect();
        let output = Output::open(&to.destination, to.format, to.packing, form.visited(), None)
            .map_err(|(path, error)| VisitError::File { path, error })?;
        Ok(Self::of(form, to.destination, output, slices, IdSet::default(), failures_max))
    }

    /// Goes on where an interrupted visit was saved last.
    ///
    /// # Errors
    /// When the file is that of another visit, or what was written cannot be read.
    pub fn resume(
        path: &Path,
        form: VisitForm,
        to: Written,
        failures_max: u32,
    ) -> Result<Self, VisitError> {
        let file = |path: &Path| {
            let path = path.to_owned();
            move |error| VisitError::File { path, error }
        };
        let state = State::read(path)?;
        let Written { destination, format, packing } = to;
        let wanted = (&form, &destination, format, packing);
        if let Some(what) = state.differs(wanted) {
            return Err(VisitError::OtherVisit { path: path.to_owned(), what });
        }
        let kept = Some(&state.bytes[..]);
        let output = Output::open(&destination, format, packing, form.visited(), kept)
            .map_err(|(path, error)| VisitError::File { path, error })?;
        let mut coverage = Coverage::new(&state.slices, &form);
        for (index, path) in output.paths().iter().enumerate() {
            let from = state.since(index, output.paths().len());
            let to = state.bytes.get(index).copied().unwrap_or(0);
            let mut each = |line: &[u8]| coverage.line(line);
            lines_between(path, packing, from, to, &mut each).map_err(file(path))?;
        }
        let (uncovered, unknown) = (coverage.uncovered, coverage.unknown);
        let slices = state.slices.into_iter().zip(uncovered);
        let slices = slices.map(|(kept, uncovered)| Slice::resumed(kept, uncovered)).collect();
        let mut visit = Self::of(form, destination, output, slices, unknown, failures_max);
        visit.earlier_digest = state.digest;
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
            id_front: form.id_front(),
            form,
            destination,
            output,
            slices: slices.into_iter().map(Mutex::new).collect(),
            earlier,
            earlier_digest: IdDigest::default(),
            saved_bytes: Arc::new((0..files).map(|_| AtomicU64::new(0)).collect()),
            is_saving: Arc::default(),
            savings: AtomicU64::new(0),
            last_saving: Arc::default(),
            failures_max,
            stopped: AtomicBool::new(false),
            trouble: Mutex::new(None),
            at_once: AtomicU32::new(u32::MAX),
            asking: AtomicU32::new(0),
            climb: Mutex::new(None),
            bytes: AtomicU64::new(0),
            unanswered: AtomicU32::new(0),
        }
    }

    /// Lets these numbers of slices ask at once, one after the other, and stays with the smallest that more do not
    /// better.
    pub fn climb(&mut self, numbers: Vec<u32>) {
        if let Some(first) = numbers.first() {
            self.at_once = AtomicU32::new(*first);
            self.climb = Mutex::new(Some(Climb::new(numbers)));
        }
    }

    /// Number of slices that may ask at once, and what was measured to find that out; none where all may.
    #[must_use]
    pub fn climbed(&self) -> Option<(u32, Vec<Step>)> {
        let climb = lock(&self.climb);
        let steps = climb.as_ref()?.measured().to_vec();
        Some((self.at_once.load(Ordering::Relaxed), steps))
    }

    /// Looks whether more or fewer slices should ask at once.
    pub(super) fn look(&self, now_ns: u64) {
        if let Some(climb) = lock(&self.climb).as_mut() {
            let bytes = self.bytes.load(Ordering::Relaxed);
            let at_once = climb.look(now_ns, bytes, self.output.waits().limited_ns);
            self.at_once.store(at_once, Ordering::Relaxed);
        }
    }

    /// Returns true if one more slice may ask now; if so, it is counted.
    pub(super) fn admit(&self) -> bool {
        let may = |asking: u32| (asking < self.at_once.load(Ordering::Relaxed)).then(|| asking + 1);
        self.asking.fetch_update(Ordering::Relaxed, Ordering::Relaxed, may).is_ok()
    }

    /// A slice asks no more, or not for now.
    pub(super) fn dismiss(&self) {
        self.asking.fetch_sub(1, Ordering::Relaxed);
    }

    /// Number of slices that ask.
    pub(super) fn asking(&self) -> u32 {
        self.asking.load(Ordering::Relaxed)
    }

    /// Number of more slices that may ask, or how many less as a negative number.
    pub(super) fn room(&self) -> i64 {
        let at_once = self.at_once.load(Ordering::Relaxed);
        i64::from(at_once) - i64::from(self.asking.load(Ordering::Relaxed))
    }

    pub(super) fn count_bytes(&self, bytes: usize) {
        self.bytes.fetch_add(bytes as u64, Ordering::Relaxed);
    }

    /// Notes a request that timed out. Ends the visit if there were as many as `targets` and no byte has ever arrived.
    pub(super) fn timed_out(&self, targets: usize) {
        let before = self.unanswered.fetch_add(1, Ordering::Relaxed) as usize;
        if self.bytes.load(Ordering::Relaxed) == 0 && before + 1 >= targets {
            let least_s = self.form.timeout_s;
            self.stop(format!(
                "the target does not answer: no document arrived within the requested {least_s} s"
            ));
        }
    }

    /// Number of slices that a saved visit has.
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

    /// Returns the form of its requests.
    #[must_use]
    pub fn form(&self) -> &VisitForm {
        &self.form
    }

    pub(super) fn slice(&self, index: u32) -> MutexGuard<'_, Slice> {
        lock(&self.slices[index as usize])
    }

    pub(super) fn around(&self, index: u32, waits: Waits) -> Surroundings<'_> {
        Surroundings {
            form: &self.form,
            id_front: self.id_front.as_deref(),
            waits,
            earlier: &self.earlier,
            format: self.output.format(),
            saved_bytes: self.saved_bytes[index as usize % self.saved_bytes.len()]
                .load(Ordering::Relaxed),
        }
    }

    /// Ends the visit for a reason that no other try will fix.
    pub fn stop(&self, reason: String) {
        lock(&self.trouble).get_or_insert(reason);
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Returns true if it was ended for such a reason, or its output takes nothing any more.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        if let Some(error) = self.output.error() {
            self.stop(format!("the documents cannot be written: {error}"));
        }
        self.stopped.load(Ordering::Relaxed)
    }

    /// Has everything written out, and how to go on from here to `path`, whole or not at all. The result is
    /// sent when it is done; nothing is waited for.
    fn begin_saving(&self, path: &Path) -> Receiver<Result<(), VisitError>> {
        let (tell, told) = channel();
        self.is_saving.store(true, Ordering::Relaxed);
        // While all slices are held, lines and tokens stand still together.
        let held: Vec<_> = (0..self.slices.len() as u32).map(|index| self.slice(index)).collect();
        let saving = Saving {
            state: State {
                schema: State::schema(),
                form: self.form.clone(),
                destination: self.destination.clone(),
                format: self.output.format(),
                packing: self.output.packing(),
                bytes: Vec::new(),
                digest: self.earlier_digest,
                slices: held.iter().map(|slice| slice.progress.clone()).collect(),
            },
            path: path.to_owned(),
            paths: self.output.paths().to_vec(),
            saved_bytes: self.saved_bytes.clone(),
            number: self.savings.fetch_add(1, Ordering::Relaxed),
            last: self.last_saving.clone(),
        };
        let (digest, is_saving) = (self.output.digest().clone(), self.is_saving.clone());
        self.output.checkpoint(Box::new(move |reached| {
            // Now, that is for all lines before the checkpoint and for none behind it.
            let digest = *lock(&digest);
            saver::on_its_own(move || {
                let result = match reached {
                    Ok(reached) => saving.carry_out(reached, digest),
                    Err(error) => Err(VisitError::Output(error)),
                };
                is_saving.store(false, Ordering::Relaxed);
                // Whoever does not listen does not want to know.
                let _ = tell.send(result);
            });
        }));
        told
    }

    /// Saves the visit without waiting for it, unless an earlier saving is not through yet.
    pub fn save_soon(&self, path: &Path) {
        if !self.is_saving.load(Ordering::Relaxed) {
            drop(self.begin_saving(path));
        }
    }

    /// Writes everything out, and how to go on from here to `path`, whole or not at all.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn save(&self, path: &Path) -> Result<(), VisitError> {
        self.finish(Some(path), &mut || true)
    }

    /// Writes out what is held back.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn flush(&self) -> Result<(), VisitError> {
        self.finish(None, &mut || true)
    }

    /// Writes everything out, and how to go on to the file that keeps that, for as long as `goes_on` says.
    ///
    /// # Errors
    /// When a file cannot be written, or the end is not waited for: then some lines are not written.
    pub fn finish(
        &self,
        state: Option<&Path>,
        goes_on: &mut dyn FnMut() -> bool,
    ) -> Result<(), VisitError> {
        let told = match state {
            Some(path) => self.begin_saving(path),
            None => {
                let (tell, told) = channel();
                self.output.checkpoint(Box::new(move |reached| {
                    let _ = tell.send(reached.map(drop).map_err(VisitError::Output));
                }));
                told
            }
        };
        self.output.wait(&told, goes_on).unwrap_or_else(|| {
            let bytes = self.output.unwritten_bytes();
            let text = format!("the output did not accept {bytes} bytes of documents");
            Err(VisitError::Output(text))
        })
    }

    /// Time in which slices waited for the output, ns.
    #[must_use]
    pub fn limited_ns(&self) -> u64 {
        self.waits().limited_ns
    }

    pub(super) fn waits(&self) -> Waits {
        self.output.waits()
    }

    /// Reason why the visit as a whole was ended early.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        lock(&self.trouble).clone()
    }

    /// Returns the sums over all slices.
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
                    slice: self.form.slice_at(index),
                    reason,
                    token: own.token.clone(),
                });
            }
        }
        totals.digest.add(self.earlier_digest);
        totals.digest.add(*lock(self.output.digest()));
        totals.percent = percent / f64::from(totals.slices.max(1));
        totals
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
