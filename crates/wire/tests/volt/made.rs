//! Values, tables and messages of all kinds, for properties.

use plimsoll_wire::volt::{
    Answer, ArrayWriter, Form, Kind, Request, ResponseWriter, TableView, TableWriter, Value,
};
use proptest::prelude::*;

/// All types that a column may have.
pub const COLUMN_KINDS: [Kind; 12] = [
    Kind::TinyInt,
    Kind::SmallInt,
    Kind::Integer,
    Kind::BigInt,
    Kind::Float,
    Kind::String,
    Kind::Timestamp,
    Kind::Decimal,
    Kind::Boolean,
    Kind::VarBinary,
    Kind::Point,
    Kind::Geography,
];

/// A value that owns what it holds.
#[derive(Clone, Debug)]
pub enum Owned {
    Null,
    TinyInt(i8),
    SmallInt(i16),
    Integer(i32),
    BigInt(i64),
    Float(f64),
    String(String),
    Timestamp(i64),
    Decimal(i128),
    Boolean(bool),
    VarBinary(Vec<u8>),
    Point(f64, f64),
    Geography(Vec<u8>),
    Table(Table),
    Array(ArrayWriter),
}

/// A table with its length in front.
#[derive(Clone, Debug)]
pub struct Table {
    pub columns: Vec<(String, Kind)>,
    pub rows: Vec<Vec<Owned>>,
    pub bytes: Vec<u8>,
}

impl Table {
    pub fn view(&self) -> TableView<'_> {
        TableView::read(&self.bytes[4..]).unwrap()
    }
}

impl Owned {
    pub fn value(&self) -> Value<'_> {
        match self {
            Self::Null => Value::Null,
            Self::TinyInt(value) => Value::TinyInt(*value),
            Self::SmallInt(value) => Value::SmallInt(*value),
            Self::Integer(value) => Value::Integer(*value),
            Self::BigInt(value) => Value::BigInt(*value),
            Self::Float(value) => Value::Float(*value),
            Self::String(value) => Value::String(value),
            Self::Timestamp(value) => Value::Timestamp(*value),
            Self::Decimal(value) => Value::Decimal(*value),
            Self::Boolean(value) => Value::Boolean(*value),
            Self::VarBinary(value) => Value::VarBinary(value),
            Self::Point(longitude, latitude) => {
                Value::Point { longitude: *longitude, latitude: *latitude }
            }
            Self::Geography(value) => Value::Geography(value),
            Self::Table(value) => Value::Table(value.view()),
            Self::Array(value) => Value::Array(value.view()),
        }
    }
}

/// A number that stands for itself and not for null.
fn number() -> impl Strategy<Value = f64> {
    let any = any::<f64>().prop_map(|number| if number.is_nan() { 0.5 } else { number });
    any.prop_map(|number| if number == -1.7e308 || number == f64::MIN { 1.5 } else { number })
}

/// A value of this type that is not null.
pub fn some(kind: Kind) -> BoxedStrategy<Owned> {
    match kind {
        Kind::Null => Just(Owned::Null).boxed(),
        Kind::TinyInt => (i8::MIN + 1..=i8::MAX).prop_map(Owned::TinyInt).boxed(),
        Kind::SmallInt => (i16::MIN + 1..=i16::MAX).prop_map(Owned::SmallInt).boxed(),
        Kind::Integer => (i32::MIN + 1..=i32::MAX).prop_map(Owned::Integer).boxed(),
        Kind::BigInt => (i64::MIN + 1..=i64::MAX).prop_map(Owned::BigInt).boxed(),
        Kind::Timestamp => (i64::MIN + 1..=i64::MAX).prop_map(Owned::Timestamp).boxed(),
        Kind::Float => number().prop_map(Owned::Float).boxed(),
        Kind::String => ".{0,20}".prop_map(Owned::String).boxed(),
        Kind::Decimal => (i128::MIN + 1..=i128::MAX).prop_map(Owned::Decimal).boxed(),
        Kind::Boolean => any::<bool>().prop_map(Owned::Boolean).boxed(),
        Kind::VarBinary => bytes().prop_map(Owned::VarBinary).boxed(),
        Kind::Geography => bytes().prop_map(Owned::Geography).boxed(),
        Kind::Point => (-180.0..=180.0, -90.0..=90.0)
            .prop_map(|(longitude, latitude)| Owned::Point(longitude, latitude))
            .boxed(),
        Kind::Table => table().prop_map(Owned::Table).boxed(),
        Kind::Array => array().prop_map(|(_, _, array)| Owned::Array(array)).boxed(),
    }
}

fn bytes() -> impl Strategy<Value = Vec<u8>> {
    prop::collection::vec(any::<u8>(), 0..40)
}

/// A value of this type, sometimes null.
pub fn of(kind: Kind) -> BoxedStrategy<Owned> {
    prop_oneof![1 => Just(Owned::Null), 4 => some(kind)].boxed()
}

