//! Tensors from JSON: the cells in order, as hexadecimal digits, or by their addresses.

use super::super::value::Value;
use super::text::{ScalarText, Text};
use super::{MARK, wrong};
use serde::Deserializer;
use serde::de::{DeserializeSeed, Error, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::fmt;

/// Reads eight hexadecimal digits a cell, the largest byte first.
pub(super) fn from_hex(text: &str, cells: usize) -> Result<Vec<f32>, String> {
    let digits = text.as_bytes();
    if digits.is_empty() {
        return Err("The 'values' string does not contain any values".to_owned());
    }
    if digits.len() != cells * 8 {
        let message =
            format!("expected {} hexadecimal digits for {cells} cells", cells.saturating_mul(8));
        return Err(format!("{message}, but got {} characters", digits.len()));
    }
    let cell = |digits: &[u8; 8]| {
        let mut bits = 0;
        for digit in digits {
            bits = bits << 4 | char::from(*digit).to_digit(16)?;
        }
        Some(f32::from_bits(bits))
    };
    let values = digits.as_chunks().0.iter().map(cell).collect::<Option<Vec<_>>>();
    values.ok_or_else(|| "expected only hexadecimal digits in 'values'".to_owned())
}

/// Cells as they come, in order or by address.
struct Cells<'a> {
    label: &'a str,
    dimension: &'a str,
    values: Vec<f32>,
    /// The number that came in order; those by address are not counted.
    in_order: usize,
    by_address: bool,
}

impl<'a> Cells<'a> {
    fn new(label: &'a str, dimension: &'a str, cells: usize) -> Self {
        Self { label, dimension, values: vec![0.0; cells], in_order: 0, by_address: false }
    }

    fn push<E: Error>(&mut self, value: f64) -> Result<(), E> {
        // Too many are counted, so that the message can say how many there were.
        if let Some(slot) = self.values.get_mut(self.in_order) {
            *slot = value as f32;
        }
        self.in_order += 1;
        Ok(())
    }

    fn finish<E: Error>(self) -> Result<Value, E> {
        let cells = self.values.len();
        if !self.by_address && self.in_order == 0 {
            return Err(wrong(self.label, "The 'values' array does not contain any values"));
        }
        if self.in_order != 0 && (self.by_address || self.in_order != cells) {
            let got = self.in_order;
            return Err(wrong(self.label, format_args!("Expected {cells} values, but got {got}")));
        }
        Ok(Value::Tensor(self.values))
    }
}

/// Reads an array: of numbers, of arrays of numbers, or of objects with address and value.
pub(super) fn from_array<'de, A: SeqAccess<'de>>(
    seq: A,
    label: &str,
    dimension: &str,
    cells: usize,
) -> Result<Value, A::Error> {
    let mut cells = Cells::new(label, dimension, cells);
    ItemSeed(&mut cells).visit_seq(seq)?;
    cells.finish()
}

/// Reads an object with `values` or `cells`; `type` is not looked at, as in Vespa.
pub(super) fn from_object<'de, A: MapAccess<'de>>(
    mut map: A,
    label: &str,
    dimension: &str,
    cells: usize,
) -> Result<Value, A::Error> {
    let mut read = Cells::new(label, dimension, cells);
    // An object without cells is the tensor of zeros.
    read.by_address = true;
    while let Some(name) = map.next_key_seed(Text("a name"))? {
        match name.as_ref() {
            "values" => {
                read.by_address = false;
                map.next_value_seed(ItemSeed(&mut read))?;
            }
            "cells" => {
                let found = map.next_value_seed(CellsSeed { label, dimension, cells })?;
                for (cell, value) in found {
                    read.values[cell] = value;
                }
            }
            "type" => {
                map.next_value::<IgnoredAny>()?;
            }
            name => {
                let message = format!("'{name}' is not known in a tensor: use 'values' or 'cells'");
                return Err(wrong(label, message));
            }
        }
    }
    read.finish()
}

/// A number, an array of such, an object with address and value, or digits.
struct ItemSeed<'a, 'b>(&'a mut Cells<'b>);

