//! Questions and answers.

mod cores;
mod in_words;

pub use in_words::users;

use crate::configuration::{Configuration, Limit, Shows};
use crate::sizing::{Answer, SCHEMA, Sizing, per_second};
use plimsoll_decide::sizing::fit::Fit;
use plimsoll_decide::sizing::models::{Kind, QueueLimit};
use plimsoll_decide::sizing::nodes::Needed;
use plimsoll_decide::sizing::scaling::{Held, Scaling, Source};
use plimsoll_decide::sizing::{LEVEL, Point};
use plimsoll_report::number::{percent, significant, time};
use serde_json::Value;

/// Question to the records.
#[derive(Clone, Debug)]
pub struct Question {
    /// Requests per second.
    pub rate_per_s: Option<f64>,
    /// Growth for which there must be room, as a share of the rate.
    pub headroom: f64,
    /// The limit.
    pub limit: Option<Limit>,
    /// Word for what is counted.
    pub unit: &'static str,
    /// Number of nodes whose rate is asked for.
    pub nodes: Option<f64>,
}

/// Growth whose cost is reported.
const MORE: f64 = 1.1;

/// Measurements and question.
pub struct Known<'a> {
    /// Numbers of nodes, fewest first.
    pub configurations: &'a [Configuration],
    /// Points of all of them.
    pub scaling: Scaling,
    /// The question.
    pub question: &'a Question,
}

impl<'a> Known<'a> {
    /// Puts together what is known. There is at least one configuration.
    pub fn of(configurations: &'a [Configuration], question: &'a Question) -> Self {
        let points: Vec<Point> = configurations.iter().flat_map(|one| one.points.clone()).collect();
        let queue = question.limit.as_ref().map(|limit| QueueLimit {
            allowed: limit.allowed,
            service: configurations.iter().rev().find_map(|one| one.service.clone()),
        });
        Self { configurations, scaling: Scaling::of(&points, queue, question.unit), question }
    }

    /// Probability with which a further measurement lies in an interval.
    pub fn scaling_level(&self) -> f64 {
        LEVEL
    }

    /// `1 node`, `4 nodes`.
    fn counted(&self, n: f64) -> String {
        let unit = self.question.unit;
        let word = if n == 1.0 { unit.trim_end_matches('s') } else { unit };
        format!("{n} {word}")
    }

    /// ` at p95=100ms`; nothing without a limit.
    fn at_limit(&self) -> String {
        self.question.limit.as_ref().map_or(String::new(), |limit| format!(" at {}", limit.text))
    }

    /// The rate with its interval and its source.
    fn held_words(&self, held: &Held) -> String {
        let source = match &held.source {
            Source::Measured => "measured".to_owned(),
            Source::Interpolated => "interpolated".to_owned(),
            Source::Extrapolated { worst, disagreement } => format!(
                "predicted: the {} model is the worst, the models disagree by {}",
                worst.name(),
                percent(*disagreement)
            ),
        };
        let held = held.rate;
        format!(
            "{} ({} to {} with {}; {source})",
            per_second(held.per_s),
            significant(held.low_per_s),
            per_second(held.high_per_s),
            percent(LEVEL)
        )
    }

    /// The percentile at a rate on this many nodes, in words: from the measured curve of these nodes, or from that of the
    /// nearest measured number at the same share of the rate that it holds.
    fn level(&self, n: f64, per_s: f64) -> Option<(String, Value)> {
        let limit = self.question.limit.as_ref()?;
        let near = self
            .configurations
            .iter()
            .filter(|one| one.curve.is_some())
            .min_by(|a, b| (a.n / n).ln().abs().total_cmp(&(b.n / n).ln().abs()))?;
        let (shows, curve) = near.curve.as_ref()?;
        let there = self.scaling.held(near.n).ok()?.rate.per_s;
        let here = self.scaling.held(n).ok()?.rate.per_s;
        let at = per_s * there / here;
        let (low, high) = curve.range_per_s()?;
        let value = curve.at(at.clamp(low, high))?;
        let bound = if at > high {
            "over "
        } else if at < low {
            "at most "
        } else {
            ""
        };
        Some(match shows {
            Shows::Percentile => (format!("{} {bound}{}", limit.name, time(value)), value.into()),
            Shows::LateShare => {
                let within = 1.0 - value.min(1.0);
                let bound = if at > high {
                    "under "
                } else if at < low {
                    "at least "
                } else {
                    ""
                };
                (
                    format!("{bound}{} within {}", percent(within), time(limit.limit_ms())),
                    within.into(),
                )
            }
        })
    }

