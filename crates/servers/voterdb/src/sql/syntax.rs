//! Statements as trees.

/// A statement, and how many `?` it has.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Statement {
    Select(Select),
    Insert(Insert),
    Update(Update),
    /// `DELETE`, and `TRUNCATE TABLE` as one without a condition.
    Delete(Delete),
}

impl Statement {
    /// Number of parameters that it takes.
    pub(crate) fn params(&self) -> usize {
        match self {
            Self::Select(select) => select.params,
            Self::Insert(insert) => insert.params,
            Self::Update(update) => update.params,
            Self::Delete(delete) => delete.params,
        }
    }

    /// Returns true if it leaves everything as it is.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Self::Select(_))
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Select {
    pub(super) is_distinct: bool,
    pub(super) items: Vec<Item>,
    pub(super) from: Vec<From>,
    /// The condition of WHERE, and those of joins.
    pub(super) filter: Option<Expr>,
    pub(super) groups: Vec<Expr>,
    pub(super) having: Option<Expr>,
    pub(super) order: Vec<Order>,
    pub(super) limit: Option<Expr>,
    pub(super) offset: Option<Expr>,
    pub(super) params: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Item {
    /// `*`
    All,
    /// `v.*`
    AllOf(String),
    Expr(Expr, Option<String>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct From {
    pub(super) table: String,
    pub(super) alias: Option<String>,
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Order {
    pub(super) by: Expr,
    pub(super) is_descending: bool,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Insert {
    pub(super) table: String,
    /// None are all, in their order.
    pub(super) columns: Vec<String>,
    pub(super) values: Vec<Expr>,
    pub(super) params: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Update {
    pub(super) table: String,
    pub(super) sets: Vec<(String, Expr)>,
    pub(super) filter: Option<Expr>,
    pub(super) params: usize,
}

#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Delete {
    pub(super) table: String,
    pub(super) filter: Option<Expr>,
    pub(super) params: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Compare {
    Equal,
    Unequal,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sum {
    Add,
    Subtract,
    Multiply,
    Divide,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Mod,
    Abs,
    Upper,
    Lower,
    CharLength,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Aggregate {
    Count,
    Sum,
    Min,
    Max,
    Avg,
}

/// A value or a condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expr {
    Null,
    Int(i64),
    Float(f64),
    Text(String),
    Param(usize),
    /// A column as it was written: its table, and its name.
    Name(Option<String>, String),
    /// A column once its table is known: the place of the table in FROM, and of the column in the table.
    Column(usize, usize),
    Negate(Box<Expr>),
    Sum(Sum, Box<Expr>, Box<Expr>),
    Call(Function, Vec<Expr>),
    /// `COUNT(*)` has no argument.
    Aggregate {
        kind: Aggregate,
        is_distinct: bool,
        of: Option<Box<Expr>>,
    },
    /// An aggregate once it is known which it is of the group's.
    Computed(usize),
    Not(Box<Expr>),
    And(Vec<Expr>),
    Or(Vec<Expr>),
    Compare(Compare, Box<Expr>, Box<Expr>),
    Between(Box<Expr>, Box<Expr>, Box<Expr>),
    In(Box<Expr>, Vec<Expr>),
    Like(Box<Expr>, Box<Expr>),
    IsNull(Box<Expr>),
}

impl Expr {
    /// Returns true if it is true or false, not a value.
    pub(super) fn is_condition(&self) -> bool {
        matches!(
            self,
            Self::Not(_)
                | Self::And(_)
                | Self::Or(_)
                | Self::Compare(..)
                | Self::Between(..)
                | Self::In(..)
                | Self::Like(..)
                | Self::IsNull(_)
        )
    }

    /// The expressions that it is made of.
    pub(super) fn parts_mut(&mut self) -> Vec<&mut Expr> {
        match self {
            Self::Null
            | Self::Int(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Param(_)
            | Self::Name(..)
            | Self::Column(..)
            | Self::Computed(_) => Vec::new(),
            Self::Negate(of) | Self::Not(of) | Self::IsNull(of) => vec![of],
            Self::Aggregate { of, .. } => of.iter_mut().map(|of| &mut **of).collect(),
            Self::Sum(_, a, b) | Self::Compare(_, a, b) | Self::Like(a, b) => vec![a, b],
            Self::Between(a, b, c) => vec![a, b, c],
            Self::Call(_, all) | Self::And(all) | Self::Or(all) => all.iter_mut().collect(),
            Self::In(of, all) => std::iter::once(&mut **of).chain(all).collect(),
        }
    }

    /// The same, to look at.
    pub(super) fn parts(&self) -> Vec<&Expr> {
        match self {
            Self::Null
            | Self::Int(_)
            | Self::Float(_)
            | Self::Text(_)
            | Self::Param(_)
            | Self::Name(..)
            | Self::Column(..)
            | Self::Computed(_) => Vec::new(),
            Self::Negate(of) | Self::Not(of) | Self::IsNull(of) => vec![of],
            Self::Aggregate { of, .. } => of.iter().map(|of| &**of).collect(),
            Self::Sum(_, a, b) | Self::Compare(_, a, b) | Self::Like(a, b) => vec![a, b],
            Self::Between(a, b, c) => vec![a, b, c],
            Self::Call(_, all) | Self::And(all) | Self::Or(all) => all.iter().collect(),
            Self::In(of, all) => std::iter::once(&**of).chain(all).collect(),
        }
    }

    /// Returns true if it, or any part of it, is such.
    pub(super) fn any(&self, is_such: &impl Fn(&Expr) -> bool) -> bool {
        is_such(self) || self.parts().into_iter().any(|part| part.any(is_such))
    }
}
