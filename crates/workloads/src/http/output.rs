//! vespa-fbench's output file: what each query got, in the original's form.

use plimsoll_core::recorder::Times;
use plimsoll_wire::http1::Reply;
use std::fs::File;
use std::io::{BufWriter, Write};

const DELIMITER: &[u8] = b"[--xxyyzz--FBENCH_MAGIC_DELIMITER--zzyyxx--]\n";
const PREFIX: &[u8] = b"X-Yahoo-Vespa-";

/// One client's output file.
pub struct OutputFile {
    file: BufWriter<File>,
    /// The line of the query file that the request in flight came from.
    url: Vec<u8>,
    /// The first error; later ones follow from it.
    error: Option<std::io::Error>,
}

impl OutputFile {
    /// Writes to `file` from its beginning.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn new(file: File) -> std::io::Result<Self> {
        let mut file = BufWriter::with_capacity(1 << 18, file);
        file.write_all(DELIMITER)?;
        Ok(Self { file, url: Vec::new(), error: None })
    }

    /// Remembers the request that is being sent, from its rendered bytes; `append` is not shown.
    pub fn begin(&mut self, request: &[u8], append: &[u8]) {
        let target = super::target_of(request);
        self.url.clear();
        self.url.extend_from_slice(target.strip_suffix(append).unwrap_or(target));
    }

    /// Writes a complete reply.
    pub fn reply(&mut self, reply: &Reply<'_>, ok: bool, times: Times) {
        if let Err(error) = self.write(Some(reply), ok, times) {
            self.error.get_or_insert(error);
        }
    }

    /// Writes a request that got no complete reply.
    pub fn lost(&mut self, times: Times) {
        if let Err(error) = self.write(None, false, times) {
            self.error.get_or_insert(error);
        }
    }

    /// Writes what is still in memory.
    ///
    /// # Errors
    /// The first error that there was; what came after it may be missing from the file.
    pub fn finish(&mut self) -> std::io::Result<()> {
        let flushed = self.file.flush();
        self.error.take().map_or(flushed, Err)
    }

    fn write(&mut self, reply: Option<&Reply<'_>>, ok: bool, times: Times) -> std::io::Result<()> {
        let file = &mut self.file;
        file.write_all(b"URL: ")?;
        file.write_all(&self.url)?;
        file.write_all(b"\n\n")?;
        if let Some(reply) = reply {
            // Names are compared as they are spelt, like the original does.
            for (name, value) in reply.headers() {
                if let Some(rest) = name.strip_prefix(PREFIX) {
                    file.write_all(rest)?;
                    file.write_all(b": ")?;
                    file.write_all(value)?;
                    file.write_all(b"\n")?;
                }
            }
            file.write_all(b"\r\n")?;
            file.write_all(reply.body)?;
        }
        file.write_all(b"\n")?;
        if ok {
            let seconds = times.done_ns.saturating_sub(times.sent_ns) as f64 / 1e9;
            writeln!(file, "TIME USED: {seconds:.4} s")?;
        } else {
            file.write_all(b"FBENCH: URL FETCH FAILED!\n")?;
        }
        file.write_all(DELIMITER)
    }
}
