//! PostgreSQL: full text as `tsvector`, words within an edit distance by `fuzzystrmatch` over the text's own
//! vocabulary.
//!
//! A table of documents has a generated column `FIELD_words tsvector` for each text field, in the configuration
//! `simple` (lower case, no stemming), with a GIN index; a table `TABLE_vocabulary(field, word)` holds each field's
//! words once, from `ts_stat`. A fuzzy word is all words of the vocabulary within its distance, joined to one
//! `tsquery`: exact at any distance, and as expensive as a walk over the vocabulary.
//!
//! An index of `pg_trgm` over the vocabulary shortens that walk where it cannot lose a word. One edit changes at most
//! three of a word's trigrams, so that words of n trigrams within k edits share at least n - 3k of them; where that
//! makes a similarity of at least [`SIMILARITY`], only words that are so similar are looked at.

use super::Found;
use crate::query::{Clause, FIELDS, FieldKind, Query, field_kind, words};
use plimsoll_workloads::rows::{Rows, fill_sql, fill_text, quoted};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;

/// A statement with its parameters' values in place of `$1`, `$2` and so on.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Statement {
    /// The text, with `$n`.
    pub text: String,
    /// The values, as text.
    pub parameters: Vec<String>,
}

/// The setting that says how similar words of the vocabulary must be, and its value: sessions log in with it.
pub const SIMILARITY: (&str, &str) = ("pg_trgm.similarity_threshold", "0.15");
/// The value as a number.
const SIMILARITY_LEAST: f64 = 0.15;
/// Longest word that PostgreSQL counts the edits of, characters.
const LEVENSHTEIN_MAX: usize = 255;

impl Statement {
    /// The text with the values in their places: what is sent, since each query is parsed and planned again as those of
    /// users are.
    #[must_use]
    pub fn inlined(&self) -> String {
        if self.parameters.is_empty() {
            return self.text.clone();
        }
        let mut parts = self.text.split('$');
        let mut made = parts.next().unwrap_or_default().to_owned();
        for part in parts {
            let digits = part.bytes().take_while(u8::is_ascii_digit).count();
            let number: Option<usize> = part[..digits].parse().ok();
            match number.and_then(|n| self.parameters.get(n.checked_sub(1)?)) {
                Some(value) => made += &quoted(value),
                None => made += &format!("${}", &part[..digits]),
            }
            made += &part[digits..];
        }
        made
    }
}

/// The statement of a query with the values of a row, as if they had been written in the list.
pub(super) fn filled(
    index: &str,
    query: &Query,
    distance: u8,
    (rows, row): (&Rows, usize),
) -> Result<String, String> {
    let said = |error: plimsoll_workloads::rows::TemplateError| error.to_string();
    if matches!(query.clause, Clause::Raw(_)) {
        let text = select(index, query, distance)?.text;
        return fill_sql(&text, rows, row).map_err(said);
    }
    // Filled before it becomes SQL: how many words there are, and which index helps, depends on the value.
    let clause = query.clause.map_texts(&|text| fill_text(text, rows, row)).map_err(said)?;
    Ok(select(index, &Query { clause, ..query.clone() }, distance)?.inlined())
}

/// The statement that says in one row how many documents a query finds and which it returns.
pub(super) fn told(select: &str, query: &Query) -> String {
    let select = select.trim_end().trim_end_matches(';');
    if matches!(query.clause, Clause::Raw(_)) {
        // On a line of its own, whatever comment the text ends with.
        return format!("SELECT count(*), NULL FROM ({select}\n) AS asked");
    }
    format!(
        "SELECT coalesce(max(hits), 0), coalesce(json_agg(id), '[]')::text FROM ({select}) AS asked"
    )
}

/// Content of that row, as an array of its two columns.
pub(super) fn found(value: &Value) -> Found {
    let ids = value.get(1).and_then(Value::as_array).map_or_else(Vec::new, |ids| {
        ids.iter().filter_map(|id| Some(id.as_str()?.to_owned())).collect()
    });
    Found { hits: value.get(0).and_then(Value::as_u64), ids }
}

