//! Command lines as strangers type them: words of other tools, typos, wrong units, files that are not what they should be.
//! The line says what is wrong, where, and what to write instead.

use crate::cli::usage::refused;
use crate::process::Place;

/// Files that the command lines name.
fn place() -> Place {
    let place = Place::new();
    place.file("q.txt", "/a\n");
    place.file("m.toml", "sizes = [\"1MB\"]\n");
    place.file("feed.json", "[]");
    place
}

/// Every one of the lines is refused with all of these words.
#[track_caller]
fn all_refused(cases: &[(&str, &[&str])]) {
    let place = place();
    for (line, parts) in cases {
        for part in *parts {
            refused(place.run(line.split(' ')), part);
        }
    }
    assert!(!place.path().join("runs").exists(), "a record of nothing");
}

#[test]
fn options_that_the_command_does_not_have() {
    all_refused(&[
        (
            "load http://127.0.0.1:1/ -c 10 -n 100",
            &["unknown option '-c'; plimsoll's is --clients; see plimsoll load --help"],
        ),
        ("load http://127.0.0.1:1/ --vus 10", &["plimsoll's is --users or --clients"]),
        ("load http://127.0.0.1:1/ --http1", &["did you mean '--http2'? See plimsoll load --help"]),
        ("seek http://127.0.0.1:1/ --slo p95=1s --duration 5m", &["plimsoll seek has --budget"]),
        ("seek http://127.0.0.1:1/ --slo p95=1s --clients 5", &["plimsoll seek has --users"]),
        ("seek http://127.0.0.1:1/ --slo p95=1s --min-rate 5", &["plimsoll seek has --start-rate"]),
        ("serve null --port 80 --body 30kB", &["did you mean '--body-bytes'?"]),
        (
            "result-filter x",
            &["unexpected argument 'x'; plimsoll result-filter takes only options"],
        ),
        ("completions bash zsh", &["unexpected argument 'zsh'; write for example: plimsoll compl"]),
    ]);
}

#[test]
fn arguments_that_are_missing_or_contradict_each_other() {
    all_refused(&[
        ("load --rate 100", &["<URL>... is missing; write for example: plimsoll load http://"]),
        (
            "seek http://127.0.0.1:1/",
            &["--slo <LIMIT> is missing; write for example: plimsoll seek"],
        ),
        ("split-file", &["<NUMPARTS> is missing; write for example: plimsoll split-file 8"]),
        ("compare", &["<RUN>... is missing; write for example: plimsoll compare 1a2b 5e6f"]),
        ("runs prune", &["--keep <N> or --older-than <TIME> is missing", "runs prune --keep 20"]),
        ("feed http://127.0.0.1:1 feed.json --http1 --http2", &["--http1 and --http2 exclude"]),
        ("list --by-scope --by-component", &["exclude each other; leave one of them out"]),
        ("load http://127.0.0.1:1/ --json a --json b", &["--json is given twice; give it once"]),
        (
            "load http://127.0.0.1:1/ --insecure",
            &["--insecure belongs to TLS, but the target is http://127.0.0.1:1/; write https://"],
        ),
        ("corpus write --size 10MB", &["--size belongs to --source synthetic; use --limit"]),
    ]);
}

#[test]
fn numbers_and_units() {
    all_refused(&[
        (
            "load http://127.0.0.1:1/ --rate 100rps",
            &["--rate: '100rps' is not a rate; expected a number per second, such as 1000"],
        ),
        (
            "feed http://127.0.0.1:1 feed.json --rate 10/week",
            &["--rate: '10/week' is not a rate; expected a number per second"],
        ),
        (
            "load http://127.0.0.1:1/ --rate-profile 0-fast:1s",
            &[
                "--rate-profile '0-fast:1s': 'fast' is not a rate",
                "write RATE:TIME or FROM-TO:TIME",
            ],
        ),
        (
            "runs prune --older-than 30",
            &["--older-than: '30' is not an age; expected a number and"],
        ),
        ("search --engine index --sizes 64", &["--sizes 64", "use 100000 to 10000000000"]),
        (
            "search --engine index --groups 2-5",
            &["groups: '2-5' is not a distance and a number of"],
        ),
        ("search --engine index --users 0", &["users: use numbers from 1 to 100,000"]),
        ("search --engine lucene", &["engine 'lucene': unknown engine; write index, "]),
        ("serve queue --service 20ms", &["--service: '20ms' is not a service time; write fixed:"]),
        ("corpus queries --each 0", &["--each 0: a query mix has 1 to 1,000,000 queries"]),
        ("corpus write --source synthetic --size 5", &["--size: the size in bytes of a synthetic"]),
        ("hello --clients 0", &["clients must be at least 1"]),
        ("report --assert p95", &["--assert: 'p95' is not an assertion: 'p95' is not a scope"]),
    ]);
}

#[test]
fn addresses_names_and_files() {
    all_refused(&[
        (
            "fbench -q q.txt http://127.0.0.1:8080",
            &[
                "'http://127.0.0.1:8080': write host and port without a scheme, such as 127.0.0.1 8080",
            ],
        ),
        (
            "fbench 127.0.0.1 8080",
            &["query000.txt: no such file or folder; name the query files with -q"],
        ),
        ("voter volt://", &["volt://: the host is missing; write volt://[USER@]HOST:PORT"]),
        (
            "voter VXX",
            &["unknown preset 'VXX'; write one of VSD, VSM, VBM, VBD, HSD, or a database"],
        ),
        ("run fbnch", &["unknown job 'fbnch'; did you mean 'fbench'?"]),
        (
            "run fbench -i client=5",
            &["unknown variable of fbench 'client'; did you mean 'clients'?"],
        ),
        (
            "run q.txt",
            &["'q.txt' is a file, but not of a job: the name of such a file ends in .toml"],
        ),
        (
            "install mysql",
            &["unknown job or engine 'mysql'; write one of ", ", postgresql, voltdb"],
        ),
        ("report nosuch", &["unknown run or job 'nosuch'; write one of "]),
        ("runs delete", &["there is no run record in runs; run something first, or name a folder"]),
        ("man nosuch", &["unknown command 'nosuch'; write one of run, "]),
        ("search nope.toml", &["nope.toml: no such file or folder; name a matrix file"]),
        ("search m.toml", &["m.toml: no engine; name one with --engine"]),
        ("serve search --data q.txt", &["cannot use the data folder q.txt: file exists; choose"]),
        (
            "compare a b",
            &["cannot read a: no such file or folder; name the folder of a run record"],
        ),
        ("load http://127.0.0.1:1/ --body @none", &["--body @none: no such file or folder; check"]),
        (
            "load http://127.0.0.1:1/ --header @none",
            &["--header @none: no such file or folder; give"],
        ),
        (
            "load http://127.0.0.1:1/ --json no/a.json",
            &["--json no/a.json: no such file or folder"],
        ),
        (
            "feed http://127.0.0.1:1 feed.json --failed no/x",
            &["--failed no/x: no such file or folder"],
        ),
        (
            "serve null --host no.such.invalid",
            &["cannot listen on no.such.invalid", "take another --host, such as 127.0.0.1"],
        ),
        ("visit ftp://x", &["'ftp://x': unknown scheme 'ftp'; write http:// or https://"]),
        ("serve rank --threads 0", &["--threads is 0, but must be between 1 and 4096"]),
        ("corpus write --out no/such/file", &["--out no/such/file: no such file or folder; check"]),
    ]);
}
