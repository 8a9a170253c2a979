//! Errors in Elasticsearch's shape.

use hyper::StatusCode;
use serde_json::value::RawValue;
use serde_json::{Map, Value as Json, json};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// One step into a JSON text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Step {
    Key(String),
    Item(usize),
}

/// Path of a value in a request, from the inside out.
#[derive(Clone, Copy)]
pub(crate) struct At<'a> {
    parent: Option<&'a At<'a>>,
    step: Option<Place<'a>>,
}

#[derive(Clone, Copy)]
enum Place<'a> {
    Key(&'a str),
    Item(usize),
}

impl At<'static> {
    /// The whole request.
    pub(crate) const ROOT: Self = Self { parent: None, step: None };
}

impl<'a> At<'a> {
    /// The value behind a key.
    pub(crate) fn key(&'a self, key: &'a str) -> At<'a> {
        At { parent: Some(self), step: Some(Place::Key(key)) }
    }

    /// A value of a list.
    pub(crate) fn item(&'a self, number: usize) -> At<'a> {
        At { parent: Some(self), step: Some(Place::Item(number)) }
    }

    fn path(&self) -> Vec<Step> {
        let mut path = self.parent.map(At::path).unwrap_or_default();
        path.extend(self.step.map(|step| match step {
            Place::Key(key) => Step::Key(key.to_owned()),
            Place::Item(number) => Step::Item(number),
        }));
        path
    }
}

/// The way an error shows what it is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shown {
    /// Line and column are members of their own.
    Members,
    /// They stand before the reason, and are those of the value.
    Value,
    /// They are those of the value's name.
    Name,
    /// There is nothing but the reason and the status.
    Plain,
    /// There is nothing but the reason.
    Bare,
}

/// An error as the client sees it.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct ElasticError {
    pub(crate) status: StatusCode,
    pub(crate) kind: &'static str,
    pub(crate) reason: String,
    /// Further members of the error.
    pub(crate) more: Vec<(&'static str, Json)>,
    /// The way to the value that is wrong, until its line and column are known.
    at: Option<Vec<Step>>,
    shown: Shown,
    /// The query is understood and does not go with the index: each shard says so.
    of_shards: bool,
    pub(crate) cause: Option<Box<Self>>,
    /// The error stands for failures of shards, of which this is the reason.
    root: Option<Box<Self>>,
}

impl ElasticError {
    pub(crate) fn new(status: u16, kind: &'static str, reason: impl Into<String>) -> Self {
        Self {
            status: StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            kind,
            reason: reason.into(),
            more: Vec::new(),
            at: None,
            shown: Shown::Members,
            of_shards: false,
            cause: None,
            root: None,
        }
    }

    /// A request that cannot be meant so.
    pub(crate) fn argument(reason: impl Into<String>) -> Self {
        Self::new(400, "illegal_argument_exception", reason)
    }

    /// A request, or a document in it, that is too much.
    pub(crate) fn too_long(reason: impl Into<String>) -> Self {
        Self::new(413, "content_too_long_exception", reason)
    }

    /// A query that is not understood, and where.
    pub(crate) fn parsing(at: &At<'_>, reason: impl Into<String>) -> Self {
        let error = Self::new(400, "parsing_exception", reason);
        Self { at: Some(at.path()), ..error }
    }

    /// A member that is not known, by the name of what it is in.
    pub(crate) fn unknown_field(of: &str, key: &str, at: &At<'_>) -> Self {
        let reason = format!("[{of}] unknown field [{key}]");
        let error = Self::new(400, "x_content_parse_exception", reason);
        Self { at: Some(at.path()), shown: Shown::Name, ..error }
    }

    /// A value that a member cannot have.
    pub(crate) fn bad_value(at: &At<'_>, reason: impl Into<String>) -> Self {
        let error = Self::new(400, "x_content_parse_exception", reason);
        Self { at: Some(at.path()), shown: Shown::Value, ..error }
    }

    /// Says the place before the reason.
    pub(crate) fn placed(self, at: &At<'_>) -> Self {
        Self { at: Some(at.path()), shown: Shown::Value, ..self }
    }

