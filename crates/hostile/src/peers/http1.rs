//! Servers of HTTP/1.1: heads, bodies, chunks, codings and interim replies that do not end.

use crate::case::Case;
use crate::peer::Wire;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};
use std::io::{Result, Write};
use std::sync::OnceLock;
use std::time::Duration;

const GROUP: &str = "HTTP/1.1";
const LOAD: &str =
    "load http://127.0.0.1:PORT/ --clients 4 --duration DURATION --timeout 500ms --quiet";
const KEEPING: &str = "load http://127.0.0.1:PORT/ --clients 4 --duration DURATION --timeout 2s --check body~needle --quiet";

fn status_line_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 ")?;
    wire.repeat(b"OK")
}

fn header_lines_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\n")?;
    wire.repeat(b"X-More: of the same\r\n")
}

fn header_line_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\nX-Long: ")?;
    wire.repeat(b"longer ")
}

fn header_lines_by_the_byte(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\n")?;
    loop {
        wire.drip(b"X-Slow: 1\r\n", Duration::from_millis(1))?;
    }
}

fn empty_lines_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.repeat(b"\r\n")
}

fn body_by_the_byte(wire: &mut Wire) -> Result<()> {
    loop {
        wire.request()?;
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n")?;
        wire.drip(&[b'x'; 10_000], Duration::from_millis(1))?;
    }
}

fn body_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\n\r\n")?;
    wire.repeat(b"more ")
}

fn body_of_2_63_bytes(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 9223372036854775808\r\n\r\n")?;
    wire.repeat(b"more ")
}

fn body_just_below_the_limit(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 1073741824\r\n\r\n")?;
    wire.repeat(b"more ")
}

fn length_beyond_64_bits(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 18446744073709551617\r\n\r\n")?;
    wire.repeat(b"more ")
}

fn length_below_zero(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n")?;
    wire.hold()
}

fn chunked(wire: &mut Wire, begin: &[u8], again: &[u8]) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")?;
    wire.send(begin)?;
    wire.repeat(again)
}

fn chunk_beyond_64_bits(wire: &mut Wire) -> Result<()> {
    chunked(wire, b"FFFFFFFFFFFFFFFFF\r\n", b"x")
}

fn chunk_size_without_end(wire: &mut Wire) -> Result<()> {
    chunked(wire, b"", b"0")
}

fn chunk_of_2_62_bytes(wire: &mut Wire) -> Result<()> {
    chunked(wire, b"4000000000000000\r\n", b"x")
}

fn chunks_of_one_byte(wire: &mut Wire) -> Result<()> {
    chunked(wire, b"", b"1\r\nx\r\n")
}

fn chunk_extension_without_end(wire: &mut Wire) -> Result<()> {
    chunked(wire, b"1;", b"a=b;")
}

fn chunk_extensions_without_end(wire: &mut Wire) -> Result<()> {
    chunked(wire, b"", b"1;name=\"a value of some length, in each of the lines\"\r\nx\r\n")
}

fn trailers_without_end(wire: &mut Wire) -> Result<()> {
    chunked(wire, b"0\r\n", b"X-Trailer: of many\r\n")
}

fn continue_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.repeat(b"HTTP/1.1 100 Continue\r\n\r\n")
}

fn early_hints_without_end(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    let link = format!("HTTP/1.1 103 Early Hints\r\nLink: <{}>\r\n\r\n", "l".repeat(8_000));
    wire.repeat(link.as_bytes())
}

fn thousands_of_interim_replies(wire: &mut Wire) -> Result<()> {
    loop {
        wire.request()?;
        wire.send(&b"HTTP/1.1 102 Processing\r\n\r\n".repeat(5_000))?;
        wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn replies_nobody_asked_for(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.repeat(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
}

fn redirects_to_itself(wire: &mut Wire) -> Result<()> {
    loop {
        wire.request()?;
        wire.send(b"HTTP/1.1 302 Found\r\nLocation: /\r\nContent-Length: 0\r\n\r\n")?;
    }
}

fn bytes_at_random(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    let noise: Vec<u8> =
        (0..60_000u64).map(|n| (plimsoll_core::rng::splitmix64(n) >> 32) as u8).collect();
    wire.repeat(&noise)
}

fn greets_before_it_is_asked(wire: &mut Wire) -> Result<()> {
    wire.repeat(b"220 welcome to another protocol\r\n")
}

fn is_silent(wire: &mut Wire) -> Result<()> {
    wire.hold()
}

fn closes_at_once(_: &mut Wire) -> Result<()> {
    Ok(())
}

fn text_that_steers_a_terminal(wire: &mut Wire) -> Result<()> {
    let body = "\u{1b}]0;owned\u{7}\u{1b}[2J\u{1b}[31mred\r\u{9b}31m\u{202e}drow<script>alert(1)</script>\0";
    let reply = format!(
        "HTTP/1.1 500 \u{1b}[2Jbad\r\nX-Kind: \u{1b}[31m\r\nServer: \u{202e}x\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    loop {
        wire.request()?;
        wire.send(reply.as_bytes())?;
    }
}

/// Writes a gigabyte of zeros.
fn zeros(into: &mut dyn Write) -> Result<()> {
    let piece = vec![0; 16 << 20];
    (0..64).try_for_each(|_| into.write_all(&piece))
}

/// A gigabyte of zeros as gzip, packed once.
fn gzip() -> &'static [u8] {
    static PACKED: OnceLock<Vec<u8>> = OnceLock::new();
    PACKED.get_or_init(|| {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        let _ = zeros(&mut encoder);
        encoder.finish().unwrap_or_default()
    })
}

/// The same as zlib's stream.
fn zlib() -> &'static [u8] {
    static PACKED: OnceLock<Vec<u8>> = OnceLock::new();
    PACKED.get_or_init(|| {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::best());
        let _ = zeros(&mut encoder);
        encoder.finish().unwrap_or_default()
    })
}

