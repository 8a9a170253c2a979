//! Intended starts that do not depend on the answers: open, burst, profile.

mod skipping;

pub use skipping::Skipped;

use super::model::{Arrivals, LoadModel, Step};
use super::{Limits, Next, Slice};
use crate::rng::{Rng, derive_seed};

/// A stream of intended starts, computed one after the other.
///
/// With a rate function r(t) and its integral R(t), arrival k is at R(t) = k when arrivals are uniform, and
/// at R(t) = the sum of k + 1 unit exponentials when they are Poisson (the time-change of a Poisson process).
#[derive(Clone, Debug)]
pub struct ArrivalSchedule {
    shape: Shape,
    start_ns: u64,
    end_ns: u64,
    /// Arrivals of the whole that may be made.
    requests: u64,
    slice: Slice,
    /// Number of arrivals of this slice that were made.
    made: u64,
    /// The next intended start, already computed.
    upcoming: Option<u64>,
}

#[derive(Clone, Debug)]
enum Shape {
    Burst { size: u64, every_ns: u64 },
    Rate { curve: Curve, poisson: Option<Poisson> },
}

#[derive(Clone, Debug)]
struct Poisson {
    rng: Rng,
    /// Sum of the exponentials drawn so far.
    sum: f64,
    /// The number that were drawn.
    drawn: u64,
}

/// A piecewise linear rate.
#[derive(Clone, Debug)]
struct Curve {
    pieces: Vec<Piece>,
    /// Position from which the search continues: arrivals come in order.
    at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Piece {
    start_s: f64,
    duration_s: f64,
    from: f64,
    to: f64,
    /// Arrivals before this piece, and up to its end.
    count_before: f64,
    count_after: f64,
}

impl Curve {
    fn constant(rate: f64) -> Self {
        let piece = Piece {
            start_s: 0.0,
            duration_s: f64::INFINITY,
            from: rate,
            to: rate,
            count_before: 0.0,
            count_after: f64::INFINITY,
        };
        Self { pieces: vec![piece], at: 0 }
    }

    fn of_steps(steps: &[Step]) -> Self {
        let (mut start_s, mut count) = (0.0, 0.0);
        let mut pieces = Vec::with_capacity(steps.len());
        for step in steps {
            let duration_s = step.duration_ns as f64 / 1e9;
            let inside = duration_s * (step.from_per_s + step.to_per_s) / 2.0;
            pieces.push(Piece {
                start_s,
                duration_s,
                from: step.from_per_s,
                to: step.to_per_s,
                count_before: count,
                count_after: count + inside,
            });
            start_s += duration_s;
            count += inside;
        }
        Self { pieces, at: 0 }
    }

    /// The time, s, at which `count` arrivals are due; `None` past the curve's end.
    fn time_of(&mut self, count: f64) -> Option<f64> {
        let (at, seconds) = self.time_from(self.at, count)?;
        self.at = at;
        Some(seconds)
    }

    /// The same from piece `at` on, and the piece that it lies in.
    fn time_from(&self, mut at: usize, count: f64) -> Option<(usize, f64)> {
        while self.pieces.get(at)?.count_after <= count {
            at += 1;
        }
        let piece = self.pieces[at];
        let inside = count - piece.count_before;
        let slope = (piece.to - piece.from) / piece.duration_s;
        // The stable root of slope/2 t^2 + from t = inside; with slope 0 it is inside / from.
        let root = (piece.from * piece.from + 2.0 * slope * inside).max(0.0).sqrt();
        let t = if inside == 0.0 { 0.0 } else { 2.0 * inside / (piece.from + root) };
        Some((at, piece.start_s + t.min(piece.duration_s)))
    }
}

impl ArrivalSchedule {
    pub(super) fn new(
        model: &LoadModel,
        slice: Slice,
        limits: Limits,
        seed: u64,
        start_ns: u64,
    ) -> Self {
        let poisson = |arrivals: Arrivals| {
            (arrivals == Arrivals::Poisson).then(|| Poisson {
                rng: Rng::new(derive_seed(seed, "schedule")),
                sum: 0.0,
                drawn: 0,
            })
        };
        let shape = match model {
            LoadModel::Open { rate_per_s, arrivals } => {
                Shape::Rate { curve: Curve::constant(*rate_per_s), poisson: poisson(*arrivals) }
            }
            LoadModel::Profile { steps, arrivals } => {
                Shape::Rate { curve: Curve::of_steps(steps), poisson: poisson(*arrivals) }
            }
            LoadModel::Burst { size, every_ns } => {
                Shape::Burst { size: u64::from((*size).max(1)), every_ns: *every_ns }
            }
            LoadModel::Closed { .. } | LoadModel::Users { .. } | LoadModel::PacedBurst { .. } => {
                unreachable!("a closed model has no arrivals")
            }
        };
        let mut schedule = Self {
            shape,
            start_ns,
            end_ns: start_ns.saturating_add(limits.duration_ns),
            requests: limits.requests.unwrap_or(u64::MAX),
            slice,
            made: 0,
            upcoming: None,
        };
        schedule.upcoming = schedule.compute();
        schedule
    }

