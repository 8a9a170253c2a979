//! What a draft writes is what tantivy's own writer makes of the same documents.

use super::super::super::mapping::columns;
use super::*;
use plimsoll_index::text::{Analysis, register_tokenizers};
use proptest::prelude::*;
use tantivy::indexer::NoMergePolicy;
use tantivy::postings::Postings;
use tantivy::schema::{IndexRecordOption, OwnedValue};
use tantivy::tokenizer::{PreTokenizedString, Token};
use tantivy::{DocSet, Index, IndexWriter, SegmentReader, TERMINATED};

/// A document: its id, and the values of its fields by their numbers.
#[derive(Clone, Debug)]
struct Source {
    id: String,
    texts: Vec<(usize, String)>,
    numbers: Vec<(usize, i32)>,
}

fn index() -> Index {
    let mut index = Index::create_in_ram(columns(1));
    register_tokenizers(&mut index);
    index
}

/// Fields whose use is one of these.
fn fields(wanted: impl Fn(Use) -> bool) -> Vec<Field> {
    let schema = columns(1);
    let own = [id_field(), lid_field(), row_field()];
    let all = schema.fields().filter(|(field, _)| !own.contains(field));
    all.filter(|(_, e)| wanted(use_of(e.field_type()))).map(|(field, _)| field).collect()
}

/// The values of text fields as one each, with the positions that their words have in a draft.
fn placed(document: &TantivyDocument) -> TantivyDocument {
    let words = fields(|u| u == Use::Words);
    let mut all = TantivyDocument::new();
    for (field, value) in document.field_values().filter(|(field, _)| !words.contains(field)) {
        all.add_field_value(field, &OwnedValue::from(value));
    }
    for field in words {
        let mut texts = document.get_all(field).peekable();
        if texts.peek().is_none() {
            continue;
        }
        let (mut tokens, mut next) = (Vec::new(), 0);
        for text in texts.filter_map(|text| text.as_str()) {
            let words = Analysis::Standard.words(text);
            let length = words.len();
            tokens.extend(words.into_iter().enumerate().map(|(at, text)| Token {
                position: next + at,
                text,
                ..Token::default()
            }));
            next += length + postings::GAP as usize;
        }
        all.add_pre_tokenized_text(field, PreTokenizedString { text: String::new(), tokens });
    }
    all
}

fn document(source: &Source) -> TantivyDocument {
    let (texts, numbers) =
        (fields(|u| !matches!(u, Use::Number(_))), fields(|u| matches!(u, Use::Number(_))));
    let (schema, mut document) = (columns(1), TantivyDocument::new());
    for (field, text) in &source.texts {
        document.add_text(texts[field % texts.len()], text);
    }
    for (field, number) in &source.numbers {
        let field = numbers[field % numbers.len()];
        match use_of(schema.get_field_entry(field).field_type()) {
            Use::Number(ColumnType::F64) => document.add_f64(field, f64::from(*number) / 8.0),
            _ => document.add_i64(field, i64::from(*number)),
        }
    }
    document
}

/// A segment with the last version of each document, in the order of those, made by a draft.
fn by_draft(sources: &[Source], removed: &[String]) -> Index {
    let index = index();
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
    writer.set_merge_policy(Box::new(NoMergePolicy));
    let mut draft = Draft::new(index.schema());
    for (row, source) in sources.iter().enumerate() {
        let known = sources[..row].iter().any(|before| before.id == source.id);
        assert_eq!(draft.remove(&source.id), known);
        draft.add(&source.id, 100 + row as u64, row as u64, &document(source));
    }
    for id in removed {
        draft.remove(id);
        assert!(!draft.remove(id));
    }
    assert_eq!(draft.size() == 0, sources.is_empty());
    let mut segment = index.new_segment();
    let documents = draft.write(&mut segment).unwrap();
    if documents > 0 {
        writer.add_segment(segment.with_max_doc(documents).meta().clone()).unwrap();
    }
    writer.commit().unwrap();
    index
}

/// The same by tantivy's writer, which is given nothing that does not last.
fn by_tantivy(sources: &[Source], removed: &[String]) -> Index {
    let index = index();
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
    writer.set_merge_policy(Box::new(NoMergePolicy));
    for (row, source) in sources.iter().enumerate() {
        let replaced = sources[row + 1..].iter().any(|later| later.id == source.id);
        if replaced || removed.contains(&source.id) {
            continue;
        }
        let mut document = placed(&document(source));
        document.add_text(id_field(), &source.id);
        document.add_u64(lid_field(), 100 + row as u64);
        document.add_u64(row_field(), row as u64);
        writer.add_document(document).unwrap();
    }
    writer.commit().unwrap();
    index
}