fn coded(wire: &mut Wire, coding: &str, body: &[u8]) -> Result<()> {
    let length = body.len();
    let head = format!(
        "HTTP/1.1 200 OK\r\nContent-Encoding: {coding}\r\nContent-Length: {length}\r\n\r\n"
    );
    loop {
        wire.request()?;
        wire.send(head.as_bytes())?;
        wire.send(body)?;
    }
}

fn gzip_bomb(wire: &mut Wire) -> Result<()> {
    coded(wire, "gzip", gzip())
}

fn deflate_bomb(wire: &mut Wire) -> Result<()> {
    coded(wire, "deflate", zlib())
}

fn members_of_gzip_without_content(wire: &mut Wire) -> Result<()> {
    let empty = GzEncoder::new(Vec::new(), Compression::fast()).finish()?;
    coded(wire, "gzip", &empty.repeat((4 << 20) / empty.len() - 1))
}

fn brotli_and_zstd(wire: &mut Wire) -> Result<()> {
    coded(wire, "br, zstd, gzip", &[0; 1_000])
}

/// Every connection keeps four MiB of an unfinished reply.
fn unfinished_replies(wire: &mut Wire) -> Result<()> {
    wire.request()?;
    wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5000000\r\n\r\n")?;
    wire.send(&vec![b'x'; 4 << 20])?;
    wire.hold()
}

/// The cases of this protocol.
pub const CASES: &[Case] = &[
    Case::new((GROUP, "a status line without end"), status_line_without_end, LOAD, "head exceeds the limit"),
    Case::new((GROUP, "header lines without end"), header_lines_without_end, LOAD, "head exceeds the limit"),
    Case::new((GROUP, "one header line without end"), header_line_without_end, LOAD, "head exceeds the limit"),
    Case::new((GROUP, "header lines, a byte each millisecond"), header_lines_by_the_byte, LOAD, "timeout"),
    Case::new((GROUP, "empty lines without end"), empty_lines_without_end, LOAD, "empty lines without end"),
    Case::new((GROUP, "a body, a byte each millisecond"), body_by_the_byte, LOAD, "timeout"),
    Case::new((GROUP, "a body without length and end"), body_without_end, LOAD, ""),
    Case::new((GROUP, "a body of 2^63 bytes"), body_of_2_63_bytes, LOAD, "body exceeds the limit"),
    Case::new((GROUP, "a body of 1 GiB that a check needs"), body_just_below_the_limit, KEEPING, ""),
    Case::new((GROUP, "a length beyond 64 bits"), length_beyond_64_bits, LOAD, "does not fit in 64 bits"),
    Case::new((GROUP, "a length below zero"), length_below_zero, LOAD, "not a number"),
    Case::new((GROUP, "a chunk beyond 64 bits"), chunk_beyond_64_bits, LOAD, "does not fit in 64 bits"),
    Case::new((GROUP, "a chunk size without end"), chunk_size_without_end, LOAD, "exceed the limit"),
    Case::new((GROUP, "a chunk of 2^62 bytes"), chunk_of_2_62_bytes, LOAD, "body exceeds the limit"),
    Case::new((GROUP, "chunks of one byte without end"), chunks_of_one_byte, KEEPING, ""),
    Case::new((GROUP, "a chunk extension without end"), chunk_extension_without_end, LOAD, "exceed the limit"),
    Case::new((GROUP, "chunks with long extensions without end"), chunk_extensions_without_end, LOAD, ""),
    Case::new((GROUP, "trailers without end"), trailers_without_end, LOAD, "exceed the limit"),
    Case::new((GROUP, "100 Continue without end"), continue_without_end, LOAD, "timeout"),
    Case::new((GROUP, "103 Early Hints of 8 kB without end"), early_hints_without_end, LOAD, "timeout"),
    Case::new((GROUP, "5,000 interim replies before each reply"), thousands_of_interim_replies, LOAD, ""),
    Case::new((GROUP, "replies that no request asked for"), replies_nobody_asked_for, LOAD, ""),
    Case::new((GROUP, "redirects to itself"), redirects_to_itself, LOAD, "302"),
    Case::new((GROUP, "random bytes"), bytes_at_random, LOAD, ""),
    Case::new((GROUP, "a greeting without end, before the request"), greets_before_it_is_asked, LOAD, ""),
    Case::new((GROUP, "silence"), is_silent, LOAD, "timeout"),
    Case::new((GROUP, "a close of every connection at once"), closes_at_once, LOAD, ""),
    Case::new((GROUP, "text that steers a terminal"), text_that_steers_a_terminal, LOAD, "500"),
    Case::new((GROUP, "a gzip bomb: 1 GiB in 1 MiB"), gzip_bomb, KEEPING, ""),
    Case::new((GROUP, "a deflate bomb: 1 GiB in 1 MiB"), deflate_bomb, KEEPING, ""),
    Case::new((GROUP, "200,000 empty gzip members"), members_of_gzip_without_content, KEEPING, ""),
    Case::new((GROUP, "br, zstd and gzip on top of each other"), brotli_and_zstd, KEEPING, "content coding that was not"),
    Case::new(
        (GROUP, "400 unfinished replies of 4 MiB"),
        unfinished_replies,
        "load http://127.0.0.1:PORT/ --clients 400 --duration DURATION --timeout 3s --check body~needle --quiet",
        "",
    )
    .within(700 << 20),
];
