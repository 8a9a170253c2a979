//! Every kernel against the table of distances as the textbooks have it.

use proptest::prelude::*;

use crate::{Case, Corpus, CorpusError, Found, Kernel, Metric, Pattern, PatternError, letters};

/// The least distance of the pattern to a substring, by the full table.
fn oracle(pattern: &[u8], text: &[u8], metric: Metric, case: Case) -> Option<u32> {
    let same = |a: u8, b: u8| match case {
        Case::Exact => a == b,
        Case::IgnoreAscii => a.eq_ignore_ascii_case(&b),
    };
    if metric == Metric::Hamming {
        return text
            .windows(pattern.len())
            .map(|window| {
                window.iter().zip(pattern).filter(|(a, b)| !same(**a, **b)).count() as u32
            })
            .min();
    }
    // Row by row of the pattern; a match may start anywhere, so the first row is all zeros.
    let mut above = vec![0_u32; text.len() + 1];
    for (row, &wanted) in pattern.iter().enumerate() {
        let mut now = vec![row as u32 + 1; text.len() + 1];
        for (at, &byte) in text.iter().enumerate() {
            let diagonal = above[at] + u32::from(!same(wanted, byte));
            now[at + 1] = diagonal.min(above[at + 1] + 1).min(now[at] + 1);
        }
        above = now;
    }
    above.into_iter().min()
}

fn joined(documents: &[Vec<u8>]) -> (Vec<u8>, Vec<u64>) {
    let mut text = Vec::new();
    let ends = documents.iter().map(|document| {
        text.extend_from_slice(document);
        text.len() as u64
    });
    let ends = ends.collect();
    (text, ends)
}

fn found(scan: crate::Scan<'_>, corpus: &Corpus<'_>) -> Vec<usize> {
    let mut scan = scan;
    let mut found = Found::new(corpus.documents());
    scan.documents(corpus, &mut found);
    found.iter().collect()
}

/// Compares every kernel, with pieces of several lengths, with the oracle.
fn check(pattern: &[u8], documents: &[Vec<u8>], metric: Metric, distance: u32, case: Case) {
    let (text, ends) = joined(documents);
    let corpus = Corpus::new(&text, &ends).unwrap();
    let matcher = Pattern::new(pattern, metric, distance, case).unwrap();
    let mut expected = Vec::new();
    for (number, document) in documents.iter().enumerate() {
        let best = oracle(pattern, document, metric, case).filter(|&best| best <= distance);
        assert_eq!(matcher.best_distance(document), best, "document {number}");
        assert_eq!(matcher.matches(document), best.is_some(), "document {number}");
        if best.is_some() {
            expected.push(number);
        }
    }
    for kernel in Kernel::available() {
        let scan = matcher.scan().with_kernel(kernel);
        assert_eq!(found(scan, &corpus), expected, "{kernel:?}");
        for rows in [1, distance as usize + 1, distance as usize + 3, 17, 60] {
            let scan = matcher.scan().with_kernel(kernel).with_rows(rows);
            assert_eq!(found(scan, &corpus), expected, "{kernel:?}, {rows} rows");
        }
        for probes in [2, 3, 4] {
            let scan = matcher.scan().with_kernel(kernel).with_anchors(probes);
            assert_eq!(found(scan, &corpus), expected, "{kernel:?}, {probes} probes");
        }
        for dense in [true, false] {
            let scan = matcher.scan().with_kernel(kernel).with_dense(dense);
            assert_eq!(found(scan, &corpus), expected, "{kernel:?}, dense {dense}");
        }
    }
}

fn metric() -> impl Strategy<Value = Metric> {
    prop_oneof![Just(Metric::Edits), Just(Metric::Hamming)]
}

fn case() -> impl Strategy<Value = Case> {
    prop_oneof![Just(Case::Exact), Just(Case::IgnoreAscii)]
}

/// Letters of a small alphabet, so that matches and near matches abound; the last ones are beyond ASCII, and
/// differ from others in the bit that makes capitals.
fn small() -> impl Strategy<Value = u8> {
    prop_oneof![
        8 => Just(b'a'), 8 => Just(b'b'), 2 => Just(b'A'), 2 => Just(b'c'), 1 => Just(b' '),
        1 => Just(0x00), 1 => Just(b'['), 1 => Just(b'{'), 1 => Just(0xc3), 1 => Just(0xe3)
    ]
}

