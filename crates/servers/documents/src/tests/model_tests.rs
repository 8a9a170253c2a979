//! Values through their stored bytes and through JSON, for schemas of every type.

use super::schema_tests::{MUSIC, music, schemas};
use crate::document::Values;
use crate::encoding::DecodeError;
use crate::field_set::FieldSet;
use crate::operation::{parse_put, parse_update};
use crate::render::{Tensors, push_stored, push_values};
use crate::schema::{FieldDef, Schema, Schemas, parse};
use crate::value::{FieldType, Value};
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn kinds() -> impl Strategy<Value = FieldType> {
    let key = prop_oneof![
        Just(FieldType::String),
        Just(FieldType::Int),
        Just(FieldType::Long),
        Just(FieldType::Byte),
        Just(FieldType::Bool),
    ];
    let leaf = prop_oneof![
        key.clone(),
        Just(FieldType::Float),
        Just(FieldType::Double),
        Just(FieldType::Raw),
    ];
    let nested = leaf.prop_recursive(3, 8, 2, move |inner| {
        prop_oneof![
            inner.clone().prop_map(|inner| FieldType::Array(inner.into())),
            key.clone().prop_map(|key| FieldType::WeightedSet(key.into())),
            (key.clone(), inner).prop_map(|(k, v)| FieldType::Map(k.into(), v.into())),
        ]
    });
    let tensor = (1..5_usize).prop_map(|cells| FieldType::Tensor { dimension: "x".into(), cells });
    prop_oneof![4 => nested, 1 => tensor]
}

fn text() -> impl Strategy<Value = String> {
    let legal = |c: &char| {
        !c.is_control() && !('\u{FDD0}'..='\u{FDDF}').contains(c) && (*c as u32) & 0xFFFE != 0xFFFE
    };
    any::<String>().prop_map(move |text| text.chars().filter(legal).collect())
}

/// Each key once, as collections hold them.
fn unique<V>(items: Vec<(Value, V)>) -> Vec<(Value, V)> {
    let mut kept: Vec<(Value, V)> = Vec::new();
    for (key, value) in items {
        if !kept.iter().any(|(other, _)| *other == key) {
            kept.push((key, value));
        }
    }
    kept
}

fn values(kind: &FieldType) -> BoxedStrategy<Value> {
    let up_to = |strategy: BoxedStrategy<Value>| proptest::collection::vec(strategy, 0..20);
    match kind {
        FieldType::String => text().prop_map(Value::String).boxed(),
        FieldType::Int => any::<i32>().prop_map(Value::Int).boxed(),
        FieldType::Long => any::<i64>().prop_map(Value::Long).boxed(),
        FieldType::Byte => any::<i8>().prop_map(Value::Byte).boxed(),
        FieldType::Float => {
            let special = prop_oneof![Just(f32::INFINITY), Just(f32::NEG_INFINITY), Just(-0.0)];
            prop_oneof![4 => any::<f32>(), 1 => special].prop_map(Value::Float).boxed()
        }
        FieldType::Double => any::<f64>().prop_map(Value::Double).boxed(),
        FieldType::Bool => any::<bool>().prop_map(Value::Bool).boxed(),
        FieldType::Raw => any::<Vec<u8>>().prop_map(Value::Raw).boxed(),
        FieldType::Array(inner) => up_to(values(inner)).prop_map(Value::Array).boxed(),
        FieldType::WeightedSet(key) => {
            let items = proptest::collection::vec((values(key), any::<i32>()), 0..20);
            items.prop_map(|items| Value::WeightedSet(unique(items))).boxed()
        }
        FieldType::Map(key, value) => {
            let items = proptest::collection::vec((values(key), values(value)), 0..20);
            items.prop_map(|items| Value::Map(unique(items))).boxed()
        }
        FieldType::Tensor { cells, .. } => {
            let cell = any::<f32>();
            proptest::collection::vec(cell, *cells).prop_map(Value::Tensor).boxed()
        }
    }
}

/// A random type with a document of it.
fn documents() -> impl Strategy<Value = (Schemas, Values)> {
    proptest::collection::vec(kinds(), 1..6).prop_flat_map(|kinds| {
        let of_kinds: Vec<_> =
            kinds.iter().map(|kind| proptest::option::of(values(kind))).collect();
        let fields = kinds.into_iter().enumerate();
        let fields = fields.map(|(number, kind)| FieldDef::new(format!("f{number}"), kind));
        let schema = Schema::new("t", fields.collect(), Vec::new()).unwrap();
        let schemas = Schemas::new(vec![schema], "c").unwrap();
        (Just(schemas), of_kinds).prop_map(|(schemas, fields)| {
            let mut values = Values::new(&schemas.types()[0]);
            for (number, value) in fields.into_iter().enumerate() {
                values.set(number, value);
            }
            (schemas, values)
        })
    })
}

