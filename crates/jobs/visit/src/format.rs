//! Form of the lines that a visit writes.

use super::item::Entry;
use serde::{Deserialize, Serialize};

/// Format of a document's line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DocumentFormat {
    /// `{"id":...,"fields":...}`, as `vespa visit` prints them.
    Documents,
    /// `{"put":...,"fields":...}`, as `vespa feed` reads them.
    VespaFeed,
}

impl DocumentFormat {
    /// Appends one line.
    pub fn line(self, entry: Entry, id_json: &[u8], rest: &[u8], out: &mut Vec<u8>) {
        let key: &[u8] = match (entry, self) {
            (Entry::Remove, _) => b"{\"remove\":",
            (Entry::Put, Self::Documents) => b"{\"id\":",
            (Entry::Put, Self::VespaFeed) => b"{\"put\":",
        };
        out.extend_from_slice(key);
        out.extend_from_slice(id_json);
        out.extend_from_slice(rest);
        out.push(b'\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_documents_or_operations() {
        let line = |format: DocumentFormat, entry| {
            let mut out = Vec::new();
            format.line(entry, b"\"id:a:b::c\"", b",\"fields\":{}}", &mut out);
            String::from_utf8(out).unwrap()
        };
        let documents = DocumentFormat::Documents;
        assert_eq!(line(documents, Entry::Put), "{\"id\":\"id:a:b::c\",\"fields\":{}}\n");
        assert!(line(DocumentFormat::VespaFeed, Entry::Put).starts_with("{\"put\":"));
        assert!(line(documents, Entry::Remove).starts_with("{\"remove\":"));
    }
}
