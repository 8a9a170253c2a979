//! `plimsoll size`: from real runs on several numbers of workers to an answer, and the check of it.

use crate::process::{Ended, Place};
use serde_json::Value;
use std::time::Duration;

/// Longest time of a check: it starts a server and measures once.
const LIMIT: Duration = Duration::from_secs(120);
/// Tries of a run on a machine that others use too.
const TRIES: usize = 8;
const SERVICE: &str = "exponential:4ms";

/// Runs `load` on `servers` workers with these flags, once for each name. Returns false if other programs did not leave it a
/// processor in any of several tries: a run that is not valid is refused, as it should be.
#[must_use]
fn measure(place: &Place, servers: u32, path: &str, runs: &[(&str, &[&str])]) -> bool {
    let count = servers.to_string();
    let target = place.serve(&["queue", "--servers", &count, "--service", SERVICE]);
    let (url, label) = (format!("{}{path}", target.url), format!("workers={servers}"));
    runs.iter().all(|(name, flags)| {
        let own = ["load", &url, "--duration", "2s", "--label", &label, "--name", name, "--quiet"];
        // The newest run of a name is meant.
        let is_valid = |_| {
            let ended = place.start([&own[..], flags].concat()).wait(LIMIT);
            ended.code == Some(0) || ended.expect(0).code == Some(0)
        };
        (0..TRIES).any(is_valid)
    })
}

fn closed(place: &Place, most: u32) -> bool {
    (1..=most).all(|servers| {
        let name = format!("w{servers}");
        measure(place, servers, "/", &[(&name, &["--clients", "32"])])
    })
}

fn size(place: &Place, flags: &[&str]) -> Ended {
    place.start([&["size"], flags].concat()).wait(LIMIT)
}

fn json(ended: &Ended) -> Value {
    serde_json::from_str(&ended.stdout).unwrap_or_else(|error| panic!("{error}: {}", ended.said()))
}

fn answer<'a>(sizing: &'a Value, question: &str) -> &'a Value {
    let mut answers = sizing["answers"].as_array().unwrap().iter();
    answers
        .find(|answer| answer["question"] == question)
        .unwrap_or_else(|| panic!("{question}: {sizing}"))
}

/// The station holds 250/s a worker, so that 8 workers hold 2,000/s; the machine may be busy with other tests.
#[test]
fn runs_on_one_to_four_workers_answer_for_eight_and_are_checked() {
    let place = Place::alone();
    if !closed(&place, 4) {
        return;
    }
    let runs = ["w1", "w2", "w3", "w4"];
    let asked = [&runs[..], &["--rate", "600", "--headroom", "20%", "--format", "json"]].concat();
    let sizing = json(&size(&place, &asked).expect(0));
    assert_eq!(sizing["schema"], "plimsoll.size/1");
    assert_eq!(sizing["unit"], "workers", "from the label");
    for question in
        ["nodes", "one-lost", "more-traffic", "first-resource", "twice-the-cores", "peak"]
    {
        assert_eq!(answer(&sizing, question)["answered"], true, "{question}");
    }
    let nodes = answer(&sizing, "nodes")["nodes"].as_f64().unwrap();
    assert!((3.0..=4.0).contains(&nodes), "720/s: {nodes}");
    assert!(sizing["peak"].is_null() && sizing["declined"].is_null());
    let held = sizing["held"].as_array().unwrap();
    assert_eq!(held.len(), 8);
    assert_eq!((&held[3]["source"], &held[7]["source"]), (&"measured".into(), &"predicted".into()));
    let text = size(&place, &[&runs[..], &["--rate", "600"]].concat()).expect(0).stdout;
    assert!(text.starts_with("Needed      ") && text.contains("One lost    "), "{text}");
    let page =
        size(&place, &[&runs[..], &["--rate", "600", "--format", "html"]].concat()).expect(0);
    assert!(
        page.stdout.starts_with("<!doctype html>") && page.stdout.contains("How many workers?")
    );

    let serve = "plimsoll serve queue --servers {nodes} --service exponential:4ms --port 0";
    let check = ["--nodes", "8", "--check", "--serve", serve, "--format", "json"];
    let ended = size(&place, &[&runs[..], &check].concat());
    let checked = json(&ended)["check"].clone();
    let number = |name: &str| checked[name].as_f64().unwrap();
    let error = number("measured_per_s") / number("predicted_per_s") - 1.0;
    assert!((number("error") - error).abs() < 1e-9 && error.abs() < 0.6, "{checked}");
    let low = checked["interval_per_s"][0].as_f64().unwrap();
    let high = checked["interval_per_s"][1].as_f64().unwrap();
    let inside = (low..=high).contains(&number("measured_per_s"));
    assert_eq!(checked["inside"], inside);
    ended.expect(if inside { 0 } else { 2 });
}

