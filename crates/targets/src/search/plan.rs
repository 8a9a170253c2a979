//! Turns a query tree into a tantivy query, and checks on the way that it fits the schema.

use super::automaton::{AutomatonQuery, TermAutomaton};
use super::complement::ComplementQuery;
use super::mapping::{FieldKind, IndexSchema, Mapped};
use super::query::{Literal, MAX_EDITS, Node, Number, OrderBy, Search};
use super::text::{fold, words};
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
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SortColumn {
    pub(crate) name: String,
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
    let planner = Planner { schema, types: &search.types };
    let query = planner.node(&search.filter)?;
    let order = search.order.iter().map(|by| planner.sort_column(by));
    let order = order.collect::<Result<Vec<_>, _>>()?;
    if order.len() > MAX_ORDER_FIELDS {
        let message = format!("'order by' with {} fields, at most {MAX_ORDER_FIELDS}", order.len());
        return Err(PlanError(message));
    }
    let shape = planner.shape(&search.filter);
    if search.types.is_empty() || schema.document_type.is_none() {
        return Ok(Plan { query, shape, order });
    }
    // Terms are of their types, but what matches without a term is of every type.
    let types = search.types.iter().filter_map(|number| planner.of_type(*number)).collect();
    let types: Box<dyn Query> = Box::new(BooleanQuery::union(types));
    let query = Box::new(BooleanQuery::intersection(vec![query, types]));
    let shape = if shape == Shape::Flat { Shape::Flat } else { Shape::General };
    Ok(Plan { query, shape, order })
}

struct Planner<'a> {
    schema: &'a IndexSchema,
    /// Empty for all.
    types: &'a [u16],
}

impl<'a> Planner<'a> {
    fn shape(&self, node: &Node) -> Shape {
        let only = |field: &str| match self.schema.named(field, self.types).0.as_slice() {
            [one] => Some(one.kind),
            _ => None,
        };
        match node {
            Node::Term { field, text } => match only(field) {
                Some(FieldKind::Text) if words(text).len() == 1 => Shape::ScoredTerm,
                Some(FieldKind::Text) | None => Shape::General,
                Some(_) => Shape::FlatTerm,
            },
            // Over several fields a document may match in one of them or in more.
            Node::Prefix { field, .. } | Node::Fuzzy { field, .. } if only(field).is_none() => {
                Shape::General
            }
            Node::All => Shape::Everything,
            Node::Nothing
            | Node::Type(_)
            | Node::Not(_)
            | Node::Prefix { .. }
            | Node::Fuzzy { .. }
            | Node::Range { .. }
            | Node::OneOf { .. } => Shape::Flat,
            Node::Phrase { .. } | Node::And(_) | Node::Or(_) => Shape::General,
        }
    }

    fn sort_column(&self, order: &OrderBy) -> Result<SortColumn, PlanError> {
        let name = &order.field;
        let fields = self.fields(name)?;
        let [field] = fields.as_slice() else {
            let message = format!("'{name}' is the name of several fields, order by one of them");
            return Err(PlanError(message));
        };
        let Some(column) = &field.column else {
            return Err(PlanError(format!("'{name}' is text and cannot be ordered by")));
        };
        if !field.single {
            let message = format!("'{name}' has several values and cannot be ordered by");
            return Err(PlanError(message));
        }
        let descending = order.descending;
        Ok(SortColumn { name: column.clone(), kind: field.kind, descending })
    }

