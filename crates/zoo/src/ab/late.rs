//! Comparisons whose generator is late: its stalls hold up requests and replies on both sides, by chance or on one side more.

use super::block::{METRICS, Side, schedule};
use super::machine::Machine;
use super::models::{Model, RATE_PER_S};
use super::session::{ERROR, MARGIN, Plant};
use super::table::{Share, differs};
use crate::parallel::map;
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_decide::pairs::at_equal::{is_one_sided, restated};
use plimsoll_decide::pairs::{Direction, Finding, Kind, Metric, Pairs, Terms};
use std::fmt::Write;

/// Pairs of a session, and the length of a block, s: what the pilots of the other table lead to.
const PAIRS: usize = 80;
const BLOCK_S: f64 = 1.0;
/// The percentiles that have an answer; the mean comes with them.
const TIMES: usize = METRICS.len();

/// Stalls of a generator.
#[derive(Clone, Copy, Debug)]
pub struct Stalls {
    /// Stalls per second.
    pub per_s: f64,
    /// Their mean length, s; they are exponential.
    pub mean_s: f64,
}

/// A kind of delays, for A and for B.
#[derive(Clone, Copy, Debug)]
pub struct Kinds {
    /// Its words in the table.
    pub name: &'static str,
    sides: [Stalls; 2],
}

const fn stalls(per_s: f64, mean_s: f64) -> Stalls {
    Stalls { per_s, mean_s }
}

/// The kinds of the table.
pub const KINDS: [Kinds; 4] = [
    Kinds { name: "4 % of the time on both sides", sides: [stalls(8.0, 0.005); 2] },
    Kinds { name: "4 % for A, 5 % for B", sides: [stalls(8.0, 0.005), stalls(10.0, 0.005)] },
    Kinds { name: "4 % for A, 6 % for B", sides: [stalls(8.0, 0.005), stalls(12.0, 0.005)] },
    Kinds { name: "2 % for A, 6 % for B", sides: [stalls(4.0, 0.005), stalls(4.0, 0.015)] },
];

/// A session whose generator stalls.
#[derive(Clone, Copy, Debug)]
pub struct Session {
    /// Both servers.
    pub model: Model,
    /// Planted difference.
    pub plant: Plant,
    /// Delays of the generator.
    pub kinds: Kinds,
    /// Seed of all that is random.
    pub seed: u64,
}

/// Findings on p50, p95, p99 and the mean.
#[derive(Clone, Debug)]
pub struct Both {
    /// Of the ratios as they are.
    pub plain: Vec<Finding>,
    /// At equal delays.
    pub equal: Vec<Finding>,
    /// The delays have a side: the generator was the limit, and nothing is claimed.
    pub is_limited: bool,
}

impl Both {
    fn claims(&self, metric: usize) -> Option<Kind> {
        (!self.is_limited).then(|| self.equal[metric].kind)
    }
}

impl Stalls {
    /// Returns the stalls of a block, s: begin and end of each.
    fn draw(self, length_s: f64, rng: &mut Rng) -> Vec<(f64, f64)> {
        let mut all = Vec::new();
        let mut at = rng.exponential() / self.per_s;
        while at < length_s {
            let end = at + rng.exponential() * self.mean_s;
            all.push((at, end));
            at = end + rng.exponential() / self.per_s;
        }
        all
    }
}

/// Returns the time at which a generator that stalls comes to what is due at `at`, s.
fn served(at: f64, stalls: &[(f64, f64)]) -> f64 {
    let after = stalls.partition_point(|stall| stall.0 <= at);
    after.checked_sub(1).map_or(at, |index| at.max(stalls[index].1))
}

/// Measurements of a block: response times from the intended start, and both delays of each request, s.
struct Block {
    responses: Vec<f64>,
    delays: Vec<(f64, f64)>,
}

impl Block {
    fn mean(&self) -> f64 {
        self.responses.iter().sum::<f64>() / self.responses.len() as f64
    }

    fn share(&self, unit_s: f64) -> f64 {
        let sum: f64 = self.delays.iter().map(|both| both.0.min(unit_s) + both.1.min(unit_s)).sum();
        sum / unit_s / self.responses.len() as f64
    }
}

impl Session {
    /// Carries out the session.
    #[must_use]
    pub fn both(self) -> Both {
        let mut rng = Rng::new(derive_seed(self.seed, "late requests"));
        let mut machine = Machine::new(derive_seed(self.seed, "late machine"));
        let names = METRICS
            .map(|name| Metric { name: name.to_owned(), direction: Direction::LowerIsBetter });
        let terms = Terms { error: ERROR, margin: MARGIN, pairs_most: PAIRS };
        let mut pairs = Pairs::new(terms, names.to_vec());
        let mut columns = vec![Vec::new(); TIMES];
        let mut differences = Vec::new();
        for pair in 0..PAIRS {
            let begin_s = pair as f64 * 2.0 * BLOCK_S;
            let [a, b] = self.pair(begin_s, &mut machine, &mut rng);
            let unit_s = 0.5 * (a.mean() + b.mean());
            differences.push(Some(b.share(unit_s) - a.share(unit_s)));
            let [a, b] = [a, b].map(|block| super::block::measured(block.responses));
            let row: Vec<Option<f64>> =
                a.iter().zip(b).map(|(a, b)| Some((b? / (*a)?).ln())).collect();
            columns.iter_mut().zip(&row).for_each(|(column, value)| column.push(*value));
            pairs.add(&row);
        }
        let columns: Vec<Option<&[Option<f64>]>> =
            columns.iter().map(|column| Some(&column[..])).collect();
        let known: Vec<f64> = differences.iter().copied().flatten().collect();
        Both {
            plain: pairs.findings(),
            equal: restated(&pairs, &columns, &differences).findings(),
            is_limited: is_one_sided(&known),
        }
    }