pub(super) fn count(index: &str) -> String {
    format!("SELECT count(*) FROM {}", name(index))
}

/// Comment of a table whose indexes and vocabulary are complete.
const WHOLE: &str = "plimsoll: whole";

/// Documents of a table that is whole; none of any other.
pub(super) fn count_whole(index: &str) -> String {
    let table = name(index);
    format!(
        "SELECT count(*) FROM {table} WHERE obj_description('{table}'::regclass, 'pg_class') = '{WHOLE}'"
    )
}

/// Bytes of the documents, their indexes and the vocabulary.
pub(super) fn size(index: &str) -> String {
    let table = name(index);
    format!(
        "SELECT pg_total_relation_size('{table}') + pg_total_relation_size('{table}_vocabulary')"
    )
}

pub(super) fn remove(index: &str) -> String {
    let table = name(index);
    format!("DROP TABLE IF EXISTS {table}, {table}_vocabulary")
}

/// The columns of a document, in the order in which they are written.
fn columns() -> String {
    let fields: Vec<&str> = FIELDS.iter().map(|(field, _)| *field).collect();
    format!("id, {}", fields.join(", "))
}

pub(super) fn copy(index: &str) -> String {
    format!("COPY {} ({}) FROM STDIN", name(index), columns())
}

/// Writes documents: ids and bodies, the other fields as given.
pub fn insert(index: &str, documents: &[(String, serde_json::Map<String, Value>)]) -> String {
    let row = |(id, fields): &(String, serde_json::Map<String, Value>)| {
        let mut values = vec![quoted(id)];
        values.extend(FIELDS.iter().map(|(field, _)| match fields.get(*field) {
            Some(Value::String(text)) => quoted(text),
            Some(value) => value.to_string(),
            None => "NULL".to_owned(),
        }));
        format!("({})", values.join(", "))
    };
    let rows: Vec<String> = documents.iter().map(row).collect();
    format!("INSERT INTO {} ({}) VALUES {}", name(index), columns(), rows.join(", "))
}

/// Returns true if words within this many edits of this one are all as similar as [`SIMILARITY`] says.
fn trigrams_suffice(word: &str, edits: u8) -> bool {
    if !word.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return false;
    }
    // Two blanks stand before a word and one behind it.
    let padded = format!("  {word} ");
    let own: BTreeSet<&[u8]> = padded.as_bytes().windows(3).collect();
    let shared = own.len() as f64 - 3.0 * f64::from(edits);
    let other = (word.len() + usize::from(edits) + 1) as f64;
    // A word that is as near as the bound says is not lost to rounding.
    shared > 0.0 && shared / (own.len() as f64 + other - shared) > SIMILARITY_LEAST * 1.01
}

impl fmt::Display for Statement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)?;
        for (index, value) in self.parameters.iter().enumerate() {
            write!(f, "{} ${} = '{value}'", if index == 0 { " --" } else { "," }, index + 1)?;
        }
        Ok(())
    }
}

/// The statement of a query over the table of an index.
pub(super) fn select(index: &str, query: &Query, distance: u8) -> Result<Statement, String> {
    if let Clause::Raw(texts) = &query.clause {
        let text = texts.get("postgresql").ok_or("the query has no text for postgresql")?;
        let text = text.replace("{distance}", &distance.to_string());
        return Ok(Statement {
            text: text.replace("{table}", &name(index)),
            parameters: Vec::new(),
        });
    }
    let mut made = Maker { table: name(index), distance, parameters: Vec::new() };
    let condition = made.condition(&query.clause)?;
    if query.size == 0 {
        // No row would tell how many there are.
        let table = &made.table;
        let text = format!("SELECT count(*) AS hits, NULL AS id FROM {table} WHERE {condition}");
        return Ok(Statement { text, parameters: made.parameters });
    }
    let text = format!(
        "SELECT count(*) OVER () AS hits, {} FROM {} WHERE {condition} LIMIT {}",
        columns(),
        made.table,
        query.size
    );
    Ok(Statement { text, parameters: made.parameters })
}

/// A table's name from an index's: letters, digits and underscores.
fn name(index: &str) -> String {
    index.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect()
}

