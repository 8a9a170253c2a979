//! Scenes drawn from a seed.

use super::scene::{START_NS, Scene};
use crate::sabotages::absences;
use crate::targets::station::{Behaviour, Ills, Service};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::rng::Rng;
use plimsoll_core::schedule::{Arrivals, LoadModel, Pause, Step, Think, UserProfile, UserStep};
use plimsoll_core::units::Span;
use plimsoll_engine::sim::thread::{Thread, Why};

/// Most requests of a run, so that a thousand runs take a minute or two.
const REQUESTS_MAX: f64 = 6_000.0;

/// A check that takes longer than this is no check, ns.
const CHECK_MAX_NS: u64 = 5 * MILLISECOND_NS;
/// Rendering and encrypting a large request takes this long, ns.
const SEND_MAX_NS: u64 = 300_000;

/// The kinds of sabotage, in the order of the table; a kind that stands here twice is drawn twice as often.
pub const KINDS: [&str; 24] = [
    "nothing",
    "nothing",
    "nothing",
    "target fails a share",
    "target never answers a share",
    "target answers a share late",
    "target closes or cuts",
    "reconnect storm",
    "target overloaded",
    "long answers at the edges",
    "target dies",
    "busy neighbours",
    "busy neighbours",
    "stopped in pulses",
    "stopped in pulses",
    "CPU quota",
    "CPU stolen by the host",
    "costly check",
    "costly check",
    "costly send",
    "late timers",
    "few connections",
    "stopped by the user",
    "two at once",
];

/// The kind of a seed's scene.
#[must_use]
pub fn kind(seed: u64) -> &'static str {
    KINDS[(seed % KINDS.len() as u64) as usize]
}

/// The scene of a seed: kinds take turns, everything else is drawn.
#[must_use]
pub fn scene(seed: u64) -> Scene {
    let mut rng = Rng::new(seed);
    let kind = kind(seed);
    let mut scene = healthy(seed, kind, &mut rng);
    sabotage(kind, &mut scene, &mut rng);
    scene
}

/// Requests per second that an ideal generator would send.
fn rate_of(scene: &Scene) -> f64 {
    let service_s = mean_s(scene.behaviour.service);
    match &scene.model {
        LoadModel::Closed { clients, think, .. } => {
            let think_s = match think {
                Think::Fixed(ns) => *ns as f64 / 1e9,
                _ => 0.0,
            };
            let alone = f64::from(*clients) / (service_s + think_s);
            match scene.behaviour.servers {
                0 => alone,
                servers => alone.min(f64::from(servers) / service_s),
            }
        }
        LoadModel::Open { rate_per_s, .. } => *rate_per_s,
        LoadModel::Burst { size, every_ns } => f64::from(*size) * 1e9 / *every_ns as f64,
        LoadModel::Profile { steps, .. } => {
            let sum: f64 = steps.iter().map(|s| s.from_per_s + s.to_per_s).sum();
            sum / (2.0 * steps.len() as f64)
        }
        _ => 100.0,
    }
}

fn mean_s(service: Service) -> f64 {
    match service {
        Service::Fixed(ns) | Service::Exponential(ns) => ns as f64 / 1e9,
    }
}

/// A run in which nothing is wrong: costs of a few microseconds and timers as they are.
fn healthy(seed: u64, kind: &'static str, rng: &mut Rng) -> Scene {
    let duration_ns = (2_000 + rng.below(3_000)) * MILLISECOND_NS;
    let warmup_ns = rng.below(2) * rng.below(1_000) * MILLISECOND_NS;
    let mean_ns = ((0.5 + 40.0 * rng.uniform() * rng.uniform()) * 1e6) as u64;
    let service =
        if rng.below(2) == 0 { Service::Fixed(mean_ns) } else { Service::Exponential(mean_ns) };
    let servers = [0, 0, 1, 4][rng.below(4) as usize];
    let seconds = duration_ns as f64 / 1e9;
    // Of a station with servers no more than it can serve: its overload is a kind of its own.
    let most = match servers {
        0 => 2_000.0,
        servers => 0.9 * f64::from(servers) * 1e9 / mean_ns as f64,
    };
    let rate = (most * (0.1 + 0.9 * rng.uniform())).min(REQUESTS_MAX / seconds);
    let model = draw_model(rng, rate, duration_ns, mean_ns);
    let thread = Thread {
        completion_ns: 1_000 + rng.below(4_000),
        send_ns: 1_000 + rng.below(4_000),
        timers_late_ns: rng.below(2) * rng.below(50_000),
        absences: Vec::new(),
    };
    let open = !model.has_askers();
    let managed = open && rng.below(4) == 0;
    let admission = if managed {
        AdmissionModel::Managed {
            slots: 8 + rng.below(200) as u32,
            queue_max: rng.below(200) as u32,
            queue_timeout_ns: (1 + rng.below(400)) * MILLISECOND_NS,
        }
    } else {
        AdmissionModel::Direct
    };
    // Nobody waits where all that are due may be in flight at once.
    let enough = (rate * seconds).clamp(64.0, REQUESTS_MAX) as u32;
    Scene {
        seed,
        kind,
        healthy: true,
        kinds: &[],
        behaviour: Behaviour {
            seed,
            service,
            servers,
            ills: Ills::default(),
            late_ns: 0,
            dies_ns: None,
        },
        model,
        duration_ns,
        warmup_ns,
        timeout_ns: (1_000 + rng.below(3_000)) * MILLISECOND_NS,
        admission,
        asked: None,
        enough,
        is_ideal: false,
        thread,
        stop_ns: None,
        posts: rng.below(2) * rng.below(1_000),
    }
}

