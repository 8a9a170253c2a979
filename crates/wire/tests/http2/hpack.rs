//! Header compression against the examples of RFC 7541 appendix C, and against itself.

use plimsoll_core::rng::Rng;
use plimsoll_wire::http2::vectors::{Reader, Writer, huffman, integer};
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|byte| !byte.is_ascii_whitespace()).collect();
    let byte = |pair: &[u8]| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap();
    digits.chunks(2).map(byte).collect()
}

fn field(text: &str) -> (Vec<u8>, Vec<u8>) {
    let (name, value) = text.split_once(": ").unwrap();
    (name.into(), value.into())
}

/// One after the other on one connection: the block, its fields, the size of the table behind it.
fn follow(reader: &mut Reader, steps: &[(&str, &[&str], usize)]) {
    for (block, fields, table_bytes) in steps {
        let expected: Vec<_> = fields.iter().map(|text| field(text)).collect();
        assert_eq!(reader.read(&hex(block)).unwrap(), expected);
        assert_eq!(reader.table_bytes(), *table_bytes);
    }
}

#[test]
fn integers_of_c_1() {
    assert_eq!(integer(10, 5), [10]);
    assert_eq!(integer(1337, 5), [31, 154, 10]);
    assert_eq!(integer(42, 8), [42]);
}

#[test]
fn single_fields_of_c_2() {
    let cases: &[(&str, &[&str], usize)] = &[
        (
            "400a637573746f6d2d6b65790d637573746f6d2d686561646572",
            &["custom-key: custom-header"],
            55,
        ),
        ("040c2f73616d706c652f70617468", &[":path: /sample/path"], 0),
        ("100870617373776f726406736563726574", &["password: secret"], 0),
        ("82", &[":method: GET"], 0),
    ];
    for case in cases {
        follow(&mut Reader::default(), &[*case]);
    }
}

const FIRST: &[&str] =
    &[":method: GET", ":scheme: http", ":path: /", ":authority: www.example.com"];
const SECOND: &[&str] = &[
    ":method: GET",
    ":scheme: http",
    ":path: /",
    ":authority: www.example.com",
    "cache-control: no-cache",
];
const THIRD: &[&str] = &[
    ":method: GET",
    ":scheme: https",
    ":path: /index.html",
    ":authority: www.example.com",
    "custom-key: custom-value",
];

/// The requests of C.4, Huffman coded.
const CODED: [(&str, &[&str], usize); 3] = [
    ("828684418cf1e3c2e5f23a6ba0ab90f4ff", FIRST, 57),
    ("828684be5886a8eb10649cbf", SECOND, 110),
    ("828785bf408825a849e95ba97d7f8925a849e95bb8e8b4bf", THIRD, 164),
];

#[test]
fn requests_of_c_3_and_c_4() {
    let plain = [
        ("828684410f7777772e6578616d706c652e636f6d", FIRST, 57),
        ("828684be58086e6f2d6361636865", SECOND, 110),
        ("828785bf400a637573746f6d2d6b65790c637573746f6d2d76616c7565", THIRD, 164),
    ];
    follow(&mut Reader::default(), &plain);
    follow(&mut Reader::default(), &CODED);
}

#[test]
fn requests_of_c_4_are_written_byte_for_byte() {
    let mut writer = Writer::default();
    for (block, fields, table_bytes) in CODED {
        let fields: Vec<_> = fields.iter().map(|text| field(text)).collect();
        assert_eq!(writer.write(&fields), hex(block));
        assert_eq!(writer.table_bytes(), table_bytes);
    }
}

