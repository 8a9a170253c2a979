//! The planted truth against a count that shares no code with the generator.

use std::collections::HashMap;

use super::*;
use crate::edit_distance::edit_distance;

fn tokens(text: &str) -> Vec<String> {
    let words = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_lowercase).collect()
}

fn all(corpus: &Synthetic) -> Vec<Document> {
    let fill = |number| {
        let mut document = Document::default();
        corpus.fill(number, &mut document);
        document
    };
    (0..corpus.documents()).map(fill).collect()
}

#[test]
fn planted_counts_are_those_of_a_brute_force_count() {
    let options = SyntheticOptions::new(11, Size::Documents(3000));
    let corpus = Synthetic::new(&options).unwrap();
    let truth = corpus.truth();
    assert_eq!((truth.words.len(), truth.phrases.len()), (8, 4));
    let mut distances: HashMap<String, Vec<usize>> = HashMap::new();
    let mut counted = vec![[0u64; DISTANCES]; truth.words.len()];
    let documents = all(&corpus);
    for document in &documents {
        let mut best = vec![usize::MAX; truth.words.len()];
        for token in tokens(&document.body).into_iter().chain(tokens(&document.title)) {
            let of_token = distances.entry(token).or_insert_with_key(|token| {
                let distance = |w: &WordTruth| edit_distance(w.word.as_bytes(), token.as_bytes());
                truth.words.iter().map(distance).collect()
            });
            for (which, distance) in of_token.iter().enumerate() {
                if *distance < DISTANCES {
                    assert_eq!(best[which], usize::MAX, "two tokens near one word in {document:?}");
                    best[which] = *distance;
                }
            }
        }
        for (which, distance) in best.into_iter().enumerate() {
            if distance < DISTANCES {
                counted[which][distance] += 1;
            }
        }
    }
    for (word, counted) in truth.words.iter().zip(counted) {
        assert_eq!(word.documents_at_distance, counted, "{}", word.word);
        assert!(counted.iter().all(|count| *count > 0));
        assert_eq!(word.documents_within(5), counted.iter().sum::<u64>());
    }
    for phrase in &truth.phrases {
        let (first, second) = phrase.phrase.split_once(' ').unwrap();
        let beside = documents.iter().filter(|d| d.body.contains(&phrase.phrase)).count();
        let both = documents.iter().filter(|d| {
            let words = tokens(&d.body);
            words.iter().any(|w| w == first) && words.iter().any(|w| w == second)
        });
        assert_eq!(phrase.documents, beside as u64);
        assert_eq!(phrase.documents_with_both_words, both.count() as u64);
        assert!(phrase.documents_with_both_words > phrase.documents);
    }
}

#[test]
fn filters_are_exact() {
    for size in [100, 101, 2500, 4099] {
        let corpus = Synthetic::new(&SyntheticOptions::new(3, Size::Documents(size))).unwrap();
        let documents = all(&corpus);
        let truth = corpus.truth();
        assert_eq!(truth.documents, size);
        for filter in &truth.scores {
            let counted = documents.iter().filter(|d| d.score >= filter.at_least).count();
            assert_eq!(filter.documents, counted as u64, "score >= {}", filter.at_least);
        }
        for category in &truth.categories {
            let counted = documents.iter().filter(|d| d.category == category.category).count();
            assert_eq!(category.documents, counted as u64, "{}", category.category);
        }
    }
}

