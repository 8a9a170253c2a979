//! A run drawn from a seed, and what it left behind.

use crate::asker::{Asker, CLASSES, Diary};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::interval::{Interval, IntervalLine};
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::{
    Arrivals, Limits, LoadModel, Pause, Slice, Step, Think, UserProfile, UserStep,
};
use plimsoll_core::seek::plant::Window;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::ConnectionLimit;
use plimsoll_engine::shard::{Message, Part, Shard, ShardEnd, ShardPlan, Timeouts};
use plimsoll_engine::sim::http::{
    ConnectFaults, Freeze, HttpPeer, HttpScript, Knock, RequestFaults, Seen,
};
use plimsoll_engine::sim::{Link, Peer, SimNet, closed_plan};
use plimsoll_engine::target::Target;
use plimsoll_engine::windows::{WindowCounts, WindowLimit};
use plimsoll_wire::http1::Http1;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Longest service time, ns; far below every timeout, so that an answer is never a matter of luck.
const SERVICE_MAX_NS: u64 = 40 * MILLISECOND_NS;
/// A response time that some requests exceed, ns.
pub const WINDOW_LIMIT_NS: u64 = 20 * MILLISECOND_NS;
/// Windows of 100 ms, enough for the longest run with all it waits for.
const WINDOWS: usize = 200;

#[derive(Clone, Debug)]
pub struct Scene {
    pub seed: u64,
    pub plan: ShardPlan,
    pub script: HttpScript,
    pub link: Link,
    /// Requests before the sources are used up.
    pub source: Option<u64>,
    /// When somebody stops the run, ns on the clock.
    pub stop_ns: Option<u64>,
    pub posts: u64,
    /// How long a client pauses after a request that was lost, ns.
    pub pause_ns: u64,
    /// Its delay at the agreed start, ns.
    pub late_ns: u64,
}

/// What a run left behind.
pub struct Outcome {
    pub end: ShardEnd,
    pub seconds: Vec<Interval>,
    pub diary: Diary,
    pub seen: Vec<Seen>,
    pub knocks: Vec<Knock>,
    /// Connections that the server closed behind a reply, or because nothing came.
    pub closed: u64,
    pub start_ns: u64,
    pub over_ns: u64,
    pub failures_told: usize,
    /// Counts by when requests were due.
    pub windows: Vec<Window>,
}

impl Outcome {
    /// The measured part, merged.
    pub fn totals(&self) -> Interval {
        let mut totals = Interval::new(CLASSES);
        self.seconds.iter().for_each(|second| totals.merge(second));
        totals.merge(&self.end.rest);
        totals
    }

    /// Everything that must be the same when the run is done again.
    pub fn record(&self) -> String {
        let mut lines: Vec<IntervalLine> = self.seconds.iter().map(IntervalLine::from).collect();
        lines.push((&self.end.rest).into());
        lines.extend(self.end.warmup.iter().map(IntervalLine::from));
        let intervals = serde_json::to_string(&lines).unwrap();
        format!("{intervals} {:?} {:?} {}", self.diary.asked, self.seen, self.over_ns)
    }
}

pub fn address(target: usize, index: usize) -> SocketAddr {
    SocketAddr::from(([127, 0, target as u8, 1 + index as u8], 80))
}

pub fn target(addresses: Vec<SocketAddr>) -> Target {
    Target { host: "simulated".to_owned(), port: 80, addresses }
}

