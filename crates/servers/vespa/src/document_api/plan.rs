//! Plans of visits and of operations on selections, from the parameters of a request.

use super::options::Options;
use crate::container::Container;
use crate::visit::Wanted;
use plimsoll_core::clock::now_ns;
use plimsoll_documents::field_set::FieldSet;
use plimsoll_documents::filter::Filter;
use plimsoll_documents::render::Tensors;
use plimsoll_documents::schema::Schemas;
use plimsoll_wire::vespa::{ProgressToken, Scope, key};
use std::time::Duration;
use tokio::sync::OwnedSemaphorePermit;

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
