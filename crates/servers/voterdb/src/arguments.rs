//! Parameters of calls as the procedures take them, and the errors for other parameters.

use super::procedures::{Place, Procedure};
use super::result::Datum;
use super::sql::TEXT_BYTES_MAX;
use plimsoll_wire::volt::{Call, Kind, Params, Status, Value};
use std::borrow::Cow;

/// One in a DECIMAL.
const DECIMAL_ONE: i128 = 1_000_000_000_000;

/// A call that is refused: its status, and why.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) status: i8,
    pub(crate) text: String,
}

fn graceful(text: String) -> Refused {
    Refused { status: Status::GRACEFUL_FAILURE, text }
}

fn unexpected(text: String) -> Refused {
    Refused { status: Status::UNEXPECTED_FAILURE, text }
}

/// The parameters of `Vote`. A NULL is the least number of its type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct VoteArguments {
    pub(crate) phone: i64,
    pub(crate) contestant: i32,
    pub(crate) most: i64,
}

impl VoteArguments {
    #[inline]
    pub(crate) fn of(call: &Call<'_>) -> Result<Self, Refused> {
        let mut given = Given::of(call, Procedure::Vote, 3)?;
        let phone = given.partition_key(i64::MIN, i64::MAX)?;
        let contestant = given.whole(i64::from(i32::MIN), i64::from(i32::MAX))?;
        let most = given.whole(i64::MIN, i64::MAX)?;
        // Within the range that was just asked for.
        Ok(Self { phone, contestant: contestant as i32, most })
    }
}

/// Parameters on their way from the call to the procedure.
struct Given<'a> {
    params: Params<'a>,
    procedure: Procedure,
    /// The number that were taken.
    taken: usize,
}

impl<'a> Given<'a> {
    #[inline]
    fn of(call: &Call<'a>, procedure: Procedure, wanted: usize) -> Result<Self, Refused> {
        let params = call.params();
        if params.is_empty() && procedure.place() == Place::Partition {
            let name = procedure.name();
            return Err(unexpected(format!(
                "Error sending procedure {name} to the correct partition. Make sure parameter values are \
                 correct. There is no parameter that says which."
            )));
        }
        if params.len() != wanted {
            return Err(wrong_count(procedure, &wanted.to_string(), params.len()));
        }
        Ok(Self { params, procedure, taken: 0 })
    }

    #[inline]
    fn next(&mut self) -> Result<(Kind, Value<'a>), Refused> {
        self.taken += 1;
        match self.params.next() {
            Some(Ok(param)) => Ok(param),
            Some(Err(error)) => {
                let name = self.procedure.name();
                Err(unexpected(format!("the parameters of {name} cannot be read: {error}")))
            }
            None => Err(unexpected(format!("the parameters of {} are cut", self.procedure.name()))),
        }
    }

    /// A whole number between these; NULL is the least of them.
    #[inline]
    fn whole(&mut self, low: i64, high: i64) -> Result<i64, Refused> {
        let (kind, value) = self.next()?;
        match whole(&value) {
            Whole::Null => Ok(low),
            Whole::Number(number) if (low..=high).contains(&number) => Ok(number),
            Whole::Number(_) | Whole::Other => Err(self.wrong_type(kind, &value, target(low))),
        }
    }

    /// The same for the parameter that says which partition the call goes to.
    #[inline]
    fn partition_key(&mut self, low: i64, high: i64) -> Result<i64, Refused> {
        let before = self.params;
        let (_, value) = self.next()?;
        let cannot_be_hashed = match value {
            Value::String(text) => text.trim().parse::<i64>().is_err(),
            Value::Table(_) | Value::Array(_) | Value::VarBinary(_) | Value::Geography(_) => true,
            _ => false,
        };
        if cannot_be_hashed {
            let name = self.procedure.name();
            return Err(unexpected(format!(
                "Error sending procedure {name} to the correct partition. Make sure parameter values are \
                 correct. Parameter value {} cannot be converted to BIGINT.",
                shown(&value)
            )));
        }
        (self.params, self.taken) = (before, self.taken - 1);
        self.whole(low, high)
    }

    /// A text, which a whole number becomes too.
    fn text(&mut self) -> Result<Option<Cow<'a, str>>, Refused> {
        match self.next()? {
            (_, Value::String(text)) => Ok(Some(Cow::Borrowed(text))),
            (_, Value::Null) => Ok(None),
            (kind, value) => match value {
                Value::BigInt(_) | Value::Integer(_) | Value::SmallInt(_) | Value::TinyInt(_) => {
                    Ok(value.long().map(|number| Cow::Owned(number.to_string())))
                }
                _ => Err(self.wrong_type(kind, &value, "STRING")),
            },
        }
    }

    fn wrong_type(&self, kind: Kind, value: &Value<'_>, target: &str) -> Refused {
        graceful(format!(
            "VOLTDB ERROR: PROCEDURE {} TYPE ERROR FOR PARAMETER {}: the value {} of type {} does not \
             fit {target}",
            self.procedure.name(),
            self.taken - 1,
            shown(value),
            kind.name()
        ))
    }
}

fn target(low: i64) -> &'static str {
    if low == i64::MIN { "BIGINT" } else { "INTEGER" }
}

fn wrong_count(procedure: Procedure, wanted: &str, given: usize) -> Refused {
    graceful(format!(
        "VOLTDB ERROR: PROCEDURE {} EXPECTS {wanted} PARAMS, BUT RECEIVED {given}",
        procedure.name()
    ))
}