#[test]
fn threads_do_not_change_a_byte_and_seeds_do() {
    let write = |seed, threads| {
        let options = SyntheticOptions::new(seed, Size::Documents(9000));
        let corpus = Synthetic::new(&options).unwrap();
        let (mut out, mut last) = (Vec::new(), 0);
        let manifest = corpus.write_ndjson(&mut out, threads, &mut |n| last = n).unwrap();
        assert_eq!(last, 9000);
        assert_eq!(manifest.ndjson_bytes, Some(out.len() as u64));
        (out, manifest)
    };
    let (one, first) = write(1, 1);
    let (three, second) = write(1, 3);
    assert!(one == three);
    assert_eq!(first, second);
    assert_ne!(first.ndjson_sha256, write(2, 2).1.ndjson_sha256);
    // Pinned: a corpus that changes silently would make old results incomparable.
    assert_eq!(first.ndjson_sha256.unwrap(), PINNED_SHA256);
    assert_eq!(one.iter().filter(|byte| **byte == b'\n').count(), 9000);
}

const PINNED_SHA256: &str = "c7ac3149827b98b24ada56d147a77f7b8ba5e3443f53fd742937672f476756ae";

#[test]
fn a_size_in_bytes_is_met() {
    let options = SyntheticOptions::new(5, Size::Bytes(3_000_000));
    let corpus = Synthetic::new(&options).unwrap();
    let manifest = corpus.write_ndjson(&mut std::io::sink(), 2, &mut |_| {}).unwrap();
    let bytes = manifest.ndjson_bytes.unwrap() as f64;
    assert!((bytes / 3e6 - 1.0).abs() < 0.02, "{bytes}");
}

#[test]
fn the_text_is_like_text() {
    let corpus = Synthetic::new(&SyntheticOptions::new(9, Size::Documents(8000))).unwrap();
    let mut counts: HashMap<String, u64> = HashMap::new();
    let (mut lengths, mut total) = (Vec::new(), 0u64);
    for document in all(&corpus) {
        let words = tokens(&document.body);
        total += words.len() as u64;
        lengths.push(words.len());
        words.into_iter().for_each(|word| *counts.entry(word).or_default() += 1);
    }
    lengths.sort_unstable();
    let median = lengths[lengths.len() / 2];
    assert!((48..=56).contains(&median), "exp(3.96) is 52.5: {median}");
    let mut by_count: Vec<u64> = counts.values().copied().collect();
    by_count.sort_unstable_by(|a, b| b.cmp(a));
    let top = by_count[..10].iter().sum::<u64>() as f64 / total as f64;
    assert!(
        (0.15..0.30).contains(&top),
        "the ten commonest words of English are 18 to 27 %: {top}"
    );
    let once = by_count.iter().filter(|count| **count == 1).count() as f64;
    let share = once / by_count.len() as f64;
    assert!((0.3..0.7).contains(&share), "real text has 45 to 51 % of words once: {share}");
}

#[test]
fn the_most_that_may_be_planted_can_be() {
    let options = SyntheticOptions {
        planted_words: 32,
        planted_phrases: 32,
        vocabulary: 100_000,
        ..SyntheticOptions::new(1, Size::Documents(100))
    };
    let truth = Synthetic::new(&options).unwrap().truth();
    assert_eq!((truth.words.len(), truth.phrases.len()), (32, 32));
    let none = SyntheticOptions { planted_words: 0, planted_phrases: 0, ..options };
    assert!(Synthetic::new(&none).unwrap().truth().words.is_empty());
}

#[test]
fn options_out_of_range_are_told() {
    let refuse = |change: fn(&mut SyntheticOptions)| {
        let mut options = SyntheticOptions::new(1, Size::Documents(1000));
        change(&mut options);
        Synthetic::new(&options).unwrap_err().to_string()
    };
    let few = refuse(|o| o.size = Size::Documents(99));
    assert_eq!(
        few,
        "the number of documents of a synthetic text cannot be 99; use 100 to 100000000"
    );
    assert!(refuse(|o| o.size = Size::Bytes(20_000_000_000)).contains("bytes"));
    assert!(refuse(|o| o.vocabulary = 10).contains("vocabulary"));
    assert!(refuse(|o| o.zipf_exponent = f64::NAN).contains("zipf exponent"));
    assert!(refuse(|o| o.planted_words = 33).contains("planted words"));
}
