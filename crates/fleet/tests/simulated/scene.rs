//! What happens in one simulated run.

use super::SECOND;
use plimsoll_core::rng::Rng;

/// Something that happens to one agent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It dies at this time, ns.
    Dies(u64),
    /// It stands still from this time on, for so long, ns.
    Freezes(u64, u64),
    /// Its link is cut from this time on, for so long, ns.
    IsCut(u64, u64),
    /// It fails in its preparation.
    Fails,
    /// It takes so long for its preparation, ns.
    Prepares(u64),
    /// It prepared another load.
    Differs,
    /// It starts so late, ns.
    StartsLate(u64),
    /// It counts a second that it does not send.
    SwallowsASecond,
    /// It changes a second behind its own back.
    CountsWrong,
    /// The process that had its place before still sends.
    HasAGhost,
}

/// One run.
#[derive(Clone, Debug)]
pub struct Scene {
    pub agents: usize,
    /// Time before the first measured second, s.
    pub warmup_s: u64,
    pub duration_s: u64,
    /// Percent of the packets that are lost and repeated.
    pub lost: u64,
    pub repeated: u64,
    /// Longest delay of a packet, ns.
    pub delay_ns: u64,
    pub fates: Vec<(usize, Fate)>,
    /// The bus is away from this time on, for so long, ns.
    pub away: Option<(u64, u64)>,
    /// The coordinator dies at this time.
    pub coordinator_dies_ns: Option<u64>,
    /// The user stops the run at this time.
    pub stop_ns: Option<u64>,
    /// Longest time by which an agent is late with its last second, ns.
    pub last_second_late_ns: u64,
}

impl Scene {
    /// A run without faults.
    pub fn quiet(agents: u64) -> Self {
        Self {
            agents: agents as usize,
            warmup_s: 0,
            duration_s: 6,
            lost: 0,
            repeated: 0,
            delay_ns: 200_000,
            fates: Vec::new(),
            away: None,
            coordinator_dies_ns: None,
            stop_ns: None,
            last_second_late_ns: 0,
        }
    }

    /// The run of a seed.
    pub fn of(seed: u64) -> Self {
        let mut rng = Rng::new(seed ^ 0x5ce7e);
        let mut scene = Self::quiet(1 + rng.below(5));
        scene.duration_s = 1 + rng.below(12);
        if rng.below(2) == 0 {
            scene.lost = rng.below(30);
            scene.repeated = rng.below(30);
            let longest_ns = if rng.below(4) == 0 { SECOND / 4 } else { SECOND / 100 };
            scene.delay_ns = 1 + rng.below(longest_ns);
        }
        let time = |rng: &mut Rng| rng.below(20 * SECOND);
        for _ in 0..[0, 0, 1, 1, 2][rng.below(5) as usize] {
            let agent = rng.below(scene.agents as u64) as usize;
            let fate = match rng.below(10) {
                0 => Fate::Dies(time(&mut rng)),
                1 => Fate::Freezes(time(&mut rng), rng.below(40 * SECOND)),
                2 => Fate::IsCut(time(&mut rng), rng.below(40 * SECOND)),
                3 => Fate::Fails,
                4 => Fate::Prepares(rng.below(150 * SECOND)),
                5 => Fate::Differs,
                6 => Fate::StartsLate(rng.below(SECOND / 5)),
                7 => Fate::SwallowsASecond,
                8 => Fate::CountsWrong,
                _ => Fate::HasAGhost,
            };
            scene.fates.push((agent, fate));
        }
        if rng.below(8) == 0 {
            scene.away = Some((time(&mut rng), rng.below(20 * SECOND)));
        }
        scene.coordinator_dies_ns = (rng.below(12) == 0).then(|| time(&mut rng));
        scene.stop_ns = (rng.below(10) == 0).then(|| time(&mut rng));
        scene
    }

    /// Returns true if nothing in it can make an honest result invalid.
    pub fn is_harmless(&self) -> bool {
        let is_mild = |(_, fate): &(usize, Fate)| match fate {
            Fate::HasAGhost => true,
            Fate::Prepares(ns) => *ns < 100 * SECOND,
            Fate::Freezes(_, ns) | Fate::IsCut(_, ns) => *ns < 10_000_000,
            Fate::StartsLate(ns) => *ns < 30_000_000,
            _ => false,
        };
        self.fates.iter().all(is_mild)
            && self.away.is_none()
            && self.coordinator_dies_ns.is_none()
            && self.stop_ns.is_none()
            && self.lost == 0
            && self.delay_ns < SECOND / 100
    }
}
