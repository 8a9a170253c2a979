//! Queries as TOML has them, and what is wrong with those that cannot be asked.

use super::{
    Bound, Clause, DEPTH_MAX, DISTANCE_MAX, Distance, FieldKind, QUERIES_MAX, Query, REPEAT_MAX,
    SIZE, SIZE_MAX, field_kind, words,
};
use crate::SearchError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// A list as TOML has it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListFile {
    #[serde(default)]
    query: Vec<Written>,
}

/// A query or a clause as it is written: all fields of all kinds, sorted out afterwards so that a wrong one is
/// named and not passed over.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Written {
    name: Option<String>,
    repeat: Option<u32>,
    size: Option<u32>,
    kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    field: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    operator: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    distance: Option<WrittenDistance>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    values: Vec<serde_json::Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_least: Bound,
    #[serde(skip_serializing_if = "Option::is_none")]
    above: Bound,
    #[serde(skip_serializing_if = "Option::is_none")]
    at_most: Bound,
    #[serde(skip_serializing_if = "Option::is_none")]
    below: Bound,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    must: Vec<Written>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    should: Vec<Written>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    must_not: Vec<Written>,
    #[serde(skip_serializing_if = "Option::is_none")]
    minimum: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    elasticsearch: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    vespa: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    postgresql: Option<String>,
}

/// A distance as it is written: a number, or `"cell"`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "distance is \"cell\", or a whole number of 0 to 8")]
enum WrittenDistance {
    Number(u8),
    Word(String),
}

/// Reads a list of queries; `shown` is the file's name for messages.
///
/// # Errors
/// Wrong TOML, an unknown kind or field, a field that the kind does not have, a name that comes twice.
pub fn parse(text: &str, shown: &str) -> Result<Vec<Query>, SearchError> {
    let file: ListFile = plimsoll_job::toml_text::read(text, shown).map_err(SearchError)?;
    queries(&file.query)
        .map_err(|SearchError(problem)| SearchError::new(format!("{shown}: {problem}")))
}

/// Makes queries of what is written.
///
/// # Errors
/// As [`parse`].
pub fn queries(written: &[Written]) -> Result<Vec<Query>, SearchError> {
    if written.is_empty() {
        return Err(SearchError::new(
            "no query in it; write at least one [[query]] with name and kind",
        ));
    }
    if written.len() > QUERIES_MAX {
        return Err(SearchError::new(format!(
            "at most {QUERIES_MAX} queries, not {}",
            written.len()
        )));
    }
    let mut made: Vec<Query> = Vec::with_capacity(written.len());
    for (index, one) in written.iter().enumerate() {
        let name = match one.name.as_deref().map(str::trim) {
            Some(name) if !name.is_empty() => name.to_owned(),
            _ => return Err(SearchError::new(format!("query {}: give it a name", index + 1))),
        };
        let wrong = |problem: String| SearchError::new(format!("query '{name}': {problem}"));
        if made.iter().any(|other| other.name == name) {
            return Err(wrong("there are two of this name; names must differ".to_owned()));
        }
        let query = Query {
            clause: one.clause(0).map_err(|SearchError(problem)| wrong(problem))?,
            repeat: one.repeat.unwrap_or(1),
            size: one.size.unwrap_or(SIZE),
            name: name.clone(),
        };
        if !(1..=REPEAT_MAX).contains(&query.repeat) {
            return Err(wrong(format!("repeat is 1 to {REPEAT_MAX}, not {}", query.repeat)));
        }
        if query.size > SIZE_MAX {
            return Err(wrong(format!("size is 0 to {SIZE_MAX}, not {}", query.size)));
        }
        made.push(query);
    }
    Ok(made)
}

