//! Output of an engine, kept up to a limit.

use anyhow::Result;
use plimsoll_core::system_error::with_advice;
use plimsoll_job::usage::usage;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

/// Number of checks for the end of the streams, and the pauses between them.
const DRAIN_LOOKS: u32 = 200;
const DRAIN_PAUSE: Duration = Duration::from_millis(5);
/// Most that is kept of what an engine says, bytes.
const KEPT_BYTES: u64 = 16 << 20;
/// Part of its end that is remembered, to say why an engine ended, bytes.
const TAIL_BYTES: usize = 4096;
const CUT: &[u8] = b"\n(plimsoll keeps no more than this)\n";

/// A file that takes what an engine says, from one or several streams.
#[derive(Clone)]
pub struct EngineLog {
    path: PathBuf,
    inner: Arc<Mutex<Inner>>,
    readers: Arc<Mutex<Vec<JoinHandle<()>>>>,
}

struct Inner {
    file: File,
    room: u64,
    tail: Vec<u8>,
}

impl EngineLog {
    /// Begins it again.
    ///
    /// # Errors
    /// When the file cannot be made, or another process keeps its log in it.
    pub fn create(path: &Path) -> Result<Self> {
        let shown = path.display();
        let wrong = |error| usage(format!("--log {shown}: {}", with_advice(&error)));
        let file = OpenOptions::new().create(true).truncate(false).write(true).open(path);
        let file = file.map_err(wrong)?;
        // The log of an engine that runs is not taken from it, nor its data, beside which the log lies.
        if let Err(TryLockError::WouldBlock) = file.try_lock() {
            return Err(usage(format!(
                "{shown} is the log of an engine that still runs; stop it, or name another --data or --log"
            )));
        }
        file.set_len(0).map_err(wrong)?;
        let inner = Inner { file, room: KEPT_BYTES, tail: Vec::new() };
        Ok(Self {
            path: path.to_owned(),
            inner: Arc::new(Mutex::new(inner)),
            readers: Arc::default(),
        })
    }

    /// Returns its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes bytes.
    pub fn add(&self, bytes: &[u8]) {
        let mut inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        inner.tail.extend_from_slice(bytes);
        let surplus = inner.tail.len().saturating_sub(TAIL_BYTES);
        inner.tail.drain(..surplus);
        let taken = bytes.len().min(inner.room as usize);
        if inner.room == 0 {
            return;
        }
        inner.room -= taken as u64;
        // An error of the log does not end the measurement.
        let _ = inner.file.write_all(&bytes[..taken]);
        if inner.room == 0 {
            let _ = inner.file.write_all(CUT);
        }
    }

    /// Takes everything that a stream brings, on a thread of its own that ends with the stream.
    pub fn follow(&self, mut stream: impl Read + Send + 'static) {
        let own = self.clone();
        let reader = std::thread::spawn(move || {
            let mut buffer = [0; 8192];
            while let Ok(read @ 1..) = stream.read(&mut buffer) {
                own.add(&buffer[..read]);
            }
        });
        self.wait_for(reader);
    }

    /// Has [`EngineLog::drain`] wait for another thread that reads what the engine says.
    pub fn wait_for(&self, reader: JoinHandle<()>) {
        self.readers.lock().unwrap_or_else(PoisonError::into_inner).push(reader);
    }

    /// Waits until all streams have ended, after whoever wrote to them has; not for long, since a process that
    /// outlives the one that was started may keep one open.
    pub fn drain(&self) {
        let mut readers = self.readers.lock().unwrap_or_else(PoisonError::into_inner);
        for _ in 0..DRAIN_LOOKS {
            readers.retain(|reader| !reader.is_finished());
            if readers.is_empty() {
                break;
            }
            std::thread::sleep(DRAIN_PAUSE);
        }
    }

    /// The last line that reports trouble, else the last line at all.
    pub fn last_words(&self) -> String {
        let inner = self.inner.lock().unwrap_or_else(PoisonError::into_inner);
        let text = String::from_utf8_lossy(&inner.tail);
        let mut lines = text.lines().rev().map(str::trim).filter(|line| !line.is_empty());
        let is_trouble =
            |line: &&str| ["FATAL", "PANIC", "ERROR", "[FTL]"].iter().any(|w| line.contains(w));
        let found = lines.clone().find(is_trouble).or_else(|| lines.next());
        found.map_or_else(|| "it said nothing".to_owned(), str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_has_an_end_and_its_last_words() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("engine.log");
        let log = EngineLog::create(&path).unwrap();
        assert_eq!(log.last_words(), "it said nothing");
        log.follow(&b"LOG:  one\nFATAL:  no room\nLOG:  stopped\n\n"[..]);
        log.drain();
        assert_eq!(log.last_words(), "FATAL:  no room");
        let noise = vec![b'x'; 1 << 20];
        (0..20).for_each(|_| log.add(&noise));
        let kept = std::fs::read(&path).unwrap();
        assert_eq!(kept.len() as u64, KEPT_BYTES + CUT.len() as u64);
        assert!(kept.ends_with(CUT));
        assert!(EngineLog::create(dir.path()).is_err());
    }

    #[test]
    fn a_log_that_is_being_kept_is_nobody_elses() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("engine.log");
        let log = EngineLog::create(&path).unwrap();
        log.add(b"said\n");
        let told = EngineLog::create(&path).map(drop).unwrap_err().to_string();
        assert!(told.contains("of an engine that still runs"), "{told}");
        assert_eq!(std::fs::read(&path).unwrap(), b"said\n");
        drop(log);
        // A process that another test starts at this moment holds the lock until it runs its own program.
        let again = || {
            EngineLog::create(&path).ok().or_else(|| {
                std::thread::sleep(std::time::Duration::from_millis(20));
                None
            })
        };
        drop((0..250).find_map(|_| again()).unwrap());
        assert_eq!(std::fs::read(&path).unwrap(), b"", "it begins again");
    }
}
