//! Queries for words beside tantivy's own.

use super::super::text::{WORDS, register_tokenizers};
use super::*;
use proptest::prelude::*;
use tantivy::query::{BooleanQuery, DisjunctionMaxQuery, Occur, PhraseQuery as OtherPhraseQuery};
use tantivy::schema::{Schema, TextFieldIndexing, TextOptions};
use tantivy::{Index, IndexWriter, TantivyDocument};

const TITLE: Field = Field::from_field_id(0);
const KIND: Field = Field::from_field_id(2);

fn index() -> Index {
    let mut schema = Schema::builder();
    for (name, option, norms) in [
        ("title", IndexRecordOption::WithFreqsAndPositions, true),
        ("body", IndexRecordOption::WithFreqsAndPositions, true),
        ("kind", IndexRecordOption::Basic, false),
    ] {
        let indexing = TextFieldIndexing::default()
            .set_tokenizer(WORDS)
            .set_fieldnorms(norms)
            .set_index_option(option);
        schema.add_text_field(name, TextOptions::default().set_indexing_options(indexing));
    }
    let mut index = Index::create_in_ram(schema.build());
    register_tokenizers(&mut index);
    index
}

/// Title, body and kind of each document of each commit.
type Batches = Vec<Vec<[String; 3]>>;

fn written(batches: &Batches, gone: &str) -> Searcher {
    let index = index();
    let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
    writer.set_merge_policy(Box::new(tantivy::merge_policy::NoMergePolicy));
    for batch in batches {
        for texts in batch {
            let mut document = TantivyDocument::new();
            for (number, text) in texts.iter().enumerate() {
                document.add_text(Field::from_field_id(number as u32), text);
            }
            writer.add_document(document).unwrap();
        }
        writer.commit().unwrap();
    }
    writer.delete_term(Term::from_field_text(KIND, gone));
    writer.commit().unwrap();
    index.reader().unwrap().searcher()
}

/// The documents and scores of a query, by walking and by seeking; how many it counts; and its best score.
#[derive(Debug, PartialEq)]
struct Told {
    documents: Vec<(DocId, u32)>,
    sought: Vec<(DocId, u32)>,
    count: u32,
    best: Option<Score>,
}

fn bits(score: Score, scored: bool) -> u32 {
    if scored { score.to_bits() } else { 0 }
}

fn told(weight: &dyn Weight, reader: &SegmentReader, scored: bool, steps: &[u32]) -> Told {
    let mut documents = Vec::new();
    let mut scorer = weight.scorer(reader, 1.0).unwrap();
    while scorer.doc() != TERMINATED {
        documents.push((scorer.doc(), bits(scorer.score(), scored)));
        scorer.advance();
    }
    let mut sought = Vec::new();
    let mut scorer = weight.scorer(reader, 1.0).unwrap();
    for step in steps {
        if scorer.doc() == TERMINATED {
            break;
        }
        scorer.seek(scorer.doc() + step);
        if scorer.doc() != TERMINATED {
            sought.push((scorer.doc(), bits(scorer.score(), scored)));
        }
    }
    let count = weight.count(reader).unwrap();
    let mut best = None;
    if scored {
        let visit = &mut |_, score: Score| {
            best = Some(score);
            score
        };
        weight.for_each_pruning(f32::MIN, reader, visit).unwrap();
    }
    Told { documents, sought, count, best }
}

fn same(searcher: &Searcher, own: &dyn Query, other: &dyn Query, steps: &[u32]) {
    let statistics = Statistics::of(searcher);
    for scored in [true, false] {
        let (of_own, of_other) = if scored {
            (
                EnableScoring::enabled_from_statistics_provider(&statistics, searcher),
                EnableScoring::enabled_from_searcher(searcher),
            )
        } else {
            let disabled = EnableScoring::disabled_from_searcher(searcher);
            (disabled, disabled)
        };
        let (of_own, of_other) = (own.weight(of_own).unwrap(), other.weight(of_other).unwrap());
        for reader in searcher.segment_readers() {
            let own = told(&*of_own, reader, scored, steps);
            let other = told(&*of_other, reader, scored, steps);
            assert_eq!(own.documents, other.documents, "{own:?} {other:?}");
            assert_eq!((&own.sought, own.count), (&other.sought, other.count));
            // Several documents may be as good, and tantivy adds the scores of words in the order of their documents.
            assert_eq!(own.best.is_some(), other.best.is_some());
            let (own, other) = (own.best.unwrap_or(0.0), other.best.unwrap_or(0.0));
            assert!((own - other).abs() <= other * 1e-6, "{own} {other}");
        }
    }
}

