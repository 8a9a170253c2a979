//! What goes over the wire, to the byte, and how requests are dealt out.

use super::{counts, fbench, figure, lines};
use crate::process::Place;
use crate::server::{Server, Step, ok};

#[test]
fn a_get_is_the_originals_to_the_byte() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", "/search/?query=a&hits=1\n");
    fbench(&place, &server, &["-n", "1", "-r", "0", "-q", "q.txt"]).expect(0);
    let expected = format!(
        "GET /search/?query=a&hits=1 HTTP/1.1\r\nHost: 127.0.0.1:{}\r\n\
         X-Yahoo-Vespa-Benchmarkdata: true\r\nUser-Agent: fbench/4.2.10\r\n\r\n",
        server.port()
    );
    assert_eq!(server.seen()[0].text(), expected);
}

#[test]
fn all_flags_of_a_get() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", "/a?b=1\n");
    let flags = [
        "-n",
        "1",
        "-r",
        "0",
        "-q",
        "q.txt",
        "-a",
        "&timeout=5",
        "-H",
        "X-One: 1",
        "-H",
        "X-Two:2",
        "-H",
        "Content-Type: text/x",
        "-A",
        "user@vespa.example:4080",
        "-x",
        "-y",
        "-k",
    ];
    let ended = fbench(&place, &server, &flags).expect(0);
    let expected = "GET /a?b=1&timeout=5 HTTP/1.1\r\nHost: vespa.example:4080\r\nX-One: 1\r\nX-Two:2\r\n\
         X-Yahoo-Vespa-Benchmarkdata: true\r\nX-Yahoo-Vespa-Benchmarkdata-Coverage: true\r\n\
         Connection: close\r\nUser-Agent: fbench/4.2.10\r\n\r\n";
    assert_eq!(server.seen()[0].text(), expected);
    assert!(!ended.stdout.contains("keep-alive statistics"), "{}", ended.stdout);
}

#[test]
fn a_post_is_the_originals_to_the_byte() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", "/search/\n{\"yql\":\"x\",\n\n\"hits\":1}\n/empty\n\n/other\nbody\r\n");
    let flags = ["-n", "1", "-r", "0", "-P", "-q", "q.txt", "-H", "X: y"];
    fbench(&place, &server, &flags).expect(0);
    let seen = server.seen();
    let expected = format!(
        "POST /search/ HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Length: 22\r\nX: y\r\n\
         Content-type:application/json\r\nX-Yahoo-Vespa-Benchmarkdata: true\r\n\
         User-Agent: fbench/4.2.10\r\n\r\n{{\"yql\":\"x\",\n\n\"hits\":1}}",
        server.port()
    );
    assert_eq!(seen[0].text(), expected);
    assert_eq!((seen[1].path(), seen[1].body()), ("/empty".into(), String::new()));
    assert_eq!((seen[2].path(), seen[2].body()), ("/other".into(), "body".into()));
}

#[test]
fn bodies_in_base64() {
    let (place, server) = (Place::new(), Server::ok());
    // "/slash\n/lines" and three bytes that are no text.
    place.file("q.txt", "/a\nL3NsYXNoCi9saW5lcw==\n/b\n_wD-\n");
    fbench(&place, &server, &["-n", "1", "-r", "0", "-P", "-d", "-q", "q.txt"]).expect(0);
    let seen = server.seen();
    assert_eq!(seen[0].body(), "/slash\n/lines");
    assert!(seen[1].bytes.ends_with(b"\r\n\r\n\xff\x00\xfe"), "{}", seen[1].text());
}

#[test]
fn the_host_header_belongs_to_a() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(1));
    for header in ["Host: x", "hOST:x"] {
        let ended = fbench(&place, &server, &["-H", header, "-q", "q.txt"]).expect(64);
        assert!(ended.stderr.contains("use -A"), "{}", ended.stderr);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn hosts_are_dealt_out_to_clients() {
    let place = Place::new();
    let (first, second) = (Server::ok(), Server::ok());
    place.file("q.txt", lines(10));
    let args = ["fbench", "-n", "5", "-r", "0", "-q", "q.txt", "--no-record"];
    let pairs = ["127.0.0.1", &first.port(), "127.0.0.1", &second.port()].map(str::to_owned);
    let ended = place.run(args.map(str::to_owned).into_iter().chain(pairs)).expect(0);
    assert_eq!(counts(&ended), (50, 0));
    assert_eq!((first.requests(), second.requests()), (30, 20));
    assert_eq!((first.connections(), second.connections()), (3, 2));
    assert_eq!(figure(&ended, "connection reuse count --"), 45.0);
}

#[test]
fn a_file_without_a_number_is_read_by_every_client_from_its_start() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(7));
    let ended = fbench(&place, &server, &["-n", "3", "-r", "1", "-q", "q.txt"]).expect(0);
    assert_eq!(counts(&ended), (42, 0), "3 clients, 2 passes of 7");
    for connection in 0..3 {
        let seen = server.seen();
        let own: Vec<String> =
            seen.iter().filter(|s| s.connection == connection).map(|s| s.path()).collect();
        let pass: Vec<String> = (0..7).map(|i| format!("/q{i}")).collect();
        assert_eq!(own, [pass.clone(), pass].concat());
    }
}

#[test]
fn a_file_for_each_client() {
    let (place, server) = (Place::new(), Server::ok());
    for i in 0..3 {
        place.file(&format!("part{i:03}.txt"), format!("/client{i}\n"));
    }
    fbench(&place, &server, &["-n", "3", "-r", "3", "-q", "part%03d.txt"]).expect(0);
    let mut paths = server.paths();
    paths.sort();
    paths.dedup();
    assert_eq!((server.requests(), paths.len()), (12, 3));
}

