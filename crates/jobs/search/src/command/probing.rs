//! Probes of an engine before ingesting: the effect of a distance, and each query.

use super::engine::Engine;
use super::filling::{sql_of_first_row, with_first_row};
use super::server::{Door, Server, is_refusal};
use super::text::Text;
use crate::asking::Answer as Reply;
use crate::dialect::{Call, Dialect, Feeding};
use crate::probe::{self, ASKED};
use crate::query::Query;
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::outcome::Failure;
use plimsoll_core::units::Span;
use plimsoll_job::signals;
use plimsoll_record::search::{Answer, Group, Probe};
use plimsoll_workloads::id_digest::IdDigest;
use plimsoll_workloads::rows::Rows;
use std::collections::BTreeSet;
use std::time::Duration;

/// Longest time of each request of the probe, and until the planted words are found.
const WITHIN: Span = Span::seconds(60);
/// Longest time that words that were taken away may still be found.
const GONE_WITHIN: Span = Span::seconds(10);
/// Longest time that an engine may have no room for a request, in looks and pauses between them.
const LOOKS: u32 = 200;
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// Number of times that a request is sent whose answer cannot be read, or does not come.
const TRIES: u32 = 3;

/// Plants words at known distances in an index of their own, asks for them, and takes them away again.
///
/// # Errors
/// When the user stops the program, or it fails itself.
pub fn probe(engine: &Engine, name: &str, distances: &BTreeSet<u8>) -> Result<Probe> {
    let server = &engine.server;
    let index = format!("plimsoll-probe-{}", std::process::id());
    let answers = planted_and_asked(server, &index, distances)?;
    clear(server, &index)?;
    Ok(match answers {
        Ok(answers) => probe::judge(name, &answers),
        Err(trouble) => {
            Probe { engine: name.to_owned(), trouble: Some(trouble), ..Probe::default() }
        }
    })
}

/// Result for a distance, or the words of refusal.
type Answered = (u8, Result<Vec<String>, String>);

/// Ids for each distance, or words of refusal; the inner error is why nothing can be learnt.
fn planted_and_asked(
    server: &Server,
    index: &str,
    distances: &BTreeSet<u8>,
) -> Result<Result<Vec<Answered>, String>> {
    // One of the same name may be left of a process that was killed.
    clear(server, index)?;
    let mut calls = server.dialect.create(index, 1);
    calls.extend(probe::writes(server.dialect, index));
    calls.extend(server.dialect.refresh(index));
    for call in calls {
        let answer = patiently(server, &call)?;
        if let Some(why) = server.trouble(&answer) {
            return Ok(Err(format!("the probe's words could not be ingested: {why}")));
        }
    }
    if let Some(why) = until_planted(server, index)? {
        return Ok(Err(why));
    }
    let asked: BTreeSet<u8> = ASKED.chain(distances.iter().copied()).collect();
    let mut answers = Vec::new();
    for distance in asked {
        answers.push(match ask(server, index, distance)? {
            Told::Ids(ids) => (distance, Ok(ids)),
            Told::Refused(why) => (distance, Err(why)),
            Told::Nothing(why) => {
                return Ok(Err(format!("distance {distance} was not answered: {why}")));
            }
        });
    }
    Ok(Ok(answers))
}

/// Asks, and asks again where the engine has no room for it just now, or where nothing that can be read comes back.
fn patiently(server: &Server, call: &Call) -> Result<Reply> {
    let mut tries = 0;
    loop {
        let answer = server.ask_one(call, WITHIN)?;
        tries += 1;
        let is_over = server.trouble(&answer).is_none()
            || is_refusal(&answer)
            || answer.lost == Some(Failure::Timeout)
            || tries >= if answer.status == 429 { LOOKS } else { TRIES };
        if is_over {
            return Ok(answer);
        }
        signals::go_on("while an engine was probed")?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Result of a question.
enum Told {
    /// Ids of the documents that came back.
    Ids(Vec<String>),
    /// The engine will not answer it.
    Refused(String),
    /// Nothing that says anything of the engine's distances.
    Nothing(String),
}

fn ask(server: &Server, index: &str, distance: u8) -> Result<Told> {
    let query = probe::query(server.dialect, distance);
    let call = match server.dialect.ask(index, &query, distance) {
        Ok(call) => call,
        Err(why) => return Ok(Told::Refused(why)),
    };
    let answer = patiently(server, &call)?;
    Ok(match server.trouble(&answer) {
        Some(why) if is_refusal(&answer) => Told::Refused(why),
        Some(why) => Told::Nothing(why),
        None => Told::Ids(server.dialect.read_found(&answer.body).ids),
    })
}

/// Waits until the word itself is found: not every engine shows at once what it has taken. Returns the reason if it is not found.
fn until_planted(server: &Server, index: &str) -> Result<Option<String>> {
    let until_ns = now_ns() + WITHIN.ns;
    loop {
        match ask(server, index, 0)? {
            Told::Ids(ids) if ids.iter().any(|id| id == "probe-0") => return Ok(None),
            Told::Ids(_) if now_ns() > until_ns => {
                return Ok(Some("the planted word itself is not found".to_owned()));
            }
            Told::Ids(_) => {}
            Told::Refused(why) | Told::Nothing(why) => {
                return Ok(Some(format!("the query for the planted word failed: {why}")));
            }
        }
        signals::go_on("while an engine was probed")?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Takes the words away; that they cannot be is no trouble of the probe's.
fn clear(server: &Server, index: &str) -> Result<()> {
    for call in probe::removes(server.dialect, index) {
        server.ask_one(&call, WITHIN)?;
    }
    if !matches!(server.dialect.feeding(), Feeding::Single(_)) {
        return Ok(());
    }
    // Among other documents they would be counted with those as long as they are found.
    let Ok(call) = server.dialect.ask(index, &probe::all(), 0) else { return Ok(()) };
    let until_ns = now_ns() + GONE_WITHIN.ns;
    loop {
        let answer = server.ask_one(&call, WITHIN)?;
        let is_there = answer.is_ok() && server.dialect.read_found(&answer.body).hits > Some(0);
        if !is_there || now_ns() > until_ns {
            return Ok(());
        }
        signals::go_on("while an engine was probed")?;
        std::thread::sleep(LOOK_EVERY);
    }
}

/// Engine and index for single queries.
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
/// When the user stops the program, or it fails itself.
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
                answer.refused = Some(format!("{} cannot express it: {why}", server.dialect.name()))
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
                        Some(why) if is_refusal(&reply) => answer.refused = Some(why),
                        // Half an answer is none to compare engines by.
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
