//! Flags that say what is asked of an HTTP service, and what its replies must be.

use crate::flags::TlsFlags;
use crate::observing::ObservingFlags;
use crate::output::note;
use crate::postgres::is_address;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::scenario::{RowOrder, RowsPer, RowsScenario, Scenario};
use plimsoll_core::system_error::with_advice;
use std::fs::File;
use std::io::Read;
use std::path::PathBuf;

/// Addresses, requests and what makes a reply a success.
#[derive(Args, Debug)]
pub struct RequestFlags {
    /// http://, https://, postgres:// or volt:// addresses
    ///
    /// Connections are distributed over them in turn.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// File of requests; - is stdin
    ///
    /// Each line is a URL; with --post, a URL is followed by its body; NDJSON has {"method","path","headers","body","class"}.
    /// For postgres:// and volt://, each line is a SQL statement; for volt:// also exec PROCEDURE VALUE ... The file may be
    /// gzip. A pipe such as <(command) is read to its end before the run.
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    queries: Option<PathBuf>,
    /// Read URLs that are followed by the lines of their bodies
    #[arg(long, help_heading = "Requests")]
    post: bool,
    /// Order of the requests: file, shuffle or random
    ///
    /// shuffle sends each request once, in a seeded order; random draws with replacement. With --users also block and
    /// interleaved. seek draws another order for each part of the search.
    #[arg(long, value_name = "ORDER", default_value = "file", help_heading = "Requests")]
    order: String,
    /// HTTP method [default: POST with a body, else GET]
    ///
    /// It applies to requests whose source does not specify one.
    #[arg(long, value_name = "METHOD", help_heading = "Requests")]
    method: Option<String>,
    /// PostgreSQL: simple or prepared [default: simple]
    ///
    /// simple: the server parses and plans each statement each time; prepared: once for each connection.
    #[arg(
        long,
        value_enum,
        value_name = "HOW",
        hide_possible_values = true,
        help_heading = "Requests"
    )]
    sql_mode: Option<SqlModeFlag>,
    /// Body of every request; @FILE reads it from a file
    ///
    /// The bytes of the file are sent as they are.
    #[arg(long, value_name = "TEXT|@FILE", help_heading = "Requests")]
    body: Option<String>,
    /// Header of every request, 'Name: value' or @FILE
    ///
    /// ${VARIABLE} in the value is taken from the environment; @FILE has one header a line. The value of the variable and the
    /// contents of the file are not recorded. May be repeated; all are sent.
    #[arg(long, value_name = "LINE|@FILE", help_heading = "Requests")]
    header: Vec<String>,
    #[command(flatten)]
    rows: RowsFlags,
    /// Open a new connection for each request
    #[arg(long, help_heading = "Requests")]
    no_keepalive: bool,
    /// Use HTTP/2
    ///
    /// With prior knowledge on http://, by ALPN on https://. A connection carries up to 100 requests at a time.
    #[arg(long, help_heading = "Requests")]
    http2: bool,

    /// Class of requests whose URL or body matches a regex
    ///
    /// The first match wins. May be repeated.
    #[arg(long, value_name = "NAME=REGEX", help_heading = "Replies")]
    class: Vec<String>,
    /// Condition for a successful reply, such as time<500ms
    ///
    /// A condition is status=2xx, '/json/pointer>=1', '!/json/pointer', body~TEXT, body=~REGEX, hits>=1, time<500ms, vespa or
    /// elasticsearch. May be repeated; all must hold.
    #[arg(long, value_name = "CHECK", help_heading = "Replies")]
    check: Vec<String>,
    /// Number of hits: auto, off or a JSON pointer
    ///
    /// auto reads it from replies of search APIs; a JSON pointer is such as /hits/total.
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = "Replies")]
    hits: String,

    #[command(flatten)]
    observing: ObservingFlags,
    #[command(flatten)]
    tls: TlsFlags,
}

/// Execution of a statement by PostgreSQL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SqlModeFlag {
    /// Parsed and planned each time.
    Simple,
    /// Prepared once for each connection.
    Prepared,
}

/// Order in which rows are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowsOrderFlag {
    /// Each once, in the order of the file; then the run ends.
    Queue,
    /// In the order of the file, again and again.
    Circular,
    /// Each once, in a seeded order; then the run ends.
    Shuffle,
    /// Drawn with replacement.
    Random,
}

/// Unit that gets its own row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum RowsPerFlag {
    /// Every request.
    Request,
    /// Every user, for all of its requests.
    User,
}

/// Rows whose values requests are filled with.
#[derive(Args, Debug, Default)]
pub struct RowsFlags {
    /// CSV or NDJSON file of values for {{name}} in requests
    ///
    /// {{name}} in a URL, header or body is replaced with the value of that column.
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    rows: Option<PathBuf>,
    /// Order of rows: queue, circular, shuffle, random [default: circular]
    ///
    /// queue: each once, in the order of the file, then the run ends; circular: again and again in the order of the file;
    /// shuffle: each once, in a seeded order, then the run ends; random: drawn with replacement. In seek, circular and random
    /// both draw rows with replacement, and the others are rejected.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "ORDER",
        help_heading = "Requests"
    )]
    rows_order: Option<RowsOrderFlag>,
    /// Unit that gets its own row [default: request]
    ///
    /// request: each request has a row; user: each user has one row for all of its requests.
    #[arg(
        long,
        value_enum,
        hide_possible_values = true,
        value_name = "UNIT",
        help_heading = "Requests"
    )]
    rows_per: Option<RowsPerFlag>,
}