enum Whole {
    Null,
    Number(i64),
    Other,
}

/// Converts a value to a whole number: integers of any width, truth values, numeric texts, and decimals without a
/// fraction.
#[inline]
fn whole(value: &Value<'_>) -> Whole {
    match value {
        Value::BigInt(number) => Whole::Number(*number),
        Value::Integer(number) => Whole::Number((*number).into()),
        Value::SmallInt(number) => Whole::Number((*number).into()),
        Value::TinyInt(number) => Whole::Number((*number).into()),
        Value::Boolean(is_true) => Whole::Number((*is_true).into()),
        Value::Null => Whole::Null,
        Value::String(text) => text.trim().parse().map_or(Whole::Other, Whole::Number),
        Value::Decimal(scaled) if scaled % DECIMAL_ONE == 0 => {
            i64::try_from(scaled / DECIMAL_ONE).map_or(Whole::Other, Whole::Number)
        }
        _ => Whole::Other,
    }
}

/// A value in a message: short, and never more than a line.
fn shown(value: &Value<'_>) -> String {
    match value {
        Value::String(text) => {
            let short: String = text.chars().take(40).flat_map(char::escape_default).collect();
            format!("'{short}'")
        }
        Value::Null => "NULL".to_owned(),
        Value::Float(number) => number.to_string(),
        Value::Decimal(scaled) => (*scaled as f64 / DECIMAL_ONE as f64).to_string(),
        other => other.long().map_or_else(|| other.kind().name().to_owned(), |n| n.to_string()),
    }
}

/// The texts of a call of the hello world pair.
pub(crate) fn hello(call: &Call<'_>, procedure: Procedure) -> Result<Vec<Option<String>>, Refused> {
    let wanted = if procedure == Procedure::Insert { 3 } else { 1 };
    let mut given = Given::of(call, procedure, wanted)?;
    let texts: Vec<_> = (0..wanted)
        .map(|_| given.text().map(|text| text.map(Cow::into_owned)))
        .collect::<Result<_, _>>()?;
    if procedure == Procedure::Select && texts == [None] {
        return Err(graceful("Illegal partition parameter. Value cannot be null".to_owned()));
    }
    Ok(texts)
}

/// The parameters of a procedure that runs over all partitions or over none.
pub(crate) fn general(
    call: &Call<'_>,
    procedure: Procedure,
) -> Result<Vec<Datum<'static>>, Refused> {
    let count = call.params().len();
    let given = |wanted| Given::of(call, procedure, wanted);
    let int = (i64::from(i32::MIN), i64::from(i32::MAX));
    let text = |text: Option<Cow<'_, str>>| {
        text.map_or(Datum::Null, |text| Datum::Text(Cow::Owned(text.into_owned())))
    };
    Ok(match procedure {
        Procedure::Initialize => {
            let mut given = given(2)?;
            vec![Datum::Int(given.whole(int.0, int.1)?), text(given.text()?)]
        }
        Procedure::ContestantWinningStates => {
            let mut given = given(2)?;
            vec![Datum::Int(given.whole(int.0, int.1)?), Datum::Int(given.whole(int.0, int.1)?)]
        }
        Procedure::Results | Procedure::GetStateHeatmap | Procedure::Quiesce => {
            given(0)?;
            Vec::new()
        }
        Procedure::AdHoc if count == 0 => return Err(wrong_count(procedure, "1 OR MORE", 0)),
        Procedure::AdHoc => {
            let mut given = given(count)?;
            let mut params = vec![text(given.text()?)];
            for _ in 1..count {
                let (kind, value) = given.next()?;
                params.push(datum(&value).ok_or_else(|| given.wrong_type(kind, &value, "SQL"))?);
            }
            params
        }
        Procedure::Statistics if (1..=2).contains(&count) => {
            let mut given = given(count)?;
            let mut params = vec![text(given.text()?)];
            if count == 2 {
                params.push(Datum::Int(given.whole(i64::MIN, i64::MAX)?));
            }
            params
        }
        Procedure::Statistics => return Err(wrong_count(procedure, "1 OR 2", count)),
        Procedure::SystemInformation if count == 0 => Vec::new(),
        Procedure::SystemInformation | Procedure::SystemCatalog | Procedure::GetPartitionKeys => {
            vec![text(given(1)?.text()?)]
        }
        Procedure::Subscribe => {
            let mut given = given(count)?;
            (0..count).map(|_| given.text().map(text)).collect::<Result<_, _>>()?
        }
        // What is said with a ping does not matter.
        Procedure::Vote | Procedure::Insert | Procedure::Select | Procedure::Ping => Vec::new(),
    })
}

/// A value as statements compute with it.
fn datum(value: &Value<'_>) -> Option<Datum<'static>> {
    Some(match value {
        Value::Null => Datum::Null,
        Value::Float(number) => Datum::Float(*number),
        Value::String(text) if text.len() > TEXT_BYTES_MAX => return None,
        Value::String(text) => Datum::Text(Cow::Owned((*text).to_owned())),
        Value::Decimal(scaled) => match whole(value) {
            Whole::Number(number) => Datum::Int(number),
            _ => Datum::Float(*scaled as f64 / DECIMAL_ONE as f64),
        },
        other => Datum::Int(other.long()?),
    })
}
