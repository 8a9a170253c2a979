//! The output of a visit: a bounded queue, and the thread that packs and writes what stands in it.
//!
//! The thread that receives replies never waits for a disk or a pipe: it leaves lines in the queue. When the queue
//! is full it stops receiving instead, and how long that was is counted, so that a slow disk does not look like a slow
//! target.

use super::writer::{DocumentFormat, Packing, Writer};
use plimsoll_core::clock::now_ns;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Bytes of lines that may wait; from here on nothing more is received.
pub const QUEUE_BYTES: usize = 16 << 20;
/// Bytes at which receiving goes on.
const ROOM_BYTES: usize = QUEUE_BYTES / 4 * 3;
/// Lines of one destination are gathered in blocks of about this size, bytes.
const BLOCK_BYTES: usize = 256 << 10;
/// Time for which fewer bytes than a block wait for more, so that not every piece of a reply wakes the thread.
const GATHER: Duration = Duration::from_millis(20);
/// Empty blocks that are kept for later use.
const SPARE_MAX: usize = 8;

/// Destination of a visit's documents.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Destination {
    /// Nowhere: only the reading is of interest.
    Nowhere,
    /// Standard output.
    Stdout,
    /// One file.
    File(PathBuf),
    /// A file for each slice in this folder.
    Folder(PathBuf),
}

/// Takes the length of each file at a checkpoint, or why there was none. It runs on the output's thread.
pub type OnCheckpoint = Box<dyn FnOnce(Result<Vec<u64>, String>) + Send>;

enum Job {
    /// Lines for the destination with this index.
    Lines(usize, Vec<u8>),
    Checkpoint(OnCheckpoint),
}

#[derive(Default)]
struct Queue {
    jobs: VecDeque<Job>,
    spare: Vec<Vec<u8>>,
    /// Bytes of lines that are not written yet.
    bytes: usize,
    /// True if the thread sleeps.
    asleep: bool,
    /// True if a checkpoint stands in the queue.
    urgent: bool,
    closing: bool,
    full_since_ns: Option<u64>,
}

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
    full: AtomicBool,
    /// Total time for which it was full, up to the last time that it had room, ns.
    full_ns: AtomicU64,
    failed: AtomicBool,
    error: Mutex<Option<String>>,
}

/// All destinations of a visit, and the thread that writes to them.
pub struct Output {
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
    /// Nobody waits for the thread: what it writes to may never take anything again.
    abandoned: AtomicBool,
    destinations: usize,
    paths: Vec<PathBuf>,
    packing: Packing,
    format: DocumentFormat,
}

impl Output {
    /// Opens the destinations of `slices` slices. `keep_bytes` says how much of each file is kept when the visit
    /// was interrupted; without it files begin anew.
    ///
    /// # Errors
    /// The path that cannot be written, and why.
    pub fn open(
        destination: &Destination,
        format: DocumentFormat,
        packing: Packing,
        slices: std::ops::Range<u32>,
        keep_bytes: Option<&[u64]>,
    ) -> Result<Self, (PathBuf, io::Error)> {
        let paths = match destination {
            Destination::Nowhere | Destination::Stdout => Vec::new(),
            Destination::File(path) => vec![path.clone()],
            Destination::Folder(folder) => {
                std::fs::create_dir_all(folder).map_err(|error| (folder.clone(), error))?;
                slices.map(|slice| folder.join(file_name(slice, packing))).collect()
            }
        };
        let mut writers = Vec::new();
        if *destination == Destination::Stdout {
            writers.push(Writer::stdout());
        }
        for (index, path) in paths.iter().enumerate() {
            let keep = keep_bytes.map(|all| all.get(index).copied().unwrap_or(0));
            writers.push(Writer::file(path, packing, keep).map_err(|e| (path.clone(), e))?);
        }
        let shared = Arc::new(Shared::default());
        let destinations = writers.len();
        let thread = if writers.is_empty() {
            None
        } else {
            let own = shared.clone();
            let builder = std::thread::Builder::new().name("output".to_owned());
            let spawned = builder.spawn(move || write_all(&own, &mut writers));
            let path = || paths.first().cloned().unwrap_or_else(|| PathBuf::from("-"));
            Some(spawned.map_err(|error| (path(), error))?)
        };
        let abandoned = AtomicBool::new(false);
        Ok(Self { shared, thread, abandoned, destinations, paths, packing, format })
    }