impl Written {
    fn clause(&self, depth: usize) -> Result<Clause, SearchError> {
        if depth > DEPTH_MAX {
            return Err(SearchError::new(format!("bool nests deeper than {DEPTH_MAX}")));
        }
        if depth > 0 && (self.name.is_some() || self.repeat.is_some() || self.size.is_some()) {
            return Err(SearchError::new(
                "name, repeat and size belong to the query, not to its parts",
            ));
        }
        self.only_what_the_kind_has()?;
        Ok(match self.kind.as_str() {
            "fuzzy" => self.fuzzy()?,
            "match" => Clause::Match {
                field: self.field()?,
                text: self.some_words()?,
                all: match self.operator.as_deref() {
                    None | Some("or") => false,
                    Some("and") => true,
                    Some(other) => {
                        return Err(SearchError::new(format!(
                            "operator '{other}': write \"and\" or \"or\""
                        )));
                    }
                },
                distance: self.distance(Distance::Fixed(0))?,
            },
            "phrase" => Clause::Phrase {
                field: self.field()?,
                text: self.some_words()?,
                distance: self.distance(Distance::Fixed(0))?,
            },
            "term" => Clause::Term {
                field: self.field()?,
                values: match (&self.text, self.values.as_slice()) {
                    (Some(text), []) => vec![text.as_str().into()],
                    (None, [value]) => vec![value.clone()],
                    _ => {
                        return Err(SearchError::new("term has one value: text, or values = [..]"));
                    }
                },
            },
            "terms" if self.values.is_empty() => {
                return Err(SearchError::new("terms needs values = [\"..\", ..]"));
            }
            "terms" => Clause::Term { field: self.field()?, values: self.values.clone() },
            "prefix" => Clause::Prefix { field: self.field()?, text: self.one_word()? },
            "range" => self.range()?,
            "exists" => Clause::Exists { field: self.field()? },
            "ids" => Clause::Ids { ids: self.ids()? },
            "all" => Clause::All,
            "bool" => self.several(depth)?,
            "raw" => self.raw()?,
            "" => {
                return Err(SearchError::new("kind is missing; write kind = \"match\" or another"));
            }
            other => {
                return Err(SearchError::new(format!(
                    "unknown kind '{other}'; there are {}",
                    KINDS.map(|(kind, _)| kind).join(", ")
                )));
            }
        })
    }

    /// A field that the kind knows nothing of would be passed over, and the query would ask something else.
    fn only_what_the_kind_has(&self) -> Result<(), SearchError> {
        let Some((_, allowed)) = KINDS.iter().find(|(kind, _)| *kind == self.kind) else {
            return Ok(());
        };
        let given = [
            ("field", self.field.is_some()),
            ("text", self.text.is_some()),
            ("operator", self.operator.is_some()),
            ("distance", self.distance.is_some()),
            ("values", !self.values.is_empty()),
            ("at-least", self.at_least.is_some()),
            ("above", self.above.is_some()),
            ("at-most", self.at_most.is_some()),
            ("below", self.below.is_some()),
            ("must", !self.must.is_empty()),
            ("should", !self.should.is_empty()),
            ("must-not", !self.must_not.is_empty()),
            ("minimum", self.minimum.is_some()),
            ("elasticsearch", self.elasticsearch.is_some()),
            ("vespa", self.vespa.is_some()),
            ("postgresql", self.postgresql.is_some()),
        ];
        match given.iter().find(|(name, is)| *is && !allowed.contains(name)) {
            Some((name, _)) => {
                let has =
                    if allowed.is_empty() { "nothing".to_owned() } else { allowed.join(", ") };
                Err(SearchError::new(format!("{} has no '{name}'; it has {has}", self.kind)))
            }
            None => Ok(()),
        }
    }

    fn fuzzy(&self) -> Result<Clause, SearchError> {
        let field = self.field()?;
        let word = self.one_word()?;
        Ok(Clause::Fuzzy { field, word, distance: self.distance(Distance::OfCell)? })
    }

    fn range(&self) -> Result<Clause, SearchError> {
        let bounds = [&self.at_least, &self.above, &self.at_most, &self.below];
        if bounds.iter().all(|bound| bound.is_none()) {
            return Err(SearchError::new("range needs a bound: at-least, above, at-most or below"));
        }
        Ok(Clause::Range {
            field: self.field()?,
            at_least: self.at_least.clone(),
            above: self.above.clone(),
            at_most: self.at_most.clone(),
            below: self.below.clone(),
        })
    }

