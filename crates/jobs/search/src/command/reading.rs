//! Files of text that a matrix is made of: its own, a list of queries, a printed table.

use anyhow::Result;
use plimsoll_core::system_error::words;
use plimsoll_job::usage::usage;
use std::fs::File;
use std::io::Read;
use std::path::Path;

/// Longest such file, bytes: each of its queries is held several times over, for every engine and distance.
const BYTES_MAX: u64 = 4 << 20;

/// Reads a file of text; `shown` is what messages call it, and `what` what should be in it.
///
/// # Errors
/// When it cannot be read, is no text, or is too long.
pub fn read_text(path: &Path, shown: &str, what: &str) -> Result<String> {
    let wrong = |error: std::io::Error| usage(format!("{shown}: {}; name {what}", words(&error)));
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(wrong)?;
    if bytes.len() as u64 > BYTES_MAX {
        let most = BYTES_MAX >> 20;
        return Err(usage(format!("{shown}: over {most} MiB, which is too long for {what}")));
    }
    String::from_utf8(bytes).map_err(|error| {
        let good = error.utf8_error().valid_up_to();
        let line = error.as_bytes()[..good].iter().filter(|byte| **byte == b'\n').count() + 1;
        usage(format!("{shown}:{line}: a byte that is not UTF-8; save the file as UTF-8"))
    })
}

#[cfg(test)]
mod tests {
    use super::read_text;

    #[test]
    fn a_file_is_text_and_not_too_long() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("q.toml");
        let told = |bytes: &[u8]| {
            std::fs::write(&path, bytes).unwrap();
            read_text(&path, "q.toml", "a list of queries").map_err(|error| error.to_string())
        };
        assert_eq!(told(b"a\r\n").unwrap(), "a\r\n");
        assert_eq!(
            told(b"a\n\xff").unwrap_err(),
            "q.toml:2: a byte that is not UTF-8; save the file as UTF-8"
        );
        let long = told(&vec![b'a'; (4 << 20) + 1]).unwrap_err();
        assert_eq!(long, "q.toml: over 4 MiB, which is too long for a list of queries");
        assert!(
            read_text(folder.path(), "x", "a list")
                .unwrap_err()
                .to_string()
                .contains("; name a list")
        );
    }
}
