//! Responses: as servers were seen to send them, with every part that they may have.

use plimsoll_wire::volt::{
    Answer, DecodeError, FRAME_HEAD_BYTES, Kind, NO_APP_STATUS, Response, ResponseWriter, Status,
    TableView, Topology, Value,
};
use proptest::prelude::*;

use crate::made;
use crate::session::hex;

const VOTED: &str = "00000032 00 0000000000000002 00 01 80 00000000 0001 0000001c
    00000008 80 0001 06 00000000 00000001 00000008 0000000000000000";

#[test]
fn the_answer_to_a_vote_is_as_it_was_seen() {
    let (mut at_once, mut by_rows) = (Vec::new(), Vec::new());
    ResponseWriter::vote_like(&mut at_once, 2, 0, 0);
    assert_eq!(at_once, hex(VOTED));
    let mut writer = ResponseWriter::success(&mut by_rows, 2, 0);
    writer.table(&[("", Kind::BigInt)]).row(&[Value::BigInt(0)]);
    assert_eq!(by_rows, at_once);
    let response = Response::read(&at_once[FRAME_HEAD_BYTES..]).unwrap();
    assert!(response.is_success());
    assert_eq!((response.handle, response.status, response.long()), (2, Status::SUCCESS, Some(0)));
    assert_eq!((response.app_status, response.round_trip_ms), (NO_APP_STATUS, 0));
    assert_eq!((response.status_text, response.app_text), (None, None));
    assert_eq!((response.tables.len(), response.bytes), (1, 50));
}

#[test]
fn numbers_stand_where_they_belong() {
    let mut bytes = vec![9];
    ResponseWriter::vote_like(&mut bytes, -77, 1 << 50, 12);
    let response = Response::read(&bytes[1 + FRAME_HEAD_BYTES..]).unwrap();
    assert_eq!((response.handle, response.long()), (-77, Some(1 << 50)));
    assert_eq!(response.round_trip_ms, 12);
}

#[test]
fn a_failure_has_a_text_and_no_tables() {
    let mut bytes = Vec::new();
    let text = "Procedure NoSuch was not found";
    ResponseWriter::failure(&mut bytes, 5, Status::UNEXPECTED_FAILURE, text, 1);
    let expected = r#"00000034 00 0000000000000005 20 fd 0000001e "Procedure NoSuch was not found"
        80 00000001 0000"#;
    assert_eq!(bytes, hex(expected));
    let response = Response::read(&bytes[FRAME_HEAD_BYTES..]).unwrap();
    assert!(!response.is_success());
    assert_eq!((response.status_text, response.tables.is_empty()), (Some(text), true));
    assert_eq!((response.long(), response.table(0)), (None, None));
}

