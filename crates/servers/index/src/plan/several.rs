//! Conditions of which any will do, conditions that count for the order alone, and words that stand
//! near each other.

use super::{FieldKind, Made, Mapped, PlanError, Planner, Shape, cut, nothing, term};
use crate::query::{Node, Place, Within};
use crate::window::{TermPlace, WindowQuery};
use tantivy::Term;
use tantivy::query::{BooleanQuery, Occur, Query};

impl Planner<'_> {
    /// Returns whether the children are words that are scored, so that any of them is a union of terms.
    pub(super) fn are_scored_terms(&self, children: &[Node]) -> bool {
        !children.is_empty()
            && children.iter().all(|child| match child {
                Node::Or(children) => self.are_scored_terms(children),
                Node::Term { field, text } => {
                    let (fields, _) = self.schema.named(field, self.types);
                    !fields.is_empty()
                        && fields.iter().all(|field| {
                            field.kind == FieldKind::Text && field.analysis.words(text).len() == 1
                        })
                }
                _ => false,
            })
    }

    /// The terms of a filter of [`Shape::ScoredTerms`].
    pub(super) fn terms(
        &self,
        filter: &Node,
        shape: Shape,
    ) -> Result<Vec<Box<dyn Query>>, PlanError> {
        let mut terms = Vec::new();
        if shape == Shape::ScoredTerms {
            self.any_of(std::slice::from_ref(filter), &mut terms)?;
        }
        Ok(terms)
    }

    /// The queries of which any must match. The levels below that ask for the same are this one: a
    /// relevance is a sum in any case, and a union of terms alone can be pruned.
    pub(super) fn any_of(
        &self,
        children: &[Node],
        out: &mut Vec<Box<dyn Query>>,
    ) -> Result<(), PlanError> {
        for child in children {
            match child {
                Node::Or(children) => self.any_of(children, out)?,
                Node::Term { field: name, text } => {
                    for mapped in self.fields(name)? {
                        out.push(term(name, mapped, text)?);
                    }
                }
                other => out.push(self.node(other)?),
            }
        }
        Ok(())
    }

    /// The first must match, the others may.
    pub(super) fn rank(&self, children: &[Node]) -> Made {
        let Some((first, others)) = children.split_first() else { return nothing() };
        let mut clauses = self.clauses(Occur::Should, others)?;
        clauses.insert(0, (Occur::Must, self.node(first)?));
        Ok(Box::new(BooleanQuery::new(clauses)))
    }
}

/// Words of one text within a window.
pub(super) fn window(within: &Within, mapped: &Mapped) -> Made {
    let name = &within.field;
    if mapped.kind != FieldKind::Text {
        let message = format!("'{name}' is not cut into words: near and onear need words");
        return Err(PlanError(message));
    }
    if !mapped.single {
        // The index does not give where an element ends.
        let message =
            format!("near and onear in '{name}', which has several texts, are not supported");
        return Err(PlanError(message));
    }
    let term = |word: &String| Term::from_field_text(mapped.field, word);
    let words = |words: &Vec<String>| cut(mapped, words).iter().map(term).collect::<Vec<Term>>();
    let place = |place: &Place| {
        let alternatives = place.iter().map(words).filter(|terms: &Vec<Term>| !terms.is_empty());
        alternatives.collect::<TermPlace>()
    };
    let places: Vec<TermPlace> = within.places.iter().map(place).collect();
    if places.iter().any(Vec::is_empty) {
        return nothing();
    }
    Ok(Box::new(WindowQuery::new(places, within.distance, within.ordered)))
}
