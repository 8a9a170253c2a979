//! Headers of requests, as flags and scenarios give them.
//!
//! A scenario keeps the lines as they were written, and a record too: what a file or the environment holds is put in only
//! when requests are made, so it never reaches a record.

use crate::toml_text;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::secrets::{is_secret_header, remember};
use plimsoll_core::system_error::words;
use plimsoll_workloads::header::{is_token, parse_header};
use std::fs::File;
use std::io::Read;

/// Longest file of headers, bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;

/// Reads headers: `Name: value`, where `${NAME}` in the value is a variable of the environment, or `@FILE` with one such
/// header a line, which is taken as it is. Empty lines of a file, and lines that begin with `#`, are skipped.
///
/// # Errors
/// The first line that is not a header. The message does not repeat values of files and variables.
pub fn read_headers(lines: &[String]) -> Result<Vec<(String, String)>> {
    read_headers_of("--header", lines)
}

/// The same for another flag.
///
/// # Errors
/// As [`read_headers`].
pub fn read_headers_of(flag: &str, lines: &[String]) -> Result<Vec<(String, String)>> {
    let mut headers = Vec::new();
    for line in lines {
        match line.strip_prefix('@') {
            Some(path) => read_file(flag, path, &mut headers)?,
            None => {
                let (name, value) =
                    parse_header(line).map_err(|e| usage(format!("{flag}: {e}")))?;
                if is_secret_header(&name) {
                    remember(&value);
                    // A target may repeat the secret without the word before it, such as `Bearer`.
                    value.split(' ').next_back().into_iter().for_each(remember);
                }
                let value = filled(flag, &name, &value)?;
                // Once more: a variable may hold a line end.
                headers.push(header_of(&name, &value).map_err(|e| usage(format!("{flag}: {e}")))?);
            }
        }
    }
    Ok(headers)
}

fn header_of(name: &str, value: &str) -> Result<(String, String), String> {
    parse_header(&format!("{name}: {value}"))
}

fn read_file(flag: &str, path: &str, headers: &mut Vec<(String, String)>) -> Result<()> {
    let mut text = String::new();
    File::open(path)
        .and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text))
        .map_err(|error| {
            usage(format!(
                "{flag} @{path}: {}; give a text file of lines 'Name: value'",
                words(&error)
            ))
        })?;
    if text.len() as u64 > FILE_BYTES_MAX {
        return Err(usage(format!(
            "{flag} @{path}: over {} MiB; give a text file of lines 'Name: value'",
            FILE_BYTES_MAX >> 20
        )));
    }
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let is_header = line.split_once(':').is_some_and(|(name, _)| is_token(name));
        // A line that is not a header may be a secret by itself.
        let read = match is_header {
            true => parse_header(line),
            false => Err("not a header; write 'Name: value'".to_owned()),
        };
        let (name, value) =
            read.map_err(|problem| usage(format!("{path}:{}: {problem}", index + 1)))?;
        remember(&value);
        headers.push((name, value));
    }
    Ok(())
}

/// Puts variables of the environment into a value.
fn filled(flag: &str, name: &str, value: &str) -> Result<String> {
    let own = |variable: &str| {
        let own = std::env::var(variable).ok();
        own.iter().for_each(|value| remember(value));
        own
    };
    toml_text::filled(value, &own).map_err(|variable| {
        let file = if flag == "--header" { ", or use --header @FILE" } else { "" };
        usage(format!(
            "{flag} '{name}': the environment variable '{variable}' is not set; set it{file}"
        ))
    })
}

/// A line `Name: value` of a flag as a request has it, with variables of the environment in the value. A line that is not a
/// header is returned as it is; the reader of headers rejects it.
///
/// # Errors
/// A variable that is not set, or that has a line end.
pub fn filled_line(flag: &str, line: &str) -> Result<String> {
    match line.split_once(':') {
        Some((name, value)) => {
            let value = filled(flag, name, value)?;
            // In a file for another process the rest would be a header of its own.
            if value.contains(['\r', '\n']) {
                header_of(name, &value).map_err(|error| usage(format!("{flag}: {error}")))?;
            }
            Ok(format!("{name}:{value}"))
        }
        None => Ok(line.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(lines: &[&str]) -> Result<Vec<(String, String)>> {
        read_headers(&lines.iter().map(ToString::to_string).collect::<Vec<_>>())
    }

    #[test]
    fn values_come_from_the_line_a_file_or_the_environment() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("headers");
        std::fs::write(&path, "# of staging\nAuthorization: Bearer a${B}c\n\n  X-Id:  7\n")
            .unwrap();
        let file = format!("@{}", path.display());
        // A variable that every process of the tests has.
        let home = std::env::var("PATH").unwrap();
        let headers =
            read(&["X-Kind: a", &file, "X-Path: at ${PATH};", "X-Kind: $b {c} $${D}"]).unwrap();
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let expected = [
            own("X-Kind", "a"),
            own("Authorization", "Bearer a${B}c"),
            own("X-Id", "7"),
            own("X-Path", &format!("at {home};")),
            own("X-Kind", "$b {c} ${D}"),
        ];
        assert_eq!(headers, expected);
    }

    #[test]
    fn errors_do_not_repeat_what_a_file_holds() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("headers");
        let file = format!("@{}", path.display());
        for text in ["hunter2\n", "X-A: 1\nhunter2 : x\n"] {
            std::fs::write(&path, text).unwrap();
            let error = read(&[&file]).unwrap_err().to_string();
            assert!(!error.contains("hunter2") && error.contains("not a header"), "{error}");
            assert!(error.contains(&format!(":{}: ", text.lines().count())), "{error}");
        }
        let error = read(&["X: ${PLIMSOLL_NO_SUCH}"]).unwrap_err().to_string();
        assert!(error.contains("'PLIMSOLL_NO_SUCH' is not set"), "{error}");
        assert!(
            read(&["@no/such/file"]).unwrap_err().to_string().contains("--header @no/such/file")
        );
        assert!(read(&["nothing"]).unwrap_err().to_string().contains("--header"));
    }
}
