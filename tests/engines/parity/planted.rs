//! Distances beyond 2: exactly the documents in which such words were planted.

use super::Peer;
use crate::process::Place;
use plimsoll_workloads::corpus::{
    Document, Synthetic, SyntheticOptions, synthetic::Planted, synthetic::Size,
};
use serde_json::{Value, json};
use std::collections::BTreeSet;

const DOCUMENTS: u64 = 2000;

/// The documents in which a planted word stands within a distance.
fn planted(corpus: &Synthetic, word: usize, distance: usize) -> BTreeSet<String> {
    let mut found = Planted::default();
    let holds = |number: &u64| {
        corpus.planted(*number, &mut found);
        found.words.iter().any(|(own, at)| *own == word && *at <= distance)
    };
    (0..DOCUMENTS).filter(holds).map(|number| format!("s{number}")).collect()
}

/// The fewest edits between a word and any part of a text, by Sellers' recurrence.
fn errors_within(text: &str, word: &str) -> usize {
    let word = word.as_bytes();
    let mut column: Vec<usize> = (0..=word.len()).collect();
    let mut best = word.len();
    for byte in text.bytes() {
        let mut diagonal = 0;
        for (at, own) in word.iter().enumerate() {
            let replaced = diagonal + usize::from(*own != byte);
            diagonal = column[at + 1];
            column[at + 1] = replaced.min(diagonal + 1).min(column[at] + 1);
        }
        best = best.min(column[word.len()]);
    }
    best
}

/// An automaton finds whole words, so that its truth is what was planted. A scan finds parts of the text: the same
/// documents, and those in which a part of a farther word is as near, which reading all of it tells.
#[test]
fn distances_of_three_and_four_find_exactly_what_was_planted() {
    let place = Place::new();
    let options = SyntheticOptions::new(20, Size::Documents(DOCUMENTS));
    let corpus = Synthetic::new(&options).unwrap();
    let mut document = Document::default();
    let documents: Vec<(String, Value)> = (0..DOCUMENTS)
        .map(|number| {
            corpus.fill(number, &mut document);
            (document.id.clone(), json!({"body": document.body}))
        })
        .collect();
    let words = corpus.truth().words;
    let nearest: Vec<Vec<usize>> = words
        .iter()
        .map(|word| {
            let texts = documents.iter().map(|(_, source)| source["body"].as_str().unwrap());
            texts.map(|text| errors_within(text, &word.word)).collect()
        })
        .collect();
    let read = |word: usize, distance: usize| -> BTreeSet<String> {
        let near = documents.iter().zip(&nearest[word]).filter(|(_, at)| **at <= distance);
        near.map(|((id, _), _)| id.clone()).collect()
    };
    for mode in ["automaton", "scan"] {
        let server = place.serve(&["search", "--fuzzy", mode, "--durability", "none"]);
        let mut peer = Peer::connect("plimsoll", &server.url);
        for shards in [1, 3] {
            let index = format!("planted-{shards}");
            let settings = json!({"settings": {"number_of_shards": shards}});
            peer.ok("PUT", &format!("/{index}"), &settings);
            peer.load(&index, &documents);
            for distance in [3, 4] {
                let fuzzy = |word: &str| {
                    // A swap of neighbours as one edit would bring some of the next distance nearer.
                    let asked =
                        json!({"value": word, "fuzziness": distance, "transpositions": false});
                    json!({"fuzzy": {"body": asked}})
                };
                let queries: Vec<Value> = words.iter().map(|word| fuzzy(&word.word)).collect();
                let answers = peer.all(&index, &queries, DOCUMENTS);
                for (number, (word, answer)) in words.iter().zip(answers).enumerate() {
                    let planted = planted(&corpus, number, distance);
                    assert_eq!(planted.len() as u64, word.documents_within(distance));
                    let all = read(number, distance);
                    assert!(all.is_superset(&planted));
                    let wanted = if mode == "scan" { all } else { planted };
                    let asked = format!("{mode}, {index}, {} within {distance}", word.word);
                    assert_eq!(answer.ids, wanted, "{asked}");
                    assert_eq!(answer.total, wanted.len() as u64, "{asked}");
                }
            }
        }
    }
    let farther = planted(&corpus, 0, 4).len() - planted(&corpus, 0, 2).len();
    assert!(farther > 0, "nothing is planted beyond a distance of 2");
}
