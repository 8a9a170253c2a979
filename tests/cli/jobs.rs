//! The catalogue: jobs, hooks, history, and the look at the machine.

use crate::process::{Ended, Place};
use crate::server::Server;
use plimsoll_core::scenario::Scenario;
use serde_json::Value;

/// One line on stderr that holds `word`; nothing on stdout; exit code 64.
#[track_caller]
fn refused(ended: Ended, word: &str) {
    let ended = ended.expect(64);
    assert_eq!(ended.stderr.lines().count(), 1, "not one line:\n{}", ended.stderr);
    assert!(ended.stderr.contains(word), "no {word:?} in {}", ended.stderr);
    assert_eq!(ended.stdout, "");
}

/// A job that loads a server of the test's for a second and a half, after a warm-up.
fn job(place: &Place, more: &str) {
    let text = format!(
        "[job]\nname = \"mine\"\ndescription = \"A test.\"\nbaseline = 50.0\n\
         command = [\"load\", \"{{url}}\", \"--rate\", \"{{rate}}\", \"--warmup\", \"1s\", \"--duration\", \
         \"{{duration}}\", \"{{extra...}}\"]\n{more}\n[job.vars]\nurl = {{ required = true }}\n\
         rate = {{ default = \"100\" }}\nduration = {{ default = \"3s\" }}\nextra = {{}}\n"
    );
    place.file("mine.toml", text);
}

