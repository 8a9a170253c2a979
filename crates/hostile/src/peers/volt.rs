//! Servers of VoltDB's protocol: lengths, counts and responses that do not end.

use crate::case::Case;
use crate::peer::Wire;
use std::io::Result;

const GROUP: &str = "VoltDB";
const LOAD: &str = "load volt://127.0.0.1:PORT --queries queries.sql --clients 4 --duration DURATION --timeout 500ms --quiet";
const VOTER: &str =
    "voter volt://127.0.0.1:PORT --duration DURATION --timeout 500ms --give-up 2s --quiet";

/// A message with a true length.
fn message(body: &[u8]) -> Vec<u8> {
    [&(body.len() as u32).to_be_bytes()[..], body].concat()
}

/// Reads a message of the client.
fn take(wire: &mut Wire) -> Result<Vec<u8>> {
    let length = wire.take(4)?;
    wire.take(u32::from_be_bytes([length[0], length[1], length[2], length[3]]) as usize)
}

/// Accepts the login.
fn log_in(wire: &mut Wire) -> Result<()> {
    take(wire)?;
    let mut welcome = vec![0, 0];
    welcome.extend(0u32.to_be_bytes());
    welcome.extend(7u64.to_be_bytes());
    welcome.extend(1_700_000_000_000u64.to_be_bytes());
    welcome.extend([127, 0, 0, 1]);
    welcome.extend(5u32.to_be_bytes());
    welcome.extend(b"8.4.2");
    wire.send(&message(&welcome))
}

/// Accepts the login, and returns the handle of the next call.
fn call(wire: &mut Wire) -> Result<[u8; 8]> {
    let body = take(wire)?;
    // A version, the name of the procedure, the handle.
    let name = u32::from_be_bytes([body[1], body[2], body[3], body[4]]) as usize;
    let mut handle = [0; 8];
    handle.copy_from_slice(&body[5 + name..13 + name]);
    Ok(handle)
}

/// A successful response whose tables are these bytes.
fn response(handle: [u8; 8], tables: u16, bytes: &[u8]) -> Vec<u8> {
    let mut body = vec![0];
    body.extend(handle);
    body.extend([0, 1, 128]);
    body.extend(0u32.to_be_bytes());
    body.extend(tables.to_be_bytes());
    body.extend(bytes);
    message(&body)
}

fn login_of_2_31_bytes(wire: &mut Wire) -> Result<()> {
    take(wire)?;
    wire.send(&0x7fff_ffffu32.to_be_bytes())?;
    wire.repeat(b"x")
}

fn login_of_negative_length(wire: &mut Wire) -> Result<()> {
    take(wire)?;
    wire.send(&(-1i32).to_be_bytes())?;
    wire.repeat(b"x")
}

fn login_without_end(wire: &mut Wire) -> Result<()> {
    take(wire)?;
    wire.send(&60_000u32.to_be_bytes())?;
    wire.hold()
}

fn build_of_impossible_length(wire: &mut Wire) -> Result<()> {
    take(wire)?;
    let mut welcome = vec![0, 0];
    welcome.extend([0; 24]);
    welcome.extend(0x7fff_ffffu32.to_be_bytes());
    wire.send(&message(&welcome))?;
    wire.hold()
}

fn response_of_2_31_bytes(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    take(wire)?;
    wire.send(&0x7fff_ffffu32.to_be_bytes())?;
    wire.repeat(b"x")
}

fn response_of_50_mib(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    take(wire)?;
    wire.send(&(50u32 << 20).to_be_bytes())?;
    wire.send(&vec![0; 49 << 20])?;
    wire.hold()
}

fn tables_of_impossible_length(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    loop {
        let handle = call(wire)?;
        wire.send(&response(handle, 65_535, &0x7fff_ffffu32.to_be_bytes()))?;
    }
}

fn tables_of_negative_length(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    loop {
        let handle = call(wire)?;
        wire.send(&response(handle, 2, &(-5i32).to_be_bytes()))?;
    }
}

fn rows_without_bytes(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    // A table whose head says 32,767 columns and 2^31 - 1 rows.
    let mut table = Vec::new();
    table.extend(3u32.to_be_bytes());
    table.extend([0x80]);
    table.extend(0x7fffu16.to_be_bytes());
    table.extend(0x7fff_ffffu32.to_be_bytes());
    let table = message(&table);
    loop {
        let handle = call(wire)?;
        wire.send(&response(handle, 1, &table))?;
    }
}

fn responses_nobody_asked_for(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    take(wire)?;
    wire.repeat(&response([0x77; 8], 0, &[]))
}

fn texts_that_steer_a_terminal(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    let text = "\u{1b}[2J\u{1b}]0;x\u{7}\u{202e}";
    loop {
        let handle = call(wire)?;
        let mut body = vec![0];
        body.extend(handle);
        body.extend([0x20, 0xfd]);
        body.extend((text.len() as u32).to_be_bytes());
        body.extend(text.as_bytes());
        body.extend([128, 0, 0, 0, 0, 0, 0]);
        wire.send(&message(&body))?;
    }
}

fn empty_messages(wire: &mut Wire) -> Result<()> {
    log_in(wire)?;
    wire.repeat(&0u32.to_be_bytes())
}

fn is_silent(wire: &mut Wire) -> Result<()> {
    wire.hold()
}

/// The cases of this protocol.
pub const CASES: &[Case] = &[
    Case::new((GROUP, "an answer to the login of 2^31 - 1 bytes"), login_of_2_31_bytes, LOAD, "VoltDB"),
    Case::new((GROUP, "an answer to the login of negative length"), login_of_negative_length, LOAD, "VoltDB"),
    Case::new((GROUP, "an answer to the login without end"), login_without_end, LOAD, ""),
    Case::new((GROUP, "a text of impossible length in the login"), build_of_impossible_length, LOAD, "VoltDB"),
    Case::new((GROUP, "silence"), is_silent, LOAD, ""),
    Case::new((GROUP, "silence towards voter"), is_silent, VOTER, ""),
    Case::new((GROUP, "a response of 2^31 - 1 bytes"), response_of_2_31_bytes, LOAD, "the limit"),
    Case::new((GROUP, "4 responses of 50 MiB without end"), response_of_50_mib, LOAD, "").within(400 << 20),
    Case::new((GROUP, "tables of impossible length"), tables_of_impossible_length, LOAD, ""),
    Case::new((GROUP, "tables of negative length"), tables_of_negative_length, LOAD, "length that is not possible"),
    Case::new((GROUP, "2^31 - 1 rows without bytes"), rows_without_bytes, LOAD, ""),
    Case::new((GROUP, "2^31 - 1 rows without bytes for voter"), rows_without_bytes, VOTER, ""),
    Case::new((GROUP, "responses that no call asked for"), responses_nobody_asked_for, LOAD, ""),
    Case::new((GROUP, "texts that steer a terminal"), texts_that_steer_a_terminal, LOAD, ""),
    Case::new((GROUP, "messages without content"), empty_messages, LOAD, "length of VoltDB's message"),
    Case::new(
        (GROUP, "40 responses of 50 MiB without end"),
        response_of_50_mib,
        "load volt://127.0.0.1:PORT --queries queries.sql --clients 40 --duration DURATION --timeout 4s --quiet",
        "",
    )
    .within(700 << 20),
];
