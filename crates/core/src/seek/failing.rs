//! Rates that fail surely, and rates that broke a limit perhaps by chance.

use super::fit::Fit;
use super::search::{Search, Stretch};

/// Standard errors of the capacity above which a rate is surely beyond it.
const ERRORS: f64 = 3.0;

impl Search<'_> {
    /// The lowest rate above the certified one that surely breaks a limit, and the lowest one below that at which a limit
    /// was broken, perhaps by chance. `fit` is the line that is reported.
    pub(super) fn failing(&self, fit: Option<&Fit>) -> (Option<Stretch>, Option<Stretch>) {
        let above = self.certified.map_or(0.0, |run| run.rate_per_s);
        let mut broken: Vec<Stretch> =
            self.runs.iter().copied().chain(self.curve_by_rate()).collect();
        broken.retain(|run| run.rate_per_s > above && self.excess(&run.counts) > 1.0);
        let lowest = |sure: bool| {
            broken
                .iter()
                .filter(|run| self.surely_fails(run.rate_per_s, fit) == sure)
                .min_by(|a, b| a.rate_per_s.total_cmp(&b.rate_per_s))
                .copied()
        };
        let failing = lowest(true);
        let is_below = |run: &Stretch| failing.is_none_or(|sure| run.rate_per_s < sure.rate_per_s);
        (failing, lowest(false).filter(is_below))
    }

    /// True if a rate at which a limit was broken breaks it in the long run as well. Late requests come in bursts, so that
    /// the counts of one look do not say so: the interval does, and so does a target that completes less than is offered.
    fn surely_fails(&self, rate_per_s: f64, fit: Option<&Fit>) -> bool {
        let beyond = fit.is_some_and(|fit| rate_per_s > fit.interval_per_s.1);
        let saturated =
            self.bound().is_some_and(|c| rate_per_s > c.per_s * (1.0 + ERRORS * c.error));
        beyond || saturated
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::seek::completed::Capacity;
    use crate::seek::made::{Made, goal};
    use crate::seek::plant::Window;

    fn stretch(rate_per_s: f64, late: u64) -> Stretch {
        let mut counts = Window { scheduled: 1000, ..Window::default() };
        counts.late[0] = late;
        Stretch { rate_per_s, counts, seconds: 1.5, at_s: 0.0 }
    }

    /// The rates that fail surely and perhaps, of a target that completes 200/s and whose certified rate is 150/s.
    fn rates(curve: &[Stretch], interval: Option<(f64, f64)>) -> (Option<f64>, Option<f64>) {
        let (goal, mut observe) = (goal(300.0), |_: &_| ());
        let mut plant = Made::new(|_| (160.0, 200.0));
        let mut search = Search::new(&mut plant, &goal, &mut observe);
        search.capacity = Some(Capacity::of(200.0, 0.01));
        search.certified = Some(stretch(150.0, 40));
        search.curve = curve.to_vec();
        let fit = interval.map(|interval_per_s| Fit {
            estimate_per_s: 160.0,
            interval_per_s,
            slope: 12.0,
            dispersion: 50.0,
        });
        let (failing, broke) = search.failing(fit.as_ref());
        (failing.map(|run| run.rate_per_s), broke.map(|run| run.rate_per_s))
    }

    #[test]
    fn a_short_look_that_broke_by_chance_is_no_rate_that_fails() {
        let curve =
            [stretch(100.0, 200), stretch(155.0, 70), stretch(180.0, 300), stretch(240.0, 900)];
        assert_eq!(rates(&curve, Some((150.0, 170.0))), (Some(180.0), Some(155.0)));
        // A wide interval holds that rate too; what is offered beyond the capacity fails surely.
        assert_eq!(rates(&curve, Some((140.0, 190.0))), (Some(240.0), Some(155.0)));
        assert_eq!(rates(&curve, None), (Some(240.0), Some(155.0)));
        // Three standard errors of the capacity are not beyond it.
        assert_eq!(rates(&[stretch(205.0, 900)], None), (None, Some(205.0)));
    }

    #[test]
    fn a_rate_that_surely_fails_hides_what_broke_above_it() {
        let curve = [stretch(172.0, 300), stretch(180.0, 20), stretch(195.0, 300)];
        assert_eq!(rates(&curve, Some((150.0, 170.0))), (Some(172.0), None));
        assert_eq!(rates(&[stretch(172.0, 20)], Some((150.0, 170.0))), (None, None));
    }
}
