//! `_search`, `_count` and `_msearch`: reading the request, running it on all shards, the reply.

mod order;
mod request;
mod run;
mod source_filter;

pub(crate) use request::{SearchRequest, parse, parse_short};
pub(crate) use run::{Ran, count, search};
pub(crate) use source_filter::SourceFilter;
