//! A measured curve over the rate, and the rate at which it reaches a limit.
//!
//! The ordinate is a percentile of the response time, or the share of requests that are later than a limit. Both grow with
//! the rate, so the curve is made monotone by pooling adjacent violators (Ayer et al., Ann. Math. Stat. 26 (1955) 641), each
//! point weighted by its requests. Between the points the logarithm of the ordinate is linear in the rate.
//!
//! An overloaded target may answer fewer requests per second than a loaded one. At the end of the curve such a point is pooled with
//! faster ones, and their mean may be below a limit that the point itself breaks: then the limit is reached at its rate.

use super::RelativeError;

/// A point of a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Measured {
    /// Rate, requests per second.
    pub per_s: f64,
    /// Percentile, or share of late requests; above 0.
    pub value: f64,
    /// Weight, such as the number of requests; above 0.
    pub weight: f64,
    /// Standard error of the value as a share of it, with its degrees of freedom, if known.
    pub error: Option<RelativeError>,
}

/// Requests of a stretch of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Batch {
    /// Requests.
    pub requests: u64,
    /// Those of them that were later than the limit, or failed.
    pub late: u64,
}

/// Returns the share of late requests, and its standard error as a share of it; the error is missing below two batches. A run
/// without a late request counts as one with half of one.
#[must_use]
pub fn late_share(batches: &[Batch]) -> Option<(f64, Option<RelativeError>)> {
    let requests: u64 = batches.iter().map(|one| one.requests).sum();
    let late: u64 = batches.iter().map(|one| one.late).sum();
    if requests == 0 {
        return None;
    }
    let share = (late as f64).max(0.5) / requests as f64;
    let count = batches.len() as f64;
    let error = (batches.len() > 1).then(|| {
        let off = |one: &Batch| (one.late as f64 - share * one.requests as f64).powi(2);
        let sum: f64 = batches.iter().map(off).sum();
        let share = (sum * count / (count - 1.0)).sqrt() / (share * requests as f64);
        RelativeError { share, freedom: count - 1.0 }
    });
    Some((share, error))
}

/// Least slope with which an error of the value becomes one of the rate. Where a curve is flatter, the rate is hardly known.
const SLOPE_MIN: f64 = 0.2;

/// Returns the rate at which a measured value reaches a limit, and the error of that rate, if the values' errors are known: the
/// error of the value at the limit, by the slope of the curve there.
#[must_use]
pub fn reached(measured: &[Measured], limit: f64) -> Option<(Crossing, Option<RelativeError>)> {
    let curve = Curve::of(measured);
    let crossing = curve.crossing(limit)?;
    let Crossing::At(per_s) = crossing else { return Some((crossing, None)) };
    let below = measured.iter().filter(|one| one.per_s <= per_s);
    let left = below.max_by(|a, b| a.per_s.total_cmp(&b.per_s))?;
    let above = measured.iter().filter(|one| one.per_s > per_s);
    let right = above.min_by(|a, b| a.per_s.total_cmp(&b.per_s)).unwrap_or(left);
    let share = (per_s - left.per_s) / (right.per_s - left.per_s).max(f64::MIN_POSITIVE);
    let error = left.error.zip(right.error).map(|(a, b)| {
        let own = ((1.0 - share) * a.share).hypot(share * b.share);
        let slope = curve.slope(per_s).unwrap_or(SLOPE_MIN).max(SLOPE_MIN);
        RelativeError { share: own / slope, freedom: a.freedom.min(b.freedom) }
    });
    Some((crossing, error.filter(|error| error.share > 0.0)))
}

/// A monotone curve over the rate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Curve {
    /// Rates in ascending order, and the logarithms of the pooled values.
    points: Vec<(f64, f64)>,
    /// The same rates with the logarithms of the values as they were measured.
    single: Vec<(f64, f64)>,
}

/// Place of a limit on a curve.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Crossing {
    /// The limit is reached at this rate, per second.
    At(f64),
    /// All of the curve is below the limit: it is reached above this rate, per second.
    Above(f64),
    /// All of the curve is above the limit: it is reached below this rate, per second.
    Below(f64),
}

