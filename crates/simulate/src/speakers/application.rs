//! Applications behind an HTTP server, the same for both versions of the protocol.

use super::Request;
use crate::asker::{Said, Tongue};
use crate::truth::Fate;
use plimsoll_core::outcome::Failure;
use plimsoll_core::rng::Rng;
use plimsoll_wire::http::Http;
use plimsoll_wire::http1::{Keep, Reply, Request as HttpRequest};

/// A reply before it is put into the words of a protocol.
#[derive(Clone, Debug)]
pub struct Content {
    /// The status.
    pub status: u16,
    /// Header lines besides those about the length.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
    /// Its meaning for the client.
    pub fate: Fate,
}

/// The application behind an HTTP server.
pub trait Application {
    /// A request has come and will be worked on.
    fn begun(&mut self, _request: &Request) {}

    /// The reply; `refuses` asks for one that says no, `is_empty` for one without a body.
    fn reply(&mut self, request: &Request, refuses: bool, is_empty: bool, rng: &mut Rng)
    -> Content;

    /// The reply to another request.
    fn stranger(&mut self, request: &Request, rng: &mut Rng) -> Content {
        let other = Request { serial: request.serial ^ 1, ..request.clone() };
        Content { fate: Fate::Wrong, ..self.reply(&other, false, false, rng) }
    }

    /// A request is not answered rightly; whether it was done all the same is up to the application.
    fn forsaken(&mut self, _request: &Request, _rng: &mut Rng) {}
}

/// The header that carries the number of a request.
pub const SERIAL: &str = "x-serial";

/// Puts the number of a request into its head.
pub fn stamp(request: &mut HttpRequest, serial: u64) {
    let end = request.bytes.windows(2).position(|two| two == b"\r\n");
    let line = format!("\r\n{SERIAL}: {serial}");
    if let Some(at) = end {
        request.bytes.splice(at..at, line.into_bytes());
    }
}

/// Says the number of each request, with padding and a mark at the end.
#[derive(Clone, Debug)]
pub struct Echo {
    /// Longest padding, bytes.
    pub body_max: u64,
}

fn echo(serial: u64, padding: usize) -> Vec<u8> {
    let mut body = format!("{serial};").into_bytes();
    body.resize(body.len() + padding, b'.');
    body.push(b'!');
    body
}

impl Application for Echo {
    fn reply(
        &mut self,
        request: &Request,
        refuses: bool,
        is_empty: bool,
        rng: &mut Rng,
    ) -> Content {
        let padding = rng.below(self.body_max + 1) as usize;
        let body = if is_empty { Vec::new() } else { echo(request.serial, padding) };
        let (status, fate) = match (refuses, is_empty) {
            (true, _) => (400 + rng.below(200) as u16, Fate::No(Failure::Status)),
            (false, true) => (200, Fate::No(Failure::Check)),
            (false, false) => (200 + rng.below(3) as u16, Fate::Right),
        };
        Content { status, headers: vec![("server", "sim".to_owned())], body, fate }
    }
}

impl Tongue for Http {
    fn ask(request: &mut HttpRequest, serial: u64, rng: &mut Rng) -> bool {
        request.bytes.clear();
        request.head = false;
        request.keep = Keep { head: rng.below(2) == 0, body: true, stream: false };
        let is_post = rng.below(3) == 0;
        let length = if rng.below(4) == 0 { rng.below(90_000) } else { rng.below(600) } as usize;
        let head = if is_post {
            format!(
                "POST /{serial} HTTP/1.1\r\nHost: sim\r\n{SERIAL}: {serial}\r\nContent-Length: {length}\r\n\r\n"
            )
        } else {
            format!("GET /{serial} HTTP/1.1\r\nHost: sim\r\n{SERIAL}: {serial}\r\n\r\n")
        };
        request.bytes.extend_from_slice(head.as_bytes());
        if is_post {
            request.bytes.resize(request.bytes.len() + length, b'b');
        }
        !is_post
    }

    fn said(reply: &Reply<'_>) -> (Said, u16) {
        if !(200..300).contains(&reply.status) {
            return (Said::No(Failure::Status), reply.status);
        }
        let number = reply.body.strip_suffix(b"!").and_then(|body| {
            let (number, padding) = body.split_at(body.iter().position(|byte| *byte == b';')?);
            let is_padding = padding[1..].iter().all(|byte| *byte == b'.');
            std::str::from_utf8(number).ok()?.parse().ok().filter(|_| is_padding)
        });
        (number.map_or(Said::Nothing, Said::Done), reply.status)
    }
}
