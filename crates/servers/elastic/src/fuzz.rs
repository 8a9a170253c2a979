//! The functions of the fuzz targets in `fuzz/`: each takes any input, and must neither panic nor take memory without bound.
//! They return the message to the client if an input is rejected.

use super::api::{actions, shape};
use super::dialect::Context;
use super::document;
use super::error::ElasticError;
use super::mapping::date::{Formats, math};
use super::mapping::{Mapping, View};
use super::params::Params;
use super::searching::{SearchRequest, parse};
use super::settings::{Settings, USUAL_WINDOW};
use super::shard::log;
use plimsoll_index::fuzzy::FuzzyMode;
use plimsoll_index::plan::plan_filter;
use std::sync::{Arc, OnceLock};

/// A field of every kind that a query can be for.
const MAPPING: &str = r#"{"properties": {
    "title": {"type": "text"}, "body": {"type": "text"}, "name": {"type": "keyword"},
    "score": {"type": "long"}, "price": {"type": "double"}, "live": {"type": "boolean"},
    "at": {"type": "date"}, "inner": {"properties": {"a": {"type": "keyword"}}}
}}"#;

fn mapping() -> &'static Arc<Mapping> {
    static MAPPING_READ: OnceLock<Arc<Mapping>> = OnceLock::new();
    MAPPING_READ.get_or_init(|| {
        let mut mapping = Mapping::default();
        // The text is right; without it every field would be unknown, and the tests of the targets would find nothing.
        let merged = parse(MAPPING.as_bytes()).and_then(|json| mapping.merge(&json));
        assert!(merged.is_ok(), "the mapping of the fuzz targets cannot be read");
        Arc::new(mapping)
    })
}

fn line(error: &ElasticError) -> String {
    error.reply().to_string()
}

/// The parameters of a URL and the body of a search or a count, made ready for one index.
pub fn search(query: &str, body: &[u8], is_count: bool) -> Option<String> {
    let read = || {
        let params = Params::read(query)?;
        params.check("/i/_search")?;
        let request = match is_count {
            true => SearchRequest::read_count(body, &params)?,
            false => SearchRequest::read(body, &params)?,
        };
        let (mapping, mode) = (mapping(), FuzzyMode::Index);
        let context =
            Context { index: "i", uuid: "u", mapping, mode, now_ms: 1_700_000_000_000, depth: 0 };
        request.check("i", USUAL_WINDOW)?;
        let node = request.node(context).map_err(|error| error.located(body))?;
        let view = View { mapping: Arc::clone(mapping), blocks: mapping.blocks(), scan: None };
        plan_filter(&node, Vec::new(), &view).map_err(|error| ElasticError::argument(error.0))?;
        Ok(request)
    };
    match read() {
        Ok(request) => {
            request.source.push(&mut Vec::new(), MAPPING.as_bytes());
            None
        }
        Err(error) => Some(line(&error)),
    }
}

/// The body of a bulk.
pub fn bulk(body: &[u8]) -> Option<String> {
    actions(body).err().map(|error| line(&error))
}

/// A mapping, and a document for it behind a byte 0. Fields that the document brings are added.
///
/// # Panics
/// When a mapping that is shown is read as another.
pub fn mapping_and_document(bytes: &[u8]) -> Option<String> {
    let mut parts = bytes.splitn(2, |byte| *byte == 0);
    let mut mapping = Mapping::default();
    let merged = parse(parts.next().unwrap_or_default()).and_then(|json| mapping.merge(&json));
    if let Err(error) = merged {
        return Some(line(&error));
    }
    let shown = mapping.to_json();
    let mut again = Mapping::default();
    let merged = again.merge(&shown);
    assert!(merged.is_ok(), "a mapping that is shown is refused: {shown}");
    assert_eq!(again.to_json(), shown, "a mapping that is shown is read as another");
    let source = parts.next()?;
    for _ in 0..3 {
        let read = match document::read(&mapping, source, "1") {
            Ok(read) => read,
            Err(error) => return Some(line(&error)),
        };
        if read.missing.is_empty() {
            let kept = document::read_again(&mapping, source, "1");
            assert!(kept.is_ok(), "a document that was taken cannot be read again");
            return None;
        }
        for missing in &read.missing {
            if let Err(error) = mapping.add_dynamic(missing) {
                return Some(line(&error));
            }
        }
    }
    None
}

/// The settings of an index.
pub fn settings(body: &[u8]) -> Option<String> {
    let mut settings = Settings::default();
    let read = parse(body).and_then(|json| settings.change(&json).and(Settings::read(&json)));
    read.err().map(|error| line(&error))
}

/// The parameter `filter_path`, on a reply.
pub fn filter_path(path: &str, reply: &[u8]) -> Option<Vec<u8>> {
    let params = Params::read(&format!("filter_path={path}")).ok()?;
    Some(shape(reply.to_vec(), &params))
}

/// A date with arithmetic, in milliseconds since 1970.
pub fn date(text: &str, is_late: bool) -> Option<i64> {
    math(text, Formats::ANY, is_late, 1_700_000_000_000)
}

/// Records of a shard's log, one behind the other.
///
/// # Panics
/// When one is written so that it reads as another.
pub fn log(bytes: &[u8]) {
    log::read_and_write(bytes);
}
