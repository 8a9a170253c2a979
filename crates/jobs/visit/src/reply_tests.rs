use super::item::*;
use super::reply::*;
use super::reply_error::*;
use proptest::prelude::*;

/// What a reader made of a reply that came in `pieces`.
fn read(pieces: &[&[u8]]) -> (Vec<String>, Result<(), ReplyError>) {
    let mut reader = ReplyReader::default();
    let mut seen = Vec::new();
    let mut each = |item: Item<'_>| {
        seen.push(match item {
            Item::Document { entry, id, id_json, rest } => {
                let (id_json, rest) =
                    (String::from_utf8_lossy(&id_json), String::from_utf8_lossy(&rest));
                format!("{entry:?} {id} {id_json}{rest}")
            }
            other => format!("{other:?}"),
        });
    };
    let mut result = Ok(());
    for piece in pieces {
        result = result.and_then(|()| reader.feed(piece, &mut each));
    }
    let result = result.and_then(|()| reader.end(&mut each));
    (seen, result)
}

const OBJECT: &str = r#"{"pathId":"/document/v1/","documents":[{"id":"id:m:m::a\"\u00e6{","fields":{"t":"]}\\","n":[1,{}]}},{"remove":"id:m:m::b"} ,
 {"fields":{"x":1},"id":"id:m:m::c","z":[2]}],"documentCount":3,"trace":[{"a":"]"}],"continuation":"AAAACA=="}"#;

const LINES: &str = r#"{"put":"id:ns:music::ign","fields":{}}
{"continuation":{"token":"AAAA=","percentFinished":13.28125}}
{"remove":"id:ns:music::gone"}
{"surprise":{"put":1}}

{"message":{"text":"slow","severity":"warning"}}
{"sessionTrace":{"x":1}}
{"sessionStats":{"documentCount":2}}
{"continuation":{"percentFinished":100.0}}
"#;

#[test]
fn an_object_is_read() {
    let (seen, end) = read(&[OBJECT.as_bytes()]);
    assert_eq!(end, Ok(()));
    assert_eq!(
        seen,
        [
            r#"Path("/document/v1/")"#,
            "Documents",
            r#"Put id:m:m::a"æ{ "id:m:m::a\"\u00e6{","fields":{"t":"]}\\","n":[1,{}]}}"#,
            r#"Remove id:m:m::b "id:m:m::b"}"#,
            r#"Put id:m:m::c "id:m:m::c","fields":{"x":1},"z":[2]}"#,
            "Count(3)",
            r#"Progress { token: Some("AAAACA=="), percent: None }"#,
        ]
    );
}

