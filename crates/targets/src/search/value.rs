//! Values of fields and their types, as Vespa's schemas know them.
#![allow(dead_code)]

/// The type of a field, or of what a collection holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum FieldType {
    /// Unicode text.
    String,
    /// 32 bits, signed.
    Int,
    /// 64 bits, signed.
    Long,
    /// 8 bits, signed.
    Byte,
    /// IEEE 754, 32 bits.
    Float,
    /// IEEE 754, 64 bits.
    Double,
    /// True or false.
    Bool,
    /// Bytes; base64 in JSON.
    Raw,
    /// `array<...>`
    Array(Box<FieldType>),
    /// `weightedset<...>`: each key has a weight of 32 bits.
    WeightedSet(Box<FieldType>),
    /// `map<..., ...>`
    Map(Box<FieldType>, Box<FieldType>),
    /// `tensor<float>(x[n])`: so many cells.
    Tensor {
        /// The dimension's name.
        dimension: String,
        /// Number of cells.
        cells: usize,
    },
}

/// The value of one field, or of one element. Empty text and empty collections are no value and never stand
/// at the top of a field.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Value {
    String(String),
    Int(i32),
    Long(i64),
    Byte(i8),
    Float(f32),
    Double(f64),
    Bool(bool),
    Raw(Vec<u8>),
    Array(Vec<Value>),
    /// In the order in which keys came, each key once.
    WeightedSet(Vec<(Value, i32)>),
    /// In the order in which keys came, each key once.
    Map(Vec<(Value, Value)>),
    /// The cells of an indexed tensor.
    Tensor(Vec<f32>),
}
