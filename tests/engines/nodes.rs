//! OpenSearch and Elasticsearch as targets.

use super::{install, refused};
use crate::process::{PATIENCE, Place, curl, expect_gone, until};
use rustix::process::Signal;
use serde_json::Value;
use std::net::TcpListener;
use std::time::Duration;

/// Asks with a body of JSON; the reply must be good.
#[track_caller]
fn ask(method: &str, url: &str, body: &str) -> Value {
    let json = "Content-Type: application/json";
    let mut args = vec!["-X", method, "-H", json, url];
    if !body.is_empty() {
        args.extend(["-d", body]);
    }
    let (status, reply) = curl(&args);
    assert!((200..300).contains(&status), "{method} {url}: {status} {reply}");
    serde_json::from_str(&reply).unwrap_or(Value::Null)
}

/// Indexes a document and finds it again, also with a word that is two letters off.
fn index_and_search(url: &str) {
    let index = "{\"settings\":{\"number_of_shards\":2,\"number_of_replicas\":0}}";
    ask("PUT", &format!("{url}/ships"), index);
    ask("PUT", &format!("{url}/ships/_doc/1?refresh=true"), "{\"body\":\"a plimsoll line\"}");
    assert_eq!(hits(url), 1);
}

fn hits(url: &str) -> u64 {
    let query = "{\"query\":{\"match\":{\"body\":{\"query\":\"plinsol\",\"fuzziness\":2}}}}";
    let reply = ask("POST", &format!("{url}/ships/_search"), query);
    reply.pointer("/hits/total/value").and_then(Value::as_u64).unwrap()
}

#[test]
fn opensearch_serves_keeps_its_data_and_ends_with_its_parent() {
    install("opensearch");
    let place = Place::busy();
    let args = ["opensearch", "--data", "data", "--ready-file", "ready.txt", "--heap", "256MiB"];
    let target = place.serve(&args);
    assert_eq!(place.read("ready.txt"), format!("ready opensearch {}\n", target.url));
    assert_eq!(target.host, "127.0.0.1");
    let about = ask("GET", &target.url, "");
    assert_eq!(about.pointer("/version/number").unwrap(), "2.19.1");
    assert_eq!(ask("GET", &format!("{}/_cluster/health", target.url), "")["timed_out"], false);
    index_and_search(&target.url);
    let port = target.port.to_string();
    let second = place.run(["serve", "opensearch", "--port", &port]);
    refused(second, 64, &["cannot listen on 127.0.0.1 port", "take another --port"]);
    // Neither its data nor its log is taken from it.
    let second = place.run(["serve", "opensearch", "--data", "data"]);
    refused(second, 64, &["engine.log is the log of an engine that still runs", "another --data"]);
    let processes = target.process.descendants();
    target.process.signal(Signal::TERM);
    let ended = target.process.wait(Duration::from_secs(10)).expect(0);
    assert_eq!((ended.stdout.lines().count(), ended.stderr.as_str()), (1, ""));
    expect_gone(&processes);
    assert!(place.read("data/engine.log").contains("started"), "nothing was kept of what it said");
    // What was indexed is there again; who kills its parent kills the node.
    let target = place.serve(&args);
    assert_eq!(hits(&target.url), 1);
    let processes = target.process.descendants();
    assert!(processes.iter().any(|(_, line)| line.contains("OpenSearchLauncher")), "{processes:?}");
    target.process.signal(Signal::KILL);
    target.process.wait(PATIENCE);
    expect_gone(&processes);
}

/// Elasticsearch itself is another 31 MB of jars and another minute: `make test-engines`.
#[test]
#[ignore = "installs Elasticsearch; run by make test-engines"]
fn elasticsearch_is_the_target_of_a_job_and_its_log_is_in_the_record() {
    install("elasticsearch");
    is_the_target_of_a_job("elasticsearch", "o.e.n.Node");
}

#[test]
fn opensearch_is_the_target_of_a_job_and_its_log_is_in_the_record() {
    install("opensearch");
    is_the_target_of_a_job("opensearch", "o.o.n.Node");
}

fn is_the_target_of_a_job(engine: &str, node: &str) {
    let place = Place::busy();
    place.file(
        "mine.toml",
        format!(
            "[job]\nname = \"mine\"\ndescription = \"A real engine.\"\n\
             command = [\"load\", \"{{target_url}}/_cluster/health\", \"--clients\", \"2\", \"--requests\", \"30\", \
             \"--duration\", \"60s\", \"--check\", \"/number_of_nodes>=1\"]\n\
             target = {{ serve = [\"{engine}\", \"--port\", \"0\"], ready_within = \"2m\" }}\n"
        ),
    );
    let ended = place.run(["run", "mine.toml", "--json", "record.json", "--quiet"]);
    // A machine that is busy may make the generator late; the target is what matters here.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    let record: Value = serde_json::from_str(&place.read("record.json")).unwrap();
    assert_eq!(record.pointer("/ledger/ok").and_then(Value::as_u64), Some(30), "{record}");
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    let log = std::fs::read_to_string(folder.path().join("target.log")).unwrap();
    assert!(log.contains(node) && log.contains("stop"), "{log}");
}

#[test]
fn wrong_flags_are_one_line_and_start_nothing() {
    install("opensearch");
    let place = Place::busy();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port().to_string();
    place.file("file", "in the way");
    for (args, word) in [
        (&["--port", &port][..], "cannot listen"),
        (&["--heap", "1MiB"], "--heap"),
        (&["--heap", "4000GiB"], "--heap: this machine has"),
        (&["--setting", "x"], "write name=value"),
        (&["--setting", "network.host=0.0.0.0"], "on loopback only"),
        (&["--setting", "path.data=/tmp"], "flags of their own"),
        (&["--data", "file"], "--data"),
        (&["--log", "no/such/folder/log"], "--log"),
    ] {
        refused(place.run([&["serve", "opensearch"], args].concat()), 64, &[word]);
    }
    let args = ["serve", "opensearch", "--setting", "no.such.setting=1", "--data", "data"];
    refused(place.run(args), 1, &["opensearch does not start: ", "no.such.setting"]);
    until("nothing is left", Duration::from_secs(5), || !place.path().join("runs").exists());
}