    /// The fields that a name stands for: one at least.
    fn fields(&self, name: &str) -> Result<Vec<&'a Mapped>, PlanError> {
        let (fields, known) = self.schema.named(name, self.types);
        if !fields.is_empty() {
            return Ok(fields);
        }
        if known {
            let message = format!(
                "Field '{name}' cannot be searched: its indexing has no index or attribute, \
                 or not for its type"
            );
            return Err(PlanError(message));
        }
        let names = self.schema.schemas.field_names();
        Err(PlanError(format!("Field '{name}' does not exist. The fields are {names}")))
    }

    /// Every document of a type.
    fn of_type(&self, number: u16) -> Option<Box<dyn Query>> {
        let term = Term::from_field_u64(self.schema.document_type?, u64::from(number));
        Some(flat(TermQuery::new(term, IndexRecordOption::Basic)))
    }

    fn node(&self, node: &Node) -> Made {
        match node {
            Node::All => Ok(flat(AllQuery)),
            Node::Nothing => Ok(Box::new(EmptyQuery)),
            Node::Type(name) => match self.schema.schemas.by_name(name) {
                None => nothing(),
                Some(schema) => {
                    let query = self.of_type(schema.number());
                    Ok(query.unwrap_or_else(|| flat(AllQuery)))
                }
            },
            Node::And(children) => self.and(children),
            Node::Or(children) => {
                let clauses = children
                    .iter()
                    .map(|child| Ok((Occur::Should, self.node(child)?)))
                    .collect::<Result<Vec<_>, PlanError>>()?;
                Ok(Box::new(BooleanQuery::new(clauses)))
            }
            Node::Not(child) => Ok(Box::new(ComplementQuery { inner: self.node(child)? })),
            Node::Term { field, text } => {
                self.each_field(field, |mapped| term(field, mapped, text))
            }
            Node::Phrase { field, words: parts } => self.each_field(field, |mapped| {
                let found = parts.iter().flat_map(|part| words(part)).collect();
                phrase(field, mapped, found, &parts.join(" "))
            }),
            Node::Prefix { field, text } => self.each_field(field, |mapped| {
                let term = single(field, mapped, text, "a prefix")?;
                // Without a word there is nothing to begin with.
                term.map_or_else(nothing, |term| automaton(mapped, TermAutomaton::prefix(&term)))
            }),
            Node::Fuzzy { field, text, max_edits, prefix_length } => self
                .each_field(field, |mapped| fuzzy(field, mapped, text, *max_edits, *prefix_length)),
            Node::Range { field, lower, upper } => {
                self.each_field(field, |mapped| range(field, mapped, *lower, *upper))
            }
            Node::OneOf { field, values } => {
                self.each_field(field, |mapped| one_of(field, mapped, values))
            }
        }
    }

    fn and(&self, children: &[Node]) -> Made {
        let clauses = children
            .iter()
            .map(|child| Ok((Occur::Must, self.node(child)?)))
            .collect::<Result<Vec<_>, PlanError>>()?;
        Ok(Box::new(BooleanQuery::new(clauses)))
    }

    /// One query for each field that the name stands for.
    fn each_field(&self, name: &str, make: impl Fn(&Mapped) -> Made) -> Made {
        let fields = self.fields(name)?;
        if let [field] = fields.as_slice() {
            return make(field);
        }
        let clauses = fields
            .into_iter()
            .map(|field| Ok((Occur::Should, make(field)?)))
            .collect::<Result<Vec<_>, PlanError>>()?;
        Ok(Box::new(BooleanQuery::new(clauses)))
    }
}

fn term(name: &str, mapped: &Mapped, text: &str) -> Made {
    match mapped.kind {
        FieldKind::Text => phrase(name, mapped, words(text), text),
        FieldKind::Keyword => Ok(flat(keyword(mapped, text))),
        FieldKind::Long | FieldKind::Real { .. } => {
            let message =
                format!("'{name}' is a number: compare it with =, <, >, <=, >= or range()");
            Err(PlanError(message))
        }
    }
}

