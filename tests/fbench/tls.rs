//! TLS against a real nginx.

use super::{counts, lines};
use crate::certificates::{Authority, Signed};
use crate::nginx::Nginx;
use crate::process::{Ended, Place};
use crate::record::Record;
use crate::server::{Server, send};

/// nginx with this certificate, and further lines of its server block.
fn nginx(place: &Place, signed: &Signed, more: &str) -> Nginx {
    let certificate = place.file("server.pem", &signed.certificate).display().to_string();
    let key = place.file("server.key", &signed.key).display().to_string();
    let block = format!(
        "ssl_certificate {certificate};\nssl_certificate_key {key};\n{more}\n\
         location / {{ return 200 'hello'; }}"
    );
    Nginx::start(place, "ssl", &block)
}

fn run(place: &Place, host: &str, port: u16, flags: &[&str]) -> Ended {
    place.file("q.txt", lines(5));
    let port = port.to_string();
    let mut args = vec!["fbench", "-n", "2", "-r", "0", "-s", "10", "-q", "q.txt"];
    args.extend(flags);
    args.extend([host, &port]);
    place.run(args)
}

#[test]
fn both_versions_of_tls() {
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    place.file("ca.pem", authority.pem());
    for version in ["TLSv1.2", "TLSv1.3"] {
        let signed = authority.server(&["localhost"]);
        let nginx = nginx(&place, &signed, &format!("ssl_protocols {version};"));
        let ended = run(&place, "localhost", nginx.port, &["-T", "ca.pem"]).expect(0);
        assert_eq!(counts(&ended), (10, 0));
        let seen = nginx.wait_for(10);
        assert_eq!(seen.len(), 10);
        let line = format!("200 GET /q0 {version} NONE localhost");
        assert!(seen.contains(&line), "{line} in {seen:?}");
    }
}

#[test]
fn an_address_can_be_certified_too() {
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    place.file("ca.pem", authority.pem());
    let nginx = nginx(&place, &authority.server(&["127.0.0.1"]), "");
    assert_eq!(counts(&run(&place, "127.0.0.1", nginx.port, &["-T", "ca.pem"]).expect(0)), (10, 0));
}

#[test]
fn a_wrong_authority_is_a_tls_failure() {
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    place.file("other.pem", Authority::new("another CA").pem());
    let nginx = nginx(&place, &authority.server(&["localhost"]), "");
    let flags = ["-T", "other.pem", "--json", "-"];
    let ended = run(&place, "localhost", nginx.port, &flags).expect(4);
    let record = Record::of(&ended);
    record.expect_balanced();
    record.expect_failed("tls", 10);
    assert_eq!(nginx.seen().len(), 0);
    assert!(
        ended.stderr.contains("UnknownIssuer") || ended.stderr.contains("certificate"),
        "{}",
        ended.stderr
    );
}

#[test]
fn a_wrong_host_name_is_a_tls_failure() {
    // The original never looks at the name.
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    place.file("ca.pem", authority.pem());
    let nginx = nginx(&place, &authority.server(&["wrong.example"]), "");
    let flags = ["-T", "ca.pem", "--json", "-"];
    let record = Record::of(&run(&place, "localhost", nginx.port, &flags).expect(4));
    record.expect_failed("tls", 10);
    assert_eq!(nginx.seen().len(), 0);
    // -A says which name is meant, --insecure that none is.
    let ended = run(&place, "localhost", nginx.port, &["-T", "ca.pem", "-A", "wrong.example"]);
    assert_eq!(counts(&ended.expect(0)), (10, 0));
    assert!(nginx.wait_for(10)[0].ends_with(" wrong.example"), "{:?}", nginx.seen());
    let ended = run(&place, "localhost", nginx.port, &["--insecure"]).expect(0);
    assert_eq!(counts(&ended), (10, 0));
}

#[test]
fn a_client_certificate() {
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    let ca = place.file("ca.pem", authority.pem()).display().to_string();
    let client = authority.client();
    place.file("client.pem", &client.certificate);
    place.file("client.key", &client.key);
    let more = format!("ssl_client_certificate {ca};\nssl_verify_client on;");
    let nginx = nginx(&place, &authority.server(&["localhost"]), &more);
    let flags = ["-T", "ca.pem", "-C", "client.pem", "-K", "client.key"];
    assert_eq!(counts(&run(&place, "localhost", nginx.port, &flags).expect(0)), (10, 0));
    assert!(nginx.wait_for(10)[0].contains(" SUCCESS "), "{:?}", nginx.seen());
    // Without one nginx answers 400.
    let ended = run(&place, "localhost", nginx.port, &["-T", "ca.pem", "--json", "-"]).expect(4);
    Record::of(&ended).expect_failed("status", 10);
}