#[test]
fn wrong_jobs_and_inputs_are_one_line_before_any_load() {
    let (place, server) = (Place::new(), Server::ok());
    let url = format!("url={}", server.url());
    job(&place, "");
    place.file("shape.toml", "[job]\nname = \"x\"\ndescription = \"d\"\ncomand = [\"load\"]\n");
    place.file("syntax.toml", "[job]\nname = \n");
    place.file("hook.toml", "[job]\nname = \"x\"\ndescription = \"d\"\ncommand = [\"load\"]\n[[job.hooks]]\nname = \"shel\"\n");
    place.file(
        "roles.toml",
        "[job]\nname = \"x\"\ndescription = \"d\"\n[job.roles.client]\ncommand = [\"load\"]\n",
    );
    let with = |line: &str| format!("[job]\nname = \"x\"\ndescription = \"d\"\n\n{line}\n");
    place.file("word.toml", with("command = [\"laod\", \"http://127.0.0.1:1/\"]"));
    place.file(
        "flag.toml",
        with("prepare = [[\"load\", \"{target_url}\", \"--durration\", \"1s\"]]\ncommand = [\"list\"]\n\
              [job.target]\nserve = [\"null\"]"),
    );
    for (name, body) in [("address.json", "x"), ("body.json", "password=***")] {
        let token = if name == "address.json" { "***" } else { "x" };
        let scenario = Scenario {
            targets: vec![format!("http://127.0.0.1:1/?token={token}")],
            body: Some(body.to_owned()),
            ..Scenario::default()
        };
        place.file(name, serde_json::to_string(&scenario).unwrap());
    }
    place.file("scenario.toml", "targets = [\"http://127.0.0.1:1/\"]\n");
    let auto = "feedsim_autoscale";
    for (args, word) in [
        (&["run", "feedsim_autoscal"][..], "did you mean 'feedsim_autoscale'?"),
        (&["info", "quickstar"], "did you mean 'quickstart'?"),
        (&["install", "fbensh"], "did you mean 'fbench'?"),
        (&["clean", "fbensh"], "did you mean 'fbench'?"),
        (&["list", "serch"], "did you mean 'search'?"),
        (&["run", auto, "-i", r#"{"num_instance": 2}"#], "did you mean 'num_instances'?"),
        (&["run", auto, "-i", "num_instances"], "write key=value"),
        (&["run", auto, "-i", "{\"num_instances\": 2"], "-i '{"),
        (&["run", auto, "-i", r#"{"num_instances": [2]}"#], "num_instances is [2]"),
        (&["run", auto, "-i", "extra_args='-q"], "not closed"),
        (&["run", auto, "-r", "client"], "has no roles"),
        (&["run", auto, "-k", "prf"], "did you mean 'perf'?"),
        (&["run", auto, "-a", "{"], "-a '{'"),
        (&["run", auto, "-a", r#"{"perf": {}}"#], "add -k perf"),
        (&["run", auto, "-k", "cpu-limit"], "cpu-limit"),
        (&["run", "fbench", "-r", "remot"], "did you mean 'remote'?"),
        (&["run", "fbench", "-r", "remote", "-i", "host=x"], "needs port"),
        (
            &["run", "word.toml"],
            "word.toml:5: field `job.command`: unknown command 'laod'; did you mean 'load'?",
        ),
        (&["run", "flag.toml"], "flag.toml:5: field `job.prepare`: unknown option '--durration'"),
        (&["info", "scenario.toml"], "scenario.toml: this file is not a job"),
        (&["run", "roles.toml"], "needs a role; give one with -r: client"),
        (&["run", "shape.toml"], "shape.toml:4: unknown field `comand`"),
        (&["run", "syntax.toml"], "syntax.toml:2"),
        (&["run", "hook.toml"], "did you mean 'shell'?"),
        (&["run", "mine.toml"], "mine needs url"),
        (&["run", "mine.toml", "-i", &url, "-i", "rat=5"], "did you mean 'rate'?"),
        (&["run", "mine.toml", "-i", &url, "--json", "no/such/x.json"], "--json"),
        (&["run", "quickstart", "-k", "perf"], "-k"),
        (&["run", "address.json"], "'http://127.0.0.1:1/?token=***': records keep no secrets"),
        (&["run", "body.json"], "'password=***': records keep no secrets"),
        (&["report", "feedsim_min"], "did you mean 'feedsim_mini'?"),
        (&["report", "feedsim_mini"], "has no run"),
    ] {
        refused(place.run(args), word);
    }
    assert_eq!(server.connections(), 0, "load was sent in spite of bad input");
    assert!(!place.path().join("runs").exists(), "a record of nothing");
}

#[test]
fn the_catalogue_tells_itself() {
    let place = Place::new();
    let text = place.run(["list"]).expect(0).stdout;
    for name in ["fbench", "feedsim_default", "feedsim_autoscale", "feedsim_mini", "quickstart"] {
        assert!(text.contains(name), "{text}");
        assert!(place.run(["info", name]).expect(0).stdout.starts_with(name));
        let about = place.run(["info", name, "--json"]).expect(0).stdout;
        assert_eq!(serde_json::from_str::<Value>(&about).unwrap()["name"], name);
    }
    assert!(place.run(["list", "-s"]).expect(0).stdout.contains("scope: recommendation"));
    let some = place.run(["list", "recommendation", "--json"]).expect(0).stdout;
    let some: Value = serde_json::from_str(&some).unwrap();
    assert_eq!(some["jobs"].as_array().unwrap().len(), 3);
    let both = r#"{"num_instances": 2, "extra_args": "-q 100"}"#;
    let dry = place.run(["run", "feedsim_autoscale", "-i", both, "--dry-run", "--disable-hooks"]);
    assert_eq!(
        dry.expect(0).stdout,
        "plimsoll rank --preset feedsim -n 2 --slo p95=500ms -q 100\n"
    );
    assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 0, "a dry run leaves nothing");
}

#[test]
fn hooks_go_around_a_run_and_their_files_into_its_record() {
    let (place, server) = (Place::busy(), Server::ok());
    let url = format!("url={}", server.url());
    place.file("note.txt", "before");
    job(
        &place,
        "[[job.hooks]]\nname = \"cpu-mpstat\"\noptions = { args = [\"-u\", \"1\"] }\n\
         [[job.hooks]]\nname = \"shell\"\noptions = { before = [\"echo one\", \"exit 3\"], after = [\"echo two\"] }\n\
         [[job.hooks]]\nname = \"copymove\"\noptions = { after = [\"note.txt\"] }\n\
         [[job.hooks]]\nname = \"file\"\noptions = [{ type = \"dir\", path = \"for-the-run\" }]\n\
         [[job.hooks]]\nname = \"cpu-limit\"\noptions = \"ff\"",
    );
    let args = ["run", "mine.toml", "-i", &url, "--json", "-", "-k", "perf"];
    let ended = place.run(args);
    // A machine that is busy may make the generator late; the record is what matters here.
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    assert!(ended.stderr.contains("hook shell: 'exit 3'"), "{}", ended.stderr);
    let record: Value = serde_json::from_str(&ended.stdout).unwrap();
    assert_eq!(record["catalogue"]["name"], "mine");
    let ok_per_s = record["rate"]["ok_per_s"].as_f64().unwrap();
    let score = record["catalogue"]["score"].as_f64().unwrap();
    assert!((score - ok_per_s / 50.0).abs() < 1e-9, "{score}");
    let hooks = &record["hooks"];
    let idle = hooks["cpu-mpstat"]["averages"]["cpu-mpstat.txt"]["%idle"].as_f64().unwrap();
    assert!((0.0..=100.0).contains(&idle));
    let samples = hooks["cpu-mpstat"]["samples_measured"]["cpu-mpstat.txt"].as_u64().unwrap();
    assert!((1..=4).contains(&samples), "{samples} samples of three measured seconds");
    assert!(hooks["perf"]["averages"]["mem-stat.csv"]["MemTotal_kB"].as_f64().unwrap() > 1e5);
    assert!(hooks["shell"]["warnings"][0].as_str().unwrap().contains("exit 3"));
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    let file = |name: &str| {
        std::fs::read_to_string(folder.path().join("hooks").join(name))
            .unwrap_or_else(|e| panic!("{name}: {e}"))
    };
    let (whole, cut) = (file("cpu-mpstat.txt"), file("cpu-mpstat_measured.csv"));
    assert!(whole.lines().filter(|line| line.contains(" all ")).count() > samples as usize);
    assert_eq!(cut.lines().count() as u64, samples + 1);
    assert_eq!(file("note.txt"), "before");
    assert_eq!(file("shell.txt"), "$ echo one\none\n$ exit 3\n$ echo two\ntwo\n");
    assert!(!place.path().join("for-the-run").exists());
    let left = std::fs::read_dir(place.path().join("runs")).unwrap().count();
    assert_eq!(left, 1, "something was left beside the record");
}

#[test]
fn feedsims_job_takes_its_runners_flags_and_keeps_its_table() {
    let place = Place::busy();
    let more = "-q 10 -d 2 -w 0 --scale 10 -i 1000 --slo p95=5s";
    let both = format!(r#"{{"num_instances": 2, "extra_args": "{more}"}}"#);
    let ended = place.run(["run", "feedsim_mini", "-i", &both, "--quiet", "--verbose"]);
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    assert!(ended.stdout.contains("\nInstances, last run  "), "{}", ended.stdout);
    let folder = std::fs::read_dir(place.path().join("runs")).unwrap().next().unwrap().unwrap();
    let name = folder.file_name().to_string_lossy().into_owned();
    assert!(name.contains("-feedsim_mini-"), "the job is in the name of its record: {name}");
    let table = folder.path().join("hooks/feedsim_results.txt");
    let table = std::fs::read_to_string(&table).unwrap();
    assert!(table.starts_with("duration_secs,") && table.contains("\n2,"), "{table}");
    assert!(!place.path().join("feedsim_results.txt").exists(), "it was copied, not moved");
    let json = place.run(["report", "feedsim_mini", "--format", "json"]).expect(0).stdout;
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["rank"]["overall"]["requested_per_s"].as_f64(), Some(20.0));
    // A run that leaves no record takes nobody's files away; a refusal is one line.
    place.file("feedsim_results.txt", "mine");
    for args in [
        &["run", "feedsim_mini", "-i", "num_instances=0"][..],
        &["run", "feedsim_mini", "-i", "seconds=soon"],
    ] {
        refused(place.run(args), if args[3] == "seconds=soon" { "soon" } else { "-n: " });
        assert_eq!(place.read("feedsim_results.txt"), "mine");
    }
    // The last -d counts, and what is sampled is cut to it.
    assert_eq!(record["rank"]["runs"][0]["duration_secs"].as_f64(), Some(2.0));
    let samples = &record["hooks"]["cpu-mpstat"]["samples_measured"]["cpu-mpstat.txt"];
    assert!((1..=3).contains(&samples.as_u64().unwrap()), "{samples}");
}

#[test]
fn a_role_asks_a_target_that_runs_elsewhere() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", "/search/?query=a\n/search/?query=b\n");
    let port = format!("port={}", server.port());
    let vars = ["-i", "host=127.0.0.1", "-i", &port, "-i", "queries=q.txt", "-i", "seconds=1"];
    let args =
        [&["run", "fbench", "-r", "remote", "--quiet", "-i", "clients=2"][..], &vars].concat();
    let ended = place.run(args);
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    assert!(server.paths().iter().any(|path| path == "/search/?query=b"), "{:?}", server.paths());
    let json = place.run(["report", "fbench", "--format", "json"]).expect(0).stdout;
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["catalogue"]["role"], "remote");
    assert!(!place.path().join(".plimsoll").exists(), "the remote role needs no files");
}

#[test]
fn several_runs_of_a_job_are_told_together_and_as_benchpress_does() {
    let (place, server) = (Place::busy(), Server::ok());
    let url = format!("url={}", server.url());
    job(&place, "");
    for rate in ["rate=100", "rate=200"] {
        let args = ["run", "mine.toml", "-i", &url, "-i", rate, "-i", "duration=1s", "--quiet"];
        let ended = place.run(args);
        assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
        assert!(ended.stdout.contains("\nScore      "), "{}", ended.stdout);
    }
    let json = place.run(["report", "mine", "--all", "--format", "json"]).expect(0).stdout;
    let history: Value = serde_json::from_str(&json).unwrap();
    let runs = history["jobs"][0]["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let valid: Vec<f64> = runs
        .iter()
        .filter(|run| run["verdict"] == "valid")
        .map(|run| run["score"].as_f64().unwrap())
        .collect();
    if valid.len() == 2 {
        let median = history["jobs"][0]["scores"]["median"].as_f64().unwrap();
        assert!((median - (valid[0] + valid[1]) / 2.0).abs() < 1e-9);
        assert!((history["geometric_mean"].as_f64().unwrap() - median).abs() < 1e-9);
    }
    let text = place.run(["report", "mine", "feedsim_mini", "--all"]).expect(0).stdout;
    assert!(text.contains("no run in this folder"), "{text}");
    let newest = place.run(["report", "mine", "--format", "benchpress"]).expect(0).stdout;
    let newest: Value = serde_json::from_str(&newest).unwrap();
    assert_eq!(newest["benchmark_name"], "mine");
    assert_eq!(newest["run_id"], runs[1]["run_id"]);
    assert!(newest["machines"][0]["num_logical_cpus"].is_u64() && newest["timestamp"].is_u64());
    assert!(newest["metrics"]["score"].as_f64().unwrap() > 0.0);
    let both = place.run(["report", "mine", "--all", "--format", "benchpress"]).expect(0).stdout;
    assert_eq!(serde_json::from_str::<Value>(&both).unwrap().as_array().unwrap().len(), 2);
}

#[test]
fn a_run_without_end_is_stopped_at_its_timeout_and_kept() {
    let (place, server) = (Place::new(), Server::ok());
    let url = format!("url={}", server.url());
    job(&place, "timeout = \"2s\"");
    let args = ["run", "mine.toml", "-i", &url, "-i", "duration=10m", "--quiet"];
    let ended = place.run(args).expect(3);
    assert!(ended.stderr.contains("stopped after its timeout, 2s"), "{}", ended.stderr);
    let json = place.run(["report", "mine", "--format", "json"]).expect(0).stdout;
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["verdict"]["kind"], "partial");
    assert_eq!(record["catalogue"]["name"], "mine");
}

#[test]
fn fbench_starts_a_search_server_and_leaves_nothing_running() {
    let place = Place::busy();
    let vars =
        ["-i", "documents=300", "-i", "queries_each=5", "-i", "seconds=2", "-i", "clients=2"];
    let args = [&["run", "fbench", "--quiet"][..], &vars].concat();
    let ended = place.run(&args);
    assert!(matches!(ended.code, Some(0 | 3)), "{ended:?}");
    assert!(ended.stdout.contains("plimsoll: "), "{}", ended.stdout);
    let json = place.run(["report", "fbench", "--format", "json"]).expect(0).stdout;
    let record: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(record["catalogue"]["vars"]["documents"], "300");
    assert!(record["ledger"]["ok"].as_u64().unwrap() > 50, "{}", record["ledger"]);
    assert_eq!(record["statuses"].as_object().unwrap().len(), 1, "only 200s");
    let port =
        record["target"]["url"].as_str().unwrap().trim_end_matches('/').rsplit(':').next().unwrap();
    let gone = std::net::TcpStream::connect(("127.0.0.1", port.parse::<u16>().unwrap()));
    assert!(gone.is_err(), "the target still answers");
    assert!(place.path().join(".plimsoll/fbench/queries.txt").is_file());
    assert_eq!(place.run(["clean", "fbench"]).expect(0).stdout, "fbench: removed\n");
    assert!(!place.path().join(".plimsoll").exists());
}

#[test]
fn the_machine_is_looked_at() {
    let place = Place::new();
    let ended = place.run(["system-check", "--json"]);
    let value: Value = serde_json::from_str(&ended.stdout).unwrap();
    let checks = value["checks"].as_array().unwrap();
    assert_eq!(checks.len(), 13);
    let bad = checks.iter().filter(|check| check["state"] == "bad").count();
    assert_eq!(ended.code, Some(if bad == 0 { 0 } else { 2 }));
    for check in checks {
        assert_eq!(check["fix"].is_string(), check["state"] == "bad", "{check}");
        assert!(!check["why"].as_str().unwrap().is_empty(), "{check}");
    }
    assert!(place.run(["system-check"]).stdout.contains(" good, "));
}
