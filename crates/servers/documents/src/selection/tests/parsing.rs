//! What is a selection, how it is read, and what errors say.

use super::{parse, parsed, schema};
use crate::selection::tree::{Expression, Node};
use crate::selection::{MAX_DEPTH, MAX_PATTERNS, MAX_SELECTION_BYTES, Pin, Selection, quoted};
use plimsoll_core::rng::Rng;
use plimsoll_serving::STACK_BYTES;
use plimsoll_wire::vespa::DocumentId;

/// The tree in the form of Lisp, which leaves no doubt about who binds closer.
fn lisp(node: &Node) -> String {
    let list = |word: &str, terms: &[Node]| {
        let terms: Vec<String> = terms.iter().map(lisp).collect();
        format!("({word} {})", terms.join(" "))
    };
    match node {
        Node::Constant(value) => value.to_string(),
        Node::DocumentType(name) => name.clone(),
        Node::All(terms) => list("and", terms),
        Node::Any(terms) => list("or", terms),
        Node::Not(term) => format!("(not {})", lisp(term)),
        Node::Comparison(comparison) => {
            let (left, right) = (lisp_value(&comparison.left), lisp_value(&comparison.right));
            format!("({} {left} {right})", comparison.operator.symbol())
        }
    }
}

fn lisp_value(value: &Expression) -> String {
    match value {
        Expression::Call(function, of) => format!("({} {})", function.name(), lisp_value(of)),
        Expression::Arithmetic(left, operator, right) => {
            format!("({} {} {})", operator.symbol(), lisp_value(left), lisp_value(right))
        }
        other => other.to_string(),
    }
}

#[test]
fn who_binds_closer() {
    let table = [
        ("true and false", "(and true false)"),
        ("not false and true", "(and (not false) true)"),
        ("not (false and true)", "(not (and false true))"),
        ("not music", "(not music)"),
        ("not music.year > 0", "(not (> music.year 0))"),
        ("not not music", "(not (not music))"),
        ("1==2 or 3==4", "(or (== 1 2) (== 3 4))"),
        ("true and not 1 == 2 or false", "(or (and true (not (== 1 2))) false)"),
        (
            "1 < 2 and 3 > 4 or 5 <= 6 and 7 >= 8",
            "(or (and (< 1 2) (> 3 4)) (and (<= 5 6) (>= 7 8)))",
        ),
        ("true and true and true", "(and true true true)"),
        ("(true and true) and true", "(and (and true true) true)"),
        ("true and (true and true)", "(and true (and true true))"),
        ("true or false and true or false", "(or true (and false true) false)"),
        ("1+2+3 != 0", "(!= (+ (+ 1 2) 3) 0)"),
        ("1-2-3 != 0", "(!= (- (- 1 2) 3) 0)"),
        ("1 + 2 * 3 != 0", "(!= (+ 1 (* 2 3)) 0)"),
        ("1 * 2 / 3 - 4 != 0", "(!= (- (/ (* 1 2) 3) 4) 0)"),
        ("1 * 2 / (3 - 4) != 0", "(!= (/ (* 1 2) (- 3 4)) 0)"),
        ("8 / 4 % 3 == 8", "(== (/ 8 (% 4 3)) 8)"),
        ("23 + 643 / 34 % 10 > 34", "(> (+ 23 (/ 643 (% 34 10))) 34)"),
        ("1++2==3--4", "(== (+ 1 2) (- 3 -4))"),
        ("+1==-2", "(== 1 -2)"),
        ("(123) < (200)", "(< 123 200)"),
        ("'a' + 'b'.hash() == 1", "(== (+ \"a\" (hash \"b\")) 1)"),
        ("('a' + 'b').hash() == 1", "(== (hash (+ \"a\" \"b\")) 1)"),
        ("(-6).abs() == 6", "(== (abs -6) 6)"),
        ("id.hash().abs() == 12345", "(== (abs (hash id)) 12345)"),
        ("id.specific.hash() % 10 = 8", "(= (% (hash id.specific) 10) 8)"),
        ("music.title.lowercase().hash() == 1", "(== (hash (lowercase music.title)) 1)"),
        ("now() . abs ( ) > 1", "(> (abs now()) 1)"),
        ("(music.year)", "(!= music.year null)"),
        ("(((music.year))) AND (music)", "(and (!= music.year null) music)"),
        (
            "((243) < 300 and (\"FOO\").lowercase() == (\"foo\"))",
            "(and (< 243 300) (== (lowercase \"FOO\") \"foo\"))",
        ),
        ("music.flag == true", "(== music.flag true)"),
    ];
    for (selection, expected) in table {
        assert_eq!(lisp(&parsed(selection).root), expected, "{selection}");
    }
}

