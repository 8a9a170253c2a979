//! Partial updates from JSON.

use super::super::schema::Schema;
use super::super::value::{FieldType, Value, WEIGHT};
use super::path::{self, Target};
use super::read::{Flag, ValueSeed, known, scalar};
use super::tensor::CellsSeed;
use super::text::{ScalarText, Text};
use super::{Arithmetic, CellOperation, Change, Edit, MARK, Operator, Step, number, wrong};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, Visitor};
use std::fmt;

/// The object `fields` of an update.
#[derive(Clone, Copy)]
pub(super) struct EditsSeed<'s> {
    pub(super) schema: &'s Schema,
}

impl<'de> DeserializeSeed<'de> for EditsSeed<'_> {
    type Value = Vec<Edit>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Vec<Edit>, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for EditsSeed<'_> {
    type Value = Vec<Edit>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}\"fields\" must be an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Vec<Edit>, A::Error> {
        let mut edits = Vec::new();
        while let Some(name) = map.next_key_seed(Text("a name"))? {
            let target = self.target(&name)?;
            let is_path = path::is_path(&name);
            let seed = OperationsSeed { label: &name, target: &target, is_path };
            for (path, change) in map.next_value_seed(seed)? {
                let field = target.field;
                edits.push(Edit { field, path, change, make_missing: is_path });
            }
        }
        Ok(edits)
    }
}

impl<'s> EditsSeed<'s> {
    fn target<E: Error>(&self, name: &str) -> Result<Target<'s>, E> {
        if path::is_path(name) {
            if let Some(target) = path::parse(name, self.schema) {
                return target.map_err(|message| wrong(name, message));
            }
            let end = name.find(['.', '[', '{']).unwrap_or(name.len());
            return Err(known::<E>(self.schema, &name[..end])
                .err()
                .unwrap_or_else(|| wrong(name, "the path is not understood")));
        }
        let field = known(self.schema, name)?;
        Ok(Target { field, path: Vec::new(), kind: &self.schema.fields()[field].kind })
    }
}

/// Changes below the field: path and change.
type Changes = Vec<(Vec<Step>, Change)>;

/// `{"assign": v, "increment": 1, ...}`
struct OperationsSeed<'a> {
    label: &'a str,
    target: &'a Target<'a>,
    is_path: bool,
}

impl<'de> DeserializeSeed<'de> for OperationsSeed<'_> {
    type Value = Changes;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Changes, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for OperationsSeed<'_> {
    type Value = Changes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let example = r#"{"assign": value}"#;
        write!(f, "{MARK}Error in '{}': expected an object such as {example}", self.label)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Changes, A::Error> {
        let mut changes = Vec::new();
        let Self { label, target, is_path } = self;
        while let Some(operation) = map.next_key_seed(Text("an operation"))? {
            let found = match operation.as_ref() {
                "match" if !is_path => {
                    map.next_value_seed(MatchSeed { label, container: target.kind })?
                }
                // As in Vespa, case counts in the operations of fields only.
                operation if is_path => {
                    vec![(Vec::new(), self.change(&operation.to_ascii_lowercase(), &mut map)?)]
                }
                operation => vec![(Vec::new(), self.change(operation, &mut map)?)],
            };
            for (below, change) in found {
                let mut path = target.path.clone();
                path.extend(below);
                changes.push((path, change));
            }
        }
        Ok(changes)
    }
}

impl OperationsSeed<'_> {
    fn change<'de, A: MapAccess<'de>>(
        &self,
        operation: &str,
        map: &mut A,
    ) -> Result<Change, A::Error> {
        let label = self.label;
        let kind = self.target.kind;
        match operation {
            "modify" if !self.is_path => modify(label, kind, map),
            "remove" if self.is_path => {
                map.next_value::<IgnoredAny>()?;
                Ok(Change::Assign(None))
            }
            "add" | "remove" => {
                let values = elements(label, kind, operation, map)?;
                let adds = operation == "add";
                Ok(if adds { Change::Add(values) } else { Change::Remove(values) })
            }
            _ if self.is_path && !is_single(operation) => {
                let message = format!("Field path update type '{operation}' not supported.");
                Err(wrong(label, message))
            }
            _ => single(label, kind, operation, map),
        }
    }
}

