//! What people type at `@AdHoc`.

use super::{Client, TestServer};
use plimsoll_wire::volt::Value;

/// Votes over three states: `(area code, contestant, how many)`.
const VOTES: [(i64, i32, i64); 5] =
    [(212, 1, 5), (212, 2, 3), (415, 1, 1), (415, 3, 4), (100, 2, 2)];

/// Selects over those votes and what they give.
const SELECTS: [(&str, &[&[&str]]); 24] = [
    ("SELECT COUNT(*) FROM votes", &[&["15"]]),
    (
        "select count(*) from votes where mod(phone_number, 10000000) between 1000 and 1002",
        &[&["4"]],
    ),
    ("SELECT COUNT(DISTINCT state), MIN(state), MAX(state) FROM votes;", &[&["3", "CA", "XX"]]),
    ("select sum(contestant_number), avg(contestant_number) from votes", &[&["28", "1"]]),
    ("select avg(contestant_number + 0.5) from votes where state = 'NY'", &[&["1.875"]]),
    (
        "select state, count(*) as n from votes group by state order by n desc, state",
        &[&["NY", "8"], &["CA", "5"], &["XX", "2"]],
    ),
    (
        "select state, count(*) from votes group by state having count(*) > 2 order by 1",
        &[&["CA", "5"], &["NY", "8"]],
    ),
    (
        "SELECT a.contestant_name, COUNT(*) FROM votes v JOIN contestants a ON \
             a.contestant_number = v.contestant_number GROUP BY a.contestant_name ORDER BY 2 DESC LIMIT 2",
        &[&["Edwina Burnam", "6"], &["Tabatha Gehling", "5"]],
    ),
    (
        "select c.contestant_number, sum(num_votes) from contestants c, \
             v_votes_by_contestant_number_state v where c.contestant_number = v.contestant_number \
             group by c.contestant_number order by c.contestant_number",
        &[&["1", "6"], &["2", "5"], &["3", "4"]],
    ),
    (
        "select * from v_votes_by_contestant_number_state where contestant_number = 1 order by state",
        &[&["1", "CA", "1"], &["1", "NY", "5"]],
    ),
    ("select num_votes from v_votes_by_phone_number where phone_number = 2120001000", &[&["1"]]),
    (
        "select distinct state from votes where not state in ('NY') order by state desc",
        &[&["XX"], &["CA"]],
    ),
    ("select contestant_number from contestants where contestant_name like '%a Burn%'", &[&["1"]]),
    (
        "select contestant_number from contestants where contestant_number <> 1 and (contestant_number < 3 or contestant_number >= 6) order by 1",
        &[&["2"], &["6"]],
    ),
    (
        "select contestant_number from contestants order by contestant_number desc limit 2 offset 1",
        &[&["5"], &["4"]],
    ),
    (
        "select 7 / 2, -7 / 2, 7 - 2 * 3, (7 - 2) * 3, abs(-4), 7.0 / 2 from contestants limit 1",
        &[&["3", "-3", "1", "15", "4", "3.5"]],
    ),
    (
        "select upper(contestant_name), char_length(contestant_name) from contestants where contestant_number = 3",
        &[&["KELLY CLAUSS", "12"]],
    ),
    ("select count(*) from contestants where contestant_name is null", &[&["0"]]),
    ("select count(*) from contestants where contestant_name is not null", &[&["6"]]),
    ("select max(phone_number) from votes where state = 'ZZ'", &[&["NULL"]]),
    ("select count(*), sum(phone_number) from votes where 1 = 2", &[&["0", "NULL"]]),
    ("select state from votes where state = 'ZZ' group by state", &[]),
    ("select count(*) + 1 from votes -- and a comment", &[&["16"]]),
    (
        "select \"STATE\", contestant_number / 2, count(*) from votes group by state, contestant_number / 2 order by 1, 2",
        &[
            &["CA", "0", "1"],
            &["CA", "1", "4"],
            &["NY", "0", "5"],
            &["NY", "1", "3"],
            &["XX", "1", "2"],
        ],
    ),
];

fn voted(server: &TestServer) -> Client {
    let mut client = server.voter();
    for (area_code, contestant, count) in VOTES {
        for number in 0..count {
            let phone = area_code * 10_000_000 + i64::from(contestant) * 1_000 + number;
            assert_eq!(client.vote(phone, contestant, 1), 0);
        }
    }
    client
}

