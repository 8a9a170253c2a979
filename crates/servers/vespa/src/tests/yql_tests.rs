//! The parser: what it makes of good text, what it says of bad text, and that it never panics.

use crate::query_type::QueryType;
use crate::simple::{self, Text};
use crate::yql::{self, FreeText, MAX_DEPTH, MAX_TEXT_BYTES, Scope};
use plimsoll_documents::schema::Schemas;
use plimsoll_index::query::{Literal, Node, Number, OrderBy, Selection, Statement};
use plimsoll_index::query::{Place, Within};
use proptest::prelude::*;
use std::ops::Bound;

struct TestScope;

impl Scope for TestScope {
    fn parameter(&self, name: &str) -> Option<&str> {
        match name {
            "word" => Some("from a parameter"),
            "number" => Some("12"),
            _ => None,
        }
    }

    fn user_query(&self) -> Result<Node, String> {
        read("red \"dry wine\" -sweet", "default", QueryType::default(), None)
    }

    fn free_text(&self, free: &FreeText<'_>) -> Result<Node, String> {
        let kind = if free.only_words { QueryType::only_words() } else { QueryType::default() };
        let field = free.field.unwrap_or("default");
        read(free.text, field, kind.with(free.grammar)?, free.distance)
    }
}

fn read(text: &str, field: &str, kind: QueryType, distance: Option<u32>) -> Result<Node, String> {
    let schemas = Schemas::built_in("plimsoll");
    simple::parse(&Text { text, field, kind, distance, schemas: &schemas })
}

fn parse(text: &str) -> Result<Statement, String> {
    yql::parse(text, &TestScope).map_err(|error| error.to_string())
}

fn filter(text: &str) -> Node {
    let text = format!("select * from sources * where {text}");
    parse(&text).unwrap_or_else(|error| panic!("{text}: {error}")).filter
}

fn term(field: &str, text: &str) -> Node {
    Node::Term { field: field.into(), text: text.into() }
}

fn phrase(field: &str, words: &[&str]) -> Node {
    Node::Phrase { field: field.into(), words: words.iter().map(ToString::to_string).collect() }
}

fn fuzzy(field: &str, text: &str, max_edits: u64, prefix_length: usize) -> Node {
    Node::Fuzzy { field: field.into(), text: text.into(), max_edits, prefix_length }
}

fn range(lower: Bound<i64>, upper: Bound<i64>) -> Node {
    let (lower, upper) = (lower.map(Number::Whole), upper.map(Number::Whole));
    Node::Range { field: "score".into(), lower, upper }
}

fn not(node: Node) -> Node {
    Node::Not(Box::new(node))
}

