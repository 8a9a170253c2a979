//! Logins and what is answered to them.

use plimsoll_wire::volt::{
    DecodeError, FRAME_HEAD_BYTES, Login, LoginCall, LoginCallError, LoginCode, LoginForm,
    LoginReply, Password, Scheme, Welcome,
};
use plimsoll_wire::{Fault, Protocol};

use crate::session::{Seen, Session, hex, welcome};

const NOBODY: &str = r#"00000032 01 01 00000008 "database" 00000000
    e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"#;
const ERLVOLT: &str = r#"00000029 00 00000008 "database" 00000004 "user"
    5baa61e4c9b93f3f0682250b6cf8331b7ee68fd8"#;
const WELCOME: &str = r#"00000043 00 00 00000000 0000000000000010 000001a1ff6c6e19 7f000001
    00000025 "10.1.1_voltdb-10.1.1-0-gf24e902-local""#;

#[test]
fn logins_are_as_clients_were_seen_to_write_them() {
    assert_eq!(Login::default().message(), hex(NOBODY));
    assert_eq!(Login::with_form("user", "password", LoginForm::V0).message(), hex(ERLVOLT));
}

#[test]
fn logins_of_all_forms_are_read() {
    let password = Password::new("pässword");
    for (form, version, scheme) in [
        (LoginForm::V0, 0, Scheme::Sha1),
        (LoginForm::V1Sha1, 1, Scheme::Sha1),
        (LoginForm::V1Sha256, 1, Scheme::Sha256),
    ] {
        let login = Login::with_form("zoë", "pässword", form);
        let mut body = login.message()[FRAME_HEAD_BYTES..].to_vec();
        let call = LoginCall::read(&body).unwrap();
        assert_eq!((call.version, call.scheme), (version, scheme));
        assert_eq!((call.service, call.user), ("database", "zoë"));
        assert!(call.is_to_database() && call.is_digest_whole() && password.matches(&call));
        assert!(!Password::new("password").matches(&call));
        let longer = [&body[..], &[0]].concat();
        for other in [&body[..body.len() - 1], &longer] {
            let call = LoginCall::read(other).unwrap();
            assert!(!call.is_digest_whole() && !password.matches(&call));
        }
        *body.last_mut().unwrap() ^= 1;
        assert!(!password.matches(&LoginCall::read(&body).unwrap()));
    }
    // The Java client of version 13 says 2 and writes as in version 1.
    let mut newer = hex(NOBODY);
    newer[4] = 2;
    let call = LoginCall::read(&newer[FRAME_HEAD_BYTES..]).unwrap();
    assert_eq!((call.version, call.user), (2, ""));
    assert!(Password::new("").matches(&call));
}

