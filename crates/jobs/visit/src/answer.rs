//! Meaning of the reply to a small request before a visit.

use super::form::VisitForm;
use super::item::Item;
use super::reply::{ReplyForm, ReplyReader};
use super::slice::{NOT_A_VISIT, Verdict, refused};
use plimsoll_core::secrets::without_remembered;
use plimsoll_wire::http1::{Reply, decode_body};

/// Meaning of a reply for the visit that is to come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answered {
    /// It is the reply to a visit.
    Visit,
    /// The target refuses the visit, for this reason.
    Refused(String),
    /// A reply of status 200 that is none to a visit, for this reason.
    Stranger(String),
    /// The target is busy or has not come to an end; the visit itself will tell.
    Unknown,
}

/// Bytes of a strange reply that are shown.
const SHOWN_BYTES: usize = 100;
/// Longest reply that is unpacked, bytes.
const UNPACKED_MAX_BYTES: usize = 4 << 20;

/// Reads the reply to a request that does not stream.
#[must_use]
pub fn read_answer(form: &VisitForm, reply: &Reply<'_>) -> Answered {
    let mut scratch = Vec::new();
    let body = decode_body(reply, &mut scratch, UNPACKED_MAX_BYTES).unwrap_or(reply.body);
    if reply.status != 200 {
        return match refused(reply.status, body) {
            Verdict::Never(why) => Answered::Refused(why),
            _ => Answered::Unknown,
        };
    }
    let (mut names_path, mut has_documents) = (false, false);
    let mut each = |item: Item<'_>| match item {
        Item::Path(path) => names_path |= form.is_path(&path),
        Item::Documents => has_documents = true,
        _ => {}
    };
    let mut reader = ReplyReader::default();
    // A bucket may hold more than is kept of a reply: what came of it tells enough.
    let read = reader.feed(body, &mut each);
    let is_object = reader.form() == Some(ReplyForm::Object);
    if read.is_ok() && is_object && names_path && has_documents {
        return Answered::Visit;
    }
    let shown = String::from_utf8_lossy(&body[..body.len().min(SHOWN_BYTES)]);
    let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
    let shown = without_remembered(shown);
    let path = &form.path;
    Answered::Stranger(format!(
        "{NOT_A_VISIT} (an object with the 'pathId' {path} and 'documents'): {shown}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::http1::Encoding;

    fn answer(status: u16, body: &str) -> Answered {
        let form = VisitForm {
            path: "/document/v1/".to_owned(),
            cluster: None,
            selection: None,
            field_set: None,
            from_us: None,
            to_us: None,
            include_removes: false,
            bucket_spaces: Vec::new(),
            slices: 1,
            slice_id: None,
            part: plimsoll_core::schedule::Slice::WHOLE,
            gzip: false,
            stream: false,
            concurrency: None,
            wanted: Some(1),
            timeout_s: 2,
        };
        let reply = Reply {
            status,
            head: b"",
            body: body.as_bytes(),
            encoding: Encoding::Identity,
            body_bytes: body.len() as u64,
            truncated: false,
        };
        read_answer(&form, &reply)
    }

    #[test]
    fn a_visit_is_told_from_what_is_none() {
        let front = r#"{"pathId":"/document/v1/","documents":["#;
        assert_eq!(answer(200, &format!("{front}],\"documentCount\":0}}")), Answered::Visit);
        // Only the beginning of a large bucket.
        assert_eq!(answer(200, &format!(r#"{front}{{"id":"id:a:b::c","#)), Answered::Visit);
        for strange in [
            "",
            "{}",
            "[]",
            "<html>",
            r#"{"ok":true,"total":3,"items":[1,2,3]}"#,
            r#"{"pathId":"/document/v1/a/b/docid/1","id":"id:a:b::1","fields":{}}"#,
            r#"{"pathId":"/document/v1/","documentCount":0}"#,
            r#"{"pathId":"/other/","documents":[],"documentCount":0}"#,
            r#"{"put":"id:a:b::c","fields":{}}"#,
        ] {
            let Answered::Stranger(why) = answer(200, strange) else { panic!("{strange}") };
            assert!(why.contains("not that of a visit"), "{why}");
        }
        for status in [408, 429, 500, 503, 504] {
            assert_eq!(answer(status, "{}"), Answered::Unknown, "{status}");
        }
        let message = "Must set 'cluster' parameter to a valid content cluster id";
        let Answered::Refused(why) = answer(400, &format!("{{\"message\":\"{message}\"}}")) else {
            panic!("400 is no refusal");
        };
        assert_eq!(why, format!("HTTP 400: {message}; use --cluster NAME"));
    }
}