fn texts(rows: &[&[&str]]) -> Vec<Vec<String>> {
    rows.iter().map(|row| row.iter().map(|cell| (*cell).to_owned()).collect()).collect()
}

#[test]
fn selects() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    for (sql, expected) in SELECTS {
        assert_eq!(client.rows(sql), texts(expected), "{sql}");
    }
}

#[test]
fn columns_have_names_and_types() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    let asked = "select COUNT(*) as C, count(*), contestant_number, 1.5, 'x' \"n\" from votes group by \
                 contestant_number";
    client.submit("@AdHoc", &[Value::String(asked)]);
    let message = client.message().unwrap();
    let response = plimsoll_wire::volt::Response::read(&message).unwrap();
    let columns: Vec<String> = response
        .table(0)
        .unwrap()
        .columns()
        .map(|column| format!("{} {}", column.name, column.kind.name()))
        .collect();
    let expected = ["C BIGINT", "C2 BIGINT", "CONTESTANT_NUMBER INTEGER", "C4 FLOAT", "N STRING"];
    let plain = |name: &str| name.replace("VARCHAR", "STRING");
    assert_eq!(columns.iter().map(|name| plain(name)).collect::<Vec<_>>(), expected);
}

#[test]
fn parameters_and_several_statements() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    let sql = "select count(*) from votes where state = ?; select count(*) from votes where \
               contestant_number between ? and ? limit ?";
    let params = [
        Value::String(sql),
        Value::String("NY"),
        Value::TinyInt(2),
        Value::BigInt(3),
        Value::Integer(1),
    ];
    let answer = client.call("@AdHoc", &params);
    assert_eq!(answer.status, 1, "{answer:?}");
    let cells: Vec<&str> = answer.tables.iter().map(|table| table.1[0][0].as_str()).collect();
    assert_eq!(cells, ["8", "9"]);
    let few = client.call("@AdHoc", &params[..3]);
    assert!(few.status == -2 && few.text.contains("was 2 where 4 was expected"), "{few:?}");
    let none = client.call(
        "@AdHoc",
        &[Value::String("select count(*) from votes where state = ?"), Value::Null],
    );
    assert_eq!(none.tables[0].1[0][0], "0", "nothing equals NULL");
}

#[test]
fn changes() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    assert_eq!(client.cell("update votes set state = 'ZZ' where state = 'XX'"), "2");
    assert_eq!(client.cell("select count(*) from votes where state = 'ZZ'"), "2");
    assert_eq!(
        client.cell(
            "select sum(num_votes) from v_votes_by_contestant_number_state where state = 'ZZ'"
        ),
        "2"
    );
    assert_eq!(client.cell("delete from votes where contestant_number = 1"), "6");
    assert_eq!(client.cell("select count(*) from v_votes_by_phone_number"), "9");
    // A phone number whose vote is gone may vote again.
    assert_eq!(client.vote(2_120_001_000, 2, 1), 0);
    assert_eq!(client.cell("insert into votes values (2125559999, 'NY', 1)"), "1");
    assert_eq!(client.vote(2_125_559_999, 2, 1), 2);
    assert_eq!(
        client.cell(
            "insert into contestants (contestant_name, contestant_number) values ('Zoe', 77)"
        ),
        "1"
    );
    assert_eq!(client.vote(2_125_550_000, 77, 1), 0);
    assert_eq!(client.cell("delete from contestants where contestant_number = 77"), "1");
    assert_eq!(client.vote(2_125_550_001, 77, 1), 1);
    assert_eq!(client.cell("update area_code_state set state = 'QQ' where area_code = 212"), "1");
    assert_eq!(client.vote(2_125_550_002, 1, 1), 0);
    assert_eq!(client.cell("select state from votes where phone_number = 2125550002"), "QQ");
    assert_eq!(client.cell("insert into helloworld values ('Hallo', 'Welt', 'German')"), "1");
    assert_eq!(client.cell("update helloworld set world = null"), "1");
    let german = client.call("Select", &[Value::String("German")]);
    assert_eq!(german.tables[0].1, texts(&[&["Hallo", "NULL"]]));
    assert_eq!(client.cell("truncate table helloworld"), "1");
    let count: i64 = client.cell("select count(*) from votes").parse().unwrap();
    let answer = client.call("@AdHoc", &[Value::String("delete from votes")]);
    assert_eq!(answer.tables[0].0, ["modified_tuples"]);
    assert_eq!(answer.tables[0].1, [[count.to_string()].to_vec()]);
    assert_eq!(client.cell("select count(*) from votes"), "0");
    assert!(client.call("Results", &[]).tables[0].1.is_empty());
}

