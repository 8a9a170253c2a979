//! Turns a query tree into a tantivy query, and checks on the way that it fits the schema.

mod several;

use super::automaton::TermAutomaton;
use super::complement::ComplementQuery;
use super::fuzzy;
pub use super::made::PlanError;
use super::made::{Made, any_value, flat};
use super::mapping::{FieldKind, Fields, Mapped};
use super::numbers::NumbersQuery;
use super::query::{AtLeast, Literal, MAX_EDITS, Node, Number, OrderBy, Search};
use super::range::range;
use super::similar::{SimilarQuery, Words};
use super::words::{PhraseQuery, WordQuery, all, any, best};
use several::window;
use std::sync::Arc;
use tantivy::Term;
use tantivy::query::{
    AllQuery, BooleanQuery, BoostQuery, ConstScoreQuery, EmptyQuery, Occur,
    PhraseQuery as SloppyPhraseQuery, Query,
};
use tantivy::schema::IndexRecordOption;

/// Number of fields that a search may be ordered by.
pub const MAX_ORDER_FIELDS: usize = 4;
/// The longest text of a fuzzy term, in characters: its automaton grows with it.
pub(crate) const MAX_FUZZY_CHARS: usize = 100;

/// The work that the executor can leave out because of the shape of the query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// One scored term: the number of matches is known without a walk, and blocks of documents that
    /// cannot enter the best hits are skipped.
    ScoredTerm,
    /// Any of several scored terms: as above, except that the matches must be counted.
    ScoredTerms,
    /// Every document.
    Everything,
    /// One term whose matches all have the same relevance: their number is known as well.
    FlatTerm,
    /// Every match has the same relevance, so that the first matches are as good as any.
    Flat,
    /// Anything else.
    General,
}

/// The source of a sort criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SortBy {
    /// A column with values of this kind.
    Column {
        /// Its name.
        name: String,
        /// The kind of its values.
        kind: FieldKind,
    },
    /// A column that no document has.
    Nothing,
    /// The relevance.
    Score,
    /// The position in the index.
    Position,
}

/// One sort criterion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SortColumn {
    /// The values compared.
    pub by: SortBy,
    /// True if the largest comes first.
    pub descending: bool,
    /// Position of documents without a value.
    pub missing_first: bool,
}

/// A search that can be run.
pub struct Plan {
    pub(crate) query: Box<dyn Query>,
    pub(crate) shape: Shape,
    /// The terms of [`Shape::ScoredTerms`]; otherwise empty.
    pub(crate) terms: Vec<Box<dyn Query>>,
    pub(crate) order: Vec<SortColumn>,
}

type Clauses = Vec<(Occur, Box<dyn Query>)>;

/// Plans a search.
///
/// # Errors
/// When a field does not exist or cannot be matched in the way asked for.
pub fn plan(search: &Search, schema: &dyn Fields) -> Result<Plan, PlanError> {
    let planner = Planner { schema, types: &search.types };
    let query = planner.node(&search.filter)?;
    let order = search.order.iter().map(|by| planner.sort_column(by));
    let order = order.collect::<Result<Vec<_>, _>>()?;
    if order.len() > MAX_ORDER_FIELDS {
        let message = format!("'order by' with {} fields, at most {MAX_ORDER_FIELDS}", order.len());
        return Err(PlanError(message));
    }
    let shape = planner.shape(&search.filter);
    let several = search.types.first().and_then(|number| schema.type_term(*number)).is_some();
    if !several {
        let terms = planner.terms(&search.filter, shape)?;
        return Ok(Plan { query, shape, terms, order });
    }
    // Terms are of their types, but what matches without a term is of every type.
    let types = search.types.iter().filter_map(|number| planner.of_type(*number)).collect();
    let types: Box<dyn Query> = Box::new(BooleanQuery::union(types));
    let query = Box::new(BooleanQuery::intersection(vec![query, types]));
    let shape = if shape == Shape::Flat { Shape::Flat } else { Shape::General };
    Ok(Plan { query, shape, terms: Vec::new(), order })
}

