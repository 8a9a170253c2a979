//! One module per subcommand.

pub mod common;
pub mod corpus;
pub mod fbench;
pub mod jobs;
pub mod load;
pub mod report;
pub mod result_filter;
pub mod run;
pub mod serve;
pub mod split_file;
pub mod system_check;