const TENSORS: [Tensors; 6] = [
    Tensors::Short,
    Tensors::Long,
    Tensors::ShortValue,
    Tensors::LongValue,
    Tensors::Hex,
    Tensors::HexValue,
];

fn rendered(schemas: &Schemas, values: &Values, set: &FieldSet, tensors: Tensors) -> String {
    let mut out = Vec::new();
    push_values(&mut out, schemas, values, set, tensors);
    String::from_utf8(out).unwrap()
}

/// Not-a-number is not equal to itself: compare what is written of it.
fn same(schemas: &Schemas, left: &Values, right: &Values) -> bool {
    let text = |values| rendered(schemas, values, &FieldSet::Every, Tensors::Short);
    left == right || text(left) == text(right)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 500, ..ProptestConfig::default() })]

    #[test]
    fn stored_values_come_back((schemas, values) in documents(), cut in any::<prop::sample::Index>(),
        flip in any::<(prop::sample::Index, u8)>()) {
        let mut bytes = Vec::new();
        values.encode(&schemas, &mut bytes);
        let read = Values::decode(&schemas, &bytes).unwrap();
        prop_assert!(same(&schemas, &read, &values));
        // Whatever becomes of the bytes, reading ends with a document or an error.
        let mut out = Vec::new();
        let short = &bytes[..cut.index(bytes.len())];
        let _ = Values::decode(&schemas, short);
        let mut bad = bytes.clone();
        bad[flip.0.index(bytes.len())] ^= flip.1;
        let _ = Values::decode(&schemas, &bad);
        let _ = push_stored(&mut out, &schemas, &bad, &FieldSet::Every, Tensors::Long);
    }

    #[test]
    fn rendered_values_come_back((schemas, values) in documents()) {
        for tensors in TENSORS {
            let fields = rendered(&schemas, &values, &FieldSet::Every, tensors);
            let body = format!("{{\"fields\":{fields}}}");
            let read = parse_put(body.as_bytes(), &schemas.types()[0]);
            let read = read.map_err(|error| TestCaseError::fail(format!("{error}: {body}")))?;
            prop_assert!(same(&schemas, &read.values, &values), "{}", body);
        }
    }

    #[test]
    fn no_bytes_make_the_operations_panic(bytes in any::<Vec<u8>>(), text in json_soup()) {
        let schema = music();
        let schemas = schemas();
        for body in [&bytes[..], text.as_bytes()] {
            let _ = parse_put(body, &schema);
            if let Ok(update) = parse_update(body, &schema) {
                let mut values = Values::new(&schema);
                crate::operation::apply(&mut values, &schema, &update.edits);
            }
            let _ = Values::decode(&schemas, body);
            let mut out = Vec::new();
            let _ = push_stored(&mut out, &schemas, body, &FieldSet::Every, Tensors::Short);
        }
    }
}

