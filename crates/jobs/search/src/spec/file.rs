//! A matrix as files and flags write it, before what is missing has a value.

use super::{EngineSpec, MatrixSpec, OnRefused, Place, usual_users};
use crate::SearchError;
use crate::dialect::Dialect;
use crate::sessions::Order;
use plimsoll_core::assertion::Assertion;
use plimsoll_core::scenario::{RowOrder, RowsPer, RowsScenario, headers_from, path_from};
use plimsoll_core::schedule::Pause;
use plimsoll_core::units::{Size, Span};
use plimsoll_job::toml_text;
use plimsoll_record::search::Group;
use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;
use std::path::Path;

/// A matrix as it is written, in the words of the flags; what is missing has a usual value.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[allow(missing_docs)]
pub struct MatrixFile {
    pub engines: Vec<String>,
    pub engine: Vec<EngineFile>,
    pub corpus: Option<String>,
    pub sizes: Vec<String>,
    pub shards: Vec<u32>,
    #[serde(alias = "distance")]
    pub distances: Vec<u8>,
    pub groups: Vec<String>,
    pub users: Vec<u32>,
    pub order: Option<Order>,
    pub duration: Option<Span>,
    pub warmup: Option<Span>,
    pub passes: Option<u32>,
    pub repeat: Option<u32>,
    pub timeout: Option<Span>,
    pub think: Option<Pause>,
    pub pace: Option<Span>,
    #[serde(alias = "users-profile", alias = "profile")]
    pub users_profile: Option<String>,
    pub rows: Option<RowsFile>,
    #[serde(alias = "rows-order")]
    pub rows_order: Option<RowOrder>,
    #[serde(alias = "rows-per")]
    pub rows_per: Option<RowsPer>,
    #[serde(alias = "check")]
    pub checks: Vec<String>,
    #[serde(alias = "assert")]
    pub assertions: Vec<Assertion>,
    pub refused: Option<OnRefused>,
    #[serde(alias = "skip-refused")]
    pub skip_refused: bool,
    #[serde(alias = "query-hits", alias = "hits")]
    pub query_hits: Option<u32>,
    #[serde(alias = "header")]
    pub headers: Vec<String>,
    pub seed: Option<u64>,
    /// A file of queries.
    pub queries: Option<String>,
    /// Queries in the file itself.
    pub query: Vec<toml::Table>,
}

/// Old names of fields, and the new ones.
const RENAMED: [(&str, &str); 2] = [("profile", "users_profile"), ("hits", "query_hits")];

/// Rows as they are written: the name of the file, or a table that says the order too.
#[derive(Clone, Debug, PartialEq)]
pub struct RowsFile(RowsScenario);

impl<'de> Deserialize<'de> for RowsFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Either;
        impl<'de> Visitor<'de> for Either {
            type Value = RowsScenario;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("the name of a file, or a table with file, order and per")
            }

            fn visit_str<E>(self, file: &str) -> Result<RowsScenario, E> {
                let (order, per) = (RowOrder::default(), RowsPer::default());
                Ok(RowsScenario { file: file.into(), order, per })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RowsScenario, A::Error> {
                RowsScenario::deserialize(MapAccessDeserializer::new(map))
            }
        }
        deserializer.deserialize_any(Either).map(Self)
    }
}

/// An engine as it is written.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
#[allow(missing_docs)]
pub struct EngineFile {
    pub name: String,
    pub url: Option<String>,
    pub kind: Option<String>,
    pub serve: Vec<String>,
    pub dialect: Option<String>,
}

