//! One module per subcommand.

pub mod compare;
pub mod corpus;
pub mod fbench;
pub mod jobs;
pub mod load;
pub mod rank;
pub mod report;
pub mod result_filter;
pub mod run;
pub mod seek;
pub mod serve;
pub mod split_file;
pub mod system_check;
