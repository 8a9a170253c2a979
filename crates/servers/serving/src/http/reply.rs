//! Writing replies. Everything that does not depend on the request is rendered once.

use super::head::{Asked, Method, Persistence};
use super::refusal::Refusal;

/// The reply to `Expect: 100-continue`.
pub const CONTINUE: &[u8] = b"HTTP/1.1 100 Continue\r\n\r\n";

/// A reply that is the same for every request, rendered for each kind of connection.
#[derive(Debug)]
pub struct Canned {
    kept: Vec<u8>,
    kept_on_request: Vec<u8>,
    closed: Vec<u8>,
    body: Vec<u8>,
}

impl Canned {
    /// Renders a reply with the status line's `status`, for instance `200 OK`.
    pub fn new(status: &str, content_type: &str, body: Vec<u8>) -> Self {
        let head = |connection: &str| {
            let length = body.len();
            format!(
                "HTTP/1.1 {status}\r\nServer: plimsoll\r\nContent-Type: {content_type}\r\n\
                 Content-Length: {length}\r\n{connection}\r\n"
            )
            .into_bytes()
        };
        Self {
            kept: head(""),
            kept_on_request: head("Connection: keep-alive\r\n"),
            closed: head("Connection: close\r\n"),
            body,
        }
    }

    /// A body of `length` bytes of plain text.
    pub fn filler(length: usize) -> Vec<u8> {
        b"plimsoll\n".iter().copied().cycle().take(length).collect()
    }

    /// Appends the reply that `asked` gets.
    #[inline]
    pub fn write(&self, asked: &Asked, out: &mut Vec<u8>) {
        out.extend_from_slice(match asked.persistence {
            Persistence::Kept => &self.kept,
            Persistence::KeptOnRequest => &self.kept_on_request,
            Persistence::Closed => &self.closed,
        });
        if asked.method != Method::Head {
            out.extend_from_slice(&self.body);
        }
    }
}

/// Appends a JSON reply, rendered now.
pub fn write_json(status: &str, body: Vec<u8>, asked: &Asked, out: &mut Vec<u8>) {
    Canned::new(status, "application/json", body).write(asked, out);
}

/// Appends the reply to a request that is refused; its connection is closed afterwards.
pub fn write_refusal(refusal: Refusal, out: &mut Vec<u8>) {
    let (status, text) = match refusal {
        Refusal::Malformed => ("400 Bad Request", "this is not a valid HTTP/1 request\n"),
        Refusal::HeadTooLarge => (
            "431 Request Header Fields Too Large",
            "the head of the request has more than 65536 bytes or 128 fields\n",
        ),
        Refusal::UnknownCoding => {
            ("501 Not Implemented", "the only transfer coding understood is chunked\n")
        }
    };
    let canned = Canned::new(status, "text/plain", text.as_bytes().to_vec());
    out.extend_from_slice(&canned.closed);
    out.extend_from_slice(&canned.body);
}