/// Documents of all lengths: empty ones, short ones, and one that is long enough for the kernels.
fn documents() -> impl Strategy<Value = Vec<Vec<u8>>> {
    let document = prop_oneof![
        2 => prop::collection::vec(small(), 0..3),
        6 => prop::collection::vec(small(), 0..200),
        1 => prop::collection::vec(small(), 1500..4000),
    ];
    prop::collection::vec(document, 1..120)
}

/// Text of which the pattern is rarely a part: all bytes are equally likely; the pattern is planted with errors.
fn planted() -> impl Strategy<Value = (Vec<u8>, Vec<Vec<u8>>)> {
    let pattern = prop::collection::vec(any::<u8>(), 1..90);
    let edits = prop::collection::vec((0..90_usize, 0..3_u8, any::<u8>()), 0..6);
    let spots = prop::collection::vec((0..20_000_usize, edits), 0..12);
    let text = prop::collection::vec(any::<u8>(), 3000..20_000);
    (pattern, spots, text, prop::collection::vec(1..700_usize, 1..60)).prop_map(
        |(pattern, spots, mut text, lengths)| {
            for (at, edits) in spots {
                let mut planted = pattern.clone();
                for (place, kind, byte) in edits {
                    let place = place % planted.len().max(1);
                    match kind {
                        0 => planted.insert(place, byte),
                        _ if planted.is_empty() => {}
                        1 => drop(planted.remove(place)),
                        _ => planted[place] = byte,
                    }
                }
                let at = at % text.len();
                let end = (at + planted.len()).min(text.len());
                text.splice(at..end, planted);
            }
            let mut documents = Vec::new();
            let mut rest = text.as_slice();
            for length in lengths {
                let (document, more) = rest.split_at(length.min(rest.len()));
                documents.push(document.to_vec());
                rest = more;
            }
            documents.push(rest.to_vec());
            (pattern, documents)
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, ..ProptestConfig::default() })]

    #[test]
    fn small_alphabets_agree_with_the_table(
        pattern in prop::collection::vec(small(), 1..40),
        documents in documents(),
        metric in metric(),
        distance in 0..9_u32,
        case in case(),
    ) {
        check(&pattern, &documents, metric, distance, case);
    }

    #[test]
    fn planted_patterns_are_found(
        (pattern, documents) in planted(),
        metric in metric(),
        distance in 0..7_u32,
        case in case(),
    ) {
        check(&pattern, &documents, metric, distance, case);
    }

    #[test]
    fn long_patterns_with_many_errors_agree_with_the_table(
        pattern in prop::collection::vec(small(), 61..300),
        others in prop::collection::vec((prop::collection::vec(small(), 0..40), 0..300_usize), 1..6),
        mut documents in prop::collection::vec(prop::collection::vec(small(), 0..700), 1..30),
        metric in metric(),
        distance in 0..120_u32,
    ) {
        for (piece, at) in others {
            // The pattern with a piece of it replaced, in the middle of something else.
            let mut planted = pattern.clone();
            let at = at % planted.len();
            let end = (at + piece.len()).min(planted.len());
            planted.splice(at..end, piece);
            let number = at % documents.len();
            let middle = documents[number].len() / 2;
            documents[number].splice(middle..middle, planted);
        }
        check(&pattern, &documents, metric, distance, Case::Exact);
    }

    #[test]
    fn the_document_of_a_byte_is_found_from_any_document_before(
        lengths in prop::collection::vec(0..4_usize, 1..200),
        share in 0.0..1.0_f64,
    ) {
        let documents: Vec<Vec<u8>> = lengths.iter().map(|&length| vec![b'x'; length]).collect();
        let (text, ends) = joined(&documents);
        prop_assume!(!text.is_empty());
        let corpus = Corpus::new(&text, &ends).unwrap();
        let at = (share * text.len() as f64) as usize;
        let expected = ends.iter().position(|&end| end > at as u64).unwrap();
        for from in 0..=expected {
            prop_assert_eq!(corpus.document_of(at, from), expected);
        }
    }
}

