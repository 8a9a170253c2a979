//! `--stream`: lines as the schema says, on stdout or in a file.

use crate::process::Place;
use serde_json::Value;

fn lines(text: &str) -> Vec<Value> {
    let schema: Value =
        serde_json::from_str(include_str!("../../docs/stream.schema.json")).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let read = |line: &str| {
        let value: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{e}: {line}"));
        let errors: Vec<String> = validator.iter_errors(&value).map(|e| e.to_string()).collect();
        assert!(errors.is_empty(), "{line}\n{errors:?}");
        value
    };
    text.lines().map(read).collect()
}

fn sum(lines: &[Value], pointer: &str) -> u64 {
    lines.iter().filter_map(|line| line.pointer(pointer)).map(|n| n.as_u64().unwrap()).sum()
}

#[test]
fn stdout_has_nothing_but_lines_and_they_add_up_to_the_record() {
    let place = Place::new();
    let target = place.serve(&["queue", "--error-every", "10"]);
    let args = ["load", &target.url, "--rate=200", "--duration=3s", "--warmup=1s"];
    let ended = place.run([&args[..], &["--stream=-", "--json=r.json"]].concat());
    let lines = lines(&ended.stdout);
    let record: Value = serde_json::from_str(&place.read("r.json")).unwrap();
    let kinds: Vec<&str> = lines.iter().map(|line| line["kind"].as_str().unwrap()).collect();
    let (first, last) = (&lines[0], &lines[lines.len() - 1]);
    assert_eq!((kinds[0], kinds[kinds.len() - 1]), ("start", "end"));
    assert!(kinds[1..kinds.len() - 1].iter().all(|kind| *kind == "second"), "{kinds:?}");
    assert!(kinds.len() >= 5, "{kinds:?}");
    let seconds = &lines[1..lines.len() - 1];
    for entry in ["scheduled", "sent", "ok", "failed/status"] {
        let of_record = record.pointer(&format!("/ledger/{entry}")).unwrap().as_u64().unwrap();
        assert_eq!(sum(seconds, &format!("/ledger/{entry}")), of_record, "{entry}");
    }
    assert_eq!(seconds[seconds.len() - 1]["so_far"]["ledger"], record["ledger"]);
    for field in ["ledger", "verdict", "rate", "latency_ms", "run_id"] {
        assert_eq!(last[field], record[field], "{field}");
    }
    assert_eq!(first["run_id"], record["run_id"]);
    assert!(seconds.iter().any(|second| second["so_far"]["verdict"].is_string()));
    assert_eq!(record["outlets"][0]["lost"], 0);
}

#[test]
fn lines_come_while_the_run_goes_on() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let mut run = place.start([
        "load",
        &target.url,
        "--rate=100",
        "--duration=30s",
        "--stream=-",
        "--no-record",
    ]);
    run.wait_for("\"to_s\":2", std::time::Duration::from_secs(20));
    assert!(run.is_running());
    run.signal(rustix::process::Signal::INT);
    let ended = run.wait(crate::process::PATIENCE).expect(3);
    let lines = lines(&ended.stdout);
    let last = &lines[lines.len() - 1];
    assert_eq!((&last["kind"], &last["verdict"]["kind"]), (&"end".into(), &"partial".into()));
}

#[test]
fn a_reader_that_went_away_does_not_end_the_run() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let script = format!(
        "{program} load {} --rate=100 --duration=3s --stream=- --no-record --quiet | head -n 1; \
         echo ${{PIPESTATUS[0]}}",
        target.url
    );
    let command = place.program("bash", ["-c", &script]);
    let ended = crate::process::Running::start(command, b"").wait(crate::process::PATIENCE);
    let code = ended.stdout.lines().last().unwrap();
    // The machine may be too busy for a valid run.
    assert!(["0", "3"].contains(&code), "{}\n{}", ended.stdout, ended.stderr);
    assert!(lines(ended.stdout.lines().next().unwrap())[0]["kind"] == "start");
}
