use super::super::row_text::{ROW, RowText, Scan};
use super::column::Columns;
use super::queue::Refused;
use super::row_set::RowSet;
use super::{ScanQueue, ShardScan, open, refused};
use plimsoll_core::clock::now_ns;
use plimsoll_scan::Metric;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;
use tantivy::collector::DocSetCollector;
use tantivy::query::Query;
use tantivy::schema::{FAST, Schema};
use tantivy::{Index, IndexWriter, Searcher, TantivyDocument};

const SECOND: u64 = 1_000_000_000;

fn memory(values: &[(u64, &str, &str)], threads: usize) -> ShardScan {
    let columns = Arc::new(Columns::default());
    for (row, field, text) in values {
        columns.put(*row, field, text);
    }
    ShardScan { columns, queue: Arc::new(ScanQueue::new(10, threads)), limits: None }
}

/// An index whose documents have these row numbers, in two segments.
fn index(rows: &[u64]) -> Searcher {
    let mut schema = Schema::builder();
    let row = schema.add_u64_field(ROW, FAST);
    let index = Index::create_in_ram(schema.build());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
    writer.set_merge_policy(Box::new(tantivy::merge_policy::NoMergePolicy));
    for half in rows.chunks(rows.len().div_ceil(2).max(1)) {
        for number in half {
            let mut document = TantivyDocument::new();
            document.add_u64(row, *number);
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
    }
    index.reader().unwrap().searcher()
}

/// The rows of the documents that a query finds.
fn rows(searcher: &Searcher, query: &dyn Query) -> Vec<u64> {
    let mut rows: Vec<u64> = searcher
        .search(query, &DocSetCollector)
        .unwrap()
        .into_iter()
        .map(|at| {
            let reader = searcher.segment_reader(at.segment_ord);
            reader.fast_fields().u64(ROW).unwrap().first(at.doc_id).unwrap()
        })
        .collect();
    rows.sort_unstable();
    rows
}

#[test]
fn a_scan_finds_substrings_of_one_field_across_words() {
    let scan = memory(
        &[
            (3, "body", "Make Amerika great again"),
            (4, "title", "make america great again"),
            (7, "body", "nothing to see"),
            (7, "body", "MAKE AMERICA GRATE again"),
            (9, "body", ""),
        ],
        1,
    );
    let searcher = index(&[9, 7, 4, 3]);
    let find = |metric, distance| {
        let query = scan.query("body", "america great", metric, distance).unwrap();
        rows(&searcher, query.as_ref())
    };
    assert_eq!(find(Metric::Edits, 0), [0_u64; 0]);
    // One letter left out of the pattern is "america grat", with which the other row begins.
    assert_eq!(find(Metric::Edits, 1), [3, 7]);
    assert_eq!(find(Metric::Edits, 2), [3, 7]);
    assert_eq!(find(Metric::Hamming, 1), [3]);
    assert_eq!(find(Metric::Hamming, 3), [3, 7]);
    assert_eq!(find(Metric::Edits, 99), [3, 7, 9]);
    let query = scan.query("body", "see", Metric::Edits, 0).unwrap();
    assert_eq!(rows(&searcher, query.as_ref()), [7]);
    let query = scan.query("nowhere", "see", Metric::Edits, 0).unwrap();
    assert_eq!(rows(&searcher, query.as_ref()), [0_u64; 0]);
    let refused = scan.query("body", "", Metric::Edits, 0).unwrap_err();
    assert!(refused.starts_with("field [body]: the pattern is empty"), "{refused}");
}

#[test]
fn rows_that_the_index_does_not_show_are_not_found() {
    let scan = memory(&[(1, "t", "old version"), (2, "t", "new version")], 1);
    let query = scan.query("t", "version", Metric::Edits, 0).unwrap();
    assert_eq!(rows(&index(&[2]), query.as_ref()), [2]);
}

#[test]
fn an_edit_of_a_character_is_one_whatever_its_bytes() {
    let scan = memory(
        &[(0, "t", "the café"), (1, "t", "a – b – c"), (2, "t", "a \u{4e00} b \u{4e01} c")],
        1,
    );
    let searcher = index(&[0, 1, 2]);
    let find = |pattern: &str, distance| {
        rows(&searcher, scan.query("t", pattern, Metric::Edits, distance).unwrap().as_ref())
    };
    assert_eq!(find("cafe", 0), [0_u64; 0]);
    assert_eq!(find("cafe", 1), [0]);
    assert_eq!(find("CAFé", 0), [0]);
    assert_eq!(find("a - b", 1), [1, 2]);
    assert_eq!(find("a – b – c", 0), [1]);
}

#[test]
fn characters_that_share_a_byte_are_told_apart() {
    // Sixty-four characters beyond Latin-1 have 32 bytes among them, so some share one.
    let letters: Vec<String> =
        (0x4e00..0x4e40).filter_map(char::from_u32).map(String::from).collect();
    let values: Vec<(u64, &str, &str)> =
        letters.iter().zip(0..).map(|(text, row)| (row, "t", text.as_str())).collect();
    let scan = memory(&values, 1);
    let all: Vec<u64> = (0..64).collect();
    let searcher = index(&all);
    for metric in [Metric::Edits, Metric::Hamming] {
        for (number, letter) in letters.iter().enumerate() {
            let query = scan.query("t", letter, metric, 0).unwrap();
            assert_eq!(rows(&searcher, query.as_ref()), [number as u64], "{metric:?}");
        }
    }
}

#[test]
fn threads_share_a_scan_without_changing_it() {
    let texts: Vec<String> = (0..3000_u64)
        .map(|row| if row % 7 == 0 { "needle".repeat(1500) } else { "haystack ".repeat(1000) })
        .collect();
    let values: Vec<(u64, &str, &str)> =
        texts.iter().zip(0..).map(|(text, row)| (row, "t", text.as_str())).collect();
    let searcher = index(&(0..3000).collect::<Vec<_>>());
    let expected: Vec<u64> = (0..3000).filter(|row| row % 7 == 0).collect();
    for threads in [1, 3] {
        let scan = memory(&values, threads);
        assert!(scan.columns.snapshot("t").len() > 4, "several chunks to share");
        let query = scan.query("t", "needel", Metric::Edits, 2).unwrap();
        assert_eq!(rows(&searcher, query.as_ref()), expected, "{threads} threads");
    }
}

#[test]
fn a_snapshot_does_not_see_later_values() {
    let columns = Columns::default();
    columns.put(0, "t", "one");
    let before = columns.snapshot("t");
    columns.put(1, "t", "two");
    assert_eq!(before[0].corpus().unwrap().documents(), 1);
    assert_eq!(columns.snapshot("t")[0].corpus().unwrap().documents(), 2);
}

#[test]
fn scans_run_one_at_a_time_in_the_order_they_came() {
    let queue = Arc::new(ScanQueue::new(10, 1));
    let order = Arc::new(Mutex::new(Vec::new()));
    let running = Arc::new(AtomicBool::new(false));
    let never = AtomicBool::new(false);
    let first = queue.enter(now_ns() + 60 * SECOND, &never).unwrap();
    let mut threads = Vec::new();
    for number in 0..5 {
        let (queue, order, running) = (queue.clone(), order.clone(), running.clone());
        let before = queue.len();
        let others = queue.clone();
        threads.push(thread::spawn(move || {
            let _turn = queue.enter(now_ns() + 60 * SECOND, &AtomicBool::new(false)).unwrap();
            assert!(!running.swap(true, Ordering::SeqCst), "two at a time");
            order.lock().unwrap().push(number);
            thread::sleep(Duration::from_millis(2));
            running.store(false, Ordering::SeqCst);
        }));
        while others.len() == before {
            thread::yield_now();
        }
    }
    drop(first);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
    assert_eq!(queue.len(), 0);
}

#[test]
fn a_full_queue_a_deadline_and_nobody_waiting_refuse() {
    let queue = ScanQueue::new(0, 1);
    let never = AtomicBool::new(false);
    let turn = queue.enter(now_ns() + 60 * SECOND, &never).unwrap();
    let refused = queue.enter(now_ns() + 60 * SECOND, &never).unwrap_err();
    assert_eq!(refused, Refused::Full { limit: 0 });
    drop(turn);
    let queue = ScanQueue::new(1, 1);
    let turn = queue.enter(now_ns() + 60 * SECOND, &never).unwrap();
    let before = now_ns();
    let refused = queue.enter(before + SECOND / 20, &never).unwrap_err();
    assert_eq!(refused, Refused::Late);
    assert!(now_ns() >= before + SECOND / 20);
    let refused = queue.enter(now_ns() + 60 * SECOND, &AtomicBool::new(true)).unwrap_err();
    assert_eq!(refused, Refused::Abandoned);
    assert_eq!(queue.len(), 1, "those that were refused left the queue");
    drop(turn);
    assert!(queue.enter(now_ns() + 60 * SECOND, &never).is_ok());
}

#[test]
fn a_scan_ends_at_its_deadline_and_says_so() {
    let scan = memory(&[(0, "t", "text")], 1);
    let searcher = index(&[0]);
    for (deadline_ns, abandoned, told) in
        [(0, false, "not done in time"), (u64::MAX, true, "abandoned")]
    {
        let scan = scan.within(deadline_ns, Arc::new(AtomicBool::new(abandoned)));
        let query = scan.query("t", "text", Metric::Edits, 0).unwrap();
        let error = searcher.search(query.as_ref(), &DocSetCollector).unwrap_err();
        assert!(error.to_string().contains(told), "{error}");
        assert!(refused(&error).unwrap().to_string().contains(told));
    }
    // With a deadline that passes in the middle, the turn is given back.
    assert_eq!(scan.queue.len(), 0);
}

#[test]
fn rows_that_come_again_are_not_kept_twice() {
    let (scan, mut rows) = open(Arc::new(ScanQueue::new(1, 1)));
    for row in 0..3 {
        rows.put(row, "a", "first value").unwrap();
        rows.put(row, "a", "second value").unwrap();
    }
    for row in 0..2 {
        rows.put(row, "a", "first value").unwrap();
    }
    let chunks = scan.columns.snapshot("a");
    assert_eq!(chunks[0].corpus().unwrap().documents(), 6);
}

#[test]
fn sets_of_rows() {
    let mut set = RowSet::default();
    assert!(set.is_empty() && !set.contains(u64::MAX));
    set.insert(130);
    let mut other = RowSet::default();
    other.insert(0);
    other.add(&set);
    assert!(other.contains(0) && other.contains(130) && !other.contains(129));
}
