//! Free text, as Vespa 8 reads it. The trees of the table are those that `com.yahoo.vespa:container`
//! 8.700.24 printed for the same text and query type, where the differences documented in
//! `docs/search-target.md` do not say otherwise. A weakAnd is an `or` here.

use crate::query_type::{QueryType, QueryTypeParts};
use crate::simple::{self, Text};
use plimsoll_documents::schema::Schemas;
use plimsoll_index::query::{Node, Number, Within};
use proptest::prelude::*;
use std::ops::Bound;

/// Names a type, or a composite with `=`.
fn kind(name: &str) -> QueryType {
    let text = |text: &str| Some(text.to_owned());
    let parts = match name.strip_prefix('=') {
        Some(composite) => QueryTypeParts { composite: text(composite), ..Default::default() },
        None => QueryTypeParts { name: text(name), ..Default::default() },
    };
    QueryType::default().with(&parts).unwrap()
}

fn parse(text: &str, kind: QueryType) -> Result<Node, String> {
    let schemas = Schemas::built_in("plimsoll");
    simple::parse(&Text { text, field: "default", kind, distance: None, schemas: &schemas })
}

/// A tree in few letters; the default field has no name.
fn shown(node: &Node) -> String {
    let list = |name: &str, nodes: &[Node]| {
        let nodes: Vec<String> = nodes.iter().map(shown).collect();
        format!("({name} {})", nodes.join(" "))
    };
    let of = |field: &str, text: String| {
        if field == "default" { text } else { format!("{field}:{text}") }
    };
    match node {
        Node::Null => "null".to_owned(),
        Node::Term { field, text } => of(field, text.clone()),
        Node::Phrase { field, words } => of(field, format!("\"{}\"", words.join(" "))),
        Node::Prefix { field, text } => of(field, format!("{text}*")),
        Node::And(nodes) => list("and", nodes),
        Node::Or(nodes) => list("or", nodes),
        Node::Rank(nodes) => list("rank", nodes),
        Node::Not(node) => format!("-{}", shown(node)),
        Node::Within(Within { field, places, distance, ordered }) => {
            let places: Vec<String> = places.iter().map(|place| place[0].join("_")).collect();
            let name = if *ordered { "onear" } else { "near" };
            of(field, format!("({name} {distance} {})", places.join(" ")))
        }
        Node::Range { field, lower, upper } => {
            let bound = |bound: &Bound<Number>| match bound {
                Bound::Unbounded => String::new(),
                Bound::Included(Number::Whole(n)) => format!("={n}"),
                Bound::Excluded(Number::Whole(n)) => n.to_string(),
                bound => format!("{bound:?}"),
            };
            format!("{field}[{};{}]", bound(lower), bound(upper))
        }
        other => format!("{other:?}"),
    }
}

#[track_caller]
fn check(name: &str, table: &[(&str, &str)]) {
    for (text, expected) in table {
        let node = parse(text, kind(name)).unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(shown(&node), *expected, "{name}: {text}");
    }
}

