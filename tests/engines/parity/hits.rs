//! The same hits for the ten kinds of queries that people compare engines by, and for the options
//! of each.

use super::packages::Package;
use super::{Answer, Numbers, Pair, WINDOW, run};
use crate::process::Place;
use serde_json::{Value, json};
use std::time::Duration;

/// Longest time that loading and the two small cells of each engine may take.
const LOADING: Duration = Duration::from_secs(300);
/// How often each kind is asked, with words of its own.
const ROUNDS: usize = 2;
/// Of how many queries with more hits than a page has all are looked at, and not only their numbers in
/// each range of sizes.
const WHOLE: usize = 2;
/// Ranges of sizes by which what is too much for one page is divided.
const PARTS: usize = 12;

/// Loads the documents into both through plimsoll's own bulk loader, with one shard and with five.
/// On the way the real engine is asked for a distance that it takes and does not search.
pub fn load(place: &Place, documents: &[Package], real: &str, ours: &str) {
    let lines = documents.iter().enumerate().map(|(number, one)| format!("{}\n", one.line(number)));
    place.file("packages.ndjson", lines.collect::<String>());
    place.file("queries.toml", "[[query]]\nname = \"one\"\nkind = \"fuzzy\"\ntext = \"libary\"\n");
    let (real, ours) = (format!("real={real}"), format!("ours={ours}"));
    let args = [
        "search",
        "--engine",
        &real,
        "--engine",
        &ours,
        "--corpus",
        "ndjson:packages.ndjson",
        "--sizes",
        "all",
        "--groups",
        // No text is loaded for what an engine refuses: our 1 shard is there for the distance of 2.
        "2x5,2x1,4x1",
        "--users",
        "1",
        "--duration",
        "300ms",
        "--warmup",
        "100ms",
        "--queries",
        "queries.toml",
        "--keep-indexes",
        "--json",
        "record.json",
        "--quiet",
    ];
    let ended = run(place, &args, LOADING);
    let text = std::fs::read_to_string(place.path().join("record.json"));
    let record: Value =
        serde_json::from_str(&text.unwrap_or_else(|_| panic!("{ended:?}"))).unwrap();
    let loads = record["search"]["loads"].as_array().unwrap();
    assert_eq!(loads.len(), 4, "{ended:?}");
    for load in loads {
        assert_eq!(
            (&load["documents"], &load["failed"]),
            (&json!(documents.len()), &json!(0)),
            "{load}"
        );
        let rate = load["documents_per_s"].as_f64().unwrap();
        eprintln!(
            "parity: loaded {} with {} shards: {rate:.0} documents a second",
            load["engine"], load["shards"]
        );
    }
    let cells = record["search"]["cells"].as_array().unwrap();
    let cell = |engine: &str, distance: u8| {
        let found =
            cells.iter().find(|cell| cell["engine"] == engine && cell["distance"] == distance);
        found.unwrap_or_else(|| panic!("no cell of {engine} at {distance}: {record}"))
    };
    let clamped = |cell: &Value| cell["marks"].to_string().contains("clamped to 2");
    assert!(clamped(cell("real", 4)), "{}", cell("real", 4));
    assert!(!clamped(cell("real", 2)) && !clamped(cell("ours", 2)));
    // Ours does not take what it cannot do.
    assert!(cell("ours", 4)["ok_per_s"].is_null(), "{}", cell("ours", 4));
    assert!(cell("ours", 4)["reason"].to_string().contains("Valid edit distances are"));
}

/// Compares the hits of all queries, document by document.
pub fn compare(pair: &mut Pair, documents: &[Package]) {
    let queries = queries(documents);
    let sizes = parts(documents);
    let names =
        pair.ours.ok("GET", "/_cat/indices/plimsoll-*?format=json&h=index,pri", &Value::Null);
    let names = names.as_array().unwrap().clone();
    let mut shards: Vec<&str> = names.iter().filter_map(|one| one["pri"].as_str()).collect();
    shards.sort_unstable();
    assert_eq!(shards, ["1", "5"], "{names:?}");
    let mut wrong = Vec::new();
    for name in &names {
        let index = name["index"].as_str().unwrap();
        let answers = pair.all(index, &queries, WINDOW);
        let (mut found, mut alike, mut large) = (0, 0, 0);
        for (query, (mut real, mut ours)) in queries.iter().zip(answers) {
            if real.total > WINDOW && real.total == ours.total {
                large += 1;
                let hits = if large <= WHOLE { WINDOW } else { 0 };
                (real.ids, ours.ids) = by_parts(pair, index, query, &sizes, hits);
            }
            found += usize::from(real.total > 0);
            if real.total == ours.total && real.ids == ours.ids {
                alike += usize::from(scored_alike(&real, &ours));
                continue;
            }
            let missing: Vec<_> = real.ids.difference(&ours.ids).take(3).collect();
            let more: Vec<_> = ours.ids.difference(&real.ids).take(3).collect();
            wrong.push(format!(
                "{index}: {query}: {} and {}, not {missing:?}, but {more:?}",
                real.total, ours.total
            ));
        }
        let all = queries.len();
        eprintln!(
            "parity: {index}: {all} queries, {found} with hits, {alike} with the same ten best scores"
        );
        assert!(found * 2 > all, "too few queries find anything: {found} of {all}");
    }
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong[..wrong.len().min(20)].join("\n")
    );
}

