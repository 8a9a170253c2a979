//! The record of a comparison.

use crate::arms::Arm;
use crate::flags::AbArgs;
use crate::generator::judged;
use crate::jobs::Kind;
use crate::late::is_of_times;
use crate::metrics::Metric;
use crate::pilot::Seen;
use crate::session::{Done, ERRORS, Wish};
use anyhow::Result;
use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_core::interval::Interval;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_decide::pairs::failures::compare;
use plimsoll_decide::pairs::{Finding, Kind as Answer, Why};
use plimsoll_decide::rule::{Judged, Rule};
use plimsoll_decide::student;
use plimsoll_engine::health::{machine, rss_max_bytes};
use plimsoll_job::keeping::Finished;
use plimsoll_job::output::lost_file;
use plimsoll_job::tool;
use plimsoll_job::usage::{Unreachable, one_line};
use plimsoll_record::ab::{AbAnswer, AbEnd, AbJudged, AbMetric, AbPair, AbResult, AbRule, AbSide};
use plimsoll_record::{Generator, JobResults, RunRecord, TargetInfo};
use plimsoll_report::assemble::{Ending, PhasePlan, RecordHeader, Tally, assemble};
use plimsoll_report::command::kept;
use plimsoll_report::folder::RunFolder;

/// Reason of an answer that the generator forbids.
pub const LIMITED: &str = "the generator was the limit";

/// The header of the record.
#[must_use]
pub fn header(args: &AbArgs, arms: &[Arm; 2], folder: Option<&RunFolder>) -> RecordHeader {
    let own = folder.map(RunFolder::header).unwrap_or_else(|| RecordHeader {
        started_at: format_utc(wall_us()),
        naming: args.output.output().naming(),
        ..RecordHeader::default()
    });
    RecordHeader {
        tool: tool::own(),
        command: tool::command(),
        job: "ab".to_owned(),
        scenario: serde_json::json!({
            "job": "ab",
            "block": kept(&args.words),
            "a": arms[0].name,
            "b": arms[1].name,
            "seed": args.seed,
            "budget": args.budget,
            "error": args.error,
            "margin": args.margin,
        }),
        target: TargetInfo {
            url: format!("A: {}; B: {}", arms[0].name, arms[1].name),
            ..TargetInfo::default()
        },
        machine: machine(),
        class_names: vec!["A".to_owned(), "B".to_owned()],
        phases: vec![PhasePlan {
            name: "pairs".to_owned(),
            measured: true,
            schedule: serde_json::Value::Null,
            from_s: 0.0,
            duration_s: None,
        }],
        ..own
    }
}

/// The result of a comparison.
#[must_use]
pub fn result(args: &AbArgs, kind: Kind, arms: &[Arm; 2], wish: &Wish, done: &Done) -> AbResult {
    let generator = judged(&done.sides, &done.pairs, !is_judged(kind, args));
    let is_free = !generator.is_limit && !generator.is_late;
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
            (false, _) => only_shown(base, index, done, args.error.0),
        });
    }
    shown.retain(|metric| metric.answer.is_some() || metric.pairs > 0);
    let rule = |rule: &Rule| AbRule {
        rule: rule.to_string(),
        judged: match shown.iter().find(|metric| metric.name == rule.metric) {
            Some(metric) if is_free => judged_as(rule.judge(claimed(metric)), metric),
            // What holds may differ by more, as delays on both sides pull a ratio towards 1.
            Some(metric) if generator.is_late => {
                match judged_as(rule.judge(claimed(metric)), metric) {
                    AbJudged::Fails => AbJudged::Fails,
                    _ => AbJudged::CannotTell,
                }
            }
            _ => AbJudged::CannotTell,
        },
    };
    let left_out = done.pairs.iter().filter(|pair| !pair.left_out.is_empty()).count() as u64;
    AbResult {
        job: if kind == Kind::Command { "command".to_owned() } else { args.words[0].clone() },
        a: side(&arms[0], &done.seen[0], &done.sides[0].tool),
        b: side(&arms[1], &done.seen[1], &done.sides[1].tool),
        pairs: done.pairs.len() as u64 - left_out,
        pairs_planned: done.planned as u64,
        pairs_left_out: left_out,
        error: args.error.0,
        margin: args.margin.0,
        seed: args.seed,
        duet: args.duet,
        ended: done.ended,
        spent_s: done.spent_s,
        plan: done.plan.clone(),
        rules: args.fail_on.iter().map(rule).collect(),
        metrics: shown,
        notes: Vec::new(),
        blocks: done.pairs.clone(),
        generator,
    }
}

fn is_judged(kind: Kind, args: &AbArgs) -> bool {
    kind != Kind::Command && args.a_bin.is_none() && args.b_bin.is_none()
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

fn side(arm: &Arm, seen: &Seen, tool: &str) -> AbSide {
    AbSide {
        name: arm.name.clone(),
        command: kept(&arm.words),
        tool: tool.to_owned(),
        relaxation_s: seen.memory.relaxation_s,
        beginning_s: seen.memory.beginning_s,
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

/// The verdict on the whole comparison.
#[must_use]
pub fn verdict(result: &AbResult, failure: Option<&anyhow::Error>) -> Verdict {
    let (kind, reason) = match result.ended {
        AbEnd::Failed => {
            let kind = match failure.is_some_and(anyhow::Error::is::<Unreachable>) {
                true => VerdictKind::TargetFailed,
                false => VerdictKind::Partial,
            };
            (kind, failure.map(one_line).unwrap_or_default())
        }
        AbEnd::Stopped => {
            let reason = format!(
                "the comparison was stopped after {} of up to {} pairs; the figures cover these",
                result.pairs, result.pairs_planned
            );
            (VerdictKind::Partial, reason)
        }
        _ if result.generator.is_limit => {
            let reason = format!("cannot tell: {LIMITED}: {}", result.generator.reason);
            (VerdictKind::GeneratorLimited, reason)
        }
        AbEnd::Settled | AbEnd::Budget => return Verdict::default(),
    };
    Verdict::new(kind, vec![reason])
}

/// Puts the record together and keeps it.
///
/// # Errors
/// Never for a record that cannot be kept: that is reported, and is no reason not to print it.
pub fn finish(
    header: &RecordHeader,
    folder: Option<&RunFolder>,
    result: AbResult,
    done: &Done,
    warnings: Vec<String>,
) -> Result<Finished> {
    let mut totals = Interval::new(2);
    for (side, own) in done.sides.iter().enumerate() {
        let mut part = own.totals.clone();
        let class = std::mem::take(&mut part.classes).into_iter().next().unwrap_or_default();
        totals.merge(&part);
        totals.classes[side] = class;
    }
    let measured_s: f64 = done.sides.iter().map(|side| side.measured_s).sum();
    let ending = Ending {
        duration_s: Some(measured_s),
        generator: Generator { rss_max_bytes: rss_max_bytes(), ..Generator::default() },
        verdict: verdict(&result, done.failure.as_ref()),
        warnings,
        job_results: JobResults::of(result),
        ..Ending::default()
    };
    let mut tally = Tally::new(header);
    tally.add(&totals);
    let (_, mut phases) = tally.finish();
    phases.iter_mut().for_each(|phase| phase.duration_s = measured_s);
    let record: RunRecord = assemble(header, &totals, phases, ending);
    let mut kept = folder.map(|folder| folder.path().to_owned());
    if let Some(folder) = folder
        && let Err(error) = folder.finish(&record)
    {
        lost_file(&format!("the record could not be written: {error}"));
        kept = None;
    }
    Ok(Finished { record, folder: kept, course: None })
}
