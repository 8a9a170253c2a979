//! The embedded server beside VoltDB itself: the same calls in the same order, ordinary, odd and wrong ones, and the same
//! status, the same tables and the same kind of failure.

use super::NAMES;
use super::asking::{Answer, Asking};
use crate::engines::install;
use crate::process::{Place, curl};
use crate::voter::LIMITS;
use plimsoll_wire::volt::Value::{
    self, BigInt, Boolean, Decimal, Float, Integer, Null, SmallInt, String, Timestamp, TinyInt,
    VarBinary,
};
use std::net::TcpListener;

type Call = (&'static str, Vec<Value<'static>>);

/// What failures are, by words of their messages.
const KINDS: [(&str, &str); 11] = [
    ("PARAMS, BUT RECEIVED", "wrong number of parameters"),
    ("requires at least", "wrong number of parameters"),
    ("TYPE ERROR", "wrong type"),
    ("CONSTRAINT VIOLATION", "constraint"),
    ("SQL ERROR", "wrong value"),
    ("was not found", "no such procedure"),
    ("is not present in the catalog", "no such procedure"),
    ("compiling query", "wrong statement"),
    ("Failed to plan", "wrong statement"),
    ("correct partition", "no partition"),
    ("UNEXPECTED FAILURE", "unexpected"),
];

/// One in a DECIMAL.
const ONE: i128 = 1_000_000_000_000;
const PHONE: i64 = 2_125_550_001;

fn kind(answer: &Answer) -> &'static str {
    KINDS.into_iter().find(|(words, _)| answer.text.contains(words)).map_or("", |(_, kind)| kind)
}

fn vote(phone: Value<'static>, contestant: Value<'static>, most: Value<'static>) -> Call {
    ("Vote", vec![phone, contestant, most])
}

fn votes() -> Vec<Call> {
    let plain = |phone, contestant, most| vote(BigInt(phone), Integer(contestant), BigInt(most));
    vec![
        plain(PHONE, 1, 2),
        plain(PHONE, 1, 2),
        plain(PHONE, 1, 2),
        plain(PHONE, 999, 2),
        plain(PHONE, 0, 9),
        plain(PHONE, -1, 9),
        plain(PHONE + 1, 2, 0),
        plain(PHONE + 1, 2, -1),
        plain(4_155_550_001, 2, 9),
        plain(9_990_000_000, 3, 9),
        plain(0, 3, 9),
        plain(-2_147_465_910, 3, 9),
        plain(i64::MAX, 4, 9),
        // The area code is cut to 16 bits: 65,536 + 212.
        plain(657_480_000_000, 4, 9),
        vote(BigInt(PHONE), BigInt(5), TinyInt(9)),
        vote(Integer(2_025_550), SmallInt(5), Integer(9)),
        vote(String("2025550001"), Integer(5), BigInt(9)),
        vote(BigInt(2_025_550_002), String("5"), String("9")),
        vote(BigInt(2_025_550_003), BigInt(1 << 40), BigInt(9)),
        vote(BigInt(2_025_550_003), Integer(5), Null),
        vote(BigInt(2_025_550_003), Null, BigInt(9)),
        vote(Null, Integer(5), BigInt(9)),
        vote(String("ship"), Integer(5), BigInt(9)),
        vote(String(""), Integer(5), BigInt(9)),
        vote(BigInt(2_025_550_003), String("ship"), BigInt(9)),
        vote(Float(2.5), Integer(5), BigInt(9)),
        vote(BigInt(2_025_550_003), Float(5.0), BigInt(9)),
        vote(BigInt(2_025_550_003), Float(5.5), BigInt(9)),
        vote(BigInt(2_025_550_003), Decimal(5 * ONE), BigInt(9)),
        vote(BigInt(2_025_550_003), Decimal(5 * ONE + 1), BigInt(9)),
        vote(BigInt(2_025_550_003), Timestamp(5), BigInt(9)),
        vote(Timestamp(2_025_550_003), Integer(5), BigInt(9)),
        vote(BigInt(2_025_550_003), Integer(5), Timestamp(9)),
        vote(BigInt(2_025_550_003), Boolean(true), BigInt(9)),
        vote(BigInt(2_025_550_003), VarBinary(b"5"), BigInt(9)),
        ("Vote", vec![]),
        ("Vote", vec![BigInt(PHONE)]),
        ("Vote", vec![BigInt(PHONE), Integer(1)]),
        ("Vote", vec![BigInt(PHONE), Integer(1), BigInt(2), BigInt(3)]),
    ]
}

