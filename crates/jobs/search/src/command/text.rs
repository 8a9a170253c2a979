//! The texts of a matrix: each size made once, kept as NDJSON, and its disk space looked at first.

use super::alone::Alone;
use crate::spec::{MatrixSpec, Place};
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use plimsoll_core::units::{Size, Span};
use plimsoll_disk::Real;
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use plimsoll_record::search::{SizeRecord, size_label};
use plimsoll_workloads::corpus::{Corpus, CorpusOptions, Source, SyntheticOptions, synthetic};
use plimsoll_workloads::id_digest::IdDigest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fs::{self, File};
use std::io::{BufWriter, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, UNIX_EPOCH};

/// Bytes of disk that an engine of plimsoll takes for a byte of text: documents, postings, and segments while they are
/// merged.
const INDEX_SHARE: f64 = 2.0;

/// From here on a synthetic text is large enough for everything that is planted in it.
const LARGE_BYTES: u64 = 1_000_000;

/// A text on disk.
#[derive(Clone, Debug)]
pub struct Text {
    /// Its size as tables have it.
    pub label: String,
    /// Path of the text.
    pub path: PathBuf,
    /// Documents.
    pub documents: u64,
    /// Bytes.
    pub bytes: u64,
    /// Mark of the text in the names of indexes.
    pub mark: String,
    /// The generator behind it, where its answers are known.
    pub source: Option<SyntheticOptions>,
}

/// Description file of a text.
#[derive(Debug, Serialize, Deserialize)]
struct About {
    documents: u64,
    bytes: u64,
}

/// Texts and their sizes.
pub struct Texts<'a> {
    spec: &'a MatrixSpec,
    data: &'a Path,
}

/// A size as tables have it.
#[must_use]
pub fn label(bytes: u64) -> String {
    if bytes == 0 { "all".to_owned() } else { size_label(Size { bytes }) }
}

impl<'a> Texts<'a> {
    /// The texts of a matrix, in this folder.
    #[must_use]
    pub fn new(spec: &'a MatrixSpec, data: &'a Path) -> Self {
        Self { spec, data }
    }

    /// Looks whether all of them and their indexes have room, before anything is made.
    ///
    /// # Errors
    /// When they have not, or there is no such text.
    pub fn check(&self) -> Result<()> {
        fs::create_dir_all(self.data)
            .map_err(|error| usage(format!("--data {}: {error}", self.data.display())))?;
        // Opening tells what is missing or out of range. A large synthetic text is neither, and takes a second to open.
        let is_fine = |bytes: u64| (LARGE_BYTES..=synthetic::BYTES_MAX).contains(&bytes);
        for &bytes in &self.spec.sizes {
            if self.spec.corpus != "synthetic" || !is_fine(bytes) {
                self.open(bytes)?;
            }
        }
        let mut needed: u64 = 0;
        for &bytes in &self.spec.sizes {
            let (path, _) = self.place(bytes)?;
            if !path.exists() {
                needed += bytes;
            }
        }
        let ours = self.spec.engines.iter().any(|engine| matches!(engine.place, Place::Serve(_)));
        let largest = self.spec.sizes.iter().copied().max().unwrap_or_default();
        if ours {
            needed += (largest as f64 * INDEX_SHARE) as u64;
        }
        let free = free_bytes(self.data)?;
        if needed > free {
            return Err(usage(format!(
                "--sizes: the texts and the largest index take about {}, and {} has {} free; \
                 use smaller sizes, or another folder with --data",
                size_label(Size { bytes: needed }),
                self.data.display(),
                size_label(Size { bytes: free })
            )));
        }
        Ok(())
    }

    fn source(&self, bytes: u64) -> Result<Source> {
        Ok(match self.spec.corpus.as_str() {
            "synthetic" if bytes == 0 => {
                return Err(usage(
                    "--sizes all: a synthetic text has no fixed size; write one, such as 64MB",
                ));
            }
            "synthetic" => Source::Synthetic(SyntheticOptions::new(
                self.spec.seed,
                synthetic::Size::Bytes(bytes),
            )),
            "bundled" => Source::Bundled,
            "debian" => Source::Debian,
            other => Source::Ndjson(own_text(other)?),
        })
    }