    /// A body that is not JSON.
    pub(crate) fn json(error: &serde_json::Error) -> Self {
        let kind = if error.is_eof() { "json_e_o_f_exception" } else { "json_parse_exception" };
        Self::new(400, kind, error.to_string())
    }

    /// A request that nothing answers to, by its method or at all.
    pub(crate) fn plain(status: u16, reason: impl Into<String>) -> Self {
        Self { shown: Shown::Plain, ..Self::new(status, "illegal_argument_exception", reason) }
    }

    /// The same without the status.
    pub(crate) fn bare(status: u16, reason: impl Into<String>) -> Self {
        Self { shown: Shown::Bare, ..Self::plain(status, reason) }
    }

    /// The error of a clause, as the query around it says it.
    pub(crate) fn within(self, of: &str, key: &str, at: &At<'_>) -> Self {
        if self.of_shards || self.root.as_ref().is_some_and(|root| root.of_shards) {
            return self;
        }
        let place = self.at.clone().or_else(|| Some(at.path()));
        let reason = format!("[{of}] failed to parse field [{key}]");
        let error = Self::new(400, "x_content_parse_exception", reason);
        let root = match self.kind {
            "illegal_argument_exception" | "number_format_exception" => None,
            _ => Some(self.root.clone().unwrap_or_else(|| Box::new(self.clone()))),
        };
        Self { at: place, shown: Shown::Value, root, ..error }.caused_by(self)
    }

    pub(crate) fn mapper(reason: impl Into<String>) -> Self {
        Self::new(400, "mapper_parsing_exception", reason)
    }

    /// The error for a feature of Elasticsearch that this server does not support.
    pub(crate) fn unsupported(what: &str) -> Self {
        Self::argument(format!("plimsoll does not implement {what}"))
    }

    pub(crate) fn no_index(name: &str) -> Self {
        let error = Self::new(404, "index_not_found_exception", format!("no such index [{name}]"));
        error
            .with("resource.type", "index_or_alias".into())
            .with("resource.id", name.into())
            .with("index_uuid", "_na_".into())
            .with("index", name.into())
    }

    /// The server has as much to do as it takes.
    pub(crate) fn rejected(reason: impl Into<String>) -> Self {
        Self::new(429, "es_rejected_execution_exception", reason)
    }

    pub(crate) fn internal(reason: impl Into<String>) -> Self {
        Self::new(500, "exception", reason)
    }

    /// A query that does not go with the index.
    pub(crate) fn shard(index: &str, uuid: &str, reason: impl Into<String>) -> Self {
        let error = Self::new(400, "query_shard_exception", reason);
        let error = Self { of_shards: true, ..error };
        error.with("index_uuid", uuid.into()).with("index", index.into())
    }

    /// The same for an error of any kind.
    pub(crate) fn said_by_shards(self) -> Self {
        Self { of_shards: true, ..self }
    }

    /// The error of a search: when shards say it, that of all of them.
    pub(crate) fn of_search(self, index: &str) -> Self {
        if self.of_shards && self.root.is_none() { self.all_shards_failed(index) } else { self }
    }

    /// Returns true if shards have said it.
    pub(crate) fn is_of_shards(&self) -> bool {
        self.root.as_ref().is_some_and(|root| root.of_shards)
            || self.kind == "search_phase_execution_exception"
    }

    /// An error of one shard.
    pub(crate) fn in_shard(self, index: &str, uuid: &str, shard: usize) -> Self {
        let error = self.with("index_uuid", uuid.into());
        error.with("shard", shard.to_string().into()).with("index", index.into())
    }

    pub(crate) fn with(mut self, name: &'static str, value: Json) -> Self {
        self.more.push((name, value));
        self
    }

    pub(crate) fn caused_by(mut self, cause: Self) -> Self {
        self.cause = Some(Box::new(cause));
        self
    }

