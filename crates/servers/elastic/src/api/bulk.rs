//! `_bulk`, and the way from an operation to its shard.

use super::super::App;
use super::super::bulk_room::Room;
use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::memory::check_source;
use super::super::shard::{
    Batch, Condition, Done, Item, Message, Operation, PATIENCE, Partial, Shard, Values, Written,
};
use super::bulk_lines::{Meta, action, next_line};
use super::{Answer, Outcome, Request, not_allowed, on_pool};

pub(super) use super::bulk_lines::Verb;
use hyper::Method;
use hyper::body::Bytes;
use plimsoll_core::clock::now_ns;
use plimsoll_serving::json::push_text;
use serde_json::Value as Json;
use std::collections::HashMap;
use std::io::Write;
use std::sync::Arc;
use tokio::sync::oneshot;

/// The longest id, in bytes.
const MAX_ID_BYTES: usize = 512;

/// Time at which a write can be found, as far as the request wants to wait for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refresh {
    No,
    Now,
    Wait,
}

impl Refresh {
    /// Reads the parameter.
    ///
    /// # Errors
    /// When it is not one.
    pub(super) fn read(request: &Request<'_>) -> Result<Self, ElasticError> {
        match request.params.get("refresh") {
            None | Some("false") => Ok(Self::No),
            Some("true" | "") => Ok(Self::Now),
            Some("wait_for") => Ok(Self::Wait),
            Some(other) => {
                let reason = format!("Unknown value for refresh: [{other}].");
                Err(ElasticError::argument(reason))
            }
        }
    }
}

/// Operations on one shard.
struct Group {
    index: Arc<Index>,
    shard: Arc<Shard>,
    items: Vec<Item>,
}

/// A request with its operations by shard.
struct Sorted {
    verbs: Vec<Verb>,
    /// The name of the index of each operation.
    names: Vec<Arc<str>>,
    groups: Vec<Group>,
    /// Operations that could not be tried.
    failed: Vec<Done>,
}

pub(super) async fn route(request: &Request<'_>, list: Option<&str>) -> Outcome {
    if *request.method != Method::POST && *request.method != Method::PUT {
        return Err(not_allowed(request, "POST, PUT"));
    }
    let start_ns = now_ns();
    let refresh = Refresh::read(request)?;
    if request.body.is_empty() {
        return Err(ElasticError::new(400, "parse_exception", "request body is required"));
    }
    if request.body.last() != Some(&b'\n') {
        let reason = "The bulk request must be terminated by a newline [\\n]";
        return Err(ElasticError::argument(reason));
    }
    let (room, later) = request.app.bulk_room.enter(&request.body).await?;
    let (app, body, own) = (Arc::clone(request.app), request.body.clone(), Arc::clone(&room));
    let list: Option<Arc<str>> = list.map(Into::into);
    let sorting = move || {
        // A client that leaves meanwhile does not end this thread's work.
        let _own = own;
        sort(&app, &body, list, later)
    };
    let sorted = on_pool(request.app, sorting).await??;
    let Sorted { verbs, names, groups, failed } = sorted;
    let copies = groups.first().map_or(1, |group| 1 + group.index.state.settings().replicas);
    let mut done: Vec<Option<Done>> = Vec::new();
    done.resize_with(verbs.len(), || None);
    for item in run(request, groups, refresh, Some(&room)).await.into_iter().chain(failed) {
        let number = item.number;
        done[number] = Some(item);
    }
    let took_ms = (now_ns() - start_ns) / 1_000_000;
    Ok(Answer::bytes(render(took_ms, &verbs, &names, &done, copies, refresh)))
}