fn words(words: &[(u32, String)]) -> [Vec<Box<dyn Query>>; 2] {
    let term =
        |(field, word): &(u32, String)| Term::from_field_text(Field::from_field_id(*field), word);
    let option = IndexRecordOption::WithFreqs;
    let own = |word| Box::new(WordQuery::new(term(word), option)) as Box<dyn Query>;
    let other = |word| Box::new(TermQuery::new(term(word), option)) as Box<dyn Query>;
    [words.iter().map(own).collect(), words.iter().map(other).collect()]
}

fn bool_of(occur: Occur, queries: Vec<Box<dyn Query>>) -> BooleanQuery {
    BooleanQuery::new(queries.into_iter().map(|query| (occur, query)).collect())
}

fn text() -> impl Strategy<Value = String> {
    prop_oneof!["([abc] ){0,9}", "([a-d]{1,2} ){0,6}"]
}

fn document() -> impl Strategy<Value = [String; 3]> {
    (text(), text(), "[xyz]").prop_map(|(title, body, kind)| [title, body, kind])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn documents_and_scores_are_those_of_tantivy(
        batches in prop::collection::vec(prop::collection::vec(document(), 1..60), 1..4),
        gone in "[xw]",
        asked in prop::collection::vec((0..3_u32, "[a-dx]{1,2}"), 1..11),
        phrase in prop::collection::vec("[abc]", 2..5),
        tie_breaker in prop_oneof![Just(0.0_f32), Just(0.3)],
        steps in prop::collection::vec(0..9_u32, 0..20),
    ) {
        let searcher = written(&batches, &gone);
        let [own, other] = words(&asked);
        same(&searcher, &*own[0], &*other[0], &steps);
        let [own, other] = words(&asked);
        same(&searcher, &*super::any(own), &bool_of(Occur::Should, other), &steps);
        let [own, other] = words(&asked);
        let disjunction = DisjunctionMaxQuery::with_tie_breaker(other, tie_breaker);
        same(&searcher, &*best(own, tie_breaker), &disjunction, &steps);
        for few in [&asked[..1], &asked[..asked.len().min(2)], &asked[..asked.len().min(3)]] {
            let [own, other] = words(few);
            same(&searcher, &*super::all(own), &bool_of(Occur::Must, other), &steps);
        }
        let phrase: Vec<Term> =
            phrase.iter().map(|word| Term::from_field_text(TITLE, word)).collect();
        let other = OtherPhraseQuery::new(phrase.clone());
        same(&searcher, &PhraseQuery::new(phrase), &other, &steps);
    }
}

/// Words of many documents have blocks, and the frequent ones are pruned by tantivy.
#[test]
fn frequent_words_are_those_of_tantivy() {
    let document = |number: usize| {
        let title = format!("common {}{}", "often ".repeat(number % 5), "x ".repeat(number % 31));
        let body = format!("again {} half{}", number % 700, number % 2);
        [title, body, format!("k{}", number % 3)]
    };
    let batches = vec![(0..6000).map(document).collect(), (0..300).map(document).collect()];
    let searcher = written(&batches, "none");
    let steps: Vec<u32> = (0..400).map(|step| step * 7 % 190).collect();
    let asked = |words: &[(u32, &str)]| -> Vec<(u32, String)> {
        words.iter().map(|(field, word)| (*field, (*word).to_owned())).collect()
    };
    for few in [
        &[(0, "common"), (1, "again")][..],
        &[(0, "often"), (1, "half1"), (1, "17")],
        &[(0, "common"), (0, "x"), (1, "half0"), (1, "3"), (2, "k2")],
        &[(2, "k1"), (0, "x")],
    ] {
        let few = asked(few);
        for number in 0..few.len() {
            let [own, other] = words(&few[number..=number]);
            same(&searcher, &*own[0], &*other[0], &steps);
        }
        let [own, other] = words(&few);
        same(&searcher, &*super::any(own), &bool_of(Occur::Should, other), &steps);
        let [own, other] = words(&few);
        let disjunction = DisjunctionMaxQuery::with_tie_breaker(other, 0.3);
        same(&searcher, &*best(own, 0.3), &disjunction, &steps);
        let [own, other] = words(&few);
        same(&searcher, &*super::all(own), &bool_of(Occur::Must, other), &steps);
    }
    let phrase = ["common", "often", "often"].map(|word| Term::from_field_text(TITLE, word));
    let other = OtherPhraseQuery::new(phrase.to_vec());
    same(&searcher, &PhraseQuery::new(phrase.to_vec()), &other, &steps);
}