impl<'de> DeserializeSeed<'de> for ItemSeed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<(), D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ItemSeed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}Error in '{}': expected numbers in a tensor", self.0.label)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<(), E> {
        self.0.push(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<(), E> {
        self.0.push(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<(), E> {
        self.0.push(value)
    }

    /// The cells as digits when nothing else was there; one number otherwise.
    fn visit_str<E: Error>(self, text: &str) -> Result<(), E> {
        if let Some(value) = number(text) {
            return self.0.push(value);
        }
        if self.0.in_order > 0 {
            let message = format!("Expected a number but got '{text}'");
            return Err(wrong(self.0.label, message));
        }
        let cells = self.0.values.len();
        self.0.values = from_hex(text, cells).map_err(|message| wrong(self.0.label, message))?;
        self.0.in_order = cells;
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while seq.next_element_seed(ItemSeed(&mut *self.0))?.is_some() {}
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<(), A::Error> {
        let cells = self.0.values.len();
        let seed = CellSeed { label: self.0.label, dimension: self.0.dimension, cells };
        let (cell, value) = seed.visit_map(map)?;
        self.0.by_address = true;
        self.0.values[cell] = value;
        Ok(())
    }
}

/// `[{"address": {"x": "0"}, "value": 1.0}, ...]` or `{"0": 1.0, ...}`: numbers of cells with their
/// values.
#[derive(Clone, Copy)]
pub(super) struct CellsSeed<'a> {
    pub(super) label: &'a str,
    pub(super) dimension: &'a str,
    pub(super) cells: usize,
}

impl<'de> DeserializeSeed<'de> for CellsSeed<'_> {
    type Value = Vec<(usize, f32)>;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CellsSeed<'_> {
    type Value = Vec<(usize, f32)>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = "Expected 'cells' to contain an array or an object";
        write!(f, "{MARK}Error in '{}': {message}", self.label)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Self::Value, A::Error> {
        let Self { label, dimension, cells } = self;
        let mut found = Vec::new();
        while let Some(cell) = seq.next_element_seed(CellSeed { label, dimension, cells })? {
            found.push(cell);
        }
        Ok(found)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let mut found = Vec::new();
        while let Some(name) = map.next_key_seed(Text("a cell"))? {
            let cell = cell_number(self.label, self.dimension, self.cells, &name)?;
            found.push((cell, map.next_value_seed(NumberSeed(self.label))? as f32));
        }
        Ok(found)
    }
}

fn cell_number<E: Error>(
    label: &str,
    dimension: &str,
    cells: usize,
    text: &str,
) -> Result<usize, E> {
    let found = text.parse().ok().filter(|cell| *cell < cells);
    found.ok_or_else(|| {
        let message = format!("there is no cell '{text}' in {dimension}[{cells}]");
        wrong(label, message)
    })
}

/// One cell with its address.
struct CellSeed<'a> {
    label: &'a str,
    dimension: &'a str,
    cells: usize,
}

impl<'de> DeserializeSeed<'de> for CellSeed<'_> {
    type Value = (usize, f32);

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<Self::Value, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for CellSeed<'_> {
    type Value = (usize, f32);

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = "expected objects with 'address' and 'value' in a tensor";
        write!(f, "{MARK}Error in '{}': {message}", self.label)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
        let (mut address, mut value) = (None, None);
        while let Some(name) = map.next_key_seed(Text("a name"))? {
            match name.as_ref() {
                "address" => {
                    let seed = AddressSeed { label: self.label, dimension: self.dimension };
                    address = Some(map.next_value_seed(seed)?);
                }
                "value" => value = Some(map.next_value_seed(NumberSeed(self.label))?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        let missing = |name: &str| {
            let cells = "Expected an object in a tensor 'cells' array to contain";
            wrong(self.label, format_args!("{cells} {name} field"))
        };
        let address = address.ok_or_else(|| missing("an 'address'"))?;
        let value = value.ok_or_else(|| missing("a 'value'"))?;
        let cell = cell_number(self.label, self.dimension, self.cells, &address)?;
        Ok((cell, value as f32))
    }
}

/// `{"x": "0"}`
struct AddressSeed<'a> {
    label: &'a str,
    dimension: &'a str,
}

impl<'de> DeserializeSeed<'de> for AddressSeed<'_> {
    type Value = String;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<String, D::Error> {
        json.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for AddressSeed<'_> {
    type Value = String;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dimension = self.dimension;
        write!(f, "{MARK}Error in '{}': expected an address {{\"{dimension}\":..}}", self.label)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<String, A::Error> {
        let mut label = None;
        while let Some(name) = map.next_key_seed(Text("a dimension"))? {
            if name != self.dimension {
                let message = format!("there is no dimension '{name}' in the tensor");
                return Err(wrong(self.label, message));
            }
            label = Some(map.next_value_seed(ScalarText(self.label))?);
        }
        let dimension = self.dimension;
        label.ok_or_else(|| wrong(self.label, format_args!("the address has no '{dimension}'")))
    }
}

/// A number, also as text.
pub(super) struct NumberSeed<'a>(pub(super) &'a str);

impl<'de> DeserializeSeed<'de> for NumberSeed<'_> {
    type Value = f64;

    fn deserialize<D: Deserializer<'de>>(self, json: D) -> Result<f64, D::Error> {
        json.deserialize_any(self)
    }
}

impl Visitor<'_> for NumberSeed<'_> {
    type Value = f64;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{MARK}Error in '{}': expected a number", self.0)
    }

    fn visit_i64<E: Error>(self, value: i64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_u64<E: Error>(self, value: u64) -> Result<f64, E> {
        Ok(value as f64)
    }

    fn visit_f64<E: Error>(self, value: f64) -> Result<f64, E> {
        Ok(value)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<f64, E> {
        let missing = || wrong(self.0, format_args!("Expected a number but got '{text}'"));
        number(text).ok_or_else(missing)
    }
}

/// A number as text. A long row of digits without a point is not one here: it is cells in
/// hexadecimal.
fn number(text: &str) -> Option<f64> {
    let digits = text.len() >= 8 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
    if digits { None } else { text.trim().parse().ok() }
}
