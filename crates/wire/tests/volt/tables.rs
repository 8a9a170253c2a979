//! Tables: as servers were seen to send them, as they are written, and as they are refused.

use plimsoll_wire::volt::{DecodeError, Kind, TableView, TableWriter, Value};
use proptest::prelude::*;

use crate::made::{self, Owned};
use crate::session::hex;

#[test]
fn a_table_has_the_bytes_that_were_seen() {
    let mut bytes = Vec::new();
    TableWriter::new(&mut bytes, &[("", Kind::BigInt)]).row(&[Value::BigInt(0)]);
    let expected = hex("0000001c 00000008 80 0001 06 00000000 00000001 00000008 0000000000000000");
    assert_eq!(bytes, expected);
    let table = TableView::read(&bytes[4..]).unwrap();
    assert_eq!((table.long(), table.status()), (Some(0), -128));
    assert_eq!(table.bytes(), &bytes[4..]);
    // A table without columns and rows.
    bytes.clear();
    TableWriter::new(&mut bytes, &[]);
    assert_eq!(bytes, hex("0000000b 00000003 80 0000 00000000"));
    let table = TableView::read(&bytes[4..]).unwrap();
    assert_eq!((table.column_count(), table.row_count(), table.long()), (0, 0, None));
}

#[test]
fn cells_are_found_by_row_and_name() {
    let mut bytes = Vec::new();
    let columns = [
        ("CONTESTANT_NAME", Kind::String),
        ("CONTESTANT_NUMBER", Kind::Integer),
        ("TOTAL_VOTES", Kind::BigInt),
        ("HASH", Kind::VarBinary),
    ];
    let mut writer = TableWriter::new(&mut bytes, &columns);
    writer.row(&[
        Value::String("Edwina Burnam"),
        Value::Integer(1),
        Value::BigInt(1 << 40),
        Value::VarBinary(&[1]),
    ]);
    // Narrower and wider numbers take the width of the column.
    writer.row(&[Value::Null, Value::BigInt(2), Value::TinyInt(-5), Value::Null]);
    assert_eq!(writer.row_count(), 2);
    let table = TableView::read(&bytes[4..]).unwrap();
    assert_eq!((table.column_count(), table.row_count()), (4, 2));
    let found: Vec<_> = table.columns().map(|column| (column.name, column.kind)).collect();
    assert_eq!(found, columns);
    assert_eq!(table.column("total_votes"), Some(2));
    assert_eq!(table.column("VOTES"), None);
    assert_eq!(table.long(), None, "it has more than a cell");
    let rows: Vec<_> = table.rows().map(Result::unwrap).collect();
    assert_eq!(rows[0].text(0), Some("Edwina Burnam"));
    assert_eq!((rows[0].long(1), rows[0].long(2)), (Some(1), Some(1 << 40)));
    assert_eq!(rows[0].bytes(3), Some(&[1][..]));
    assert_eq!((rows[1].text(0), rows[1].long(1), rows[1].long(2)), (None, Some(2), Some(-5)));
    assert_eq!(rows[1].value(1), Ok(Value::Integer(2)));
    assert_eq!((rows[1].value(3), rows[1].bytes(3)), (Ok(Value::Null), None));
    assert_eq!(rows[1].value(4), Err(DecodeError::Table));
    assert_eq!((rows[0].long(0), rows[0].text(1)), (None, None), "another type");
}