    /// How documents are written.
    #[must_use]
    pub fn format(&self) -> DocumentFormat {
        self.format
    }

    /// How files are packed.
    #[must_use]
    pub fn packing(&self) -> Packing {
        self.packing
    }

    /// The files, in the order of a checkpoint's lengths.
    #[must_use]
    pub fn paths(&self) -> &[PathBuf] {
        &self.paths
    }

    /// Returns whether anything is written at all.
    #[must_use]
    pub fn is_wanted(&self) -> bool {
        self.thread.is_some()
    }

    /// Leaves whole lines of a slice in the queue; never waits for what they are written to.
    pub fn write(&self, slice: u32, lines: &[u8]) {
        if lines.is_empty() || self.thread.is_none() || self.shared.failed.load(Ordering::Relaxed) {
            return;
        }
        let index = slice as usize % self.destinations;
        let mut queue = self.shared.lock();
        queue.bytes += lines.len();
        match queue.jobs.back_mut() {
            Some(Job::Lines(to, block))
                if *to == index && block.len() + lines.len() <= BLOCK_BYTES =>
            {
                block.extend_from_slice(lines);
            }
            _ => {
                let mut block = queue.spare.pop().unwrap_or_default();
                block.extend_from_slice(lines);
                queue.jobs.push_back(Job::Lines(index, block));
            }
        }
        if queue.bytes >= QUEUE_BYTES && queue.full_since_ns.is_none() {
            queue.full_since_ns = Some(now_ns());
            self.shared.full.store(true, Ordering::Relaxed);
        }
        // Less than a block is looked for from time to time: a call for each piece would cost more than its writing.
        if queue.asleep && queue.bytes >= BLOCK_BYTES {
            queue.asleep = false;
            self.shared.work.notify_one();
        }
    }

    /// Returns whether so much waits that nothing more should be received.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.shared.full.load(Ordering::Relaxed)
    }

    /// For how long it has been full in all, ns.
    #[must_use]
    pub fn full_ns(&self) -> u64 {
        let before_ns = self.shared.full_ns.load(Ordering::Relaxed);
        if !self.is_full() {
            return before_ns;
        }
        let since_ns = self.shared.lock().full_since_ns;
        let before_ns = self.shared.full_ns.load(Ordering::Relaxed);
        before_ns + since_ns.map_or(0, |since_ns| now_ns().saturating_sub(since_ns))
    }

    /// Bytes of lines that are not written yet.
    #[must_use]
    pub fn unwritten_bytes(&self) -> usize {
        self.shared.lock().bytes
    }

    /// Returns why nothing is written any more.
    #[must_use]
    pub fn error(&self) -> Option<String> {
        if !self.shared.failed.load(Ordering::Relaxed) {
            return None;
        }
        self.shared.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Has `then` called with the length of each file when everything before has been handed to the system: a resume
    /// may begin there.
    pub fn checkpoint(&self, then: OnCheckpoint) {
        if self.thread.is_none() {
            return then(Ok(Vec::new()));
        }
        let mut queue = self.shared.lock();
        queue.jobs.push_back(Job::Checkpoint(then));
        queue.urgent = true;
        queue.asleep = false;
        self.shared.work.notify_one();
    }

    /// Leaves the thread to itself: what it writes to takes nothing, and nobody wants to wait.
    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }
}