#[test]
fn what_is_not_understood_is_said() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    for (sql, part) in [
        ("", "no statement"),
        ("selec 1", "unexpected token: SELEC"),
        ("select count(*) from", "unexpected end of statement"),
        ("select count(*) from voters", "object not found: VOTERS"),
        ("select wine from votes", "object not found: WINE"),
        ("select state from votes, area_code_state", "ambiguous column name: STATE"),
        ("select state, count(*) from votes", "not in aggregate or GROUP BY columns: STATE"),
        ("select * from votes where count(*) = 1", "aggregate stands in WHERE"),
        ("select * from votes where state", "a value stands where a condition"),
        ("select state = 'NY' from votes", "a condition stands where a value"),
        ("select * from votes where state = 5", "incompatible data types"),
        ("select sum(state) from votes", "takes numbers"),
        ("select count(*) from (select * from votes)", "sub-queries"),
        ("select * from votes where state in (select state from votes)", "sub-queries"),
        ("select * from votes union select * from votes", "expected: the end of the statement"),
        ("select now() from votes", "object not found: NOW"),
        ("select 'abc from votes", "does not end"),
        ("select * from votes where phone_number = 99999999999999999999", "out of range"),
        ("select * from votes limit 'x'", "LIMIT takes a whole number"),
        ("create table t (a int)", "unexpected token: CREATE"),
        ("insert into votes values (1, 'NY')", "row column count mismatch"),
        ("insert into v_votes_by_phone_number values (1, 1)", "is a view"),
        ("update votes set phone_number = 1", "partitioning column"),
        ("update contestants set contestant_number = 9", "is the key"),
        ("select count(*) from votes # x", "unexpected character '#'"),
    ] {
        let text = client.refusal(sql);
        assert!(text.starts_with("SQL error while compiling query: "), "{sql}: {text}");
        assert!(text.contains(part) && !text.contains('\n'), "{sql}: {text}");
    }
    for (sql, part) in [
        ("insert into contestants values (1, 'Again')", "the key 1 already"),
        ("insert into contestants values (null, 'X')", "NULL is not allowed"),
        ("insert into contestants values (2147483648, 'X')", "a number from"),
        ("insert into votes values (1, 'NYC', 1)", "at most 2 characters"),
        ("update votes set state = 7", "a text is expected"),
        ("select 1 / (contestant_number - 1) from contestants", "divide by zero"),
        ("select max(phone_number) * 9999999999999 from votes", "does not fit into BIGINT"),
    ] {
        let text = client.refusal(sql);
        assert!(text.starts_with("VOLTDB ERROR: ") && text.contains(part), "{sql}: {text}");
    }
    let deep = format!("select {}1{} from votes", "(".repeat(500), ")".repeat(500));
    assert!(client.refusal(&deep).contains("nested more than"));
    let long = format!("select 1{} from votes", "+1".repeat(20_000));
    assert!(client.refusal(&long).contains("operators in one statement"));
    let many = vec!["state = 'NY'"; 5_000].join(" or ");
    assert_eq!(client.cell(&format!("select count(*) from votes where {many}")), "8");
    // What is wrong is one line, however long the statement, and nothing goes on for ever.
    let long = "x\n".repeat(500_000);
    let text = client.refusal(&format!("select count(*) from votes where state = 'a' '{long}'"));
    assert!(text.contains("'x x") && text.len() < 2_000 && !text.contains('\n'), "{}", text.len());
    let text = client.refusal(&format!("select '{long}{long}' from votes"));
    assert!(text.contains("more than 1048576 bytes"), "{text}");
    let (text, pattern) = ("a".repeat(500_000), "a".repeat(250_000));
    let sql = format!("select count(*) from votes where '{text}' like '%{pattern}b%'");
    assert!(client.refusal(&sql).contains("too long"));
    // Nothing runs when one of them cannot be understood.
    assert!(client.refusal("delete from votes; select wine from votes").contains("WINE"));
    assert_eq!(client.cell("select count(*) from votes"), "15");
}

