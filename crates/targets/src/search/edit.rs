//! Bodies of the document API: JSON in, values or edits out.

use super::document::{Value, Values};
use super::schema::{DOCUMENT_TYPE, FIELDS, FieldKind, field_names, field_number};
use serde_json::{Map, Value as Json};

/// One change to one field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Edit {
    pub(crate) field: usize,
    pub(crate) change: Change,
}

/// What an edit does to a value.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Change {
    Assign(Option<Value>),
    /// The operand of increment (or, negated, of decrement).
    Add(f64),
    AddWhole(i64),
    Multiply(f64),
    Divide(f64),
}

/// The body of a partial update.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Update {
    pub(crate) edits: Vec<Edit>,
    pub(crate) test: BodyTest,
}

/// The body of a put.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Put {
    pub(crate) values: Values,
    pub(crate) test: BodyTest,
}

/// What a body says of when the operation is to take place.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct BodyTest {
    /// `"create": true`
    pub(crate) create: bool,
    /// A selection that the document must match.
    pub(crate) condition: Option<String>,
}

/// What is wrong with a body; said to the client as it is.
pub(crate) type BodyError = String;

/// Reads the body of a put.
pub(crate) fn parse_put(body: &[u8]) -> Result<Put, BodyError> {
    let root = root(body)?;
    let test = body_test(&root)?;
    let mut values = Values::default();
    for (name, json) in fields(&root)? {
        let number = known(name)?;
        values[number] = value(number, json)?;
    }
    Ok(Put { values, test })
}

/// Reads the body of a partial update.
pub(crate) fn parse_update(body: &[u8]) -> Result<Update, BodyError> {
    let root = root(body)?;
    let test = body_test(&root)?;
    let mut edits = Vec::new();
    for (name, operations) in fields(&root)? {
        let field = known(name)?;
        let Json::Object(operations) = operations else {
            let example = r#"{"assign": value}"#;
            return Err(format!("Error in '{name}': expected an object such as {example}"));
        };
        for (operation, operand) in operations {
            let change = change(field, operation, operand)?;
            edits.push(Edit { field, change });
        }
    }
    Ok(Update { edits, test })
}

/// Applies edits in their order. Arithmetic on a missing value leaves it missing.
pub(crate) fn apply(values: &mut Values, edits: &[Edit]) {
    for edit in edits {
        let Some(slot) = values.get_mut(edit.field) else { continue };
        if let Change::Assign(value) = &edit.change {
            slot.clone_from(value);
            continue;
        }
        let Some(Value::Long(value)) = slot else { continue };
        let real = *value as f64;
        // Conversions from floating point saturate and cut the fraction off.
        *value = match edit.change {
            Change::AddWhole(operand) => value.saturating_add(operand),
            Change::Add(operand) => (real + operand) as i64,
            Change::Multiply(operand) if operand.fract() == 0.0 && operand.abs() < 9e15 => {
                value.saturating_mul(operand as i64)
            }
            Change::Multiply(operand) => (real * operand) as i64,
            Change::Divide(operand) => (real / operand) as i64,
            Change::Assign(_) => *value,
        };
    }
}

fn change(field: usize, operation: &str, operand: &Json) -> Result<Change, BodyError> {
    let name = FIELDS[field].name;
    if operation == "assign" {
        return Ok(Change::Assign(value(field, operand)?));
    }
    let arithmetic = matches!(operation, "increment" | "decrement" | "multiply" | "divide");
    if !arithmetic || FIELDS[field].kind != FieldKind::Long {
        return Err(format!("Error in '{name}': Operation '{operation}' not implemented."));
    }
    let number = operand
        .as_f64()
        .filter(|number| number.is_finite())
        .ok_or_else(|| format!("Error in '{name}': '{operation}' needs a number"))?;
    Ok(match operation {
        "increment" => operand.as_i64().map_or(Change::Add(number), Change::AddWhole),
        "decrement" => match operand.as_i64().and_then(i64::checked_neg) {
            Some(whole) => Change::AddWhole(whole),
            None => Change::Add(-number),
        },
        "multiply" => Change::Multiply(number),
        _ if number == 0.0 => return Err(format!("Error in '{name}': division by zero")),
        _ => Change::Divide(number),
    })
}

fn root(body: &[u8]) -> Result<Map<String, Json>, BodyError> {
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err("expected start of root object, got null".to_owned());
    }
    match serde_json::from_slice(body) {
        Ok(Json::Object(root)) => Ok(root),
        Ok(Json::Null) => Err("expected start of root object, got null".to_owned()),
        Ok(_) => Err("expected start of root object".to_owned()),
        Err(error) => Err(format!("the body is not JSON: {error}")),
    }
}

fn body_test(root: &Map<String, Json>) -> Result<BodyTest, BodyError> {
    let create = match root.get("create") {
        None => false,
        Some(Json::Bool(create)) => *create,
        Some(_) => return Err("'create' must be true or false".to_owned()),
    };
    let condition = match root.get("condition") {
        None => None,
        Some(Json::String(condition)) => Some(condition.clone()),
        Some(_) => return Err("'condition' must be a string".to_owned()),
    };
    Ok(BodyTest { create, condition })
}

fn fields(root: &Map<String, Json>) -> Result<&Map<String, Json>, BodyError> {
    match root.get("fields") {
        Some(Json::Object(fields)) => Ok(fields),
        Some(_) => Err("\"fields\" must be an object".to_owned()),
        None => Err("document is missing the required \"fields\" field".to_owned()),
    }
}

fn known(name: &str) -> Result<usize, BodyError> {
    field_number(name).ok_or_else(|| {
        let names = field_names();
        format!(
            "No field '{name}' in the structure of type '{DOCUMENT_TYPE}', \
             which has the fields: [{names}]"
        )
    })
}

fn value(number: usize, json: &Json) -> Result<Option<Value>, BodyError> {
    let name = FIELDS[number].name;
    match (FIELDS[number].kind, json) {
        (_, Json::Null) => Ok(None),
        (FieldKind::Text | FieldKind::Keyword, Json::String(text)) => {
            let illegal = |c: &char| *c < ' ' && !matches!(c, '\t' | '\n' | '\r');
            if let Some(c) = text.chars().find(illegal) {
                let code = u32::from(c);
                return Err(format!("Error in '{name}': illegal code point 0x{code:X}"));
            }
            Ok(Some(Value::Text(text.clone())).filter(|_| !text.is_empty()))
        }
        (FieldKind::Text | FieldKind::Keyword, _) => {
            Err(format!("Error in '{name}': expected a string"))
        }
        (FieldKind::Long, json) => {
            let long = match json {
                Json::Number(number) => number.as_i64(),
                Json::String(text) => text.trim().parse().ok(),
                _ => None,
            };
            let message = || format!("Error in '{name}': expected a whole number of 64 bits");
            long.map(|long| Some(Value::Long(long))).ok_or_else(message)
        }
    }
}
