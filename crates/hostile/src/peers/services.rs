//! Services that jobs speak to: a document API that is visited and fed, a receiver of metrics, search engines.

use crate::case::{Case, INJECTED};
use crate::peer::Wire;
use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::{Result, Write};
use std::sync::OnceLock;
use std::time::Duration;

const VISIT: &str = "visit http://127.0.0.1:PORT --cluster c --slices 4 --request-timeout 1s --retries 1 --out out.ndjson --quiet";
const FEED: &str =
    "feed http://127.0.0.1:PORT feed.jsonl --http1 --timeout 1s --retries 1 --deadline 3s --quiet";
const OTLP: &str = "load http://127.0.0.1:PORT/ --clients 1 --duration DURATION --timeout 500ms --otlp http://127.0.0.1:PORT --quiet";
const FBENCH: &str = "fbench -n 4 -s SECONDS -q queries.txt --timeout 1s --quiet 127.0.0.1 PORT";
const SEARCH: &str = "search --engine vespa=http://127.0.0.1:PORT --duration DURATION --quiet";
const SEEK: &str =
    "seek http://127.0.0.1:PORT/ --slo p95=100ms --timeout 500ms --budget 3s --quiet";
const AB: &str = "ab --a http://127.0.0.1:PORT --b http://127.0.0.1:PORT/b --budget 6s --quiet -- load http://127.0.0.1:PORT/ \
                  --rate 50 --timeout 500ms";

/// Replies whose status text and body steer a terminal.
fn replies_that_steer_a_terminal(wire: &mut Wire) -> Result<()> {
    loop {
        wire.request()?;
        wire.send(b"HTTP/1.1 500 \x1b[2J\x1b]0;x\x07\r\nContent-Length: 14\r\n\r\n\x1b[2J\xe2\x80\xaeno\x07\x9b3mx")?;
    }
}

/// A reply without end to each request, and the request itself in it.
fn echo_without_end(wire: &mut Wire) -> Result<()> {
    let request = wire.request()?;
    begin(wire, &request)?;
    wire.repeat(request.as_bytes())
}

/// The path that a request asks for, without its query.
fn path(request: &str) -> &str {
    let target = request.split(' ').nth(1).unwrap_or("/");
    target.split('?').next().unwrap_or(target)
}

fn reply(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The beginning of a reply of any length.
fn begin(wire: &mut Wire, body: &str) -> Result<()> {
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")?;
    wire.send(body.as_bytes())
}

/// A token again and again, and never a document.
fn the_same_token(wire: &mut Wire) -> Result<()> {
    loop {
        let request = wire.request()?;
        let path = path(&request);
        let body = format!(
            "{{\"pathId\":\"{path}\",\"documents\":[],\"documentCount\":0,\"continuation\":\"AAAACAAA\"}}"
        );
        wire.send(&reply(body.as_bytes()))?;
    }
}

/// A new token with each reply.
fn tokens_without_end(wire: &mut Wire) -> Result<()> {
    for number in 0u64.. {
        let request = wire.request()?;
        let path = path(&request);
        let body = format!(
            "{{\"pathId\":\"{path}\",\"documents\":[],\"documentCount\":0,\"continuation\":\"{number:032}\"}}"
        );
        wire.send(&reply(body.as_bytes()))?;
    }
    Ok(())
}

fn token_of_10_mb(wire: &mut Wire) -> Result<()> {
    loop {
        let request = wire.request()?;
        let path = path(&request);
        let token = "A".repeat(10 << 20);
        let body = format!(
            "{{\"pathId\":\"{path}\",\"documents\":[],\"documentCount\":0,\"continuation\":\"{token}\"}}"
        );
        wire.send(&reply(body.as_bytes()))?;
    }
}

/// A token that would end the line of the next request, and begin another.
fn token_that_splits_a_request(wire: &mut Wire) -> Result<()> {
    loop {
        let request = wire.request()?;
        if request.contains("X-Injected")
            || request.starts_with("DELETE")
            || request.contains("Count=9")
        {
            let length = INJECTED.len();
            let head = format!("HTTP/1.1 400 Bad\r\nContent-Length: {length}\r\n\r\n{INJECTED}");
            return wire.send(head.as_bytes());
        }
        let path = path(&request);
        let body = format!(
            "{{\"pathId\":\"{path}\",\"documents\":[],\"documentCount\":0,\
             \"continuation\":\"a b\\r\\nX-Injected: 1\\r\\n\\r\\nDELETE / HTTP/1.1\\r\\n&wantedDocumentCount=9#\"}}"
        );
        wire.send(&reply(body.as_bytes()))?;
    }
}

fn documents_without_end(wire: &mut Wire) -> Result<()> {
    let request = wire.request()?;
    begin(wire, &format!("{{\"pathId\":\"{}\",\"documents\":[", path(&request)))?;
    wire.repeat(b"{\"id\":\"id:a:b::c\",\"fields\":{}},")
}

fn document_without_end(wire: &mut Wire) -> Result<()> {
    let request = wire.request()?;
    begin(
        wire,
        &format!(
            "{{\"pathId\":\"{}\",\"documents\":[{{\"id\":\"id:a:b::c\",\"fields\":{{\"t\":\"",
            path(&request)
        ),
    )?;
    wire.repeat(b"longer and ")
}

fn nesting_without_end(wire: &mut Wire) -> Result<()> {
    let request = wire.request()?;
    begin(
        wire,
        &format!(
            "{{\"pathId\":\"{}\",\"documents\":[{{\"id\":\"id:a:b::c\",\"fields\":",
            path(&request)
        ),
    )?;
    wire.repeat(b"[")
}

fn nesting_in_a_message(wire: &mut Wire) -> Result<()> {
    loop {
        let request = wire.request()?;
        let (open, close) = ("[".repeat(500_000), "]".repeat(500_000));
        let body = format!(
            "{{\"pathId\":\"{}\",\"documents\":[],\"trace\":{open}{close},\"message\":{open}{close}}}",
            path(&request)
        );
        wire.send(&reply(body.as_bytes()))?;
    }
}

fn line_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    begin(wire, "{\"put\":\"id:a:b::c\",\"fields\":{\"t\":\"")?;
    wire.repeat(b"longer and ")
}

