//! Error rates of comparisons by pairs of blocks, as `plimsoll ab` makes them, on virtual time.

pub mod block;
pub mod command;
pub mod late;
pub mod machine;
pub mod models;
pub mod rivals;
pub mod session;
pub mod table;
