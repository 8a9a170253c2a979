//! A matrix whose load agents send: the coordinator starts, ingests, probes and keeps, and each cell is that of all agents.

use super::{Fleet, SOON, reasons, record, wait_until_idle};
use crate::process::{Ended, PATIENCE, Place, Running, curl, expect_gone, until};
use crate::record::Record;
use crate::search::engine::{Engine, Faults};
use rustix::process::Signal;
use serde_json::Value;
use std::time::Duration;

/// Two kinds of query whose words come from rows, a secret header, and two numbers of users, all from files of the coordinator.
fn files(place: &Place, mine: &str, vespa: &str) {
    let query = |name: &str, kind: &str| {
        format!("[[query]]\nname = \"{name}\"\nkind = \"{kind}\"\ntext = \"{{{{word}}}}\"\n")
    };
    place.file("q.toml", query("words", "match") + &query("near", "fuzzy"));
    place.file("rows.csv", "word\nsea\nland\nriver\nhouse\nsong\n");
    place.file(
        "matrix.toml",
        format!(
            "engines = [\"mine={mine}\", \"other={vespa},vespa\"]\nqueries = \"q.toml\"\nrows = \"rows.csv\"\nrows_order = \"shuffle\"\n\
             rows_per = \"user\"\nheaders = [\"X-Key: ${{SEARCH_KEY}}\"]\nsizes = [\"100kB\"]\nusers = [3, 5]\n\
             users_profile = \"at once {{users}}\"\npasses = 4\nquery_hits = 10\nwarmup = \"0s\"\nchecks = [\"time<30s\"]\n"
        ),
    );
}

fn run(place: &Place, more: &[&str]) -> Ended {
    let own = ["search", "matrix.toml", "--fresh", "--json", "-", "--quiet"];
    let mut command = place.plimsoll([&own[..], more].concat());
    command.env("SEARCH_KEY", "hunter2-of-the-matrix");
    Running::start(command, b"").wait(PATIENCE)
}

/// The cells of a record without what depends on time.
fn counts(record: &Value) -> Vec<Value> {
    let of_query = |query: &Value| {
        ["name", "ok", "failed", "hits", "hits_varied"].map(|field| query[field].clone()).to_vec()
    };
    let of_cell = |cell: &Value| {
        let queries: Vec<_> = cell["queries"].as_array().unwrap().iter().map(of_query).collect();
        let key = ["engine", "size", "distance", "shards", "users"].map(|key| cell[key].clone());
        let count = cell["latency_ms"]["count"].clone();
        serde_json::json!([key, cell["ok"], cell["failed"], cell["reason"], count, queries])
    };
    record["search"]["cells"].as_array().unwrap().iter().map(of_cell).collect()
}

fn sorted_bodies(engine: &Engine) -> Vec<String> {
    let mut bodies = engine.bodies();
    bodies.sort();
    bodies
}