#[test]
fn parts_of_no_meaning_are_passed_over() {
    let body = hex(r#"00 0000000000000007 f0 fe 00000002 "no" 03 00000003 "app" 00000009
        00000004 deadbeef 0002 00000001 00000002 0000"#);
    let response = Response::read(&body).unwrap();
    assert_eq!((response.status_text, response.app_text), (Some("no"), Some("app")));
    assert_eq!((response.app_status, response.round_trip_ms), (3, 9));
    // Texts may be null although they are said to be there.
    let body = hex("00 0000000000000007 a0 fe ffffffff 80 ffffffff 00000000 0000");
    let response = Response::read(&body).unwrap();
    assert_eq!((response.status_text, response.app_text), (None, None));
}

#[test]
fn wrong_responses_are_refused() {
    let head = "00 0000000000000001 00 01 80 00000000";
    for (text, error) in [
        ("01 0000000000000001 00 01 80 00000000 0000".to_owned(), DecodeError::Version(1)),
        (head.to_owned(), DecodeError::Cut),
        (format!("{head} ffff"), DecodeError::Length(-1)),
        (format!("{head} 0001"), DecodeError::Cut),
        (format!("{head} 0001 ffffffff"), DecodeError::Length(-1)),
        (format!("{head} 0002 00000000 00000001"), DecodeError::Cut),
    ] {
        assert_eq!(Response::read(&hex(&text)).err(), Some(error), "{text}");
    }
    // A table that is none does not spoil the others.
    let body = hex(&format!("{head} 0002 00000000 0000000b 00000003 80 0000 00000000"));
    let response = Response::read(&body).unwrap();
    let tables: Vec<_> = response.tables.collect();
    assert_eq!(tables[0], Err(DecodeError::Cut));
    assert!(tables[1].is_ok());
    assert_eq!((response.table(0), response.table(1)), (None, tables[1].ok()));
}

#[test]
fn statuses_have_names_of_their_own() {
    let names: Vec<_> = (-18..=1).filter(|&status| status != 0).map(Status::name).collect();
    let mut different = names.clone();
    different.sort_unstable();
    different.dedup();
    assert_eq!(different.len(), names.len());
    assert!(!names.contains(&Status::name(99)));
    for status in i8::MIN..=i8::MAX {
        let is_unknown = [-4, -6, -7, -16].contains(&status);
        assert_eq!(Status::is_unknown_outcome(status), is_unknown, "{status}");
    }
}

/// Two partitions at two hosts, as `@Statistics TOPO` tells of them.
fn topology(config: &[u8], kind: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    let mut writer = ResponseWriter::success(&mut bytes, 1, 0);
    let columns = [("Partition", Kind::Integer), ("Sites", Kind::String), ("Leader", Kind::String)];
    let mut sites = writer.table(&columns);
    for (partition, leader) in [(16_383, "0:3"), (1, "1:0"), (0, "0:0"), (2, "")] {
        let all = Value::String("0:0,1:0");
        sites.row(&[Value::Integer(partition), all, Value::String(leader)]);
    }
    let columns = [("HASHTYPE", Kind::String), ("HASHCONFIG", Kind::VarBinary)];
    writer.table(&columns).row(&[Value::String(kind), Value::VarBinary(config)]);
    bytes
}

#[test]
fn leaders_are_told_by_the_topology() {
    let ring = plimsoll_wire::volt::Ring::even(2);
    let bytes = topology(&ring.to_bytes(), "ELASTIC");
    let response = Response::read(&bytes[FRAME_HEAD_BYTES..]).unwrap();
    let topology_read = Topology::read(&response).unwrap();
    assert_eq!(topology_read.ring, ring);
    assert_eq!(topology_read.leaders(), [(0, 0), (1, 1), (16_383, 0)]);
    assert_eq!((topology_read.leader_of(1), topology_read.leader_of(2)), (Some(1), None));
    for key in 0..50 {
        let leader = topology_read.leader_of(ring.partition_of_long(key));
        assert_eq!(topology_read.leader_of_long(key), leader);
        assert!(leader.is_some());
    }
    let mut failed = Vec::new();
    ResponseWriter::failure(&mut failed, 1, Status::UNEXPECTED_FAILURE, "no", 0);
    let mut other = Vec::new();
    ResponseWriter::vote_like(&mut other, 1, 1, 1);
    for wrong in [failed, other, topology(&ring.to_bytes(), "LEGACY"), topology(&[1], "ELASTIC")] {
        let response = Response::read(&wrong[FRAME_HEAD_BYTES..]).unwrap();
        assert!(Topology::read(&response).is_err());
    }
}

proptest! {
    #[test]
    fn responses_come_back_as_they_went_out(parts in made::response()) {
        let bytes = parts.bytes(parts.handle);
        prop_assert_eq!(&bytes[..4], ((bytes.len() - 4) as u32).to_be_bytes());
        let response = Response::read(&bytes[FRAME_HEAD_BYTES..]).unwrap();
        prop_assert_eq!((response.handle, response.status), (parts.handle, parts.status));
        prop_assert_eq!(response.status_text, parts.status_text.as_deref());
        prop_assert_eq!((response.app_status, response.app_text), (parts.app_status, parts.app_text.as_deref()));
        prop_assert_eq!(response.round_trip_ms, parts.round_trip_ms);
        let tables: Vec<_> = response.tables.map(Result::unwrap).collect();
        let expected: Vec<TableView<'_>> = parts.tables.iter().map(made::Table::view).collect();
        prop_assert_eq!(&tables, &expected);
        for (place, table) in tables.iter().enumerate() {
            prop_assert_eq!(response.table(place), Some(*table));
        }
    }

    #[test]
    fn a_cut_response_is_noticed(parts in made::response(), cut: prop::sample::Index) {
        let bytes = parts.bytes(1);
        let body = &bytes[FRAME_HEAD_BYTES..];
        prop_assert!(Response::read(&body[..cut.index(body.len())]).is_err());
    }
}

#[test]
fn an_answer_is_success_unless_it_says_otherwise() {
    let mut bytes = Vec::new();
    ResponseWriter::new(&mut bytes, &Answer::default());
    let response = Response::read(&bytes[FRAME_HEAD_BYTES..]).unwrap();
    assert!(response.is_success() && response.tables.is_empty());
}
