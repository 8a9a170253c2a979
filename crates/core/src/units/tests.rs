use super::*;
use proptest::prelude::*;

#[test]
fn a_share_is_read_in_percent_only() {
    for (text, share) in [("5%", 0.05), ("0.1%", 0.001), ("100 %", 1.0), ("0", 0.0)] {
        assert_eq!(text.parse::<Share>().unwrap().0, share, "{text}");
    }
    assert_eq!(Share(0.07).to_string(), "7%");
    for wrong in ["1", "0.5", "101%", "-1%", "x", "", "5s"] {
        assert!(wrong.parse::<Share>().is_err(), "{wrong}");
    }
}

#[test]
fn spans_are_read_as_people_write_them() {
    let ns = |text: &str| text.parse::<Span>().map(|span| span.ns);
    assert_eq!(ns("500ms"), Ok(500_000_000));
    assert_eq!(ns("1.5s"), Ok(1_500_000_000));
    assert_eq!(ns("10"), Ok(10_000_000_000));
    assert_eq!(ns("5 m"), Ok(300_000_000_000));
    assert_eq!(ns("250us"), Ok(250_000));
    for (text, seconds) in [
        ("1m30s", 90),
        ("1h30m", 5_400),
        ("1h 30m", 5_400),
        ("2min", 120),
        ("90 s", 90),
        ("1 minute", 60),
        ("2 hours 5 minutes 1 sec", 7_501),
        ("3d", 259_200),
    ] {
        assert_eq!(ns(text), Ok(seconds * SECOND_NS), "{text}");
    }
    assert_eq!(ns("1s500ms"), Ok(1_500_000_000));
    assert_eq!(ns("3\u{b5}s"), Ok(3_000));
    for wrong in
        ["", "ms", "-1s", "5 parsecs", "1e99s", "1..2s", "NaN", "1m30", "30s1m", "5s5s", "1m,30s"]
    {
        assert!(ns(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn an_error_says_what_was_expected() {
    let told = "5x".parse::<Span>().unwrap_err().to_string();
    let expected =
        "'5x' is not a duration; expected a number and a unit, such as 500ms, 10s or 1m30s";
    assert_eq!(told, expected);
    let told = "x".parse::<Rate>().unwrap_err().to_string();
    assert!(told.starts_with("'x' is not a rate; expected a number per second"), "{told}");
    let told = serde_json::from_str::<Span>("[1]").unwrap_err().to_string();
    assert!(told.contains("expected a duration: a number and a unit"), "{told}");
}

#[test]
fn a_bare_number_in_a_file_is_read_as_its_text_is() {
    let span = |json| serde_json::from_str::<Span>(json).map_err(|error| error.to_string());
    assert_eq!(span("10"), Ok(Span::seconds(10)));
    assert_eq!(span("0.5"), Ok(Span { ns: SECOND_NS / 2 }));
    assert!(span("-1").unwrap_err().starts_with("'-1' is not a duration"));
    assert_eq!(serde_json::from_str::<Rate>("2.5").unwrap(), Rate { per_s: 2.5 });
    assert_eq!(serde_json::from_str::<Count>("\"2k\"").unwrap(), Count(2_000));
    assert!(serde_json::from_str::<Share>("1").is_err());
}

#[test]
fn rates_are_read_as_people_write_them() {
    for (text, per_s) in [
        ("1000", 1000.0),
        ("1000/s", 1000.0),
        ("1k", 1000.0),
        ("1.5k/s", 1500.0),
        ("60/min", 1.0),
        ("7200 / hour", 2.0),
        ("2M", 2e6),
        ("1e3", 1000.0),
        ("0", 0.0),
    ] {
        assert_eq!(text.parse(), Ok(Rate { per_s }), "{text}");
    }
    for wrong in ["", "k", "/s", "-5", "inf", "NaN", "5/", "5/day", "5x", "1e999", "5m"] {
        assert!(wrong.parse::<Rate>().is_err(), "{wrong}");
    }
}

#[test]
fn counts_are_whole() {
    for (text, number) in [
        ("500", 500),
        ("10k", 10_000),
        ("0.3k", 300),
        ("1.5M", 1_500_000),
        ("18446744073709551615", u64::MAX),
    ] {
        assert_eq!(text.parse(), Ok(Count(number)), "{text}");
    }
    for wrong in ["", "-1", "0.5", "0.0001k", "1e300", "x", "5s", "nan"] {
        assert!(wrong.parse::<Count>().is_err(), "{wrong}");
    }
}

#[test]
fn sizes_know_both_thousands() {
    let bytes = |text: &str| text.parse::<Size>().map(|size| size.bytes);
    assert_eq!(bytes("10GB"), Ok(10_000_000_000));
    assert_eq!(bytes("64kib"), Ok(65_536));
    assert_eq!(bytes("7"), Ok(7));
    assert!(bytes("7 apples").is_err());
}

proptest! {
    #[test]
    fn a_span_reads_back_what_it_shows(ns in 0u64..1 << 53) {
        let span = Span { ns };
        prop_assert_eq!(span.to_string().parse::<Span>(), Ok(span));
    }

    #[test]
    fn a_rate_reads_back_what_it_shows(per_s in 0.0f64..1e9) {
        let rate = Rate { per_s };
        prop_assert_eq!(rate.to_string().parse::<Rate>(), Ok(rate));
    }

    #[test]
    fn a_count_reads_back_what_it_shows(number: u64) {
        prop_assert_eq!(number.to_string().parse::<Count>(), Ok(Count(number)));
    }
}
