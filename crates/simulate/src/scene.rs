//! A run drawn from a seed, but for its protocol and its peer.

use crate::asker::CLASSES;
use crate::faults::{Fault, Shares};
use crate::station::Script;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_core::schedule::{
    Arrivals, Limits, LoadModel, Pause, Step, Think, UserProfile, UserStep,
};
use plimsoll_core::units::Span;
use plimsoll_engine::shard::{ShardPlan, Timeouts};
use plimsoll_engine::sim::thread::{Absence, Thread, Why};
use plimsoll_engine::sim::{Link, closed_plan};
use plimsoll_engine::target::Target;
use std::net::SocketAddr;
use std::sync::Arc;

/// Longest service time, ns; far below every timeout, so that an answer is never a matter of luck.
const SERVICE_MAX_NS: u64 = 40 * MILLISECOND_NS;

/// A run but for its protocol and its peer.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Everything was drawn from it.
    pub seed: u64,
    /// The plan of the shard.
    pub plan: ShardPlan,
    /// The line to the peers.
    pub link: Link,
    /// The thread of the generator.
    pub thread: Thread,
    /// Time at which the run is stopped, ns on the clock.
    pub stop_ns: Option<u64>,
    /// Requests before the sessions have nothing left to ask.
    pub source: Option<u64>,
    /// Pause of a client after a request that was lost, ns.
    pub pause_ns: u64,
    /// The run starts this much after it should, ns.
    pub late_ns: u64,
    /// The behaviour of the peers.
    pub script: Script,
    /// Slots are the only thing that requests wait for.
    pub is_exact_queue: bool,
    /// Longest time for which sessions let replies gather before they are read, ns.
    pub gather_ns: u64,
}

/// Kind of load that a part insists on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Model {
    /// Any load model.
    Any,
    /// Virtual users.
    Users,
    /// Slots and a bounded queue, in any model.
    Managed,
}

impl Scene {
    /// Draws a run whose peer has these faults.
    #[must_use]
    pub fn draw(seed: u64, part: &str, model: Model, faults: &[Fault]) -> Self {
        let mut rng = Rng::new(derive_seed(seed, part));
        let rng = &mut rng;
        let duration_ns = (80 + rng.below(1200)) * MILLISECOND_NS;
        let load = match model {
            Model::Users => users(rng, duration_ns),
            Model::Any | Model::Managed => load(rng, duration_ns),
        };
        let timeouts = Timeouts {
            connect_ns: (200 + rng.below(300)) * MILLISECOND_NS,
            request_ns: (250 + rng.below(400)) * MILLISECOND_NS,
        };
        let (targets, dead) = targets(rng);
        let separate = rng.below(4);
        let (thread, is_absent) = thread(rng, duration_ns);
        // Only arrivals bring connections into use as they need them, and only where each takes one request.
        let grows = part == "http1" && !load.has_askers();
        let keep_alive = rng.below(16) > 0;
        let plan = ShardPlan {
            seed: rng.next_u64(),
            limits: Limits {
                duration_ns,
                requests: (rng.below(4) == 0).then(|| 1 + rng.below(150)),
            },
            warmup_ns: if separate == 0 { rng.below(duration_ns) } else { 0 },
            ignore_first: if separate == 1 { rng.below(10) as u32 } else { 0 },
            connections: match load.clients() {
                Some(clients) if rng.below(3) > 0 => clients,
                _ => 1 + rng.below(20) as u32,
            },
            warm_connections: (grows && rng.below(4) == 0).then_some(1),
            admission: admission(rng, model == Model::Managed),
            timeouts,
            targets: Arc::new(targets),
            classes: CLASSES,
            spin_ns: rng.below(2) * 50_000,
            batching: load.is_full_speed() && rng.below(2) == 0,
            preconnect: keep_alive && rng.below(2) == 0,
            keep_alive,
            model: load,
            ..closed_plan(1, duration_ns)
        };
        let source = (rng.below(6) == 0).then(|| rng.below(80));
        let stops = rng.below(5) == 0;
        let stop_ns = stops.then(|| SECOND_NS + rng.below(duration_ns + duration_ns / 2));
        // Only who asks can pause: what arrives in an open model has nobody behind it.
        let pauses = u64::from(plan.model.has_askers()) * rng.below(2);
        let pause_ns = pauses * rng.below(100 * MILLISECOND_NS);
        let late_ns = if is_absent { rng.below(2) * rng.below(20 * MILLISECOND_NS) } else { 0 };
        let link = link(rng);
        let script = script(rng, (seed, timeouts), dead, faults);
        Self {
            seed,
            plan,
            link,
            thread,
            stop_ns,
            source,
            pause_ns,
            late_ns,
            script,
            is_exact_queue: false,
            gather_ns: 0,
        }
    }

