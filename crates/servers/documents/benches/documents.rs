//! Bodies read, documents stored, and stored documents rendered: rates on one thread.
//! `cargo bench -p plimsoll-documents --bench documents`

#![allow(clippy::print_stdout, clippy::unwrap_used, missing_docs)]

use plimsoll_core::clock::now_ns;
use plimsoll_documents::document::Values;
use plimsoll_documents::field_set::FieldSet;
use plimsoll_documents::operation::parse_put;
use plimsoll_documents::render::{Tensors, push_stored};
use plimsoll_documents::schema::Schemas;
use serde_json::{Value as Json, json};

fn per_second(name: &str, bytes: usize, work: &mut dyn FnMut()) {
    let (start, mut rounds) = (now_ns(), 0_u64);
    while now_ns() - start < 1_000_000_000 {
        (0..100).for_each(|_| work());
        rounds += 100;
    }
    let rate = rounds as f64 * 1e9 / (now_ns() - start) as f64;
    println!("{name}: {rate:.0}/s, {:.0} MB/s", rate * bytes as f64 / 1e6);
}

fn main() {
    let schemas = Schemas::built_in("plimsoll");
    let schema = &schemas.types()[0];
    let words = "the load line of a ship marks how deep she may lie ".repeat(18);
    let fields = json!({"title": "Load lines", "body": words, "category": "Ships", "score": 7});
    let body = json!({ "fields": fields }).to_string();
    let size = body.len();
    println!("a body of {size} bytes");
    per_second("parse_put", size, &mut || drop(parse_put(body.as_bytes(), schema).unwrap()));
    per_second("serde_json::Value", size, &mut || {
        drop(serde_json::from_slice::<Json>(body.as_bytes()).unwrap());
    });
    let values = parse_put(body.as_bytes(), schema).unwrap().values;
    let mut bytes = Vec::new();
    per_second("encode", size, &mut || {
        bytes.clear();
        values.encode(&schemas, &mut bytes);
    });
    println!("stored in {} bytes", bytes.len());
    per_second("decode", size, &mut || drop(Values::decode(&schemas, &bytes).unwrap()));
    let mut out = Vec::new();
    per_second("render from stored bytes", size, &mut || {
        out.clear();
        push_stored(&mut out, &schemas, &bytes, &FieldSet::Every, Tensors::Short).unwrap();
    });
}
