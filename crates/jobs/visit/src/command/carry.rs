//! Runs a visit and keeps its record.

use super::finish;
use super::shown::VisitProgress;
use super::task::Task;
use crate::Visit;
use crate::course::Course;
use anyhow::Result;
use plimsoll_core::clock::{SECOND_NS, now_ns};
use plimsoll_engine::run::run as run_engine;
use plimsoll_job::keeping::{About, Finished, JobEnd, carry_out};
use plimsoll_job::output::Output;
use plimsoll_job::signals;
use plimsoll_job::throughput;
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
    let finished = carry_out(&task.scenario, &about, output, |keeping| {
        let (stop, over) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let flags = [keeping.stop.clone(), stop.clone(), over.clone()];
        let started_ns = now_ns();
        let course = Course::new(visit, started_ns);
        let watch = watch(visit.clone(), course, state, flags)?;
        let mut second = |_: &_| progress.show();
        let end = run_engine(&plan, Http::default, sessions, keeping.sink, &mut second, &stop);
        over.store(true, Ordering::Relaxed);
        // A watch that broke has no course to show, and the visit is as good as with it.
        let over_time = watch.join().unwrap_or_default();
        let end = end?;
        let received_ns = now_ns();
        // Only what is written is complete.
        let written = write_out(visit, state);
        let now_ns = now_ns();
        progress.done();
        let mut warnings = Vec::new();
        // What the output said before is the reason why the visit ended.
        if let Err(error) = &written
            && !visit.is_stopped()
        {
            warnings.push(format!("the documents or the state cannot be written: {error}"));
        }
        let took = finish::Took {
            seconds: (now_ns - started_ns) as f64 / 1e9,
            writing_s: (now_ns - received_ns) as f64 / 1e9,
            cpu_s: end.cpu_s,
            first_bytes: finish::together(&counted),
            over_time,
        };
        let result = finish::result(visit, &before, &took, written.is_ok());
        let verdict = finish::verdict(&result, &end, signals::is_stopped());
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
    mut course: Course,
    state: Option<&Path>,
    [wanted, stop, over]: [Arc<AtomicBool>; 3],
) -> Result<JoinHandle<Vec<VisitMoment>>> {
    let state = state.map(Path::to_owned);
    let body = move || {
        let mut saved_ns = now_ns();
        while !over.load(Ordering::Relaxed) {
            course.look(&visit, now_ns());
            if wanted.load(Ordering::Relaxed) || visit.is_stopped() {
                stop.store(true, Ordering::Relaxed);
            }
            if let Some(state) = &state
                && now_ns() - saved_ns >= SAVE_EVERY_NS
            {
                saved_ns = now_ns();
                // The next second tries again; at the end an error is told.
                visit.save_soon(state);
            }
            std::thread::sleep(LOOK_EVERY);
        }
        course.end(&visit, now_ns())
    };
    Ok(std::thread::Builder::new().name("watch".to_owned()).spawn(body)?)
}