/// Everything that a segment tells of a field's words.
fn words(reader: &SegmentReader, field: Field) -> Vec<String> {
    let inverted = reader.inverted_index(field).unwrap();
    let mut told = vec![format!("{} words", inverted.total_num_tokens())];
    let mut terms = inverted.terms().stream().unwrap();
    while terms.advance() {
        let info = terms.value();
        told.push(format!("{:?} in {}", terms.key(), info.doc_freq));
        let option = IndexRecordOption::WithFreqsAndPositions;
        let mut postings = inverted.read_postings_from_terminfo(info, option).unwrap();
        let mut positions = Vec::new();
        while postings.doc() != TERMINATED {
            postings.positions(&mut positions);
            told.push(format!("{} {} {positions:?}", postings.doc(), postings.term_freq()));
            postings.advance();
        }
    }
    told
}

/// Everything that a segment tells of a field's column, and of how long its values are.
fn values(reader: &SegmentReader, schema: &Schema, field: Field) -> Vec<String> {
    let (name, columns) = (schema.get_field_name(field), reader.fast_fields());
    let mut told = Vec::new();
    let documents = 0..reader.max_doc();
    match use_of(schema.get_field_entry(field).field_type()) {
        Use::Words => {
            let norms = reader.get_fieldnorms_reader(field).unwrap();
            told.extend(documents.map(|document| norms.fieldnorm(document).to_string()));
        }
        Use::Whole { column: true } => {
            let column = columns.str(name).unwrap().expect(name);
            for document in documents {
                for ord in column.term_ords(document) {
                    let mut text = String::new();
                    column.ord_to_str(ord, &mut text).unwrap();
                    told.push(format!("{document} {text}"));
                }
            }
        }
        Use::Whole { column: false } => {}
        Use::Number(ColumnType::F64) => {
            let column = columns.f64(name).unwrap();
            told.extend(
                documents.map(|d| format!("{:?}", column.values_for_doc(d).collect::<Vec<_>>())),
            );
        }
        Use::Number(ColumnType::I64) => {
            let column = columns.i64(name).unwrap();
            told.extend(
                documents.map(|d| format!("{:?}", column.values_for_doc(d).collect::<Vec<_>>())),
            );
        }
        Use::Number(_) => {
            let column = columns.u64(name).unwrap();
            told.extend(
                documents.map(|d| format!("{:?}", column.values_for_doc(d).collect::<Vec<_>>())),
            );
        }
    }
    told
}

fn same(sources: &[Source], removed: &[String]) {
    let (own, other) = (by_draft(sources, removed), by_tantivy(sources, removed));
    let [own, other] = [own, other].map(|index| index.reader().unwrap().searcher());
    let (own, other) = (own.segment_readers(), other.segment_readers());
    assert_eq!(own.len(), other.len());
    let (Some(own), Some(other)) = (own.first(), other.first()) else { return };
    assert_eq!(own.max_doc(), other.max_doc());
    let schema = columns(1);
    for (field, entry) in schema.fields() {
        assert_eq!(values(own, &schema, field), values(other, &schema, field), "{}", entry.name());
        if entry.is_indexed() {
            assert_eq!(words(own, field), words(other, field), "{}", entry.name());
        }
    }
    let store = own.get_store_reader(1).unwrap();
    for document in 0..own.max_doc() {
        assert_eq!(store.get::<TantivyDocument>(document).unwrap().field_values().count(), 0);
    }
}

fn source() -> impl Strategy<Value = Source> {
    let text = "[a-c ,é]{0,12}|[aB ]{0,300}";
    let texts = prop::collection::vec((0..30_usize, text), 0..8);
    let numbers = prop::collection::vec((0..20_usize, any::<i32>()), 0..6);
    ("[ab]{1,3}", texts, numbers).prop_map(|(id, texts, numbers)| Source { id, texts, numbers })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_segment_is_that_of_tantivy(
        sources in prop::collection::vec(source(), 0..24),
        removed in prop::collection::hash_set("[ab]{1,2}", 0..3),
    ) {
        same(&sources, &removed.into_iter().collect::<Vec<_>>());
    }
}

#[test]
fn words_of_many_documents_are_in_blocks() {
    let texts = |i: usize| {
        let text =
            format!("common {} word{} {}", "often ".repeat(i % 4), i % 7, "x ".repeat(i % 40));
        vec![(1, text.clone()), (1, format!("again {i}")), (9, text)]
    };
    let sources: Vec<Source> = (0..700)
        .map(|i| Source { id: i.to_string(), texts: texts(i), numbers: vec![(i, i as i32)] })
        .collect();
    same(&sources, &["17".to_owned(), "699".to_owned()]);
}
