//! Operations on all documents of a selection: copy, update-where and delete-where.
//!
//! A visit finds the documents; each is then changed on the condition that it is still the one that
//! was found, so that a write in between is not undone.

use super::options::Options;
use super::plan::{Collection, Plan, no_cluster, plan};
use super::{MAX_BODY_BYTES, Outcome, Request};
use crate::container::Container;
use crate::store::{
    Found, Operation, Record, StoreError, Test, Write, WriteError, WriterMessage, Written,
};
use crate::visit::{Collect, MAX_AHEAD, Reader};
use hyper::{Method, StatusCode};
use plimsoll_core::clock::now_ns;
use plimsoll_documents::document::Values;
use plimsoll_documents::operation::{Edit, parse_update};
use plimsoll_documents::schema::Schemas;
use plimsoll_front::{Body, BodyError, tree_bytes};
use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

/// Time that one request goes on when it does not say.
const TIME_CHUNK: Duration = Duration::from_secs(60);
/// The pause before a write is handed again to a queue that was full.
const AGAIN: Duration = Duration::from_millis(10);
/// Memory of a document besides its key and values.
const TARGET_BYTES: usize = 64;

/// The change to each document.
enum Action {
    Copy,
    /// The number of the type, and what to change.
    Update(u16, Arc<[Edit]>),
    Remove,
}

/// A document that was found.
struct Target {
    key: Vec<u8>,
    timestamp_us: u64,
    values: Option<Values>,
}

#[derive(Default)]
struct Targets {
    found: Vec<Target>,
    bytes: usize,
}

impl Collect for Targets {
    type Output = Vec<Target>;

    fn take(&mut self, found: &Found<'_>, values: Option<Values>) -> Result<(), StoreError> {
        self.bytes += TARGET_BYTES + found.key.len() + found.content.len();
        let (key, timestamp_us) = (found.key.to_vec(), found.timestamp_us);
        self.found.push(Target { key, timestamp_us, values });
        Ok(())
    }

    fn bytes(&self) -> usize {
        self.bytes
    }

    fn finish(self) -> Vec<Target> {
        self.found
    }
}

/// An operation on a selection, ready to begin.
pub(super) struct Rewrite {
    container: Container,
    action: Action,
    plan: Plan,
}

/// Reads the request and checks everything that can be checked.
pub(super) async fn read(
    container: &Container,
    collection: Option<Collection<'_>>,
    request: &Request<'_>,
    options: &Options<'_>,
    body: &mut Body,
    visit: OwnedSemaphorePermit,
) -> Result<Rewrite, Outcome> {
    let method = request.method;
    let schemas = &container.app.store.schemas;
    let chunk = check(method, options, schemas).map_err(Outcome::invalid)?;
    let mut plan = plan(container, collection, options, chunk, visit).map_err(Outcome::invalid)?;
    plan.concurrency = MAX_AHEAD / 2;
    let action = match *method {
        Method::POST => Action::Copy,
        Method::DELETE => Action::Remove,
        _ => {
            let read = body.read(request.headers, MAX_BODY_BYTES).await;
            let refused = |error: BodyError| Outcome::refused(error.status, error.message);
            let mut read = read.map_err(refused)?;
            read.held.reserve(tree_bytes(&read.bytes)).map_err(refused)?;
            // The root has no methods that reach here without a collection.
            let schema = collection.and_then(|place| schemas.by_name(place.document_type));
            let schema = schema.ok_or_else(|| Outcome::invalid("Document type missing"))?;
            let update = parse_update(&read.bytes, schema).map_err(Outcome::invalid)?;
            if update.create || update.condition.is_some() {
                let message = "'create' and 'condition' are of no use here: the selection says \
                               which documents are changed";
                return Err(Outcome::invalid(message));
            }
            Action::Update(schema.number(), update.edits.into())
        }
    };
    plan.wanted.values = matches!(action, Action::Copy);
    Ok(Rewrite { container: container.clone(), action, plan })
}

