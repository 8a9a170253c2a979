//! Servers with schemas of their own: fed, read, changed and searched from outside.

use super::{Client, JSON, encode, start_with};
use crate::{VespaConfig, VespaError};
use serde_json::{Value as Json, json};
use std::path::Path;
use std::time::Duration;

/// A schema with every type, and a document of it.
const MUSIC: &str = include_str!("music.sd");
const FULL: &str = include_str!("music.json");

fn full() -> Json {
    serde_json::from_str(FULL).unwrap()
}

const BOOKS: &str = "schema book { document book {
    field title type string { indexing: index | summary }
    field pages type int { indexing: attribute | summary }
} fieldset default { fields: title } }";

fn config(folder: &Path, schemas: &[(&str, &str)]) -> VespaConfig {
    let mut config = VespaConfig::new(folder.join("data"));
    config.refresh_interval = Duration::from_millis(20);
    config.cluster = "shop".to_owned();
    for (name, text) in schemas {
        let path = folder.join(name);
        std::fs::write(&path, text).unwrap();
        config.schemas.push(path);
    }
    config
}

fn put(client: &mut Client, document_type: &str, name: &str, fields: &Json) {
    let path = format!("/document/v1/n/{document_type}/docid/{name}");
    let body = json!({ "fields": fields }).to_string();
    let reply = client.request("POST", &path, JSON, body.as_bytes());
    assert_eq!(reply.status, 200, "{}", reply.body);
}

fn search(client: &mut Client, yql: &str) -> super::TestReply {
    client.get(&format!("/search/?hits=100&timeout=10s&yql={}", encode(yql)))
}

/// Another document of the same type.
fn other() -> Json {
    json!({
        "artist": "Bill Evans", "title": "Waltz for Debby", "genre": "Cool Jazz", "year": 1961,
        "plays": -4, "price": 9.5, "live": false, "years": [1961], "moods": {"blue": 1}
    })
}

#[test]
fn a_schema_of_every_type_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(config(folder.path(), &[("music.sd", MUSIC)]));
    let mut client = server.client();
    put(&mut client, "music", "full", &full());
    put(&mut client, "music", "other", &other());
    put(&mut client, "music", "empty", &json!({}));
    let path = "/document/v1/n/music/docid/full";
    assert_eq!(client.get(path).json()["fields"], full());
    let hex = client.get(&format!("{path}?format.tensors=hex-value&fieldSet=music:embedding"));
    assert_eq!(hex.json()["fields"], json!({"embedding": "3F800000C020000000000000"}));
    let bad = client.get(&format!("{path}?format.tensors=x"));
    assert_eq!(bad.status, 400, "{}", bad.body);
    client.refresh();
    for (filter, expected) in [
        ("artist contains 'simone'", vec!["full"]),
        ("default contains 'debby'", vec!["other"]),
        ("userInput('sinnerman nina')", vec!["full"]),
        ("userInput('genre:jazz')", vec!["full"]),
        ("title contains 'waltz'", vec!["other"]),
        ("genre contains 'JAZZ'", vec!["full"]),
        ("genre contains 'cool jazz'", vec!["other"]),
        ("isbn contains '978-3 16'", vec!["full"]),
        ("isbn contains '978'", vec![]),
        ("codes contains 'jazz'", vec!["full"]),
        ("tags contains 'piano'", vec!["full"]),
        ("tags contains phrase('long', 'piano')", vec![]),
        ("years = 1956", vec!["full"]),
        ("years >= 1961", vec!["full", "other"]),
        ("years in (1956, 1961)", vec!["full", "other"]),
        ("moods contains 'dark'", vec!["full"]),
        ("moods contains 'blue' or year = 1965", vec!["full", "other"]),
        ("year < 1965", vec!["other"]),
        ("plays > 8999999999", vec!["full"]),
        ("stars = 5", vec!["full"]),
        ("price = 0.1", vec!["full"]),
        ("price > 0.1", vec!["other"]),
        ("price >= 0.1 and price <= 9.5", vec!["full", "other"]),
        ("range(price, 0, 1)", vec!["full"]),
        ("range(price, -Infinity, Infinity)", vec!["full", "other"]),
        ("weight < 1", vec!["full"]),
        ("live = true", vec!["full"]),
        ("live = false", vec!["other"]),
        ("live != true", vec!["empty", "other"]),
        ("true", vec!["empty", "full", "other"]),
        ("sddocname contains 'music'", vec!["empty", "full", "other"]),
        ("sddocname contains 'doc'", vec![]),
    ] {
        let reply = search(&mut client, &format!("select * from music where {filter}"));
        let mut names = reply.names();
        names.sort_unstable();
        assert_eq!(names, expected, "{filter}: {}", reply.body);
    }
}

#[test]
fn numbers_and_whole_texts_order_hits() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(config(folder.path(), &[("music.sd", MUSIC)]));
    let mut client = server.client();
    put(&mut client, "music", "full", &full());
    put(&mut client, "music", "other", &other());
    put(&mut client, "music", "empty", &json!({}));
    client.refresh();
    for (order, expected) in [
        ("price", vec!["empty", "full", "other"]),
        ("price desc", vec!["other", "full", "empty"]),
        ("title desc", vec!["other", "full", "empty"]),
        ("plays", vec!["empty", "other", "full"]),
    ] {
        let reply = search(&mut client, &format!("select * from shop where true order by {order}"));
        assert_eq!(reply.names(), expected, "{order}: {}", reply.body);
    }
    for (filter, message) in [
        ("note contains 'kept'", "Field 'note' cannot be searched: its indexing has no index"),
        ("props contains 'x'", "Field 'props' cannot be searched"),
        ("no contains 'x'", "Field 'no' does not exist. The fields are artist, title,"),
        ("true order by artist", "'artist' is text and cannot be ordered by"),
        ("true order by years", "'years' has several values and cannot be ordered by"),
        ("price in (1, 2)", "'price' is a real number: compare it with < and >"),
    ] {
        let reply = search(&mut client, &format!("select * from music where {filter}"));
        assert!(reply.error().1.starts_with(message), "{filter}: {}", reply.body);
    }
    let reply = search(&mut client, "select * from doc where true");
    assert!(reply.error().1.ends_with("Valid source refs are music, shop."), "{}", reply.body);
}

