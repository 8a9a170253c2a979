//! Sets of documents, made, fed and compared.

use crate::process::{Ended, Place, Target};
use crate::record::Record;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Documents: fields by id.
pub type Documents = BTreeMap<String, Value>;

/// Reads `{"<key>":"id:...","fields":{...}}`; no document may come twice.
#[track_caller]
pub fn read<'a>(lines: impl IntoIterator<Item = &'a str>, key: &str) -> Documents {
    let mut all = Documents::new();
    for line in lines {
        let mut document: Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        add(&mut all, document[key].take(), document["fields"].take());
    }
    all
}

/// Adds one document.
#[track_caller]
pub fn add(all: &mut Documents, id: Value, fields: Value) {
    let Value::String(id) = id else { panic!("{id} is no id") };
    assert!(fields.is_object(), "{id}: {fields}");
    let before = all.insert(id.clone(), fields);
    assert!(before.is_none(), "{id} came twice");
}

/// The same set? Says what differs, and little of it.
#[track_caller]
pub fn expect_equal(found: &Documents, expected: &Documents) {
    let missing: Vec<_> = expected.keys().filter(|id| !found.contains_key(*id)).collect();
    let more: Vec<_> = found.keys().filter(|id| !expected.contains_key(*id)).collect();
    let changed: Vec<_> = expected
        .iter()
        .filter_map(|(id, fields)| Some((id, fields, found.get(id)?)))
        .filter(|(_, fields, found)| fields != found)
        .collect();
    assert!(
        missing.is_empty() && more.is_empty() && changed.is_empty(),
        "{} found, {} expected\n{} missing: {:?}\n{} too many: {:?}\n{} changed: {:?}",
        found.len(),
        expected.len(),
        missing.len(),
        &missing[..missing.len().min(5)],
        more.len(),
        &more[..more.len().min(5)],
        changed.len(),
        &changed[..changed.len().min(3)],
    );
}

/// Documents as operations that put them, one a line.
pub fn puts(documents: &Documents) -> String {
    let line =
        |(id, fields): (&String, &Value)| format!("{}\n", json!({"put": id, "fields": fields}));
    documents.iter().map(line).collect()
}

/// Documents of all kinds of ids, some shorter and some longer than what clients pack.
pub fn some(count: usize) -> Documents {
    (0..count)
        .map(|n| {
            let id = match n % 6 {
                0 => format!("id:plimsoll:doc:n={}:{n}", n % 18),
                1 => format!("id:plimsoll:doc:g=group {}/ü:{n}", n % 4),
                2 => format!("id:other:doc::a b/{n}%2F?&=#æ"),
                _ => format!("id:plimsoll:doc::{n}"),
            };
            let body = "a line of the text, \"quoted\" ".repeat(n * 7 % 120);
            let mut fields = json!({"title": format!("document {n} æ漢\u{1f6a2}"), "score": n});
            if !body.is_empty() {
                fields["body"] = body.into();
            }
            (id, fields)
        })
        .collect()
}

/// Dumps everything with `plimsoll visit`, over all front ends, and returns it with the record.
#[track_caller]
pub fn dump(place: &Place, target: &Target, flags: &[&str]) -> (Documents, Record) {
    let mut args: Vec<&str> = vec!["visit"];
    args.extend(target.urls.iter().map(String::as_str));
    args.extend(["--cluster", "plimsoll", "--quiet", "--out", "dump.ndjson", "--json", "-"]);
    args.extend(flags);
    let record = Record::of(&place.start(args).wait(super::clients::LONG).expect(0));
    let documents = read(place.read("dump.ndjson").lines(), "id");
    assert_eq!(record.count("/visit/documents"), documents.len() as u64);
    assert_eq!(record.0["visit"]["complete"], true);
    std::fs::remove_file(place.path().join("dump.ndjson")).unwrap();
    (documents, record)
}

/// What a run of `vespa visit` printed, one document a line.
#[track_caller]
pub fn visited(ended: &Ended) -> Documents {
    read(ended.stdout.lines(), "id")
}
