//! PostgreSQL's codec: scripted servers, any split of their bytes, and bytes at random.

// Everything here is a test, which clippy can only tell of functions marked as such.
#![allow(clippy::unwrap_used, missing_docs)]

use plimsoll_wire::postgres::{Login, Postgres, Request, Statement, Transaction};
use plimsoll_wire::{Event, Fault, Layer, Protocol};
use proptest::prelude::*;

type Conn = <Postgres as Protocol>::Conn;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = vec![kind];
    bytes.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
    bytes.extend_from_slice(body);
    bytes
}

fn row(values: &[Option<&[u8]>]) -> Vec<u8> {
    let mut body = (values.len() as u16).to_be_bytes().to_vec();
    for value in values {
        match value {
            Some(value) => {
                body.extend_from_slice(&(value.len() as i32).to_be_bytes());
                body.extend_from_slice(value);
            }
            None => body.extend_from_slice(&(-1i32).to_be_bytes()),
        }
    }
    message(b'D', &body)
}

fn error(severity: &str, code: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("S{severity}\0V{severity}\0C{code}\0M{text}\0\0").as_bytes())
}

/// What a server that trusts everybody says first.
fn welcome() -> Vec<u8> {
    [
        message(b'R', &[0, 0, 0, 0]),
        message(b'S', b"server_version\x0015.1\0"),
        message(b'K', &[0; 8]),
        message(b'Z', b"I"),
    ]
    .concat()
}

fn protocol() -> Postgres {
    let login = Login::new("me", Some("secret"), "db", &[]).unwrap();
    let statements = ["SELECT $1", "SELECT 2"].map(|sql| Statement::new(sql).unwrap());
    Postgres::new(login).with_statements(statements.to_vec()).with_depth(8)
}

/// What an event looked like, with everything that was borrowed copied.
#[derive(Clone, Debug, PartialEq)]
enum Seen {
    Reply {
        tag: u32,
        rows: u64,
        first: Option<Vec<u8>>,
        command: Vec<u8>,
        error: Option<(Vec<u8>, String)>,
        transaction: Transaction,
        reusable: bool,
        bytes: u64,
    },
    Fault(Fault),
}

/// Feeds pieces; returns what was seen and what the codec wanted to send.
fn feed<'a>(
    protocol: &Postgres,
    conn: &mut Conn,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Vec<Seen>, Vec<u8>) {
    let (mut seen, mut out) = (Vec::new(), Vec::new());
    for mut piece in pieces {
        loop {
            match protocol.receive(conn, piece, &mut out) {
                Ok(Event::More) => break,
                Ok(Event::Progress { consumed }) => piece = &piece[consumed..],
                Ok(Event::Reply { tag, reply, consumed, reusable }) => {
                    piece = &piece[consumed..];
                    seen.push(Seen::Reply {
                        tag,
                        rows: reply.rows,
                        first: reply.value(0).map(<[u8]>::to_vec),
                        command: reply.tag.to_vec(),
                        error: reply
                            .error
                            .map(|error| (error.code().to_vec(), error.message().into_owned())),
                        transaction: reply.transaction,
                        reusable,
                        bytes: reply.bytes,
                    });
                    if !reusable {
                        return (seen, out);
                    }
                }
                Ok(other) => panic!("{other:?}"),
                Err(fault) => {
                    seen.push(Seen::Fault(fault));
                    return (seen, out);
                }
            }
        }
    }
    (seen, out)
}

/// A connection that is logged in.
fn open(protocol: &Postgres) -> Conn {
    let mut out = Vec::new();
    let mut conn = protocol.open(&mut out);
    assert!(!protocol.is_ready(&conn));
    let hello = &out[8..];
    assert_eq!(out[4..8], [0, 3, 0, 0]);
    assert!(hello.starts_with(b"user\0me\0database\0db\0"), "{hello:?}");
    assert_eq!(feed(protocol, &mut conn, [&welcome()[..]]), (vec![], vec![]));
    assert!(protocol.is_ready(&conn));
    conn
}

fn query(sql: &str) -> Request {
    let mut request = Request::default();
    request.query(sql).unwrap();
    request
}

#[test]
fn rows_are_counted_and_the_first_is_kept() {
    let protocol = protocol();
    let mut conn = open(&protocol);
    let mut out = Vec::new();
    protocol.submit(&mut conn, &query("SELECT x FROM t"), 7, &mut out);
    assert_eq!(out[0], b'Q');
    let reply = [
        message(b'T', b"\0\x01x\0..................."),
        row(&[Some(b"one"), None]),
        message(b'N', b"SNOTICE\0\0"),
        row(&[Some(b"two")]),
        message(b'C', b"SELECT 2\0"),
        message(b'Z', b"T"),
    ]
    .concat();
    let (seen, said) = feed(&protocol, &mut conn, [&reply[..]]);
    let expected = Seen::Reply {
        tag: 7,
        rows: 2,
        first: Some(b"one".to_vec()),
        command: b"SELECT 2".to_vec(),
        error: None,
        transaction: Transaction::Open,
        reusable: true,
        bytes: reply.len() as u64,
    };
    assert_eq!((seen, said), (vec![expected], vec![]));
    assert_eq!(protocol.capacity(&conn), 8);
    assert_eq!(protocol.end(&mut conn), Err(Fault::Closed { began: false }));
}

