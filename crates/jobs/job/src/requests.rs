//! Flags that say what is asked of an HTTP service, and what its replies must be.

use crate::flags::TlsFlags;
use crate::usage::usage;
use anyhow::Result;
use clap::{Args, ValueEnum};
use plimsoll_core::scenario::{RowOrder, RowsPer, RowsScenario, Scenario};
use std::path::PathBuf;

/// Addresses, requests and what makes a reply a success.
#[derive(Args, Debug)]
pub struct RequestFlags {
    /// http://, https://, postgres:// or volt:// addresses; connections are dealt out to them in turn.
    #[arg(required = true, value_name = "URL")]
    urls: Vec<String>,

    /// File of requests: URLs, one a line; with --post URLs and bodies; or NDJSON of
    /// {"method","path","headers","body","class"}. May be gzip. With postgres:// and volt:// SQL, one statement a line; with volt:// also
    /// exec PROCEDURE VALUE ...
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    queries: Option<PathBuf>,
    /// The query file holds URLs followed by the lines of their bodies.
    #[arg(long, help_heading = "Requests")]
    post: bool,
    /// In which order requests are asked: file, shuffle (each once, seeded) or random (with replacement); of users
    /// also block and interleaved.
    #[arg(long, value_name = "ORDER", default_value = "file", help_heading = "Requests")]
    order: String,
    /// Method of requests whose source names none; without it POST where there are bodies, else GET. With
    /// postgres://: simple (statements parsed and planned each time) or prepared.
    #[arg(long, value_name = "METHOD", help_heading = "Requests")]
    method: Option<String>,
    /// Body of every request; @FILE reads it from a file.
    #[arg(long, value_name = "TEXT", help_heading = "Requests")]
    body: Option<String>,
    /// A header of every request, 'Name: value'; may be repeated.
    #[arg(long, value_name = "LINE", help_heading = "Requests")]
    header: Vec<String>,
    #[command(flatten)]
    rows: RowsFlags,
    /// A connection for each request.
    #[arg(long, help_heading = "Requests")]
    no_keepalive: bool,
    /// HTTP/2: with prior knowledge on http://, by ALPN on https://; up to 100 requests at a time on a connection.
    #[arg(long, help_heading = "Requests")]
    http2: bool,

    /// A class of requests, by a regular expression on URL and body; first match wins; may be repeated.
    #[arg(long, value_name = "NAME=REGEX", help_heading = "Judging")]
    class: Vec<String>,
    /// What a reply must be: status=2xx, '/json/pointer>=1', '!/json/pointer', body~TEXT, hits>=1, time<500ms, vespa,
    /// elasticsearch.
    #[arg(long, value_name = "CHECK", help_heading = "Judging")]
    check: Vec<String>,
    /// How hits are counted: auto (search APIs), off, or a JSON pointer.
    #[arg(long, value_name = "HOW", default_value = "auto", help_heading = "Judging")]
    hits: String,

    #[command(flatten)]
    tls: TlsFlags,
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
    /// CSV or NDJSON of rows: {{name}} in a URL, header or body is replaced by the value of that column.
    #[arg(long, value_name = "FILE", help_heading = "Requests")]
    rows: Option<PathBuf>,
    /// Which row comes next (default circular).
    #[arg(long, value_enum, value_name = "ORDER", help_heading = "Requests")]
    rows_order: Option<RowsOrderFlag>,
    /// Unit that gets a row of its own: request (the default), or user with --users.
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
    /// A scenario that asks this, with every other setting as it is by default.
    ///
    /// # Errors
    /// When the flags contradict each other or a body cannot be read.
    pub fn scenario(&self) -> Result<Scenario> {
        if self.post && self.queries.is_none() {
            return Err(usage("--post says how --queries FILE is read; give both, or --body"));
        }
        Ok(Scenario {
            targets: self.urls.clone(),
            queries: self.queries.clone(),
            post: self.post,
            order: self.order.clone(),
            rows: self.rows.scenario()?,
            method: self.method.clone(),
            body: self.body.as_deref().map(read_body).transpose()?,
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

fn read_body(text: &str) -> Result<String> {
    match text.strip_prefix('@') {
        None => Ok(text.to_owned()),
        Some(path) => std::fs::read_to_string(path)
            .map_err(|error| usage(format!("--body @{path}: {error}; give a file of UTF-8 text"))),
    }
}
