//! Runs of any kind, cut into parts, and the requests of all parts together.

use super::walk::Walk;
use crate::shard::ShardPlan;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::rng::{Rng, splitmix64};
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Arrivals, LoadModel, ModelError, Pause, Slice, Step, Think};
use plimsoll_core::units::Span;
use plimsoll_wire::{Protocol, Sessions};

/// Fewest clients, users and requests of [`any_scenario`], and so the most parts that can share them.
pub const SHARED_MIN: u32 = 5;
/// Most requests of a walk of one shard.
const WALK_MAX: usize = 10_000;

/// A request as a target would see it: its intended start, ns, and its text.
pub type Asked = (u64, String);

/// A scenario with any load, in which everything is drawn from the seed.
///
/// # Panics
/// If one of its own load models cannot be read: a defect.
#[must_use]
pub fn any_scenario(seed: u64) -> Scenario {
    let mut rng = Rng::new(seed);
    let span = |rng: &mut Rng, most_ms: u64| Span { ns: (1 + rng.below(most_ms)) * MILLISECOND_NS };
    let requests = (rng.below(3) == 0).then(|| u64::from(SHARED_MIN) + rng.below(200));
    Scenario {
        load: any_load(&mut rng),
        duration: Some(span(&mut rng, 1_000)),
        requests,
        warmup: Span { ns: rng.below(2) * rng.below(SECOND_NS) },
        seed: rng.next_u64(),
        ..Scenario::default()
    }
}

fn any_load(rng: &mut Rng) -> LoadModel {
    let arrivals = if rng.below(2) == 0 { Arrivals::Uniform } else { Arrivals::Poisson };
    let clients = SHARED_MIN + rng.below(15) as u32;
    let ms = |rng: &mut Rng, most: u64| rng.below(most) * MILLISECOND_NS;
    match rng.below(7) {
        0 => LoadModel::Closed { clients, think: Think::None, cycle_ns: 0 },
        1 => {
            let pause = Pause::Exponential(Span { ns: 1 + ms(rng, 50) });
            let think = match rng.below(3) {
                0 => Think::Fixed(ms(rng, 50)),
                1 => Think::AsResponse,
                _ => Think::from(pause),
            };
            LoadModel::Closed { clients, think, cycle_ns: rng.below(2) * ms(rng, 100) }
        }
        2 => LoadModel::Open { rate_per_s: 1.0 + 300.0 * rng.uniform(), arrivals },
        3 => LoadModel::Burst { size: clients, every_ns: 20 * MILLISECOND_NS + ms(rng, 200) },
        4 => {
            let limit = (rng.below(2) == 0).then(|| rng.below(10) as u32);
            LoadModel::PacedBurst {
                size: clients,
                delay_ns: 20 * MILLISECOND_NS + ms(rng, 100),
                limit,
            }
        }
        5 => {
            let mut rate = || 1.0 + 300.0 * rng.uniform();
            let steps = (0..3).map(|_| (rate(), rate()));
            let steps = steps.map(|(from_per_s, to_per_s)| Step {
                from_per_s,
                to_per_s,
                duration_ns: SECOND_NS / 3,
            });
            LoadModel::Profile { steps: steps.collect(), arrivals }
        }
        _ => any_users(rng, clients),
    }
}

fn any_users(rng: &mut Rng, users: u32) -> LoadModel {
    let rate = 10 + rng.below(50);
    let text = match rng.below(6) {
        0 => format!("at once {users}"),
        1 => format!("nothing for 20ms, ramp {users} during 1s"),
        2 => format!("constant {rate}/s during 1s randomized"),
        3 => format!("ramp {rate}/s to 90/s during 1s, at once 7"),
        4 => format!("concurrent {users} during 1s, concurrent {users} to 31 during 1s"),
        _ => format!("peak {users} during 500ms, at once 5"),
    };
    LoadModel::Users {
        profile: text.parse().unwrap_or_else(|error| panic!("'{text}': {error}")),
        requests: rng.below(6) as u32,
        think: if rng.below(2) == 0 { Pause::None } else { Pause::Fixed(Span::seconds(1)) },
        pace: Span { ns: rng.below(2) * 30 * MILLISECOND_NS },
    }
}

/// The scenario in `parts` parts of `threads` threads each.
pub fn in_parts(whole: &Scenario, parts: u32, threads: u32) -> impl Iterator<Item = Scenario> {
    (0..parts).map(move |index| {
        let slice = Slice { index, of: parts };
        Scenario { slice, threads, ..whole.clone() }
    })
}

/// The first request that two runs do not have in common, and their numbers of requests, in words; `None` if they are the same
/// requests at the same times, in any order.
#[must_use]
pub fn difference(mut one: Vec<Asked>, mut other: Vec<Asked>) -> Option<String> {
    one.sort_unstable();
    other.sort_unstable();
    let at = one.iter().zip(&other).position(|(one, other)| one != other);
    let at = at.or((one.len() != other.len()).then_some(one.len().min(other.len())))?;
    let (lengths, pair) = ((one.len(), other.len()), (one.get(at), other.get(at)));
    Some(format!("request {at} of {lengths:?}: {pair:?}"))
}

/// The requests of one part, whose sessions are one for each thread, in the order of their shards.
///
/// # Errors
/// A load model that cannot be run.
pub fn asked<P: Protocol>(
    plan: &ShardPlan,
    sessions: Vec<Box<dyn Sessions<P> + Send>>,
    text: impl Fn(&P::Request) -> String,
) -> Result<Vec<Asked>, ModelError> {
    let shards = sessions.len() as u32;
    let answer_ns = |intended_ns: u64| 1 + splitmix64(intended_ns) % (30 * MILLISECOND_NS);
    let mut all = Vec::new();
    for (index, mut own) in (0..shards).zip(sessions) {
        let plan = plan.cut(index, shards);
        let walk = Walk::new(&plan, &mut *own, &answer_ns)?;
        walk.run(WALK_MAX, |intended_ns, request| all.push((intended_ns, text(request))));
    }
    Ok(all)
}
