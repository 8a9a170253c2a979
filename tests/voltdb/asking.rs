//! One connection to a server that speaks VoltDB's protocol, and what it answers in a form that can be compared.

use plimsoll_engine::exchange::{Exchange, ExchangeError};
use plimsoll_engine::target::Target;
use plimsoll_wire::volt::{Login, Request, Response, TableView, Value, Volt};
use std::time::Duration;

/// Longest wait for one answer.
const LIMIT: Duration = Duration::from_secs(60);

/// What came back.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    pub status: i8,
    pub text: String,
    pub tables: Vec<Table>,
}

/// A table, its values as they are written in Rust.
#[derive(Clone, Debug, PartialEq)]
pub struct Table {
    /// Names and types.
    pub columns: Vec<String>,
    pub rows: Vec<Vec<String>>,
}

impl Answer {
    fn of(response: &Response<'_>) -> Self {
        Self {
            status: response.status,
            text: response.status_text.unwrap_or_default().to_owned(),
            tables: response.tables.map(|table| Table::of(&table.unwrap())).collect(),
        }
    }

    /// The number in its only cell.
    #[track_caller]
    pub fn long(&self) -> i64 {
        match &self.tables[..] {
            [Table { rows, .. }] if rows.len() == 1 && rows[0].len() == 1 => {
                rows[0][0].trim_matches(|c: char| c != '-' && !c.is_ascii_digit()).parse().unwrap()
            }
            _ => panic!("no number in {self:?}"),
        }
    }
}

impl Table {
    fn of(table: &TableView<'_>) -> Self {
        let columns = table.columns().map(|column| format!("{} {:?}", column.name, column.kind));
        let shown = |value: Value<'_>| match value {
            // Which width says the column.
            Value::TinyInt(_) | Value::SmallInt(_) | Value::Integer(_) | Value::BigInt(_) => {
                value.long().unwrap().to_string()
            }
            value => format!("{value:?}"),
        };
        let rows = table.rows().map(|row| {
            row.unwrap().values().map(|value| shown(value.unwrap())).collect::<Vec<_>>()
        });
        Self { columns: columns.collect(), rows: rows.collect() }
    }
}

/// A connection.
pub struct Asking(Exchange<Volt>);

impl Asking {
    pub fn to(port: u16) -> Self {
        Self::with_login(port, Login::new("", "")).unwrap()
    }

    pub fn with_login(port: u16, login: Login) -> Result<Self, ExchangeError> {
        Exchange::connect(Volt::new(login), &Target::resolve("127.0.0.1", port), LIMIT).map(Self)
    }

    pub fn try_call(
        &mut self,
        procedure: &str,
        params: &[Value<'_>],
    ) -> Result<Answer, ExchangeError> {
        let mut request = Request::default();
        request.call(procedure, params);
        self.0.ask(&request, Answer::of)
    }

    #[track_caller]
    pub fn call(&mut self, procedure: &str, params: &[Value<'_>]) -> Answer {
        match self.try_call(procedure, params) {
            Ok(answer) => answer,
            Err(error) => panic!("{procedure}({params:?}): {error}"),
        }
    }

    /// Runs statements.
    #[track_caller]
    pub fn sql(&mut self, statements: &str) -> Answer {
        self.call("@AdHoc", &[Value::String(statements)])
    }

    #[track_caller]
    pub fn initialize(&mut self, names: &str) -> i64 {
        let count = names.split(',').count() as i32;
        self.call("Initialize", &[Value::Integer(count), Value::String(names)]).long()
    }

    #[track_caller]
    pub fn vote(&mut self, phone: i64, contestant: i32, most: i64) -> i64 {
        let params = [Value::BigInt(phone), Value::Integer(contestant), Value::BigInt(most)];
        self.call("Vote", &params).long()
    }
}
