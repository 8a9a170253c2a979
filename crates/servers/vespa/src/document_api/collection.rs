//! Requests on collections: what their parameters say, checked before anything is answered.

use super::accept::prefers_lines;
use super::options::Options;
use super::plan::{Collection, Form, Plan, plan};
use super::{Outcome, Request, rewrite, visit_reply};
use crate::container::Container;
use hyper::Method;
use plimsoll_documents::schema::Schemas;
use plimsoll_front::{Body, Reply};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

/// Buckets scanned at a time when a streamed visit does not say.
const STREAM_CONCURRENCY: usize = 4;

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
