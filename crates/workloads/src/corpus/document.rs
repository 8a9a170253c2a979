//! A document and its JSON.

use std::io::Write as _;

/// A text with the five fields that every corpus fills.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Document {
    /// Unique in its corpus; visible ASCII without blanks for all sources but `ndjson`.
    pub id: String,
    /// A short text.
    pub title: String,
    /// The text.
    pub body: String,
    /// One of few words, to filter by.
    pub category: String,
    /// One of more words, to group by.
    pub author: String,
    /// A whole number, to filter and sort by.
    pub score: i64,
}

impl Document {
    /// Appends `{"fields":{"title":...,"score":...}}`, the body of a POST to Vespa's document API.
    pub fn to_fields_json(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"fields\":{");
        self.write_fields(out);
        out.extend_from_slice(b"}}");
    }

    /// Appends one NDJSON line with `id` and the five fields, which the source `ndjson` reads back.
    pub fn to_ndjson(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"id\":");
        write_string(&self.id, out);
        out.push(b',');
        self.write_fields(out);
        out.extend_from_slice(b"}\n");
    }

    fn write_fields(&self, out: &mut Vec<u8>) {
        let texts = [
            (b"\"title\":".as_slice(), &self.title),
            (b",\"body\":", &self.body),
            (b",\"category\":", &self.category),
            (b",\"author\":", &self.author),
        ];
        for (key, text) in texts {
            out.extend_from_slice(key);
            write_string(text, out);
        }
        out.extend_from_slice(b",\"score\":");
        // Writing to a Vec cannot fail.
        let _ = write!(out, "{}", self.score);
    }
}

/// Appends a JSON string. Runs of plain characters are copied whole.
fn write_string(text: &str, out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let bytes = text.as_bytes();
    let mut start = 0;
    for (at, &byte) in bytes.iter().enumerate() {
        if byte >= b' ' && byte != b'"' && byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[start..at]);
        start = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            _ => {
                out.extend_from_slice(b"\\u00");
                out.extend_from_slice(&[HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
            }
        }
    }
    out.extend_from_slice(&bytes[start..]);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn json_says_what_the_document_holds(
            title in ".*",
            body in "[\\x00-\\x20\"\\\\é]*",
            score: i64,
        ) {
            let document = Document {
                id: "a\"1".into(),
                title,
                body,
                category: "c".into(),
                author: "\u{1f600}".into(),
                score,
            };
            let mut out = Vec::new();
            document.to_fields_json(&mut out);
            let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(&parsed["fields"]["title"], &document.title);
            prop_assert_eq!(&parsed["fields"]["body"], &document.body);
            prop_assert_eq!(&parsed["fields"]["author"], "\u{1f600}");
            prop_assert_eq!(parsed["fields"]["score"].as_i64(), Some(score));
            prop_assert_eq!(parsed["fields"].as_object().unwrap().len(), 5);
            out.clear();
            document.to_ndjson(&mut out);
            let parsed: serde_json::Value = serde_json::from_slice(&out).unwrap();
            prop_assert_eq!(&parsed["id"], "a\"1");
            prop_assert!(out.iter().filter(|b| **b == b'\n').count() == 1);
        }
    }
}
