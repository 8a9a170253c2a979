//! Disturbances of the generator.

pub mod absences;
pub mod confines;
pub mod cores;
pub mod live;
