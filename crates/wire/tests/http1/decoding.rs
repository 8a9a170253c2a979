//! Content codings, and what may be wrong with them.

use std::io::Write;

use flate2::Compression;
use flate2::write::{DeflateEncoder, GzEncoder, ZlibEncoder};
use plimsoll_wire::http1::{DecodeError, Encoding, Reply, decode_body};

fn coded(body: &[u8], encoding: Encoding) -> Reply<'_> {
    Reply {
        status: 200,
        head: b"",
        body,
        encoding,
        body_bytes: body.len() as u64,
        truncated: false,
    }
}

macro_rules! pack {
    ($encoder:ident, $bytes:expr) => {{
        let mut encoder = $encoder::new(Vec::new(), Compression::default());
        encoder.write_all($bytes).unwrap();
        encoder.finish().unwrap()
    }};
}

#[test]
fn gzip_zlib_and_bare_deflate_come_back() {
    for length in [0usize, 1, 1000, 300_000] {
        let plain: Vec<u8> = (0..length).map(|i| (i * i % 251) as u8).collect();
        let two_members =
            [pack!(GzEncoder, &plain[..length / 2]), pack!(GzEncoder, &plain[length / 2..])];
        let mut scratch = b"left over".to_vec();
        for (packed, encoding) in [
            (pack!(GzEncoder, &plain), Encoding::Gzip),
            (two_members.concat(), Encoding::Gzip),
            (pack!(ZlibEncoder, &plain), Encoding::Deflate),
            (pack!(DeflateEncoder, &plain), Encoding::Deflate),
            (plain.clone(), Encoding::Identity),
        ] {
            let reply = coded(&packed, encoding);
            assert_eq!(decode_body(&reply, &mut scratch, length), Ok(&plain[..]), "{encoding:?}");
            if length > 0 {
                let limit_bytes = length - 1;
                let long = Err(DecodeError::TooLong { limit_bytes });
                assert_eq!(decode_body(&reply, &mut scratch, limit_bytes), long);
            }
            if length > 0 && encoding != Encoding::Identity {
                let cut = coded(&packed[..packed.len() - 1], encoding);
                let error = decode_body(&cut, &mut scratch, length);
                assert!(matches!(error, Err(DecodeError::Corrupt(_))), "{encoding:?} {error:?}");
            }
        }
    }
}

#[test]
fn a_bomb_stops_at_the_limit() {
    let bomb = pack!(GzEncoder, &vec![0; 64 << 20]);
    assert!(bomb.len() < 100_000);
    let mut scratch = Vec::new();
    let decoded = decode_body(&coded(&bomb, Encoding::Gzip), &mut scratch, 1 << 20);
    assert_eq!(decoded, Err(DecodeError::TooLong { limit_bytes: 1 << 20 }));
    assert!(scratch.capacity() <= 4 << 20, "{}", scratch.capacity());
}

#[test]
fn what_cannot_be_decoded_says_why() {
    let mut scratch = Vec::new();
    let garbage = decode_body(&coded(b"not gzip at all", Encoding::Gzip), &mut scratch, 99);
    assert_eq!(garbage, Err(DecodeError::Corrupt("gzip")));
    let other = decode_body(&coded(b"brotli", Encoding::Other), &mut scratch, 99);
    assert_eq!(other, Err(DecodeError::Unsupported));
    let packed = pack!(GzEncoder, b"whole");
    let cut = Reply { truncated: true, ..coded(&packed, Encoding::Gzip) };
    assert_eq!(decode_body(&cut, &mut scratch, 99), Err(DecodeError::Truncated));
    let plain_cut = Reply { truncated: true, ..coded(b"begin", Encoding::Identity) };
    assert_eq!(decode_body(&plain_cut, &mut scratch, 99), Ok(&b"begin"[..]));
}
