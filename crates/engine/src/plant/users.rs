//! Users who come at a rate that a search changes.

use crate::shard::UsersBefore;
use plimsoll_core::normal::quantile;
use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_core::schedule::{
    Arrivals, LoadModel, ModelError, Pause, Step, UserProfile, UserStep,
};
use plimsoll_core::seek::plant::{Order, Window};
use plimsoll_core::units::Span;

/// Longest time for which users have come before an order, ns.
const BEFORE_MAX_NS: u64 = 3_600_000_000_000;
/// Longest stay of a user, as a multiple of the mean stay.
const LONGEST_STAY: u64 = 3;
/// Mean from which on a Poisson number is drawn as a normal one.
const MANY: f64 = 1e5;

/// Users, each with the same number of requests.
#[derive(Clone, Debug)]
pub struct PlantUsers {
    /// Requests of each, at least 1.
    pub requests: u32,
    /// Pause of a user between a reply and its next request.
    pub think: Pause,
    /// Time from one intended start of a user to its next; 0: none.
    pub pace: Span,
}

impl PlantUsers {
    /// Users of earlier times: an order begins as if users had come at its first rate for as long as one stays, so that
    /// requests are due at the order's rate from its first moment on. Each of their requests took `answer_ns`.
    pub(super) fn before(&self, answer_ns: u64) -> UsersBefore {
        let pause_ns = self.pace.ns.max(answer_ns.saturating_add(self.think.mean_ns() as u64));
        let stay_ns = pause_ns.saturating_mul(self.requests.into()).saturating_mul(LONGEST_STAY);
        UsersBefore { before_ns: stay_ns.min(BEFORE_MAX_NS), answer_ns }
    }

    /// The load of an order whose steps are rates of requests.
    pub(super) fn model(
        &self,
        steps: &[Step],
        arrivals: Arrivals,
        seed: u64,
        before: UsersBefore,
    ) -> Result<LoadModel, ModelError> {
        let mut rng = Rng::new(derive_seed(seed, "number of users"));
        let each = f64::from(self.requests.max(1));
        let first = steps.first().map_or(0.0, |step| step.from_per_s);
        let all = std::iter::once((first, before.before_ns))
            .chain(steps.iter().map(|step| (step.from_per_s, step.duration_ns)));
        let mut profile: Vec<UserStep> = all
            .filter(|(_, duration_ns)| *duration_ns > 0)
            .map(|(rate_per_s, ns)| {
                let (per_s, seconds) = (rate_per_s / each, ns as f64 / 1e9);
                let (randomized, during) = (arrivals == Arrivals::Poisson, Span { ns });
                // Of a Poisson process with this number of arrivals the moments are uniform.
                let per_s = match randomized {
                    true => poisson(per_s * seconds, &mut rng) as f64 / seconds,
                    false => per_s,
                };
                match per_s > 0.0 {
                    true => UserStep::Constant { per_s, during, randomized },
                    false => UserStep::Nothing { during },
                }
            })
            .collect();
        if UserProfile::new(profile.clone()).is_err() {
            // Too short for a user: one comes all the same, so that the order has load.
            let at = usize::from(before.before_ns > 0).min(profile.len());
            profile.insert(at, UserStep::AtOnce { users: 1 });
        }
        let profile = UserProfile::new(profile).map_err(|_| ModelError::EmptyProfile)?;
        let (think, pace) = (self.think, self.pace);
        Ok(LoadModel::Users { profile, requests: self.requests, think, pace })
    }
}

/// Counts the requests that users would have made at the order's rate and did not, because they waited for answers: they are
/// late. Only in windows whose mean response time is over `longest_s`, which break every limit anyway: below, what is missing
/// there is chance. Without them a target beyond its capacity seems to complete nearly all that is asked of it.
pub(super) fn count_held_up(windows: &mut [Window], order: &Order, longest_s: f64) {
    let rates = order.segments.iter().flat_map(|segment| {
        let count = super::windows_in(segment.duration_s, order.window_s);
        std::iter::repeat_n(segment.rate_per_s, count)
    });
    for (window, rate_per_s) in windows.iter_mut().zip(rates) {
        let wanted = (rate_per_s * order.window_s).round() as u64;
        let mean_s = window.response_sum_s / window.scheduled.max(1) as f64;
        if mean_s > longest_s && window.scheduled < wanted {
            let missing = wanted - window.scheduled;
            window.scheduled = wanted;
            window.response_sum_s += missing as f64 * mean_s;
            window.late.iter_mut().for_each(|late| *late += missing);
        }
    }
}

/// A Poisson number.
fn poisson(mean: f64, rng: &mut Rng) -> u64 {
    if mean > MANY {
        let z = quantile(rng.uniform().clamp(1e-12, 1.0 - 1e-12));
        return (mean + z * mean.sqrt()).round() as u64;
    }
    let (mut count, mut sum) = (0, rng.exponential());
    while sum <= mean {
        count += 1;
        sum += rng.exponential();
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::SECOND_NS;
    use plimsoll_core::seek::plant::{LIMITS_MAX, Segment};

    fn users_of(requests: u32, rate_per_s: f64, seed: u64) -> u64 {
        let users = PlantUsers {
            requests,
            think: "exponential 100ms".parse().unwrap(),
            pace: Span::default(),
        };
        let step =
            Step { from_per_s: rate_per_s, to_per_s: rate_per_s, duration_ns: 20 * SECOND_NS };
        let before = users.before(10_000_000);
        assert_eq!(before.before_ns, (3 * u64::from(requests) * 110_000_000).min(BEFORE_MAX_NS));
        match users.model(&[step], Arrivals::Poisson, seed, before).unwrap() {
            LoadModel::Users { profile, requests: each, .. } => {
                assert_eq!(each, requests);
                profile.users()
            }
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn what_users_do_not_ask_because_they_wait_is_late() {
        let segment = |rate_per_s| Segment { rate_per_s, duration_s: 1.0 };
        let order = Order {
            segments: vec![segment(100.0), segment(200.0)],
            window_s: 0.5,
            seed: 1,
            abort: None,
            allowed: vec![0.05],
        };
        let window = |scheduled, response_sum_s| Window {
            scheduled,
            response_sum_s,
            late: [20; LIMITS_MAX],
            completed: 40,
            ..Window::default()
        };
        // In time; then held up, at a rate that was reached, not reached, and by a user or two.
        let mut windows = [window(45, 1.0), window(50, 40.0), window(80, 40.0), window(99, 40.0)];
        count_held_up(&mut windows, &order, 0.1);
        assert_eq!(windows.map(|window| window.scheduled), [45, 50, 100, 100]);
        assert_eq!(windows.map(|window| window.late[0]), [20, 20, 40, 21]);
        assert!((windows[2].response_sum_s - 50.0).abs() < 1e-9, "the mean stays what it was");
        assert_eq!(windows[2].completed, 40);
    }

    #[test]
    fn users_come_at_the_rate_of_requests_over_those_of_each() {
        // 20 s and 1.65 s before them, at 200/s in users of 5: 866 of them, with the variance of a Poisson number.
        let counts: Vec<f64> = (0..400).map(|seed| users_of(5, 200.0, seed) as f64).collect();
        let mean = counts.iter().sum::<f64>() / 400.0;
        let variance = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>() / 399.0;
        assert!((mean - 866.0).abs() < 5.0 * (866.0f64 / 400.0).sqrt(), "{mean}");
        assert!((variance / 866.0 - 1.0).abs() < 0.4, "{variance}");
        assert_eq!(users_of(100_000, 1e-6, 1), 1, "an order has load");
    }
}
