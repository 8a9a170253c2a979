//! Field paths: what they may be for the type of a field, and what they find in its value.

use super::scalar::{Bindings, Bound, Scalar};
use super::tree::Step;
use crate::value::{FieldType, Value};

/// The type that a step leads to, or what the step asks for that the type does not have.
pub(super) fn step_type<'a>(
    from: &'a FieldType,
    step: &Step,
) -> Result<&'a FieldType, &'static str> {
    match (step, from) {
        (Step::Index(_) | Step::IndexVariable(_), FieldType::Array(element)) => Ok(element),
        (Step::Index(_) | Step::IndexVariable(_), _) => Err("'[' needs an array"),
        (Step::Key(key), FieldType::WeightedSet(of) | FieldType::Map(of, _))
            if !can_be_key(of, key) =>
        {
            Err("the key is not of the type of the keys")
        }
        (Step::Key(_) | Step::KeyVariable(_) | Step::Values, FieldType::WeightedSet(_)) => {
            Ok(&FieldType::Int)
        }
        (Step::Key(_) | Step::KeyVariable(_) | Step::Values, FieldType::Map(_, value)) => Ok(value),
        (Step::Keys, FieldType::WeightedSet(key) | FieldType::Map(key, _)) => Ok(key),
        (Step::Key(_) | Step::KeyVariable(_), _) => Err("'{' needs a map or weighted set"),
        (Step::Keys | Step::Values, _) => Err("'.key' and '.value' need a map or weighted set"),
    }
}

fn can_be_key(of: &FieldType, key: &str) -> bool {
    match of {
        FieldType::String => true,
        FieldType::Int | FieldType::Long | FieldType::Byte => key.parse::<i64>().is_ok(),
        FieldType::Float | FieldType::Double => key.parse::<f64>().is_ok(),
        FieldType::Bool => matches!(key, "true" | "false"),
        _ => false,
    }
}

/// Returns true if a key is what the selection calls it.
fn is_called(key: &Value, name: &str) -> bool {
    match key {
        Value::String(text) => text == name,
        Value::Int(_) | Value::Long(_) | Value::Byte(_) => {
            matches!(Scalar::of(key), Scalar::Integer(number) if name.parse() == Ok(number))
        }
        Value::Float(number) => name.parse() == Ok(*number),
        Value::Double(number) => name.parse() == Ok(*number),
        Value::Bool(value) => name.parse() == Ok(*value),
        _ => false,
    }
}

/// The path asks for what the value does not have, or binds a variable to an index and a key.
pub(super) struct Mismatch;

/// The result of a path.
#[derive(Default)]
pub(super) struct Found<'a> {
    /// The elements found, each with its variables.
    pub(super) elements: Vec<(Bindings<'a>, Scalar<'a>)>,
    /// True if it could have found more than one.
    pub(super) is_collection: bool,
    bindings: Bindings<'a>,
}

impl<'a> Found<'a> {
    /// Follows the steps from a value; adds what they lead to. The recursion is as deep as types
    /// are nested.
    pub(super) fn follow(&mut self, value: &'a Value, steps: &'a [Step]) -> Result<(), Mismatch> {
        let Some((step, rest)) = steps.split_first() else {
            return self.finish(value);
        };
        match (step, value) {
            (Step::Index(index), Value::Array(elements)) => match elements.get(*index) {
                Some(element) => self.follow(element, rest),
                None => Ok(()),
            },
            (Step::IndexVariable(name), Value::Array(elements)) => match self.bound(name) {
                Some(Bound::Index(index)) => match elements.get(index) {
                    Some(element) => self.follow(element, rest),
                    None => Ok(()),
                },
                Some(Bound::Key(_)) => Err(Mismatch),
                None => {
                    self.is_collection = true;
                    elements.iter().enumerate().try_for_each(|(index, element)| {
                        self.under(name, Bound::Index(index), |found| found.follow(element, rest))
                    })
                }
            },
            (_, Value::Map(entries)) => {
                self.entries(step, entries, |found, value| found.follow(value, rest))
            }
            (_, Value::WeightedSet(entries)) => self.entries(step, entries, |found, weight| {
                found.push(Scalar::Integer((*weight).into()));
                if rest.is_empty() { Ok(()) } else { Err(Mismatch) }
            }),
            _ => Err(Mismatch),
        }
    }

    /// Follows a step into a map, or into a weighted set with weights for values.
    fn entries<V>(
        &mut self,
        step: &'a Step,
        entries: &'a [(Value, V)],
        mut follow: impl FnMut(&mut Self, &'a V) -> Result<(), Mismatch>,
    ) -> Result<(), Mismatch> {
        match step {
            Step::Key(name) => match entries.iter().find(|(key, _)| is_called(key, name)) {
                Some((_, value)) => follow(self, value),
                None => Ok(()),
            },
            Step::KeyVariable(name) => match self.bound(name) {
                Some(Bound::Index(_)) => Err(Mismatch),
                Some(Bound::Key(bound)) => match entries.iter().find(|(key, _)| key == bound) {
                    Some((_, value)) => follow(self, value),
                    None => Ok(()),
                },
                None => {
                    self.is_collection = true;
                    entries.iter().try_for_each(|(key, value)| {
                        self.under(name, Bound::Key(key), |found| follow(found, value))
                    })
                }
            },
            Step::Keys => {
                self.is_collection = true;
                entries.iter().try_for_each(|(key, _)| self.finish(key))
            }
            Step::Values => {
                self.is_collection = true;
                entries.iter().try_for_each(|(_, value)| follow(self, value))
            }
            Step::Index(_) | Step::IndexVariable(_) => Err(Mismatch),
        }
    }

    /// At the end of the path: all elements of an array, all keys of a map or weighted set.
    fn finish(&mut self, value: &'a Value) -> Result<(), Mismatch> {
        match value {
            Value::Array(elements) => {
                self.is_collection = true;
                elements.iter().try_for_each(|element| self.finish(element))
            }
            Value::WeightedSet(entries) => {
                self.is_collection = true;
                entries.iter().try_for_each(|(key, _)| self.finish(key))
            }
            Value::Map(entries) => {
                self.is_collection = true;
                entries.iter().try_for_each(|(key, _)| self.finish(key))
            }
            single => {
                self.push(Scalar::of(single));
                Ok(())
            }
        }
    }

    fn push(&mut self, scalar: Scalar<'a>) {
        self.elements.push((self.bindings.clone(), scalar));
    }

    fn bound(&self, name: &str) -> Option<Bound<'a>> {
        self.bindings.iter().find(|(bound, _)| *bound == name).map(|(_, value)| *value)
    }

    fn under(
        &mut self,
        name: &'a str,
        value: Bound<'a>,
        go_on: impl FnOnce(&mut Self) -> Result<(), Mismatch>,
    ) -> Result<(), Mismatch> {
        self.bindings.push((name, value));
        let result = go_on(self);
        self.bindings.pop();
        result
    }
}