#[test]
fn of_several_requests_only_the_first_can_have_a_reply_that_began() {
    let protocol = protocol();
    let (mut conn, mut out) = (open(&protocol), Vec::new());
    for tag in [7, 8] {
        protocol.submit(&mut conn, &query("SELECT x FROM t"), tag, &mut out);
    }
    let began = |conn: &_| [7, 8].map(|tag| protocol.began(conn, tag));
    assert_eq!(began(&conn), [None, Some(false)]);
    feed(&protocol, &mut conn, [&message(b'T', b"\0\x01x\0...................")[..]]);
    assert_eq!(began(&conn), [Some(true), Some(false)], "the client may end the connection itself");
    assert_eq!(protocol.end(&mut conn), Err(Fault::Closed { began: true }));
    assert_eq!([7, 8].map(|tag| protocol.began(&conn, tag)), [None, Some(false)]);
}

#[test]
fn a_statement_is_parsed_once_a_connection_and_again_after_its_parsing_failed() {
    let protocol = protocol();
    let mut conn = open(&protocol);
    let mut request = Request::default();
    request.execute(0, &[Some(b"1")]);
    let sent = |conn: &mut Conn, tag| {
        let mut out = Vec::new();
        protocol.submit(conn, &request, tag, &mut out);
        out[0]
    };
    assert_eq!((sent(&mut conn, 0), sent(&mut conn, 1)), (b'P', b'B'), "only the first parses it");
    let failed = [error("ERROR", "42601", "no"), message(b'Z', b"I")].concat();
    let (seen, _) = feed(&protocol, &mut conn, [&failed[..], &failed[..]]);
    assert_eq!(seen.len(), 2);
    assert_eq!(sent(&mut conn, 2), b'P', "what failed is tried again");
    let good = [
        message(b'1', b""),
        message(b'2', b""),
        row(&[Some(b"1")]),
        message(b'C', b"SELECT 1\0"),
        message(b'Z', b"I"),
    ]
    .concat();
    let (seen, _) = feed(&protocol, &mut conn, [&good[..]]);
    assert!(matches!(&seen[0], Seen::Reply { tag: 2, rows: 1, error: None, .. }), "{seen:?}");
    assert_eq!(sent(&mut conn, 3), b'B');
}

