//! The walk through a matrix: engines one after the other, each text loaded once, cell by cell.

mod asking;
mod by_agents;
mod keeping;
mod lives;
mod record;
mod withholding;

use super::crew::{Lead, Turn, lead};
use super::engine::{Engine, file_name};
use super::filling;
use super::loading;
use super::measuring::{Asked, Way, connections_broke, repeats, window_of};
use super::server::Server;
use super::shown::Shown;
use super::state::{CellPart, State, unfinished};
use super::text::{self, Text, Texts};
use super::{SearchArgs, wrong};
use crate::cell::{CellAbout, cell, totals, withheld};
use crate::dialect::Dialect;
use crate::query::Query;
use crate::spec::{MatrixSpec, OnRefused, Place as EnginePlace};
use anyhow::Result;
use plimsoll_core::clock::{now_ns, wall_us};
use plimsoll_core::interval::IntervalLine;
use plimsoll_engine::health::raise_descriptor_limit;
use plimsoll_job::keeping::Finished;
use plimsoll_job::output::Output;
use plimsoll_job::signals::{self, Stopped};
use plimsoll_job::together::wait_until_prepared;
use plimsoll_job::usage::{Usage, usage};
use plimsoll_job::watching::{Watching, find_with_children};
use plimsoll_record::search::{CellKey, EngineRecord, Group, Load, Probe, TimeSpent};
use plimsoll_report::folder::RunFolder;
use plimsoll_report::naming::Naming;
use plimsoll_workloads::rows::Rows;
pub use record::targets;
use std::sync::Arc;

/// Everything that the walk carries along.
pub struct Matrix<'a> {
    /// Settings of the matrix.
    pub spec: &'a MatrixSpec,
    /// The queries.
    pub list: Vec<Query>,
    /// Rows that fill requests.
    pub rows: Option<Arc<Rows>>,
    /// Finished cells.
    pub state: State,
    /// The texts that were needed.
    pub texts: Vec<Text>,
    /// The engines as far as they were met.
    pub engines: Vec<EngineRecord>,
    /// Account of this session's time.
    pub time: TimeSpent,
    /// Time at which this sitting began, ns.
    start_ns: u64,
    args: &'a SearchArgs,
    shown: Shown,
    /// Name and labels of the run.
    pub naming: Naming,
    watching: Watching,
    /// Place among the runs of agents.
    turn: Turn,
    /// The cell in which an agent was lost. It is in the record and not among the finished ones.
    cut: Option<CellPart>,
}

/// In the place of the address of an engine that has none yet.
const NOWHERE: &str = "http://127.0.0.1:1";

/// Measures a matrix, or continues with one, and keeps its record.
///
/// # Errors
/// Wrong usage, or a program failure. An engine's failure is in the cells.
pub fn run(spec: &MatrixSpec, args: &SearchArgs, output: &Output) -> Result<Finished> {
    signals::stop_flag()?;
    raise_descriptor_limit();
    let list = spec.list().map_err(wrong)?;
    for engine in &spec.engines {
        // A wrong address or header is reported before anything is made or sent.
        let (url, dialect) = match &engine.place {
            EnginePlace::Address(url) => (url.as_str(), engine.dialect),
            EnginePlace::Serve(_) => (NOWHERE, Dialect::Elasticsearch),
        };
        Server::new(url, dialect, &spec.headers, spec.timeout)?;
    }
    let rows = filling::rows(spec, &list)?;
    let texts = Texts::new(spec, &args.data);
    texts.check()?;
    by_agents::check(spec)?;
    wait_until_prepared()?;
    // Neither the record nor what is compared with it holds secrets.
    let kept = MatrixSpec { files: text::files(spec)?, ..record::without_secrets(spec) };
    let state = open(&kept, args, output)?;
    let planned = spec.engines.len() * spec.sizes.len() * spec.groups.len() * spec.users.len();
    let shown = Shown::new(planned, state.cells.len(), output.voice());
    if let (true, Some(folder)) = (state.resumed, &state.folder) {
        let folder = folder.path().display();
        shown.notice(&format!(
            "resuming {folder}: {} of {planned} cells are done",
            state.cells.len()
        ));
    }
    // A resumed matrix keeps its name, unless the user gives it another one.
    let naming = match (output.naming(), &state.folder) {
        (none, Some(folder)) if none.is_empty() => folder.header().naming,
        (given, _) => given,
    };
    let engines = record::engines(spec, &state.engines);
    let watched = find_with_children(&output.watch, &record::targets(spec), "engines")?;
    let mut notes = Vec::new();
    let watching = Watching::start(watched, state.folder.as_ref(), &mut notes);
    let mut matrix = Matrix {
        spec,
        list,
        rows,
        state,
        texts: Vec::new(),
        engines,
        time: TimeSpent::default(),
        start_ns: now_ns(),
        args,
        shown,
        naming,
        watching,
        turn: Turn::default(),
        cut: None,
    };
    record::announce(&matrix)?;
    matrix.watching.counts_from(matrix.start_ns);
    let walked = matrix.walk(&texts);
    matrix.shown.done();
    notes.iter().for_each(|note| plimsoll_job::output::note(&format!("plimsoll: {note}")));
    let stopped = match walked.map_err(anyhow::Error::downcast::<Stopped>) {
        Ok(()) => None,
        Err(Ok(stopped)) => Some(stopped),
        Err(Err(error)) => return Err(matrix.cut_short(error)),
    };
    lead(Lead::Over)?;
    record::finish(matrix, stopped.as_ref())
}

