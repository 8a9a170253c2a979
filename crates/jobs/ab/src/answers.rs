//! The answers of a comparison: what the pairs show for each metric, as far as the generator allows a claim.

use crate::late::is_of_times;
use crate::metrics::Metric;
use crate::session::{Done, ERRORS, Wish};
use plimsoll_decide::pairs::failures::compare;
use plimsoll_decide::pairs::{Finding, Kind as Answer, Why};
use plimsoll_decide::rule::{Judged, Rule};
use plimsoll_decide::student;
use plimsoll_record::ab::{AbAnswer, AbEnd, AbGenerator, AbJudged, AbMetric, AbPair};

/// Reason of an answer that the generator forbids.
pub const LIMITED: &str = "the generator was the limit";

/// Returns each metric that was named or measured, with its answer if it was named.
#[must_use]
pub fn answers(wish: &Wish, done: &Done, generator: &AbGenerator, error: f64) -> Vec<AbMetric> {
    let is_free = is_free(generator);
    let late = done.late.as_ref().filter(|_| generator.is_late);
    let findings = late.unwrap_or(&done.decision).findings();
    let mut findings = findings.iter();
    let mut shown: Vec<AbMetric> = Vec::new();
    for (index, metric) in wish.metrics.iter().enumerate() {
        let base = base(metric, index, done);
        shown.push(match (metric.is_named, metric.name == ERRORS) {
            (true, true) => of_failures(base, done, wish, !is_free),
            (true, false) => match findings.next() {
                // Without a look at equal delays, as before the first one, there is no answer.
                Some(finding) if late.is_some() && is_of_times(&metric.name) => {
                    never_the_same(answered(base, finding, done, false))
                }
                Some(finding) => answered(base, finding, done, !is_free),
                None => base,
            },
            (false, _) => only_shown(base, index, done, error),
        });
    }
    shown.retain(|metric| metric.answer.is_some() || metric.pairs > 0);
    shown
}

/// Judges a rule by the answer of its metric.
#[must_use]
pub fn ruled(rule: &Rule, answers: &[AbMetric], generator: &AbGenerator) -> AbJudged {
    let Some(metric) = answers.iter().find(|metric| metric.name == rule.metric) else {
        return AbJudged::CannotTell;
    };
    match judged_as(rule.judge(claimed(metric)), metric) {
        _ if generator.is_limit => AbJudged::CannotTell,
        // What holds may differ by more, as delays on both sides pull a ratio towards 1.
        AbJudged::Holds if generator.is_late => AbJudged::CannotTell,
        judged => judged,
    }
}

fn is_free(generator: &AbGenerator) -> bool {
    !generator.is_limit && !generator.is_late
}

/// The interval on which a rule is judged: that of a metric with at least six pairs.
fn claimed(metric: &AbMetric) -> Option<(f64, f64)> {
    metric.interval.filter(|_| metric.pairs >= 6)
}

/// A rule fails only where the metric has an answer: the answer bears the looks and the other metrics in mind, the interval does
/// not.
fn judged_as(judged: Judged, metric: &AbMetric) -> AbJudged {
    match judged {
        Judged::Holds => AbJudged::Holds,
        Judged::Fails if metric.answer != Some(AbAnswer::CannotTell) => AbJudged::Fails,
        Judged::Fails | Judged::CannotTell => AbJudged::CannotTell,
    }
}

/// Geometric mean of a side's blocks in the pairs that count; the mean for errors, which may be 0.
fn middle(
    metric: &Metric,
    pairs: &[AbPair],
    value: impl Fn(&AbPair) -> Option<f64>,
) -> Option<f64> {
    let counted = pairs.iter().filter(|pair| pair.left_out.is_empty());
    let values: Vec<f64> = counted.filter_map(value).collect();
    if values.is_empty() {
        return None;
    }
    let n = values.len() as f64;
    Some(match metric.name.as_str() {
        "errors" => values.iter().sum::<f64>() / n,
        _ => (values.iter().map(|value| value.ln()).sum::<f64>() / n).exp(),
    })
    .filter(|value| value.is_finite())
}