#[test]
fn the_first_requests_of_each_client_can_be_left_out() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(10));
    let ended =
        fbench(&place, &server, &["-n", "2", "-i", "3", "-r", "0", "-q", "q.txt"]).expect(0);
    assert_eq!(server.requests(), 20);
    assert_eq!(counts(&ended), (14, 0));
}

#[test]
fn without_keep_alive_each_request_has_a_connection() {
    let (place, server) = (Place::new(), Server::start(|_| vec![Step::Send(ok("x")), Step::Close]));
    place.file("q.txt", lines(10));
    let ended = fbench(&place, &server, &["-n", "2", "-k", "-r", "0", "-q", "q.txt"]).expect(0);
    assert_eq!(counts(&ended), (20, 0));
    assert_eq!((server.requests(), server.connections()), (20, 20));
}

#[test]
fn a_link_by_the_originals_name_is_the_original() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(4));
    let program = env!("CARGO_BIN_EXE_plimsoll");
    for name in ["vespa-fbench", "vespa-fbench-split-file", "vespa-fbench-result-filter.pl"] {
        std::os::unix::fs::symlink(program, place.path().join(name)).unwrap();
    }
    let run = |name: &str, args: &[&str], input: &str| {
        let command = place.program(place.path().join(name), args);
        crate::process::Running::start(command, input.as_bytes())
            .wait(crate::process::PATIENCE)
            .expect(0)
    };
    let port = server.port();
    let args = ["-n", "1", "-r", "0", "-s", "3", "-q", "q.txt", "127.0.0.1", &port];
    let summary = run("vespa-fbench", &args, "");
    assert_eq!(counts(&summary), (4, 0));
    run("vespa-fbench-split-file", &["-p", "p%d.txt", "2", "q.txt"], "");
    assert_eq!(place.read("p0.txt").lines().count(), 2);
    let row = run("vespa-fbench-result-filter.pl", &[], &summary.stdout).stdout;
    assert!(row.starts_with("1 3 0 0 0 0 4 4 "), "{row}");
    assert!(row.trim_end().ends_with(" 0 0.00 4"), "{row}");
}

#[test]
fn headers_are_sent_as_they_are_spelt() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", "/a\nbody\n");
    let headers =
        ["-H", "content-TYPE: text/x; a=b ", "-H", "Connection:keep-alive", "-H", "X-Empty:"];
    let flags = [&["-n", "1", "-r", "0", "-P", "-q", "q.txt"], &headers[..]].concat();
    fbench(&place, &server, &flags).expect(0);
    let text = server.seen()[0].text();
    let expected = "Content-Length: 4\r\nConnection:keep-alive\r\nX-Empty:\r\n\
        content-TYPE: text/x; a=b \r\nX-Yahoo-Vespa-Benchmarkdata: true\r\n";
    assert!(text.contains(expected), "{text}");
    for (header, word) in [("no colon", "no colon"), ("Content-Length: 3", "cannot be set")] {
        let ended = fbench(&place, &server, &["-H", header, "-q", "q.txt"]).expect(64);
        assert!(ended.stderr.contains(word), "{}", ended.stderr);
    }
}

#[test]
fn a_connection_that_was_dead_has_not_been_used_again() {
    // It says that it keeps the connection, and closes it.
    let server = Server::start(|_| vec![Step::Send(ok("x")), Step::Close]);
    let place = Place::new();
    place.file("q.txt", lines(6));
    let ended = fbench(&place, &server, &["-n", "1", "-r", "0", "-q", "q.txt"]).expect(0);
    assert_eq!((counts(&ended), server.connections()), ((6, 0), 6));
    assert_eq!(figure(&ended, "connection reuse count --"), 0.0, "{}", ended.stdout);

    // Of three sends on each connection the last one meets the close.
    let server = Server::start(|seen| match seen.number % 3 {
        0 => vec![Step::Send(ok("x"))],
        1 => vec![Step::Send(ok("x"))],
        _ => vec![Step::Close],
    });
    let ended = fbench(&place, &server, &["-n", "1", "-r", "0", "-q", "q.txt"]).expect(0);
    assert_eq!(counts(&ended), (6, 0));
    assert_eq!(server.requests(), 8, "two were sent again");
    assert_eq!(figure(&ended, "connection reuse count --"), 3.0, "{}", ended.stdout);
}

#[test]
fn the_last_of_a_flag_counts() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(4));
    let flags = ["-n", "5", "-n", "1", "-x", "-x", "-r", "7", "-r", "0", "-m", "-3", "-q", "q.txt"];
    let ended = fbench(&place, &server, &flags).expect(0);
    assert_eq!((counts(&ended), server.connections()), ((4, 0), 1));
}

#[test]
fn a_query_file_may_be_a_pipe_or_have_a_number_of_another_base() {
    let (place, server) = (Place::new(), Server::ok());
    let port = server.port();
    let args =
        ["fbench", "-n", "2", "-r", "1", "-q", "/dev/stdin", "--no-record", "127.0.0.1", &port];
    let ended = place.run_with_input(args, lines(3).as_bytes()).expect(0);
    assert_eq!(counts(&ended), (12, 0), "2 clients, 2 passes of 3");
    for client in 0..11 {
        place.file(&format!("q{client:x}.txt"), format!("/client{client}\n"));
    }
    let ended = fbench(&place, &server, &["-n", "11", "-r", "0", "-q", "q%x.txt"]).expect(0);
    assert_eq!(counts(&ended), (11, 0));
}