#[test]
fn a_matrix_on_agents_is_that_of_one_machine_request_for_request() {
    let fleet = Fleet::of(Place::busy(), 3, &["search"]);
    let (here, there) = (Engine::start(Faults::default()), Engine::start(Faults::default()));
    files(&fleet.place, &here.url, &fleet.target.url);
    let alone = record(&run(&fleet.place, &[]).expect(0));
    files(&fleet.place, &there.url, &fleet.target.url);
    let ended = run(&fleet.place, &["--agents", "3", "--bus", &fleet.bus()]).expect(0);
    let shared = record(&ended);
    Record(shared.clone()).expect_schema();
    Record(shared.clone()).expect_balanced();
    assert_eq!(counts(&shared), counts(&alone), "{}", reasons(&shared));
    assert!(counts(&shared).iter().all(|cell| cell[3].is_null()), "{}", ended.stderr);
    assert_eq!(sorted_bodies(&there), sorted_bodies(&here), "probes, answers and all requests");
    // Two engines, 3 and 5 users, 4 times 2 queries each.
    assert_eq!(shared["ledger"], alone["ledger"]);
    assert_eq!(shared["ledger"]["ok"], 2 * (3 + 5) * 4 * 2, "{}", ended.stderr);
    let hits = |record: &Value| {
        let answers = record["search"]["answers"].as_array().unwrap();
        answers.iter().map(|one| [one["hits"].clone(), one["ids"].clone()]).collect::<Vec<_>>()
    };
    assert_eq!(hits(&shared), hits(&alone));
    // Each agent has its exact part, in its own record too, and the secret is in none.
    let agents = shared["fleet"]["agents"].as_array().unwrap();
    let sent: Vec<_> = agents.iter().map(|one| one["figures"]["sent"].as_u64().unwrap()).collect();
    assert_eq!(sent, [48, 48, 32], "of 3 and of 5 users");
    assert!(shared["fleet"].get("troubles").is_none(), "{}", shared["fleet"]);
    for (index, name) in ["a", "b", "c"].iter().enumerate() {
        wait_until_idle(fleet.agent(name), 2);
        let folder = std::fs::read_dir(fleet.runs(name)).unwrap().next().unwrap().unwrap().path();
        let text = std::fs::read_to_string(folder.join("run.json")).unwrap();
        assert!(!text.contains("hunter2"), "{text}");
        let own: Value = serde_json::from_str(&text).unwrap();
        Record(own.clone()).expect_schema();
        assert_eq!(own["ledger"]["ok"], sent[index]);
        assert_eq!(own["scenario"]["slice"]["index"], index);
        assert_eq!(own["verdict"]["kind"], "valid", "{}", own["verdict"]);
    }
    assert!(!ended.stdout.contains("hunter2"));
}

/// One engine, two numbers of users, cells of 3 s.
fn small(fleet: &Fleet) -> Vec<String> {
    let engine = format!("mine={}", fleet.target.url);
    let bus = fleet.bus();
    let own = ["search", "--engine", &engine, "--sizes", "100kB", "--users", "3,6"];
    let cell = ["--duration", "3s", "--warmup", "0s", "--think", "20ms", "--query-hits", "10"];
    let end = ["--agents", "3", "--bus", &bus, "--json", "-"];
    [&own[..], &cell, &end].concat().iter().map(|word| (*word).to_owned()).collect()
}

/// Requests that the search server has counted.
fn requests(fleet: &Fleet) -> f64 {
    let (status, page) = curl(&[&format!("{}/metrics", fleet.target.url)]);
    assert_eq!(status, 200);
    let counts = page.lines().filter(|line| line.starts_with("plimsoll_search_requests_total"));
    counts.map(|line| line.rsplit(' ').next().unwrap().parse::<f64>().unwrap()).sum()
}

/// Waits until the first cell is kept, and the second one has load.
fn wait_for_second_cell(fleet: &Fleet) {
    until("the first cell", Duration::from_secs(60), || {
        let runs = std::fs::read_dir(fleet.place.path().join("runs")).into_iter().flatten();
        runs.flatten().any(|run| run.path().join("matrix/cell-00000.json").exists())
    });
    let before = requests(fleet);
    until("load of the second cell", SOON, || requests(fleet) > before + 50.0);
}

