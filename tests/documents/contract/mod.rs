//! What curl sees of `/document/v1/`, over HTTP/1.1 and over HTTP/2 with prior knowledge: status and message of
//! every line of the contract that clients rely on.

mod collection;
mod single;

use crate::process::{Place, Running, Target, find_program};
use serde_json::Value;
use std::process::Command;
use std::time::Duration;

/// What a client got.
struct Got {
    status: u16,
    /// Head lines, their names in lower case.
    head: String,
    body: String,
}

impl Got {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    fn message(&self) -> String {
        self.json()["message"].as_str().unwrap_or_default().to_owned()
    }
}

/// Asks with curl, in a version of HTTP.
#[track_caller]
fn ask(place: &Place, version: &str, url: &str, args: &[&str]) -> Got {
    let mut command = Command::new(find_program("curl"));
    command.args(["-sS", "--max-time", "30", version, "--globoff", "-i", "--path-as-is"]);
    command.args(args).arg(url).current_dir(place.path());
    let ended = Running::start(command, b"").wait(Duration::from_secs(60));
    let expected = if version == "--http1.1" { "HTTP/1.1 " } else { "HTTP/2 " };
    let mut rest = ended.stdout.as_str();
    loop {
        let (head, body) = rest.split_once("\r\n\r\n").unwrap_or_else(|| panic!("{ended:?}"));
        let status = head.strip_prefix(expected).unwrap_or_else(|| panic!("{version}: {head}"));
        let status: u16 = status[..3].parse().unwrap();
        // 100 Continue comes before the answer.
        if status >= 200 {
            return Got { status, head: head.to_lowercase(), body: body.to_owned() };
        }
        rest = body;
    }
}

const VERSIONS: [&str; 2] = ["--http1.1", "--http2-prior-knowledge"];
const PUT: &str = r#"{"fields":{"title":"t","score":1}}"#;
const UPDATE: &str = r#"{"fields":{"score":{"increment":1}}}"#;

/// Method, what stands behind `/document/v1/` with `NS` for a namespace of the round's own, body, status, and
/// what the message (or, from a brace on, the whole body) is; a dot at the end stands for more.
type Row = (&'static str, &'static str, &'static str, u16, &'static str);

fn run_rows(place: &Place, target: &Target, rows: &[Row]) {
    for (version, namespace) in VERSIONS.into_iter().zip(["one", "two"]) {
        for (method, path, body, status, says) in rows {
            let path = path.replace("NS", namespace);
            let url = format!("{}/document/v1/{path}", target.url);
            let mut args = match *method {
                "HEAD" => vec!["--head"],
                method => vec!["-X", method],
            };
            if !body.is_empty() {
                args.extend(["--data-binary", body, "-H", "Content-Type: application/json"]);
            }
            let got = ask(place, version, &url, &args);
            let what = format!("{version} {method} {path} {body}: {}", got.body);
            assert_eq!(got.status, *status, "{what}");
            let says = says.replace("NS", namespace);
            let found = if says.starts_with('{') || says.is_empty() {
                got.body.clone()
            } else {
                got.message()
            };
            match says.strip_suffix('.') {
                Some(start) if !says.ends_with("implemented.") => {
                    assert!(found.starts_with(start), "{what}");
                    assert!(!found.is_empty(), "{what}");
                }
                _ => assert_eq!(found, says, "{what}"),
            }
            if [204, 405].contains(status) {
                assert!(got.head.contains("\r\nallow: get,post,put,delete"), "{}", got.head);
            } else {
                assert!(
                    got.head.contains("content-type: application/json; charset=utf-8"),
                    "{what}"
                );
                assert!(got.head.contains("\r\nvary: accept-encoding"), "{what}");
            }
        }
    }
}

#[test]
fn operations_on_one_document() {
    let place = Place::new();
    run_rows(&place, &place.serve(&["search"]), single::ROWS);
}

#[test]
fn operations_on_collections() {
    let place = Place::new();
    run_rows(&place, &place.serve(&["search"]), collection::ROWS);
}

#[test]
fn parameters_without_a_value_are_refused() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    for name in [
        "bucketSpace",
        "cluster",
        "concurrency",
        "continuation",
        "create",
        "condition",
        "destinationCluster",
        "dryRun",
        "fieldSet",
        "format.tensors",
        "fromTimestamp",
        "includeRemoves",
        "route",
        "selection",
        "sliceId",
        "slices",
        "stream",
        "timeChunk",
        "timeout",
        "toTimestamp",
        "tracelevel",
        "wantedDocumentCount",
    ] {
        for form in [format!("{name}="), name.to_owned()] {
            let url = format!("{}/document/v1/one/doc/docid/?{form}", target.url);
            let got = ask(&place, VERSIONS[0], &url, &[]);
            let text = format!("Expected non-empty value for request property '{name}'");
            assert_eq!((got.status, got.message()), (400, text), "{}", got.body);
        }
    }
}