/// Whether the ten best have the same scores, to a thousandth. Those of the same score may change places.
fn scored_alike(real: &Answer, ours: &Answer) -> bool {
    let alike = |(left, right): (&(String, f64), &(String, f64))| {
        (left.1 - right.1).abs() <= 1e-3 * left.1.abs()
    };
    real.best.iter().zip(&ours.best).all(alike)
}

/// Bounds of sizes between which there are about equally many documents.
fn parts(documents: &[Package]) -> Vec<i64> {
    let mut sizes: Vec<i64> = documents.iter().map(|package| package.size).collect();
    sizes.sort_unstable();
    let mut bounds: Vec<i64> = (1..PARTS).map(|part| sizes[part * sizes.len() / PARTS]).collect();
    bounds.dedup();
    bounds
}

type Ids = std::collections::BTreeSet<String>;

/// All hits of a query that has more than a page, or how many there are in each part.
fn by_parts(pair: &mut Pair, index: &str, query: &Value, bounds: &[i64], hits: u64) -> (Ids, Ids) {
    let edge = |at: Option<&i64>, name: &str| at.map_or(json!({}), |at| json!({ name: at }));
    let queries: Vec<Value> = (0..=bounds.len())
        .map(|part| {
            let mut range = edge(part.checked_sub(1).and_then(|at| bounds.get(at)), "gte");
            let below = edge(bounds.get(part), "lt");
            range.as_object_mut().unwrap().extend(below.as_object().unwrap().clone());
            json!({"bool": {"must": [query], "filter": [{"range": {"score": range}}]}})
        })
        .collect();
    let (mut real, mut ours) = (Ids::new(), Ids::new());
    for (part, (of_real, of_ours)) in pair.all(index, &queries, hits).into_iter().enumerate() {
        assert!(of_real.total <= WINDOW, "a part is too large: {}", of_real.total);
        // Without hits the numbers of the parts stand for them.
        let ids = |answer: Answer| match hits {
            0 => Ids::from([format!("part {part}: {}", answer.total)]),
            _ => answer.ids,
        };
        real.extend(ids(of_real));
        ours.extend(ids(of_ours));
    }
    (real, ours)
}

/// Words to ask for.
struct Words<'a> {
    documents: &'a [Package],
    numbers: Numbers,
}

impl Words<'_> {
    /// Two words that stand side by side in some description, spelt right.
    fn pair(&mut self) -> [String; 2] {
        loop {
            let package = self.numbers.of(self.documents);
            let words: Vec<&str> = package.summary.split(|c: char| !c.is_alphanumeric()).collect();
            let at = self.numbers.below(words.len());
            if let Some([first, second]) = words.get(at..at + 2)
                && first.len() > 2
                && second.len() > 2
            {
                return [(*first).to_owned(), (*second).to_owned()];
            }
        }
    }

    /// A word with none to two errors of a typist.
    fn typed(&mut self) -> String {
        let errors = self.numbers.below(3);
        let [word, _] = self.pair();
        self.misspelt(&word, errors)
    }

    fn misspelt(&mut self, word: &str, errors: usize) -> String {
        let mut letters: Vec<char> = word.chars().collect();
        for _ in 0..errors {
            let at = self.numbers.below(letters.len());
            let other = char::from(b'a' + self.numbers.below(26) as u8);
            match self.numbers.below(4) {
                0 if letters.len() > 2 => drop(letters.remove(at)),
                1 => letters.insert(at, other),
                2 if at > 0 => letters.swap(at - 1, at),
                _ => letters[at] = other,
            }
        }
        letters.into_iter().collect()
    }

    fn section(&mut self) -> String {
        let section = self.numbers.of(self.documents).section.clone();
        let errors = self.numbers.below(2);
        self.misspelt(&section, errors)
    }
}

fn matches(field: &str, text: &str, operator: &str, fuzziness: &Value) -> Value {
    json!({"match": {field: {"query": text, "operator": operator, "fuzziness": fuzziness}}})
}

/// All queries of a run.
fn queries(documents: &[Package]) -> Vec<Value> {
    let mut words = Words { documents, numbers: Numbers::new(2026) };
    let mut all = fixed();
    for _ in 0..ROUNDS {
        ten_kinds(&mut words, &mut all);
        options(&mut words, &mut all);
    }
    all
}