/// Bodies that are nearly right.
fn json_soup() -> impl Strategy<Value = String> {
    let names = proptest::sample::select(vec![
        "year",
        "price",
        "tags",
        "moods",
        "props",
        "embedding",
        "cover",
        "props{a}",
        "tags[0]",
        "moods{x}",
        "counts{\"a}\"}",
        "years[",
        "match",
        "element",
        "assign",
        "add",
        "remove",
        "increment",
        "modify",
        "operation",
        "cells",
        "address",
        "x",
        "value",
        "values",
    ]);
    let leaf = prop_oneof![
        any::<i64>().prop_map(|n| n.to_string()),
        any::<f64>().prop_map(|n| format!("{n:?}")),
        "\"[a-z0-9=/\\u0000-\\u0020]{0,10}\"",
        Just("null".to_owned()),
        Just("true".to_owned()),
        Just("\"replace\"".to_owned()),
    ];
    let tree = leaf.prop_recursive(5, 40, 4, move |inner| {
        let pair = (names.clone(), inner.clone())
            .prop_map(|(name, value)| format!("{}:{value}", Json::from(name)));
        prop_oneof![
            proptest::collection::vec(inner, 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            proptest::collection::vec(pair, 0..4)
                .prop_map(|items| format!("{{{}}}", items.join(","))),
        ]
    });
    tree.prop_map(|fields| format!("{{\"fields\":{fields}}}"))
}

/// A document with a value in every field.
pub(super) fn full() -> Json {
    serde_json::from_str(include_str!("music.json")).unwrap()
}

pub(super) fn put(schema: &Schema, fields: &Json) -> Values {
    let body = json!({ "fields": fields }).to_string();
    parse_put(body.as_bytes(), schema).unwrap().values
}

#[test]
fn every_type_is_written_as_it_was_read() {
    let schemas = schemas();
    let values = put(&schemas.types()[0], &full());
    let text = rendered(&schemas, &values, &FieldSet::Every, Tensors::Short);
    assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), full());
    assert!(text.starts_with(r#"{"artist":"Nina Simone","title":"Sinnerman","#), "{text}");
    let set = FieldSet::parse("music:embedding", &schemas).unwrap();
    let tensor_type = r#""type":"tensor<float>(x[3])""#;
    let cells = concat!(
        r#"[{"address":{"x":"0"},"value":1.0},{"address":{"x":"1"},"value":-2.5},"#,
        r#"{"address":{"x":"2"},"value":0.0}]"#
    );
    for (tensors, expected) in TENSORS.into_iter().zip([
        r#"{"type":"tensor<float>(x[3])","values":[1.0,-2.5,0.0]}"#,
        &format!("{{{tensor_type},\"cells\":{cells}}}"),
        "[1.0,-2.5,0.0]",
        cells,
        r#"{"type":"tensor<float>(x[3])","values":"3F800000C020000000000000"}"#,
        r#""3F800000C020000000000000""#,
    ]) {
        let text = rendered(&schemas, &values, &set, tensors);
        assert_eq!(text, format!("{{\"embedding\":{expected}}}"));
    }
    assert_eq!(Tensors::parse("hex-value"), Ok(Tensors::HexValue));
    assert!(Tensors::parse("bogus").unwrap_err().contains("must be 'short', 'long'"));
}

#[test]
fn field_sets_choose_and_say_what_is_wrong() {
    let schemas = schemas();
    let values = put(&schemas.types()[0], &json!({"artist": "a", "title": "t", "year": 1}));
    for (set, expected) in [
        ("[all]", r#"{"artist":"a","title":"t","year":1}"#),
        ("[document]", r#"{"artist":"a","title":"t","year":1}"#),
        ("music:[document]", r#"{"artist":"a","title":"t","year":1}"#),
        ("music:year, artist", r#"{"artist":"a","year":1}"#),
        ("music:artist,[id]", r#"{"artist":"a"}"#),
        ("music:default", r#"{"artist":"a","title":"t"}"#),
        ("[id]", "{}"),
        ("[none]", "{}"),
        ("music:[id]", "{}"),
    ] {
        let parsed = FieldSet::parse(set, &schemas).unwrap();
        assert_eq!(rendered(&schemas, &values, &parsed, Tensors::Short), expected, "{set}");
    }
    for (set, message) in [
        ("music:nofield", "No such field nofield"),
        (
            "year",
            "The field set list must consist of a document type, then a colon (:), \
             then a comma-separated list of field names",
        ),
        (
            "[header]",
            "The only special names (enclosed in '[]') allowed are id, all, document, none",
        ),
        ("nosuch:a", "Unknown document type nosuch"),
    ] {
        assert_eq!(FieldSet::parse(set, &schemas).unwrap_err(), message);
    }
}

#[test]
fn stored_documents_survive_changes_of_the_schema() {
    let schemas = schemas();
    let values = put(&schemas.types()[0], &full());
    let mut bytes = Vec::new();
    values.encode(&schemas, &mut bytes);
    // A field less at the front, one of another type, one more at the end, another order.
    let changed = MUSIC
        .replace("field artist type string {", "field maker type string {")
        .replace("fields: artist, title", "fields: title")
        .replace("field year type int", "field year type long")
        .replace(
            "field note type string { }",
            "field added type int { } field note type string {}",
        );
    let later = Schemas::new(vec![parse(changed.as_bytes(), "m.sd").unwrap()], "c").unwrap();
    let read = Values::decode(&later, &bytes).unwrap();
    let text = rendered(&later, &read, &FieldSet::Every, Tensors::Short);
    let mut expected = full();
    for gone in ["artist", "year"] {
        expected.as_object_mut().unwrap().remove(gone);
    }
    assert_eq!(serde_json::from_str::<Json>(&text).unwrap(), expected);
    let some = Values::decode_some(&schemas, &bytes, |schema, number| {
        schema.fields()[number].name == "year"
    });
    assert_eq!(some.unwrap(), put(&schemas.types()[0], &json!({"year": 1965})));
    let other = Schemas::built_in("c");
    let error = Values::decode(&other, &bytes).unwrap_err();
    assert_eq!(error, DecodeError::UnknownType("music".into()));
    assert!(error.to_string().contains("start the server with its schema"), "{error}");
    // A number of elements that the bytes do not back asks for no memory.
    let huge = b"\x05music".to_vec();
    let id = schemas.types()[0].fields()[11].stored_id().to_le_bytes();
    let damaged = [&huge[..], &id[..], &[5, 0xff, 0xff, 0xff, 0xff, 0x0f][..]].concat();
    assert_eq!(Values::decode(&schemas, &damaged).unwrap_err(), DecodeError::Damaged);
}
