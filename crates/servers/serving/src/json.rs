//! Writing JSON without a tree.

/// Appends text as a JSON string.
pub fn push_text(out: &mut Vec<u8>, text: &str) {
    let plain = |byte: u8| (byte >= b' ') & (byte != b'"') & (byte != b'\\');
    // Without a way out of the loop, so that the compiler looks at many bytes at once.
    if text.bytes().fold(true, |all, byte| all & plain(byte)) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
    } else {
        push_json(out, text);
    }
}

/// Appends a value as JSON.
pub fn push_json(out: &mut Vec<u8>, value: impl serde::Serialize) {
    // Writing to memory has no way to fail.
    let _ = serde_json::to_writer(out, &value);
}