// One table of all there is, which is read best in one place.
#[allow(clippy::too_many_lines)]
#[test]
fn conditions_become_trees() {
    use Bound::{Excluded, Included, Unbounded};
    let (a, b) = (term("title", "a"), term("title", "b"));
    let prefix = Node::Prefix { field: "title".into(), text: "wor".into() };
    let table = [
        ("true", Node::All),
        ("false", Node::Nothing),
        (r#"title contains "a""#, a.clone()),
        (r#"title CONTAINS 'a'"#, a.clone()),
        (r#"title contains ("a")"#, a.clone()),
        (r#"(((title contains "a")))"#, a.clone()),
        (r#"title contains "tab\tand é \"x\"""#, term("title", "tab\tand é \"x\"")),
        (r#"title contains "\ud83d\ude00""#, term("title", "😀")),
        (r#"title contains @word"#, term("title", "from a parameter")),
        (r#"title contains ({stem: false, weight: 200}"a")"#, a.clone()),
        (r#"title contains phrase("a", "b")"#, phrase("title", &["a", "b"])),
        (r#"title contains equiv("a", "b")"#, Node::Or(vec![a.clone(), b.clone()])),
        (r#"title contains fuzzy("w")"#, fuzzy("title", "w", 2, 0)),
        (r#"title contains ({maxEditDistance: 1}fuzzy("w"))"#, fuzzy("title", "w", 1, 0)),
        (
            r#"title contains ({maxEditDistance:1,prefixLength:3}fuzzy("word"))"#,
            fuzzy("title", "word", 1, 3),
        ),
        (r#"title contains {maxEditDistance:0}fuzzy("w")"#, fuzzy("title", "w", 0, 0)),
        (r#"title contains ({prefix:true}"wor")"#, prefix.clone()),
        (r#"title contains ({"prefix": true, weight: [1, {a: 2}]}"wor")"#, prefix),
        ("score = 3", range(Included(3), Included(3))),
        ("score == -3", range(Included(-3), Included(-3))),
        ("score < 3", range(Unbounded, Excluded(3))),
        ("score <= 3L", range(Unbounded, Included(3))),
        ("score > 3", range(Excluded(3), Unbounded)),
        ("score>=3", range(Included(3), Unbounded)),
        ("score != 3", not(range(Included(3), Included(3)))),
        ("range(score, -1, 5)", range(Included(-1), Included(5))),
        ("({weight: 5}true)", Node::All),
        ("score = -9223372036854775808", range(Included(i64::MIN), Included(i64::MIN))),
    ];
    for (text, expected) in table {
        assert_eq!(filter(text), expected, "{text}");
    }
    let Node::Range { lower, upper, .. } = filter("range(score, -Infinity, Infinity)") else {
        panic!("not a range");
    };
    assert_eq!(lower, Included(Number::Real(f64::NEG_INFINITY)));
    assert_eq!(upper, Included(Number::Real(f64::INFINITY)));
}

#[test]
fn connectives_and_functions_become_trees() {
    let (a, b, c) = (term("title", "a"), term("title", "b"), term("title", "c"));
    let table = [
        (
            r#"title contains "a" and title contains "b" or title contains "c""#,
            Node::Or(vec![Node::And(vec![a.clone(), b.clone()]), c.clone()]),
        ),
        (
            r#"title contains "a" and (title contains "b" or title contains "c")"#,
            Node::And(vec![a.clone(), Node::Or(vec![b.clone(), c])]),
        ),
        (
            r#"title contains "a" and !(title contains "b")"#,
            Node::And(vec![a.clone(), not(b.clone())]),
        ),
        (r#"!title contains "b""#, not(b.clone())),
        (r#"not(title contains "b")"#, not(b)),
        (r#"sddocname contains "doc""#, Node::Type("doc".into())),
        (r#"sddocname contains "music""#, Node::Type("music".into())),
        (
            r#"category in ("x", 'y', @word)"#,
            Node::OneOf {
                field: "category".into(),
                values: ["x", "y", "from a parameter"].map(|t| Literal::Text(t.into())).into(),
            },
        ),
        (
            "userQuery()",
            Node::And(vec![
                Node::Or(vec![term("default", "red"), phrase("default", &["dry", "wine"])]),
                not(term("default", "sweet")),
            ]),
        ),
        (
            r#"{defaultIndex: "title"}userInput("a title:b author:c")"#,
            Node::Or(vec![a, term("title", "b"), term("author", "c")]),
        ),
    ];
    for (text, expected) in table {
        assert_eq!(filter(text), expected, "{text}");
    }
}

#[test]
fn statements_have_all_their_parts() {
    let text = "select title, documentid from sources doc, plimsoll where true \
                order by category desc, {function: 'raw'}score limit 31 offset 29 timeout 200;";
    let order = |field: &str, descending| OrderBy { field: field.into(), descending };
    let expected = Statement {
        selection: Selection::Named(vec!["title".into(), "documentid".into()]),
        sources: vec!["doc".into(), "plimsoll".into()],
        filter: Node::All,
        order: vec![order("category", true), order("score", false)],
        limit: Some(31),
        offset: Some(29),
        timeout_ms: Some(200),
    };
    assert_eq!(parse(text), Ok(expected));
    let plain = parse("select * from doc where true").unwrap();
    assert_eq!((plain.selection, plain.limit), (Selection::All, None));
}

#[test]
fn errors_name_the_place_and_what_was_expected() {
    let table = [
        ("", "query:L1:1 expected 'select', found the end of the query"),
        ("select", "query:L1:7 expected '*' or a field name, found the end of the query"),
        ("select * from", "query:L1:14 expected 'sources', '*' or a document type"),
        ("select * from doc where", "query:L1:24 expected a condition, found the end"),
        ("select * from doc\n where title has \"a\"", "query:L2:14 expected 'contains'"),
        ("select * from doc where title contains", "expected a string or @parameter"),
        ("select * from doc where title contains \"a", "query:L1:40 this string has no closing"),
        ("select * from doc where title contains @x", "L1:40 the request has no parameter 'x'"),
        ("select * from doc where true true", "query:L1:30 expected 'and', 'or', 'order by'"),
        ("select * from doc where (true", "query:L1:30 expected ')'"),
        ("select * from doc where score > \"a\"", "L1:33 expected a number, found the string"),
        ("select * from doc where true limit -1", "expected a whole number of 0 or more"),
        ("select * from doc where true | all(group(x))", "grouping with '|' is not supported"),
        ("select * from doc where wand(title, {a: 1})", "L1:25 wand() is not supported"),
        ("select * from doc where dotProduct(title, {a: 1})", "dotProduct() is not supported"),
        ("select * from doc where weightedSet(title, {a: 1})", "weightedSet() is not supported"),
        ("select * from doc where nearestNeighbor(a, b)", "nearestNeighbor() is not supported"),
        ("select * from doc where title contains sameElement(\"a\")", "sameElement() is not supp"),
        ("select * from doc where title contains near(\"a\", !\"b\")", "'!' in near() is not supp"),
        (
            "select * from doc where title contains ({distance: -1}near(\"a\"))",
            "takes a whole number",
        ),
        ("select * from doc where weakAnd()", "L1:33 expected a condition"),
        ("select * from doc where {targetHits: \"5\"}weakAnd(true)", "'targetHits' takes a whole"),
        ("select * from doc where userInput(\"...\")", "L1:25 '...' has no word to look for"),
        ("select * from doc where {grammar: \"x\"}userInput(\"a\")", "no query type 'x'"),
        ("select * from doc where {grammar: \"adv\"}userInput(\"a\")", "'adv' is not supported"),
        ("select * from doc where {grammar.composite: \"x\"}userInput(\"a\")", "no composite 'x'"),
        (
            "select * from doc where {grammar.syntax: \"json\"}userInput(\"a\")",
            "'json' is not supp",
        ),
        (
            "select * from doc where {grammar.tokenization: \"linguistics\"}userInput(\"a\")",
            "tokenization linguistics needs syntax none",
        ),
        (
            "select * from doc where {grammar.profile: \"x\"}userInput(\"a\")",
            "'grammar.profile' is not",
        ),
        ("select * from doc where {bounds: \"shut\"}range(score, 1, 2)", "'bounds' takes"),
        ("select * from doc where title matches \"a\"", "'matches' is not supported"),
        (
            "select * from doc where title contains ({maxEditDistance: 3}fuzzy(\"a\"))",
            "query:L1:59 maxEditDistance 3 is not supported: use 0 to 2",
        ),
        (
            "select * from doc where title contains ({substring: true}\"a\")",
            "query:L1:42 the annotation 'substring' is not supported",
        ),
        ("select * from doc where title contains ({prefix: 1}\"a\")", "'prefix' takes true or"),
        ("select * from doc where title contains \"\\x41\"", "L1:41 expected one of"),
        ("select * from doc where title contains \"\\ud800\"", "this is half a character"),
        ("select * from doc where title # \"a\"", "query:L1:31 unexpected character '#'"),
        ("select * from doc where score = 12abc", "expected a space after the number 12"),
    ];
    for (text, expected) in table {
        let error = parse(text).expect_err(text);
        assert!(error.contains(expected), "{text}\n  said     {error}\n  expected {expected}");
    }
}

#[test]
fn size_and_depth_are_bounded() {
    let deep = |levels: usize| {
        format!("select * from doc where {}true{}", "(".repeat(levels), ")".repeat(levels))
    };
    assert!(parse(&deep(MAX_DEPTH - 1)).is_ok());
    assert!(parse(&deep(MAX_DEPTH)).unwrap_err().contains("levels of nesting"));
    for opening in ["!", "not(", "{a:", "({a:[", "title contains ("] {
        let text = format!("select * from doc where {}", opening.repeat(10_000));
        assert!(parse(&text).is_err(), "{opening}");
    }
    let long = format!("select * from doc where title contains \"{}\"", "a".repeat(MAX_TEXT_BYTES));
    assert!(parse(&long).unwrap_err().contains("at most 65536"));
}

fn within(field: &str, places: &[&[&[&str]]], distance: u32, ordered: bool) -> Node {
    let words = |words: &&[&str]| words.iter().map(ToString::to_string).collect();
    let place = |place: &&[&[&str]]| place.iter().map(words).collect::<Place>();
    let places = places.iter().map(place).collect();
    Node::Within(Within { field: field.into(), places, distance, ordered })
}

#[test]
fn weak_and_rank_and_near_become_trees() {
    use Bound::{Excluded, Included};
    let (a, b, c) = (term("title", "a"), term("title", "b"), term("default", "c"));
    let flat = |node: &Node| Node::Constant(Box::new(node.clone()), 0.0);
    let table = [
        (
            r#"{targetHits: 5}weakAnd(title contains "a", title contains "b" and true)"#,
            Node::Or(vec![a.clone(), Node::And(vec![b.clone(), Node::All])]),
        ),
        (
            r#"rank(title contains "a", title contains "b", userInput("c"))"#,
            Node::Rank(vec![a.clone(), b.clone(), c.clone()]),
        ),
        (r#"title contains near("a", "b")"#, within("title", &[&[&["a"]], &[&["b"]]], 2, false)),
        (
            r#"title contains ({distance: 5}onear("a", phrase("b", "c"), equiv("d", "e")))"#,
            within("title", &[&[&["a"]], &[&["b", "c"]], &[&["d"], &["e"]]], 5, true),
        ),
        (r#"{grammar: "any"}userInput("c d")"#, Node::Or(vec![c.clone(), term("default", "d")])),
        (r#"({grammar: "all"}userInput("c d"))"#, Node::And(vec![c.clone(), term("default", "d")])),
        (
            r#"{"grammar.composite": "oNear", distance: 4}userInput("c d")"#,
            within("default", &[&[&["c"]], &[&["d"]]], 4, true),
        ),
        (r#"title contains text("a -b")"#, Node::Or(vec![a.clone(), b.clone()])),
        (r#"title contains ({ranked: false}"a")"#, flat(&a)),
        (r#"{ranked: false}userInput("c")"#, flat(&c)),
        (
            r#"{ranked: false}(title contains "a" or title contains ({ranked: true}"b"))"#,
            Node::Or(vec![flat(&a), b]),
        ),
        (r#"{allowEmpty: true}userInput("...")"#, Node::Null),
        (r#"({bounds: "rightOpen"}range(score, 1, 5))"#, range(Included(1), Excluded(5))),
        (r#"{bounds: "open"}range(score, 1, 5)"#, range(Excluded(1), Excluded(5))),
        ("score = @number", range(Included(12), Included(12))),
    ];
    for (text, expected) in table {
        assert_eq!(filter(text), expected, "{text}");
    }
}

#[test]
fn parts_that_ask_for_nothing_are_left_out() {
    let (a, b) = (term("title", "a"), term("title", "b"));
    let null = Node::Null;
    let table = [
        (Node::Null, None),
        (Node::And(vec![null.clone(), a.clone()]), Some(a.clone())),
        (
            Node::Or(vec![null.clone(), a.clone(), b.clone()]),
            Some(Node::Or(vec![a.clone(), b.clone()])),
        ),
        (
            Node::Rank(vec![null.clone(), a.clone(), b.clone()]),
            Some(Node::Rank(vec![a.clone(), b])),
        ),
        (Node::Not(Box::new(Node::Or(vec![null.clone()]))), None),
        (Node::And(vec![a.clone(), not(null)]), Some(a)),
    ];
    for (node, expected) in table {
        assert_eq!(node.clone().asked(), expected, "{node:?}");
    }
}

fn soup() -> impl Strategy<Value = String> {
    let parts = [
        "select",
        "*",
        "from",
        "sources",
        "doc",
        "where",
        "title",
        "contains",
        "\"a\"",
        "'b'",
        "(",
        ")",
        "{",
        "}",
        "[",
        "]",
        "prefix",
        ":",
        "true",
        "fuzzy",
        "phrase",
        ",",
        "and",
        "or",
        "!",
        "not",
        "=",
        "<",
        ">=",
        "-",
        "1",
        "2.5e3",
        "range",
        "Infinity",
        "in",
        "userQuery",
        "limit",
        "order",
        "by",
        "desc",
        ";",
        "@word",
        "\\",
        "é",
        "\n",
        "maxEditDistance",
        "|",
    ];
    let part = proptest::sample::select(parts.to_vec());
    proptest::collection::vec(part, 0..40).prop_map(|parts| parts.join(" "))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic(text in any::<String>(), tail in soup()) {
        let _ = parse(&text);
        let _ = parse(&tail);
        let _ = parse(&format!("select * from doc where {tail}"));
        let _ = parse(&format!("select * from doc where title contains {text}"));
    }

    #[test]
    fn any_string_survives_quoting(text in any::<String>()) {
        let mut quoted = String::new();
        for c in text.chars() {
            match c {
                '"' | '\\' => quoted.extend(['\\', c]),
                '\n' => quoted.push_str("\\n"),
                c if c.is_ascii() => quoted.push(c),
                c => {
                    let mut units = [0; 2];
                    for unit in c.encode_utf16(&mut units) {
                        quoted.push_str(&format!("\\u{unit:04x}"));
                    }
                }
            }
        }
        prop_assert_eq!(filter(&format!("title contains \"{quoted}\"")), term("title", &text));
    }
}
