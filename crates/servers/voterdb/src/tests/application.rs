//! The procedures of the voter application and of the hello world.

use super::{NAMES, TestServer};
use plimsoll_wire::volt::{Request, Value};

#[test]
fn the_rules_of_voting() {
    let server = TestServer::plain();
    let mut client = server.voter();
    // Idempotent, whatever is asked the second time.
    assert_eq!(client.long("Initialize", &[Value::Integer(2), Value::String("A,B")]), 6);
    let phone = 2_125_550_001;
    assert_eq!(client.vote(phone, 7, 2), 1, "no such contestant");
    assert_eq!(client.vote(phone, 6, 2), 0);
    assert_eq!(client.vote(phone, 1, 2), 0);
    assert_eq!(client.vote(phone, 1, 2), 2, "over the limit");
    assert_eq!(client.vote(phone, 7, 2), 1, "an invalid contestant goes before the limit");
    assert_eq!(client.vote(phone, 1, 3), 0, "the limit is the caller's");
    // The limit is looked at where there are votes: the first one always counts.
    for (most, expected) in [(0, [0, 2, 2]), (1, [0, 2, 2]), (2, [0, 0, 2]), (-1, [0, 2, 2])] {
        let phone = 3_125_550_002 + most;
        assert_eq!([(); 3].map(|()| client.vote(phone, 4, most)), expected, "at most {most}");
    }
    assert_eq!(client.cell("delete from votes where contestant_number = 4"), "5");
    // An area code that nobody knows, a negative number, and one whose area code does not fit a SMALLINT.
    assert_eq!(client.vote(1_005_550_001, 2, 1), 0);
    assert_eq!(client.vote(-2_147_465_910, 2, 1), 0);
    assert_eq!(client.vote((65_536 + 212) * 10_000_000, 3, 1), 0);
    let rows =
        client.rows("select phone_number, state, contestant_number from votes order by 1, 3");
    let text = |row: &[&str]| row.iter().map(|cell| (*cell).to_owned()).collect::<Vec<_>>();
    assert_eq!(
        rows,
        [
            text(&["-2147465910", "XX", "2"]),
            text(&["1005550001", "XX", "2"]),
            text(&["2125550001", "NY", "1"]),
            text(&["2125550001", "NY", "1"]),
            text(&["2125550001", "NY", "6"]),
            text(&["657480000000", "NY", "3"]),
        ]
    );
}

#[test]
fn a_vote_on_the_wire_is_as_voltdb_writes_it() {
    let server = TestServer::plain();
    let mut client = server.voter();
    let bytes = |hex: &str| -> Vec<u8> {
        let digits: Vec<u8> = hex.bytes().filter(u8::is_ascii_hexdigit).collect();
        let pair =
            |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
        digits.chunks(2).map(pair).collect()
    };
    client.send(&bytes(
        "0000002b 02 00000004 566f7465 0000000000000002 00 0003 06 000000011e472f14 05 00000004 \
         06 0000000000000002",
    ));
    let expected = bytes(
        "00 0000000000000002 00 01 80 00000000 0001 0000001c 00000008 80 0001 06 00000000 \
         00000001 00000008 0000000000000000",
    );
    let mut message = client.message().unwrap();
    // How long it took in ms may differ.
    message[12..16].fill(0);
    assert_eq!(message, expected);
}

#[test]
fn many_calls_are_answered_by_their_handles() {
    let server = TestServer::plain();
    let mut client = server.voter();
    let (mut bytes, mut request) = (Vec::new(), Request::default());
    for handle in 0..5_000 {
        let contestant = if handle % 10 == 0 { 999 } else { 1 + handle % 6 };
        request.call(
            "Vote",
            &[
                Value::BigInt(2_120_000_000 + handle),
                Value::Integer(contestant as i32),
                Value::BigInt(1),
            ],
        );
        request.put(handle, &mut bytes);
    }
    client.send(&bytes);
    let mut seen = vec![false; 5_000];
    for _ in 0..5_000 {
        let answer = client.answer();
        let place = answer.handle as usize;
        assert!(!std::mem::replace(&mut seen[place], true), "two answers to {place}");
        let expected = if place.is_multiple_of(10) { "1" } else { "0" };
        assert_eq!(answer.tables[0].1[0][0], expected);
    }
    assert_eq!(client.cell("SELECT COUNT(*) FROM votes"), "4500");
    assert_eq!(client.cell("SELECT COUNT(*) FROM v_votes_by_phone_number"), "4500");
}

#[test]
fn results_heat_map_and_winning_states() {
    let server = TestServer::plain();
    let mut client = server.voter();
    for (area_code, contestant, count) in
        [(212, 1, 3), (212, 2, 3), (415, 2, 2), (415, 3, 1), (100, 3, 1)]
    {
        for number in 0..count {
            let phone = area_code * 10_000_000 + i64::from(contestant) * 100 + number;
            assert_eq!(client.vote(phone, contestant, 1), 0);
        }
    }
    let results = client.call("Results", &[]);
    let (columns, rows) = &results.tables[0];
    assert_eq!(columns, &["CONTESTANT_NAME", "CONTESTANT_NUMBER", "TOTAL_VOTES"]);
    let expected =
        [["Tabatha Gehling", "2", "5"], ["Edwina Burnam", "1", "3"], ["Kelly Clauss", "3", "2"]];
    assert_eq!(rows, &expected.map(|row| row.map(str::to_owned).to_vec()), "none without votes");
    let heatmap = client.call("GetStateHeatmap", &[]);
    let expected = [["CA", "2", "2"], ["NY", "1", "3"], ["NY", "2", "3"], ["XX", "3", "1"]];
    assert_eq!(heatmap.tables[0].0, ["STATE", "CONTESTANT_NUMBER", "NUM_VOTES"]);
    assert_eq!(heatmap.tables[0].1, expected.map(|row| row.map(str::to_owned).to_vec()));
    assert_eq!(heatmap.tables[1].0, ["CONTESTANT_NUMBER", "C2"]);
    assert_eq!(heatmap.tables[1].1[1], ["2", "5"]);
    let won = client.call("ContestantWinningStates", &[Value::Integer(2), Value::Integer(1)]);
    assert_eq!(won.tables[0].1, [["NY", "3"].map(str::to_owned).to_vec()]);
}

