//! A server of HTTP/1.1, in every framing, and what can be wrong with each.

use super::application::{Application, Content, SERIAL};
use super::{Answer, Heard, Request, Speaker, in_pieces};
use crate::faults::Fault;
use crate::truth::Fate;
use plimsoll_core::rng::Rng;

/// The server's side, with what it says.
#[derive(Debug)]
pub struct Http1Speaker<A> {
    /// The application behind it.
    pub application: A,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Line {
    /// Bytes of a head that is not complete.
    head: Vec<u8>,
    /// The request whose body is being read, and how much of that is to come.
    reading: Option<(Request, usize)>,
    /// A request that is not answered: the client must not send another.
    open: bool,
}

/// The way the length of a body is said.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Framing {
    Length,
    Chunked,
    Close,
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    haystack.windows(needle.len()).position(|window| window == needle)
}

/// The value of a header, in a head in the form of HTTP/1.1.
pub(crate) fn header<'t>(head: &'t str, name: &str) -> Option<&'t str> {
    let mut lines = head.split("\r\n").filter_map(|line| line.split_once(':'));
    lines.find(|(own, _)| own.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}

impl Line {
    fn begin(&mut self, head: &[u8], heard: &mut Heard) {
        let text = String::from_utf8_lossy(head).into_owned();
        let Some(serial) = header(&text, SERIAL).and_then(|serial| serial.parse().ok()) else {
            heard.offence = Some(format!("a request without a number: {text:?}"));
            return;
        };
        if std::mem::replace(&mut self.open, true) {
            heard.offence =
                Some(format!("request {serial} came before the answer to the one before it"));
        }
        let length = header(&text, "content-length").and_then(|length| length.parse().ok());
        let request = Request { serial, text: head.to_vec(), is_whole: true, ..Request::default() };
        match length.unwrap_or(0) {
            0 => heard.requests.push(request),
            length => {
                heard.requests.push(Request { is_whole: false, ..request.clone() });
                self.reading = Some((request, length));
            }
        }
    }
}

impl<A: Application> Speaker for Http1Speaker<A> {
    type Line = Line;
    const ORDERED: bool = true;
    const FAULTS: &'static [Fault] = &[
        Fault::Stalled,
        Fault::Late,
        Fault::Reset,
        Fault::Closed,
        Fault::HalfClosed,
        Fault::ResetInside,
        Fault::CutInside,
        Fault::Garbage,
        Fault::Flipped,
        Fault::Twice,
        Fault::Stranger,
        Fault::TooLong,
        Fault::TooShort,
        Fault::Refusal,
        Fault::Empty,
        Fault::IdleClosed,
    ];

    fn open(&mut self, _: &mut Rng) -> Line {
        Line::default()
    }

    fn hear(&mut self, line: &mut Line, mut bytes: &[u8], heard: &mut Heard, _: &mut Rng) {
        while !bytes.is_empty() {
            if let Some((_, left)) = &mut line.reading {
                let here = bytes.len().min(*left);
                *left -= here;
                bytes = &bytes[here..];
                if let Some((request, _)) = line.reading.take_if(|(_, left)| *left == 0) {
                    heard.requests.push(request);
                }
                continue;
            }
            let before = line.head.len();
            line.head.extend_from_slice(bytes);
            let Some(end) = find(&line.head, b"\r\n\r\n") else { return };
            let head = std::mem::take(&mut line.head);
            bytes = &bytes[end + 4 - before..];
            line.begin(&head[..end], heard);
        }
    }

    fn begun(&mut self, request: &Request) {
        self.application.begun(request);
    }

    fn forsaken(&mut self, request: &Request, rng: &mut Rng) {
        self.application.forsaken(request, rng);
    }

    fn answer(
        &mut self,
        line: &mut Line,
        request: &Request,
        fault: Option<Fault>,
        rng: &mut Rng,
    ) -> Answer {
        line.open = false;
        let refuses = fault == Some(Fault::Refusal);
        let is_empty = fault == Some(Fault::Empty);
        let mut content = self.application.reply(request, refuses, is_empty, rng);
        let is_cut = matches!(fault, Some(Fault::ResetInside | Fault::CutInside));
        if fault == Some(Fault::Stranger) {
            content = self.application.stranger(request, rng);
        }
        let framing = match rng.below(10) {
            0 if fault.is_none() => Framing::Close,
            0..5 => Framing::Chunked,
            _ => Framing::Length,
        };
        let closes = framing == Framing::Close || (!is_cut && rng.below(12) == 0);
        let wrong = match fault {
            Some(Fault::TooLong) => 1 + rng.below(20) as i64,
            // A body of no byte cannot be shorter.
            Some(Fault::TooShort) => -(1 + rng.below(content.body.len().max(1) as u64) as i64),
            _ => 0,
        };
        let mut bytes = Vec::with_capacity(content.body.len() + 256);
        // Of a reply that is cut behind it nobody could say whether it had begun.
        if !is_cut && rng.below(20) == 0 {
            bytes.extend_from_slice(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n");
        }
        written(&content, framing, closes, wrong, rng, &mut bytes);
        let mut answer = Answer::right(in_pieces(bytes, rng)).with(content.fate);
        answer.closes = closes;
        if fault == Some(Fault::Twice) {
            answer = answer.twice().ruining();
        }
        if wrong != 0 {
            // What is left over or missing is nobody's answer. But a chunk may swallow others whole, or the CR behind it where a
            // client takes the bare line feed for its end: then only the content can show it.
            let is_whole =
                wrong > 0 && framing == Framing::Chunked && is_whole_in_chunks(&answer.pieces);
            let fate = if is_whole { Fate::Doubtful } else { Fate::Wrong };
            answer = answer.with(fate).ruining();
        }
        answer
    }
}

