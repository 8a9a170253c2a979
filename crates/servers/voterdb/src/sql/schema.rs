//! The tables and views, and their columns.

use crate::result::Type;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) kind: Type,
    /// Characters of a text, at most.
    pub(crate) chars_max: usize,
    pub(crate) is_nullable: bool,
}

/// A table or a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Contestants,
    Votes,
    AreaCodeState,
    VotesByPhone,
    VotesByState,
    HelloWorld,
}

/// All of them.
pub(crate) const TABLES: [Table; 6] = [
    Table::AreaCodeState,
    Table::Contestants,
    Table::HelloWorld,
    Table::Votes,
    Table::VotesByState,
    Table::VotesByPhone,
];

const fn number(name: &'static str, kind: Type) -> Column {
    Column { name, kind, chars_max: 0, is_nullable: false }
}

const fn text(name: &'static str, chars_max: usize) -> Column {
    Column { name, kind: Type::Text, chars_max, is_nullable: false }
}

const fn nullable(column: Column) -> Column {
    Column { is_nullable: true, ..column }
}

const CONTESTANTS: [Column; 2] =
    [number("CONTESTANT_NUMBER", Type::Integer), text("CONTESTANT_NAME", 50)];
const VOTES: [Column; 3] = [
    number("PHONE_NUMBER", Type::BigInt),
    text("STATE", 2),
    number("CONTESTANT_NUMBER", Type::Integer),
];
const AREA_CODE_STATE: [Column; 2] = [number("AREA_CODE", Type::SmallInt), text("STATE", 2)];
const BY_PHONE: [Column; 2] =
    [number("PHONE_NUMBER", Type::BigInt), number("NUM_VOTES", Type::BigInt)];
const BY_STATE: [Column; 3] = [
    number("CONTESTANT_NUMBER", Type::Integer),
    text("STATE", 2),
    number("NUM_VOTES", Type::BigInt),
];
/// As in VoltDB's tutorial.
const HELLO_WORLD: [Column; 3] =
    [nullable(text("HELLO", 15)), nullable(text("WORLD", 15)), text("DIALECT", 15)];

impl Table {
    /// Returns the table with this name, ignoring case.
    pub(crate) fn find(name: &str) -> Option<Self> {
        TABLES.into_iter().find(|table| table.name().eq_ignore_ascii_case(name))
    }

    /// In capitals.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Contestants => "CONTESTANTS",
            Self::Votes => "VOTES",
            Self::AreaCodeState => "AREA_CODE_STATE",
            Self::VotesByPhone => "V_VOTES_BY_PHONE_NUMBER",
            Self::VotesByState => "V_VOTES_BY_CONTESTANT_NUMBER_STATE",
            Self::HelloWorld => "HELLOWORLD",
        }
    }

    pub(crate) fn columns(self) -> &'static [Column] {
        match self {
            Self::Contestants => &CONTESTANTS,
            Self::Votes => &VOTES,
            Self::AreaCodeState => &AREA_CODE_STATE,
            Self::VotesByPhone => &BY_PHONE,
            Self::VotesByState => &BY_STATE,
            Self::HelloWorld => &HELLO_WORLD,
        }
    }

    /// A view follows its table and cannot be changed.
    pub(crate) fn is_view(self) -> bool {
        matches!(self, Self::VotesByPhone | Self::VotesByState)
    }

    /// The column that says which partition a row is in.
    pub(crate) fn partition_column(self) -> Option<&'static str> {
        match self {
            Self::Votes | Self::VotesByPhone => Some("PHONE_NUMBER"),
            Self::HelloWorld => Some("DIALECT"),
            _ => None,
        }
    }

    /// The columns of its key.
    pub(crate) fn key(self) -> &'static [&'static str] {
        match self {
            Self::Contestants => &["CONTESTANT_NUMBER"],
            Self::AreaCodeState => &["AREA_CODE"],
            Self::HelloWorld => &["DIALECT"],
            _ => &[],
        }
    }
}
