//! Turns a query tree into a tantivy query, and checks on the way that it fits the schema.

use super::automaton::{AutomatonQuery, TermAutomaton};
use super::complement::ComplementQuery;
use super::query::{Literal, MAX_EDITS, Node, Number, OrderBy, Search};
use super::schema::{
    DEFAULT_FIELD, DEFAULT_FIELD_SET, FIELDS, FieldKind, IndexSchema, field_names, field_number,
    fold, words,
};
use std::ops::Bound;
use std::sync::Arc;
use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, ConstScoreQuery, EmptyQuery, ExistsQuery, Occur, PhraseQuery, Query,
    RangeQuery, TermQuery, TermSetQuery,
};
use tantivy::schema::IndexRecordOption;

/// How many fields a search may be ordered by.
pub(crate) const MAX_ORDER_FIELDS: usize = 4;
/// The longest text of a fuzzy term, in characters: its automaton grows with it.
pub(crate) const MAX_FUZZY_CHARS: usize = 100;

/// Why a query does not fit the schema; said to the client as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub(crate) struct PlanError(pub(crate) String);

/// What the shape of the query allows the executor to leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One scored term: the number of matches is known without a walk, and blocks of documents that
    /// cannot enter the best hits are skipped.
    ScoredTerm,
    /// Every document.
    Everything,
    /// One term whose matches all have the same relevance: their number is known as well.
    FlatTerm,
    /// Every match has the same relevance, so that the first matches are as good as any.
    Flat,
    /// Anything else.
    General,
}

/// One sort criterion on a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SortColumn {
    pub(crate) name: &'static str,
    pub(crate) kind: FieldKind,
    pub(crate) descending: bool,
}

/// A search that can be run.
pub(crate) struct Plan {
    pub(crate) query: Box<dyn Query>,
    pub(crate) shape: Shape,
    pub(crate) order: Vec<SortColumn>,
}

type Made = Result<Box<dyn Query>, PlanError>;

/// Plans a search.
///
/// # Errors
/// When a field does not exist or cannot be matched in the way asked for.
pub(crate) fn plan(search: &Search, schema: &IndexSchema) -> Result<Plan, PlanError> {
    let planner = Planner { schema };
    let query = planner.node(&search.filter)?;
    let order = search.order.iter().map(sort_column).collect::<Result<Vec<_>, _>>()?;
    if order.len() > MAX_ORDER_FIELDS {
        let message = format!("'order by' with {} fields, at most {MAX_ORDER_FIELDS}", order.len());
        return Err(PlanError(message));
    }
    Ok(Plan { query, shape: shape(&search.filter), order })
}

fn shape(node: &Node) -> Shape {
    let kind = |field: &str| field_number(field).map(|number| FIELDS[number].kind);
    match node {
        Node::Term { field, text } => match kind(field) {
            Some(FieldKind::Text) if words(text).len() == 1 => Shape::ScoredTerm,
            Some(FieldKind::Text) | None => Shape::General,
            Some(_) => Shape::FlatTerm,
        },
        // Over the default field set a document may match in one field or in both.
        Node::Prefix { field, .. } | Node::Fuzzy { field, .. } if field == DEFAULT_FIELD => {
            Shape::General
        }
        Node::All => Shape::Everything,
        Node::Nothing
        | Node::Not(_)
        | Node::Prefix { .. }
        | Node::Fuzzy { .. }
        | Node::Range { .. }
        | Node::OneOf { .. } => Shape::Flat,
        Node::Phrase { .. } | Node::And(_) | Node::Or(_) => Shape::General,
    }
}

fn sort_column(order: &OrderBy) -> Result<SortColumn, PlanError> {
    let number = known(&order.field)?;
    let field = FIELDS[number];
    if field.kind == FieldKind::Text {
        let message = format!("'{}' is text and cannot be ordered by", order.field);
        return Err(PlanError(message));
    }
    Ok(SortColumn { name: field.name, kind: field.kind, descending: order.descending })
}

fn known(name: &str) -> Result<usize, PlanError> {
    field_number(name).ok_or_else(|| {
        PlanError(format!("Field '{name}' does not exist. The fields are {}", field_names()))
    })
}

struct Planner<'a> {
    schema: &'a IndexSchema,
}