#[test]
fn initialize_refuses_what_it_cannot_make() {
    let server = TestServer::plain();
    let mut client = server.client();
    let long_name = "x".repeat(51);
    for (names, part) in [("A,B", "only 2 names"), (&long_name, "more than 50 characters")] {
        let most = if names.len() > 3 { 1 } else { 6 };
        let answer = client.call("Initialize", &[Value::Integer(most), Value::String(names)]);
        assert_eq!(answer.status, -3);
        assert!(answer.text.contains(part), "{}", answer.text);
    }
    assert_eq!(client.cell("select count(*) from contestants"), "0");
    assert_eq!(client.vote(2_125_550_001, 1, 2), 1);
    assert_eq!(client.long("Initialize", &[Value::Integer(12), Value::String(NAMES)]), 12);
    assert_eq!(client.cell("select count(*) from area_code_state"), "305");
}

#[test]
fn the_hello_world() {
    let server = TestServer::plain();
    let mut client = server.client();
    let insert = ["French", "Bonjour", "Monde"].map(Value::String);
    let done = client.call("Insert", &insert);
    assert_eq!((done.status, done.tables[0].0[0].as_str()), (1, "modified_tuples"));
    let again = client.call("Insert", &insert);
    assert_eq!(again.status, -2);
    assert!(again.text.contains("CONSTRAINT VIOLATION"), "{}", again.text);
    let found = client.call("Select", &[Value::String("French")]);
    assert_eq!(found.tables[0].0, ["HELLO", "WORLD"]);
    assert_eq!(found.tables[0].1, [["Bonjour", "Monde"].map(str::to_owned).to_vec()]);
    assert!(client.call("Select", &[Value::String("Dutch")]).tables[0].1.is_empty());
    let long = client.call("Insert", &["A dialect that is long", "a", "b"].map(Value::String));
    assert_eq!(long.status, -2);
    assert_eq!(client.cell("select count(*) from helloworld"), "1");
}

#[test]
fn parameters_are_fitted_or_refused() {
    let server = TestServer::plain();
    let mut client = server.voter();
    let (phone, contestant, most) =
        (Value::BigInt(2_125_550_001), Value::Integer(1), Value::BigInt(9));
    let good = [
        [Value::String("2125550001"), contestant, most],
        [Value::Decimal(2_125_550_001_000_000_000_000), Value::TinyInt(1), Value::SmallInt(9)],
        [phone, Value::BigInt(1), Value::Integer(9)],
        [phone, Value::Boolean(true), most],
    ];
    for params in good {
        assert_eq!(client.long("Vote", &params), 0, "{params:?}");
    }
    assert_eq!(client.cell("select num_votes from v_votes_by_phone_number"), "4");
    let bad: [(&[Value<'_>], i8, &str); 10] = [
        (&[phone, contestant], -2, "VOLTDB ERROR: PROCEDURE Vote EXPECTS 3 PARAMS, BUT RECEIVED 2"),
        (&[phone, Value::BigInt(1 << 40), most], -2, "TYPE ERROR FOR PARAMETER 1"),
        (&[Value::Float(2.5), contestant, most], -2, "TYPE ERROR FOR PARAMETER 0"),
        (&[Value::Decimal(500_000_000_000), contestant, most], -2, "TYPE ERROR FOR PARAMETER 0"),
        (&[phone, contestant, Value::String("x")], -2, "TYPE ERROR FOR PARAMETER 2"),
        (
            &[Value::String("me"), contestant, most],
            -3,
            "Error sending procedure Vote to the correct partition",
        ),
        (&[Value::VarBinary(&[1]), contestant, most], -3, "to the correct partition"),
        (&[Value::Null, contestant, most], -2, "CONSTRAINT VIOLATION"),
        (&[Value::Timestamp(2_125_550_001), contestant, most], -2, "TYPE ERROR FOR PARAMETER 0"),
        (&[], -3, "to the correct partition"),
    ];
    for (params, status, part) in bad {
        let answer = client.call("Vote", params);
        assert_eq!((answer.status, answer.tables.len()), (status, 0), "{params:?}: {answer:?}");
        assert!(answer.text.contains(part), "{params:?}: {}", answer.text);
    }
    // NULL is no contestant, and that comes first.
    assert_eq!(client.long("Vote", &[Value::Null, Value::Null, most]), 1);
    let unknown = client.call("NoSuch", &[]);
    assert_eq!((unknown.status, unknown.text.as_str()), (-3, "Procedure NoSuch was not found"));
    assert_eq!(client.cell("select count(*) from votes"), "4", "nothing refused was written");
}
