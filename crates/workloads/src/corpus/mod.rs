//! Texts to search: documents with a title, a body, a category, an author and a score.
//!
//! | source | what it is |
//! |---|---|
//! | `bundled` | WordNet's glosses, 67 700 documents, inside the program |
//! | `debian` | descriptions of the packages that this Debian or Ubuntu host knows |
//! | `ndjson FILE` | your own: one JSON object a line |
//! | `synthetic` | any size from a seed, with planted truth: [`synthetic`] |

mod bundled;
mod debian;
mod document;
mod ndjson_file;
pub mod synthetic;

use std::path::PathBuf;

pub use document::Document;
pub use synthetic::{Synthetic, SyntheticOptions};

use crate::error::InputError;

/// Reason why a corpus cannot be opened or read.
#[derive(Debug, thiserror::Error)]
pub enum CorpusError {
    /// A file is missing or a line in it is wrong.
    #[error(transparent)]
    Input(#[from] InputError),
    /// A document's line is wrong.
    #[error("{}:{line}: {problem}", path.display())]
    Line {
        /// The file as the user named it.
        path: PathBuf,
        /// Counted from 1.
        line: u64,
        /// The problem, and its remedy.
        problem: String,
    },
    /// The packed corpus inside the program cannot be read: a broken build.
    #[error("the bundled corpus is damaged ({0}); build plimsoll again from a clean checkout")]
    Bundled(String),
    /// This host has no package descriptions.
    #[error(
        "no package descriptions here ({0}); use the corpus 'bundled', or a Debian or Ubuntu host"
    )]
    NoDebian(String),
    /// An option of the synthetic corpus is out of range.
    #[error("the {option} of a synthetic text cannot be {value}; use {low} to {high}")]
    Range {
        /// The option.
        option: &'static str,
        /// Given value.
        value: f64,
        /// The smallest allowed.
        low: f64,
        /// The largest allowed.
        high: f64,
    },
}

/// Source of documents.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// WordNet's glosses inside the program.
    Bundled,
    /// Package descriptions of this host.
    Debian,
    /// A file of the user's.
    Ndjson(PathBuf),
    /// Made from a seed.
    Synthetic(SyntheticOptions),
}

/// Selection of a source's documents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CorpusOptions {
    /// At most this many documents: evenly from `bundled`, the first ones of the others. The truth
    /// of a synthetic corpus holds for all of its documents only; choose its size instead.
    pub limit: Option<u64>,
}

/// Documents one after the other. Each pass over a corpus has an iterator of its own.
pub type Documents = Box<dyn Iterator<Item = Result<Document, CorpusError>> + Send>;

/// An open corpus.
#[derive(Debug)]
pub struct Corpus {
    kind: Kind,
    name: String,
    licence: String,
    origin: String,
    limit: Option<u64>,
    /// Documents the source has, where that is known without reading it.
    available: Option<u64>,
}

#[derive(Debug)]
enum Kind {
    Bundled,
    Debian(debian::Descriptions),
    Ndjson(PathBuf),
    Synthetic(Box<Synthetic>),
}

impl Corpus {
    /// Opens a source.
    ///
    /// # Errors
    /// [`CorpusError`], when the source is not there or an option is out of range.
    pub fn open(source: &Source, options: &CorpusOptions) -> Result<Self, CorpusError> {
        let limit = options.limit;
        Ok(match source {
            Source::Bundled => {
                let header = bundled::header()?;
                Self {
                    kind: Kind::Bundled,
                    name: header.corpus,
                    licence: header.licence,
                    origin: header.origin,
                    limit,
                    available: Some(header.documents),
                }
            }
            Source::Debian => {
                let found = debian::Descriptions::find()?;
                Self {
                    name: "debian".into(),
                    licence: "each description under its package's own licence".into(),
                    origin: found.origin(),
                    kind: Kind::Debian(found),
                    limit,
                    available: None,
                }
            }
            Source::Ndjson(path) => {
                ndjson_file::check(path)?;
                Self {
                    kind: Kind::Ndjson(path.clone()),
                    name: path.file_stem().unwrap_or_default().to_string_lossy().into_owned(),
                    licence: "unknown (a file of the user's)".into(),
                    origin: path.display().to_string(),
                    limit,
                    available: None,
                }
            }
            Source::Synthetic(options) => {
                let made = Synthetic::new(options)?;
                Self {
                    name: "synthetic".into(),
                    licence: "none needed: generated text".into(),
                    origin: format!("plimsoll's generator, seed {}", options.seed),
                    limit,
                    available: Some(made.documents()),
                    kind: Kind::Synthetic(Box::new(made)),
                }
            }
        })
    }

    /// A short name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Licence of the text.
    #[must_use]
    pub fn licence(&self) -> &str {
        &self.licence
    }

    /// Origin of the text.
    #[must_use]
    pub fn origin(&self) -> &str {
        &self.origin
    }

    /// Number of documents that there will be, where that is known without reading the source. A limit
    /// alone says nothing about a source that may hold fewer.
    #[must_use]
    pub fn len_hint(&self) -> Option<u64> {
        let available = self.available?;
        Some(self.limit.map_or(available, |limit| limit.min(available)))
    }

    /// The synthetic corpus behind this one, with its truth.
    #[must_use]
    pub fn synthetic(&self) -> Option<&Synthetic> {
        match &self.kind {
            Kind::Synthetic(made) => Some(made),
            _ => None,
        }
    }

    /// Reads the documents from the beginning, one at a time.
    ///
    /// # Errors
    /// When the source has vanished since it was opened. Errors of single documents come from the
    /// iterator, which ends after one.
    pub fn documents(&self) -> Result<Documents, CorpusError> {
        let limit = self.limit.unwrap_or(u64::MAX);
        let all: Documents = match &self.kind {
            // The glosses are in the order of subjects; the first thousand would be all alike.
            Kind::Bundled => return bundled::documents(self.available, limit),
            Kind::Debian(found) => found.documents()?,
            Kind::Ndjson(path) => ndjson_file::documents(path)?,
            Kind::Synthetic(made) => {
                let made = made.clone();
                Box::new((0..made.documents()).map(move |number| {
                    let mut document = Document::default();
                    made.fill(number, &mut document);
                    Ok(document)
                }))
            }
        };
        Ok(Box::new(all.take(usize::try_from(limit).unwrap_or(usize::MAX))))
    }
}
