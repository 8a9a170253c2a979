//! Wrong words, one line each, before anything is sent.

use crate::process::Place;

const LOAD: [&str; 3] = ["load", "--rate", "100"];
const URL: &str = "http://127.0.0.1:1";

#[test]
fn wrong_words_are_one_line_that_says_what_to_write() {
    let place = Place::new();
    let sides = ["--a", URL, "--b", URL];
    let with = |more: &[&'static str]| [&sides[..], more].concat();
    let other = |job: &'static str| vec![job];
    for (flags, block, part) in [
        (vec![], LOAD.to_vec(), "nothing says how A and B differ"),
        (vec!["--a", URL], LOAD.to_vec(), "--a is given and --b is not"),
        (with(&[]), other("mix"), "'mix' after -- is not a job that ab can compare"),
        (with(&[]), vec!["load", "--json", "x"], "write it before --"),
        (with(&[]), vec!["load", "--stream", "x"], "not supported for the blocks of ab"),
        (with(&[]), vec!["load", "--bogus"], "the job of A: unknown option '--bogus'"),
        (with(&["--on", "p98"]), LOAD.to_vec(), "unknown metric"),
        (with(&["--on", "p50,p50"]), LOAD.to_vec(), "is named twice"),
        (with(&["--fail-on", "p99"]), LOAD.to_vec(), "'p99>+5%'"),
        (with(&["--on", "p50", "--fail-on", "p99>+5%"]), LOAD.to_vec(), "not among --on p50"),
        (with(&["--error", "50%"]), LOAD.to_vec(), "--error must be above 0 %"),
        (with(&["--margin", "0%"]), LOAD.to_vec(), "--margin must be above 0 %"),
        (with(&["--budget", "0s"]), LOAD.to_vec(), "--budget must be more than 0"),
        (with(&["--watch", "none"]), LOAD.to_vec(), "write it after --"),
        (with(&["--live"]), LOAD.to_vec(), "unknown option '--live'"),
        (with(&["--a-flags", "it's"]), LOAD.to_vec(), "is not closed"),
        (vec!["--a-command", " ", "--b", URL], LOAD.to_vec(), "the command is empty"),
        (vec!["--a-command", "/none/such", "--b", URL], LOAD.to_vec(), "cannot be started"),
        (vec!["--a-bin", "/none/such"], LOAD.to_vec(), "is not a file"),
        (with(&["--command"]), vec!["true"], "write {target} where it belongs"),
        (with(&["--command", "--number", "x"]), vec!["echo", "{target}"], "exactly one group"),
        (with(&["--command", "--on", "p50"]), vec!["echo", "{target}"], "metrics time and number"),
        (
            with(&["--command", "--number", "(x)", "--on", "time"]),
            vec!["echo", "{target}"],
            "--number is not among --on",
        ),
        (
            [&with(&["--a-flags", "--slo p95=10ms"])[..], &["--b-flags", "--slo p95=100ms"]]
                .concat(),
            vec!["seek"],
            "--slo must be the same for A and B",
        ),
        (with(&["--b-flags", "--feed ops.json"]), vec!["seek"], "--feed must be the same"),
        (vec!["--a-command", "x", "--b-command", "y"], vec!["search"], "search starts its engines"),
        (vec!["--a", "host", "--b", "host"], vec!["fbench"], "has no port"),
    ] {
        let words = [&["ab"], &flags[..], &["--"], &block[..]].concat();
        let ended = place.run(&words);
        assert_eq!(ended.code, Some(64), "{words:?}\n{}", ended.stderr);
        assert_eq!(ended.stderr.lines().count(), 1, "{words:?}\n{}", ended.stderr);
        assert!(ended.stderr.contains(part), "{words:?}: {part}\n{}", ended.stderr);
    }
    assert!(!place.path().join("runs").exists(), "nothing was measured");
}

#[test]
fn a_target_that_is_not_there_is_one_line_and_code_4() {
    let place = Place::new();
    let words = ["ab", "--a", URL, "--b", URL, "--", "load", "--rate", "100"];
    let ended = place.run(words).expect(4);
    assert!(
        ended.stderr.contains("a block of A: 127.0.0.1:1 cannot be reached"),
        "{}",
        ended.stderr
    );
    let dead = ["ab", "--a-command", "false", "--b-command", "false", "--", "load", "--rate", "9"];
    let ended = place.run(dead).expect(4);
    assert!(ended.stderr.contains("ended before it answered"), "{}", ended.stderr);
}

#[test]
fn a_budget_without_room_for_six_pairs_is_rejected_with_one_that_has_it() {
    let place = Place::quiet();
    let target = place.serve(&["null"]);
    let block = ["load", "--rate", "100", "--duration", "2s", "--warmup", "1s"];
    let words = ["ab", "--a", &target.url, "--b", &target.url, "--budget", "8s", "--"];
    let ended = place.run([&words[..], &block].concat()).expect(64);
    assert!(ended.stderr.contains("an answer takes at least 6; use --budget"), "{}", ended.stderr);
}

/// Either the machine has too few processors, or the target has none of its own.
#[test]
fn a_duet_is_declined_where_the_sides_cannot_have_processors_of_their_own() {
    let place = Place::new();
    let target = place.serve(&["null"]);
    let words = ["ab", "--a", &target.url, "--b", &target.url, "--duet", "--budget", "60s", "--"];
    let block = ["load", "--rate", "50", "--duration", "200ms", "--warmup", "0s"];
    let ended = place.run([&words[..], &block].concat()).expect(64);
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    assert!(ended.stderr.contains("--duet"), "{}", ended.stderr);
    if std::thread::available_parallelism().is_ok_and(|own| own.get() < 4) {
        let queue = "plimsoll serve queue --port 0";
        let words = ["ab", "--a-command", queue, "--b-command", queue, "--duet", "--"];
        let ended = place.run([&words[..], &block].concat()).expect(64);
        assert!(ended.stderr.contains("--duet needs 4 processors"), "{}", ended.stderr);
    }
}
