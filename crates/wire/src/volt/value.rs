//! Types and values, with the values that stand for null.

mod table;

pub use table::{Column, Row, Rows, TableView, TableWriter, Values};

use super::kind::{DecodeError, Kind};
use super::scan::{Scan, put_counted};

/// The FLOAT that is null in messages.
const NULL_FLOAT: f64 = -1.7e308;
/// The degrees of a point that is null.
const NULL_DEGREES: f64 = 360.0;

/// One value, borrowed from the message it came in.
///
/// A value that means null in its type (the least whole number, say) looks the same on the wire
/// and is read as [`Value::Null`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'a> {
    /// Null, of whatever type.
    Null,
    /// TINYINT.
    TinyInt(i8),
    /// SMALLINT.
    SmallInt(i16),
    /// INTEGER.
    Integer(i32),
    /// BIGINT.
    BigInt(i64),
    /// FLOAT.
    Float(f64),
    /// VARCHAR.
    String(&'a str),
    /// TIMESTAMP, microseconds since 1970.
    Timestamp(i64),
    /// DECIMAL, in units of 10^-12.
    Decimal(i128),
    /// BOOLEAN.
    Boolean(bool),
    /// VARBINARY.
    VarBinary(&'a [u8]),
    /// GEOGRAPHY_POINT.
    Point {
        /// Degrees to the east.
        longitude: f64,
        /// Degrees to the north.
        latitude: f64,
    },
    /// GEOGRAPHY, as it stands in messages.
    Geography(&'a [u8]),
    /// A table.
    Table(TableView<'a>),
    /// Values of one type.
    Array(ArrayView<'a>),
}

impl<'a> Value<'a> {
    /// Its type; [`Kind::Null`] for null.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        match self {
            Self::Null => Kind::Null,
            Self::TinyInt(_) => Kind::TinyInt,
            Self::SmallInt(_) => Kind::SmallInt,
            Self::Integer(_) => Kind::Integer,
            Self::BigInt(_) => Kind::BigInt,
            Self::Float(_) => Kind::Float,
            Self::String(_) => Kind::String,
            Self::Timestamp(_) => Kind::Timestamp,
            Self::Decimal(_) => Kind::Decimal,
            Self::Boolean(_) => Kind::Boolean,
            Self::VarBinary(_) => Kind::VarBinary,
            Self::Point { .. } => Kind::Point,
            Self::Geography(_) => Kind::Geography,
            Self::Table(_) => Kind::Table,
            Self::Array(_) => Kind::Array,
        }
    }

    /// The number, of a whole number of whatever width and of a timestamp.
    #[inline]
    #[must_use]
    pub fn long(&self) -> Option<i64> {
        match *self {
            Self::TinyInt(value) => Some(value.into()),
            Self::SmallInt(value) => Some(value.into()),
            Self::Integer(value) => Some(value.into()),
            Self::BigInt(value) | Self::Timestamp(value) => Some(value),
            _ => None,
        }
    }

    /// The text of a VARCHAR.
    #[inline]
    #[must_use]
    pub const fn text(&self) -> Option<&'a str> {
        match *self {
            Self::String(value) => Some(value),
            _ => None,
        }
    }

    /// The bytes of a VARBINARY.
    #[inline]
    #[must_use]
    pub const fn bytes(&self) -> Option<&'a [u8]> {
        match *self {
            Self::VarBinary(value) => Some(value),
            _ => None,
        }
    }

    /// Reads a value of this type.
    #[inline]
    pub(super) fn read(kind: Kind, scan: &mut Scan<'a>) -> Result<Self, DecodeError> {
        /// Null where the number is the one that stands for it.
        macro_rules! unless_least {
            ($number:expr, $type:ty, $made:expr) => {
                match $number {
                    <$type>::MIN => Self::Null,
                    number => $made(number),
                }
            };
        }
        Ok(match kind {
            Kind::Null => Self::Null,
            Kind::TinyInt => unless_least!(scan.i8()?, i8, Self::TinyInt),
            Kind::SmallInt => unless_least!(scan.i16()?, i16, Self::SmallInt),
            Kind::Integer => unless_least!(scan.i32()?, i32, Self::Integer),
            Kind::BigInt => unless_least!(scan.i64()?, i64, Self::BigInt),
            Kind::Timestamp => unless_least!(scan.i64()?, i64, Self::Timestamp),
            Kind::Float => {
                let number = scan.f64()?;
                // The engine's own null is the least double there is.
                if number == NULL_FLOAT || number == f64::MIN {
                    Self::Null
                } else {
                    Self::Float(number)
                }
            }
            Kind::Decimal => {
                unless_least!(scan.array().map(i128::from_be_bytes)?, i128, Self::Decimal)
            }
            Kind::Boolean => match scan.i8()? {
                i8::MIN => Self::Null,
                byte => Self::Boolean(byte != 0),
            },
            Kind::String => scan.text()?.map_or(Self::Null, Self::String),
            Kind::VarBinary => scan.counted()?.map_or(Self::Null, Self::VarBinary),
            Kind::Geography => scan.counted()?.map_or(Self::Null, Self::Geography),
            Kind::Point => {
                let (longitude, latitude) = (scan.f64()?, scan.f64()?);
                if longitude == NULL_DEGREES && latitude == NULL_DEGREES {
                    Self::Null
                } else {
                    Self::Point { longitude, latitude }
                }
            }
            Kind::Table => match scan.counted()? {
                Some(bytes) => Self::Table(TableView::read(bytes)?),
                None => Self::Null,
            },
            Kind::Array => Self::Array(ArrayView::read(scan)?),
        })
    }

    /// Appends the value without its type. Null has no bytes of its own: see [`put_null`].
    #[inline]
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        match self {
            Self::Null => {}
            Self::TinyInt(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::SmallInt(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Integer(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::BigInt(value) | Self::Timestamp(value) => {
                out.extend_from_slice(&value.to_be_bytes());
            }
            Self::Float(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::String(value) => put_counted(Some(value.as_bytes()), out),
            Self::Decimal(value) => out.extend_from_slice(&value.to_be_bytes()),
            Self::Boolean(value) => out.push(u8::from(*value)),
            Self::VarBinary(value) | Self::Geography(value) => put_counted(Some(value), out),
            Self::Point { longitude, latitude } => {
                out.extend_from_slice(&longitude.to_be_bytes());
                out.extend_from_slice(&latitude.to_be_bytes());
            }
            Self::Table(table) => put_counted(Some(table.bytes()), out),
            Self::Array(array) => array.put(out),
        }
    }

    /// Appends the type and the value.
    #[inline]
    pub(super) fn put_typed(&self, out: &mut Vec<u8>) {
        out.push(self.kind().code() as u8);
        self.put(out);
    }

    /// Appends the value as one of a column of this type, whole numbers in the column's width.
    #[inline]
    pub(super) fn put_as(&self, kind: Kind, out: &mut Vec<u8>) {
        if self.kind() == kind {
            return self.put(out);
        }
        let fitting = self.long().and_then(|number| match kind {
            Kind::TinyInt => i8::try_from(number).ok().map(Value::TinyInt),
            Kind::SmallInt => i16::try_from(number).ok().map(Value::SmallInt),
            Kind::Integer => i32::try_from(number).ok().map(Value::Integer),
            Kind::BigInt => Some(Value::BigInt(number)),
            Kind::Timestamp => Some(Value::Timestamp(number)),
            _ => None,
        });
        match fitting {
            Some(value) => value.put(out),
            None => {
                debug_assert!(*self == Value::Null, "{self:?} in a column of {}", kind.name());
                put_null(kind, out);
            }
        }
    }
}

/// Appends the null of this type, without the type. An array cannot be null and is empty instead.
pub(super) fn put_null(kind: Kind, out: &mut Vec<u8>) {
    match kind {
        Kind::Null => {}
        Kind::TinyInt | Kind::Boolean => out.extend_from_slice(&i8::MIN.to_be_bytes()),
        Kind::SmallInt => out.extend_from_slice(&i16::MIN.to_be_bytes()),
        Kind::Integer => out.extend_from_slice(&i32::MIN.to_be_bytes()),
        Kind::BigInt | Kind::Timestamp => out.extend_from_slice(&i64::MIN.to_be_bytes()),
        Kind::Float => out.extend_from_slice(&NULL_FLOAT.to_be_bytes()),
        Kind::Decimal => out.extend_from_slice(&i128::MIN.to_be_bytes()),
        Kind::Point => {
            out.extend_from_slice(&NULL_DEGREES.to_be_bytes());
            out.extend_from_slice(&NULL_DEGREES.to_be_bytes());
        }
        Kind::String | Kind::VarBinary | Kind::Geography | Kind::Table => put_counted(None, out),
        Kind::Array => ArrayView { kind: Kind::TinyInt, count: 0, bytes: &[] }.put(out),
    }
}

/// Values of one type, borrowed from the message they came in or from the [`ArrayWriter`] that made them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayView<'a> {
    kind: Kind,
    count: u32,
    bytes: &'a [u8],
}

impl<'a> ArrayView<'a> {
    fn read(scan: &mut Scan<'a>) -> Result<Self, DecodeError> {
        let kind = scan.kind()?;
        let count = match kind {
            Kind::Null | Kind::Array => return Err(DecodeError::Element(kind)),
            // Bytes are counted in 32 bits.
            Kind::TinyInt => {
                let count = scan.i32()?;
                u32::try_from(count).map_err(|_| DecodeError::Length(count))?
            }
            _ => scan.count()?.into(),
        };
        let before = scan.rest();
        match kind.bytes() {
            Some(bytes) => {
                scan.take(bytes * count as usize)?;
            }
            None => {
                for _ in 0..count {
                    scan.counted()?;
                }
            }
        }
        let bytes = &before[..before.len() - scan.rest().len()];
        Ok(Self { kind, count, bytes })
    }

    /// The type of all its values.
    #[must_use]
    pub const fn kind(&self) -> Kind {
        self.kind
    }

    /// Number of values that it has.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.count as usize
    }

    /// Returns true if it has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Its values, in their order.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, DecodeError>> + use<'a> {
        let (kind, mut scan) = (self.kind, Scan::new(self.bytes));
        (0..self.count).map(move |_| Value::read(kind, &mut scan))
    }

    fn put(&self, out: &mut Vec<u8>) {
        out.push(self.kind.code() as u8);
        if self.kind == Kind::TinyInt {
            out.extend_from_slice(&self.count.to_be_bytes());
        } else {
            out.extend_from_slice(&(self.count as u16).to_be_bytes());
        }
        out.extend_from_slice(self.bytes);
    }
}

/// Makes an array value by value.
#[derive(Clone, Debug)]
pub struct ArrayWriter {
    kind: Kind,
    count: u32,
    bytes: Vec<u8>,
}

impl ArrayWriter {
    /// An empty array of this type, which is neither [`Kind::Null`] nor [`Kind::Array`].
    ///
    /// # Panics
    /// In debug builds, for those two.
    #[must_use]
    pub fn new(kind: Kind) -> Self {
        debug_assert!(!matches!(kind, Kind::Null | Kind::Array), "an array of {}", kind.name());
        Self { kind, count: 0, bytes: Vec::new() }
    }

    /// Appends a value of the array's type, or null. At most 32,767 fit, of TINYINT 2^31 - 1.
    ///
    /// # Panics
    /// In debug builds, when the value is of another type.
    pub fn push(&mut self, value: Value<'_>) -> &mut Self {
        debug_assert!(self.kind == Kind::TinyInt || self.count < 0x7fff, "a full array");
        value.put_as(self.kind, &mut self.bytes);
        self.count += 1;
        self
    }

    /// The array as a value of a call.
    #[must_use]
    pub fn view(&self) -> ArrayView<'_> {
        ArrayView { kind: self.kind, count: self.count, bytes: &self.bytes }
    }
}