#[test]
fn any_word_will_do_by_default() {
    assert_eq!(QueryType::default(), kind("weakAnd"));
    check(
        "weakAnd",
        &[
            ("album silence", "(or album silence)"),
            ("album", "album"),
            ("album -silence", "(and album -silence)"),
            ("album lost -silence", "(and (or album lost) -silence)"),
            ("-silence", "-silence"),
            ("+album silence", "(or album silence)"),
            ("album OR silence", "(or album OR silence)"),
            ("title:album silence", "(or title:album silence)"),
            ("author:melville whale", "(or author:melville whale)"),
            ("nope:album silence", "(or (and nope album) silence)"),
            ("\"album silence\" lost", "(or \"album silence\" lost)"),
            ("\"album silence", "\"album silence\""),
            ("\"album\"", "album"),
            ("e-mail well", "(or (and e mail) well)"),
            ("foo.bar, baz", "(or (and foo bar) baz)"),
            ("don't stop", "(or don t stop)"),
            ("(album silence) lost", "(or (or album silence) lost)"),
            ("-(album silence) lost", "(and lost -(or album silence))"),
            ("a (b c) -d (e f)", "(and (or a (or b c) (or e f)) -d)"),
            ("12 whales", "(or 12 whales)"),
            ("alb* silence", "(or alb* silence)"),
            ("title:al* b", "(or title:al* b)"),
            ("album!200 silence! x!!! y", "(or album silence x y)"),
            ("...", "null"),
            ("", "null"),
            ("\" \" ()", "null"),
            ("title: album", "album"),
            ("title:\"album silence\"", "title:\"album silence\""),
            ("a+b a_b", "(or (and a b) (and a b))"),
            ("+ album", "album"),
            ("- album", "album"),
            ("-\"album silence\" lost", "(and lost -\"album silence\")"),
            ("--album lost", "(and lost -album)"),
            ("title:-album lost", "(or title:album lost)"),
            ("under_score x2 2x", "(or (and under score) x2 2x)"),
            ("#tag @me", "(or tag me)"),
            ("a)b () [c d] a;b", "(or a b c d a b)"),
            ("title:(a b) c", "(or title:a b c)"),
            ("a & b | c", "(or a b c)"),
            ("http://foo.com/bar", "(and http foo com bar)"),
            ("\"a\"b a\"b c\"d", "(or a b a \"b c\" d)"),
            ("a…b “a b” a—b", "(or (and a b) \"a b\" (and a b))"),
            ("(+a b) c", "(or (rank a b) c)"),
            ("((a b) c) d", "(or (or a b c) d)"),
            ("(a -b) c", "(or (and a -b) c)"),
            ("-12 whales", "(or 12 whales)"),
            ("\"\" title:a", "title:a"),
        ],
    );
}

