//! `plimsoll ab`: from its flags to its exit code.

use crate::arms::{self, Arm};
use crate::blocks::Blocks;
use crate::duet;
use crate::flags::AbArgs;
use crate::forms::FORMS;
use crate::jobs::{Kind, Length};
use crate::metrics::{self, Metric};
use crate::number::Number;
use crate::pilot::{self, Seen};
use crate::result;
use crate::session::{Done, Watcher, Wish, compare};
use crate::sought::limit;
use crate::words::sentence;
use anyhow::Result;
use plimsoll_core::clock::wall_us;
use plimsoll_job::execute::print;
use plimsoll_job::job::Program;
use plimsoll_job::output::Output;
use plimsoll_job::progress::{Far, Part, Progress};
use plimsoll_job::signals::{self, Stopped};
use plimsoll_job::temporary::temporary_folder;
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_report::assemble::RecordHeader;
use plimsoll_report::folder::{RunFolder, amend};
use std::cell::OnceCell;
use std::time::Duration;

/// Largest error that is accepted: above it, no claim means anything.
const ERROR_MOST: f64 = 0.2;
/// Most metrics that can be named.
const NAMED_MOST: usize = 12;
/// Time that a block may take beyond the whole budget.
const LIMIT: Duration = Duration::from_secs(120);

/// Runs the command.
///
/// # Errors
/// Wrong usage, a target that is not there, or a program failure.
pub fn run(args: &AbArgs, program: &Program) -> Result<u8> {
    let kind = if args.command { Kind::Command } else { Kind::of(&args.words[0])? };
    arms::check(args, kind)?;
    let metrics = named(args, kind)?;
    check(args, &metrics)?;
    let output = args.output.output();
    output.check()?;
    signals::stop_flag()?;
    let halves = match args.duet {
        false => None,
        true => {
            let has_targets = args.a_command.is_some() || args.b_command.is_some();
            Some(duet::halves(&duet::processors()?, has_targets)?)
        }
    };
    let bound = |side: usize| {
        let half = halves.as_ref().map(|halves| &halves[side].target);
        half.filter(|own| !own.is_empty()).map(|own| duet::set(own))
    };
    let (arms, mut notes) = arms::make(args, kind, program, [bound(0), bound(1)])?;
    let length = match kind {
        Kind::Seek if limit(&args.words).is_none() => Length::Whole,
        _ => kind.length(&args.words),
    };
    let blocks = Blocks {
        kind,
        length,
        number: args.number.as_deref().map(Number::of).transpose()?,
        are_generators: args.a_bin.is_some() || args.b_bin.is_some(),
        limit: LIMIT + Duration::from_nanos(args.budget.ns),
        folder: temporary_folder("ab")?,
    };
    let wish = Wish {
        asked_s: pilot::asked(kind, length, &args.words)?,
        metrics,
        error: args.error.0,
        margin: args.margin.0,
        budget_s: args.budget.as_seconds(),
        seed: args.seed,
        halves,
    };
    let shown = Shown {
        args,
        arms: &arms,
        wish: &wish,
        kind,
        progress: Progress::steady(output.voice()),
        kept: OnceCell::new(),
    };
    let check = |seen: &[Seen; 2]| {
        if args.duet {
            duet::check_targets(&arms, [seen[0].is_here, seen[1].is_here])?;
        }
        shown.open(&output)
    };
    let done = compare(&blocks, &arms, &wish, &shown, check)?;
    shown.progress.done();
    let Some(done) = done else {
        return Err(Stopped { during: "during the pilot".to_owned() }.into());
    };
    notes.extend(remarks(&done));
    let mut result = result::result(args, kind, &arms, &wish, &done);
    result.notes = notes;
    let kept = shown.kept.get();
    let header = kept.map_or_else(|| result::header(args, &arms, None), |kept| kept.1.clone());
    let folder = kept.and_then(|kept| kept.0.as_ref());
    let finished = result::finish(&header, folder, result, &done, Vec::new())?;
    print(&finished, &output, &FORMS)
}

