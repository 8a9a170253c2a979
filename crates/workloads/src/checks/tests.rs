use super::*;

fn holds(check: &str, body: &str) -> bool {
    judge(&Checks::new(&[check]).unwrap(), 200, body.as_bytes()).is_ok()
}

fn judge<'a>(checks: &'a Checks, status: u16, body: &[u8]) -> Result<(), Failure<'a>> {
    checks.judge(&Seen { status, body, ..Seen::default() })
}

#[test]
fn hits_times_and_texts() {
    let seen = |hits, service_ns| Seen {
        status: 200,
        body: b"abc 123",
        hits,
        service_ns,
        ..Seen::default()
    };
    for (check, seen, expected) in [
        ("hits>=1", seen(Some(1), 0), true),
        ("hits>=1", seen(Some(0), 0), false),
        ("hits>=0", seen(None, 0), false),
        ("hits=3", seen(Some(3), 0), true),
        ("hits!=3", seen(Some(3), 0), false),
        ("time<5ms", seen(None, 4_999_999), true),
        ("time<5ms", seen(None, 5_000_000), false),
        ("time>=1s", seen(None, 1_000_000_000), true),
        ("body!~xyz", seen(None, 0), true),
        ("body!~abc", seen(None, 0), false),
        ("body=~^abc [0-9]{3}$", seen(None, 0), true),
        ("body=~^[0-9]", seen(None, 0), false),
    ] {
        let checks = Checks::new(&[check]).unwrap();
        assert_eq!(checks.judge(&seen).is_ok(), expected, "{check} {seen:?}");
        assert_eq!(checks.needs_hits(), check.starts_with("hits"));
        assert_eq!(checks.needs_body(), !check.starts_with("time"), "{check}");
    }
    let elastic = r#"{"hits":{"total":{"value":3}}}"#;
    assert!(
        holds("json:/hits/total/value>=1", elastic) && !holds("json:/hits/total/value>=4", elastic)
    );
    assert!(holds("!json:/error", elastic) && !holds("!json:/hits", elastic));
}

#[test]
fn a_number_of_hits_that_was_not_counted_to_its_end_is_a_least_one() {
    let body = br#"{"hits":{"total":{"value":10000,"relation":"gte"},"hits":[]}}"#;
    let counted = br#"{"hits":{"total":{"value":10000,"relation":"eq"},"hits":[]}}"#;
    for (check, at_least, exactly) in [
        ("hits>=10000", true, true),
        ("hits>=10001", false, false),
        ("hits>9999", true, true),
        ("hits=10000", false, true),
        ("hits<=10000", false, true),
        ("hits<20000", false, true),
        ("hits!=20000", false, true),
        ("hits!=5", true, true),
    ] {
        let checks = Checks::new(&[check]).unwrap();
        let held = |body: &[u8]| {
            let hits = HitCounter::default().count(None, body);
            checks.judge(&Seen { status: 200, body, hits, ..Seen::default() }).is_ok()
        };
        assert_eq!((held(body), held(counted)), (at_least, exactly), "{check}");
    }
}

#[test]
fn statuses() {
    let set = StatusSet::parse("200-299, 304,4xx").unwrap();
    for (code, inside) in
        [(199, false), (200, true), (299, true), (300, false), (304, true), (499, true)]
    {
        assert_eq!(set.contains(code), inside, "{code}");
    }
    for bad in ["", "20", "99", "600", "299-200", "2x", "abc", "200-", "1e2", "+20", "6xx"] {
        assert_eq!(StatusSet::parse(bad), None, "{bad}");
    }
    let default = Checks::default();
    assert_eq!(judge(&default, 204, b""), Ok(()));
    assert_eq!(judge(&default, 302, b""), Err(Failure::Status(302)));
    assert!(!default.needs_body());
}

#[test]
fn values_at_pointers() {
    let body = r#"{"root":{"id":"toplevel","n":42,"f":1.5,"t":true,"e":null,"l":[1]}}"#;
    for check in [
        "/root/id=toplevel",
        "/root/id==\"toplevel\"",
        "/root/n=42",
        "/root/n=42.0",
        "/root/n>=42",
        "/root/n>41.5",
        "/root/n<=42",
        "/root/n<43",
        "/root/n!=41",
        "/root/f=1.5",
        "/root/t=true",
        "/root/e=null",
        "/root/e",
        "/root/l=[1]",
        "!/root/errors",
        "body~toplevel",
    ] {
        assert!(holds(check, body), "{check}");
    }
    for check in [
        "/root/id=other",
        "/root/n=41",
        "/root/n>42",
        "/root/n<42",
        "/root/id>=1",
        "/root/missing>=0",
        "/root/missing!=1",
        "/root/missing",
        "!/root/id",
        "/root/t=false",
        "body~absent",
    ] {
        assert!(!holds(check, body), "{check}");
    }
    assert!(!holds("!/root/errors", "<html>"), "an error page is not a reply without errors");
}

