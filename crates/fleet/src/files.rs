//! Files of a run: the coordinator hands them out by the hash of their content, agents check what they get.

use crate::message::FileEntry;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_core::system_error::with_advice;
use ring::digest::{Context, SHA256, digest};
use std::fmt;
use std::fs::File;
use std::io::{self, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use thiserror::Error;

/// Bytes of a piece.
pub const PIECE: usize = 1 << 20;
/// Bytes of the longest name of a file, on Linux.
const NAME_MAX: usize = 255;

/// A file that an agent cannot have.
#[derive(Debug, Error)]
pub enum FileError {
    /// The operating system refused something.
    #[error("{path}: {}", with_advice(source))]
    System {
        /// The file.
        path: String,
        /// Reason.
        source: io::Error,
    },
    /// The content is not what it was.
    #[error(
        "{name}: its content is not the one that was announced; it was changed while the run was prepared, start the run again"
    )]
    Changed {
        /// The file.
        name: String,
    },
    /// A name that leads elsewhere.
    #[error("'{name}' is not the name of a file; the coordinator is not one of plimsoll")]
    Name {
        /// The name.
        name: String,
    },
}

fn system(path: &Path) -> impl Fn(io::Error) -> FileError + '_ {
    |source| FileError::System { path: path.display().to_string(), source }
}

/// Returns the SHA-256 of a file, hexadecimal, and its length in bytes.
///
/// # Errors
/// When it cannot be read.
pub fn sha256_of(path: &Path) -> io::Result<(String, u64)> {
    let mut file = File::open(path)?;
    let (mut context, mut bytes) = (Context::new(&SHA256), 0);
    let mut buffer = vec![0; 1 << 18];
    loop {
        let count = file.read(&mut buffer)?;
        if count == 0 {
            break;
        }
        context.update(&buffer[..count]);
        bytes += count as u64;
    }
    Ok((hex(context.finish().as_ref()), bytes))
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Files that a coordinator hands out: those of its run, and no others.
#[derive(Clone, Debug, Default)]
pub struct Outgoing {
    files: Vec<(FileEntry, Source)>,
}

/// Place of the bytes of a file.
#[derive(Clone)]
enum Source {
    Path(PathBuf),
    Text(String),
}

/// A text is a secret.
impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Path(path) => path.fmt(f),
            Self::Text(_) => f.write_str("text"),
        }
    }
}

impl Outgoing {
    /// Adds a file to a folder of the agents, and returns its name there. Agents do not keep a secret one after the run.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn add(&mut self, folder: u32, path: &Path, is_secret: bool) -> Result<String, FileError> {
        let (sha256, bytes) = sha256_of(path).map_err(system(path))?;
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("file").to_owned();
        let entry = FileEntry { folder, name: name.clone(), sha256, bytes, is_secret };
        self.files.push((entry, Source::Path(path.to_owned())));
        Ok(name)
    }

    /// Adds a file that holds a secret text and is nowhere on this machine.
    pub fn add_secret(&mut self, folder: u32, name: &str, text: String) {
        let sha256 = hex(digest(&SHA256, text.as_bytes()).as_ref());
        let bytes = text.len() as u64;
        let entry = FileEntry { folder, name: name.to_owned(), sha256, bytes, is_secret: true };
        self.files.push((entry, Source::Text(text)));
    }

    /// The files as a plan names them.
    #[must_use]
    pub fn entries(&self) -> Vec<FileEntry> {
        self.files.iter().map(|(entry, _)| entry.clone()).collect()
    }

    /// A piece, base64; empty behind the end, and for a file that is not of this run.
    #[must_use]
    pub fn piece(&self, sha256: &str, offset: u64) -> String {
        let Some((_, source)) = self.files.iter().find(|(entry, _)| entry.sha256 == sha256) else {
            return String::new();
        };
        let path = match source {
            Source::Path(path) => path,
            Source::Text(text) => {
                let rest =
                    usize::try_from(offset).ok().and_then(|from| text.as_bytes().get(from..));
                let rest = rest.unwrap_or_default();
                return STANDARD.encode(&rest[..rest.len().min(PIECE)]);
            }
        };
        let mut buffer = vec![0; PIECE];
        let read = File::open(path).and_then(|file| fill(&file, &mut buffer, offset));
        // A file that cannot be read any more is found by its hash.
        STANDARD.encode(&buffer[..read.unwrap_or(0)])
    }
}