#[test]
fn bodies_in_every_coding_and_size() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let limit = 100 << 20;
    let pack = |bytes: &[u8]| {
        let mut packer = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
        std::io::Write::write_all(&mut packer, bytes).unwrap();
        packer.finish().unwrap()
    };
    place.file("put.gz", pack(PUT.as_bytes()));
    place.file("put.bad.gz", &pack(PUT.as_bytes())[..20]);
    place.file("large", vec![b' '; limit + 1]);
    place.file("large.gz", pack(&vec![b' '; limit + 1]));
    let full = format!("{{\"fields\":{{\"body\":\"{}\"}}}}", "word ".repeat(600_000));
    place.file("full.gz", pack(full.as_bytes()));
    let too_large = format!(
        "Document operation request size {} bytes exceeds maximum size of {limit} bytes. See https://.",
        limit + 1
    );
    let (gzip, chunked) = ("Content-Encoding: gzip", "Transfer-Encoding: chunked");
    for version in VERSIONS {
        let table: [(&str, &[&str], u16, &str); 9] = [
            ("put.gz", &[gzip], 200, ""),
            ("full.gz", &[gzip], 200, ""),
            ("put.gz", &["Content-Encoding: identity"], 400, ""),
            ("put.gz", &["Content-Encoding: br"], 415, ""),
            ("put.bad.gz", &[gzip], 400, "The request body is not gzip: "),
            ("large", &[], 413, &too_large),
            ("large", &["Expect:"], 413, &too_large),
            ("large.gz", &[gzip], 413, &too_large),
            ("full.gz", &[gzip, chunked], 200, ""),
        ];
        for (file, headers, status, says) in table {
            let file = format!("@{file}");
            let mut args = vec!["-X", "POST", "--data-binary", &file];
            for header in headers {
                // HTTP/2 has frames, and no such header.
                if version == VERSIONS[0] || *header != chunked {
                    args.extend(["-H", header]);
                }
            }
            let url = format!("{}/document/v1/one/doc/docid/body", target.url);
            let got = ask(&place, version, &url, &args);
            assert_eq!(got.status, status, "{version} {file} {headers:?}: {}", got.body);
            let start = says.trim_end_matches('.');
            assert!(status == 200 || got.message().starts_with(start), "{}", got.body);
        }
        let url = format!("{}/document/v1/one/doc/docid/body", target.url);
        let got = ask(&place, version, &url, &["--compressed"]);
        assert!(got.head.contains("content-encoding: gzip"), "{}", got.head);
        assert_eq!(got.json()["fields"]["body"].as_str().unwrap().len(), 3_000_000);
    }
}

#[test]
fn the_form_of_a_visit_is_what_the_client_prefers() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let base = format!("{}/document/v1/", target.url);
    let put = ["-X", "POST", "--data-binary", PUT];
    assert_eq!(ask(&place, VERSIONS[0], &format!("{base}one/doc/docid/a"), &put).status, 200);
    let lines = concat!(
        r#"{"put":"id:one:doc::a","fields":{"title":"t","score":1}}"#,
        "\nTOKEN\n",
        r#"{"sessionStats":{"documentCount":1}}"#,
        "\n",
        r#"{"continuation":{"percentFinished":100.0}}"#,
        "\n",
    );
    let object = r#"{"pathId":"/document/v1/","documents":[{"id":"id:one:doc::a","fields":{"title":"t","score":1}}],"documentCount":1}"#;
    for (accept, stream, is_lines) in [
        ("application/jsonl", "true", true),
        ("application/json, application/jsonl", "true", true),
        ("application/json;q=0.7, application/jsonl;q=0.7", "true", true),
        ("application/jsonl;q=0.5, application/json", "true", false),
        ("application/json", "true", false),
        ("*/*", "true", false),
        ("text/html", "true", false),
        ("application/jsonl", "false", false),
        ("application/jsonl", "TRUE", true),
    ] {
        for version in VERSIONS {
            let url = format!("{base}?cluster=plimsoll&wantedDocumentCount=1000&stream={stream}");
            let got = ask(&place, version, &url, &["-H", &format!("Accept: {accept}")]);
            assert_eq!(got.status, 200);
            if is_lines {
                assert!(got.head.contains("content-type: application/jsonl; charset=utf-8"));
                let without: Vec<_> =
                    got.body.lines().filter(|line| !line.contains("\"token\"")).collect();
                let expected: Vec<_> = lines.lines().filter(|line| *line != "TOKEN").collect();
                assert_eq!(without, expected, "{accept}");
                assert!(got.body.ends_with('\n'));
            } else {
                assert!(got.head.contains("content-type: application/json; charset=utf-8"));
                assert_eq!(got.body, object, "{accept}");
            }
        }
    }
    for accept in ["nonsense", "application/jsonl;q=2", "application/json;q"] {
        let url = format!("{base}?cluster=plimsoll&stream=true");
        let got = ask(&place, VERSIONS[0], &url, &["-H", &format!("Accept: {accept}")]);
        assert_eq!(got.status, 400, "{accept}: {}", got.body);
    }
    // Nobody but a streamed visit looks at it.
    let url = format!("{base}?cluster=plimsoll&wantedDocumentCount=9");
    assert_eq!(ask(&place, VERSIONS[0], &url, &["-H", "Accept: nonsense"]).body, object);
}

#[test]
fn clients_find_what_they_look_for_first() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    for version in VERSIONS {
        for path in ["/", "/status.html", "/ApplicationStatus", "/state/v1/health", "/metrics"] {
            assert_eq!(ask(&place, version, &format!("{}{path}", target.url), &[]).status, 200);
        }
        let handlers = ask(&place, version, &format!("{}/", target.url), &[]).json();
        let handlers = handlers["handlers"].as_array().unwrap();
        let documents = handlers
            .iter()
            .find(|one| one["class"].as_str().unwrap().ends_with("DocumentV1ApiHandler"));
        let bindings = &documents.unwrap()["serverBindings"];
        assert!(bindings.to_string().contains("/document/v1/"), "{bindings}");
        let health = ask(&place, version, &format!("{}/state/v1/health", target.url), &[]).json();
        assert_eq!(health["status"]["code"], "up");
        assert_eq!(ask(&place, version, &format!("{}/document/v1", target.url), &[]).status, 404);
    }
}
