use super::*;
use crate::page::tests::sample;
use plimsoll_record::search::{Answer, Disagreement, EngineHits, EngineRecord, Recall};
use plimsoll_report::samples;

/// The sample with a second engine, which finds something else.
fn two_engines() -> SearchResult {
    let mut search = sample();
    search.engines.push(EngineRecord { name: "other".to_owned(), ..EngineRecord::default() });
    let mut others = search.cells.clone();
    others.iter_mut().for_each(|cell| "other".clone_into(&mut cell.key.engine));
    search.cells.extend(others);
    let hits = |engine: &str, hits| EngineHits { engine: engine.to_owned(), hits };
    search.answers.push(Answer { engine: "mine".to_owned(), hits: Some(3), ..Answer::default() });
    search.disagreements.push(Disagreement {
        query: "one word".to_owned(),
        size: "1GB".to_owned(),
        hits: vec![hits("mine", 3), hits("other", 13)],
        difference: 10,
        ..Disagreement::default()
    });
    search.recall = [("mine", 3), ("other", 13)]
        .map(|(engine, found)| Recall {
            engine: engine.to_owned(),
            query: "one word".to_owned(),
            expected: 13,
            found,
            ..Recall::default()
        })
        .to_vec();
    search.time.total_s = 100.0;
    search.time.cells_s = 60.0;
    search
}

#[test]
fn a_matrix_has_heat_maps_lines_differences_and_recall() {
    let mut record = samples::good();
    record.job = "search".to_owned();
    record.job_results.put(two_engines());
    let sheet =
        plimsoll_report::sections::sheet(&record, &Default::default(), &[crate::forms::FORMS]);
    assert!(samples::check_places(&sheet, &record) > 50);
    let own =
        ["matrix", "scaling", "cells", "hits", "recall", "ingest", "distances", "matrix-time"];
    assert_eq!(samples::derived(&sheet, &own), [""; 0]);
    insta::assert_snapshot!(samples::outline(&sheet, &[&["decide"], &own[..]].concat()));
    assert!(sheet.section("curve").is_none(), "the times of all cells together");
}

#[test]
fn one_engine_has_a_line_for_each_size() {
    let mut record = samples::good();
    record.job_results.put(sample());
    let sheet =
        plimsoll_report::sections::sheet(&record, &Default::default(), &[crate::forms::FORMS]);
    let text = samples::outline(&sheet, &["scaling"]);
    assert!(text.contains("line 1GB (series-1) 2 of 2: Some(0.847) Some(2.874)"), "{text}");
    assert!(text.contains("line 5GB (series-2) 1 of 2"), "{text}");
    assert!(sheet.section("hits").is_none() && sheet.section("recall").is_none());
}
