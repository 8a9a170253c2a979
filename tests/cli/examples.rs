//! The examples of every help, executed: each in a folder of its own, beside the servers and the files that it names.
//! Addresses, ports and times are those of a test; the rest of the line is the help's.

use crate::cli::parser::{Example, commands, examples, name};
use crate::docs::page::{Block, Kind, options};
use crate::docs::session::Session;
use crate::process::Place;
use regex::Regex;

/// Examples that no test executes: a pattern of the line, and the reason.
const NOT_RUN: [(&str, &str); 13] = [
    (r"^plimsoll install (opensearch|elasticsearch|voltdb|postgresql|nats)", "downloads an engine"),
    (r"^plimsoll serve (opensearch|elasticsearch)", "needs a download; tests/engines/nodes.rs"),
    (r"^plimsoll serve voltdb", "needs a download; tests/voltdb/real.rs"),
    (r"^plimsoll serve nats", "needs a download; tests/bus/serving.rs"),
    (r"^plimsoll fleet up", "runs until Ctrl-C; tests/fleet/up.rs"),
    (r"^plimsoll report --merge", "needs the records of agents; tests/fleet/merged.rs"),
    (r"^plimsoll search .*--agents", "needs agents; tests/fleet/matrix.rs"),
    (r"^plimsoll ab .*http://old", "takes a minute; docs/ab.md has it, and is executed"),
    (r"^plimsoll ab .*-- seek", "takes a minute and a half; tests/ab/jobs.rs executes it"),
    (r"^plimsoll ab .*-- search", "takes more than a minute; tests/ab/jobs.rs executes it"),
    (r"^plimsoll ab .*-- wrk", "needs another program; tests/ab/jobs.rs has some"),
    (r"^plimsoll run fbench .*--agents", "needs agents; tests/fleet/catalogue.rs"),
    (r"^plimsoll run quickstart", "takes half a minute; tests/e2e/quickstart.rs executes it"),
];

/// Needs of the examples that match a pattern, in the language of the book's marks (tests/docs/page.rs).
const NEEDS: &[(&str, &str)] = &[
    (r"^plimsoll ab .*http://old", "serve null --port 8080; serve null --port 8081"),
    (r"^plimsoll ab .*http://old", "with http://old:8080 => http://127.0.0.1:8080"),
    (r"^plimsoll ab .*http://new", "with http://new:8080 => http://127.0.0.1:8081"),
    (
        r"--a-bin",
        "before ln -s $(command -v plimsoll) old; before ln -s $(command -v plimsoll) new",
    ),
    (r"music|q(ueries)?\.(txt|gz)|query%|summary", MUSIC),
    (r"-q query%", "before plimsoll split-file -p query%03d.txt 8 queries.txt"),
    (r"(load|seek) http://\S+:8080/|bodies", "serve null --port 8080"),
    (r"bodies\.txt", "before seq 100 | sed 's|.*|/a\\n{}|' > bodies.txt"),
    (r"t\.csv", "file terms.csv; before cp terms.csv t.csv"),
    (r"\{TOKEN\}", "with plimsoll load => TOKEN=secret plimsoll load"),
    (r"postgres://", "serve postgresql --port 5432; with me@127.0.0.1:5432/db => 127.0.0.1:5432"),
    (r"postgres://", "with me@db/votes => 127.0.0.1:5432; before echo 'SELECT 1' > queries.sql"),
    (r"volt://", "serve voter --port 21212; with db1,db2:21212 => 127.0.0.1:21212"),
    (r"volt://db1( |$)", "with volt://db1 => volt://127.0.0.1:21212"),
    (
        r"(seek|feed) .*music\.ndjson\.zst",
        "before plimsoll visit http://127.0.0.1:8080 --out music.ndjson.zst --quiet",
    ),
    (r"127\.0\.0\.1:9080", "serve search --port 9080 --schema music.sd --cluster music"),
    (
        r"127\.0\.0\.1:9200|matrix\.toml",
        "file matrix.toml; file mine.toml; serve search --port 9200",
    ),
    (r"--engine opensearch", "file mine.toml; with --engine opensearch =>"),
    (r"--import", "file published.md; before cp published.md table.md"),
    (r"import (wrk|-)", "file wrk.txt"),
    (r"import k6", "file k6.ndjson"),
    (r"import latency", "file latency.hlog"),
    (
        r"compare runs/\d|import published",
        "file published.md; before plimsoll search --import published.md; before plimsoll search --import published.md",
    ),
    (
        r"compare (1a2b|runs/[A-Z])",
        "serve null --port 8080; before plimsoll load http://127.0.0.1:8080/ --requests 150 --quiet; \
         before plimsoll load http://127.0.0.1:8080/ --requests 150 --quiet; \
         before plimsoll load http://127.0.0.1:8080/ --requests 150 --quiet",
    ),
    (r"^plimsoll size", "file size.sh; before sh size.sh"),
    (
        r"^plimsoll (report|runs)|run runs/",
        "file runs.sh; serve null --port 8080; before sh runs.sh",
    ),
    (
        r"^plimsoll (report|runs)|run runs/",
        "before plimsoll load http://127.0.0.1:8080/ --requests 50 --quiet",
    ),
    (
        r"^plimsoll (report|runs)( list)? (nightly|commit=)",
        "before plimsoll load http://127.0.0.1:8080/ --requests 50 --quiet --name nightly --label commit=3f2a9c1",
    ),
    (
        r"--format fbench",
        "before echo / > a.txt; before plimsoll fbench -s 1 -q a.txt 127.0.0.1 8080",
    ),
    (r"run my\.toml", "file small.toml; before cp small.toml my.toml; serve null --port 8081"),
    (r"info my\.toml", "file job.toml; before cp job.toml my.toml"),
    (
        r"example\.org 443",
        "file tls.sh; file nginx.conf; before sh tls.sh; with example.org 443 => localhost 8443",
    ),
    (r"example\.org 443", "before cp server.pem cert.pem; before cp server.key key.pem"),
    (r"example\.org 443", "behind 8443 nginx -p . -c nginx.conf -e nginx.log"),
    (r"10\.0\.0\.5", "with host=10.0.0.5 => host=127.0.0.1"),
    (r"queries\.gz", "before sed p queries.txt | gzip > queries.gz"),
    (
        r"summary\.txt",
        "before plimsoll fbench -n 1 -s 1 -q queries.txt 127.0.0.1 8080 > summary.txt",
    ),
    (r"ndjson:documents", "before plimsoll corpus write --limit 20 --out documents.ndjson"),
    (r"clean opensearch", "with plimsoll clean => PLIMSOLL_HOME=engines plimsoll clean"),
    (
        r"~/",
        "with ~/ => ./; before mkdir -p .zfunc .config/fish/completions .local/share/bash-completion/completions",
    ),
];
const MUSIC: &str = "file music.sd; file music.ndjson; file queries.txt; before cp queries.txt q.txt; \
    before cp music.ndjson music.json; \
    serve search --port 8080 --containers 2 --schema music.sd --cluster music; \
    before plimsoll feed http://127.0.0.1:8080 music.ndjson --quiet";

