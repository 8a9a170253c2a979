//! Writing a synthetic corpus with all cores, in order.

use std::io::{self, Write};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use ring::digest::{Context, SHA256};

use super::{Document, Manifest, Synthetic};

/// Documents that one thread makes at a time: about 2 MB.
const CHUNK_DOCUMENTS: u64 = 4096;
/// Most threads.
const THREADS_MAX: usize = 64;

impl Synthetic {
    /// Writes all documents as NDJSON, made by `threads` threads (1 to 64), and tells size and
    /// digest. `progress` hears how many documents are written. Memory: some 6 MB a thread.
    ///
    /// # Errors
    /// The first error of `out`.
    pub fn write_ndjson(
        &self,
        out: &mut dyn Write,
        threads: usize,
        progress: &mut dyn FnMut(u64),
    ) -> io::Result<Manifest> {
        let threads = threads.clamp(1, THREADS_MAX);
        let (mut digest, mut bytes, mut written) = (Context::new(&SHA256), 0u64, 0u64);
        std::thread::scope(|scope| {
            // Thread t makes chunks t, t + threads, ...; taking them in turn keeps the order.
            let chunks: Vec<Receiver<Vec<u8>>> = (0..threads)
                .map(|t| {
                    let (send, receive) = sync_channel(2);
                    scope.spawn(move || self.make_chunks(t as u64, threads as u64, &send));
                    receive
                })
                .collect();
            for turn in chunks.iter().cycle() {
                if written == self.documents() {
                    break;
                }
                let Ok(chunk) = turn.recv() else {
                    return Err(io::Error::other(
                        "a thread that generates documents ended with a defect in plimsoll; please report it",
                    ));
                };
                digest.update(&chunk);
                out.write_all(&chunk)?;
                bytes += chunk.len() as u64;
                written = (written + CHUNK_DOCUMENTS).min(self.documents());
                progress(written);
            }
            out.flush()
        })?;
        let hex: String = digest.finish().as_ref().iter().map(|b| format!("{b:02x}")).collect();
        Ok(Manifest { ndjson_bytes: Some(bytes), ndjson_sha256: Some(hex), ..self.truth() })
    }

    fn make_chunks(&self, first: u64, step: u64, send: &SyncSender<Vec<u8>>) {
        let mut document = Document::default();
        let chunks = self.documents().div_ceil(CHUNK_DOCUMENTS);
        for chunk in (first..chunks).step_by(step as usize) {
            let start = chunk * CHUNK_DOCUMENTS;
            let end = (start + CHUNK_DOCUMENTS).min(self.documents());
            let mut text = Vec::with_capacity(((end - start) * 512) as usize);
            for number in start..end {
                self.fill(number, &mut document);
                document.to_ndjson(&mut text);
            }
            // The reader is gone when it met an error; then there is nothing left to do.
            if send.send(text).is_err() {
                return;
            }
        }
    }
}
