//! Who is let in, and what becomes of those who are not.

use super::{Client, TestServer};
use crate::VoterConfig;
use plimsoll_wire::volt::{Login, LoginForm, LoginReply};
use std::io::Write;

fn refused(client: &mut Client, bytes: &[u8]) -> i8 {
    client.send(bytes);
    let message = client.message().unwrap();
    let LoginReply::Refused(code) = LoginReply::read(&message).unwrap() else {
        panic!("let in");
    };
    assert_eq!(message.len(), 2);
    assert_eq!(client.message(), None, "the server closes");
    code
}

fn with_users() -> TestServer {
    let user = |name: &str, password: &str| (name.to_owned(), password.to_owned());
    TestServer::start(VoterConfig {
        partitions: 1,
        users: vec![user("ann", "secret"), user("bob", "pass:word")],
        ..VoterConfig::default()
    })
}

#[test]
fn without_users_everybody_may_log_in() {
    let server = TestServer::plain();
    for form in [LoginForm::V0, LoginForm::V1Sha1, LoginForm::V1Sha256] {
        Client::open(server.address).log_in(&Login::with_form("who", "ever", form));
    }
}

#[test]
fn with_users_names_and_passwords_count() {
    let server = with_users();
    for form in [LoginForm::V0, LoginForm::V1Sha1, LoginForm::V1Sha256] {
        for (user, password) in [("ann", "secret"), ("bob", "pass:word")] {
            Client::open(server.address).log_in(&Login::with_form(user, password, form));
        }
        for (user, password) in [("ann", "wrong"), ("eve", "secret"), ("", ""), ("ann", "")] {
            let login = Login::with_form(user, password, form);
            assert_eq!(refused(&mut Client::open(server.address), login.message()), -1);
        }
    }
}

#[test]
fn what_is_no_login_is_refused() {
    let server = with_users();
    let open = || Client::open(server.address);
    // An unknown scheme, and another service.
    assert_eq!(refused(&mut open(), b"\0\0\0\x02\x01\x09"), 3);
    let mut bytes = Login::new("ann", "secret").message().to_vec();
    let service = bytes.windows(8).position(|part| part == b"database").unwrap();
    bytes[service..service + 8].copy_from_slice(b"exported");
    assert_eq!(refused(&mut open(), &bytes), 5);
    // A web browser, and a length that nothing has.
    for bytes in
        [&b"GET / HTTP/1.1\r\n\r\n"[..], b"\0\0\0\0", b"\xff\xff\xff\xff", b"\x03\x20\0\x01"]
    {
        let mut client = open();
        client.send(bytes);
        assert_eq!(client.message(), None);
    }
}

#[test]
fn a_login_without_an_end_is_ended() {
    let server = with_users();
    let mut client = Client::open(server.address);
    client.send(b"\x03\x20\0\0\x01\x01");
    // Sooner or later nobody takes any more of it.
    let ended = (0..10_000).any(|_| client.stream.write_all(&[0; 4096]).is_err());
    assert!(ended, "40 MB of a login were taken");
    // The same of a call is only long.
    let mut client = Client::open(server.address);
    client.log_in(&Login::new("ann", "secret"));
    client.send(b"\0\x20\0\0");
    client.send(&[0; 1 << 20]);
    client.send(&[0; 1 << 20]);
    assert!(client.answer().text.ends_with("was not found"), "it was read whole");
}

#[test]
fn a_login_may_come_byte_by_byte_with_calls_behind_it() {
    let server = TestServer::plain();
    let mut client = Client::open(server.address);
    let mut bytes = Login::new("a", "b").message().to_vec();
    let mut request = plimsoll_wire::volt::Request::default();
    request.call("@Ping", &[]);
    request.put(7, &mut bytes);
    for byte in bytes {
        client.send(&[byte]);
    }
    assert!(matches!(LoginReply::read(&client.message().unwrap()), Ok(LoginReply::Welcome(_))));
    let pong = client.answer();
    assert_eq!((pong.handle, pong.status, pong.text.as_str()), (7, 1, "SUCCESS"));
    assert_eq!(pong.tables, [(vec!["STATUS".to_owned()], vec![vec!["0".to_owned()]])]);
}
