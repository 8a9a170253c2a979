//! (module docs follow with the code)

pub mod result_filter;