    /// The intended start of this slice's arrival number `made`.
    fn compute(&mut self) -> Option<u64> {
        let number = self.slice.global(self.made);
        if number >= self.requests {
            return None;
        }
        let offset_ns = match &mut self.shape {
            Shape::Burst { size, every_ns } => (number / *size).checked_mul(*every_ns)?,
            Shape::Rate { curve, poisson } => {
                let count = match poisson {
                    None => number as f64,
                    Some(p) => {
                        while p.drawn <= number {
                            p.sum += p.rng.exponential();
                            p.drawn += 1;
                        }
                        p.sum
                    }
                };
                let seconds = curve.time_of(count)?;
                // A time past u64 saturates and is then past the end.
                (seconds * 1e9).round() as u64
            }
        };
        let intended_ns = self.start_ns.saturating_add(offset_ns);
        (intended_ns < self.end_ns).then_some(intended_ns)
    }

    #[inline]
    pub(super) fn next(&mut self, now_ns: u64) -> Next {
        match self.upcoming {
            None => Next::Done,
            Some(intended_ns) if intended_ns <= now_ns => {
                self.made += 1;
                self.upcoming = self.compute();
                Next::Send { intended_ns, client: 0 }
            }
            Some(until_ns) => Next::Wait { until_ns },
        }
    }

    pub(super) fn stop(&mut self) {
        self.upcoming = None;
    }