/// Reads the lines; runs on a thread of the pool.
fn sort(
    elastic: &App,
    body: &Bytes,
    default: Option<Arc<str>>,
    later: bool,
) -> Result<Sorted, ElasticError> {
    let mut sorter = Sorter {
        elastic,
        default,
        later,
        known: HashMap::new(),
        places: HashMap::new(),
        sorted: Sorted { verbs: vec![], names: vec![], groups: vec![], failed: vec![] },
    };
    let mut at = 0;
    let mut line_number = 0;
    while at < body.len() {
        let line = next_line(body, &mut at);
        line_number += 1;
        if body[line.clone()].trim_ascii().is_empty() {
            continue;
        }
        let (verb, meta) = action(&body[line], line_number)?;
        let source = (verb != Verb::Delete).then(|| {
            line_number += 1;
            body.slice(next_line(body, &mut at))
        });
        if source.as_ref().is_some_and(Bytes::is_empty) {
            let reason = format!("Validation Failed: {line_number}: no source for an operation;");
            return Err(ElasticError::new(400, "action_request_validation_exception", reason));
        }
        sorter.add(verb, meta, source)?;
    }
    if sorter.sorted.verbs.is_empty() {
        let reason = "Validation Failed: 1: no requests added;";
        return Err(ElasticError::new(400, "action_request_validation_exception", reason));
    }
    Ok(sorter.sorted)
}

/// An index, or why there is none.
type Known = Result<Arc<Index>, ElasticError>;

struct Sorter<'a> {
    elastic: &'a App,
    default: Option<Arc<str>>,
    /// The values are read again when it is their turn.
    later: bool,
    /// Indices by the names that the request uses.
    known: HashMap<Arc<str>, Known>,
    /// Places of the groups by their shards, which the groups keep.
    places: HashMap<*const Shard, usize>,
    sorted: Sorted,
}

impl Sorter<'_> {
    fn add(
        &mut self,
        verb: Verb,
        meta: Meta<'_>,
        source: Option<Bytes>,
    ) -> Result<(), ElasticError> {
        let number = self.sorted.verbs.len();
        let (name, index) = self.index(meta._index.as_deref())?;
        let id = match meta._id {
            Some(Json::String(id)) => id,
            Some(Json::Null) | None if matches!(verb, Verb::Index | Verb::Create) => {
                self.elastic.indices.new_id()
            }
            Some(Json::Null) | None => {
                let reason = format!("Validation Failed: {}: id is missing;", number + 1);
                return Err(ElasticError::new(400, "action_request_validation_exception", reason));
            }
            Some(other) => other.to_string(),
        };
        self.sorted.verbs.push(verb);
        self.sorted.names.push(name);
        let routing = meta.routing.or(meta._routing).unwrap_or_default().into_owned();
        let condition = Condition {
            if_sequence: meta.if_seq_no,
            external: external(meta.version, meta.version_type.as_deref())?,
        };
        let item = index.and_then(|index| {
            let name = (id.clone(), routing);
            let item = item(&index, (verb, number, self.later), name, condition, source)?;
            Ok((index, item))
        });
        match item {
            Ok((index, item)) => self.push(index, item),
            Err(error) => self.sorted.failed.push(Done { number, id, result: Err(error) }),
        }
        Ok(())
    }

    /// The index of a name with the name.
    fn index(&mut self, name: Option<&str>) -> Result<(Arc<str>, Known), ElasticError> {
        let name = match (name, &self.default) {
            (Some(name), _) => name,
            (None, Some(default)) => default,
            (None, None) => {
                let reason = "Validation Failed: 1: index is missing;";
                return Err(ElasticError::new(400, "action_request_validation_exception", reason));
            }
        };
        if let Some((name, index)) = self.known.get_key_value(name) {
            return Ok((Arc::clone(name), index.clone()));
        }
        let (name, index): (Arc<str>, Known) =
            (name.into(), self.elastic.indices.get_or_create(name));
        self.known.insert(Arc::clone(&name), index.clone());
        Ok((name, index))
    }

    fn push(&mut self, index: Arc<Index>, item: Item) {
        let shard = Arc::clone(index.shard(&item.id, &item.routing));
        let groups = &mut self.sorted.groups;
        let place = *self.places.entry(Arc::as_ptr(&shard)).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Group { index, shard, items: Vec::new() });
        }
        groups[place].items.push(item);
    }
}

