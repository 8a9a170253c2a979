use super::*;
use crate::parser;

/// The line about a command line.
fn said(line: &str) -> String {
    let words: Vec<OsString> =
        ["plimsoll"].into_iter().chain(line.split(' ')).map(Into::into).collect();
    let error = parser().try_get_matches_from(&words).expect_err(line);
    complaint(&error, &crate::called(&words))
}

#[test]
fn options_of_other_tools_are_named_in_plimsolls_words() {
    for (line, part) in [
        ("load http://h/ -H X:y", "unknown option '-H'; plimsoll's is --header"),
        ("load http://h/ -c100", "unknown option '-c'; plimsoll's is --clients"),
        (
            "load http://h/ -d 10s",
            "'-d'; plimsoll's is --duration (wrk) or --body (curl, hey, oha)",
        ),
        ("load http://h/ -k", "plimsoll's is --insecure"),
        ("load http://h/ --concurrency 5", "plimsoll's is --clients"),
        ("seek http://h/ -c 5", "unknown option '-c'"),
        ("fbench h 80 -u me", "unknown option '-u'"),
        ("visit http://h/ -5", "unknown option '-5' (values cannot start with '-')"),
        ("load http://h/ --duration -1s", "unknown option '-1' (values cannot start with '-')"),
        ("load http://h/ --clinets 5", "unknown option '--clinets'; did you mean '--clients'?"),
        ("seek http://h/ --slo p95=1s --rate 10", "did you mean '--start-rate'?"),
        ("load http://h/ --warm 1s", "did you mean '--warmup'?"),
        ("voter --gat", "unknown option '--gat'"),
        ("seek http://h/ --duration 5m", "'--duration'; plimsoll seek has --budget"),
        ("seek http://h/ --min-rate 5", "'--min-rate'; plimsoll seek has --start-rate"),
    ] {
        let said = said(line);
        assert!(said.contains(part), "{line}: {said}");
    }
}

#[test]
fn numbers_and_words_are_explained_in_plain_words() {
    for (line, part) in [
        ("load http://h/ --clients x", "--clients: 'x' is not a number"),
        ("load http://h/ --clients 1.5", "--clients: '1.5' is not a whole number"),
        ("load http://h/ --clients -1", "--clients: '-1' is out of range; use a number from 0 to"),
        ("load http://h/ --clients 5000000000", "from 0 to 4,294,967,295"),
        ("load http://h/ --requests 99999999999999999999999", "is too large a number"),
        ("load http://h/ --rate x", "--rate: 'x' is not a rate; expected a number per second"),
        ("load http://h/ --arrivals poison", "--arrivals 'poison': did you mean 'poisson'?"),
        ("load http://h/ --clients", "--clients: the value is missing"),
        ("serve null --port 70000", "--port: '70000' is out of range; use a number from"),
        (
            "serve search --operations 4294967295",
            "--operations: '4294967295' is out of range; use a number from 1 to 65,536",
        ),
        (
            "serve search --throttled 4294967295",
            "--throttled: '4294967295' is out of range; use a number from 0 to 65,536",
        ),
        ("split-file x q.txt", "NUMPARTS: 'x' is not a number"),
        ("load", "<URL>... is missing; write for example: plimsoll load http://127.0.0.1:8080/"),
        ("seek http://h/", "--slo <LIMIT> is missing; write for example: plimsoll seek http://"),
        ("runs prune", "--keep <N> or --older-than <TIME> is missing; write for example:"),
        ("runs prune --older-than 30", "'30' is not an age; expected a number and a unit"),
        ("runs prune delete", "unexpected argument 'delete'"),
        ("feed h f --http1 --http2", "--http1 and --http2 exclude each other; leave one"),
        ("load http://h/ --json a --json b", "--json is given twice; give it once"),
        ("result-filter x", "unexpected argument 'x'; plimsoll result-filter takes only options"),
        ("serve queue --service 20ms", "'20ms' is not a service time; write fixed:5ms"),
        ("serve nosuch", "serve: unknown word 'nosuch'; write one of null"),
        ("laod", "unknown command 'laod'; did you mean 'load'?"),
        ("nosuch", "unknown command 'nosuch'; write one of run"),
    ] {
        let said = said(line);
        assert!(said.contains(part), "{line}: {said}");
        for word in ["invalid digit", "float literal", "..=", "tip:"] {
            assert!(!said.contains(word), "{line}: {said}");
        }
    }
}

/// All commands with their words, from the parser.
fn commands(command: &Command, path: &str, all: &mut Vec<(String, Command)>) {
    for own in command.get_subcommands().filter(|own| own.get_name() != "help") {
        let path = format!("{path} {}", own.get_name()).trim().to_owned();
        commands(own, &path, all);
        all.push((path, own.clone()));
    }
}

/// The options that a line recommends.
fn recommended(line: &str) -> Vec<&str> {
    let (_, behind) = line.split_once(';').unwrap_or((line, ""));
    let words = behind.split(|c: char| !(c.is_alphanumeric() || c == '-'));
    words.filter_map(|word| word.strip_prefix("--")).collect()
}

#[test]
fn no_error_recommends_an_option_that_the_command_does_not_have() {
    let mut parser = parser();
    parser.build();
    let mut all = Vec::new();
    commands(&parser, "", &mut all);
    let every: Vec<String> =
        all.iter().flat_map(|(_, own)| longs(own)).map(str::to_owned).collect();
    let mut tried = 0;
    for (path, command) in &all {
        let own = longs(command);
        let words =
            every.iter().flat_map(|long| [format!("--{long}"), format!("--{}x", &long[1..])]);
        for word in words.chain(foreign::words().map(str::to_owned)) {
            if own.contains(&word.trim_start_matches('-')) {
                continue;
            }
            let line = unknown(&word, command);
            for long in recommended(&line) {
                assert!(own.contains(&long), "{path} {word}: {line}");
                tried += 1;
            }
        }
    }
    assert!(tried > 500, "{tried}");
}

#[test]
fn an_old_name_is_accepted_with_a_hint() {
    let hints = |line: &str| {
        let words: Vec<OsString> =
            ["plimsoll"].into_iter().chain(line.split(' ')).map(Into::into).collect();
        parser().try_get_matches_from(&words).unwrap_or_else(|error| panic!("{line}: {error}"));
        renamed(&words, &crate::called(&words))
    };
    assert_eq!(hints("load http://h/ --profile 5:1s"), ["--profile is now --rate-profile"]);
    assert_eq!(hints("voter --workers=5 --cores 2").len(), 2);
    assert!(hints("load http://h/ --rate-profile 5:1s").is_empty());
}
