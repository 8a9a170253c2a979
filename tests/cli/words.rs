//! What the program says about itself.

use crate::process::Place;

const COMMANDS: [&[&str]; 19] = [
    &["run"],
    &["list"],
    &["info"],
    &["install"],
    &["clean"],
    &["system-check"],
    &["load"],
    &["fbench"],
    &["serve"],
    &["serve", "null"],
    &["serve", "queue"],
    &["serve", "search"],
    &["report"],
    &["corpus"],
    &["corpus", "info"],
    &["corpus", "write"],
    &["corpus", "queries"],
    &["split-file"],
    &["result-filter"],
];

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
fn every_command_has_help_with_examples() {
    let place = Place::new();
    for command in COMMANDS {
        let ended = place.run(command.iter().copied().chain(["--help"])).expect(0);
        assert!(ended.stdout.contains("Usage: plimsoll"), "{command:?}\n{}", ended.stdout);
        assert_eq!(ended.stderr, "");
        let is_top = command.len() == 1;
        assert!(!is_top || ended.stdout.contains("Examples:"), "{command:?}: no examples");
        for line in ended.stdout.lines() {
            assert!(line.chars().count() <= 120, "{command:?}: {line}");
        }
    }
}

#[test]
fn the_examples_in_the_help_are_understood() {
    // Every example is run with a flag that does not exist: only that one may be complained about.
    let place = Place::new();
    let mut tried = 0;
    for command in COMMANDS {
        let help = place.run(command.iter().copied().chain(["--help"])).expect(0).stdout;
        for line in help.lines().filter_map(|line| line.trim().strip_prefix("plimsoll ")) {
            if line.contains(['|', '<', '>']) || line.starts_with("COMMAND") {
                continue;
            }
            let mut all = words_of(line);
            all.push("--no-such-flag".to_owned());
            let ended = place.run(all).expect(64);
            assert!(ended.stderr.contains("--no-such-flag"), "{line}: {}", ended.stderr);
            tried += 1;
        }
    }
    assert!(tried >= 15, "{tried} examples");
}

/// The words of a command line, as a shell parts them: blanks inside single quotes part nothing.
fn words_of(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    for (index, part) in line.split('\'').enumerate() {
        let quoted = index % 2 == 1;
        for (number, word) in part.split(|c: char| !quoted && c == ' ').enumerate() {
            if number > 0 {
                words.push(String::new());
            }
            words.last_mut().unwrap().push_str(word);
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn its_version() {
    let ended = Place::new().run(["--version"]).expect(0);
    assert_eq!(ended.stdout, format!("plimsoll {}\n", env!("CARGO_PKG_VERSION")));
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
