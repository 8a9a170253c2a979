//! Reading back what was kept.

use super::folder::{Folder, Part};
use super::record::{HEAD_BYTES, Record, head, record};
use crate::application::initialize;
use crate::routing::Routing;
use crate::sql::{self, Database, replicate};
use crate::tables::Partition;
use plimsoll_disk::{Mode, Stream};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::Path;

/// The first bytes of a log.
pub(crate) const LOG_MAGIC: &[u8; 8] = b"plimvot2";
/// The first bytes of a snapshot.
pub(crate) const SNAPSHOT_MAGIC: &[u8; 8] = b"plimsnp1";
/// Bytes read at a time.
const READ_BYTES: usize = 1 << 20;

/// The contents of the folder.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Found {
    /// No file has this number yet, nor a higher one.
    pub(crate) next: u64,
    /// Bytes of the logs that were read.
    pub(crate) log_bytes: u64,
    /// Bytes at the end of the last log, up to zeros, that were no whole record and are cut off.
    pub(crate) torn_bytes: u64,
}

/// Reads everything that was kept into empty partitions.
///
/// # Errors
/// One line that says what cannot be read or is damaged.
pub(crate) fn replay(
    folder: &Folder,
    partitions: &mut [Partition],
    routing: &Routing,
) -> Result<Found, String> {
    let list = |part| folder.numbers(part).map_err(|error| format!("--data: {error}"));
    let snapshot = list(Part::Snapshot)?.pop();
    let first = snapshot.unwrap_or(0);
    let logs: Vec<u64> = list(Part::Log)?.into_iter().filter(|log| *log >= first).collect();
    let next = snapshot.max(logs.last().copied()).map_or(1, |last| last + 1);
    let mut found = Found { next, ..Found::default() };
    let mut database = Database { partitions, routing };
    if let Some(number) = snapshot {
        let path = folder.file(Part::Snapshot, number);
        let read = read(folder, &path, SNAPSHOT_MAGIC, &mut database)?;
        if !read.has_ended || read.used_bytes != read.sound_bytes {
            return Err(damaged(&path, read.sound_bytes));
        }
    }
    for number in &logs {
        let path = folder.file(Part::Log, *number);
        let read = read(folder, &path, LOG_MAGIC, &mut database)?;
        found.log_bytes += read.sound_bytes;
        let torn_bytes = read.used_bytes - read.sound_bytes;
        if Some(number) == logs.last() {
            found.torn_bytes = torn_bytes;
            settle(folder, &path, read.sound_bytes)
                .map_err(|error| format!("{}: {error}", path.display()))?;
        } else if torn_bytes > 0 {
            return Err(damaged(&path, read.sound_bytes));
        }
    }
    Ok(found)
}

/// Brings what was read of the last log to the disk, and cuts the rest off, before another log follows. The process that wrote it may
/// have been killed before its sync, or the sync may have failed: then the system shows bytes that it will never write.
/// Written once more, they are.
fn settle(folder: &Folder, path: &Path, length: u64) -> io::Result<()> {
    let file = folder.open_file(path, Mode::Change)?;
    let (mut at, mut bytes) = (0, vec![0; READ_BYTES]);
    while at < length {
        let count = (length - at).min(READ_BYTES as u64) as usize;
        file.read_exact_at(&mut bytes[..count], at)?;
        file.write_all_at(&bytes[..count], at)?;
        at += count as u64;
    }
    file.set_length(length)?;
    file.sync_all()
}

fn damaged(path: &Path, at: u64) -> String {
    format!(
        "{}: damaged at byte {at}; what was acknowledged cannot be read back. Restore the file, or take \
         another --data",
        path.display()
    )
}

/// Readable part of a file.
struct FileRead {
    /// Up to the zeros that a log was filled with ahead, if they follow.
    used_bytes: u64,
    /// Up to the end of the last sound record.
    sound_bytes: u64,
    /// The record that ends a snapshot was there.
    has_ended: bool,
}

