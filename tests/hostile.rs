//! Servers, floods, files and records that mean harm, met by the program for a moment each; `make flood` does the same for longer.

mod files;
mod floods;
mod peers;
mod records;
mod secrets;
mod sockets;
