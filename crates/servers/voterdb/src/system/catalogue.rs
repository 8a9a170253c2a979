//! `@SystemCatalog`: procedures, tables and columns, in the shape of JDBC's metadata.

use crate::procedures::{Place, Procedure};
use crate::result::{Datum, ResultTable, Type};
use crate::sql::TABLES;
use serde_json::json;

/// The table of this name.
pub(super) fn table(selector: &str) -> Result<ResultTable, String> {
    match selector {
        "PROCEDURES" => Ok(procedures()),
        "TABLES" => Ok(tables()),
        "COLUMNS" => Ok(columns()),
        _ => Err(format!(
            "Invalid @SystemCatalog selector {selector}; known: PROCEDURES, TABLES, COLUMNS"
        )),
    }
}

fn procedures() -> ResultTable {
    let mut table = ResultTable::new(&[
        ("PROCEDURE_CAT", Type::Text),
        ("PROCEDURE_SCHEM", Type::Text),
        ("PROCEDURE_NAME", Type::Text),
        ("RESERVED1", Type::Text),
        ("RESERVED2", Type::Text),
        ("RESERVED3", Type::Text),
        ("REMARKS", Type::Text),
        ("PROCEDURE_TYPE", Type::SmallInt),
        ("SPECIFIC_NAME", Type::Text),
    ]);
    for procedure in Procedure::ALL.into_iter().filter(|one| one.is_application()) {
        let is_single = procedure.place() == Place::Partition;
        let mut remarks =
            json!({ "readOnly": procedure.is_read_only(), "singlePartition": is_single });
        if is_single {
            // A phone number (BIGINT) or a dialect (VARCHAR).
            let kind = if procedure == Procedure::Vote { 6 } else { 9 };
            remarks["partitionParameter"] = json!(0);
            remarks["partitionParameterType"] = json!(kind);
        }
        let mut row = vec![Datum::Null; 9];
        row[2] = Datum::text(procedure.name());
        row[6] = Datum::text(remarks.to_string());
        row[7] = Datum::Int(0);
        row[8] = Datum::text(procedure.name());
        table.rows.push(row);
    }
    table
}

fn tables() -> ResultTable {
    let text = |name| (name, Type::Text);
    let mut table = ResultTable::new(&[
        text("TABLE_CAT"),
        text("TABLE_SCHEM"),
        text("TABLE_NAME"),
        text("TABLE_TYPE"),
        text("REMARKS"),
        text("TYPE_CAT"),
        text("TYPE_SCHEM"),
        text("TYPE_NAME"),
        text("SELF_REFERENCING_COL_NAME"),
        text("REF_GENERATION"),
    ]);
    for one in TABLES {
        let mut row = vec![Datum::Null; 10];
        row[2] = Datum::text(one.name());
        row[3] = Datum::text(if one.is_view() { "VIEW" } else { "TABLE" });
        if let Some(column) = one.partition_column() {
            row[4] = Datum::text(json!({ "partitionColumn": column }).to_string());
        }
        table.rows.push(row);
    }
    table
}

/// JDBC's number for a type, VoltDB's name, and the size that is reported.
fn jdbc(kind: Type, chars_max: usize) -> (i64, &'static str, i64) {
    match kind {
        Type::SmallInt => (5, "SMALLINT", 15),
        Type::Integer => (4, "INTEGER", 31),
        Type::BigInt | Type::Null => (-5, "BIGINT", 63),
        Type::Float => (8, "FLOAT", 53),
        Type::Text => (12, "VARCHAR", chars_max as i64),
    }
}

fn columns() -> ResultTable {
    let (text, int) = (|name| (name, Type::Text), |name| (name, Type::Integer));
    let mut table = ResultTable::new(&[
        text("TABLE_CAT"),
        text("TABLE_SCHEM"),
        text("TABLE_NAME"),
        text("COLUMN_NAME"),
        int("DATA_TYPE"),
        text("TYPE_NAME"),
        int("COLUMN_SIZE"),
        int("BUFFER_LENGTH"),
        int("DECIMAL_DIGITS"),
        int("NUM_PREC_RADIX"),
        int("NULLABLE"),
        text("REMARKS"),
        text("COLUMN_DEF"),
        int("SQL_DATA_TYPE"),
        int("SQL_DATETIME_SUB"),
        int("CHAR_OCTET_LENGTH"),
        int("ORDINAL_POSITION"),
        text("IS_NULLABLE"),
        text("SCOPE_CATALOG"),
        text("SCOPE_SCHEMA"),
        text("SCOPE_TABLE"),
        ("SOURCE_DATA_TYPE", Type::SmallInt),
        text("IS_AUTOINCREMENT"),
    ]);
    for one in TABLES {
        for (place, column) in (1..).zip(one.columns()) {
            let (number, name, size) = jdbc(column.kind, column.chars_max);
            let is_number = column.kind != Type::Text;
            let mut row = vec![Datum::Null; 23];
            row[2] = Datum::text(one.name());
            row[3] = Datum::text(column.name);
            row[4] = Datum::Int(number);
            row[5] = Datum::text(name);
            row[6] = Datum::Int(size);
            row[9] = if is_number { Datum::Int(2) } else { Datum::Null };
            row[10] = Datum::Int(column.is_nullable.into());
            if one.partition_column() == Some(column.name) {
                row[11] = Datum::text("PARTITION_COLUMN");
            }
            // Four bytes a character, at most.
            row[15] = if is_number { Datum::Null } else { Datum::Int(size * 4) };
            row[16] = Datum::Int(place);
            row[17] = Datum::text(if column.is_nullable { "YES" } else { "NO" });
            row[22] = Datum::text("NO");
            table.rows.push(row);
        }
    }
    table
}