#[test]
fn several_statements_are_done_together_or_not_at_all() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    client.call("Insert", &["French", "Bonjour", "Monde"].map(Value::String));
    let everything = |client: &mut Client| {
        [
            "select * from votes order by 1, 2, 3",
            "select * from v_votes_by_phone_number order by 1",
            "select * from v_votes_by_contestant_number_state order by 1, 2",
            "select * from contestants order by 1",
            "select count(*), min(state) from area_code_state",
            "select * from helloworld order by dialect",
        ]
        .map(|sql| client.rows(sql))
    };
    let before = everything(&mut client);
    let changes = [
        "insert into votes values (2120000009, 'NY', 4)",
        "delete from votes where state = 'XX'",
        "insert into votes values (2120000010, 'QQ', 5)",
        "update votes set contestant_number = 6",
        "truncate table votes",
        "insert into contestants values (7, 'Zoe')",
        "update area_code_state set state = 'AA'",
        "insert into helloworld values ('Hallo', 'Welt', 'German')",
        "delete from helloworld where dialect = 'French'",
    ];
    let wrong = "insert into contestants values (1, 'Again')";
    for from in 0..changes.len() {
        for to in from + 1..=changes.len() {
            let sql = format!("{}; {wrong}; select 1 from votes", changes[from..to].join("; "));
            assert!(client.refusal(&sql).contains("the key 1 already"), "{sql}");
            assert!(everything(&mut client) == before, "{sql}");
        }
    }
    // A result that is too long undoes as well.
    let text = "long".repeat(500);
    let long = format!("select '{text}' from area_code_state a, area_code_state b limit 8000");
    let sql = format!("truncate table votes; {long}; {long}; {long}; {long}");
    assert!(client.refusal(&sql).contains("50 MiB together"));
    assert!(everything(&mut client) == before);
    let answer = client.call("@AdHoc", &[Value::String(&changes[..4].join("; "))]);
    let touched: Vec<&str> = answer.tables.iter().map(|table| table.1[0][0].as_str()).collect();
    assert_eq!(touched, ["1", "2", "1", "15"]);
    assert_eq!(client.vote(2_120_000_009, 1, 1), 2, "it counts");
    assert_eq!(client.vote(1_000_002_000, 1, 1), 0, "that one's vote is gone");
}

/// The answer to a statement that may take 50 ms.
fn hurried(client: &mut Client, params: &[Value<'_>]) -> super::Answered {
    let mut request = plimsoll_wire::volt::Request::default();
    let form = plimsoll_wire::volt::Form { timeout_ms: Some(50), ..Default::default() };
    request.begin("@AdHoc", &form);
    for param in params {
        request.param(param);
    }
    let mut bytes = Vec::new();
    request.put(5, &mut bytes);
    client.send(&bytes);
    client.answer()
}

#[test]
fn a_product_of_tables_that_never_ends_is_ended() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    let product = "select count(*) from area_code_state a, area_code_state b, area_code_state c, \
                   area_code_state d where a.area_code + b.area_code + c.area_code = d.area_code + 1";
    let answer = hurried(&mut client, &[Value::String(product)]);
    assert!(answer.status == -2 && answer.text.contains("timeout period"), "{answer:?}");
    assert_eq!(client.vote(9_990_000_000, 1, 1), 0, "and the partitions are free again");
}

/// Few rows, of which each takes long.
#[test]
fn long_texts_do_not_outlast_the_time_of_a_statement() {
    let server = TestServer::plain();
    let mut client = voted(&server);
    let long = "a".repeat(1 << 20);
    let upper = "upper(".repeat(20) + "?" + &")".repeat(20);
    for (sql, count) in [
        ("select count(*) from area_code_state where ? like '%b'".to_owned(), 1),
        (format!("select count(*) from area_code_state where {upper} = 'b'"), 1),
        ("delete from area_code_state where ? like '%b' or ? like '%c'".to_owned(), 2),
    ] {
        let mut params = vec![Value::String(&sql)];
        params.extend(std::iter::repeat_n(Value::String(&long), count));
        let answer = hurried(&mut client, &params);
        assert!(answer.status == -2 && answer.text.contains("timeout period"), "{sql}: {answer:?}");
    }
    assert_eq!(client.vote(9_990_000_000, 1, 1), 0, "and the partitions are free again");
}