fn blanks_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    begin(wire, "{")?;
    wire.repeat(b"  \n")
}

/// A reply that is a gzip bomb: blanks before its first key.
fn gzip_bomb(wire: &mut Wire) -> Result<()> {
    static BOMB: OnceLock<Vec<u8>> = OnceLock::new();
    let bomb = BOMB.get_or_init(|| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let piece = vec![b' '; 16 << 20];
        let _ = encoder.write_all(b"{");
        for _ in 0..64 {
            let _ = encoder.write_all(&piece);
        }
        encoder.finish().unwrap_or_default()
    });
    wire.request()?;
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {}\r\n\r\n",
        bomb.len()
    );
    wire.send(head.as_bytes())?;
    wire.send(bomb)?;
    wire.hold()
}

/// Ids that are paths, and that steer a terminal.
fn ids_that_are_paths(wire: &mut Wire) -> Result<()> {
    loop {
        let request = wire.request()?;
        let body = format!(
            "{{\"pathId\":\"{}\",\"documents\":[{{\"id\":\"id:../../../etc:..%2f..::/tmp/x\\u001b[2J\",\"fields\":{{}}}},\
             {{\"id\":\"/etc/passwd\",\"fields\":{{}}}}],\"documentCount\":2}}",
            path(&request)
        );
        wire.send(&reply(body.as_bytes()))?;
    }
}

