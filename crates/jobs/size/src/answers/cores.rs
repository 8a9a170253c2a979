//! Answers about resources: what gives out first, and what twice the cores would bring.

use super::Known;
use crate::resources::{self, NEAR, Use};
use crate::sizing::{Answer, per_second};
use plimsoll_report::number::{percent, significant};

impl Known<'_> {
    fn uses(&self) -> Vec<Use> {
        let last = self.configurations.last().zip(self.scaling.points().last());
        last.map_or_else(Vec::new, |(largest, point)| resources::uses(largest, point.per_s))
    }

    pub(super) fn first_resource(&self) -> Answer {
        const QUESTION: &str = "first-resource";
        let uses = self.uses();
        let last = self.scaling.points().last();
        let line = last.map_or(String::new(), |point| {
            format!("the {} that {} hold", per_second(point.per_s), self.counted(point.n))
        });
        match resources::words(&uses, &line) {
            None => Answer::declined(
                QUESTION,
                "the first resource to give out is unknown: the records do not have the target's resources; run plimsoll on its machine, or use --watch",
            ),
            Some(words) => {
                let first = uses.first();
                Answer::new(QUESTION, words)
                    .with("resource", first.map_or("", |one| one.name.as_str()))
                    .with("share", first.map_or(0.0, |one| one.share))
            }
        }
    }

    pub(super) fn twice_the_cores(&self, nodes: Option<f64>) -> Answer {
        const QUESTION: &str = "twice-the-cores";
        if self.question.unit == "nodes" {
            return self.cores_of_nodes();
        }
        let last = self.scaling.points().last().map_or(1.0, |point| point.n);
        let pair = |n: f64| {
            let twice = self.scaling.held(2.0 * n)?;
            self.scaling.held(n).map(|once| (once, twice))
        };
        let starts = [nodes.unwrap_or(last), last, (last / 2.0).floor().max(1.0)];
        let found = starts.into_iter().find_map(|n| pair(n).ok());
        let Some((once, twice)) = found else {
            let reason = self.scaling.declines().map_or(String::new(), |reason| reason.to_string());
            return Answer::declined(
                QUESTION,
                format!("twice the cores cannot be predicted: {reason}"),
            );
        };
        let factor = twice.rate.per_s / once.rate.per_s;
        let words = format!(
            "twice the cores ({} instead of {}) bring {} times the rate: {}",
            self.counted(twice.n),
            once.n,
            significant(factor),
            self.held_words(&twice)
        );
        Answer::new(QUESTION, words).with("factor", factor).with("per_s", twice.rate.per_s)
    }

    /// The records vary the number of nodes, not their cores: what can be said comes from the use of the CPU.
    fn cores_of_nodes(&self) -> Answer {
        const QUESTION: &str = "twice-the-cores";
        let uses = self.uses();
        let Some(cpu) = uses.iter().find(|one| one.is_cpu) else {
            return Answer::declined(
                QUESTION,
                "the effect of twice the cores is unknown: the records do not have the target's CPU, and vary the number of nodes only",
            );
        };
        let next = uses.iter().find(|one| !one.is_cpu && one.share > 0.5 * cpu.share.min(1.0));
        let words = if cpu.share < NEAR {
            format!(
                "twice the cores in each node bring little: {} is at {} of {} only; the records vary the number of nodes, not their cores",
                cpu.name,
                percent(cpu.share),
                cpu.limit
            )
        } else if let Some(next) = next {
            let most = (1.0 / next.share).min(2.0);
            format!(
                "twice the cores in each node bring at most {} times the rate: then {} gives out",
                significant(most),
                next.name
            )
        } else {
            "twice the cores in each node bring at most 2 times the rate; the records vary the number of nodes, not their cores"
                .to_owned()
        };
        Answer::new(QUESTION, words).with("cpu_share", cpu.share)
    }
}
