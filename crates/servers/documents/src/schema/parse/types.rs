//! The types of fields.

use super::super::lexer::{Place, Token};
use super::{Outcome, Parser};
use crate::value::FieldType;

/// Deepest nesting of collection types.
const MAX_TYPE_DEPTH: usize = 4;
/// The most cells of a tensor: a tensor of zeros takes six bytes of JSON to ask for.
const MAX_CELLS: usize = 65_536;

impl Parser<'_> {
    pub(super) fn kind(&mut self, depth: usize) -> Outcome<FieldType> {
        let place = self.place();
        let word = self.word("a type")?;
        if depth > MAX_TYPE_DEPTH {
            let message = format!("types nest at most {MAX_TYPE_DEPTH} levels deep");
            return Err((place, message));
        }
        Ok(match word {
            "string" => FieldType::String,
            "int" => FieldType::Int,
            "long" => FieldType::Long,
            "byte" => FieldType::Byte,
            "float" => FieldType::Float,
            "double" => FieldType::Double,
            "bool" => FieldType::Bool,
            "raw" => FieldType::Raw,
            "tag" => FieldType::WeightedSet(Box::new(FieldType::String)),
            "tensor" => self.tensor(place, depth)?,
            "array" => {
                self.expect('<')?;
                let inner = self.kind(depth + 1)?;
                self.expect('>')?;
                FieldType::Array(Box::new(inner))
            }
            "weightedset" => {
                self.expect('<')?;
                let inner = self.key(depth)?;
                self.expect('>')?;
                FieldType::WeightedSet(Box::new(inner))
            }
            "map" => {
                self.expect('<')?;
                let key = self.key(depth)?;
                self.expect(',')?;
                let value = self.kind(depth + 1)?;
                self.expect('>')?;
                FieldType::Map(Box::new(key), Box::new(value))
            }
            "reference" => {
                let message = "references between documents are not supported: \
                     use a string with the document id";
                return Err((place, message.to_owned()));
            }
            word => {
                let message = format!(
                    "the type '{word}' is not supported: use string, int, long, byte, float, \
                     double, bool, raw, array<..>, weightedset<..>, map<..,..> or \
                     tensor<float>(x[n])"
                );
                return Err((place, message));
            }
        })
    }

    fn key(&mut self, depth: usize) -> Outcome<FieldType> {
        let place = self.place();
        let kind = self.kind(depth + 1)?;
        if kind.is_key() {
            return Ok(kind);
        }
        Err((place, format!("'{kind}' cannot be a key: use a string or a number")))
    }

    fn tensor(&mut self, place: Place, depth: usize) -> Outcome<FieldType> {
        let other = "only tensor<float>(x[n]) is supported: \
                     cells of type float, one dimension of a fixed size, not in a collection";
        let refuse = || (place, other.to_owned());
        let float = self.accept('<') && self.take() == Token::Word("float") && self.accept('>');
        if depth > 0 || !float || !self.accept('(') {
            return Err(refuse());
        }
        let Token::Word(dimension) = self.take() else { return Err(refuse()) };
        if !self.accept('[') {
            return Err(refuse());
        }
        let size_place = self.place();
        let Token::Word(size) = self.take() else { return Err(refuse()) };
        if !self.accept(']') || !self.accept(')') {
            return Err(refuse());
        }
        let cells = size.parse().ok().filter(|cells| (1..=MAX_CELLS).contains(cells));
        let cells = cells.ok_or_else(|| {
            (size_place, format!("a dimension has 1 to {MAX_CELLS} cells, not '{size}'"))
        })?;
        Ok(FieldType::Tensor { dimension: dimension.to_owned(), cells })
    }
}
