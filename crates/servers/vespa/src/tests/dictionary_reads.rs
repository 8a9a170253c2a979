//! Queries read no dictionary: the files of term dictionaries are watched while queries of every kind are asked.
//!
//! A dictionary on the disk is unpacked block by block. A query that reads it gives the right hits, but takes many
//! times as long, and grows with the dictionary.

use super::encode;
use crate::mapping::IndexSchema;
use crate::search_request;
use plimsoll_documents::operation::parse_put;
use plimsoll_documents::schema::Schemas;
use plimsoll_index::execute::{Limits, Wanted, execute};
use plimsoll_index::lids::Lids;
use plimsoll_index::plan::{plan, plan_filter};
use plimsoll_index::query::{Expansion, Node, Ranking, Similar};
use plimsoll_index::text::register_tokenizers;
use plimsoll_serving::parameters::Parameters;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use tantivy::directory::error::{DeleteError, OpenReadError, OpenWriteError};
use tantivy::directory::{
    Directory, FileHandle, OwnedBytes, RamDirectory, WatchCallback, WatchHandle, WritePtr,
};
use tantivy::{HasLen, Index, IndexSettings, IndexWriter, Searcher};

/// A folder in memory that counts the bytes that are read of term dictionaries.
#[derive(Clone, Debug, Default)]
struct Watched {
    inner: RamDirectory,
    read: Arc<AtomicUsize>,
}

#[derive(Debug)]
struct Dictionary {
    inner: Arc<dyn FileHandle>,
    read: Arc<AtomicUsize>,
}

impl HasLen for Dictionary {
    fn len(&self) -> usize {
        self.inner.len()
    }
}

impl FileHandle for Dictionary {
    fn read_bytes(&self, range: Range<usize>) -> io::Result<OwnedBytes> {
        self.read.fetch_add(range.len(), Ordering::Relaxed);
        self.inner.read_bytes(range)
    }
}

impl Directory for Watched {
    fn get_file_handle(&self, path: &Path) -> Result<Arc<dyn FileHandle>, OpenReadError> {
        let inner = self.inner.get_file_handle(path)?;
        if path.extension().is_none_or(|extension| extension != "term") {
            return Ok(inner);
        }
        Ok(Arc::new(Dictionary { inner, read: Arc::clone(&self.read) }))
    }

    fn delete(&self, path: &Path) -> Result<(), DeleteError> {
        self.inner.delete(path)
    }

    fn exists(&self, path: &Path) -> Result<bool, OpenReadError> {
        self.inner.exists(path)
    }

    fn open_write(&self, path: &Path) -> Result<WritePtr, OpenWriteError> {
        self.inner.open_write(path)
    }

    fn atomic_read(&self, path: &Path) -> Result<Vec<u8>, OpenReadError> {
        self.inner.atomic_read(path)
    }

    fn atomic_write(&self, path: &Path, data: &[u8]) -> io::Result<()> {
        self.inner.atomic_write(path, data)
    }

    fn sync_directory(&self) -> io::Result<()> {
        self.inner.sync_directory()
    }

    fn watch(&self, callback: WatchCallback) -> tantivy::Result<WatchHandle> {
        self.inner.watch(callback)
    }
}

/// Two commits of documents with a few thousand words.
struct Corpus {
    schemas: Arc<Schemas>,
    schema: IndexSchema,
    folder: Watched,
    searcher: Searcher,
    lids: Lids,
}

impl Corpus {
    fn new() -> Self {
        let schemas = Arc::new(Schemas::built_in("c"));
        let schema = IndexSchema::new(Arc::clone(&schemas));
        let folder = Watched::default();
        let settings = IndexSettings::default();
        let mut index = Index::create(folder.clone(), schema.columns.clone(), settings).unwrap();
        register_tokenizers(&mut index);
        let mut writer: IndexWriter = index.writer_with_num_threads(1, 15_000_000).unwrap();
        writer.set_merge_policy(Box::new(tantivy::merge_policy::NoMergePolicy));
        for lid in 0..6000 {
            let words = (0..8).map(|word| word_of(lid * 7 + word * word)).collect::<Vec<_>>();
            let (title, body) = (words[..2].join(" "), words.join(" "));
            let (category, score) = (lid % 9, lid % 1000);
            let fields = format!(
                r#"{{"fields":{{"title":"{title}","body":"{body}","category":"c{category}","score":{score}}}}}"#
            );
            let put = parse_put(fields.as_bytes(), &schemas.types()[0]).unwrap();
            writer.add_document(schema.document(lid as u64, &put.values)).unwrap();
            if lid % 3000 == 2999 {
                writer.commit().unwrap();
            }
        }
        let searcher = index.reader().unwrap().searcher();
        assert_eq!(searcher.segment_readers().len(), 2);
        Self { schemas, schema, folder, searcher, lids: Lids::default() }
    }