/// Plans a filter alone; the order is the caller's.
///
/// # Errors
/// As [`plan`].
pub fn plan_filter(
    filter: &Node,
    order: Vec<SortColumn>,
    schema: &dyn Fields,
) -> Result<Plan, PlanError> {
    let planner = Planner { schema, types: &[] };
    let shape = planner.shape(filter);
    let terms = planner.terms(filter, shape)?;
    Ok(Plan { query: planner.node(filter)?, shape, terms, order })
}

struct Planner<'a> {
    schema: &'a dyn Fields,
    /// Empty for all.
    types: &'a [u16],
}

impl<'a> Planner<'a> {
    fn shape(&self, node: &Node) -> Shape {
        let mapped = |field: &str| match self.schema.named(field, self.types).0.as_slice() {
            [one] => Some((one.kind, one.analysis)),
            _ => None,
        };
        let only = |field: &str| mapped(field).map(|(kind, _)| kind);
        match node {
            Node::Term { field, text } => match mapped(field) {
                Some((FieldKind::Text, analysis)) if analysis.words(text).len() == 1 => {
                    Shape::ScoredTerm
                }
                None if self.are_scored_terms(std::slice::from_ref(node)) => Shape::ScoredTerms,
                Some((FieldKind::Text, _)) | None => Shape::General,
                Some(_) => Shape::FlatTerm,
            },
            Node::Exact { field, .. } => match only(field) {
                Some(FieldKind::Text | FieldKind::Keyword) => Shape::ScoredTerm,
                _ => Shape::General,
            },
            Node::Constant(child, _) => match self.shape(child) {
                Shape::Everything => Shape::Everything,
                Shape::ScoredTerm | Shape::FlatTerm => Shape::FlatTerm,
                _ => Shape::Flat,
            },
            // Over several fields a document may match in one of them or in more.
            Node::Prefix { field, .. } | Node::Fuzzy { field, .. } if only(field).is_none() => {
                Shape::General
            }
            Node::All => Shape::Everything,
            Node::Null
            | Node::Nothing
            | Node::Type(_)
            | Node::Not(_)
            | Node::Prefix { .. }
            | Node::Fuzzy { .. }
            | Node::Range { .. }
            | Node::OneOf { .. } => Shape::Flat,
            Node::Exists(field) | Node::Beginning { field, .. } if only(field).is_some() => {
                Shape::Flat
            }
            Node::Or(children) if self.are_scored_terms(children) => Shape::ScoredTerms,
            Node::Phrase { .. }
            | Node::And(_)
            | Node::Or(_)
            | Node::Rank(_)
            | Node::Within(_)
            | Node::AtLeast(_)
            | Node::Boost(..)
            | Node::Near { .. }
            | Node::Similar(_)
            | Node::Exists(_)
            | Node::Beginning { .. }
            | Node::Best { .. } => Shape::General,
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
        let by = SortBy::Column { name: column.clone(), kind: field.kind };
        // What is missing is smaller than any value.
        let descending = order.descending;
        Ok(SortColumn { by, descending, missing_first: !descending })
    }

    /// The fields that a name stands for: one at least, where an unknown name is an error.
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
        self.schema.unknown(name).map_or(Ok(fields), |message| Err(PlanError(message)))
    }

    /// Every document of a type.
    fn of_type(&self, number: u16) -> Option<Box<dyn Query>> {
        let term = self.schema.type_term(number)?;
        Some(flat(WordQuery::new(term, IndexRecordOption::Basic)))
    }