/// The engines that `plimsoll serve` starts, by the word for them.
const KINDS: [(&str, &[&str], Dialect); 7] = [
    ("index", &["search", "--fuzzy", "index"], Dialect::Elasticsearch),
    ("automaton", &["search", "--fuzzy", "automaton"], Dialect::Elasticsearch),
    ("scan", &["search", "--fuzzy", "scan"], Dialect::Elasticsearch),
    ("vespa-api", &["search"], Dialect::Vespa),
    ("opensearch", &["opensearch"], Dialect::Elasticsearch),
    ("elasticsearch", &["elasticsearch"], Dialect::Elasticsearch),
    ("postgresql", &["postgresql"], Dialect::Postgresql),
];

/// Reads the text of a matrix file: the matrix, and a hint for each field that has an old name. Paths in it begin at the file's
/// folder.
///
/// # Errors
/// Wrong TOML or an unknown field, with its line.
pub fn read(text: &str, path: &Path) -> Result<(MatrixFile, Vec<String>), SearchError> {
    let shown = path.display().to_string();
    let hints = toml_text::renamed(text, &shown, &RENAMED);
    let file: MatrixFile = toml_text::read(&expanded(text, path)?, &shown).map_err(SearchError)?;
    Ok((file.with_paths_from(path.parent().unwrap_or(Path::new(""))), hints))
}

/// The text of a matrix file with the values of the environment in it. Headers get theirs when they are sent.
///
/// # Errors
/// A variable that is not set, with its line.
pub fn expanded(text: &str, path: &Path) -> Result<String, SearchError> {
    toml_text::expanded(text, &path.display().to_string()).map_err(SearchError)
}

/// Reads the text of a matrix file that came from another machine, [`expanded`] there: without whatever it reads from other files or
/// from the environment.
///
/// # Errors
/// Wrong TOML or an unknown field, with its line.
pub fn read_foreign(text: &str, path: &Path) -> Result<MatrixFile, SearchError> {
    let file: MatrixFile =
        toml_text::read(text, &path.display().to_string()).map_err(SearchError)?;
    let (rows, rows_order, rows_per) = (None, None, None);
    Ok(MatrixFile { queries: None, headers: Vec::new(), rows, rows_order, rows_per, ..file })
}

/// Fields that a message is about, by the word that it begins with.
const ABOUT: [(&str, &[&str]); 7] = [
    ("distance", &["distance", "distances", "groups"]),
    ("shards", &["shards", "groups"]),
    ("profile", &["users_profile", "users-profile", "profile"]),
    ("assertion", &["assertions", "assert"]),
    ("check", &["checks", "check"]),
    ("hits", &["query_hits", "query-hits", "hits"]),
    ("headers", &["headers", "header"]),
];

/// A message about a matrix with file and line, and the field where there is one.
#[must_use]
pub fn wrong_in(text: &str, path: &Path, error: &SearchError) -> String {
    let (shown, message) = (path.display(), error.to_string());
    let is_word = |c: char| c.is_ascii_lowercase() || c == '_';
    let message = message.trim_start_matches("[[");
    let word = &message[..message.find(|c| !is_word(c)).unwrap_or(message.len())];
    let about = ABOUT.iter().find(|(first, _)| *first == word);
    let names = about.map_or(vec![word], |(_, names)| names.to_vec());
    let line = |name| Some((name, toml_text::line_of_field(text, &[name])?));
    match (names.into_iter().find_map(line), message[word.len()..].strip_prefix(": ")) {
        (Some((name, line)), Some(why)) => format!("{shown}:{line}: field `{name}`: {why}"),
        (Some((_, line)), None) => format!("{shown}:{line}: {error}"),
        (None, _) => format!("{shown}: {error}"),
    }
}

/// Reads an engine as flags have it: `index`, `NAME=KIND`, `NAME=URL` or `NAME=URL,DIALECT`.
///
/// # Errors
/// When it is none of these.
pub fn parse_engine(text: &str) -> Result<EngineSpec, SearchError> {
    let (name, rest) = text.split_once('=').unwrap_or((text, text));
    let file = if rest.contains("://") {
        let (url, dialect) = match rest.rsplit_once(',') {
            Some((url, dialect)) => (url, Some(dialect.to_owned())),
            None => (rest, None),
        };
        EngineFile {
            name: name.to_owned(),
            url: Some(url.to_owned()),
            dialect,
            ..EngineFile::default()
        }
    } else {
        EngineFile { name: name.to_owned(), kind: Some(rest.to_owned()), ..EngineFile::default() }
    };
    file.engine()
        .map_err(|SearchError(problem)| SearchError::new(format!("engine '{text}': {problem}")))
}