#[test]
fn the_canonical_text() {
    let table = [
        ("", "true"),
        (" \t\r\n", "true"),
        ("TRUE or FALSE aNd FALSE oR TRUE", "true or false and false or true"),
        ("not(music or book)", "not (music or book)"),
        ("iD == 'id:a:b::c'", "id == \"id:a:b::c\""),
        ("Id.scHeme == NULL", "id.scheme == null"),
        ("id.user == 0x12456ab", "id.user == 19158699"),
        ("id.bucket == 0x80000000000000f2", "id.bucket == -9223372036854775566"),
        ("1 == 010", "1 == 10"),
        ("1 == -0xff", "1 == -255"),
        ("1 == -9223372036854775808", "1 == -9223372036854775808"),
        ("1. == 234123.523e3", "1.0 == 234123523.0"),
        ("1.0f == 1.5E-10d", "1.0 == 1.5e-10"),
        ("1.0e300 == 1.0", "1.0e300 == 1.0"),
        ("1 == \"\\tt\\x48 \\n\\\"\"", "1 == \"\\ttH \\n\\\"\""),
        ("1 == '\\'\"'", "1 == \"'\\\"\""),
        ("1 == '\\xc3\\xa9\u{e9}'", "1 == \"\u{e9}\u{e9}\""),
        ("1 == '\\x00\\x7f'", "1 == \"\\x00\\x7f\""),
        ("$Type == 1", "$Type == 1"),
        ("type and user", "type and user"),
        ("music.tags[ 3 ] == 1", "music.tags[3] == 1"),
        ("music.tags[$i] == 1", "music.tags[$i] == 1"),
        ("music.props{ key } == 1", "music.props{\"key\"} == 1"),
        ("music.props{\"a \\\"b\"}", "music.props{\"a \\\"b\"} != null"),
        ("music.numbered{3} == 1", "music.numbered{\"3\"} == 1"),
        ("music.lists{$k}[0] == 1", "music.lists{$k}[0] == 1"),
        ("music.weights{$k} > 1", "music.weights{$k} > 1"),
        ("music.props.key == music.props.value", "music.props.key == music.props.value"),
    ];
    for (selection, expected) in table {
        assert_eq!(parsed(selection).to_string(), expected, "{selection:?}");
        assert_eq!(parsed(expected), parsed(selection), "{selection:?}");
    }
    assert_eq!(quoted("a\u{c}\u{1}\u{e9}"), "\"a\\f\\x01\u{e9}\"");
}

