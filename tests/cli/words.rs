//! What the program says about itself.

use super::version::origin;
use crate::process::Place;

#[test]
fn alone_it_prints_one_screen_of_orientation() {
    let ended = Place::new().run::<&str>([]).expect(0);
    let lines = ended.stdout.lines().count();
    assert!((8..=24).contains(&lines), "{lines} lines\n{}", ended.stdout);
    assert!(ended.stdout.lines().all(|line| line.len() <= 100), "{}", ended.stdout);
    for word in ["quickstart", "load", "fbench", "serve", "report", "--help"] {
        assert!(ended.stdout.contains(word), "no {word} in\n{}", ended.stdout);
    }
    assert_eq!(ended.stderr, "");
}

#[test]
fn its_version_has_the_commit() {
    let place = Place::new();
    let ended = place.run(["--version"]).expect(0);
    let (version, origin) = (env!("CARGO_PKG_VERSION"), origin());
    let changed = if origin.modified == Some(true) { "-modified" } else { "" };
    let wanted = match origin.commit.get(..12) {
        Some(commit) => format!("plimsoll {version} ({commit}{changed})\n"),
        None => format!("plimsoll {version}\n"),
    };
    assert_eq!(ended.stdout, wanted);
}

#[test]
fn a_reader_of_stderr_that_goes_away_changes_no_exit_code() {
    let (place, server) = (Place::new(), crate::server::Server::ok());
    let script = format!(
        "{} load {} --clients 1 --requests 5 --quiet --slo p95=0.001ms 2>&1 >page | true; \
         echo ${{PIPESTATUS[0]}}",
        env!("CARGO_BIN_EXE_plimsoll"),
        server.url()
    );
    let command = place.program("bash", ["-c", &script]);
    let ended = crate::process::Running::start(command, b"").wait(crate::process::PATIENCE);
    // 3 where other programs took its processor meanwhile.
    assert!(["2\n", "3\n"].contains(&ended.stdout.as_str()), "{}", ended.stdout);
    assert!(place.read("page").contains("MISSED p95"), "{}", place.read("page"));
}

#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_plimsoll");
    let script = format!(
        "{program} corpus write --source synthetic | head -n 1 | wc -l; echo ${{PIPESTATUS[0]}}"
    );
    let command = place.program("bash", ["-c", &script]);
    let ended = crate::process::Running::start(command, b"").wait(crate::process::PATIENCE);
    assert_eq!(ended.stdout, "1\n0\n", "{}", ended.stderr);
}