    fn pair(self, begin_s: f64, machine: &mut Machine, rng: &mut Rng) -> [Block; 2] {
        let arrivals = schedule(RATE_PER_S, BLOCK_S, rng);
        let order = if rng.uniform() < 0.5 { [0, 1] } else { [1, 0] };
        let mut blocks = [None, None];
        for (place, side) in order.into_iter().enumerate() {
            let begin_s = begin_s + place as f64 * BLOCK_S;
            blocks[side] = Some(self.block(side, &arrivals, begin_s, machine, rng));
        }
        blocks.map(|block| block.expect("both sides had a block"))
    }

    fn block(
        self,
        side: usize,
        arrivals: &[f64],
        begin_s: f64,
        machine: &mut Machine,
        rng: &mut Rng,
    ) -> Block {
        let plant = if side == 0 { Plant::NONE } else { self.plant };
        let server =
            Side { model: self.model, factor: plant.service, response_factor: plant.response };
        let stalls = self.kinds.sides[side].draw(BLOCK_S, rng);
        let sent: Vec<f64> = arrivals.iter().map(|at| served(*at, &stalls)).collect();
        let times = server.responses(&sent, begin_s, machine, rng);
        let mut block = Block { responses: Vec::new(), delays: Vec::new() };
        for ((at, sent), time) in arrivals.iter().zip(&sent).zip(times) {
            let read = served(sent + time, &stalls);
            block.responses.push(read - at);
            block.delays.push((sent - at, read - sent - time));
        }
        block
    }
}

/// Sessions of a model and a kind of delays: between equal sides, and with a B whose response times are 5 % longer.
pub struct Row {
    model: &'static str,
    kinds: &'static str,
    alike: Vec<Both>,
    slower: Vec<Both>,
}

impl Row {
    /// Carries out the sessions, from `first_seed` on.
    #[must_use]
    pub fn of(model: Model, kinds: Kinds, sessions: u64, first_seed: u64) -> Self {
        let all = |plant| {
            map(sessions, |at| Session { model, plant, kinds, seed: first_seed + at }.both())
        };
        Self {
            model: model.name,
            kinds: kinds.name,
            alike: all(Plant::NONE),
            slower: all(Plant::RESPONSE),
        }
    }

    /// Returns the sessions that claim a difference between equal sides: of the ratios as they are, and at equal delays.
    #[must_use]
    pub fn false_claims(&self) -> [Share; 2] {
        let claims = |both: &Both| !both.is_limited && both.equal.iter().any(differs);
        [
            Share::of(&self.alike, |both: &Both| both.plain.iter().any(differs)),
            Share::of(&self.alike, claims),
        ]
    }

    /// Returns the sessions that find p50 and p95 worse where they are, at equal delays.
    #[must_use]
    pub fn found(&self) -> [Share; 2] {
        [0, 1].map(|metric| {
            Share::of(&self.slower, |both: &Both| both.claims(metric) == Some(Kind::Worse))
        })
    }

    /// Returns the sessions whose delays have a side.
    #[must_use]
    pub fn limited(&self) -> Share {
        Share::of(&self.alike, |both: &Both| both.is_limited)
    }
}

/// Returns the table in Markdown.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let mut out = "| model | stalls of the generator | generator-limited | false claims, as measured | at equal delays | 5 %: p50 found | 5 %: p95 found |\n\
                   |---|---|--:|--:|--:|--:|--:|\n"
        .to_owned();
    for row in rows {
        let [plain, equal] = row
            .false_claims()
            .map(|one| format!("{:.1} ({:.1})", one.percent(), one.bound_percent()));
        let [p50, p95] = row.found().map(|one| format!("{:.1}", one.percent()));
        let limited = format!("{:.1}", row.limited().percent());
        let _ = writeln!(
            out,
            "| {} | {} | {limited} | {plain} | {equal} | {p50} | {p95} |",
            row.model, row.kinds
        );
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ab::models;

    #[test]
    fn what_is_due_in_a_stall_waits_for_its_end() {
        let stalls = [(0.1, 0.2), (0.5, 0.6)];
        let times = [0.05, 0.1, 0.15, 0.2, 0.55, 0.7].map(|at| served(at, &stalls));
        assert_eq!(times, [0.05, 0.2, 0.2, 0.2, 0.6, 0.7]);
        let all = Stalls { per_s: 8.0, mean_s: 0.005 }.draw(1e4, &mut Rng::new(1));
        let share = all.iter().map(|(begin, end)| end - begin).sum::<f64>() / 1e4;
        assert!((0.036..0.042).contains(&share), "{share}");
    }

    /// Delays that B's generator has more of make B look slower in nearly every session, and are a limit; delays by chance are none.
    #[test]
    fn delays_of_one_side_are_claimed_only_where_they_are_not_measured() {
        let one_sided = Row::of(models::all()[1], KINDS[3], 60, 1);
        let [plain, equal] = one_sided.false_claims();
        assert!(plain.count > 50 && equal.count <= 3, "{plain:?} {equal:?}");
        assert!(one_sided.limited().count > 55);
        let by_chance = Row::of(models::all()[1], KINDS[0], 60, 1);
        assert!(by_chance.false_claims()[1].count <= 7, "{:?}", by_chance.false_claims());
        assert!(by_chance.found()[0].count > 50, "{:?}", by_chance.found());
    }
}
