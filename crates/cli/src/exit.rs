//! Exit codes, decided in one place.
