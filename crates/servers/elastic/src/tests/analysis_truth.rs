//! Searches against a naive evaluator over generated documents, with one shard and with several.

use super::*;
use plimsoll_probe::Numbers;
use std::collections::BTreeSet;

/// Words of three to eight letters, many of them near others.
pub(super) fn vocabulary(numbers: &mut Numbers) -> Vec<String> {
    let mut words = BTreeSet::new();
    while words.len() < 120 {
        let length = 3 + numbers.below(6);
        let word: String = (0..length).map(|_| char::from(b'a' + numbers.below(9) as u8)).collect();
        // A neighbour: one letter changed, or two swapped.
        let mut near: Vec<char> = word.chars().collect();
        let at = numbers.below(length - 1);
        if numbers.below(2) == 0 {
            near.swap(at, at + 1)
        } else {
            near[at] = 'z'
        }
        words.insert(near.into_iter().collect());
        words.insert(word);
    }
    words.into_iter().collect()
}

/// Edit distance in which swapping two neighbours is one edit (optimal string alignment).
pub(super) fn distance(a: &str, b: &str, swaps: bool) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let change = usize::from(a[i - 1] != b[j - 1]);
                let mut best = (table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                best = best.min(table[i - 1][j - 1] + change);
                if swaps && i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                    best = best.min(table[i - 2][j - 2] + 1);
                }
                best
            };
        }
    }
    table[a.len()][b.len()]
}

struct Truth {
    documents: Vec<Json>,
}

impl Truth {
    fn words(&self, i: usize, field: &str) -> Vec<String> {
        let text = self.documents[i][field].as_str().unwrap_or("");
        text.split(' ').filter(|w| !w.is_empty()).map(str::to_lowercase).collect()
    }

    fn near(&self, i: usize, field: &str, term: &str, spec: &Json) -> bool {
        let edits = match &spec["fuzziness"] {
            Json::Null => 0,
            Json::String(_) => [0, 0, 0, 1, 1, 1].get(term.len()).copied().unwrap_or(2),
            number => number.as_u64().unwrap() as usize,
        };
        let prefix = spec["prefix_length"].as_u64().unwrap_or(0) as usize;
        let swaps = spec["fuzzy_transpositions"].as_bool().unwrap_or(true);
        self.words(i, field).iter().any(|word| {
            if prefix >= term.len() {
                return word == term;
            }
            word.get(..prefix) == Some(&term[..prefix])
                && distance(&word[prefix..], &term[prefix..], swaps) <= edits
        })
    }

    fn matches(&self, i: usize, query: &Json) -> bool {
        let (kind, body) = query.as_object().unwrap().iter().next().unwrap();
        let field = body.as_object().unwrap().keys().next().map_or("", String::as_str);
        let asked = &body[field];
        match kind.as_str() {
            "match_all" => true,
            "match" => {
                let text = asked["query"].as_str().unwrap().to_lowercase();
                let terms: Vec<&str> = text.split(' ').collect();
                let found = terms.iter().filter(|t| self.near(i, field, t, asked)).count();
                let required = match &asked["minimum_should_match"] {
                    Json::Null if asked["operator"] == "and" => terms.len(),
                    Json::Null => 1,
                    _ if terms.len() == 1 => 1,
                    number => number.as_u64().unwrap() as usize,
                };
                found >= required
            }
            "match_phrase" => {
                let words = self.words(i, field);
                let wanted: Vec<&str> = asked.as_str().unwrap().split(' ').collect();
                words.windows(wanted.len()).any(|window| window == wanted)
            }
            "fuzzy" => self.near(i, field, asked["value"].as_str().unwrap(), asked),
            "term" => match asked {
                Json::String(text) if field == "body" => self.words(i, field).contains(text),
                value => self.documents[i][field] == *value,
            },
            "terms" => asked.as_array().unwrap().contains(&self.documents[i][field]),
            "prefix" => {
                let start = asked.as_str().unwrap();
                self.words(i, field).iter().any(|word| word.starts_with(start))
            }
            "exists" => !self.documents[i][body["field"].as_str().unwrap()].is_null(),
            "ids" => body["values"].as_array().unwrap().contains(&json!(format!("{i:04}"))),
            "range" => self.documents[i][field].as_f64().is_some_and(|value| {
                let is = |key: &str, holds: fn(f64, f64) -> bool| {
                    asked[key].as_f64().is_none_or(|bound| holds(value, bound))
                };
                is("gte", |v, b| v >= b)
                    && is("gt", |v, b| v > b)
                    && is("lte", |v, b| v <= b)
                    && is("lt", |v, b| v < b)
            }),
            "constant_score" => self.matches(i, &body["filter"]),
            "bool" => {
                let of = |key: &str| body[key].as_array().cloned().unwrap_or_default();
                let hits = |key: &str| of(key).iter().filter(|q| self.matches(i, q)).count();
                let required = !of("must").is_empty() || !of("filter").is_empty();
                let least = match body["minimum_should_match"].as_i64() {
                    Some(least) if least < 0 => of("should").len().saturating_sub(-least as usize),
                    Some(least) => least as usize,
                    None => usize::from(!required),
                };
                let least = if required || of("should").is_empty() { least } else { least.max(1) };
                hits("must") == of("must").len()
                    && hits("filter") == of("filter").len()
                    && hits("must_not") == 0
                    && (of("should").is_empty() || hits("should") >= least)
            }
            other => panic!("{other}"),
        }
    }
}

