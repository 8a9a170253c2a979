//! The lines on stderr that show a matrix filling up.

use crate::execute::note;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::search::record::{Cell, CellKey, Load, Probe};
use plimsoll_report::text::number::{counted, lasting, rate, significant, time};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A status line under a line for each finished part; without a terminal the lines alone, with `--quiet` nothing.
pub struct Shown {
    bar: ProgressBar,
    quiet: bool,
    planned: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    done: usize,
    cells_s: f64,
    measured: usize,
    what: String,
    since_ns: u64,
}

impl Shown {
    /// For so many cells, of which some were finished in earlier sittings.
    #[must_use]
    pub fn new(planned: usize, done: usize, quiet: bool) -> Self {
        let target = if quiet {
            ProgressDrawTarget::hidden()
        } else {
            ProgressDrawTarget::stderr_with_hz(4)
        };
        let bar = ProgressBar::with_draw_target(Some(planned as u64), target);
        if let Ok(style) = ProgressStyle::with_template("{elapsed:>4} [{bar:20}] {pos}/{len} {msg}")
        {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_position(done as u64);
        let state = State { done, ..State::default() };
        Self { bar, quiet, planned, state: Mutex::new(state) }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line that stays.
    pub fn line(&self, text: &str) {
        if self.quiet {
            return;
        }
        if self.bar.is_hidden() {
            note(text);
        } else {
            self.bar.println(text);
        }
    }

    /// How long so many cells will take at least.
    pub fn planned(&self, cells: usize, each_s: f64) {
        self.line(&format!(
            "{} of {} each: {}, and what loading takes",
            counted(cells as u64, "cell"),
            lasting(each_s),
            lasting(cells as f64 * each_s)
        ));
    }

    /// What goes on now, without figures.
    pub fn doing(&self, what: &str) {
        self.bar.set_message(what.to_owned());
    }

    /// An engine answers.
    pub fn started(&self, name: &str, version: &str, ours: bool, seconds: f64) {
        let version = if version.is_empty() { String::new() } else { format!(": {version}") };
        self.line(&match ours {
            true => format!("{name}: started in {}{version}", lasting(seconds)),
            false => format!("{name}: answers{version}"),
        });
    }

    /// It is known what an engine makes of the matrix's distances.
    pub fn probed(&self, probe: &Probe, distances: &BTreeSet<u8>) {
        let name = &probe.engine;
        if let Some(trouble) = &probe.trouble {
            self.line(&format!("{name}: {trouble}"));
        }
        for distance in distances {
            if let Some(reached) = probe.clamped_to(*distance) {
                self.line(&format!(
                    "{name}: says yes to distance {distance} and searches {reached}"
                ));
            }
        }
    }

    /// A text is being made.
    pub fn making(&self, label: &str, bytes: u64) {
        self.bar.set_message(format!("making the text of {label}: {} MB", bytes / 1_000_000));
    }

    /// A text is being loaded.
    pub fn loading(&self, documents: u64, of: u64, bytes: u64, seconds: f64) {
        if self.bar.is_hidden() {
            return;
        }
        let seconds = seconds.max(1e-9);
        let rate = documents as f64 / seconds;
        let left = of.saturating_sub(documents) as f64 / rate.max(1e-9);
        self.bar.set_message(format!(
            "loading {documents}/{of} documents, {rate:.0}/s, {:.1} MB/s, {} left",
            bytes as f64 / 1e6 / seconds,
            lasting(left)
        ));
    }

    /// A text was loaded.
    pub fn loaded(&self, load: &Load) {
        let shards = counted(load.shards.into(), "shard");
        let place = format!("{}, {}, {shards}", load.engine, load.size);
        self.line(&match (&load.trouble, load.reused) {
            (Some(trouble), _) => format!("{place}: not loaded: {trouble}"),
            (None, true) => format!("{place}: {} documents were there", load.documents),
            (None, false) => format!(
                "{place}: {} documents in {} ({}/s, {} MB/s), found {} later",
                load.documents,
                lasting(load.seconds),
                significant(load.documents_per_s),
                significant(load.mb_per_s),
                lasting(load.searchable_s)
            ),
        });
    }

    /// A cell begins.
    pub fn begins(&self, key: &CellKey) {
        let mut state = self.state();
        state.what = format!(
            "{} {} k={} shards={} users={}",
            key.engine, key.size, key.distance, key.shards, key.users
        );
        state.since_ns = now_ns();
        self.bar.set_message(state.what.clone());
    }

    /// A second of a cell has passed.
    pub fn second(&self, second: &Interval) {
        if self.bar.is_hidden() {
            return;
        }
        let state = self.state();
        let all = second.all_classes();
        self.bar.set_message(format!(
            "{}   {}/s   p95 {}   failed {}   {}",
            state.what,
            significant(second.ledger.ok as f64 / second.seconds().max(1e-9)),
            time(all.response.quantile_ns(0.95) as f64 / 1e6),
            second.ledger.failed.total(),
            self.left(&state)
        ));
    }

    /// A repeat of a cell has ended.
    pub fn repeat(&self, done: u32, of: u32) {
        if of > 1 && done < of {
            let state = self.state();
            self.bar.set_message(format!("{}   repeat {} of {of}", state.what, done + 1));
        }
    }

    /// The time that the cells still to come will take, as far as those before tell.
    fn left(&self, state: &State) -> String {
        if state.measured == 0 {
            return String::new();
        }
        let each_s = state.cells_s / state.measured as f64;
        let current_s = now_ns().saturating_sub(state.since_ns) as f64 / 1e9;
        let left_s =
            each_s * self.planned.saturating_sub(state.done) as f64 - current_s.min(each_s);
        format!("about {} of cells left", lasting(left_s.max(0.0)))
    }

    /// Some cells of an engine cannot be measured.
    pub fn withheld(&self, engine: &str, cells: usize, reason: &str) {
        let done = {
            let mut state = self.state();
            state.done += cells;
            self.bar.set_position(state.done as u64);
            state.done
        };
        let cells = counted(cells as u64, "cell");
        self.line(&format!("{engine}: {reason} ({cells} withheld)  [{done}/{}]", self.planned));
    }

    /// A cell is finished.
    pub fn ends(&self, cell: &Cell, measured: bool) {
        let eta = {
            let mut state = self.state();
            state.done += 1;
            if measured {
                state.measured += 1;
                state.cells_s += now_ns().saturating_sub(state.since_ns) as f64 / 1e9;
            }
            state.since_ns = now_ns();
            self.bar.set_position(state.done as u64);
            let done = state.done;
            let left = if done < self.planned { self.left(&state) } else { String::new() };
            format!("[{done}/{}] {left}", self.planned)
        };
        let key = &cell.key;
        let number = cell.ok_per_s.map_or("-".to_owned(), |per_s| format!("{}/s", rate(per_s)));
        let mut text = format!("{key}: {number}");
        if cell.ok_per_s.is_some() {
            text += &format!(", p95 {}", time(cell.latency_ms.p95));
        }
        if let Some(reason) = &cell.reason {
            text += &format!(" ({reason})");
        }
        if !cell.marks.is_empty() {
            text += &format!(" [{}]", cell.marks.join(", "));
        }
        self.line(format!("{text}  {eta}").trim_end());
    }

    /// Takes the status line away.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}
