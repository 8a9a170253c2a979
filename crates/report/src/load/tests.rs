use super::*;
use crate::folder::{FAILURES, RunFolder};
use crate::journal::{FAILURE_LINES_MAX, Journal};
use crate::periods::Periods;
use crate::samples;
use hdrhistogram::serialization::interval_log::{IntervalLogIterator, LogEntry};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_record::{FailureSample, Sink};
use proptest::prelude::*;

const START_US: u64 = 1_795_294_102_000_000;

/// A folder with an early record, as a running process has it.
fn begun(dir: &Path) -> (RunFolder, RecordHeader, Journal) {
    let folder = RunFolder::create(dir, "load", START_US).unwrap();
    let header = RecordHeader { run_id: folder.run_id().to_owned(), ..samples::header() };
    folder.begin(&header).unwrap();
    let journal = folder.journal(&header).unwrap();
    (folder, header, journal)
}

/// The record of these seconds without the journal between.
fn direct(header: &RecordHeader, seconds: &[Interval], ending: Ending) -> RunRecord {
    let (mut tally, mut periods) = (Tally::new(header), Periods::default());
    for second in seconds {
        tally.add(second);
        if header.is_measured(second.phase) {
            periods.add(second);
        }
    }
    tally.cut();
    let (totals, phases) = tally.finish();
    let mut record = assemble(header, &totals, phases, ending);
    record.intervals = intervals::of(periods, &record);
    record
}

fn ending_of(record: &RunRecord) -> Ending {
    Ending {
        verdict: record.verdict.clone(),
        warnings: record.warnings.clone(),
        ..Ending::default()
    }
}

prop_compose! {
    /// A second with any counts that an engine could hand over in the middle of a run.
    fn any_second()(
        phase in 0u32..4,
        times in proptest::collection::vec((0usize..2, 0u64..7_000_000_000_000, 0u64..50_000_000), 0..20),
        failed in proptest::collection::vec((0usize..9, 0u64..10_000_000_000), 0..5),
        in_flight in 0u32..5,
        waiting in 0u64..3,
        refused in 0u64..3,
        statuses in proptest::collection::btree_map(100u16..600, 1u64..9, 0..3),
        counters in any::<[u32; 4]>(),
    ) -> Interval {
        let mut interval = Interval::new(2);
        interval.phase = phase;
        interval.in_flight = in_flight;
        for (class, service_ns, wait_ns) in times {
            let part = &mut interval.classes[class];
            part.record_ok(service_ns + wait_ns, service_ns);
            part.ledger.sent += 1;
            part.ledger.ok += 1;
            part.hits_known += 1;
            interval.lag.record(wait_ns);
            interval.ledger.ok += 1;
        }
        for (kind, after_ns) in failed {
            let kind = plimsoll_core::outcome::Failure::ALL[kind];
            *interval.ledger.failed.column(kind) += 1;
            *interval.classes[0].ledger.failed.column(kind) += 1;
            interval.classes[0].failed.record(after_ns);
        }
        interval.ledger.sent = interval.ledger.finished() + u64::from(in_flight);
        interval.ledger.refused.queue_timeout = refused;
        interval.ledger.scheduled = interval.ledger.sent + refused + waiting;
        interval.statuses = statuses;
        interval.counters.bytes_sent = counters[0].into();
        interval.counters.reused = counters[1].into();
        interval.counters.cycles_late = counters[2].into();
        interval.counters.bytes_body = counters[3].into();
        interval.counters.ended_in_time = interval.ledger.finished();
        interval.counters.ok_in_time = interval.ledger.ok;
        interval
    }
}

/// Seconds in a row, phases ascending, of uneven length.
fn in_order(mut seconds: Vec<Interval>) -> Vec<Interval> {
    seconds.sort_by_key(|second| second.phase);
    let mut now_ns = 3;
    for second in &mut seconds {
        second.from_ns = now_ns;
        now_ns += 1_000_000_000 + now_ns % 1_000;
        second.to_ns = now_ns;
    }
    seconds
}

