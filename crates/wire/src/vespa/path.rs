//! Paths below `/document/v1/`, written and read.

use super::document_id::{DocumentId, Scope};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, percent_decode_str, utf8_percent_encode};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// The collection of all documents.
pub const ROOT_PATH: &str = "/document/v1/";

/// Characters that are encoded in a path: all but letters, digits and `-._~`. `+` is, because servers read it as
/// a space, and `/`, so that the name is one segment and no proxy can take a part of it for a step upwards.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// The object of a path.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DocumentPath {
    /// All documents.
    Root,
    /// All documents of a type in a namespace, or those of one number or group among them.
    Collection {
        /// The namespace.
        namespace: String,
        /// The name of the type.
        document_type: String,
        /// Everything, or one number or group.
        scope: Scope<'static>,
    },
    /// One document.
    Document(DocumentId),
}

/// Reason why a path names nothing.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// No such path exists: status 404.
    #[error(
        "no such path; expected {ROOT_PATH}, or {ROOT_PATH}NAMESPACE/TYPE/ with docid/[NAME], \
         number/N/[NAME] or group/G/[NAME]"
    )]
    Unknown,
    /// A part of the path is wrong: status 400.
    #[error("{0}")]
    Invalid(String),
}

impl DocumentPath {
    /// Reads the path of a request, still encoded and without the query. Each segment is decoded on
    /// its own, `+` being a space; those behind the location are the name, joined by slashes.
    ///
    /// # Errors
    /// [`PathError::Unknown`] for paths of other forms; [`PathError::Invalid`] for bad numbers and
    /// encodings, and for parts that no document id can have.
    pub fn parse(path: impl AsRef<[u8]>) -> Result<Self, PathError> {
        let path = std::str::from_utf8(path.as_ref())
            .map_err(|_| PathError::Invalid("the path is not UTF-8 text".to_owned()))?;
        let rest = path.strip_prefix(ROOT_PATH).ok_or(PathError::Unknown)?;
        if rest.is_empty() {
            return Ok(Self::Root);
        }
        let mut segments = rest.split('/');
        let mut next = || segments.next().filter(|segment| !segment.is_empty());
        let namespace = next().ok_or(PathError::Unknown)?;
        let document_type = next().ok_or(PathError::Unknown)?;
        let scope = match next() {
            Some("docid") => Scope::Free,
            Some("number") => number(&decode(next().ok_or(PathError::Unknown)?)?)?,
            Some("group") => {
                Scope::Group(Cow::Owned(decode(next().ok_or(PathError::Unknown)?)?.into_owned()))
            }
            _ => return Err(PathError::Unknown),
        };
        let (namespace, document_type) = (decode(namespace)?, decode(document_type)?);
        let invalid = |error: super::IdError| PathError::Invalid(error.to_string());
        let name = segments.map(decode).collect::<Result<Vec<_>, _>>()?;
        match name.as_slice() {
            [] => {}
            [only] if only.is_empty() => {}
            several if several.iter().all(|segment| segment.is_empty()) => {
                return Err(PathError::Unknown);
            }
            _ => {
                let id = DocumentId::new(&namespace, &document_type, &scope, &name.join("/"));
                return Ok(Self::Document(id.map_err(invalid)?));
            }
        }
        // The parts must be fit for the ids of documents.
        DocumentId::new(&namespace, &document_type, &scope, "name").map_err(invalid)?;
        Ok(Self::Collection {
            namespace: namespace.into_owned(),
            document_type: document_type.into_owned(),
            scope,
        })
    }
}

/// The path as a request has it. Parsed again it names the same, here and on a real Vespa.
impl Display for DocumentPath {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => f.write_str(ROOT_PATH),
            Self::Collection { namespace, document_type, scope } => {
                write_collection(f, namespace, document_type, scope)
            }
            Self::Document(id) => write_document(f, id),
        }
    }
}

/// Appends the path of a document to a request.
pub fn push_document_path(out: &mut String, id: &DocumentId) {
    // Writing to a String cannot fail.
    let _ = write_document(out, id);
}

fn write_collection(
    out: &mut impl fmt::Write,
    namespace: &str,
    document_type: &str,
    scope: &Scope<'_>,
) -> fmt::Result {
    out.write_str(ROOT_PATH)?;
    write_segment(out, namespace)?;
    out.write_char('/')?;
    write_segment(out, document_type)?;
    match scope {
        Scope::Free => out.write_str("/docid/"),
        Scope::Number(number) => write!(out, "/number/{number}/"),
        Scope::Group(group) => {
            out.write_str("/group/")?;
            write_segment(out, group)?;
            out.write_char('/')
        }
    }
}

fn write_document(out: &mut impl fmt::Write, id: &DocumentId) -> fmt::Result {
    write_collection(out, id.namespace(), id.document_type(), &id.scope())?;
    write_segment(out, id.name())
}

fn write_segment(out: &mut impl fmt::Write, text: &str) -> fmt::Result {
    match text {
        // As they are, these are steps to the path itself and upwards for whoever passes the path
        // on.
        "." => out.write_str("%2E"),
        ".." => out.write_str("%2E%2E"),
        _ => utf8_percent_encode(text, ESCAPED).try_for_each(|piece| out.write_str(piece)),
    }
}

fn number(text: &str) -> Result<Scope<'static>, PathError> {
    let number = text.parse().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()));
    // The second half is what Vespa says, and what clients look for.
    number.map(Scope::Number).ok_or_else(|| {
        PathError::Invalid(format!("Failed parsing '{text}': For input string: \"{text}\""))
    })
}

fn decode(segment: &str) -> Result<Cow<'_, str>, PathError> {
    let mut rest = segment;
    while let Some(at) = rest.find('%') {
        let digits = rest.as_bytes().get(at + 1..at + 3);
        if !digits.is_some_and(|digits| digits.iter().all(u8::is_ascii_hexdigit)) {
            return Err(PathError::Invalid(format!(
                "'%' without two hexadecimal digits in '{segment}'; write %25 for a percent sign"
            )));
        }
        rest = &rest[at + 3..];
    }
    let not_text = |_| PathError::Invalid(format!("'{segment}' is not percent-encoded UTF-8 text"));
    if segment.contains('+') {
        let spaced = segment.replace('+', " ");
        let decoded = percent_decode_str(&spaced).decode_utf8().map_err(not_text)?;
        return Ok(Cow::Owned(decoded.into_owned()));
    }
    percent_decode_str(segment).decode_utf8().map_err(not_text)
}
