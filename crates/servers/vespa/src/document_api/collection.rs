//! Requests on collections: what their parameters say, checked before anything is answered.

use super::accept::prefers_lines;
use super::options::Options;
use super::{Outcome, Request, rewrite, visit_reply};
use crate::container::Container;
use crate::visit::Wanted;
use hyper::Method;
use plimsoll_core::clock::now_ns;
use plimsoll_documents::field_set::FieldSet;
use plimsoll_documents::filter::Filter;
use plimsoll_documents::render::Tensors;
use plimsoll_documents::schema::Schemas;
use plimsoll_front::{Body, Reply};
use plimsoll_wire::vespa::{ProgressToken, Scope, key};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Buckets scanned at a time when a streamed visit does not say.
const STREAM_CONCURRENCY: usize = 4;

/// Documents that share namespace, type and perhaps a number or group.
#[derive(Clone, Copy)]
pub(super) struct Collection<'a> {
    pub(super) namespace: &'a str,
    pub(super) document_type: &'a str,
    pub(super) scope: &'a Scope<'static>,
}

/// A visit, ready to begin.
pub(super) struct Plan {
    pub(super) wanted: Wanted,
    pub(super) token: ProgressToken,
    /// Nothing is in this part of the space, so that there is nothing to read.
    pub(super) nothing: bool,
    pub(super) concurrency: usize,
    /// Time at which the visit stops at the end of a bucket.
    pub(super) deadline_ns: u64,
    /// The time from the beginning to then.
    pub(super) session: Duration,
    pub(super) visit: OwnedSemaphorePermit,
}

/// The way a visit is answered.
pub(super) struct Form {
    pub(super) stream: bool,
    pub(super) lines: bool,
    pub(super) wanted_documents: Option<u64>,
    pub(super) fields: FieldSet,
    pub(super) tensors: Tensors,
}

/// Answers one request.
pub(super) async fn handle(
    container: &Container,
    collection: Option<Collection<'_>>,
    request: &Request<'_>,
    body: &mut Body,
) -> Reply {
    let options = match Options::read(request.path, request.query) {
        Ok(options) => options,
        Err(message) => return Outcome::invalid(message).reply(request.path),
    };
    // As many as may scan at a time; the others are told to come again.
    let Ok(visit) = Arc::clone(&container.app.visits).try_acquire_owned() else {
        return Outcome::overload(container.refused()).reply(request.path);
    };
    if *request.method != Method::GET {
        return match rewrite::read(container, collection, request, &options, body, visit).await {
            Ok(rewrite) => rewrite.run().await.reply(request.path),
            Err(outcome) => outcome.reply(request.path),
        };
    }
    match read_visit(container, collection, request, &options, visit) {
        Ok((plan, form)) => visit_reply::answer(container, request, plan, form).await,
        Err(outcome) => outcome.reply(request.path),
    }
}

fn read_visit(
    container: &Container,
    collection: Option<Collection<'_>>,
    request: &Request<'_>,
    options: &Options<'_>,
    visit: OwnedSemaphorePermit,
) -> Result<(Plan, Form), Outcome> {
    options.disallow(&["dryRun"]).map_err(Outcome::invalid)?;
    let timeout = options.timeout().map_err(Outcome::invalid)?;
    if timeout.is_zero() {
        return Err(Outcome::timed_out(timeout));
    }
    // The rest of the timeout is for the reply to be written.
    let session = timeout
        .saturating_sub(Duration::from_secs(5))
        .max((timeout * 9 / 10).saturating_sub(Duration::from_millis(100)))
        .max(Duration::from_millis(1));
    // The cluster first: clients find its name by asking for a wrong one, whatever else they ask for.
    let mut plan =
        plan(container, collection, options, session, visit).map_err(Outcome::invalid)?;
    let form = form(request, options, &container.app.store.schemas).map_err(Outcome::invalid)?;
    let default = if form.stream { STREAM_CONCURRENCY } else { 1 };
    plan.concurrency = match options.number("concurrency").map_err(Outcome::invalid)? {
        Some(0) => return Err(Outcome::invalid("concurrency must be positive")),
        Some(number) => usize::try_from(number).unwrap_or(usize::MAX),
        None => default,
    };
    plan.wanted.removes = options.flag("includeRemoves");
    Ok((plan, form))
}

