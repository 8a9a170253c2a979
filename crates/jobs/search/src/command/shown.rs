//! The lines and figures that show a matrix filling up.

use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_job::progress::{Far, Part, Progress, Voice};
use plimsoll_record::search::{Cell, CellKey, Load, Probe};
use plimsoll_report::number::{self, count, counted, lasting, significant, time};
use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Progress of a matrix, and a line for each finished part.
pub struct Shown {
    progress: Progress,
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
    /// For this many cells, of which some were finished in earlier sittings.
    #[must_use]
    pub fn new(planned: usize, done: usize, voice: Voice) -> Self {
        // Starting an engine and ingesting a text take minutes without a figure.
        let progress = Progress::steady(voice);
        let state = State { done, ..State::default() };
        let shown = Self { progress, planned, state: Mutex::new(state) };
        shown.say(done, vec![Part::first("starting")]);
        shown
    }

    /// Shows what goes on behind the number of cells that are done.
    fn say(&self, done: usize, mut parts: Vec<Part>) {
        let cells = format!("{}/{} cells", count(done as u64), count(self.planned as u64));
        parts.insert(0, Part::new(cells, 1));
        self.progress.show(Far::Share(done as f64 / self.planned.max(1) as f64), parts);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A line that a reader has to know at once.
    pub fn notice(&self, text: &str) {
        self.progress.keep(text);
    }

    /// A line about a finished part.
    fn line(&self, text: &str) {
        self.progress.part(text);
    }

    /// Time that this many cells will take at least.
    pub fn planned(&self, cells: usize, each_s: f64) {
        self.line(&format!(
            "{} of {} each: {}, and the time for ingesting",
            counted(cells as u64, "cell"),
            lasting(each_s),
            lasting(cells as f64 * each_s)
        ));
    }

    /// Shows the present activity, without figures.
    pub fn doing(&self, what: &str) {
        self.say(self.state().done, vec![Part::first(what)]);
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
            self.notice(&format!("{name}: {trouble}"));
        }
        for distance in distances {
            if let Some(reached) = probe.clamped_to(*distance) {
                self.notice(&format!(
                    "{name}: accepts edit distance {distance} but searches with {reached}"
                ));
            }
        }
    }

    /// A text is being made.
    pub fn making(&self, label: &str, bytes: u64) {
        self.doing(&format!("creating the text of {label}: {}", number::bytes(bytes as f64)));
    }

    /// A text is being loaded.
    pub fn loading(&self, documents: u64, of: u64, bytes: u64, seconds: f64) {
        let seconds = seconds.max(1e-9);
        let rate = documents as f64 / seconds;
        let left = of.saturating_sub(documents) as f64 / rate.max(1e-9);
        let parts = vec![
            Part::first(format!("{} of {} documents", count(documents), count(of))),
            Part::new(format!("{}/s", significant(rate)), 2),
            Part::new(format!("{}/s", number::bytes(bytes as f64 / seconds)), 4),
            Part::new(format!("{} left", lasting(left)), 3),
        ];
        self.say(self.state().done, parts);
    }

    /// A text was loaded.
    pub fn loaded(&self, load: &Load) {
        let shards = counted(load.shards.into(), "shard");
        let place = format!("{}, {}, {shards}", load.engine, load.size);
        self.line(&match (&load.trouble, load.reused) {
            (Some(trouble), _) => format!("{place}: not ingested: {trouble}"),
            (None, true) => {
                format!("{place}: {} documents, ingested before", count(load.documents))
            }
            (None, false) => format!(
                "{place}: {} documents in {} ({}/s, {} MB/s), searchable after {}",
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
        self.say(state.done, vec![Part::first(state.what.clone())]);
    }

    /// A second of a cell has passed.
    pub fn second(&self, second: &Interval) {
        let state = self.state();
        let left = self.left(&state);
        self.say(state.done, second_parts(&state.what, second, &left));
    }

    /// A repeat of a cell has ended.
    pub fn repeat(&self, done: u32, of: u32) {
        if of > 1 && done < of {
            let state = self.state();
            let repeat = format!("repeat {} of {of}", done + 1);
            self.say(state.done, vec![Part::first(state.what.clone()), Part::new(repeat, 2)]);
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
        format!("about {} left", lasting(left_s.max(0.0)))
    }

    /// Some cells of an engine cannot be measured.
    pub fn withheld(&self, engine: &str, cells: usize, reason: &str) {
        let done = {
            let mut state = self.state();
            state.done += cells;
            self.say(state.done, Vec::new());
            state.done
        };
        let cells = counted(cells as u64, "cell");
        self.notice(&format!("{engine}: {reason} ({cells} withheld)  [{done}/{}]", self.planned));
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
            self.say(state.done, Vec::new());
            let done = state.done;
            let left = if done < self.planned { self.left(&state) } else { String::new() };
            format!("[{done}/{}] {left}", self.planned)
        };
        let key = &cell.key;
        let number =
            cell.ok_per_s.map_or("-".to_owned(), |per_s| format!("{}/s", significant(per_s)));
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
        self.progress.done();
    }
}

/// The parts of the line while a cell is measured.
fn second_parts(what: &str, second: &Interval, left: &str) -> Vec<Part> {
    let all = second.all_classes();
    let failed = second.ledger.failed.total();
    let times = match all.response.count() {
        0 => "no answer yet".to_owned(),
        _ => format!("p95 {}", time(all.response.quantile_ns(0.95) as f64 / 1e6)),
    };
    vec![
        Part::first(what),
        Part::new(
            format!("{}/s", significant(second.ledger.ok as f64 / second.seconds().max(1e-9))),
            2,
        ),
        Part::new(if failed > 0 { format!("failed {}", count(failed)) } else { String::new() }, 3),
        Part::new(times, 4),
        Part::new(left, 5),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second() -> Interval {
        let mut second = Interval::new(1);
        second.to_ns = 1_000_000_000;
        second.ledger.ok = 12_345;
        second.classes[0].response.record(12_000_000);
        second
    }

    #[test]
    fn numbers_are_those_of_the_page() {
        let texts = |parts: Vec<Part>| -> Vec<String> {
            parts.iter().map(|part| part.text().to_owned()).collect()
        };
        let parts = texts(second_parts("opensearch 640MB k=2", &second(), "about 1 min 30 s left"));
        let expected =
            ["opensearch 640MB k=2", "12,345/s", "", "p95 12.0 ms", "about 1 min 30 s left"];
        assert_eq!(parts, expected);
        let mut bad = second();
        bad.ledger.failed.status = 1_234;
        assert_eq!(texts(second_parts("x", &bad, ""))[2], "failed 1,234");
        let nothing = texts(second_parts("x", &Interval::new(1), ""));
        assert!(nothing.contains(&"no answer yet".to_owned()), "{nothing:?}");
    }
}