#[test]
fn replies_of_c_5_and_c_6_with_evictions() {
    let first: &[&str] = &[
        ":status: 302",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ];
    let second: &[&str] = &[
        ":status: 307",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:21 GMT",
        "location: https://www.example.com",
    ];
    let third: &[&str] = &[
        ":status: 200",
        "cache-control: private",
        "date: Mon, 21 Oct 2013 20:13:22 GMT",
        "location: https://www.example.com",
        "content-encoding: gzip",
        "set-cookie: foo=ASDJKHQKBZXOQWEOPIUAXQWEOIU; max-age=3600; version=1",
    ];
    let plain = [
        (
            "4803333032580770726976617465611d4d6f6e2c203231204f637420323031332032303a31333a323120474d
             546e1768747470733a2f2f7777772e6578616d706c652e636f6d",
            first,
            222,
        ),
        ("4803333037c1c0bf", second, 222),
        (
            "88c1611d4d6f6e2c203231204f637420323031332032303a31333a323220474d54c05a04677a69707738666f
             6f3d4153444a4b48514b425a584f5157454f50495541585157454f49553b206d61782d6167653d333630303b
             2076657273696f6e3d31",
            third,
            215,
        ),
    ];
    let coded = [
        (
            "488264025885aec3771a4b6196d07abe941054d444a8200595040b8166e082a62d1bff6e919d29ad171863c7
             8f0b97c8e9ae82ae43d3",
            first,
            222,
        ),
        ("4883640effc1c0bf", second, 222),
        (
            "88c16196d07abe941054d444a8200595040b8166e084a62d1bffc05a839bd9ab77ad94e7821dd7f2e6c7b335
             dfdfcd5b3960d5af27087f3672c1ab270fb5291f9587316065c003ed4ee5b1063d5007",
            third,
            215,
        ),
    ];
    follow(&mut Reader::with_limit(256), &plain);
    follow(&mut Reader::with_limit(256), &coded);
}

#[test]
fn blocks_that_break_the_rules_are_refused() {
    let cases = [
        ("80", "not in the table"),
        ("be", "not in the table"),
        ("7f00", "not in the table"),
        ("ff", "inside an integer"),
        ("ffffffffff7f", "too large"),
        ("4005", "inside a string"),
        ("40826402", "inside an integer"),
        ("4081ff0161", "ends badly"),
        ("8220", "behind a header field"),
        ("3fe21f", "exceeds what was allowed"),
    ];
    for (block, why) in cases {
        let refusal = Reader::default().read(&hex(block)).unwrap_err();
        assert!(refusal.contains(why), "{block}: {refusal}");
    }
    // 4096 and less may be said, also twice.
    assert_eq!(Reader::default().read(&hex("203fe11f82")).unwrap(), [field(":method: GET")]);
}

#[test]
fn a_path_that_always_differs_leaves_the_table_alone() {
    let mut writer = Writer::default();
    let mut write = |n: u32, path: &str| {
        let id = format!("id-{n}");
        let block = writer.write(&[
            (":method", "GET"),
            (":path", path),
            (":authority", "127.0.0.1:8080"),
            ("user-agent", "plimsoll"),
            ("x-request-id", &id),
            ("content-length", &id),
        ]);
        (block, writer.table_bytes())
    };
    let (_, settled) = write(0, "/0");
    for n in 1..500 {
        let path = format!("/document/v1/ns/doc/docid/{n}");
        let (block, table_bytes) = write(n, &path);
        assert_eq!(table_bytes, settled, "request {n}");
        assert!(block.len() < path.len() + 30, "request {n}: {} bytes", block.len());
    }
    // A path that is asked again and again does enter, at its second time.
    let (long, _) = write(7, "/search/?query=the+same");
    let (_, grown) = write(7, "/search/?query=the+same");
    let (short, _) = write(7, "/search/?query=the+same");
    assert!(grown > settled && short.len() + 20 < long.len());
}