/// Returns true if the chunks of this reply come to an end as they are, for a client that puts up with bare line feeds.
fn is_whole_in_chunks(pieces: &[Vec<u8>]) -> bool {
    let bytes = pieces.concat();
    let Some(head) = find(&bytes, b"chunked\r\n\r\n") else { return false };
    let mut rest = &bytes[head + b"chunked\r\n\r\n".len()..];
    loop {
        let Some(end) = find(rest, b"\n") else { return false };
        let size = std::str::from_utf8(&rest[..end]).unwrap_or_default();
        let size = usize::from_str_radix(size.strip_suffix('\r').unwrap_or(size), 16).ok();
        let data = size.and_then(|size| rest.get(end + 1..)?.split_at_checked(size));
        rest = match (size, data) {
            (Some(0), _) => return true,
            (Some(_), Some((_, [b'\n', behind @ ..] | [b'\r', b'\n', behind @ ..]))) => behind,
            _ => return false,
        };
    }
}

/// A reply in the words of HTTP/1.1. `wrong` is by how much the declared length is off.
fn written(
    content: &Content,
    framing: Framing,
    closes: bool,
    wrong: i64,
    rng: &mut Rng,
    out: &mut Vec<u8>,
) {
    let status = content.status;
    out.extend_from_slice(format!("HTTP/1.1 {status} Said\r\n").as_bytes());
    for (name, value) in &content.headers {
        out.extend_from_slice(format!("{name}: {value}\r\n").as_bytes());
    }
    if closes {
        out.extend_from_slice(b"Connection: close\r\n");
    }
    if status == 204 || status == 304 {
        out.extend_from_slice(b"\r\n");
        return;
    }
    let mut body = &content.body[..];
    match framing {
        Framing::Close => {
            out.extend_from_slice(b"\r\n");
            out.extend_from_slice(body);
        }
        Framing::Length => {
            let length = (body.len() as i64 + wrong).max(0);
            out.extend_from_slice(format!("Content-Length: {length}\r\n\r\n").as_bytes());
            out.extend_from_slice(body);
        }
        Framing::Chunked => {
            out.extend_from_slice(b"Transfer-Encoding: chunked\r\n\r\n");
            let mut off = wrong;
            while !body.is_empty() {
                let size = 1 + rng.below(body.len() as u64) as usize;
                let said = (size as i64 + std::mem::take(&mut off)).max(0);
                out.extend_from_slice(format!("{said:x}\r\n").as_bytes());
                out.extend_from_slice(&body[..size]);
                out.extend_from_slice(b"\r\n");
                body = &body[size..];
            }
            out.extend_from_slice(b"0\r\n\r\n");
        }
    }
}
