//! Values: the bytes of every type, and of its null.

use plimsoll_wire::volt::{
    ArrayWriter, Call, DecodeError, FRAME_HEAD_BYTES, Kind, Request, TableView, TableWriter, Value,
};
use proptest::prelude::*;

use crate::made::{self, COLUMN_KINDS, Owned};
use crate::session::hex;

/// The bytes of one parameter, its type among them, and what is read from them.
fn param(write: impl FnOnce(&mut Request), check: impl FnOnce((Kind, Value<'_>))) -> Vec<u8> {
    let mut request = Request::default();
    request.call("P", &[]);
    let head = request.bytes().len();
    write(&mut request);
    let call = Call::read(&request.bytes()[FRAME_HEAD_BYTES..]).unwrap();
    assert_eq!(call.params().len(), 1);
    check(call.params().next().unwrap().unwrap());
    request.bytes()[head..].to_vec()
}

#[test]
fn values_have_the_bytes_that_were_seen() {
    let point = Value::Point { longitude: 2.5, latitude: -1.0 };
    for (value, bytes) in [
        (Value::Null, "01"),
        (Value::TinyInt(-2), "03 fe"),
        (Value::SmallInt(258), "04 0102"),
        (Value::Integer(4), "05 00000004"),
        (Value::BigInt(4_803_997_460), "06 000000011e572f14"),
        (Value::Float(1.5), "08 3ff8000000000000"),
        (Value::String("Zoë"), "09 00000004 5a6fc3ab"),
        (Value::String(""), "09 00000000"),
        (Value::Timestamp(1_000_000), "0b 00000000000f4240"),
        (Value::Decimal(1_500_000_000_000), "16 0000000000000000 0000015d3ef79800"),
        (Value::Decimal(-1), "16 ffffffffffffffffffffffffffffffff"),
        (Value::Boolean(true), "17 01"),
        (Value::Boolean(false), "17 00"),
        (Value::VarBinary(&[1, 2, 3]), "19 00000003 010203"),
        (point, "1a 4004000000000000 bff0000000000000"),
        (Value::Geography(&[9]), "1b 00000001 09"),
    ] {
        let written = param(
            |request| {
                request.param(&value);
            },
            |read| assert_eq!(read, (value.kind(), value)),
        );
        assert_eq!(written, hex(bytes), "{value:?}");
    }
}

/// The values that stand for null, as parameters and in the cells of tables.
const NULLS: [(Kind, &str); 14] = [
    (Kind::Null, ""),
    (Kind::TinyInt, "80"),
    (Kind::SmallInt, "8000"),
    (Kind::Integer, "80000000"),
    (Kind::BigInt, "8000000000000000"),
    (Kind::Float, "ffee42d130773b76"),
    (Kind::String, "ffffffff"),
    (Kind::Timestamp, "8000000000000000"),
    (Kind::Table, "ffffffff"),
    (Kind::Decimal, "80000000000000000000000000000000"),
    (Kind::Boolean, "80"),
    (Kind::VarBinary, "ffffffff"),
    (Kind::Point, "4076800000000000 4076800000000000"),
    (Kind::Geography, "ffffffff"),
];

#[test]
fn every_type_has_its_null() {
    for (kind, bytes) in NULLS {
        let written = param(
            |request| {
                request.null(kind);
            },
            |read| assert_eq!(read, (kind, Value::Null)),
        );
        assert_eq!(written, [vec![kind.code() as u8], hex(bytes)].concat(), "{kind:?}");
    }
    for kind in COLUMN_KINDS {
        assert!(NULLS.iter().any(|(known, _)| *known == kind), "{kind:?}");
    }
}

#[test]
fn cells_have_the_same_nulls() {
    let columns: Vec<_> = COLUMN_KINDS.iter().map(|kind| (kind.name(), *kind)).collect();
    let mut bytes = Vec::new();
    let mut table = TableWriter::new(&mut bytes, &columns);
    table.row(&[Value::Null; COLUMN_KINDS.len()]);
    let expected: Vec<u8> = COLUMN_KINDS
        .iter()
        .flat_map(|kind| hex(NULLS.iter().find(|(known, _)| known == kind).unwrap().1))
        .collect();
    assert!(bytes.ends_with(&expected), "{bytes:?}");
    let table = TableView::read(&bytes[4..]).unwrap();
    let row = table.rows().next().unwrap().unwrap();
    assert!(row.values().all(|value| value == Ok(Value::Null)));
    assert_eq!(row.values().count(), COLUMN_KINDS.len());
}

/// The engine has another null of FLOAT than clients, and both are the same to who reads.
#[test]
fn the_least_double_is_null_too() {
    for (bits, value) in [
        ("ffefffffffffffff", Value::Null),
        ("ffee42d130773b76", Value::Null),
        ("ffee42d130773b75", Value::Float(f64::from_bits(0xffee_42d1_3077_3b75))),
        ("fff0000000000000", Value::Float(f64::NEG_INFINITY)),
    ] {
        let body = [hex("00 00000001 50 0000000000000001 0001 08"), hex(bits)].concat();
        let read = Call::read(&body).unwrap().params().next().unwrap();
        assert_eq!(read, Ok((Kind::Float, value)), "{bits}");
    }
}

#[test]
fn arrays_have_the_bytes_that_clients_write() {
    let write = |kind, values: &[Value<'_>]| {
        let mut array = ArrayWriter::new(kind);
        for value in values {
            array.push(*value);
        }
        let value = Value::Array(array.view());
        param(
            |request| {
                request.param(&value);
            },
            |read| {
                let (Kind::Array, Value::Array(array)) = read else { panic!("{read:?}") };
                assert_eq!((array.kind(), array.len()), (kind, values.len()));
                assert_eq!(array.is_empty(), values.is_empty());
                assert!(array.iter().map(Result::unwrap).eq(values.iter().copied()));
            },
        )
    };
    let integers = [Value::Integer(1), Value::Null];
    assert_eq!(write(Kind::Integer, &integers), hex("9d 05 0002 00000001 80000000"));
    let texts = [Value::String("a"), Value::Null, Value::String("")];
    assert_eq!(write(Kind::String, &texts), hex("9d 09 0003 00000001 61 ffffffff 00000000"));
    // Of bytes there may be more than 32,767.
    let bytes = vec![Value::TinyInt(7); 40_000];
    let written = write(Kind::TinyInt, &bytes);
    assert_eq!(written[..6], hex("9d 03 00009c40"));
    assert_eq!(write(Kind::BigInt, &[]), hex("9d 06 0000"));
    for (text, error) in [
        ("9d 9d 0001", DecodeError::Element(Kind::Array)),
        ("9d 01 7fff", DecodeError::Element(Kind::Null)),
        ("9d 05 ffff", DecodeError::Length(-1)),
        ("9d 03 ffffffff", DecodeError::Length(-1)),
        ("9d 03 7fffffff 00", DecodeError::Cut),
        ("9d 06 0002 0000000000000001", DecodeError::Cut),
        ("9d 09 0001 fffffffe", DecodeError::Length(-2)),
        ("9d 0a 0001", DecodeError::Kind(10)),
    ] {
        let body = [hex("00 00000001 50 0000000000000001 0001"), hex(text)].concat();
        let read = Call::read(&body).unwrap().params().next().unwrap();
        assert_eq!(read, Err(error), "{text}");
    }
}

#[test]
fn types_have_their_codes_and_names() {
    let mut known = 0;
    for code in i8::MIN..=i8::MAX {
        match Kind::from_code(code) {
            Ok(kind) => {
                assert_eq!(kind.code(), code);
                assert!(!kind.name().is_empty());
                known += 1;
            }
            Err(error) => assert_eq!(error, DecodeError::Kind(code)),
        }
    }
    assert_eq!(known, 15);
}

#[test]
fn numbers_of_any_width_are_long() {
    for (value, long) in [
        (Value::TinyInt(-1), Some(-1)),
        (Value::SmallInt(2), Some(2)),
        (Value::Integer(3), Some(3)),
        (Value::BigInt(4), Some(4)),
        (Value::Timestamp(5), Some(5)),
        (Value::Float(6.0), None),
        (Value::Null, None),
    ] {
        assert_eq!(value.long(), long);
    }
    assert_eq!((Value::String("a").text(), Value::Null.text()), (Some("a"), None));
    assert_eq!((Value::VarBinary(b"a").bytes(), Value::Null.bytes()), (Some(&b"a"[..]), None));
}

proptest! {
    #[test]
    fn arrays_come_back_as_they_went_out((kind, values, array) in made::array()) {
        let value = Value::Array(array.view());
        param(
            |request| {
                request.param(&value);
            },
            |read| {
                assert_eq!(read, (Kind::Array, value));
                let Value::Array(read) = read.1 else { panic!("{read:?}") };
                assert_eq!((read.kind(), read.len()), (kind, values.len()));
                assert!(read.iter().map(Result::unwrap).eq(values.iter().map(Owned::value)));
            },
        );
    }
}
