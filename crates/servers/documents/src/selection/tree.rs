//! The tree of a selection, and its text.

use super::pattern::Pattern;
use std::fmt::{self, Display, Formatter};

/// A condition.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Constant(bool),
    /// Documents of exactly this type.
    DocumentType(String),
    Comparison(Box<Comparison>),
    /// `and`; at least two.
    All(Vec<Node>),
    /// `or`; at least two.
    Any(Vec<Node>),
    Not(Box<Node>),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) struct Comparison {
    pub(super) left: Expression,
    pub(super) operator: Operator,
    pub(super) right: Expression,
    /// The compiled right side, when it is a literal of `=~`, or one of `=` with wildcards.
    pub(super) pattern: Option<Pattern>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Equal,
    NotEqual,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    Glob,
    Regex,
}

impl Operator {
    pub(super) const ALL: [Self; 8] = [
        Self::Equal,
        Self::NotEqual,
        Self::Less,
        Self::LessOrEqual,
        Self::Greater,
        Self::GreaterOrEqual,
        Self::Glob,
        Self::Regex,
    ];

    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Equal => "==",
            Self::NotEqual => "!=",
            Self::Less => "<",
            Self::LessOrEqual => "<=",
            Self::Greater => ">",
            Self::GreaterOrEqual => ">=",
            Self::Glob => "=",
            Self::Regex => "=~",
        }
    }
}

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Expression {
    Null,
    Bool(bool),
    Integer(i64),
    /// Always finite.
    Float(f64),
    Text(String),
    Id(IdPart),
    /// `$name`
    Variable(String),
    Now,
    Field(Field),
    Call(Function, Box<Expression>),
    Arithmetic(Box<Expression>, Arithmetic, Box<Expression>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum IdPart {
    Whole,
    Scheme,
    Namespace,
    Type,
    Specific,
    User,
    Group,
    Bucket,
    Gid,
}

impl IdPart {
    pub(super) const NAMED: [(&'static str, Self); 8] = [
        ("scheme", Self::Scheme),
        ("namespace", Self::Namespace),
        ("type", Self::Type),
        ("specific", Self::Specific),
        ("user", Self::User),
        ("group", Self::Group),
        ("bucket", Self::Bucket),
        ("gid", Self::Gid),
    ];
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Lowercase,
    Hash,
    Abs,
}

impl Function {
    pub(super) const ALL: [Self; 3] = [Self::Lowercase, Self::Hash, Self::Abs];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Lowercase => "lowercase",
            Self::Hash => "hash",
            Self::Abs => "abs",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Arithmetic {
    Add,
    Subtract,
    Multiply,
    Divide,
    Remainder,
}

impl Arithmetic {
    pub(super) const ALL: [Self; 5] =
        [Self::Add, Self::Subtract, Self::Multiply, Self::Divide, Self::Remainder];

    pub(super) const fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::Remainder => "%",
        }
    }

    /// Operators of higher power bind closer; conditions have the powers 1 to 3.
    pub(super) const fn power(self) -> u8 {
        match self {
            Self::Add | Self::Subtract => 4,
            Self::Multiply | Self::Divide => 5,
            Self::Remainder => 6,
        }
    }
}

/// A field, or something in it.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Field {
    pub(super) document_type: String,
    pub(super) name: String,
    pub(super) steps: Vec<Step>,
}

/// A step into a collection.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Step {
    /// `[3]`
    Index(usize),
    /// `[$i]`
    IndexVariable(String),
    /// `{key}`
    Key(String),
    /// `{$k}`
    KeyVariable(String),
    /// `.key`
    Keys,
    /// `.value`
    Values,
}

impl Display for Node {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Constant(value) => write!(f, "{value}"),
            Self::DocumentType(name) => f.write_str(name),
            Self::Comparison(comparison) => comparison.fmt(f),
            Self::All(terms) => {
                join(f, terms, " and ", |term| matches!(term, Self::All(_) | Self::Any(_)))
            }
            Self::Any(terms) => join(f, terms, " or ", |term| matches!(term, Self::Any(_))),
            Self::Not(term) if matches!(**term, Self::All(_) | Self::Any(_)) => {
                write!(f, "not ({term})")
            }
            Self::Not(term) => write!(f, "not {term}"),
        }
    }
}

