//! The job `fbench`: vespa-fbench's flags, query files, output files and summary, with its counting fixed; and the two
//! programs that come with it.
//!
//! ```
//! use plimsoll_fbench::numbers::{Columns, filter};
//!
//! let mut out = Vec::new();
//! let summaries = filter(&mut &b"no summary here\n"[..], Columns::Newest, &mut out)?;
//! assert_eq!(summaries, 0);
//! # Ok::<(), std::io::Error>(())
//! ```

mod command;
pub mod result_filter;
mod sheet;
mod source;
mod split_file;
pub mod summary;
mod vespa_tls;

pub use command::{FbenchArgs, link_command};
pub use result_filter::{FilterArgs, numbers};
pub use split_file::SplitArgs;
