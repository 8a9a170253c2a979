//! Document ids and where they lie.

use plimsoll_wire::vespa::{
    Bucket, DocumentId, IdProblem, MAX_ID_BYTES, Scope, hash_location, key,
};
use proptest::prelude::*;

fn id(text: &str) -> DocumentId {
    DocumentId::parse(text).unwrap()
}

fn problem(text: &str) -> IdProblem {
    DocumentId::parse(text).unwrap_err().problem
}

#[test]
fn the_parts_of_an_id() {
    let free = id("id:shop:music::a:b/c d");
    assert_eq!((free.namespace(), free.document_type()), ("shop", "music"));
    assert_eq!((free.scope(), free.name()), (Scope::Free, "a:b/c d"));
    assert_eq!(id("id:s:t:n=18446744073709551615:x").scope(), Scope::Number(u64::MAX));
    assert_eq!(id("id:s:t:g=a=b c:x").scope(), Scope::Group("a=b c".into()));
    assert_eq!(id("id:s:t::\u{e9}\u{1f6a2}").name(), "\u{e9}\u{1f6a2}");
    assert_eq!(id("id:s:t::\u{e9}").to_string(), "id:s:t::\u{e9}");
}

#[test]
fn one_text_for_one_document() {
    for text in ["id:s:t:n=007:x", "id:s:t:n=7,:x", "id:s:t:,n=7:x"] {
        assert_eq!(id(text), id("id:s:t:n=7:x"), "{text}");
        assert_eq!(id(text).as_str(), "id:s:t:n=7:x");
        assert_eq!(id(text).name(), "x");
    }
    assert_eq!(id("id:s:t:,:x"), id("id:s:t::x"));
}

#[test]
fn what_is_wrong_with_an_id() {
    use IdProblem::*;
    let cases = [
        ("", Scheme),
        ("doc:s:t::x", Scheme),
        ("id", Scheme),
        ("id:s", Missing("Namespace")),
        ("id::t::x", Empty("Namespace")),
        ("id:s:t", Missing("Document type")),
        ("id:s:::x", Empty("Document type")),
        ("id:s:t:x", Missing("Key/value section")),
        ("id:s:t::", Empty("Name")),
        ("id:s:t:n=:x", Empty("Number or group")),
        ("id:s:t:g=:x", Empty("Number or group")),
        ("id:s:t:n=x:x", Number("x".into())),
        ("id:s:t:n=-1:x", Number("-1".into())),
        ("id:s:t:n=+1:x", Number("+1".into())),
        ("id:s:t:n=18446744073709551616:x", Number("18446744073709551616".into())),
        ("id:s:t:q=1:x", Pair("q=1".into())),
        ("id:s:t:g=a,b:x", Pair("b".into())),
        ("id:s:t:n=1,g=a:x", Pairs("n=1,g=a".into())),
        ("id:s:t::a\0", CodePoint(0)),
        ("id:s:t::a\u{1f}", CodePoint(0x1f)),
        ("id:s:t::a\u{ffff}", CodePoint(0xffff)),
        ("id:s:t::a\u{1fffe}", CodePoint(0x1fffe)),
        ("id:s:t::a\u{fdd0}", CodePoint(0xfdd0)),
    ];
    for (text, expected) in cases {
        assert_eq!(problem(text), expected, "{text:?}");
    }
    assert!(DocumentId::parse("id:s:t::a\t\r\n\u{7f}").is_ok());
    let long = "x".repeat(MAX_ID_BYTES);
    assert!(DocumentId::parse(&format!("id:s:t::{}", &long[8..])).is_ok());
    assert_eq!(problem(&format!("id:s:t::{}", &long[7..])), TooLong(MAX_ID_BYTES + 1));
    let message = DocumentId::parse("id:s").unwrap_err().to_string();
    assert!(message.starts_with("Unparseable id 'id:s': Namespace missing;"), "{message}");
    assert!(DocumentId::parse(&long[1..]).unwrap_err().to_string().len() < 300);
}

#[test]
fn parts_that_would_be_read_as_others_make_no_id() {
    let new = |namespace, kind, scope: Scope<'_>| DocumentId::new(namespace, kind, &scope, "x");
    assert_eq!(new("s", "t", Scope::Number(7)), Ok(id("id:s:t:n=7:x")));
    assert_eq!(new("s", "t", Scope::Group("a".into())), Ok(id("id:s:t:g=a:x")));
    for wrong in [
        new("s:t", "t", Scope::Free),
        new("s", "t:n=1", Scope::Free),
        new("s", "t", Scope::Group("a:b".into())),
        new("s", "t", Scope::Group("a,".into())),
    ] {
        assert!(matches!(wrong.unwrap_err().problem, IdProblem::Separator(_)));
    }
    assert!(new("s", "t", Scope::Group("".into())).is_err());
}