/// Each document is written as one line.
#[test]
fn a_document_over_several_lines_is_put_on_one() {
    let documents = "{\n \"id\": \"id:m:m::a\",\n \"fields\": {\n  \"t\": \"\\n\"\n }\n}";
    let reply = format!("{{\"documents\":[{documents}],\"documentCount\":1}}");
    let (seen, end) = read(&[reply.as_bytes()]);
    assert_eq!(end, Ok(()));
    assert_eq!(seen[1], r#"Put id:m:m::a "id:m:m::a",  "fields": {   "t": "\n"  } }"#);
    // A line end inside a text is no JSON, and would be two lines of which neither is a document.
    let reply = "{\"documents\":[{\"id\":\"id:m:m::a\",\"fields\":{\"t\":\"\r\n1a\r\n\"}}]}";
    let (seen, end) = read(&[reply.as_bytes()]);
    assert_eq!(seen, ["Documents"]);
    assert!(end.unwrap_err().to_string().contains("a document is not JSON"));
    // The same holds for a CR in an id, also in JSON lines.
    for reply in
        [&b"{\"documents\":[{\"id\":\"id:m:m::\ra\"}]}"[..], b"{\"put\":\"id:m:m::\ra\"}\n"]
    {
        let (_, end) = read(&[reply]);
        assert!(end.unwrap_err().to_string().contains("a document is not JSON"));
    }
}

#[test]
fn a_long_member_in_small_pieces_is_not_read_again_with_each_of_them() {
    // With a look from the front for each piece, this takes 10^12 steps and more.
    let text = "x".repeat(16 << 20);
    let reply = format!("{{\"trace\":\"{text}\",\"documents\":[],\"documentCount\":0}}");
    let pieces: Vec<&[u8]> = reply.as_bytes().chunks(64).collect();
    let (seen, result) = read(&pieces);
    assert_eq!((seen, result), (vec!["Documents".to_owned(), "Count(0)".to_owned()], Ok(())));
}

#[test]
fn lines_are_read() {
    let (seen, end) = read(&[LINES.as_bytes()]);
    assert_eq!(end, Ok(()));
    assert_eq!(
        seen,
        [
            r#"Put id:ns:music::ign "id:ns:music::ign","fields":{}}"#,
            r#"Progress { token: Some("AAAA="), percent: Some(13.28125) }"#,
            r#"Remove id:ns:music::gone "id:ns:music::gone"}"#,
            r#"Message { text: "slow", is_error: false }"#,
            "Closing(2)",
            "Progress { token: None, percent: Some(100.0) }",
        ]
    );
}

#[test]
fn what_is_cut_is_called_truncated() {
    for to in 0..OBJECT.len() {
        assert_eq!(read(&[&OBJECT.as_bytes()[..to]]).1, Err(ReplyError::Truncated), "{to}");
    }
    // Whole lines are a reply as far as the reader knows; whether the visit is through, the progress tells.
    assert_eq!(read(&[&LINES.as_bytes()[..LINES.len() - 1]]), read(&[LINES.as_bytes()]));
    assert!(matches!(read(&[&LINES.as_bytes()[..20]]).1, Err(ReplyError::Form(_))));
}

#[test]
fn what_is_no_visit_is_refused() {
    for wrong in [
        "<html>",
        "[]",
        r#"{"documents":[1]}"#,
        r#"{"documents":[{"fields":{}}]}"#,
        r#"{"pathId":"x"} {"#,
        r#"{"documentCount":-1}"#,
        r#"{"put":"a"}{"put":"b"} x"#,
        "{\"put\":1}\n",
        "{\"put\":\"id\"}\nnot json\n",
        "{1:2}",
    ] {
        let (_, end) = read(&[wrong.as_bytes()]);
        assert!(matches!(end, Err(ReplyError::Form(_))), "{wrong}: {end:?}");
    }
    assert_eq!(read(&[b"{}"]).1, Ok(()));
}

#[test]
fn errors_are_told_from_news() {
    let (seen, _) = read(&[br#"{"pathId":"/","message":"no such cluster"}"#]);
    let message = r#"Message { text: "no such cluster", is_error: true }"#;
    assert_eq!(seen, [r#"Path("/")"#, message]);
    let line = b"{\"message\":{\"text\":\"lost\",\"severity\":\"error\"}}\n{\"message\":\"odd\"}\n";
    let (seen, end) = read(&[line]);
    assert_eq!((seen.len(), end), (2, Ok(())));
    assert!(seen.iter().all(|line| line.ends_with("is_error: true }")), "{seen:?}");
}

proptest! {
    #[test]
    fn any_cutting_is_read_alike(cuts in prop::collection::vec(0usize..600, 0..9), lines: bool) {
        let text = if lines { LINES } else { OBJECT }.as_bytes();
        let mut at: Vec<_> = cuts.into_iter().map(|cut| cut % text.len()).collect();
        at.extend([0, text.len()]);
        at.sort_unstable();
        let pieces: Vec<_> = at.windows(2).map(|w| &text[w[0]..w[1]]).collect();
        prop_assert_eq!(read(&pieces), read(&[text]));
    }

    #[test]
    fn arbitrary_bytes_do_no_harm(
        words in prop::collection::vec(prop::sample::select(vec![
            "{", "}", "[", "]", ",", ":", "\"", "\\", "\n", " ", "1", "null", "\"put\"", "\"id\"", "\"documents\"",
            "\"continuation\"", "\"token\"", "\"documentCount\"", "\"message\"", "\u{e6}", "\"sessionStats\"",
        ]), 0..40),
        bytes in prop::collection::vec(any::<u8>(), 0..60),
    ) {
        let text = words.concat();
        let (whole, by_byte) = (read(&[text.as_bytes()]), read(&text.as_bytes().chunks(1).collect::<Vec<_>>()));
        // What is wrong may be noticed a little earlier or later, but never half the time only.
        prop_assert_eq!(whole.1.is_ok(), by_byte.1.is_ok());
        let _ = read(&[&bytes]);
    }
}

/// A chunk that is declared longer than it is takes the next line of lengths into its content.
#[test]
fn a_key_with_a_line_end_in_it_is_no_unknown_key() {
    let reply = "{\"documents\":[],\"documentCount\":0,\"continuatio\r\n1\r\nn\":\"T33\"}";
    let (_, result) = read(&[reply.as_bytes()]);
    assert!(result.unwrap_err().to_string().contains("a key is not JSON"));
    let (seen, result) = read(&["{\"documents\":[],\"continuations\":\"T33\"}".as_bytes()]);
    assert_eq!((seen.len(), result), (1, Ok(())), "an unknown key may be left out");
}

/// The end of a slice is a reply without a token: a token that cannot be read must not pass for that.
#[test]
fn a_continuation_that_is_no_text_is_not_the_end() {
    for token in ["7", "{\"token\":\"T33\"}", "[]", "true"] {
        let object = format!("{{\"documents\":[],\"documentCount\":0,\"continuation\":{token}}}");
        let line = format!("{{\"continuation\":{{\"token\":{token}}}}}\n");
        for reply in [object, line] {
            let (_, result) = read(&[reply.as_bytes()]);
            let error = result.expect_err(&reply).to_string();
            assert!(error.contains("a continuation token is not a text"), "{error}");
        }
    }
    let (_, result) = read(&[b"{\"continuation\":\"T33\"}\n{\"continuation\":\"T33\"}\n"]);
    assert!(result.unwrap_err().to_string().contains("a continuation is not an object"));
    let (seen, result) = read(&[b"{\"documents\":[],\"continuation\":null}"]);
    assert_eq!((seen.len(), result), (1, Ok(())), "no token");
}
