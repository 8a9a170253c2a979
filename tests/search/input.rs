//! What a matrix is asked for, and what is wrong with it.

use super::engine::{Engine, Faults};
use super::{mine, reasons, record, records, search, small};
use crate::process::Place;
use crate::record::Record;

const PUBLISHED: &str = "### Old engine results\nEdit distance 2. The index has 5 fragments.\n\n\
    | Users count | 1Gb | 5Gb |\n|---|---|---|\n| 1 | 0.847 | 0.478 |\n| 5 | 2.874 | - |\n";

#[test]
fn a_printed_table_becomes_a_record_that_can_be_compared() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    place.file("old.md", PUBLISHED);
    let imported = search(&place, &["--import", "old.md"]).expect(0).stdout;
    assert!(imported.contains("imported from old.md"), "{imported}");
    let measured = ["Ledger", "Result ", ", exit "].iter().any(|word| imported.contains(word));
    assert!(!measured && imported.contains("measured none of these figures"), "{imported}");
    let old = records(&place).pop().unwrap();
    record(&place).expect_schema();
    let own = mine(&engine);
    let asked = ["--engine", &own, "--sizes", "100kB,500kB", "--groups", "2x5", "--users", "1,5"];
    let cell = ["--duration", "200ms", "--warmup", "0s"];
    search(&place, &[&asked[..], &cell].concat()).expect(0);
    let new = records(&place).pop().unwrap();
    assert_ne!(old, new);
    let (old, new) = (old.display().to_string(), new.display().to_string());
    let both = place.run(["compare", &old, &new]).expect(0).stdout;
    for part in ["1GB / 100kB", "Old engine", "mine"] {
        assert!(both.contains(part), "{part} is missing in {both}");
    }
}

#[test]
fn wrong_input_is_told_in_one_line_before_anything_is_sent() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    let own = mine(&engine);
    place.file("bad.toml", "[[query]]\nname = \"a\"\nkind = \"fuzy\"\n");
    place.file("m.toml", "engines = [\"index\"]\nusres = [1]\n");
    place.file("notes.md", "nothing here");
    place.file("long.toml", "#".repeat(5 << 20));
    place.file("latin.toml", b"# one\n# \xe9t\xe9\n");
    place.file("rows.csv", "term\nsea\n");
    place.file("rows.toml", "[[query]]\nname = \"a\"\nkind = \"fuzzy\"\ntext = \"{{word}}\"\n");
    let with = |more: &[&str]| [&["--engine", &own], more].concat().join("\u{1f}");
    for (arguments, part) in [
        (String::new(), "no engine"),
        ("--engine\u{1f}lucene".to_owned(), "engine 'lucene': unknown engine; write index, "),
        (with(&["--sizes", "9000PB"]), "9000PB"),
        (
            with(&["--sizes", "20GB"]),
            "--sizes 20GB: the size in bytes of a synthetic text cannot be",
        ),
        (with(&["--sizes", "1kB"]), "use 100000 to 10000000000"),
        (with(&["--corpus", "poems"]), "--corpus 'poems'"),
        (with(&["--corpus", "bundled", "--sizes", "2GB"]), "has only"),
        (with(&["--queries", "none.toml"]), "none.toml"),
        (with(&["--queries", "bad.toml"]), "unknown kind 'fuzy'"),
        (with(&["--resume", "nowhere"]), "no unfinished matrix"),
        (with(&["--users-profile", "ramp {users} in 1s"]), "profile 'ramp 1 in 1s': column"),
        (with(&["--assert", "class nothing p95 < 1s"]), "unknown query 'nothing'; write one of"),
        (with(&["--check", "hits>>1"]), "hits>>1"),
        (with(&["--rows", "rows.csv"]), "no query names one of its columns; write {{term}}"),
        (with(&["--rows", "rows.csv", "--queries", "rows.toml"]), "query 'a': "),
        (with(&["--rows", "none.csv"]), "none.csv"),
        (with(&["--rows-per", "user"]), "need --rows"),
        ("--engine\u{1f}a=http://h:1/path".to_owned(), "only scheme, host and port"),
        ("--engine\u{1f}a=postgres://h:1/x,vespa".to_owned(), "write the dialect behind it"),
        ("m.toml".to_owned(), "m.toml:2: unknown field `usres`; did you mean `users`?"),
        (with(&["--header", "bad"]), "no colon"),
        ("--engine\u{1f}index\u{1f}--header\u{1f}bad".to_owned(), "no colon"),
        (with(&["--loaders", "0"]), "--loaders"),
        (with(&["--queries", "long.toml"]), "long.toml: over 4 MiB"),
        (with(&["--queries", "latin.toml"]), "latin.toml:2: a byte that is not UTF-8"),
        ("--import\u{1f}notes.md".to_owned(), "no table"),
    ] {
        let arguments: Vec<&str> = arguments.split('\u{1f}').filter(|a| !a.is_empty()).collect();
        let told = search(&place, &arguments).expect(64).stderr;
        assert!(told.contains(part), "{arguments:?}: {told}");
        assert_eq!(told.trim().lines().count(), 1, "{arguments:?}: {told}");
    }
    assert_eq!(engine.seen("POST"), 0, "nothing was sent");
    // A text that comes to no good end leaves nothing on the disk.
    place.file("own.ndjson", "{\"body\":\"the sea\"}\n{\"titel\":\"no\"}\n");
    place.file("all.toml", "[[query]]\nname = \"a\"\nkind = \"all\"\n");
    let broken = ["--engine", &own, "--corpus", "ndjson:own.ndjson", "--queries", "all.toml"];
    let told = search(&place, &broken).expect(64).stderr;
    assert!(told.contains("own.ndjson:2: "), "{told}");
    let texts = std::fs::read_dir(place.path().join(".plimsoll/search")).unwrap().flatten();
    let left: Vec<_> = texts.map(|entry| entry.file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().ends_with(".new")), "{left:?}");
}

