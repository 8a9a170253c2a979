//! The files of a release of plimsoll: binaries that are built the same everywhere, packed in five forms, and checked.
//!
//! `make dist` and `make dist-check` are its commands. Nothing here is a part of the program `plimsoll`.
//!
//! ```
//! let mut tree = plimsoll_dist::tree::Tree::default();
//! tree.add("share/doc/README", "Read me.");
//! let archive = tree.tar(1_700_000_000, &[]).unwrap();
//! assert_eq!(archive, tree.tar(1_700_000_000, &[]).unwrap());
//! ```

pub mod book;
pub mod check;
pub mod compile;
pub mod contents;
pub mod deb;
pub mod elf;
pub mod graph;
pub mod image;
pub mod licences;
pub mod programs;
pub mod release;
pub mod rpm;
pub mod sbom;
pub mod sources;
pub mod tree;
