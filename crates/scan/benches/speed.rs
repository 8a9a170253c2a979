//! How fast a scan is, beside a copy of the same bytes: `cargo bench -p plimsoll-scan -- [--kernel NAME]
//! [--megabytes N] [--quick]`. Pin it to one processor, for instance with `taskset -c 1`.
//!
//! Each cell is the median of five rounds, each of which copies the whole text, too.

#![expect(clippy::print_stdout, reason = "a measurement is there to be read")]
#![expect(clippy::disallowed_methods, reason = "the crate has no clock; its measurement needs one")]

use std::io::Read;
use std::time::Instant;

use plimsoll_scan::{Case, Corpus, Found, Kernel, Metric, Pattern};

static PACKED: &[u8] = include_bytes!("wordnet.tsv.zst");
const ROUNDS: usize = 5;

/// Phrases of growing length, some with errors: most texts have few matches, as queries do.
const PATTERNS: [&str; 7] = [
    "quark",
    "democacy",
    "gavernments",
    "application comp",
    "make america great ag",
    "adminestration of presiden",
    "president of the united statez",
];

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let value = |name: &str| {
        let at = arguments.iter().position(|argument| argument == name)?;
        arguments.get(at + 1).cloned()
    };
    let megabytes = value("--megabytes").and_then(|text| text.parse().ok()).unwrap_or(320);
    let quick = arguments.iter().any(|argument| argument == "--quick");
    let wanted = value("--kernel").map(|name| name.to_lowercase());
    let kernel = Kernel::available()
        .into_iter()
        .rev()
        .find(|one| wanted.as_ref().is_none_or(|name| format!("{one:?}").to_lowercase() == *name))
        .expect("a kernel that this processor has");
    let (text, ends) = corpus(megabytes << 20);
    let corpus = Corpus::new(&text, &ends).expect("documents in order");
    let mut copy = vec![1_u8; text.len()];
    println!(
        "kernel {kernel:?}, {} MB of text in {} documents; GB/s (share of the copy's), rows, documents found",
        text.len() >> 20,
        ends.len()
    );
    for metric in [Metric::Edits, Metric::Hamming] {
        for distance in if quick { vec![0, 2, 4] } else { vec![0, 1, 2, 3, 4, 6] } {
            for pattern in PATTERNS {
                let case = Case::IgnoreAscii;
                let pattern =
                    Pattern::new(pattern.as_bytes(), metric, distance, case).expect("a pattern");
                cell(&pattern, metric, kernel, &corpus, &mut copy);
            }
        }
    }
}

fn cell(pattern: &Pattern, metric: Metric, kernel: Kernel, corpus: &Corpus<'_>, copy: &mut [u8]) {
    let (mut scans, mut copies) = (Vec::new(), Vec::new());
    let (mut rows, mut count) = (0, 0);
    for _ in 0..ROUNDS {
        let start = Instant::now();
        copy.copy_from_slice(corpus.text());
        std::hint::black_box(&copy);
        copies.push(start.elapsed().as_secs_f64());
        let start = Instant::now();
        let mut found = Found::new(corpus.documents());
        let mut scan = pattern.scan().with_kernel(kernel);
        scan.documents(corpus, &mut found);
        scans.push(start.elapsed().as_secs_f64());
        (rows, count) = (scan.rows(), found.count());
    }
    let speed = |mut seconds: Vec<f64>| {
        seconds.sort_by(f64::total_cmp);
        corpus.text().len() as f64 / seconds[ROUNDS / 2] / 1e9
    };
    let (scan, copy) = (speed(scans), speed(copies));
    println!(
        "{metric:?} k={} m={:2}: {scan:6.2} GB/s, copy {copy:6.2} GB/s ({:4.0} %), rows {rows:2}, found {count}",
        pattern.distance(),
        pattern.bytes().len(),
        100.0 * scan / copy,
    );
}

/// The bundled corpus over and over, in documents of about 400 bytes.
fn corpus(length: usize) -> (Vec<u8>, Vec<u64>) {
    let mut once = String::new();
    let mut corpus = zstd::Decoder::new(PACKED).expect("the bundled corpus");
    corpus.read_to_string(&mut once).expect("the bundled corpus");
    let mut text = Vec::with_capacity(length);
    let (mut ends, mut start) = (Vec::new(), 0);
    'full: loop {
        for line in once.lines().skip(1) {
            if text.len() + line.len() > length {
                break 'full;
            }
            text.extend_from_slice(line.as_bytes());
            if text.len() - start > 400 {
                start = text.len();
                ends.push(start as u64);
            }
        }
    }
    if ends.last() != Some(&(text.len() as u64)) {
        ends.push(text.len() as u64);
    }
    (text, ends)
}
