//! Values of documents as their fields take them.

use super::error::ElasticError;
use super::mapping::Kind;
use super::mapping::date::Formats;
use std::borrow::Cow;

/// A value as it came.
pub(super) enum Leaf<'a> {
    Text(Cow<'a, str>),
    Whole(i64),
    Real(f64),
    Bool(bool),
}

impl Leaf<'_> {
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Text(text) => text.to_string(),
            Self::Whole(number) => number.to_string(),
            // As queries write it: 1.0 and not 1.
            Self::Real(number) => serde_json::Number::from_f64(*number)
                .map_or_else(|| number.to_string(), |number| number.to_string()),
            Self::Bool(value) => value.to_string(),
        }
    }
}

fn number_error(text: &str) -> ElasticError {
    ElasticError::argument(format!("For input string: \"{text}\""))
}

pub(super) fn real(leaf: &Leaf<'_>) -> Result<f64, ElasticError> {
    let number = match leaf {
        Leaf::Whole(number) => *number as f64,
        Leaf::Real(number) => *number,
        Leaf::Text(text) => text.trim().parse().map_err(|_| number_error(text))?,
        Leaf::Bool(_) => return Err(ElasticError::argument("a boolean is not a number")),
    };
    if number.is_finite() {
        Ok(number)
    } else {
        Err(ElasticError::argument("number is not finite"))
    }
}

/// A number as a field of this kind keeps it.
pub(super) fn kept(leaf: &Leaf<'_>, kind: Kind) -> Result<f64, ElasticError> {
    let number = real(leaf)?;
    let kept = if kind == Kind::Double { number } else { f64::from(number as f32) };
    // From here on the nearest number of 16 bits is none.
    let too_large = kind == Kind::HalfFloat && kept.abs() >= 65_520.0;
    if kept.is_finite() && !too_large {
        return Ok(kept);
    }
    let (kind, shown) = (kind.name(), leaf.shown());
    Err(ElasticError::argument(format!("[{kind}] supports only finite values, but got [{shown}]")))
}

pub(super) fn whole(leaf: &Leaf<'_>, kind: Kind) -> Result<i64, ElasticError> {
    let number = match leaf {
        Leaf::Whole(number) => *number,
        Leaf::Text(text) if text.trim().parse::<i64>().is_ok() => {
            text.trim().parse().map_err(|_| number_error(text))?
        }
        leaf => {
            let number = real(leaf)?.trunc();
            let limit = -(i64::MIN as f64);
            if !(-limit..limit).contains(&number) {
                let message = format!("Value [{}] is out of range for a long", leaf.shown());
                return Err(ElasticError::argument(message));
            }
            number as i64
        }
    };
    let (lowest, highest) = match kind {
        Kind::Integer => (i64::from(i32::MIN), i64::from(i32::MAX)),
        Kind::Short => (i64::from(i16::MIN), i64::from(i16::MAX)),
        Kind::Byte => (i64::from(i8::MIN), i64::from(i8::MAX)),
        _ => (i64::MIN, i64::MAX),
    };
    if (lowest..=highest).contains(&number) {
        return Ok(number);
    }
    let (value, kind) = (leaf.shown(), kind.name());
    Err(ElasticError::argument(format!("Value [{value}] is out of range for an {kind}")))
}

pub(super) fn boolean(leaf: &Leaf<'_>) -> Result<bool, ElasticError> {
    match leaf {
        Leaf::Bool(value) => Ok(*value),
        Leaf::Text(text) if text == "true" => Ok(true),
        Leaf::Text(text) if text == "false" || text.is_empty() => Ok(false),
        other => {
            let message = format!(
                "Failed to parse value [{}] as only [true] or [false] are allowed.",
                other.shown()
            );
            Err(ElasticError::argument(message))
        }
    }
}

pub(super) fn date(leaf: &Leaf<'_>, formats: Formats) -> Result<i64, ElasticError> {
    let at = match leaf {
        Leaf::Whole(number) => formats.number(*number),
        Leaf::Text(text) => formats.read(text, false),
        Leaf::Real(number) => formats.number(*number as i64),
        Leaf::Bool(_) => None,
    };
    at.ok_or_else(|| {
        let message = format!(
            "failed to parse date field [{}] with format [strict_date_optional_time||epoch_millis]",
            leaf.shown()
        );
        ElasticError::argument(message)
    })
}