#[test]
fn errors_say_where_and_what() {
    let table = [
        ("music.year == aaa", 15, "Document type 'aaa' not found"),
        ("year == 2015", 1, "Document type 'year' not found"),
        ("MUSIC", 1, "Document type 'MUSIC' not found"),
        ("fal se", 1, "Document type 'fal' not found"),
        ("music.nosuch == 1", 7, "Document type 'music' has no field 'nosuch'"),
        ("book.year", 6, "Document type 'book' has no field 'year'"),
        ("music == 8", 1, "expected a value, found the document type 'music'"),
        ("(1 + 2)", 1, "expected a condition"),
        ("1", 1, "expected a condition"),
        ("id", 1, "expected a condition"),
        ("true and 'x'", 10, "expected a condition"),
        ("not 3", 5, "expected a condition"),
        ("1 == 2 == 3", 1, "expected a value, found a condition"),
        ("(true or false) + 1 == 2", 1, "expected a value, found a condition"),
        ("1 == not true", 6, "expected a value, found a condition"),
        ("music.year <> 12", 13, "found '>'"),
        ("music.year ==", 14, "found the end"),
        ("(music", 7, "expected ')', found the end"),
        ("music)", 6, "expected an operator, 'and', 'or' or the end, found ')'"),
        ("true false", 6, "expected an operator"),
        ("and true", 1, "found 'and'"),
        ("- music.year == 1", 3, "expected a number behind the sign"),
        ("--1 == 1", 2, "expected a number behind the sign"),
        ("1e5 == 1", 2, "expected an operator"),
        ("1 == 9223372036854775808", 6, "64-bit"),
        ("1 == -9223372036854775809", 7, "64-bit"),
        ("1 == 18446744073709551616", 6, "64-bit"),
        ("1 == 0x", 6, "hexadecimal"),
        ("1 == 0x11111111111111111", 6, "hexadecimal"),
        ("1 == 1.0e999", 6, "range of doubles"),
        ("1 == 'abc", 6, "no closing '"),
        ("1 == 'a\\ysf'", 8, "unknown escape"),
        ("1 == 'a\\x0g'", 8, "unknown escape"),
        ("1 == 'a\\", 6, "no closing '"),
        ("1 == '\\xff'", 6, "not UTF-8"),
        ("1 == #", 6, "unexpected character '#'"),
        ("'\u{e9}' == #", 8, "unexpected character '#'"),
        ("id.foo == 1", 4, "expected scheme, namespace"),
        ("id.bucket.hash() == 1", 11, "no function takes id.bucket"),
        ("music.title.upper() == 1", 13, "no function 'upper' exists"),
        ("music.title.hash( == 1", 19, "expected ')'"),
        ("music.lowercase() == 1", 7, "cannot call 'lowercase' on a document type"),
        ("now ()", 1, "Document type 'now' not found"),
        ("NOW() > 1", 1, "Document type 'NOW' not found"),
        ("music.and == 1", 7, "keyword"),
        ("music.title[0] == 1", 12, "'[' needs an array"),
        ("music.tags{a} == 1", 11, "'{' needs a map"),
        ("music.tags[-1] == 1", 11, "expected [NUMBER]"),
        ("music.tags[99999999999999999999] == 1", 11, "expected [NUMBER]"),
        ("music.props{} == 1", 12, "expected {KEY}"),
        ("music.props{\"a} == 1", 12, "expected {KEY}"),
        ("music.numbered{a} == 1", 15, "the key is not of the type"),
        ("music.tags.key == 1", 12, "'.key' and '.value' need"),
        ("music.props.sub == 1", 13, "expected 'key', 'value' or a function"),
        ("music.year / 0 == 1", 14, "division by zero"),
        ("music.year % 0 == 1", 14, "division by zero"),
        ("1 / -0.0 == 1", 5, "division by zero"),
        ("music.title =~ '(' ", 16, "a bad regular expression"),
        ("music.title =~ '(\\\\pL{1000}){1000}'", 16, "the pattern is too large"),
    ];
    for (selection, column, part) in table {
        let error = parse(selection).map(|parsed| parsed.to_string()).unwrap_err();
        assert!(error.message.contains(part), "{selection}: {error}");
        assert_eq!(error.column, column, "{selection}: {error}");
        assert!(!error.message.contains('\n'), "{error}");
    }
    assert!(parse("music.year ==").unwrap_err().to_string().ends_with(" at column 14"));
    let error = Selection::parse_bytes(b"'\xc3\xa9\xff'", &schema()).unwrap_err();
    assert_eq!((error.column, error.message.contains("UTF-8")), (3, true));
}

#[test]
fn limits_of_depth_and_length() {
    let refused = |selection: String| {
        // No depth that is allowed or tried may come to the end of a thread's stack, even without optimisation.
        let parse = move || {
            let result = parse(&selection).map(|parsed| parsed.to_string().len());
            result.map_err(|error| error.message)
        };
        let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(parse).unwrap();
        thread.join().unwrap()
    };
    let deep = |open: &str, inner: &str, close: &str, depth: usize| {
        refused(format!("{}{inner}{}", open.repeat(depth), close.repeat(depth)))
    };
    let message = Err(format!("the selection is nested more than {MAX_DEPTH} levels deep"));
    for (open, inner, close) in [
        ("(", "true", ")"),
        ("not ", "true", ""),
        ("(1+", "1", ") == 1"),
        ("", "1", "+1"),
        ("", "'a'", ".hash()"),
        ("(true and (false or ", "true", "))"),
    ] {
        assert_eq!(deep(open, inner, close, 40_000), message, "{open}");
    }
    assert!(deep("(", "true", ")", MAX_DEPTH).is_ok());
    assert_eq!(deep("(", "true", ")", MAX_DEPTH + 1), message);
    assert!(deep("not ", "true", "", MAX_DEPTH - 1).is_ok());
    assert_eq!(deep("not ", "true", "", MAX_DEPTH), message);
    // A row is one level, so long lists are fine.
    let list = vec!["music.year == 1"; 20_000].join(" or ");
    assert!(refused(list).is_ok());

    let literal = "x".repeat(MAX_SELECTION_BYTES - 8);
    assert!(parse(&format!("1 == '{literal}' ")).is_ok());
    let error = parse(&format!("1 == '{literal}'  ")).unwrap_err();
    assert!(error.message.contains("1048577 bytes"), "{error}");
    let long_word = "x".repeat(10_000);
    assert!(parse(&long_word).unwrap_err().message.len() < 200);

    let patterns = |number| vec!["music.title = 'a*'"; number].join(" or ");
    assert!(parse(&patterns(MAX_PATTERNS)).is_ok());
    assert!(parse(&patterns(MAX_PATTERNS + 1)).unwrap_err().message.contains("patterns"));
    assert!(parse(&vec!["music.title = 'a'"; 1000].join(" or ")).is_ok());
}

