//! Disturbances of the generator.

pub mod absences;
pub mod bursts;
pub mod confines;
pub mod cores;
pub mod interposer;
pub mod live;
