//! A VoltDB server: a login, calls that are answered in any order, and every status that a call may end with.

use super::{Answer, Heard, Request, Speaker};
use crate::asker::{Said, Tongue};
use crate::faults::Fault;
use crate::truth::Fate;
use plimsoll_core::outcome::Failure;
use plimsoll_core::rng::Rng;
use plimsoll_wire::volt::{
    Call, Kind, LoginCall, LoginReply, Request as CallRequest, Response, ResponseWriter, Value,
    Volt, Welcome, frame_length,
};

const PADDING: &str =
    "................................................................................";

impl Tongue for Volt {
    fn ask(request: &mut CallRequest, serial: u64, rng: &mut Rng) -> bool {
        let padding = &PADDING[..rng.below(PADDING.len() as u64) as usize];
        request.call("Ask", &[Value::BigInt(serial as i64), Value::String(padding)]);
        rng.below(2) == 0
    }

    fn said(reply: &Response<'_>) -> (Said, u16) {
        if !reply.is_success() {
            return (Said::No(Failure::App), 0);
        }
        let number = reply.long().and_then(|number| u64::try_from(number).ok());
        (number.map_or(Said::Nothing, Said::Done), 0)
    }
}

/// The server's side.
#[derive(Debug, Default)]
pub struct VoltSpeaker {
    /// Share of the logins that are refused, per mille.
    pub refused: u64,
}

/// One connection.
#[derive(Debug, Default)]
pub struct Line {
    held: Vec<u8>,
    is_open: bool,
}

impl VoltSpeaker {
    fn login(&self, line: &mut Line, body: &[u8], heard: &mut Heard, rng: &mut Rng) {
        line.is_open = true;
        if LoginCall::read(body).is_err() {
            heard.offence = Some("the first message is no login".to_owned());
        }
        if rng.below(1000) < self.refused {
            LoginReply::Refused(-1).put(&mut heard.at_once);
            heard.faults.push(Fault::Fatal);
            heard.ends = true;
            return;
        }
        let welcome = Welcome {
            host_id: 0,
            connection_id: 1,
            cluster_start_ms: 1,
            leader_address: [127, 0, 0, 1],
            build: "sim",
        };
        LoginReply::Welcome(welcome).put(&mut heard.at_once);
    }

    fn call(body: &[u8], heard: &mut Heard) {
        let Ok(call) = Call::read(body) else {
            heard.offence = Some("a call that cannot be read".to_owned());
            return;
        };
        match call.params().next() {
            Some(Ok((_, Value::BigInt(serial)))) => heard.requests.push(Request {
                serial: serial as u64,
                handle: call.handle as u64,
                is_whole: true,
                ..Request::default()
            }),
            _ => heard.offence = Some("a call without a number".to_owned()),
        }
    }
}

fn success(handle: i64, serial: u64, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    let ms = rng.below(50) as i32;
    if rng.below(2) == 0 {
        ResponseWriter::vote_like(&mut out, handle, serial as i64, ms);
    } else {
        ResponseWriter::success(&mut out, handle, ms)
            .table(&[("N", Kind::BigInt)])
            .row(&[Value::BigInt(serial as i64)]);
    }
    out
}

fn failure(handle: i64, rng: &mut Rng) -> Vec<u8> {
    let mut out = Vec::new();
    // All statuses but success, and some that nobody knows.
    let status = -1 - rng.below(25) as i8;
    ResponseWriter::failure(&mut out, handle, status, "CONSTRAINT VIOLATION\nor so", 3);
    out
}

impl Speaker for VoltSpeaker {
    type Line = Line;
    const ORDERED: bool = false;
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
        Fault::Unasked,
        Fault::IdleClosed,
    ];

    fn open(&mut self, _: &mut Rng) -> Line {
        Line::default()
    }

    fn hear(&mut self, line: &mut Line, bytes: &[u8], heard: &mut Heard, rng: &mut Rng) {
        line.held.extend_from_slice(bytes);
        let held = std::mem::take(&mut line.held);
        let mut rest = &held[..];
        loop {
            match frame_length(rest) {
                Ok(Some(length)) => {
                    let (own, behind) = rest.split_at(length);
                    rest = behind;
                    if line.is_open {
                        Self::call(&own[4..], heard);
                    } else {
                        self.login(line, &own[4..], heard, rng);
                    }
                }
                Ok(None) => break,
                Err(error) => {
                    heard.offence = Some(error.to_string());
                    return;
                }
            }
            if heard.ends {
                return;
            }
        }
        line.held = rest.to_vec();
    }

    fn answer(
        &mut self,
        _: &mut Line,
        request: &Request,
        fault: Option<Fault>,
        rng: &mut Rng,
    ) -> Answer {
        let handle = request.handle as i64;
        match fault {
            Some(Fault::Refusal) => {
                return Answer::right(vec![failure(handle, rng)]).with(Fate::No(Failure::App));
            }
            Some(Fault::Empty) => {
                let mut out = Vec::new();
                ResponseWriter::success(&mut out, handle, 1);
                return Answer::right(vec![out]).with(Fate::No(Failure::Check));
            }
            _ => {}
        }
        let serial = request.serial ^ u64::from(fault == Some(Fault::Stranger));
        let mut bytes = success(handle, serial, rng);
        match fault {
            Some(Fault::TooLong) => bytes[3] += 1 + rng.below(20) as u8,
            Some(Fault::TooShort) => bytes[3] -= 1 + rng.below(u64::from(bytes[3]) - 1) as u8,
            _ => {}
        }
        let answer = Answer::right(vec![bytes]);
        match fault {
            Some(Fault::Stranger) => answer.with(Fate::Wrong),
            // Bytes behind its last part are left alone: the response itself is whole.
            Some(Fault::TooLong) => answer.with(Fate::Doubtful).ruining(),
            Some(Fault::TooShort) => answer.with(Fate::Wrong).ruining(),
            Some(Fault::Twice) => answer.twice().ruining(),
            Some(Fault::Unasked) => {
                let mut extra = Vec::new();
                let nobody = if rng.below(2) == 0 { 0 } else { handle ^ (1 << 40) };
                match rng.below(2) {
                    0 => ResponseWriter::vote_like(&mut extra, nobody, 1, 1),
                    _ => ResponseWriter::failure(&mut extra, nobody, -2, "which?", 1),
                }
                answer.followed_by(extra).ruining()
            }
            _ => answer,
        }
    }
}
