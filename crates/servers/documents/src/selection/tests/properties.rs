//! What holds for all selections and documents.

use super::{Document, parse, schema, text};
use crate::selection::pattern::{Pattern, has_wildcard};
use crate::selection::tree::{
    Arithmetic, Comparison, Expression, Field, Function, IdPart, Node, Operator, Step,
};
use crate::selection::{EvaluationError, Selection, Truth};
use crate::value::Value;
use plimsoll_wire::vespa::{DocumentId, key};
use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::select;

fn words() -> impl Strategy<Value = String> {
    prop_oneof![
        select(vec!["x", "y", "a*", "?", "", "id:ns:music:n=7:x", "gz"]).prop_map(str::to_owned),
        any::<String>(),
    ]
}

fn fields() -> impl Strategy<Value = Field> {
    let variable = || select(vec!["i", "j"]).prop_map(str::to_owned);
    let key = || prop_oneof![Just("x".to_owned()), Just("y \"\\".to_owned())];
    let plain = select(vec![
        "title", "year", "plays", "rating", "flag", "cover", "tags", "years", "weights", "props",
        "numbered", "lists", "vector",
    ]);
    let steps = prop_oneof![
        plain.prop_map(|name| (name, vec![])),
        (0usize..3).prop_map(|index| ("tags", vec![Step::Index(index)])),
        variable().prop_map(|name| ("years", vec![Step::IndexVariable(name)])),
        key().prop_map(|key| ("weights", vec![Step::Key(key)])),
        variable().prop_map(|name| ("props", vec![Step::KeyVariable(name)])),
        Just(("props", vec![Step::Values])),
        Just(("counts", vec![Step::Keys])),
        (0i64..4).prop_map(|key| ("numbered", vec![Step::Key(key.to_string())])),
        (variable(), variable()).prop_map(|(key, index)| {
            ("lists", vec![Step::KeyVariable(key), Step::IndexVariable(index)])
        }),
    ];
    steps.prop_map(|(name, steps)| Field {
        document_type: "music".to_owned(),
        name: name.to_owned(),
        steps,
    })
}

fn expressions() -> impl Strategy<Value = Expression> {
    let parts: Vec<IdPart> =
        IdPart::NAMED.map(|(_, part)| part).into_iter().chain([IdPart::Whole]).collect();
    let leaf = prop_oneof![
        4 => fields().prop_map(Expression::Field),
        1 => Just(Expression::Null),
        1 => any::<bool>().prop_map(Expression::Bool),
        2 => (-3i64..4).prop_map(Expression::Integer),
        1 => any::<i64>().prop_map(Expression::Integer),
        1 => any::<f64>().prop_filter("finite", |n| n.is_finite()).prop_map(Expression::Float),
        2 => words().prop_map(Expression::Text),
        2 => select(parts).prop_map(Expression::Id),
        1 => Just(Expression::Variable("i".to_owned())),
        1 => Just(Expression::Now),
    ];
    leaf.prop_recursive(3, 8, 2, |inner| {
        prop_oneof![
            (select(Function::ALL.to_vec()), inner.clone())
                .prop_filter("buckets have no functions", |(_, of)| {
                    *of != Expression::Id(IdPart::Bucket)
                })
                .prop_map(|(function, of)| Expression::Call(function, Box::new(of))),
            (inner.clone(), select(Arithmetic::ALL.to_vec()), inner)
                .prop_filter("literal zeros are no divisors", |(_, operator, right)| {
                    let divides = matches!(operator, Arithmetic::Divide | Arithmetic::Remainder);
                    !divides
                        || !matches!(right, Expression::Integer(0))
                            && *right != Expression::Float(0.0)
                })
                .prop_map(|(left, operator, right)| {
                    Expression::Arithmetic(Box::new(left), operator, Box::new(right))
                }),
        ]
    })
}

fn nodes() -> impl Strategy<Value = Node> {
    let comparison = (expressions(), select(Operator::ALL.to_vec()), expressions())
        .prop_filter_map("patterns compile", |(left, operator, right)| {
            let pattern = match (operator, &right) {
                (Operator::Glob, Expression::Text(glob)) if has_wildcard(glob) => {
                    Some(Pattern::glob(glob).ok()?)
                }
                (Operator::Regex, Expression::Text(regex)) => Some(Pattern::regex(regex).ok()?),
                _ => None,
            };
            Some(Node::Comparison(Box::new(Comparison { left, operator, right, pattern })))
        });
    let leaf = prop_oneof![
        6 => comparison,
        1 => any::<bool>().prop_map(Node::Constant),
        1 => select(vec!["music", "book"]).prop_map(|name| Node::DocumentType(name.to_owned())),
    ];
    leaf.prop_recursive(4, 16, 3, |inner| {
        prop_oneof![
            vec(inner.clone(), 2..4).prop_map(Node::All),
            vec(inner.clone(), 2..4).prop_map(Node::Any),
            inner.prop_map(|node| Node::Not(Box::new(node))),
        ]
    })
}

