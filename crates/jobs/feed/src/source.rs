//! Files of operations: plain, gzip or Zstandard by their first bytes, or standard input.

use plimsoll_workloads::error::InputError;
use std::fs::File;
use std::io::{self, BufReader, Chain, Cursor, Read};
use std::path::{Path, PathBuf};

/// Bytes that are taken from a file at once.
const READ_BYTES: usize = 256 << 10;

/// The beginning of a gzip file (RFC 1952).
const GZIP: &[u8] = &[0x1f, 0x8b];
/// The beginning of a Zstandard frame (RFC 8878).
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// One file of the input, open and not yet read.
pub struct Source {
    path: PathBuf,
    file: Option<File>,
}

/// First bytes of the file, and the rest of it.
type Whole = Chain<Cursor<Vec<u8>>, Box<dyn Read + Send>>;

impl Source {
    /// Opens a file; `-` is standard input.
    ///
    /// # Errors
    /// When there is no such file, or it cannot be read.
    pub fn open(path: &Path) -> Result<Self, InputError> {
        if path == Path::new("-") {
            return Ok(Self { path: PathBuf::from("<stdin>"), file: None });
        }
        let failed = |source: io::Error| match source.kind() {
            io::ErrorKind::NotFound => InputError::Missing { path: path.to_owned() },
            _ => InputError::Io { path: path.to_owned(), source },
        };
        let file = File::open(path).map_err(failed)?;
        if file.metadata().map_err(failed)?.is_dir() {
            return Err(failed(io::ErrorKind::IsADirectory.into()));
        }
        Ok(Self { path: path.to_owned(), file: Some(file) })
    }

    /// Name of the file in messages.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.display().to_string()
    }

    /// Its length, bytes, where it has one; packed files count as they are.
    #[must_use]
    pub fn length(&self) -> Option<u64> {
        let metadata = self.file.as_ref()?.metadata().ok()?;
        metadata.is_file().then_some(metadata.len())
    }

    /// Begins to read it, unpacked.
    pub(super) fn read(&mut self) -> io::Result<Unpacked> {
        let mut file: Box<dyn Read + Send> = match self.file.take() {
            Some(file) => Box::new(file),
            None => Box::new(io::stdin()),
        };
        let mut first = vec![0; 4];
        let mut known = 0;
        while known < first.len() {
            match file.read(&mut first[known..]) {
                Ok(0) => break,
                Ok(read) => known += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        first.truncate(known);
        let packed = (first.starts_with(GZIP), first.starts_with(ZSTD));
        let whole: Whole = Cursor::new(first).chain(file);
        Ok(match packed {
            (true, _) => {
                let buffered = BufReader::with_capacity(READ_BYTES, whole);
                Unpacked::Gzip(Box::new(flate2::bufread::MultiGzDecoder::new(buffered)))
            }
            (_, true) => {
                let buffered = BufReader::with_capacity(READ_BYTES, whole);
                Unpacked::Zstd(zstd::stream::read::Decoder::with_buffer(buffered)?)
            }
            _ => Unpacked::Plain(whole),
        })
    }
}

/// The bytes of a file, unpacked where it was packed.
pub(super) enum Unpacked {
    Plain(Whole),
    Gzip(Box<flate2::bufread::MultiGzDecoder<BufReader<Whole>>>),
    Zstd(zstd::stream::read::Decoder<'static, BufReader<Whole>>),
}

impl Unpacked {
    /// Appends the bytes that one read brings, at most [`READ_BYTES`]. Returns false at the end of the file.
    pub fn append_to(&mut self, out: &mut Vec<u8>) -> io::Result<bool> {
        let before = out.len();
        out.resize(before + READ_BYTES, 0);
        let read = loop {
            let space = &mut out[before..];
            let read = match self {
                Unpacked::Plain(plain) => plain.read(space),
                Unpacked::Gzip(packed) => packed.read(space),
                Unpacked::Zstd(packed) => packed.read(space),
            };
            match read {
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                other => break other,
            }
        };
        out.truncate(before + read.as_ref().copied().unwrap_or(0));
        Ok(read? > 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn what_a_file_holds_is_told_by_its_first_bytes() {
        let folder = tempfile::tempdir().unwrap();
        let text = b"{\"put\":\"id:a:b::c\"}\n".repeat(20_000);
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text[..1000]).unwrap();
        let mut packed = gzip.finish().unwrap();
        // Two members, as `cat a.gz b.gz` makes them.
        let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        gzip.write_all(&text[1000..]).unwrap();
        packed.extend(gzip.finish().unwrap());
        for content in [text.clone(), packed, zstd::encode_all(&text[..], 1).unwrap()] {
            let path = folder.path().join("no-name-tells");
            std::fs::write(&path, content).unwrap();
            let mut unpacked = Source::open(&path).unwrap().read().unwrap();
            let mut all = Vec::new();
            while unpacked.append_to(&mut all).unwrap() {}
            assert!(all == text);
        }
        assert!(Source::open(&folder.path().join("none")).is_err());
        assert!(Source::open(folder.path()).is_err());
        std::fs::write(folder.path().join("short"), b"{").unwrap();
        let mut short = Source::open(&folder.path().join("short")).unwrap().read().unwrap();
        let mut all = Vec::new();
        while short.append_to(&mut all).unwrap() {}
        assert_eq!(all, b"{");
    }
}