#[test]
fn an_agent_that_dies_in_a_cell_ends_the_matrix_which_is_resumed_by_the_same_command() {
    let mut fleet = Fleet::of(Place::busy(), 3, &["search"]);
    let running = fleet.place.start(small(&fleet));
    wait_for_second_cell(&fleet);
    fleet.agent("b").signal(Signal::KILL);
    let ended = running.wait(Duration::from_secs(60)).expect(3);
    let cut = record(&ended);
    Record(cut.clone()).expect_schema();
    Record(cut.clone()).expect_balanced();
    assert_eq!(cut["verdict"]["kind"], "partial", "{}", cut["verdict"]);
    let why = reasons(&cut);
    assert!(why.contains("agent b: it has been silent"), "{why}");
    assert!(why.contains("with 1 of 2 cells; the same command resumes there"), "{why}");
    assert_eq!(why.matches("agent b: ").count(), 1, "{why}");
    assert!(ended.stderr.contains("agent b: it has been silent"), "{}", ended.stderr);
    // Whatever was measured is kept: a whole cell, and a part without a number.
    let cells = cut["search"]["cells"].as_array().unwrap();
    assert!(cells[0]["ok_per_s"].is_number(), "{}", cells[0]);
    assert!(cells[1]["ok_per_s"].is_null() && cells[1]["latency_ms"]["count"].as_u64() > Some(10));
    let reason = cells[1]["reason"].as_str().unwrap();
    assert_eq!(reason, "the results of 1 of 3 agents are missing: b");
    for name in ["a", "c"] {
        wait_until_idle(fleet.agent(name), 2);
    }
    fleet.agents.retain(|(name, _)| name != "b");
    fleet.add("d", &[]);
    let ended = fleet.place.start(small(&fleet)).wait(PATIENCE).expect(0);
    assert!(ended.stderr.contains("1 of 2 cells are done"), "{}", ended.stderr);
    let whole = record(&ended);
    let again = whole["search"]["cells"].as_array().unwrap();
    assert_eq!(again.len(), 2);
    assert_eq!(again[0], cells[0], "it was not measured again");
    assert!(again[1]["ok_per_s"].is_number(), "{}", again[1]);
    assert_eq!(whole["verdict"]["kind"], "valid", "{}", whole["verdict"]);
}

#[test]
fn ctrl_c_in_a_cell_ends_it_on_all_agents() {
    let fleet = Fleet::of(Place::busy(), 3, &["search"]);
    let running = fleet.place.start(small(&fleet));
    wait_for_second_cell(&fleet);
    running.signal(Signal::INT);
    let ended = running.wait(Duration::from_secs(20)).expect(3);
    let cut = record(&ended);
    assert!(reasons(&cut).contains("with 1 of 2 cells"), "{}", reasons(&cut));
    assert!(cut["fleet"].get("troubles").is_none(), "{}", cut["fleet"]);
    for name in ["a", "b", "c"] {
        wait_until_idle(fleet.agent(name), 2);
    }
}

/// Users are not due before they begin, so that no lag shows an agent that begins late.
#[test]
fn a_cell_that_an_agent_begins_late_is_marked_with_its_name() {
    let fleet = Fleet::of(Place::quiet(), 3, &["search"]);
    let engine = format!("mine={}", fleet.target.url);
    let own = ["search", "--engine", &engine, "--sizes", "100kB", "--query-hits", "10"];
    let cell = ["--users", "3,4,5,6,7,8,9,10,11,12,13,14", "--duration", "500ms", "--warmup", "0s"];
    let bus = fleet.bus();
    let end = ["--agents", "3", "--bus", &bus, "--json", "-", "--quiet"];
    let mut running = fleet.place.start([&own[..], &cell, &end].concat());
    // A start is 0.4 s after all are ready, which this one is while it runs: it confirms the start, and stands still when it comes.
    while running.is_running() {
        fleet.agent("b").signal(Signal::STOP);
        std::thread::sleep(Duration::from_millis(200));
        fleet.agent("b").signal(Signal::CONT);
        std::thread::sleep(Duration::from_millis(100));
    }
    let ended = running.wait(PATIENCE).expect(0);
    let cells = record(&ended)["search"]["cells"].clone();
    let marks = |cell: &Value| cell["marks"].as_array().cloned().unwrap_or_default();
    let late = |cell: &&Value| marks(cell).contains(&Value::from("late start: agent b"));
    assert!(cells.as_array().unwrap().iter().any(|cell| late(&cell)), "{cells}");
    assert!(ended.stdout.contains("late start: agent b"), "{}", ended.stdout);
}

