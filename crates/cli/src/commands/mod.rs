//! One module per subcommand.

pub mod compare;
pub mod completions;
pub mod corpus;
pub mod import;
pub mod man;
pub mod report;
pub mod runs;
pub mod serve;
pub mod version;
