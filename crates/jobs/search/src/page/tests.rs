use super::*;
use crate::forms::FORMS;
use plimsoll_record::search::{
    Answer, CellKey, Disagreement, EngineHits, EngineRecord, Load, Probe, ProbeAnswer, Recall,
    SizeRecord,
};
use plimsoll_report::samples;
use plimsoll_report::text::{Style, render};

/// A matrix of one engine, two sizes and two numbers of users.
pub fn sample() -> SearchResult {
    let cell = |size: &str, users, ok_per_s: Option<f64>, reason: Option<&str>| Cell {
        key: CellKey {
            engine: "mine".to_owned(),
            size: size.to_owned(),
            distance: 4,
            shards: 5,
            users,
        },
        ok_per_s,
        raw_ok_per_s: ok_per_s.unwrap_or(0.5),
        reason: reason.map(str::to_owned),
        marks: vec!["clamped to 2".to_owned()],
        ..Cell::default()
    };
    let size = |label: &str| SizeRecord { label: label.to_owned(), ..SizeRecord::default() };
    let late = Some("3 of 9 requests failed (timeout 3)");
    let mut restarted = cell("5GB", 1, Some(0.25), None);
    restarted.marks.push("engine restarted".to_owned());
    SearchResult {
        origin: "measured".to_owned(),
        corpus: "synthetic".to_owned(),
        order: "block".to_owned(),
        timeout_s: 60.0,
        engines: vec![EngineRecord { name: "mine".to_owned(), ..EngineRecord::default() }],
        sizes: vec![size("1GB"), size("5GB")],
        groups: vec![Group { distance: 4, shards: 5 }],
        users: vec![1, 5],
        cells: vec![
            cell("1GB", 1, Some(0.847), None),
            cell("1GB", 5, Some(2.874), None),
            restarted,
            cell("5GB", 5, None, late),
        ],
        loads: vec![Load {
            engine: "mine".to_owned(),
            trouble: Some("no room".to_owned()),
            ..Load::default()
        }],
        probes: vec![Probe {
            engine: "mine".to_owned(),
            asked: vec![ProbeAnswer { distance: 4, found: vec![0, 1, 2], refused: None }],
            ..Probe::default()
        }],
        ..SearchResult::default()
    }
}

fn rendered(search: &SearchResult) -> String {
    let style = Style::default();
    page_of(search, &Style { verbose: true, ..style })
}

fn page_of(search: &SearchResult, style: &Style) -> String {
    let mut record = samples::good();
    record.job_results.put(search.clone());
    render(&record, None, style, &[FORMS])
}

#[test]
fn a_table_is_the_printed_one_with_its_reasons_below() {
    let text = rendered(&sample());
    let at = text.find("### mine: edit distance 4, index of 5 shards (clamped to 2)").unwrap();
    let lines: Vec<&str> = text[at..].lines().take(8).collect();
    assert_eq!(lines[1], "| Users |   1GB |       5GB |");
    assert_eq!(lines[2], "|------:|------:|----------:|");
    assert_eq!(lines[3], "|     1 | 0.847 | 0.250 [1] |");
    assert_eq!(lines[4], "|     5 | 2.874 |         - |");
    assert_eq!(lines[5], "[1] engine restarted");
    assert_eq!(lines[6], "- 5GB x 5: 3 of 9 requests failed (timeout 3)");
    assert_eq!(lines[7], "1GB: rate over that of 1 user: 3.39 times with 5 users");
    assert!(text.contains("4 -> 0,1,2 CLAMPED"), "{text}");
    assert!(text.contains("No ingest  mine, , 0 shards: no room"), "{text}");
    assert!(
        text.contains("\n           3 of 4 cells measured, 1 without a number, for the"),
        "{text}"
    );
}

