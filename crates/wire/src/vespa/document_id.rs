//! Document ids: `id:NAMESPACE:TYPE:[n=NUMBER|g=GROUP]:NAME`.

use super::bucket::{LOCATION_BITS, MAX_BUCKET_BITS, hash_location};
use md5::{Digest, Md5};
use std::borrow::Cow;
use std::fmt::{self, Display, Formatter};

/// Longer ids are refused, as by Vespa.
pub const MAX_ID_BYTES: usize = 65_536;
/// The most of an id that a message quotes.
const QUOTED_CHARS: usize = 100;

/// The part of an id that can decide about the location instead of the name.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Scope<'a> {
    /// Nothing: the hash of the name does.
    Free,
    /// `n=`: the number itself. All documents of a number lie together.
    Number(u64),
    /// `g=`: the hash of the group, which is neither empty nor has `:` or `,`. All documents of a
    /// group lie together.
    Group(Cow<'a, str>),
}

impl Scope<'_> {
    /// The location of all documents of a number or group.
    #[must_use]
    pub fn location(&self) -> Option<u64> {
        match self {
            Self::Free => None,
            Self::Number(number) => Some(*number),
            Self::Group(group) => Some(hash_location(group.as_bytes())),
        }
    }

    /// The same with nothing borrowed.
    #[must_use]
    pub fn into_owned(self) -> Scope<'static> {
        match self {
            Self::Free => Scope::Free,
            Self::Number(number) => Scope::Number(number),
            Self::Group(group) => Scope::Group(Cow::Owned(group.into_owned())),
        }
    }
}

/// As the part of an id between its third and fourth colon.
impl Display for Scope<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Free => Ok(()),
            Self::Number(number) => write!(f, "n={number}"),
            Self::Group(group) => write!(f, "g={group}"),
        }
    }
}

/// A text is no document id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("Unparseable id '{id}': {problem}")]
pub struct IdError {
    /// The text, shortened.
    pub id: String,
    /// The error.
    pub problem: IdProblem,
}

/// An error of a document id.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdProblem {
    /// More than [`MAX_ID_BYTES`].
    #[error("it has {0} bytes, more than the {MAX_ID_BYTES} allowed")]
    TooLong(usize),
    /// A control character or a code point that is no character.
    #[error("Contains illegal code point 0x{0:X}")]
    CodePoint(u32),
    /// It does not begin with `id:`.
    #[error("Scheme missing; ids have the form id:NAMESPACE:TYPE:[n=NUMBER|g=GROUP]:NAME")]
    Scheme,
    /// It ends before this part.
    #[error("{0} missing; ids have the form id:NAMESPACE:TYPE:[n=NUMBER|g=GROUP]:NAME")]
    Missing(&'static str),
    /// This part is empty.
    #[error("{0} must be non-empty")]
    Empty(&'static str),
    /// Between the third and fourth colon stands something other than `n=NUMBER` or `g=GROUP`.
    #[error("Illegal key-value pair '{0}'; expected n=NUMBER or g=GROUP")]
    Pair(String),
    /// More than one number or group.
    #[error("Illegal key combination in {0}; expected one of n=NUMBER and g=GROUP")]
    Pairs(String),
    /// The number is not one of 64 bits.
    #[error("'n'-value must be a whole number from 0 to 18446744073709551615, not '{0}'")]
    Number(String),
    /// A part that ends at a colon has one.
    #[error("{0} must not contain ':' (nor a group ',')")]
    Separator(&'static str),
}

/// The id of a document. Numbers are written without leading zeros, so equal ids are equal texts.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DocumentId {
    text: String,
    type_at: u32,
    scope_at: u32,
    name_at: u32,
}

impl DocumentId {
    /// Reads an id.
    ///
    /// # Errors
    /// When the text is none; the error says which part is wrong.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        Self::read(text).map_err(|problem| IdError { id: shorten(text), problem })
    }

    /// Makes an id from its parts.
    ///
    /// # Errors
    /// When a part is empty, has a colon before the name, or the whole is too long or no text.
    pub fn new(
        namespace: &str,
        document_type: &str,
        scope: &Scope<'_>,
        name: &str,
    ) -> Result<Self, IdError> {
        let text = format!("id:{namespace}:{document_type}:{scope}:{name}");
        let fail = |problem| Err(IdError { id: shorten(&text), problem });
        if namespace.contains(':') {
            return fail(IdProblem::Separator("Namespace"));
        }
        if document_type.contains(':') {
            return fail(IdProblem::Separator("Document type"));
        }
        if matches!(scope, Scope::Group(group) if group.contains([':', ','])) {
            return fail(IdProblem::Separator("Group"));
        }
        Self::parse(&text)
    }

    fn read(text: &str) -> Result<Self, IdProblem> {
        if text.len() > MAX_ID_BYTES {
            return Err(IdProblem::TooLong(text.len()));
        }
        if let Some(wrong) = text.chars().find(|c| !is_text(*c)) {
            return Err(IdProblem::CodePoint(wrong.into()));
        }
        let rest = text.strip_prefix("id:").ok_or(IdProblem::Scheme)?;
        let (namespace, rest) = part(rest, "Namespace")?;
        let (document_type, rest) = part(rest, "Document type")?;
        let (pairs, name) = rest.split_once(':').ok_or(IdProblem::Missing("Key/value section"))?;
        if name.is_empty() {
            return Err(IdProblem::Empty("Name"));
        }
        let scope = scope(pairs)?;
        let type_at = 3 + namespace.len() + 1;
        let scope_at = type_at + document_type.len() + 1;
        let canonical = scope.to_string();
        let name_at = scope_at + canonical.len() + 1;
        let text = if canonical == pairs {
            text.to_owned()
        } else {
            format!("id:{namespace}:{document_type}:{canonical}:{name}")
        };
        // All are below MAX_ID_BYTES and a little.
        let (type_at, scope_at, name_at) = (type_at as u32, scope_at as u32, name_at as u32);
        Ok(Self { text, type_at, scope_at, name_at })
    }

    /// The whole id.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The part behind `id:`.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.text[3..self.type_at as usize - 1]
    }

    /// The name of the document's type.
    #[must_use]
    pub fn document_type(&self) -> &str {
        &self.text[self.type_at as usize..self.scope_at as usize - 1]
    }

    /// The number or group.
    #[must_use]
    pub fn scope(&self) -> Scope<'_> {
        let pairs = &self.text[self.scope_at as usize..self.name_at as usize - 1];
        match (pairs.strip_prefix("n="), pairs.strip_prefix("g=")) {
            // The text is in the canonical form, so the number can be read.
            (Some(number), _) => number.parse().map_or(Scope::Free, Scope::Number),
            (_, Some(group)) => Scope::Group(Cow::Borrowed(group)),
            _ => Scope::Free,
        }
    }

    /// The part that the user chose: all behind the fourth colon, never empty.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.text[self.name_at as usize..]
    }

    /// The location of the document. Hashed at each call, unless the id has a number.
    #[must_use]
    pub fn location(&self) -> u64 {
        self.scope().location().unwrap_or_else(|| hash_location(self.name().as_bytes()))
    }

    /// The global id: the MD5 of the whole id, beginning with the low half of the location. Hashed
    /// at each call.
    #[must_use]
    pub fn gid(&self) -> [u8; 12] {
        let digest: [u8; 16] = Md5::digest(self.text.as_bytes()).into();
        let mut gid = [0; 12];
        gid[..4].copy_from_slice(&self.location().to_le_bytes()[..4]);
        gid[4..].copy_from_slice(&digest[4..12]);
        gid
    }

    /// The smallest bucket that Vespa can put the document into, in Vespa's form: 32 bits of the
    /// location, 26 of the global id, and their number.
    #[must_use]
    pub fn smallest_bucket(&self) -> u64 {
        let gid = self.gid();
        let low = u32::from_le_bytes([gid[0], gid[1], gid[2], gid[3]]);
        let high = u32::from_le_bytes([gid[8], gid[9], gid[10], gid[11]]);
        let bits = MAX_BUCKET_BITS - LOCATION_BITS;
        let high = u64::from(high) & ((1 << bits) - 1);
        (u64::from(MAX_BUCKET_BITS) << MAX_BUCKET_BITS) | (high << LOCATION_BITS) | u64::from(low)
    }
}