    /// Makes slots the only thing that requests wait for: the connections are open and have room, nothing fails, and what
    /// is due does not depend on the answers.
    #[must_use]
    pub fn with_exact_queue(mut self, depth: u32) -> Self {
        let mut rng = Rng::new(derive_seed(self.seed, "exact-queue"));
        while self.plan.model.has_askers()
            || matches!(self.plan.model, LoadModel::PacedBurst { limit: Some(_), .. })
        {
            self.plan.model = load(&mut rng, self.plan.limits.duration_ns);
        }
        let AdmissionModel::Managed { slots, .. } = self.plan.admission else { return self };
        let target =
            Target { host: "simulated".to_owned(), port: 80, addresses: vec![address(0, 1)] };
        self.plan.targets = Arc::new(vec![target]);
        self.plan.connections = slots.div_ceil(depth.max(1)).max(self.plan.connections);
        (self.plan.warm_connections, self.plan.preconnect) = (None, true);
        (self.plan.keep_alive, self.plan.batching) = (true, false);
        (self.thread, self.late_ns, self.link.oversleep_max_ns) = (Thread::default(), 0, 0);
        (self.source, self.stop_ns) = (None, None);
        self.script = Script {
            shares: Shares::default(),
            refused: 0,
            silent: 0,
            dead: Vec::new(),
            idle_close_ns: 0,
            ..self.script
        };
        self.is_exact_queue = true;
        self
    }

    /// By how much the generator itself may be late, ns.
    #[must_use]
    pub fn slack_ns(&self) -> u64 {
        if self.thread == Thread::default() && self.late_ns == 0 {
            // A sleep ends at most 60 us late, and answers are gathered for 50 us.
            return 250_000 + self.gather_ns;
        }
        let away_ns: u64 = self.thread.absences.iter().map(|absence| absence.for_ns).sum();
        // Ten thousand sends and completions may stand before one.
        let away_ns = away_ns + self.gather_ns;
        let work_ns = 10_000 * (self.thread.completion_ns + self.thread.send_ns);
        away_ns + work_ns + self.thread.timers_late_ns + self.late_ns + 100 * MILLISECOND_NS
    }

    /// Returns true if the generator's thread costs nothing and is never away.
    #[must_use]
    pub fn is_ideal(&self) -> bool {
        self.thread == Thread::default() && self.late_ns == 0
    }
}

fn load(rng: &mut Rng, duration_ns: u64) -> LoadModel {
    let arrivals = if rng.below(2) == 0 { Arrivals::Uniform } else { Arrivals::Poisson };
    let mut rate = || 5.0 + 300.0 * rng.uniform() * rng.uniform();
    let (a, b, c) = (rate(), rate(), rate());
    match rng.below(12) {
        0..=3 => LoadModel::Closed {
            clients: 1 + rng.below(16) as u32,
            think: match rng.below(4) {
                0 => Think::Fixed(rng.below(80 * MILLISECOND_NS)),
                1 => Think::AsResponse,
                _ => Think::None,
            },
            cycle_ns: rng.below(2) * (10 + rng.below(100)) * MILLISECOND_NS,
        },
        4..=6 => LoadModel::Open { rate_per_s: a, arrivals },
        7 => LoadModel::Burst {
            size: 1 + rng.below(30) as u32,
            every_ns: (10 + rng.below(200)) * MILLISECOND_NS,
        },
        8 => LoadModel::PacedBurst {
            size: 1 + rng.below(30) as u32,
            delay_ns: (1 + rng.below(120)) * MILLISECOND_NS,
            limit: (rng.below(5) > 0).then(|| rng.below(20) as u32),
        },
        9 => users(rng, duration_ns),
        _ => {
            let duration_ns = duration_ns / 3;
            let step = |from_per_s, to_per_s| Step { from_per_s, to_per_s, duration_ns };
            LoadModel::Profile { steps: vec![step(a, b), step(0.0, c), step(b, b)], arrivals }
        }
    }
}

