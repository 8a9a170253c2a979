//! The effects of edits on the values of a document.

use super::super::document::Values;
use super::super::encoding::value_bytes;
use super::super::schema::{FieldDef, Schema};
use super::super::value::{FieldType, Value, WEIGHT};
use super::read::last_of_each_key;
use super::{Arithmetic, CellOperation, Change, Edit, Operator, Step};
use std::collections::HashSet;

/// Applies edits in their order. An edit that has nothing to work on changes nothing: arithmetic
/// on a missing value, a position beyond the end of an array, a key that is not there.
pub fn apply(values: &mut Values, schema: &Schema, edits: &[Edit]) {
    for edit in edits {
        let Some(field) = schema.fields().get(edit.field) else { continue };
        let old = values.take(edit.field);
        let context = Context { field, edit };
        values.set(edit.field, context.at(&field.kind, old, &edit.path));
    }
}

struct Context<'a> {
    field: &'a FieldDef,
    edit: &'a Edit,
}

impl Context<'_> {
    /// The value after the edit, which is at the end of the path.
    fn at(&self, kind: &FieldType, value: Option<Value>, path: &[Step]) -> Option<Value> {
        let Some((step, rest)) = path.split_first() else { return self.changed(kind, value) };
        match (kind, step, value) {
            (FieldType::Array(inner), Step::Index(index), Some(Value::Array(mut items))) => {
                if *index < items.len() {
                    let old = std::mem::replace(&mut items[*index], Value::Bool(false));
                    match self.at(inner, Some(old), rest) {
                        Some(new) => items[*index] = new,
                        None => {
                            items.remove(*index);
                        }
                    }
                }
                Some(Value::Array(items))
            }
            (FieldType::Map(_, inner), Step::Key(key), value) => {
                let mut items = match value {
                    Some(Value::Map(items)) => items,
                    _ => Vec::new(),
                };
                self.at_key(&mut items, key, |old| self.at(inner, old, rest));
                Some(Value::Map(items))
            }
            (FieldType::WeightedSet(_), Step::Key(key), value) => {
                let mut items = match value {
                    Some(Value::WeightedSet(items)) => items,
                    _ => Vec::new(),
                };
                self.at_key(&mut items, key, |old| {
                    match self.at(&WEIGHT, old.map(Value::Int), rest) {
                        Some(Value::Int(0)) if self.removes_zero() => None,
                        Some(Value::Int(weight)) => Some(weight),
                        _ => None,
                    }
                });
                Some(Value::WeightedSet(items))
            }
            (_, _, value) => value,
        }
    }

    fn removes_zero(&self) -> bool {
        self.field.remove_zero && matches!(self.edit.change, Change::Arithmetic(_))
    }

    fn makes_missing(&self) -> bool {
        let counts = self.field.create_missing && matches!(self.edit.change, Change::Arithmetic(_));
        self.edit.make_missing || counts
    }

    fn at_key<V: Clone>(
        &self,
        items: &mut Vec<(Value, V)>,
        key: &Value,
        change: impl FnOnce(Option<V>) -> Option<V>,
    ) {
        let found = items.iter().position(|(other, _)| other == key);
        match found {
            Some(at) => match change(Some(items[at].1.clone())) {
                Some(new) => items[at].1 = new,
                None => {
                    items.remove(at);
                }
            },
            None if self.makes_missing() => {
                items.extend(change(None).map(|new| (key.clone(), new)));
            }
            None => {}
        }
    }

    fn changed(&self, kind: &FieldType, value: Option<Value>) -> Option<Value> {
        match (&self.edit.change, value) {
            (Change::Assign(new), _) => new.clone(),
            (Change::Arithmetic(arithmetic), None) => {
                // Below a path the element begins at 0; a field of its own stays missing.
                let made = !self.edit.path.is_empty() && self.makes_missing();
                made.then(|| zero(kind)).flatten().map(|zero| computed(arithmetic, zero))
            }
            (Change::Arithmetic(arithmetic), Some(value)) => Some(computed(arithmetic, value)),
            (Change::Add(new), None) => Some(new.clone()),
            (Change::Add(new), Some(value)) => Some(joined(value, new)),
            (Change::Remove(gone), Some(value)) => Some(without(value, gone)),
            (Change::Modify(operation, cells), Some(Value::Tensor(mut values))) => {
                for (cell, operand) in cells {
                    if let Some(value) = values.get_mut(*cell) {
                        *value = match operation {
                            CellOperation::Replace => *operand,
                            CellOperation::Add => *value + operand,
                            CellOperation::Multiply => *value * operand,
                        };
                    }
                }
                Some(Value::Tensor(values))
            }
            (Change::Remove(_) | Change::Modify(..), value) => value,
        }
    }
}

fn zero(kind: &FieldType) -> Option<Value> {
    Some(match kind {
        FieldType::Int => Value::Int(0),
        FieldType::Long => Value::Long(0),
        FieldType::Byte => Value::Byte(0),
        FieldType::Float => Value::Float(0.0),
        FieldType::Double => Value::Double(0.0),
        _ => return None,
    })
}

/// Whole numbers saturate and lose their fraction.
fn computed(arithmetic: &Arithmetic, value: Value) -> Value {
    match value {
        Value::Int(value) => {
            let value = whole(arithmetic, i64::from(value));
            Value::Int(value.clamp(i64::from(i32::MIN), i64::from(i32::MAX)) as i32)
        }
        Value::Byte(value) => {
            let value = whole(arithmetic, i64::from(value));
            Value::Byte(value.clamp(i64::from(i8::MIN), i64::from(i8::MAX)) as i8)
        }
        Value::Long(value) => Value::Long(whole(arithmetic, value)),
        Value::Float(value) => Value::Float(real(arithmetic, f64::from(value)) as f32),
        Value::Double(value) => Value::Double(real(arithmetic, value)),
        other => other,
    }
}

fn whole(arithmetic: &Arithmetic, value: i64) -> i64 {
    match (arithmetic.operator, arithmetic.whole) {
        (Operator::Add, Some(operand)) => value.saturating_add(operand),
        (Operator::Multiply, Some(operand)) => value.saturating_mul(operand),
        // Conversions from floating point saturate and cut the fraction off.
        _ => real(arithmetic, value as f64) as i64,
    }
}

fn real(arithmetic: &Arithmetic, value: f64) -> f64 {
    match arithmetic.operator {
        Operator::Add => value + arithmetic.operand,
        Operator::Multiply => value * arithmetic.operand,
        Operator::Divide => value / arithmetic.operand,
    }
}

fn joined(value: Value, new: &Value) -> Value {
    match (value, new) {
        (Value::Array(mut items), Value::Array(new)) => {
            items.extend(new.iter().cloned());
            Value::Array(items)
        }
        (Value::WeightedSet(mut items), Value::WeightedSet(new)) => {
            items.extend(new.iter().cloned());
            Value::WeightedSet(last_of_each_key(items))
        }
        (value, _) => value,
    }
}

fn without(value: Value, gone: &Value) -> Value {
    match (value, gone) {
        (Value::Array(mut items), Value::Array(gone)) => {
            let gone: HashSet<Vec<u8>> = gone.iter().map(value_bytes).collect();
            items.retain(|item| !gone.contains(&value_bytes(item)));
            Value::Array(items)
        }
        (Value::WeightedSet(mut items), Value::WeightedSet(gone)) => {
            let gone: HashSet<Vec<u8>> = gone.iter().map(|(key, _)| value_bytes(key)).collect();
            items.retain(|(key, _)| !gone.contains(&value_bytes(key)));
            Value::WeightedSet(items)
        }
        (value, _) => value,
    }
}
