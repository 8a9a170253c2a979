//! `_search`, `_msearch` and `_count`.

use super::super::error::ElasticError;
use super::super::index::Index;
use super::super::memory::Growing;
use super::super::searching::{Ran, SearchRequest, count, search};
use super::{Answer, Outcome, Params, Request, no_handler, not_allowed};
use hyper::{Method, StatusCode};
use serde_json::Value as Json;
use std::sync::Arc;

/// The most searches of one request.
const MAX_SEARCHES: usize = 1000;

pub(super) async fn route(request: &Request<'_>, list: Option<&str>, rest: &[&str]) -> Outcome {
    if *request.method != Method::GET && *request.method != Method::POST {
        return Err(not_allowed(request, "GET, POST"));
    }
    match rest {
        ["_search"] => {
            let indices = indices(request, list, &request.params)?;
            let asked = SearchRequest::read(&request.body, &request.params)?;
            let ran = search(request.app, indices, asked, &request.body).await?;
            Ok(Answer::grown(ran.body, ran.growing))
        }
        ["_count"] => {
            let indices = indices(request, list, &request.params)?;
            let asked = SearchRequest::read_count(&request.body, &request.params)?;
            let ran = count(request.app, indices, asked, &request.body).await?;
            Ok(Answer::grown(ran.body, ran.growing))
        }
        ["_msearch"] => several(request, list).await,
        ["_search", "scroll"] => Err(ElasticError::unsupported("[scroll]")),
        _ => Err(no_handler(request)),
    }
}

fn indices(
    request: &Request<'_>,
    list: Option<&str>,
    params: &Params,
) -> Result<Vec<Arc<Index>>, ElasticError> {
    let ignore = params.flag("ignore_unavailable");
    request.app.indices.resolve(list.unwrap_or("_all"), ignore)
}

async fn several(request: &Request<'_>, list: Option<&str>) -> Outcome {
    // Counted before they are kept: a body may have a hundred million empty ones.
    if memchr::memchr_iter(b'\n', &request.body).count() / 2 > MAX_SEARCHES {
        return Err(ElasticError::argument(format!("at most {MAX_SEARCHES} searches at a time")));
    }
    let lines: Vec<&[u8]> =
        request.body.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii).collect();
    let ends = request.body.ends_with(b"\n");
    let lines = lines.strip_suffix(&[b"".as_slice()]).unwrap_or(&lines);
    if lines.is_empty() || !ends || lines.len() % 2 != 0 {
        let reason = "The msearch request must be terminated by a newline [\\n]";
        return Err(ElasticError::argument(reason));
    }
    let mut growing = Growing::new(&request.app.replies);
    let mut out = b"{\"took\":0,\"responses\":[".to_vec();
    for (number, pair) in lines.chunks_exact(2).enumerate() {
        if number > 0 {
            out.push(b',');
        }
        growing.check(out.len(), number + 1)?;
        let ran = one(request, list, pair[0], pair[1]).await;
        let (status, body, _growing) = match ran {
            Ok(Ran { body, growing }) => (200, body, Some(growing)),
            // What is not understood is the request's fault as a whole.
            Err(error) if error.status == StatusCode::BAD_REQUEST && !error.is_of_shards() => {
                return Err(error);
            }
            Err(error) => (error.status.as_u16(), error.reply().to_string().into_bytes(), None),
        };
        if status == 200 {
            out.extend_from_slice(&body[..body.len() - 1]);
            out.extend_from_slice(b",\"status\":200}");
        } else {
            out.extend_from_slice(&body);
        }
    }
    out.extend_from_slice(b"]}");
    Ok(Answer::grown(out, growing))
}

async fn one(
    request: &Request<'_>,
    list: Option<&str>,
    header: &[u8],
    body: &[u8],
) -> Result<Ran, ElasticError> {
    let header: Json = if header.is_empty() {
        Json::Null
    } else {
        serde_json::from_slice(header).map_err(|error| {
            ElasticError::new(400, "parse_exception", format!("the header is not JSON: {error}"))
        })?
    };
    let named = match &header["index"] {
        Json::String(name) => Some(name.clone()),
        Json::Array(names) => {
            Some(names.iter().filter_map(Json::as_str).collect::<Vec<_>>().join(","))
        }
        _ => None,
    };
    let ignore = header["ignore_unavailable"] == Json::Bool(true);
    let all = named.as_deref().or(list).unwrap_or("_all");
    let indices = request.app.indices.resolve(all, ignore)?;
    let plain = if request.params.flag("rest_total_hits_as_int") {
        "rest_total_hits_as_int=true"
    } else {
        ""
    };
    if let Some(kind) = header["search_type"].as_str().filter(|kind| *kind != "query_then_fetch") {
        return Err(ElasticError::unsupported(&format!("the search_type [{kind}]")));
    }
    let mut asked = SearchRequest::read(body, &Params::read(plain)?)?;
    asked.routing = header["routing"].as_str().map(ToOwned::to_owned);
    search(request.app, indices, asked, body).await
}