#[test]
fn texts_beyond_the_disk_are_refused_before_any_is_made() {
    let place = Place::new();
    // In memory there is less room than for these texts together, which are over half a terabyte.
    let sizes: Vec<String> = (937..1000).map(|size| format!("{size}0MB")).collect();
    let sizes = sizes.join(",");
    let asked = ["--engine", "index", "--sizes", &sizes, "--data", "/dev/shm"];
    let told = search(&place, &asked).expect(64).stderr;
    let parts = ["--sizes: the texts and the largest index take about", "free; use smaller sizes"];
    assert!(parts.iter().all(|part| told.contains(part)), "{told}");
    assert_eq!(told.trim().lines().count(), 1, "{told}");
}

#[test]
fn an_engine_that_cannot_start_says_why_and_the_others_go_on() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    let (own, port) = (mine(&engine), engine.url.rsplit_once(':').unwrap().1.to_owned());
    place.file(
        "m.toml",
        format!(
            "engines = [\"opensearch\", \"{own}\"]\n\
             [[engine]]\nname = \"taken\"\nserve = [\"search\", \"--port\", \"{port}\"]\ndialect = \"elasticsearch\"\n"
        ),
    );
    // Neither an engine nor the Java and the Maven that would install one.
    let short = ["--sizes", "100kB", "--duration", "200ms", "--warmup", "0s", "--users", "1"];
    let run = |more: &[&str]| {
        let mut command = place.plimsoll([&["search", "m.toml"], &short[..], more].concat());
        command.env("PLIMSOLL_HOME", place.path().join("home")).env("PATH", place.path());
        let ended = crate::process::Running::start(command, b"").wait(crate::process::PATIENCE);
        ended.expect(0)
    };
    // Without a record there is no folder for what an engine says, and it is told all the same.
    let ended = run(&["--no-record"]);
    for part in ["run: plimsoll install opensearch", "in use"] {
        assert!(ended.stderr.contains(part) && ended.stdout.contains(part), "{}", ended.stderr);
    }
    assert!(records(&place).is_empty());
    let ended = run(&[]);
    let told: Vec<&str> = ended.stderr.lines().collect();
    let of = |engine: &str| told.iter().filter(|line| line.starts_with(engine)).count();
    assert_eq!((of("opensearch"), of("taken")), (1, 1), "one line each: {told:#?}");
    let reasons = reasons(&record(&place));
    assert_eq!(reasons.len(), 2, "{reasons:?}");
    let installs = ["is not installed", "run: plimsoll install opensearch"];
    assert!(installs.iter().all(|part| reasons[0].contains(part)), "{reasons:?}");
    assert!(reasons[1].contains(&port) && reasons[1].contains("in use"), "{reasons:?}");
}

#[test]
fn a_query_that_an_engine_refuses_is_named_with_the_engines_own_words() {
    let place = Place::new();
    place.file(
        "q.toml",
        "[[query]]\nname = \"good\"\nkind = \"all\"\nsize = 1\n\
         [[query]]\nname = \"odd\"\nkind = \"raw\"\nelasticsearch = '{\"query\": {\"magic\": {}}}'\n",
    );
    let ended = small(&place, &["--engine", "index", "--queries", "q.toml"]).expect(4);
    let reason = &reasons(&record(&place))[0];
    let parts = ["query 'odd' not answered: 400: ", "magic"];
    assert!(parts.iter().all(|part| reason.contains(part)), "{reason} {}", ended.stderr);
    // The list asks for an index that is not the matrix's own.
    place.file(
        "q.toml",
        "[[query]]\nname = \"elsewhere\"\nkind = \"raw\"\npostgresql = \"SELECT 1 FROM no_such_index\"\n",
    );
    let ended = small(&place, &["--engine", "postgresql", "--queries", "q.toml"]).expect(4);
    let reason = &reasons(&record(&place))[0];
    let parts = ["query 'elsewhere' not answered", "\"no_such_index\" does not exist"];
    assert!(parts.iter().all(|part| reason.contains(part)), "{reason} {}", ended.stderr);
}

#[test]
fn what_would_be_asked_can_be_read_first() {
    let place = Place::new();
    let engines = ["--engine", "index", "--engine", "vespa-api", "--engine", "postgresql"];
    let shown = search(&place, &[&engines[..], &["--show"]].concat()).expect(0).stdout;
    for part in [
        "# elasticsearch, distance 2",
        "\"fuzziness\":2",
        "maxEditDistance: 2",
        "levenshtein_less_equal",
    ] {
        assert!(shown.contains(part), "{part} is missing in {shown}");
    }
    place.file("q.toml", search(&place, &["--print-queries"]).expect(0).stdout);
    let engine = Engine::start(Faults::default());
    small(&place, &["--engine", &mine(&engine), "--queries", "q.toml"]).expect(0);
    let _: Record = record(&place);
}