impl Curve {
    /// Makes a curve. Points without a positive rate, value and weight are left out; points of one rate are pooled.
    #[must_use]
    pub fn of(measured: &[Measured]) -> Self {
        let is_whole = |one: &&Measured| {
            [one.per_s, one.value, one.weight].iter().all(|x| x.is_finite() && *x > 0.0)
        };
        let mut sorted: Vec<Measured> = measured.iter().filter(is_whole).copied().collect();
        sorted.sort_by(|a, b| a.per_s.total_cmp(&b.per_s));
        let single = sorted.iter().map(|one| (one.per_s, one.value.ln())).collect();
        let mut blocks: Vec<Block> = Vec::new();
        for one in sorted {
            let same = blocks.last_mut().filter(|last| last.ends.1 == one.per_s);
            let next = Block {
                rates: vec![one.per_s],
                ends: (one.per_s, one.per_s),
                sum: one.weight * one.value.ln(),
                weight: one.weight,
            };
            match same {
                Some(last) => last.pool(&Block { rates: Vec::new(), ..next }),
                None => blocks.push(next),
            }
            while let [.., before, last] = blocks.as_mut_slice() {
                if before.mean() <= last.mean() {
                    break;
                }
                before.pool(last);
                blocks.pop();
            }
        }
        let points = |block: &Block| {
            let mean = block.mean();
            block.rates.iter().map(|rate| (*rate, mean)).collect::<Vec<_>>()
        };
        Self { points: blocks.iter().flat_map(points).collect(), single }
    }

    /// The lowest and the highest rate, per second.
    #[must_use]
    pub fn range_per_s(&self) -> Option<(f64, f64)> {
        Some((self.points.first()?.0, self.points.last()?.0))
    }

    /// Returns the value at a rate inside the measured range, otherwise nothing.
    #[must_use]
    pub fn at(&self, per_s: f64) -> Option<f64> {
        let (low, high) = self.range_per_s()?;
        if !(low..=high).contains(&per_s) {
            return None;
        }
        let above = self.points.partition_point(|(rate, _)| *rate < per_s);
        let (right, right_ln) = self.points[above];
        if right == per_s {
            return Some(right_ln.exp());
        }
        let (left, left_ln) = self.points[above - 1];
        let share = (per_s - left) / (right - left);
        Some((left_ln + share * (right_ln - left_ln)).exp())
    }

    /// Returns the highest rate at which the value is at most `limit`; nothing for a curve without a point.
    #[must_use]
    pub fn crossing(&self, limit: f64) -> Option<Crossing> {
        let ln = limit.ln();
        let (low, high) = self.range_per_s()?;
        let above = self.points.partition_point(|(_, value)| *value <= ln);
        if above == 0 {
            return Some(Crossing::Below(low));
        }
        if above == self.points.len() {
            let broken = self.single.iter().find(|(_, value)| *value > ln);
            return Some(broken.map_or(Crossing::Above(high), |(rate, _)| Crossing::At(*rate)));
        }
        let ((left, left_ln), (right, right_ln)) = (self.points[above - 1], self.points[above]);
        Some(Crossing::At(left + (right - left) * (ln - left_ln) / (right_ln - left_ln)))
    }

    /// Returns the slope at a rate inside the curve: the change of the value's logarithm by the change of the rate's
    /// logarithm. It is that of the segment to which the rate belongs; nothing if that is flat or there is none.
    #[must_use]
    pub fn slope(&self, per_s: f64) -> Option<f64> {
        let above = self.points.partition_point(|(rate, _)| *rate < per_s);
        let right = self.points.get(above.max(1))?;
        let left = self.points.get(above.max(1) - 1)?;
        let slope = (right.1 - left.1) / (right.0 / left.0).ln();
        (slope > 0.0 && slope.is_finite()).then_some(slope)
    }
}

