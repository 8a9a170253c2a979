//! Assertions as text.

use super::*;

#[test]
fn they_are_shown_as_they_are_read() {
    for text in [
        "global p95 < 500ms",
        "each failed.percent <= 1%",
        "class search rate between 90/s and 110/s",
        "class \"two words\" max > 3ms",
        "class \"a,b(c)\" max > 3ms",
        "class \"a<b\" failed.count is 0",
        "class \"x=1\" rate > 3/s",
        "class a/b_c-d.e max > 3ms",
        "global requests in 1, 2, 3",
        "global service.mean around 10ms by 2ms",
        "global stddev deviates 10ms by 7%",
        "global ok.count is 5",
        "global p99.9 >= 0.5ms",
    ] {
        let assertion: Assertion = text.parse().unwrap();
        assert_eq!(assertion.to_string(), text);
        let json = serde_json::to_string(&assertion).unwrap();
        assert_eq!(serde_json::from_str::<Assertion>(&json).unwrap(), assertion);
    }
    let gatling: Assertion = "forAll failed.percent lte 1".parse().unwrap();
    assert_eq!(gatling.to_string(), "each failed.percent <= 1%");
}

#[test]
fn mistakes_are_told_in_one_line() {
    for (text, word) in [
        ("", "the assertion is empty"),
        ("p95 < 500ms", "'p95' is not a scope"),
        ("global", "a metric is missing"),
        ("global p95", "a condition is missing"),
        ("global speed < 5", "'speed' is not a metric"),
        ("global p0 < 5ms", "not a percentile"),
        ("global p95 < 500", "has no unit"),
        ("global p95 < fast", "not a duration"),
        ("global p95 ~ 5ms", "is not a condition"),
        ("global failed.percent < 101%", "more than 100"),
        ("global rate > -1", "is not a rate"),
        ("global rate > 5/s/s", "is not a rate"),
        ("global rate between 5 and 3", "above the upper"),
        ("global rate deviates 5 by x", "not a share"),
        ("class \"x p95 < 1s", "not closed"),
    ] {
        let message = text.parse::<Assertion>().unwrap_err().to_string();
        assert!(message.contains(word) && !message.contains('\n'), "{text}: {message}");
    }
}
