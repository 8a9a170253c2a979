//! Selection of a visit, and the form of its requests.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_core::schedule::Slice;
use plimsoll_workloads::render::{HttpForm, RequestParts};
use serde::{Deserialize, Serialize};
use std::fmt::Write;
use std::iter::StepBy;
use std::ops::Range;

/// A visit, as its parameters tell it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct VisitForm {
    /// The path of the collection, `/document/v1/` or below it.
    pub path: String,
    /// The content cluster, if it must be named.
    pub cluster: Option<String>,
    /// Selection of documents; all if `None`.
    pub selection: Option<String>,
    /// Fields of the documents.
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
    /// The only slice that is visited; all where it is none.
    #[serde(default)]
    pub slice_id: Option<u32>,
    /// Part of a larger visit: one slice in as many as there are parts.
    #[serde(default, skip_serializing_if = "Slice::is_whole")]
    pub part: Slice,
    /// True if replies must be packed.
    #[serde(default)]
    pub gzip: bool,
    /// True if replies must stream.
    pub stream: bool,
    /// Buckets visited at once for each request, where it is said.
    pub concurrency: Option<u32>,
    /// Documents after which a reply must end, where it is said.
    pub wanted: Option<u32>,
    /// Longest time that the server may work on one reply, s.
    pub timeout_s: u32,
}

/// One request of a visit.
#[derive(Clone, Copy, Debug)]
pub struct VisitStep<'a> {
    /// Slice that is asked for.
    pub slice: u32,
    /// Index of the bucket space.
    pub space: usize,
    /// Continuation to resume from; none: the beginning.
    pub token: Option<&'a str>,
    /// True if it must not stream: only such a reply can say with its status what is wrong.
    pub plain: bool,
}

/// Documents of a reply that must not stream, at most.
const WANTED_PLAIN: u32 = 1024;

impl VisitForm {
    /// The slices that all parts together visit.
    #[must_use]
    pub fn chosen(&self) -> Range<u32> {
        self.slice_id.map_or(0..self.slices, |slice| slice..slice + 1)
    }

    /// The slices that this part visits.
    pub fn visited(&self) -> StepBy<Range<u32>> {
        let Range { start, end } = self.chosen();
        (start + self.part.index..end).step_by(self.part.of as usize)
    }

    /// The slice that this part visits as number `index`, from 0.
    #[must_use]
    pub fn slice_at(&self, index: u32) -> u32 {
        self.chosen().start + self.part.global(index.into()) as u32
    }

    /// The number of a slice among those that this part visits; `None` if it is another's.
    #[must_use]
    pub fn index_of(&self, slice: u64) -> Option<usize> {
        let from = slice.checked_sub(self.slice_at(0).into())?;
        let of = u64::from(self.part.of);
        Some((from / of) as usize).filter(|&at| from % of == 0 && at < self.visited().len())
    }

    /// Returns how the ids of all documents begin, where the path names their namespace and type.
    #[must_use]
    pub fn id_front(&self) -> Option<String> {
        let mut parts = self.path.strip_prefix("/document/v1/")?.split('/');
        let mut part = || {
            let decoded = decoded(parts.next()?);
            (!decoded.is_empty()).then(|| String::from_utf8_lossy(&decoded).into_owned())
        };
        Some(format!("id:{}:{}:", part()?, part()?))
    }

    /// Returns whether `there` is the path that is asked for, whatever of it is percent-encoded.
    #[must_use]
    pub fn is_path(&self, there: &str) -> bool {
        let plain = |path: &str| decoded(path.trim_end_matches('/'));
        plain(there) == plain(&self.path)
    }

    /// The header lines that go with every request.
    #[must_use]
    pub fn headers(&self) -> Vec<(String, String)> {
        let accept = if self.stream {
            "application/jsonl, application/json;q=0.9"
        } else {
            "application/json"
        };
        let mut headers = vec![("Accept".to_owned(), accept.to_owned())];
        if self.gzip {
            headers.push(("Accept-Encoding".to_owned(), "gzip".to_owned()));
        }
        headers
    }

    /// Appends a request.
    pub fn render(&self, http: &HttpForm, step: VisitStep<'_>, out: &mut Vec<u8>) {
        let VisitStep { slice, space, token, plain } = step;
        let plain = plain && self.stream;
        let stream = self.stream && !plain;
        let wanted = match plain {
            true => Some(self.wanted.unwrap_or(WANTED_PLAIN).min(WANTED_PLAIN)),
            false => self.wanted,
        };
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
            ("wantedDocumentCount", wanted.map(u64::from)),
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
        put("stream", if stream { "true" } else { "false" });
        if self.include_removes {
            put("includeRemoves", "true");
        }
        let target = target.as_bytes();
        http.render(&RequestParts { method: "GET", target, ..RequestParts::default() }, out);
    }
}

/// A path without percent-encoding; a plus stands for a blank there.
fn decoded(path: &str) -> Vec<u8> {
    percent_encoding::percent_decode_str(&path.replace('+', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workloads::authority::Authority;

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
            slice_id: None,
            part: Slice::WHOLE,
            gzip: false,
            stream: true,
            concurrency: None,
            wanted: Some(1000),
            timeout_s: 20,
        };
        let authority = Authority { host: "127.0.0.1".to_owned(), port: 8080, tls: false };
        let http = HttpForm::new(&authority, &form.headers(), false).unwrap();
        let mut out = Vec::new();
        let step = VisitStep { slice: 3, space: 0, token: Some("AAA="), plain: false };
        form.render(&http, step, &mut out);
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
        let step = VisitStep { slice: 0, space: 1, token: None, plain: false };
        form.render(&http, step, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(!text.contains("slice") && !text.contains("continuation"), "{text}");
        assert!(text.contains("&bucketSpace=global&") && text.contains("&stream=false "), "{text}");
        // One that must not stream is a small one.
        (form.stream, form.wanted) = (true, Some(100_000));
        let mut out = Vec::new();
        form.render(&http, VisitStep { plain: true, ..step }, &mut out);
        let text = String::from_utf8(out).unwrap();
        assert!(
            text.contains("wantedDocumentCount=1024&") && text.contains("stream=false"),
            "{text}"
        );
        assert_eq!(form.id_front(), None);
        form.path = "/document/v1/n%20s/music/docid/".to_owned();
        assert_eq!(form.id_front().as_deref(), Some("id:n s:music:"));
        assert!(form.is_path("/document/v1/n+s/music/docid") && !form.is_path("/document/v1/"));
        (form.slices, form.slice_id) = (7, Some(3));
        assert_eq!(form.visited().collect::<Vec<_>>(), [3]);
    }
}