    fn several(&self, depth: usize) -> Result<Clause, SearchError> {
        let parts = |written: &[Written]| {
            written.iter().map(|one| one.clause(depth + 1)).collect::<Result<Vec<_>, _>>()
        };
        let (must, should) = (parts(&self.must)?, parts(&self.should)?);
        let must_not = parts(&self.must_not)?;
        if must.is_empty() && should.is_empty() && must_not.is_empty() {
            return Err(SearchError::new("bool needs must, should or must-not"));
        }
        let usual = u32::from(must.is_empty() && !should.is_empty());
        let minimum = self.minimum.unwrap_or(usual);
        if minimum < usual {
            return Err(SearchError::new(
                "minimum 0 without must means something different in each engine; leave it out",
            ));
        }
        if minimum as usize > should.len() {
            return Err(SearchError::new(format!(
                "minimum {minimum} is more than the {} of should",
                should.len()
            )));
        }
        Ok(Clause::Bool { must, should, must_not, minimum })
    }

    fn raw(&self) -> Result<Clause, SearchError> {
        let given = [
            ("elasticsearch", &self.elasticsearch),
            ("vespa", &self.vespa),
            ("postgresql", &self.postgresql),
        ];
        let texts: BTreeMap<String, String> = given
            .into_iter()
            .filter_map(|(dialect, text)| Some((dialect.to_owned(), text.clone()?)))
            .collect();
        if texts.is_empty() {
            return Err(SearchError::new("raw needs a text: elasticsearch, vespa or postgresql"));
        }
        if let Some(text) = texts.get("elasticsearch") {
            serde_json::from_str::<serde_json::Value>(&text.replace("{distance}", "1"))
                .map_err(|error| SearchError::new(format!("elasticsearch is not JSON: {error}")))?;
        }
        Ok(Clause::Raw(texts))
    }

    fn field(&self) -> Result<String, SearchError> {
        let field = self.field.as_deref().unwrap_or("body");
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if field.is_empty() || !field.chars().all(plain) {
            return Err(SearchError::new(format!(
                "field '{field}': write a name of letters, digits, '_' and '.'"
            )));
        }
        Ok(field.to_owned())
    }

    fn text(&self) -> Result<&str, SearchError> {
        self.text
            .as_deref()
            .filter(|text| !text.trim().is_empty())
            .ok_or_else(|| SearchError::new(format!("{} needs a text", self.kind)))
    }

    /// The text, if there is a word in it.
    fn some_words(&self) -> Result<String, SearchError> {
        let text = self.text()?;
        if words(text).is_empty() {
            return Err(SearchError::new(format!("there is no word in '{text}'")));
        }
        Ok(text.to_owned())
    }

    /// One word: in text fields in lower case, as indexes have it, since no engine changes a term's letters.
    fn one_word(&self) -> Result<String, SearchError> {
        let text = self.text()?.trim();
        if field_kind(&self.field()?) == FieldKind::Keyword {
            return Ok(text.to_owned());
        }
        match words(text).as_slice() {
            [word] => Ok(word.clone()),
            _ => Err(SearchError::new(format!("{} takes one word, not '{text}'", self.kind))),
        }
    }

    fn ids(&self) -> Result<Vec<String>, SearchError> {
        let ids: Option<Vec<String>> =
            self.values.iter().map(|id| id.as_str().map(str::to_owned)).collect();
        ids.filter(|ids| !ids.is_empty())
            .ok_or_else(|| SearchError::new("ids needs values = [\"..\", ..], texts"))
    }

    fn distance(&self, usual: Distance) -> Result<Distance, SearchError> {
        match &self.distance {
            None => Ok(usual),
            Some(WrittenDistance::Word(word)) if word == "cell" => Ok(Distance::OfCell),
            Some(WrittenDistance::Number(edits)) if *edits <= DISTANCE_MAX => {
                Ok(Distance::Fixed(*edits))
            }
            Some(_) => Err(SearchError::new(format!(
                "distance: write \"cell\", or a number of 0 to {DISTANCE_MAX}"
            ))),
        }
    }
}

/// The kinds, and what each of them has beside name, repeat and size.
const KINDS: [(&str, &[&str]); 12] = [
    ("fuzzy", &["field", "text", "distance"]),
    ("match", &["field", "text", "operator", "distance"]),
    ("phrase", &["field", "text", "distance"]),
    ("term", &["field", "text", "values"]),
    ("terms", &["field", "values"]),
    ("prefix", &["field", "text"]),
    ("range", &["field", "at-least", "above", "at-most", "below"]),
    ("exists", &["field"]),
    ("ids", &["values"]),
    ("all", &[]),
    ("bool", &["must", "should", "must-not", "minimum"]),
    ("raw", &["elasticsearch", "vespa", "postgresql"]),
];