/// With a client a worker hardly a request takes 40 ms; with 40 clients most wait for more than that.
#[test]
fn runs_at_several_loads_reach_a_limit() {
    let place = Place::alone();
    for servers in 1..=2u32 {
        let (few, names) =
            (servers.to_string(), [format!("slow-{servers}"), format!("fast-{servers}")]);
        let runs: [(&str, &[&str]); 2] =
            [(&names[0], &["--clients", &few]), (&names[1], &["--clients", "40"])];
        if !measure(&place, servers, "/", &runs) {
            return;
        }
    }
    let of_two = ["slow-1", "fast-1", "slow-2", "fast-2"];
    let ended = size(
        &place,
        &[&of_two[..], &["--slo", "p95=40ms", "--rate", "60", "--format", "json"]].concat(),
    );
    let sizing = json(&ended);
    let nodes = answer(&sizing, "nodes");
    assert_eq!((&nodes["nodes"], &nodes["answered"]), (&1.0.into(), &true.into()), "{nodes}");
    let more = answer(&sizing, "more-traffic")["words"].as_str().unwrap();
    assert!(more.contains("p95"), "{more}");

    // Two numbers of workers say nothing of others.
    let ended = size(&place, &[&of_two[..], &["--slo", "p95=40ms", "--rate", "2000"]].concat());
    let text = ended.expect(2).stdout;
    assert!(text.contains("cannot be sized: 2 numbers of workers were measured"), "{text}");

    let ended = size(&place, &["slow-1", "slow-2", "--slo", "p95=10s"]).expect(64);
    assert!(ended.stderr.contains("does not reach 10.0 s: it holds it"), "{}", ended.stderr);
}

#[test]
fn what_cannot_be_sized_is_declined_or_refused_in_one_line() {
    let place = Place::new();
    if !closed(&place, 4) || !measure(&place, 1, "/other", &[("other", &["--clients", "2"])]) {
        return;
    }
    let declined = |flags: &[&str], reason: &str| {
        let ended = size(&place, flags).expect(2);
        let text = ended.stdout.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains(reason), "{flags:?}: {text}");
    };
    declined(&["w1", "w2", "--rate", "900"], "2 numbers of workers were measured");
    declined(&["w1", "w2", "w3", "--rate", "1200"], "3 numbers of workers were measured");
    declined(&["w1", "w2"], "2 numbers of workers were measured");
    declined(&["w1", "w2", "w3", "w4", "--nodes", "9"], "at most 8 workers can be predicted");
    declined(&["w1", "w2", "w3", "w4", "--rate", "9000"], "at most 8 workers can be predicted");
    let at = ["--at", "2=w1", "--at", "3=w2", "--at", "4=w3", "--at", "5=w4", "--nodes", "6"];
    declined(&at, "2 to 5 nodes were measured");

    let refused = |flags: &[&str], reason: &str| {
        let ended = size(&place, flags).expect(64);
        let line = ended.stderr.trim_end();
        assert!(line.contains(reason) && line.lines().count() == 1, "{flags:?}: {line}");
    };
    refused(&["w1", "other", "--at", "2=w2"], "the records do not measure the same: target");
    refused(&["w1", "w2", "--slo", "mean=5ms"], "sizing needs a limit on a percentile");
    refused(&["w1", "w2", "--slo", "p95=5"], "a time needs its unit");
    refused(&["nowhere"], "there is no run 'nowhere' in runs");
    refused(&["--at", "w1"], "write N=RUN");
    refused(&["--at", "0=w1"], "is not a number of nodes above 0");
    refused(&[], "name records: plimsoll size --at");
    refused(&["w1", "--headroom", "30"], "write a share in percent");
    refused(&["w1", "--check"], "--serve");
    refused(
        &["w1", "--nodes", "1", "--check", "--serve", "true"],
        "write {nodes} where the number",
    );
}