impl Planner<'_> {
    fn node(&self, node: &Node) -> Made {
        match node {
            Node::All => Ok(flat(AllQuery)),
            Node::Nothing => Ok(Box::new(EmptyQuery)),
            Node::And(children) => self.and(children),
            Node::Or(children) => {
                let clauses = children
                    .iter()
                    .map(|child| Ok((Occur::Should, self.node(child)?)))
                    .collect::<Result<Vec<_>, PlanError>>()?;
                Ok(Box::new(BooleanQuery::new(clauses)))
            }
            Node::Not(child) => Ok(Box::new(ComplementQuery { inner: self.node(child)? })),
            Node::Term { field, text } => self.each_field(field, |number| self.term(number, text)),
            Node::Phrase { field, words: parts } => self.each_field(field, |number| {
                let found = parts.iter().flat_map(|part| words(part)).collect();
                self.phrase(number, found, &parts.join(" "))
            }),
            Node::Prefix { field, text } => self.each_field(field, |number| {
                let term = self.single(number, text, "a prefix")?;
                // Without a word there is nothing to begin with.
                term.map_or_else(nothing, |term| {
                    self.automaton(number, TermAutomaton::prefix(&term))
                })
            }),
            Node::Fuzzy { field, text, max_edits, prefix_length } => self
                .each_field(field, |number| self.fuzzy(number, text, *max_edits, *prefix_length)),
            Node::Range { field, lower, upper } => self.range(field, *lower, *upper),
            Node::OneOf { field, values } => self.one_of(field, values),
        }
    }

    fn and(&self, children: &[Node]) -> Made {
        let clauses = children
            .iter()
            .map(|child| Ok((Occur::Must, self.node(child)?)))
            .collect::<Result<Vec<_>, PlanError>>()?;
        Ok(Box::new(BooleanQuery::new(clauses)))
    }

    /// One query a field, for the fields of the default field set when that is asked for.
    fn each_field(&self, name: &str, make: impl Fn(usize) -> Made) -> Made {
        if name != DEFAULT_FIELD {
            return make(known(name)?);
        }
        let clauses = DEFAULT_FIELD_SET
            .iter()
            .map(|name| Ok((Occur::Should, make(known(name)?)?)))
            .collect::<Result<Vec<_>, PlanError>>()?;
        Ok(Box::new(BooleanQuery::new(clauses)))
    }

    fn term(&self, number: usize, text: &str) -> Made {
        match FIELDS[number].kind {
            FieldKind::Text => self.phrase(number, words(text), text),
            FieldKind::Keyword => Ok(flat(self.keyword(number, text))),
            FieldKind::Long => {
                let name = FIELDS[number].name;
                let message =
                    format!("'{name}' is a number: compare it with =, <, >, <=, >= or range()");
                Err(PlanError(message))
            }
        }
    }

    /// Words that follow one another; a keyword is compared as a whole.
    fn phrase(&self, number: usize, words: Vec<String>, text: &str) -> Made {
        if FIELDS[number].kind != FieldKind::Text {
            return self.term(number, text);
        }
        let field = self.schema.fields[number];
        let mut terms: Vec<Term> =
            words.iter().map(|word| Term::from_field_text(field, word)).collect();
        match terms.len() {
            0 => nothing(),
            1 => {
                let term = terms.swap_remove(0);
                Ok(Box::new(TermQuery::new(term, IndexRecordOption::WithFreqs)))
            }
            _ => Ok(Box::new(PhraseQuery::new(terms))),
        }
    }

    fn keyword(&self, number: usize, text: &str) -> TermQuery {
        let term = Term::from_field_text(self.schema.fields[number], &fold(text));
        TermQuery::new(term, IndexRecordOption::Basic)
    }

    /// The one term of a text that must not have more.
    fn single(&self, number: usize, text: &str, what: &str) -> Result<Option<String>, PlanError> {
        match FIELDS[number].kind {
            FieldKind::Keyword => Ok(Some(fold(text)).filter(|term| !term.is_empty())),
            FieldKind::Long => {
                let name = FIELDS[number].name;
                Err(PlanError(format!("'{name}' is a number and cannot be matched by {what}")))
            }
            FieldKind::Text => {
                let mut found = words(text);
                if found.len() > 1 {
                    let message = format!("\"{text}\" is {} words, {what} is one", found.len());
                    return Err(PlanError(message));
                }
                Ok(found.pop())
            }
        }
    }

    fn fuzzy(&self, number: usize, text: &str, max_edits: u64, prefix_length: usize) -> Made {
        let Some(term) = self.single(number, text, "a fuzzy term")? else { return nothing() };
        if term.chars().count() > MAX_FUZZY_CHARS {
            let message = format!("a fuzzy term has at most {MAX_FUZZY_CHARS} characters");
            return Err(PlanError(message));
        }
        let automaton = TermAutomaton::fuzzy(&term, max_edits, prefix_length);
        let automaton = automaton.ok_or_else(|| {
            PlanError(format!("maxEditDistance {max_edits} is not supported: use 0 to {MAX_EDITS}"))
        })?;
        self.automaton(number, automaton)
    }

    fn automaton(&self, number: usize, automaton: TermAutomaton) -> Made {
        let field = self.schema.fields[number];
        let query = AutomatonQuery { field, automaton: Arc::new(automaton) };
        // Only whole words are scored: an approximate match says nothing of frequency.
        Ok(Box::new(ConstScoreQuery::new(Box::new(query), 1.0)))
    }

    fn numeric(&self, name: &str, what: &str) -> Result<usize, PlanError> {
        let number = known(name)?;
        if FIELDS[number].kind == FieldKind::Long {
            return Ok(number);
        }
        let message = format!("'{name}' is not a number: {what} needs one, text has 'contains'");
        Err(PlanError(message))
    }

    fn range(&self, name: &str, lower: Bound<Number>, upper: Bound<Number>) -> Made {
        let number = self.numeric(name, "a comparison")?;
        let (Some(lower), Some(upper)) = (at_least(lower), at_most(upper)) else {
            return nothing();
        };
        let field = self.schema.fields[number];
        if lower > upper {
            return nothing();
        }
        if (lower, upper) == (i64::MIN, i64::MAX) {
            return Ok(flat(ExistsQuery::new(FIELDS[number].name.to_owned(), false)));
        }
        let term = |value| Term::from_field_i64(field, value);
        if lower == upper {
            return Ok(flat(TermQuery::new(term(lower), IndexRecordOption::Basic)));
        }
        let bounds = (Bound::Included(term(lower)), Bound::Included(term(upper)));
        Ok(flat(RangeQuery::new(bounds.0, bounds.1)))
    }

    fn one_of(&self, name: &str, values: &[Literal]) -> Made {
        let number = known(name)?;
        let field = self.schema.fields[number];
        let mut terms = Vec::with_capacity(values.len());
        for value in values {
            match (FIELDS[number].kind, value) {
                (FieldKind::Keyword, Literal::Text(text)) => {
                    terms.push(Term::from_field_text(field, &fold(text)));
                }
                (FieldKind::Long, Literal::Number(Number::Whole(value))) => {
                    terms.push(Term::from_field_i64(field, *value));
                }
                (FieldKind::Keyword, Literal::Number(_)) => {
                    return Err(PlanError(format!("'{name} in' needs strings")));
                }
                (FieldKind::Long, _) => {
                    return Err(PlanError(format!("'{name} in' needs whole numbers")));
                }
                (FieldKind::Text, _) => {
                    let message = format!("'{name}' is text: 'in' needs a keyword or a number");
                    return Err(PlanError(message));
                }
            }
        }
        Ok(flat(TermSetQuery::new(terms)))
    }
}

