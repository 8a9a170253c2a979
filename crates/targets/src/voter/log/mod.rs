//! The command log: what was done is written down before or soon after it is acknowledged, many calls at a time.

mod record;

pub(crate) use record::Records;
