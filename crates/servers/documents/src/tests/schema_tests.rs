//! The schema language: what is read, what is skipped, and what is refused with its place.

use crate::schema::{FieldDef, Matching, Schema, Schemas, parse};
use crate::value::FieldType;
use proptest::prelude::*;
use std::path::PathBuf;

/// A schema with every type, as its author would write it.
pub(super) const MUSIC: &str = include_str!("music.sd");

pub(super) fn music() -> Schema {
    parse(MUSIC.as_bytes(), "music.sd").unwrap_or_else(|error| panic!("{error}"))
}

pub(super) fn schemas() -> Schemas {
    Schemas::new(vec![music()], "shop").unwrap()
}

fn field<'s>(schema: &'s Schema, name: &str) -> &'s FieldDef {
    &schema.fields()[schema.field_number(name).unwrap()]
}

#[test]
fn a_schema_says_types_indexing_and_names() {
    let schema = music();
    assert_eq!(schema.name(), "music");
    assert_eq!(schema.fields().len(), 18);
    let kinds: Vec<String> = schema.fields().iter().map(|field| field.kind.to_string()).collect();
    assert_eq!(kinds[13], "weightedset<string>");
    assert_eq!(kinds[14], "map<string,string>");
    assert_eq!(kinds[16], "tensor<float>(x[3])");
    let artist = field(&schema, "artist");
    assert_eq!((artist.index, artist.attribute, artist.summary), (true, false, true));
    assert_eq!(artist.matching, Matching::Words);
    assert_eq!(field(&schema, "genre").matching, Matching::Exact);
    assert_eq!(field(&schema, "isbn").matching, Matching::Exact);
    assert_eq!(field(&schema, "title").matching, Matching::Words);
    assert!(field(&schema, "year").attribute && field(&schema, "year").summary);
    assert!(field(&schema, "moods").create_missing && field(&schema, "moods").remove_zero);
    assert!(!field(&schema, "note").summary);
    assert_eq!(schema.searched_as("default"), [0, 1]);
    assert_eq!(schema.searched_as("codes"), [3, 2]);
    assert_eq!(schema.searched_as("year"), [4]);
    assert!(schema.searched_as("no").is_empty());
}

#[test]
fn other_ways_to_write_it() {
    for (text, kind) in [
        ("document d { field f type int { indexing: summary } }", FieldType::Int),
        ("search s {\n document d {\n field f\n type bool {}\n } }", FieldType::Bool),
        ("schema d { document { field f type raw {\n\n } } }", FieldType::Raw),
        ("document d { field f type tag {} }", FieldType::WeightedSet(FieldType::String.into())),
        (
            "document d { field f type map<int,array<long>> {} }",
            FieldType::Map(FieldType::Int.into(), FieldType::Array(FieldType::Long.into()).into()),
        ),
    ] {
        let parsed = parse(text.as_bytes(), "d.sd");
        if text.contains("f\n type") {
            // A declaration stands on one line.
            assert_eq!(
                parsed.unwrap_err().to_string(),
                "d.sd:3:9: expected 'type', found the end of the line"
            );
            continue;
        }
        let schema = parsed.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(schema.name(), "d");
        assert_eq!(field(&schema, "f").kind, kind);
        assert!(schema.searched_as("default").is_empty());
    }
}

