//! Hosts of partitions, and the keys that belong to them.

use crate::message::write_table;
use crate::result::{Datum, ResultTable, Type};
use crate::shared::Shared;
use flate2::Compression;
use flate2::write::GzEncoder;
use plimsoll_wire::volt::{Kind, MULTI_PARTITION, TableWriter, Value};
use std::io::Write;

/// `@Statistics TOPO`: who leads each partition, and the hash ring, as it is or as compressed JSON.
pub(super) fn tables(shared: &Shared, is_json: bool) -> Result<Vec<Vec<u8>>, String> {
    let columns = [("Partition", Type::Integer), ("Sites", Type::Text), ("Leader", Type::Text)];
    let mut leaders = ResultTable::new(&columns);
    let partitions = 0..shared.routing.partitions() as i64;
    for partition in partitions.chain([i64::from(MULTI_PARTITION)]) {
        let site = if partition == i64::from(MULTI_PARTITION) { 0 } else { partition };
        let site = Datum::text(format!("0:{site}"));
        leaders.rows.push(vec![Datum::Int(partition), site.clone(), site]);
    }
    let ring = shared.routing.ring.to_bytes();
    let config = if is_json { compressed_json(&ring)? } else { ring };
    let mut hash = Vec::with_capacity(config.len() + 64);
    let columns = [("HASHTYPE", Kind::String), ("HASHCONFIG", Kind::VarBinary)];
    TableWriter::new(&mut hash, &columns)
        .row(&[Value::String("ELASTIC"), Value::VarBinary(&config)]);
    Ok(vec![write_table(&leaders), hash])
}

/// `{"token":partition,...}` of the ring's bytes: a count, then pairs.
fn compressed_json(ring: &[u8]) -> Result<Vec<u8>, String> {
    let mut text = String::from("{");
    let numbers = ring.get(4..).unwrap_or_default().chunks_exact(4);
    let numbers: Vec<i32> =
        numbers.map(|bytes| i32::from_be_bytes(bytes.try_into().unwrap_or_default())).collect();
    for (place, pair) in numbers.chunks_exact(2).enumerate() {
        let comma = if place == 0 { "" } else { "," };
        text.push_str(&format!("{comma}\"{}\":{}", pair[0], pair[1]));
    }
    text.push('}');
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    let written = encoder.write_all(text.as_bytes()).and_then(|()| encoder.finish());
    written.map_err(|error| format!("the hash ring cannot be compressed: {error}"))
}

/// `@GetPartitionKeys`: a key of each partition.
pub(super) fn keys(shared: &Shared, kind: &str) -> Result<ResultTable, String> {
    let routing = &shared.routing;
    let partition = ("PARTITION_ID", Type::Integer);
    match kind {
        "INTEGER" => {
            let mut table = ResultTable::new(&[partition, ("PARTITION_KEY", Type::Integer)]);
            for (partition, key) in routing.ring.keys() {
                table.rows.push(vec![Datum::Int(partition.into()), Datum::Int(key.into())]);
            }
            Ok(table)
        }
        "STRING" | "VARCHAR" => {
            let mut table = ResultTable::new(&[partition, ("PARTITION_KEY", Type::Text)]);
            let mut found = vec![None; routing.partitions()];
            let mut missing = found.len();
            for key in (0..1_000_000).map(|key| key.to_string()) {
                let place = &mut found[routing.of_text(&key)];
                if place.is_none() {
                    *place = Some(key);
                    missing -= 1;
                }
                if missing == 0 {
                    break;
                }
            }
            for (partition, key) in (0i64..).zip(found) {
                if let Some(key) = key {
                    table.rows.push(vec![Datum::Int(partition), Datum::text(key)]);
                }
            }
            Ok(table)
        }
        _ => Err(format!("@GetPartitionKeys takes INTEGER or STRING, not {kind}")),
    }
}
