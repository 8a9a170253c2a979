//! What selections say of documents.

use super::{Document, NOW_S, check, document, evaluate, parsed, text};
use crate::selection::EvaluationError;
use crate::selection::Truth::{False, Invalid, True};
use crate::value::Value;

fn album() -> Document {
    document(
        "id:ns:music:n=7:one",
        [
            ("title", text("Yet")),
            ("artist", text("foo")),
            ("year", Value::Int(2015)),
            ("plays", Value::Long(-2_651_257_743)),
            ("small", Value::Byte(-3)),
            ("rating", Value::Float(4.5)),
            ("score", Value::Double(2.5)),
            ("flag", Value::Bool(true)),
            ("cover", Value::Raw(vec![1, 2])),
            ("tags", Value::Array(vec![text("x"), text("y")])),
            ("years", Value::Array(vec![Value::Int(1), Value::Int(2), Value::Int(3)])),
            ("weights", Value::WeightedSet(vec![(text("x"), 3), (text("val1"), 1)])),
            ("counts", Value::WeightedSet(vec![(Value::Int(5), 1), (Value::Int(-1), 2)])),
            ("props", Value::Map(vec![(text("k"), text("v")), (text("y"), text("x"))])),
            ("numbered", Value::Map(vec![(Value::Int(3), text("a")), (Value::Int(5), text("b"))])),
            (
                "lists",
                Value::Map(vec![
                    (text("x"), Value::Array(vec![Value::Int(10), Value::Int(20)])),
                    (text("y"), Value::Array(vec![Value::Int(20), Value::Int(30)])),
                ]),
            ),
            ("vector", Value::Tensor(vec![1.0, 2.0])),
        ],
    )
}

fn bare() -> Document {
    document("id:ns:music::anything", [])
}

#[test]
fn results_seen_on_the_real_handler() {
    check(&bare(), &[("music.year != 2015", True), ("1 + 2 * 3 == 7", True), ("", True)]);
    check(&album(), &[("music.flag == 1", True), ("not music.year > 0", False)]);
    // Only the first of the two: 'and' binds closer than 'or'.
    let second = document("id:ns:music::b", [("year", Value::Int(-3))]);
    for (document, expected) in [(album(), True), (second, False)] {
        check(&document, &[("music.year == 2015 or music.year == -3 and false", expected)]);
    }
    // Text is no number, as on content nodes.
    check(&album(), &[("music.year == '2015'", Invalid)]);
}

#[test]
fn operators_on_literals() {
    check(
        &bare(),
        &[
            ("30 < 10", False),
            ("10 < 30", True),
            ("30 <= 30", True),
            ("10 >= 30", False),
            ("30 >= 30", True),
            ("30 > 10", True),
            ("30 == 10", False),
            ("30 != 10", True),
            ("30 = 30", True),
            ("30 < 10.2", False),
            ("10.2 < 30", True),
            ("9007199254740993 == 9007199254740992", False),
            ("'foo' != \"bar\"", True),
            ("'foo' == 'foo'", True),
            ("'a' < 'b'", True),
            ("'Z' < 'a' and 'a' < '\u{e9}'", True),
            ("'bar' = 'a'", False),
            ("'bar' = '*a*'", True),
            ("'bar' = '*x*'", False),
            ("'bar' = 'ba*'", True),
            ("'bar' = 'a*'", False),
            ("'bar' = '*ar'", True),
            ("'bar' = '???'", True),
            ("'bar' = '????'", False),
            ("'bar' = '**'", True),
            ("'bar' = ''", False),
            ("'' = ''", True),
            ("'' = '****'", True),
            ("'a' = '*?*'", True),
            ("'a' = '*??*'", False),
            ("'\u{e9}' = '?'", True),
            ("'a.c' = 'a.*'", True),
            ("'abc' = 'a.*'", False),
            ("'a\\nb' = 'a*b'", True),
            ("'a\\nb\\nc' = 'b'", False),
            ("'a' + 'b' = 'a' + '?'", True),
            ("'bar' =~ '^a$'", False),
            ("'bar' =~ 'a'", True),
            ("'bar' =~ ''", True),
            ("'' =~ ''", True),
            ("'a\\nb\\nc' =~ '^b$'", False),
            ("'bar' =~ 'b' + 'a'", True),
            ("'bar' =~ '(' + ''", Invalid),
            ("30 =~ '3'", Invalid),
            ("'30' =~ 3", Invalid),
            ("30 = '3*'", Invalid),
            ("30 < 'foo'", Invalid),
            ("30 != 'foo'", Invalid),
            ("14.2 <= 'foo'", Invalid),
            ("null == null", True),
            ("null = null", True),
            ("null != null", False),
            ("'bar' == null", False),
            ("null != 14.3", True),
            ("null = 0", False),
            ("null = 'x'", Invalid),
            ("null < 1", Invalid),
            ("1 <= null", Invalid),
            ("null <= null", Invalid),
            ("true == 1 and false == 0", True),
            ("$x == 1", Invalid),
            ("$x == null", Invalid),
        ],
    );
}

