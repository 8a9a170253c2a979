//! Operations on one document.

use super::fields::{FieldSet, push_fields};
use super::options::Options;
use super::{MAX_BODY_BYTES, Outcome, Request};
use crate::search::container::Container;
use crate::search::edit::{BodyTest, parse_put, parse_update};
use crate::search::filter::Filter;
use crate::search::http::{Body, Held};
use crate::search::metrics::Kind;
use crate::search::schema::DOCUMENT_TYPE;
use crate::search::store::{
    Operation, Record, Test, Write, WriteError, WriterMessage, Written, key,
};
use hyper::StatusCode;
use plimsoll_wire::vespa::DocumentId;
use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::time::Duration;
use tokio::sync::oneshot;

/// Answers one operation.
pub(super) async fn handle(
    container: &Arc<Container>,
    kind: Kind,
    id: &DocumentId,
    request: &Request<'_>,
    body: Body,
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
    if let Err(message) = check(kind, id, &options) {
        return Outcome::invalid(message);
    }
    if timeout.is_zero() {
        return Outcome::timed_out(timeout).with_id(id.as_str());
    }
    if kind == Kind::Get {
        return match options.get("fieldSet").map_or(Ok(FieldSet::All), FieldSet::parse) {
            Ok(fields) => get(container, id, fields, timeout).await,
            Err(message) => Outcome::invalid(message),
        };
    }
    let (operation, test, held) = match operation(kind, request, body).await {
        Ok(read) => read,
        Err(outcome) => return outcome,
    };
    let create = options.flag("create") || test.create;
    let condition = options.get("condition").or(test.condition.as_deref());
    let condition = match condition.map(Filter::parse).transpose() {
        Ok(condition) => condition.map(Arc::new),
        Err(message) => return Outcome::invalid(message),
    };
    let (done, answer) = oneshot::channel();
    let write = Write {
        key: key::key(id),
        operation,
        test: Test { condition, timestamp_us: None },
        create,
        sent_ns: request.start_ns,
        done,
        _place: None,
        _body: held,
    };
    perform(container, write, answer, timeout).await.with_id(id.as_str())
}

/// What can be wrong before the body is looked at.
fn check(kind: Kind, id: &DocumentId, options: &Options<'_>) -> Result<(), String> {
    if kind == Kind::Get {
        options.disallow(&["dryRun"])?;
    }
    if id.document_type() != DOCUMENT_TYPE {
        return Err(format!("Document type {} does not exist", id.document_type()));
    }
    Ok(())
}

async fn operation(
    kind: Kind,
    request: &Request<'_>,
    body: Body,
) -> Result<(Operation, BodyTest, Option<Held>), Outcome> {
    if kind == Kind::Remove {
        return Ok((Operation::Remove, BodyTest::default(), None));
    }
    let read = body.read(request.headers, MAX_BODY_BYTES).await;
    let read = read.map_err(|error| Outcome::refused(error.status, error.message))?;
    if kind == Kind::Put {
        let put = parse_put(&read.bytes).map_err(Outcome::invalid)?;
        let record = Record::new(&put.values);
        return Ok((Operation::Put { record, values: put.values }, put.test, Some(read.held)));
    }
    let update = parse_update(&read.bytes).map_err(Outcome::invalid)?;
    Ok((Operation::Update { edits: update.edits.into() }, update.test, Some(read.held)))
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
    fields: FieldSet,
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
    if container.app.reads.submit(job).is_err() {
        return Outcome::overload(container.refused());
    }
    let outcome = match tokio::time::timeout(timeout, answer).await {
        Ok(Ok(Ok(Some(document)))) => {
            let mut outcome = Outcome::new(StatusCode::OK);
            outcome.rest.extend_from_slice(b",\"fields\":");
            push_fields(&mut outcome.rest, &document.values, &fields);
            outcome
        }
        Ok(Ok(Ok(None))) => Outcome::new(StatusCode::NOT_FOUND),
        Ok(Ok(Err(error))) => Outcome::failed(&error),
        Ok(Err(_)) => Outcome::stopping(),
        Err(_) => Outcome::timed_out(timeout),
    };
    outcome.with_id(id.as_str())
}
