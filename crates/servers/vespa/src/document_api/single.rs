//! Operations on one document.

use super::options::Options;
use super::plan::no_cluster;
use super::{MAX_BODY_BYTES, Outcome, Request};
use crate::container::Container;
use crate::store::{Operation, Record, Test, Write, WriteError, WriterMessage, Written, key};
use hyper::StatusCode;
use plimsoll_core::clock::now_ns;
use plimsoll_documents::field_set::FieldSet;
use plimsoll_documents::filter::Filter;
use plimsoll_documents::operation::{parse_put, parse_update};
use plimsoll_documents::render::{Tensors, push_values};
use plimsoll_documents::schema::{Schema, Schemas};
use plimsoll_front::metrics::Kind;
use plimsoll_front::{Body, BodyError, Held, tree_bytes};
use plimsoll_wire::vespa::DocumentId;
use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::time::Duration;
use tokio::sync::oneshot;

/// Answers one operation.
pub(super) async fn handle(
    container: &Container,
    kind: Kind,
    id: &DocumentId,
    request: &Request<'_>,
    body: &mut Body,
) -> Outcome {
    let options = match Options::read(request.path, request.query) {
        Ok(options) => options,
        Err(message) => return Outcome::invalid(message),
    };
    if options.flag("dryRun") && kind != Kind::Get {
        return Outcome::new(StatusCode::OK).with_id(id.as_str());
    }
    let timeout = match options.timeout() {
        Ok(timeout) => timeout,
        Err(message) => return Outcome::invalid(message),
    };
    let schemas = &container.app.store.schemas;
    if kind == Kind::Get {
        return match read_get(&options, schemas) {
            Ok(_) if timeout.is_zero() => Outcome::timed_out(timeout).with_id(id.as_str()),
            Ok(_) if schemas.by_name(id.document_type()).is_none() => {
                Outcome::ignored(StatusCode::NOT_FOUND).with_id(id.as_str())
            }
            Ok(shown) => get(container, id, shown, timeout).await,
            Err(message) => Outcome::invalid(message),
        };
    }
    let Some(schema) = schemas.by_name(id.document_type()) else {
        // A removal has no body that would need the type to be read.
        return match kind {
            Kind::Remove => Outcome::ignored(StatusCode::OK).with_id(id.as_str()),
            _ => Outcome::invalid(no_type(id)),
        };
    };
    if timeout.is_zero() {
        return Outcome::timed_out(timeout).with_id(id.as_str());
    }
    let Read { operation, condition, create, held } =
        match read(kind, request, body, schema, schemas).await {
            Ok(read) => read,
            Err(outcome) => return outcome,
        };
    let create = options.flag("create") || create;
    let condition = options.get("condition").or(condition.as_deref());
    let condition = match condition.map(|text| Filter::parse(text, schemas)).transpose() {
        Ok(condition) => condition.map(Arc::new),
        Err(message) => return Outcome::invalid(message),
    };
    let (done, answer) = oneshot::channel();
    let write = Write {
        key: key::key(id),
        operation,
        test: Test { condition, timestamp_us: None },
        create,
        // Not the time of its head: a client that uploads slowly must not make the store look overloaded.
        sent_ns: now_ns(),
        done,
        _place: None,
        _body: held,
    };
    perform(container, write, answer, timeout).await.with_id(id.as_str())
}

fn no_type(id: &DocumentId) -> String {
    format!("Document type {} does not exist", id.document_type())
}

/// The fields of a document that are shown, and the format of tensors.
type Shown = (FieldSet, Tensors);

fn read_get(options: &Options<'_>, schemas: &Schemas) -> Result<Shown, String> {
    options.disallow(&["dryRun"])?;
    if let Some(other) = options.get("cluster").filter(|name| *name != schemas.cluster()) {
        return Err(no_cluster(other, schemas));
    }
    options.shown(schemas)
}

/// The content of a body.
struct Read {
    operation: Operation,
    condition: Option<String>,
    create: bool,
    held: Option<Held>,
}

async fn read(
    kind: Kind,
    request: &Request<'_>,
    body: &mut Body,
    schema: &Schema,
    schemas: &Schemas,
) -> Result<Read, Outcome> {
    if kind == Kind::Remove {
        let operation = Operation::Remove;
        return Ok(Read { operation, condition: None, create: false, held: None });
    }
    let read = body.read(request.headers, MAX_BODY_BYTES).await;
    let refused = |error: BodyError| Outcome::refused(error.status, error.message);
    let mut read = read.map_err(refused)?;
    read.held.reserve(tree_bytes(&read.bytes)).map_err(refused)?;
    let held = Some(read.held);
    if kind == Kind::Put {
        let put = parse_put(&read.bytes, schema).map_err(Outcome::invalid)?;
        let record = Record::new(&put.values, schemas);
        let operation = Operation::Put { record, values: put.values };
        return Ok(Read { operation, condition: put.condition, create: put.create, held });
    }
    let update = parse_update(&read.bytes, schema).map_err(Outcome::invalid)?;
    let operation =
        Operation::Update { document_type: schema.number(), edits: update.edits.into() };
    Ok(Read { operation, condition: update.condition, create: update.create, held })
}

async fn perform(
    container: &Container,
    mut write: Write,
    answer: oneshot::Receiver<Result<Written, WriteError>>,
    timeout: Duration,
) -> Outcome {
    match container.admit() {
        Ok(place) => write._place = Some(place),
        Err(message) => return Outcome::overload(message),
    }
    match container.app.writes.try_send(WriterMessage::Write(Box::new(write))) {
        Ok(()) => {}
        Err(TrySendError::Full(_)) => return Outcome::overload(container.refused()),
        Err(TrySendError::Disconnected(_)) => return Outcome::stopping(),
    }
    match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(Ok(_))) => Outcome::new(StatusCode::OK),
        Ok(Ok(Err(error))) => Outcome::not_written(&error),
        // The writing thread ended without having taken this one.
        Ok(Err(_)) => Outcome::stopping(),
        Err(_) => Outcome::timed_out(timeout),
    }
}

/// Reads on a thread of its own, since the file may have to be read from the disk.
async fn get(
    container: &Container,
    id: &DocumentId,
    (fields, tensors): Shown,
    timeout: Duration,
) -> Outcome {
    let place = match container.admit() {
        Ok(place) => place,
        Err(message) => return Outcome::overload(message),
    };
    let (done, answer) = oneshot::channel();
    let (store, wanted) = (container.app.store.clone(), id.clone());
    let job = move || {
        let _place = place;
        let _ = done.send(store.get(&wanted));
    };
    if container.app.pools.reads.submit(job).is_err() {
        return Outcome::overload(container.refused());
    }
    let outcome = match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(Ok(Some(document)))) => {
            let mut outcome = Outcome::new(StatusCode::OK);
            outcome.rest.extend_from_slice(b",\"fields\":");
            let (rest, schemas) = (&mut outcome.rest, &container.app.store.schemas);
            push_values(rest, schemas, &document.values, &fields, tensors);
            outcome
        }
        Ok(Ok(Ok(None))) => Outcome::new(StatusCode::NOT_FOUND),
        Ok(Ok(Err(error))) => Outcome::failed(&error),
        Ok(Err(_)) => Outcome::stopping(),
        Err(_) => Outcome::timed_out(timeout),
    };
    outcome.with_id(id.as_str())
}