/// Times and sizes of a test in place of those of the help: a pattern, and what replaces it.
const SHORTER: &[(&str, &str)] = &[
    (r"-- load ", "-- load --duration 200ms --warmup 0s "),
    (r"([ :])\d+(s|m|h)\b", "${1}300ms"),
    (r"--budget \S+", "--budget 2s"),
    (r"(fbench .*)-s \d+", "${1}-s 1"),
    (r"seconds=\d+", "seconds=1 -i documents=500"),
    (r"rank (.*)-d \d+", "rank ${1}-d 1"),
    (r"-w \d+", "-w 0"),
    (r"--preset feedsim", "--preset mini"),
    (r"-q 20,40,60", "-q 2,4"),
    (r"--sizes \S+", "--sizes 1MB"),
    (r"\b(1GB|10MB)\b", "100kB"),
    (r" 100000 ", " 2000 "),
];

/// Flags that keep a command short that has none of some others: the command, those others, and the flags.
const ADDED: &[(&str, &str, &str)] = &[
    ("ab", "--budget", "--budget 20s"),
    ("load", "--(duration|users|rate-profile|requests)", "--duration 300ms"),
    ("seek", "--budget", "--budget 2s"),
    ("search", r"\.toml|--(import|print)", "--queries mine.toml"),
    ("search", r"\.toml|--(import|print)", "--users 1 --duration 1s --warmup 100ms"),
    ("rank", "--budget|-q ", "--budget 5s -d 1"),
    ("rank", " -w ", "-w 0"),
    ("voter", "--(calls|seek|duration)| run |VBD", "--calls 2000"),
    ("hello", "--calls", "--calls 2000"),
    ("visit", "--out|--format", "--measure-for 300ms"),
];

/// Commands whose exit code judges what they measured: a missed limit or a delayed generator does not fail the test.
const JUDGES: &str = r"^(\S+=\S+ )?plimsoll (ab|compare|load|seek|search|rank|voter|hello|visit|feed|fbench|run|size|system-check)\b";

/// Runs that an example names by an invented folder or id. The one that is named first is the oldest.
const INVENTED: &str = r"runs/(\d{8}T\S+|[A-Z]{3,})|\b(1a2b|5e6f)\b";

fn matches(pattern: &str, text: &str) -> bool {
    Regex::new(pattern).unwrap().is_match(text)
}