fn leaf(numbers: &mut Numbers, words: &[String]) -> Json {
    let mut word = || words[numbers.below(words.len())].clone();
    let (a, b, c) = (word(), word(), word());
    let edits = [json!(0), json!(1), json!(2), json!("AUTO")][numbers.below(4)].clone();
    match numbers.below(14) {
        0 => json!({"match": {"body": {"query": a}}}),
        1 => json!({"match": {"body": {"query": format!("{a} {b}"), "operator": "and"}}}),
        2 => json!({"match": {"body": {"query": format!("{a} {b} {c}"),
            "minimum_should_match": 1 + numbers.below(3)}}}),
        3 => {
            json!({"match": {"body": {"query": format!("{a} {b}").to_uppercase(), "fuzziness": edits,
            "operator": "and", "max_expansions": 1000}}})
        }
        4 => json!({"match": {"body": {"query": a, "fuzziness": edits, "max_expansions": 1000,
            "prefix_length": numbers.below(4), "fuzzy_transpositions": numbers.below(2) == 0}}}),
        5 => json!({"fuzzy": {"body": {"value": a, "fuzziness": edits, "max_expansions": 1000}}}),
        6 => json!({"match_phrase": {"body": format!("{a} {b}")}}),
        7 => json!({"term": {"body": a}}),
        8 => json!({"term": {"k": a}}),
        9 => json!({"terms": {"k": [a, b, c]}}),
        10 => json!({"prefix": {"body": a[..2]}}),
        11 => json!({"exists": {"field": "n"}}),
        12 => json!({"ids": {"values": [format!("{:04}", numbers.below(400)), "none"]}}),
        _ => {
            let (low, high) = (numbers.below(100), numbers.below(100));
            match numbers.below(3) {
                0 => json!({"range": {"n": {"gte": low.min(high), "lt": low.max(high)}}}),
                1 => json!({"range": {"f": {"gt": low as f64 / 3.0}}}),
                _ => json!({"term": {"n": low}}),
            }
        }
    }
}

fn tree(numbers: &mut Numbers, words: &[String], depth: usize) -> Json {
    if depth == 0 || numbers.below(3) == 0 {
        return leaf(numbers, words);
    }
    if numbers.below(8) == 0 {
        return json!({"constant_score": {"filter": tree(numbers, words, depth - 1)}});
    }
    let mut list = |most: usize| {
        let count = numbers.below(most + 1);
        (0..count).map(|_| tree(numbers, words, depth - 1)).collect::<Vec<_>>()
    };
    let (must, should, filter, must_not) = (list(2), list(3), list(1), list(1));
    let mut query = json!({"bool": {
        "must": must, "should": should, "filter": filter, "must_not": must_not}});
    if !query["bool"]["should"].as_array().unwrap().is_empty() && numbers.below(3) == 0 {
        query["bool"]["minimum_should_match"] = json!(numbers.below(5) as i64 - 1);
    }
    query
}

