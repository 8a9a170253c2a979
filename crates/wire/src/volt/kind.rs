//! Types of values, and the error of bytes that are none of them.

use thiserror::Error;

/// The type of a value, with its code on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(i8)]
pub enum Kind {
    /// Null without a type; has no bytes.
    Null = 1,
    /// 8 bits, -128 is null.
    TinyInt = 3,
    /// 16 bits, the least is null.
    SmallInt = 4,
    /// 32 bits, the least is null.
    Integer = 5,
    /// 64 bits, the least is null.
    BigInt = 6,
    /// A double.
    Float = 8,
    /// UTF-8.
    String = 9,
    /// Microseconds since 1970.
    Timestamp = 11,
    /// A table.
    Table = 21,
    /// 38 digits, 12 of them behind the point.
    Decimal = 22,
    /// One byte.
    Boolean = 23,
    /// Bytes.
    VarBinary = 25,
    /// A place on the earth.
    Point = 26,
    /// A polygon on the earth, not looked into here.
    Geography = 27,
    /// Values of one type.
    Array = -99,
}

impl Kind {
    /// The type with this code.
    ///
    /// # Errors
    /// [`DecodeError::Kind`] when there is none.
    #[inline]
    pub const fn from_code(code: i8) -> Result<Self, DecodeError> {
        Ok(match code {
            1 => Self::Null,
            3 => Self::TinyInt,
            4 => Self::SmallInt,
            5 => Self::Integer,
            6 => Self::BigInt,
            8 => Self::Float,
            9 => Self::String,
            11 => Self::Timestamp,
            21 => Self::Table,
            22 => Self::Decimal,
            23 => Self::Boolean,
            25 => Self::VarBinary,
            26 => Self::Point,
            27 => Self::Geography,
            -99 => Self::Array,
            _ => return Err(DecodeError::Kind(code)),
        })
    }

    /// Its code on the wire.
    #[inline]
    #[must_use]
    pub const fn code(self) -> i8 {
        self as i8
    }

    /// Its name in SQL and in VoltDB's messages.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Null => "NULL",
            Self::TinyInt => "TINYINT",
            Self::SmallInt => "SMALLINT",
            Self::Integer => "INTEGER",
            Self::BigInt => "BIGINT",
            Self::Float => "FLOAT",
            Self::String => "STRING",
            Self::Timestamp => "TIMESTAMP",
            Self::Table => "VOLTTABLE",
            Self::Decimal => "DECIMAL",
            Self::Boolean => "BOOLEAN",
            Self::VarBinary => "VARBINARY",
            Self::Point => "GEOGRAPHY_POINT",
            Self::Geography => "GEOGRAPHY",
            Self::Array => "ARRAY",
        }
    }

    /// Bytes of each of its values, where all have as many.
    pub(super) const fn bytes(self) -> Option<usize> {
        Some(match self {
            Self::Null => 0,
            Self::TinyInt | Self::Boolean => 1,
            Self::SmallInt => 2,
            Self::Integer => 4,
            Self::BigInt | Self::Float | Self::Timestamp => 8,
            Self::Decimal | Self::Point => 16,
            Self::String | Self::VarBinary | Self::Geography | Self::Table | Self::Array => {
                return None;
            }
        })
    }
}

/// Bytes that are not what the protocol has there.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum DecodeError {
    /// A value, a table or a message goes on behind the last byte.
    #[error("the bytes end in the middle of a value")]
    Cut,
    /// Unknown type.
    #[error("no type of value has the code {0}")]
    Kind(i8),
    /// A count or a length that nothing can have.
    #[error("a count or a length of {0}")]
    Length(i32),
    /// A text that is not UTF-8.
    #[error("a text that is not UTF-8")]
    Utf8,
    /// A text that must not be null is.
    #[error("a text is missing")]
    NoText,
    /// Arrays cannot hold values of this type.
    #[error("an array of {}", .0.name())]
    Element(Kind),
    /// An extension of a call is not as long as its type has it.
    #[error("extension {0} of a call has a wrong length")]
    Extension(i8),
    /// The first byte of a message is not the version that is known.
    #[error("version {0} of a message is not known")]
    Version(i8),
    /// The table that was asked for is not what came.
    #[error("the reply does not hold the table that was asked for")]
    Table,
}
