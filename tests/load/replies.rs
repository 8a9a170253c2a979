//! Replies in every legal form, by a server that is free to choose.

use super::record;
use crate::process::Place;
use crate::server::{Server, Step, send};
use std::io::Write;
use std::time::Duration;

#[test]
fn every_legal_form_is_a_success() {
    let forms: [&str; 14] = [
        "HTTP/1.1 200 OK\r\nContent-Length:2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\ncontent-length:    2   \r\n\r\nok",
        "HTTP/1.1 200 OK\r\nContent-Length: 2, 2\r\n\r\nok",
        "HTTP/1.1 200\r\nContent-Length: 0\r\n\r\n",
        "HTTP/1.1 204 No Content\r\n\r\n",
        "HTTP/1.1 204 No Content\r\nX-A: 1\r\n\r\n",
        "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n\r\n2;ext=1\r\nok\r\n0\r\nX-T: 1\r\n\r\n",
        "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok",
        "HTTP/1.1 200 OK\r\n\r\nuntil the end",
        "HTTP/1.0 200 OK\r\n\r\nuntil the end",
        "HTTP/1.1 200 OK\nContent-Length: 2\n\nok",
    ];
    for form in forms {
        let ends = !form.contains("Length")
            && !form.to_lowercase().contains("chunked")
            && !form.contains("204");
        let closes = ends || form.contains("Connection: close");
        let steps = if closes { [send(form), vec![Step::Close]].concat() } else { send(form) };
        let (place, server) = (Place::new(), Server::start(move |_| steps.clone()));
        let flags = ["--clients", "1", "--requests", "5", "--timeout", "3s"];
        let record = record(&place, &server.url(), &flags, 0);
        assert_eq!((record.ok(), server.requests()), (5, 5), "{form:?}");
        let connections = if closes { 5 } else { 1 };
        assert_eq!(server.connections(), connections, "{form:?}");
        assert!(record.number("/latency_ms/response/max") < 1000.0, "{form:?} was waited for");
    }
}

#[test]
fn a_reply_in_pieces() {
    let pieces = ["HTT", "P/1.1 200 OK\r\nContent-Le", "ngth: 10\r\n\r", "\n01234", "56789"];
    let steps: Vec<Step> = pieces
        .iter()
        .flat_map(|piece| [send(piece), vec![Step::Sleep(Duration::from_millis(5))]].concat())
        .collect();
    let (place, server) = (Place::new(), Server::start(move |_| steps.clone()));
    let record = record(&place, &server.url(), &["--clients", "2", "--requests", "20"], 0);
    assert_eq!((record.ok(), server.requests()), (20, 20));
    assert_eq!(record.count("/counters/bytes_body"), 200);
}

#[test]
fn head_has_no_body() {
    let server = Server::start(|_| send("HTTP/1.1 200 OK\r\nContent-Length: 5000\r\n\r\n"));
    let place = Place::new();
    let flags = ["--clients", "1", "--requests", "5", "--method", "HEAD", "--timeout", "2s"];
    assert_eq!(record(&place, &server.url(), &flags, 0).ok(), 5);
    assert!(server.seen()[0].text().starts_with("HEAD / HTTP/1.1\r\n"));
}

#[test]
fn a_gzip_body_is_decoded_for_a_check() {
    let mut coder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    coder.write_all(b"{\"root\":{\"fields\":{\"totalCount\":7}}}").unwrap();
    let body = coder.finish().unwrap();
    let bytes = crate::server::reply(200, "Content-Encoding: gzip\r\n", &body);
    let (place, server) = (Place::new(), Server::start(move |_| vec![Step::Send(bytes.clone())]));
    let many = ["--clients", "1", "--requests", "10", "--check"];
    let run = |check: &str, code| {
        record(&place, &server.url(), &[many.as_slice(), &[check]].concat(), code)
    };
    assert_eq!(run("/root/fields/totalCount=7", 0).ok(), 10);
    run("/root/fields/totalCount=8", 4).expect_failed("check", 10);
}
