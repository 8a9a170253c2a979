use super::*;

fn asked(distance: u8, found: &[u8]) -> ProbeAnswer {
    ProbeAnswer { distance, found: found.to_vec(), refused: None }
}

#[test]
fn a_probe_knows_what_was_searched_and_what_was_said() {
    let refusal = ProbeAnswer {
        distance: 3,
        found: Vec::new(),
        refused: Some("valid edit distances are 0, 1, 2".to_owned()),
    };
    let probe = Probe {
        asked: vec![asked(0, &[0]), asked(2, &[0, 1, 2]), refusal, asked(4, &[0, 1, 2])],
        ..Probe::default()
    };
    assert_eq!(probe.clamped_to(2), None);
    assert_eq!(probe.clamped_to(4), Some(2));
    assert_eq!(probe.mark(4).as_deref(), Some("clamped to 2"));
    assert_eq!((probe.mark(2), probe.mark(3)), (None, None));
    assert!(probe.refused(3).unwrap().contains("valid"));
    assert_eq!(probe.clamped_to(1), None, "what was not asked is not known");
    let wide = Probe { asked: vec![asked(1, &[0, 1, 2])], ..Probe::default() };
    assert_eq!(wide.mark(1).as_deref(), Some("reaches 2"));
    let blind = Probe { asked: vec![asked(1, &[])], ..Probe::default() };
    assert_eq!(blind.mark(1).as_deref(), Some("found nothing at distance 1"));
}

#[test]
fn engines_disagree_in_number_or_in_documents() {
    let answer = |engine: &str, query: &str, hits: Option<u64>, ids: Option<&str>| Answer {
        engine: engine.to_owned(),
        size: "1MB".to_owned(),
        query: query.to_owned(),
        hits,
        ids: ids.map(str::to_owned),
        ..Answer::default()
    };
    let answers = [
        answer("a", "same", Some(3), Some("x")),
        answer("b", "same", Some(3), Some("x")),
        answer("a", "more", Some(3), Some("x")),
        answer("b", "more", Some(10), None),
        answer("a", "others", Some(3), Some("x")),
        answer("b", "others", Some(3), Some("y")),
        answer("a", "alone", Some(3), None),
        answer("b", "alone", None, None),
    ];
    let found = SearchResult::find_disagreements(&answers);
    let names: Vec<_> = found.iter().map(|one| one.query.as_str()).collect();
    assert_eq!(names, ["more", "others"]);
    assert_eq!((found[0].difference, found[0].other_documents), (7, false));
    assert_eq!((found[1].difference, found[1].other_documents), (0, true));
}

#[test]
fn sizes_are_named_as_people_write_them() {
    let label = |text: &str| size_label(text.parse().unwrap());
    assert_eq!(label("64MB"), "64MB");
    assert_eq!(label("1GB"), "1GB");
    assert_eq!(label("2500kB"), "2.5MB");
    assert_eq!(label("10B"), "10B");
}

#[test]
fn loading_is_no_waste() {
    let time = TimeSpent { total_s: 110.0, loading_s: 10.0, cells_s: 95.0, ..TimeSpent::default() };
    assert!((time.outside_cells() - 0.05).abs() < 1e-12);
    assert_eq!(TimeSpent::default().outside_cells(), 0.0);
}

#[test]
fn a_cell_reads_back_and_lies_flat() {
    let cell = Cell {
        key: CellKey { engine: "e".to_owned(), users: 5, ..CellKey::default() },
        ok_per_s: Some(1.5),
        ..Cell::default()
    };
    let value = serde_json::to_value(&cell).unwrap();
    assert_eq!(value["users"], 5, "the key's fields lie beside the others");
    assert_eq!(serde_json::from_value::<Cell>(value).unwrap(), cell);
}