#[test]
fn answers_that_differ_are_told() {
    let mut search = sample();
    search.engines.push(EngineRecord { name: "other".to_owned(), ..EngineRecord::default() });
    let answer = |engine: &str, query: &str, hits| Answer {
        engine: engine.to_owned(),
        query: query.to_owned(),
        hits,
        ..Answer::default()
    };
    // One engine alone agrees with nobody.
    search.answers = vec![answer("mine", "one word", Some(3)), answer("other", "one word", None)];
    let alone = rendered(&search);
    assert!(alone.contains("No query was answered by two engines"), "{alone}");
    search.answers[1].hits = Some(3);
    assert!(rendered(&search).contains("All engines gave the same hits to all queries"));
    search.answers.push(answer("mine", "two words", Some(1)));
    let some = rendered(&search);
    assert!(some.contains("that answered: 1 of 2 were answered by two engines or more"), "{some}");
    search.disagreements.push(Disagreement {
        query: "one word".to_owned(),
        size: "1GB".to_owned(),
        hits: vec![
            EngineHits { engine: "mine".to_owned(), hits: 3 },
            EngineHits { engine: "other".to_owned(), hits: 13 },
        ],
        difference: 10,
        ..Disagreement::default()
    });
    search.recall.push(Recall {
        engine: "mine".to_owned(),
        expected: 13,
        found: 3,
        ..Recall::default()
    });
    let text = rendered(&search);
    assert!(text.contains("mine 3, other 13; difference 10"), "{text}");
    assert!(text.contains("0 of 1 answers are exact") && text.contains("3 of 13 (23"), "{text}");
    assert!(text.contains("1 of 2 were answered by two engines or more"), "{text}");
}

/// A reader who pastes the table, or reads it back, needs whole lines.
#[test]
fn a_table_that_is_too_wide_comes_in_parts() {
    let mut search = sample();
    for size in 10..34 {
        let label = format!("{size}GB");
        search.sizes.push(SizeRecord { label: label.clone(), ..SizeRecord::default() });
        let mut cell = search.cells[0].clone();
        cell.key.size = label;
        search.cells.push(cell);
    }
    for width in [60, 100, 200] {
        let text = page_of(&search, &Style { width, ..Style::default() });
        let title = "### mine: edit distance 4, index of 5 shards";
        let lines = |text: &str| text.lines().filter(|line| line.starts_with("| ")).count();
        assert_eq!(lines(&text), 3 * text.matches(title).count(), "{text}");
        assert!(text.lines().all(|line| columns_of(line) <= width), "{width}: {text}");
        for size in &search.sizes {
            assert_eq!(text.matches(&format!(" {} |", size.label)).count(), 1, "{}", size.label);
        }
    }
}

/// Two numbers of users are a line, and have no knee.
#[test]
fn where_a_rate_stops_growing_takes_three_numbers_of_users() {
    let mut search = sample();
    search.users = vec![1, 5, 10];
    let mut third = search.cells[1].clone();
    third.key.users = 10;
    search.cells.push(third);
    let text = rendered(&search);
    let wanted = "1GB: rate over that of 1 user: 3.39 times with 5, 3.39 times with 10 users; more than 3.4 users only";
    assert!(text.split_whitespace().collect::<Vec<_>>().join(" ").contains(wanted), "{text}");
    assert!(!page_of(&search, &Style::default()).contains("rate over that"), "only on request");
}

#[test]
fn an_interval_is_as_wide_as_it_is_though_no_rate_is_below_0() {
    let mut search = sample();
    search.cells[0].interval_per_s = Some([0.0, 5.0]);
    let text = rendered(&search);
    assert!(text.contains("+-4.153"), "5 is 4.153 above 0.847: {text}");
}

#[test]
fn what_is_not_exact_does_not_look_as_if_it_were() {
    for (found, expected, shown) in [
        (20_277, 20_272, "100.02 %"),
        (365, 363, "101 %"),
        (1, 4, "25 %"),
        (9_999_999, 10_000_000, "99.99999 %"),
    ] {
        assert_eq!(super::answers::inexact_share(found, expected), shown);
    }
}
