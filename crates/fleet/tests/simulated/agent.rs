//! An agent whose load is made up.

use super::SECOND;
use super::scene::Fate;
use plimsoll_core::interval::{Compact, Interval};
use plimsoll_core::record::Machine;
use plimsoll_core::rng::Rng;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::run::RunEnd;
use plimsoll_fleet::end::EndLine;
use plimsoll_fleet::figures::Figures;
use plimsoll_fleet::member::{Member, Order};
use plimsoll_fleet::message::Up;

/// An agent in the simulation. All of its times are those of its own clock.
pub struct Agent {
    pub member: Member,
    pub number: u64,
    /// Its clock ahead of the world's, ns.
    pub ahead_ns: i64,
    pub fates: Vec<Fate>,
    rng: Rng,
    warmup_s: u64,
    duration_s: u64,
    last_second_late_ns: u64,
    /// Time at which its preparation is over, ns.
    prepared_ns: Option<u64>,
    start_ns: Option<u64>,
    stops: bool,
    next_ns: Option<u64>,
    /// A last second that it sends late, and when.
    held_back: Option<(u64, Interval)>,
    seconds: u64,
    /// Everything that it did.
    pub done: Interval,
    /// The last time at which it made load, in the world's time, ns.
    pub fired_ns: Option<u64>,
    /// The last time at which it heard of the coordinator, in the world's time, ns.
    pub heard_ns: u64,
    pub is_over: bool,
    pub started_ns: Option<u64>,
}

impl Agent {
    pub fn new(
        number: u64,
        index: usize,
        seed: u64,
        (warmup_s, duration_s): (u64, u64),
        late_ns: u64,
        fates: Vec<Fate>,
    ) -> Self {
        let mut rng = Rng::new(seed ^ (index as u64 + 1).wrapping_mul(0x9e37));
        // A clock that is skewed by up to ten seconds.
        let ahead_ns = rng.below(20 * SECOND) as i64 - 10 * SECOND as i64;
        let now_ns = own(super::world::BEGIN_NS, ahead_ns);
        let last_second_late_ns = if late_ns > 0 { rng.below(late_ns) } else { 0 };
        Self {
            member: Member::new(number, super::world::COORDINATOR, now_ns),
            number,
            ahead_ns,
            fates,
            rng,
            warmup_s,
            duration_s,
            last_second_late_ns,
            prepared_ns: None,
            start_ns: None,
            stops: false,
            next_ns: None,
            held_back: None,
            seconds: 0,
            done: Interval::new(1),
            fired_ns: None,
            heard_ns: super::world::BEGIN_NS,
            is_over: false,
            started_ns: None,
        }
    }

    fn fate(&self, look: impl Fn(&Fate) -> Option<u64>) -> Option<u64> {
        self.fates.iter().find_map(look)
    }

    /// Takes what its machine says, and lets its load go on.
    pub fn step(&mut self, world_ns: u64) {
        let now_ns = own(world_ns, self.ahead_ns);
        while let Some(order) = self.member.next_order() {
            match order {
                Order::Plan(_) => {
                    let takes_ns = self.fate(|fate| match fate {
                        Fate::Prepares(ns) => Some(*ns),
                        _ => None,
                    });
                    self.prepared_ns = Some(now_ns + takes_ns.unwrap_or(SECOND / 10));
                }
                Order::Start { at_ns } => {
                    let late_ns = self.fate(|fate| match fate {
                        Fate::StartsLate(ns) => Some(*ns),
                        _ => None,
                    });
                    self.start_ns = Some(at_ns + late_ns.unwrap_or(0));
                    self.next_ns = self.start_ns;
                }
                Order::Stop => self.stops = true,
                Order::Abort { .. } | Order::Bye => self.is_over = true,
                Order::Piece { .. }
                | Order::Shared(_)
                | Order::EndEarly
                | Order::Watch { .. }
                | Order::MeasuredFrom { .. } => {}
            }
        }
        if self.prepared_ns.is_some_and(|at_ns| at_ns <= now_ns) {
            self.prepared_ns = None;
            if self.fates.contains(&Fate::Fails) {
                let why = "the disk is full".to_owned();
                self.member.say(&Up::Failed { why, code: 1 }).unwrap();
                self.is_over = true;
                return;
            }
            let key = if self.fates.contains(&Fate::Differs) { "other" } else { "key" };
            self.member.at_line(key.to_owned(), Machine::default(), now_ns);
        }
        self.load(now_ns, world_ns);
    }