#[test]
fn a_cut_run_has_its_measured_phase_behind_the_warm_up() {
    let dir = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "load", START_US).unwrap();
    let mut header = RecordHeader { run_id: folder.run_id().to_owned(), ..samples::header() };
    header.scenario = serde_json::json!({"warmup": "2500ms"});
    header.phases.remove(0);
    header.phases[0].from_s = 0.0;
    folder.begin(&header).unwrap();
    let mut journal = folder.journal(&header).unwrap();
    (0..3).for_each(|i| journal.interval(&samples::second(i, 0, 100)).unwrap());
    let record = load(folder.path()).unwrap().record;
    assert_eq!((record.phases[0].from_s, record.phases[0].duration_s), (2.5, 3.0));
    assert_eq!(record.duration_s, 3.0);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn the_journal_gives_the_record_that_the_run_would_have_given(
        seconds in proptest::collection::vec(any_second(), 0..6)
    ) {
        let seconds = in_order(seconds);
        let dir = tempfile::tempdir().unwrap();
        let (folder, header, mut journal) = begun(dir.path());
        seconds.iter().for_each(|second| journal.interval(second).unwrap());
        let loaded = load(folder.path()).unwrap();
        prop_assert!(loaded.cut);
        prop_assert!(loaded.record.ledger.balance().is_ok());
        prop_assert_eq!(loaded.record.verdict.kind, VerdictKind::Partial);
        prop_assert_eq!(&loaded.record, &direct(&header, &seconds, ending_of(&loaded.record)));
        // The record survives being written and read as well.
        folder.finish(&direct(&header, &seconds, Ending::default())).unwrap();
        let finished = load(folder.path()).unwrap();
        prop_assert!(!finished.cut);
        prop_assert_eq!(finished.record, direct(&header, &seconds, Ending::default()));
    }

    #[test]
    fn a_journal_cut_anywhere_loses_only_the_second_it_was_cut_in(cut_at in 0.0f64..1.0) {
        let seconds = samples::seconds();
        let dir = tempfile::tempdir().unwrap();
        let (folder, header, mut journal) = begun(dir.path());
        let path = folder.path().join(INTERVALS);
        let mut ends = Vec::new();
        for second in &seconds {
            journal.interval(second).unwrap();
            ends.push(fs::metadata(&path).unwrap().len());
        }
        let length = (cut_at * *ends.last().unwrap() as f64) as u64;
        fs::File::options().write(true).open(&path).unwrap().set_len(length).unwrap();
        // A line that lacks nothing but its end is whole.
        let whole = ends.iter().take_while(|&&end| end - 1 <= length).count();
        let loaded = load(folder.path()).unwrap();
        let expected = direct(&header, &seconds[..whole], ending_of(&loaded.record));
        prop_assert_eq!(&loaded.record, &expected);
        let at_a_line_end = length == 0 || ends.iter().any(|&end| end == length || end - 1 == length);
        prop_assert_eq!(loaded.record.warnings.is_empty(), at_a_line_end);
        let reason = format!("ends after {whole}.0 s: the process was killed or is still running");
        prop_assert_eq!(&loaded.record.verdict.reasons, &[reason]);
    }
}

#[test]
fn a_damaged_line_is_left_out_and_said() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, header, mut journal) = begun(dir.path());
    let seconds = samples::seconds();
    seconds.iter().for_each(|second| journal.interval(second).unwrap());
    let path = folder.path().join(INTERVALS);
    let text = fs::read_to_string(&path).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1].replace_range(10..20, "\0\0\0");
    fs::write(&path, lines.join("\n")).unwrap();
    let record = load(folder.path()).unwrap().record;
    assert_eq!(
        record.warnings,
        ["1 damaged line(s) of intervals.ndjson are left out, the first is line 2"]
    );
    let kept: Vec<_> = [0, 2, 3].map(|i| seconds[i].clone()).to_vec();
    assert_eq!(record, direct(&header, &kept, ending_of(&record)));
}

#[test]
fn a_warm_up_is_in_the_journal_but_in_no_total_and_no_log() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _, mut journal) = begun(dir.path());
    samples::seconds().iter().for_each(|second| journal.interval(second).unwrap());
    let record = load(folder.path()).unwrap().record;
    assert_eq!(record.ledger.ok, 300);
    assert_eq!(record.duration_s, 3.0);
    assert_eq!(record.rate.ok_per_s, 100.0);
    assert_eq!(record.phases.len(), 2);
    assert_eq!((record.phases[0].name.as_str(), record.phases[0].measured), ("warmup", false));
    assert_eq!(record.phases[0].ledger.ok, 50);

    let log = fs::read(folder.path().join("service.hlog")).unwrap();
    let mut merged = Histogram::new();
    let mut tags = Vec::new();
    for entry in IntervalLogIterator::new(&log) {
        if let LogEntry::Interval(interval) = entry.unwrap() {
            merged.merge(&Histogram::decode(interval.encoded_histogram()).unwrap());
            tags.push(interval.tag().unwrap().as_str().to_owned());
        }
    }
    assert_eq!(tags, ["one_term", "fuzzy", "one_term", "fuzzy", "one_term", "fuzzy"]);
    assert_eq!(merged.summary(), record.latency_ms.service);
    let lag = fs::read(folder.path().join("lag.hlog")).unwrap();
    let intervals = IntervalLogIterator::new(&lag)
        .filter(|entry| matches!(entry, Ok(LogEntry::Interval(i)) if i.tag().is_none()));
    assert_eq!(intervals.count(), 3);
}

