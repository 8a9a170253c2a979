//! Plants with known load lines, on virtual time, and the tables of what search methods make of them.

pub mod adversaries;
pub mod changing;
pub mod classes;
pub mod draw;
pub mod enough;
pub mod floors;
pub mod models;
pub mod oracles;
pub mod parallel;
pub mod plant;
pub mod table;
pub mod watching;