fn read(
    folder: &Folder,
    path: &Path,
    magic: &[u8; 8],
    database: &mut Database<'_>,
) -> Result<FileRead, String> {
    let failed = |error: io::Error| format!("{}: {error}", path.display());
    let file = folder.open_file(path, Mode::Read).map_err(failed)?;
    let mut input = BufReader::with_capacity(READ_BYTES, Stream::new(file));
    let mut start = [0; 8];
    if !fill(&mut input, &mut start).map_err(failed)? {
        // A log that was made and not begun: nothing was acknowledged.
        return Ok(FileRead { used_bytes: 0, sound_bytes: 0, has_ended: false });
    }
    let begun = start.iter().zip(magic).take_while(|(own, wanted)| own == wanted).count();
    if begun < magic.len() && used_bytes(&mut input, 0).map_err(failed)? <= begun as u64 {
        // One that was filled ahead and not begun either, or of whose first bytes a power cut has left some.
        return Ok(FileRead { used_bytes: 0, sound_bytes: 0, has_ended: false });
    }
    if start != *magic {
        return Err(format!("{}: no file of this server, or of another version", path.display()));
    }
    let begin = magic.len() as u64;
    let mut done = FileRead { used_bytes: begin, sound_bytes: begin, has_ended: false };
    let (mut body, mut start) = (Vec::new(), [0; HEAD_BYTES]);
    while fill(&mut input, &mut start).map_err(failed)? {
        let Some((length, sum)) = head(start) else { break };
        body.resize(length, 0);
        if !fill(&mut input, &mut body).map_err(failed)? {
            break;
        }
        let Some(record) = record(&body, sum) else { break };
        done.has_ended = record == Record::End;
        apply(record, database).map_err(|why| {
            format!(
                "{}: the record at byte {} cannot be run: {why}",
                path.display(),
                done.sound_bytes
            )
        })?;
        done.sound_bytes += (HEAD_BYTES + length) as u64;
    }
    done.used_bytes = used_bytes(&mut input, done.sound_bytes).map_err(failed)?;
    Ok(done)
}

/// Beginning of the zeros at the end of a file, not before a given position.
fn used_bytes(input: &mut BufReader<Stream>, from: u64) -> io::Result<u64> {
    let (mut at, mut used) = (input.seek(SeekFrom::Start(from))?, from);
    loop {
        let bytes = input.fill_buf()?;
        if bytes.is_empty() {
            return Ok(used);
        }
        if let Some(last) = bytes.iter().rposition(|byte| *byte != 0) {
            used = at + last as u64 + 1;
        }
        let length = bytes.len();
        at += length as u64;
        input.consume(length);
    }
}

/// Fills a buffer; false when the file ends before.
fn fill(input: &mut impl Read, buffer: &mut [u8]) -> io::Result<bool> {
    match input.read_exact(buffer) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

fn apply(record: Record, database: &mut Database<'_>) -> Result<(), String> {
    match record {
        Record::Votes(votes) => {
            for vote in votes {
                let place = database.routing.of_long(vote.phone);
                database.partitions[place].insert(vote);
            }
        }
        Record::Greeting(dialect, greeting) => {
            let place = database.routing.of_text(&dialect);
            database.partitions[place].greetings_mut().insert(dialect, greeting);
        }
        Record::Initialize(most, names) => {
            initialize(most, &names, database).map_err(|error| error.to_string())?;
        }
        Record::Statements(text, params) => {
            let ran = sql::parse(&text)
                .and_then(|statements| sql::run(&statements, &params, database, u64::MAX));
            ran.map_err(|error| error.to_string())?;
        }
        Record::Contestant(number, name) => {
            replicate(database, |tables| tables.set_contestant(number, name));
        }
        Record::AreaCode(code, state) => {
            replicate(database, |tables| tables.set_area_code(code, state));
        }
        Record::End => {}
    }
    Ok(())
}