#[test]
fn three_values() {
    check(
        &album(),
        &[
            ("music.title = 1 and true", Invalid),
            ("music.title = 1 or true", True),
            ("music.title = 1 and false", False),
            ("music.title = 1 or false", Invalid),
            ("true and music.title = 1", Invalid),
            ("true or music.title = 1", True),
            ("false and music.title = 1", False),
            ("false or music.title = 1", Invalid),
            ("not music.title = 1", Invalid),
            ("true and not false or false", True),
            ("false or true and true or false", True),
        ],
    );
    assert!(parsed("music").matches(&album(), 0).unwrap());
    assert!(!parsed("not music.title = 1").matches(&album(), 0).unwrap());
    assert!(!parsed("music.title = 1").matches(&album(), 0).unwrap());
}

#[test]
fn fields_and_types() {
    check(
        &album(),
        &[
            ("music", True),
            ("book", False),
            ("book.title == 'x'", Invalid),
            ("book.title", Invalid),
            ("not book.title", Invalid),
            ("music.year", True),
            ("music.year = 2015", True),
            ("2015 <= music.year and 2016 > music.year", True),
            ("music.plays < 0", True),
            ("music.small == -3", True),
            ("music.rating == 4.5 and music.rating > 4 and music.score < music.rating", True),
            ("music.flag == true and music.flag != false", True),
            ("music.title < 'Yet!' and music.title > 'Yes'", True),
            ("music.title == music.artist", False),
            ("music.vector and music.cover", True),
            ("music.vector == null", False),
            ("null != music.cover", True),
            ("music.vector == 1", Invalid),
            ("music.cover < 1", Invalid),
            ("music.cover == music.cover", Invalid),
        ],
    );
    check(
        &bare(),
        &[
            ("music.year", False),
            ("not music.year", True),
            ("music.year == null", True),
            ("music.year > 0", Invalid),
            ("music.year == 0", False),
            ("music.title = 'a*'", Invalid),
            ("music.title =~ 'a'", Invalid),
            ("music.tags == 'x'", False),
            ("music.tags[$i] == 'x'", False),
            ("music.props{k} == 'x'", False),
            ("music.vector == null", True),
        ],
    );
}

#[test]
fn parts_of_the_id() {
    check(
        &album(),
        &[
            ("id == 'id:ns:music:n=7:one'", True),
            ("id = 'id:ns:music:*'", True),
            ("id.scheme == 'id' and id.namespace == 'ns' and id.type == 'music'", True),
            ("id.specific == 'one'", True),
            ("id.user == 7", True),
            ("id.user != 8", True),
            ("id.user == '7'", Invalid),
            ("id.group == 'x'", Invalid),
            ("id.group == null", Invalid),
            ("id.bucket == 0x2000000000000007", True),
            ("0x2000000000000007 == id.bucket", True),
            ("id.bucket = 0x2000000000000008", False),
            ("id.bucket != 0x2000000000000008", True),
            ("id.bucket == 7", False),
            ("id.bucket == 'foo'", Invalid),
            ("id.bucket > 7", Invalid),
            ("id.bucket == id.bucket", Invalid),
            ("id.bucket + 1 == 1", Invalid),
        ],
    );
    check(
        &document("id:ns:music:g=yahoo:bar", []),
        &[
            ("id.group == 'yahoo'", True),
            ("id.group == 1234", Invalid),
            ("id.user == 7", Invalid),
            ("not id.user == 7", Invalid),
        ],
    );
    let large = document("id:ns:music:n=18446744073709551615:x", []);
    check(&large, &[("id.user == 0xffffffffffffffff", True), ("id.user < 0", True)]);
    let gid: String = bare().id.gid().iter().map(|byte| format!("{byte:02x}")).collect();
    check(&bare(), &[(&format!("id.gid == 'gid(0x{gid})'"), True)]);
}

