//! An agent's side of a run, as a machine that reads no clock and opens nothing.

mod watching;

use crate::end::EndLine;
use crate::link::{ClockOffset, Link, LinkError, Packet};
use crate::message::{Down, Ended, Plan, Ready, Up};
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::record::Machine;
use plimsoll_core::rng::splitmix64;
use plimsoll_core::seek::plant::Window;
use serde_json::Value;
use std::collections::VecDeque;
use watching::Watching;

/// Silence of the coordinator after which an agent ends its load, ns: shorter than the time after which the coordinator gives
/// the agent up, so that no load is on that is not counted.
pub const DEAD_MAN_NS: u64 = 8 * SECOND_NS;
/// Longest time for which a measured clock is used for the start of a phase, ns: one that is slewed by 500 ppm, the most that NTP
/// does, is wrong by 5 ms then.
const CLOCK_AGE_MAX_NS: u64 = 10 * SECOND_NS;
/// Time in which a coordinator answers the questions of one agent for its clock, and more. Agents spread their questions over this
/// time for all of them: thousands that ask at once would measure the wait for each other.
const CLOCK_EACH_NS: u64 = 1_000_000;
/// Error of a clock that is good enough, ns: one that is known less well is measured again, this many times at most, each time after
/// about this time.
const CLOCK_GOOD_NS: u64 = 10 * MILLISECOND_NS;
const CLOCK_AGAIN: u32 = 6;
const CLOCK_AGAIN_NS: u64 = 500 * MILLISECOND_NS;
/// Least time between the order to start and the start, ns.
const AHEAD_MIN_NS: u64 = 5 * MILLISECOND_NS;

/// An order that the agent's process carries out.
#[derive(Clone, Debug, PartialEq)]
pub enum Order {
    /// To prepare its part of a run.
    Plan(Box<Plan>),
    /// To keep a piece of a file.
    Piece {
        /// SHA-256 of the file.
        sha256: String,
        /// First byte.
        offset: u64,
        /// Bytes, base64.
        data: String,
    },
    /// To start the phase for which it is ready, ns on its own clock.
    Start {
        /// Time.
        at_ns: u64,
    },
    /// To watch its machine.
    Watch {
        /// Name of the run.
        run: String,
    },
    /// To count its lines from here, ns on its own clock; comes again when the coordinator's clock is known better.
    MeasuredFrom {
        /// Start of the measured stretch.
        at_ns: u64,
    },
    /// To take a finding of the coordinator's job.
    Shared(Value),
    /// To end the schedule of the phase that runs, as if it had come to its end.
    EndEarly,
    /// To end its load in order.
    Stop,
    /// To end at once.
    Abort {
        /// Reason.
        why: String,
    },
    /// Everything was received.
    Bye,
}

/// An agent of one run.
pub struct Member {
    link: Link,
    /// A number between 0 and 1 of its own.
    turn: f64,
    /// Number of agents of the run.
    agents: u32,
    /// Phase that it is ready for, and what it says when its clock is measured.
    waiting: Option<(String, Machine)>,
    phase: Option<u32>,
    phases: u32,
    clock: Option<ClockOffset>,
    /// Time at which the clock was measured, ns, and the number of times that it may be measured again.
    clock_ns: u64,
    clock_again: u32,
    /// True if the coordinator reads the same clock.
    has_same_clock: bool,
    orders: VecDeque<Order>,
    is_over: bool,
    seconds: u64,
    watching: Option<Watching>,
    /// Start of the measured stretch on the coordinator's clock, ns, as far as an agent that watches needs it.
    origin_ns: Option<u64>,
}

impl Member {
    /// An agent, whose process has the number `own`, of the coordinator with another number.
    #[must_use]
    pub fn new(own: u64, coordinator: u64, now_ns: u64) -> Self {
        Self {
            link: Link::new(own, coordinator, now_ns),
            turn: splitmix64(own) as f64 / u64::MAX as f64,
            agents: 1,
            waiting: None,
            phase: None,
            phases: 0,
            clock: None,
            clock_ns: 0,
            clock_again: 0,
            has_same_clock: false,
            orders: VecDeque::new(),
            is_over: false,
            seconds: 0,
            watching: None,
            origin_ns: None,
        }
    }

    /// Notes that the coordinator is on the same machine, and reads the same clock: there is no offset to measure.
    pub fn share_clock(&mut self) {
        self.has_same_clock = true;
    }

