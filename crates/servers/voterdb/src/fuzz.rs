//! The functions of the fuzz targets in `fuzz/`: each takes any input, and must neither panic nor take memory without bound.
//! They return the message to the client if an input is rejected.

use super::arguments::{VoteArguments, general, hello};
use super::http;
use super::log::read_and_write;
use super::procedures::{Place, Procedure};
use super::routing::Routing;
use super::sql::{self, Database};
use super::tables::Partition;
use plimsoll_wire::volt::Call;

/// Statements, run on empty tables.
pub fn statements(text: &str) -> Option<String> {
    let statements = match sql::parse(text) {
        Ok(statements) => statements,
        Err(error) => return Some(error.to_string()),
    };
    let routing = Routing::new(2);
    let mut partitions = [Partition::default(), Partition::default()];
    let mut database = Database { partitions: &mut partitions, routing: &routing };
    sql::run(&statements, &[], &mut database, u64::MAX).err().map(|error| error.to_string())
}

/// A query of the JSON API.
pub fn json_query(text: &str) -> Option<String> {
    http::fuzz_query(text)
}

/// A message that the JSON API passes on as JSON.
pub fn json_response(message: &[u8]) -> Option<String> {
    http::fuzz_response(message)
}

/// Records of the command log, one behind the other.
///
/// # Panics
/// When one is written so that it reads as another.
pub fn log(bytes: &[u8]) {
    read_and_write(bytes);
}

/// A call, with the parameters that each procedure wants.
pub fn call(body: &[u8]) {
    let Ok(call) = Call::read(body) else { return };
    for procedure in Procedure::ALL {
        match (procedure, procedure.place()) {
            (Procedure::Vote, _) => drop(VoteArguments::of(&call)),
            (_, Place::Partition) => drop(hello(&call, procedure)),
            _ => drop(general(&call, procedure)),
        }
    }
}
