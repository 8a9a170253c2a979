//! A coordinator, one agent for the load and agents that watch, on virtual time, with clocks that differ and packets that are lost.

use super::*;
use crate::coordinator::{Event, Load};
use crate::member::{Member, Order};
use crate::message::{Build, Ended, Plan, Role};
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::record::Machine;
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::Slice;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::run::RunEnd;

const COORDINATOR: u64 = 1;
const BEGIN_NS: u64 = 100 * SECOND_NS;
const STEP_NS: u64 = MILLISECOND_NS;
/// One way of a packet, ns.
const DELAY_NS: u64 = 2 * MILLISECOND_NS;

fn here(agent: u64, role: Role) -> Here {
    Here {
        coordinator: COORDINATOR,
        agent,
        name: format!("{role:?}-{agent}").to_lowercase(),
        host: format!("host-{agent}"),
        pid: 1,
        role,
        build: Build { tool: plimsoll_record::Tool::default(), program_sha256: String::new() },
        is_busy: false,
    }
}

struct Process {
    number: u64,
    member: Member,
    /// Its clock ahead of the world's, ns.
    ahead_ns: i64,
    /// The world's time from which on it does nothing, ns.
    dies_ns: u64,
    /// Start of the measured stretch on its own clock, ns.
    origin_ns: Option<u64>,
    looked_ns: u64,
    is_over: bool,
    aborted: Option<String>,
}

impl Process {
    fn new(number: u64, ahead_ns: i64) -> Self {
        let now_ns = BEGIN_NS.saturating_add_signed(ahead_ns);
        Self {
            number,
            member: Member::new(number, COORDINATOR, now_ns),
            ahead_ns,
            dies_ns: u64::MAX,
            origin_ns: None,
            looked_ns: now_ns,
            is_over: false,
            aborted: None,
        }
    }

    /// Carries out its orders as the process of an agent does.
    fn step(&mut self, world_ns: u64) {
        let now_ns = world_ns.saturating_add_signed(self.ahead_ns);
        while let Some(order) = self.member.next_order() {
            match order {
                Order::Watch { .. } => {
                    self.member.watch(Machine::default(), ResourcesResult::default());
                }
                Order::MeasuredFrom { at_ns } => self.origin_ns = Some(at_ns),
                Order::Plan(_) => self.member.at_line("key".to_owned(), Machine::default(), now_ns),
                Order::Stop => {
                    self.look(now_ns);
                    self.member.watched(ResourcesResult::default()).unwrap();
                    let verdict = Verdict::new(VerdictKind::Valid, Vec::new());
                    self.member.say(&Up::Finished { verdict, figures: None }).unwrap();
                }
                Order::Abort { why } => {
                    self.is_over = true;
                    self.aborted = Some(why);
                }
                Order::Bye => self.is_over = true,
                Order::Start { .. } | Order::Piece { .. } | Order::Shared(_) | Order::EndEarly => {}
            }
        }
        if !self.is_over && now_ns >= self.looked_ns + SECOND_NS {
            self.look(now_ns);
        }
    }

    fn look(&mut self, now_ns: u64) {
        let Some(origin_ns) = self.origin_ns else { return };
        let line = ResourceLine {
            at_s: (now_ns as f64 - origin_ns as f64) / 1e9,
            span_s: (now_ns - self.looked_ns) as f64 / 1e9,
            ..ResourceLine::default()
        };
        self.looked_ns = now_ns;
        self.member.say(&Up::Used(Box::new(line))).unwrap();
    }
}

struct World {
    now_ns: u64,
    coordinator: Coordinator,
    processes: Vec<Process>,
    flying: Vec<(u64, u64, Vec<u8>)>,
    rng: Rng,
    /// Percent of the packets that are lost.
    lost: u64,
    events: Vec<Event>,
    /// Lines of each agent that watches, with the world's time at which they were taken.
    lines: Vec<Vec<(u64, f64)>>,
}

impl World {
    /// One agent for the load with the number 10, and watching ones with clocks that are ahead.
    fn of(ahead_ns: &[i64], least: usize) -> Self {
        let plan = Plan {
            run: "run".to_owned(),
            words: Vec::new(),
            files: Vec::new(),
            slice: Slice { index: 0, of: 1 },
        };
        let numbers = || (20..).zip(ahead_ns);
        let watchers = numbers().map(|(number, _)| here(number, Role::Watch)).collect();
        let coordinator =
            Coordinator::new(COORDINATOR, vec![(here(10, Role::Load), plan)], BEGIN_NS)
                .and_then(|own| own.with_watchers(COORDINATOR, (watchers, least), "run", BEGIN_NS))
                .unwrap();
        let mut processes = vec![Process::new(10, -3 * SECOND_NS as i64)];
        processes.extend(numbers().map(|(number, &ahead_ns)| Process::new(number, ahead_ns)));
        let mut world = Self {
            now_ns: BEGIN_NS,
            coordinator,
            processes,
            flying: Vec::new(),
            rng: Rng::new(7),
            lost: 0,
            events: Vec::new(),
            lines: vec![Vec::new(); ahead_ns.len()],
        };
        world.coordinator.begin(Load { key: "key".to_owned(), warmup_ns: 0 }, BEGIN_NS);
        world
    }

