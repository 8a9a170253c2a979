//! The reader of the input and the queues between it and the shards.

use super::batch::{Batch, Parameters};
use super::failed::FailedOperations;
use super::operation::{Operation, Problem, parse};
use super::source::Source;
use super::splitter::Splitter;
use plimsoll_core::schedule::Slice;
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
    /// Operations of other parts of a larger feed.
    pub elsewhere: u64,
    /// Malformed ones of this part.
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
    /// The part of a larger feed.
    slice: Slice,
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
            slice: Slice::WHOLE,
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

    /// The part of a larger feed: of all documents, this slice. The operations on a document are all in one part, in their order.
    #[must_use]
    pub fn of_part(mut self, slice: Slice) -> Self {
        self.slice = slice;
        self
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

    /// Takes the batches that were read and that no shard has taken. No more come if the input is closed.
    pub(super) fn rest(&self) -> Vec<Batch> {
        let mut state = self.state();
        state.queues.iter_mut().flat_map(std::mem::take).collect()
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

    /// Hands batches over, one a shard, all or none. Returns false if the input was closed. `position` is where the
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

/// The input was closed: no shard takes more batches.
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
        let (part, shards) = (self.input.slice, self.batches.len() as u64);
        // The threads of all parts take turns, as those of one process with as many do.
        let shard = super::batch::key_of(operation) % (shards * u64::from(part.of));
        if shard % u64::from(part.of) != u64::from(part.index) {
            self.position.elsewhere += 1;
            return;
        }
        let shard = shard / u64::from(part.of);
        let place = (self.position.operations, file as u32, line);
        self.batches[shard as usize].push(operation, place, self.parameters);
    }

    fn malformed(&mut self, text: &[u8], problem: &Problem, file: usize, line: u64) {
        let part = self.input.slice;
        // No document is known, and one part reports it.
        if self.position.operations % u64::from(part.of) != u64::from(part.index) {
            self.position.elsewhere += 1;
            return;
        }
        self.position.malformed += 1;
        let name = &self.input.names[file];
        self.failed.malformed(text, problem, self.position.operations, (name, line));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::rng::Rng;
    use std::path::Path;

    /// Operations on few documents, some of them malformed.
    fn text(rng: &mut Rng) -> String {
        let line = |rng: &mut Rng| match rng.below(20) {
            0 => "{\"put\":7}\n".to_owned(),
            _ => format!("{{\"remove\":\"id:a:b::{}\"}}\n", rng.below(30)),
        };
        (0..200).map(|_| line(rng)).collect()
    }

    /// The numbers of the operations of each shard of one part, and where the reading then stands.
    fn read(path: &Path, slice: Slice, shards: u32, skip: u64) -> (Vec<Vec<u64>>, Position) {
        let sources = vec![Source::open(path).unwrap()];
        let input = Input::new(&sources, shards).of_part(slice);
        let (failed, parameters) = (FailedOperations::nowhere(), Parameters::default());
        Reader::new(&input, &failed, &parameters, skip).read(sources);
        let shard = |shard| {
            let mut numbers = Vec::new();
            while let (Some(mut batch), _) = input.take(shard, None) {
                numbers.extend(std::iter::from_fn(|| batch.take().map(|(item, _)| item.number)));
            }
            numbers
        };
        ((0..shards).map(shard).collect(), input.position())
    }

    #[test]
    fn the_parts_of_a_feed_have_each_operation_once_and_documents_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("operations");
        for seed in 0..100 {
            let mut rng = Rng::new(seed);
            std::fs::write(&path, text(&mut rng)).unwrap();
            let (parts, threads) = (1 + rng.below(5) as u32, 1 + rng.below(3) as u32);
            let skip = rng.below(2) * rng.below(100);
            let (whole, position) = read(&path, Slice::WHOLE, parts * threads, skip);
            let (mut malformed, mut own_operations) = (0, 0);
            for index in 0..parts {
                let (own, own_position) = read(&path, Slice { index, of: parts }, threads, skip);
                for (shard, numbers) in (0..).zip(own) {
                    let same = &whole[(index + parts * shard) as usize];
                    assert_eq!(&numbers, same, "seed {seed}, part {index}, shard {shard}");
                }
                assert_eq!(own_position.operations, position.operations, "numbers are the same");
                malformed += own_position.malformed;
                own_operations += own_position.operations - skip - own_position.elsewhere;
            }
            assert_eq!((malformed, own_operations), (position.malformed, 200 - skip));
        }
    }
}
