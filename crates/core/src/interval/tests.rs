use super::*;

#[test]
fn a_line_of_the_journal_reads_back_as_it_was() {
    let mut interval = Interval::new(2);
    interval.to_ns = 1_000_000_000;
    interval.ledger.scheduled = 3;
    interval.classes[1].response.record(5_000_000);
    interval.classes[1].zero_hits = 1;
    interval.statuses.insert(200, 3);
    let without = serde_json::to_string(&IntervalLine::from(&interval)).unwrap();
    assert!(!without.contains("unserved"));
    interval.unserved.record_many(7_000_000, 12);
    let text = serde_json::to_string(&IntervalLine::from(&interval)).unwrap();
    let line: IntervalLine = serde_json::from_str(&text).unwrap();
    let back = Interval::try_from(&line).unwrap();
    assert_eq!(back.classes[1].response.cells().count(), 1);
    assert_eq!(back.statuses, interval.statuses);
    assert_eq!(back.ledger, interval.ledger);
    assert_eq!(back.to_ns, interval.to_ns);
    assert_eq!((back.unserved.count(), back.unserved), (12, interval.unserved));
    let line: IntervalLine = serde_json::from_str(&without).unwrap();
    assert!(Interval::try_from(&line).unwrap().unserved.is_empty());
}

/// Server times are in line, sum and emptied memory only where they were asked for.
#[test]
fn server_times_read_back_and_add_up() {
    let mut interval = Interval::new(2);
    let plain = serde_json::to_string(&IntervalLine::from(&interval)).unwrap();
    assert!(!plain.contains("server"));
    let mut server = ServerTimes::default();
    for said in [ServerTime::Known(5_000_000), ServerTime::Missing, ServerTime::Malformed] {
        server.record(said);
    }
    interval.classes[1].server = Some(Box::new(server));
    let text = serde_json::to_string(&IntervalLine::from(&interval)).unwrap();
    let line: IntervalLine = serde_json::from_str(&text).unwrap();
    let back = Interval::try_from(&line).unwrap();
    assert_eq!(back.classes[1].server, interval.classes[1].server);
    let mut sum = Interval::new(2);
    sum.merge(&back);
    sum.merge(&back);
    let all = sum.all_classes().server.unwrap();
    assert_eq!((all.times.count(), all.missing, all.malformed), (2, 2, 2));
    assert_eq!(sum.classes[0].server, None);
    sum.clear();
    assert_eq!(sum.classes[1].server.as_deref(), Some(&ServerTimes::default()));
}

#[test]
fn exact_times_merge_and_an_empty_part_does_not_disturb_them() {
    let mut sum = ClassPart::default();
    sum.merge(&ClassPart::default());
    let mut part = ClassPart::default();
    part.record_ok(9_000_123, 7_000_123);
    part.record_ok(9_000_123, 5_000_321);
    sum.merge(&part);
    sum.merge(&ClassPart::default());
    assert_eq!((sum.service_min_ns, sum.service_max_ns), (5_000_321, 7_000_123));
    assert_eq!(sum.service_sum_ns, 12_000_444);
}

#[test]
fn the_shortest_failure_is_not_shorter_than_its_timeout() {
    let mut sum = ClassPart::default();
    for failed_ns in [300_061_234, 300_050_123] {
        let mut interval = Interval::new(1);
        interval.classes[0].record_failed(failed_ns);
        let line = IntervalLine::from(&interval);
        sum.merge(&Interval::try_from(&line).unwrap().classes[0]);
        sum.merge(&ClassPart::default());
    }
    assert!(sum.failed.min_ns() < 300_000_000, "a cell begins below the timeout");
    let summary = sum.failed_summary();
    assert_eq!((summary.count, summary.min), (2, 300.050_123));
    assert!(summary.mean >= summary.min && summary.p50 >= summary.min, "{summary:?}");
}

#[test]
fn a_sum_starts_where_its_first_part_starts() {
    let mut sum = Interval::new(1);
    for from_s in [5u64, 6] {
        let mut part = Interval::new(1);
        part.from_ns = from_s * 1_000_000_000;
        part.to_ns = part.from_ns + 1_000_000_000;
        sum.merge(&part);
    }
    assert_eq!((sum.from_ns, sum.to_ns), (5_000_000_000, 7_000_000_000));
}