impl RowsFlags {
    /// The rows as a scenario has them; none where no file is named.
    ///
    /// # Errors
    /// Order or unit of rows without the file that has them.
    pub fn scenario(&self) -> Result<Option<RowsScenario>> {
        let Some(file) = self.rows.clone() else {
            if self.rows_order.is_some() || self.rows_per.is_some() {
                return Err(usage("--rows-order and --rows-per need --rows FILE"));
            }
            return Ok(None);
        };
        let order = match self.rows_order {
            Some(RowsOrderFlag::Queue) => RowOrder::Queue,
            Some(RowsOrderFlag::Circular) | None => RowOrder::Circular,
            Some(RowsOrderFlag::Shuffle) => RowOrder::Shuffle,
            Some(RowsOrderFlag::Random) => RowOrder::Random,
        };
        let per = match self.rows_per {
            Some(RowsPerFlag::User) => RowsPer::User,
            Some(RowsPerFlag::Request) | None => RowsPer::Request,
        };
        Ok(Some(RowsScenario { file, order, per }))
    }
}

impl RequestFlags {
    /// The method of HTTP, or how PostgreSQL runs a statement.
    fn method(&self) -> Result<Option<String>> {
        let is_sql = self.urls.iter().any(|url| is_address(url));
        let named = self.method.as_deref();
        if let Some(mode) = self.sql_mode {
            if !is_sql {
                return Err(usage(
                    "--sql-mode is PostgreSQL's; leave it out, or name a postgres:// target",
                ));
            }
            if named.is_some() {
                return Err(usage("--method is HTTP's; give --sql-mode only"));
            }
            let word = if mode == SqlModeFlag::Simple { "simple" } else { "prepared" };
            return Ok(Some(word.to_owned()));
        }
        if is_sql && let Some(word @ ("simple" | "prepared")) = named {
            note(&format!("plimsoll: --method {word} is now --sql-mode {word}"));
        }
        Ok(self.method.clone())
    }

    /// A scenario that asks this, with every other setting as it is by default.
    ///
    /// # Errors
    /// When the flags contradict each other or a body cannot be read.
    pub fn scenario(&self) -> Result<Scenario> {
        let (body, body_file) = match &self.body {
            Some(text) => read_body(text)?,
            None => (None, None),
        };
        if self.post && self.queries.is_none() {
            return Err(usage("--post says how --queries FILE is read; give both, or --body"));
        }
        self.observing.check(&self.urls)?;
        Ok(Scenario {
            targets: self.urls.clone(),
            queries: self.queries.clone(),
            post: self.post,
            order: self.order.clone(),
            rows: self.rows.scenario()?,
            method: self.method()?,
            body,
            body_file,
            headers: self.header.clone(),
            classes: self.class.clone(),
            checks: self.check.clone(),
            hits: self.hits.clone(),
            server_time: self.observing.server_time(),
            traceparent: self.observing.traceparent,
            trace_url: self.observing.trace_url.clone(),
            keepalive: !self.no_keepalive,
            http2: self.http2,
            tls: self.tls.scenario(),
            ..Scenario::default()
        })
    }
}

/// Longest file of `--body`, bytes: each request carries all of it.
const BODY_BYTES_MAX: u64 = 64 << 20;

/// Reads a body: text, or a file that is read now if it is text and when requests are made if it is not.
fn read_body(text: &str) -> Result<(Option<String>, Option<PathBuf>)> {
    let Some(path) = text.strip_prefix('@') else { return Ok((Some(text.to_owned()), None)) };
    let mut bytes = Vec::new();
    File::open(path)
        .and_then(|file| file.take(BODY_BYTES_MAX + 1).read_to_end(&mut bytes))
        .map_err(|error| usage(format!("--body @{path}: {}", with_advice(&error))))?;
    if bytes.len() as u64 > BODY_BYTES_MAX {
        return Err(usage(format!(
            "--body @{path}: over {} MiB, which is too long for the body of each request; use a smaller file",
            BODY_BYTES_MAX >> 20
        )));
    }
    match String::from_utf8(bytes) {
        Ok(text) => Ok((Some(text), None)),
        Err(_) if std::path::Path::new(path).is_file() => Ok((None, Some(path.into()))),
        Err(_) => Err(usage(format!(
            "--body @{path}: a pipe must carry UTF-8 text; write the bytes to a file first"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_text_or_a_file_of_bytes() {
        let dir = tempfile::tempdir().unwrap();
        let (text, bytes) = (dir.path().join("text"), dir.path().join("bytes"));
        std::fs::write(&text, "{\"a\":1}").unwrap();
        std::fs::write(&bytes, [0, 159, 146, 150]).unwrap();
        let file = |path: &std::path::Path| read_body(&format!("@{}", path.display())).unwrap();
        assert_eq!(read_body("x").unwrap(), (Some("x".to_owned()), None));
        assert_eq!(file(&text), (Some("{\"a\":1}".to_owned()), None));
        assert_eq!(file(&bytes), (None, Some(bytes)));
        assert!(read_body("@no/such").unwrap_err().to_string().contains("--body @no/such"));
        let endless = read_body("@/dev/zero").unwrap_err().to_string();
        assert!(endless.contains("--body @/dev/zero: over 64 MiB"), "{endless}");
    }
}
