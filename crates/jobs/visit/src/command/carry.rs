//! Runs a visit and keeps its record.

use super::finish;
use super::merging::{self, VisitPart};
use super::shown::VisitProgress;
use super::task::Task;
use crate::Visit;
use crate::course::{Course, Standing};
use anyhow::Result;
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_core::interval::Interval;
use plimsoll_job::keeping::{About, Finished, JobEnd, Keeping, Started, carry_out};
use plimsoll_job::output::Output;
use plimsoll_job::progress::AgentsProgress;
use plimsoll_job::signals;
use plimsoll_job::throughput;
use plimsoll_job::together::gather;
use plimsoll_record::JobResults;
use plimsoll_record::visit::VisitMoment;
use plimsoll_wire::http::Http;
use plimsoll_workloads::http::Troubles;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Interval at which the watch looks whether the visit has come to a bad end, and whether it is time to save it.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// Between two savings of the state of a visit that can be resumed, ns.
const SAVE_EVERY_NS: u64 = SECOND_NS;
/// Time that a visit that was stopped waits for its output to take what was received, ns.
const LAST_WORDS_NS: u64 = SECOND_NS;

/// Runs the visit; `state` is the file that keeps how far it has come.
///
/// # Errors
/// When the run cannot take place.
pub fn carry(
    task: &Task,
    visit: &Arc<Visit>,
    state: Option<&Path>,
    output: &Output,
) -> Result<Finished> {
    let (plan, forms) = task.plan(visit.form())?;
    let about = About {
        plan: &plan,
        class_names: vec!["visit".to_owned()],
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    let before = visit.totals();
    let progress = VisitProgress::new(visit.clone(), output.voice());
    let (sessions, counted) = task.sessions(visit, &forms);
    let of_agents = AgentsProgress::new(output.voice());
    let finished = carry_out(&task.scenario, &about, output, |keeping| {
        let (stop, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = [keeping.stop.clone(), stop.clone(), over.clone()];
        let mut keeping = Keeping { stop, ..keeping };
        let watch = watch(visit.clone(), keeping.started.clone(), state, flags)?;
        let mut second = |second: &Interval| match &of_agents {
            Some(progress) => progress.show(second),
            None => progress.show(),
        };
        let end = keeping.run(&plan, Http::default, sessions, &mut second);
        over.store(true, Ordering::Relaxed);
        // A watch that broke has no course to show, and the visit is as good as with it.
        let over_time = watch.join().unwrap_or_default();
        let end = end?;
        let own = || {
            let received_ns = now_ns();
            // Only what is written is complete.
            let written = write_out(visit, state);
            let now_ns = now_ns();
            progress.done();
            let took = finish::Took {
                seconds: now_ns.saturating_sub(end.start_ns) as f64 / 1e9,
                writing_s: (now_ns - received_ns) as f64 / 1e9,
                cpu_s: end.cpu_s,
                first_bytes: finish::together(&counted),
                over_time,
            };
            Ok(VisitPart::of(visit, &before, &took, written))
        };
        let gathered = gather(own)?;
        let (result, lacks, warnings) = merging::together(gathered, end.cpu_s)?;
        of_agents.iter().for_each(AgentsProgress::done);
        let mut verdict = finish::verdict(&result, &end, signals::is_stopped());
        verdict.reasons.extend(lacks);
        let verdict = throughput::judge(verdict, &end, Some(finish::output(&result)));
        let results = JobResults::of(result);
        Ok(JobEnd { end, results, verdict: Some(verdict), warnings })
    });
    progress.done();
    finished
}

/// Waits until everything is written; after a signal not for long, since no one may read the pipe that it goes to.
fn write_out(visit: &Visit, state: Option<&Path>) -> Result<(), String> {
    let mut signal_ns = None;
    let mut goes_on = || {
        if !signals::is_stopped() {
            return true;
        }
        now_ns().saturating_sub(*signal_ns.get_or_insert_with(now_ns)) < LAST_WORDS_NS
    };
    visit.finish(state, &mut goes_on).map_err(|error| error.to_string())
}

/// Ends the run when the user wants that or the visit cannot go on, and has it saved every second. Returns the visit over time.
fn watch(
    visit: Arc<Visit>,
    started: Started,
    state: Option<&Path>,
    [wanted, stop, over]: [Arc<AtomicBool>; 3],
) -> Result<JoinHandle<Vec<VisitMoment>>> {
    let state = state.map(Path::to_owned);
    let before = Standing::of(&visit, now_ns());
    let body = move || {
        let mut saved_ns = now_ns();
        let mut course = None;
        let begin = |began_ns| Course::new(before, began_ns);
        while !over.load(Ordering::Relaxed) {
            if let Some(began_ns) = started.ns() {
                course.get_or_insert_with(|| begin(began_ns)).look(&visit, now_ns());
            }
            if wanted.load(Ordering::Relaxed) || visit.is_stopped() {
                stop.store(true, Ordering::Relaxed);
            }
            if let Some(state) = &state
                && now_ns() - saved_ns >= SAVE_EVERY_NS
            {
                saved_ns = now_ns();
                // The next second tries again; at the end an error is reported.
                visit.save_soon(state);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        // A short visit may be over before this thread has looked at it.
        let course = course.or_else(|| started.ns().map(begin));
        course.map(|course| course.end(&visit, now_ns())).unwrap_or_default()
    };
    Ok(std::thread::Builder::new().name("watch".to_owned()).spawn(body)?)
}