#[test]
fn a_match_never_reaches_into_the_next_document() {
    // Long enough for every kernel, and a boundary at every offset of a block.
    for cut in 0..130 {
        let mut first = vec![b'.'; 4000 + cut];
        first.extend_from_slice(b"hello ki");
        let mut second = b"tty".to_vec();
        second.resize(4000, b'.');
        let documents = [first, second, vec![], b"hello kitty".to_vec(), vec![b'-'; 2000]];
        let (text, ends) = joined(&documents);
        let corpus = Corpus::new(&text, &ends).unwrap();
        for (metric, distance, expected) in [
            (Metric::Edits, 0, vec![3]),
            (Metric::Edits, 2, vec![3]),
            (Metric::Edits, 3, vec![0, 3]),
            (Metric::Hamming, 2, vec![3]),
            (Metric::Hamming, 3, vec![0, 3]),
        ] {
            let pattern = Pattern::new(b"hello kitty", metric, distance, Case::Exact).unwrap();
            for kernel in Kernel::available() {
                let mut expected = expected.clone();
                if metric == Metric::Hamming && distance == 3 {
                    // "hello ki" ends its document: three replacements have no room.
                    expected = vec![3];
                }
                let scan = pattern.scan().with_kernel(kernel);
                assert_eq!(
                    found(scan, &corpus),
                    expected,
                    "{kernel:?} {metric:?} {distance} {cut}"
                );
            }
        }
    }
}

#[test]
fn a_match_at_any_place_of_a_long_text_is_found() {
    let pattern = b"zyxwvu";
    for (metric, planted) in [(Metric::Edits, &b"zyx#wvu"[..]), (Metric::Hamming, b"zy#wvu")] {
        let matcher = Pattern::new(pattern, metric, 1, Case::Exact).unwrap();
        for kernel in Kernel::available() {
            for length in [2048, 2999, 5000, 40_000] {
                let apart = if length < 10_000 { 7 } else { 53 };
                for at in
                    (0..=length - planted.len()).step_by(apart).chain([length - planted.len()])
                {
                    let mut text = vec![b'e'; length];
                    text[at..at + planted.len()].copy_from_slice(planted);
                    let ends = [length as u64];
                    let corpus = Corpus::new(&text, &ends).unwrap();
                    for scan in [matcher.scan(), matcher.scan().with_dense(false)] {
                        let scan = scan.with_kernel(kernel);
                        assert_eq!(found(scan, &corpus), [0], "{kernel:?} {length} {at}");
                    }
                }
            }
        }
    }
}

#[test]
fn stretches_and_documents_longer_than_one_are_searched_whole() {
    let mut documents = vec![vec![b'a'; 3_000_000], vec![b'b'; 700_000], vec![b'c'; 700_000]];
    documents.extend((0..5000).map(|number| format!("number {number}").into_bytes()));
    documents[0][2_999_990..].copy_from_slice(b"the needle");
    documents[1][..6].copy_from_slice(b"needle");
    let (text, ends) = joined(&documents);
    let corpus = Corpus::new(&text, &ends).unwrap();
    for kernel in Kernel::available() {
        let pattern = Pattern::new(b"neeedle", Metric::Edits, 1, Case::Exact).unwrap();
        assert_eq!(found(pattern.scan().with_kernel(kernel), &corpus), [0, 1], "{kernel:?}");
        let pattern = Pattern::new(b"NUMBER 4711", Metric::Hamming, 0, Case::IgnoreAscii).unwrap();
        assert_eq!(found(pattern.scan().with_kernel(kernel), &corpus), [4714], "{kernel:?}");
    }
}