fn draw_model(rng: &mut Rng, rate: f64, duration_ns: u64, mean_ns: u64) -> LoadModel {
    let arrivals = if rng.below(2) == 0 { Arrivals::Uniform } else { Arrivals::Poisson };
    let clients = 1 + rng.below(40);
    match rng.below(10) {
        0..=3 => LoadModel::Open { rate_per_s: rate, arrivals },
        4 => {
            let size = 2 + rng.below(60) as u32;
            LoadModel::Burst { size, every_ns: (f64::from(size) * 1e9 / rate) as u64 }
        }
        5 => {
            let step = |from: f64, to: f64| Step {
                from_per_s: rate * from,
                to_per_s: rate * to,
                duration_ns: duration_ns / 3,
            };
            LoadModel::Profile {
                steps: vec![step(0.2, 1.0), step(1.0, 1.0), step(1.0, 0.5)],
                arrivals,
            }
        }
        6 => draw_users(rng, rate, duration_ns),
        7 => LoadModel::Closed {
            clients: clients as u32,
            think: Think::Fixed((1 + rng.below(50)) * MILLISECOND_NS),
            cycle_ns: 0,
        },
        _ => {
            // As many as do not ask more than the rate: faster than that no simulation is needed.
            let most = (rate * mean_ns as f64 / 1e9).clamp(1.0, 40.0) as u64;
            LoadModel::Closed { clients: clients.min(most) as u32, think: Think::None, cycle_ns: 0 }
        }
    }
}

fn draw_users(rng: &mut Rng, rate: f64, duration_ns: u64) -> LoadModel {
    let requests = 1 + rng.below(6) as u32;
    let during = Span { ns: duration_ns };
    let per_s = (rate / f64::from(requests)).max(2.0);
    let steps = match rng.below(2) {
        0 => vec![UserStep::Constant { per_s, during, randomized: rng.below(2) == 0 }],
        _ => {
            vec![UserStep::RampRate { from_per_s: 1.0, to_per_s: per_s, during, randomized: false }]
        }
    };
    // A profile of constants with a length is always a profile.
    let profile = UserProfile::new(steps).unwrap_or_default();
    let think = match rng.below(3) {
        0 => Pause::Fixed(Span { ns: rng.below(50) * MILLISECOND_NS }),
        1 => Pause::Exponential(Span { ns: (1 + rng.below(30)) * MILLISECOND_NS }),
        _ => Pause::None,
    };
    LoadModel::Users { profile, requests, think, pace: Span { ns: 0 } }
}

/// Makes one thing wrong.
fn sabotage(kind: &'static str, scene: &mut Scene, rng: &mut Rng) {
    let end_ns = START_NS + scene.duration_ns + scene.timeout_ns;
    let share = 1 + rng.below(200);
    let ills = &mut scene.behaviour.ills;
    match kind {
        "target fails a share" => ills.failed = share,
        "target never answers a share" => ills.hanging = 1 + rng.below(100),
        "target answers a share late" => {
            ills.late = share;
            // Far from the timeout, so that it is no matter of luck which side of it an answer falls on.
            let percent = [20, 40, 60, 150, 200][rng.below(5) as usize];
            scene.behaviour.late_ns = scene.timeout_ns * percent / 100;
        }
        "target closes or cuts" => {
            (ills.closed, ills.cut) = (share / 2, share / 2);
            // What may be repeated is repeated on a kept connection only, and which those are is the generator's choice.
            scene.posts = 1_000;
        }
        "reconnect storm" => ills.last = [20, 200, 1000][rng.below(3) as usize],
        "target overloaded" => overload(scene, rng),
        "long answers at the edges" => {
            scene.behaviour.servers = 0;
            scene.behaviour.service = Service::Fixed(scene.duration_ns / (2 + rng.below(4)));
            scene.warmup_ns = scene.duration_ns * rng.below(7) / 10;
            scene.timeout_ns = 8 * SECOND_NS;
        }
        "target dies" => {
            // Often enough asked, and long enough before the end, for everybody to see it.
            let alive_ns = scene.duration_ns / 10 * (2 + rng.below(2));
            scene.behaviour.servers = 0;
            let rate_per_s = 50.0 + 450.0 * rng.uniform();
            scene.model = LoadModel::Open { rate_per_s, arrivals: Arrivals::Uniform };
            scene.admission = AdmissionModel::Direct;
            scene.behaviour.dies_ns = Some(START_NS + alive_ns);
            scene.warmup_ns = 0;
            scene.kinds = &["target-failed"];
            scene.healthy = false;
        }
        "stopped by the user" => {
            scene.stop_ns = Some(START_NS + scene.duration_ns * rng.below(100) / 100);
            scene.kinds = &["partial"];
            scene.healthy = false;
        }
        "two at once" => {
            sabotage_thread(KINDS[11 + rng.below(10) as usize], scene, rng, end_ns);
            sabotage_thread(KINDS[11 + rng.below(10) as usize], scene, rng, end_ns);
        }
        _ => sabotage_thread(kind, scene, rng, end_ns),
    }
}

