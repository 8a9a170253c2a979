//! What is done to the generator.

pub mod absences;
