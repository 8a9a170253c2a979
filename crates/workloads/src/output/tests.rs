use super::queue::ROOM_BYTES;
use super::*;
use plimsoll_core::clock::now_ns;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::mpsc::Sender;

const NO_MARKS: &[u8] = b"";

fn plain(path: &Path) -> Writer {
    Writer::file(path, Packing::Plain, None).unwrap()
}

fn output(paths: &[PathBuf]) -> Output {
    Output::to(paths.iter().map(|path| plain(path)).collect(), Box::new(|_| {})).unwrap()
}

/// A pipe whose reader takes as many bytes as it is told to, and the rest once nobody tells it any more.
fn pipe(path: &Path) -> (Sender<usize>, JoinHandle<Vec<u8>>) {
    assert!(std::process::Command::new("mkfifo").arg(path).status().unwrap().success());
    let (allow, allowed) = channel::<usize>();
    let path = path.to_owned();
    let reader = std::thread::spawn(move || {
        let mut pipe = fs::File::open(path).unwrap();
        let mut all = Vec::new();
        for bytes in allowed {
            let before = all.len();
            all.resize(before + bytes, 0);
            pipe.read_exact(&mut all[before..]).unwrap();
        }
        pipe.read_to_end(&mut all).unwrap();
        all
    });
    (allow, reader)
}

/// Waits until the other thread has come so far.
fn until(what: &str, is_so: impl Fn() -> bool) {
    let began = now_ns();
    while !is_so() {
        assert!(now_ns() - began < 60_000_000_000, "{what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn every_destination_has_its_bytes_in_their_order() {
    let folder = tempfile::tempdir().unwrap();
    let paths: Vec<_> = (0..7).map(|i| folder.path().join(i.to_string())).collect();
    let output = output(&paths);
    let mut expected = vec![Vec::new(); paths.len()];
    for i in 0..20_000usize {
        let (to, text) = (i * i % paths.len(), format!("{i} {}\n", "x".repeat(i % 400)));
        output.write(to, text.as_bytes(), NO_MARKS);
        expected[to].extend_from_slice(text.as_bytes());
    }
    assert_eq!(output.finish(&mut || true), Some(Ok(())));
    for (path, expected) in paths.iter().zip(&expected) {
        assert!(fs::read(path).unwrap() == *expected, "{}", path.display());
    }
}

#[test]
fn marks_are_seen_once_what_they_belong_to_is_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let own = seen.clone();
    let on_marks = Box::new(move |marks: &[u8]| own.lock().unwrap().extend_from_slice(marks));
    let output = Output::to(vec![plain(&path), plain(Path::new("/dev/full"))], on_marks).unwrap();
    for i in 0..100u8 {
        output.write(0, &[b'x'; 10_000], &[i]);
        // Longer than what is gathered before the system is asked, so that the error comes at once.
        output.write(1, &[b'x'; 300_000], &[200]);
    }
    assert!(matches!(output.finish(&mut || true), Some(Err(_))));
    assert_eq!(*seen.lock().unwrap(), (0..100).collect::<Vec<u8>>());
    assert_eq!(fs::metadata(&path).unwrap().len(), 1_000_000);
}

/// The levels of the queue, one after the other, against a reader that takes what it is allowed to.
#[test]
fn asking_ends_before_receiving_does_and_both_go_on_with_room() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let (allow, reader) = pipe(&path);
    let output = output(std::slice::from_ref(&path));
    let piece = [b'x'; 1 << 16];
    let mut written = 0;
    while output.may_ask() {
        output.write(0, &piece, NO_MARKS);
        written += piece.len();
    }
    // A pipe holds a little, and the writer has some in its hands.
    assert!((ASK_BYTES..ASK_BYTES + (2 << 20)).contains(&written), "{written}");
    assert!(!output.is_full(), "replies in flight still find room");
    assert_eq!(output.waits().held_ns, 0);
    while !output.is_full() {
        output.write(0, &piece, NO_MARKS);
        written += piece.len();
    }
    assert!((QUEUE_BYTES..QUEUE_BYTES + (2 << 20)).contains(&written), "{written}");
    assert!(output.unwritten_bytes() <= QUEUE_BYTES + piece.len());
    std::thread::sleep(Duration::from_millis(50));
    let waits = output.waits();
    assert!(waits.held_ns >= 50_000_000 && waits.limited_ns >= waits.held_ns, "{waits:?}");
    // A little room is not enough: both would begin and end with every block.
    allow.send(QUEUE_BYTES - ASK_BYTES).unwrap();
    until("the reader takes some", || output.unwritten_bytes() < QUEUE_BYTES - (2 << 20));
    assert!(output.is_full() && !output.may_ask());
    drop(allow);
    until("there is room", || !output.is_full());
    assert!(output.may_ask() && output.unwritten_bytes() <= ROOM_BYTES);
    let waits = output.waits();
    std::thread::sleep(Duration::from_millis(5));
    assert_eq!(output.waits(), waits, "time does not count while there is room");
    assert_eq!(output.finish(&mut || true), Some(Ok(())));
    drop(output);
    assert_eq!(reader.join().unwrap().len(), written);
}