#[test]
fn a_hit_shows_the_fields_of_its_summary() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(config(folder.path(), &[("music.sd", MUSIC)]));
    let mut client = server.client();
    put(&mut client, "music", "full", &full());
    client.refresh();
    let hit = search(&mut client, "select * from music where true").json();
    let hit = &hit["root"]["children"][0];
    assert_eq!((&hit["source"], &hit["id"]), (&json!("shop"), &json!("id:n:music::full")));
    let mut expected = full();
    let map = expected.as_object_mut().unwrap();
    // These have no 'summary'.
    map.remove("note");
    map.remove("embedding");
    map.insert("sddocname".into(), json!("music"));
    map.insert("documentid".into(), json!("id:n:music::full"));
    assert_eq!(hit["fields"], expected);
    let hit = search(&mut client, "select year, note, artist from music where true");
    let fields = &hit.json()["root"]["children"][0]["fields"];
    assert_eq!(*fields, json!({"year": 1965, "artist": "Nina Simone"}));
}

#[test]
fn several_types_are_one_corpus_and_searched_apart() {
    let folder = tempfile::tempdir().unwrap();
    let schemas = [("music.sd", MUSIC), ("book.sd", BOOKS)];
    let server = start_with(config(folder.path(), &schemas));
    let mut client = server.client();
    put(&mut client, "music", "m", &json!({"title": "Deep water", "year": 1}));
    put(&mut client, "book", "b", &json!({"title": "Deep rivers", "pages": 9}));
    put(&mut client, "book", "c", &json!({"title": "Dry land"}));
    let path = "/document/v1/n/book/docid/new";
    let body = br#"{"create":true,"fields":{"pages":{"assign":3}}}"#;
    assert_eq!(client.request("PUT", path, JSON, body).status, 200);
    assert_eq!(client.get(path).json()["fields"], json!({"pages": 3}));
    let body = br#"{"fields":{"year":1}}"#;
    let reply = client.request("POST", path, JSON, body);
    assert!(reply.message().starts_with("No field 'year' in the structure of type 'book'"));
    let set = client.get("/document/v1/n/book/docid/b?fieldSet=music:title");
    assert_eq!(set.json()["fields"], json!({}));
    client.refresh();
    for (yql, expected) in [
        ("select * from sources * where default contains 'deep'", vec!["b", "m"]),
        ("select * from shop where title contains 'deep'", vec!["b", "m"]),
        ("select * from music where title contains 'deep'", vec!["m"]),
        ("select * from book where title contains 'deep'", vec!["b"]),
        ("select * from book, music where title contains 'deep'", vec!["b", "m"]),
        ("select * from book where true", vec!["b", "c", "new"]),
        ("select * from music where true", vec!["m"]),
        ("select * from book where !(title contains 'deep')", vec!["c", "new"]),
        ("select * from sources * where sddocname contains 'book'", vec!["b", "c", "new"]),
        ("select * from sources * where pages > 2 or year = 1", vec!["b", "m", "new"]),
        ("select * from sources * where title contains fuzzy('deap')", vec!["b", "m"]),
    ] {
        let reply = search(&mut client, yql);
        let mut names = reply.names();
        names.sort_unstable();
        assert_eq!(names, expected, "{yql}: {}", reply.body);
        assert_eq!(reply.total(), expected.len() as u64, "{yql}");
    }
    let ordered = search(&mut client, "select * from book where true order by pages desc");
    assert_eq!(ordered.names(), ["b", "new", "c"]);
    let kinds = search(&mut client, "select sddocname from sources * where pages = 9");
    assert_eq!(kinds.json()["root"]["children"][0]["fields"], json!({"sddocname": "book"}));
}

#[test]
fn a_changed_schema_makes_the_index_again() {
    let folder = tempfile::tempdir().unwrap();
    let server = start_with(config(folder.path(), &[("music.sd", MUSIC)]));
    let mut client = server.client();
    put(&mut client, "music", "full", &full());
    client.refresh();
    server.stop();
    let changed = MUSIC.replace(
        "field note type string { }",
        "field note type string { indexing: index | summary }",
    );
    let changed = changed.replace("field stars type byte", "field rating type byte");
    let server = start_with(config(folder.path(), &[("music.sd", &changed)]));
    let mut client = server.client();
    let found = search(&mut client, "select note from music where note contains 'kept'");
    assert_eq!(found.json()["root"]["children"][0]["fields"], json!({"note": "kept"}));
    let fields = client.get("/document/v1/n/music/docid/full").json()["fields"].clone();
    assert_eq!((fields.get("stars"), &fields["year"]), (None, &json!(1965)));
}

#[test]
fn a_bad_schema_keeps_the_server_from_starting() {
    let folder = tempfile::tempdir().unwrap();
    let config = config(folder.path(), &[("bad.sd", "document d {\n  field a type uri {} }")]);
    let error = match super::open(config) {
        Err(error @ VespaError::Schema(_)) => error.to_string(),
        Err(error) => panic!("{error}"),
        Ok(_) => panic!("it started"),
    };
    assert!(error.ends_with("map<..,..> or tensor<float>(x[n])"), "{error}");
    assert!(error.contains("bad.sd:2:16: the type 'uri' is not supported"), "{error}");
}