fn base(metric: &Metric, index: usize, done: &Done) -> AbMetric {
    AbMetric {
        name: metric.name.clone(),
        unit: metric.unit().to_owned(),
        higher_is_better: metric.is_higher_better,
        a: middle(metric, &done.pairs, |pair| pair.a.get(index).copied().flatten()),
        b: middle(metric, &done.pairs, |pair| pair.b.get(index).copied().flatten()),
        ..AbMetric::default()
    }
}

fn answer_of(kind: Answer, is_limited: bool) -> AbAnswer {
    match kind {
        _ if is_limited => AbAnswer::CannotTell,
        Answer::Better => AbAnswer::Better,
        Answer::Worse => AbAnswer::Worse,
        Answer::Same => AbAnswer::Same,
        Answer::CannotTell => AbAnswer::CannotTell,
    }
}

/// Failures, which are compared by their counts, once, after all pairs.
fn of_failures(base: AbMetric, done: &Done, wish: &Wish, is_limited: bool) -> AbMetric {
    let error = wish.error_of_failures();
    let is_over = matches!(done.ended, AbEnd::Settled | AbEnd::Budget);
    let found = compare(&done.counts, error, wish.margin);
    let answer = answer_of(found.kind, is_limited || !is_over);
    let reason = match answer {
        AbAnswer::CannotTell if is_limited => LIMITED,
        AbAnswer::CannotTell if found.a.failed + found.b.failed == 0 => "no request failed",
        AbAnswer::CannotTell => "too few failures, or they come in clusters",
        _ => "",
    };
    let is_known = found.low.is_finite() && found.high.is_finite();
    AbMetric {
        answer: Some(answer),
        ratio: Some(found.ratio).filter(|ratio| ratio.is_finite()),
        interval: is_known.then_some((found.low, found.high)),
        confidence: 1.0 - error,
        pairs: done.counts.len() as u64,
        p_value: Some(found.p_value).filter(|p| p.is_finite()),
        reason: reason.to_owned(),
        ..base
    }
}

fn answered(base: AbMetric, finding: &Finding, done: &Done, is_limited: bool) -> AbMetric {
    let answer = answer_of(finding.kind, is_limited);
    let is_open = answer == AbAnswer::CannotTell;
    let reason = match finding.why {
        _ if is_limited => LIMITED.to_owned(),
        Some(Why::FewPairs) => format!("{} pairs are too few", finding.pairs),
        Some(Why::Missing(missing)) => {
            format!("{missing} of {} pairs have no value", done.decision.pairs())
        }
        Some(Why::Spread) => "the pairs differ too much from each other".to_owned(),
        None => String::new(),
    };
    let (low, high) = (finding.low, finding.high);
    let is_known = finding.pairs >= 2 && low.is_finite() && high.is_finite();
    AbMetric {
        answer: Some(answer),
        ratio: finding.ratio.is_finite().then_some(finding.ratio),
        interval: is_known.then_some((low, high)),
        confidence: finding.confidence,
        pairs: finding.pairs as u64,
        p_value: Some(finding.p_value),
        pairs_needed: finding.pairs_needed.filter(|_| is_open && !is_limited).map(|n| n as u64),
        reason: if is_open { reason } else { String::new() },
        ..base
    }
}

/// Delays on both sides pull a ratio towards 1: what looks the same may differ by more.
fn never_the_same(metric: AbMetric) -> AbMetric {
    match metric.answer {
        Some(AbAnswer::Same) => AbMetric {
            answer: Some(AbAnswer::CannotTell),
            reason: "delays of the generator make both sides look alike".to_owned(),
            ..metric
        },
        _ => metric,
    }
}

