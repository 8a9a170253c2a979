//! TLS to the real PostgreSQL: each `sslmode`, with a server that has it, one that has not, and a stranger.

use super::postgresql::reachable;
use super::refused;
use crate::certificates::Authority;
use crate::process::{Ended, PATIENCE, Place, Running, find_program};
use crate::record::Record;
use rustix::process::Signal;
use std::time::Duration;

const PASSWORD: &str = "it's a secret";
/// Divides by nothing unless the server says that the connection is over TLS, and the other way round.
const SECURE: &str = "SELECT 1/(SELECT ssl::int FROM pg_stat_ssl WHERE pid = pg_backend_pid())";
const CLEAR: &str =
    "SELECT 1/(SELECT (NOT ssl)::int FROM pg_stat_ssl WHERE pid = pg_backend_pid())";
/// Likewise unless it knows who asks.
const KNOWN: &str =
    "SELECT 1/(SELECT (client_dn IS NOT NULL)::int FROM pg_stat_ssl WHERE pid = pg_backend_pid())";

/// A cluster that asks for a password, in the same folder each time.
struct Cluster<'a> {
    place: &'a Place,
    running: Running,
    port: String,
}

impl<'a> Cluster<'a> {
    fn start(place: &'a Place, flags: &[&str]) -> Self {
        let common = ["serve", "postgresql", "--data", "data", "--durability", "none"];
        let login = ["--auth", "scram-sha-256"];
        let mut command = place.plimsoll([&common[..], &login, flags].concat());
        command.env("PGPASSWORD", PASSWORD);
        let running = Running::start(command, b"");
        let text = running.wait_for("ready ", Duration::from_secs(120));
        let port = text.trim().rsplit(':').next().unwrap().to_owned();
        Self { place, running, port }
    }

    fn stop(self) -> Ended {
        self.running.signal(Signal::TERM);
        self.running.wait(PATIENCE).expect(0)
    }

    fn load(&self, host: &str, parameters: &str, sql: &str) -> Ended {
        let url = format!("postgres://{host}:{}/plimsoll{parameters}", self.port);
        let load = ["load", &url, "--body", sql, "--sql-mode", "prepared", "--clients", "2"];
        let more = ["--requests", "6", "--json", "-", "--no-record", "--quiet"];
        let mut command = self.place.plimsoll([&load[..], &more].concat());
        command.env("PGPASSWORD", PASSWORD);
        Running::start(command, b"").wait(PATIENCE)
    }

    /// So do votes, over one process and over two, which all know what it has come to.
    #[track_caller]
    fn votes_in_clear(&self, parameters: &str) {
        let url = format!("postgres://localhost:{}/plimsoll{parameters}", self.port);
        for (seed, processes) in [("1", "1"), ("2", "2")] {
            let voter = ["voter", &url, "--calls", "60", "--clients", "4", "--connections", "2"];
            let more = ["--processes", processes, "--seed", seed, "--json", "-", "--no-record"];
            let mut command = self.place.plimsoll([&voter[..], &more].concat());
            command.env("PGPASSWORD", PASSWORD);
            let record = Record::of(&Running::start(command, b"").wait(PATIENCE));
            assert_eq!((record.ok(), record.text("/voter/check")), (60, "ok"), "{:#}", record.0);
            assert!(record.text("/target/url").contains("?sslmode=disable&"), "{:#}", record.0);
        }
    }

    /// The load goes well; what the record says of TLS.
    #[track_caller]
    fn holds(&self, host: &str, parameters: &str, sql: &str) -> String {
        let ended = self.load(host, parameters, sql);
        let record = Record::of(&ended);
        assert_eq!(record.ok(), 6, "{host} {parameters}: {}", ended.stderr);
        record.text("/target/url").split_once('?').map_or("", |(_, shown)| shown).to_owned()
    }
}