/// Asks a station with servers for more than it can do.
fn overload(scene: &mut Scene, rng: &mut Rng) {
    let seconds = scene.duration_ns as f64 / 1e9;
    scene.behaviour.servers = 1 + rng.below(4) as u32;
    let rate_per_s = 200.0 + (REQUESTS_MAX / seconds - 200.0) * rng.uniform();
    let busy = 1.05 + rng.uniform();
    let mean_ns = (f64::from(scene.behaviour.servers) * busy * 1e9 / rate_per_s) as u64;
    scene.behaviour.service = Service::Fixed(mean_ns);
    scene.model = LoadModel::Open { rate_per_s, arrivals: Arrivals::Poisson };
    scene.admission = AdmissionModel::Direct;
    scene.timeout_ns = 30 * SECOND_NS;
    scene.enough = REQUESTS_MAX as u32;
}

/// Takes CPU time, timers or connections from the generator.
fn sabotage_thread(kind: &str, scene: &mut Scene, rng: &mut Rng, end_ns: u64) {
    let per_request_ns = 1e9 / rate_of(scene).max(1.0);
    let costly = |rng: &mut Rng| (per_request_ns * (0.05 + 1.8 * rng.uniform())) as u64;
    let stretch = absences::stretch(rng, START_NS, START_NS + scene.duration_ns, end_ns);
    match kind {
        "busy neighbours" => {
            let neighbours = [1, 2, 4][rng.below(3) as usize];
            absences::add(&mut scene.thread, absences::neighbours(rng, stretch, neighbours));
        }
        "stopped in pulses" => {
            let pulse_ns = [5, 20, 100][rng.below(3) as usize] * MILLISECOND_NS;
            let every_ns = pulse_ns + (50 + rng.below(950)) * MILLISECOND_NS;
            let pulses = absences::every(rng, stretch, every_ns, pulse_ns, Why::Stopped);
            absences::add(&mut scene.thread, pulses);
        }
        "CPU quota" => {
            let period_ns = 100 * MILLISECOND_NS;
            let without_ns = (10 + rng.below(80)) * MILLISECOND_NS;
            let throttled = absences::every(rng, stretch, period_ns, without_ns, Why::Throttled);
            absences::add(&mut scene.thread, throttled);
        }
        "CPU stolen by the host" => {
            let for_ns = (1 + rng.below(20)) * MILLISECOND_NS;
            let every_ns = for_ns + (20 + rng.below(500)) * MILLISECOND_NS;
            let stolen = absences::every(rng, stretch, every_ns, for_ns, Why::Stolen);
            absences::add(&mut scene.thread, stolen);
        }
        "costly check" => scene.thread.completion_ns = costly(rng).min(CHECK_MAX_NS),
        "costly send" => scene.thread.send_ns = costly(rng).min(SEND_MAX_NS),
        "late timers" => scene.thread.timers_late_ns = (200 + rng.below(5_000)) * 1_000,
        "few connections" => {
            let most = scene.model.clients().map_or(8, |clients| clients.max(2) / 2);
            scene.asked = Some(1 + rng.below(u64::from(most)) as u32);
        }
        _ => return,
    }
    scene.healthy = false;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_is_drawn_and_a_seed_draws_the_same_scene_again() {
        for seed in 0..2 * KINDS.len() as u64 {
            let (first, again) = (scene(seed), scene(seed));
            assert_eq!(first.kind, KINDS[seed as usize % KINDS.len()]);
            assert_eq!(format!("{first:?}"), format!("{again:?}"));
            assert!(first.model.validate().is_ok(), "{first:?}");
        }
    }

    #[test]
    fn a_kind_does_what_it_says() {
        let of = |kind: &str| {
            let place = KINDS.iter().position(|other| *other == kind).unwrap_or_default() as u64;
            scene(place + 24 * 10)
        };
        assert!(of("nothing").healthy && of("nothing").thread.absences.is_empty());
        assert!(of("busy neighbours").thread.absences.iter().all(|a| a.why == Why::Neighbour));
        assert!(of("stopped in pulses").thread.absences.iter().all(|a| a.why == Why::Stopped));
        assert!(!of("stopped in pulses").thread.absences.is_empty());
        assert!(of("few connections").asked.is_some_and(|asked| asked <= 20));
        assert!(of("target dies").behaviour.dies_ns.is_some());
        assert!(!of("two at once").healthy && of("target fails a share").healthy);
    }
}