fn draw_model(rng: &mut Rng, duration_ns: u64) -> LoadModel {
    let arrivals = if rng.below(2) == 0 { Arrivals::Uniform } else { Arrivals::Poisson };
    let mut rate = || 5.0 + 250.0 * rng.uniform() * rng.uniform();
    let (a, b, c) = (rate(), rate(), rate());
    match rng.below(13) {
        11 | 12 => LoadModel::PacedBurst {
            size: 1 + rng.below(30) as u32,
            delay_ns: (1 + rng.below(120)) * MILLISECOND_NS,
            limit: (rng.below(5) > 0).then(|| rng.below(20) as u32),
        },
        8..=10 => draw_users(rng, duration_ns),
        0..=3 => LoadModel::Closed {
            clients: 1 + rng.below(20) as u32,
            think: match rng.below(4) {
                0 => Think::Fixed(rng.below(80 * MILLISECOND_NS)),
                1 => Think::AsResponse,
                _ => Think::None,
            },
            cycle_ns: rng.below(2) * (10 + rng.below(100)) * MILLISECOND_NS,
        },
        4 | 5 => LoadModel::Open { rate_per_s: a, arrivals },
        6 => LoadModel::Burst {
            size: 1 + rng.below(30) as u32,
            every_ns: (50 + rng.below(300)) * MILLISECOND_NS,
        },
        _ => {
            let step = |from_per_s, to_per_s| {
                let duration_ns = duration_ns / 3;
                Step { from_per_s, to_per_s, duration_ns }
            };
            LoadModel::Profile { steps: vec![step(a, b), step(0.0, c), step(b, b)], arrivals }
        }
    }
}

