//! The system procedures, as clients ask them when they connect and as people ask them.

use super::{Answered, Client, TestServer};
use crate::{Durability, VoterConfig};
use flate2::read::GzDecoder;
use plimsoll_wire::volt::{MULTI_PARTITION, Request, Response, Ring, Topology, Value};
use std::io::Read;

fn ask(client: &mut Client, procedure: &str, selector: &str) -> Answered {
    let answer = client.call(procedure, &[Value::String(selector)]);
    assert_eq!(answer.status, 1, "{procedure} {selector}: {answer:?}");
    answer
}

/// A value of a statistic's row, by the names of the row and the column.
fn value(answer: &Answered, row: &str, column: &str) -> String {
    let (columns, rows) = &answer.tables[0];
    let place = columns.iter().position(|name| name == column).unwrap();
    rows.iter().find(|cells| cells.iter().any(|cell| cell == row)).unwrap()[place].clone()
}

#[test]
fn the_topology_tells_where_every_key_is() {
    let server = TestServer::start(VoterConfig { partitions: 3, ..VoterConfig::default() });
    let mut client = server.client();
    assert_eq!(client.call("@Subscribe", &[Value::String("TOPOLOGY")]).status, 1);
    let mut request = Request::default();
    Topology::ask(&mut request);
    let mut bytes = Vec::new();
    request.put(-2, &mut bytes);
    client.send(&bytes);
    let message = client.message().unwrap();
    let response = Response::read(&message).unwrap();
    let topology = Topology::read(&response).unwrap();
    for partition in [0, 1, 2, MULTI_PARTITION] {
        assert_eq!(topology.leader_of(partition), Some(0));
    }
    assert_eq!(topology.leader_of(3), None);
    let config = response.table(1).unwrap().rows().next().unwrap().unwrap();
    let ring = Ring::read(config.bytes(1).unwrap()).unwrap();
    assert_eq!(config.text(0), Some("ELASTIC"));
    // Each partition has a key of its own, and a row goes where the ring says.
    let keys = client.call("@GetPartitionKeys", &[Value::String("INTEGER")]);
    assert_eq!(keys.tables[0].1.len(), 3);
    for row in &keys.tables[0].1 {
        assert_eq!(ring.partition_of_long(row[1].parse().unwrap()).to_string(), row[0]);
    }
    for row in &ask(&mut client, "@GetPartitionKeys", "string").tables[0].1 {
        assert_eq!(ring.partition_of_str(&row[1]).to_string(), row[0]);
    }
    client.long("Initialize", &[Value::Integer(1), Value::String("A")]);
    for phone in 2_120_000_000..2_120_000_030 {
        client.vote(phone, 1, 1);
    }
    let tables = client.call("@Statistics", &[Value::String("TABLE"), Value::Integer(0)]);
    let (columns, rows) = &tables.tables[0];
    let place = |name: &str| columns.iter().position(|column| column == name).unwrap();
    for partition in 0..3 {
        let expected = (2_120_000_000..2_120_000_030)
            .filter(|phone| ring.partition_of_long(*phone) == partition)
            .count();
        let row = rows.iter().find(|row| {
            row[place("TABLE_NAME")] == "VOTES"
                && row[place("PARTITION_ID")] == partition.to_string()
        });
        assert_eq!(row.unwrap()[place("TUPLE_COUNT")], expected.to_string());
    }
}

#[test]
fn the_topology_is_also_compressed_json() {
    let server = TestServer::plain();
    let mut client = server.client();
    client.submit("@Statistics", &[Value::String("TOPO"), Value::Integer(1)]);
    let message = client.message().unwrap();
    let response = Response::read(&message).unwrap();
    let row = response.table(1).unwrap().rows().next().unwrap().unwrap();
    let mut text = String::new();
    GzDecoder::new(row.bytes(1).unwrap()).read_to_string(&mut text).unwrap();
    let json: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&text).unwrap();
    assert_eq!(json.len(), 16_384);
    assert_eq!(json[&i32::MIN.to_string()], 0);
}