#[test]
fn the_order_of_visits() {
    let position = |text: &str, bits| {
        Bucket::of_location(id(&format!("id:ns:music:{text}")).location(), bits).position()
    };
    for (name, bits, expected) in [
        (":gz", 8, 147),
        (":ok", 8, 34),
        (":nope", 8, 130),
        (":a/b c d", 8, 227),
        ("n=7:x", 8, 224),
        (":1", 4, 2),
        (":2", 4, 1),
        (":3", 4, 3),
        (":1", 16, 9043),
    ] {
        assert_eq!(position(name, bits), expected, "{name} at {bits} bits");
    }
    // A number or group decides alone; the name does not matter.
    assert_eq!(position("g=gz:anything", 8), 147);
    assert_eq!(position("n=7:y", 8), 224);
}

#[test]
fn locations_global_ids_and_buckets() {
    let cases = [
        (
            "id:shop:music::gz",
            0x436c_a8af_4572_31c9,
            "c931724514957887cf248448",
            0xe884_24cf_4572_31c9,
        ),
        ("id:shop:music:n=7:x", 7, "07000000173b4d1290ae390b", 0xeb39_ae90_0000_0007),
        (
            "id:shop:music:g=bl\u{e5}:x",
            0x8727_615b_0ad0_0bde,
            "de0bd00a8921128defa59c02",
            0xea9c_a5ef_0ad0_0bde,
        ),
    ];
    for (text, location, gid, bucket) in cases {
        let id = id(text);
        assert_eq!(id.location(), location, "{text}");
        let hex: String = id.gid().iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(hex, gid, "{text}");
        assert_eq!(id.smallest_bucket(), bucket, "{text}");
    }
    assert_eq!(hash_location(b"bar") as i64, -2_012_135_647_395_072_713);
    let smallest = Bucket::from_raw(id("id:myspace:testdoctype1::anything").smallest_bucket());
    let smallest = smallest.unwrap();
    assert!(Bucket::of_location(0xe1f0, 16).contains(smallest));
    assert!(Bucket::of_location(0x2_e1f0, 18).contains(smallest));
    assert!(!Bucket::of_location(0xe1f0, 18).contains(smallest));
}

#[test]
fn raw_buckets() {
    let bucket = Bucket::from_raw(0x2000_0000_0000_00c4).unwrap();
    assert_eq!((bucket.used_bits(), bucket.position()), (8, 35));
    assert_eq!(bucket.raw(), 0x2000_0000_0000_00c4);
    assert_eq!(Bucket::nth(35, 8), bucket);
    // Bits above the used ones are dropped.
    assert_eq!(Bucket::from_raw(0x2000_0000_0000_ffc4), Some(bucket));
    for raw in [0, 1234, 59 << 58, u64::MAX] {
        assert_eq!(Bucket::from_raw(raw), None, "{raw:#x}");
    }
}

proptest! {
    #[test]
    fn the_superbuckets_share_the_keys_among_them(location: u64, bits in 1u8..=32) {
        let bucket = Bucket::of_location(location, bits);
        prop_assert!(bucket.keys().contains(&key(location)));
        prop_assert_eq!(Bucket::nth(bucket.position(), bits), bucket);
        prop_assert_eq!(Bucket::from_raw(bucket.raw()), Some(bucket));
        prop_assert_eq!(*bucket.keys().start(), bucket.position() << (64 - bits));
        if let Some(behind) = bucket.keys().end().checked_add(1) {
            prop_assert_eq!(behind, (bucket.position() + 1) << (64 - bits));
        }
    }

    #[test]
    fn a_bucket_contains_its_parts(location: u64, a in 1u8..=58, b in 1u8..=58) {
        let (outer, inner) = (Bucket::of_location(location, a), Bucket::of_location(location, b));
        prop_assert_eq!(outer.contains(inner), a <= b);
        if a <= b {
            prop_assert!(outer.keys().contains(inner.keys().start()));
            prop_assert!(outer.keys().contains(inner.keys().end()));
        }
    }

    #[test]
    fn ids_come_back(
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
        prop_assert_eq!(id.namespace(), namespace);
        prop_assert_eq!(id.document_type(), kind);
        prop_assert_eq!(id.scope(), scope);
        prop_assert_eq!(id.name(), name);
        prop_assert_eq!(&DocumentId::parse(id.as_str()).unwrap(), &id);
        prop_assert_eq!(&id.gid()[..4], &id.location().to_le_bytes()[..4]);
    }

    #[test]
    fn any_text_is_an_id_or_an_error(text in any::<String>(), tail in "[:=,ngx0-9id]{0,12}") {
        for text in [text.clone(), tail.clone(), format!("id:{text}"), format!("id:s:t:{tail}")] {
            if let Ok(id) = DocumentId::parse(&text) {
                prop_assert_eq!(&DocumentId::parse(id.as_str()).unwrap(), &id);
                let _ = (id.location(), id.smallest_bucket());
            }
        }
    }
}