    fn node(&self, node: &Node) -> Made {
        match node {
            Node::All => Ok(flat(AllQuery)),
            Node::Nothing => Ok(Box::new(EmptyQuery)),
            Node::Type(name) => match self.schema.type_number(name) {
                None => nothing(),
                Some(number) => Ok(self.of_type(number).unwrap_or_else(|| flat(AllQuery))),
            },
            Node::And(children) => self.and(children),
            Node::Or(children) => {
                let mut queries = Vec::with_capacity(children.len());
                self.any_of(children, &mut queries)?;
                if queries.is_empty() {
                    return nothing();
                }
                Ok(any(queries))
            }
            Node::Rank(children) => self.rank(children),
            Node::Null => nothing(),
            Node::Not(child) => Ok(Box::new(ComplementQuery { inner: self.node(child)? })),
            Node::Term { field, text } => {
                self.each_field(field, |mapped| term(field, mapped, text))
            }
            Node::Phrase { field, words: parts } => self.each_field(field, |mapped| {
                phrase(field, mapped, cut(mapped, parts), &parts.join(" "), 0)
            }),
            Node::Prefix { field, text } => self.each_field(field, |mapped| {
                let term = single(field, mapped, text, "a prefix")?;
                // Without a word there is nothing to begin with.
                term.map_or_else(nothing, |term| beginning(mapped, &term))
            }),
            Node::Fuzzy { field, text, max_edits, prefix_length } => self
                .each_field(field, |mapped| fuzzy(field, mapped, text, *max_edits, *prefix_length)),
            Node::Range { field, lower, upper } => {
                self.each_field(field, |mapped| range(field, mapped, *lower, *upper))
            }
            Node::OneOf { field, values } => {
                self.each_field(field, |mapped| one_of(field, mapped, values))
            }
            Node::AtLeast(some) => self.at_least(some),
            Node::Boost(child, boost) => Ok(Box::new(BoostQuery::new(self.node(child)?, *boost))),
            Node::Constant(child, score) => {
                Ok(Box::new(ConstScoreQuery::new(self.node(child)?, *score)))
            }
            Node::Beginning { field, text } => {
                self.each_field(field, |mapped| beginning(mapped, text))
            }
            Node::Exact { field, term } => self.each_field(field, |mapped| exact(mapped, term)),
            Node::Near { field, words: parts, slop } => self.each_field(field, |mapped| {
                phrase(field, mapped, cut(mapped, parts), &parts.join(" "), *slop)
            }),
            Node::Within(within) => self.each_field(&within.field, |mapped| window(within, mapped)),
            Node::Similar(similar) => self.each_field(&similar.field, |mapped| {
                fuzzy::query(similar, mapped, self.schema.scan()).map_err(PlanError)
            }),
            Node::Exists(field) => self.each_field(field, |mapped| Ok(any_value(mapped))),
            Node::Best { children, tie_breaker } => Ok(best(self.queries(children)?, *tie_breaker)),
        }
    }

    fn queries(&self, nodes: &[Node]) -> Result<Vec<Box<dyn Query>>, PlanError> {
        nodes.iter().map(|node| self.node(node)).collect()
    }

    fn clauses(&self, occur: Occur, nodes: &[Node]) -> Result<Clauses, PlanError> {
        nodes.iter().map(|node| Ok((occur, self.node(node)?))).collect()
    }

    fn at_least(&self, some: &AtLeast) -> Made {
        if some.must.is_empty() && some.at_least == 1 {
            return Ok(any(self.queries(&some.should)?));
        }
        let mut clauses = self.clauses(Occur::Must, &some.must)?;
        clauses.extend(self.clauses(Occur::Should, &some.should)?);
        Ok(Box::new(BooleanQuery::with_minimum_required_clauses(clauses, some.at_least)))
    }

    fn and(&self, children: &[Node]) -> Made {
        Ok(all(self.queries(children)?))
    }

    /// One query for each field that the name stands for.
    fn each_field(&self, name: &str, make: impl Fn(&Mapped) -> Made) -> Made {
        let fields = self.fields(name)?;
        if let [field] = fields.as_slice() {
            return make(field);
        }
        if fields.is_empty() {
            return nothing();
        }
        let queries = fields.into_iter().map(make).collect::<Result<Vec<_>, PlanError>>()?;
        Ok(any(queries))
    }
}