fn message_that_steers_a_terminal(wire: &mut Wire) -> Result<()> {
    loop {
        wire.request()?;
        let body = "{\"message\":\"\\u001b[2J\\u001b]0;x\\u0007\u{202e}no\"}";
        let head = format!(
            "HTTP/1.1 400 Bad\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        wire.send(head.as_bytes())?;
    }
}

fn is_silent(wire: &mut Wire) -> Result<()> {
    wire.hold()
}

fn body_by_the_byte(wire: &mut Wire) -> Result<()> {
    let request = wire.request()?;
    begin(wire, &format!("{{\"pathId\":\"{}\",\"documents\":[", path(&request)))?;
    loop {
        wire.drip(b" ", Duration::from_millis(20))?;
    }
}

/// Too busy for ever, and to be asked again in a thousand years.
fn retry_after_ages(wire: &mut Wire) -> Result<()> {
    loop {
        wire.request()?;
        wire.send(b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 31536000000\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn busy_for_ever(wire: &mut Wire) -> Result<()> {
    loop {
        wire.request()?;
        wire.send(b"HTTP/1.1 503 Busy\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn body_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    begin(wire, "{\"message\":\"")?;
    wire.repeat(b"longer and ")
}

/// Answers requests, and is a bad receiver of metrics.
fn receiver(wire: &mut Wire, bad: fn(&mut Wire) -> Result<()>) -> Result<()> {
    loop {
        let request = wire.request()?;
        if request.starts_with("POST /v1/metrics") {
            bad(wire)?;
        } else {
            wire.send(&reply(b"ok"))?;
        }
    }
}

fn receiver_without_end(wire: &mut Wire) -> Result<()> {
    receiver(wire, |wire| {
        begin(wire, "")?;
        wire.repeat(b"more and ")
    })
}

fn receiver_with_headers_without_end(wire: &mut Wire) -> Result<()> {
    receiver(wire, |wire| {
        wire.send(b"HTTP/1.1 200 OK\r\n")?;
        wire.repeat(b"X-More: of the same\r\n")
    })
}

fn receiver_that_is_silent(wire: &mut Wire) -> Result<()> {
    receiver(wire, |wire| wire.hold())
}

fn receiver_that_redirects(wire: &mut Wire) -> Result<()> {
    receiver(wire, |wire| {
        wire.send(b"HTTP/1.1 307 On\r\nLocation: /v1/metrics\r\nContent-Length: 0\r\n\r\n")
    })
}

fn receiver_that_steers_a_terminal(wire: &mut Wire) -> Result<()> {
    receiver(wire, |wire| {
        let body = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}no";
        let head = format!("HTTP/1.1 400 Bad\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        wire.send(head.as_bytes())
    })
}

const V: &str = "visit";
const F: &str = "feed";
const M: &str = "OTLP";
const O: &str = "other jobs";

/// The cases of these services.
pub const CASES: &[Case] = &[
    Case::new((V, "the same token without end"), the_same_token, VISIT, ""),
    Case::new((V, "a new token with each reply"), tokens_without_end, VISIT, "").interrupted(),
    Case::new((V, "a token of 10 MB"), token_of_10_mb, VISIT, "").interrupted(),
    Case::new((V, "a token that would split a request"), token_that_splits_a_request, VISIT, "")
        .interrupted(),
    Case::new((V, "documents without end in one reply"), documents_without_end, VISIT, "")
        .interrupted(),
    Case::new((V, "a document without end"), document_without_end, VISIT, "").within(700 << 20),
    Case::new((V, "nesting without end"), nesting_without_end, VISIT, "").within(700 << 20),
    Case::new((V, "nesting of 500,000 arrays in a message"), nesting_in_a_message, VISIT, ""),
    Case::new((V, "a line without end"), line_without_end, VISIT, "").within(700 << 20),
    Case::new((V, "blanks without end"), blanks_without_end, VISIT, "").within(700 << 20),
    Case::new((V, "a gzip bomb: 1 GiB in 1 MiB"), gzip_bomb, VISIT, "").within(700 << 20),
    Case::new((V, "ids that are paths"), ids_that_are_paths, VISIT, ""),
    Case::new(
        (V, "a message that steers a terminal"),
        message_that_steers_a_terminal,
        VISIT,
        "400",
    ),
    Case::new((V, "silence"), is_silent, VISIT, ""),
    Case::new((V, "a reply by the byte"), body_by_the_byte, VISIT, "").interrupted(),
    Case::new((F, "Retry-After of a thousand years"), retry_after_ages, FEED, ""),
    Case::new((F, "503 without end"), busy_for_ever, FEED, ""),
    Case::new((F, "silence"), is_silent, FEED, ""),
    Case::new((F, "a body without end"), body_without_end, FEED, ""),
    Case::new((F, "a message that steers a terminal"), message_that_steers_a_terminal, FEED, ""),
    Case::new((M, "a reply without end"), receiver_without_end, OTLP, ""),
    Case::new((M, "header lines without end"), receiver_with_headers_without_end, OTLP, ""),
    Case::new((M, "silence"), receiver_that_is_silent, OTLP, ""),
    Case::new((M, "redirects to itself"), receiver_that_redirects, OTLP, ""),
    Case::new((M, "a refusal that steers a terminal"), receiver_that_steers_a_terminal, OTLP, ""),
    Case::new((O, "fbench: a body without end"), body_without_end, FBENCH, ""),
    Case::new((O, "search: a body without end"), body_without_end, SEARCH, ""),
    Case::new((O, "search: silence"), is_silent, SEARCH, ""),
    Case::new((O, "seek: a body without end"), body_without_end, SEEK, ""),
    Case::new((O, "seek: silence"), is_silent, SEEK, ""),
    Case::new((O, "seek: replies that steer a terminal"), replies_that_steer_a_terminal, SEEK, ""),
    Case::new((O, "ab: echoes without end"), echo_without_end, AB, ""),
    Case::new((O, "ab: silence"), is_silent, AB, ""),
    Case::new((O, "ab: replies that steer a terminal"), replies_that_steer_a_terminal, AB, ""),
];