    fn carry(&mut self, to: u64, bytes: Vec<u8>) {
        if self.rng.below(100) >= self.lost {
            self.flying.push((self.now_ns + DELAY_NS, to, bytes));
        }
    }

    fn step(&mut self) {
        self.now_ns += STEP_NS;
        let now_ns = self.now_ns;
        let (due, later) =
            std::mem::take(&mut self.flying).into_iter().partition(|(at_ns, ..)| *at_ns <= now_ns);
        self.flying = later;
        let due: Vec<(u64, u64, Vec<u8>)> = due;
        for (_, to, bytes) in due {
            match self.processes.iter_mut().find(|one| one.number == to) {
                Some(one) if now_ns < one.dies_ns => {
                    one.member.receive(&bytes, now_ns.saturating_add_signed(one.ahead_ns));
                }
                Some(_) => {}
                None => self.coordinator.receive(&bytes, now_ns),
            }
        }
        let mut sent = self.coordinator.poll(now_ns);
        for one in self.processes.iter_mut().filter(|one| now_ns < one.dies_ns) {
            one.step(now_ns);
            let own_ns = now_ns.saturating_add_signed(one.ahead_ns);
            sent.extend(one.member.poll(own_ns).into_iter().map(|bytes| (COORDINATOR, bytes)));
        }
        sent.into_iter().for_each(|(to, bytes)| self.carry(to, bytes));
        while let Some(event) = self.coordinator.next_event() {
            self.events.push(event);
        }
        for (kept, new) in self.lines.iter_mut().zip(self.coordinator.take_watched()) {
            kept.extend(new.into_iter().map(|line| (now_ns, line.at_s)));
        }
    }

    fn until(&mut self, within_ns: u64, is_there: impl Fn(&Self) -> bool) {
        let end_ns = self.now_ns + within_ns;
        while !is_there(self) {
            assert!(self.now_ns < end_ns, "{:?}", self.coordinator.watcher_reports());
            self.step();
        }
    }

    fn run_for(&mut self, ns: u64) {
        let end_ns = self.now_ns + ns;
        self.until(ns + STEP_NS, |world| world.now_ns >= end_ns);
    }

    /// The agreed start, once there is one.
    fn agreed_ns(&self) -> Option<u64> {
        self.events.iter().find_map(|event| match event {
            Event::Agreed { at_ns } => Some(*at_ns),
            _ => None,
        })
    }

    fn refused(&self) -> Option<&str> {
        self.events.iter().find_map(|event| match event {
            Event::Refused { why, .. } => Some(why.as_str()),
            _ => None,
        })
    }

    fn start(&mut self) -> u64 {
        self.until(40 * SECOND_NS, |world| world.agreed_ns().is_some());
        let at_ns = self.agreed_ns().unwrap();
        self.coordinator.measured_from(at_ns);
        at_ns
    }

    /// Ends the phase of the load, and waits for what the agents still have to report.
    fn end(&mut self) -> Vec<String> {
        let end = RunEnd::default();
        self.processes[0].member.ended(Ok((&end).into()), Vec::new()).unwrap();
        let verdict = Verdict::new(VerdictKind::Valid, Vec::new());
        self.processes[0].member.say(&Up::Finished { verdict, figures: None }).unwrap();
        self.until(SECOND_NS * 5, |world| {
            world.events.iter().any(|event| matches!(event, Event::Ended(_)))
        });
        self.coordinator.close();
        self.until(15 * SECOND_NS, |world| {
            world.events.iter().any(|event| matches!(event, Event::Settled))
        });
        self.run_for(SECOND_NS);
        let ended = self.events.iter().find_map(|event| match event {
            Event::Ended(ended) => Some(ended.troubles.clone()),
            _ => None,
        });
        ended.unwrap()
    }
}

