//! The walk through a matrix: engines one after the other, each text loaded once, cell by cell.

mod keeping;
mod withholding;

use super::engine::{Engine, file_name};
use super::filling;
use super::loading::{self, Order};
use super::measuring::{Asked, connections_broke, repeats, window_of};
use super::probing::{self, Place};
use super::record;
use super::server::Server;
use super::shown::Shown;
use super::state::{State, unfinished};
use super::text::{self, Text, Texts};
use super::{SearchArgs, wrong};
use crate::execute::Output;
use crate::keeping::Finished;
use crate::signals::{self, Stopped};
use anyhow::Result;
use plimsoll_core::clock::{now_ns, wall_us};
use plimsoll_core::interval::IntervalLine;
use plimsoll_core::search::record::{Answer, CellKey, EngineRecord, Group, Load, Probe, TimeSpent};
use plimsoll_engine::health::raise_descriptor_limit;
use plimsoll_report::folder::RunFolder;
use plimsoll_workloads::rows::Rows;
use plimsoll_workloads::search::cell::{CellAbout, cell, totals, withheld};
use plimsoll_workloads::search::dialect::Dialect;
use plimsoll_workloads::search::query::Query;
use plimsoll_workloads::search::spec::{MatrixSpec, OnRefused, Place as EnginePlace};
use std::sync::Arc;

/// Everything that the walk carries along.
pub struct Matrix<'a> {
    /// What was asked for.
    pub spec: &'a MatrixSpec,
    /// The queries.
    pub list: Vec<Query>,
    /// What requests are filled with.
    rows: Option<Arc<Rows>>,
    /// What is finished.
    pub state: State,
    /// The texts that were needed.
    pub texts: Vec<Text>,
    /// The engines as far as they were met.
    pub engines: Vec<EngineRecord>,
    /// Where this sitting's time went.
    pub time: TimeSpent,
    /// When this sitting began, ns.
    start_ns: u64,
    args: &'a SearchArgs,
    shown: Shown,
}

/// In the place of the address of an engine that has none yet.
const NOWHERE: &str = "http://127.0.0.1:1";

/// Measures a matrix, or goes on with one, and keeps its record.
///
/// # Errors
/// Wrong usage, or a program failure. An engine's failure is in the cells.
pub fn run(spec: &MatrixSpec, args: &SearchArgs, output: &Output) -> Result<Finished> {
    signals::stop_flag()?;
    raise_descriptor_limit();
    let list = spec.list().map_err(wrong)?;
    for engine in &spec.engines {
        // A wrong address or header is told before anything is made or sent.
        let (url, dialect) = match &engine.place {
            EnginePlace::Address(url) => (url.as_str(), engine.dialect),
            EnginePlace::Serve(_) => (NOWHERE, Dialect::Elasticsearch),
        };
        Server::new(url, dialect, &spec.headers, spec.timeout)?;
    }
    let rows = filling::rows(spec, &list)?;
    let texts = Texts::new(spec, &args.data);
    texts.check()?;
    // Neither the record nor what is compared with it holds secrets.
    let kept = MatrixSpec { files: text::files(spec)?, ..record::without_secrets(spec) };
    let state = open(&kept, args, output)?;
    let planned = spec.engines.len() * spec.sizes.len() * spec.groups.len() * spec.users.len();
    let shown = Shown::new(planned, state.cells.len(), output.quiet);
    if let (true, Some(folder)) = (state.resumed, &state.folder) {
        let folder = folder.path().display();
        shown.line(&format!(
            "going on with {folder}: {} of {planned} cells are there",
            state.cells.len()
        ));
    }
    let engines = record::engines(spec, &state.engines);
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
    };
    record::announce(&matrix)?;
    let walked = matrix.walk(&texts);
    matrix.shown.done();
    let stopped = match walked {
        Ok(()) => None,
        Err(error) => Some(error.downcast::<Stopped>()?),
    };
    record::finish(&mut matrix, stopped.as_ref())
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
    State::begin(Some(RunFolder::create(runs, "search", wall_us())?), spec)
}