#[test]
fn what_is_no_login_is_refused_with_a_code() {
    for (text, error) in [
        ("", LoginCallError::Bytes(DecodeError::Cut)),
        ("ff 00", LoginCallError::Bytes(DecodeError::Version(-1))),
        ("01 02 00000000 00000000", LoginCallError::Scheme(2)),
        ("00 ffffffff 00000000", LoginCallError::Bytes(DecodeError::NoText)),
        (r#"00 00000008 "database" 00000009 "user""#, LoginCallError::Bytes(DecodeError::Cut)),
    ] {
        let refused = LoginCall::read(&hex(text)).unwrap_err();
        assert_eq!((refused, refused.code()), (error, 3), "{text}");
    }
    let body = hex(r#"00 00000006 "export" 00000000"#);
    assert!(!LoginCall::read(&body).unwrap().is_to_database());
}

#[test]
fn answers_are_as_they_were_seen() {
    let bytes = hex(WELCOME);
    let reply = LoginReply::read(&bytes[FRAME_HEAD_BYTES..]).unwrap();
    let expected = Welcome {
        host_id: 0,
        connection_id: 16,
        cluster_start_ms: 0x1a1_ff6c_6e19,
        leader_address: [127, 0, 0, 1],
        build: "10.1.1_voltdb-10.1.1-0-gf24e902-local",
    };
    assert_eq!(reply, LoginReply::Welcome(expected));
    let mut written = Vec::new();
    reply.put(&mut written);
    assert_eq!(written, bytes);
    written.clear();
    LoginReply::Refused(LoginCode::REFUSED).put(&mut written);
    assert_eq!(written, hex("00000002 00 ff"));
    assert_eq!(LoginReply::read(&written[4..]), Ok(LoginReply::Refused(-1)));
    for end in 0..bytes.len() - FRAME_HEAD_BYTES {
        assert!(LoginReply::read(&bytes[FRAME_HEAD_BYTES..][..end]).is_err(), "{end}");
    }
}

#[test]
fn secrets_are_not_shown() {
    let login = Login::new("me", "secret");
    let digest = &login.message()[login.message().len() - 32..];
    let call = LoginCall::read(&login.message()[FRAME_HEAD_BYTES..]).unwrap();
    let session = Session::new(1);
    for shown in [
        format!("{login:?}"),
        format!("{call:?}"),
        format!("{:?}", Password::new("secret")),
        format!("{:?}", session.codec),
    ] {
        assert!(!shown.contains("secret"), "{shown}");
        assert!(!shown.contains(&format!("{}, {}", digest[0], digest[1])), "{shown}");
    }
    assert!(format!("{login:?}").contains("me"));
    assert_eq!(login.user(), "me");
}

#[test]
fn a_login_that_is_refused_is_told_in_words() {
    let mut told = Vec::new();
    for code in [-1, 1, 2, 3, 4, 5, 77] {
        let mut session = Session::new(1);
        let mut refusal = Vec::new();
        LoginReply::Refused(code).put(&mut refusal);
        session.feed(&refusal);
        assert_eq!(session.fault(), LoginCode::text(code));
        // A server with too many connections, or one that comes back, lets in the same login later: no run ends with that.
        let is_for_now = matches!(session.seen.last(), Some(Seen::Fault(Fault::Unready(_))));
        assert_eq!(is_for_now, [1, 2, 4].contains(&code), "{code}");
        assert!(!session.codec.is_ready(&session.conn));
        assert_eq!(session.capacity(), 0);
        told.push(session.fault());
    }
    assert!(told[0].contains("wrong user or password"), "{}", told[0]);
    told.sort_unstable();
    told.dedup();
    assert_eq!(told.len(), 7);
    let mut session = Session::new(1);
    session.feed(&hex("00000002 02 04"));
    assert!(session.fault().contains("Kerberos"), "{}", session.fault());
}

#[test]
fn who_is_not_voltdb_is_told_at_once() {
    for said in [
        &b"HTTP/1.1 400 Bad Request\r\n"[..],
        b"-ERR unknown command\r\n",
        // PostgreSQL.
        b"E\0\0\0\x8eSFATAL\0",
        b"\x15\x03\x03\0\x02\x02\x32",
        &hex("00000000"),
        &hex("00000002 05 00"),
        &hex("00000003 00 00 00"),
    ] {
        let mut session = Session::new(1);
        session.feed(said);
        assert!(session.fault().contains("does not speak VoltDB"), "{}", session.fault());
    }
    // It says nothing, or not enough.
    for said in [&b""[..], b"HT"] {
        let mut session = Session::new(1);
        session.feed(said);
        assert!(session.end().text().contains("is it VoltDB"), "{:?}", session.end());
    }
}

#[test]
fn the_host_is_known_once_it_has_answered() {
    let mut session = Session::new(1);
    assert_eq!(session.conn.host(), None);
    session.feed(&welcome());
    let host = session.conn.host().unwrap();
    assert_eq!((host.id, host.leader_address), (3, [127, 0, 0, 1]));
    assert_eq!(host.cluster_start_ms, 1_795_000_000_000);
}
