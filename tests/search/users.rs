//! Users who come by a profile, think, keep a pace, and fill what they ask with rows; and what cells must be.

use super::engine::{Engine, Faults};
use super::{cells, mine, reasons, record, search};
use crate::process::Place;
use serde_json::Value;

/// One query that every row fills with another word.
const FILLED: &str =
    "[[query]]\nname = \"word\"\nkind = \"match\"\ntext = \"{{word}}\"\nsize = 1\n";
/// A query that finds everything.
const ALL: &str = "[[query]]\nname = \"all\"\nkind = \"all\"\nsize = 1\nrepeat = 2\n";
const TEXT: [&str; 4] = ["--sizes", "100kB", "--warmup", "0s"];

#[test]
fn users_come_by_a_profile_with_the_cells_number_in_it() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    place.file("q.toml", ALL);
    let own = mine(&engine);
    let asked = ["--engine", &own, "--queries", "q.toml", "--users", "5,20", "--passes", "3"];
    let come = ["--users-profile", "nothing for 100ms, ramp {users} during 1s"];
    search(&place, &[&asked[..], &come, &TEXT].concat()).expect(0);
    let record = record(&place);
    assert_eq!(record.text("/search/users_come"), come[1]);
    let figures = |cell: &Value| {
        let window_s = cell["repeats"][0]["window_s"].as_f64().unwrap();
        (cell["users"].as_u64().unwrap(), cell["ok"].as_u64().unwrap(), window_s)
    };
    let all: Vec<(u64, u64, f64)> = cells(&record).iter().map(figures).collect();
    // Each user asks the query twice in each of three passes, and leaves.
    assert_eq!(all.iter().map(|one| (one.0, one.1)).collect::<Vec<_>>(), [(5, 30), (20, 120)]);
    for (users, ok, window_s) in all {
        assert!((1.0..10.0).contains(&window_s), "{users} users, {ok} requests in {window_s} s");
    }
    assert!(cells(&record).iter().all(|cell| cell["implied_ms"].is_null()), "nobody stays");
}

#[test]
fn users_think_and_keep_a_pace() {
    let (place, engine) = (Place::quiet(), Engine::start(Faults::default()));
    place.file("q.toml", ALL);
    let own = mine(&engine);
    let asked = ["--engine", &own, "--queries", "q.toml", "--users", "8", "--duration", "2s"];
    let rate = |more: &[&str]| {
        search(&place, &[&asked[..], &TEXT, more].concat()).expect(0);
        record(&place).number("/search/cells/0/ok_per_s")
    };
    // Eight users with a request each 200 ms are 40 a second, however fast the answers are.
    let paced = rate(&["--pace", "200ms"]);
    assert!((36.0..=44.0).contains(&paced), "{paced}");
    // Those who think 200 ms on average come to less than that, and with random times to about as much.
    let thinking = rate(&["--think", "uniform 100ms 300ms"]);
    assert!((20.0..=50.0).contains(&thinking), "{thinking}");
}

#[test]
fn requests_are_filled_with_rows() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    place.file("q.toml", FILLED);
    place.file("rows.csv", "word\nsea\n\"the \"\"old\"\" harbour\"\nnothinglikeit\n");
    let own = mine(&engine);
    let asked = ["--engine", &own, "--queries", "q.toml", "--rows", "rows.csv", "--users", "2"];
    search(&place, &[&asked[..], &TEXT, &["--duration", "300ms"]].concat()).expect(0);
    let told = engine.bodies();
    for word in ["\"sea\"", "the \\\"old\\\" harbour", "nothinglikeit"] {
        assert!(told.iter().any(|body| body.contains(word)), "{word} was never asked");
    }
    assert!(!told.iter().any(|body| body.contains("{{word}}")), "a place was left empty");
    let marks = cells(&record(&place))[0]["marks"].to_string();
    assert!(!marks.contains("hits varied"), "{marks}");
    // What is expected is what the first row asks for.
    place.file("ids.toml", "[[query]]\nname = \"one\"\nkind = \"ids\"\nvalues = [\"{{word}}\"]\n");
    place.file("ids.csv", "word\ns3\nnobody\n");
    let ids = ["--engine", &own, "--queries", "ids.toml", "--rows", "ids.csv", "--users", "2"];
    search(&place, &[&ids[..], &TEXT, &["--duration", "300ms"]].concat()).expect(0);
    let recall = record(&place).0["search"]["recall"][0].clone();
    assert_eq!((&recall["expected"], &recall["found"]), (&1.into(), &1.into()), "{recall}");
    // Rows that are used up leave no window.
    let queue = ["--rows-order", "queue", "--duration", "300ms"];
    search(&place, &[&asked[..], &TEXT, &queue].concat()).expect(4);
    let reason = &reasons(&record(&place))[0];
    assert!(reason.contains("the rows were used up"), "{reason}");
}

#[test]
fn checks_withhold_cells_and_assertions_set_the_exit_code() {
    let (place, engine) = (Place::new(), Engine::start(Faults::default()));
    place.file("q.toml", ALL);
    let own = mine(&engine);
    place.file(
        "m.toml",
        format!(
            "engines = [\"{own}\"]\nsizes = [\"100kB\"]\nusers = [1, 2]\nduration = \"300ms\"\nwarmup = \"0s\"\n\
             queries = \"q.toml\"\nassertions = [\"global p95 < 10s\", \"class all rate > 1000000/s\"]\n"
        ),
    );
    let ended = search(&place, &["m.toml"]).expect(2);
    let missed = record(&place);
    missed.expect_schema();
    let told = missed.0["assertions"].as_array().unwrap();
    let held: Vec<bool> = told.iter().map(|one| one["held"].as_bool().unwrap()).collect();
    assert_eq!(held, [true, false, true, false], "two cells, two assertions: {told:?}");
    let scope = "mine 100kB, distance 2, 1 shard, 2 users: class all";
    assert_eq!(told[3]["scope"], scope);
    // Lines are broken where the figures before it happen to end.
    let printed = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(printed.contains(scope), "{}", ended.stdout);
    let junit = place.run(["report", "--format", "junit"]).stdout;
    assert_eq!(junit.matches("<failure").count(), 2, "{junit}");
    // A check that no reply can pass: no cell has a number, and none of them holds a rate.
    let ended = search(&place, &["m.toml", "--check", "hits>=1000000"]).expect(4);
    let reason = &reasons(&record(&place))[0];
    assert!(reason.contains("check hits>=1000000"), "{reason} {}", ended.stderr);
    let junit = place.run(["report", "--format", "junit"]).stdout;
    assert!(junit.contains("requests failed (check"), "{junit}");
}
