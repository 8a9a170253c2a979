//! Searches against a corpus whose right answers are computed by looking at every document.

use super::{Client, Numbers, TestServer, encode, start};
use std::collections::BTreeSet;

#[derive(Clone, Debug)]
struct Entry {
    name: String,
    title: String,
    body: String,
    category: Option<String>,
    author: Option<String>,
    score: Option<i64>,
}

/// A query with its meaning, written down a second time and without an index.
#[derive(Clone, Debug)]
enum Truth {
    Everything,
    Contains(&'static str, String),
    Prefix(&'static str, String),
    Fuzzy(&'static str, String, usize, usize),
    Compare(&'static str, i64),
    Between(i64, i64),
    Real(&'static str, f64),
    In(Vec<i64>),
    Category(Vec<String>),
    And(Vec<Truth>),
    Or(Vec<Truth>),
    Not(Box<Truth>),
    /// Words that are wanted, a phrase, and a word that is not.
    User(&'static str, Vec<String>, String, String),
    /// The first matches, the other is for the order.
    Rank(Box<Truth>, Box<Truth>),
    /// Words, how far they may be from each other, and whether in this order.
    Near(&'static str, Vec<String>, usize, bool),
}

const WORDS: [&str; 24] = [
    "storm", "storms", "stork", "store", "stored", "harbour", "harbor", "ship", "ships", "shop",
    "chip", "load", "lead", "line", "lines", "lime", "sea", "see", "tea", "Über", "naïve", "x86",
    "Ωmega", "a",
];

fn tokens(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(|word| word.chars().flat_map(char::to_lowercase).collect()).collect()
}

fn lower(text: &str) -> String {
    text.chars().flat_map(char::to_lowercase).collect()
}

/// The textbook distance: insertions, deletions, substitutions.
fn levenshtein(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substituted = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(diagonal + 1).min(row[j] + 1);
        }
    }
    row[b.len()]
}

/// Returns whether positions can be chosen so that all are within the distance: every choice is tried.
fn near(terms: &[String], words: &[String], distance: usize, ordered: bool) -> bool {
    let mut chosen: Vec<Vec<usize>> = vec![Vec::new()];
    for word in words {
        let word = lower(word);
        let places: Vec<usize> = (0..terms.len()).filter(|at| terms[*at] == word).collect();
        let grown = chosen.iter().flat_map(|before| {
            let with = |at: &usize| before.iter().copied().chain([*at]).collect();
            places.iter().map(with).collect::<Vec<Vec<usize>>>()
        });
        chosen = grown.collect();
    }
    chosen.iter().any(|positions| {
        let (least, most) = (positions.iter().min().unwrap(), positions.iter().max().unwrap());
        most - least <= distance && (!ordered || positions.windows(2).all(|p| p[0] < p[1]))
    })
}

impl Entry {
    fn text(&self, field: &str) -> Option<&str> {
        match field {
            "title" => Some(&self.title),
            "body" => Some(&self.body),
            "category" => self.category.as_deref(),
            _ => self.author.as_deref(),
        }
    }

    /// The terms by which a field is matched: words of text, or a keyword as a whole.
    fn terms(&self, field: &str) -> Vec<String> {
        match field {
            "title" | "body" => tokens(self.text(field).unwrap()),
            _ => self.text(field).map(lower).into_iter().collect(),
        }
    }

    fn json(&self) -> String {
        let mut fields = serde_json::json!({ "title": self.title, "body": self.body });
        for (name, value) in [("category", &self.category), ("author", &self.author)] {
            if let Some(value) = value {
                fields[name] = value.as_str().into();
            }
        }
        if let Some(score) = self.score {
            fields["score"] = score.into();
        }
        fields.to_string()
    }
}

impl Truth {
    fn matches(&self, entry: &Entry) -> bool {
        match self {
            Self::Everything => true,
            Self::Contains(field @ ("title" | "body"), text) => {
                let (have, want) = (entry.terms(field), tokens(text));
                !want.is_empty() && have.windows(want.len()).any(|window| window == want)
            }
            Self::Contains(field, text) => entry.terms(field) == [lower(text)],
            Self::Prefix(field, text) => {
                entry.terms(field).iter().any(|term| term.starts_with(&lower(text)))
            }
            Self::Fuzzy(field, text, edits, fixed) => {
                let text = lower(text);
                let head: String = text.chars().take(*fixed).collect();
                let tail: String = text.chars().skip(*fixed).collect();
                entry.terms(field).iter().any(|term| {
                    let rest = term.strip_prefix(head.as_str());
                    rest.is_some_and(|rest| levenshtein(rest, &tail) <= *edits)
                })
            }
            Self::Compare(sign, value) => entry.score.is_some_and(|score| match *sign {
                "=" => score == *value,
                "<" => score < *value,
                "<=" => score <= *value,
                ">" => score > *value,
                _ => score >= *value,
            }),
            Self::Real(sign, value) => entry.score.is_some_and(|score| match *sign {
                "=" => score as f64 == *value,
                "<" => (score as f64) < *value,
                _ => score as f64 >= *value,
            }),
            Self::Between(low, high) => {
                entry.score.is_some_and(|score| (*low..=*high).contains(&score))
            }
            Self::In(values) => entry.score.is_some_and(|score| values.contains(&score)),
            Self::Category(values) => {
                let own = entry.category.as_deref().map(lower);
                own.is_some_and(|own| values.iter().any(|value| lower(value) == own))
            }
            Self::And(children) => children.iter().all(|child| child.matches(entry)),
            Self::Or(children) => children.iter().any(|child| child.matches(entry)),
            Self::Not(child) => !child.matches(entry),
            Self::Rank(first, _) => first.matches(entry),
            Self::Near(field, words, distance, ordered) => {
                near(&entry.terms(field), words, *distance, *ordered)
            }
            Self::User(grammar, words, phrase, minus) => {
                let anywhere = |text: &str| {
                    ["title", "body"]
                        .iter()
                        .any(|field| Self::Contains(field, text.to_owned()).matches(entry))
                };
                let found: Vec<bool> =
                    words.iter().chain([phrase]).map(|text| anywhere(text)).collect();
                let all = *grammar == "all";
                let wanted = if all { !found.contains(&false) } else { found.contains(&true) };
                wanted && !anywhere(minus)
            }
        }
    }

    fn yql(&self) -> String {
        let join = |children: &[Self], word: &str| {
            let parts: Vec<String> = children.iter().map(|c| format!("({})", c.yql())).collect();
            parts.join(word)
        };
        match self {
            Self::Everything => "true".into(),
            Self::Contains(field, text) => format!("{field} contains \"{text}\""),
            Self::Prefix(field, text) => format!("{field} contains ({{prefix: true}}\"{text}\")"),
            Self::Fuzzy(field, text, edits, fixed) => format!(
                "{field} contains \
                 ({{maxEditDistance: {edits}, prefixLength: {fixed}}}fuzzy(\"{text}\"))"
            ),
            Self::Compare(sign, value) => format!("score {sign} {value}"),
            Self::Real(sign, value) => format!("score {sign} {value:?}"),
            Self::Between(low, high) => format!("range(score, {low}, {high})"),
            Self::In(values) => {
                let values: Vec<String> = values.iter().map(ToString::to_string).collect();
                format!("score in ({})", values.join(", "))
            }
            Self::Category(values) => format!("category in ('{}')", values.join("', '")),
            Self::And(children) => join(children, " and "),
            Self::Or(children) => join(children, " or "),
            Self::Not(child) => format!("!({})", child.yql()),
            Self::Rank(first, other) => format!("rank({}, {})", first.yql(), other.yql()),
            Self::Near(field, words, distance, ordered) => {
                let name = if *ordered { "onear" } else { "near" };
                let words = words.join("\", \"");
                format!("{field} contains ({{distance: {distance}}}{name}(\"{words}\"))")
            }
            Self::User(grammar, words, phrase, minus) => {
                let words = words.join(" ");
                format!(
                    "({{grammar: '{grammar}'}}userInput(\"{words} \\\"{phrase}\\\" -{minus}\"))"
                )
            }
        }
    }

    fn random(numbers: &mut Numbers, depth: usize) -> Self {
        let word = |numbers: &mut Numbers| WORDS[numbers.below(WORDS.len())].to_owned();
        let field = ["title", "body", "author"][numbers.below(3)];
        match numbers.below(if depth == 0 { 11 } else { 16 }) {
            0 => Self::Contains(field, word(numbers)),
            1 => Self::Contains("title", format!("{} {}", word(numbers), word(numbers))),
            2 => {
                let word = word(numbers);
                let length = 1 + numbers.below(4);
                Self::Prefix(field, word.chars().take(length).collect())
            }
            3 => Self::Fuzzy(field, word(numbers), numbers.below(3), numbers.below(4)),
            4 => {
                let sign = ["=", "<", "<=", ">", ">="][numbers.below(5)];
                Self::Compare(sign, numbers.below(40) as i64 - 20)
            }
            5 => {
                let sign = ["=", "<", ">="][numbers.below(3)];
                Self::Real(sign, (numbers.below(80) as f64 - 40.0) / 2.0)
            }
            6 => Self::Between(numbers.below(40) as i64 - 20, numbers.below(40) as i64 - 20),
            7 => Self::In(vec![numbers.below(20) as i64, -(numbers.below(20) as i64)]),
            8 => Self::Category(vec![format!("CAT {}", numbers.below(4)), "none".into()]),
            9 => Self::User(
                ["weakAnd", "any", "all"][numbers.below(3)],
                (0..numbers.below(3)).map(|_| word(numbers)).collect(),
                format!("{} {}", word(numbers), word(numbers)),
                word(numbers),
            ),
            10 => Self::Near(
                ["title", "body"][numbers.below(2)],
                (0..1 + numbers.below(3)).map(|_| word(numbers)).collect(),
                numbers.below(6),
                numbers.below(2) == 0,
            ),
            11 => Self::Rank(
                Box::new(Self::random(numbers, depth - 1)),
                Box::new(Self::random(numbers, depth - 1)),
            ),
            12 | 13 => {
                let count = 1 + numbers.below(3);
                Self::And((0..count).map(|_| Self::random(numbers, depth - 1)).collect())
            }
            14 => {
                let count = 1 + numbers.below(3);
                Self::Or((0..count).map(|_| Self::random(numbers, depth - 1)).collect())
            }
            _ => Self::Not(Box::new(Self::random(numbers, depth - 1))),
        }
    }
}

fn corpus(count: usize) -> Vec<Entry> {
    let mut numbers = Numbers(42);
    let text = |longest: usize, numbers: &mut Numbers| {
        let length = 1 + numbers.below(longest);
        let separators = [" ", ", ", "-", "... "];
        let mut text = String::new();
        for _ in 0..length {
            text.push_str(WORDS[numbers.below(WORDS.len())]);
            text.push_str(separators[numbers.below(4)]);
        }
        text
    };
    (0..count)
        .map(|number| Entry {
            name: format!("d{number}"),
            title: text(4, &mut numbers),
            body: text(30, &mut numbers),
            category: (number % 7 != 0).then(|| format!("Cat {}", numbers.below(4))),
            author: (number % 5 != 0).then(|| WORDS[numbers.below(WORDS.len())].to_owned()),
            score: (number % 11 != 0).then(|| numbers.below(40) as i64 - 20),
        })
        .collect()
}

/// Feeds the corpus in three parts with corrections, so that the index has several segments and
/// deleted documents.
fn fed(folder: &std::path::Path, entries: &[Entry]) -> (TestServer, Client) {
    let server = start(folder);
    let mut client = server.client();
    for part in entries.chunks(entries.len().div_ceil(3)) {
        for entry in part {
            let wrong = r#"{"title":"storm storm storm","body":"to be replaced","score":1}"#;
            if entry.name.ends_with('3') {
                assert_eq!(client.put(&entry.name, wrong).status, 200);
                client.refresh();
            }
            assert_eq!(client.put(&entry.name, &entry.json()).status, 200);
        }
        assert_eq!(client.put("extra", r#"{"title":"storm ship"}"#).status, 200);
        client.refresh();
        let path = super::document("extra");
        assert_eq!(client.request("DELETE", &path, "", b"").status, 200);
    }
    client.refresh();
    (server, client)
}

fn names(entries: &[Entry], truth: &Truth) -> BTreeSet<String> {
    entries.iter().filter(|e| truth.matches(e)).map(|e| e.name.clone()).collect()
}

#[test]
fn searches_find_what_a_scan_finds() {
    let folder = tempfile::tempdir().unwrap();
    let entries = corpus(300);
    let (_server, mut client) = fed(folder.path(), &entries);
    let mut numbers = Numbers(7);
    let mut queries = vec![Truth::Everything];
    queries.extend((0..600).map(|number| Truth::random(&mut numbers, number % 4)));
    let mut found_something = 0;
    for truth in &queries {
        let expected = names(&entries, truth);
        for ranking in ["", "and ({weight: 1}true)"] {
            let reply = client.find(&format!("({}) {ranking}", truth.yql()));
            assert_eq!(reply.status, 200, "{}: {}", truth.yql(), reply.body);
            let found: BTreeSet<String> = reply.names().into_iter().collect();
            assert_eq!(found, expected, "{}", truth.yql());
            assert_eq!(reply.total(), expected.len() as u64, "{}", truth.yql());
            assert_eq!(reply.json()["root"]["coverage"]["documents"], 300);
        }
        // The page of ten is the beginning of the page of all, and the total does not change.
        let yql = encode(&format!("select * from doc where {}", truth.yql()));
        for ranking in ["bm25", "unranked"] {
            let path = format!("/search/?ranking={ranking}&timeout=10s&yql={yql}");
            let all = client.get(&format!("{path}&hits=400"));
            let page = client.get(&format!("{path}&hits=7&offset=5"));
            let part: Vec<_> = all.names().into_iter().skip(5).take(7).collect();
            assert_eq!(page.names(), part, "{}", truth.yql());
            assert_eq!(page.total(), expected.len() as u64);
        }
        found_something += usize::from(!expected.is_empty());
    }
    assert!(found_something > queries.len() / 3, "{found_something} of {}", queries.len());
}

/// Pages of different sizes come from the same order, and the relevance is the sum over the words.
#[test]
fn any_of_several_words_is_ordered_by_the_sum() {
    let folder = tempfile::tempdir().unwrap();
    let entries = corpus(600);
    let (_server, mut client) = fed(folder.path(), &entries);
    let relevance = |client: &mut Client, filter: &str| -> Vec<(String, f64)> {
        let reply = client.get(&format!(
            "/search/?timeout=10s&hits=400&yql={}",
            encode(&format!("select * from doc where {filter}"))
        ));
        let json = reply.json();
        let hits = json["root"]["children"].as_array().cloned().unwrap_or_default();
        let hit = |hit: &serde_json::Value| {
            (hit["id"].as_str().unwrap().to_owned(), hit["relevance"].as_f64().unwrap())
        };
        hits.iter().map(hit).collect()
    };
    for words in
        [["storm", "ship"].as_slice(), &["sea", "tea", "naïve"], &["a", "x86", "lead", "chip"]]
    {
        let text = words.join(" ");
        let parts: Vec<Vec<(String, f64)>> = words
            .iter()
            .map(|word| relevance(&mut client, &format!("title contains '{word}'")))
            .collect();
        let whole =
            relevance(&mut client, &format!("{{defaultIndex: 'title'}}userInput('{text}')"));
        assert!(whole.len() > 60 && whole.is_sorted_by(|left, right| left.1 >= right.1));
        for (id, sum) in &whole {
            let of = |part: &Vec<(String, f64)>| {
                part.iter().find(|(other, _)| other == id).map_or(0.0, |(_, value)| *value)
            };
            let expected: f64 = parts.iter().map(of).sum();
            assert!((sum - expected).abs() < 1e-5, "{text} {id}: {sum} {expected}");
        }
        for (hits, offset) in [(1, 0), (7, 3), (10, 20), (30, 30)] {
            for query in [
                format!("query={}", encode(&text)),
                format!("default-index=title&query={}", encode(&text)),
            ] {
                let path = format!("/search/?timeout=10s&{query}");
                let all = client.get(&format!("{path}&hits=400"));
                let page = client.get(&format!("{path}&hits={hits}&offset={offset}"));
                assert_eq!(page.names(), all.names()[offset..offset + hits], "{path}");
                assert_eq!(page.total(), all.total(), "{path}");
            }
        }
    }
}

#[test]
fn order_by_sorts_as_a_scan_does() {
    let folder = tempfile::tempdir().unwrap();
    let entries = corpus(200);
    let (_server, mut client) = fed(folder.path(), &entries);
    let key = |name: &str| {
        let entry = entries.iter().find(|entry| entry.name == name).unwrap();
        (entry.category.as_deref().map(lower), entry.score)
    };
    for (order, descending) in [
        ("category, score", (false, false)),
        ("category asc, score desc", (false, true)),
        ("category desc, score", (true, false)),
        ("category desc, score desc", (true, true)),
    ] {
        let yql = encode(&format!("select * from doc where true order by {order}"));
        let all = client.get(&format!("/search/?hits=400&yql={yql}"));
        let names = all.names();
        assert_eq!(names.len(), 200);
        for pair in names.windows(2) {
            let ((c1, s1), (c2, s2)) = (key(&pair[0]), key(&pair[1]));
            let category = if descending.0 { c2.cmp(&c1) } else { c1.cmp(&c2) };
            let score = if descending.1 { s2.cmp(&s1) } else { s1.cmp(&s2) };
            assert!(category.then(score).is_le(), "{order}: {pair:?}");
        }
        let page = client.get(&format!("/search/?hits=20&offset=50&yql={yql}"));
        assert_eq!(page.names(), names[50..70], "{order}");
        assert_eq!(page.total(), 200);
    }
}

#[test]
fn relevance_is_bm25() {
    let folder = tempfile::tempdir().unwrap();
    let entries = corpus(150);
    let server = start(folder.path());
    let mut client = server.client();
    for entry in &entries {
        assert_eq!(client.put(&entry.name, &entry.json()).status, 200);
    }
    client.refresh();
    let lengths: Vec<usize> = entries.iter().map(|entry| tokens(&entry.body).len()).collect();
    let mean = lengths.iter().sum::<usize>() as f64 / 150.0;
    let count = |entry: &Entry| tokens(&entry.body).iter().filter(|t| *t == "ship").count();
    let matching = entries.iter().filter(|entry| count(entry) > 0).count() as f64;
    let idf = (1.0 + (150.0 - matching + 0.5) / (matching + 0.5)).ln();
    let reply = client.find("body contains \"Ship\"").json();
    let hits = reply["root"]["children"].as_array().unwrap();
    assert_eq!(hits.len() as f64, matching);
    let mut last = f64::INFINITY;
    for hit in hits {
        let relevance = hit["relevance"].as_f64().unwrap();
        let id = hit["id"].as_str().unwrap();
        let at = entries.iter().position(|e| id == format!("id:test:doc::{}", e.name)).unwrap();
        let (tf, length) = (count(&entries[at]) as f64, lengths[at] as f64);
        let expected = idf * tf * 2.2 / (tf + 1.2 * (0.25 + 0.75 * length / mean));
        assert!((relevance - expected).abs() < 1e-4, "{id}: {relevance} is not {expected}");
        assert!(relevance <= last);
        last = relevance;
    }
}