/// Checks the parameters; gives how long the request goes on.
fn check(method: &Method, options: &Options<'_>, schemas: &Schemas) -> Result<Duration, String> {
    options.disallow(&["dryRun", "concurrency", "fieldSet", "route", "wantedDocumentCount"])?;
    options.require("cluster")?;
    options.require("selection")?;
    if *method == Method::POST {
        let destination = options.require("destinationCluster")?;
        if destination != schemas.cluster() {
            return Err(no_cluster(destination, schemas));
        }
    }
    let timeout = options.timeout()?;
    let chunk = options.time("timeChunk")?.unwrap_or(TIME_CHUNK);
    Ok(chunk.min(timeout).max(Duration::from_millis(1)))
}

impl Rewrite {
    /// Works until everything is done or the time is up.
    pub(super) async fn run(self) -> Outcome {
        let Self { container, action, plan } = self;
        if plan.nothing {
            return counted(0);
        }
        let pace = (plan.concurrency, None);
        let app = &container.app;
        let mut reader =
            Reader::new(app, plan.visit, plan.wanted, plan.token, pace, Targets::default);
        let mut documents = 0;
        loop {
            let piece = match reader.next().await {
                Ok(Some(piece)) => piece,
                Ok(None) => return counted(documents),
                Err(error) => {
                    return stopped(
                        documents,
                        StatusCode::INTERNAL_SERVER_ERROR,
                        error.to_string(),
                    );
                }
            };
            match perform(&container, &action, piece.output).await {
                Ok(changed) => documents += changed,
                Err(message) => {
                    return stopped(documents, StatusCode::INTERNAL_SERVER_ERROR, message);
                }
            }
            let token = reader.token();
            if piece.whole && !token.is_done() && now_ns() >= plan.deadline_ns {
                return counted(documents).with("continuation", format!("\"{}\"", token.encode()));
            }
        }
    }
}

fn counted(documents: u64) -> Outcome {
    Outcome::new(StatusCode::OK).with("documentCount", documents)
}

fn stopped(documents: u64, status: StatusCode, message: String) -> Outcome {
    Outcome::refused(status, message).with("documentCount", documents)
}

/// Changes documents; gives how many there were still to be changed.
async fn perform(
    container: &Container,
    action: &Action,
    targets: Vec<Target>,
) -> Result<u64, String> {
    let mut answers = Vec::with_capacity(targets.len());
    for target in targets {
        let operation = match (action, target.values) {
            (Action::Copy, Some(values)) => {
                let record = Record::new(&values, &container.app.store.schemas);
                Operation::Put { record, values }
            }
            (Action::Update(number, edits), _) => {
                Operation::Update { document_type: *number, edits: Arc::clone(edits) }
            }
            (Action::Remove, _) => Operation::Remove,
            (Action::Copy, None) => continue,
        };
        let (done, answer) = oneshot::channel();
        let test = Test { condition: None, timestamp_us: Some(target.timestamp_us) };
        let write = Write {
            key: target.key,
            operation,
            test,
            create: false,
            sent_ns: now_ns(),
            done,
            _place: None,
            _body: None,
        };
        send(container, write).await?;
        answers.push(answer);
    }
    let mut changed = 0;
    for answer in answers {
        match answer.await {
            Ok(Ok(Written::Changed)) => changed += 1,
            // Somebody else was faster, and their write stays.
            Ok(
                Ok(Written::Missing) | Err(WriteError::Condition | WriteError::ConditionMissing),
            ) => {}
            Ok(Err(error)) => return Err(error.to_string()),
            Err(_) => return Err("The server is stopping".to_owned()),
        }
    }
    Ok(changed)
}

/// Hands a write to the writing thread, waiting while its queue is full.
async fn send(container: &Container, write: Write) -> Result<(), String> {
    let mut message = WriterMessage::Write(Box::new(write));
    loop {
        message = match container.app.writes.try_send(message) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err("The server is stopping".to_owned()),
            Err(TrySendError::Full(message)) => message,
        };
        tokio::time::sleep(AGAIN).await;
    }
}
