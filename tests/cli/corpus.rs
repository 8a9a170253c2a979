//! plimsoll corpus.

use crate::process::Place;

#[test]
fn a_synthetic_text_is_the_same_for_a_seed() {
    let place = Place::new();
    let write = |out: &str, seed: &str| {
        let args =
            ["corpus", "write", "--source", "synthetic", "--size", "10MB", "--limit", "3000"];
        place.run(args.into_iter().chain(["--seed", seed, "--out", out])).expect(0);
        std::fs::read(place.path().join(out)).unwrap()
    };
    let first = write("one.ndjson", "7");
    assert!(first == write("two.ndjson", "7"), "the same seed gave other bytes");
    assert!(first != write("three.ndjson", "8"), "another seed gave the same bytes");
    assert_eq!(first.iter().filter(|&&b| b == b'\n').count(), 3000);
    for line in first.split(|&b| b == b'\n').filter(|line| !line.is_empty()).take(50) {
        let document: serde_json::Value = serde_json::from_slice(line).unwrap();
        for field in ["id", "title", "body", "category", "author", "score"] {
            assert!(document.get(field).is_some(), "no {field} in {document}");
        }
    }
}

#[test]
fn the_bundled_text_says_what_it_is() {
    let ended = Place::new().run(["corpus", "info"]).expect(0);
    let documents = ended.stdout.lines().find_map(|line| line.strip_prefix("documents"));
    let documents: u64 = documents.unwrap().trim().parse().unwrap();
    assert!(documents >= 10_000, "{documents}");
    for word in ["name", "licence", "origin", "WordNet"] {
        assert!(ended.stdout.contains(word), "no {word} in\n{}", ended.stdout);
    }
}

#[test]
fn a_query_mix_of_an_own_text() {
    let place = Place::new();
    // 90 words, each in 2 of 100 documents or so: neither rare nor in every document.
    let word = |n: usize| {
        let letters = [b"bcdfghklmnprstv"[n % 15], b"aeiou"[n / 15 % 5], b"lmnrst"[n % 6]];
        format!("{0}{1}ber", String::from_utf8_lossy(&letters), ["", "en", "ol"][n % 3])
    };
    let text: String = (0..600)
        .map(|i| {
            let [a, b, c, d] = [i * 7, i * 11 + 3, i * 13 + 5, i * 17 + 8].map(|n| word(n % 90));
            let category = i % 5;
            format!("{{\"title\":\"{a} {b}\",\"body\":\"{c} {d}\",\"category\":\"c{category}\"}}\n")
        })
        .collect();
    place.file("text.ndjson", text);
    let source = ["--source", "ndjson:text.ndjson", "--each", "5", "--out", "q.ndjson"];
    place.run(["corpus", "queries"].into_iter().chain(source)).expect(0);
    let first = place.read("q.ndjson");
    let classes: std::collections::BTreeSet<String> = first
        .lines()
        .map(|line| {
            serde_json::from_str::<serde_json::Value>(line).unwrap()["class"]
                .as_str()
                .unwrap()
                .to_owned()
        })
        .collect();
    let expected = ["filter", "fuzzy", "no_hit", "one_term", "phrase", "two_terms"];
    assert_eq!(classes.iter().map(String::as_str).collect::<Vec<_>>(), expected);
    assert_eq!(first.lines().count(), 30);
    place.run(["corpus", "queries"].into_iter().chain(source)).expect(0);
    assert_eq!(place.read("q.ndjson"), first, "the same seed gave other queries");
    let wrong = ["corpus", "queries", "--format", "xml"].into_iter().chain(source);
    place.run(wrong).expect(64);
    assert_eq!(place.read("q.ndjson"), first, "wrong usage emptied the file");
}