    fn open(&self, bytes: u64) -> Result<(Corpus, Source)> {
        let source = self.source(bytes)?;
        let corpus = Corpus::open(&source, &CorpusOptions::default())
            .map_err(|error| usage(format!("--sizes {}: {error}", size_label(Size { bytes }))))?;
        Ok((corpus, source))
    }

    /// Returns the path of the text of a size, and its mark.
    fn place(&self, bytes: u64) -> Result<(PathBuf, String)> {
        let mut what = format!("{} {bytes}", self.spec.corpus);
        let name = match self.spec.corpus.strip_prefix("ndjson:") {
            Some(path) => {
                // A file that has changed is another text.
                what += &format!(" {}", state_of(Path::new(path))?);
                "file"
            }
            None => self.spec.corpus.as_str(),
        };
        if name == "synthetic" {
            what += &format!(" {}", self.spec.seed);
        }
        let digest = String::from(IdDigest::of(&what));
        let mark = digest[..8].to_owned();
        Ok((self.data.join(format!("{name}-{}-{mark}.ndjson", label(bytes).to_lowercase())), mark))
    }

    /// The text of a size; made if it is not there yet. `tell` gets the number of bytes written so far.
    ///
    /// # Errors
    /// When it cannot be made or written, or the source has less text.
    pub fn get(&self, bytes: u64, tell: &mut dyn FnMut(u64)) -> Result<Text> {
        let (path, mark) = self.place(bytes)?;
        let about = match About::of(&path) {
            Some(about) => about,
            None => self.make(bytes, &path, tell)?,
        };
        let source = match self.source(bytes)? {
            Source::Synthetic(options) => Some(options),
            _ => None,
        };
        let (documents, length) = (about.documents, about.bytes);
        Ok(Text { label: label(bytes), path, documents, bytes: length, mark, source })
    }

    /// Makes a text, unless another process does so meanwhile, which is waited for.
    fn make(&self, bytes: u64, path: &Path, tell: &mut dyn FnMut(u64)) -> Result<About> {
        let _alone = wait_to_be_alone(&path.with_extension("lock"))?;
        if let Some(about) = About::of(path) {
            return Ok(about);
        }
        let temporary = path.with_extension("ndjson.new");
        let about = self.write(bytes, &temporary, tell).inspect_err(|_| {
            // What was written is of no use to anybody, and the disk may be full of it.
            let _ = fs::remove_file(&temporary);
        })?;
        fs::rename(&temporary, path).with_context(|| path.display().to_string())?;
        let beside = About::beside(path);
        fs::write(&beside, serde_json::to_string(&about)?)
            .with_context(|| beside.display().to_string())?;
        Ok(about)
    }

    fn write(&self, bytes: u64, path: &Path, tell: &mut dyn FnMut(u64)) -> Result<About> {
        let (corpus, source) = self.open(bytes)?;
        let synthetic = matches!(source, Source::Synthetic(_));
        let shown = || path.display().to_string();
        let mut out = BufWriter::with_capacity(1 << 20, File::create(path).with_context(shown)?);
        let mut about = About { documents: 0, bytes: 0 };
        let mut line = Vec::new();
        for document in corpus.documents()? {
            line.clear();
            document.map_err(|error| usage(error.to_string()))?.to_ndjson(&mut line);
            out.write_all(&line).with_context(shown)?;
            about.documents += 1;
            about.bytes += line.len() as u64;
            if about.documents.is_multiple_of(4096) {
                signals::go_on("while a text was created")?;
                tell(about.bytes);
            }
            // The planted counts of a synthetic text hold for all of it.
            if !synthetic && bytes > 0 && about.bytes >= bytes {
                break;
            }
        }
        out.into_inner().map_err(std::io::IntoInnerError::into_error).with_context(shown)?;
        if !synthetic && about.bytes < bytes {
            return Err(usage(format!(
                "--sizes {}: {} has only {} of text; use a smaller size, 'all', or --corpus synthetic",
                label(bytes),
                corpus.name(),
                size_label(Size { bytes: about.bytes })
            )));
        }
        Ok(about)
    }
}