fn form(request: &Request<'_>, options: &Options<'_>, schemas: &Schemas) -> Result<Form, String> {
    let stream = options.flag("stream");
    let lines = stream && prefers_lines(request.headers)?;
    let wanted_documents = match options.number("wantedDocumentCount")? {
        Some(0) => return Err("wantedDocumentCount must be positive".to_owned()),
        // Lines have a token after every piece, and clients take a reply that ends early for a
        // broken one; so nobody gains anything by short replies.
        _ if lines => None,
        None if stream => None,
        number => Some(number.unwrap_or(1)),
    };
    let (fields, tensors) = options.shown(schemas)?;
    Ok(Form { stream, lines, wanted_documents, fields, tensors })
}

/// The common plan of visits and of operations on selections.
pub(super) fn plan(
    container: &Container,
    collection: Option<Collection<'_>>,
    options: &Options<'_>,
    session: Duration,
    visit: OwnedSemaphorePermit,
) -> Result<Plan, String> {
    let schemas = &container.app.store.schemas;
    cluster(collection, options, schemas)?;
    let global = match options.get("bucketSpace") {
        None | Some("default") => false,
        Some("global") => true,
        Some(other) => {
            return Err(format!("bucketSpace must be 'default' or 'global', but was '{other}'"));
        }
    };
    let selection = Filter::parse(options.get("selection").unwrap_or(""), schemas)?;
    let (from, to) = (options.number("fromTimestamp")?, options.number("toTimestamp")?);
    if to.is_some_and(|to| from.unwrap_or(0) > to) {
        return Err("toTimestamp must be greater than, or equal to, fromTimestamp".to_owned());
    }
    let location = collection.and_then(|collection| collection.scope.location());
    let mut nothing = global;
    if let (Some(path), Some(pinned)) = (location, selection.location()) {
        nothing |= path != pinned;
    }
    let location = location.or(selection.location());
    let mut token = token(container, options)?;
    if let Some(location) = location {
        token.pin(location);
    }
    let wanted = Wanted {
        prefix: collection.map(prefix),
        place: location.map(key),
        filter: Some(selection).filter(|selection| !selection.passes_all()),
        from_us: from.unwrap_or(0),
        to_us: to.filter(|to| *to > 0),
        removes: false,
        values: false,
    };
    let session_ns = u64::try_from(session.as_nanos()).unwrap_or(u64::MAX);
    let deadline_ns = now_ns().saturating_add(session_ns);
    Ok(Plan { wanted, token, nothing, concurrency: 1, deadline_ns, session, visit })
}

fn cluster(
    collection: Option<Collection<'_>>,
    options: &Options<'_>,
    schemas: &Schemas,
) -> Result<(), String> {
    match options.get("cluster") {
        Some(name) if name == schemas.cluster() => {}
        Some(other) => return Err(no_cluster(other, schemas)),
        None if collection.is_none() => {
            return Err(
                "Must set 'cluster' parameter to a valid content cluster id when visiting \
                        at a root /document/v1/ level"
                    .to_owned(),
            );
        }
        None => {}
    }
    match collection {
        Some(collection) if schemas.by_name(collection.document_type).is_none() => {
            Err(format!("Document type {} does not exist", collection.document_type))
        }
        _ => Ok(()),
    }
}

pub(super) fn no_cluster(name: &str, schemas: &Schemas) -> String {
    let only = schemas.cluster();
    format!("Your Vespa deployment has no content cluster '{name}', only '{only}'")
}

fn token(container: &Container, options: &Options<'_>) -> Result<ProgressToken, String> {
    let (slices, slice) = match (options.number("slices")?, options.number("sliceId")?) {
        (None, None) => (1, 0),
        (Some(slices), Some(slice)) => (slices, slice),
        (Some(_), None) => return Err("slices may only be set together with sliceId".to_owned()),
        (None, Some(_)) => return Err("sliceId may only be set together with slices".to_owned()),
    };
    let token = match options.get("continuation") {
        Some(text) => ProgressToken::decode(text).and_then(|token| token.resume(slices, slice)),
        None => ProgressToken::start(container.app.config.distribution_bits, slices, slice),
    };
    token.map_err(|error| error.to_string())
}

/// The common prefix of the ids of a collection.
fn prefix(collection: Collection<'_>) -> String {
    let Collection { namespace, document_type, scope } = collection;
    match scope {
        Scope::Free => format!("id:{namespace}:{document_type}:"),
        scope => format!("id:{namespace}:{document_type}:{scope}:"),
    }
}