fn fill(file: &File, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
    let mut filled = 0;
    while filled < buffer.len() {
        match file.read_at(&mut buffer[filled..], offset + filled as u64)? {
            0 => break,
            count => filled += count,
        }
    }
    Ok(filled)
}

/// A file that is being received.
pub struct Incoming {
    entry: FileEntry,
    place: PathBuf,
    beside: PathBuf,
    file: File,
    context: Context,
    offset: u64,
}

/// Returns the place of a file below an agent's folder of files.
///
/// # Errors
/// When its name or hash leads out of the folder.
pub fn place_of(folder: &Path, entry: &FileEntry) -> Result<PathBuf, FileError> {
    let is_hash = entry.sha256.len() == 64 && entry.sha256.bytes().all(|b| b.is_ascii_hexdigit());
    let is_name = !matches!(entry.name.as_str(), "" | "." | "..")
        && !entry.name.contains(['/', '\0'])
        && entry.name.len() <= NAME_MAX;
    if !is_hash || !is_name {
        return Err(FileError::Name { name: entry.name.chars().take(80).collect() });
    }
    Ok(folder.join(&entry.sha256).join(&entry.name))
}

/// Puts files that were received where the words of a plan look for them, below a new folder.
///
/// # Errors
/// When the folder cannot be written.
pub fn lay_out(run: &Path, files: &[(FileEntry, PathBuf)]) -> Result<(), FileError> {
    for (entry, kept) in files {
        let folder = run.join(entry.folder.to_string());
        std::fs::create_dir_all(&folder).map_err(system(&folder))?;
        let place = folder.join(&entry.name);
        // A copy where links cannot be made.
        std::fs::hard_link(kept, &place)
            .or_else(|_| std::fs::copy(kept, &place).map(drop))
            .map_err(system(&place))?;
    }
    Ok(())
}

impl Incoming {
    /// Begins to receive a file, unless the folder has it already: then its place is returned.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub fn begin(folder: &Path, entry: &FileEntry) -> Result<Result<PathBuf, Self>, FileError> {
        let place = place_of(folder, entry)?;
        if sha256_of(&place).is_ok_and(|found| found == (entry.sha256.clone(), entry.bytes)) {
            return Ok(Ok(place));
        }
        let own = place.parent().unwrap_or(folder);
        std::fs::create_dir_all(own).map_err(system(own))?;
        // Agents of one machine may share the folder. The name of the file may be as long as names can be.
        let beside = own.join(format!(".{}.part", std::process::id()));
        let file = File::create(&beside).map_err(system(&beside))?;
        Ok(Err(Self {
            entry: entry.clone(),
            place,
            beside,
            file,
            context: Context::new(&SHA256),
            offset: 0,
        }))
    }

    /// First byte of the piece that is needed next.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Keeps a piece, and returns the place of the file if it is whole.
    ///
    /// # Errors
    /// When it cannot be written, or is not what was announced.
    pub fn piece(&mut self, offset: u64, data: &str) -> Result<Option<PathBuf>, FileError> {
        if offset != self.offset {
            return Ok(None);
        }
        let changed = || FileError::Changed { name: self.entry.name.clone() };
        let bytes = STANDARD.decode(data).map_err(|_| changed())?;
        if self.offset + bytes.len() as u64 > self.entry.bytes
            || (bytes.is_empty() && self.offset < self.entry.bytes)
        {
            return Err(changed());
        }
        self.context.update(&bytes);
        self.file.write_all(&bytes).map_err(system(&self.beside))?;
        self.offset += bytes.len() as u64;
        if self.offset < self.entry.bytes {
            return Ok(None);
        }
        if hex(self.context.clone().finish().as_ref()) != self.entry.sha256 {
            return Err(changed());
        }
        std::fs::rename(&self.beside, &self.place).map_err(system(&self.place))?;
        Ok(Some(self.place.clone()))
    }
}