#[test]
fn a_server_without_tls_is_a_tls_failure() {
    // As a web server answers what it takes for a broken request.
    let place = Place::new();
    let server = Server::greeting(send("HTTP/1.1 400 Bad Request\r\n\r\n"));
    let ca = Authority::new("plimsoll test CA");
    place.file("ca.pem", ca.pem());
    let port: u16 = server.port().parse().unwrap();
    let ended = run(&place, "127.0.0.1", port, &["-T", "ca.pem", "--json", "-"]).expect(4);
    let record = Record::of(&ended);
    record.expect_balanced();
    record.expect_failed("tls", 10);
}

#[test]
fn wrong_tls_flags_are_one_line_and_nothing_is_sent() {
    let (place, server) = (Place::new(), Server::ok());
    let port: u16 = server.port().parse().unwrap();
    place.file("empty.pem", "");
    for (flags, word) in [
        (&["-C", "c.pem", "-K", "k.pem"][..], "-T"),
        (&["-T", "empty.pem", "-C", "c.pem"], "go together"),
        (&["-T", "no-such.pem"], "no-such.pem"),
        (&["-T", "empty.pem"], "empty.pem"),
    ] {
        let ended = run(&place, "127.0.0.1", port, flags).expect(64);
        assert!(ended.stderr.contains(word), "{word} in {}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    }
    assert_eq!(server.connections(), 0);
}

#[test]
fn without_vespas_configuration_d_is_plain_text() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(5));
    let port = server.port();
    let run = |variables: &[(&str, &str)]| {
        let args = ["fbench", "-D", "-n", "1", "-r", "0", "-q", "q.txt", "127.0.0.1", &port];
        let mut command = place.plimsoll(args);
        command.env_remove("VESPA_TLS_CONFIG_FILE").envs(variables.iter().copied());
        crate::process::Running::start(command, b"").wait(crate::process::PATIENCE)
    };
    let file = ("VESPA_TLS_CONFIG_FILE", "no-such.json");
    let mixed = |mode| [file, ("VESPA_TLS_INSECURE_MIXED_MODE", mode)];
    for variables in [&[][..], &[(file.0, "")], &mixed("plaintext_client_mixed_server")] {
        let ended = run(variables).expect(0);
        assert_eq!(counts(&ended), (5, 0));
        assert!(ended.stderr.contains("plain text"), "{}", ended.stderr);
    }
    for variables in [&[file][..], &mixed("tls_client_mixed_server")] {
        assert!(run(variables).expect(64).stderr.contains("no-such.json"));
    }
}

/// fbench with a configuration of Vespa's own clients, against a server that requires their certificate.
struct OfVespa {
    place: Place,
    nginx: Nginx,
    certificate: String,
    key: String,
    ended: Ended,
}

/// Runs it against a server of this name; `more` stands in the configuration beside the files.
fn of_vespa(server: &str, more: serde_json::Value) -> OfVespa {
    let place = Place::new();
    let authority = Authority::new("plimsoll test CA");
    let client = authority.client();
    let path = |name: &str, text: &str| place.file(name, text).display().to_string();
    let (ca, certificate, key) = (
        path("ca.pem", authority.pem()),
        path("client.pem", &client.certificate),
        path("client.key", &client.key),
    );
    let mut config = more;
    config["files"] = serde_json::json!({
        "private-key": key, "certificates": certificate, "ca-certificates": ca});
    let config = place.file("tls.json", config.to_string());
    let required = format!("ssl_client_certificate {ca};\nssl_verify_client on;");
    let nginx = nginx(&place, &authority.server(&[server]), &required);
    place.file("q.txt", lines(5));
    let port = nginx.port.to_string();
    let mut command =
        place.plimsoll(["fbench", "-D", "-n", "1", "-r", "0", "-q", "q.txt", "localhost", &port]);
    command.env("VESPA_TLS_CONFIG_FILE", config);
    let ended = crate::process::Running::start(command, b"").wait(crate::process::PATIENCE);
    OfVespa { place, nginx, certificate, key, ended }
}

#[test]
fn vespas_own_tls_configuration() {
    let OfVespa { place: _place, nginx, ended, .. } = of_vespa("localhost", serde_json::json!({}));
    assert_eq!(counts(&ended.expect(0)), (5, 0));
    assert!(nginx.wait_for(5)[0].contains(" SUCCESS "), "{:?}", nginx.seen());
}

#[test]
fn a_configuration_without_checks_of_host_names_is_rejected_with_flags_that_work() {
    let unchecked = serde_json::json!({"disable-hostname-validation": true});
    let OfVespa { place, nginx, certificate, key, ended } = of_vespa("wrong.example", unchecked);
    let error = ended.expect(64).stderr;
    // --insecure alone would leave out the certificate of the client, which this server requires.
    let advice = ["-C", certificate.as_str(), "-K", key.as_str(), "--insecure"];
    assert!(error.contains(&advice.join(" ")) && error.contains("instead of -D"), "{error}");
    assert_eq!(counts(&run(&place, "localhost", nginx.port, &advice).expect(0)), (10, 0));
    assert!(nginx.wait_for(10)[0].contains(" SUCCESS "), "{:?}", nginx.seen());
}