/// A metric without an answer: its ratio and a plain t interval.
fn only_shown(base: AbMetric, index: usize, done: &Done, error: f64) -> AbMetric {
    if base.name == ERRORS && done.counts.iter().all(|(a, b)| a.failed + b.failed == 0) {
        return AbMetric { pairs: done.counts.len() as u64, ..base };
    }
    let values: Vec<f64> = done.log_ratios[index].iter().filter_map(|value| *value).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let interval = (values.len() >= 2).then(|| {
        let squares: f64 = values.iter().map(|value| (value - mean).powi(2)).sum();
        let error_of_mean = (squares / (n - 1.0) / n).sqrt();
        let half = student::quantile(1.0 - error / 2.0, n - 1.0) * error_of_mean;
        ((mean - half).exp(), (mean + half).exp())
    });
    AbMetric {
        ratio: mean.is_finite().then(|| mean.exp()),
        interval,
        confidence: 1.0 - error,
        pairs: values.len() as u64,
        ..base
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::tests::{looked, named, wish};

    fn late() -> AbGenerator {
        AbGenerator { is_judged: true, is_late: true, ..AbGenerator::default() }
    }

    /// The answers on p50 and rate where B has 1.65 times A's, or as much.
    fn of(done: &Done, generator: &AbGenerator) -> Vec<AbMetric> {
        answers(&wish(vec![named("p50"), named("rate")]), done, generator, 0.05)
    }

    fn done(above: f64, has_looked_at_equal_delays: bool) -> Done {
        let mut done = looked(&wish(vec![named("p50"), named("rate")]), above);
        done.late = has_looked_at_equal_delays.then(|| done.decision.clone());
        done
    }

    fn kinds(metrics: &[AbMetric]) -> Vec<AbAnswer> {
        metrics.iter().filter_map(|metric| metric.answer).collect()
    }

    #[test]
    fn a_free_generator_has_all_answers() {
        use AbAnswer::{Same, Worse};
        let free = AbGenerator { is_judged: true, ..AbGenerator::default() };
        assert_eq!(kinds(&of(&done(0.5, false), &free)), [Worse, Worse]);
        assert_eq!(kinds(&of(&done(0.0, false), &free)), [Same, Same]);
    }

    #[test]
    fn a_late_generator_has_answers_on_times_only_and_never_the_same() {
        use AbAnswer::{CannotTell, Worse};
        assert_eq!(kinds(&of(&done(0.5, true), &late())), [Worse, CannotTell]);
        let alike = of(&done(0.0, true), &late());
        assert_eq!(kinds(&alike), [CannotTell, CannotTell]);
        assert!(alike[0].reason.contains("look alike"), "{alike:?}");
        assert_eq!(alike[1].reason, LIMITED);
    }

    #[test]
    fn a_late_generator_without_a_look_at_equal_delays_has_no_answer() {
        let metrics = of(&done(0.5, false), &late());
        assert_eq!(kinds(&metrics), [AbAnswer::CannotTell; 2]);
        assert_eq!(metrics[0].reason, LIMITED);
    }

    #[test]
    fn a_rule_of_a_late_comparison_can_fail_but_not_hold() {
        use AbJudged::{CannotTell, Fails, Holds};
        let judged = |done: &Done, generator: &AbGenerator, rule: &str| {
            ruled(&rule.parse().unwrap(), &of(done, generator), generator)
        };
        let free = AbGenerator { is_judged: true, ..AbGenerator::default() };
        let limit = AbGenerator { is_limit: true, ..free.clone() };
        let worse = done(0.5, true);
        for (generator, expected) in
            [(&free, [Fails, Holds]), (&late(), [Fails, CannotTell]), (&limit, [CannotTell; 2])]
        {
            let found = ["p50>+5%", "p50>+200%"].map(|rule| judged(&worse, generator, rule));
            assert_eq!(found, expected, "{generator:?}");
        }
        assert_eq!(judged(&worse, &late(), "rate<-5%"), CannotTell);
        assert_eq!(judged(&worse, &free, "mean>+5%"), CannotTell, "not measured");
    }
}