#[test]
fn every_sslmode_means_what_it_means_to_libpq() {
    let place = reachable();
    let other = place.file("other.crt", Authority::new("another CA").pem());
    let other = other.display();

    let cluster = Cluster::start(&place, &[]);
    for parameters in ["", "?sslmode=disable", "?sslmode=allow", "?sslmode=prefer"] {
        assert_eq!(cluster.holds("127.0.0.1", parameters, CLEAR), "sslmode=disable");
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let parameters = format!("?sslmode={mode}&sslrootcert={other}");
        refused(cluster.load("127.0.0.1", &parameters, SECURE), 64, &["does not speak TLS"]);
    }
    cluster.stop();

    let cluster = Cluster::start(&place, &["--tls"]);
    let root = place.path().join("data/ca.crt");
    let root = root.display();
    assert_eq!(cluster.holds("127.0.0.1", "?sslmode=disable", CLEAR), "sslmode=disable");
    for parameters in ["", "?sslmode=allow", "?sslmode=prefer", "?sslmode=require"] {
        assert_eq!(cluster.holds("127.0.0.1", parameters, SECURE), "sslmode=require");
    }
    for host in ["localhost", "127.0.0.1"] {
        for mode in ["require", "verify-ca", "verify-full"] {
            let parameters = format!("sslmode={mode}&sslrootcert={root}");
            assert_eq!(cluster.holds(host, &format!("?{parameters}"), SECURE), parameters);
        }
    }
    for mode in ["require", "verify-ca", "verify-full"] {
        let parameters = format!("?sslmode={mode}&sslrootcert={other}");
        let ended = cluster.load("localhost", &parameters, SECURE);
        refused(ended, 64, &["certificate is not trusted", "sslrootcert=FILE"]);
    }
    // What is only preferred goes in clear where it does not go over TLS.
    let parameters = format!("?sslrootcert={other}");
    let shown = format!("sslmode=disable&sslrootcert={other}");
    assert_eq!(cluster.holds("localhost", &parameters, CLEAR), shown);
    cluster.votes_in_clear(&parameters);
    let wrong = cluster.load("nobody:wrong@localhost", "?sslmode=require", SECURE);
    refused(wrong, 64, &["no pg_hba.conf entry", "SSL encryption"]);
    let wrong = cluster.load("plimsoll:wrong@localhost", "?sslmode=require", SECURE);
    refused(wrong, 64, &["password authentication failed"]);
    // What serve has made is good enough for PostgreSQL's own client.
    let asked = format!(
        "host=localhost port={} user=plimsoll dbname=plimsoll sslmode=verify-full sslrootcert={root}",
        cluster.port
    );
    let mut command = place.program(find_program("psql"), ["-XAt", "-d", &asked, "-c", SECURE]);
    command.env("PGPASSWORD", PASSWORD);
    assert_eq!(Running::start(command, b"").wait(PATIENCE).expect(0).stdout, "1\n");
    let told = cluster.stop().stderr;
    assert!(told.starts_with(&format!("TLS: the authority is {root};")), "{told}");
    assert_eq!(told.lines().count(), 1, "{told}");
}

#[test]
fn a_certificate_for_another_name_and_one_of_a_client() {
    let place = reachable();
    Cluster::start(&place, &["--tls"]).stop();
    let authority = Authority::new("plimsoll test CA");
    let root = place.file("ca.crt", authority.pem()).display().to_string();
    let server = authority.server(&["other.example"]);
    // The files stay whose they are.
    place.file("data/cluster/server.crt", server.certificate);
    place.file("data/cluster/server.key", server.key);
    let client = authority.client();
    let certificate = place.file("client.crt", client.certificate).display().to_string();
    let key = place.file("client.key", client.key).display().to_string();
    let trusts = format!("ssl_ca_file={root}");
    let cluster = Cluster::start(&place, &["--setting", "ssl=on", "--setting", &trusts]);
    let with = |mode: &str| format!("?sslmode={mode}&sslrootcert={root}");
    for host in ["localhost", "127.0.0.1"] {
        cluster.holds(host, &with("verify-ca"), SECURE);
        let ended = cluster.load(host, &with("verify-full"), SECURE);
        refused(ended, 64, &["for another name", "other.example", "sslmode=verify-ca"]);
    }
    let both = format!("{}&sslcert={certificate}&sslkey={key}", with("verify-ca"));
    cluster.holds("localhost", &both, KNOWN);
    let ended = cluster.load("localhost", &with("verify-ca"), KNOWN).expect(4);
    assert_eq!(Record::of(&ended).count("/ledger/failed/app"), 6, "nobody knows who asks");
    let half = format!("{}&sslcert={certificate}", with("verify-ca"));
    refused(cluster.load("localhost", &half, SECURE), 64, &["go together"]);
    let missing = "?sslmode=verify-full&sslrootcert=none.crt";
    refused(cluster.load("localhost", missing, SECURE), 64, &["'none.crt'", "PEM file"]);
    cluster.stop();
}
