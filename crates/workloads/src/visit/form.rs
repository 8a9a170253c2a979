//! What is visited, and how a server is asked for it.

use crate::render::{HttpForm, RequestParts};
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use serde::{Deserialize, Serialize};
use std::fmt::Write;

/// A visit, as its parameters tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitForm {
    /// The path of the collection, `/document/v1/` or below it.
    pub path: String,
    /// The content cluster, if it must be named.
    pub cluster: Option<String>,
    /// Which documents; all where it is none.
    pub selection: Option<String>,
    /// Which of their fields.
    pub field_set: Option<String>,
    /// Only what was written at this time or later, us since 1970.
    pub from_us: Option<u64>,
    /// Only what was written before this time, us since 1970.
    pub to_us: Option<u64>,
    /// Also what was removed.
    pub include_removes: bool,
    /// Bucket spaces, one after the other; an empty name leaves the choice to the server.
    pub bucket_spaces: Vec<String>,
    /// Into how many slices it is cut.
    pub slices: u32,
    /// Whether replies shall stream.
    pub stream: bool,
    /// Buckets visited at once for each request, where it is said.
    pub concurrency: Option<u32>,
    /// Documents after which a reply shall end, where it is said.
    pub wanted: Option<u32>,
    /// How long the server may work on one reply, s.
    pub timeout_s: u32,
}

impl VisitForm {
    /// The header lines that go with every request.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        let accept = if self.stream {
            "application/jsonl, application/json;q=0.9"
        } else {
            "application/json"
        };
        vec![("Accept".to_owned(), accept.to_owned())]
    }

    /// Appends the request for one slice, in the bucket space with this index, from where `token` says.
    pub fn render(
        &self,
        http: &HttpForm,
        slice: u32,
        space: usize,
        token: Option<&str>,
        out: &mut Vec<u8>,
    ) {
        let mut target = self.path.clone();
        let mut mark = '?';
        let mut put = |name: &str, value: &str| {
            let value = utf8_percent_encode(value, NON_ALPHANUMERIC);
            // Writing into a string does not fail.
            let _ = write!(target, "{mark}{name}={value}");
            mark = '&';
        };
        let texts = [
            ("cluster", self.cluster.as_deref()),
            ("selection", self.selection.as_deref()),
            ("fieldSet", self.field_set.as_deref()),
            ("bucketSpace", self.bucket_spaces.get(space).map(String::as_str)),
            ("continuation", token),
        ];
        for (name, value) in texts {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                put(name, value);
            }
        }
        let numbers = [
            ("slices", (self.slices > 1).then_some(u64::from(self.slices))),
            ("sliceId", (self.slices > 1).then_some(u64::from(slice))),
            ("wantedDocumentCount", self.wanted.map(u64::from)),
            ("concurrency", self.concurrency.map(u64::from)),
            ("fromTimestamp", self.from_us),
            ("toTimestamp", self.to_us),
            ("timeout", Some(u64::from(self.timeout_s))),
        ];
        for (name, value) in numbers {
            if let Some(value) = value {
                put(name, &value.to_string());
            }
        }
        put("stream", if self.stream { "true" } else { "false" });
        if self.include_removes {
            put("includeRemoves", "true");
        }
        let target = target.as_bytes();
        http.render(&RequestParts { method: "GET", target, ..RequestParts::default() }, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::Authority;

    #[test]
    fn requests_say_what_is_visited() {
        let mut form = VisitForm {
            path: "/document/v1/".to_owned(),
            cluster: Some("music".to_owned()),
            selection: Some("music.artist = \"Bj\u{f6}rk*\"".to_owned()),
            field_set: None,
            from_us: Some(5),
            to_us: None,
            include_removes: true,
            bucket_spaces: vec![String::new(), "global".to_owned()],
            slices: 8,
            stream: true,
            concurrency: None,
            wanted: Some(1000),
            timeout_s: 20,
        };
        let authority = Authority { host: "127.0.0.1".to_owned(), port: 8080, tls: false };
        let http = HttpForm::new(&authority, &form.headers(), false).unwrap();
        let mut out = Vec::new();
        form.render(&http, 3, 0, Some("AAA="), &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.starts_with(
                "GET /document/v1/?cluster=music&selection=music%2Eartist%20%3D%20%22Bj%C3%B6rk%2A%22\
                 &continuation=AAA%3D&slices=8&sliceId=3&wantedDocumentCount=1000&fromTimestamp=5&timeout=20\
                 &stream=true&includeRemoves=true HTTP/1.1\r\n"
            ),
            "{text}"
        );
        assert!(text.contains("\r\nAccept: application/jsonl, application/json;q=0.9\r\n"));
        (form.slices, form.stream, form.include_removes) = (1, false, false);
        let mut out = Vec::new();
        form.render(&http, 0, 1, None, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("slice") && !text.contains("continuation"), "{text}");
        assert!(text.contains("&bucketSpace=global&") && text.contains("&stream=false "), "{text}");
    }
}
