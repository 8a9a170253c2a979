//! Destinations: files, plain or packed, and standard output.

use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::sync::Arc;
use zstd::stream::write::Encoder as ZstdEncoder;

/// Bytes gathered before the system is asked to write.
const BUFFER_BYTES: usize = 256 << 10;
/// The same where there may be thousands of files, and what comes has been gathered.
const SMALL_BUFFER_BYTES: usize = 8 << 10;

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
    file: Arc<File>,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = (&*self.file).write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        (&*self.file).flush()
    }
}

type Buffered = BufWriter<Counted>;

enum Sink {
    Stdout(io::Stdout),
    Plain(Buffered),
    /// A packed file between two members or frames.
    Between(Packing, Buffered),
    Gzip(Box<GzEncoder<Buffered>>),
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

    /// A file that begins again, or goes on behind its first `keep_bytes`.
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
        let counted = Counted { file: Arc::new(file), bytes: keep_bytes.unwrap_or(0) };
        let buffered = BufWriter::with_capacity(BUFFER_BYTES, counted);
        let sink = match packing {
            Packing::Plain => Sink::Plain(buffered),
            packed => Sink::Between(packed, buffered),
        };
        Ok(Self { sink })
    }

    /// One of many plain files, from its beginning.
    #[must_use]
    pub fn one_of_many(file: File) -> Self {
        let counted = Counted { file: Arc::new(file), bytes: 0 };
        Self { sink: Sink::Plain(BufWriter::with_capacity(SMALL_BUFFER_BYTES, counted)) }
    }

    /// The file behind it, if it is one.
    pub(super) fn system_file(&self) -> Option<Arc<File>> {
        match &self.sink {
            Sink::Plain(file) | Sink::Between(_, file) => Some(file.get_ref().file.clone()),
            Sink::Gzip(file) => Some(file.get_ref().get_ref().file.clone()),
            Sink::Zstd(file) => Some(file.get_ref().get_ref().file.clone()),
            Sink::Stdout(_) | Sink::Broken => None,
        }
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
                    Sink::Gzip(Box::new(GzEncoder::new(file, flate2::Compression::default())))
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