fn procedures() -> Vec<Call> {
    let greeting = |dialect, hello, world| ("Insert", vec![dialect, hello, world]);
    vec![
        ("Results", vec![]),
        ("Results", vec![Integer(1)]),
        ("GetStateHeatmap", vec![]),
        ("ContestantWinningStates", vec![Integer(1), Integer(10)]),
        ("ContestantWinningStates", vec![Integer(3), Integer(1)]),
        ("ContestantWinningStates", vec![Integer(3), Integer(0)]),
        ("ContestantWinningStates", vec![Integer(3), Integer(-1)]),
        ("ContestantWinningStates", vec![Integer(999), Integer(5)]),
        ("ContestantWinningStates", vec![Integer(1)]),
        greeting(String("French"), String("Bonjour"), String("Monde")),
        greeting(String("Danish"), String("Hej"), String("Verden")),
        greeting(String("French"), String("Salut"), String("Monde")),
        greeting(String("Silent"), Null, Null),
        greeting(Null, String("Hej"), String("Verden")),
        greeting(String("a dialect too long"), String("x"), String("y")),
        greeting(String("Latin"), String("a greeting too long"), String("y")),
        greeting(String("Numbers"), Integer(1), String("y")),
        ("Insert", vec![String("French"), String("Bonjour")]),
        ("Select", vec![String("French")]),
        ("Select", vec![String("Silent")]),
        ("Select", vec![String("Klingon")]),
        ("Select", vec![Null]),
        ("Select", vec![Integer(1)]),
        ("Select", vec![]),
        ("NoSuch", vec![]),
        ("vote", vec![BigInt(PHONE), Integer(1), BigInt(2)]),
        ("@NoSuch", vec![]),
        ("@Ping", vec![]),
        ("@ping", vec![]),
        ("@Ping", vec![Integer(1)]),
        ("@Subscribe", vec![String("TOPOLOGY")]),
        ("@GetPartitionKeys", vec![String("NONSENSE")]),
        ("@Statistics", vec![String("NONSENSE"), Integer(0)]),
        ("@SystemInformation", vec![String("NONSENSE")]),
        ("@SystemCatalog", vec![String("NONSENSE")]),
    ]
}

