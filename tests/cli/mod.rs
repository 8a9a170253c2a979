//! Flags, files and words: what the program says before it sends anything, and its commands beside
//! runs.

mod corpus;
mod examples;
mod filters;
mod flags_by_mode;
mod help;
mod hooks;
mod import;
mod interrupt;
mod jobs;
mod pages;
mod pages_of_jobs;
mod parser;
mod rank;
mod report;
mod runs;
mod serve;
mod serve_voter;
mod shell;
mod usage;
mod usage_mistyped;
mod version;
mod words;
