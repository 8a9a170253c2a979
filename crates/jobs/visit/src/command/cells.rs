//! Ways of visiting, each measured for a little while.

use super::{SLICES_EACH, Task, VisitArgs, alarm, finish, show};
use crate::{Destination, DocumentFormat, Packing, Visit, VisitForm, Written};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::run::{RunEnd, run as run_engine};
use plimsoll_job::keeping::{About, JobEnd, carry_out};
use plimsoll_job::output::Output;
use plimsoll_job::throughput;
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_record::Sink;
use plimsoll_record::visit::{VisitCell, VisitResult};
use plimsoll_wire::http::Http;
use plimsoll_workloads::http::Troubles;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Default of `--measure-for`.
const MEASURE_FOR: Span = Span::seconds(3);

/// Measures one way of visiting for the time `length`.
fn cell(
    task: &Task,
    form: &VisitForm,
    length: Span,
    sink: &mut (dyn Sink + Send),
) -> Result<(VisitCell, RunEnd, Arc<Visit>)> {
    let to = Written {
        destination: Destination::Nowhere,
        format: DocumentFormat::Documents,
        packing: Packing::Plain,
    };
    let visit = Visit::begin(form.clone(), to, task.failures_max);
    let visit = Arc::new(visit.map_err(|error| usage(error.to_string()))?);
    let (plan, forms) = task.plan(form)?;
    let (sessions, _first_bytes) = task.sessions(&visit, &forms);
    let (rings, watch) = alarm(length)?;
    let started_ns = now_ns();
    let end = run_engine(&plan, Http::default, sessions, sink, &mut |_| {}, &rings);
    rings.store(true, Ordering::Relaxed);
    // It only waits; there is nothing to learn from it.
    let _ = watch.join();
    let end = end?;
    let totals = visit.totals();
    // A cell that is cut off waits a little for requests in flight.
    let seconds = ((now_ns() - started_ns) as f64 / 1e9).max(1e-9);
    let cell = VisitCell {
        slices: form.slices,
        stream: form.stream,
        concurrency: form.concurrency,
        seconds,
        documents_per_s: (totals.documents + totals.removes) as f64 / seconds,
        gbps: totals.bytes as f64 * 8.0 / 1e9 / seconds,
        replies: totals.replies,
        time: finish::shares(totals.times),
        cpu_s_per_gb: finish::per_gb(end.cpu_s, totals.bytes),
        whole: totals.is_complete(),
        failed: end.totals.ledger.failed.total(),
    };
    Ok((cell, end, visit))
}

/// Measures the whole matrix and prints it.
pub fn measure(task: &mut Task, args: &VisitArgs, output: &Output) -> Result<u8> {
    let slices = match args.slices()? {
        Some(slices) => vec![slices],
        None => SLICES_EACH.iter().map(|each| each * task.targets.len() as u32).collect(),
    };
    let concurrencies = match args.concurrency {
        Some(own) => vec![Some(own)],
        None => vec![None, Some(8)],
    };
    let streams = if args.chunked { vec![false] } else { vec![false, true] };
    let mut forms = Vec::new();
    for &stream in &streams {
        for &slices in &slices {
            for &concurrency in &concurrencies {
                let wanted = Some(args.wanted_documents(stream));
                let own = VisitForm { slices, stream, concurrency, wanted, ..task.form.clone() };
                forms.push(own);
            }
        }
    }
    let (plan, _) = task.plan(&forms[0])?;
    let about = About {
        plan: &plan,
        class_names: vec!["visit".to_owned()],
        distinct_requests: None,
        troubles: Troubles::default(),
    };
    let finished = carry_out(&task.scenario, &about, output, |keeping| {
        let mut result = VisitResult::default();
        let mut all: Option<RunEnd> = None;
        for form in &forms {
            let (cell, end, visit) =
                cell(task, form, args.measure_for.unwrap_or(MEASURE_FOR), keeping.sink)?;
            result.matrix.push(cell);
            result.trouble = result.trouble.take().or(visit.trouble());
            match &mut all {
                Some(all) => all.absorb(end),
                none => *none = Some(end),
            }
            if result.trouble.is_some() || plimsoll_job::signals::is_stopped() {
                break;
            }
        }
        let Some(mut end) = all else { return Err(usage("nothing was measured")) };
        // Every cell is cut off when its time is over.
        end.interrupted = plimsoll_job::signals::is_stopped();
        let verdict = match (&result.trouble, end.interrupted, end.totals.ledger.ok) {
            (Some(trouble), ..) => Verdict::new(VerdictKind::TargetFailed, vec![trouble.clone()]),
            (None, true, _) => {
                let reason = "stopped before every combination was measured".to_owned();
                Verdict::new(VerdictKind::Partial, vec![reason])
            }
            _ => throughput::judge(Verdict::default(), &end, None),
        };
        let results = JobResults::of(result);
        Ok(JobEnd { end, results, verdict: Some(verdict), warnings: Vec::new() })
    })?;
    show(&finished, output, false)
}
