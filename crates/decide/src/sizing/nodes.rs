//! The number of nodes that a rate needs.

use super::scaling::{Declined, Held, Scaling};

/// Numbers of nodes for a rate.
#[derive(Clone, Debug, PartialEq)]
pub struct Needed {
    /// The rate that must be held, requests per second.
    pub per_s: f64,
    /// The fewest nodes whose interval lies above the rate, with what they hold.
    pub sure: Result<Held, Declined>,
    /// The fewest nodes whose prediction is at least the rate, with what they hold.
    pub likely: Result<Held, Declined>,
}

impl Scaling {
    /// Returns how many nodes a rate needs, from the fewest measured ones upwards.
    #[must_use]
    pub fn needed(&self, per_s: f64) -> Needed {
        let all = self.all(&self.candidates()).unwrap_or_default();
        let first = |holds: &dyn Fn(&Held) -> bool| {
            let found = all.iter().find(|held| holds(held)).cloned();
            found.ok_or_else(|| self.declines().unwrap_or(self.far()))
        };
        Needed {
            per_s,
            sure: first(&|held| held.rate.low_per_s >= per_s),
            likely: first(&|held| held.rate.per_s >= per_s),
        }
    }
}

/// Most numbers of nodes that are tried.
const NODES_MAX: usize = 256;

impl Scaling {
    /// Returns the numbers of nodes about which something can be said, fewest first: whole numbers, in steps if there are more
    /// than 256, and the measured ones.
    #[must_use]
    pub fn candidates(&self) -> Vec<f64> {
        let mut ns: Vec<f64> = self.points().iter().map(|point| point.n).collect();
        let (Some(low), None) = (ns.first(), self.declines()) else { return ns };
        let (low, most) = (low.ceil(), self.most().floor());
        let step = ((most - low) / NODES_MAX as f64).ceil().max(1.0);
        let count = ((most - low) / step).floor() as usize;
        ns.extend((0..=count).map(|i| low + step * i as f64));
        ns.sort_by(f64::total_cmp);
        ns.dedup();
        ns
    }
}