/// Longest wait for another process that makes the same text.
const MADE_WITHIN: Span = Span::seconds(3600);
/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

fn wait_to_be_alone(path: &Path) -> Result<Alone> {
    let until_ns = now_ns() + MADE_WITHIN.ns;
    loop {
        if let Some(alone) = Alone::take(&Real, path).with_context(|| path.display().to_string())? {
            return Ok(alone);
        }
        signals::go_on("while another process created the text")?;
        if now_ns() > until_ns {
            bail!(
                "{}: another process has been creating this text for {MADE_WITHIN}; stop it, or use another --data",
                path.display()
            );
        }
        std::thread::sleep(LOOK_EVERY);
    }
}

impl About {
    /// Returns the path of the description of a text, which lies beside it.
    fn beside(path: &Path) -> PathBuf {
        path.with_extension("json")
    }

    /// Reads the description of a complete text.
    fn of(path: &Path) -> Option<Self> {
        let about: Self = serde_json::from_slice(&fs::read(Self::beside(path)).ok()?).ok()?;
        (fs::metadata(path).ok()?.len() == about.bytes).then_some(about)
    }
}

/// Part of a text's beginning and end that is looked at for its first and last document, bytes.
const END_BYTES: u64 = 1 << 20;

impl Text {
    /// Its first and its last document, as far as they are not too long to be looked at.
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn ends(&self) -> Result<Vec<Value>> {
        let shown = || self.path.display().to_string();
        let mut file = File::open(&self.path).with_context(shown)?;
        let (mut first, mut last) = (Vec::new(), Vec::new());
        (&file).take(END_BYTES).read_to_end(&mut first).with_context(shown)?;
        let from = self.bytes.saturating_sub(END_BYTES);
        file.seek(SeekFrom::Start(from)).with_context(shown)?;
        file.take(END_BYTES).read_to_end(&mut last).with_context(shown)?;
        let first = first.split(|byte| *byte == b'\n').next();
        let last = last.trim_ascii_end().rsplit(|byte| *byte == b'\n').next();
        let lines = first.into_iter().chain(last);
        Ok(lines.filter_map(|line| serde_json::from_slice(line).ok()).collect())
    }

    /// Returns its entry in the record.
    #[must_use]
    pub fn record(&self, asked: u64) -> SizeRecord {
        SizeRecord {
            label: self.label.clone(),
            bytes: asked,
            documents: self.documents,
            text_bytes: self.bytes,
        }
    }
}

/// Length and time of a file: what is other when it has changed.
fn state_of(path: &Path) -> Result<String> {
    let about = fs::metadata(path).with_context(|| path.display().to_string())?;
    let changed = about.modified().ok().and_then(|time| time.duration_since(UNIX_EPOCH).ok());
    Ok(format!("{} {changed:?}", about.len()))
}

/// The files that a matrix reads beside its queries, as they are now.
///
/// # Errors
/// When one of them cannot be looked at.
pub fn files(spec: &MatrixSpec) -> Result<Vec<String>> {
    let text = spec.corpus.strip_prefix("ndjson:").map(Path::new);
    let rows = spec.rows.as_ref().map(|rows| rows.file.as_path());
    let told = |path: &Path| Ok(format!("{} {}", path.display(), state_of(path)?));
    text.into_iter().chain(rows).map(told).collect()
}

fn free_bytes(folder: &Path) -> Result<u64> {
    let about = rustix::fs::statvfs(folder).with_context(|| folder.display().to_string())?;
    Ok(about.f_bavail.saturating_mul(about.f_frsize))
}

/// The file of a text of the user's own, `ndjson:FILE`.
///
/// # Errors
/// When the name of a text is neither that nor one of plimsoll.
pub fn own_text(corpus: &str) -> Result<PathBuf> {
    match corpus.strip_prefix("ndjson:") {
        Some(path) if !path.is_empty() => Ok(PathBuf::from(path)),
        _ => Err(usage(format!(
            "--corpus '{corpus}': write synthetic, bundled, debian or ndjson:FILE"
        ))),
    }
}