impl Drop for Output {
    fn drop(&mut self) {
        let mut queue = self.shared.lock();
        queue.closing = true;
        self.shared.work.notify_one();
        drop(queue);
        if let Some(thread) = self.thread.take()
            && !self.abandoned.load(Ordering::Relaxed)
        {
            // What a thread that died has written is whole lines.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The next jobs, once there is enough to do; none at the end.
    fn next_jobs(&self) -> Option<VecDeque<Job>> {
        let mut queue = self.lock();
        let mut gathered = false;
        loop {
            let enough = queue.bytes >= BLOCK_BYTES || queue.urgent || gathered;
            if queue.closing || (enough && !queue.jobs.is_empty()) {
                break;
            }
            queue.asleep = true;
            let waited = self.work.wait_timeout(queue, GATHER);
            let timeout;
            (queue, timeout) = waited.unwrap_or_else(PoisonError::into_inner);
            gathered = timeout.timed_out();
        }
        (queue.asleep, queue.urgent) = (false, false);
        let jobs = std::mem::take(&mut queue.jobs);
        (!jobs.is_empty()).then_some(jobs)
    }

    /// A block is written, or given up.
    fn written(&self, mut block: Vec<u8>) {
        let mut queue = self.lock();
        queue.bytes -= block.len();
        block.clear();
        if queue.spare.len() < SPARE_MAX && block.capacity() <= 2 * BLOCK_BYTES {
            queue.spare.push(block);
        }
        if queue.bytes <= ROOM_BYTES
            && let Some(since_ns) = queue.full_since_ns.take()
        {
            self.full_ns.fetch_add(now_ns().saturating_sub(since_ns), Ordering::Relaxed);
            self.full.store(false, Ordering::Relaxed);
        }
    }

    fn fail(&self, error: &io::Error) {
        let mut first = self.error.lock().unwrap_or_else(PoisonError::into_inner);
        first.get_or_insert_with(|| error.to_string());
        self.failed.store(true, Ordering::Relaxed);
    }

    fn failure(&self) -> Option<String> {
        self.error.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The thread's work.
fn write_all(shared: &Shared, writers: &mut [Writer]) {
    while let Some(jobs) = shared.next_jobs() {
        for job in jobs {
            match job {
                Job::Lines(to, block) => {
                    // After a failure nothing more is written: a file with a hole is worse than a short one.
                    if shared.failure().is_none()
                        && let Err(error) = writers[to].write(&block)
                    {
                        shared.fail(&error);
                    }
                    shared.written(block);
                }
                Job::Checkpoint(then) => {
                    let lengths: io::Result<Vec<u64>> =
                        writers.iter_mut().map(Writer::checkpoint).collect();
                    if let Err(error) = &lengths {
                        shared.fail(error);
                    }
                    let failure = shared.failure();
                    then(match (lengths, failure) {
                        (Ok(lengths), None) => Ok(lengths),
                        (_, failure) => Err(failure.unwrap_or_default()),
                    });
                }
            }
        }
    }
    // Whoever ends without a checkpoint keeps what can be kept.
    for writer in writers {
        let _ = writer.checkpoint();
    }
}

fn file_name(slice: u32, packing: Packing) -> String {
    let ending = match packing {
        Packing::Plain => "",
        Packing::Gzip => ".gz",
        Packing::Zstd => ".zst",
    };
    format!("slice-{slice:04}.ndjson{ending}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::lines_between;
    use std::io::Read;
    use std::path::Path;
    use std::sync::mpsc;

    fn read(path: &Path, packing: Packing, from: u64, to: u64) -> Vec<String> {
        let mut lines = Vec::new();
        let mut each = |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
        lines_between(path, packing, from, to, &mut each).unwrap();
        lines
    }

    fn checkpoint(output: &Output) -> Result<Vec<u64>, String> {
        let (tell, told) = mpsc::channel();
        output.checkpoint(Box::new(move |lengths| tell.send(lengths).unwrap()));
        told.recv().unwrap()
    }

    #[test]
    fn files_go_on_where_they_were_cut() {
        for packing in [Packing::Plain, Packing::Gzip, Packing::Zstd] {
            let folder = tempfile::tempdir().unwrap();
            let path = folder.path().join("dump");
            let destination = Destination::File(path.clone());
            let open = |keep: Option<&[u64]>| {
                Output::open(&destination, DocumentFormat::Documents, packing, 0..4, keep).unwrap()
            };
            let output = open(None);
            output.write(0, b"one\ntwo\n");
            let first = checkpoint(&output).unwrap();
            output.write(3, b"three\n");
            let second = checkpoint(&output).unwrap();
            output.write(1, b"lost\n");
            drop(output);
            let output = open(Some(&second));
            output.write(2, b"four\n");
            let end = checkpoint(&output).unwrap()[0];
            assert_eq!(read(&path, packing, 0, end), ["one", "two", "three", "four"]);
            assert_eq!(read(&path, packing, first[0], second[0]), ["three"]);
            assert_eq!(std::fs::metadata(&path).unwrap().len(), end);
            let format = DocumentFormat::Documents;
            let cut = Output::open(&destination, format, packing, 0..4, Some(&[end + 1]));
            assert!(cut.is_err_and(|(_, error)| error.to_string().contains("shorter")));
        }
    }

    #[test]
    fn slices_have_files_of_their_own_in_a_folder() {
        let folder = tempfile::tempdir().unwrap();
        let destination = Destination::Folder(folder.path().join("dump"));
        let output =
            Output::open(&destination, DocumentFormat::VespaFeed, Packing::Zstd, 0..3, None)
                .unwrap();
        for slice in 0..3 {
            output.write(slice, format!("{slice}\n").as_bytes());
        }
        let ends = checkpoint(&output).unwrap();
        for (slice, path) in output.paths().iter().enumerate() {
            assert!(path.ends_with(format!("slice-000{slice}.ndjson.zst")));
            assert_eq!(read(path, Packing::Zstd, 0, ends[slice]), [slice.to_string()]);
        }
    }

    /// Nobody reads the pipe for a while: whoever writes is told that the queue is full, and never waits.
    #[test]
    fn a_pipe_that_nobody_reads_holds_nobody_up() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
        assert!(made.success());
        let (go, wait) = mpsc::channel::<()>();
        let from = path.clone();
        let reader = std::thread::spawn(move || {
            let mut pipe = std::fs::File::open(from).unwrap();
            wait.recv().unwrap();
            let mut all = Vec::new();
            pipe.read_to_end(&mut all).unwrap();
            all.len()
        });
        let destination = Destination::File(path);
        let format = DocumentFormat::Documents;
        let output = Output::open(&destination, format, Packing::Plain, 0..1, None).unwrap();
        let line = [&[b'x'; 1023][..], b"\n"].concat();
        let (mut written, began_ns) = (0, now_ns());
        while !output.is_full() {
            output.write(0, &line);
            written += line.len();
        }
        assert!((QUEUE_BYTES..QUEUE_BYTES + (2 << 20)).contains(&written), "{written}");
        std::thread::sleep(Duration::from_millis(50));
        assert!(output.is_full() && output.unwritten_bytes() > ROOM_BYTES);
        go.send(()).unwrap();
        checkpoint(&output).unwrap();
        let passed_ns = now_ns() - began_ns;
        assert!(!output.is_full());
        assert!((50_000_000..passed_ns).contains(&output.full_ns()), "{}", output.full_ns());
        drop(output);
        assert_eq!(reader.join().unwrap(), written);
    }

    #[test]
    fn a_full_disk_is_told_once_and_holds_nobody_up() {
        let destination = Destination::File(PathBuf::from("/dev/full"));
        let format = DocumentFormat::Documents;
        let output = Output::open(&destination, format, Packing::Plain, 0..1, None).unwrap();
        let line = [b'x'; 4096];
        for _ in 0..3 * QUEUE_BYTES / line.len() {
            output.write(0, &line);
        }
        let error = checkpoint(&output).unwrap_err();
        assert!(error.contains("No space left"), "{error}");
        assert_eq!(output.error(), Some(error));
        assert!(!output.is_full() && output.unwritten_bytes() == 0);
    }
}