#[test]
fn wrong_checks_are_told_in_one_line() {
    for bad in [
        "", "x", "status=", "/a>=b", "/a~2", "body~", "!x", "/a!b", "root=1", "hits", "hits>=x",
        "time<5", "time=5s", "body=~(",
    ] {
        let error = Checks::new(&[bad]).unwrap_err().to_string();
        assert!(error.contains("--check") && !error.contains('\n'), "{bad}: {error}");
    }
}

#[test]
fn presets_know_a_200_that_is_no_success() {
    let vespa = Checks::new(&["vespa"]).unwrap();
    let fine = br#"{"root":{"fields":{"totalCount":1},"coverage":{"full":true}}}"#;
    let errors = br#"{"root":{"errors":[{"code":12}],"fields":{"totalCount":0}}}"#;
    let degraded = br#"{"root":{"coverage":{"full":false},"fields":{"totalCount":1}}}"#;
    assert_eq!(judge(&vespa, 200, fine), Ok(()));
    assert_eq!(judge(&vespa, 200, br#"{"root":{"fields":{}}}"#), Ok(()));
    assert!(judge(&vespa, 200, errors).is_err());
    let failure = judge(&vespa, 200, degraded).unwrap_err();
    assert_eq!(failure.to_string(), "check vespa: full coverage (/root/coverage/full)");
    assert_eq!(judge(&vespa, 204, fine), Err(Failure::Status(204)));

    let elastic = Checks::new(&["elasticsearch"]).unwrap();
    let reply = |text: &str| judge(&elastic, 200, text.as_bytes()).is_ok();
    assert!(reply(r#"{"timed_out":false,"_shards":{"failed":0},"hits":{}}"#));
    assert!(!reply(r#"{"timed_out":true,"_shards":{"failed":0}}"#));
    assert!(!reply(r#"{"timed_out":false,"_shards":{"failed":1}}"#));
    assert!(!reply(r#"{"took":3,"errors":true}"#));
    for foreign in [r#"{"ok":true}"#, "[1,2]", "{}", "\"took\"", "12"] {
        assert!(judge(&vespa, 200, foreign.as_bytes()).is_err(), "vespa: {foreign}");
        assert!(!reply(foreign), "elasticsearch: {foreign}");
    }
    let document = br#"{"pathId":"/document/v1/a/b/docid/c","id":"id:a:b::c"}"#;
    assert_eq!(judge(&vespa, 200, document), Ok(()));
    for own in [
        r#"{"_index":"a","_id":"1","found":true}"#,
        r#"{"count":3,"_shards":{"failed":0}}"#,
        r#"{"hits":{"total":{"value":3}}}"#,
        r#"{"took":3,"errors":false,"items":[]}"#,
    ] {
        assert!(reply(own), "{own}");
    }
    let new_index = br#"{"acknowledged":true,"index":"a"}"#;
    assert!(!reply(std::str::from_utf8(new_index).unwrap()));
    assert_eq!(judge(&elastic.clone().of_any_reply(), 200, new_index), Ok(()));
    assert!(!reply("<html>maintenance</html>") && !reply(""), "a 200 is not yet a success");
}

/// A multi search has status 200 and no `errors` of its own, whatever became of its searches.
#[test]
fn a_reply_that_holds_a_failed_reply_is_no_success() {
    let elastic = Checks::new(&["elasticsearch"]).unwrap();
    let reply = |text: &str| judge(&elastic, 200, text.as_bytes()).is_ok();
    let good = r#"{"took":1,"timed_out":false,"_shards":{"failed":0},"hits":{},"status":200}"#;
    let several = |last: &str| format!(r#"{{"took":3,"responses":[{good},{last}]}}"#);
    assert!(reply(&several(good)));
    for bad in [
        r#"{"error":{"type":"index_not_found_exception"},"status":404}"#,
        r#"{"error":"no such index"}"#,
        r#"{"status":429}"#,
        r#"{"took":1,"timed_out":true,"_shards":{"failed":0},"hits":{},"status":200}"#,
        r#"{"took":1,"timed_out":false,"_shards":{"failed":2},"hits":{},"status":200}"#,
        "null",
    ] {
        assert!(!reply(&several(bad)), "{bad}");
    }
    assert!(reply(r#"{"docs":[{"_index":"a","_id":"1","found":false}]}"#));
    assert!(!reply(r#"{"docs":[{"_index":"a","_id":"1","error":{"type":"x"}}]}"#));
    let body = several(r#"{"error":{"type":"x"},"status":404}"#);
    let seen = Seen { status: 200, body: body.as_bytes(), ..Seen::default() };
    let told = elastic.explain(&seen).unwrap();
    assert!(told.contains(r#"number 1, from 0, is {"error":{"type":"x"}"#), "{told}");
    // A field of a document, and a text, are not the replies of a search.
    assert!(reply(r#"{"took":1,"hits":{"hits":[{"_source":{"responses":[{"error":1}]}}]}}"#));
}

#[test]
fn hits_are_counted_wherever_they_are_told() {
    let counter = HitCounter::default();
    let vespa = br#"{"root":{"fields":{"totalCount":7}}}"#;
    assert_eq!(counter.count(None, vespa), Some(7));
    assert_eq!(counter.count(Some(b" 0 "), vespa), Some(0));
    assert_eq!(counter.count(Some(b"x"), vespa), Some(7));
    assert_eq!(counter.count(None, br#"{"hits":{"total":5,"hits":[]}}"#), Some(5));
    let newer = br#"{"hits":{"total":{"value":0,"relation":"eq"}}}"#;
    assert_eq!(counter.count(None, newer), Some(0));
    assert_eq!(counter.count(None, b"<html>"), None);
    let own = HitCounter::at(Pointer::parse("/n").unwrap());
    assert_eq!(own.count(None, br#"{"n":3}"#), Some(3));
}

#[test]
fn an_absence_is_known_only_of_a_whole_body() {
    let body = br#"{"root":{"id":"a","n":12},"took":1,"hits":{"total":{"value":12}}}"#;
    let held = |check: &str, body: &[u8], shown| {
        let checks = Checks::new(&[check]).unwrap();
        checks.judge(&Seen { status: 200, body, shown, ..Seen::default() }).is_ok()
    };
    for check in
        ["body!~ERROR", "!/errors", "vespa", "elasticsearch", "body=~^[^E]*$", "body=~\\}$"]
    {
        assert!(held(check, body, Shown::Whole), "{check}");
        assert!(!held(check, body, Shown::Cut), "{check} of a body that was cut");
        assert!(!held(check, body, Shown::Coded), "{check} of a coded body");
    }
    // What the beginning proves holds whatever follows; of bytes in an unknown coding nothing is proved.
    for check in ["body~root", "/root/id=a", "/root/n>=12", "/root/id!=b", "body=~n\".1"] {
        assert!(held(check, body, Shown::Cut), "{check}");
        assert!(!held(check, body, Shown::Coded), "{check} of a coded body");
    }
    // A number at the cut may go on behind it.
    let cut = br#"{"root":{"n":12"#;
    for check in ["/root/n=12", "/root/n<100", "/root/n!=5", "/root/n"] {
        assert!(!held(check, cut, Shown::Cut), "{check}");
    }
    assert_eq!(HitCounter::default().count(None, br#"{"hits":{"total":{"value":12"#), None);
}

#[test]
fn a_failure_says_what_was_found() {
    let body = br#"{"total":3,"root":{"errors":[{"code":12}]}}"#;
    for (check, told) in [
        ("/total=4", "check /total=4: found 3"),
        ("/total>=4", "check /total>=4: found 3"),
        ("/totel=4", "check /totel=4: found no such value"),
        ("!/root/errors", r#"check !/root/errors: found [{"code":12}]"#),
        ("body~absent", "check body~absent: not found in 43 bytes"),
        ("body!~total", "check body!~total: found it"),
        ("hits>=1", "check hits>=1: the reply has no number of hits"),
        ("time<1ms", "check time<1ms: took 1.50 ms"),
    ] {
        let checks = Checks::new(&[check]).unwrap();
        let seen = Seen { status: 200, body, service_ns: 1_500_000, ..Seen::default() };
        assert_eq!(checks.explain(&seen).as_deref(), Some(told));
    }
    let absent = Checks::new(&["!/errors"]).unwrap();
    let cut = Seen { status: 200, body, shown: Shown::Cut, ..Seen::default() };
    assert!(absent.explain(&cut).unwrap().contains("only the first 43 bytes"));
    let coded = Seen { shown: Shown::Coded, ..cut };
    assert!(absent.explain(&coded).unwrap().contains("content coding"));
    let long = format!(r#"{{"a":"{}"}}"#, "x".repeat(500));
    let seen = Seen { status: 200, body: long.as_bytes(), ..Seen::default() };
    let told = Checks::new(&["/a=1"]).unwrap().explain(&seen).unwrap();
    assert!(told.len() < 120 && told.ends_with("..."), "{told}");
}
