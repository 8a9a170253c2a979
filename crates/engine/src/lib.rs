//! (module docs follow with the code)