struct Maker {
    table: String,
    distance: u8,
    parameters: Vec<String>,
}

impl Maker {
    fn value(&mut self, text: impl Into<String>) -> String {
        self.parameters.push(text.into());
        format!("${}", self.parameters.len())
    }

    fn condition(&mut self, clause: &Clause) -> Result<String, String> {
        Ok(match clause {
            Clause::Fuzzy { field, word, distance } => {
                self.word(field, word, distance.in_cell(self.distance))
            }
            Clause::Match { field, text, all, distance } => {
                let edits = distance.in_cell(self.distance);
                let values = match field_kind(field) {
                    FieldKind::Keyword => vec![text.clone()],
                    _ => words(text),
                };
                let parts: Vec<String> =
                    values.iter().map(|word| self.word(field, word, edits)).collect();
                match parts.is_empty() {
                    // A row's value may have no word in it.
                    true => "false".to_owned(),
                    false => joined(&parts, if *all { " AND " } else { " OR " }),
                }
            }
            Clause::Phrase { field, text, distance } => {
                if distance.in_cell(self.distance) > 0 {
                    return Err("phraseto_tsquery takes exact words only".to_owned());
                }
                let text = self.value(words(text).join(" "));
                format!("{field}_words @@ phraseto_tsquery('simple', {text})")
            }
            Clause::Term { field, values } => {
                let parts: Vec<String> =
                    values.iter().map(|value| self.equal(field, value)).collect();
                joined(&parts, " OR ")
            }
            Clause::Prefix { field, text } if field_kind(field) == FieldKind::Text => {
                // A prefix of a tsquery is a quoted word with ':*' behind it; inside, marks and backslashes are doubled.
                let inside = text.replace('\\', "\\\\").replace('\'', "''");
                let text = self.value(format!("'{inside}':*"));
                format!("{field}_words @@ {text}::tsquery")
            }
            Clause::Prefix { field, text } => {
                let text = self.value(text);
                format!("starts_with({field}, {text})")
            }
            Clause::Range { field, at_least, above, at_most, below } => {
                let bounds = [(">=", at_least), (">", above), ("<=", at_most), ("<", below)];
                let mut parts = Vec::new();
                for (sign, bound) in bounds {
                    if let Some(number) = bound {
                        let number = self.value(number.to_string());
                        parts.push(format!("{field} {sign} {number}::numeric"));
                    }
                }
                joined(&parts, " AND ")
            }
            Clause::Exists { field } => match field_kind(field) {
                FieldKind::Number => format!("{field} IS NOT NULL"),
                _ => format!("{field} <> ''"),
            },
            Clause::Ids { ids } => {
                let parts: Vec<String> = ids.iter().map(|id| self.value(id)).collect();
                format!("id IN ({})", parts.join(", "))
            }
            Clause::All => "true".to_owned(),
            Clause::Bool { must, should, must_not, minimum } => {
                self.several(must, should, must_not, *minimum)?
            }
            Clause::Raw(_) => return Err("a raw text cannot be part of another query".to_owned()),
        })
    }

    fn several(
        &mut self,
        must: &[Clause],
        should: &[Clause],
        must_not: &[Clause],
        minimum: u32,
    ) -> Result<String, String> {
        let mut parts = Vec::new();
        for clause in must {
            parts.push(self.condition(clause)?);
        }
        if minimum > 0 {
            let mut some = Vec::new();
            for clause in should {
                some.push(self.condition(clause)?);
            }
            parts.push(match minimum {
                1 => joined(&some, " OR "),
                _ => {
                    let sum: Vec<String> =
                        some.iter().map(|part| format!("({part})::int")).collect();
                    format!("({}) >= {minimum}", sum.join(" + "))
                }
            });
        }
        for clause in must_not {
            parts.push(format!("NOT ({})", self.condition(clause)?));
        }
        Ok(joined(&parts, " AND "))
    }

