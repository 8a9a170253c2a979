//! Reading what other load tools wrote: a file becomes a record that can be shown, listed and compared.
//!
//! [`read`] recognises the format, reads the file in one pass, and returns an [`Imported`]: figures that are known, and nothing
//! in the place of those that are not. [`record::record_of`] makes a run record of it. Logs are read line by line, so that
//! memory does not grow with their length.
//!
//! ```
//! use plimsoll_import::{Options, read};
//!
//! let text = b"Running 2s test @ http://127.0.0.1/\n  90 requests in 2.00s, 9.00KB read\nRequests/sec:     45.00\n";
//! let (format, imported) = read(&mut &text[..], None, &Options::default())?;
//! assert_eq!((format.name(), imported.counts.ok), ("wrk", Some(90)));
//! // The file has no latency.
//! assert!(imported.service.is_unknown());
//! # Ok::<(), plimsoll_import::ImportError>(())
//! ```

mod compare;
mod detect;
mod error;
mod formats;
mod imported;
mod page;
mod reading;
pub mod record;
mod samples;
mod seconds;
mod sheet;
mod unknown;

pub use detect::Format;
pub use error::ImportError;
pub use formats::Options;
pub use imported::{Basis, Class, Counts, Imported, Times, TimesOf};
pub use seconds::Seconds;

use plimsoll_report::forms::Forms;
use std::io::{BufRead, Read as _};

/// The forms in which an import is shown.
pub const FORMS: Forms = Forms {
    page: page::page,
    headline: page::headline_words,
    figures: |_| None,
    compare: compare::compare,
    csv: |_| None,
    sheet: |sheet, record, _| sheet::sheet(sheet, record),
    merge: |_, _| None,
};

/// Bytes at the beginning of a file that decide its format.
const HEAD_BYTES: usize = 64 * 1024;

/// Reads a file of another tool. Without a format, the beginning of the file decides.
///
/// # Errors
/// If the file is of no known format, is cut, or does not fit the format that was named.
pub fn read(
    input: &mut dyn BufRead,
    format: Option<Format>,
    options: &Options,
) -> Result<(Format, Imported), ImportError> {
    let mut head = Vec::new();
    (&mut *input).take(HEAD_BYTES as u64).read_to_end(&mut head)?;
    let format = match format {
        Some(format) => format,
        None => detect::recognise(&head)?,
    };
    let mut whole = head.as_slice().chain(input);
    let imported = formats::parse(format, &mut whole, options)?;
    Ok((format, imported))
}
