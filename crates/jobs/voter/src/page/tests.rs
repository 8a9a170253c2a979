use super::*;
use plimsoll_record::bench_shape::preset;
use plimsoll_record::voter::{ContestantVotes, Rejected, Totals, TuneCheck};
use plimsoll_report::samples;
use plimsoll_report::text::{Style, render};

pub fn one(index: u32, accepted: u64, rows: (u64, u64)) -> VoterProcess {
    let mut process = VoterProcess {
        index,
        client: format!("VSD{}", index + 1),
        calls: accepted,
        accepted,
        started_us: 1_700_000_000_000_000 + u64::from(index) * 412,
        ended_us: 1_700_000_002_000_000,
        rate_per_s: accepted as f64 / 2.0,
        rows_before: Some(rows.0),
        rows_after: Some(rows.1),
        ..VoterProcess::default()
    };
    let check = WriteCheck::of(rows.0, rows.1, accepted, 0);
    (process.check, process.check_rows) = (check.kind(), check.rows());
    process
}

pub fn voter(processes: Vec<VoterProcess>) -> VoterResult {
    let sum = |rows: fn(&VoterProcess) -> Option<u64>| processes.iter().map(rows).sum();
    let mut voter = VoterResult {
        accepted: processes.iter().map(|p| p.accepted).sum(),
        rejected: Rejected { contestant: 21, limit: 4 },
        rows_before: sum(|p| p.rows_before),
        rows_after: sum(|p| p.rows_after),
        totals: Totals::of(&processes),
        contestants: vec![ContestantVotes { name: "Kurt Walser".into(), number: 9, votes: 1234 }],
        shape: preset("VSD"),
        hosts: vec!["127.0.0.1:21212".into()],
        ..VoterResult::default()
    };
    voter.set_check(WriteCheck::all(processes.iter().map(VoterProcess::write_check)));
    voter.processes = processes;
    voter
}

/// The page in which no line had to be broken.
fn shown(voter: &VoterResult) -> String {
    page_of(voter, 250)
}

fn page_of(voter: &VoterResult, width: usize) -> String {
    let mut record = samples::good();
    record.job_results.put(voter.clone());
    render(&record, None, &Style { width, verbose: true, ..Style::default() }, &[FORMS])
}

/// The page without what nobody asked for.
fn brief(voter: &VoterResult) -> String {
    let mut record = samples::good();
    record.job_results.put(voter.clone());
    render(&record, None, &Style::default(), &[FORMS])
}

#[test]
fn the_originals_lines_are_there_for_who_asks() {
    let text = brief(&voter(vec![one(0, 20_000, (5, 20_005))]));
    for part in ["Client 'VSD'", "Hosts:", "Kurt Walser", "T/sec", "[+"] {
        assert!(!text.contains(part), "{part} in {text}");
    }
    let writes =
        "Writes     ok: 20,000 new rows (5 before, 20,005 after) for 20,000 accepted votes\n";
    assert!(text.contains(writes), "{text}");
    let text = brief(&voter(vec![one(0, 100, (0, 100)), one(1, 100, (7, 106))]));
    assert!(text.contains("Writes     'VSD2' FAILED, 1 missing write"), "{text}");
    assert_eq!(text.matches("FAILED, 1 missing").count(), 1, "{text}");
    let row = text.lines().find(|line| line.starts_with("  VSD1 ")).unwrap();
    assert_eq!(row.split_whitespace().collect::<Vec<_>>()[1..], ["50", "100", "0", "2.00", "100"]);
}

/// A thousand calls a second are a plus sign, up to what the page has room for.
#[test]
fn the_bar_stays_on_the_page() {
    let mut fast = voter(vec![one(0, 20_000, (5, 20_005))]);
    fast.totals.per_s = 1.9e6;
    for (width, signs) in [(40, 37), (60, 57), (100, 60), (250, 60)] {
        let text = page_of(&fast, width);
        assert!(text.contains(&format!("\n[{}>]\n", "+".repeat(signs))), "{width}: {text}");
    }
}

#[test]
fn an_agreed_start_is_held_against_the_first_call() {
    let mut voter = voter(vec![one(0, 20_000, (5, 20_005))]);
    assert!(!shown(&voter).contains("Start agreed on"));
    voter.agreed_start_us = Some(1_700_000_000_000_000 - 1_234);
    let line =
        "Start agreed on for 2023-11-14T22:13:19Z: the first call was made 1.234 ms after it";
    assert!(shown(&voter).contains(line), "{}", shown(&voter));
}

