//! Replies to visits, in pieces: what is found must not depend on where they are cut.
#![no_main]

use libfuzzer_sys::fuzz_target;
use plimsoll_visit::ReplyReader;

fn items(bytes: &[u8], size: usize) -> (Vec<String>, bool) {
    let (mut reader, mut seen) = (ReplyReader::default(), Vec::new());
    for piece in bytes.chunks(size) {
        if reader.feed(piece, &mut |item| seen.push(format!("{item:?}"))).is_err() {
            return (seen, false);
        }
    }
    (seen, true)
}

fuzz_target!(|bytes: &[u8]| {
    let Some((size, bytes)) = bytes.split_first() else { return };
    let whole = items(bytes, bytes.len().max(1));
    assert_eq!(items(bytes, usize::from(*size).max(1)), whole);
});