fn is_single(operation: &str) -> bool {
    matches!(operation, "assign" | "increment" | "decrement" | "multiply" | "divide")
}

/// An operation on one value as a whole.
fn single<'de, A: MapAccess<'de>>(
    label: &str,
    kind: &FieldType,
    operation: &str,
    map: &mut A,
) -> Result<Change, A::Error> {
    if operation == "assign" {
        return map.next_value_seed(ValueSeed { label, kind }).map(Change::Assign);
    }
    if !is_single(operation) || !kind.is_number() {
        let message = format!("Operation '{operation}' not implemented.");
        return Err(wrong(label, message));
    }
    let Operand { real, whole } = map.next_value_seed(OperandSeed { label, operation })?;
    let (operator, operand, whole) = match operation {
        "increment" => (Operator::Add, real, whole),
        "decrement" => (Operator::Add, -real, whole.and_then(i64::checked_neg)),
        "multiply" => (Operator::Multiply, real, whole),
        _ if real == 0.0 => return Err(wrong(label, "division by zero")),
        _ => (Operator::Divide, real, None),
    };
    Ok(Change::Arithmetic(Arithmetic { operator, operand, whole }))
}

/// The operand of `add` or `remove`.
fn elements<'de, A: MapAccess<'de>>(
    label: &str,
    kind: &FieldType,
    operation: &str,
    map: &mut A,
) -> Result<Value, A::Error> {
    match kind {
        FieldType::Array(_) | FieldType::WeightedSet(_) => {
            let value = map.next_value_seed(ValueSeed { label, kind })?;
            value.ok_or_else(|| wrong(label, "Expected start of composite, got VALUE_NULL"))
        }
        FieldType::Tensor { .. } => {
            let an = if operation == "add" { "An" } else { "A" };
            let message = format!(
                "{an} {operation} update can only be applied to tensors with at least one sparse \
                 dimension. Field '{label}' has unsupported tensor type '{kind}'"
            );
            Err(wrong(label, message))
        }
        kind => {
            let message = format!(
                "Trying to add or remove from a field of a type the reader does not know \
                 how to handle: {kind}"
            );
            Err(wrong(label, message))
        }
    }
}

fn modify<'de, A: MapAccess<'de>>(
    label: &str,
    kind: &FieldType,
    map: &mut A,
) -> Result<Change, A::Error> {
    let FieldType::Tensor { dimension, cells } = kind else {
        let message = format!(
            "A modify update can only be applied to tensor fields. \
             Field '{label}' is of type '{kind}'"
        );
        return Err(wrong(label, message));
    };
    map.next_value_seed(ModifySeed(CellsSeed { label, dimension, cells: *cells }))
}

#[derive(Clone, Copy)]
struct Operand {
    real: f64,
    whole: Option<i64>,
}

/// The operand of arithmetic: a number, also as text.
struct OperandSeed<'a> {
    label: &'a str,
    operation: &'a str,
}

impl<'de> DeserializeSeed<'de> for OperandSeed<'_> {
    type Value = Operand;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Operand, D::Error> {
        json.deserialize_any(self)
    }
}

impl Visitor<'_> for OperandSeed<'_> {
    type Value = Operand;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}Error in '{}': '{}' needs a number", self.label, self.operation)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<Operand, E> {
        Ok(Operand { real: value as f64, whole: Some(value) })
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<Operand, E> {
        Ok(Operand { real: value as f64, whole: i64::try_from(value).ok() })
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<Operand, E> {
        // Beyond 2^53 neighbouring whole numbers look the same.
        let exact = value.fract() == 0.0 && value.abs() < 9e15;
        Ok(Operand { real: value, whole: exact.then_some(value as i64) })
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Operand, E> {
        let real = number::real(text).filter(|real| real.is_finite());
        let needed = || wrong(self.label, format_args!("'{}' needs a number", self.operation));
        Ok(Operand { real: real.ok_or_else(needed)?, whole: text.trim().parse().ok() })
    }
}

/// `{"element": key, "increment": 1}`, possibly with another `match` inside.
struct MatchSeed<'a> {
    label: &'a str,
    container: &'a FieldType,
}

