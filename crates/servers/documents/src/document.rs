//! A document: its id and its values.

use super::schema::Schema;
use super::value::Value;

/// The values of a document of one type, by field. Missing fields have no value.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values {
    document_type: u16,
    /// In the order of the field numbers; never an empty value.
    fields: Vec<(u16, Value)>,
}

impl Values {
    /// A document of this type without any value.
    pub fn new(schema: &Schema) -> Self {
        Self { document_type: schema.number(), fields: Vec::new() }
    }

    /// The number of the document type.
    pub fn document_type(&self) -> u16 {
        self.document_type
    }

    /// The value of a field.
    pub(crate) fn get(&self, field: usize) -> Option<&Value> {
        let found = self.fields.binary_search_by_key(&field, |(number, _)| usize::from(*number));
        found.ok().map(|at| &self.fields[at].1)
    }

    /// Sets or, with none or an empty value, takes away the value of a field.
    pub fn set(&mut self, field: usize, value: Option<Value>) {
        let number = field as u16; // A type has at most 1000 fields.
        let value = value.filter(|value| !value.is_empty());
        match (self.fields.binary_search_by_key(&number, |(number, _)| *number), value) {
            (Ok(at), Some(value)) => self.fields[at].1 = value,
            (Ok(at), None) => {
                self.fields.remove(at);
            }
            (Err(at), Some(value)) => self.fields.insert(at, (number, value)),
            (Err(_), None) => {}
        }
    }

    /// Takes the value of a field out.
    pub(crate) fn take(&mut self, field: usize) -> Option<Value> {
        let found = self.fields.binary_search_by_key(&field, |(number, _)| usize::from(*number));
        found.ok().map(|at| self.fields.remove(at).1)
    }

    /// The values that are there, in the order of the fields.
    pub fn iter(&self) -> impl Iterator<Item = (usize, &Value)> {
        self.fields.iter().map(|(number, value)| (usize::from(*number), value))
    }
}

/// A whole document.
#[derive(Clone, Debug, PartialEq)]
pub struct Document {
    /// `id:namespace:type:[n=number|g=group]:name`
    pub id: String,
    /// The values of its fields.
    pub values: Values,
}