    /// The offset of the coordinator's clock, once it is known well, or as well as it can be.
    fn offset(&mut self, now_ns: u64) -> Option<ClockOffset> {
        if self.has_same_clock {
            return Some(ClockOffset { ahead_ns: 0, round_trip_ns: 0 });
        }
        let clock = self.link.clock()?;
        // A machine or a network that is busy for a moment makes round trips long.
        if clock.round_trip_ns / 2 > CLOCK_GOOD_NS && self.clock_again > 0 {
            self.clock_again -= 1;
            let wait_ns = (0.5 + self.turn) * CLOCK_AGAIN_NS.max(self.clock_spread_ns()) as f64;
            self.link.measure_clock_again(now_ns + wait_ns as u64);
            return None;
        }
        Some(clock)
    }

    /// Time over which all agents spread their questions for the clock, ns.
    fn clock_spread_ns(&self) -> u64 {
        CLOCK_EACH_NS * u64::from(self.agents.saturating_sub(1))
    }

    /// The next order.
    pub fn next_order(&mut self) -> Option<Order> {
        self.orders.pop_front()
    }

    /// Takes bytes from the bus; what is no packet of the coordinator is ignored.
    pub fn receive(&mut self, bytes: &[u8], now_ns: u64) {
        let Ok(packet) = Packet::decode(bytes) else { return };
        for text in self.link.receive(packet, now_ns) {
            match serde_json::from_slice::<Down>(&text) {
                Ok(message) => self.hear(message, now_ns),
                Err(error) => {
                    self.end(&format!("the coordinator sent something unknown ({error})"))
                }
            }
        }
    }

    fn hear(&mut self, message: Down, now_ns: u64) {
        match message {
            Down::Plan(plan) => {
                self.agents = plan.slice.of;
                self.orders.push_back(Order::Plan(plan));
            }
            Down::Piece { sha256, offset, data } => {
                self.orders.push_back(Order::Piece { sha256, offset, data });
            }
            Down::Arm { phase, at_ns } => self.arm(phase, at_ns, now_ns),
            Down::Watch { run } => self.orders.push_back(Order::Watch { run }),
            Down::MeasuredFrom { at_ns } => self.measured_from(at_ns),
            Down::Shared(value) => self.orders.push_back(Order::Shared(value)),
            Down::EndEarly { phase } if phase == self.current_phase() => {
                self.orders.push_back(Order::EndEarly);
            }
            // It came after the phase had ended.
            Down::EndEarly { .. } => {}
            Down::Stop => self.orders.push_back(Order::Stop),
            Down::Abort { why } => self.end(&why),
            Down::Bye => {
                self.is_over = true;
                self.orders.push_back(Order::Bye);
            }
        }
    }

    fn arm(&mut self, phase: u32, at_ns: u64, now_ns: u64) {
        let Some(clock) = self.clock.filter(|_| self.phase == Some(phase)) else { return };
        let own_ns = clock.own_ns(at_ns);
        if own_ns < now_ns + AHEAD_MIN_NS {
            let why = format!(
                "the order to start came {} ms too late",
                (now_ns + AHEAD_MIN_NS - own_ns) / MILLISECOND_NS
            );
            // What cannot be said is found by the coordinator's own clock.
            let _ = self.say(&Up::Failed { why: why.clone(), code: 3 });
            self.end(&why);
            return;
        }
        self.phase = None;
        if self.say(&Up::Armed { phase }).is_ok() {
            self.orders.push_back(Order::Start { at_ns: own_ns });
        }
    }

    fn end(&mut self, why: &str) {
        if !std::mem::replace(&mut self.is_over, true) {
            self.orders.push_back(Order::Abort { why: why.to_owned() });
        }
    }

    /// Its connections are open: reports so once its clock is measured. `key` has everything on which the requests of the phase
    /// depend.
    pub fn at_line(&mut self, key: String, machine: Machine, now_ns: u64) {
        self.waiting = Some((key, machine));
        self.seconds = 0;
        // The short phases of a search follow each other faster than clocks drift apart.
        let is_old =
            self.clock.is_none() || now_ns.saturating_sub(self.clock_ns) > CLOCK_AGE_MAX_NS;
        if !self.has_same_clock && is_old {
            (self.clock_ns, self.clock_again) = (now_ns, CLOCK_AGAIN);
            let wait_ns = self.turn * self.clock_spread_ns() as f64;
            self.link.measure_clock(now_ns + wait_ns as u64);
        }
    }