/// Clocks that are hours apart: the lines of all are on the axis of the run, each end of a line at the time at which it was taken.
#[test]
fn lines_are_on_the_axis_of_the_run_whatever_the_clocks_show() {
    let hour_ns = 3_600 * SECOND_NS as i64;
    for lost in [0, 20] {
        let mut world = World::of(&[7 * hour_ns, -50 * SECOND_NS as i64, 0], 3);
        world.lost = lost;
        let start_ns = world.start();
        world.run_for(70 * SECOND_NS);
        assert!(world.end().is_empty());
        for lines in &world.lines {
            assert!(lines.len() >= 68, "{lost} % lost: {}", lines.len());
            for (taken_ns, at_s) in lines {
                let real_s = (*taken_ns as f64 - start_ns as f64) / 1e9;
                let late_s = real_s - at_s;
                // A line that was lost comes again; without loss it is on its way for 2 ms, and the offset is wrong by at most 2 ms.
                let most_s = if lost == 0 { 0.006 } else { 10.0 };
                assert!((-0.003..most_s).contains(&late_s), "{late_s} s late, {lost} % lost");
            }
            let order: Vec<f64> = lines.iter().map(|(_, at_s)| *at_s).collect();
            assert!(order.is_sorted(), "{order:?}");
        }
        assert!(world.processes.iter().all(|one| one.is_over && one.aborted.is_none()));
        assert!(world.coordinator.watcher_reports().iter().all(|one| one.trouble.is_none()));
    }
}

/// The load is whole without it.
#[test]
fn an_agent_that_watches_and_dies_is_named_and_the_load_goes_on() {
    let mut world = World::of(&[0, SECOND_NS as i64], 0);
    let start_ns = world.start();
    world.processes[1].dies_ns = start_ns + 5 * SECOND_NS;
    world.run_for(30 * SECOND_NS);
    assert!(world.end().is_empty(), "no trouble of the load");
    let reports = world.coordinator.watcher_reports();
    let warning = reports[0].warning().unwrap();
    assert!(
        warning.starts_with("agent watch-20, which watches host-20: it has been silent for 10 s; the resources of host-20 end at "),
        "{warning}"
    );
    assert!((3.5..5.1).contains(&reports[0].until_s.unwrap()), "{reports:?}");
    assert_eq!(reports[1].warning(), None);
    assert!(world.lines[1].len() >= 29);
}

#[test]
fn a_coordinator_that_dies_is_found_by_an_agent_that_watches() {
    let mut world = World::of(&[0], 0);
    world.start();
    world.lost = 100;
    world.until(12 * SECOND_NS, |world| world.processes[1].is_over);
    let why = world.processes[1].aborted.clone().unwrap();
    assert!(why.starts_with("the coordinator has been silent for 8 s"), "{why}");
}

#[test]
fn an_agent_that_cannot_watch_is_left_out_unless_it_is_needed() {
    for (least, is_refused) in [(0, false), (1, false), (2, true)] {
        let mut world = World::of(&[0, 0], least);
        let why = "--watch mysqld: no process is called 'mysqld'".to_owned();
        world.processes[2].member.say(&Up::Failed { why, code: 64 }).unwrap();
        world.processes[2].member.next_order();
        world.processes[2].dies_ns = BEGIN_NS + 500 * MILLISECOND_NS;
        world.until(40 * SECOND_NS, |world| {
            world.agreed_ns().is_some() || world.refused().is_some()
        });
        assert_eq!(world.refused().is_some(), is_refused, "{least}");
        if let Some(why) = world.refused() {
            assert_eq!(
                why,
                "1 of 2 agents watch; agent watch-21: --watch mysqld: no process is called 'mysqld'"
            );
            world.until(SECOND_NS, |world| world.processes[1].is_over);
            continue;
        }
        world.end();
        let warning = world.coordinator.watcher_reports()[1].warning().unwrap();
        assert!(warning.contains("there are no resources of host-21"), "{warning}");
    }
}

/// It is never given a part of the load, and gets no say in it.
#[test]
fn an_agent_that_watches_and_sends_load_is_lost() {
    let mut world = World::of(&[0], 0);
    world.start();
    let ended = Ended { phase: 0, seconds: 0, end: Err("x".to_owned()), windows: Vec::new() };
    world.processes[1].member.say(&Up::Ended(Box::new(ended))).unwrap();
    world.run_for(SECOND_NS);
    let report = &world.coordinator.watcher_reports()[0];
    let why = "it sent a part of a load, and was to watch only";
    assert_eq!(report.trouble.as_deref(), Some(why));
    assert!(world.processes[1].aborted.is_some());
    assert!(world.end().is_empty());
}

/// So that the agents of two coordinators start at the same time.
#[test]
fn a_phase_that_is_held_back_starts_at_the_time_of_its_release() {
    let mut world = World::of(&[], 0);
    world.coordinator.hold();
    world.coordinator.release(BEGIN_NS + SECOND_NS);
    world.run_for(5 * SECOND_NS);
    let ready = world.events.iter().filter(|event| matches!(event, Event::Ready)).count();
    assert_eq!((ready, world.agreed_ns()), (1, None), "it is ready, and waits");
    let at_ns = world.now_ns + SECOND_NS;
    world.coordinator.release(at_ns);
    world.coordinator.release(at_ns + SECOND_NS);
    world.until(SECOND_NS, |world| world.agreed_ns().is_some());
    assert_eq!(world.agreed_ns(), Some(at_ns));
    assert!(world.end().is_empty());
}
