//! Vocabularies beside a plain scan of the dictionary, with a distance of its own.

use super::super::text::{RAW, register_tokenizers};
use super::*;
use proptest::prelude::*;
use std::collections::BTreeSet;
use tantivy::schema::{IndexRecordOption, Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexWriter, TantivyDocument, Term};

const WORD: Field = Field::from_field_id(0);

/// The textbook distance; swapping two neighbours may be one edit.
fn distance(a: &str, b: &str, transpositions: bool) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut table = vec![vec![0; b.len() + 1]; a.len() + 1];
    for i in 0..=a.len() {
        for j in 0..=b.len() {
            table[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let replaced = table[i - 1][j - 1] + usize::from(a[i - 1] != b[j - 1]);
                let best = replaced.min(table[i - 1][j] + 1).min(table[i][j - 1] + 1);
                let swapped = transpositions
                    && i > 1
                    && j > 1
                    && a[i - 1] == b[j - 2]
                    && a[i - 2] == b[j - 1];
                if swapped { best.min(table[i - 2][j - 2] + 1) } else { best }
            };
        }
    }
    table[a.len()][b.len()]
}

fn index() -> Index {
    let mut schema = Schema::builder();
    let indexing = TextFieldIndexing::default()
        .set_tokenizer(RAW)
        .set_index_option(IndexRecordOption::WithFreqs);
    schema.add_text_field("word", TextOptions::default().set_indexing_options(indexing));
    let mut index = Index::create_in_ram(schema.build());
    register_tokenizers(&mut index);
    index
}

/// Commits each batch of words, one a document, and removes what is to go with the commit after it.
fn written(index: &Index, batches: &[Vec<String>], gone: &[String], merged: bool) {
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
    writer.set_merge_policy(Box::new(tantivy::merge_policy::NoMergePolicy));
    for batch in batches {
        for word in gone {
            writer.delete_term(Term::from_field_text(WORD, word));
        }
        for word in batch {
            let mut document = TantivyDocument::new();
            document.add_text(WORD, word);
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
    }
    if merged {
        let segments = index.searchable_segment_ids().unwrap();
        if !segments.is_empty() {
            writer.merge(&segments).wait().unwrap();
        }
    }
    writer.wait_merging_threads().unwrap();
}

/// Returns what the dictionary on the disk has.
fn on_disk(reader: &SegmentReader) -> Vec<(String, TermInfo)> {
    let inverted = reader.inverted_index(WORD).unwrap();
    let mut terms = inverted.terms().stream().unwrap();
    let mut all = Vec::new();
    while terms.advance() {
        all.push((String::from_utf8(terms.key().to_vec()).unwrap(), terms.value().clone()));
    }
    all
}

struct Asked {
    word: String,
    edits: u64,
    prefix: usize,
    transpositions: bool,
}

fn check(reader: &SegmentReader, asked: &Asked) {
    let all = on_disk(reader);
    let inverted = reader.inverted_index(WORD).unwrap();
    for (word, info) in &all {
        let found = find(reader, &inverted, WORD, word.as_bytes()).unwrap();
        assert_eq!(found.as_ref(), Some(info), "{word}");
    }
    let Asked { word, edits, prefix, transpositions } = asked;
    let found = find(reader, &inverted, WORD, word.as_bytes()).unwrap();
    assert_eq!(found, inverted.terms().get(word).unwrap(), "{word}");

    let cut = |text: &str| text.char_indices().nth(*prefix).map_or(text.len(), |(at, _)| at);
    let (head, rest) = word.split_at(cut(word));
    let edits_to = |other: &str| {
        let other = other.strip_prefix(head)?;
        let edits_to = distance(rest, other, *transpositions);
        (edits_to as u64 <= *edits).then_some(edits_to as u8)
    };
    let expected: BTreeSet<(String, u32, u8)> = all
        .iter()
        .filter_map(|(other, info)| Some((other.clone(), info.doc_freq, edits_to(other)?)))
        .collect();
    let automaton = TermAutomaton::similar(word, *edits, *prefix, *transpositions).unwrap();
    let mut near = BTreeSet::new();
    each_near(reader, WORD, word, *edits, &automaton, |other, info, edits_to| {
        let other = String::from_utf8(other.to_vec()).unwrap();
        assert!(near.insert((other, info.doc_freq, edits_to)), "a word came twice");
    })
    .unwrap();
    assert_eq!(near, expected, "{word} {edits} {prefix} {transpositions}");

    let starting = |start: &str| {
        let mut found = Vec::new();
        each_beginning(reader, WORD, start, |info| found.push(info.clone())).unwrap();
        found.sort_by_key(|info| info.postings_range.start);
        found
    };
    for start in [head, word] {
        let mut expected: Vec<TermInfo> = Vec::new();
        expected
            .extend(all.iter().filter(|(w, _)| w.starts_with(start)).map(|(_, info)| info.clone()));
        expected.sort_by_key(|info| info.postings_range.start);
        assert_eq!(starting(start), expected, "{start}");
    }
}

fn word() -> impl Strategy<Value = String> {
    let long = ("[ab]{58,70}", "[aé]{0,3}").prop_map(|(head, tail)| head + &tail);
    prop_oneof![8 => "[abc]{1,6}", 3 => "[abéß語😀]{1,5}", 1 => long]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn words_are_those_of_the_dictionary(
        batches in prop::collection::vec(prop::collection::vec(word(), 1..40), 1..4),
        gone in prop::collection::vec(word(), 0..6),
        merged: bool,
        asked in word(),
        from_index in any::<Option<prop::sample::Index>>(),
        edits in 0..5_u64,
        prefix in 0..4_usize,
        transpositions: bool,
    ) {
        let index = index();
        written(&index, &batches, &gone, merged);
        // Half of the time a word that is, or was, there.
        let word = from_index.map_or(asked, |at| at.get(&batches.concat()).clone());
        let asked = Asked { word, edits, prefix, transpositions };
        for reader in index.reader().unwrap().searcher().segment_readers() {
            check(reader, &asked);
        }
    }
}

#[test]
fn finds_terms_that_are_no_text() {
    let mut schema = Schema::builder();
    let number = schema.add_u64_field("number", tantivy::schema::INDEXED);
    let index = Index::create_in_ram(schema.build());
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
    for value in [7, u64::MAX] {
        let mut document = TantivyDocument::new();
        document.add_u64(number, value);
        writer.add_document(document).unwrap();
    }
    writer.commit().unwrap();
    let searcher = index.reader().unwrap().searcher();
    let reader = searcher.segment_reader(0);
    let inverted = reader.inverted_index(number).unwrap();
    for (value, there) in [(7, true), (u64::MAX, true), (8, false), (u64::MAX - 1, false)] {
        for _ in 0..3 {
            let term = Term::from_field_u64(number, value);
            let found = find(reader, &inverted, number, term.serialized_value_bytes()).unwrap();
            assert_eq!(found.is_some(), there, "{value}");
        }
    }
}