#[test]
fn too_many_chance_matches_of_a_piece_lengthen_it() {
    // The rarest piece occurs everywhere here, and the pattern nowhere.
    let text = b"quizzical fuzz ".repeat(20_000);
    let ends = [text.len() as u64];
    let corpus = Corpus::new(&text, &ends).unwrap();
    let pattern =
        Pattern::new(b"the quizzical fox of the east", Metric::Edits, 1, Case::Exact).unwrap();
    for kernel in Kernel::available().into_iter().skip(1) {
        let mut scan = pattern.scan().with_kernel(kernel).with_dense(false);
        let before = scan.rows();
        let mut found = Found::new(1);
        scan.documents(&corpus, &mut found);
        assert_eq!(found.count(), 0);
        assert!(scan.rows() > before, "{kernel:?} stayed at {before} rows");
    }
}

#[test]
fn parts_that_are_everywhere_are_given_up() {
    // Each half of the pattern stands in every line, never near the other.
    let page = b"quizzical fiz, said who; z of the ozen\n".repeat(1_000);
    let mut pages = vec![page; 40];
    pages.push(b"quizzical fizz of the oxen".to_vec());
    let (text, ends) = joined(&pages);
    let corpus = Corpus::new(&text, &ends).unwrap();
    let pattern =
        Pattern::new(b"quizzical fizz of the ozen", Metric::Edits, 1, Case::Exact).unwrap();
    for kernel in Kernel::available().into_iter().skip(2) {
        let mut scan = pattern.scan().with_kernel(kernel);
        assert!(scan.is_anchored());
        let mut found = Found::new(41);
        scan.documents(&corpus, &mut found);
        assert_eq!(found.iter().collect::<Vec<_>>(), [40], "{kernel:?}");
        assert!(!scan.is_anchored(), "{kernel:?} went on looking for parts");
    }
}

#[test]
fn distances_beyond_the_pattern_match_everything_or_what_is_long_enough() {
    let documents = [b"".to_vec(), b"ab".to_vec(), b"abcd".to_vec()];
    check(b"xyz", &documents, Metric::Edits, 3, Case::Exact);
    check(b"xyz", &documents, Metric::Hamming, 7, Case::Exact);
    check(b"xyz", &documents, Metric::Edits, u32::MAX, Case::Exact);
}

#[test]
fn no_documents_and_empty_documents_are_corpora() {
    let corpus = Corpus::new(b"", &[]).unwrap();
    let pattern = Pattern::new(b"a", Metric::Edits, 0, Case::Exact).unwrap();
    assert_eq!(found(pattern.scan(), &corpus), [0_usize; 0]);
    let corpus = Corpus::new(b"a", &[0, 0, 1, 1]).unwrap();
    assert_eq!(found(pattern.scan(), &corpus), [2]);
    let mut seen = Vec::new();
    pattern.documents(&corpus, &mut |document| seen.push(document));
    assert_eq!(seen, [2]);
}

#[test]
fn what_is_no_pattern_and_no_corpus_is_refused() {
    let refused = |bytes: &[u8]| Pattern::new(bytes, Metric::Edits, 1, Case::Exact).unwrap_err();
    assert_eq!(refused(b""), PatternError::Empty);
    assert_eq!(refused(&[b'a'; 4097]), PatternError::Long { length: 4097 });
    assert!(Pattern::new(&[b'a'; 4096], Metric::Edits, 1, Case::Exact).is_ok());
    let refused = Corpus::new(b"abc", &[2, 1, 3]).unwrap_err();
    assert_eq!(refused, CorpusError::Order { document: 1, end: 1 });
    let refused = Corpus::new(b"abc", &[2]).unwrap_err();
    assert_eq!(refused, CorpusError::End { end: 2, length: 3 });
}

#[test]
fn a_character_is_one_letter() {
    let mut out = Vec::new();
    assert!(!letters::append("naïve", &mut out));
    assert_eq!(out, b"na\xefve");
    out.clear();
    assert!(letters::append("a\u{2013}b", &mut out));
    assert_eq!(out.len(), 3);
    assert!((0x80..0xa0).contains(&out[1]));
    // One edit between a letter of two bytes and one of one byte.
    let (mut text, mut wanted) = (Vec::new(), Vec::new());
    letters::append("a café in town", &mut text);
    letters::append("cafe", &mut wanted);
    let pattern = Pattern::new(&wanted, Metric::Edits, 1, Case::Exact).unwrap();
    assert_eq!(pattern.best_distance(&text), Some(1));
}
