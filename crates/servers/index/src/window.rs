//! Words that stand near each other: a query over the positions of words.

use std::fmt;
use tantivy::postings::{Postings, SegmentPostings};
use tantivy::query::{
    BooleanQuery, EmptyScorer, EnableScoring, Explanation, Occur, PhraseQuery, Query, Scorer,
    TermQuery, Weight,
};
use tantivy::schema::IndexRecordOption;
use tantivy::{DocId, DocSet, Score, SegmentReader, TERMINATED, TantivyError, Term};

/// One word of the query: any of these alternatives, each of terms that follow one another.
pub(crate) type TermPlace = Vec<Vec<Term>>;

/// The documents in which all places have a position within one window. The relevance is that of
/// the words and phrases, wherever they stand.
pub(crate) struct WindowQuery {
    /// Matches the documents with all places, near each other or not.
    candidates: Box<dyn Query>,
    places: Vec<TermPlace>,
    distance: u32,
    ordered: bool,
}

impl Clone for WindowQuery {
    fn clone(&self) -> Self {
        let Self { candidates, places, distance, ordered } = self;
        let candidates = candidates.box_clone();
        Self { candidates, places: places.clone(), distance: *distance, ordered: *ordered }
    }
}

impl WindowQuery {
    /// Of places that have one alternative at least, each of which has a term.
    pub(crate) fn new(places: Vec<TermPlace>, distance: u32, ordered: bool) -> Self {
        let places_found = places.iter().map(|place| {
            let mut any: Vec<Box<dyn Query>> = place.iter().map(|terms| words(terms)).collect();
            let query = if any.len() == 1 { any.swap_remove(0) } else { union(any) };
            (Occur::Must, query)
        });
        let candidates = Box::new(BooleanQuery::new(places_found.collect()));
        Self { candidates, places, distance, ordered }
    }
}

fn union(queries: Vec<Box<dyn Query>>) -> Box<dyn Query> {
    Box::new(BooleanQuery::union(queries))
}

fn words(terms: &[Term]) -> Box<dyn Query> {
    match terms {
        [term] => Box::new(TermQuery::new(term.clone(), IndexRecordOption::WithFreqs)),
        terms => Box::new(PhraseQuery::new(terms.to_vec())),
    }
}

impl fmt::Debug for WindowQuery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WindowQuery").field("places", &self.places).finish_non_exhaustive()
    }
}

impl Query for WindowQuery {
    fn weight(&self, scoring: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(WindowWeight {
            candidates: self.candidates.weight(scoring)?,
            places: self.places.clone(),
            distance: self.distance,
            ordered: self.ordered,
        }))
    }
}

struct WindowWeight {
    candidates: Box<dyn Weight>,
    places: Vec<TermPlace>,
    distance: u32,
    ordered: bool,
}

impl Weight for WindowWeight {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let mut places = Vec::with_capacity(self.places.len());
        for place in &self.places {
            let mut alternatives = Vec::with_capacity(place.len());
            for terms in place {
                alternatives.extend(Alternative::open(reader, terms)?);
            }
            if alternatives.is_empty() {
                return Ok(Box::new(EmptyScorer));
            }
            places.push(PlaceReader { alternatives, positions: Vec::new() });
        }
        let candidates = self.candidates.scorer(reader, boost)?;
        let (distance, ordered) = (self.distance, self.ordered);
        let scratch = Vec::new();
        let mut scorer = WindowScorer { candidates, places, distance, ordered, scratch };
        scorer.settle();
        Ok(Box::new(scorer))
    }

    fn explain(&self, reader: &SegmentReader, doc: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() <= doc && scorer.seek(doc) == doc {
            return Ok(Explanation::new("Window", scorer.score()));
        }
        let message = format!("document {doc} does not match");
        Err(TantivyError::InvalidArgument(message))
    }
}

/// The postings of terms that follow one another.
struct Alternative(Vec<SegmentPostings>);

impl Alternative {
    /// Nothing when the segment lacks one of the terms.
    fn open(reader: &SegmentReader, terms: &[Term]) -> tantivy::Result<Option<Self>> {
        let mut postings = Vec::with_capacity(terms.len());
        for term in terms {
            let index = reader.inverted_index(term.field())?;
            let option = IndexRecordOption::WithFreqsAndPositions;
            match index.read_postings(term, option)? {
                Some(found) => postings.push(found),
                None => return Ok(None),
            }
        }
        Ok(Some(Self(postings)))
    }

    /// Appends the positions at which the terms begin to follow one another in a document.
    fn positions(&mut self, doc: DocId, scratch: &mut Vec<u32>, out: &mut Vec<u32>) {
        let start = out.len();
        for (number, postings) in self.0.iter_mut().enumerate() {
            if postings.doc() < doc {
                postings.seek(doc);
            }
            if postings.doc() != doc {
                out.truncate(start);
                return;
            }
            postings.positions(scratch);
            if number == 0 {
                out.extend_from_slice(scratch);
                continue;
            }
            let mut kept = start;
            for at in start..out.len() {
                let position = out[at];
                if scratch.binary_search(&(position + number as u32)).is_ok() {
                    out[kept] = position;
                    kept += 1;
                }
            }
            out.truncate(kept);
        }
    }
}