/// The external version of a request, if it has one.
pub(super) fn external(
    version: Option<u64>,
    kind: Option<&str>,
) -> Result<Option<(u64, bool)>, ElasticError> {
    match (version, kind) {
        (None, _) => Ok(None),
        // The version after it must be one, too.
        (Some(version), _) if i64::try_from(version).is_err() => {
            Err(ElasticError::argument(format!("Value [{version}] is out of range for a long")))
        }
        (Some(version), Some("external" | "external_gt")) => Ok(Some((version, false))),
        (Some(version), Some("external_gte")) => Ok(Some((version, true))),
        (Some(_), _) => Err(ElasticError::new(
            400,
            "action_request_validation_exception",
            "Validation Failed: 1: internal versioning can not be used for optimistic concurrency \
             control. Please use `if_seq_no` and `if_primary_term` instead;",
        )),
    }
}

/// The operation, ready for its shard.
///
/// # Errors
/// When the source does not go with the mapping.
pub(super) fn item(
    index: &Index,
    (verb, number, later): (Verb, usize, bool),
    (id, routing): (String, String),
    condition: Condition,
    source: Option<Bytes>,
) -> Result<Item, ElasticError> {
    for text in [&id, &routing] {
        if text.len() > MAX_ID_BYTES {
            let reason = format!(
                "Validation Failed: 1: id is too long, must be no longer than {MAX_ID_BYTES} bytes \
                 but was: {};",
                text.len()
            );
            return Err(ElasticError::new(400, "action_request_validation_exception", reason));
        }
    }
    if id.is_empty() {
        let reason = "if _id is specified it must not be empty";
        return Err(ElasticError::argument(reason));
    }
    let source = source.unwrap_or_default();
    check_source(&source)?;
    let operation = match verb {
        Verb::Delete => Operation::Delete,
        Verb::Update => {
            let partial = Partial::read(&source)?;
            if later {
                Operation::UpdateLater(source)
            } else {
                Operation::Update(Box::new(partial))
            }
        }
        Verb::Index | Verb::Create => {
            let document = index.state.read_document(&source, &id)?;
            let values = if later { Values::Later } else { Values::Read(Box::new(document)) };
            if verb == Verb::Index {
                Operation::Index(source, values)
            } else {
                Operation::Create(source, values)
            }
        }
    };
    Ok(Item { number, id, routing, operation, condition })
}

/// Hands the groups to their shards and waits for what comes of them.
async fn run(
    request: &Request<'_>,
    groups: Vec<Group>,
    refresh: Refresh,
    room: Option<&Room>,
) -> Vec<Done> {
    let mut done = Vec::new();
    let mut waiting = Vec::with_capacity(groups.len());
    for Group { index, shard, items } in groups {
        let names: Vec<(usize, String)> =
            items.iter().map(|item| (item.number, item.id.clone())).collect();
        let (reply, answer) = oneshot::channel();
        let batch = Batch { items, reply, held: request.held.clone(), room: room.cloned() };
        match shard.send(Message::Write(batch)) {
            Ok(()) => waiting.push((index, shard, answer, names)),
            Err(_) => done.extend(refused(&shard, names)),
        }
    }
    for (index, shard, answer, names) in waiting {
        match tokio::time::timeout(PATIENCE, answer).await {
            Ok(Ok(items)) => {
                done.extend(items.into_iter().map(|item| of_shard(item, &index, &shard)));
                if refresh != Refresh::No {
                    let ask = refresh == Refresh::Now;
                    shard.refreshed(ask || refresh == Refresh::Wait).await;
                }
            }
            _ => done.extend(unanswered(&shard, names)),
        }
    }
    done
}

/// The results of operations that a shard did not accept.
fn refused(shard: &Shard, names: Vec<(usize, String)>) -> impl Iterator<Item = Done> {
    let full = || {
        ElasticError::rejected(format!(
            "rejected execution of a write on shard [{}]: too many already wait",
            shard.number
        ))
    };
    not_done(names, failure(shard).unwrap_or_else(full))
}

/// The results of operations that a shard accepted and did not answer. A rejection would be repeated by clients, which would write
/// documents without an id twice.
fn unanswered(shard: &Shard, names: Vec<(usize, String)>) -> impl Iterator<Item = Done> {
    let late = || {
        let reason = format!(
            "[{}] the write was not answered; it may still be carried out: look before you repeat it",
            shard.number
        );
        ElasticError::new(503, "unavailable_shards_exception", reason)
    };
    not_done(names, failure(shard).unwrap_or_else(late))
}

