//! Values of fields and their types, as Vespa's schemas know them.

use std::fmt;

/// The type of a field, or of what a collection holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FieldType {
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
    /// `tensor<float>(x[n])`: this many cells.
    Tensor {
        /// The dimension's name.
        dimension: String,
        /// Number of cells.
        cells: usize,
    },
}

/// The type of a weight, for updates that address the weight of a key.
pub(crate) static WEIGHT: FieldType = FieldType::Int;

impl FieldType {
    /// Can be the key of a weighted set or a map.
    pub(crate) fn is_key(&self) -> bool {
        !matches!(
            self,
            Self::Raw | Self::Array(_) | Self::WeightedSet(_) | Self::Map(..) | Self::Tensor { .. }
        )
    }

    /// Can be counted up and down.
    pub(crate) fn is_number(&self) -> bool {
        matches!(self, Self::Int | Self::Long | Self::Byte | Self::Float | Self::Double)
    }
}

/// As it is written in a schema.
impl fmt::Display for FieldType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::String => f.write_str("string"),
            Self::Int => f.write_str("int"),
            Self::Long => f.write_str("long"),
            Self::Byte => f.write_str("byte"),
            Self::Float => f.write_str("float"),
            Self::Double => f.write_str("double"),
            Self::Bool => f.write_str("bool"),
            Self::Raw => f.write_str("raw"),
            Self::Array(inner) => write!(f, "array<{inner}>"),
            Self::WeightedSet(inner) => write!(f, "weightedset<{inner}>"),
            Self::Map(key, value) => write!(f, "map<{key},{value}>"),
            Self::Tensor { dimension, cells } => write!(f, "tensor<float>({dimension}[{cells}])"),
        }
    }
}

/// The value of one field, or of one element. Empty text and empty collections are no value and
/// never stand at the top of a field.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// Text.
    String(String),
    /// `int`.
    Int(i32),
    /// `long`.
    Long(i64),
    /// `byte`.
    Byte(i8),
    /// `float`.
    Float(f32),
    /// `double`.
    Double(f64),
    /// `bool`.
    Bool(bool),
    /// Bytes.
    Raw(Vec<u8>),
    /// Values in order.
    Array(Vec<Value>),
    /// In the order in which keys came, each key once.
    WeightedSet(Vec<(Value, i32)>),
    /// In the order in which keys came, each key once.
    Map(Vec<(Value, Value)>),
    /// The cells of an indexed tensor.
    Tensor(Vec<f32>),
}

impl Value {
    /// Is what Vespa treats as no value at the top of a field.
    pub(crate) fn is_empty(&self) -> bool {
        match self {
            Self::String(text) => text.is_empty(),
            Self::Raw(bytes) => bytes.is_empty(),
            Self::Array(items) => items.is_empty(),
            Self::WeightedSet(items) => items.is_empty(),
            Self::Map(items) => items.is_empty(),
            Self::Int(_)
            | Self::Long(_)
            | Self::Byte(_)
            | Self::Float(_)
            | Self::Double(_)
            | Self::Bool(_)
            | Self::Tensor(_) => false,
        }
    }
}