/// A new folder, or that of an unfinished matrix of the same kind.
fn open(spec: &MatrixSpec, args: &SearchArgs, output: &Output) -> Result<State> {
    if let Some(path) = &args.resume {
        return State::resume(path, spec);
    }
    let Some(runs) = &output.runs else { return State::begin(None, spec) };
    if !args.fresh
        && let Some(path) = unfinished(runs, spec)
    {
        return State::resume(&path, spec);
    }
    let folder = RunFolder::create_named(runs, "search", output.naming(), wall_us())?;
    State::begin(Some(folder), spec)
}

/// Part of the matrix for which a text is ingested.
struct Loaded<'a> {
    engine: usize,
    size: usize,
    shards: u32,
    text: &'a Text,
    index: String,
    /// Marks of all cells measured there.
    marks: Vec<String>,
    /// True if the engine, in its present life, was still busy after ingesting the text.
    busy: bool,
}

/// The mark of what was measured of an engine after its death.
const RESTARTED: &str = "engine restarted";

impl Matrix<'_> {
    fn walk(&mut self, texts: &Texts<'_>) -> Result<()> {
        let start_ns = now_ns();
        let make = |&bytes: &u64| {
            let label = super::text::label(bytes);
            texts.get(bytes, &mut |written| self.shown.making(&label, written))
        };
        let all = self.spec.sizes.iter().map(make).collect::<Result<Vec<_>>>();
        self.time.loading_s += seconds_since(start_ns);
        self.texts = all?;
        self.same_texts()?;
        let spec = self.spec;
        if let (None, None) = (&spec.profile, spec.passes) {
            let all = spec.engines.len() * spec.sizes.len() * spec.groups.len() * spec.users.len();
            let left = all.saturating_sub(self.state.cells.len());
            let each_s =
                (spec.warmup.as_seconds() + spec.duration.as_seconds()) * f64::from(spec.repeat);
            if left > 0 {
                self.shown.planned(left, each_s);
            }
        }
        for index in 0..self.spec.engines.len() {
            self.engine(index)?;
        }
        Ok(())
    }

    /// An error of this program's that ends the walk, such as a full disk; what is kept of it is reported.
    fn cut_short(&self, error: anyhow::Error) -> anyhow::Error {
        match &self.state.folder {
            Some(folder) if !error.is::<Usage>() => error.context(format!(
                "stopped with {} cells in {}; the same command resumes there",
                self.state.cells.len(),
                folder.path().display()
            )),
            _ => error,
        }
    }

    /// Checks that the texts are those of earlier sessions, by their numbers of documents.
    fn same_texts(&self) -> Result<()> {
        let differs = |load: &&Load| {
            let text = self.texts.iter().find(|text| text.label == load.size);
            load.trouble.is_none() && text.is_some_and(|text| text.documents != load.documents)
        };
        let Some(load) = self.state.loads.iter().find(differs) else { return Ok(()) };
        Err(usage(format!(
            "--corpus {}: the text of {} has changed (it had {} documents); start again with --fresh",
            self.spec.corpus, load.size, load.documents
        )))
    }

    fn key(&self, engine: usize, size: usize, group: Group, users: u32) -> CellKey {
        CellKey {
            engine: self.spec.engines[engine].name.clone(),
            size: self.texts[size].label.clone(),
            distance: group.distance,
            shards: group.shards,
            users,
        }
    }

    fn has(&self, key: &CellKey) -> bool {
        self.state.cells.iter().any(|part| part.cell.key == *key)
    }

    /// The cells of some part of the matrix that are not finished.
    fn open_cells(&self, engine: usize, sizes: &[usize], shards: Option<u32>) -> Vec<CellKey> {
        let mut open = Vec::new();
        for &size in sizes {
            for group in self.spec.groups.iter().filter(|g| shards.is_none_or(|s| s == g.shards)) {
                for &users in &self.spec.users {
                    let key = self.key(engine, size, *group, users);
                    if !self.has(&key) {
                        open.push(key);
                    }
                }
            }
        }
        open
    }

    fn all_sizes(&self) -> Vec<usize> {
        (0..self.texts.len()).collect()
    }

    fn engine(&mut self, index: usize) -> Result<()> {
        if self.open_cells(index, &self.all_sizes(), None).is_empty() {
            return Ok(());
        }
        let spec = &self.spec.engines[index];
        signals::go_on(format!("before {} was started", spec.name))?;
        self.shown.doing(&format!("starting {}", spec.name));
        let start_ns = now_ns();
        let folder = self.state.folder.as_ref().map(|folder| folder.path().to_owned());
        let started = Engine::start(spec, self.spec, folder.as_deref());
        self.time.starting_s += seconds_since(start_ns);
        let mut engine = match started {
            Ok(engine) => engine,
            Err(error) if error.is::<Stopped>() || error.is::<Usage>() => {
                return Err(error);
            }
            Err(error) => {
                let reason = match spec.place {
                    EnginePlace::Serve(_) => format!("it did not start: {error:#}"),
                    EnginePlace::Address(_) => format!("{error:#}"),
                };
                self.engines[index].trouble = Some(reason.clone());
                self.keep_engine(index)?;
                return self.withhold(&self.open_cells(index, &self.all_sizes(), None), &reason);
            }
        };
        let version = engine.version()?;
        self.engines[index].version = versions(&self.engines[index].version, &version);
        self.keep_engine(index)?;
        self.shown.started(&spec.name, &version, engine.is_ours(), seconds_since(start_ns));
        let probe = self.probe(&mut engine, index)?;
        self.withhold_what_cannot_be(index, &probe)?;
        for shards in self.spec.shards() {
            for size in self.all_sizes() {
                let open = self.open_cells(index, &[size], Some(shards));
                if open.is_empty() {
                    continue;
                }
                self.size(&mut engine, &probe, index, size, shards)?;
            }
        }
        Ok(())
    }

    /// All cells of one engine, text and number of shards.
    fn size(
        &mut self,
        engine: &mut Engine,
        probe: &Probe,
        index: usize,
        size: usize,
        shards: u32,
    ) -> Result<()> {
        let text = self.texts[size].clone();
        let name = file_name(&format!("plimsoll-{}-{}-{shards}", text.mark, text.label));
        let mut place = Loaded {
            engine: index,
            size,
            shards,
            text: &text,
            index: name,
            marks: Vec::new(),
            busy: false,
        };
        if !engine.is_alive()?
            && let Err(error) = self.restart(engine)
        {
            if error.is::<Stopped>() {
                return Err(error);
            }
            let reason = format!("the engine is dead: {error:#}");
            return self.withhold(&self.open_cells(index, &[size], Some(shards)), &reason);
        }
        let trouble = self.loaded(engine, &mut place)?;
        if let Some(trouble) = &trouble {
            let reason = format!("the text could not be ingested: {trouble}");
            self.withhold(&self.open_cells(index, &[size], Some(shards)), &reason)?;
        }
        for group in self.spec.groups.iter().filter(|group| group.shards == shards) {
            self.group(engine, probe, &mut place, *group)?;
        }
        // Half an index is of no use to anybody.
        if !self.args.keep_indexes || trouble.is_some() {
            let start_ns = now_ns();
            loading::remove(&engine.server, &place.index)?;
            self.time.loading_s += seconds_since(start_ns);
        }
        Ok(())
    }

    fn group(
        &mut self,
        engine: &mut Engine,
        probe: &Probe,
        place: &mut Loaded<'_>,
        group: Group,
    ) -> Result<()> {
        let keys: Vec<CellKey> = self
            .open_cells(place.engine, &[place.size], Some(place.shards))
            .into_iter()
            .filter(|key| key.distance == group.distance)
            .collect();
        if keys.is_empty() {
            return Ok(());
        }
        let mut marks = self.distance_marks(probe, group.distance);
        marks.extend(place.marks.iter().cloned());
        let answers = match self.answers(engine, place, group)? {
            Ok((answers, revived)) => {
                marks.extend(revived.then(|| RESTARTED.to_owned()));
                answers
            }
            Err(reason) => return self.withhold(&keys, &reason),
        };
        let refused: Vec<Option<String>> =
            answers.iter().map(|answer| answer.refused.clone()).collect();
        for key in keys {
            signals::go_on("between two cells")?;
            let about = CellAbout {
                queries: self.list.iter().map(|query| query.name.clone()).collect(),
                refused: refused.clone(),
                on_refused: self.spec.refused,
                window: window_of(self.spec, key.users)?,
                think_ms: (self.spec.profile.is_none() && self.spec.pace.ns == 0)
                    .then(|| self.spec.think.mean_ns() / 1e6),
                filled: self.rows.is_some(),
                marks: marks.clone(),
                key,
            };
            self.cell(engine, place, about)?;
        }
        Ok(())
    }

    fn cell(
        &mut self,
        engine: &mut Engine,
        place: &mut Loaded<'_>,
        mut about: CellAbout,
    ) -> Result<()> {
        if about.on_refused == OnRefused::Withhold && about.refused.iter().any(Option::is_some) {
            // Whatever the other queries came to would stand nowhere.
            return self.keep(cell(&about, &[]), None, false);
        }
        self.shown.begins(&about.key);
        let mut restarted = false;
        loop {
            let start_ns = now_ns();
            let measured = self.measured(engine, place, &about)?;
            place.mark_life(&mut about.marks);
            let spent_s = seconds_since(start_ns);
            if measured.iter().any(|one| one.is_cut) {
                return self.cut_off(&about, &measured);
            }
            if connections_broke(&measured) && !engine.is_alive()? {
                let words = engine.last_words();
                self.time.cells_s += spent_s;
                if restarted {
                    let reason = format!("the engine died twice in this cell{words}");
                    return self.keep(withheld(&about.key, &reason), None, true);
                }
                if engine.is_ours() {
                    let name = &about.key.engine;
                    self.shown.notice(&format!("{name} died{words}; restarting it"));
                }
                if let Err(reason) = self.revive(engine, place)? {
                    return self.keep(withheld(&about.key, &reason), None, true);
                }
                restarted = true;
                if !about.marks.iter().any(|mark| mark == RESTARTED) {
                    about.marks.push(RESTARTED.to_owned());
                }
                continue;
            }
            self.time.cells_s += measured.iter().map(|one| one.elapsed_s).sum::<f64>();
            self.time.warming_s += measured.iter().map(|one| one.warming_s).sum::<f64>();
            self.time.cells += 1;
            let line = IntervalLine::from(&totals(&measured, self.list.len()));
            return self.keep(cell(&about, &measured), Some(line), true);
        }
    }
}

/// Versions of an engine in earlier sessions and now.
fn versions(before: &str, now: &str) -> String {
    match before.rsplit("; later ").next() {
        Some(last) if last == now || now.is_empty() => before.to_owned(),
        Some("") | None => now.to_owned(),
        Some(_) => format!("{before}; later {now}"),
    }
}

fn seconds_since(start_ns: u64) -> f64 {
    now_ns().saturating_sub(start_ns) as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::versions;

    #[test]
    fn an_engine_that_has_changed_meanwhile_is_known_by_both_versions() {
        assert_eq!(versions("", "opensearch 2.19.1"), "opensearch 2.19.1");
        assert_eq!(versions("a 1", "a 1"), "a 1");
        assert_eq!(versions("a 1", ""), "a 1");
        assert_eq!(versions("a 1", "a 2"), "a 1; later a 2");
        assert_eq!(versions("a 1; later a 2", "a 2"), "a 1; later a 2");
        assert_eq!(versions("a 1; later a 2", "a 1"), "a 1; later a 2; later a 1");
    }
}
