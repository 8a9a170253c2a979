//! Files that mean harm: every command that reads a file ends with a message, in bounded memory, whatever the file is.

use crate::machine::Share;
use crate::server::closed_port;
use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_hostile::process::{Ended, run, unprintable};
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::Command;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// Longest time for one command.
const LIMIT: Duration = Duration::from_secs(60);
/// Most memory of one command, bytes. A body of 64 MiB and rows of the largest size fit.
const MEMORY_MAX: u64 = 1 << 30;

/// Writes all files; their names.
fn make(place: &Path) -> Vec<&'static str> {
    let write = |name: &str, bytes: &[u8]| std::fs::write(place.join(name), bytes).unwrap();
    let packed = |name: &str, piece: &[u8], times: usize| {
        let mut encoder =
            GzEncoder::new(File::create(place.join(name)).unwrap(), Compression::best());
        (0..times).for_each(|_| encoder.write_all(piece).unwrap());
        encoder.finish().unwrap();
    };
    // 2^40 bytes, of which the disk has none.
    File::create(place.join("sparse")).unwrap().set_len(1 << 40).unwrap();
    let beginning = File::create(place.join("sparse-behind-a-line")).unwrap();
    (&beginning).write_all(b"{\"a\":1}\n/b\n").unwrap();
    beginning.set_len(1 << 40).unwrap();
    write("line-without-end", &vec![b'a'; 40 << 20]);
    write("quote-without-end", &[&b"{\"body\":\""[..], &vec![b'a'; 40 << 20]].concat());
    packed("bomb.gz", &vec![b'a'; 16 << 20], 64);
    packed("bomb-of-lines.gz", &b"/a\n".repeat(2_000_000), 1);
    let mut cut = std::fs::read(place.join("bomb.gz")).unwrap();
    cut.truncate(1_000);
    write("cut.gz", &cut);
    let deep =
        |open: &str, close: &str| format!("{}1{}", open.repeat(200_000), close.repeat(200_000));
    write("deep-arrays", format!("{{\"a\":{}}}\n", deep("[", "]")).as_bytes());
    write("deep-objects", format!("{}\n", deep("{\"a\":", "}")).as_bytes());
    write("deep.toml", format!("a = {}\n", deep("[", "]")).as_bytes());
    write("deep-tables.toml", format!("[{}a]\n", "a.".repeat(100_000)).as_bytes());
    write("deep.xml", deep("<a>", "</a>").as_bytes());
    let number = "9".repeat(100_000);
    write(
        "numbers",
        format!("{{\"schema\":\"plimsoll/1\",\"a\":{number},\"b\":1e999999,\"c\":-{number}.5}}\n")
            .as_bytes(),
    );
    write("bytes", &(0..=255u8).cycle().take(100_000).collect::<Vec<_>>());
    write("steers", "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}/a\r\n\u{9b}31m,b\n".as_bytes());
    write("empty", b"");
    write("zip", b"PK\x03\x04\x14\0\0\0\0\0../../../etc/passwd");
    std::fs::create_dir(place.join("folder")).unwrap();
    std::os::unix::fs::symlink("loop", place.join("loop")).unwrap();
    std::os::unix::fs::symlink("/dev/zero", place.join("zeros")).unwrap();
    let mut names = vec![
        "sparse",
        "sparse-behind-a-line",
        "line-without-end",
        "quote-without-end",
        "bomb.gz",
        "bomb-of-lines.gz",
        "cut.gz",
        "deep-arrays",
        "deep-objects",
        "deep.toml",
        "deep-tables.toml",
        "deep.xml",
        "numbers",
        "bytes",
        "steers",
        "empty",
        "zip",
        "folder",
        "loop",
        "zeros",
    ];
    names.push("no-such-file");
    names
}

