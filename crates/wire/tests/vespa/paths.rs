//! Paths, both ways.

use plimsoll_core::rng::Rng;
use plimsoll_wire::vespa::{DocumentId, DocumentPath, PathError, Scope, push_document_path};
use proptest::prelude::*;

fn document(text: &str) -> DocumentPath {
    DocumentPath::Document(DocumentId::parse(text).unwrap())
}

fn collection(namespace: &str, document_type: &str, scope: Scope<'static>) -> DocumentPath {
    let (namespace, document_type) = (namespace.to_owned(), document_type.to_owned());
    DocumentPath::Collection { namespace, document_type, scope }
}

#[test]
fn every_form_of_a_path() {
    let group = |name: &'static str| Scope::Group(name.into());
    let cases = [
        ("", DocumentPath::Root),
        ("ns/music/docid", collection("ns", "music", Scope::Free)),
        ("ns/music/docid/", collection("ns", "music", Scope::Free)),
        ("ns/music/number/7", collection("ns", "music", Scope::Number(7))),
        ("ns/music/number/7/", collection("ns", "music", Scope::Number(7))),
        ("ns/music/group/a%20b", collection("ns", "music", group("a b"))),
        ("ns/music/group/a+b/", collection("ns", "music", group("a b"))),
        ("n%20s/mus%69c/docid/", collection("n s", "music", Scope::Free)),
        ("ns/music/docid/x", document("id:ns:music::x")),
        ("ns/music/number/7/x", document("id:ns:music:n=7:x")),
        ("ns/music/number/007/x", document("id:ns:music:n=7:x")),
        (
            "ns/music/number/18446744073709551615/x",
            document("id:ns:music:n=18446744073709551615:x"),
        ),
        ("ns/music/group/g/x", document("id:ns:music:g=g:x")),
        // A name may be what elsewhere has a meaning, and may have colons.
        ("ns/music/docid/docid", document("id:ns:music::docid")),
        ("ns/music/docid/a:b", document("id:ns:music::a:b")),
        // The same document: slashes encoded or not.
        ("ns/music/docid/a%2Fb%20c", document("id:ns:music::a/b c")),
        ("ns/music/docid/a/b%20c", document("id:ns:music::a/b c")),
        ("ns/music/docid/a/b+c", document("id:ns:music::a/b c")),
        ("ns/music/docid/p+q", document("id:ns:music::p q")),
        ("ns/music/docid/p%2Bq", document("id:ns:music::p+q")),
        ("ns/music/docid/p%252Bq", document("id:ns:music::p%2Bq")),
        ("ns/music/docid/a//b/", document("id:ns:music::a//b/")),
        ("ns/music/docid/%C3%A9", document("id:ns:music::\u{e9}")),
        ("ns/music/docid/\u{e9}", document("id:ns:music::\u{e9}")),
        ("ns/music/docid/..", document("id:ns:music::..")),
    ];
    for (path, expected) in cases {
        let path = format!("/document/v1/{path}");
        assert_eq!(DocumentPath::parse(&path).as_ref(), Ok(&expected), "{path}");
        let rendered = expected.to_string();
        assert_eq!(DocumentPath::parse(&rendered).as_ref(), Ok(&expected), "{rendered}");
    }
}

#[test]
fn paths_that_name_nothing() {
    for path in [
        "",
        "/",
        "/document/v1",
        "/document/v2/",
        "document/v1/",
        "/document/v1//",
        "/document/v1/ns",
        "/document/v1/ns/music",
        "/document/v1/ns/music/",
        "/document/v1/ns/music/id/x",
        "/document/v1/ns/music/DOCID/x",
        "/document/v1//music/docid/x",
        "/document/v1/ns//docid/x",
        "/document/v1/ns/music/number",
        "/document/v1/ns/music/number/",
        "/document/v1/ns/music/group//x",
        "/document/v1/ns/music/docid//",
    ] {
        assert_eq!(DocumentPath::parse(path), Err(PathError::Unknown), "{path}");
    }
}

