//! VoltDB itself, its makers' own clients, and the embedded server beside it.

mod asking;
mod clients;
mod parity;
mod presets;
mod real;

/// The contestants of most tests.
const NAMES: &str =
    "Edwina Burnam,Tabatha Gehling,Kelly Clauss,Jessie Alloway,Alana Bregman,Jessie Eichman";