    /// Sends a message.
    ///
    /// # Errors
    /// When too much waits to be sent.
    pub fn say(&mut self, message: &Up) -> Result<(), LinkError> {
        if let Up::Second(_) = message {
            self.seconds += 1;
        }
        self.link.send(&message.encode()).map(drop)
    }

    /// Sends the end of a phase, with its number of seconds and its requests by due time.
    ///
    /// # Errors
    /// When too much waits to be sent.
    pub fn ended(
        &mut self,
        end: Result<EndLine, String>,
        windows: Vec<Window>,
    ) -> Result<(), LinkError> {
        let (phase, seconds) = (self.current_phase(), self.seconds);
        self.say(&Up::Ended(Box::new(Ended { phase, seconds, end, windows })))
    }

    /// Phase that was begun last.
    #[must_use]
    pub const fn current_phase(&self) -> u32 {
        self.phases.saturating_sub(1)
    }

    /// Packets that are to be sent now.
    pub fn poll(&mut self, now_ns: u64) -> Vec<Vec<u8>> {
        let silent_ns = self.link.silent_ns(now_ns);
        if silent_ns > DEAD_MAN_NS {
            let seconds = silent_ns / SECOND_NS;
            self.end(&format!("the coordinator has been silent for {seconds} s"));
        }
        self.keep_clock(now_ns);
        let offset = if self.waiting.is_some() { self.offset(now_ns) } else { None };
        if let (Some(clock), Some((key, machine))) =
            (offset, self.waiting.take_if(|_| offset.is_some()))
        {
            self.clock = Some(clock);
            let phase = self.phases;
            self.phases += 1;
            self.phase = Some(phase);
            // Its clock ahead of the coordinator's is the other way round than the link says.
            let ahead_ns = i64::try_from(-clock.ahead_ns).unwrap_or(i64::MAX);
            let ready = Ready { phase, key, clock: (ahead_ns, clock.round_trip_ns), machine };
            if let Err(error) = self.say(&Up::Ready(ready)) {
                self.end(&error.to_string());
            }
        }
        self.link.poll(now_ns).iter().map(Packet::encode).collect()
    }

    /// Time until which [`Member::poll`] has nothing to do if nothing arrives, ns.
    #[must_use]
    pub fn due_ns(&self, now_ns: u64) -> u64 {
        self.link.due_ns().min(now_ns + 100 * MILLISECOND_NS)
    }

    /// Returns true if the coordinator was heard of lately.
    #[must_use]
    pub fn is_heard(&self, now_ns: u64) -> bool {
        self.link.silent_ns(now_ns) < DEAD_MAN_NS
    }

    /// Returns true if everything that it sent has arrived.
    #[must_use]
    pub fn is_settled(&self) -> bool {
        self.link.is_settled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_that_reads_the_coordinators_clock_is_ready_without_a_measurement() {
        let ready = |has_same_clock: bool| {
            let mut member = Member::new(1, 2, 0);
            if has_same_clock {
                member.share_clock();
            }
            member.at_line("key".to_owned(), Machine::default(), 0);
            let packets = member.poll(1);
            let text: Vec<String> =
                packets.iter().map(|bytes| String::from_utf8_lossy(bytes).into_owned()).collect();
            text.concat().contains("[0,0]")
        };
        assert!(ready(true) && !ready(false));
    }

    /// Round trips of 200 ms while the network is busy, and of 2 ms afterwards.
    #[test]
    fn a_clock_that_is_known_badly_is_measured_again() {
        let (mut member, mut coordinator) = (Member::new(1, 2, 0), Link::new(2, 1, 0));
        member.at_line("key".to_owned(), Machine::default(), 0);
        let mut now_ns = 0;
        let ready = loop {
            now_ns += 10 * MILLISECOND_NS;
            assert!(now_ns < 20 * SECOND_NS, "not ready");
            let way_ns = if now_ns < SECOND_NS { 100 } else { 1 } * MILLISECOND_NS;
            let mut heard = Vec::new();
            for bytes in member.poll(now_ns) {
                let packet = Packet::decode(&bytes).unwrap();
                heard.extend(coordinator.receive(packet, now_ns + way_ns));
            }
            for packet in coordinator.poll(now_ns + way_ns) {
                member.receive(&packet.encode(), now_ns + 2 * way_ns);
            }
            if let Some(Ok(Up::Ready(ready))) = heard.first().map(|bytes| Up::decode(bytes)) {
                break ready;
            }
        };
        assert!(ready.clock.1 <= 2 * MILLISECOND_NS && now_ns > SECOND_NS, "{:?}", ready.clock);
    }
}