#[test]
fn wrong_tables_are_refused() {
    for (text, error) in [
        ("", DecodeError::Cut),
        ("ffffffff", DecodeError::Length(-1)),
        ("7fffffff 80 0000", DecodeError::Cut),
        ("00000003 80 ffff 00000000", DecodeError::Length(-1)),
        ("00000003 80 0001 00000000", DecodeError::Cut),
        ("00000008 80 0001 0a 00000000 00000000", DecodeError::Kind(10)),
        ("00000008 80 0001 06 ffffffff 00000000", DecodeError::NoText),
        ("00000009 80 0001 06 00000001 ff 00000000", DecodeError::Utf8),
        ("00000003 80 0000", DecodeError::Cut),
        ("00000003 80 0000 ffffffff", DecodeError::Length(-1)),
        ("00000003 80 0000 00000002 00000000", DecodeError::Length(2)),
    ] {
        assert_eq!(TableView::read(&hex(text)).err(), Some(error), "{text}");
    }
    // Rows are looked at when they are asked for, and the first that is wrong is the last.
    let head = "00000008 80 0001 06 00000000 00000002";
    for (rows, error) in [
        ("00000008 0000000000000001 00000009", DecodeError::Cut),
        ("00000008 0000000000000001 ffffffff", DecodeError::Length(-1)),
        ("00000008 0000000000000001 fffffffe", DecodeError::Length(-2)),
    ] {
        let bytes = hex(&[head, rows].concat());
        let mut found = TableView::read(&bytes).unwrap().rows();
        assert_eq!(found.next().unwrap().unwrap().long(0), Some(1));
        assert_eq!(found.next().unwrap().err(), Some(error), "{rows}");
        assert!(found.next().is_none());
    }
    let bytes = hex(&[head, "00000004 00000001 00000000"].concat());
    let row = TableView::read(&bytes).unwrap().rows().next().unwrap().unwrap();
    assert_eq!(row.values().collect::<Vec<_>>(), [Err(DecodeError::Cut)]);
    assert_eq!(row.long(0), None);
}

#[test]
fn the_number_of_a_single_cell_is_that_of_its_value() {
    for (kind, value) in [
        (Kind::BigInt, Value::BigInt(-7)),
        (Kind::BigInt, Value::Null),
        (Kind::Integer, Value::Integer(1 << 30)),
        (Kind::TinyInt, Value::TinyInt(3)),
        (Kind::Timestamp, Value::Timestamp(1 << 50)),
        (Kind::Float, Value::Float(1.0)),
        (Kind::String, Value::String("12345678")),
    ] {
        let mut out = Vec::new();
        TableWriter::new(&mut out, &[("", kind)]).row(&[value]);
        assert_eq!(TableView::read(&out[4..]).unwrap().long(), value.long(), "{value:?}");
    }
    let cut = hex("00000008 80 0001 06 00000000 00000001 00000004 00000001");
    assert_eq!(TableView::read(&cut).unwrap().long(), None);
}

proptest! {
    #[test]
    fn tables_come_back_as_they_went_out(table in made::table()) {
        prop_assert_eq!(&table.bytes[..4], ((table.bytes.len() - 4) as u32).to_be_bytes());
        let view = table.view();
        let columns: Vec<_> =
            view.columns().map(|column| (column.name.to_owned(), column.kind)).collect();
        prop_assert_eq!(&columns, &table.columns);
        prop_assert_eq!(view.row_count(), table.rows.len());
        prop_assert_eq!(view.rows().count(), table.rows.len());
        for (row, expected) in view.rows().zip(&table.rows) {
            let row = row.unwrap();
            let values: Vec<_> = row.values().collect::<Result<_, _>>().unwrap();
            prop_assert_eq!(&values, &expected.iter().map(Owned::value).collect::<Vec<_>>());
            for (place, value) in values.iter().enumerate() {
                prop_assert_eq!(row.value(place), Ok(*value));
                prop_assert_eq!(row.long(place), value.long());
            }
        }
    }

    /// However it is cut, the table says so, or one of its rows does.
    #[test]
    fn a_cut_table_is_noticed(table in made::table(), cut: prop::sample::Index) {
        let bytes = &table.bytes[4..];
        let is_noticed = match TableView::read(&bytes[..cut.index(bytes.len())]) {
            Ok(view) => view.rows().any(|row| row.is_err()),
            Err(_) => true,
        };
        prop_assert!(is_noticed);
    }
}