fn documents() -> impl Strategy<Value = Document> {
    let small = || (-2i32..4).prop_map(Value::Int);
    let word = || select(vec!["x", "y", "z"]).prop_map(text);
    // Each key once, as the store keeps them.
    fn unique<V>(mut entries: Vec<(Value, V)>) -> Vec<(Value, V)> {
        let mut seen: Vec<Value> = Vec::new();
        entries.retain(|(key, _)| {
            let is_new = !seen.contains(key);
            seen.push(key.clone());
            is_new
        });
        entries
    }
    let values = prop_oneof![
        words().prop_map(|word| ("title", Value::String(word))),
        small().prop_map(|year| ("year", year)),
        (-1i64..2).prop_map(|plays| ("plays", Value::Long(plays))),
        any::<f32>().prop_map(|rating| ("rating", Value::Float(rating))),
        any::<bool>().prop_map(|flag| ("flag", Value::Bool(flag))),
        Just(("cover", Value::Raw(vec![1]))),
        vec(word(), 1..4).prop_map(|tags| ("tags", Value::Array(tags))),
        vec(small(), 1..4).prop_map(|years| ("years", Value::Array(years))),
        vec((word(), -1i32..3), 1..4)
            .prop_map(|entries| ("weights", Value::WeightedSet(unique(entries)))),
        vec((small(), -1i32..3), 1..4)
            .prop_map(|entries| ("counts", Value::WeightedSet(unique(entries)))),
        vec((word(), word()), 1..4).prop_map(|entries| ("props", Value::Map(unique(entries)))),
        vec((small(), word()), 1..4).prop_map(|entries| ("numbered", Value::Map(unique(entries)))),
        vec((word(), vec(small(), 0..4).prop_map(Value::Array)), 1..3)
            .prop_map(|entries| ("lists", Value::Map(unique(entries)))),
        Just(("vector", Value::Tensor(vec![0.5]))),
    ];
    let ids = select(vec![
        "id:ns:music:n=7:x",
        "id:ns:music:g=gz:x",
        "id:ns:music::gz",
        "id:ns:book::x",
        "id:ns:music:n=18446744073709551615:y",
    ]);
    (ids, vec(values, 0..14)).prop_map(|(id, fields)| Document {
        id: DocumentId::parse(id).unwrap(),
        fields: fields.into_iter().collect(),
    })
}

fn evaluate(root: Node, document: &Document) -> Result<Truth, EvaluationError> {
    Selection { root }.evaluate(document, super::NOW_S)
}

fn not(node: Node) -> Node {
    Node::Not(Box::new(node))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_text_gives_the_tree(root in nodes()) {
        let selection = Selection { root };
        let text = selection.to_string();
        prop_assert_eq!(parse(&text), Ok(selection), "{}", text);
    }

    #[test]
    fn evaluation_ends_and_follows_the_laws(
        a in nodes(),
        b in nodes(),
        document in documents(),
    ) {
        let of = |node| evaluate(node, &document);
        prop_assert_eq!(of(not(not(a.clone()))), of(a.clone()));
        let both = vec![a.clone(), b.clone()];
        let neither = vec![not(a.clone()), not(b)];
        prop_assert_eq!(of(not(Node::All(both.clone()))), of(Node::Any(neither.clone())));
        prop_assert_eq!(of(not(Node::Any(both))), of(Node::All(neither)));
        let truth = of(a.clone());
        prop_assert_eq!(of(Node::All(vec![Node::Constant(true), a.clone()])), truth);
        prop_assert_eq!(of(Node::Any(vec![Node::Constant(false), a])), truth);
    }

    /// A visit that looks only where the pin says finds every document of the selection.
    #[test]
    fn pins_lose_no_document(root in nodes(), pin in 0usize..5, document in documents()) {
        let pins = [
            "id.user == 7", "id.group == 'gz'", "id == 'id:ns:music::gz'",
            "id = 'id:ns:music:n=7:x'", "id.user = 0xffffffffffffffff",
        ];
        let pinned = parse(pins[pin]).unwrap().and(Selection { root });
        let location = pinned.pinned().unwrap().location();
        if pinned.matches(&document, 0) == Ok(true) {
            prop_assert_eq!(key(document.id.location()), key(location));
        }
    }

    #[test]
    fn any_bytes_are_a_selection_or_an_error(
        bytes: Vec<u8>,
        text in any::<String>(),
        tail in "[a-z0-9 ()\\[\\]{}.$'\"=<>!~+*/%-]{0,30}",
    ) {
        let _ = Selection::parse_bytes(&bytes, &schema());
        for text in [text, format!("music.tags{tail}"), tail] {
            match parse(&text) {
                Ok(selection) => prop_assert_eq!(parse(&selection.to_string()), Ok(selection)),
                Err(error) => prop_assert!(error.column <= text.chars().count() + 1),
            }
        }
    }
}