fn draw_users(rng: &mut Rng, duration_ns: u64) -> LoadModel {
    let during = Span { ns: 1 + duration_ns / 3 };
    let users = 1 + rng.below(30);
    let most = users as u32;
    let per_s = 2.0 + 40.0 * rng.uniform();
    let randomized = rng.below(2) == 0;
    let steps = match rng.below(5) {
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
    let profile = UserProfile::new(steps).unwrap();
    LoadModel::Users { profile, requests: 1 + rng.below(6) as u32, think, pace }
}

fn draw_targets(rng: &mut Rng) -> (Vec<Target>, Vec<SocketAddr>) {
    let (mut targets, mut dead) = (Vec::new(), Vec::new());
    for number in 0..1 + rng.below(3) as usize {
        targets.push(target(match rng.below(12) {
            0 => Vec::new(),
            1..=3 => {
                dead.push(address(number, 0));
                vec![address(number, 0), address(number, 1)]
            }
            _ => vec![address(number, 1)],
        }));
    }
    (targets, dead)
}

fn draw_script(rng: &mut Rng, seed: u64, timeouts: Timeouts, dead: Vec<SocketAddr>) -> HttpScript {
    // A third of the runs without faults, a third with some, a third with many.
    let weight = [0, 8, 50][rng.below(3) as usize];
    let mut share = || rng.below(2) * rng.below(weight + 1);
    let requests = RequestFaults {
        stalled: share() / 3,
        late: share() / 3,
        reset: share(),
        closed: share(),
        reset_inside: share(),
        cut: share(),
        half_open: share() / 3,
        garbage: share(),
        status: share(),
    };
    let connects = ConnectFaults { dead, refused: share(), silent: share() / 3 };
    let least_ns = rng.below(15 * MILLISECOND_NS);
    HttpScript {
        seed,
        service_ns: (least_ns, least_ns + rng.below(SERVICE_MAX_NS - least_ns)),
        accept_ns: (0, rng.below(15 * MILLISECOND_NS)),
        body_max: [0, 50, 3000, 70_000][rng.below(4) as usize],
        connects,
        requests,
        late_ns: 2 * timeouts.request_ns,
        idle_close_ns: rng.below(2) * rng.below(60 * MILLISECOND_NS),
        close_delimited: rng.below(2) * rng.below(100),
        connection_close: rng.below(2) * rng.below(100),
        freeze: (rng.below(6) == 0).then_some(Freeze {
            from_ns: SECOND_NS,
            every_ns: 300 * MILLISECOND_NS,
            for_ns: 60 * MILLISECOND_NS,
        }),
    }
}

fn draw_link(rng: &mut Rng) -> Link {
    let latency_min_ns = rng.below(300_000);
    Link {
        latency_min_ns,
        latency_max_ns: latency_min_ns + rng.below(1_000_000),
        split_per_mille: rng.below(2) * 300,
        partial_per_mille: rng.below(2) * 300,
        oversleep_max_ns: rng.below(2) * 60_000,
    }
}

fn draw_admission(rng: &mut Rng) -> AdmissionModel {
    if rng.below(3) > 0 {
        return AdmissionModel::Direct;
    }
    AdmissionModel::Managed {
        slots: 1 + rng.below(20) as u32,
        queue_max: rng.below(20) as u32,
        queue_timeout_ns: rng.below(500 * MILLISECOND_NS),
    }
}

impl Scene {
    /// A scene in which everything is drawn from the seed.
    pub fn draw(seed: u64) -> Self {
        let mut rng = Rng::new(seed);
        let rng = &mut rng;
        let duration_ns = (100 + rng.below(1400)) * MILLISECOND_NS;
        let model = draw_model(rng, duration_ns);
        let timeouts = Timeouts {
            connect_ns: (200 + rng.below(300)) * MILLISECOND_NS,
            request_ns: (250 + rng.below(400)) * MILLISECOND_NS,
        };
        let (targets, dead) = draw_targets(rng);
        let connections = match model.clients() {
            Some(clients) if rng.below(3) > 0 => clients,
            _ => 1 + rng.below(20) as u32,
        };
        let separate = rng.below(4);
        let plan = ShardPlan {
            slice: Slice::WHOLE,
            seed: rng.next_u64(),
            limits: Limits {
                duration_ns,
                requests: (rng.below(4) == 0).then(|| 1 + rng.below(100)),
            },
            warmup_ns: if separate == 0 { rng.below(duration_ns) } else { 0 },
            ignore_first: if separate == 1 { rng.below(10) as u32 } else { 0 },
            connections,
            warm_connections: None,
            connection_limit: ConnectionLimit::None,
            admission: draw_admission(rng),
            timeouts,
            targets: Arc::new(targets),
            tls: None,
            classes: CLASSES,
            spin_ns: rng.below(2) * 50_000,
            batching: model.is_full_speed() && rng.below(2) == 0,
            preconnect: rng.below(2) == 0,
            keep_alive: true,
            part: Part::default(),
            model,
        };
        let source = (rng.below(6) == 0).then(|| rng.below(60));
        let stop_ns =
            (rng.below(5) == 0).then(|| SECOND_NS + rng.below(duration_ns + duration_ns / 2));
        let posts = rng.below(2) * rng.below(1000);
        let link = draw_link(rng);
        let script = draw_script(rng, seed, timeouts, dead);
        // Only who asks can pause: what arrives in an open model has nobody behind it.
        let pauses = u64::from(plan.model.has_askers()) * rng.below(2);
        let pause_ns = pauses * rng.below(100 * MILLISECOND_NS);
        Self { seed, plan, script, link, source, stop_ns, posts, pause_ns, late_ns: 0 }
    }

    /// A uniform open load of 1000 a second on a server that answers at once, except that it is frozen for the
    /// first `frozen_ns` of every `every_ns`.
    pub fn frozen(connections: u32, every_ns: u64, frozen_ns: u64, duration_ns: u64) -> Self {
        let start_ns = SECOND_NS + MILLISECOND_NS;
        let timeout_ns = 4 * frozen_ns;
        Self {
            seed: 1,
            plan: ShardPlan {
                model: LoadModel::Open { rate_per_s: 1000.0, arrivals: Arrivals::Uniform },
                connections,
                timeouts: Timeouts { connect_ns: timeout_ns, request_ns: timeout_ns },
                targets: Arc::new(vec![target(vec![address(0, 1)])]),
                classes: CLASSES,
                ..closed_plan(1, duration_ns)
            },
            script: HttpScript {
                seed: 1,
                service_ns: (0, 0),
                accept_ns: (0, 0),
                body_max: 10,
                connects: ConnectFaults::default(),
                requests: RequestFaults::default(),
                late_ns: 0,
                idle_close_ns: 0,
                close_delimited: 0,
                connection_close: 0,
                freeze: Some(Freeze { from_ns: start_ns, every_ns, for_ns: frozen_ns }),
            },
            link: Link { latency_min_ns: 0, latency_max_ns: 0, ..Link::default() },
            source: None,
            stop_ns: None,
            posts: 0,
            pause_ns: 0,
            late_ns: 0,
        }
    }

    /// Carries the run out.
    pub fn run(&self) -> Outcome {
        let peer = Rc::new(RefCell::new(HttpPeer::new(self.script.clone())));
        let cast = Cast {
            plan: self.plan.clone(),
            link: self.link,
            seed: self.seed,
            source: self.source,
            stop_ns: self.stop_ns,
            posts: self.posts,
            pause_ns: self.pause_ns,
            late_ns: self.late_ns,
        };
        let mut outcome = cast.play(peer.clone());
        let mut peer = peer.borrow_mut();
        outcome.seen = std::mem::take(&mut peer.seen);
        outcome.knocks = std::mem::take(&mut peer.knocks);
        outcome.closed = peer.closed;
        outcome
    }
}

/// A run but for its servers.
#[derive(Clone, Debug)]
pub struct Cast {
    pub plan: ShardPlan,
    pub link: Link,
    pub seed: u64,
    pub source: Option<u64>,
    pub stop_ns: Option<u64>,
    pub posts: u64,
    /// How long a client pauses after a request that was lost, ns.
    pub pause_ns: u64,
    /// Its delay at the agreed start, ns.
    pub late_ns: u64,
}

impl Cast {
    /// Carries the run out against `peer`, which keeps its own list of what it saw.
    pub fn play<P: Peer + 'static>(self, peer: Rc<RefCell<P>>) -> Outcome {
        let clock = VirtualClock::new();
        clock.advance_to(SECOND_NS);
        let mut net = SimNet::new(clock.clone(), peer, self.link, self.seed);
        let stop = Arc::new(AtomicBool::new(false));
        if let Some(stop_ns) = self.stop_ns {
            let stop = stop.clone();
            net.at(stop_ns, move || stop.store(true, Ordering::Relaxed));
        }
        let diary = Rc::new(RefCell::new(Diary::default()));
        let asker = Asker {
            diary: diary.clone(),
            rng: Rng::new(self.seed),
            left: self.source.unwrap_or(u64::MAX),
            posts: self.posts,
            pause_ns: self.pause_ns,
            pauses: Vec::new(),
        };
        let seconds = Rc::new(RefCell::new((Vec::new(), 0)));
        let outbox = keeper(self.seed, seconds.clone());
        let limits = [WINDOW_LIMIT_NS, u64::MAX].map(WindowLimit::of_all);
        let counts = Arc::new(WindowCounts::new(100 * MILLISECOND_NS, WINDOWS, &limits));
        let mut plan = self.plan.clone();
        plan.part.windows.push(counts.clone());
        let shard =
            Shard::new(plan, Http1::default(), net, clock.clone(), Box::new(asker), outbox, stop)
                .unwrap();
        let mut start_ns = 0;
        let end = shard
            .run(|| {
                start_ns = clock.now_ns() + MILLISECOND_NS;
                if self.late_ns > 0 {
                    clock.advance_to(start_ns + self.late_ns);
                }
                start_ns
            })
            .unwrap();
        let (seconds, failures_told) = seconds.take();
        let diary = diary.take();
        let over_ns = clock.now_ns();
        let mut windows = vec![Window::default(); WINDOWS];
        counts.add_to(&mut windows);
        let (seen, knocks, closed) = (Vec::new(), Vec::new(), 0);
        Outcome {
            end,
            seconds,
            diary,
            seen,
            knocks,
            closed,
            start_ns,
            over_ns,
            failures_told,
            windows,
        }
    }
}

/// The seconds of a run and the number of its failures.
type Kept = Rc<RefCell<(Vec<Interval>, usize)>>;

/// Keeps seconds and failures. In a third of the runs the keeper is behind, and hands memory back when it is asked for it again.
fn keeper(seed: u64, kept: Kept) -> Box<dyn FnMut(Message) -> Option<Box<Interval>>> {
    let (is_behind, mut rng) = (seed.is_multiple_of(3), Rng::new(seed));
    let mut held: Option<Box<Interval>> = None;
    Box::new(move |message| match message {
        Message::Second(mut second) => {
            assert!(held.is_none(), "a shard has two intervals, however slow their keeper is");
            kept.borrow_mut().0.push((*second).clone());
            second.clear();
            held = Some(second);
            held.take_if(|_| !is_behind)
        }
        Message::Failure(_) => {
            kept.borrow_mut().1 += 1;
            None
        }
        Message::CountsFrom(_) => None,
        Message::WantsSpare => held.take_if(|_| rng.below(3) == 0),
    })
}
