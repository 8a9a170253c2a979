//! Bodies of the document API: JSON in, values or edits out, and edits applied.
//!
//! A body is read in one pass, straight into values of the schema's types: there is no tree of the
//! JSON in between. Messages for the client are Vespa's where a client is known to look at them.

mod apply;
mod number;
mod path;
mod read;
mod tensor;
mod text;
mod update;

use super::document::Values;
use super::schema::Schema;
use super::value::Value;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use std::borrow::Cow;
use std::fmt;

pub use apply::apply;

/// The error of a body; sent to the client unchanged.
pub(crate) type BodyError = String;

/// The body of a put.
#[derive(Clone, Debug, PartialEq)]
pub struct Put {
    /// The values of the fields.
    pub values: Values,
    /// The selection in `condition`, as it was written.
    pub condition: Option<String>,
    /// `"create": true`
    pub create: bool,
}

/// The body of a partial update.
#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    /// The changes, in their order.
    pub edits: Vec<Edit>,
    /// The selection in `condition`, as it was written.
    pub condition: Option<String>,
    /// `"create": true`
    pub create: bool,
}

/// One change to one field, or to an element of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Edit {
    /// The number of the field in its schema.
    pub field: usize,
    /// From the field to the element; empty for the field itself.
    pub path: Vec<Step>,
    /// The change.
    pub change: Change,
    /// An element that is missing is made first, as 0 for arithmetic.
    pub make_missing: bool,
}

/// One step into a collection.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// An element of an array.
    Index(usize),
    /// A key of a map or of a weighted set.
    Key(Value),
}

/// The effect of an edit on a value.
#[derive(Clone, Debug, PartialEq)]
pub enum Change {
    /// Replaces the value, or takes it away.
    Assign(Option<Value>),
    /// Appends the elements of an array, sets the weights of keys.
    Add(Value),
    /// Takes away every element of an array that is one of these, or these keys.
    Remove(Value),
    /// Computes a number from the one that is there.
    Arithmetic(Arithmetic),
    /// Changes cells of a tensor: number of the cell, operand.
    Modify(CellOperation, Vec<(usize, f32)>),
}

/// `increment`, `decrement`, `multiply`, `divide`. A decrement is an increment by the negative.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Arithmetic {
    pub(crate) operator: Operator,
    pub(crate) operand: f64,
    /// The operand as a whole number, with which long values stay exact.
    pub(crate) whole: Option<i64>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operator {
    Add,
    Multiply,
    Divide,
}

/// The effect of `modify` on the cells that it names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CellOperation {
    /// Puts the operand in its place.
    Replace,
    /// Adds the operand.
    Add,
    /// Multiplies by the operand.
    Multiply,
}

/// Reads the body of a put.
///
/// # Errors
/// With what to tell the client.
pub fn parse_put(body: &[u8], schema: &Schema) -> Result<Put, BodyError> {
    let root = root(body, read::FieldsSeed { schema })?;
    Ok(Put { values: root.fields, condition: root.condition, create: root.create })
}

/// Reads the body of a partial update.
///
/// # Errors
/// With what to tell the client.
pub fn parse_update(body: &[u8], schema: &Schema) -> Result<Update, BodyError> {
    let root = root(body, update::EditsSeed { schema })?;
    Ok(Update { edits: root.fields, condition: root.condition, create: root.create })
}

struct Root<T> {
    fields: T,
    condition: Option<String>,
    create: bool,
}

fn root<'de, S>(body: &'de [u8], fields: S) -> Result<Root<S::Value>, BodyError>
where
    S: DeserializeSeed<'de> + Copy,
{
    // Some editors put a mark of the byte order before a text.
    let body = body.strip_prefix(b"\xef\xbb\xbf").unwrap_or(body);
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(NO_ROOT.to_owned());
    }
    let mut json = serde_json::Deserializer::from_slice(body);
    let root = RootSeed { fields }.deserialize(&mut json);
    root.and_then(|root| json.end().map(|()| root)).map_err(|error| said(&error))
}

const NO_ROOT: &str = "expected start of root object, got null";

/// Precedes every message of this crate inside an error of the JSON reader, which adds its own words:
/// "invalid type: ..., expected" in front and the position after it. Its quotes from the
/// body have control characters escaped, so that the first mark is this crate's.
const MARK: char = '\u{1}';

/// The message for the client.
fn said(error: &serde_json::Error) -> BodyError {
    let text = error.to_string();
    let Some((_, message)) = text.split_once(MARK) else {
        return format!("the body is not JSON: {text}");
    };
    let place = format!(" at line {} column {}", error.line(), error.column());
    message.strip_suffix(&place).unwrap_or(message).to_owned()
}

/// An error with a message of this crate.
fn refused<E: Error>(message: impl fmt::Display) -> E {
    E::custom(format_args!("{MARK}{message}"))
}

/// An error in the value of a field, or of an element.
fn wrong<E: Error>(label: &str, message: impl fmt::Display) -> E {
    E::custom(format_args!("{MARK}Error in '{label}': {message}"))
}

struct RootSeed<S> {
    fields: S,
}

impl<'de, S: DeserializeSeed<'de> + Copy> DeserializeSeed<'de> for RootSeed<S> {
    type Value = Root<S::Value>;

    fn deserialize<D: serde::Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de, S: DeserializeSeed<'de> + Copy> Visitor<'de> for RootSeed<S> {
    type Value = Root<S::Value>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}expected start of root object")
    }

    fn visit_unit<E: Error>(self) -> Result<Self::Value, E> {
        Err(refused(NO_ROOT))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut fields, mut condition, mut create) = (None, None, false);
        while let Some(key) = map.next_key_seed(text::Text("a name"))? {
            match key.as_ref() {
                "fields" => fields = Some(map.next_value_seed(self.fields)?),
                "condition" => {
                    let seed = read::Maybe(text::Text("'condition' must be a string"));
                    condition = map.next_value_seed(seed)?.map(Cow::into_owned);
                }
                "create" => {
                    create = map.next_value_seed(read::Maybe(read::Flag("create")))? == Some(true);
                }
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = || refused("document is missing the required \"fields\" field");
        Ok(Root { fields: fields.ok_or_else(missing)?, condition, create })
    }
}
