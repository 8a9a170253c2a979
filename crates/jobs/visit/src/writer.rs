//! What a visit writes to: files, plain or packed, or standard output.

use super::item::Entry;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use zstd::stream::write::Encoder as ZstdEncoder;

/// Bytes gathered before the system is asked to write.
const BUFFER_BYTES: usize = 256 << 10;

/// Format of a document's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentFormat {
    /// `{"id":...,"fields":...}`, as `vespa visit` prints them.
    Documents,
    /// `{"put":...,"fields":...}`, as `vespa feed` reads them.
    VespaFeed,
}

impl DocumentFormat {
    /// Appends one line.
    pub fn line(self, entry: Entry, id_json: &[u8], rest: &[u8], out: &mut Vec<u8>) {
        let key: &[u8] = match (entry, self) {
            (Entry::Remove, _) => b"{\"remove\":",
            (Entry::Put, Self::Documents) => b"{\"id\":",
            (Entry::Put, Self::VespaFeed) => b"{\"put\":",
        };
        out.extend_from_slice(key);
        out.extend_from_slice(id_json);
        out.extend_from_slice(rest);
        out.push(b'\n');
    }
}

/// Compression of files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Packing {
    /// Not at all.
    Plain,
    /// gzip (RFC 1952); a new member begins wherever a resume may begin.
    Gzip,
    /// Zstandard (RFC 8878); a new frame likewise.
    Zstd,
}

impl Packing {
    /// Returns what a file's name says: `.gz`, `.zst`, or nothing.
    #[must_use]
    pub fn of_name(path: &Path) -> Self {
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("gz") => Self::Gzip,
            Some("zst") => Self::Zstd,
            _ => Self::Plain,
        }
    }
}

/// A file that counts what has been handed to the system.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

type Buffered = BufWriter<Counted>;

enum Sink {
    Stdout(io::Stdout),
    Plain(Buffered),
    /// A packed file between two members or frames.
    Between(Packing, Buffered),
    Gzip(GzEncoder<Buffered>),
    Zstd(Box<ZstdEncoder<'static, Buffered>>),
    /// Left behind by an error.
    Broken,
}

/// One destination.
pub struct Writer {
    sink: Sink,
}

impl Writer {
    /// Standard output.
    #[must_use]
    pub fn stdout() -> Self {
        Self { sink: Sink::Stdout(io::stdout()) }
    }

    /// A file that begins anew, or goes on behind its first `keep_bytes`.
    ///
    /// # Errors
    /// When it cannot be opened, or is shorter than that.
    pub fn file(path: &Path, packing: Packing, keep_bytes: Option<u64>) -> io::Result<Self> {
        let file = match keep_bytes {
            None => File::create(path)?,
            Some(bytes) => {
                let file = OpenOptions::new().append(true).open(path)?;
                if file.metadata()?.len() < bytes {
                    return Err(io::Error::new(
                        io::ErrorKind::InvalidData,
                        "it is shorter than when the visit was interrupted",
                    ));
                }
                file.set_len(bytes)?;
                file
            }
        };
        let counted = Counted { file, bytes: keep_bytes.unwrap_or(0) };
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, counted);
        let sink = match packing {
            Packing::Plain => Sink::Plain(buffered),
            packed => Sink::Between(packed, buffered),
        };
        Ok(Self { sink })
    }

    /// Writes whole lines.
    ///
    /// # Errors
    /// When the system refuses, for instance because the disk is full.
    pub fn write(&mut self, lines: &[u8]) -> io::Result<()> {
        if lines.is_empty() {
            return Ok(());
        }
        if matches!(self.sink, Sink::Between(..)) {
            self.sink = match std::mem::replace(&mut self.sink, Sink::Broken) {
                Sink::Between(Packing::Zstd, file) => {
                    Sink::Zstd(Box::new(ZstdEncoder::new(file, zstd::DEFAULT_COMPRESSION_LEVEL)?))
                }
                Sink::Between(_, file) => {
                    Sink::Gzip(GzEncoder::new(file, flate2::Compression::default()))
                }
                other => other,
            };
        }
        match &mut self.sink {
            Sink::Stdout(stdout) => stdout.write_all(lines),
            Sink::Plain(file) => file.write_all(lines),
            Sink::Gzip(file) => file.write_all(lines),
            Sink::Zstd(file) => file.write_all(lines),
            Sink::Between(..) | Sink::Broken => {
                Err(io::Error::other("an earlier write has failed"))
            }
        }
    }

    /// Hands everything to the system and returns how long the file is: a resume may begin there.
    ///
    /// # Errors
    /// As [`write`](Writer::write).
    pub fn checkpoint(&mut self) -> io::Result<u64> {
        self.sink = match std::mem::replace(&mut self.sink, Sink::Broken) {
            Sink::Gzip(file) => Sink::Between(Packing::Gzip, file.finish()?),
            Sink::Zstd(file) => Sink::Between(Packing::Zstd, file.finish()?),
            other => other,
        };
        match &mut self.sink {
            Sink::Plain(file) | Sink::Between(_, file) => {
                file.flush()?;
                Ok(file.get_ref().bytes)
            }
            Sink::Stdout(stdout) => stdout.flush().map(|()| 0),
            _ => Ok(0),
        }
    }
}

/// Calls `each` with every whole line of a file that a visit has written, from byte `from` to byte `to`.
///
/// # Errors
/// When the file cannot be read or unpacked.
pub fn lines_between(
    path: &Path,
    packing: Packing,
    from: u64,
    to: u64,
    each: &mut dyn FnMut(&[u8]),
) -> io::Result<()> {
    use io::{BufRead, Read, Seek};
    if to <= from {
        return Ok(());
    }
    let mut file = File::open(path)?;
    file.seek(io::SeekFrom::Start(from))?;
    let part = io::BufReader::new(file.take(to.saturating_sub(from)));
    let mut lines: Box<dyn BufRead> = match packing {
        Packing::Plain => Box::new(part),
        Packing::Gzip => Box::new(io::BufReader::new(flate2::bufread::MultiGzDecoder::new(part))),
        Packing::Zstd => {
            Box::new(io::BufReader::new(zstd::stream::read::Decoder::with_buffer(part)?))
        }
    };
    let mut line = Vec::new();
    while lines.read_until(b'\n', &mut line)? > 0 {
        if line.ends_with(b"\n") {
            each(&line[..line.len() - 1]);
        }
        line.clear();
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_documents_or_operations() {
        let line = |format: DocumentFormat, entry| {
            let mut out = Vec::new();
            format.line(entry, b"\"id:a:b::c\"", b",\"fields\":{}}", &mut out);
            String::from_utf8(out).unwrap()
        };
        let documents = DocumentFormat::Documents;
        assert_eq!(line(documents, Entry::Put), "{\"id\":\"id:a:b::c\",\"fields\":{}}\n");
        assert!(line(DocumentFormat::VespaFeed, Entry::Put).starts_with("{\"put\":"));
        assert!(line(documents, Entry::Remove).starts_with("{\"remove\":"));
    }
}
