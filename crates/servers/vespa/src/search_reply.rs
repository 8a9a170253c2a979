//! Answers of `/search/`: JSON in Vespa's shape.

use super::store::Fetched;
use hyper::StatusCode;
use plimsoll_documents::encoding::{DecodeError, Stored};
use plimsoll_documents::render::{push_name, push_summary};
use plimsoll_documents::schema::Schemas;
use plimsoll_index::execute::Hit;
use plimsoll_index::query::Selection;
use plimsoll_serving::json::push_text;

/// Vespa's error codes, as far as this server has a use for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    NullQuery,
    IllegalQuery,
    InvalidParameter,
    /// No thread is free and the queue is full.
    Overloaded,
    Timeout,
    Internal,
}

impl Code {
    pub(crate) fn number(self) -> u16 {
        match self {
            Self::NullQuery => 1,
            Self::IllegalQuery => 3,
            Self::InvalidParameter => 4,
            Self::Overloaded => 10,
            Self::Timeout => 12,
            Self::Internal => 18,
        }
    }

    fn summary(self) -> &'static str {
        match self {
            Self::NullQuery => "Null query",
            Self::IllegalQuery => "Illegal query",
            Self::InvalidParameter => "Invalid query parameter",
            Self::Overloaded => "Backend communication error",
            Self::Timeout => "Timed out",
            Self::Internal => "Internal server error",
        }
    }

    pub(crate) fn status(self) -> StatusCode {
        match self {
            Self::NullQuery | Self::IllegalQuery | Self::InvalidParameter => {
                StatusCode::BAD_REQUEST
            }
            Self::Overloaded => StatusCode::SERVICE_UNAVAILABLE,
            Self::Timeout => StatusCode::GATEWAY_TIMEOUT,
            Self::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }
}

/// A search that gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
    /// A status other than the code's own.
    pub(crate) status: Option<StatusCode>,
}

impl Failure {
    pub(crate) fn new(code: Code, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), status: None }
    }

    pub(crate) fn status(&self) -> StatusCode {
        self.status.unwrap_or_else(|| self.code.status())
    }
}

/// The times of a search, in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Times {
    /// Matching and ranking.
    pub(crate) query_ns: u64,
    /// Reading the documents of the hits.
    pub(crate) fill_ns: u64,
    /// From the arrival of the request.
    pub(crate) total_ns: u64,
}

/// A result to render.
pub(crate) struct ResultPage<'a> {
    pub(crate) schemas: &'a Schemas,
    pub(crate) total: u64,
    pub(crate) documents: u64,
    pub(crate) hits: &'a Fetched<Hit>,
    pub(crate) selection: &'a Selection,
    pub(crate) times: Option<Times>,
}

/// The body of a successful search.
///
/// # Errors
/// When a stored document is damaged, or no schema describes its type.
pub(crate) fn render(page: &ResultPage<'_>) -> Result<Vec<u8>, DecodeError> {
    let mut out = Vec::with_capacity(512 + page.hits.len() * 512);
    out.push(b'{');
    if let Some(times) = &page.times {
        out.extend_from_slice(b"\"timing\":{\"querytime\":");
        push_seconds(&mut out, times.query_ns);
        out.extend_from_slice(b",\"summaryfetchtime\":");
        push_seconds(&mut out, times.fill_ns);
        out.extend_from_slice(b",\"searchtime\":");
        push_seconds(&mut out, times.total_ns);
        out.extend_from_slice(b"},");
    }
    out.extend_from_slice(
        b"\"root\":{\"id\":\"toplevel\",\"relevance\":1.0,\"fields\":{\"totalCount\":",
    );
    push_number(&mut out, page.total);
    out.extend_from_slice(b"},\"coverage\":{\"coverage\":100,\"documents\":");
    push_number(&mut out, page.documents);
    out.extend_from_slice(b",\"full\":true,\"nodes\":1,\"results\":1,\"resultsFull\":1}");
    for (number, (hit, id, content)) in page.hits.iter().enumerate() {
        let before: &[u8] = if number == 0 { b",\"children\":[" } else { b"," };
        out.extend_from_slice(before);
        push_hit(&mut out, page, hit, id, content)?;
    }
    out.extend_from_slice(if page.hits.is_empty() { b"}}" } else { b"]}}" });
    Ok(out)
}

/// The body of a failed search.
pub(crate) fn render_failure(failure: &Failure) -> Vec<u8> {
    let mut out = Vec::with_capacity(256 + failure.message.len());
    out.extend_from_slice(
        b"{\"root\":{\"id\":\"toplevel\",\"relevance\":1.0,\"fields\":{\"totalCount\":0},",
    );
    out.extend_from_slice(b"\"errors\":[{\"code\":");
    push_number(&mut out, u64::from(failure.code.number()));
    out.extend_from_slice(b",\"summary\":");
    push_text(&mut out, failure.code.summary());
    out.extend_from_slice(b",\"message\":");
    push_text(&mut out, &failure.message);
    out.extend_from_slice(b"}]}}");
    out
}

fn push_hit(
    out: &mut Vec<u8>,
    page: &ResultPage<'_>,
    hit: Hit,
    id: &str,
    content: &[u8],
) -> Result<(), DecodeError> {
    out.extend_from_slice(b"{\"id\":");
    push_text(out, id);
    out.extend_from_slice(b",\"relevance\":");
    push_real(out, f64::from(hit.relevance));
    out.extend_from_slice(b",\"source\":");
    push_text(out, page.schemas.cluster());
    out.extend_from_slice(b",\"fields\":{");
    push_fields(out, page, id, content)?;
    out.extend_from_slice(b"}}");
    Ok(())
}

fn push_fields(
    out: &mut Vec<u8>,
    page: &ResultPage<'_>,
    id: &str,
    content: &[u8],
) -> Result<(), DecodeError> {
    let start = out.len();
    let stored = Stored::open(page.schemas, content)?;
    let name = stored.schema.name();
    match page.selection {
        Selection::All => {
            push_special(out, start, "sddocname", name);
            push_special(out, start, "documentid", id);
            push_summary(out, start, &stored, |_| true)?;
        }
        Selection::Named(names) => {
            for shown in names {
                match shown.as_str() {
                    "sddocname" => push_special(out, start, shown, name),
                    "documentid" => push_special(out, start, shown, id),
                    shown => push_summary(out, start, &stored, |field| field == shown)?,
                }
            }
        }
    }
    Ok(())
}

/// A name that every hit has besides its fields.
pub(crate) fn is_special(name: &str) -> bool {
    matches!(name, "sddocname" | "documentid")
}

fn push_special(out: &mut Vec<u8>, start: usize, name: &str, value: &str) {
    push_name(out, start, name);
    push_text(out, value);
}

fn push_number(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(number.to_string().as_bytes());
}

/// JSON has no infinities; a relevance is finite.
fn push_real(out: &mut Vec<u8>, number: f64) {
    let number = if number.is_finite() { number } else { 0.0 };
    let _ = serde_json::to_writer(out, &number);
}

/// Seconds in steps of a millisecond.
fn push_seconds(out: &mut Vec<u8>, ns: u64) {
    push_real(out, (ns / 1_000_000) as f64 / 1000.0);
}