/// Words that follow one another; a keyword is compared as a whole.
fn phrase(name: &str, mapped: &Mapped, words: Vec<String>, text: &str) -> Made {
    if mapped.kind != FieldKind::Text {
        return term(name, mapped, text);
    }
    let field = mapped.field;
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

fn keyword(mapped: &Mapped, text: &str) -> TermQuery {
    let term = Term::from_field_text(mapped.field, &fold(text));
    TermQuery::new(term, IndexRecordOption::Basic)
}

/// The one term of a text that must not have more.
fn single(
    name: &str,
    mapped: &Mapped,
    text: &str,
    what: &str,
) -> Result<Option<String>, PlanError> {
    match mapped.kind {
        FieldKind::Keyword => Ok(Some(fold(text)).filter(|term| !term.is_empty())),
        FieldKind::Long | FieldKind::Real { .. } => {
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

fn fuzzy(name: &str, mapped: &Mapped, text: &str, max_edits: u64, prefix_length: usize) -> Made {
    let Some(term) = single(name, mapped, text, "a fuzzy term")? else { return nothing() };
    if term.chars().count() > MAX_FUZZY_CHARS {
        let message = format!("a fuzzy term has at most {MAX_FUZZY_CHARS} characters");
        return Err(PlanError(message));
    }
    let found = TermAutomaton::fuzzy(&term, max_edits, prefix_length);
    let found = found.ok_or_else(|| {
        PlanError(format!("maxEditDistance {max_edits} is not supported: use 0 to {MAX_EDITS}"))
    })?;
    automaton(mapped, found)
}

fn automaton(mapped: &Mapped, automaton: TermAutomaton) -> Made {
    let query = AutomatonQuery { field: mapped.field, automaton: Arc::new(automaton) };
    // Only whole words are scored: an approximate match says nothing of frequency.
    Ok(Box::new(ConstScoreQuery::new(Box::new(query), 1.0)))
}

fn range(name: &str, mapped: &Mapped, lower: Bound<Number>, upper: Bound<Number>) -> Made {
    match mapped.kind {
        FieldKind::Long => Ok(long_range(mapped, lower, upper)),
        FieldKind::Real { single } => Ok(real_range(mapped, single, lower, upper)),
        FieldKind::Text | FieldKind::Keyword => {
            let message =
                format!("'{name}' is not a number: a comparison needs one, text has 'contains'");
            Err(PlanError(message))
        }
    }
}

fn long_range(mapped: &Mapped, lower: Bound<Number>, upper: Bound<Number>) -> Box<dyn Query> {
    let (Some(lower), Some(upper)) = (at_least(lower), at_most(upper)) else {
        return Box::new(EmptyQuery);
    };
    if lower > upper {
        return Box::new(EmptyQuery);
    }
    if (lower, upper) == (i64::MIN, i64::MAX) {
        return any_value(mapped);
    }
    let term = |value| Term::from_field_i64(mapped.field, value);
    if lower == upper {
        return flat(TermQuery::new(term(lower), IndexRecordOption::Basic));
    }
    flat(RangeQuery::new(Bound::Included(term(lower)), Bound::Included(term(upper))))
}

fn real_range(
    mapped: &Mapped,
    single: bool,
    lower: Bound<Number>,
    upper: Bound<Number>,
) -> Box<dyn Query> {
    // A field of 32 bits is compared with the number as 32 bits have it, so that 0.1 finds 0.1.
    let value = |number| match number {
        Number::Whole(value) if single => f64::from(value as f32),
        Number::Whole(value) => value as f64,
        Number::Real(value) if single => f64::from(value as f32),
        Number::Real(value) => value,
    };
    let (lower, upper) = (lower.map(value), upper.map(value));
    let unbounded = |bound: &Bound<f64>, infinity: f64| match bound {
        Bound::Unbounded => true,
        Bound::Included(value) => *value == infinity,
        Bound::Excluded(_) => false,
    };
    if unbounded(&lower, f64::NEG_INFINITY) && unbounded(&upper, f64::INFINITY) {
        return any_value(mapped);
    }
    // Zero has two signs, which are one number and two terms.
    let below = |value: f64| if value == 0.0 { -0.0 } else { value };
    let above = |value: f64| if value == 0.0 { 0.0 } else { value };
    let term = |value| Term::from_field_f64(mapped.field, value);
    let lower = match lower {
        Bound::Included(value) => Bound::Included(term(below(value))),
        Bound::Excluded(value) => Bound::Excluded(term(above(value))),
        Bound::Unbounded => Bound::Unbounded,
    };
    let upper = match upper {
        Bound::Included(value) => Bound::Included(term(above(value))),
        Bound::Excluded(value) => Bound::Excluded(term(below(value))),
        Bound::Unbounded => Bound::Unbounded,
    };
    flat(RangeQuery::new(lower, upper))
}

/// The documents that have a value at all.
fn any_value(mapped: &Mapped) -> Box<dyn Query> {
    let column = mapped.column.clone().unwrap_or_default();
    flat(ExistsQuery::new(column, false))
}

fn one_of(name: &str, mapped: &Mapped, values: &[Literal]) -> Made {
    let field = mapped.field;
    let mut terms = Vec::with_capacity(values.len());
    for value in values {
        let term = match (mapped.kind, value) {
            (FieldKind::Keyword, Literal::Text(text)) => Term::from_field_text(field, &fold(text)),
            (FieldKind::Long, Literal::Number(Number::Whole(value))) => {
                Term::from_field_i64(field, *value)
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
            (FieldKind::Real { .. }, _) => {
                let message = format!("'{name}' is a real number: compare it with < and >");
                return Err(PlanError(message));
            }
        };
        terms.push(term);
    }
    Ok(flat(TermSetQuery::new(terms)))
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
