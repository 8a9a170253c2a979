//! The record of a comparison.

use crate::answers::{LIMITED, answers, ruled};
use crate::arms::Arm;
use crate::flags::AbArgs;
use crate::generator::judged;
use crate::jobs::Kind;
use crate::pilot::Seen;
use crate::session::{Done, Wish};
use anyhow::Result;
use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_core::interval::Interval;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_decide::rule::Rule;
use plimsoll_engine::health::{machine, rss_max_bytes};
use plimsoll_job::keeping::Finished;
use plimsoll_job::output::lost_file;
use plimsoll_job::tool;
use plimsoll_job::usage::{Unreachable, one_line};
use plimsoll_record::ab::{AbEnd, AbResult, AbRule, AbSide};
use plimsoll_record::{Generator, JobResults, RunRecord, TargetInfo};
use plimsoll_report::assemble::{Ending, PhasePlan, RecordHeader, Tally, assemble};
use plimsoll_report::command::kept;
use plimsoll_report::folder::RunFolder;

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
    let metrics = answers(wish, done, &generator, args.error.0);
    let rule =
        |rule: &Rule| AbRule { rule: rule.to_string(), judged: ruled(rule, &metrics, &generator) };
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
        metrics,
        notes: Vec::new(),
        blocks: done.pairs.clone(),
        generator,
    }
}

fn is_judged(kind: Kind, args: &AbArgs) -> bool {
    kind != Kind::Command && args.a_bin.is_none() && args.b_bin.is_none()
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
