//! Readers of foreign bytes, and what must hold for each: the functions of the fuzz targets.
//!
//! A target is a function that takes any bytes and panics when a property does not hold: what is accepted is written so that it
//! reads as the same, pieces of any length give the same as the whole, readers by other people read the same, memory is bounded by
//! the length of the input, and errors are one line. `make fuzz` runs the targets under libFuzzer, from the inputs in
//! `fuzz/corpus`; the suite runs them on these inputs and on some mutations of each (`tests/corpora.rs`).
//!
//! Not part of the program.
//!
//! ```no_run
//! let target = plimsoll_fuzzing::target("http1_replies").expect("a target of this name");
//! (target.run)(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
//! ```

pub mod conversation;
pub mod corpus;
pub mod file;
pub mod holds;
pub mod memory;
pub mod mutation;
pub mod reference;
pub mod seeds;
pub mod targets;
pub mod words;

/// Hands the list of all targets to a macro: the name, the function, the longest input in bytes, and what it reads.
#[macro_export]
macro_rules! each_target {
    ($take:ident) => {
        $take! {
            http1_replies = http1::replies, 4096, "replies of HTTP/1.1, in pieces; httparse and hyper read the same";
            http1_requests = http1::requests, 4096, "requests to the stations, in pieces; httparse and hyper read the same";
            content_codings = http1::codings, 4096, "bodies in gzip and deflate; what is compressed comes back";
            http2_frames = http2::frames, 4096, "frames of a server of HTTP/2, in pieces; h2 reads the same replies";
            hpack_blocks = http2::header_blocks, 2048, "header blocks of HTTP/2; another reader of HPACK reads the same fields";
            postgres_messages = postgres::messages, 4096, "messages of a PostgreSQL server, in pieces, with and without a login";
            volt_messages = volt::messages, 4096, "calls, responses, tables and logins of VoltDB's protocol, both sides; written again";
            volt_stream = volt::stream, 4096, "messages of a VoltDB server, in pieces, with and without a login";
            rank_frames = rank::frames, 2048, "frames of the ranking benchmark, both sides, and Thrift replies; written again";
            document_ids = documents::ids, 512, "document ids and paths of /document/v1; written again";
            visit_tokens = documents::tokens, 512, "continuation tokens, and the visit that resumes from one; written again";
            selections = documents::selections, 2048, "the document selection language";
            document_bodies = documents::bodies, 4096, "bodies of puts and updates; the document is stored and read";
            schemas = documents::schemas, 4096, "schema files";
            stored_documents = documents::stored, 1024, "records of the document store; written again";
            visit_replies = documents::visit_replies, 4096, "replies to visits, compressed or not, in pieces; states of visits";
            feed_operations = documents::feeds, 4096, "files of operations, in pieces, and replies to operations; written again";
            query_files = files::query_files, 4096, "query files of each form, in pieces";
            ndjson_requests = files::ndjson_lines, 2048, "requests in NDJSON; serde_json reads the same";
            row_files = files::rows, 4096, "rows as CSV, TSV and NDJSON, plain or compressed; the csv crate reads the same";
            statement_files = files::statement_files, 2048, "files of SQL statements and of VoltDB's calls";
            corpus_files = files::corpora, 4096, "files of documents, plain or compressed";
            json_scans = files::json, 2048, "JSON that is scanned without a tree; serde_json finds the same";
            rules = files::rules, 1024, "checks, classes and headers, and the replies that they judge";
            toml_files = settings::toml, 4096, "job files, matrices, lists of queries; variables in them";
            scenario_files = settings::scenarios, 4096, "scenario files, as command lines";
            flag_values = settings::values, 256, "times, rates, limits, assertions, users; shown and read again";
            addresses = settings::addresses, 256, "URLs of HTTP, PostgreSQL, VoltDB, OTLP; the http crate reads the same";
            bus_addresses = bus::addresses, 256, "addresses of a bus; shown without the secret, and read again";
            bus_greetings = bus::greetings, 2048, "greetings of a NATS server, in pieces, for clients with TLS and without";
            bus_frames = bus::frames, 2048, "frames of the bus between processes, both sides, in pieces; written again";
            fleet_messages = fleet::messages, 2048, "packets and messages between coordinator and agents; seconds are written again";
            run_records = records::runs, 16384, "run.json; written again, and shown in all ways";
            journals = records::journals, 4096, "seconds and failures of a record";
            histograms = records::histograms, 2048, "encoded histograms; the hdrhistogram crate reads the same";
            imports = records::imports, 4096, "files of other load tools, and the records that are made of them";
            printed_tables = records::tables, 2048, "tables of search results, summaries of vespa-fbench, words of a shell";
            yql = servers::yql, 2048, "YQL";
            simple_queries = servers::simple_queries, 1024, "the simple query language, in each of its types";
            search_parameters = servers::search_parameters, 2048, "parameters of a search, in a URL or in JSON";
            document_requests = servers::document_requests, 1024, "paths and parameters of /document/v1";
            elastic_searches = servers::elastic_searches, 2048, "searches and counts of Elasticsearch";
            elastic_bodies = servers::elastic_bodies, 4096, "mappings, documents, bulks, settings and dates of Elasticsearch, and its log";
            filter_paths = servers::filter_paths, 1024, "filter_path, on any reply";
            sql = servers::sql, 1024, "SQL of the voter's database, its JSON API, and its log";
            live_requests = servers::live_requests, 1024, "requests to the live page; none is answered without the token";
            engine_replies = servers::engine_replies, 2048, "replies of search engines, and of receivers of OTLP";
        }
    };
}

macro_rules! functions {
    ($($name:ident = $room:ident :: $function:ident, $longest:literal, $reads:literal;)+) => {
        $(
            #[doc = concat!("Target: ", $reads, ".")]
            ///
            /// # Panics
            /// When a property does not hold.
            pub fn $name(bytes: &[u8]) {
                holds::begin(bytes);
                targets::$room::$function(bytes);
            }
        )+

        /// All targets.
        pub const TARGETS: &[Target] = &[$(Target {
            name: stringify!($name),
            reads: $reads,
            longest: $longest,
            run: $name,
        }),+];
    };
}

/// A reader and what must hold for it.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name, and that of its file in `fuzz/corpus` and `fuzz/fuzz_targets`.
    pub name: &'static str,
    /// Bytes that it reads, and what they are compared with.
    pub reads: &'static str,
    /// The longest input that is tried, bytes.
    pub longest: usize,
    /// The function.
    pub run: fn(&[u8]),
}

each_target!(functions);

/// The target of this name.
#[must_use]
pub fn target(name: &str) -> Option<&'static Target> {
    TARGETS.iter().find(|target| target.name == name)
}