#[test]
fn errors_are_replies_and_fatal_ones_the_last() {
    let protocol = protocol();
    let mut conn = open(&protocol);
    let mut out = Vec::new();
    for tag in 0..3 {
        protocol.submit(&mut conn, &query("x"), tag, &mut out);
    }
    let said = [
        error("ERROR", "42601", "syntax error"),
        message(b'Z', b"I"),
        error("FATAL", "57P01", "terminating connection"),
    ]
    .concat();
    let (seen, _) = feed(&protocol, &mut conn, [&said[..]]);
    let told: Vec<_> = seen
        .iter()
        .map(|seen| match seen {
            Seen::Reply { tag, error: Some((code, text)), reusable, .. } => {
                (*tag, String::from_utf8_lossy(code).into_owned(), text.clone(), *reusable)
            }
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(
        told,
        [
            (0, "42601".to_owned(), "syntax error".to_owned(), true),
            (1, "57P01".to_owned(), "terminating connection".to_owned(), false)
        ]
    );
    assert_eq!(protocol.capacity(&conn), 0);
    // While nothing is asked, it ends the connection.
    let mut conn = open(&protocol);
    let (seen, _) = feed(&protocol, &mut conn, [&error("FATAL", "57P01", "bye")[..]]);
    assert!(matches!(seen[..], [Seen::Fault(Fault::Reset { began: false, .. })]), "{seen:?}");
}

#[test]
fn requests_wait_for_the_end_of_the_login_and_learn_why_it_failed() {
    let protocol = protocol();
    let mut out = Vec::new();
    let mut conn = protocol.open(&mut out);
    out.clear();
    protocol.submit(&mut conn, &query("SELECT 1"), 4, &mut out);
    assert!(out.is_empty(), "sent before the login");
    let (seen, said) = feed(&protocol, &mut conn, [&welcome()[..]]);
    assert_eq!((seen.len(), said[0]), (0, b'Q'));
    let mut conn = protocol.open(&mut out);
    protocol.submit(&mut conn, &query("SELECT 1"), 5, &mut out);
    let (seen, said) = feed(&protocol, &mut conn, [&error("FATAL", "28P01", "wrong")[..]]);
    assert!(
        matches!(&seen[..], [Seen::Reply { tag: 5, error: Some(_), reusable: false, .. }]),
        "{seen:?}"
    );
    assert!(said.is_empty());
}

#[test]
fn passwords_go_out_as_the_server_asks() {
    let protocol = protocol();
    let ask = |body: &[u8]| {
        let mut conn = protocol.open(&mut Vec::new());
        feed(&protocol, &mut conn, [&message(b'R', body)[..]])
    };
    assert_eq!(ask(&[0, 0, 0, 3]).1, message(b'p', b"secret\0"));
    let (seen, said) = ask(&[0, 0, 0, 5, 1, 2, 3, 4]);
    assert!(seen.is_empty() && said.starts_with(b"p\0\0\0\x28md5"), "{said:?}");
    let (_, said) = ask(b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0SCRAM-SHA-256\0\0");
    assert!(said[5..].starts_with(b"SCRAM-SHA-256\0"), "{said:?}");
    for wrong in [
        &[0, 0, 0, 7][..],
        &[0, 0, 0, 11],
        &[0, 0, 0, 12],
        &[0, 0],
        b"\0\0\0\x0aSCRAM-SHA-256-PLUS\0\0",
    ] {
        assert!(matches!(ask(wrong).0[..], [Seen::Fault(Fault::Protocol(_))]), "{wrong:?}");
    }
    let open = Postgres::new(Login::new("me", None, "db", &[]).unwrap());
    let mut conn = open.open(&mut Vec::new());
    let asked = message(b'R', &[0, 0, 0, 3]);
    let Seen::Fault(fault) = feed(&open, &mut conn, [&asked[..]]).0.remove(0) else { panic!() };
    assert!(fault.text().contains("none was given"));
    let shown = format!("{:?}", Login::new("me", Some("secret"), "db", &[]).unwrap());
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_server_that_never_proved_itself_is_not_believed() {
    let protocol = protocol();
    let mut conn = protocol.open(&mut Vec::new());
    let said = [
        message(b'R', b"\0\0\0\x0aSCRAM-SHA-256\0\0"),
        message(b'R', &[0, 0, 0, 0]),
        message(b'Z', b"I"),
    ]
    .concat();
    let (seen, _) = feed(&protocol, &mut conn, [&said[..]]);
    assert!(matches!(seen[..], [Seen::Fault(Fault::Protocol(_))]), "{seen:?}");
}

#[test]
fn loads_bring_their_rows_and_others_refuse_to() {
    let protocol = protocol();
    let mut conn = open(&protocol);
    let (mut request, mut out) = (Request::default(), Vec::new());
    request.copy_in("COPY t FROM STDIN", b"1\n2\n").unwrap();
    protocol.submit(&mut conn, &request, 0, &mut out);
    protocol.submit(&mut conn, &query("COPY t FROM STDIN"), 1, &mut out);
    let consent = message(b'G', &[0, 0, 1, 0, 0]);
    let done = [consent.clone(), message(b'C', b"COPY 2\0"), message(b'Z', b"I")].concat();
    let (seen, said) = feed(&protocol, &mut conn, [&done[..], &consent[..]]);
    assert!(matches!(&seen[..], [Seen::Reply { tag: 0, error: None, .. }]), "{seen:?}");
    assert_eq!(said[0], b'f', "the server would wait for rows for ever");
    assert_eq!(said.len(), 1 + u32::from_be_bytes([said[1], said[2], said[3], said[4]]) as usize);
    // A server that waits for rows passes over the Sync behind a prepared statement.
    let mut conn = open(&protocol);
    request.execute(0, &[]);
    protocol.submit(&mut conn, &request, 2, &mut out);
    let answers = [message(b'1', b""), message(b'2', b""), consent].concat();
    let (_, said) = feed(&protocol, &mut conn, [&answers[..]]);
    assert!(said.starts_with(b"f") && said.ends_with(b"S\0\0\0\x04"), "{said:?}");
}

#[test]
fn what_is_no_postgresql_is_told_at_once() {
    let protocol = protocol();
    let mut conn = protocol.open(&mut Vec::new());
    let (seen, _) = feed(&protocol, &mut conn, [&b"HTTP/1.1 400 Bad Request\r\n"[..]]);
    assert!(matches!(seen[..], [Seen::Fault(Fault::Protocol(_))]), "{seen:?}");
    let mut conn = open(&protocol);
    let (seen, _) = feed(&protocol, &mut conn, [&message(b'C', b"SELECT 1\0")[..]]);
    assert!(matches!(seen[..], [Seen::Fault(Fault::Protocol(_))]), "unasked: {seen:?}");
    let mut conn = open(&protocol);
    protocol.submit(&mut conn, &query("x"), 0, &mut Vec::new());
    let (seen, _) = feed(&protocol, &mut conn, [&[b'D', 0x7f, 0, 0, 0][..]]);
    assert!(matches!(seen[..], [Seen::Fault(Fault::Protocol(_))]), "too long: {seen:?}");
}

#[test]
fn tls_is_asked_for_and_its_one_byte_is_understood() {
    let [may, must] = [false, true].map(|required| protocol().requiring_tls(required));
    // Length 8, and 80877103 where a version would stand.
    assert_eq!(may.preamble(), [&8u32.to_be_bytes()[..], &80_877_103u32.to_be_bytes()].concat());
    assert_eq!(must.preamble(), may.preamble());
    for answer in 0..=u8::MAX {
        let (may, must) = (may.preamble_answered(answer), must.preamble_answered(answer));
        match answer {
            b'S' => assert_eq!((may, must), (Ok(Layer::Tls), Ok(Layer::Tls))),
            b'N' => {
                assert_eq!(may, Ok(Layer::Clear));
                assert!(must.unwrap_err().contains("does not speak TLS"));
            }
            _ => {
                assert_eq!(may, must);
                let word = if answer == b'E' { "with an error" } else { "not a PostgreSQL server" };
                assert!(may.unwrap_err().contains(word), "{answer}");
            }
        }
    }
}

/// Replies to three requests in flight, of all kinds of messages.
fn script() -> impl Strategy<Value = Vec<u8>> {
    let value = prop::option::of(prop::collection::vec(any::<u8>(), 0..40));
    let one = prop_oneof![
        prop::collection::vec(value, 0..4).prop_map(|values| {
            let values: Vec<Option<&[u8]>> = values.iter().map(Option::as_deref).collect();
            row(&values)
        }),
        Just(message(b'C', b"INSERT 0 12\0")),
        Just(message(b'N', b"SNOTICE\0Mhm\0\0")),
        Just(message(b'S', b"TimeZone\0UTC\0")),
        Just(message(b'T', &[7; 90])),
        Just(message(b'2', b"")),
        Just(message(b'd', b"a row of a copy\n")),
        Just(error("ERROR", "22012", "division by zero")),
        Just(message(b'C', &[b'x'; 200])),
    ];
    let reply = (prop::collection::vec(one, 0..6), prop_oneof![Just(b"I"), Just(b"T"), Just(b"E")])
        .prop_map(|(messages, status)| [messages.concat(), message(b'Z', status)].concat());
    prop::collection::vec(reply, 3..=3).prop_map(|replies| replies.concat())
}

proptest! {
    #[test]
    fn any_split_of_the_bytes_gives_the_same_events(
        script in script(),
        mut cuts in prop::collection::vec(0usize..1 << 16, 0..20),
    ) {
        let protocol = protocol();
        let connection = || {
            let mut conn = open(&protocol);
            for tag in 0..3 {
                protocol.submit(&mut conn, &query("x"), tag, &mut Vec::new());
            }
            conn
        };
        let whole = feed(&protocol, &mut connection(), [&script[..]]);
        prop_assert_eq!(whole.0.len(), 3);
        cuts.iter_mut().for_each(|cut| *cut %= script.len() + 1);
        cuts.extend([0, script.len()]);
        cuts.sort_unstable();
        let pieces = cuts.windows(2).map(|pair| &script[pair[0]..pair[1]]);
        prop_assert_eq!(&feed(&protocol, &mut connection(), pieces), &whole);
        let bytes = script.chunks(1);
        prop_assert_eq!(&feed(&protocol, &mut connection(), bytes), &whole);
    }

    #[test]
    fn bytes_at_random_never_panic(
        noise in prop::collection::vec(any::<u8>(), 0..300),
        mut from_script in script(),
        at in 0usize..1 << 16,
        is_logged_in in any::<bool>(),
    ) {
        let protocol = protocol();
        let mut conn = if is_logged_in { open(&protocol) } else { protocol.open(&mut Vec::new()) };
        let mut request = Request::default();
        request.execute(1, &[None]);
        protocol.submit(&mut conn, &request, 0, &mut Vec::new());
        protocol.submit(&mut conn, &query("x"), 1, &mut Vec::new());
        let at = at % from_script.len();
        let room = noise.len().min(from_script.len() - at);
        from_script[at..at + room].copy_from_slice(&noise[..room]);
        feed(&protocol, &mut conn, [&from_script[..]]);
        let mut conn = protocol.open(&mut Vec::new());
        feed(&protocol, &mut conn, noise.chunks(7));
        let _ = protocol.end(&mut conn);
    }
}
