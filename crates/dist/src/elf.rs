//! Libraries that a binary needs of the system, as `readelf` prints them.

use crate::programs::output;
use anyhow::{Context, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::Command;

/// Libraries of a binary.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Needs {
    /// The program that loads it; none if it is static.
    pub interpreter: Option<String>,
    /// Libraries, and the versions of symbols that are needed of each.
    pub versions: BTreeMap<String, BTreeSet<String>>,
}

impl Needs {
    /// Reads a binary.
    ///
    /// # Errors
    /// When `readelf` is missing or does not understand the file.
    pub fn of(binary: &Path) -> Result<Self> {
        let mut readelf = Command::new("readelf");
        readelf.args(["--wide", "--program-headers", "--dynamic", "--version-info"]).arg(binary);
        Ok(Self::parse(&output(readelf.env("LC_ALL", "C"))?))
    }

    fn parse(text: &str) -> Self {
        let mut needs = Self::default();
        let mut library = String::new();
        for line in text.lines().map(str::trim) {
            if let Some((_, name)) = line.split_once("[Requesting program interpreter: ") {
                needs.interpreter = Some(name.trim_end_matches(']').to_owned());
            } else if let Some((_, name)) = line.split_once("Shared library: [") {
                needs.versions.entry(name.trim_end_matches(']').to_owned()).or_default();
            } else if let Some((_, rest)) = line.split_once("File: ") {
                library = rest.split_whitespace().next().unwrap_or_default().to_owned();
            } else if let Some((_, rest)) = line.split_once("Name: ") {
                // Of the versions that are needed, not of those that the file defines.
                let name = rest.split_whitespace().next().unwrap_or_default().to_owned();
                if line.contains("Version: ") && !library.is_empty() && rest.contains("Flags:") {
                    needs.versions.entry(library.clone()).or_default().insert(name);
                }
            }
        }
        needs
    }

    /// Reads the needs that a page documents: rows of a table such as ``| `libm.so.6` | `GLIBC_2.2.5` |``.
    ///
    /// # Errors
    /// When the page has no such table.
    pub fn documented(page: &str, target: &str) -> Result<Self> {
        let mark = format!("<!-- libraries: {target} -->");
        let (_, rest) =
            page.split_once(&mark).with_context(|| format!("the page has no {mark}"))?;
        let mut needs = Self::default();
        let rows = rest.lines().skip_while(|line| !line.starts_with('|'));
        for row in rows.take_while(|line| line.starts_with('|')).skip(2) {
            let mut words = row.split('`').skip(1).step_by(2);
            let library = words.next().with_context(|| format!("no library in '{row}'"))?;
            if library.starts_with('/') {
                needs.interpreter = Some(library.to_owned());
            } else {
                needs.versions.insert(library.to_owned(), words.map(str::to_owned).collect());
            }
        }
        Ok(needs)
    }

    /// Rows of the table that documents these needs.
    #[must_use]
    pub fn rows(&self) -> String {
        let quoted = |word: &String| format!("`{word}`");
        let loader = self.interpreter.iter().map(|name| format!("| `{name}` | |\n"));
        let rows = self.versions.iter().map(|(library, versions)| {
            let versions: Vec<String> = versions.iter().map(quoted).collect();
            format!("| `{library}` | {} |\n", versions.join(", "))
        });
        loader.chain(rows).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LISTING: &str = "
  INTERP         0x000318 0x0000000000000318 0x0000000000000318 0x00001c 0x00001c R   0x1
      [Requesting program interpreter: /lib64/ld-linux-x86-64.so.2]
 0x0000000000000001 (NEEDED)             Shared library: [libm.so.6]
 0x0000000000000001 (NEEDED)             Shared library: [libdl.so.2]
 0x0000000000000001 (NEEDED)             Shared library: [libc.so.6]
Version needs section '.gnu.version_r' contains 2 entries:
 Addr: 0x0000000000001f68  Offset: 0x001f68  Link: 7 (.dynstr)
  000000: Version: 1  File: libm.so.6  Cnt: 1
  0x0010:   Name: GLIBC_2.2.5  Flags: none  Version: 9
  0x0020: Version: 1  File: libc.so.6  Cnt: 2
  0x0030:   Name: GLIBC_2.17  Flags: none  Version: 8
  0x0040:   Name: GLIBC_2.14  Flags: none  Version: 7
";

    #[test]
    fn libraries_and_versions_of_symbols_are_those_of_the_listing_and_of_the_page() {
        let needs = Needs::parse(LISTING);
        assert_eq!(needs.interpreter.as_deref(), Some("/lib64/ld-linux-x86-64.so.2"));
        let versions =
            |name: &str| needs.versions[name].iter().map(String::as_str).collect::<Vec<_>>();
        assert_eq!(versions("libc.so.6"), ["GLIBC_2.14", "GLIBC_2.17"]);
        assert_eq!((versions("libm.so.6"), versions("libdl.so.2")), (vec!["GLIBC_2.2.5"], vec![]));
        let table = format!("| library | versions |\n|---|---|\n{}\nMore.\n", needs.rows());
        let page = format!("Text.\n\n<!-- libraries: x -->\n\n{table}| not | this |\n");
        assert_eq!(Needs::documented(&page, "x").unwrap(), needs);
        assert!(Needs::documented(&page, "y").is_err());
    }

    #[test]
    fn this_test_needs_the_c_library() {
        let needs = Needs::of(&std::env::current_exe().unwrap()).unwrap();
        assert!(needs.interpreter.is_some());
        assert!(!needs.versions["libc.so.6"].is_empty(), "{needs:?}");
    }
}