/// The metrics that the user named, or those that fit the job; those of rules are among them.
fn named(args: &AbArgs, kind: Kind) -> Result<Vec<Metric>> {
    let are_generators = args.a_bin.is_some() || args.b_bin.is_some();
    let fitting = kind.metrics(&args.words, are_generators).iter().map(ToString::to_string);
    let fitting: Vec<String> = match args.number {
        Some(_) => vec!["number".to_owned()],
        None => fitting.collect(),
    };
    let is_given = !args.on.is_empty();
    let mut names = if is_given { args.on.clone() } else { fitting };
    for rule in &args.fail_on {
        let is_there = names.contains(&rule.metric);
        if is_given && !is_there {
            return Err(usage(format!(
                "--fail-on {rule}: {} is not among --on {}; name it there too",
                rule.metric,
                args.on.join(",")
            )));
        }
        if !is_there {
            names.push(rule.metric.clone());
        }
    }
    let mut metrics: Vec<Metric> = Vec::new();
    for name in &names {
        let metric = Metric::of(name.trim(), args.higher_is_better, kind == Kind::Command)?;
        if metrics.iter().any(|other| other.name == metric.name) {
            return Err(usage(format!("--on: {} is named twice; name it once", metric.name)));
        }
        metrics.push(metric);
    }
    if metrics.len() > NAMED_MOST {
        return Err(usage(format!(
            "--on names {} metrics; name at most {NAMED_MOST}",
            metrics.len()
        )));
    }
    let has_number = metrics.iter().any(|metric| metric.name == "number");
    match (has_number, args.number.is_some()) {
        (true, false) => {
            Err(usage("--on number needs --number, the place of the number in the output"))
        }
        (false, true) => {
            Err(usage("--number is not among --on; name number there too, or leave out --number"))
        }
        _ => Ok(metrics::all(metrics, kind == Kind::Command)),
    }
}

fn check(args: &AbArgs, metrics: &[Metric]) -> Result<()> {
    debug_assert!(metrics.iter().any(|metric| metric.is_named));
    let error = args.error.0;
    if !(error > 0.0 && error <= ERROR_MOST) {
        return Err(usage("--error must be above 0 % and at most 20 %"));
    }
    if !(args.margin.0 > 0.0 && args.margin.0 < 1.0) {
        return Err(usage("--margin must be above 0 % and below 100 %"));
    }
    if args.budget.ns == 0 {
        return Err(usage("--budget must be more than 0"));
    }
    Ok(())
}

/// Remarks that a reader may need.
fn remarks(done: &Done) -> Vec<String> {
    let mut remarks = Vec::new();
    let is_here = done.seen.iter().any(|seen| seen.is_here);
    if is_here {
        remarks.push(
            "targets and generator share this machine: they take CPU time from each other, on both sides alike"
                .to_owned(),
        );
    }
    remarks
}

/// Progress on stderr, and the record so far.
struct Shown<'a> {
    args: &'a AbArgs,
    arms: &'a [Arm; 2],
    wish: &'a Wish,
    kind: Kind,
    progress: Progress,
    kept: OnceCell<(Option<RunFolder>, RecordHeader)>,
}

impl Shown<'_> {
    /// Opens the record, after the pilots: a comparison that cannot begin leaves none.
    fn open(&self, output: &Output) -> Result<()> {
        let folder = match &output.runs {
            None => None,
            Some(runs) => Some(RunFolder::create_named(runs, "ab", output.naming(), wall_us())?),
        };
        let header = result::header(self.args, self.arms, folder.as_ref());
        if let Some(folder) = &folder {
            folder.begin(&header)?;
        }
        let _ = self.kept.set((folder, header));
        Ok(())
    }
}

impl Watcher for Shown<'_> {
    fn pilot(&self, letter: char) {
        self.progress.show(Far::Unknown, vec![Part::first(format!("pilot of {letter}"))]);
    }

    fn pairs(&self, done: &Done, budget_s: f64) {
        let result = result::result(self.args, self.kind, self.arms, self.wish, done);
        let mut parts =
            vec![Part::first(format!("{} of up to {} pairs", done.pairs.len(), done.planned))];
        let sentences = result.metrics.iter().filter_map(|metric| sentence(metric, &result));
        parts.extend(sentences.zip(1..).map(|(text, weight)| Part::new(text, weight)));
        self.progress.show(Far::Seconds(done.spent_s, budget_s), parts);
        if let Some(folder) = self.kept.get().and_then(|kept| kept.0.as_ref()) {
            // The finished record has it all; this one is for a process that is killed.
            let _ = amend(folder.path(), JobResults::of(result));
        }
    }
}
