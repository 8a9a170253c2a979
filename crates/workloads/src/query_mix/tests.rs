//! Every query of a mix against a plain scan of the corpus.

use super::*;
use crate::corpus::{CorpusOptions, Source};
use crate::edit_distance::edit_distance;
use crate::query_file::{Queries, ReadOptions, RecordKind};

fn bundled(limit: u64) -> Corpus {
    Corpus::open(&Source::Bundled, &CorpusOptions { limit: Some(limit) }).unwrap()
}

/// Lower-case words, found another way than the survey finds them.
fn words(text: &str) -> Vec<String> {
    let lower = text.to_lowercase();
    let parts = lower.split(|c: char| !c.is_alphanumeric());
    parts.filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

struct Indexed {
    title: Vec<String>,
    body: Vec<String>,
    document: Document,
}

impl Indexed {
    fn has(&self, word: &str) -> bool {
        self.title.iter().chain(&self.body).any(|w| w == word)
    }

    fn matches(&self, ask: &Ask) -> bool {
        match ask {
            Ask::Term(word) => self.has(word),
            Ask::Both(a, b) => self.has(a) && self.has(b),
            Ask::Phrase { field, first, second } => {
                let field = if *field == "title" { &self.title } else { &self.body };
                field.windows(2).any(|pair| pair[0] == *first && pair[1] == *second)
            }
            Ask::Fuzzy { word, distance } => {
                let near = |w: &&String| {
                    w.len().abs_diff(word.len()) <= *distance
                        && edit_distance(w.as_bytes(), word.as_bytes()) <= *distance
                };
                self.title.iter().chain(&self.body).any(|w| near(&w))
            }
            Ask::InCategory { word, category } => {
                self.has(word) && self.document.category == *category
            }
            Ask::Scored { word, at_least } => self.has(word) && self.document.score >= *at_least,
        }
    }
}

#[test]
fn every_query_has_the_hits_it_says() {
    let corpus = bundled(2000);
    let queries = make(&corpus, &MixOptions::even(5, 15)).unwrap();
    assert_eq!(queries.len(), 90);
    let documents: Vec<Indexed> = corpus
        .documents()
        .unwrap()
        .map(|document| {
            let document = document.unwrap();
            Indexed { title: words(&document.title), body: words(&document.body), document }
        })
        .collect();
    for query in &queries {
        let hits = documents.iter().filter(|d| d.matches(&query.ask)).count() as u64;
        match query.expect {
            Expect::None => assert_eq!(hits, 0, "{query:?}"),
            Expect::AtLeast(least) => assert!(least >= 1 && hits >= least, "{hits}: {query:?}"),
        }
        if query.class == QueryClass::OneTerm {
            assert_eq!(query.expect, Expect::AtLeast(hits));
            assert!((3..=100).contains(&hits), "neither a stop word nor a rarity: {query:?}");
        }
    }
    for class in QueryClass::ALL {
        assert_eq!(queries.iter().filter(|q| q.class == class).count(), 15);
    }
    let categories = queries.iter().filter(|q| matches!(q.ask, Ask::InCategory { .. })).count();
    assert!((1..15).contains(&categories), "both kinds of filter: {categories}");
}

#[test]
fn same_seed_same_queries() {
    let corpus = bundled(1000);
    let mix = |seed| make(&corpus, &MixOptions::even(seed, 10)).unwrap();
    assert_eq!(mix(1), mix(1));
    assert_ne!(mix(1), mix(2));
}

#[test]
fn yql_is_what_vespa_reads() {
    let yql = |ask: Ask| ask.yql("*").replace("select * from sources * where ", "");
    let cases = [
        (Ask::Term("a".into()), r#"title contains "a" or body contains "a""#),
        (
            Ask::Both("a".into(), "b".into()),
            concat!(
                r#"(title contains "a" or body contains "a") and "#,
                r#"(title contains "b" or body contains "b")"#
            ),
        ),
        (
            Ask::Phrase { field: "body", first: "a".into(), second: "b".into() },
            r#"body contains phrase("a", "b")"#,
        ),
        (
            Ask::Fuzzy { word: "abc".into(), distance: 2 },
            concat!(
                r#"title contains ({maxEditDistance:2}fuzzy("abc")) or "#,
                r#"body contains ({maxEditDistance:2}fuzzy("abc"))"#
            ),
        ),
        (
            Ask::InCategory { word: "a".into(), category: "x\"\\".into() },
            r#"(title contains "a" or body contains "a") and category contains "x\"\\""#,
        ),
        (
            Ask::Scored { word: "a".into(), at_least: -3 },
            r#"(title contains "a" or body contains "a") and score >= -3"#,
        ),
    ];
    for (ask, expected) in cases {
        assert_eq!(yql(ask), expected);
    }
}

#[test]
fn all_three_files_read_back() {
    let corpus = bundled(1000);
    let queries = make(&corpus, &MixOptions::even(1, 5)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let rendering = Rendering::default();
    let write = |name: &str, write: &dyn Fn(&mut Vec<u8>)| {
        let path = dir.path().join(name);
        let mut out = Vec::new();
        write(&mut out);
        std::fs::write(&path, out).unwrap();
        path
    };
    let ndjson = write("a", &|out| rendering.write_ndjson(&queries, out).unwrap());
    let get = write("b", &|out| rendering.write_fbench_get(&queries, out).unwrap());
    let post = write("c", &|out| rendering.write_fbench_post(&queries, out).unwrap());

    let requests = crate::ndjson::load(&ndjson).unwrap();
    let load = |path, kind| match Queries::open(path, &ReadOptions::new(kind)).unwrap() {
        Queries::Preloaded(set) => set,
        Queries::Streaming(..) => panic!("a small file is held in memory"),
    };
    let (get, post) = (load(&get, RecordKind::Get), load(&post, RecordKind::Post));
    assert_eq!((requests.len(), get.len(), post.len()), (30, 30, 30));
    for (i, query) in queries.iter().enumerate() {
        let encoded = std::str::from_utf8(get.get(i).target).unwrap();
        assert_eq!(requests[i].path, encoded);
        assert_eq!(requests[i].class.as_deref(), Some(query.class.name()));
        let yql = encoded.strip_prefix("/search/?yql=").unwrap().strip_suffix("&hits=10").unwrap();
        let decoded = percent_encoding::percent_decode_str(yql).decode_utf8().unwrap();
        assert_eq!(decoded, query.ask.yql("*"));
        let body: serde_json::Value = serde_json::from_slice(post.get(i).body).unwrap();
        assert_eq!(body["yql"], query.ask.yql("*"));
    }
}

#[test]
fn too_little_text_is_told() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.ndjson");
    std::fs::write(&path, "{\"title\":\"a few words\"}\n").unwrap();
    let corpus = Corpus::open(&Source::Ndjson(path), &CorpusOptions::default()).unwrap();
    let error = make(&corpus, &MixOptions::even(1, 1)).unwrap_err().to_string();
    assert!(error.starts_with("too little text for queries of class one_term: 1 documents"));
    let nothing = make(&bundled(0), &MixOptions::even(1, 1)).unwrap_err().to_string();
    assert!(nothing.starts_with("too little text for queries of class one_term: 0 documents"));
    let options = MixOptions { seed: 1, counts: [0, 0, 0, 0, 0, 3] };
    assert_eq!(make(&corpus, &options).unwrap().len(), 3, "absent words need no text");
    assert!(make(&corpus, &MixOptions { seed: 1, counts: [0; 6] }).is_err());
}
