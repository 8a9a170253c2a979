//! A mix by two groups of agents: one feeds and the other one sends queries, from the same instant on.

use crate::{Mix, Parts, Until};
use anyhow::{Result, anyhow};
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_engine::run::RunEnd;
use plimsoll_feed::{Fed, Task, feed_by_agents};
use plimsoll_job::keeping::Keeping;
use plimsoll_job::prepare::{Prepared, http_of};
use plimsoll_job::progress::RunProgress;
use plimsoll_job::together::Group;
use plimsoll_job::usage::one_line;
use plimsoll_wire::http::Http;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Seconds of the queries, until it is known whether the feed was on in them. Times count from the start of the queries' measured
/// stretch, ns.
#[derive(Default)]
struct Sorting {
    /// End, length in s, and measurements of each.
    waiting: VecDeque<(i128, f64, ClassPart)>,
    /// Time up to which the feed was certainly on.
    fed_until_ns: i128,
    /// End of the feed.
    over_ns: Option<i128>,
    parts: Parts,
}

impl Sorting {
    fn add(&mut self, second: &Interval) {
        self.waiting.push_back((second.to_ns.into(), second.seconds(), second.all_classes()));
        self.sort();
    }

    /// The feed was on up to a time.
    fn fed(&mut self, until_ns: i128) {
        self.fed_until_ns = self.fed_until_ns.max(until_ns);
        self.sort();
    }

    /// The feed has ended; without a time, when it was last known to be on.
    fn over(&mut self, at_ns: Option<i128>) {
        self.over_ns = Some(at_ns.unwrap_or(self.fed_until_ns));
        self.sort();
    }

    fn sort(&mut self) {
        while let Some((to_ns, ..)) = self.waiting.front() {
            let is_fed = match self.over_ns {
                Some(over_ns) => *to_ns <= over_ns,
                None if *to_ns <= self.fed_until_ns => true,
                None => return,
            };
            let Some((_, seconds, all)) = self.waiting.pop_front() else { return };
            let part = if is_fed { &mut self.parts.while_feeding } else { &mut self.parts.without };
            part.seconds += seconds;
            part.all.merge(&all);
        }
    }
}

fn locked(sorting: &Mutex<Sorting>) -> MutexGuard<'_, Sorting> {
    sorting.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Runs both, each by its agents. If one of them cannot begin, the other one does not either.
pub(crate) fn both(
    (mix, feeders): (&Mix, Group),
    prepared: Prepared,
    task: &Task,
    mut keeping: Keeping<'_>,
    progress: &RunProgress,
) -> Result<(RunEnd, Fed, Parts)> {
    let Prepared { plan, sessions, .. } = prepared;
    let http: Http = http_of(&mix.queries);
    let sorting = Mutex::new(Sorting::default());
    let warmup_ns = i128::from(plan.warmup_ns);
    let loaders = Group::here();
    let (end, fed) = std::thread::scope(|scope| {
        let stop = keeping.stop.clone();
        let (sorting, until) = (&sorting, mix.until);
        let feeding = scope.spawn(move || {
            // The feed was on when its last second began.
            let mut second =
                |one: &Interval| locked(sorting).fed(i128::from(one.from_ns) - warmup_ns);
            let over = |end: &RunEnd| match until {
                // An agent of it was lost: the result is not the whole any more.
                _ if end.interrupted => loaders.stop(),
                Until::Feed => loaders.end_early(),
                Until::Both | Until::Queries => {}
            };
            let fed = feeders.within(|| feed_by_agents(task, stop, &mut second, &over));
            let end_ns = fed.as_ref().ok().map(|fed| (fed.result.seconds * 1e9) as i128);
            locked(sorting).over(end_ns.map(|end_ns| end_ns - warmup_ns));
            if let Err(error) = &fed {
                loaders.abort(&format!("the feed ended: {}", one_line(error)));
            }
            fed
        });
        let mut second = |second: &Interval| {
            progress.show(second);
            locked(sorting).add(second);
        };
        let end = keeping.run(&plan, || http, sessions, &mut second);
        match &end {
            Err(error) => feeders.abort(&format!("the queries ended: {}", one_line(error))),
            Ok(end) if end.interrupted => feeders.stop(),
            Ok(_) if until == Until::Queries => feeders.end_early(),
            Ok(_) => {}
        }
        (end, feeding.join())
    });
    let fed =
        fed.map_err(|_| anyhow!("the feed ended with a defect in plimsoll; please report it"))?;
    let sorting = sorting.into_inner().unwrap_or_else(PoisonError::into_inner);
    // The side that could not begin has the reason.
    match (end, fed) {
        (Ok(end), Ok(fed)) => Ok((end, fed, sorting.parts)),
        (_, Err(error)) if !is_aborted(&error) => Err(error),
        (Err(error), _) | (_, Err(error)) => Err(error),
    }
}

/// Returns true for the error of a group that was ended because of the other one.
fn is_aborted(error: &anyhow::Error) -> bool {
    let line = one_line(error);
    line.contains("the queries ended: ") || line.contains("the feed ended: ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::SECOND_NS;

    fn second(number: u64) -> Interval {
        let mut second = Interval::new(1);
        (second.from_ns, second.to_ns) = (number * SECOND_NS, (number + 1) * SECOND_NS);
        second.classes[0].ledger.ok = 1;
        second
    }

    /// Seconds come in any order of the two groups, and the end of the feed is known late.
    #[test]
    fn a_second_of_the_queries_is_sorted_by_its_time_and_not_by_its_arrival() {
        let at = |number: u64| i128::from(number * SECOND_NS);
        let mut sorting = Sorting::default();
        (0..4).for_each(|number| sorting.add(&second(number)));
        assert_eq!(sorting.parts.while_feeding.seconds, 0.0, "nothing is known of the feed yet");
        sorting.fed(at(2));
        assert_eq!(sorting.parts.while_feeding.seconds, 2.0);
        sorting.over(Some(at(3) + 1));
        (4..6).for_each(|number| sorting.add(&second(number)));
        let parts = &sorting.parts;
        assert_eq!((parts.while_feeding.seconds, parts.without.seconds), (3.0, 3.0));
        assert_eq!((parts.while_feeding.all.ledger.ok, parts.without.all.ledger.ok), (3, 3));
        assert!(sorting.waiting.is_empty());
    }
}