fn statements() -> Vec<Call> {
    let alone = |text: &'static str| ("@AdHoc", vec![String(text)]);
    let mut calls: Vec<Call> = [
        "select COUNT(*) as C from votes",
        "SELECT COUNT(*) FROM votes",
        "SELECT * FROM contestants ORDER BY contestant_number",
        "SELECT area_code, state FROM area_code_state ORDER BY area_code",
        "SELECT state, COUNT(*) AS n FROM votes GROUP BY state ORDER BY n DESC, state",
        "SELECT contestant_number, SUM(num_votes) FROM v_votes_by_contestant_number_state \
         GROUP BY contestant_number ORDER BY contestant_number",
        "SELECT MIN(phone_number), MAX(phone_number), AVG(contestant_number) FROM votes",
        "SELECT phone_number FROM votes WHERE contestant_number = 1 ORDER BY phone_number LIMIT 1",
        "SELECT DISTINCT contestant_number FROM votes ORDER BY contestant_number DESC",
        "SELECT COUNT(*) FROM votes WHERE phone_number BETWEEN 2000000000 AND 2999999999",
        "SELECT COUNT(*) FROM votes WHERE state IN ('NY', 'DC')",
        "SELECT contestant_name FROM contestants WHERE contestant_name LIKE 'J%' ORDER BY 1",
        "SELECT num_votes FROM v_votes_by_phone_number WHERE phone_number = 2125550001",
        "SELECT COUNT(*) FROM contestants; SELECT COUNT(*) FROM helloworld",
        "SELECT COUNT(*) FROM votes;",
        "SELECT MAX(phone_number) FROM votes WHERE contestant_number = 77",
        "SELECT * FROM helloworld ORDER BY dialect",
        "SELECT * FROM nothing",
        "SELECT nothing FROM votes",
        "SELEC COUNT(*) FROM votes",
        "SELECT COUNT(*) FROM votes WHERE",
        "",
        "INSERT INTO votes VALUES (2065550001, 'WA', 6)",
        "INSERT INTO contestants VALUES (1, 'Again')",
        "INSERT INTO votes (phone_number, state) VALUES (2065550001, 'WA')",
        "INSERT INTO votes VALUES (2065550001, 'three', 6)",
        "DELETE FROM votes WHERE phone_number = 2065550001",
        "UPDATE votes SET contestant_number = 2 WHERE phone_number = 4155550001",
        "SELECT COUNT(*) FROM votes WHERE contestant_number = 2",
        "DELETE FROM votes WHERE contestant_number = 2; INSERT INTO contestants VALUES (1, 'Again')",
        "SELECT COUNT(*) FROM votes WHERE contestant_number = 2",
        "DELETE FROM votes WHERE contestant_number = 2; INSERT INTO contestants VALUES (8, 'New')",
        "SELECT COUNT(*) FROM votes WHERE contestant_number = 2",
    ]
    .map(alone)
    .into();
    calls.extend([
        (
            "@AdHoc",
            vec![String("SELECT COUNT(*) FROM votes WHERE phone_number = ?"), BigInt(PHONE)],
        ),
        ("@AdHoc", vec![String("SELECT COUNT(*) FROM votes WHERE phone_number = ?")]),
        ("@AdHoc", vec![]),
    ]);
    calls
}

/// Where the two differ, and are meant to.
const DIFFERENCES: [(&str, &str); 0] = [];

