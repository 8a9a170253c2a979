//! The highest rate of users who come, ask several requests and leave.

use super::asking::search;
use super::{QUICK_LINE_PER_S, QUICK_SERVERS, found, seek};
use crate::nginx::Nginx;
use crate::process::{Place, stolen_while};
use serde_json::Value;
use std::collections::BTreeMap;

/// Five requests each, with pauses that are long against a response: at the target they arrive nearly as by themselves, and
/// the line is that of the requests.
#[test]
fn the_line_of_users_is_that_of_their_requests() {
    let place = Place::quiet_for_long();
    let target = place.serve(&QUICK_SERVERS);
    let flags = ["--users", "constant", "--user-requests", "5", "--think", "exponential 200ms"];
    let time = ["--slo", "p95=25ms", "--budget", "45s", "--start-rate", "100"];
    let (ended, stolen) = stolen_while(|| seek(&place, &target, &[&flags[..], &time].concat()));
    let record = found(&ended);
    assert_eq!(record.count("/seek/users/requests"), 5);
    assert_eq!(record.count("/scenario/load/requests"), 5);
    let curve = record.0["seek"]["curve"].as_array().unwrap();
    // From its first moment on an order offers what it says, though a user stays for a second: until it is overload, or the machine
    // stands still, and its users with it.
    let differs = |point: &&Value| {
        let (rate, seconds) =
            (point["rate_per_s"].as_f64().unwrap(), point["seconds"].as_f64().unwrap());
        let offered = point["scheduled"].as_f64().unwrap() / seconds;
        let is_below = rate < 0.9 * QUICK_LINE_PER_S
            && point["late_share"][0].as_f64().unwrap() < 0.2
            && point["scheduled"].as_u64() > Some(2000);
        is_below && (offered / rate - 1.0).abs() >= 0.2
    };
    let different: Vec<_> = curve.iter().filter(differs).collect();
    assert!(different.is_empty() || record.was_held_up(stolen), "{different:?}");
    let seek = &record.0["seek"];
    eprintln!("{}: {}, {}", record.verdict(), seek["certified_rate_per_s"], seek["users"]);
    let Some(certified) = seek["certified_rate_per_s"].as_f64() else {
        if !record.was_held_up(stolen) {
            crate::unquiet::note(&format!("{}, and no rate was certified", record.verdict()));
        }
        return;
    };
    let users = record.number("/seek/users/certified_per_s");
    assert!((5.0 * users / certified - 1.0).abs() < 1e-9, "{users}");
    // A machine that stands still makes the target slower, and never faster.
    assert!(certified < 1.3 * QUICK_LINE_PER_S, "{certified}");
    assert!(record.was_held_up(stolen) || certified > 0.7 * QUICK_LINE_PER_S, "{certified}");
    let page = place.run(["report"]).expect(0).stdout;
    assert!(page.contains(" users/s") && page.contains("5.00 requests each"), "{page}");
    // There is no estimate of the target's line where the generator was the limit, nor where the search was too short for one.
    let has_line = record.verdict() == "valid" && seek["estimate_per_s"].is_number();
    assert_eq!(page.contains(" users/s; estimate "), has_line, "{page}");
}

#[test]
fn users_of_a_search_ask_in_their_order_each_with_its_row() {
    let place = Place::new();
    let nginx = Nginx::start(&place, "", "location / { return 200 'hello'; }");
    let rows: String = (0..5000).map(|n| format!("{n}\n")).collect();
    place.file("rows.csv", format!("user\n{rows}"));
    place.file("q.txt", "/a?u={{user}}\n/b?u={{user}}\n/c?u={{user}}\n");
    let url = format!("http://127.0.0.1:{}", nginx.port);
    let requests = ["--queries", "q.txt", "--rows", "rows.csv", "--rows-per", "user"];
    let users = ["--users", "constant", "--order", "interleaved", "--think", "10ms"];
    let limit = ["--slo", "p95=1s", "--max-rate", "60", "--start-rate", "30", "--budget", "15s"];
    let record = found(&search(&place, &url, &[&requests[..], &users, &limit].concat()));
    assert_eq!(record.count("/seek/users/requests"), 3);
    let seen = nginx.wait_for(record.sent() as usize);
    let mut of_user: BTreeMap<&str, String> = BTreeMap::new();
    for line in &seen {
        let target = line.split(' ').nth(2).unwrap();
        let (what, user) = target.split_once("?u=").unwrap();
        of_user.entry(user).or_default().push_str(what);
    }
    // Who came before its part began, or was there when that ended, has asked less.
    let whole = of_user.values().filter(|asked| asked.as_str() == "/a/b/c").count();
    eprintln!("{whole} of {} users asked all", of_user.len());
    assert!(of_user.len() > 30 && whole * 10 > of_user.len() * 7, "{of_user:?}");
}