    fn need_words(&self, needed: &Needed) -> Result<(Held, bool), String> {
        match (&needed.sure, &needed.likely) {
            (Ok(sure), _) => Ok((sure.clone(), true)),
            (_, Ok(likely)) => Ok((likely.clone(), false)),
            (Err(reason), Err(_)) => Err(self.beyond(needed.per_s, &reason.to_string())),
        }
    }

    /// Returns the sentence about a rate that needs more nodes than a prediction reaches.
    fn beyond(&self, per_s: f64, reason: &str) -> String {
        let all = self.scaling.all(&self.scaling.candidates()).unwrap_or_default();
        let best = all.iter().max_by(|a, b| a.rate.per_s.total_cmp(&b.rate.per_s));
        let most = best.map_or(String::new(), |best| {
            format!("; {} hold {}", self.counted(best.n), per_second(best.rate.per_s))
        });
        format!("{}{} cannot be sized: {reason}{most}", per_second(per_s), self.at_limit())
    }

    /// The rate that a number of nodes holds.
    fn rate_of(&self, nodes: f64) -> Answer {
        match self.scaling.held(nodes) {
            Ok(held) => Answer::new(
                "rate",
                format!(
                    "{} hold {}{}",
                    self.counted(nodes),
                    self.held_words(&held),
                    self.at_limit()
                ),
            )
            .with("nodes", nodes)
            .with("per_s", held.rate.per_s)
            .with("interval_per_s", vec![held.rate.low_per_s, held.rate.high_per_s]),
            Err(reason) => Answer::declined(
                "rate",
                format!("{} cannot be predicted: {reason}", self.counted(nodes)),
            ),
        }
    }

    fn nodes(&self, per_s: f64) -> Answer {
        let wanted = per_s * (1.0 + self.question.headroom);
        let needed = self.scaling.needed(wanted);
        let room = if self.question.headroom > 0.0 {
            format!(
                " with room for {} more ({})",
                percent(self.question.headroom),
                per_second(wanted)
            )
        } else {
            String::new()
        };
        let (held, is_sure) = match self.need_words(&needed) {
            Ok(found) => found,
            Err(words) => return Answer::declined("nodes", words),
        };
        let mut words = format!(
            "{}{} for {}{}{room}: {} {}",
            self.counted(held.n),
            if is_sure { "" } else { ", not surely," },
            per_second(per_s),
            self.at_limit(),
            if held.n == 1.0 { "it holds" } else { "they hold" },
            self.held_words(&held)
        );
        if let (true, Ok(likely)) = (is_sure, &needed.likely)
            && likely.n < held.n
        {
            words += &format!("; {} may do", self.counted(likely.n));
        }
        Answer::new("nodes", words)
            .with("nodes", held.n)
            .with("sure", is_sure)
            .with("per_s", held.rate.per_s)
            .with("interval_per_s", vec![held.rate.low_per_s, held.rate.high_per_s])
    }

    fn one_lost(&self, per_s: f64, nodes: Option<f64>) -> Answer {
        const QUESTION: &str = "one-lost";
        let needed = self.scaling.needed(per_s);
        let (left, is_sure) = match self.need_words(&needed) {
            Ok(found) => found,
            Err(words) if nodes.is_some() => return Answer::declined(QUESTION, words),
            Err(_) => return Answer::declined(QUESTION, "unknown for the same reason"),
        };
        let total = nodes.map_or(left.n + 1.0, |nodes| nodes.max(left.n + 1.0));
        let remaining = total - 1.0;
        let held = match self.scaling.held(remaining) {
            Ok(held) => held,
            Err(reason) => return Answer::declined(QUESTION, reason.to_string()),
        };
        let level = self.level(remaining, per_s);
        let times = level.as_ref().map_or(String::new(), |(words, _)| format!(", {words}"));
        let words = format!(
            "{}{} if one may be lost: the other {remaining} {} {} without headroom{times}",
            self.counted(total),
            if is_sure { "" } else { ", not surely," },
            if remaining == 1.0 { "holds" } else { "hold" },
            self.held_words(&held)
        );
        Answer::new(QUESTION, words)
            .with("nodes", total)
            .with("remaining", remaining)
            .with("per_s", held.rate.per_s)
            .with("level", level.map_or(Value::Null, |(_, value)| value))
    }