#[test]
fn every_query_finds_what_the_naive_evaluator_finds() {
    let mut numbers = Numbers(0x5eed_0001);
    let words = vocabulary(&mut numbers);
    let mut documents = Vec::new();
    for i in 0..400_usize {
        let length = 1 + numbers.below(12);
        let body: Vec<_> = (0..length)
            .map(|_| {
                // Low numbers are frequent.
                let at = numbers.below(words.len()).min(numbers.below(words.len()));
                let word = &words[at];
                if numbers.below(4) == 0 { word.to_uppercase() } else { word.clone() }
            })
            .collect();
        let mut document =
            json!({"body": body.join(" "), "k": words[numbers.below(30)], "f": i as f64 / 12.0});
        if i % 3 > 0 {
            document["n"] = json!(numbers.below(100));
        }
        documents.push(document);
    }
    let truth = Truth { documents };
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let mappings = json!({"properties": {"body": {"type": "text"}, "k": {"type": "keyword"},
        "n": {"type": "long"}, "f": {"type": "double"}}});
    for shards in [1, 5] {
        let index = json!({"settings": {"number_of_shards": shards}, "mappings": mappings});
        es.ok("PUT", &format!("/t{shards}"), &index);
        // In two parts with changes in between, so that there are segments and deletions.
        let named = |i: usize| (format!("{i:04}"), &truth.documents[i]);
        let stale = json!({"body": words.join(" "), "n": 5, "k": words[0]});
        es.load(&format!("t{shards}"), (0..50).map(|i| (format!("{i:04}"), &stale)));
        es.load(&format!("t{shards}"), (0..200).map(named));
        es.load(&format!("t{shards}"), (200..400).map(named));
    }
    let mut found_some = 0;
    for round in 0..400 {
        let query = tree(&mut numbers, &words, round % 4);
        let expected: Vec<String> =
            (0..400).filter(|i| truth.matches(*i, &query)).map(|i| format!("{i:04}")).collect();
        for shards in [1, 5] {
            assert_eq!(es.ids(&format!("t{shards}"), &query), expected, "{shards}: {query}");
        }
        found_some += usize::from(!expected.is_empty() && expected.len() < 400);
    }
    assert!(found_some > 150, "only {found_some} queries say anything");
    // Over both indices every document comes twice.
    let both = es.search("t*", &json!({"size": 0}));
    assert_eq!(both["hits"]["total"]["value"], 800);
    assert_eq!(both["_shards"]["total"], 6);
}

#[test]
fn scores_order_as_bm25_does() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let texts = ["apple", "apple pear plum fig", "apple apple pear", "plum", "pear fig fig"];
    let documents: Vec<_> = texts.iter().map(|text| json!({"t": text})).collect();
    es.load("b", documents.iter().enumerate().map(|(i, d)| (i.to_string(), d)));
    let found = es.search("b", &json!({"query": {"match": {"t": "apple"}}}));
    assert_eq!(ids(&found), ["0", "2", "1"]);
    // idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / average)), lengths 1, 4, 3, 1, 3.
    let idf = (1.0_f64 + (5.0 - 3.0 + 0.5) / (3.0 + 0.5)).ln();
    let score = |tf: f64, length: f64| idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / 2.4));
    let hits = found["hits"]["hits"].as_array().unwrap();
    for (hit, expected) in hits.iter().zip([score(1.0, 1.0), score(2.0, 3.0), score(1.0, 4.0)]) {
        let got = hit["_score"].as_f64().unwrap();
        assert!((got - expected).abs() < 1e-4, "{got} {expected}");
    }
    let boosted = json!({"query": {"bool": {"should": [
        {"match": {"t": "plum"}}, {"match": {"t": {"query": "fig", "boost": 10}}}]}}});
    assert_eq!(ids(&es.search("b", &boosted))[0], "4");
    let flat =
        json!({"query": {"constant_score": {"filter": {"match": {"t": "fig"}}, "boost": 3}}});
    let flat = es.search("b", &flat);
    assert!(flat["hits"]["hits"].as_array().unwrap().iter().all(|hit| hit["_score"] == 3.0));
}