#[test]
fn functions_and_arithmetic() {
    check(
        &album(),
        &[
            ("music.title.lowercase() == 'yet'", True),
            ("'\u{c9}'.lowercase() == '\u{e9}'", True),
            ("music.rating.lowercase() == 'yet'", Invalid),
            ("'bar'.hash() == -2012135647395072713", True),
            ("'bar'.hash().abs() == 2012135647395072713", True),
            ("(234).hash() == 123", False),
            ("(0.234).hash() == 123", False),
            ("null.hash() == 123", Invalid),
            ("'a'.abs() == 1", Invalid),
            ("(-2.5).abs() == 2.5", True),
            ("(-0x7fffffffffffffff - 1).abs() < 0", True),
            ("'foo' + 'bar' = 'foobar'", True),
            ("'foo' + 4 = 25", Invalid),
            ("'foo' - 'f' = 'oo'", Invalid),
            ("34.0 % 4 = 4", Invalid),
            ("-6 % 10 = -6", True),
            ("7 / 2 == 3 and -7 / 2 == -3", True),
            ("7 / 2.0 == 3.5", True),
            ("music.year - 15 == 2000 and music.year * 1.0 / 2 == 1007.5", True),
            ("9223372036854775807 + 1 < 0", True),
            ("music.year + null == 1", Invalid),
            ("music.tags + 'x' == 'x'", Invalid),
            ("music.tags.hash() == 1", Invalid),
            ("now() == 1700000000", True),
            ("now() - 86400 > music.year", True),
        ],
    );
    check(&bare(), &[("id.specific.hash() % 10 = 8", True)]);
    assert_eq!(NOW_S, 1_700_000_000);
}

#[test]
fn division_by_zero_is_an_error() {
    let error = Err(EvaluationError::DivisionByZero);
    let none = document("id:ns:music::x", [("plays", Value::Long(0))]);
    for selection in [
        "1 / music.plays == 1",
        "1 % music.plays == 1",
        "1.5 / music.plays == 1",
        "1 / (1 - 1) == 1",
        "not 1 / music.plays == 1",
        "music and 1 / music.plays == 1",
    ] {
        assert_eq!(evaluate(selection, &none), error, "{selection}");
        assert!(parsed(selection).matches(&none, 0).is_err());
    }
    // A guard is enough, and what is no number does not divide.
    check(
        &none,
        &[
            ("music.plays != 0 and 1 / music.plays == 1", False),
            ("1.5 % music.plays == 1", Invalid),
            ("1 / music.year == 1", Invalid),
        ],
    );
}