pub fn table() -> impl Strategy<Value = Table> {
    let column = ("[A-Z_0-9]{0,12}", prop::sample::select(&COLUMN_KINDS[..]));
    prop::collection::vec(column, 0..5)
        .prop_flat_map(|columns| {
            let row: Vec<_> = columns.iter().map(|(_, kind)| of(*kind)).collect();
            (Just(columns), prop::collection::vec(row, 0..5))
        })
        .prop_map(|(columns, rows)| {
            let mut bytes = Vec::new();
            let named: Vec<_> = columns.iter().map(|(name, kind)| (&name[..], *kind)).collect();
            let mut writer = TableWriter::new(&mut bytes, &named);
            for row in &rows {
                let values: Vec<_> = row.iter().map(Owned::value).collect();
                writer.row(&values);
            }
            assert_eq!(writer.row_count() as usize, rows.len());
            Table { columns, rows, bytes }
        })
}

/// An array, its type and its values.
pub fn array() -> impl Strategy<Value = (Kind, Vec<Owned>, ArrayWriter)> {
    prop::sample::select(&COLUMN_KINDS[..])
        .prop_flat_map(|kind| (Just(kind), prop::collection::vec(of(kind), 0..6)))
        .prop_map(|(kind, values)| {
            let mut writer = ArrayWriter::new(kind);
            for value in &values {
                writer.push(value.value());
            }
            (kind, values, writer)
        })
}

/// A parameter with the type that it goes with; a null of that type where the value is null.
pub fn param() -> impl Strategy<Value = (Kind, Owned)> {
    let kinds = [&COLUMN_KINDS[..], &[Kind::Null, Kind::Table]].concat();
    let typed = prop::sample::select(kinds).prop_flat_map(|kind| (Just(kind), of(kind)));
    prop_oneof![6 => typed, 1 => some(Kind::Array).prop_map(|array| (Kind::Array, array))]
}

/// A form with everything that its version can say.
pub fn form() -> impl Strategy<Value = Form> {
    let timeout_ms = prop::option::of(any::<i32>());
    let others = (
        any::<bool>(),
        prop::option::of(any::<i32>()),
        any::<bool>(),
        prop::option::of(any::<i8>()),
        prop::option::of(any::<i32>()),
    );
    (0..3u8, timeout_ms, others).prop_map(|(version, timeout_ms, others)| {
        let plain = Form { version, ..Form::default() };
        let (all_partitions, partition, is_batch, priority, request_timeout_us) = others;
        match version {
            0 => plain,
            1 => Form { timeout_ms, ..plain },
            _ => Form {
                version,
                timeout_ms,
                all_partitions,
                partition,
                is_batch,
                priority,
                request_timeout_us,
            },
        }
    })
}

/// A call as it goes out with this handle.
pub fn call(procedure: &str, form: &Form, params: &[(Kind, Owned)], handle: i64) -> Vec<u8> {
    let mut request = Request::default();
    request.begin(procedure, form);
    for (kind, value) in params {
        match value {
            Owned::Null => request.null(*kind),
            value => request.param(&value.value()),
        };
    }
    let mut bytes = Vec::new();
    request.put(handle, &mut bytes);
    bytes
}

/// What an [`Answer`] borrows.
#[derive(Clone, Debug)]
pub struct Parts {
    pub handle: i64,
    pub status: i8,
    pub status_text: Option<String>,
    pub app_status: i8,
    pub app_text: Option<String>,
    pub round_trip_ms: i32,
    pub exception: Option<Vec<u8>>,
    pub hashes: Option<Vec<i32>>,
    pub tables: Vec<Table>,
}

impl Parts {
    /// The message, with its length.
    pub fn bytes(&self, handle: i64) -> Vec<u8> {
        let mut bytes = Vec::new();
        let answer = Answer {
            handle,
            status: self.status,
            status_text: self.status_text.as_deref(),
            app_status: self.app_status,
            app_text: self.app_text.as_deref(),
            round_trip_ms: self.round_trip_ms,
            exception: self.exception.as_deref(),
            hashes: self.hashes.as_deref(),
        };
        let mut writer = ResponseWriter::new(&mut bytes, &answer);
        for (place, table) in self.tables.iter().enumerate() {
            // Both ways in turn: row by row, and whole.
            if place % 2 == 0 {
                let columns: Vec<_> =
                    table.columns.iter().map(|(name, kind)| (&name[..], *kind)).collect();
                let mut rows = writer.table(&columns);
                for row in &table.rows {
                    let values: Vec<_> = row.iter().map(Owned::value).collect();
                    rows.row(&values);
                }
            } else {
                writer.copy(&table.view());
            }
        }
        bytes
    }
}

/// A response with any of its optional parts.
pub fn response() -> impl Strategy<Value = Parts> {
    let text = || prop::option::of(".{0,30}");
    let head = (any::<i64>(), any::<i8>(), text(), any::<i8>(), text(), any::<i32>());
    let rest = (
        prop::option::of(bytes()),
        prop::option::of(prop::collection::vec(any::<i32>(), 0..5)),
        prop::collection::vec(table(), 0..4),
    );
    (head, rest).prop_map(|(head, (exception, hashes, tables))| {
        let (handle, status, status_text, app_status, app_text, round_trip_ms) = head;
        Parts {
            handle,
            status,
            status_text,
            app_status,
            app_text,
            round_trip_ms,
            exception,
            hashes,
            tables,
        }
    })
}
