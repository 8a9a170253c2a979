//! Flags that say what is asked of an HTTP service, and what its replies must be.

use crate::flags::TlsFlags;
use crate::output::note;
use crate::postgres::is_address;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::scenario::{RowOrder, RowsPer, RowsScenario, Scenario};
use plimsoll_core::system_error::words;
use std::path::PathBuf;

/// Addresses, requests and what makes a reply a success.
#[derive(Args, Debug)]
pub struct RequestFlags {
    /// http://, https://, postgres:// or volt:// addresses
    ///
    /// http://, https://, postgres:// or volt:// addresses. Connections are distributed over them in turn.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// File of requests; - is stdin
    ///
    /// File of requests; - is stdin, and a pipe such as <(command) is read to its end first. URLs, one a line; with --post, URLs
    /// and bodies; or NDJSON of {"method","path","headers","body","class"}. May be gzip. For postgres:// and volt://: SQL, one
    /// statement a line; for volt:// also exec PROCEDURE VALUE ...
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    queries: Option<PathBuf>,
    /// Read URLs that are followed by the lines of their bodies
    #[arg(long, help_heading = "Requests")]
    post: bool,
    /// Order of the requests: file, shuffle or random
    ///
    /// Order of the requests: file, shuffle (each once, in a seeded order) or random (with replacement); with --users also block
    /// and interleaved. seek draws another order for each part of the search.
    #[arg(long, value_name = "ORDER", default_value = "file", help_heading = "Requests")]
    order: String,
    /// HTTP method [default: POST with a body, else GET]
    ///
    /// HTTP method of requests whose source does not specify one [default: POST with a body, else GET].
    #[arg(long, value_name = "METHOD", help_heading = "Requests")]
    method: Option<String>,
    /// PostgreSQL: prepare statements, or not [default: simple]
    ///
    /// PostgreSQL: simple (each statement is parsed and planned each time), or prepared (once for each connection) [default:
    /// simple].
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
    /// Body of every request; @FILE reads it from a file, as bytes.
    #[arg(long, value_name = "TEXT|@FILE", help_heading = "Requests")]
    body: Option<String>,
    /// Header of every request, 'Name: value' or @FILE
    ///
    /// Header of every request: 'Name: value', where ${VARIABLE} in the value is taken from the environment, or @FILE with one
    /// header a line. Values from files and variables are not recorded. May be repeated; all are sent.
    #[arg(long, value_name = "LINE|@FILE", help_heading = "Requests")]
    header: Vec<String>,
    #[command(flatten)]
    rows: RowsFlags,
    /// Open a new connection for each request
    #[arg(long, help_heading = "Requests")]
    no_keepalive: bool,
    /// Use HTTP/2
    ///
    /// Use HTTP/2: with prior knowledge on http://, by ALPN on https://. A connection carries up to 100 requests at a time.
    #[arg(long, help_heading = "Requests")]
    http2: bool,

    /// Class of requests whose URL or body matches a regex
    ///
    /// Class of requests, by a regular expression on URL and body; the first match wins. May be repeated.
    #[arg(long, value_name = "NAME=REGEX", help_heading = "Replies")]
    class: Vec<String>,
    /// Condition for a successful reply: status=2xx, body~TEXT
    ///
    /// Condition for a successful reply: status=2xx, '/json/pointer>=1', '!/json/pointer', body~TEXT, hits>=1, time<500ms,
    /// vespa, elasticsearch. May be repeated; all must hold.
    #[arg(long, value_name = "CHECK", help_heading = "Replies")]
    check: Vec<String>,
    /// Source of the number of hits: auto, off or a JSON pointer
    ///
    /// Source of the number of hits: auto (replies of search APIs), off, or a JSON pointer such as /hits/total.
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = "Replies")]
    hits: String,

    #[command(flatten)]
    tls: TlsFlags,
}

/// How PostgreSQL runs a statement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SqlModeFlag {
    /// Parsed and planned each time.
    Simple,
    /// Prepared once for each connection.
    Prepared,
}

/// Which row comes next.
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

/// What has a row of its own.
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
    /// CSV or NDJSON file of rows. {{name}} in a URL, header or body is replaced with the value of that column.
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    rows: Option<PathBuf>,
    /// Order of the rows [default: circular]
    ///
    /// Order of the rows [default: circular]. In seek, circular and random both draw rows with replacement, and the others are
    /// rejected.
    #[arg(long, value_enum, value_name = "ORDER", help_heading = "Requests")]
    rows_order: Option<RowsOrderFlag>,
    /// Unit that gets its own row [default: request]
    #[arg(long, value_enum, value_name = "WHAT", help_heading = "Requests")]
    rows_per: Option<RowsPerFlag>,
}

impl RowsFlags {
    /// The rows as a scenario has them; none where no file is named.
    ///
    /// # Errors
    /// How rows come without where they come from.
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
            keepalive: !self.no_keepalive,
            http2: self.http2,
            tls: self.tls.scenario(),
            ..Scenario::default()
        })
    }
}

/// Reads a body: text, or a file that is read now if it is text and when requests are made if it is not.
fn read_body(text: &str) -> Result<(Option<String>, Option<PathBuf>)> {
    let Some(path) = text.strip_prefix('@') else { return Ok((Some(text.to_owned()), None)) };
    let bytes = std::fs::read(path)
        .map_err(|error| usage(format!("--body @{path}: {}; check the path", words(&error))))?;
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
    }
}
