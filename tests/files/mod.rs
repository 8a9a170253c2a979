//! Files of `plimsoll run`: the words of the flags in TOML, for every command.

mod commands;
mod fields;
mod mixes;
mod secrets;
