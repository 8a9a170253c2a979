//! A query file as bytes: plain or gzip, from any position, as often as wanted.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use flate2::read::MultiGzDecoder;

use crate::error::InputError;

/// The two bytes every gzip member begins with (RFC 1952, 2.3.1).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Most bytes that are taken from a pipe or a device; the folder for temporary files may be in memory.
const SPOOLED_MAX_BYTES: u64 = 512 << 20;

/// The bytes of a file, unpacked if it is gzip.
pub(crate) type Bytes = Box<dyn Read + Send>;

/// A file that can be read again and again from any position of its unpacked text.
#[derive(Clone, Debug)]
pub struct SourceFile {
    path: PathBuf,
    /// The content of a pipe, in a file without a name.
    spooled: Option<Arc<File>>,
    gzip: bool,
    /// Unpacked bytes. A gzip file does not give this, so it is counted when first needed.
    size_bytes: Option<u64>,
}

impl SourceFile {
    /// Looks at a file. It must be a regular file, since it is read more than once.
    ///
    /// # Errors
    /// [`InputError::Missing`], [`InputError::Io`], [`InputError::NotRegular`], and [`InputError::Empty`] for a file of 0
    /// bytes.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        let fail = |error| InputError::io(path, error);
        // Looked at before it is opened: opening a pipe waits for a program that writes into it.
        if !std::fs::metadata(path).map_err(fail)?.is_file() {
            return Err(InputError::NotRegular { path: path.to_owned() });
        }
        let file = File::open(path).map_err(fail)?;
        Self::look(path, file, None)
    }

    /// As [`SourceFile::open`], but a pipe, or stdin (`-`), is read to its end into a temporary file first, so that it can be
    /// read as often as a file.
    ///
    /// # Errors
    /// As [`SourceFile::open`], when there is no place for the temporary file, and [`InputError::Endless`].
    pub fn open_any(path: &Path) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Self::spool(Path::new("<stdin>"), io::stdin().lock());
        }
        let fail = |error| InputError::io(path, error);
        let file = File::open(path).map_err(fail)?;
        let kind = file.metadata().map_err(fail)?.file_type();
        if kind.is_file() || kind.is_dir() {
            return Self::open(path);
        }
        Self::spool(path, file)
    }

    fn spool(path: &Path, input: impl Read) -> Result<Self, InputError> {
        Self::spool_at_most(path, input, SPOOLED_MAX_BYTES)
    }

    fn spool_at_most(path: &Path, input: impl Read, most: u64) -> Result<Self, InputError> {
        let fail = |error| InputError::io(path, error);
        let mut spooled = nameless_file().map_err(fail)?;
        if io::copy(&mut input.take(most + 1), &mut spooled).map_err(fail)? > most {
            return Err(InputError::Endless { path: path.to_owned(), most_mib: most >> 20 });
        }
        spooled.rewind().map_err(fail)?;
        let kept = spooled.try_clone().map_err(fail)?;
        Self::look(path, spooled, Some(Arc::new(kept)))
    }

    fn look(path: &Path, mut file: File, spooled: Option<Arc<File>>) -> Result<Self, InputError> {
        let length = file.metadata().map_err(|error| InputError::io(path, error))?.len();
        if length == 0 {
            return Err(InputError::Empty { path: path.to_owned() });
        }
        let mut magic = [0; 2];
        let gzip = file.read_exact(&mut magic).is_ok() && magic == GZIP_MAGIC;
        Ok(Self { path: path.to_owned(), spooled, gzip, size_bytes: (!gzip).then_some(length) })
    }

    /// The path as the user named it.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Unpacked size in bytes. For gzip the whole file is unpacked once to know it.
    ///
    /// # Errors
    /// [`InputError::Io`] when the file cannot be read or is not valid gzip.
    pub fn size_bytes(&mut self) -> Result<u64, InputError> {
        if let Some(size) = self.size_bytes {
            return Ok(size);
        }
        let fail = |error| InputError::io(&self.path, error);
        let mut bytes = self.at(0).map_err(fail)?;
        let size = io::copy(&mut bytes, &mut io::sink()).map_err(fail)?;
        self.size_bytes = Some(size);
        Ok(size)
    }

    /// Returns true if the unpacked text has at most `limit` bytes; reads no more of a gzip file than that.
    ///
    /// # Errors
    /// As [`SourceFile::size_bytes`].
    pub fn fits(&self, limit: u64) -> Result<bool, InputError> {
        if let Some(size) = self.size_bytes {
            return Ok(size <= limit);
        }
        let fail = |error| InputError::io(&self.path, error);
        let mut bytes = self.at(0).map_err(fail)?.take(limit + 1);
        Ok(io::copy(&mut bytes, &mut io::sink()).map_err(fail)? <= limit)
    }

    /// The unpacked bytes from a position on. A gzip file is unpacked from its start up to there.
    pub(crate) fn at(&self, offset: u64) -> io::Result<Bytes> {
        let mut file = match &self.spooled {
            // Opened again, because readers must not share a position.
            Some(spooled) => File::open(format!("/proc/self/fd/{}", spooled.as_raw_fd()))?,
            None => File::open(&self.path)?,
        };
        if !self.gzip {
            file.seek(SeekFrom::Start(offset))?;
            return Ok(Box::new(file));
        }
        let mut unpacked = MultiGzDecoder::new(io::BufReader::new(file));
        io::copy(&mut (&mut unpacked).take(offset), &mut io::sink())?;
        Ok(Box::new(unpacked))
    }
}

/// A new file in the folder for temporary files that nothing else can open, and that is gone with its last reader.
fn nameless_file() -> io::Result<File> {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    loop {
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!(".plimsoll-pipe-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        let mut options = File::options();
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        match options.read(true).write(true).create_new(true).open(&path) {
            Ok(file) => return std::fs::remove_file(&path).map(|()| file),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
}

/// Unpacks a stream that cannot be read twice, if it begins like gzip.
///
/// # Errors
/// The error of the stream when its first two bytes are read.
pub fn unpack_stream(mut stream: impl Read + Send + 'static) -> io::Result<Bytes> {
    let mut head = Vec::with_capacity(2);
    (&mut stream).take(2).read_to_end(&mut head)?;
    let gzip = head == GZIP_MAGIC;
    let whole = io::Cursor::new(head).chain(stream);
    Ok(if gzip {
        Box::new(MultiGzDecoder::new(io::BufReader::new(whole)))
    } else {
        Box::new(whole)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_without_an_end_is_refused_after_a_limit() {
        let path = Path::new("endless");
        let error = SourceFile::spool_at_most(path, io::repeat(b'a'), 1 << 20).unwrap_err();
        assert_eq!(
            error.to_string(),
            "endless: over 1 MiB of a pipe or device, and it has not ended; write the requests to a file, which may be of \
             any size"
        );
        let short = SourceFile::spool_at_most(path, io::repeat(b'a').take(1 << 20), 1 << 20);
        assert_eq!(short.unwrap().size_bytes().unwrap(), 1 << 20);
    }
}