    fn load(&mut self, now_ns: u64, world_ns: u64) {
        let Some(start_ns) = self.start_ns.filter(|_| !self.is_over) else { return };
        if let Some((at_ns, _)) = &self.held_back {
            if *at_ns <= now_ns
                && let Some((_, second)) = self.held_back.take()
            {
                self.send(&second);
                self.end();
            }
            return;
        }
        while self.next_ns.is_some_and(|next_ns| next_ns <= now_ns) {
            self.fired_ns = Some(world_ns);
            if self.started_ns.is_none() {
                self.started_ns = Some(world_ns);
                let late_ns = now_ns - start_ns;
                // A late start is known to the agent.
                let late_ns = late_ns
                    + self
                        .fates
                        .iter()
                        .map(|fate| match fate {
                            Fate::StartsLate(ns) => *ns,
                            _ => 0,
                        })
                        .sum::<u64>();
                self.member.say(&Up::Started { phase: 0, late_ns }).unwrap();
                self.next_ns = self.next_ns.map(|ns| ns + self.warmup_s * SECOND);
            } else {
                let second = self.second();
                let is_last = self.seconds == self.duration_s || self.stops;
                if is_last && self.last_second_late_ns > 0 {
                    self.held_back = Some((now_ns + self.last_second_late_ns, second));
                    return;
                }
                self.send(&second);
                if is_last {
                    self.end();
                    return;
                }
            }
            self.next_ns = self.next_ns.map(|ns| ns + SECOND);
        }
    }

    fn second(&mut self) -> Interval {
        let mut second = Interval::new(1);
        second.from_ns = self.seconds * SECOND;
        self.seconds += 1;
        second.to_ns = self.seconds * SECOND;
        let count = self.rng.below(30);
        for _ in 0..count {
            second.ledger.scheduled += 1;
            second.ledger.sent += 1;
            second.ledger.ok += 1;
            second.classes[0].ledger.sent += 1;
            second.classes[0].ledger.ok += 1;
            let time_ns = 1_000 + self.rng.below(1 << 27);
            second.classes[0].record_ok(time_ns, time_ns);
            second.lag.record(self.rng.below(50_000));
        }
        self.done.merge(&second);
        second
    }

    fn send(&mut self, second: &Interval) {
        if self.seconds == 1 && self.fates.contains(&Fate::SwallowsASecond) {
            return;
        }
        let mut second = second.clone();
        if self.seconds == 1 && self.fates.contains(&Fate::CountsWrong) {
            second.classes[0].response.record(1 << 20);
        }
        self.member.say(&Up::Second(Compact::from(&second))).unwrap();
    }

    fn end(&mut self) {
        let end = RunEnd {
            totals: self.done.clone(),
            measured_s: self.seconds as f64,
            interrupted: self.stops,
            ..RunEnd::default()
        };
        self.member.ended(Ok(EndLine::from(&end)), Vec::new()).unwrap();
        // What its job has found takes several packets.
        let part = serde_json::json!({ "agent": self.number, "text": "x".repeat(700_000) });
        self.member.say(&Up::Part(part)).unwrap();
        self.member
            .say(&Up::Finished {
                verdict: Verdict::new(VerdictKind::Valid, Vec::new()),
                figures: Some(Box::new(Figures::of(&end))),
            })
            .unwrap();
        self.start_ns = None;
        self.next_ns = None;
    }

    /// The next time at which it has something to do, in the world's time, ns.
    pub fn due_ns(&self, world_ns: u64) -> u64 {
        let now_ns = own(world_ns, self.ahead_ns);
        let held_back = self.held_back.as_ref().map(|(at_ns, _)| *at_ns);
        let next = [
            self.prepared_ns,
            self.next_ns.filter(|_| !self.is_over && held_back.is_none()),
            held_back,
        ];
        let own_ns = next.into_iter().flatten().fold(self.member.due_ns(now_ns), u64::min);
        (own_ns as i64 - self.ahead_ns) as u64
    }
}

/// A time of the world on a clock that is ahead of it.
pub fn own(world_ns: u64, ahead_ns: i64) -> u64 {
    (world_ns as i64 + ahead_ns) as u64
}
