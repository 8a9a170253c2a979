//! The thread that makes boards of a run that goes on.

use super::{Following, Going};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::priority::{StepBack, step_back};
use plimsoll_core::verdict::Verdict;
use plimsoll_live::{Board, Plots};
use plimsoll_outlets::stream::closed;
use plimsoll_record::{RunRecord, Sink};
use plimsoll_report::assemble::{Ending, RecordHeader, Tally, assemble};
use plimsoll_report::forms::Forms;
use plimsoll_report::sections::{Course, sheet};
use plimsoll_report::sheet::{Section, Sheet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// Shortest time between two boards, ns.
const EVERY_NS: u64 = 1_000_000_000;
/// A board may take this part of the time: a long run has fewer of them.
const SHARE: u64 = 20;
/// Sections with more bytes than this are sent every [`LARGE_EVERY`] boards: their plots are drawn from numbers, and only
/// their tables are old until then.
const LARGE_BYTES: usize = 4_000;
/// Number of boards between two of such a section.
const LARGE_EVERY: u64 = 5;

/// Makes boards while a browser follows.
pub(super) struct Renderer {
    following: Arc<Following>,
    course: Course,
    /// Number of the run that the course is of.
    number: u32,
    /// Number of boards so far.
    boards: u64,
    /// Sections as they were sent last, by id.
    sent: BTreeMap<String, String>,
}

/// A run at a moment.
struct Moment {
    header: RecordHeader,
    totals: Interval,
    verdict: Option<Verdict>,
    /// True if a browser opens the page.
    is_wanted: bool,
}

impl Renderer {
    pub fn new(following: Arc<Following>) -> Self {
        Self { following, course: Course::default(), number: 0, boards: 0, sent: BTreeMap::new() }
    }

    /// Makes boards until the run is over.
    pub fn work(mut self) {
        step_back(StepBack::Last);
        let mut next_ns = 0;
        while let Some(moment) = self.moment(next_ns) {
            let from_ns = now_ns();
            let record = record(&moment);
            let sheet = sheet(&record, &self.course, &[Forms::LOAD]);
            let board = self.board(&sheet, moment.is_wanted);
            let made_ns = now_ns();
            self.following.live.publish(board);
            next_ns = from_ns + (SHARE * (made_ns - from_ns)).max(EVERY_NS);
        }
    }

    /// Waits for something to show and for a reader, and takes the run as it is then; `None` at its end.
    fn moment(&mut self, next_ns: u64) -> Option<Moment> {
        const LOOK: Duration = Duration::from_millis(250);
        let following = self.following.clone();
        let mut going = following.shared.lock();
        loop {
            if going.is_over {
                return None;
            }
            // Kept short also while no browser follows.
            if going.columns.len() >= super::COLUMNS_MAX {
                self.take(&mut going);
            }
            let is_due = now_ns() >= next_ns && going.has_news;
            if going.is_wanted || (is_due && following.live.readers() > 0) {
                break;
            }
            let waited = following.shared.changed.wait_timeout(going, LOOK);
            going = waited.unwrap_or_else(std::sync::PoisonError::into_inner).0;
        }
        self.take(&mut going);
        let is_wanted = std::mem::take(&mut going.is_wanted);
        going.has_news = false;
        let (header, mut sums) = (going.header.clone(), going.sums.clone());
        // The collector of the run needs the lock; a judgement takes longer than a copy.
        drop(going);
        let verdict = sums.verdict();
        let mut totals = sums.into_totals();
        // Requests in flight have not ended yet.
        totals.ledger = closed(totals.ledger);
        Some(Moment { header, totals, verdict, is_wanted })
    }

    /// Takes the seconds and failures that came since the last time.
    fn take(&mut self, going: &mut Going) {
        if self.number != going.number {
            self.number = going.number;
            self.course = Course::default();
        }
        going.columns.drain(..).for_each(|column| self.course.series.push_column(column));
        for failure in going.failures.drain(..) {
            // It keeps some of them, and cannot fail.
            let _ = self.course.failure(&failure);
        }
    }

    /// The markup of each section; of a large one what was sent before, unless it is its turn.
    fn sections(&mut self, sheet: &Sheet, is_whole: bool) -> Vec<(String, String)> {
        self.boards += 1;
        let is_turn = is_whole || self.boards % LARGE_EVERY == 1;
        let sent = &mut self.sent;
        let choose = |(id, section): (String, &Section)| {
            let html = match sent.get(&id) {
                Some(before) if !is_turn && before.len() > LARGE_BYTES => before.clone(),
                _ => plimsoll_html::inner(section),
            };
            sent.insert(id.clone(), html.clone());
            (id, html)
        };
        plimsoll_html::sections(sheet).map(choose).collect()
    }

    fn board(&mut self, sheet: &Sheet, is_wanted: bool) -> Board {
        let numbers = plimsoll_html::numbers(sheet);
        let ids: Vec<&str> = sheet.sections.iter().map(|one| one.id.as_str()).collect();
        let plots: Vec<&str> = sheet.plots().map(|plot| plot.id.as_str()).collect();
        let mut board = Board {
            structure: format!("{} {}", ids.join(" "), plots.join(" ")),
            page: String::new(),
            sections: self.sections(sheet, is_wanted),
            plots: Plots {
                arrays: numbers.arrays.into_iter().collect::<BTreeMap<_, _>>(),
                definitions: numbers.definitions,
                cells: numbers.cells.into_iter().collect(),
            },
        };
        if is_wanted {
            board.page = plimsoll_html::render_live(sheet, &self.following.live.events(&board));
        }
        board
    }
}

/// The record that a run would leave if it ended now.
fn record(moment: &Moment) -> RunRecord {
    let Moment { header, totals, verdict, .. } = moment;
    let mut tally = Tally::new(header);
    tally.add(totals);
    let (totals, phases) = tally.finish();
    let ending = Ending {
        verdict: verdict.clone().unwrap_or_default(),
        warnings: vec![
            "the run goes on: requests in flight count as unfinished, and the verdict may change"
                .to_owned(),
        ],
        goes_on: true,
        ..Ending::default()
    };
    assemble(header, &totals, phases, ending)
}