impl Display for DocumentId {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl AsRef<str> for DocumentId {
    fn as_ref(&self) -> &str {
        &self.text
    }
}

/// Everything up to the next colon, which must be there.
fn part<'a>(text: &'a str, name: &'static str) -> Result<(&'a str, &'a str), IdProblem> {
    let (part, rest) = text.split_once(':').ok_or(IdProblem::Missing(name))?;
    if part.is_empty() {
        return Err(IdProblem::Empty(name));
    }
    Ok((part, rest))
}

/// Reads pairs between commas; empty ones are allowed, as in Vespa.
fn scope(pairs: &str) -> Result<Scope<'_>, IdProblem> {
    let mut found = Scope::Free;
    for pair in pairs.split(',').filter(|pair| !pair.is_empty()) {
        let scope = match pair.split_once('=') {
            Some(("n" | "g", "")) => return Err(IdProblem::Empty("Number or group")),
            Some(("n", number)) => {
                let is_number = number.bytes().all(|byte| byte.is_ascii_digit());
                let number = number.parse().ok().filter(|_| is_number);
                Scope::Number(number.ok_or_else(|| IdProblem::Number(shorten(&pair[2..])))?)
            }
            Some(("g", group)) => Scope::Group(Cow::Borrowed(group)),
            _ => return Err(IdProblem::Pair(shorten(pair))),
        };
        if found != Scope::Free {
            return Err(IdProblem::Pairs(shorten(pairs)));
        }
        found = scope;
    }
    Ok(found)
}

/// Vespa's notion of text: no control characters but tab and line ends, no non-characters.
const fn is_text(c: char) -> bool {
    match c {
        '\t' | '\n' | '\r' => true,
        '\0'..='\u{1f}' | '\u{fdd0}'..='\u{fdef}' => false,
        _ => (c as u32) & 0xfffe != 0xfffe,
    }
}

fn shorten(text: &str) -> String {
    match text.char_indices().nth(QUOTED_CHARS) {
        Some((end, _)) => format!("{}...", &text[..end]),
        None => text.to_owned(),
    }
}
