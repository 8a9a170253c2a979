//! One module per subcommand.

pub mod compare;
pub mod corpus;
pub mod jobs;
pub mod report;
pub mod run;
pub mod serve;
pub mod system_check;
