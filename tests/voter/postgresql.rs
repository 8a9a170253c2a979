//! The same election over PostgreSQL: one function call, or four statements in a transaction.

use super::{LIMITS, expect_exact, run};
use crate::process::{Place, Target};
use plimsoll_engine::exchange::Exchange;
use plimsoll_voter::{SqlWay, vote_statements};
use plimsoll_wire::postgres::{Login, Postgres, Request};
use std::os::unix::fs::PermissionsExt;
use std::time::Duration;

#[test]
fn presets_functions_statements_and_processes_are_exact() {
    let place = Place::busy();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    let url = target.url.as_str();
    let few = ["voter", url, "--calls", "2000", "--quiet"];
    let runs: [&[&str]; 7] = [
        &["VSD", "--seed", "1"],
        &["VSM", "--seed", "2"],
        &["VBM", "--seed", "3"],
        &["VBD", "--seed", "4"],
        &["--clients", "50", "--connections", "8", "--seed", "5"],
        &["--clients", "10", "--seed", "6", "--sql", "statements"],
        &["--clients", "10", "--seed", "7", "--processes", "2"],
    ];
    let mut rows = 0;
    for own in runs {
        let record = run(&place, &[&few[..], own].concat());
        assert_eq!(record.count("/voter/rows_before"), rows, "{own:?}");
        rows = record.count("/voter/rows_after");
        assert_eq!(record.ok(), 2000, "{own:?}");
        // Under read committed two transactions of one telephone may both pass the limit, and both are rows.
        expect_exact(&record);
    }
    let strict =
        ["--clients", "16", "--seed", "8", "--sql", "statements", "--isolation", "serializable"];
    let record = run(&place, &[&few[..], &strict].concat());
    assert_eq!(record.text("/voter/check"), "ok");
    assert_eq!(record.0["voter"]["contestants"].as_array().unwrap().len(), 6);
    let again = ["voter", "HSD", url, "--calls", "2000", "--quiet"];
    assert_eq!(run(&place, &again).ok(), 2000);
}

#[test]
fn names_and_limits_are_as_at_voltdb() {
    let place = Place::busy();
    let open = std::fs::Permissions::from_mode(0o755);
    std::fs::set_permissions(place.path(), open).unwrap();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    let url = target.url.as_str();
    let names = ["Mary O'Hara", r"Back\slash", "Zoë"];
    let args = ["voter", url, "--names", &names.join(","), "--calls", "300", "--clients", "5"];
    let record = run(&place, &[&args[..], &["--quiet"]].concat());
    let mut found: Vec<&str> = record.0["voter"]["contestants"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["name"].as_str().unwrap())
        .collect();
    found.sort_unstable();
    assert_eq!(found, [r"Back\slash", "Mary O'Hara", "Zoë"]);
    // They stay, and who asks for more is told.
    let args = ["voter", url, "--calls", "300", "--clients", "5", "--seed", "2", "--quiet"];
    let warnings = run(&place, &args).0["warnings"].to_string();
    assert!(
        warnings.contains("already has 3 contestants instead of the requested 6"),
        "{warnings}"
    );
    // The function and the statements judge the limit alike.
    for (way, first) in [(SqlWay::Function, 7_000_000_000), (SqlWay::Statements, 7_000_000_100)] {
        let mut client = Sql::to(&target, way);
        for (most, expected) in LIMITS {
            let phone = first + most;
            assert_eq!([(); 3].map(|()| client.vote(phone, most)), expected, "{way:?} {most}");
        }
    }
}

/// A connection that votes by itself.
struct Sql {
    exchange: Exchange<Postgres>,
    way: SqlWay,
}

impl Sql {
    fn to(target: &Target, way: SqlWay) -> Self {
        let login = Login::new("plimsoll", None, "plimsoll", &[]).unwrap();
        let protocol = Postgres::new(login).with_statements(vote_statements(way).unwrap());
        let peer = plimsoll_engine::target::Target::resolve("127.0.0.1", target.port);
        let exchange = Exchange::connect(protocol, &peer, Duration::from_secs(60)).unwrap();
        Self { exchange, way }
    }

    /// What `Vote` would return.
    fn vote(&mut self, phone: i64, most: i64) -> i64 {
        let values = [phone, 1, most].map(|value| value.to_string());
        let values = values.each_ref().map(|value| Some(value.as_bytes()));
        let mut request = Request::default();
        // Of the statements the last one judges.
        request.execute(if self.way == SqlWay::Function { 0 } else { 3 }, &values);
        let way = self.way;
        let asked = self.exchange.ask(&request, |reply| {
            assert!(reply.error.is_none(), "{:?}", reply.error);
            match way {
                SqlWay::Function => i64::from(reply.value(0).unwrap()[0] - b'0'),
                SqlWay::Statements => 2 - 2 * reply.affected().unwrap() as i64,
            }
        });
        asked.unwrap()
    }
}

#[test]
fn a_role_that_is_not_let_in_is_told_in_the_servers_words() {
    let place = Place::new();
    let target = place.serve(&["postgresql", "--durability", "none"]);
    let url = format!("postgres://nobody:x@127.0.0.1:{}/plimsoll", target.port);
    let ended = place.run(["voter", &url]).expect(64);
    let told = super::line(&ended);
    assert!(told.contains("nobody") && !told.contains("nobody:x"), "{told}");
}
