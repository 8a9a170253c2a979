//! Field paths: `props{key}`, `tags[0]`, and so on into nested collections.

use super::super::schema::Schema;
use super::super::value::{FieldType, WEIGHT};
use super::Step;
use super::read::scalar;

/// A field, or an element of one.
pub(super) struct Target<'s> {
    pub(super) field: usize,
    pub(super) path: Vec<Step>,
    /// The type of the field or element.
    pub(super) kind: &'s FieldType,
}

/// The name is that of a path, not of a field.
pub(super) fn is_path(name: &str) -> bool {
    name.contains(['.', '[', '{'])
}

/// Reads a path.
///
/// # Errors
/// With what to tell the client. `None` when there is no such field.
pub(super) fn parse<'s>(text: &str, schema: &'s Schema) -> Option<Result<Target<'s>, String>> {
    let end = text.find(['.', '[', '{']).unwrap_or(text.len());
    let (name, steps) = text.split_at(end);
    let field = schema.field_number(name)?;
    let mut target = Target { field, path: Vec::new(), kind: &schema.fields()[field].kind };
    Some(walk(steps, &mut target).map(|()| target))
}

fn walk(mut steps: &str, target: &mut Target<'_>) -> Result<(), String> {
    while let Some(first) = steps.chars().next() {
        match first {
            '[' => {
                let (inside, after) = steps[1..].split_once(']').ok_or("expected ']'")?;
                steps = after;
                index(inside, target)?;
            }
            '{' => {
                let (key, after) = key(&steps[1..])?;
                steps = after;
                step(&key, target)?;
            }
            '.' => {
                let name = &steps[1..];
                return Err(format!("there is no '{name}' in it: structs are not supported"));
            }
            other => return Err(format!("expected '[' or '{{', found '{other}'")),
        }
    }
    Ok(())
}

fn index(text: &str, target: &mut Target<'_>) -> Result<(), String> {
    if text.starts_with('$') {
        return Err("variables in paths are not supported".to_owned());
    }
    let FieldType::Array(inner) = target.kind else {
        return Err(format!("a value of type {} has no '[{text}]'", target.kind));
    };
    let index = text.trim().parse().map_err(|_| format!("'{text}' is no position in an array"))?;
    target.path.push(Step::Index(index));
    target.kind = inner;
    Ok(())
}

fn step(text: &str, target: &mut Target<'_>) -> Result<(), String> {
    if text.starts_with('$') {
        return Err("variables in paths are not supported".to_owned());
    }
    let (key, inner) = match target.kind {
        FieldType::Map(key, value) => (key, &**value),
        FieldType::WeightedSet(key) => (key, &WEIGHT),
        kind => return Err(format!("a value of type {kind} has no '{{{text}}}'")),
    };
    target.path.push(Step::Key(scalar(key, text)?));
    target.kind = inner;
    Ok(())
}

/// The key up to the closing brace, and what follows it. Quotes may stand around the key; inside
/// of them a backslash keeps the next character as it is.
fn key(text: &str) -> Result<(String, &str), String> {
    let Some(quoted) = text.strip_prefix('"') else {
        let (key, after) = text.split_once('}').ok_or("expected '}'")?;
        return Ok((key.to_owned(), after));
    };
    let mut key = String::new();
    let mut chars = quoted.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '\\' => key.extend(chars.next().map(|(_, c)| c)),
            '"' => {
                let after = quoted[at + 1..].strip_prefix('}');
                return after.map(|after| (key, after)).ok_or("expected '}'".to_owned());
            }
            c => key.push(c),
        }
    }
    Err("expected '\"'".to_owned())
}