fn join(
    f: &mut Formatter<'_>,
    terms: &[Node],
    word: &str,
    needs_parentheses: impl Fn(&Node) -> bool,
) -> fmt::Result {
    for (number, term) in terms.iter().enumerate() {
        if number > 0 {
            f.write_str(word)?;
        }
        if needs_parentheses(term) { write!(f, "({term})") } else { term.fmt(f) }?;
    }
    Ok(())
}

impl Display for Comparison {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.left, self.operator.symbol(), self.right)
    }
}

impl Expression {
    /// Numbers have signs and points, which functions behind them would be read into.
    fn is_plain(&self) -> bool {
        !matches!(self, Self::Integer(_) | Self::Float(_) | Self::Arithmetic(..))
    }

    fn power(&self) -> u8 {
        match self {
            Self::Arithmetic(_, operator, _) => operator.power(),
            _ => u8::MAX,
        }
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Null => f.write_str("null"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Integer(value) => write!(f, "{value}"),
            Self::Float(value) => f.write_str(&float(*value)),
            Self::Text(text) => f.write_str(&quoted(text)),
            Self::Id(part) => {
                f.write_str("id")?;
                match IdPart::NAMED.iter().find(|(_, named)| named == part) {
                    Some((name, _)) => write!(f, ".{name}"),
                    None => Ok(()),
                }
            }
            Self::Variable(name) => write!(f, "${name}"),
            Self::Now => f.write_str("now()"),
            Self::Field(field) => field.fmt(f),
            Self::Call(function, of) if of.is_plain() => write!(f, "{of}.{}()", function.name()),
            Self::Call(function, of) => write!(f, "({of}).{}()", function.name()),
            Self::Arithmetic(left, operator, right) => {
                let power = operator.power();
                let symbol = operator.symbol();
                // Operators of a power are read from the left.
                match (left.power() < power, right.power() <= power) {
                    (false, false) => write!(f, "{left} {symbol} {right}"),
                    (true, false) => write!(f, "({left}) {symbol} {right}"),
                    (false, true) => write!(f, "{left} {symbol} ({right})"),
                    (true, true) => write!(f, "({left}) {symbol} ({right})"),
                }
            }
        }
    }
}

impl Display for Field {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.document_type, self.name)?;
        self.steps.iter().try_for_each(|step| match step {
            Step::Index(index) => write!(f, "[{index}]"),
            Step::IndexVariable(name) => write!(f, "[${name}]"),
            Step::Key(key) => {
                write!(f, "{{\"{}\"}}", key.replace('\\', "\\\\").replace('"', "\\\""))
            }
            Step::KeyVariable(name) => write!(f, "{{${name}}}"),
            Step::Keys => f.write_str(".key"),
            Step::Values => f.write_str(".value"),
        })
    }
}

/// The language knows a number with a fraction by its point, and Rust leaves it out of large ones.
fn float(value: f64) -> String {
    let text = format!("{value:?}");
    match text.split_once('e') {
        Some((digits, exponent)) if !digits.contains('.') => format!("{digits}.0e{exponent}"),
        _ => text,
    }
}

/// A text as a literal of the language.
pub(crate) fn quoted(text: &str) -> String {
    let mut literal = String::with_capacity(text.len() + 2);
    literal.push('"');
    for c in text.chars() {
        match c {
            '"' => literal.push_str("\\\""),
            '\\' => literal.push_str("\\\\"),
            '\t' => literal.push_str("\\t"),
            '\n' => literal.push_str("\\n"),
            '\r' => literal.push_str("\\r"),
            '\u{c}' => literal.push_str("\\f"),
            '\0'..='\x1f' | '\x7f' => literal.push_str(&format!("\\x{:02x}", u32::from(c))),
            other => literal.push(other),
        }
    }
    literal.push('"');
    literal
}