/// A query whose matches do not add to the relevance.
fn flat(query: impl Query) -> Box<dyn Query> {
    Box::new(ConstScoreQuery::new(Box::new(query), 0.0))
}

fn nothing() -> Made {
    Ok(Box::new(EmptyQuery))
}

/// The smallest whole number that the bound allows, if there is one.
fn at_least(bound: Bound<Number>) -> Option<i64> {
    match bound {
        Bound::Unbounded => Some(i64::MIN),
        Bound::Included(Number::Whole(value)) => Some(value),
        Bound::Excluded(Number::Whole(value)) => value.checked_add(1),
        Bound::Included(Number::Real(value)) => whole(value.ceil()).or(below(value)),
        Bound::Excluded(Number::Real(value)) => match whole(value.floor()) {
            Some(value) => value.checked_add(1),
            None => below(value),
        },
    }
}

/// The largest whole number that the bound allows, if there is one.
fn at_most(bound: Bound<Number>) -> Option<i64> {
    match bound {
        Bound::Unbounded => Some(i64::MAX),
        Bound::Included(Number::Whole(value)) => Some(value),
        Bound::Excluded(Number::Whole(value)) => value.checked_sub(1),
        Bound::Included(Number::Real(value)) => whole(value.floor()).or(above(value)),
        Bound::Excluded(Number::Real(value)) => match whole(value.ceil()) {
            Some(value) => value.checked_sub(1),
            None => above(value),
        },
    }
}

/// The number as an integer, when it is in the range of one. 2^63 is the first that is not.
fn whole(value: f64) -> Option<i64> {
    let limit = -(i64::MIN as f64);
    (value >= -limit && value < limit).then_some(value as i64)
}

fn below(value: f64) -> Option<i64> {
    (value < 0.0).then_some(i64::MIN)
}

fn above(value: f64) -> Option<i64> {
    (value > 0.0).then_some(i64::MAX)
}