impl<'de> DeserializeSeed<'de> for MatchSeed<'_> {
    type Value = Changes;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Changes, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for MatchSeed<'_> {
    type Value = Changes;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}Error in '{}': Expected object for match update", self.label)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Changes, A::Error> {
        let label = self.label;
        let inner = match self.container {
            FieldType::Array(inner) | FieldType::Map(_, inner) => inner,
            FieldType::WeightedSet(_) => &WEIGHT,
            kind => {
                let message = format!("Container type {kind} not supported for match update.");
                return Err(wrong(label, message));
            }
        };
        let (mut step, mut changes) = (None, Vec::new());
        while let Some(name) = map.next_key_seed(Text("an operation"))? {
            match name.as_ref() {
                "element" => {
                    let text = map.next_value_seed(ScalarText(label))?;
                    step = Some(self.step(&text)?);
                }
                "match" => {
                    let nested = MatchSeed { label, container: inner };
                    changes.extend(map.next_value_seed(nested)?);
                }
                operation => {
                    let change = single(label, inner, operation, &mut map)?;
                    changes.push((Vec::new(), change));
                }
            }
        }
        let step = step.ok_or_else(|| wrong(label, "a match update needs an 'element'"))?;
        for (path, _) in &mut changes {
            path.insert(0, step.clone());
        }
        Ok(changes)
    }
}

impl MatchSeed<'_> {
    fn step<E: Error>(&self, text: &str) -> Result<Step, E> {
        match self.container {
            FieldType::Map(key, _) | FieldType::WeightedSet(key) => {
                scalar(key, text).map(Step::Key).map_err(|message| wrong(self.label, message))
            }
            _ => {
                let message = format!("For input string: \"{text}\"");
                text.parse().map(Step::Index).map_err(|_| wrong(self.label, message))
            }
        }
    }
}

/// `{"operation": "replace", "cells": ...}`
struct ModifySeed<'a>(CellsSeed<'a>);

impl<'de> DeserializeSeed<'de> for ModifySeed<'_> {
    type Value = Change;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Change, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ModifySeed<'_> {
    type Value = Change;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = "expected an object with 'operation' and 'cells'";
        write!(f, "{MARK}Error in '{}': {what}", self.0.label)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Change, A::Error> {
        let label = self.0.label;
        let (mut operation, mut cells) = (None, None);
        while let Some(name) = map.next_key_seed(Text("a name"))? {
            match name.as_ref() {
                "operation" => {
                    let text = map.next_value_seed(ScalarText(label))?;
                    operation = Some(match text.as_str() {
                        "replace" => CellOperation::Replace,
                        "add" => CellOperation::Add,
                        "multiply" => CellOperation::Multiply,
                        other => {
                            let message = format!(
                                "Unknown operation '{other}' in modify update for field '{label}'"
                            );
                            return Err(wrong(label, message));
                        }
                    });
                }
                "cells" => cells = Some(map.next_value_seed(self.0)?),
                // Every cell of a dense tensor is there already.
                "create" => {
                    map.next_value_seed(Flag("create"))?;
                }
                other => {
                    let message = format!(
                        "Unknown JSON string '{other}' in modify update for field '{label}'"
                    );
                    return Err(wrong(label, message));
                }
            }
        }
        let missing = |what: &str| {
            let message = format!("Modify update for field '{label}' does not contain {what}");
            wrong(label, message)
        };
        let operation = operation.ok_or_else(|| missing("an operation"))?;
        let cells = cells.ok_or_else(|| missing("tensor cells"))?;
        Ok(Change::Modify(operation, cells))
    }
}