#[test]
fn a_measured_stretch_is_no_longer_than_planned() {
    // The engine keeps the warm-up to itself: the first second handed over begins at 0 all the same.
    let mut header = samples::header();
    header.phases.remove(0);
    header.phases[0].from_s = 1.5;
    header.phases[0].duration_s = Some(2.0);
    let mut seconds = samples::seconds();
    seconds.iter_mut().for_each(|second| second.phase = 0);
    let record = direct(&header, &seconds, Ending::default());
    assert_eq!(record.duration_s, 2.0);
    assert_eq!((record.phases[0].from_s, record.phases[0].duration_s), (1.5, 2.0));
    let known = Ending { duration_s: Some(2.5), ..Ending::default() };
    assert_eq!(direct(&header, &seconds, known).duration_s, 2.5);
}

#[test]
fn percentiles_of_classes_come_from_merged_histograms() {
    let record = samples::good();
    let merged = |kind: &str| {
        let mut all = Histogram::new();
        for class in &record.class_names {
            let text = &record.histograms[&format!("{class}/{kind}")];
            all.merge(&Histogram::decode(text).unwrap());
        }
        all.summary()
    };
    assert_eq!(merged("response"), record.latency_ms.response);
    assert_eq!(merged("service"), record.latency_ms.service);
    assert_eq!(Histogram::decode(&record.histograms["lag"]).unwrap().count(), 300);
}

#[test]
fn the_sample_of_failures_is_bounded_and_holds_no_secret() {
    let dir = tempfile::tempdir().unwrap();
    let (folder, _, mut journal) = begun(dir.path());
    assert!(!folder.path().join(FAILURES).exists());
    let sample = FailureSample {
        kind: "status".to_owned(),
        request: format!(
            "GET / HTTP/1.1\r\nAuthorization: Bearer abc\r\n\r\n{}",
            "x".repeat(9_999)
        ),
        reply: "\u{1}".repeat(9_999),
        ..FailureSample::default()
    };
    for _ in 0..FAILURE_LINES_MAX + 5 {
        journal.failure(&sample).unwrap();
    }
    let text = fs::read_to_string(folder.path().join(FAILURES)).unwrap();
    let lines = text.lines().count() as u64;
    assert_eq!(lines, journal.failures_kept());
    assert_eq!(journal.failures_kept() + journal.failures_left_out(), FAILURE_LINES_MAX + 5);
    assert!(lines <= FAILURE_LINES_MAX && text.len() as u64 <= crate::journal::FAILURE_BYTES_MAX);
    // 1,200 control characters take 6 bytes each as JSON, so here the limit in bytes comes first.
    assert!(lines < FAILURE_LINES_MAX);
    assert!(!text.contains("Bearer"));
    let short = FailureSample { kind: "reset".to_owned(), ..FailureSample::default() };
    let dir = tempfile::tempdir().unwrap();
    let (_, _, mut journal) = begun(dir.path());
    (0..FAILURE_LINES_MAX + 5).for_each(|_| journal.failure(&short).unwrap());
    assert_eq!((journal.failures_kept(), journal.failures_left_out()), (FAILURE_LINES_MAX, 5));
}