#[test]
fn the_embedded_server_answers_as_voltdb_does() {
    install("voltdb");
    let place = Place::busy();
    let http = [free_port(), free_port()];
    let [real_http, own_http] = http.map(|port| port.to_string());
    let real = place.serve(&["voltdb", "--heap", "256MiB", "--http-port", &real_http]);
    let own = place.serve(&["voter", "--http-port", &own_http]);
    let (mut real, mut own) = (Asking::to(real.port), Asking::to(own.port));
    for server in [&mut real, &mut own] {
        server.initialize(NAMES);
        for (most, expected) in LIMITS {
            let phone = PHONE + 20 + most;
            assert_eq!([(); 3].map(|()| server.vote(phone, 4, most)), expected, "at most {most}");
        }
    }
    let first = ("Initialize", vec![Integer(6), String(NAMES)]);
    let second = ("Initialize", vec![Integer(3), String("a,b,c")]);
    let calls = [vec![first, second], votes(), procedures(), statements()].concat();
    let mut told = Vec::new();
    let mut seen = Vec::new();
    for (procedure, params) in &calls {
        let shown = format!("{procedure}{params:?}");
        let (wanted, got) = (real.call(procedure, params), own.call(procedure, params));
        let is_same =
            (wanted.status, kind(&wanted), &wanted.tables) == (got.status, kind(&got), &got.tables);
        let is_known = DIFFERENCES.iter().find(|(call, _)| *call == shown);
        match (is_same, is_known) {
            (true, None) => {}
            (false, Some((call, _))) => seen.push(*call),
            (true, Some(_)) => told.push(format!("{shown} is no difference any more")),
            (false, None) => told.push(format!("{shown}\n  VoltDB: {wanted:?}\n  ours: {got:?}")),
        }
    }
    assert!(told.is_empty(), "{} of {} calls:\n{}", told.len(), calls.len(), told.join("\n"));
    assert_eq!(seen.len(), DIFFERENCES.len(), "only {seen:?} were called");
    columns(&mut real, &mut own);
    by_http(http);
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The same answers in JSON, apart from the words of failures.
fn by_http(ports: [u16; 2]) {
    for call in [
        "Procedure=Vote&Parameters=[2125550009,1,9]",
        "Procedure=Vote&Parameters=[2125550009,999,9]",
        "Procedure=Vote&Parameters=[2125550009,1]",
        "Procedure=Results",
        "Procedure=Select&Parameters=[%22Silent%22]",
        "Procedure=@AdHoc&Parameters=[%22SELECT%20COUNT(*)%20AS%20C%20FROM%20votes%22]",
        "Procedure=NoSuch",
    ] {
        let told = ports.map(|port| {
            let (status, body) = curl(&["-g", &format!("http://127.0.0.1:{port}/api/1.0/?{call}")]);
            let mut json: serde_json::Value = serde_json::from_str(&body)
                .unwrap_or_else(|error| panic!("{call}: {status} {body}: {error}"));
            if json["status"] != 1 {
                json["statusstring"] = serde_json::Value::Null;
            }
            (status, json)
        });
        assert_eq!(told[1], told[0], "{call}");
    }
}

/// What servers say of themselves differs; how they say it does not.
fn columns(real: &mut Asking, own: &mut Asking) {
    let asked = [
        ("@SystemInformation", vec![String("OVERVIEW")]),
        ("@SystemInformation", vec![String("DEPLOYMENT")]),
        ("@SystemCatalog", vec![String("PROCEDURES")]),
        ("@GetPartitionKeys", vec![String("INTEGER")]),
        ("@GetPartitionKeys", vec![String("STRING")]),
        ("@Statistics", vec![String("TOPO"), Integer(0)]),
        ("@Statistics", vec![String("PROCEDUREPROFILE"), Integer(0)]),
        ("@Statistics", vec![String("PROCEDURE"), Integer(0)]),
        ("@Statistics", vec![String("LATENCY"), Integer(0)]),
        ("@Statistics", vec![String("INITIATOR"), Integer(0)]),
        ("@Statistics", vec![String("TABLE"), Integer(0)]),
        ("@Statistics", vec![String("CPU"), Integer(0)]),
        ("@Statistics", vec![String("MEMORY"), Integer(0)]),
    ];
    // The embedded server keeps no count of bytes, nor of a heap.
    let has_fewer = ["PROCEDURE", "TABLE", "MEMORY", "LATENCY", "INITIATOR", "CPU"];
    for (procedure, params) in &asked {
        let (wanted, got) = (real.call(procedure, params), own.call(procedure, params));
        assert_eq!((wanted.status, got.status), (1, 1), "{procedure}{params:?}: {got:?}");
        let columns =
            |answer: &Answer| answer.tables.iter().map(|t| t.columns.clone()).collect::<Vec<_>>();
        let (got, wanted) = (columns(&got), columns(&wanted));
        if !has_fewer.contains(&params[0].text().unwrap_or_default()) {
            assert_eq!(got, wanted, "{procedure}{params:?}");
            continue;
        }
        // Fewer columns, but the same ones in the same order.
        let mut theirs = wanted[0].iter();
        let is_part = got[0].iter().all(|own| theirs.any(|column| column == own));
        assert!(is_part && !got[0].is_empty(), "{procedure}{params:?}: {got:?} beside {wanted:?}");
    }
    let keys = |volt: &mut Asking| volt.call("@GetPartitionKeys", &[String("INTEGER")]);
    assert_eq!(keys(own).tables[0].rows.len(), keys(real).tables[0].rows.len());
}
