//! A feed and queries together: `plimsoll run` with a file of both.

use super::{documents, puts};
use crate::process::Place;
use crate::record::Record;
use std::collections::BTreeSet;

#[test]
fn a_feed_and_queries_run_together() {
    let place = Place::quiet();
    let target = place.serve(&["search"]);
    place.file("in", puts(0, 1000));
    let url = &target.url;
    place.file(
        "mix.toml",
        format!(
            "job = \"real-time\"\n[feed]\ntargets = [\"{url}\"]\nfiles = [\"in\"]\n\
             load = {{ model = \"open\", rate_per_s = 500 }}\n\
             [queries]\ntargets = [\"{url}/search/?query=number\"]\nduration = \"4s\"\n\
             load = {{ model = \"closed\", clients = 2 }}\nchecks = [\"vespa\"]\n"
        ),
    );
    let ended =
        place.run(["run", "mix.toml", "--json", "record.json", "--quiet", "--verbose"]).expect(0);
    for part in
        ["Queries, ms", "while feeding", "without", "all 1,000 operations accepted", "All queries"]
    {
        assert!(ended.stdout.contains(part), "no '{part}' in\n{}", ended.stdout);
    }
    let record = Record(serde_json::from_str(&place.read("record.json")).unwrap());
    assert_eq!(record.text("/job"), "real-time");
    assert_eq!(record.count("/feed/accepted"), 1000);
    assert_eq!(record.ok(), record.sent());
    record.expect_balanced();
    let (with, without) =
        (record.number("/mix/while_feeding/seconds"), record.number("/mix/without/seconds"));
    assert!((1.0..3.1).contains(&with) && (0.9..3.1).contains(&without), "{with} {without}");
    let there = documents(&place, &target);
    let known: BTreeSet<String> =
        (0..1000).map(|i| format!("id:plimsoll:doc::{i}/\u{e6} +")).collect();
    let strange: Vec<_> = there.iter().filter(|(id, _)| !known.contains(*id)).collect();
    assert_eq!((there.len(), strange), (1000, Vec::new()));
    // With the queries' end the feed ends, too: what is left is no failure.
    let mix = place.read("mix.toml");
    let short = mix.replace("[feed]", "until = \"queries\"\n[feed]").replace("4s", "1s");
    place.file("short.toml", short);
    let ended = place.run(["run", "short.toml", "--json", "-", "--quiet"]).expect(0);
    let record = Record::of(&ended);
    let accepted = record.count("/feed/accepted");
    assert!((400..700).contains(&accepted), "{accepted}");
    // The rest begins at the first operation that was read and not sent.
    let (left, skip) = (record.count("/feed/left"), record.count("/feed/unread/skip"));
    assert!(left > 0 && skip <= accepted, "{left} left, {skip} of {accepted}");
    let ended = place.run(["run", "mix.toml", "--dry-run"]).expect(0);
    assert!(ended.stdout.contains("\"rate_per_s\": 500.0"), "{}", ended.stdout);
    place.file("bad.toml", mix.replace("files", "flies"));
    let ended = place.run(["run", "bad.toml"]).expect(64);
    assert!(ended.stderr.contains("bad.toml:4: unknown field `flies`"), "{}", ended.stderr);
}

/// The reader goes on while the queries do: what it hands over then is no failure, and neither is it that nothing is accepted any more.
#[test]
fn a_feed_that_ends_by_its_own_time_is_complete() {
    let place = Place::new();
    let target = place.serve(&["search"]);
    place.file("in", puts(0, 20_000));
    let url = &target.url;
    place.file(
        "mix.toml",
        format!(
            "[feed]\ntargets = [\"{url}\"]\nfiles = [\"in\"]\nthreads = 2\nduration = \"1s\"\n\
             deadline = \"3s\"\n\
             load = {{ model = \"open\", rate_per_s = 200 }}\n\
             [queries]\ntargets = [\"{url}/search/?query=number\"]\nduration = \"5s\"\n\
             load = {{ model = \"closed\", clients = 1 }}\n"
        ),
    );
    let ended = place.run(["run", "mix.toml", "--json", "-", "--quiet"]).expect(0);
    let record = Record::of(&ended);
    assert_eq!(record.0["feed"]["complete"], true, "{}", record.0["feed"]);
    let accepted = record.count("/feed/accepted");
    assert_eq!(record.count("/feed/operations"), accepted);
    assert!(record.count("/feed/left") > 0 && record.count("/feed/unread/skip") <= accepted);
}
