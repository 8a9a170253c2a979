//! Asks the tree of a selection about a document.

use super::field_path::{Found, Mismatch};
use super::scalar::{Bindings, Scalar, Truth, compare};
use super::tree::{Arithmetic, Comparison, Expression, Field, Function, IdPart, Node};
use super::{EvaluationError, MAX_BINDINGS, MAX_TEXT_BYTES, Subject};
use plimsoll_wire::vespa::{Scope, hash_location};
use std::borrow::Cow;

/// Evaluates a node for a document.
pub(super) fn evaluate<S: Subject + ?Sized>(
    node: &Node,
    subject: &S,
    now_s: i64,
) -> Result<Truth, EvaluationError> {
    Ok(Evaluator { subject, now_s }.node(node)?.combined())
}

/// The results of a condition for each way of binding its variables. A condition without variables can
/// have several results too: one for each kind of element of a collection.
#[derive(Clone, Default)]
struct Outcomes<'a> {
    /// One bit for each [`Truth`] that holds without variables.
    free: u8,
    bound: Vec<(Bindings<'a>, Truth)>,
}

const fn bit(truth: Truth) -> u8 {
    1 << truth as u8
}

fn truths(bits: u8) -> impl Iterator<Item = Truth> {
    Truth::ALL.into_iter().filter(move |truth| bits & bit(*truth) != 0)
}

impl<'a> Outcomes<'a> {
    fn one(truth: Truth) -> Self {
        Self { free: bit(truth), bound: Vec::new() }
    }

    fn is_only(&self, truth: Truth) -> bool {
        self.free == bit(truth) && self.bound.is_empty()
    }

    fn add(&mut self, bindings: Bindings<'a>, truth: Truth) {
        if bindings.is_empty() {
            self.free |= bit(truth);
        } else {
            self.bound.push((bindings, truth));
        }
    }

    fn not(mut self) -> Self {
        self.free = truths(self.free).fold(0, |bits, truth| bits | bit(truth.not()));
        self.bound.iter_mut().for_each(|(_, truth)| *truth = truth.not());
        self
    }

    /// Joins whatever goes together: outcomes whose common variables stand for the same.
    fn join(self, other: Self, operation: fn(Truth, Truth) -> Truth) -> Self {
        let mut joined = Self::default();
        for left in truths(self.free) {
            for right in truths(other.free) {
                joined.free |= bit(operation(left, right));
            }
        }
        if self.bound.is_empty() && other.bound.is_empty() {
            return joined;
        }
        let pairs = self.bound.len().saturating_mul(other.bound.len());
        if pairs > MAX_BINDINGS {
            return Self::one(Truth::Invalid);
        }
        for (bindings, left) in &self.bound {
            for right in truths(other.free) {
                joined.bound.push((bindings.clone(), operation(*left, right)));
            }
        }
        for (bindings, right) in &other.bound {
            for left in truths(self.free) {
                joined.bound.push((bindings.clone(), operation(left, *right)));
            }
            for (own, left) in &self.bound {
                if let Some(union) = union(own, bindings) {
                    joined.bound.push((union, operation(*left, *right)));
                }
            }
        }
        if joined.bound.len() > MAX_BINDINGS {
            return Self::one(Truth::Invalid);
        }
        joined
    }

    /// One way of being true is enough.
    fn combined(&self) -> Truth {
        let bits = self.bound.iter().fold(self.free, |bits, (_, truth)| bits | bit(*truth));
        if bits & bit(Truth::True) != 0 {
            Truth::True
        } else if bits == bit(Truth::Invalid) {
            Truth::Invalid
        } else {
            Truth::False
        }
    }
}

/// All variables of both, unless one stands for two things.
fn union<'a>(left: &Bindings<'a>, right: &Bindings<'a>) -> Option<Bindings<'a>> {
    let mut union = left.clone();
    for (name, value) in right {
        match left.iter().find(|(own, _)| own == name) {
            Some((_, own)) if own == value => {}
            Some(_) => return None,
            None => union.push((name, *value)),
        }
    }
    Some(union)
}

/// The value of an expression for a document.
enum Evaluated<'a> {
    One(Scalar<'a>),
    /// The elements of a collection; at least one.
    Many(Vec<(Bindings<'a>, Scalar<'a>)>),
}

struct Evaluator<'a, S: ?Sized> {
    subject: &'a S,
    now_s: i64,
}