impl Drop for Incoming {
    fn drop(&mut self) {
        // Of a file that is whole it is gone already.
        let _ = std::fs::remove_file(&self.beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_arrives_in_pieces_and_is_not_fetched_twice() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("q.txt");
        let text: Vec<u8> = (0..PIECE * 2 + 17).map(|index| (index * 31 % 251) as u8).collect();
        std::fs::write(&source, &text).unwrap();
        let mut outgoing = Outgoing::default();
        assert_eq!(outgoing.add(0, &source, false).unwrap(), "q.txt");
        let entry = outgoing.entries().remove(0);
        let folder = dir.path().join("files");
        let Err(mut incoming) = Incoming::begin(&folder, &entry).unwrap() else { panic!() };
        let place = loop {
            let offset = incoming.offset();
            let piece = outgoing.piece(&entry.sha256, offset);
            assert_eq!(incoming.piece(offset + 1, &piece).unwrap(), None, "another piece");
            if let Some(place) = incoming.piece(offset, &piece).unwrap() {
                break place;
            }
        };
        drop(incoming);
        assert_eq!(std::fs::read(&place).unwrap(), text);
        assert_eq!(Incoming::begin(&folder, &entry).unwrap().ok(), Some(place.clone()));
        assert_eq!(std::fs::read_dir(place.parent().unwrap()).unwrap().count(), 1);
        assert!(outgoing.piece(&"0".repeat(64), 0).is_empty(), "a file that is not of this run");
        outgoing.add_secret(1, "header", "A: secret".to_owned());
        let entry = outgoing.entries().remove(1);
        assert!(entry.is_secret && !format!("{outgoing:?}").contains("secret\""));
        let Err(mut incoming) = Incoming::begin(&folder, &entry).unwrap() else { panic!() };
        let place = incoming.piece(0, &outgoing.piece(&entry.sha256, 0)).unwrap().unwrap();
        assert_eq!(std::fs::read_to_string(place).unwrap(), "A: secret");
    }

    #[test]
    fn a_file_that_changed_is_not_kept() {
        let dir = tempfile::tempdir().unwrap();
        let source = dir.path().join("q.txt");
        std::fs::write(&source, "/one\n").unwrap();
        let mut outgoing = Outgoing::default();
        outgoing.add(0, &source, false).unwrap();
        let entry = outgoing.entries().remove(0);
        for content in ["/two\n", "/o", "/one\n/two\n"] {
            std::fs::write(&source, content).unwrap();
            let Err(mut incoming) = Incoming::begin(dir.path(), &entry).unwrap() else { panic!() };
            let error = loop {
                let offset = incoming.offset();
                match incoming.piece(offset, &outgoing.piece(&entry.sha256, offset)) {
                    Ok(done) => assert_eq!(done, None),
                    Err(error) => break error,
                }
            };
            assert!(error.to_string().contains("start the run again"), "{error}");
        }
        assert!(!place_of(dir.path(), &entry).unwrap().exists());
    }

    /// Agents can keep every file that a coordinator can read.
    #[test]
    fn a_file_with_the_longest_name_arrives() {
        let dir = tempfile::tempdir().unwrap();
        let name = "q".repeat(NAME_MAX);
        let source = dir.path().join(&name);
        std::fs::write(&source, "/one\n").unwrap();
        let mut outgoing = Outgoing::default();
        assert_eq!(outgoing.add(0, &source, false).unwrap(), name);
        let entry = outgoing.entries().remove(0);
        let folder = dir.path().join("files");
        let Err(mut incoming) = Incoming::begin(&folder, &entry).unwrap() else { panic!() };
        let place = incoming.piece(0, &outgoing.piece(&entry.sha256, 0)).unwrap().unwrap();
        let run = dir.path().join("run");
        lay_out(&run, &[(entry, place)]).unwrap();
        assert_eq!(std::fs::read_to_string(run.join("0").join(name)).unwrap(), "/one\n");
    }

    #[test]
    fn a_name_that_leads_elsewhere_is_rejected() {
        let good = FileEntry {
            folder: 0,
            name: "q".to_owned(),
            sha256: "a".repeat(64),
            bytes: 1,
            is_secret: false,
        };
        assert!(place_of(Path::new("/files"), &good).is_ok());
        let long = "q".repeat(NAME_MAX + 1);
        for name in ["..", ".", "", "a/b", "/etc/passwd", "a\0b", long.as_str()] {
            let entry = FileEntry { name: name.to_owned(), ..good.clone() };
            assert!(place_of(Path::new("/files"), &entry).is_err(), "{name:?}");
        }
        for sha256 in ["../../etc", "", "zz"] {
            let entry = FileEntry { sha256: sha256.to_owned(), ..good.clone() };
            assert!(place_of(Path::new("/files"), &entry).is_err(), "{sha256:?}");
        }
    }
}
