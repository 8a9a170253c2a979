//! A PostgreSQL server: a login, simple and extended queries, answers in order, errors in the middle of them.

use super::{Answer, Heard, Request, Speaker, in_pieces};
use crate::asker::{Said, Tongue};
use crate::faults::Fault;
use crate::truth::Fate;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::outcome::Failure;
use plimsoll_core::rng::Rng;
use plimsoll_wire::postgres::{Postgres, Reply, Request as SqlRequest};

/// The only prepared statement.
pub const STATEMENT: &str = "SELECT $1";

impl Tongue for Postgres {
    fn ask(request: &mut SqlRequest, serial: u64, rng: &mut Rng) -> bool {
        let number = serial.to_string();
        // A text of digits has no NUL.
        if rng.below(2) == 0 && request.query(&format!("SELECT '{number}'")).is_ok() {
            return false;
        }
        request.execute(0, &[Some(number.as_bytes())]);
        rng.below(2) == 0
    }

    fn said(reply: &Reply<'_>) -> (Said, u16) {
        if reply.error.is_some() {
            return (Said::No(Failure::App), 0);
        }
        let is_one = reply.rows == 1 && reply.tag == b"SELECT 1";
        let number = reply.value(0).and_then(|value| std::str::from_utf8(value).ok()?.parse().ok());
        (number.filter(|_| is_one).map_or(Said::Nothing, Said::Done), 0)
    }
}

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32 + 4).to_be_bytes();
    [&[kind], &length[..], body].concat()
}

fn error(severity: &str) -> Vec<u8> {
    let code = if severity == "FATAL" { "57P01" } else { "23505" };
    let text = format!("S{severity}\0V{severity}\0C{code}\0Mit does not please\0\0");
    message(b'E', text.as_bytes())
}

fn ready() -> Vec<u8> {
    message(b'Z', b"I")
}

fn row(serial: u64) -> Vec<u8> {
    let text = serial.to_string();
    let mut body = vec![0, 1];
    body.extend((text.len() as u32).to_be_bytes());
    body.extend(text.as_bytes());
    message(b'D', &body)
}

/// Needs of a request besides its number.
mod needs {
    /// It names its columns: a simple query.
    pub const COLUMNS: u64 = 1;
    /// It has the server parse the statement.
    pub const PARSE: u64 = 2;
}

/// The server's side.
#[derive(Debug, Default)]
pub struct PostgresSpeaker {
    /// Share of the logins that are refused, per mille.
    pub refused: u64,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Line {
    held: Vec<u8>,
    stage: Stage,
    /// The extended query that is being read.
    serial: Option<u64>,
    parses: bool,
    is_prepared: bool,
    /// Delay of the end of the login, ns.
    welcome_after_ns: u64,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Stage {
    #[default]
    Startup,
    Password,
    Open,
}

impl Line {
    fn welcome(&mut self, heard: &mut Heard) {
        self.stage = Stage::Open;
        let mut out = message(b'R', &[0, 0, 0, 0]);
        out.extend(message(b'S', b"server_version\x0016.1\0"));
        out.extend(message(b'K', &[0, 0, 0, 1, 0, 0, 0, 2]));
        out.extend(ready());
        heard.later.push((self.welcome_after_ns, out));
    }

    fn startup(&mut self, refuses: bool, rng: &mut Rng, heard: &mut Heard) {
        if refuses {
            heard.at_once.extend(error("FATAL"));
            heard.faults.push(Fault::Fatal);
            heard.ends = true;
        } else if rng.below(3) == 0 {
            self.stage = Stage::Password;
            heard.at_once.extend(message(b'R', &[0, 0, 0, 3]));
        } else {
            self.welcome(heard);
        }
    }

    fn message(&mut self, kind: u8, body: &[u8], heard: &mut Heard) {
        let text = String::from_utf8_lossy(body);
        match (kind, self.stage) {
            (b'p', Stage::Password) => self.welcome(heard),
            (b'X', _) => {}
            (b'Q', Stage::Open) => {
                let serial = text.split('\'').nth(1).and_then(|serial| serial.parse().ok());
                self.whole(serial, needs::COLUMNS, heard);
            }
            (b'P', Stage::Open) => self.parses = true,
            (b'B', Stage::Open) => {
                // Portal, statement, no formats, one parameter with its length.
                let front = 1 + "s00000000".len() + 1 + 2 + 2 + 4;
                let value = body.get(front..body.len().saturating_sub(2)).unwrap_or_default();
                self.serial = std::str::from_utf8(value).ok().and_then(|value| value.parse().ok());
            }
            (b'E', Stage::Open) => {}
            (b'S', Stage::Open) => {
                let serial = self.serial.take();
                let parse = if std::mem::take(&mut self.parses) { needs::PARSE } else { 0 };
                self.whole(serial, parse, heard);
            }
            (kind, stage) => {
                heard.offence = Some(format!("a message '{}' in stage {stage:?}", kind as char));
            }
        }
    }

    fn whole(&self, serial: Option<u64>, handle: u64, heard: &mut Heard) {
        match serial {
            Some(serial) => {
                heard.requests.push(Request {
                    serial,
                    handle,
                    is_whole: true,
                    ..Request::default()
                });
            }
            None => heard.offence = Some("a query without a number".to_owned()),
        }
    }
}

impl Speaker for PostgresSpeaker {
    type Line = Line;
    const ORDERED: bool = true;
    const FAULTS: &'static [Fault] = &[
        Fault::Stalled,
        Fault::Late,
        Fault::Reset,
        Fault::Closed,
        Fault::ResetInside,
        Fault::CutInside,
        Fault::Garbage,
        Fault::Flipped,
        Fault::Twice,
        Fault::Stranger,
        Fault::TooLong,
        Fault::TooShort,
        Fault::Refusal,
        Fault::Empty,
        Fault::ErrorInside,
        Fault::Fatal,
        Fault::Unasked,
        Fault::IdleClosed,
    ];

    fn open(&mut self, rng: &mut Rng) -> Line {
        Line { welcome_after_ns: rng.below(30) * MILLISECOND_NS, ..Line::default() }
    }

    fn hear(&mut self, line: &mut Line, bytes: &[u8], heard: &mut Heard, rng: &mut Rng) {
        line.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut line.held);
        let mut rest = &held[..];
        loop {
            // The first message has no kind before its length.
            let kind_bytes = usize::from(line.stage != Stage::Startup);
            let Some(length) = rest.get(kind_bytes..).and_then(|rest| rest.first_chunk::<4>())
            else {
                break;
            };
            let whole = kind_bytes + u32::from_be_bytes(*length) as usize;
            let Some((own, behind)) = rest.split_at_checked(whole) else { break };
            if line.stage == Stage::Startup {
                let refuses = rng.below(1000) < self.refused;
                line.startup(refuses, rng, heard);
                if line.stage == Stage::Startup {
                    return;
                }
            } else {
                line.message(own[0], &own[5..], heard);
            }
            rest = behind;
        }
        line.held = rest.to_vec();
    }