#[test]
fn the_catalogue_lists_procedures_tables_and_columns() {
    let server = TestServer::plain();
    let mut client = server.client();
    let procedures = ask(&mut client, "@SystemCatalog", "PROCEDURES");
    assert_eq!(procedures.tables[0].0.len(), 9);
    let remarks = value(&procedures, "Vote", "REMARKS");
    assert_eq!(
        remarks,
        "{\"readOnly\":false,\"singlePartition\":true,\"partitionParameter\":0,\
         \"partitionParameterType\":6}"
    );
    assert_eq!(
        value(&procedures, "Results", "REMARKS"),
        "{\"readOnly\":true,\"singlePartition\":false}"
    );
    assert_eq!(procedures.tables[0].1.len(), 7);
    let tables = ask(&mut client, "@SystemCatalog", "TABLES");
    assert_eq!(value(&tables, "VOTES", "TABLE_TYPE"), "TABLE");
    assert_eq!(value(&tables, "V_VOTES_BY_PHONE_NUMBER", "TABLE_TYPE"), "VIEW");
    let columns = ask(&mut client, "@SystemCatalog", "COLUMNS");
    assert_eq!(value(&columns, "AREA_CODE", "TYPE_NAME"), "SMALLINT");
    let wrong = client.call("@SystemCatalog", &[Value::String("WINES")]);
    assert_eq!(wrong.status, -2);
}

#[test]
fn statistics_are_what_was_measured() {
    let server = TestServer::plain();
    let mut client = server.voter();
    for number in 0..40 {
        client.vote(2_120_000_000 + number, 1, 1);
    }
    client.call("Insert", &["a", "b", "c"].map(Value::String));
    client.call("Insert", &["a", "b", "c"].map(Value::String));
    let profile = ask(&mut client, "@Statistics", "procedureprofile");
    assert_eq!(value(&profile, "Vote", "INVOCATIONS"), "40");
    assert_eq!(value(&profile, "Insert", "ABORTS"), "1");
    assert_eq!(value(&profile, "Initialize", "INVOCATIONS"), "1");
    let number = |text: String| text.parse::<i64>().unwrap();
    let [min, avg, max] = ["MIN", "AVG", "MAX"].map(|name| number(value(&profile, "Vote", name)));
    assert!(0 < max && min <= avg && avg <= max, "{min} {avg} {max}");
    let procedures = ask(&mut client, "@Statistics", "PROCEDURE");
    let (columns, rows) = &procedures.tables[0];
    let place = |name: &str| columns.iter().position(|column| column == name).unwrap();
    let votes = rows.iter().filter(|row| row[place("PROCEDURE")] == "Vote");
    let sum: i64 = votes.map(|row| row[place("INVOCATIONS")].parse::<i64>().unwrap()).sum();
    assert_eq!(sum, 40);
    let initiators = ask(&mut client, "@Statistics", "INITIATOR");
    assert_eq!(value(&initiators, "Vote", "INVOCATIONS"), "40");
    assert_eq!(value(&initiators, "Vote", "CONNECTION_HOSTNAME"), "127.0.0.1");
    // 40 votes, 2 inserts, Initialize, and the three asked before.
    let latency = ask(&mut client, "@Statistics", "LATENCY");
    let count = latency.tables[0].0.iter().position(|name| name == "COUNT").unwrap();
    assert_eq!(latency.tables[0].1[0][count], "46");
    let interval = |client: &mut Client| {
        let asked = client.call("@Statistics", &[Value::String("LATENCY"), Value::Integer(1)]);
        number(asked.tables[0].1[0][count].clone())
    };
    assert_eq!(interval(&mut client), 47);
    client.vote(2_130_000_000, 1, 1);
    // The vote, and the call that asked before.
    assert_eq!(interval(&mut client), 2);
    for selector in ["MEMORY", "CPU"] {
        assert_eq!(ask(&mut client, "@Statistics", selector).tables[0].1.len(), 1);
    }
    let wrong = client.call("@Statistics", &[Value::String("WINE"), Value::Integer(0)]);
    assert!(wrong.status == -2 && wrong.text.contains("WINE"), "{wrong:?}");
}

#[test]
fn the_system_says_what_it_is() {
    let server = TestServer::start(VoterConfig { partitions: 3, ..VoterConfig::default() });
    let mut client = server.client();
    let overview = client.call("@SystemInformation", &[]);
    assert_eq!(overview.tables[0].0, ["HOST_ID", "KEY", "VALUE"]);
    assert_eq!(value(&overview, "CLIENTPORT", "VALUE"), server.address.port().to_string());
    assert_eq!(value(&overview, "CLUSTERSTATE", "VALUE"), "Running");
    let deployment = ask(&mut client, "@SystemInformation", "DEPLOYMENT");
    assert_eq!(value(&deployment, "sitesperhost", "VALUE"), "3");
    assert_eq!(value(&deployment, "commandlogmode", "VALUE"), Durability::None.name());
    assert_eq!(client.call("@Quiesce", &[]).status, 1);
}