/// Words that were chosen: the capital letter that is one more edit, names, versions, what stands in every second
/// document, and what has far more neighbours than are looked at.
fn fixed() -> Vec<Value> {
    let two = json!(2);
    vec![
        json!({"fuzzy": {"body": {"value": "Libary", "fuzziness": 2}}}),
        json!({"fuzzy": {"body": {"value": "Graphicl", "fuzziness": 2}}}),
        matches("body", "shared libary", "and", &two),
        matches("body", "interfase devlopment", "or", &two),
        matches("body", "libc6 2.34", "and", &json!(0)),
        matches("body", "lib", "or", &two),
        matches("body", "python3", "or", &two),
        matches("body", "a", "or", &two),
        matches("body", "cat", "or", &two),
        matches("body", "the library of data", "or", &json!("AUTO")),
        json!({"match_phrase": {"body": "development files"}}),
        json!({"match_phrase": {"body": "role::program"}}),
        json!({"match_phrase": {"body": {"query": "files for the", "slop": 1}}}),
        json!({"bool": {"must": [{"match": {"body": "library"}}], "must_not": [matches("category", "lib", "or", &two)]}}),
        json!({"bool": {"filter": [{"term": {"category": "libs"}}], "must_not": {"match": {"body": "c6"}}}}),
        json!({"match_all": {}}),
        json!({"match_none": {}}),
    ]
}

/// One query of each kind.
fn ten_kinds(words: &mut Words<'_>, all: &mut Vec<Value>) {
    let two = json!(2);
    let (one, other) = (words.typed(), words.typed());
    let section = words.section();
    let in_section = matches("category", &section, "or", &two);
    all.push(json!({"fuzzy": {"body": {"value": one, "fuzziness": 2}}}));
    let [a, b] = words.pair();
    let (a, b) = (words.misspelt(&a, 1), words.misspelt(&b, 1));
    let near = format!("{a} {b}");
    all.push(matches("body", &near, "and", &two));
    all.push(json!({"bool": {"must": [matches("body", &format!("{one} {other}"), "or", &two)]}}));
    let either = [matches("body", &one, "or", &two), in_section.clone()];
    all.push(json!({"bool": {"should": either, "minimum_should_match": 1}}));
    let (with, without) = (matches("body", &a, "or", &two), matches("body", &b, "or", &two));
    all.push(json!({"bool": {"must": [with], "must_not": [without]}}));
    let near = matches("body", &near, "or", &two);
    all.push(json!({"bool": {"must": [near, in_section]}}));
    all.push(json!({"bool": {"must": [near], "must_not": [in_section]}}));
    let [a, b] = words.pair();
    let right = format!("{a} {b}");
    all.push(matches("body", &right, "and", &two));
    all.push(json!({"match_phrase": {"body": right}}));
    let phrase = json!({"match_phrase": {"body": right}});
    all.push(json!({"bool": {"must": [phrase], "must_not": [in_section]}}));
}

/// What else may be said in these queries.
fn options(words: &mut Words<'_>, all: &mut Vec<Value>) {
    let numbers = |words: &mut Words<'_>, of: &[u64]| *words.numbers.of(of);
    let (one, section) = (words.typed(), words.section());
    for fuzziness in [json!(1), json!("AUTO"), json!("AUTO:2,4"), json!(1.5)] {
        all.push(matches("body", &one, "or", &fuzziness));
    }
    let prefix = numbers(words, &[1, 2, 3, 9]);
    let most = numbers(words, &[1, 5, 50, 500]);
    let word = words.typed();
    all.push(json!({"match": {"body":
        {"query": word, "fuzziness": 2, "prefix_length": prefix, "max_expansions": most}}}));
    let word = words.typed();
    all.push(
        json!({"match": {"body": {"query": word, "fuzziness": 2, "fuzzy_transpositions": false}}}),
    );
    let word = words.typed().to_lowercase();
    all.push(json!({"fuzzy": {"body":
        {"value": word, "fuzziness": 2, "max_expansions": most, "transpositions": false}}}));
    let package = words.numbers.of(words.documents);
    let (keeper, summary, tail) = (&package.keeper, &package.summary, package.body.lines().last());
    for minimum in ["2", "-1", "60%", "-30%", "2<70%"] {
        all.push(json!({"match": {"title": {"query": keeper, "minimum_should_match": minimum}}}));
    }
    all.push(json!({"match_phrase": {"body": summary}}));
    all.push(json!({"match_phrase": {"body": tail.unwrap_or_default().chars().take(80).collect::<String>()}}));
    all.push(json!({"match": {"body": {"query": summary, "operator": "and"}}}));
    all.push(json!({"term": {"author": keeper}}));
    all.push(json!({"terms": {"category": [section, "games", "libs"]}}));
    all.push(json!({"prefix": {"category": section.chars().take(3).collect::<String>()}}));
    let from = words.numbers.below(5000);
    all.push(json!({"range": {"score": {"gt": from, "lte": from * 2}}}));
    let all_three = [
        json!({"match": {"body": one}}),
        json!({"match": {"body": summary}}),
        json!({"term": {"category": section}}),
    ];
    for minimum in [json!(2), json!("-1"), json!("75%")] {
        all.push(json!({"bool": {"should": all_three, "minimum_should_match": minimum}}));
    }
    all.push(json!({"bool": {"must": [{"match": {"body": summary}}], "should": [{"match": {"body": one}}]}}));
}