#[test]
fn collections() {
    check(
        &album(),
        &[
            ("music.tags", True),
            ("music.tags == 'x'", True),
            ("music.tags == 'z'", False),
            // One element that differs is enough, and so is one that is not refused.
            ("music.tags != 'x'", True),
            ("not music.tags == 'x'", True),
            ("music.tags = '?'", True),
            ("music.tags =~ '[xyz]'", True),
            ("music.tags < 'y'", True),
            ("music.tags < 'x'", False),
            ("music.tags == 1", Invalid),
            ("music.tags == null", False),
            ("'x' == music.tags", True),
            ("3 <= music.years and 4 > music.years", True),
            ("4 <= music.years", False),
            ("music.tags[0] == 'x'", True),
            ("music.tags[1] == 'x'", False),
            ("music.tags[7] == 'x'", False),
            ("music.tags[7]", False),
            ("music.tags[0] + music.tags[1] == 'xy'", True),
            ("music.weights == 'val1'", True),
            ("music.weights = 'val*'", True),
            ("music.weights == 'val5'", False),
            ("music.weights{x} == 3", True),
            ("music.weights{x} > 3", False),
            ("music.weights{nosuch}", False),
            ("music.weights.value == 1", True),
            ("music.counts == 5", True),
            ("music.counts{5} == 1", True),
            ("music.props", True),
            ("music.props == 'k'", True),
            ("music.props == 'v'", False),
            ("music.props.key == 'k'", True),
            ("music.props.value == 'v'", True),
            ("music.props.value == 'd'", False),
            ("music.props{k} == \"v\"", True),
            ("music.props{\"k\"} = 'v*'", True),
            ("music.props{k} == 'x'", False),
            ("music.props{nosuch}", False),
            ("music.numbered{3} == 'a'", True),
            ("music.numbered{9} == 'b'", False),
            ("music.numbered == 3", True),
            ("music.lists{x} == 20", True),
            ("music.lists{x}[0] == 20", False),
            ("music.lists.value == 30", True),
            ("music.lists.value[1] == 30", True),
        ],
    );
    // As many elements: all must hold. Otherwise the sizes are compared.
    check(
        &album(),
        &[
            ("music.tags == music.tags", True),
            ("music.tags != music.tags", False),
            ("music.tags < music.tags", False),
            ("music.years > music.tags", True),
            ("music.years == music.tags", False),
            ("music.tags == music.counts", Invalid),
        ],
    );
    let single = document("id:ns:music::x", [("tags", Value::Array(vec![text("x")]))]);
    check(&single, &[("music.tags != 'x'", False), ("music.tags + 'a' == 'xa'", Invalid)]);
}

#[test]
fn variables() {
    check(
        &album(),
        &[
            ("music.tags[$i] == 'x'", True),
            ("music.tags[$i] == 'x' and music.years[$i] == 1", True),
            ("music.tags[$i] == 'x' and music.years[$i] == 2", False),
            ("music.tags[$i] == 'x' and music.years[$j] == 2", True),
            ("music.tags[$i] == 'z' or music.years[$i] == 3", False),
            ("not (music.tags[$i] == 'x' and music.years[$i] == 1)", True),
            ("music.weights{$k} == 3 and music.lists{$k} == 10", True),
            ("music.weights{$k} == 3 and music.lists{$k} == 30", False),
            ("music.lists{$k}[$i] == 20 and music.years[$i] == 2", True),
            ("music.lists{$k}[$i] == 20 and music.years[$i] == 3", False),
            // An index and a key are never the same.
            ("music.tags[$v] == 'x' and music.weights{$v} == 3", False),
            ("music.lists{$v}[$v] == 20", Invalid),
            ("music.props{$k} == 'v'", True),
        ],
    );
}

#[test]
fn variables_without_end_are_invalid() {
    let many = || Value::Array((0..300).map(Value::Int).collect());
    let large = document("id:ns:music::x", [("years", many())]);
    check(&large, &[("music.years[$a] == 1 and music.years[$b] == 2", Invalid)]);
    check(&large, &[("music.years[$a] == 1 and music.years[$a] == 1", Invalid)]);
    let fewer = Value::Array((0..200).map(Value::Int).collect());
    let smaller = document("id:ns:music::x", [("years", fewer)]);
    check(&smaller, &[("music.years[$a] == 1 and music.years[$b] == 2", True)]);
    check(&smaller, &[("music.years[$a] == 1 and music.years[$a] == 2", False)]);
}

#[test]
fn texts_without_end_are_invalid() {
    let long = document("id:ns:music::x", [("title", text(&"x".repeat(9 << 20)))]);
    check(&long, &[("music.title + 'a' > ''", True), ("music.title + music.title > ''", Invalid)]);
}