    /// The error of a search whose shards all failed with this one.
    pub(crate) fn all_shards_failed(self, index: &str) -> Self {
        let status = self.status;
        let failed =
            json!([{ "shard": 0, "index": index, "node": super::NODE, "reason": self.object() }]);
        let error = Self {
            status,
            ..Self::new(status.as_u16(), "search_phase_execution_exception", "all shards failed")
        };
        let error = error
            .with("phase", "query".into())
            .with("grouped", true.into())
            .with("failed_shards", failed);
        // What is no error of the engine's own is told twice more.
        let cause = (self.kind == "illegal_argument_exception")
            .then(|| Box::new(self.clone().caused_by(self.clone())));
        Self { root: Some(Box::new(self)), cause, ..error }
    }

    /// Finds line and column of what is wrong in the request.
    pub(crate) fn located(mut self, body: &[u8]) -> Self {
        self.cause = self.cause.map(|cause| Box::new(cause.located(body)));
        self.root = self.root.map(|root| Box::new(root.located(body)));
        if let Some(path) = self.at.take()
            && let Some(offset) = offset(body, &path)
        {
            let offset = if self.shown == Shown::Name { name(body, offset) } else { offset };
            let before = &body[..offset];
            let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
            let start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            let column = offset - start + 1;
            if self.shown == Shown::Members {
                self.more.insert(0, ("line", line.into()));
                self.more.insert(1, ("col", column.into()));
            } else {
                self.reason = format!("[{line}:{column}] {}", self.reason);
            }
        }
        self
    }

    /// The members of the error, without the status.
    pub(crate) fn object(&self) -> Json {
        let mut object = Map::new();
        object.insert("type".to_owned(), self.kind.into());
        object.insert("reason".to_owned(), self.reason.clone().into());
        for (name, value) in &self.more {
            object.insert((*name).to_owned(), value.clone());
        }
        if let Some(cause) = &self.cause {
            object.insert("caused_by".to_owned(), cause.object());
        }
        Json::Object(object)
    }

    /// The whole reply.
    pub(crate) fn reply(&self) -> Json {
        match self.shown {
            Shown::Plain => return json!({"error": self.reason, "status": self.status.as_u16()}),
            Shown::Bare => return json!({ "error": self.reason }),
            Shown::Members | Shown::Value | Shown::Name => {}
        }
        let mut root = self.root.as_ref().map_or_else(|| self.object(), |root| root.object());
        if let Json::Object(root) = &mut root {
            root.remove("caused_by");
        }
        let mut error = Map::new();
        error.insert("root_cause".to_owned(), Json::Array(vec![root]));
        if let Json::Object(object) = self.object() {
            error.extend(object);
        }
        json!({ "error": error, "status": self.status.as_u16() })
    }
}

/// Beginning of the name of the value that begins at `value`.
fn name(body: &[u8], value: usize) -> usize {
    let quotes = |before: &[u8]| before.iter().rposition(|byte| *byte == b'"');
    let end = quotes(&body[..value]).unwrap_or(value);
    quotes(&body[..end]).unwrap_or(value)
}

/// Beginning of a value in a JSON text.
fn offset(body: &[u8], path: &[Step]) -> Option<usize> {
    let text = std::str::from_utf8(body).ok()?;
    let mut value: &RawValue = serde_json::from_str(text).ok()?;
    for step in path {
        value = match step {
            Step::Key(key) => {
                let members: BTreeMap<Cow<'_, str>, &RawValue> =
                    serde_json::from_str(value.get()).ok()?;
                *members.get(key.as_str())?
            }
            Step::Item(number) => {
                let items: Vec<&RawValue> = serde_json::from_str(value.get()).ok()?;
                *items.get(*number)?
            }
        };
    }
    Some(value.get().as_ptr() as usize - text.as_ptr() as usize)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_says_where() {
        let body = b"{\n  \"query\": {\"foo\": [1, {}]}}";
        let (query, foo) = (At::ROOT.key("query"), "foo");
        let foo = query.key(foo);
        let error = ElasticError::parsing(&foo.item(1), "no").located(body);
        let json = error.reply();
        assert_eq!(json["error"]["line"], 2);
        assert_eq!(json["error"]["col"], 24);
        assert_eq!(json["error"]["root_cause"][0]["reason"], "no");
        assert_eq!(json["status"], 400);
    }
}
