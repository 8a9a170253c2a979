//! One module per subcommand.

pub mod compare;
pub mod corpus;
pub mod report;
pub mod serve;
