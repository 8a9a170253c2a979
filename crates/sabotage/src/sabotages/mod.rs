//! What is done to the generator.

pub mod absences;
pub mod confines;
pub mod cores;
pub mod live;
