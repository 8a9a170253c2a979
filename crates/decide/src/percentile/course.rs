//! A run as periods, and its batches about one percentile.

use super::BATCHES_LEAST;
use plimsoll_core::histogram::{Histogram, Packed, PackedCell};

/// The periods of a run, and the run as a whole.
pub(super) struct Course<'a> {
    periods: &'a [Packed],
    period_s: f64,
    cells: Vec<PackedCell>,
    /// Requests.
    pub count: f64,
    /// Mean response time, s.
    pub mean_s: f64,
}

impl<'a> Course<'a> {
    pub fn of(periods: &'a [Packed], period_s: f64) -> Self {
        let mut whole = Histogram::new();
        periods.iter().for_each(|period| period.add_to(&mut whole));
        Self {
            periods,
            period_s,
            cells: Packed::of(&whole).cells(),
            count: whole.count() as f64,
            mean_s: whole.mean_ns() / 1e9,
        }
    }

    /// The length, s.
    pub fn run_s(&self) -> f64 {
        self.periods.len() as f64 * self.period_s
    }

    /// Returns the times below which these shares of the requests lie, ns, as if those of a cell were spread over it.
    pub fn values_ns<const N: usize>(&self, shares: [f64; N]) -> [f64; N] {
        shares.map(|share| {
            let wanted = share * self.count;
            let mut sum = 0.0;
            for cell in &self.cells {
                let count = cell.count as f64;
                if sum + count >= wanted {
                    let width_ns = (cell.highest_ns - cell.lowest_ns) as f64;
                    return cell.lowest_ns as f64 + (wanted - sum) / count * width_ns;
                }
                sum += count;
            }
            self.cells.last().map_or(0.0, |cell| cell.highest_ns as f64)
        })
    }

    /// Returns the batches about a quantile: how many requests are above it, less the share of the whole run.
    pub fn levels(&self, quantile: f64) -> Levels {
        let wanted = ((quantile * self.count).ceil()).max(1.0);
        let mut sum = 0.0;
        let place = self.cells.iter().position(|cell| {
            sum += cell.count as f64;
            sum >= wanted
        });
        let Some(cell) = place.map(|at| self.cells[at]) else { return Levels::default() };
        // Where many requests have the percentile's own time, those that have it may be on either side.
        let (above, from) = (self.count - sum, self.count - sum + cell.count as f64);
        let rare = (1.0 - quantile) * self.count;
        let is_above = above > 0.0 && (rare - above <= from - rare || from >= self.count);
        let (share, start_ns) = match is_above {
            true => (above / self.count, cell.highest_ns + 1),
            false => (from / self.count, cell.lowest_ns),
        };
        let excess = |period: &Packed| {
            let rows = period.rows(&[0, start_ns]);
            let above: u64 = rows.iter().filter(|row| row.0 == 1).map(|row| row.1).sum();
            above as f64 - share * period.count() as f64
        };
        let each: Vec<f64> = self.periods.iter().map(excess).collect();
        let size = each.len() / BATCHES_LEAST;
        let batches = each.len() / size;
        let edge = |batch: usize| batch * each.len() / batches;
        Levels {
            estimate_ns: cell.highest_ns,
            excess: (0..batches).map(|i| each[edge(i)..edge(i + 1)].iter().sum()).collect(),
            independent: self.count * share * (1.0 - share),
        }
    }
}

/// The batches of a run about one percentile.
#[derive(Clone, Debug, Default)]
pub(super) struct Levels {
    /// The percentile of the whole run, ns.
    pub estimate_ns: u64,
    /// Requests above it, by batch, less the share of the whole run.
    excess: Vec<f64>,
    /// Variance of the number above it, if requests were independent.
    independent: f64,
}

impl Levels {
    pub fn batches(&self) -> usize {
        self.excess.len()
    }

    /// Returns true if no request is on one of the two sides.
    pub fn is_constant(&self) -> bool {
        self.independent <= 0.0
    }

    fn squares(&self) -> f64 {
        self.excess.iter().map(|one| one * one).sum()
    }

    /// The ratio of the variance of the number above the percentile to that of independent requests.
    pub fn ratio(&self) -> f64 {
        if self.is_constant() {
            return 1.0;
        }
        let count = self.batches() as f64;
        (self.squares() * count / (count - 1.0) / self.independent).max(f64::MIN_POSITIVE)
    }

    /// Von Neumann's ratio (1941) as a standard normal value: above 0 where neighbouring batches resemble each other. The
    /// form with a correction for the ends is that of Fishman ("Discrete-event simulation", 2001).
    pub fn von_neumann(&self) -> f64 {
        let (count, squares) = (self.batches() as f64, self.squares());
        if squares <= 0.0 {
            return 0.0;
        }
        let products: f64 = self.excess.windows(2).map(|pair| pair[0] * pair[1]).sum();
        let ends = (self.excess[0].powi(2) + self.excess[self.excess.len() - 1].powi(2)) / 2.0;
        ((count * count - 1.0) / (count - 2.0)).sqrt() * (products + ends) / squares
    }

    /// Student's t of the slope of the batches over time.
    pub fn trend(&self) -> f64 {
        let count = self.batches() as f64;
        let middle = (count - 1.0) / 2.0;
        let times = (0..self.batches()).map(|i| i as f64 - middle);
        let spread: f64 = times.clone().map(|time| time * time).sum();
        let slope = times.zip(&self.excess).map(|(time, one)| time * one).sum::<f64>() / spread;
        let left = self.squares() - slope * slope * spread;
        if left <= 0.0 { 0.0 } else { slope / (left / (count - 2.0) / spread).sqrt() }
    }
}