    /// Returns how many bytes of dictionaries a query reads, and how many hits it has.
    fn ask(&self, plan: &plimsoll_index::plan::Plan) -> (usize, u64) {
        let before = self.folder.read.load(Ordering::Relaxed);
        let wanted = Wanted { ranking: Ranking::Bm25, hits: 10, offset: 0, min_relevance: None };
        let abandoned = AtomicBool::new(false);
        let limits = Limits { deadline_ns: u64::MAX, abandoned: &abandoned };
        let found = execute(&self.searcher, &self.lids, plan, &wanted, &limits).unwrap();
        (self.folder.read.load(Ordering::Relaxed) - before, found.total)
    }

    fn yql(&self, filter: &str) -> (usize, u64) {
        let query = format!("yql={}", encode(&format!("select * from sources * where {filter}")));
        let parameters = Parameters::from_query(&query).unwrap();
        let request = search_request::read(&parameters, &self.schemas).unwrap();
        self.ask(&plan(&request.search, &self.schema).unwrap())
    }

    fn node(&self, node: &Node) -> (usize, u64) {
        self.ask(&plan_filter(node, Vec::new(), &self.schema).unwrap())
    }
}

/// A word of five letters.
fn word_of(number: usize) -> String {
    let mut rest = number % 5000 * 1_000_003 + 7;
    let letters = (0..5).map(|_| {
        let letter = b'a' + (rest % 26) as u8;
        rest /= 26;
        char::from(letter)
    });
    letters.collect()
}

/// The queries of the quickstart, in both fields, and further ones.
fn filters() -> Vec<(String, bool)> {
    let (word, other, misspelt) = (word_of(7), word_of(8), format!("{}x", word_of(7)));
    let either = |what: &str| format!("title contains {what} or body contains {what}");
    let quoted = |word: &str| format!("\"{word}\"");
    let [one, two, none] = [&word, &other, "zzzzzzzz"].map(|word| either(&quoted(word)));
    vec![
        (one.clone(), true),
        (format!("({one}) and ({two})"), true),
        (format!("body contains phrase(\"{word}\", \"{other}\")"), true),
        (either(&format!("({{maxEditDistance:1}}fuzzy(\"{misspelt}\"))")), true),
        (either(&format!("({{maxEditDistance:2}}fuzzy(\"{misspelt}\"))")), true),
        (format!("body contains ({{prefixLength:2}}fuzzy(\"{misspelt}\"))"), true),
        (format!("({one}) and category contains \"c1\""), true),
        (format!("({one}) and score >= 1"), true),
        (none, false),
        (format!("body contains ({{prefix:true}}\"{}\")", &word[..2]), true),
        (format!("title contains \"{word}\""), true),
        (format!("body contains \"{word}\" and body contains \"{other}\""), true),
        ("score = 7".to_owned(), true),
        ("category in (\"c1\", \"c2\")".to_owned(), true),
    ]
}

#[test]
fn queries_read_no_dictionary() {
    let corpus = Corpus::new();
    let filters = filters();
    // Vocabularies are made by then.
    for _ in 0..30 {
        filters.iter().for_each(|(filter, _)| assert!(corpus.yql(filter).1 < 6000));
    }
    for (filter, hits) in &filters {
        let (read, total) = corpus.yql(filter);
        assert_eq!(total > 0, *hits, "{filter}: {total} hits");
        assert_eq!(read, 0, "{filter} reads dictionaries");
    }
    let (field, word) = ("body".to_owned(), word_of(7));
    let similar = |expansion| {
        Node::Similar(Similar {
            field: field.clone(),
            term: format!("{word}x"),
            max_edits: 2,
            prefix_length: 1,
            transpositions: true,
            expansion,
        })
    };
    let exact = |field: &str| Node::Exact { field: field.to_owned(), term: word.clone() };
    for node in [
        exact("body"),
        Node::Best { children: vec![exact("body"), exact("title")], tie_breaker: 0.3 },
        Node::Beginning { field: field.clone(), text: word[..2].to_owned() },
        similar(Expansion::Nearest(50)),
        similar(Expansion::All),
    ] {
        let (read, total) = corpus.node(&node);
        assert!(total > 0, "{node:?}");
        assert_eq!(read, 0, "{node:?} reads dictionaries");
    }
}

#[test]
fn first_queries_read_about_as_much_as_the_dictionaries_hold() {
    let corpus = Corpus::new();
    let (cold, _) = corpus.yql("title contains \"a\"");
    assert!(cold > 0, "the folder does not see what is read");
    let mut read = cold;
    for number in 0..2000 {
        read += corpus.yql(&format!("title contains \"{}\"", word_of(number))).0;
    }
    let terms = |reader: &tantivy::SegmentReader| {
        let title = reader.schema().get_field("title").unwrap();
        let before = corpus.folder.read.load(Ordering::Relaxed);
        let inverted = reader.inverted_index(title).unwrap();
        let mut stream = inverted.terms().stream().unwrap();
        while stream.advance() {}
        corpus.folder.read.load(Ordering::Relaxed) - before
    };
    let held: usize = corpus.searcher.segment_readers().iter().map(terms).sum();
    assert!(read < 4 * held, "{read} bytes were read of dictionaries of {held}");
}
