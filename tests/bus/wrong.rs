//! Each reason why there is no connection to a bus is one line of its own, within 10 s.

use super::{Server, connect, options};
use crate::certificates::{Authority, Signed};
use crate::process::Place;
use crate::server::{Server as Scripted, Step, closed_port, refusing_port};
use plimsoll_bus::{Bus, Credentials, Nats, NatsOptions};
use plimsoll_core::clock::now_ns;
use std::time::Duration;

/// Longest time until the line.
const LIMIT: Duration = Duration::from_secs(10);

#[track_caller]
fn refused(options: &NatsOptions, words: &[&str]) {
    let started_ns = now_ns();
    let error = Nats::connect(options).map(drop).unwrap_err().to_string();
    let took = Duration::from_nanos(now_ns() - started_ns);
    assert!(took < LIMIT, "{error} after {took:?}");
    assert_eq!(error.lines().count(), 1, "{error}");
    for word in words {
        assert!(error.contains(word), "no {word:?} in {error}");
    }
    assert!(!error.contains("sesame"), "a secret in {error}");
}

fn token(text: &str) -> Credentials {
    Credentials::Token(text.to_owned())
}

#[test]
fn no_server_another_server_and_a_silent_one_are_told_apart() {
    let _place = Place::new();
    let port = refusing_port();
    refused(
        &options(&format!("nats://127.0.0.1:{port}")),
        &["no NATS server at 127.0.0.1:", "refused", &format!("plimsoll serve nats --port {port}")],
    );
    refused(
        &options("nats://no-such-host.invalid:4222"),
        &["no-such-host.invalid:4222", "unknown"],
    );
    let say =
        |text: &str| Scripted::greeting(vec![Step::Send(text.as_bytes().to_vec()), Step::Hang]);
    let at = |server: &Scripted| options(&format!("nats://127.0.0.1:{}", server.port()));
    let http = say("HTTP/1.1 400 Bad Request\r\n\r\n");
    refused(&at(&http), &["is not a NATS server", "check host and port"]);
    let broken = say("INFO {\"version\": \r\n");
    refused(&at(&broken), &["is not a NATS server"]);
    let silent = Scripted::greeting(vec![Step::Hang]);
    let mut short = at(&silent);
    short.connect_within = Duration::from_secs(1);
    refused(&short, &["did not answer as a NATS server within 1 s"]);
    let half = say("INFO {\"version\":\"2.12.0\",\"max_payload\":1048576}\r\n");
    let mut short = at(&half);
    short.connect_within = Duration::from_secs(1);
    refused(&short, &["did not answer as a NATS server within 1 s"]);
}

#[test]
fn a_server_of_debian_is_too_old() {
    let _place = Place::new();
    let info = r#"INFO {"server_id":"N","version":"2.9.10","go":"go1.19","max_payload":1048576}"#;
    let server =
        Scripted::greeting(vec![Step::Send(format!("{info}\r\n").into_bytes()), Step::Hang]);
    refused(
        &options(&format!("nats://127.0.0.1:{}", server.port())),
        &["has version 2.9.10", "2.10 or later", "plimsoll install nats"],
    );
}

#[test]
fn credentials_that_are_missing_or_wrong_are_told_apart() {
    let place = Place::new();
    let server = Server::start(&place, "authorization { token: sesame }");
    let mut options = server.options();
    refused(&options, &["requires credentials", "token"]);
    options.credentials = token("sesame-wrong");
    refused(&options, &["rejects the token"]);
    options.credentials =
        Credentials::User { name: "ann".to_owned(), password: "sesame".to_owned() };
    refused(&options, &["rejects user 'ann'"]);
    options.credentials = token("sesame");
    connect(&options);
    // The pair of the documentation of NATS.
    let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
    let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    let file = place.file("user.nk", format!("{seed}\n"));
    options.credentials = Credentials::NkeyFile(file.clone());
    refused(&options, &["rejects the NKey of", "user.nk"]);
    let server =
        Server::start(&place, &format!("authorization {{ users: [ {{ nkey: {public} }} ] }}"));
    let mut options = server.options();
    options.credentials = Credentials::NkeyFile(file);
    connect(&options);
    options.credentials = token("sesame");
    refused(&options, &["rejects the token"]);
}