impl EngineFile {
    fn engine(&self) -> Result<EngineSpec, SearchError> {
        let name = if self.name.is_empty() {
            self.kind.clone().unwrap_or_default()
        } else {
            self.name.clone()
        };
        let plain = |c: char| c.is_alphanumeric() || "-_. ".contains(c);
        if name.is_empty() || name.contains("://") || !name.chars().all(plain) || name.len() > 40 {
            return Err(SearchError::new(
                "give it a name of at most 40 letters, digits, '-', '_', '.': NAME=http://HOST:PORT,DIALECT",
            ));
        }
        let own = self.dialect.as_deref().map(Dialect::parse).transpose()?;
        let (place, dialect) = match (&self.url, &self.kind, self.serve.as_slice()) {
            (Some(url), None, []) => {
                let is_sql = url.starts_with("postgres://") || url.starts_with("postgresql://");
                let usual = if is_sql { Dialect::Postgresql } else { Dialect::Elasticsearch };
                let dialect = own.unwrap_or(usual);
                (Place::Address(url.trim_end_matches('/').to_owned()), dialect)
            }
            (None, Some(kind), []) => {
                let known = KINDS.iter().find(|(known, _, _)| known == kind).ok_or_else(|| {
                    SearchError::new(format!(
                        "unknown engine; write {}, or NAME=http://HOST:PORT,DIALECT",
                        KINDS.map(|(kind, _, _)| kind).join(", ")
                    ))
                })?;
                let arguments = known.1.iter().map(|argument| (*argument).to_owned()).collect();
                (Place::Serve(arguments), own.unwrap_or(known.2))
            }
            (None, None, [_, ..]) => {
                let dialect =
                    own.ok_or_else(|| SearchError::new("serve needs a dialect beside it"))?;
                (Place::Serve(self.serve.clone()), dialect)
            }
            _ => return Err(SearchError::new("name one of url, kind and serve")),
        };
        Ok(EngineSpec { name, dialect, place })
    }
}

fn parse_group(text: &str) -> Result<Group, SearchError> {
    let parts = text.split_once(['x', 'X']);
    let group = parts.and_then(|(distance, shards)| {
        Some(Group { distance: distance.trim().parse().ok()?, shards: shards.trim().parse().ok()? })
    });
    group.ok_or_else(|| {
        SearchError::new(format!(
            "groups: '{text}' is not a distance and a number of shards; write DISTANCExSHARDS, such as 2x5"
        ))
    })
}

fn parse_size(text: &str) -> Result<u64, SearchError> {
    if text.trim() == "all" {
        return Ok(0);
    }
    let size: Size = text
        .trim()
        .parse()
        .map_err(|error| SearchError::new(format!("sizes: {error}, or 'all'")))?;
    if size.bytes == 0 {
        return Err(SearchError::new("sizes: 0 is not a size; write 64MB, or 'all'"));
    }
    Ok(size.bytes)
}

impl MatrixFile {
    /// The matrix of a file in this folder: its relative paths begin there.
    fn with_paths_from(mut self, folder: &Path) -> Self {
        let from = |path: &str| path_from(folder, Path::new(path)).display().to_string();
        self.queries = self.queries.map(|path| from(&path));
        self.corpus = self.corpus.map(|corpus| match corpus.strip_prefix("ndjson:") {
            Some(path) => format!("ndjson:{}", from(path)),
            None => corpus,
        });
        if let Some(RowsFile(rows)) = &mut self.rows {
            rows.file = path_from(folder, &rows.file);
        }
        headers_from(folder, &mut self.headers);
        self
    }