#[test]
fn numbers_of_a_field_are_compared() {
    check(
        "weakAnd",
        &[
            ("score:12 whales", "(or score[=12;=12] whales)"),
            ("score:>12", "score[12;]"),
            ("score:<-5", "score[;-5]"),
            ("score:-12", "score[=-12;=-12]"),
            ("score:[3;5] a", "(or score[=3;=5] a)"),
            ("score:[;5]", "score[;=5]"),
            ("score:[3;]", "score[=3;]"),
            ("a -score:12", "(and a -score[=12;=12])"),
        ],
    );
    for (text, message) in [
        ("score:abc", "'score' is a number"),
        ("score:[3", "needs two numbers"),
        ("score:[3;5;10]", "a limit of hits"),
    ] {
        let error = parse(text, kind("weakAnd")).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
}

#[test]
fn the_value_of_a_keyword_is_not_cut() {
    check(
        "weakAnd",
        &[
            ("author:herman-melville whale", "(or author:herman-melville whale)"),
            ("author:\"Herman Melville\" x", "(or author:Herman Melville x)"),
            ("(category:sea_food)", "category:sea_food"),
        ],
    );
}

#[test]
fn the_type_says_how_words_combine() {
    check(
        "all",
        &[
            ("album silence", "(and album silence)"),
            ("+album silence", "(and album silence)"),
            ("-silence", "-silence"),
            ("e-mail", "(and e mail)"),
            ("(album silence) lost", "(and (or album silence) lost)"),
            ("a (b c) -d", "(and a (or b c) -d)"),
            ("-(a b) c", "(and c -(and a b))"),
        ],
    );
    check(
        "any",
        &[
            ("album silence", "(or album silence)"),
            ("+album silence", "(rank album silence)"),
            ("(album silence) lost", "(or album silence lost)"),
            ("album (lost silence)", "(rank (or lost silence) album)"),
            ("+a +b c d", "(rank (and a b) c d)"),
            ("+a -b c", "(rank (and a -b) c)"),
            ("a -b c", "(and (or a c) -b)"),
            ("a -b", "(and a -b)"),
            ("(a b) (c d)", "(or (or a b) (or c d))"),
            ("-silence", "-silence"),
        ],
    );
    check(
        "web",
        &[
            ("+album silence lost", "(and album silence lost)"),
            ("album OR silence", "(or album silence)"),
            ("a OR b OR c d", "(or a b (and c d))"),
            ("OR a", "(and OR a)"),
            ("a OR", "a"),
            ("-a OR b", "(and OR b -a)"),
            ("(a OR b) c", "(or a (and b c))"),
            ("a (b c) -d (e f)", "(and a b c e f -d)"),
        ],
    );
    check(
        "phrase",
        &[("title:album -silence", "\"title album silence\""), ("e-mail", "\"e mail\"")],
    );
    check("tokenize", &[("-album +silence OR", "(or album silence OR)"), ("...", "null")]);
    check("linguistics", &[("-album +silence", "(or album silence)")]);
    check(
        "=near",
        &[
            ("album silence", "(near 2 album silence)"),
            ("album -lost silence", "(and (near 2 album silence) -lost)"),
            ("album \"lost silence\"", "(near 2 album lost_silence)"),
            ("album", "\"album\""),
        ],
    );
    check("onear", &[("a b c", "(onear 2 a b c)")]);
    check("=and", &[("a b", "(and a b)")]);
}

#[test]
fn types_that_are_unknown_or_not_supported_are_refused() {
    let name = |name: &str| QueryTypeParts { name: Some(name.to_owned()), ..Default::default() };
    for unknown in ["", "ALL", "Any", "nope"] {
        let error = QueryType::default().with(&name(unknown)).unwrap_err();
        assert!(error.starts_with(&format!("no query type '{unknown}'")), "{error}");
    }
    for other in ["adv", "yql", "select", "prog"] {
        let error = QueryType::default().with(&name(other)).unwrap_err();
        assert!(error.contains("is not supported by this server"), "{error}");
    }
    for (text, message) in
        [("*bum", "a suffix such as *word"), ("*bu*", "a substring such as *word*")]
    {
        let error = parse(text, kind("weakAnd")).unwrap_err();
        assert!(error.contains(message), "{text}: {error}");
    }
    let error = parse("a title:b", kind("near")).unwrap_err();
    assert!(error.contains("must be of one field"), "{error}");
    let error = parse("a (b c)", kind("near")).unwrap_err();
    assert!(error.contains("only words and phrases"), "{error}");
}

#[test]
fn parentheses_take_no_time_however_deep() {
    for opening in ["(", "-(", "+(", "a (", "-( ", "+-("] {
        let text = opening.repeat(5_000);
        let _ = parse(&text, kind("weakAnd"));
        let _ = parse(&opening.repeat(60), kind("weakAnd"));
        let _ = parse(&opening.repeat(60), kind("any"));
    }
    assert!(parse(&"(".repeat(65), kind("all")).unwrap_err().contains("64 parentheses"));
    // Each looks for a word in what follows.
    let _ = parse(&"title:".repeat(10_000), kind("weakAnd"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, ..ProptestConfig::default() })]

    #[test]
    fn no_text_makes_the_parser_panic_or_stop(
        text in any::<String>(),
        signs in "[ab1 +*()\\-\":;!<>.'\\[\\]]{0,40}",
        fields in "(title|score|author|x|:| |\\(|\\)|\"|-|1|a){0,20}",
    ) {
        for name in ["weakAnd", "all", "any", "web", "phrase", "near"] {
            for text in [&text, &signs, &fields] {
                let _ = parse(text, kind(name));
            }
        }
    }

    /// Words alone always mean the same, whatever stands between them.
    #[test]
    fn words_are_kept(words in proptest::collection::vec("[a-z]{1,5}", 1..6)) {
        let text = words.join(" ");
        let node = parse(&text, kind("all")).unwrap();
        let expected = if words.len() == 1 { words[0].clone() } else { format!("(and {text})") };
        prop_assert_eq!(shown(&node), expected);
    }
}