struct PlaceReader {
    alternatives: Vec<Alternative>,
    /// Of the document looked at, in order.
    positions: Vec<u32>,
}

impl PlaceReader {
    fn read(&mut self, doc: DocId, scratch: &mut Vec<u32>) -> bool {
        self.positions.clear();
        for alternative in &mut self.alternatives {
            alternative.positions(doc, scratch, &mut self.positions);
        }
        if self.alternatives.len() > 1 {
            self.positions.sort_unstable();
        }
        !self.positions.is_empty()
    }
}

struct WindowScorer {
    candidates: Box<dyn Scorer>,
    places: Vec<PlaceReader>,
    distance: u32,
    ordered: bool,
    scratch: Vec<u32>,
}

impl WindowScorer {
    /// Moves on to the first candidate from here whose words are near each other.
    fn settle(&mut self) -> DocId {
        let mut doc = self.candidates.doc();
        while doc != TERMINATED && !self.matches(doc) {
            doc = self.candidates.advance();
        }
        doc
    }

    fn matches(&mut self, doc: DocId) -> bool {
        for place in &mut self.places {
            if !place.read(doc, &mut self.scratch) {
                return false;
            }
        }
        let positions: Vec<&[u32]> =
            self.places.iter().map(|place| place.positions.as_slice()).collect();
        if self.ordered {
            ordered(&positions, self.distance)
        } else {
            unordered(&positions, self.distance)
        }
    }
}

/// Returns whether one position of each list can be chosen so that all are within the distance.
fn unordered(places: &[&[u32]], distance: u32) -> bool {
    let mut rests: Vec<&[u32]> = places.to_vec();
    loop {
        let mut least: Option<(u32, usize)> = None;
        let mut most = 0;
        for (number, rest) in rests.iter().enumerate() {
            let Some(first) = rest.first() else { return false };
            most = most.max(*first);
            if least.is_none_or(|(position, _)| *first < position) {
                least = Some((*first, number));
            }
        }
        let Some((position, number)) = least else { return false };
        if most - position <= distance {
            return true;
        }
        rests[number] = &rests[number][1..];
    }
}

/// As [`unordered`], each position after that of the list before.
fn ordered(places: &[&[u32]], distance: u32) -> bool {
    let Some((firsts, others)) = places.split_first() else { return false };
    let mut rests: Vec<&[u32]> = others.to_vec();
    'firsts: for first in *firsts {
        let mut before = *first;
        for rest in &mut rests {
            // What is not after this first position is not after a later one.
            let skipped = rest.partition_point(|position| *position <= before);
            *rest = &rest[skipped..];
            match rest.first() {
                None => return false,
                Some(position) if position - first > distance => continue 'firsts,
                Some(position) => before = *position,
            }
        }
        return true;
    }
    false
}

impl DocSet for WindowScorer {
    fn advance(&mut self) -> DocId {
        self.candidates.advance();
        self.settle()
    }

    fn seek(&mut self, target: DocId) -> DocId {
        self.candidates.seek(target);
        self.settle()
    }

    fn doc(&self) -> DocId {
        self.candidates.doc()
    }

    fn size_hint(&self) -> u32 {
        self.candidates.size_hint()
    }
}

impl Scorer for WindowScorer {
    fn score(&mut self) -> Score {
        self.candidates.score()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn places() -> impl Strategy<Value = Vec<Vec<u32>>> {
        let place = proptest::collection::btree_set(0u32..30, 1..6);
        let place = place.prop_map(|positions| positions.into_iter().collect());
        proptest::collection::vec(place, 1..4)
    }

    /// Tries all choices of positions.
    fn slowly(places: &[Vec<u32>], chosen: &mut Vec<u32>, distance: u32, in_order: bool) -> bool {
        let Some(place) = places.get(chosen.len()) else {
            let (least, most) = (chosen.iter().min().unwrap(), chosen.iter().max().unwrap());
            return most - least <= distance
                && (!in_order || chosen.windows(2).all(|pair| pair[0] < pair[1]));
        };
        place.iter().any(|position| {
            chosen.push(*position);
            let found = slowly(places, chosen, distance, in_order);
            chosen.pop();
            found
        })
    }

    proptest! {
        #[test]
        fn windows_are_those_that_trying_every_choice_finds(places in places(), distance in 0u32..12) {
            let slices: Vec<&[u32]> = places.iter().map(Vec::as_slice).collect();
            prop_assert_eq!(unordered(&slices, distance), slowly(&places, &mut vec![], distance, false));
            prop_assert_eq!(ordered(&slices, distance), slowly(&places, &mut vec![], distance, true));
        }
    }
}
