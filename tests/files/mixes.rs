//! The tables of a mix, in the form of flags and in that of records.

use crate::process::Place;
use crate::record::Record;
use std::time::Duration;

#[test]
fn each_table_has_the_form_of_flags_or_that_of_records() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    let put = |i| format!("{{\"put\":\"id:plimsoll:doc::{i}\",\"fields\":{{\"title\":\"a\"}}}}\n");
    place.file("docs.ndjson", (0..20).map(put).collect::<String>());
    place.file("q.txt", "/search/?query=a\n");
    let url = &target.url;
    let feeds = [
        format!("[feed]\nurl = \"{url}\"\nfiles = [\"docs.ndjson\"]\nrate = 100\n"),
        format!(
            "[feed]\ntargets = [\"{url}\"]\nfiles = [\"docs.ndjson\"]\n\
             load = {{ model = \"open\", rate_per_s = 100 }}\n"
        ),
    ];
    let queries = [
        format!(
            "[queries]\nurl = \"{url}\"\nqueries = \"q.txt\"\nrate = 50\nduration = \"500ms\"\n"
        ),
        format!(
            "[queries]\ntargets = [\"{url}\"]\nqueries = \"q.txt\"\nduration = \"500ms\"\n\
             load = {{ model = \"open\", rate_per_s = 50 }}\n"
        ),
    ];
    for feed in &feeds {
        for queries in &queries {
            place.file("mix.toml", format!("{feed}{queries}"));
            let args = ["run", "mix.toml", "--json", "-", "--no-record", "--quiet"];
            let ended = place.start(args).wait(Duration::from_secs(60));
            assert!(matches!(ended.code, Some(0 | 3)), "{:?}\n{}", ended.code, ended.stderr);
            let record = Record::of(&ended);
            record.expect_schema();
            assert_eq!(record.count("/feed/accepted"), 20, "{feed}{queries}");
            assert_eq!(record.number("/scenario/load/rate_per_s"), 50.0);
            assert_eq!(record.sent(), 25);
        }
    }
}

#[test]
fn what_is_wrong_in_a_table_is_told_with_line_and_field() {
    let place = Place::new();
    let feed = "[feed]\nurl = \"http://127.0.0.1:1\"\nfiles = [\"a\"]\n";
    for (text, line) in [
        (
            format!("{feed}[queries]\nurl = \"http://127.0.0.1:1\"\ntimout = \"5s\"\n"),
            "mix.toml:6: unknown field `queries.timout`; did you mean `timeout`?",
        ),
        (
            format!("{feed}[queries]\nurl = \"http://127.0.0.1:1\"\nduration = \"5x\"\n"),
            "mix.toml:6: field `queries.duration`: '5x' is not a duration; expected a number and a unit, \
             such as 500ms, 10s or 1m30s",
        ),
        (
            format!("{feed}[queries]\nurl = \"http://127.0.0.1:1\"\nrate = 5\nclients = 2\n"),
            "mix.toml:7: `queries.clients` and `queries.rate` are different load models; give one of them",
        ),
        (
            format!("{feed}[queries]\nurl = \"http://127.0.0.1:1\"\njson = \"a.json\"\n"),
            "mix.toml:6: field `queries.json`: output belongs to the whole run; give the flag to plimsoll run",
        ),
        (
            "[feed]\nurl = \"http://127.0.0.1:1\"\nfiles = [\"a\"]\nrate = \"x\"\n[queries]\n"
                .to_owned(),
            "mix.toml: field `queries.url` is missing",
        ),
    ] {
        place.file("mix.toml", text);
        let ended = place.run(["run", "mix.toml"]).expect(64);
        assert_eq!(ended.stderr.trim_end(), format!("plimsoll: {line}"));
    }
    place.file(
        "mix.toml",
        "[feed]\nurl = \"http://127.0.0.1:1\"\nfiles = [\"a\"]\n[queries]\n\
         url = \"http://127.0.0.1:1\"\nprofile = \"5:1s\"\n",
    );
    let ended = place.run(["run", "mix.toml", "--dry-run"]).expect(0);
    let hint = "plimsoll: mix.toml:6: field `queries.profile` is now `queries.rate_profile`\n";
    assert_eq!(ended.stderr, hint);
}