#[test]
fn paths_with_a_wrong_part() {
    let message = |path: &str| match DocumentPath::parse(format!("/document/v1/{path}")) {
        Err(PathError::Invalid(message)) => message,
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(message("ns/music/number/abc/x"), "Failed parsing 'abc': For input string: \"abc\"");
    for (path, part) in [
        ("ns/music/number/-1/", "-1"),
        ("ns/music/number/18446744073709551616/", "18446744073709551616"),
        ("ns/music/docid/a%", "'%' without"),
        ("ns/music/docid/a%4", "'%' without"),
        ("ns/music/docid/a%4g", "'%' without"),
        ("ns/music/docid/%ff", "UTF-8"),
        ("ns/music/docid/%00", "code point 0x0"),
        ("n:s/music/docid/x", "Namespace must not"),
        ("ns/mu:sic/docid/", "Document type must not"),
        ("ns/music/group/a%3Ab/x", "Group must not"),
        ("ns/music/group/a,b/", "Group must not"),
    ] {
        let message = message(path);
        assert!(message.contains(part), "{path}: {message}");
    }
    let path = b"/document/v1/ns/music/docid/\xff";
    assert!(matches!(DocumentPath::parse(path), Err(PathError::Invalid(_))));
}

#[test]
fn what_a_client_sends() {
    let sent = |text: &str| {
        let mut path = String::new();
        push_document_path(&mut path, &DocumentId::parse(text).unwrap());
        path
    };
    assert_eq!(sent("id:ns:music::a/b c"), "/document/v1/ns/music/docid/a%2Fb%20c");
    assert_eq!(sent("id:ns:music::p+q"), "/document/v1/ns/music/docid/p%2Bq");
    assert_eq!(sent("id:ns:music::a-b_c.d~e"), "/document/v1/ns/music/docid/a-b_c.d~e");
    assert_eq!(sent("id:ns:music::a?b#c&d=e"), "/document/v1/ns/music/docid/a%3Fb%23c%26d%3De");
    assert_eq!(sent("id:ns:music:n=7:\u{e9}"), "/document/v1/ns/music/number/7/%C3%A9");
    assert_eq!(sent("id:ns:music:g=a b:x"), "/document/v1/ns/music/group/a%20b/x");
    assert_eq!(sent("id:ns:music::.."), "/document/v1/ns/music/docid/%2E%2E");
    assert_eq!(DocumentPath::Root.to_string(), "/document/v1/");
}

/// What the real handler does with a segment, after the facts seen there: form decoding.
fn form_decoded(segment: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let hex = [rest.next().unwrap(), rest.next().unwrap()];
                let hex = std::str::from_utf8(&hex).unwrap();
                bytes.push(u8::from_str_radix(hex, 16).unwrap());
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).unwrap()
}

proptest! {
    #[test]
    fn a_real_server_gets_the_id_back(name in "[^\\p{C}]{1,20}", group in "[^:,\\p{C}]{1,9}") {
        let id = DocumentId::new("n s", "t+u", &Scope::Group(group.into()), &name).unwrap();
        let path = DocumentPath::Document(id.clone()).to_string();
        prop_assert!(path.is_ascii());
        let parts: Vec<String> = path.split('/').skip(3).map(form_decoded).collect();
        let [namespace, kind, word, group, name] = parts.as_slice() else { panic!("{path}") };
        prop_assert_eq!(word, "group");
        prop_assert_eq!(format!("id:{namespace}:{kind}:g={group}:{name}"), id.as_str());
    }

    #[test]
    fn paths_come_back(
        namespace in "[^:\\p{C}]{1,8}",
        kind in "[^:\\p{C}]{1,8}",
        scope in prop_oneof![
            Just(Scope::Free),
            any::<u64>().prop_map(Scope::Number),
            "[^:,\\p{C}]{1,8}".prop_map(|group| Scope::Group(group.into())),
        ],
        name in "[^\\p{C}]{1,20}",
    ) {
        let id = DocumentId::new(&namespace, &kind, &scope, &name).unwrap();
        for path in [DocumentPath::Document(id), collection(&namespace, &kind, scope)] {
            prop_assert_eq!(DocumentPath::parse(path.to_string()), Ok(path));
        }
    }

    #[test]
    fn any_bytes_are_a_path_or_an_error(bytes: Vec<u8>, tail in "[/%+a-f0-9:,]{0,20}") {
        let _ = DocumentPath::parse(&bytes);
        for kind in ["docid", "number", "group"] {
            let path = format!("/document/v1/ns/t/{kind}/{tail}");
            if let Ok(parsed) = DocumentPath::parse(&path) {
                prop_assert_eq!(DocumentPath::parse(parsed.to_string()), Ok(parsed));
            }
        }
    }
}

#[test]
fn bytes_changed_at_random_never_break_the_parser() {
    let mut rng = Rng::new(17);
    let seeds = ["/document/v1/n%20s/t/group/a+b/c%2Fd", "/document/v1/ns/t/number/77/x/%C3%A9/"];
    for round in 0..20_000 {
        let mut bytes = seeds[round % seeds.len()].as_bytes().to_vec();
        for _ in 0..=rng.below(3) {
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.below(256) as u8;
        }
        if let Ok(path) = DocumentPath::parse(&bytes) {
            assert_eq!(DocumentPath::parse(path.to_string()), Ok(path));
        }
    }
}
