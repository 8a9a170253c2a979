//! The live page: from the seconds of a run to the boards that browsers are sent.
//!
//! The collector of a run adds each second to sums, which costs as much as the journal's own. All else is done by a
//! thread that all others go before, and only while a browser follows.

mod board;

use crate::output::{Output, note};
use crate::signals;
use crate::usage::usage;
use anyhow::Result;
use board::Renderer;
use plimsoll_core::interval::Interval;
use plimsoll_core::system_error::with_advice;
use plimsoll_live::{Address, Hooks, Live};
use plimsoll_outlets::facts::Facts;
use plimsoll_outlets::prometheus;
use plimsoll_outlets::series::Series;
use plimsoll_outlets::stream::{Model, Sums};
use plimsoll_record::FailureSample;
use plimsoll_report::assemble::RecordHeader;
use plimsoll_report::series::Column;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;

/// Most failures that wait for the next board.
const FAILURES_MAX: usize = 200;
/// Number of seconds that wait for the next board, from which on they are taken though no browser follows.
const COLUMNS_MAX: usize = 256;

/// The live page of this process. A command of several runs has one, which shows the run that goes on.
static OPEN: Mutex<Option<Arc<Following>>> = Mutex::new(None);

/// Seconds of a run that goes on.
#[derive(Debug)]
pub(super) struct Going {
    /// Facts known before the first request.
    header: RecordHeader,
    /// Everything so far.
    sums: Sums,
    /// Seconds that no board has yet.
    columns: Vec<Column>,
    /// Failures that no board has yet.
    failures: Vec<FailureSample>,
    /// The same sums for a scrape.
    series: Series,
    facts: Facts,
    /// True if there is something to show that no board shows.
    has_news: bool,
    /// True if a page is being opened.
    is_wanted: bool,
    is_over: bool,
    /// Number of the run in this process.
    number: u32,
}

/// The server, and the run that it shows.
pub(crate) struct Following {
    live: Live,
    shared: Arc<Shared>,
}

pub(super) struct Shared {
    going: Mutex<Going>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Going> {
        self.going.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn opened() -> MutexGuard<'static, Option<Arc<Following>>> {
    OPEN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows a run from now on, if the flags ask for it.
///
/// # Errors
/// When the address cannot be listened on.
pub(crate) fn open(
    output: &Output,
    header: &RecordHeader,
    facts: &Facts,
    model: Model,
) -> Result<Option<Arc<Following>>> {
    let Some(address) = output.outlets.live_address() else { return Ok(None) };
    let going = |number| Going {
        header: header.clone(),
        sums: Sums::new(model),
        columns: Vec::new(),
        failures: Vec::new(),
        series: Series::new(&facts.classes, &facts.phases),
        facts: facts.clone(),
        has_news: true,
        is_wanted: false,
        is_over: false,
        number,
    };
    let mut open = opened();
    if let Some(following) = &*open {
        let mut now = following.shared.lock();
        *now = going(now.number + 1);
        drop(now);
        return Ok(Some(following.clone()));
    }
    let following = start(address, going(0))?;
    note(&format!("plimsoll: live page at {}", following.live.url()));
    *open = Some(following.clone());
    Ok(Some(following))
}

fn start(address: Address, going: Going) -> Result<Arc<Following>> {
    let stop = signals::stop_flag()?;
    let shared = Arc::new(Shared { going: Mutex::new(going), changed: Condvar::new() });
    let (scraped, wanted) = (shared.clone(), shared.clone());
    let hooks = Hooks {
        renew: Box::new(move || {
            wanted.lock().is_wanted = true;
            wanted.changed.notify_all();
        }),
        stop: Box::new(move || stop.store(true, Ordering::Relaxed)),
        metrics: Box::new(move || {
            let going = scraped.lock();
            prometheus::render(&going.facts, &going.series)
        }),
        metrics_kind: prometheus::CONTENT_TYPE,
    };
    let cannot = |error| usage(format!("--live {address}: {}", with_advice(&error)));
    let live = Live::start(address, hooks).map_err(cannot)?;
    if !address.0.ip().to_canonical().is_loopback() {
        note(&format!(
            "plimsoll: --live listens on {}, which other machines can reach, and sends the page and its token in clear",
            address
        ));
    }
    let following = Arc::new(Following { live, shared });
    let renderer = Renderer::new(following.clone());
    Builder::new().name("live-page".to_owned()).spawn(move || renderer.work()).map_err(cannot)?;
    Ok(following)
}

impl Following {
    /// Takes one finished second.
    pub fn take(&self, second: &Interval) {
        let mut going = self.shared.lock();
        going.sums.add(second);
        going.series.add(second);
        going.columns.push(Column::of(second));
        going.has_news = true;
        drop(going);
        self.shared.changed.notify_all();
    }

    /// Takes a sample of a failure.
    pub fn failure(&self, sample: &FailureSample) {
        let mut going = self.shared.lock();
        if going.failures.len() < FAILURES_MAX {
            going.failures.push(sample.clone());
        }
    }

    /// Takes the requests before the measured stretch.
    pub fn take_warmup(&self, warmup: &Interval) {
        self.shared.lock().series.add_warmup(warmup);
    }
}

/// True if a live page is open, so that [`end`] needs the report.
pub(crate) fn is_open() -> bool {
    opened().is_some()
}

/// Sends the report to all browsers, and ends the live page.
pub(crate) fn end(report: &str) {
    let Some(following) = opened().take() else { return };
    following.shared.lock().is_over = true;
    following.shared.changed.notify_all();
    following.live.end(report);
}