fn users(rng: &mut Rng, duration_ns: u64) -> LoadModel {
    let during = Span { ns: 1 + duration_ns / 3 };
    let users = 1 + rng.below(30);
    let most = users as u32;
    let per_s = 2.0 + 40.0 * rng.uniform();
    let randomized = rng.below(2) == 0;
    let steps = match rng.below(6) {
        0 => vec![UserStep::AtOnce { users }],
        1 => {
            vec![UserStep::Constant { per_s, during, randomized }, UserStep::Peak { users, during }]
        }
        2 => vec![
            UserStep::Ramp { users, during },
            UserStep::Nothing { during },
            UserStep::RampRate { from_per_s: 0.0, to_per_s: per_s, during, randomized },
            UserStep::AtOnce { users: 1 },
        ],
        3 => vec![UserStep::Concurrent { users: most, during }],
        4 => vec![
            UserStep::Concurrent { users: most, during },
            UserStep::RampConcurrent { from: most, to: 1, during },
        ],
        _ => vec![
            UserStep::RampConcurrent { from: 0, to: most, during },
            UserStep::RampConcurrent { from: most, to: 1, during },
        ],
    };
    let think = match rng.below(3) {
        0 => Pause::Fixed(Span { ns: rng.below(80 * MILLISECOND_NS) }),
        1 => Pause::Exponential(Span { ns: rng.below(50 * MILLISECOND_NS) }),
        _ => Pause::None,
    };
    let pace = Span { ns: rng.below(2) * rng.below(100 * MILLISECOND_NS) };
    match UserProfile::new(steps) {
        Ok(profile) => LoadModel::Users { profile, requests: 1 + rng.below(6) as u32, think, pace },
        Err(_) => LoadModel::Closed { clients: most, think: Think::None, cycle_ns: 0 },
    }
}

fn address(target: usize, index: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, target as u8, 1 + index as u8], 80))
}

fn targets(rng: &mut Rng) -> (Vec<Target>, Vec<SocketAddr>) {
    let (mut targets, mut dead) = (Vec::new(), Vec::new());
    for number in 0..1 + rng.below(3) as usize {
        let addresses = match rng.below(12) {
            0 => Vec::new(),
            1..=2 => {
                dead.push(address(number, 0));
                vec![address(number, 0), address(number, 1)]
            }
            _ => vec![address(number, 1)],
        };
        targets.push(Target { host: "simulated".to_owned(), port: 80, addresses });
    }
    (targets, dead)
}

fn admission(rng: &mut Rng, is_managed: bool) -> AdmissionModel {
    if !is_managed && rng.below(4) > 0 {
        return AdmissionModel::Direct;
    }
    AdmissionModel::Managed {
        slots: 1 + rng.below(20) as u32,
        queue_max: rng.below(20) as u32,
        queue_timeout_ns: rng.below(300 * MILLISECOND_NS),
    }
}

fn link(rng: &mut Rng) -> Link {
    let latency_min_ns = rng.below(300_000);
    Link {
        latency_min_ns,
        latency_max_ns: latency_min_ns + rng.below(1_000_000),
        split_per_mille: rng.below(2) * 300,
        partial_per_mille: rng.below(2) * 300,
        oversleep_max_ns: rng.below(2) * 60_000,
    }
}

/// An ideal thread in most runs; in the others work costs time, and the core is taken away for some of it.
fn thread(rng: &mut Rng, duration_ns: u64) -> (Thread, bool) {
    if rng.below(4) > 0 {
        return (Thread::default(), false);
    }
    let mut absences = Vec::new();
    let mut at_ns = SECOND_NS + rng.below(duration_ns);
    for _ in 0..rng.below(4) {
        let for_ns = 1 + rng.below(60 * MILLISECOND_NS);
        let why = [Why::Neighbour, Why::Throttled, Why::Stolen, Why::Stopped];
        absences.push(Absence { from_ns: at_ns, for_ns, why: why[rng.below(4) as usize] });
        at_ns += for_ns + 1 + rng.below(200 * MILLISECOND_NS);
    }
    let thread = Thread {
        completion_ns: rng.below(2) * rng.below(4_000),
        send_ns: rng.below(2) * rng.below(4_000),
        timers_late_ns: rng.below(2) * rng.below(400_000),
        absences,
    };
    (thread, true)
}

fn script(
    rng: &mut Rng,
    (seed, timeouts): (u64, Timeouts),
    dead: Vec<SocketAddr>,
    faults: &[Fault],
) -> Script {
    let shares = Shares::draw(rng, faults);
    let weight = [0, 20, 100][rng.below(3) as usize];
    let least_ns = rng.below(15 * MILLISECOND_NS);
    let idles = u64::from(faults.contains(&Fault::IdleClosed));
    Script {
        seed,
        shares,
        service_ns: (least_ns, least_ns + rng.below(SERVICE_MAX_NS - least_ns)),
        spread_max_ns: rng.below(2) * rng.below(30 * MILLISECOND_NS),
        accept_max_ns: rng.below(15 * MILLISECOND_NS),
        refused: rng.below(2) * rng.below(weight + 1),
        silent: rng.below(2) * rng.below(weight + 1) / 3,
        dead,
        late_ns: 2 * timeouts.request_ns + 100 * MILLISECOND_NS,
        idle_close_ns: idles * rng.below(2) * rng.below(60 * MILLISECOND_NS),
    }
}
