//! What an engine makes of a distance, and of each query, before the load.

use super::engine::Engine;
use super::filling::{sql_of_first_row, with_first_row};
use super::server::{Door, Server};
use super::text::Text;
use crate::signals;
use anyhow::Result;
use plimsoll_core::search::record::{Answer, Group, Probe};
use plimsoll_core::units::Span;
use plimsoll_workloads::rows::Rows;
use plimsoll_workloads::search::asking::Answer as Reply;
use plimsoll_workloads::search::dialect::{Call, Dialect};
use plimsoll_workloads::search::probe::{self, ASKED};
use plimsoll_workloads::search::query::Query;
use plimsoll_workloads::visit::IdDigest;
use std::time::Duration;

/// Longest time of each request of the probe.
const WITHIN: Span = Span::seconds(60);
/// How long the planted words may take to be found, in looks and pauses between them.
const LOOKS: u32 = 200;
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// Plants words at known distances in an index of their own, asks for them, and takes them away again.
///
/// # Errors
/// When somebody stops the program, or it fails itself.
pub fn probe(engine: &Engine, name: &str, distances: &[u8]) -> Result<Probe> {
    let server = &engine.server;
    let index = format!("plimsoll-probe-{}", std::process::id());
    let trouble = |text: String| {
        Ok(Probe { engine: name.to_owned(), trouble: Some(text), ..Probe::default() })
    };
    let mut calls = server.dialect.create(&index, 1);
    calls.extend(probe::writes(server.dialect, &index));
    calls.extend(server.dialect.refresh(&index));
    for call in calls {
        let answer = patiently(server, &call)?;
        if let Some(why) = server.trouble(&answer) {
            clear(server, &index)?;
            return trouble(format!("the words could not be planted: {why}"));
        }
    }
    if !planted(server, &index)? {
        clear(server, &index)?;
        return trouble("the planted word itself is not found".to_owned());
    }
    let mut answers = Vec::new();
    let mut asked: Vec<u8> = ASKED.chain(distances.iter().copied()).collect();
    asked.sort_unstable();
    asked.dedup();
    for distance in asked {
        answers.push((distance, ask(server, &index, distance)?));
    }
    clear(server, &index)?;
    Ok(probe::judge(name, &answers))
}

/// Asks, and asks again where the engine has no room for it just now.
fn patiently(server: &Server, call: &Call) -> Result<Reply> {
    for _ in 0..LOOKS {
        let answer = server.ask_one(call, WITHIN)?;
        if answer.status != 429 {
            return Ok(answer);
        }
        signals::go_on("while an engine was probed")?;
        std::thread::sleep(LOOK_EVERY);
    }
    server.ask_one(call, WITHIN)
}

fn ask(server: &Server, index: &str, distance: u8) -> Result<Result<Vec<String>, String>> {
    let query = probe::query(server.dialect, distance);
    let call = match server.dialect.ask(index, &query, distance) {
        Ok(call) => call,
        Err(why) => return Ok(Err(why)),
    };
    let answer = server.ask_one(&call, WITHIN)?;
    Ok(match server.trouble(&answer) {
        Some(why) => Err(why),
        None => Ok(server.dialect.read_found(&answer.body).ids),
    })
}

/// Waits until the word itself is found: not every engine shows at once what it has taken.
fn planted(server: &Server, index: &str) -> Result<bool> {
    for _ in 0..LOOKS {
        if matches!(ask(server, index, 0)?, Ok(ids) if ids.iter().any(|id| id == "probe-0")) {
            return Ok(true);
        }
        signals::go_on("while an engine was probed")?;
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(false)
}

fn clear(server: &Server, index: &str) -> Result<()> {
    super::loading::remove(server, index)
}

/// Where queries are asked once.
pub struct Place<'a> {
    /// The engine's name.
    pub engine: &'a str,
    /// The text.
    pub text: &'a Text,
    /// The index.
    pub index: &'a str,
    /// Distance and shards.
    pub group: Group,
}

/// Asks every query once, with the first row where there are rows: hits and ids to compare engines by, and the words of
/// refusal where there are some.
///
/// # Errors
/// When somebody stops the program, or it fails itself.
pub fn answers(
    server: &Server,
    place: &Place<'_>,
    list: &[Query],
    rows: Option<&Rows>,
    timeout: Span,
) -> Result<Vec<Answer>> {
    let mut all = Vec::new();
    for query in list {
        let mut answer = Answer {
            engine: place.engine.to_owned(),
            size: place.text.label.clone(),
            distance: place.group.distance,
            shards: place.group.shards,
            query: query.name.clone(),
            ..Answer::default()
        };
        match server.dialect.ask(place.index, query, place.group.distance) {
            Err(why) => {
                answer.refused = Some(format!("{} cannot say it: {why}", server.dialect.name()))
            }
            Ok(call) => {
                let reply = match (&server.door, &call, rows) {
                    (Door::Http(form), Call::Http(call), Some(rows)) => {
                        let filled = with_first_row(server.dialect, form, call, rows)?;
                        server.ask_rendered(filled, timeout)?
                    }
                    (Door::Postgres(_), Call::Sql(_), Some(rows)) => {
                        let where_asked = (place.index, place.group.distance);
                        server.ask_one(&sql_of_first_row(query, where_asked, rows)?, timeout)?
                    }
                    _ => server.ask_one(&call, timeout)?,
                };
                answer.first_ms = reply.service_ns as f64 / 1e6;
                // A timeout or a broken connection is the cell's to tell, and may not come again.
                if reply.lost.is_none() {
                    match server.trouble(&reply) {
                        Some(why) if (400..500).contains(&reply.status) && reply.status != 429 => {
                            answer.refused = Some(why);
                        }
                        Some(_) => {}
                        None => read(server.dialect, &reply.body, &mut answer),
                    }
                }
            }
        }
        all.push(answer);
    }
    Ok(all)
}

fn read(dialect: Dialect, body: &[u8], answer: &mut Answer) {
    let found = dialect.read_found(body);
    answer.hits = found.hits;
    if found.hits == Some(found.ids.len() as u64) {
        let mut digest = IdDigest::default();
        found.ids.iter().for_each(|id| digest.add(IdDigest::of(id)));
        answer.ids = Some(String::from(digest));
    }
}
