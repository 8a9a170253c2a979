//! The dashboard for Grafana.

use super::prometheus::{Prometheus, run};
use crate::process::Place;
use plimsoll_core::clock::wall_us;
use serde_json::Value;
use std::collections::BTreeSet;

fn dashboard() -> Value {
    serde_json::from_str(include_str!("../../docs/grafana/plimsoll.json")).unwrap()
}

fn panels(dashboard: &Value) -> &Vec<Value> {
    dashboard["panels"].as_array().unwrap()
}

#[test]
fn panels_have_what_grafana_needs_and_do_not_overlap() {
    let dashboard = dashboard();
    assert!(dashboard["schemaVersion"].as_u64().unwrap() >= 36);
    for field in ["title", "uid"] {
        assert_eq!(dashboard[field], "plimsoll");
    }
    let (mut ids, mut cells) = (BTreeSet::new(), BTreeSet::new());
    for panel in panels(&dashboard) {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{panel}");
        let known = ["stat", "timeseries", "heatmap", "table"];
        assert!(known.contains(&panel["type"].as_str().unwrap()), "{panel}");
        assert_eq!(panel["datasource"]["uid"], "${datasource}");
        let place = |name: &str| panel["gridPos"][name].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{panel}");
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(cells.insert((x, y)), "panel {} lies over another one", panel["title"]);
            }
        }
        let mut references = BTreeSet::new();
        for target in panel["targets"].as_array().unwrap() {
            assert!(references.insert(target["refId"].as_str().unwrap()));
            assert_ne!(target["instant"], target["range"]);
        }
        assert!(!references.is_empty());
    }
    assert!(ids.len() >= 12);
}

#[test]
fn every_query_of_the_dashboard_returns_data() {
    let place = Place::busy();
    let prometheus = Prometheus::start(&place);
    let started_s = wall_us() / 1_000_000;
    let record = run(&place, &prometheus);
    let ended_s = wall_us() / 1_000_000;
    let dashboard = dashboard();
    let run_id = record.text("/run_id");
    let variables = dashboard["templating"]["list"].as_array().unwrap();
    let run = variables.iter().find(|variable| variable["name"] == "run").unwrap();
    let query = run["query"]["query"].as_str().unwrap();
    let inside =
        query.strip_prefix("label_values(").and_then(|rest| rest.strip_suffix(')')).unwrap();
    let (of, label) = inside.rsplit_once(", ").unwrap();
    assert_eq!(prometheus.label_values(label, of), [run_id]);
    let mut asked = 0;
    for panel in panels(&dashboard) {
        for target in panel["targets"].as_array().unwrap() {
            let query = target["expr"].as_str().unwrap();
            let query = query
                .replace("$run", run_id)
                .replace("$__rate_interval", "4s")
                .replace("$__range", "15m");
            assert!(!query.contains('$'), "{query}");
            let found = match target["instant"] == true {
                true => prometheus.query(&query),
                false => prometheus.query_range(&query, started_s, ended_s),
            };
            assert!(!found.is_empty(), "{}: {query}", panel["title"]);
            let is_number = |value: &Value| value[1].as_str().is_some_and(|text| text != "NaN");
            let is_filled = |series: &Value| {
                series.get("value").is_some_and(is_number)
                    || series["values"]
                        .as_array()
                        .is_some_and(|values| values.iter().any(is_number))
                    || series.get("histogram").or(series.get("histograms")).is_some()
            };
            assert!(found.iter().any(is_filled), "{}: {query}: {found:?}", panel["title"]);
            asked += 1;
        }
    }
    assert!(asked >= 30);
}
