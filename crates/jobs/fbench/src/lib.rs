//! The job `fbench`: vespa-fbench's flags, query files, output files and summary, with its counting fixed; and the two
//! programs that come with it.

mod command;
mod result_filter;
mod source;
mod split_file;
mod vespa_tls;

pub use command::{FbenchArgs, link_command};
pub use result_filter::FilterArgs;
pub use split_file::SplitArgs;