#[test]
fn the_peers_table_size_is_kept_and_told() {
    let (mut writer, mut reader) = (Writer::default(), Reader::default());
    let fields = [field("accept: x"), field("user-agent: y")];
    assert_eq!(reader.read(&writer.write(&fields)).unwrap(), fields);
    assert!(writer.table_bytes() > 0);
    writer.peer_limit(0);
    writer.peer_limit(100);
    let block = writer.write(&fields);
    // First the smallest, then the last.
    assert_eq!(block[..4], [0x20, 0x3f, 69, 0x53]);
    assert_eq!(reader.read(&block).unwrap(), fields);
    assert_eq!(reader.table_bytes(), writer.table_bytes());
    assert!(writer.table_bytes() <= 100);
    writer.peer_limit(1 << 20);
    assert_eq!(reader.read(&writer.write(&fields)).unwrap(), fields);
    for n in 0..1000u32 {
        let fields = [field(&format!("accept: {n}")), field("user-agent: y")];
        assert_eq!(reader.read(&writer.write(&fields)).unwrap(), fields);
        assert_eq!(reader.table_bytes(), writer.table_bytes());
        assert!(writer.table_bytes() <= 4096);
    }
}

fn names() -> impl Strategy<Value = String> {
    let usual = vec![":path", ":authority", "accept", "content-length", "user-agent", "x-a", "x-b"];
    prop_oneof![prop::sample::select(usual).prop_map(str::to_owned), "[a-z-]{1,20}"]
}

fn values() -> impl Strategy<Value = Vec<u8>> {
    let usual: Vec<&[u8]> = vec![b"/", b"gzip, deflate", b"", b"again", b"0"];
    prop_oneof![
        prop::sample::select(usual).prop_map(<[u8]>::to_vec),
        prop::collection::vec(any::<u8>(), 0..300)
    ]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 300,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn what_is_written_is_read(
        blocks in prop::collection::vec(prop::collection::vec((names(), values()), 0..12), 1..30),
        limits in prop::collection::vec(prop::option::of(0..6000u32), 30),
    ) {
        let (mut writer, mut reader) = (Writer::default(), Reader::default());
        for (fields, limit) in blocks.iter().zip(limits) {
            if let Some(limit) = limit {
                writer.peer_limit(limit);
            }
            let expected: Vec<_> =
                fields.iter().map(|(n, v)| (n.clone().into_bytes(), v.clone())).collect();
            prop_assert_eq!(reader.read(&writer.write(fields)).unwrap(), expected);
            prop_assert_eq!(reader.table_bytes(), writer.table_bytes());
        }
    }

    #[test]
    fn huffman_code_comes_back(text in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut block = vec![0x40, 1, b'x'];
        let code = huffman(&text);
        let mut length = integer(code.len() as u32, 7);
        length[0] |= 0x80;
        block.extend(length);
        block.extend(code);
        prop_assert_eq!(Reader::default().read(&block).unwrap(), [(b"x".to_vec(), text)]);
    }

    #[test]
    fn arbitrary_blocks_neither_panic_nor_grow(
        blocks in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..100), 1..20),
    ) {
        let mut reader = Reader::default();
        for block in &blocks {
            if reader.read(block).is_err() {
                break;
            }
            prop_assert!(reader.table_bytes() <= 4096);
        }
    }
}

/// Bytes flipped in blocks that were valid: they get further than bytes from nowhere.
#[test]
fn mutated_blocks_neither_panic_nor_grow() {
    let mut rng = Rng::new(7541);
    let mut refused = 0;
    for _ in 0..5_000 {
        let (mut writer, mut reader) = (Writer::default(), Reader::default());
        for round in 0..6u64 {
            let value = (rng.below(3) + round).to_string();
            let mut block = writer.write(&[("x-a", &value), ("accept", &value), (":path", &value)]);
            let place = rng.below(block.len() as u64) as usize;
            block[place] ^= 1 << rng.below(8);
            match reader.read(&block) {
                Ok(_) => assert!(reader.table_bytes() <= 4096),
                Err(_) => {
                    refused += 1;
                    break;
                }
            }
        }
    }
    assert!((500..5_000).contains(&refused), "{refused}");
}