    fn more_traffic(&self, per_s: f64, nodes: Option<f64>) -> Answer {
        const QUESTION: &str = "more-traffic";
        let Some(n) = nodes else {
            return Answer::declined(QUESTION, "unknown for the same reason");
        };
        let more = MORE * per_s;
        let times = self.level(n, per_s).zip(self.level(n, more));
        let mut words = format!("10 % more traffic ({}) costs", per_second(more));
        let mut answer = Answer::new(QUESTION, "").with("rate_per_s", more);
        if let Some(((before, was), (after, is))) = times {
            words += &format!(" {after} instead of {before} on the same {}, and", self.counted(n));
            answer = answer.with("level_before", was).with("level_after", is);
        }
        let needed = self.scaling.needed(more * (1.0 + self.question.headroom));
        match self.need_words(&needed) {
            Ok((held, _)) if held.n > n => {
                let added = held.n - n;
                words +=
                    &format!(" {} more for the same headroom: {}", self.counted(added), held.n);
                answer = answer.with("nodes", held.n);
            }
            Ok(_) => {
                words += &format!(" no further {}", self.question.unit.trim_end_matches('s'));
                answer = answer.with("nodes", n);
            }
            Err(reason) => {
                words += &format!(" more {} than can be predicted: {reason}", self.question.unit);
                answer.answered = false;
            }
        }
        answer.words = words;
        answer
    }

    /// Cost of 10 % more at the rate that the largest measured number holds.
    fn more_at_line(&self) -> Option<Answer> {
        let last = self.scaling.points().last()?;
        let (before, was) = self.level(last.n, last.per_s)?;
        let (after, is) = self.level(last.n, MORE * last.per_s)?;
        let words = format!(
            "10 % more traffic than {} hold ({}) costs {after} instead of {before}",
            self.counted(last.n),
            per_second(last.per_s)
        );
        Some(Answer::new("more-traffic", words).with("level_before", was).with("level_after", is))
    }

    fn peak(&self, fit: Option<&Fit>) -> Option<Answer> {
        let fit = fit?;
        let most = self.counted(self.scaling.most());
        Some(match &fit.peak {
            Some(peak) => {
                let words = format!(
                    "the rate falls beyond about {} {} (USL, κ {} with an interval of {} to {})",
                    significant(peak.n),
                    self.question.unit,
                    significant(peak.kappa),
                    significant(peak.kappa_interval.0),
                    significant(peak.kappa_interval.1)
                );
                Answer::new("peak", words).with("nodes", peak.n)
            }
            None => {
                let usl = fit.models.iter().find(|model| model.kind == Kind::Usl);
                let why = if usl.is_some_and(|model| model.ruled_out) {
                    "the points rule the USL out"
                } else {
                    "the interval of the USL's κ holds 0"
                };
                Answer::new("peak", format!("no peak is seen up to {most}: {why}"))
            }
        })
    }
}

/// Answers the question.
pub fn answer(known: &Known<'_>) -> Sizing {
    let question = known.question;
    let mut answers = Vec::new();
    answers.extend(question.nodes.map(|nodes| known.rate_of(nodes)));
    let mut needed = question.nodes;
    if let Some(per_s) = question.rate_per_s {
        let nodes = known.nodes(per_s);
        let count = nodes.figures.get("nodes").and_then(Value::as_f64);
        answers.push(nodes);
        answers.push(known.one_lost(per_s, count));
        answers.push(known.more_traffic(per_s, count));
        needed = count.or(needed);
    } else {
        answers.extend(known.more_at_line());
    }
    answers.push(known.first_resource());
    answers.push(known.twice_the_cores(needed));
    let most = known.scaling.most();
    let fit = known.scaling.fit(&[most]).ok();
    answers.extend(known.peak(fit.as_ref()));
    let held = known.rows(&answers);
    let assumptions = known.assumptions(&held);
    let sized = ["rate", "nodes", "one-lost", "more-traffic"];
    let missing = answers.iter().find(|one| !one.answered && sized.contains(&one.question));
    let declined = match (missing, question.rate_per_s.or(question.nodes)) {
        (Some(answer), _) => Some(answer.words.clone()),
        (None, None) => known.scaling.declines().map(|reason| reason.to_string()),
        (None, Some(_)) => None,
    };
    Sizing {
        schema: SCHEMA,
        unit: question.unit,
        slo: question.limit.as_ref().map(|limit| limit.text.clone()),
        rate_per_s: question.rate_per_s,
        headroom: question.headroom,
        level: LEVEL,
        measured: in_words::measured(known),
        held,
        models: fit.iter().flat_map(|fit| &fit.models).filter_map(in_words::model).collect(),
        peak: fit.and_then(|fit| fit.peak).map(in_words::peak),
        answers,
        declined,
        assumptions,
        check: None,
    }
}
