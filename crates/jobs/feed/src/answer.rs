//! Meaning of a reply to an operation: a good status alone does not say that the document was written.
//!
//! Any server answers with 200 to something. A reply counts only if it names the operation's document, and if
//! the target does not say that it left something out (`X-Vespa-Ignored-Fields`, `X-Vespa-Ignored-Operation`).

use super::batch::Item;
use plimsoll_wire::http1::{Reply, decode_body};
use serde::Deserialize;
use std::borrow::Cow;

/// Meaning of a reply with a good status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// The operation was done.
    Done,
    /// It was done, but for fields that the target does not know.
    FieldsIgnored,
    /// It was not done: the target has no cluster for the document.
    OperationIgnored,
    /// The reply is not that of this operation, for this reason.
    Stranger(String),
}

/// Bytes of a reply that a reason shows.
const SHOWN_BYTES: usize = 120;
/// Longest reply that is unpacked, bytes.
const UNPACKED_MAX_BYTES: usize = 1 << 20;
/// Prefix of the header names for what was left out.
const IGNORED: &[u8] = b"x-vespa-ignored-";

/// Reads the reply to an operation.
pub fn read(reply: &Reply<'_>, item: &Item, bytes: &[u8]) -> Answer {
    if !names_document(reply, item, bytes) {
        let unpacked = body_of(reply);
        let shown = String::from_utf8_lossy(&unpacked[..unpacked.len().min(SHOWN_BYTES)]);
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        let status = reply.status;
        return Answer::Stranger(match shown.as_str() {
            "" => format!("HTTP {status} without a body: not the reply of a document operation"),
            _ => format!(
                "HTTP {status}, but the reply does not name this document in 'id' or 'pathId': {shown}"
            ),
        });
    }
    let mut answer = Answer::Done;
    for (name, value) in reply.headers() {
        let front = name.get(..IGNORED.len());
        if !front.is_some_and(|front| front.eq_ignore_ascii_case(IGNORED))
            || !value.eq_ignore_ascii_case(b"true")
        {
            continue;
        }
        if name[IGNORED.len()..].eq_ignore_ascii_case(b"operation") {
            return Answer::OperationIgnored;
        }
        if name[IGNORED.len()..].eq_ignore_ascii_case(b"fields") {
            answer = Answer::FieldsIgnored;
        }
    }
    answer
}

/// The path of a request target, without its parameters.
fn path_of(target: &[u8]) -> &[u8] {
    let end = memchr::memchr(b'?', target).unwrap_or(target.len());
    &target[..end]
}

/// The body without its coding; as it came where that cannot be undone.
fn body_of(reply: &Reply<'_>) -> Vec<u8> {
    let mut scratch = Vec::new();
    decode_body(reply, &mut scratch, UNPACKED_MAX_BYTES).unwrap_or(reply.body).to_vec()
}

fn names_document(reply: &Reply<'_>, item: &Item, bytes: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Named<'a> {
        #[serde(borrow)]
        id: Option<Cow<'a, str>>,
        #[serde(rename = "pathId", borrow)]
        path: Option<Cow<'a, str>>,
    }
    let path = path_of(item.target(bytes));
    // Vespa's replies begin with the path as it was sent; nothing has to be parsed then.
    let front = reply.body.strip_prefix(b"{\"pathId\":\"").and_then(|rest| rest.strip_prefix(path));
    if front.is_some_and(|rest| rest.first() == Some(&b'"')) {
        return true;
    }
    let body = body_of(reply);
    let Ok(named) = serde_json::from_slice::<Named<'_>>(&body) else { return false };
    let decoded = |text: &[u8]| {
        let spaced: Vec<u8> = text.iter().map(|b| if *b == b'+' { b' ' } else { *b }).collect();
        percent_encoding::percent_decode(&spaced).collect::<Vec<u8>>()
    };
    let own_id = || serde_json::from_slice::<String>(item.id_json(bytes)).ok();
    named.path.is_some_and(|there| decoded(there.as_bytes()) == decoded(path))
        || named.id.is_some_and(|there| own_id().as_deref() == Some(&*there))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Batch, Parameters, parse};
    use plimsoll_wire::http1::Encoding;

    fn answer(head: &str, body: &str) -> Answer {
        let text = r#"{"put":"id:n:t:g=a b:\u00e6/1","condition":"t","fields":{}}"#;
        let mut batch = Batch::default();
        batch.push(&parse(text.as_bytes()).unwrap(), (1, 0, 1), &Parameters::default());
        let (item, bytes) = batch.take().unwrap();
        let reply = Reply {
            status: 200,
            head: head.as_bytes(),
            body: body.as_bytes(),
            encoding: Encoding::Identity,
            body_bytes: body.len() as u64,
            truncated: false,
        };
        read(&reply, &item, bytes)
    }

    const OWN: &str =
        r#"{"pathId":"/document/v1/n/t/group/a%20b/%C3%A6%2F1","id":"id:n:t:g=a b:æ/1"}"#;

    #[test]
    fn a_reply_must_name_the_document() {
        for good in [
            OWN,
            r#"{"id":"id:n:t:g=a b:\u00e6/1"}"#,
            r#"{ "trace":[{"id":1}], "pathId" : "/document/v1/n/t/group/a+b/%c3%a6/1" }"#,
        ] {
            assert_eq!(answer("", good), Answer::Done, "{good}");
        }
        for bad in [
            "",
            "{}",
            "[]",
            "ok",
            r#"{"ok":true}"#,
            r#"{"id":"id:n:t::other"}"#,
            r#"{"pathId":"/document/v1/n/t/group/a%20b/%C3%A6%2F10"}"#,
            r#"{"pathId":"/document/v1/n/t/group/a%20b/"}"#,
            r#"{"id":7}"#,
        ] {
            let Answer::Stranger(why) = answer("", bad) else { panic!("{bad} was taken") };
            assert!(why.starts_with("HTTP 200"), "{why}");
        }
    }

    #[test]
    fn what_the_target_left_out_is_told() {
        let fields = "Content-Type: application/json\r\nx-vespa-ignored-fields: true\r\n";
        assert_eq!(answer(fields, OWN), Answer::FieldsIgnored);
        let both = "X-Vespa-Ignored-Fields: true\r\nX-Vespa-Ignored-Operation: true\r\n";
        assert_eq!(answer(both, OWN), Answer::OperationIgnored);
        assert_eq!(answer("X-Vespa-Ignored-Fields: false\r\n", OWN), Answer::Done);
    }
}