#[test]
fn the_lines_are_the_originals() {
    let text = shown(&voter(vec![one(0, 20_000, (5, 20_005))]));
    for line in [
        "Client 'VSD', voter, 100,000 calls, steady, 200 workers, delay n/a, direct",
        "Hosts: 127.0.0.1:21212",
        "check writes ... ok: 20,000 new rows (5 before, 20,005 after) for 20,000 accepted votes",
        "results ...  votes:       1,234 (1 contestant)",
        ".......Kurt Walser:       1,234",
        "Client 'VSD1' overall: 10,000 T/sec throughput, 0.00% fails, total transactions: 20,000, fails: 0, total time: 2.000sec",
        "bench started 2023-11-14 22:13:20, ended 2023-11-14 22:13:22, database: +20000 new votes",
        "[++++++++++]",
        "20,000 accepted, 25 rejected (no such contestant 21, vote limit reached 4)",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("Sum of"), "{text}");
}

#[test]
fn several_clients_have_a_check_each_and_a_total_over_the_wall() {
    let text = shown(&voter(vec![one(0, 100, (0, 100)), one(1, 100, (7, 106))]));
    for line in [
        "check writes ... 'VSD1' ok: 100 new rows",
        "check writes ... 'VSD2' FAILED, 1 missing write: 99 new rows (7 before, 106 after) for 100 accepted votes",
        "Total transactions per second: 100 T/sec (200 in 2.000sec, from the first start to the last end)",
        "start skew 0.412 ms",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
}

#[test]
fn an_interval_and_a_check_that_could_not_be_made_say_their_numbers() {
    let mut cut = voter(vec![one(0, 100, (0, 103))]);
    (cut.unknown, cut.processes[0].unknown) = (4, 4);
    cut.set_check(WriteCheck::of(0, 103, 100, 4));
    let text = shown(&cut);
    assert!(text.contains("ok: 103 new rows (0 before, 103 after)"), "{text}");
    assert!(text.contains("and 4 calls with an unknown outcome: 100 to 104 are right"), "{text}");
    cut.rows_after = None;
    cut.check_reason = "nobody listens any more".into();
    cut.set_check(WriteCheck::NotChecked);
    let text = shown(&cut);
    let expected = "not checked: nobody listens any more; 100 to 104 new rows must be there";
    assert!(text.contains(expected), "{text}");
}

#[test]
fn the_head_of_a_tuned_load_is_its_last_check() {
    let check = |under_way, late, held| TuneCheck {
        under_way,
        seconds: 6.0,
        calls: 74_000,
        late,
        rate_per_s: 12_345.0,
        held,
        counts: true,
    };
    let mut tuned = TuneResult {
        goal: "p99=10ms".into(),
        latency: "client".into(),
        best_rate_per_s: Some(13_000.0),
        best_under_way: Some(50.0),
        windows: 60,
        windows_held: 41,
        certified_rate_per_s: Some(12_345.0),
        checks: vec![check(45, 0.02, false), check(31, 0.004, true)],
        ..TuneResult::default()
    };
    let mut voter = voter(vec![one(0, 100, (0, 100))]);
    voter.auto_tune = Some(tuned.clone());
    let text = shown(&voter);
    for line in [
        "           12,345 calls/s hold p99=10ms, with 31 calls in flight\n",
        "Checked    45 in flight: 12,345/s, late 2.0 % of 74,000 in 6.00 s, MISSED\n",
        "           31 in flight: 12,345/s, late 0.40 % of 74,000 in 6.00 s, held\n",
        "Tuned      median of 13,000/s with 50.0 in flight; p99=10ms held in 41 of 60 windows\n",
    ] {
        assert!(text.contains(line), "{line} is missing in\n{text}");
    }
    assert!(!text.contains("never missed"), "{text}");
    tuned.windows_held = tuned.windows;
    voter.auto_tune = Some(tuned.clone());
    let text = shown(&voter);
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(joined.contains("60 of 60 windows; it was never missed, so a longer run"), "{text}");
    tuned.checks.pop();
    tuned.certified_rate_per_s = None;
    voter.auto_tune = Some(tuned);
    let text = shown(&voter);
    assert!(text.contains("\n           no rate was certified\n"), "{text}");
    assert!(!text.contains("calls/s hold"), "{text}");
    let short = TuneResult { goal: "p99=10ms".into(), ..TuneResult::default() };
    voter.auto_tune = Some(short);
    let text = shown(&voter);
    assert!(text.contains("Tuned      too short to settle\n"), "{text}");
}

#[test]
fn verbosity_leaves_lines_out_and_never_the_result() {
    let mut quiet = voter(vec![one(0, 100, (0, 100))]);
    quiet.shape.as_mut().unwrap().verbosity = Verbosity::Quiet;
    let text = shown(&quiet);
    assert!(text.contains("overall: ") && text.contains("Writes     ok: 100 new rows"), "{text}");
    assert!(!text.contains("Hosts:") && !text.contains("200 workers"), "{text}");
    quiet.processes[0].died = "killed by signal 9".into();
    assert!(shown(&quiet).contains("Client 'VSD1' DIED: killed by signal 9"));
}