#[test]
fn processes_measure_engines_that_plimsoll_starts() {
    let place = Place::busy();
    let own = ["search", "--engine", "vespa-api", "--engine", "postgresql", "--sizes", "100kB"];
    let cell = [
        "--users",
        "2,4",
        "--duration",
        "400ms",
        "--warmup",
        "100ms",
        "--repeat",
        "2",
        "--query-hits",
        "10",
    ];
    let words = [&own[..], &cell, &["--processes", "2", "--json", "-", "--quiet"]].concat();
    let running = place.start(&words);
    for name in ["process-1", "process-2"] {
        running.wait_for_descendant(&format!("--name={name}"), SOON);
    }
    let processes = running.descendants();
    let whole = record(&running.wait(PATIENCE).expect(0));
    Record(whole.clone()).expect_schema();
    Record(whole.clone()).expect_balanced();
    let cells = whole["search"]["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 4);
    for cell in cells {
        assert!(cell["ok_per_s"].as_f64() > Some(0.0), "{cell}");
        let counted: u64 =
            cell["queries"].as_array().unwrap().iter().map(|one| one["ok"].as_u64().unwrap()).sum();
        assert_eq!(cell["ok"], counted, "warm-up and window of both");
        for repeat in cell["repeats"].as_array().unwrap() {
            assert_eq!(repeat["window_s"], 0.4);
            assert!(repeat["ok"].as_u64() <= cell["ok"].as_u64());
        }
        assert!(cell["server_cpu_s"].as_f64() > Some(0.0), "of this machine: {cell}");
    }
    let agents = whole["fleet"]["agents"].as_array().unwrap();
    let sent: u64 = agents.iter().map(|one| one["figures"]["sent"].as_u64().unwrap()).sum();
    assert_eq!(whole["ledger"]["sent"], sent);
    expect_gone(&processes);
}

#[test]
fn a_matrix_that_agents_cannot_carry_out_is_refused_in_a_line() {
    let fleet = Fleet::of(Place::new(), 3, &["null"]);
    let (url, bus) = (format!("mine={}", fleet.target.url), fleet.bus());
    let refused = |words: &[&str], code: i32, parts: &[&str]| {
        let end = ["--agents", "3", "--bus", &bus, "--quiet"];
        let ended = fleet.place.run([&["search"], words, &end].concat()).expect(code);
        assert_eq!(ended.stderr.trim_end().lines().count(), 1, "{words:?}: {}", ended.stderr);
        for part in parts {
            assert!(ended.stderr.contains(part), "{words:?}: no {part:?} in {}", ended.stderr);
        }
    };
    refused(&["--engine", &url, "--show"], 64, &["--show measures nothing"]);
    refused(&["none.toml", "--engine", &url], 64, &["none.toml"]);
    let passes = ["--engine", &url, "--users", "3", "--passes", "2"];
    refused(&passes, 64, &["--passes cannot be shared out to agents", "--users-profile"]);
    let few = ["--engine", &url, "--users", "1,5"];
    refused(&few, 64, &["--users 1 cannot be shared out to 3 parts"]);
    let elsewhere = ["--engine", "x=http://10.255.0.1:9", "--users", "3"];
    refused(&elsewhere, 64, &["does not send load to 10.255.0.1", "--allow-target 10.255.0.1"]);
    assert_eq!(fleet.target_requests(), 0);
    assert!(!fleet.place.path().join("runs").exists(), "no record of a matrix that did not begin");
    let part = fleet.place.run(["search", "--engine", &url, "--part", "0/2"]).expect(64);
    assert!(part.stderr.contains("a matrix cannot be part 1 of 2"), "{}", part.stderr);
    // The default leaves out what is too small, so that it is not refused; this server only has no index.
    let usual = ["search", "--engine", &url, "--agents", "3", "--bus", &bus, "--json", "-"];
    let record = record(&fleet.place.run(usual).expect(4));
    assert_eq!(record["search"]["users"], serde_json::json!([5, 10, 20]));
}