#[test]
fn evaluation_of_the_deepest_trees_fits_a_small_stack() {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES).spawn(|| {
        let document = super::document("id:ns:music::x", []);
        for selection in [
            format!("1 == {}1{}", "(1 + ".repeat(MAX_DEPTH - 3), ")".repeat(MAX_DEPTH - 3)),
            format!("{}true", "not ".repeat(MAX_DEPTH - 2)),
            format!("'a'{} == 1", ".hash()".repeat(MAX_DEPTH - 3)),
        ] {
            let parsed = parsed(&selection);
            parsed.evaluate(&document, 0).unwrap();
            assert_eq!(super::parsed(&parsed.to_string()), parsed);
        }
    });
    thread.unwrap().join().unwrap();
}

#[test]
fn what_a_selection_pins() {
    let id = "id:ns:music:n=7:x";
    let document = Some(Pin::Document(DocumentId::parse(id).unwrap()));
    let table = [
        (format!("id == '{id}'"), document.clone()),
        (format!("'{id}' == id"), document.clone()),
        (format!("id = '{id}'"), document.clone()),
        (format!("((music.year > 1) and (id == '{id}')) and true"), document),
        ("id.user == 7".to_owned(), Some(Pin::Number(7))),
        ("7 == id.user".to_owned(), Some(Pin::Number(7))),
        ("id.user = 0xffffffffffffffff".to_owned(), Some(Pin::Number(u64::MAX))),
        ("music and (id.group=='gz')".to_owned(), Some(Pin::Group("gz".to_owned()))),
        ("id = 'id:ns:music::*'".to_owned(), None),
        ("'id:ns:music::x' = id".to_owned(), None),
        ("id.group = 'g?'".to_owned(), None),
        ("id.user == 7 or id.user == 8".to_owned(), None),
        ("not id.user == 7".to_owned(), None),
        ("id.user != 7".to_owned(), None),
        ("id.user > 7".to_owned(), None),
        ("id.user == 7.0".to_owned(), None),
        ("id == 'no id'".to_owned(), None),
        ("true".to_owned(), None),
    ];
    for (selection, expected) in table {
        assert_eq!(parsed(&selection).pinned(), expected, "{selection}");
    }
    let location = |selection: &str| parsed(selection).pinned().unwrap().location();
    assert_eq!(location("id.user == 7"), 7);
    assert_eq!(location("id.group == 'gz'"), 0x436c_a8af_4572_31c9);
    assert_eq!(location("id == 'id:ns:music::gz'"), 0x436c_a8af_4572_31c9);
    assert_eq!(location("id == 'id:ns:music:g=gz:x'"), 0x436c_a8af_4572_31c9);
    let both = parsed("music").and(parsed("id.user == 7"));
    assert_eq!(both.pinned(), Some(Pin::Number(7)));
    assert_eq!(both.to_string(), "music and id.user == 7");
    assert_eq!(Selection::everything(), parsed(""));
}

#[test]
fn bytes_changed_at_random_never_break_the_parser() {
    let seeds = [
        "((music.year > 2015) and (music) and (id.namespace=='ns') and (id.user==7))",
        "not music.tags[$i] =~ '^a.*\\x41' or music.props{\"k\"}.lowercase().hash() % 10 == -0x1f",
        "music.lists{$k}[ 3 ] + 1.5e3 * now() <= id.specific.hash().abs() / 2 % 7",
    ];
    let mut rng = Rng::new(4);
    let mut good = 0;
    for round in 0..30_000 {
        let mut bytes = seeds[round % seeds.len()].as_bytes().to_vec();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len() as u64) as usize;
            match rng.below(3) {
                0 => drop(bytes.remove(at)),
                1 => bytes.insert(at, b"()[]{}.'\"\\=$%-0xnot and"[rng.below(23) as usize]),
                _ => bytes[at] = rng.below(256) as u8,
            }
        }
        if let Ok(selection) = Selection::parse_bytes(&bytes, &schema()) {
            good += 1;
            assert_eq!(parsed(&selection.to_string()), selection);
        }
    }
    assert!(good > 1000, "{good}");
}
