//! Servers, clients and files that mean harm, and what plimsoll does when it meets them.
//!
//! Each case is one hostile program on loopback and one process of plimsoll that meets it. A case is well if the process ends in
//! its time with a documented exit code, stays within its memory, and prints nothing that could steer a terminal.
//!
//! ```no_run
//! # fn main() -> std::io::Result<()> {
//! use plimsoll_hostile::peers;
//! let (program, place) = (std::path::Path::new("plimsoll"), std::path::Path::new("."));
//! peers::provide(place)?;
//! for case in peers::all() {
//!     let found = case.play(program, place, std::time::Duration::from_secs(1))?;
//!     assert_eq!(case.faults(&found), Vec::<String>::new(), "{}: {}", case.group, case.name);
//! }
//! # Ok(())
//! # }
//! ```

pub mod case;
pub mod floods;
pub mod peer;
pub mod peers;
pub mod process;
pub mod table;