/// Points that are pooled.
struct Block {
    rates: Vec<f64>,
    ends: (f64, f64),
    sum: f64,
    weight: f64,
}

impl Block {
    fn mean(&self) -> f64 {
        self.sum / self.weight
    }

    fn pool(&mut self, next: &Self) {
        self.rates.extend(&next.rates);
        self.ends.1 = next.ends.1;
        self.sum += next.sum;
        self.weight += next.weight;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(points: &[(f64, f64)]) -> Curve {
        let measured = |(per_s, value): &(f64, f64)| Measured {
            per_s: *per_s,
            value: *value,
            weight: 1.0,
            error: None,
        };
        Curve::of(&points.iter().map(measured).collect::<Vec<_>>())
    }

    #[test]
    fn a_limit_is_reached_between_the_points_around_it() {
        let measured = curve(&[(100.0, 10.0), (200.0, 20.0), (300.0, 80.0)]);
        let Some(Crossing::At(rate)) = measured.crossing(40.0) else { panic!("no crossing") };
        assert!((rate - 250.0).abs() < 1e-9, "{rate}");
        assert!((measured.at(250.0).unwrap() - 40.0).abs() < 1e-9);
        assert_eq!(measured.crossing(5.0), Some(Crossing::Below(100.0)));
        assert_eq!(measured.crossing(90.0), Some(Crossing::Above(300.0)));
        assert_eq!(measured.at(301.0), None);
        assert_eq!(curve(&[]).crossing(1.0), None);
    }

    /// Two runs of a station that holds 500/s: with few clients, and with many that wait.
    #[test]
    fn an_overloaded_run_with_a_lower_rate_reaches_the_limit_at_its_rate() {
        let measured = curve(&[(250.0, 8.0), (505.0, 110.0), (517.0, 12.0)]);
        assert_eq!(measured.crossing(40.0), Some(Crossing::At(505.0)));
        assert_eq!(measured.crossing(120.0), Some(Crossing::Above(517.0)));
        let error = Some(RelativeError { share: 0.1, freedom: 9.0 });
        let one = |per_s, value| Measured { per_s, value, weight: 1.0, error };
        let (_, error) = reached(&[one(505.0, 110.0), one(517.0, 12.0)], 40.0).unwrap();
        assert!(error.unwrap().share > 0.3, "the rate is hardly known");
    }

    #[test]
    fn the_error_of_a_rate_is_that_of_the_value_by_the_slope() {
        let error = Some(RelativeError { share: 0.1, freedom: 9.0 });
        let one = |per_s: f64| Measured { per_s, value: per_s * per_s, weight: 1.0, error };
        let Some((Crossing::At(rate), Some(error))) = reached(&[one(10.0), one(20.0)], 200.0)
        else {
            panic!("no rate")
        };
        assert!((10.0..20.0).contains(&rate));
        // Errors of both ends are combined.
        assert!((0.035..0.05).contains(&error.share), "{}", error.share);
        assert_eq!(error.freedom, 9.0);
        let batches = [Batch { requests: 100, late: 4 }, Batch { requests: 100, late: 6 }];
        let (share, error) = late_share(&batches).unwrap();
        assert!((share - 0.05).abs() < 1e-12 && (error.unwrap().share - 0.2).abs() < 1e-9);
        assert_eq!(late_share(&batches[..1]).unwrap().1, None);
        assert_eq!(late_share(&[]), None);
    }

    #[test]
    fn points_that_fall_are_pooled() {
        let measured = curve(&[(1.0, 4.0), (2.0, 1.0), (3.0, 16.0), (3.0, 16.0)]);
        assert!((measured.at(1.0).unwrap() - 2.0).abs() < 1e-9);
        assert!((measured.at(2.0).unwrap() - 2.0).abs() < 1e-9);
        assert!((measured.at(3.0).unwrap() - 16.0).abs() < 1e-9);
        assert!(measured.slope(2.5).unwrap() > 0.0);
        assert_eq!(measured.slope(1.5), None);
    }
}