/// Which part of the matrix a text is loaded for.
struct Loaded<'a> {
    engine: usize,
    size: usize,
    shards: u32,
    text: &'a Text,
    index: String,
}

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
        let spec = self.spec;
        if let (None, None) = (&spec.profile, spec.passes) {
            let all = spec.engines.len() * spec.sizes.len() * spec.groups.len() * spec.users.len();
            let left = all.saturating_sub(self.state.cells.len());
            let each_s =
                (spec.warmup.as_seconds() + spec.duration.as_seconds()) * f64::from(spec.repeat);
            self.shown.planned(left, each_s);
        }
        for index in 0..self.spec.engines.len() {
            self.engine(index)?;
        }
        Ok(())
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
            Err(error) if error.is::<Stopped>() || error.is::<crate::usage::Usage>() => {
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
        self.engines[index].version = engine.version()?;
        self.keep_engine(index)?;
        let version = self.engines[index].version.clone();
        self.shown.started(&spec.name, &version, engine.is_ours(), seconds_since(start_ns));
        let probe = self.probe(&engine, index)?;
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

    fn probe(&mut self, engine: &Engine, index: usize) -> Result<Probe> {
        let name = self.spec.engines[index].name.clone();
        if let Some(known) = self.state.probes.iter().find(|probe| probe.engine == name) {
            return Ok(known.clone());
        }
        self.shown.doing(&format!("probing {name}"));
        let start_ns = now_ns();
        let distances: Vec<u8> = self.spec.groups.iter().map(|group| group.distance).collect();
        let probe = probing::probe(engine, &name, &distances)?;
        self.time.asking_s += seconds_since(start_ns);
        self.state.put(&format!("probe-{index:02}.json"), &probe)?;
        self.shown.probed(&probe, &distances);
        self.state.probes.push(probe.clone());
        Ok(probe)
    }

    fn load(&mut self, engine: &Engine, place: &Loaded<'_>) -> Result<Load> {
        let name = &self.spec.engines[place.engine].name;
        self.shown.doing(&format!("loading {} into {name}", place.text.label));
        let start_ns = now_ns();
        let order = Order {
            text: place.text,
            index: &place.index,
            shards: place.shards,
            loaders: self.args.loaders,
            // What an engine of ours had is gone with it; elsewhere an index may be there from a sitting before.
            reuse: !engine.is_ours() && (self.args.keep_indexes || self.state.resumed),
        };
        let load = loading::load(engine, name, &order, &self.shown);
        // Also when it is stopped: that time was none of the cells'.
        self.time.loading_s += seconds_since(start_ns);
        let load = load?;
        self.time.waiting_s += load.searchable_s;
        self.shown.loaded(&load);
        let number = self.state.loads.len();
        self.state.put(&format!("load-{number:04}.json"), &load)?;
        self.state.loads.push(load.clone());
        Ok(load)
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
        let place = Loaded { engine: index, size, shards, text: &text, index: name };
        if !engine.is_alive()?
            && let Err(error) = self.restart(engine)
        {
            if error.is::<Stopped>() {
                return Err(error);
            }
            let reason = format!("the engine is dead: {error:#}");
            return self.withhold(&self.open_cells(index, &[size], Some(shards)), &reason);
        }
        let load = self.load(engine, &place)?;
        if let Some(trouble) = load.trouble {
            let reason = format!("the text could not be loaded: {trouble}");
            return self.withhold(&self.open_cells(index, &[size], Some(shards)), &reason);
        }
        for group in self.spec.groups.iter().filter(|group| group.shards == shards) {
            self.group(engine, probe, &place, *group)?;
        }
        if !self.args.keep_indexes {
            let start_ns = now_ns();
            loading::remove(&engine.server, &place.index)?;
            self.time.loading_s += seconds_since(start_ns);
        }
        Ok(())
    }

    /// The answers to all queries, asked once; known ones from a sitting before.
    fn answers(
        &mut self,
        engine: &Engine,
        place: &Loaded<'_>,
        group: Group,
    ) -> Result<Vec<Answer>> {
        let name = &self.spec.engines[place.engine].name;
        let known: Vec<Answer> = self
            .state
            .answers
            .iter()
            .filter(|answer| {
                answer.engine == *name
                    && answer.size == place.text.label
                    && (answer.distance, answer.shards) == (group.distance, group.shards)
            })
            .cloned()
            .collect();
        if known.len() == self.list.len() {
            return Ok(known);
        }
        let start_ns = now_ns();
        let where_asked = Place { engine: name, text: place.text, index: &place.index, group };
        let answers = probing::answers(
            &engine.server,
            &where_asked,
            &self.list,
            self.rows.as_deref(),
            self.spec.timeout,
        )?;
        self.time.asking_s += seconds_since(start_ns);
        let file = format!(
            "answers-{:02}-{:02}-{}x{}.json",
            place.engine, place.size, group.distance, group.shards
        );
        self.state.put(&file, &answers)?;
        self.state.answers.extend(answers.iter().cloned());
        Ok(answers)
    }

    fn group(
        &mut self,
        engine: &mut Engine,
        probe: &Probe,
        place: &Loaded<'_>,
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
        let answers = self.answers(engine, place, group)?;
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
                marks: probe
                    .mark(key.distance)
                    .filter(|_| self.asks_fuzzily())
                    .into_iter()
                    .collect(),
                key,
            };
            self.cell(engine, place, about)?;
        }
        Ok(())
    }

    /// Whether a distance changes what any query asks.
    fn asks_fuzzily(&self) -> bool {
        self.list.iter().any(|query| query.clause.is_fuzzy())
    }

    fn cell(
        &mut self,
        engine: &mut Engine,
        place: &Loaded<'_>,
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
            let asked = Asked {
                spec: self.spec,
                list: &self.list,
                refused: &about.refused,
                rows: self.rows.as_ref(),
                index: &place.index,
                key: &about.key,
            };
            let measured = repeats(engine, &asked, &self.shown)?;
            let spent_s = seconds_since(start_ns);
            if connections_broke(&measured) && !engine.is_alive()? {
                let words = engine.last_words();
                if restarted {
                    self.time.cells_s += spent_s;
                    let reason = format!("the engine died twice in this cell{words}");
                    return self.keep(withheld(&about.key, &reason), None, true);
                }
                self.shown.line(&format!("{} died{words}; it is started again", about.key.engine));
                if let Err(reason) = self.revive(engine, place)? {
                    return self.keep(withheld(&about.key, &reason), None, true);
                }
                restarted = true;
                about.marks.push("engine restarted".to_owned());
                continue;
            }
            self.time.cells_s += measured.iter().map(|one| one.elapsed_s).sum::<f64>();
            self.time.warming_s += measured.iter().map(|one| one.warming_s).sum::<f64>();
            self.time.cells += 1;
            let line = IntervalLine::from(&totals(&measured, self.list.len()));
            return self.keep(cell(&about, &measured), Some(line), true);
        }
    }

    /// Starts a dead engine again and loads its text; the inner error is the cell's reason.
    fn revive(&mut self, engine: &mut Engine, place: &Loaded<'_>) -> Result<Result<(), String>> {
        if let Err(error) = self.restart(engine) {
            if error.is::<Stopped>() {
                return Err(error);
            }
            return Ok(Err(format!("the engine died: {error:#}")));
        }
        let load = self.load(engine, place)?;
        Ok(load.trouble.map_or(Ok(()), |why| {
            Err(format!("the engine died, and again could not be loaded: {why}"))
        }))
    }

    fn restart(&mut self, engine: &mut Engine) -> Result<()> {
        let start_ns = now_ns();
        let restarted = engine.restart();
        self.time.starting_s += seconds_since(start_ns);
        restarted
    }
}

fn seconds_since(start_ns: u64) -> f64 {
    now_ns().saturating_sub(start_ns) as f64 / 1e9
}