#[test]
fn a_server_that_takes_only_short_messages_is_refused() {
    let place = Place::new();
    let server = Server::start(&place, "max_payload: 1000");
    refused(&server.options(), &["messages of 1000 bytes", "max_payload", "262144"]);
}

/// A server with a certificate, and its configuration.
fn with_tls(place: &Place, signed: &Signed, more: &str) -> Server {
    let certificate = place.file("server.pem", &signed.certificate);
    let key = place.file("server.key", &signed.key);
    let config = format!(
        "tls {{ cert_file: \"{}\", key_file: \"{}\", {more} }}",
        certificate.display(),
        key.display()
    );
    Server::start(place, &config)
}

#[test]
fn certificates_that_do_not_hold_are_told_apart() {
    let place = Place::new();
    let (authority, stranger) = (Authority::new("bus"), Authority::new("stranger"));
    let ca = place.file("ca.pem", authority.pem());
    let own = authority.server(&["127.0.0.1", "localhost"]);
    let server = with_tls(&place, &own, "");
    let at = |server: &Server, ca: &std::path::Path| {
        let mut options = options(&format!("tls://127.0.0.1:{}", server.port));
        options.tls.ca = Some(ca.to_owned());
        options
    };
    connect(&at(&server, &ca)).publish("a", b"").unwrap();
    // A server that requires TLS gets it, also from an address that does not ask for it.
    let mut plain = server.options();
    plain.tls.ca = Some(ca.clone());
    connect(&plain);
    let other = place.file("stranger.pem", stranger.pem());
    refused(&at(&server, &other), &["not signed by a trusted authority", "CA file"]);
    let server = with_tls(&place, &authority.expired(&["127.0.0.1"]), "");
    refused(&at(&server, &ca), &["certificate of the NATS server", "has expired"]);
    let server = with_tls(&place, &authority.server(&["elsewhere.example"]), "");
    refused(&at(&server, &ca), &["is for another name"]);
    let server = Server::start(&place, "");
    refused(&at(&server, &ca), &["does not offer TLS"]);
}

#[test]
fn a_server_can_require_a_client_certificate_or_tls_from_the_first_byte() {
    let place = Place::new();
    let (authority, stranger) = (Authority::new("bus"), Authority::new("stranger"));
    let ca = place.file("ca.pem", authority.pem());
    let server = authority.server(&["127.0.0.1"]);
    let verifying = format!("ca_file: \"{}\", verify: true", ca.display());
    let verifying = with_tls(&place, &server, &verifying);
    let mut options = options(&format!("tls://127.0.0.1:{}", verifying.port));
    options.tls.ca = Some(ca.clone());
    refused(&options, &["requires a client certificate"]);
    let mut with = |signed: &Signed| {
        options.tls.certificate = Some(place.file("client.pem", &signed.certificate));
        options.tls.key = Some(place.file("client.key", &signed.key));
        options.clone()
    };
    refused(&with(&stranger.client()), &["rejects the client certificate"]);
    connect(&with(&authority.client()));

    let first = with_tls(&place, &server, "handshake_first: true");
    let mut options = super::options(&format!("tls://127.0.0.1:{}", first.port));
    options.tls.ca = Some(ca);
    options.connect_within = Duration::from_secs(1);
    refused(&options, &["did not answer", "begins with TLS"]);
    options.connect_within = Duration::from_secs(5);
    options.tls.is_first = true;
    connect(&options).flush(LIMIT).unwrap();
    options.address =
        format!("tls://127.0.0.1:{}", Server::start(&place, "").port).parse().unwrap();
    refused(&options, &["no NATS server"]);
}

#[test]
fn a_client_can_wait_for_a_server_that_starts_later() {
    let place = Place::new();
    let port = closed_port();
    let mut options = options(&format!("nats://127.0.0.1:{port}"));
    options.wait_for_server = super::SOON;
    std::thread::scope(|scope| {
        let waiting = scope.spawn(|| Nats::connect(&options).map(|bus| bus.server().to_owned()));
        std::thread::sleep(Duration::from_millis(300));
        let server = Server::start_on(&place, port.parse().unwrap(), "");
        let connected = waiting.join().unwrap();
        // Another program may have taken the port.
        if server.is_some() {
            assert!(connected.unwrap().starts_with("nats-server 2."));
        }
    });
}