    fn answer(
        &mut self,
        line: &mut Line,
        request: &Request,
        fault: Option<Fault>,
        rng: &mut Rng,
    ) -> Answer {
        let (is_simple, parses) =
            (request.handle & needs::COLUMNS != 0, request.handle & needs::PARSE != 0);
        let mut out = Vec::new();
        match rng.below(16) {
            0 => out.extend(message(b'N', b"SNOTICE\0C00000\0Mlook\0\0")),
            1 => out.extend(message(b'S', b"TimeZone\0UTC\0")),
            2 => out.extend(message(b'A', b"\0\0\0\x01a\0b\0")),
            _ => {}
        }
        // The one before it on this connection failed before the statement was parsed.
        let is_unknown = !is_simple && !parses && !line.is_prepared;
        if fault == Some(Fault::Refusal) || is_unknown {
            out.extend([error("ERROR"), ready()].concat());
            return Answer::right(in_pieces(out, rng)).with(Fate::No(Failure::App));
        }
        if fault == Some(Fault::Fatal) {
            out.extend(error("FATAL"));
            return Answer::right(vec![out]).with(Fate::No(Failure::App)).ruining().closing();
        }
        if is_simple {
            out.extend(message(
                b'T',
                b"\0\x01?\0\0\0\0\0\0\0\0\0\0\x19\xff\xff\xff\xff\xff\xff\0\0",
            ));
        } else {
            out.extend(if parses { message(b'1', b"") } else { Vec::new() });
            line.is_prepared |= parses;
            out.extend(message(b'2', b""));
        }
        if fault == Some(Fault::ErrorInside) {
            out.extend([row(request.serial), error("ERROR"), ready()].concat());
            return Answer::right(in_pieces(out, rng)).with(Fate::No(Failure::App));
        }
        if fault == Some(Fault::Empty) {
            out.extend([message(b'C', b"SELECT 0\0"), ready()].concat());
            return Answer::right(in_pieces(out, rng)).with(Fate::No(Failure::Check));
        }
        let serial = request.serial ^ u64::from(fault == Some(Fault::Stranger));
        let mut data = row(serial);
        match fault {
            Some(Fault::TooLong) => data[4] += 1 + rng.below(20) as u8,
            Some(Fault::TooShort) => data[4] -= 1 + rng.below(u64::from(data[4]) - 4) as u8,
            _ => {}
        }
        out.extend([data, message(b'C', b"SELECT 1\0"), ready()].concat());
        let answer = Answer::right(in_pieces(out, rng));
        match fault {
            Some(Fault::Stranger) => answer.with(Fate::Wrong),
            Some(Fault::TooLong | Fault::TooShort) => answer.with(Fate::Wrong).ruining(),
            Some(Fault::Twice) => answer.twice().ruining(),
            Some(Fault::Unasked) => answer.followed_by(row(serial)).ruining(),
            _ => answer,
        }
    }
}