/// The words that the index holds of these words.
fn cut(mapped: &Mapped, words: &[String]) -> Vec<String> {
    words.iter().flat_map(|word| mapped.analysis.words(word)).collect()
}

/// One term as it is in the index.
fn exact(mapped: &Mapped, term: &str) -> Made {
    match mapped.kind {
        FieldKind::Text | FieldKind::Keyword => {
            let term = Term::from_field_text(mapped.field, term);
            Ok(Box::new(WordQuery::new(term, IndexRecordOption::WithFreqs)))
        }
        FieldKind::Long | FieldKind::Real { .. } => nothing(),
    }
}

fn term(name: &str, mapped: &Mapped, text: &str) -> Made {
    match mapped.kind {
        FieldKind::Text => phrase(name, mapped, mapped.analysis.words(text), text, 0),
        FieldKind::Keyword => Ok(flat(keyword(mapped, text))),
        FieldKind::Long | FieldKind::Real { .. } => {
            let message =
                format!("'{name}' is a number: compare it with =, <, >, <=, >= or range()");
            Err(PlanError(message))
        }
    }
}

/// Words that follow one another; a keyword is compared as a whole.
fn phrase(name: &str, mapped: &Mapped, words: Vec<String>, text: &str, slop: u32) -> Made {
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
            Ok(Box::new(WordQuery::new(term, IndexRecordOption::WithFreqs)))
        }
        _ if slop == 0 => Ok(Box::new(PhraseQuery::new(terms))),
        _ => {
            let mut query = SloppyPhraseQuery::new(terms);
            query.set_slop(slop);
            Ok(Box::new(query))
        }
    }
}

fn keyword(mapped: &Mapped, text: &str) -> WordQuery {
    let term = Term::from_field_text(mapped.field, &mapped.analysis.whole(text));
    WordQuery::new(term, IndexRecordOption::Basic)
}

/// The one term of a text that must not have more.
fn single(
    name: &str,
    mapped: &Mapped,
    text: &str,
    what: &str,
) -> Result<Option<String>, PlanError> {
    match mapped.kind {
        FieldKind::Keyword => Ok(Some(mapped.analysis.whole(text)).filter(|term| !term.is_empty())),
        FieldKind::Long | FieldKind::Real { .. } => {
            Err(PlanError(format!("'{name}' is a number and cannot be matched by {what}")))
        }
        FieldKind::Text => {
            let mut found = mapped.analysis.words(text);
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
    let (term, automaton) = (term.into(), Arc::new(found));
    similar(mapped, Words::Near { term, edits: max_edits, automaton })
}

fn beginning(mapped: &Mapped, text: &str) -> Made {
    similar(mapped, Words::Beginning(text.into()))
}

fn similar(mapped: &Mapped, words: Words) -> Made {
    let query = SimilarQuery { field: mapped.field, words };
    // Only whole words are scored: an approximate match says nothing of frequency.
    Ok(Box::new(ConstScoreQuery::new(Box::new(query), 1.0)))
}

fn one_of(name: &str, mapped: &Mapped, values: &[Literal]) -> Made {
    let field = mapped.field;
    if !mapped.terms && matches!(mapped.kind, FieldKind::Long | FieldKind::Real { .. }) {
        return Ok(flat(NumbersQuery::new(mapped, values)));
    }
    let mut terms = Vec::with_capacity(values.len());
    for value in values {
        let term = match (mapped.kind, value) {
            (FieldKind::Keyword, Literal::Text(text)) => {
                Term::from_field_text(field, &mapped.analysis.whole(text))
            }
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
    Ok(flat(SimilarQuery { field, words: Words::These(terms.into()) }))
}

fn nothing() -> Made {
    Ok(Box::new(EmptyQuery))
}