#[test]
fn refusals_name_the_place_and_what_to_do() {
    let in_document = |text: &str| format!("document d {{\n  {text}\n}}");
    for (text, message) in [
        (String::new(), "s.sd:1:1: expected 'schema NAME {' or 'document NAME {', found the end"),
        ("{".into(), "s.sd:1:1: expected 'schema NAME {' or"),
        ("schema s {".into(), "s.sd:1:11: expected a statement or '}', found the end of the file"),
        ("schema s { }".into(), "s.sd:1:1: the schema has no 'document' block"),
        ("schema s inherits t { }".into(), "s.sd:1:10: inheritance is not supported: write the"),
        ("document s inherits t { }".into(), "s.sd:1:12: inheritance is not supported"),
        ("schema s { document a {} document b {} }".into(), "s.sd:1:26: a schema has one"),
        ("schema s { struct p { } }".into(), "s.sd:1:12: structs are not supported: use fields"),
        (
            "schema s {\n document s {}\n field f type string { indexing: input a | index } }"
                .into(),
            "s.sd:3:2: fields outside of 'document' are computed by indexing statements",
        ),
        ("schema s {\n import field a.b as c {} }".into(), "s.sd:2:2: imported fields are not"),
        ("schema s {\n\tbogus }".into(), "s.sd:2:2: 'bogus' is not known in a schema"),
        ("document s {} x".into(), "s.sd:1:15: expected the end of the file, found 'x'"),
        (in_document("struct p { field a type int {} }"), "s.sd:2:3: structs are not supported"),
        (in_document("field a type reference<b> {}"), "s.sd:2:16: references between documents"),
        (in_document("field a type uri {}"), "s.sd:2:16: the type 'uri' is not supported: use"),
        (in_document("field ä type int {}"), "s.sd:2:9: expected the name of the field, found"),
        (in_document("field 1a type int {}"), "s.sd:2:9: '1a' is no name: use letters, digits"),
        (in_document("field a int {}"), "s.sd:2:11: expected 'type', found 'int'"),
        (in_document("field a type int {}\n field a type int {}"), "s.sd:3:8: the field 'a' is"),
        (in_document("field documentid type int {}"), "s.sd:2:9: 'documentid' is reserved"),
        (in_document("field a type tensor<float>(x{}) {}"), "s.sd:2:16: only tensor<float>(x[n])"),
        (in_document("field a type tensor(x[3]) {}"), "s.sd:2:16: only tensor<float>(x[n])"),
        (in_document("field a type tensor<float>(x[3],y[2]) {}"), "s.sd:2:16: only tensor<float>"),
        (in_document("field a type tensor<bfloat16>(x[3]) {}"), "s.sd:2:16: only tensor<float>"),
        (in_document("field a type array<tensor<float>(x[3])> {}"), "s.sd:2:22: only tensor<fl"),
        (in_document("field a type tensor<float>(x[0]) {}"), "s.sd:2:32: a dimension has 1 to"),
        (in_document("field a type tensor<float>(x[65537]) {}"), "s.sd:2:32: a dimension has 1"),
        (in_document("field a type map<raw,int> {}"), "s.sd:2:20: 'raw' cannot be a key: use"),
        (in_document("field a type weightedset<array<int>> {}"), "s.sd:2:28: 'array<int>' cannot"),
        (
            in_document(&format!("field a type {}int{} {{}}", "array<".repeat(9), ">".repeat(9))),
            "s.sd:2:46: types nest at most 4 levels deep",
        ),
        (in_document("field a type int { indexing: summary | embed }"), "s.sd:2:42: the indexing"),
        (in_document("field a type int { indexing: summary index }"), "s.sd:2:40: expected '|'"),
        (in_document("field a type int { indexing summary }"), "s.sd:2:31: expected ':' or '{'"),
        (in_document("field a type string { match: gram }"), "s.sd:2:32: match 'gram' is not"),
        (in_document("field a type string { bogus: 1 }"), "s.sd:2:25: 'bogus' is not known in a"),
        (in_document("field a type string { rank { x {"), "s.sd:2:30: the '{' of this block is"),
        (
            "schema s { document s { field a type int {} }\nfieldset x { fields: a, b } }".into(),
            "s.sd:2:25: there is no field 'b' in the document",
        ),
    ] {
        let error = parse(text.as_bytes(), "s.sd").unwrap_err().to_string();
        assert!(error.starts_with(message), "{text}\n{error}\n{message}");
        assert!(!error.contains('\n'));
    }
    let error = parse(b"document d {\n\xff }", "s.sd").unwrap_err().to_string();
    assert_eq!(error, "s.sd:2:1: the file is not UTF-8 text");
    let many: String = (0..1001).map(|n| format!("field f{n} type int {{}}\n")).collect();
    let error = parse(format!("document d {{ {many} }}").as_bytes(), "s.sd").unwrap_err();
    assert!(error.to_string().contains("type 'd' has 1001 fields, at most 1000"), "{error}");
}

#[test]
fn several_files_make_several_types() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path
    };
    let one = file("one.sd", "document one { field a type int {} }");
    let two = file("two.sd", "document two { field b type int {} }");
    let schemas = Schemas::read(&[one.clone(), two], "c").unwrap();
    assert_eq!((schemas.type_names().as_str(), schemas.cluster()), ("one, two", "c"));
    assert_eq!(schemas.by_name("two").unwrap().number(), 1);
    assert_eq!(schemas.field_names(), "a, b");
    let twice = Schemas::read(&[one.clone(), one], "c").unwrap_err().to_string();
    assert_eq!(twice, "two schemas describe the document type 'one'");
    let missing = Schemas::read(&[PathBuf::from("/no/such.sd")], "c").unwrap_err().to_string();
    assert!(missing.starts_with("cannot read the schema /no/such.sd: "), "{missing}");
    assert_eq!(Schemas::read(&[], "c").unwrap().type_names(), "doc");
}

/// The schema, with some of its pieces cut, doubled or changed.
fn broken() -> impl Strategy<Value = String> {
    let cut = (0..MUSIC.len(), 0..60_usize, "[a-z{}<>:|#\" \n]{0,4}");
    proptest::collection::vec(cut, 1..4).prop_map(|cuts| {
        let mut text = MUSIC.to_owned();
        for (start, length, put) in cuts {
            let start = start.min(text.len());
            let end = (start + length).min(text.len());
            text.replace_range(start..end, &put);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_make_the_parser_panic(
        bytes in proptest::collection::vec(any::<u8>(), 0..300),
        text in broken(),
    ) {
        let _ = parse(&bytes, "f");
        if let Err(error) = parse(text.as_bytes(), "f") {
            prop_assert!(error.to_string().starts_with("f:"), "{}", error);
        }
    }
}