/// The line of a help as a test executes it.
fn shortened(shell: &str) -> String {
    let mut text = shell.to_owned();
    for (pattern, new) in SHORTER {
        text = Regex::new(pattern).unwrap().replace_all(&text, *new).into_owned();
    }
    for (command, others, flags) in ADDED {
        if !matches(others, shell) {
            let call = Regex::new(&format!(r"plimsoll {command}\b")).unwrap();
            text = call.replace(&text, format!("plimsoll {command} {flags}")).into_owned();
        }
    }
    let mut count = 0;
    let real = |found: &regex::Captures<'_>| {
        count += 1;
        let folder = format!("ls -d runs/* | sed -n {count}p");
        if found[0].starts_with("runs/") {
            format!("$({folder})")
        } else {
            format!("$({folder} | grep -o '[0-9a-f]*$')")
        }
    };
    Regex::new(INVENTED).unwrap().replace_all(&text, real).into_owned()
}

fn execute(command: &str, example: &Example) {
    let shell = &example.shell;
    let needs = NEEDS.iter().filter(|(pattern, _)| matches(pattern, shell));
    let exits = match (matches(JUDGES, shell), matches("--fail-on", shell)) {
        (true, true) => "0 1 2 3",
        (true, false) => "0 2 3",
        (false, _) => "0",
    };
    let block = Block {
        at: format!("{command} --help: {shell}"),
        kind: Some(Kind::Run),
        options: needs
            .flat_map(|(_, marks)| options(marks))
            .chain([("exit".to_owned(), exits.to_owned())])
            .collect(),
        lines: vec![shortened(shell)],
        first: 0,
        below: String::new(),
    };
    // Pilots beside other tests are so unsteady that few pairs have room in the budget, and runs for a size are repeated until they
    // are valid.
    let is_quiet = ["plimsoll ab", "plimsoll size"].contains(&command);
    let place = if is_quiet { Place::quiet() } else { Place::new() };
    Session::at(place).block(&block);
}

/// Executes the examples of a command and of those below it.
fn executes(word: &str) {
    let mut done = Vec::new();
    for command in commands() {
        let name = name(&command);
        if name.split(' ').nth(1).unwrap_or_default() != word {
            continue;
        }
        for example in examples(&command) {
            let is_left_out = NOT_RUN.iter().any(|(pattern, _)| matches(pattern, &example.shell));
            if !is_left_out && !done.contains(&example.shell) {
                execute(&name, &example);
                done.push(example.shell);
            }
        }
    }
    assert!(!done.is_empty(), "{word}: no example was executed");
}

macro_rules! executed {
    ($($name:ident $word:literal)*) => {
        $(
            #[test]
            fn $name() {
                executes($word);
            }
        )*
        const EXECUTED: &[&str] = &[$($word),*];
    };
}

executed! {
    ab "ab"
    clean "clean"
    compare "compare"
    completions "completions"
    corpus "corpus"
    fbench "fbench"
    feed "feed"
    fleet "fleet"
    hello "hello"
    import "import"
    info "info"
    install "install"
    list "list"
    load "load"
    man "man"
    rank "rank"
    report "report"
    result_filter "result-filter"
    run "run"
    runs "runs"
    search "search"
    seek "seek"
    serve "serve"
    size "size"
    split_file "split-file"
    system_check "system-check"
    the_program_itself ""
    version "version"
    visit "visit"
    voter "voter"
}

#[test]
fn the_examples_of_every_command_are_executed() {
    let names: Vec<String> = commands().iter().map(name).collect();
    let words = names.iter().map(|name| name.split(' ').nth(1).unwrap_or_default());
    // An agent waits until someone has work for it; tests/fleet has many.
    let has_test = |word: &&str| EXECUTED.contains(word) || *word == "agent";
    let missing: Vec<&str> = words.filter(|word| !has_test(word)).collect();
    assert!(missing.is_empty(), "commands whose examples no test executes: {missing:?}");
}

#[test]
fn every_example_that_is_left_out_exists() {
    let all: Vec<Example> = commands().iter().flat_map(examples).collect();
    for (pattern, why) in NOT_RUN {
        let exists = all.iter().any(|example| matches(pattern, &example.shell));
        assert!(exists, "no example is like {pattern} ({why}); take the pattern away");
    }
}

#[test]
fn every_need_and_every_shorter_time_is_used() {
    let all: Vec<Example> = commands().iter().flat_map(examples).collect();
    let patterns = NEEDS.iter().chain(SHORTER).map(|(pattern, _)| *pattern);
    let is_used = |pattern: &&str| all.iter().any(|example| matches(pattern, &example.shell));
    let unused: Vec<&str> = patterns.filter(|pattern| !is_used(pattern)).collect();
    assert!(unused.is_empty(), "no example is like {unused:?}");
}
