//! Descriptions of the packages that a Debian or Ubuntu host knows.
//!
//! title: the package; body: its short description, and the long one where the host keeps it (in
//! dpkg's status, or in an uncompressed Translation-en list); category: the section; author: the
//! maintainer's name; score: the installed size in KiB. Read from `apt-cache dumpavail`, or from
//! dpkg's status where apt knows nothing.

use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use super::{CorpusError, Document, Documents};

const STATUS: &str = "/var/lib/dpkg/status";
const LISTS: &str = "/var/lib/apt/lists";

/// Source of the descriptions on this host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Descriptions {
    /// Packages known to apt: tens of thousands.
    AptCache,
    /// Installed packages: some hundreds.
    DpkgStatus,
}

impl Descriptions {
    pub fn find() -> Result<Self, CorpusError> {
        if let Ok(mut child) = dump() {
            let some = child.stdout.as_mut().is_some_and(|out| out.read(&mut [0]).unwrap_or(0) > 0);
            finish(&mut child);
            if some {
                return Ok(Self::AptCache);
            }
        }
        match File::open(STATUS) {
            Ok(_) => Ok(Self::DpkgStatus),
            Err(error) => Err(CorpusError::NoDebian(format!("no apt-cache; {STATUS}: {error}"))),
        }
    }

    pub fn origin(self) -> String {
        match self {
            Self::AptCache => "apt-cache dumpavail on this host".into(),
            Self::DpkgStatus => format!("{STATUS} on this host"),
        }
    }

    pub fn documents(self) -> Result<Documents, CorpusError> {
        let gone = |error: std::io::Error| CorpusError::NoDebian(error.to_string());
        Ok(match self {
            Self::AptCache => dumped(dump().map_err(gone)?, long_descriptions())?,
            Self::DpkgStatus => {
                let file = BufReader::new(File::open(STATUS).map_err(gone)?);
                Box::new(Stanzas::new(file, Arc::default()))
            }
        })
    }
}

fn dump() -> std::io::Result<Child> {
    Command::new("apt-cache")
        .arg("dumpavail")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
}

/// Documents out of the output of a child. If it fails, the last one is an error: its output was not whole.
fn dumped(child: Child, long: Arc<HashMap<String, String>>) -> Result<Documents, CorpusError> {
    let mut child = Dump(child);
    let out = child.0.stdout.take();
    let out = out.ok_or_else(|| CorpusError::NoDebian("apt-cache prints nothing".into()))?;
    let stanzas = Stanzas::new(BufReader::new(out), long);
    // The child lives as long as its output is read.
    let failure = std::iter::once_with(move || child.failure()).flatten();
    Ok(Box::new(stanzas.chain(failure.map(Err))))
}

/// Ends a child that may still want to write.
fn finish(child: &mut Child) {
    drop(child.stdout.take());
    let _ = child.kill();
    let _ = child.wait();
}

struct Dump(Child);

impl Dump {
    /// Waits for the end of the child; its failure, if it failed.
    fn failure(mut self) -> Option<CorpusError> {
        let end = match self.0.wait() {
            Ok(status) if status.success() => return None,
            Ok(status) => status.to_string(),
            Err(error) => error.to_string(),
        };
        Some(CorpusError::NoDebian(format!("apt-cache dumpavail failed before its end: {end}")))
    }
}

impl Drop for Dump {
    fn drop(&mut self) {
        finish(&mut self.0);
    }
}

/// Long descriptions by the digest that package lists name, from lists that are not compressed: at
/// most some 30 MB for the whole of Debian.
fn long_descriptions() -> Arc<HashMap<String, String>> {
    let mut found = HashMap::new();
    let entries = std::fs::read_dir(LISTS).into_iter().flatten().flatten();
    let lists = entries.map(|entry| entry.path());
    for path in lists.filter(|path| path.to_string_lossy().ends_with("_Translation-en")) {
        read_translation(&path, &mut found);
    }
    Arc::new(found)
}

fn read_translation(path: &Path, found: &mut HashMap<String, String>) {
    let Ok(file) = File::open(path) else { return };
    let mut reader = BufReader::new(file);
    while let Ok(Some(mut stanza)) = read_stanza(&mut reader) {
        let long = stanza.remove("Description-en").unwrap_or_default();
        if let (Some(digest), Some((_, long))) =
            (stanza.remove("Description-md5"), long.split_once('\n'))
        {
            found.insert(digest, flat(long));
        }
    }
}

/// Documents out of control data: fields with continuation lines, stanzas separated by empty lines.
struct Stanzas<R> {
    reader: R,
    long: Arc<HashMap<String, String>>,
    over: bool,
}

impl<R> Stanzas<R> {
    fn new(reader: R, long: Arc<HashMap<String, String>>) -> Self {
        Self { reader, long, over: false }
    }
}

impl<R: BufRead> Iterator for Stanzas<R> {
    type Item = Result<Document, CorpusError>;

