//! The reader of the input and the queues between it and the shards.

use super::batch::{Batch, Parameters};
use super::failed::FailedOperations;
use super::operation::{Operation, Problem, parse};
use super::source::Source;
use super::splitter::Splitter;
use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Batches that may wait for a shard.
const QUEUED_MAX: usize = 4;
/// A batch that holds this much is handed over.
const BATCH_BYTES: usize = 128 << 10;
/// Emptied batches that are kept for later use.
const SPARE_MAX: usize = 16;

/// Position of the reading.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Position {
    /// Operations handed over or found malformed, those passed over included.
    pub operations: u64,
    /// Operations that were passed over because the user asked for it.
    pub skipped: u64,
    /// Malformed ones among them.
    pub malformed: u64,
    /// Index of the file that was read last.
    pub file: usize,
    /// Line of the next operation, or a later one, from 1.
    pub line: u64,
    /// True if all files were read to their ends.
    pub at_end: bool,
}

struct State {
    queues: Vec<VecDeque<Batch>>,
    spare: Vec<Batch>,
    position: Position,
    closed: bool,
    trouble: Option<String>,
}

/// The input as the reader and the shards share it.
pub struct Input {
    names: Vec<String>,
    bytes: Option<u64>,
    state: Mutex<State>,
    /// A shard has taken something.
    taken: Condvar,
}

impl Input {
    /// The input of `shards` shards from these files.
    #[must_use]
    pub fn new(sources: &[Source], shards: u32) -> Self {
        let lengths: Option<Vec<u64>> = sources.iter().map(Source::length).collect();
        let queues = (0..shards).map(|_| VecDeque::new()).collect();
        Self {
            names: sources.iter().map(Source::name).collect(),
            bytes: lengths.map(|all| all.iter().sum()),
            state: Mutex::new(State {
                queues,
                spare: Vec::new(),
                position: Position { line: 1, ..Position::default() },
                closed: false,
                trouble: None,
            }),
            taken: Condvar::new(),
        }
    }

    /// Names of the files.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// Length of all files together as they are, bytes; none where it is not known.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        self.bytes
    }

    /// Position of the reading.
    #[must_use]
    pub fn position(&self) -> Position {
        self.state().position.clone()
    }

    /// Reason why the reading ended early.
    #[must_use]
    pub fn trouble(&self) -> Option<String> {
        self.state().trouble.clone()
    }

    /// Ends the reading: whatever was not handed over by now counts as not read.
    pub fn close(&self) {
        self.state().closed = true;
        self.taken.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next batch of a shard; `empty` is given back. The flag says that none will come any more.
    pub(super) fn take(&self, shard: u32, mut empty: Option<Batch>) -> (Option<Batch>, bool) {
        let mut state = self.state();
        let batch = state.queues[shard as usize].pop_front();
        if let Some(mut used) = empty.take()
            && state.spare.len() < SPARE_MAX
        {
            used.clear();
            state.spare.push(used);
        }
        let over = batch.is_none() && (state.closed || state.position.at_end);
        drop(state);
        if batch.is_some() {
            self.taken.notify_one();
        }
        (batch, over)
    }

    /// Hands batches over, one a shard, all or none; false when no one wants any more. `position` is where the
    /// reading then stands.
    fn hand_over(&self, batches: &mut [Batch], position: &Position) -> bool {
        let mut state = self.state();
        loop {
            if state.closed {
                return false;
            }
            let full = |(batch, queue): (&Batch, &VecDeque<Batch>)| {
                !batch.is_empty() && queue.len() >= QUEUED_MAX
            };
            if !batches.iter().zip(&state.queues).any(full) {
                break;
            }
            state = self.taken.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        for (shard, batch) in batches.iter_mut().enumerate() {
            if !batch.is_empty() {
                let empty = state.spare.pop().unwrap_or_default();
                let full = std::mem::replace(batch, empty);
                state.queues[shard].push_back(full);
            }
        }
        state.position = position.clone();
        true
    }
}

/// Reads the whole input. Runs on a thread of its own, and ends with the input or when it is closed.
pub struct Reader<'a> {
    input: &'a Input,
    failed: &'a FailedOperations,
    parameters: &'a Parameters,
    /// One a shard.
    batches: Vec<Batch>,
    position: Position,
    /// Operations still to be passed over.
    skip: u64,
}

/// No one wants any more.
struct Closed;

impl<'a> Reader<'a> {
    /// A reader that passes over the first `skip` operations.
    #[must_use]
    pub fn new(
        input: &'a Input,
        failed: &'a FailedOperations,
        parameters: &'a Parameters,
        skip: u64,
    ) -> Self {
        let shards = input.state().queues.len();
        let batches = (0..shards).map(|_| Batch::default()).collect();
        let position = input.position();
        Self { input, failed, parameters, batches, position, skip }
    }

    /// Reads one file after the other.
    pub fn read(mut self, sources: Vec<Source>) {
        for (index, mut source) in sources.into_iter().enumerate() {
            self.position.file = index;
            match self.read_file(index, &mut source) {
                Ok(Ok(())) => {}
                Ok(Err(Closed)) => return,
                Err(error) => {
                    let text = format!("{}: {error}", source.name());
                    // What came before it is fed all the same, unless nobody wants it any more.
                    let _ = self.hand_over();
                    let mut state = self.input.state();
                    state.trouble = Some(text);
                    state.position.at_end = true;
                    return;
                }
            }
        }
        self.position.at_end = true;
        // Where it is closed, nobody asks where the reading stands.
        let _ = self.hand_over();
    }

    fn hand_over(&mut self) -> Result<(), Closed> {
        let goes_on = self.input.hand_over(&mut self.batches, &self.position);
        if goes_on { Ok(()) } else { Err(Closed) }
    }

    fn read_file(
        &mut self,
        index: usize,
        source: &mut Source,
    ) -> std::io::Result<Result<(), Closed>> {
        let mut unpacked = source.read()?;
        let mut splitter = Splitter::default();
        let mut at_end = false;
        while !at_end {
            at_end = !unpacked.append_to(splitter.space())?;
            while let Some(piece) = splitter.next(at_end) {
                self.position.operations += 1;
                if self.skip > 0 {
                    self.skip -= 1;
                    self.position.skipped += 1;
                    continue;
                }
                let line = piece.line;
                match piece.problem.map_or_else(|| parse(piece.text), Err) {
                    Ok(operation) => self.push(&operation, index, line),
                    Err(problem) => self.malformed(piece.text, &problem, index, line),
                }
                let shard_full = |batch: &Batch| batch.bytes() >= BATCH_BYTES;
                if self.batches.iter().any(shard_full) {
                    self.position.line = line + 1;
                    if self.hand_over().is_err() {
                        return Ok(Err(Closed));
                    }
                }
            }
            self.position.line = splitter.line();
            // What has come is fed before more is waited for.
            if self.hand_over().is_err() {
                return Ok(Err(Closed));
            }
        }
        Ok(Ok(()))
    }

    fn push(&mut self, operation: &Operation<'_>, file: usize, line: u64) {
        let shard = super::batch::key_of(operation) % self.batches.len() as u64;
        let place = (self.position.operations, file as u32, line);
        self.batches[shard as usize].push(operation, place, self.parameters);
    }

    fn malformed(&mut self, text: &[u8], problem: &Problem, file: usize, line: u64) {
        self.position.malformed += 1;
        let name = &self.input.names[file];
        self.failed.malformed(text, problem, self.position.operations, (name, line));
    }
}
