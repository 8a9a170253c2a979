//! Flags, files and words: what the program says before it sends anything, and its commands beside
//! runs.

mod corpus;
mod filters;
mod hooks;
mod interrupt;
mod jobs;
mod rank;
mod report;
mod serve;
mod serve_voter;
mod usage;
mod words;