#[test]
fn a_thread_that_may_wait_waits_for_room_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let (allow, reader) = pipe(&path);
    let output = Arc::new(output(std::slice::from_ref(&path)));
    let own = output.clone();
    let writer = std::thread::spawn(move || {
        (0..4 * ASK_BYTES / (1 << 20)).for_each(|_| own.write_when_room(0, &[b'y'; 1 << 20]));
    });
    until("the queue is tight", || !output.may_ask());
    assert!(!output.is_full() && !writer.is_finished());
    drop(allow);
    writer.join().unwrap();
    assert!(!output.is_full());
    assert_eq!(output.finish(&mut || true), Some(Ok(())));
    drop(output);
    assert_eq!(reader.join().unwrap().len(), 4 * ASK_BYTES);
}

#[test]
fn a_full_disk_is_told_once_and_holds_nobody_up() {
    let output = output(&[PathBuf::from("/dev/full")]);
    for _ in 0..3 * QUEUE_BYTES / 4096 {
        output.write(0, &[b'x'; 4096], NO_MARKS);
    }
    let error = output.finish(&mut || true).unwrap().unwrap_err();
    assert!(error.contains("No space left"), "{error}");
    assert_eq!((output.error(), output.errors().len()), (Some(error), 1));
    assert!(!output.is_full() && output.may_ask() && output.unwritten_bytes() == 0);
}

#[test]
fn a_destination_that_fails_takes_no_other_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let good = folder.path().join("good");
    let output = output(&[PathBuf::from("/dev/full"), good.clone()]);
    for _ in 0..100 {
        output.write(0, &[b'x'; 8192], NO_MARKS);
        output.write(1, &[b'y'; 8192], NO_MARKS);
    }
    assert!(matches!(output.finish(&mut || true), Some(Err(_))));
    let failed: Vec<usize> = output.errors().iter().map(|(to, _)| *to).collect();
    assert_eq!(failed, [0]);
    assert_eq!(fs::metadata(&good).unwrap().len(), 100 * 8192);
}

#[test]
fn what_nobody_finished_is_written_at_the_end_all_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out.zst");
    let writer = Writer::file(&path, Packing::Zstd, None).unwrap();
    let output = Output::to(vec![writer], Box::new(|_| {})).unwrap();
    output.write(0, b"one\ntwo\n", NO_MARKS);
    drop(output);
    let mut lines = Vec::new();
    let each = &mut |line: &[u8]| lines.push(String::from_utf8(line.to_vec()).unwrap());
    lines_between(&path, Packing::Zstd, 0, u64::MAX, each).unwrap();
    assert_eq!(lines, ["one", "two"]);
}

#[test]
fn an_output_that_takes_nothing_is_waited_for_as_long_as_wanted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let (allow, reader) = pipe(&path);
    let output = output(std::slice::from_ref(&path));
    output.write(0, &[b'x'; 1 << 20], NO_MARKS);
    let mut looks = 0;
    let ended = output.finish(&mut || {
        looks += 1;
        looks < 3
    });
    assert_eq!((ended, looks), (None, 3));
    assert!(output.unwritten_bytes() > 0);
    // Its thread is not waited for either: this would take for ever.
    drop(output);
    drop(allow);
    reader.join().unwrap();
}