#[test]
fn what_is_no_record_is_one_clear_line() {
    let dir = tempfile::tempdir().unwrap();
    let line = |path: &Path| {
        let message = load(path).unwrap_err().to_string();
        assert!(!message.contains('\n'), "{message}");
        message
    };
    assert!(line(&dir.path().join("missing")).starts_with("cannot read "));
    assert!(line(dir.path()).contains("holds no run.json"));
    let file = dir.path().join("file");
    fs::write(&file, "x").unwrap();
    assert!(line(&file).contains("is not a folder"));

    let run_json = dir.path().join(RUN_JSON);
    fs::write(&run_json, r#"{"schema":"plimsoll.run/2","brand_new":[]}"#).unwrap();
    let newer = line(dir.path());
    assert!(newer.contains("newer plimsoll") && newer.contains("update"), "{newer}");
    fs::write(&run_json, r#"{"schema":"other/1"}"#).unwrap();
    assert!(line(dir.path()).contains("is not a plimsoll run record"));
    fs::write(&run_json, r#"{"schema":"plimsoll.run/1"}"#).unwrap();
    assert!(line(dir.path()).contains("is damaged"));
    fs::write(&run_json, "{").unwrap();
    assert!(line(dir.path()).contains("is damaged"));
}

#[test]
fn a_record_is_found_by_its_file_and_by_being_the_latest() {
    let dir = tempfile::tempdir().unwrap();
    let runs = dir.path().join("runs");
    assert!(latest(&runs).unwrap_err().to_string().starts_with("there is no run record in"));
    let first = RunFolder::create(&runs, "zebra", START_US).unwrap();
    let second = RunFolder::create(&runs, "ant", START_US + 1_000).unwrap();
    fs::create_dir(runs.join("zzz-not-a-record")).unwrap();
    assert_eq!(latest(&runs).unwrap(), second.path());
    let loaded = load(&first.path().join(RUN_JSON)).unwrap();
    assert_eq!((loaded.record.job.as_str(), loaded.folder.as_path()), ("zebra", first.path()));
}

#[test]
fn a_log_on_a_full_disk_is_named_once() {
    let dir = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "load", START_US).unwrap();
    let log = folder.path().join("service.hlog");
    std::os::unix::fs::symlink("/dev/full", &log).unwrap();
    let error = folder.journal(&folder.header()).unwrap_err().to_string();
    let expected = format!("cannot write {}: no space left on device; the result", log.display());
    assert!(error.starts_with(&expected), "{error}");
}

#[test]
fn a_write_that_fails_is_named_and_the_other_files_go_on() {
    // /dev/full answers every write with "no space left on device".
    let dir = tempfile::tempdir().unwrap();
    let folder = RunFolder::create(dir.path(), "load", START_US).unwrap();
    std::os::unix::fs::symlink("/dev/full", folder.path().join(INTERVALS)).unwrap();
    let header = RecordHeader { run_id: folder.run_id().to_owned(), ..samples::header() };
    let mut journal = folder.journal(&header).unwrap();
    let message = journal.interval(&samples::second(1, 1, 10)).unwrap_err().to_string();
    assert!(message.contains("cannot write") && message.contains(INTERVALS), "{message}");
    let log = fs::read(folder.path().join("response.hlog")).unwrap();
    let intervals =
        IntervalLogIterator::new(&log).filter(|e| matches!(e, Ok(LogEntry::Interval(_))));
    assert_eq!(intervals.count(), 2);
}

/// Where the process that is to be killed puts its runs; without it that process has nothing to do.
const VICTIM_RUNS: &str = "PLIMSOLL_TEST_VICTIM_RUNS";

/// Not a test of its own: the process that `a_process_killed_with_signal_9...` starts and kills.
#[test]
fn victim_writes_seconds_until_it_is_killed() {
    let Some(runs) = std::env::var_os(VICTIM_RUNS) else { return };
    let (_folder, _, mut journal) = begun(Path::new(&runs));
    // Bounded, so that it ends by itself when the killer dies first.
    for index in 0..10_000 {
        journal.interval(&samples::second(index + 1, 1, 100)).unwrap();
    }
}

#[test]
fn a_process_killed_with_signal_9_leaves_all_but_its_last_second() {
    let dir = tempfile::tempdir().unwrap();
    let mut victim = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "load::tests::victim_writes_seconds_until_it_is_killed"])
        .env(VICTIM_RUNS, dir.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let deadline_ns = plimsoll_core::clock::now_ns() + 30_000_000_000;
    let written = || fs::metadata(latest(dir.path()).ok()?.join(INTERVALS)).ok().map(|m| m.len());
    while written().unwrap_or(0) < 20_000 {
        assert!(plimsoll_core::clock::now_ns() < deadline_ns, "the victim wrote nothing");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    victim.kill().unwrap();
    assert!(!victim.wait().unwrap().success());
    let folder = latest(dir.path()).unwrap();
    let lines = fs::read(folder.join(INTERVALS)).unwrap().iter().filter(|&&b| b == b'\n').count();
    let loaded = load(&folder).unwrap();
    assert!(loaded.cut && lines > 3);
    assert_eq!(loaded.record.ledger.ok, 100 * lines as u64);
    assert_eq!(loaded.record.verdict.kind, VerdictKind::Partial);
    let text =
        crate::text::render(&loaded.record, Some(&folder), &crate::text::Style::default(), &[]);
    assert!(text.starts_with("Result     NOT VALID: partial"), "{text}");
    assert!(text.contains("the process was killed or is still running"), "{text}");
}

#[test]
fn a_section_that_is_not_known_is_named_on_the_page() {
    let dir = tempfile::tempdir().unwrap();
    let mut record = serde_json::to_value(crate::samples::good()).unwrap();
    record["later"] = serde_json::json!({"figure": 1});
    fs::write(dir.path().join(RUN_JSON), record.to_string()).unwrap();
    let record = load(dir.path()).unwrap().record;
    let page = crate::text::render(&record, None, &crate::text::Style::default(), &[]);
    assert!(page.contains("the section 'later' is not shown"), "{page}");
}