    /// Time at which a run that its number of requests ends has lasted as long as they stand for, ns: N uniform arrivals take N gaps,
    /// bursts their distance each. A Poisson process begins with a gap, so that its last arrival ends it.
    pub(super) fn spans_until_ns(&self) -> Option<u64> {
        let requests = Some(self.requests).filter(|&requests| requests < u64::MAX)?;
        let offset_ns = match &self.shape {
            Shape::Burst { size, every_ns } => requests.div_ceil(*size).checked_mul(*every_ns)?,
            Shape::Rate { poisson: Some(_), .. } => return None,
            Shape::Rate { curve, poisson: None } => {
                let seconds = curve.clone().time_of(requests as f64)?;
                (seconds * 1e9).round() as u64
            }
        };
        Some(self.start_ns.saturating_add(offset_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::SECOND_NS;
    use crate::schedule::{LoadModel, Schedule};
    use proptest::prelude::*;

    /// All intended starts of a slice, asked for with a clock that is always late.
    fn all(model: &LoadModel, slice: Slice, limits: Limits) -> Vec<u64> {
        let mut schedule = Schedule::start(model, slice, limits, 11, 1_000).unwrap();
        let mut times = Vec::new();
        while let Next::Send { intended_ns, .. } = schedule.next(u64::MAX) {
            times.push(intended_ns);
        }
        times
    }

    fn models() -> impl Strategy<Value = LoadModel> {
        let arrivals = prop_oneof![Just(Arrivals::Uniform), Just(Arrivals::Poisson)];
        let step = (0.0f64..3000.0, 0.0f64..3000.0, 1_000_000u64..400_000_000).prop_map(
            |(from_per_s, to_per_s, duration_ns)| Step { from_per_s, to_per_s, duration_ns },
        );
        prop_oneof![
            (0.5f64..5000.0, arrivals.clone())
                .prop_map(|(rate_per_s, arrivals)| LoadModel::Open { rate_per_s, arrivals }),
            (1u32..50, 1_000_000u64..300_000_000)
                .prop_map(|(size, every_ns)| LoadModel::Burst { size, every_ns }),
            (proptest::collection::vec(step, 1..5), arrivals)
                .prop_map(|(steps, arrivals)| LoadModel::Profile { steps, arrivals }),
        ]
    }

    proptest! {
        #[test]
        fn slices_are_the_whole(model in models(), of in 1u32..7, requests in proptest::option::of(0u64..2000)) {
            let limits = Limits { duration_ns: SECOND_NS, requests };
            let whole = all(&model, Slice::WHOLE, limits);
            let mut parts: Vec<u64> =
                (0..of).flat_map(|index| all(&model, Slice { index, of }, limits)).collect();
            parts.sort_unstable();
            prop_assert!(whole.is_sorted());
            prop_assert_eq!(parts, whole);
        }

        #[test]
        fn a_uniform_rate_holds_at_every_moment(rate in 0.3f64..200_000.0, at_ns in 1u64..3_000_000_000) {
            let model = LoadModel::Open { rate_per_s: rate, arrivals: Arrivals::Uniform };
            let limits = Limits { duration_ns: u64::MAX / 2, requests: None };
            let mut schedule = Schedule::start(&model, Slice::WHOLE, limits, 0, 0).unwrap();
            let mut count = 0u64;
            while let Next::Send { .. } = schedule.next(at_ns) {
                count += 1;
            }
            // Arrivals 0..=floor(rate t), give or take the rounding of one to a nanosecond.
            let exact = rate * at_ns as f64 / 1e9;
            prop_assert!((count as f64 - (exact.floor() + 1.0)).abs() <= 1.0);
            prop_assert!((count as f64 - exact) <= 1.0 + 1e-6 * exact + 1e-3 * rate / 1e6 && count as f64 >= exact - 1e-6);
        }

        #[test]
        fn being_late_drops_nothing(model in models(), steps in proptest::collection::vec(1u64..200_000_000, 1..60)) {
            let limits = Limits::after(SECOND_NS);
            let whole = all(&model, Slice::WHOLE, limits);
            let mut schedule = Schedule::start(&model, Slice::WHOLE, limits, 11, 1_000).unwrap();
            let (mut now_ns, mut seen) = (0, Vec::new());
            for step in steps {
                now_ns += step;
                while let Next::Send { intended_ns, .. } = schedule.next(now_ns) {
                    prop_assert!(intended_ns <= now_ns);
                    seen.push(intended_ns);
                }
            }
            let expected: Vec<u64> = whole.into_iter().take_while(|&t| t <= now_ns).collect();
            prop_assert_eq!(seen, expected);
        }
    }

    proptest! {
        #[test]
        fn skipping_makes_the_same_arrivals(model in models(), of in 1u32..4, sent in 0usize..200, most in 1u64..500,
                                            until_ns in 0u64..1_300_000_000, requests in proptest::option::of(0u64..3000)) {
            let limits = Limits { duration_ns: SECOND_NS, requests };
            let slice = Slice { index: of - 1, of };
            let whole = all(&model, slice, limits);
            let mut schedule = Schedule::start(&model, slice, limits, 11, 1_000).unwrap();
            for _ in 0..sent {
                schedule.next(u64::MAX);
            }
            let due = &whole[sent.min(whole.len())..];
            let due = &due[..due.partition_point(|&at_ns| at_ns <= until_ns)];
            let owed = schedule.owed(until_ns);
            let is_random = matches!(&model, LoadModel::Open { arrivals: Arrivals::Poisson, .. }
                | LoadModel::Profile { arrivals: Arrivals::Poisson, .. });
            if is_random {
                prop_assert!(owed.abs_diff(due.len() as u64) as f64 <= 10.0 + 6.0 * (due.len() as f64 * f64::from(of)).sqrt());
            } else {
                prop_assert_eq!(owed, due.len() as u64);
            }
            let mut at = 0;
            while let Some(skipped) = schedule.skip(until_ns, most) {
                prop_assert!(skipped.count >= 1 && skipped.count <= most);
                at += skipped.count as usize;
                prop_assert!(at <= due.len());
                prop_assert_eq!(skipped.latest_ns, due[at - 1]);
            }
            prop_assert_eq!(at, due.len());
            let next = whole.get(sent + at).filter(|_| sent < whole.len());
            match schedule.next(u64::MAX) {
                Next::Send { intended_ns, .. } => prop_assert_eq!(Some(&intended_ns), next),
                _ => prop_assert_eq!(None, next),
            }
        }
    }

    #[test]
    fn a_hundred_thousand_million_arrivals_are_skipped_at_once() {
        let model = LoadModel::Open { rate_per_s: 1e7, arrivals: Arrivals::Uniform };
        let mut schedule =
            Schedule::start(&model, Slice::WHOLE, Limits::after(10_000 * SECOND_NS), 1, 0).unwrap();
        assert_eq!(schedule.owed(u64::MAX), 100_000_000_000);
        let skipped = schedule.skip(u64::MAX, u64::MAX).unwrap();
        assert_eq!((skipped.count, skipped.latest_ns), (100_000_000_000, 10_000 * SECOND_NS - 100));
        assert_eq!(schedule.next(u64::MAX), Next::Done);
    }

    #[test]
    fn a_number_of_requests_lasts_as_long_as_their_gaps() {
        let spans = |model: &LoadModel, requests| {
            let limits = Limits { duration_ns: 100 * SECOND_NS, requests };
            let slice = Slice { index: 1, of: 3 };
            Schedule::start(model, slice, limits, 1, SECOND_NS).unwrap().spans_until_ns()
        };
        let open = |arrivals| LoadModel::Open { rate_per_s: 10.0, arrivals };
        assert_eq!(spans(&open(Arrivals::Uniform), Some(10)), Some(2 * SECOND_NS));
        assert_eq!(spans(&open(Arrivals::Uniform), None), None);
        assert_eq!(spans(&open(Arrivals::Poisson), Some(10)), None);
        let bursts = LoadModel::Burst { size: 4, every_ns: SECOND_NS };
        assert_eq!(spans(&bursts, Some(8)), Some(3 * SECOND_NS));
        assert_eq!(spans(&bursts, Some(9)), Some(4 * SECOND_NS));
        let step = Step { from_per_s: 5.0, to_per_s: 5.0, duration_ns: 2 * SECOND_NS };
        let steps = LoadModel::Profile { steps: vec![step], arrivals: Arrivals::Uniform };
        assert_eq!(spans(&steps, Some(5)), Some(2 * SECOND_NS));
        assert_eq!(spans(&steps, Some(50)), None, "the profile ends first");
    }

    #[test]
    fn a_ramp_has_the_area_under_its_line() {
        let steps = vec![
            Step { from_per_s: 0.0, to_per_s: 1000.0, duration_ns: 2 * SECOND_NS },
            Step { from_per_s: 0.0, to_per_s: 0.0, duration_ns: SECOND_NS },
            Step { from_per_s: 500.0, to_per_s: 500.0, duration_ns: SECOND_NS },
        ];
        let model = LoadModel::Profile { steps, arrivals: Arrivals::Uniform };
        let times = all(&model, Slice::WHOLE, Limits::after(10 * SECOND_NS));
        assert_eq!(times.len(), 1500);
        let until = |s: u64| times.iter().filter(|&&t| t - 1_000 < s * SECOND_NS).count();
        assert_eq!((until(1), until(2), until(3)), (250, 1000, 1000));
    }

    #[test]
    fn poisson_gaps_are_exponential() {
        let model = LoadModel::Open { rate_per_s: 10_000.0, arrivals: Arrivals::Poisson };
        let times = all(&model, Slice::WHOLE, Limits::after(20 * SECOND_NS));
        let n = times.len() as f64;
        assert!((n - 200_000.0).abs() < 5.0 * 200_000f64.sqrt(), "{n}");
        let gaps: Vec<f64> = times.windows(2).map(|w| (w[1] - w[0]) as f64).collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let variance = gaps.iter().map(|g| (g - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
        let cv = variance.sqrt() / mean;
        assert!((cv - 1.0).abs() < 0.02, "{cv}");
        // Kolmogorov's statistic against the exponential; 1.95 / sqrt(n) is its 0.1 % point.
        let mut sorted = gaps.clone();
        sorted.sort_by(f64::total_cmp);
        let worst = sorted
            .iter()
            .enumerate()
            .map(|(i, g)| ((i as f64 + 0.5) / sorted.len() as f64 - (1.0 - (-g / 1e5).exp())).abs())
            .fold(0.0, f64::max);
        assert!(worst < 1.95 / n.sqrt(), "{worst}");
    }
}