fn failure(shard: &Shard) -> Option<ElasticError> {
    let failure = shard.failure()?;
    Some(ElasticError::internal(format!("the shard has failed: {failure}")))
}

fn not_done(names: Vec<(usize, String)>, error: ElasticError) -> impl Iterator<Item = Done> {
    names.into_iter().map(move |(number, id)| Done { number, id, result: Err(error.clone()) })
}

/// Does one operation.
///
/// # Errors
/// Its result, if that is an error.
pub(super) async fn single(
    request: &Request<'_>,
    index: &Arc<Index>,
    item: Item,
    refresh: Refresh,
) -> Result<(String, Written), ElasticError> {
    let shard = Arc::clone(index.shard(&item.id, &item.routing));
    let group = Group { index: Arc::clone(index), shard, items: vec![item] };
    let done = run(request, vec![group], refresh, None).await.pop();
    let done = done.ok_or_else(|| ElasticError::internal("the shard did not answer"))?;
    done.result.map(|written| (done.id, written))
}

/// Says which shard has found that a document is missing, or not as it should be.
fn of_shard(done: Done, index: &Index, shard: &Shard) -> Done {
    let result = done.result.map_err(|error| match error.kind {
        "version_conflict_engine_exception" | "document_missing_exception" => {
            error.in_shard(index.name(), &index.state.uuid, shard.number)
        }
        _ => error,
    });
    Done { result, ..done }
}

/// Appends what is said of a version that was written.
pub(super) fn push_written(
    out: &mut Vec<u8>,
    index: &str,
    id: &str,
    written: &Written,
    copies: u64,
    refreshed: bool,
) {
    out.extend_from_slice(b"\"_index\":");
    push_text(out, index);
    out.extend_from_slice(b",\"_type\":\"_doc\",\"_id\":");
    push_text(out, id);
    let forced = if refreshed { ",\"forced_refresh\":true" } else { "" };
    // Nothing is copied: replicas are counted and never there.
    let _ = write!(
        out,
        ",\"_version\":{},\"result\":\"{}\"{forced},\"_shards\":{{\"total\":{copies},\
         \"successful\":1,\"failed\":0}},\"_seq_no\":{},\"_primary_term\":1",
        written.version,
        written.outcome.name(),
        written.sequence
    );
}

fn render(
    took_ms: u64,
    verbs: &[Verb],
    names: &[Arc<str>],
    done: &[Option<Done>],
    copies: u64,
    refresh: Refresh,
) -> Vec<u8> {
    let failed = done.iter().any(|done| !matches!(done, Some(Done { result: Ok(_), .. })));
    let mut out = Vec::with_capacity(64 + verbs.len() * 200);
    let _ = write!(out, "{{\"took\":{took_ms},\"errors\":{failed},\"items\":[");
    for (number, verb) in verbs.iter().enumerate() {
        if number > 0 {
            out.push(b',');
        }
        let _ = write!(out, "{{\"{}\":{{", verb.name());
        let status = match &done[number] {
            Some(Done { id, result: Ok(written), .. }) => {
                let refreshed = refresh == Refresh::Now;
                push_written(&mut out, &names[number], id, written, copies, refreshed);
                written.outcome.status()
            }
            Some(Done { id, result: Err(error), .. }) => {
                push_failed(&mut out, &names[number], id, error)
            }
            None => push_failed(&mut out, &names[number], "", &ElasticError::internal("lost")),
        };
        let _ = write!(out, ",\"status\":{status}}}}}");
    }
    out.extend_from_slice(b"]}");
    out
}

fn push_failed(out: &mut Vec<u8>, index: &str, id: &str, error: &ElasticError) -> u16 {
    out.extend_from_slice(b"\"_index\":");
    push_text(out, index);
    out.extend_from_slice(b",\"_type\":\"_doc\",\"_id\":");
    push_text(out, id);
    let _ = write!(out, ",\"error\":{}", error.object());
    error.status.as_u16()
}

#[cfg(test)]
mod tests;