    fn next(&mut self) -> Option<Self::Item> {
        while !self.over {
            match read_stanza(&mut self.reader) {
                Ok(Some(stanza)) => {
                    if let Some(document) = to_document(stanza, &self.long) {
                        return Some(Ok(document));
                    }
                }
                Ok(None) => self.over = true,
                Err(error) => {
                    self.over = true;
                    let path = PathBuf::from("package list");
                    return Some(Err(crate::error::InputError::io(&path, error).into()));
                }
            }
        }
        None
    }
}

/// The fields of the next stanza; a field's further lines are appended after `\n`.
fn read_stanza(reader: &mut impl BufRead) -> std::io::Result<Option<HashMap<String, String>>> {
    let (mut fields, mut key) = (HashMap::<String, String>::new(), String::new());
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line)?;
        let text = String::from_utf8_lossy(&line);
        let text = text.trim_end_matches('\n');
        if read == 0 || text.is_empty() {
            if !fields.is_empty() {
                return Ok(Some(fields));
            }
            if read == 0 {
                return Ok(None);
            }
        } else if let Some(more) = text.strip_prefix([' ', '\t']) {
            if let Some(value) = fields.get_mut(&key) {
                value.push('\n');
                value.push_str(more);
            }
        } else if let Some((name, value)) = text.split_once(':') {
            name.clone_into(&mut key);
            fields.insert(key.clone(), value.trim_start().to_owned());
        }
    }
}

/// `None` for a stanza that describes no package.
fn to_document(
    mut stanza: HashMap<String, String>,
    long: &HashMap<String, String>,
) -> Option<Document> {
    let package = stanza.remove("Package")?;
    let description = stanza.remove("Description").or_else(|| stanza.remove("Description-en"))?;
    let mut body = flat(&description);
    if let Some(more) = stanza.get("Description-md5").and_then(|digest| long.get(digest)) {
        body.push('\n');
        body.push_str(more);
    }
    let version = stanza.remove("Version").unwrap_or_default();
    let architecture = stanza.remove("Architecture").unwrap_or_default();
    let author = stanza.remove("Maintainer").unwrap_or_default();
    let author = author.split(" <").next().unwrap_or_default().trim_matches('"').to_owned();
    let score = stanza.get("Installed-Size").and_then(|size| size.parse().ok()).unwrap_or(0);
    let category = stanza.remove("Section").unwrap_or_default();
    let id = format!("{package}_{version}_{architecture}");
    Some(Document { id, title: package, body, category, author, score })
}

/// Control data writes an empty line as a single full stop.
fn flat(text: &str) -> String {
    let lines = text.split('\n').map(|line| if line.trim() == "." { "" } else { line.trim_end() });
    lines.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stanzas_become_documents() {
        let text = "Package: a\nVersion: 1:2\nArchitecture: all\nMaintainer: \"A B\" <a@b>\n\
            Installed-Size: 12\nSection: games\nDescription: short\n long one\n .\n  more\n\
            Description-md5: 77\n\n\nPackage: no-description\n\nPackage: b\nDescription: x";
        let long = Arc::new(HashMap::from([("77".to_owned(), "further".to_owned())]));
        let all: Vec<Document> =
            Stanzas::new(text.as_bytes(), long).collect::<Result<_, _>>().unwrap();
        assert_eq!(all.len(), 2);
        assert_eq!(all[0].id, "a_1:2_all");
        assert_eq!(all[0].body, "short\nlong one\n\n more\nfurther");
        assert_eq!((all[0].author.as_str(), all[0].score), ("A B", 12));
        assert_eq!((all[1].title.as_str(), all[1].category.as_str()), ("b", ""));
    }

    #[test]
    fn a_list_whose_program_fails_ends_with_an_error() {
        let documents = |exit: u8| {
            let script = format!("printf 'Package: a\\nDescription: b\\n'; exit {exit}");
            let mut command = Command::new("sh");
            command.args(["-c", &script]).stdin(Stdio::null()).stdout(Stdio::piped());
            dumped(command.spawn().unwrap(), Arc::default()).unwrap().collect::<Vec<_>>()
        };
        assert!(matches!(documents(0).as_slice(), [Ok(_)]));
        let found = documents(100);
        let [Ok(_), Err(error)] = found.as_slice() else { panic!("no error at its end") };
        assert!(error.to_string().contains("exit status: 100"), "{error}");
    }

    #[test]
    fn this_host_has_descriptions_or_says_so() {
        match Descriptions::find() {
            Ok(found) => {
                let first: Vec<_> = found.documents().unwrap().take(20).collect();
                assert_eq!(first.len(), 20);
                assert!(first.iter().flatten().all(|d| !d.title.is_empty() && !d.body.is_empty()));
            }
            Err(error) => assert!(error.to_string().contains("use the corpus 'bundled'")),
        }
    }
}
