//! Approximate words: Lucene's rule, and the automaton that goes to four edits.

use super::analysis_truth::distance;
use super::*;
use plimsoll_probe::Numbers;

#[test]
fn the_nearest_words_are_kept_as_lucene_keeps_them() {
    let mut numbers = Numbers(77);
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let term = "abcdef";
    let mut words = std::collections::BTreeSet::new();
    while words.len() < 300 {
        let mut word: Vec<char> = term.chars().collect();
        for _ in 0..1 + numbers.below(3) {
            let at = numbers.below(word.len());
            match numbers.below(3) {
                0 => word[at] = char::from(b'a' + numbers.below(26) as u8),
                1 => word.insert(at, char::from(b'a' + numbers.below(26) as u8)),
                _ => drop(word.remove(at)),
            }
        }
        words.insert(word.into_iter().collect::<String>());
    }
    let documents: Vec<_> = words.iter().map(|word| json!({ "t": word })).collect();
    es.load("l", words.iter().cloned().zip(&documents));
    for limit in [1, 10, 50, 100] {
        let mut kept: Vec<(f32, &String)> = words
            .iter()
            .filter_map(|word| {
                let edits = distance(word, term, true);
                let shorter = word.chars().count().min(6) as f32;
                let boost = if edits == 0 { 1.0 } else { 1.0 - edits as f32 / shorter };
                (edits <= 2).then_some((boost, word))
            })
            .collect();
        kept.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| a.1.cmp(b.1)));
        kept.truncate(limit);
        let mut expected: Vec<String> = kept.iter().map(|(_, word)| (*word).clone()).collect();
        let query =
            json!({"fuzzy": {"t": {"value": term, "fuzziness": 2, "max_expansions": limit}}});
        let found = es.search("l", &json!({"query": query, "size": 1000}));
        // The nearest come first: all words are equally frequent.
        let hits = found["hits"]["hits"].as_array().unwrap();
        let scores: Vec<f64> = hits.iter().map(|hit| hit["_score"].as_f64().unwrap()).collect();
        for (score, (boost, _)) in scores.iter().zip(&kept) {
            let of_best = score / scores[0];
            assert!((of_best - f64::from(boost / kept[0].0)).abs() < 1e-4);
        }
        expected.sort();
        let mut found = ids(&found);
        found.sort();
        assert_eq!(found, expected, "{limit}");
    }
    // A term that is not lower-cased costs an edit for its capital.
    es.load("l", [("American".to_owned(), &json!({"t": "American"}))]);
    let query =
        |value: &str, edits: u64| json!({"fuzzy": {"t": {"value": value, "fuzziness": edits}}});
    assert_eq!(es.ids("l", &query("American", 1)), ["American"]);
    assert!(es.ids("l", &query("Amrican", 1)).is_empty());
    assert_eq!(es.ids("l", &query("Amrican", 2)), ["American"]);
}

#[test]
fn four_edits_find_exactly_the_planted_words() {
    let mut numbers = Numbers(4711);
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Automaton);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/p", &json!({"settings": {"number_of_shards": 2}}));
    let base = ["government", "administration", "démocratie", "a1b2c3d4e5"];
    let mut words = std::collections::BTreeSet::new();
    for term in base {
        for _ in 0..250 {
            let mut word: Vec<char> = term.chars().collect();
            for _ in 0..numbers.below(7) {
                let at = numbers.below(word.len() - 1);
                match numbers.below(4) {
                    0 => word[at] = char::from(b'a' + numbers.below(26) as u8),
                    1 => word.insert(at, 'é'),
                    2 => word.swap(at, at + 1),
                    _ => drop(word.remove(at)),
                }
            }
            words.insert(word.into_iter().collect::<String>());
        }
    }
    let documents: Vec<_> = words.iter().map(|word| json!({ "t": word })).collect();
    es.load("p", words.iter().cloned().zip(&documents));
    for term in base {
        for edits in 0..=4 {
            for swaps in [true, false] {
                let expected: Vec<String> = words
                    .iter()
                    .filter(|word| distance(word, term, swaps) <= edits)
                    .cloned()
                    .collect();
                let query = json!({"match": {"t": {"query": term, "fuzziness": edits,
                    "fuzzy_transpositions": swaps}}});
                assert_eq!(es.ids("p", &query), expected, "{term} {edits} {swaps}");
            }
        }
        let five = json!({"query": {"match": {"t": {"query": term, "fuzziness": 5}}}});
        let (status, json) = es.ask("POST", "/p/_search", &five);
        assert_eq!(status, 400);
        let reason = "Valid edit distances are [0, 1, 2, 3, 4] but was [5]";
        assert_eq!(json["error"]["reason"], reason);
    }
}
