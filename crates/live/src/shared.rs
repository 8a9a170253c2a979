//! State that the run and the thread of the server share.

use crate::board::{Board, end, reload};
use crate::readers::Readers;
use crate::ring::Ring;
use crate::strangers::Strangers;
use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use plimsoll_core::clock::now_ns;
use std::convert::Infallible;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;
use tokio::task::AbortHandle;

/// Age up to which a page is new enough for a browser that opens it, ns.
const FRESH_NS: u64 = 1_500_000_000;
/// Longest wait of such a page for a new one.
const RENEWAL: Duration = Duration::from_secs(2);

/// Requests of the server to the run.
pub struct Hooks {
    /// Asks for a board with its page, because a browser opens it.
    pub renew: Box<dyn Fn() + Send + Sync>,
    /// Ends the run in order.
    pub stop: Box<dyn Fn() + Send + Sync>,
    /// The numbers of the run for a scrape.
    pub metrics: Box<dyn Fn() -> String + Send + Sync>,
    /// Media type of these numbers.
    pub metrics_kind: &'static str,
}

/// State that is shared by the run and the thread of the server.
pub struct Shared {
    pub token: String,
    pub is_loopback: bool,
    pub hooks: Hooks,
    shown: Mutex<Shown>,
    /// Connections that are open.
    pub connections: AtomicUsize,
    /// Those of them that have not shown the token.
    pub strangers: Strangers,
    /// Notified at the end of the run.
    pub over: Notify,
    /// True from the end of the run on.
    pub is_over: AtomicBool,
    /// Notified of each new page.
    pub renewed: Notify,
}

/// The page as readers see it.
#[derive(Default)]
pub struct Shown {
    pub board: Board,
    /// The report, once the run is over.
    pub report: Option<Bytes>,
    /// Number of the last event.
    pub number: u64,
    pub ring: Ring,
    pub readers: Readers,
    /// The page, as it was at `page_ns` on the monotonic clock.
    pub page: Bytes,
    pub page_ns: u64,
}

impl Shared {
    /// State without readers and without a page.
    pub fn new(token: String, is_loopback: bool, hooks: Hooks) -> Self {
        Self {
            token,
            is_loopback,
            hooks,
            shown: Mutex::default(),
            connections: AtomicUsize::new(0),
            strangers: Strangers::default(),
            over: Notify::new(),
            is_over: AtomicBool::new(false),
            renewed: Notify::new(),
        }
    }

    /// The page as readers see it, for one change.
    pub fn lock(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The page as it is now; after the end of the run, the report. One that is old is made again first, if that does not
    /// take long; the first one is waited for, however long it takes: a browser would show an empty page, and not ask again.
    pub async fn page(&self) -> Bytes {
        loop {
            // Made before the look at the state, so that no change is missed between the two.
            let (renewed, over) = (self.renewed.notified(), self.over.notified());
            let (page, age_ns) = {
                let shown = self.lock();
                (shown.page.clone(), now_ns() - shown.page_ns)
            };
            if self.is_over.load(Ordering::SeqCst) || (!page.is_empty() && age_ns <= FRESH_NS) {
                break;
            }
            (self.hooks.renew)();
            if !page.is_empty() {
                let _ = tokio::time::timeout(RENEWAL, renewed).await;
                break;
            }
            tokio::select! {
                () = renewed => {}
                () = over => {}
            }
        }
        let shown = self.lock();
        shown.report.as_ref().unwrap_or(&shown.page).clone()
    }

    /// The events after number `seen`, and all that follow; everything if they are forgotten. A page of another structure
    /// than `page` loads itself again. `None` if there are too many readers.
    pub fn follow(
        &self,
        seen: Option<u64>,
        page: Option<u64>,
        connection: AbortHandle,
    ) -> Option<BoxBody<Bytes, Infallible>> {
        let mut shown = self.lock();
        let is_old = page.is_some_and(|page| page != shown.board.edition());
        let missed = seen.and_then(|seen| shown.ring.after(seen)).map(|events| events.concat());
        let first = match (missed, &shown.report) {
            // A comment, so that the reader knows that it is connected.
            (Some(missed), _) if missed.is_empty() => Bytes::from_static(b": following\n\n"),
            (Some(missed), _) => missed.into(),
            (None, Some(report)) => {
                let text = String::from_utf8_lossy(report).into_owned();
                end(&text, shown.number)
            }
            (None, None) if is_old => reload(shown.number),
            (None, None) => shown.board.whole(shown.number),
        };
        let number = shown.number;
        shown.readers.add(first, number, connection)
    }
}