/// Command lines with FILE and PORT.
const COMMANDS: [&str; 14] = [
    "load http://127.0.0.1:PORT/ --queries FILE --clients 1 --requests 3 --timeout 1s --quiet --no-record",
    "load http://127.0.0.1:PORT/ --queries FILE --post --clients 1 --requests 3 --timeout 1s --quiet --no-record",
    "load http://127.0.0.1:PORT/{{a}} --rows FILE --clients 1 --requests 3 --timeout 1s --quiet --no-record",
    "load http://127.0.0.1:PORT/ --body @FILE --clients 1 --requests 3 --timeout 1s --quiet --no-record",
    "load http://127.0.0.1:PORT/ --header @FILE --clients 1 --requests 3 --timeout 1s --quiet --no-record",
    "load https://127.0.0.1:PORT/ --cacert FILE --clients 1 --requests 3 --timeout 1s --quiet --no-record",
    "fbench -n 1 -s 1 -c 100 -q FILE 127.0.0.1 PORT",
    "feed http://127.0.0.1:PORT FILE --deadline 1s --retries 0 --quiet --no-record",
    "feed FILE --dry-run --quiet --no-record",
    "run FILE",
    "import FILE --no-record --quiet",
    "report FILE",
    "compare FILE FILE",
    "split-file 2 FILE",
];

fn faults(ended: &Ended) -> Vec<String> {
    let mut faults = Vec::new();
    if ended.was_killed {
        faults.push(format!("did not end within {LIMIT:?}"));
    } else if !matches!(ended.code, Some(0..=9 | 64)) {
        faults.push(format!("ended with {:?}", ended.code));
    }
    if ended.peak_bytes > MEMORY_MAX {
        faults.push(format!("{} MiB of memory", ended.peak_bytes >> 20));
    }
    if ended.output_bytes > 100_000 {
        faults.push(format!("{} bytes of output", ended.output_bytes));
    }
    faults.extend(unprintable(&ended.output).map(|text| format!("not printable: {text}")));
    faults
}

#[test]
fn every_command_survives_every_file() {
    let _share = Share::busy();
    let place = tempfile::tempdir().unwrap();
    let names = make(place.path());
    let port = closed_port();
    let cases: Vec<(usize, usize)> = (0..names.len())
        .flat_map(|name| (0..COMMANDS.len()).map(move |line| (name, line)))
        .collect();
    let (next, found) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while let Some((name, line)) = cases.get(next.fetch_add(1, Ordering::SeqCst)) {
                    let own = tempfile::tempdir().unwrap();
                    let file = place.path().join(names[*name]).display().to_string();
                    let filled = COMMANDS[*line].replace("FILE", &file).replace("PORT", &port);
                    let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
                    command.args(filled.split(' ')).current_dir(own.path());
                    let ended = run(command, LIMIT).unwrap();
                    let own = faults(&ended);
                    if !own.is_empty() {
                        let shown: String = ended.output.chars().take(1_000).collect();
                        found.lock().unwrap().push(format!("{filled}: {own:?}\n{shown}"));
                    }
                }
            });
        }
    });
    let found = found.into_inner().unwrap();
    assert!(found.is_empty(), "{} faults\n{}", found.len(), found.join("\n\n"));
}

/// A pipe without a writer: a file that is read more than once is not a pipe.
#[test]
fn a_pipe_without_a_writer_is_refused_where_a_file_must_be() {
    let place = tempfile::tempdir().unwrap();
    let pipe = place.path().join("pipe");
    rustix::fs::mknodat(
        rustix::fs::CWD,
        &pipe,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
    for line in ["split-file 2 PIPE", "report PIPE", "compare PIPE PIPE", "run PIPE"] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_plimsoll"));
        let filled = line.replace("PIPE", &pipe.display().to_string());
        command.args(filled.split(' ')).current_dir(place.path());
        let ended = run(command, LIMIT).unwrap();
        assert_eq!(ended.code, Some(64), "{line}: {}", ended.output);
    }
}