    /// The rows, with the order that is written beside them.
    fn rows(&self) -> Result<Option<RowsScenario>, SearchError> {
        let Some(RowsFile(mut rows)) = self.rows.clone() else {
            if self.rows_order.is_some() || self.rows_per.is_some() {
                return Err(SearchError::new("rows_order and rows_per need rows = \"FILE\""));
            }
            return Ok(None);
        };
        rows.order = self.rows_order.unwrap_or(rows.order);
        rows.per = self.rows_per.unwrap_or(rows.per);
        Ok(Some(rows))
    }

    /// Replaces the rows of the file by those of flags.
    pub fn put_rows(&mut self, rows: RowsScenario) {
        (self.rows, self.rows_order, self.rows_per) = (Some(RowsFile(rows)), None, None);
    }

    /// Fills in what is missing and checks everything. `queries` is the list of queries as TOML, which a file or
    /// the corpus gave.
    ///
    /// # Errors
    /// The first thing that is wrong.
    pub fn resolve(&self, queries: &str) -> Result<MatrixSpec, SearchError> {
        let mut engines =
            self.engines.iter().map(|text| parse_engine(text)).collect::<Result<Vec<_>, _>>()?;
        for file in &self.engine {
            engines.push(file.engine().map_err(|SearchError(problem)| {
                SearchError::new(format!("[[engine]] '{}': {problem}", file.name))
            })?);
        }
        let mut sizes =
            self.sizes.iter().map(|text| parse_size(text)).collect::<Result<Vec<_>, _>>()?;
        let corpus = self.corpus.clone().unwrap_or_else(|| "synthetic".to_owned());
        if sizes.is_empty() {
            sizes.push(if corpus == "synthetic" { 64_000_000 } else { 0 });
        }
        // All of a text is the largest of its sizes.
        sizes.sort_unstable_by_key(|bytes| if *bytes == 0 { u64::MAX } else { *bytes });
        let spec = MatrixSpec {
            engines,
            corpus,
            sizes,
            groups: self.all_groups()?,
            users: if self.users.is_empty() { usual_users(1) } else { self.users.clone() },
            order: self.order.unwrap_or_default(),
            duration: self.duration.unwrap_or(Span::seconds(10)),
            warmup: self.warmup.unwrap_or(Span::seconds(2)),
            passes: self.passes,
            repeat: self.repeat.unwrap_or(1),
            timeout: self.timeout.unwrap_or(Span::seconds(60)),
            think: self.think.unwrap_or_default(),
            pace: self.pace.unwrap_or_default(),
            profile: self.users_profile.clone(),
            rows: self.rows()?,
            checks: self.checks.clone(),
            assertions: self.assertions.clone(),
            refused: if self.skip_refused {
                OnRefused::Skip
            } else {
                self.refused.unwrap_or_default()
            },
            hits: self.query_hits,
            headers: self.headers.clone(),
            seed: self.seed.unwrap_or(1),
            queries: queries.to_owned(),
            files: Vec::new(),
        };
        spec.check()?;
        Ok(spec)
    }

    fn all_groups(&self) -> Result<Vec<Group>, SearchError> {
        if !self.groups.is_empty() {
            if !self.shards.is_empty() || !self.distances.is_empty() {
                return Err(SearchError::new(
                    "groups name distances and shards together; leave out one or the other",
                ));
            }
            return self.groups.iter().map(|text| parse_group(text)).collect();
        }
        let shards = if self.shards.is_empty() { &[1][..] } else { &self.shards };
        let distances = if self.distances.is_empty() { &[2][..] } else { &self.distances };
        Ok(distances
            .iter()
            .flat_map(|&distance| shards.iter().map(move |&shards| Group { distance, shards }))
            .collect())
    }
}