impl<'a, S: Subject + ?Sized> Evaluator<'a, S> {
    fn node(&self, node: &'a Node) -> Result<Outcomes<'a>, EvaluationError> {
        match node {
            Node::Constant(value) => Ok(Outcomes::one((*value).into())),
            Node::DocumentType(name) => {
                Ok(Outcomes::one((name == self.subject.document_type()).into()))
            }
            Node::Comparison(comparison) => self.comparison(comparison),
            Node::All(terms) => self.join(terms, Truth::False, Truth::and),
            Node::Any(terms) => self.join(terms, Truth::True, Truth::or),
            Node::Not(term) => Ok(self.node(term)?.not()),
        }
    }

    /// Joins terms until the result can change no more.
    fn join(
        &self,
        terms: &'a [Node],
        decisive: Truth,
        operation: fn(Truth, Truth) -> Truth,
    ) -> Result<Outcomes<'a>, EvaluationError> {
        let mut joined = Outcomes::one(decisive.not());
        for term in terms {
            joined = joined.join(self.node(term)?, operation);
            if joined.is_only(decisive) {
                break;
            }
        }
        Ok(joined)
    }

    fn comparison(&self, comparison: &'a Comparison) -> Result<Outcomes<'a>, EvaluationError> {
        let left = self.expression(&comparison.left)?;
        let right = self.expression(&comparison.right)?;
        let compared = |left: &Scalar<'_>, right: &Scalar<'_>| {
            compare(left, comparison.operator, right, comparison.pattern.as_ref())
        };
        let mut outcomes = Outcomes::default();
        match (left, right) {
            (Evaluated::One(left), Evaluated::One(right)) => {
                outcomes = Outcomes::one(compared(&left, &right));
            }
            (Evaluated::Many(elements), Evaluated::One(right)) => {
                for (bindings, left) in elements {
                    outcomes.add(bindings, compared(&left, &right));
                }
            }
            (Evaluated::One(left), Evaluated::Many(elements)) => {
                for (bindings, right) in elements {
                    outcomes.add(bindings, compared(&left, &right));
                }
            }
            // Two collections compare their sizes and, when those are equal, element with element.
            (Evaluated::Many(left), Evaluated::Many(right)) if left.len() != right.len() => {
                let size = |elements: &[_]| Scalar::Integer(elements.len() as i64);
                let truth = compare(&size(&left), comparison.operator, &size(&right), None);
                outcomes = Outcomes::one(truth);
            }
            (Evaluated::Many(left), Evaluated::Many(right)) => {
                let mut pairs = left.iter().zip(&right);
                let wrong = pairs.find_map(|((_, left), (_, right))| {
                    Some(compared(left, right)).filter(|truth| *truth != Truth::True)
                });
                outcomes = Outcomes::one(wrong.unwrap_or(Truth::True));
            }
        }
        Ok(outcomes)
    }

    fn expression(&self, expression: &'a Expression) -> Result<Evaluated<'a>, EvaluationError> {
        let scalar = match expression {
            Expression::Field(field) => return Ok(self.field(field)),
            Expression::Null => Scalar::Null,
            Expression::Bool(value) => Scalar::Integer((*value).into()),
            Expression::Integer(number) => Scalar::Integer(*number),
            Expression::Float(number) => Scalar::Float(*number),
            Expression::Text(text) => Scalar::Text(Cow::Borrowed(text)),
            Expression::Id(part) => self.id(*part),
            // Nothing sets variables outside of field paths.
            Expression::Variable(_) => Scalar::Invalid,
            Expression::Now => Scalar::Integer(self.now_s),
            Expression::Call(function, of) => call(*function, self.scalar(of)?),
            Expression::Arithmetic(left, operator, right) => {
                arithmetic(self.scalar(left)?, *operator, self.scalar(right)?)?
            }
        };
        Ok(Evaluated::One(scalar))
    }

    /// The same for where collections have no meaning.
    fn scalar(&self, expression: &'a Expression) -> Result<Scalar<'a>, EvaluationError> {
        Ok(match self.expression(expression)? {
            Evaluated::One(scalar) => scalar,
            Evaluated::Many(_) => Scalar::Invalid,
        })
    }

    fn field(&self, field: &'a Field) -> Evaluated<'a> {
        if field.document_type != self.subject.document_type() {
            return Evaluated::One(Scalar::Invalid);
        }
        let Some(value) = self.subject.field(&field.name) else {
            return Evaluated::One(Scalar::Null);
        };
        let mut found = Found::default();
        if let Err(Mismatch) = found.follow(value, &field.steps) {
            return Evaluated::One(Scalar::Invalid);
        }
        if found.is_collection && !found.elements.is_empty() {
            return Evaluated::Many(found.elements);
        }
        Evaluated::One(found.elements.pop().map_or(Scalar::Null, |(_, scalar)| scalar))
    }

    fn id(&self, part: IdPart) -> Scalar<'a> {
        let id = self.subject.id();
        let text = |text: &'a str| Scalar::Text(Cow::Borrowed(text));
        match (part, id.scope()) {
            (IdPart::Whole, _) => text(id.as_str()),
            (IdPart::Scheme, _) => text("id"),
            (IdPart::Namespace, _) => text(id.namespace()),
            (IdPart::Type, _) => text(id.document_type()),
            (IdPart::Specific, _) => text(id.name()),
            (IdPart::User, Scope::Number(number)) => Scalar::Integer(number.cast_signed()),
            (IdPart::Group, Scope::Group(group)) => Scalar::Text(group),
            (IdPart::User | IdPart::Group, _) => Scalar::Invalid,
            (IdPart::Bucket, _) => Scalar::Bucket(id.smallest_bucket()),
            (IdPart::Gid, _) => {
                let digits: String = id.gid().iter().map(|byte| format!("{byte:02x}")).collect();
                Scalar::Text(Cow::Owned(format!("gid(0x{digits})")))
            }
        }
    }
}

fn call<'a>(function: Function, of: Scalar<'a>) -> Scalar<'a> {
    let hash = |bytes: &[u8]| Scalar::Integer(hash_location(bytes).cast_signed());
    match (function, of) {
        (Function::Lowercase, Scalar::Text(text)) => Scalar::Text(Cow::Owned(text.to_lowercase())),
        (Function::Hash, Scalar::Text(text)) => hash(text.as_bytes()),
        (Function::Hash, Scalar::Integer(number)) => hash(&number.to_le_bytes()),
        (Function::Hash, Scalar::Float(number)) => hash(&number.to_le_bytes()),
        (Function::Abs, Scalar::Integer(number)) => Scalar::Integer(number.wrapping_abs()),
        (Function::Abs, Scalar::Float(number)) => Scalar::Float(number.abs()),
        _ => Scalar::Invalid,
    }
}

fn arithmetic<'a>(
    left: Scalar<'a>,
    operator: Arithmetic,
    right: Scalar<'a>,
) -> Result<Scalar<'a>, EvaluationError> {
    let divides = matches!(operator, Arithmetic::Divide | Arithmetic::Remainder);
    let result = match (left, right) {
        (Scalar::Text(left), Scalar::Text(right)) => {
            let fits = left.len() + right.len() <= MAX_TEXT_BYTES;
            if operator != Arithmetic::Add || !fits {
                return Ok(Scalar::Invalid);
            }
            Scalar::Text(left + right)
        }
        (Scalar::Integer(_), Scalar::Integer(0)) if divides => {
            return Err(EvaluationError::DivisionByZero);
        }
        (Scalar::Integer(left), Scalar::Integer(right)) => Scalar::Integer(match operator {
            Arithmetic::Add => left.wrapping_add(right),
            Arithmetic::Subtract => left.wrapping_sub(right),
            Arithmetic::Multiply => left.wrapping_mul(right),
            Arithmetic::Divide => left.wrapping_div(right),
            Arithmetic::Remainder => left.wrapping_rem(right),
        }),
        (left, right) => match (left.as_float(), operator, right.as_float()) {
            (Some(_), Arithmetic::Divide, Some(0.0)) => {
                return Err(EvaluationError::DivisionByZero);
            }
            (Some(left), Arithmetic::Add, Some(right)) => Scalar::Float(left + right),
            (Some(left), Arithmetic::Subtract, Some(right)) => Scalar::Float(left - right),
            (Some(left), Arithmetic::Multiply, Some(right)) => Scalar::Float(left * right),
            (Some(left), Arithmetic::Divide, Some(right)) => Scalar::Float(left / right),
            _ => Scalar::Invalid,
        },
    };
    Ok(result)
}