    fn word(&mut self, field: &str, word: &str, edits: u8) -> String {
        let text = field_kind(field) == FieldKind::Text;
        let value = self.value(word);
        match (text, edits) {
            (true, 0) => format!("{field}_words @@ plainto_tsquery('simple', {value})"),
            (false, 0) => format!("{field} = {value}"),
            (false, _) => within(field, word, &value, edits),
            (true, _) => {
                let near = if trigrams_suffice(word, edits) {
                    format!("word % {value} AND ")
                } else {
                    String::new()
                };
                format!(
                    "{field}_words @@ coalesce((SELECT string_agg(quote_literal(word), ' | ')::tsquery FROM \
                     {}_vocabulary WHERE field = '{field}' AND {near}{}), ''::tsquery)",
                    self.table,
                    within("word", word, &value, edits)
                )
            }
        }
    }

    fn equal(&mut self, field: &str, value: &Value) -> String {
        match (value, field_kind(field)) {
            (Value::String(word), FieldKind::Text) => {
                let word = self.value(word);
                format!("{field}_words @@ plainto_tsquery('simple', {word})")
            }
            (Value::String(text), _) => {
                let text = self.value(text);
                format!("{field} = {text}")
            }
            (other, _) => {
                let number = self.value(other.to_string());
                format!("{field} = {number}::numeric")
            }
        }
    }
}

/// Returns the condition that a column is within this many edits of a word, whose parameter number is `value`. No word
/// that is is longer or shorter by more than these edits; of others the function is not asked, for which more than 255
/// characters are an error that would end the query. Only CASE promises not to ask it first.
fn within(column: &str, word: &str, value: &str, edits: u8) -> String {
    let (length, edits_long) = (word.chars().count(), usize::from(edits));
    let least = length.saturating_sub(edits_long);
    let most = (length + edits_long).min(LEVENSHTEIN_MAX);
    format!(
        "CASE WHEN length({column}) BETWEEN {least} AND {most} THEN \
         levenshtein_less_equal({column}, {value}, {edits}) <= {edits} ELSE false END"
    )
}

fn joined(parts: &[String], joint: &str) -> String {
    match parts {
        [] => "true".to_owned(),
        [one] => one.clone(),
        several => format!("({})", several.join(joint)),
    }
}

impl Statement {
    /// Returns the statements that create the tables of an index and its vocabulary: before the load, and after it.
    #[must_use]
    pub fn tables(index: &str) -> (Vec<String>, Vec<String>) {
        let table = name(index);
        let mut columns = vec!["id text PRIMARY KEY".to_owned()];
        let mut after = Vec::new();
        let mut vocabulary = Vec::new();
        for (field, kind) in FIELDS {
            columns.push(match kind {
                FieldKind::Number => format!("{field} bigint"),
                FieldKind::Text | FieldKind::Keyword => format!("{field} text NOT NULL"),
            });
            if kind == FieldKind::Text {
                columns.push(format!(
                    "{field}_words tsvector GENERATED ALWAYS AS (to_tsvector('simple', {field})) STORED"
                ));
                after.push(format!("CREATE INDEX ON {table} USING gin ({field}_words)"));
                vocabulary.push(format!(
                    "SELECT '{field}' AS field, word FROM ts_stat('SELECT {field}_words FROM {table}')"
                ));
            } else {
                after.push(format!("CREATE INDEX ON {table} ({field})"));
            }
        }
        let before = vec![
            "CREATE EXTENSION IF NOT EXISTS fuzzystrmatch".to_owned(),
            "CREATE EXTENSION IF NOT EXISTS pg_trgm".to_owned(),
            format!("CREATE TABLE {table} ({})", columns.join(", ")),
        ];
        after
            .push(format!("CREATE TABLE {table}_vocabulary AS {}", vocabulary.join(" UNION ALL ")));
        after.push(format!("CREATE INDEX ON {table}_vocabulary USING gin (word gin_trgm_ops)"));
        // Without it the planner guesses, and pages that were never looked at are marked while users wait.
        after.push(format!("VACUUM ANALYZE {table}"));
        after.push(format!("VACUUM ANALYZE {table}_vocabulary"));
        // Last: who finds it later, finds all of the others.
        after.push(format!("COMMENT ON TABLE {table} IS '{WHOLE}'"));
        (before, after)
    }
}
