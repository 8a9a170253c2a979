//! Probes that are sent once: what an engine makes of a distance, and its answers to all queries.

use super::{Loaded, Matrix, seconds_since};
use crate::command::engine::Engine;
use crate::command::probing::{self, Place};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_job::signals::Stopped;
use plimsoll_record::search::{Answer, Group, Probe};
use std::collections::BTreeSet;

/// The mark of cells of an engine of which it is not known how far it really searches.
const NOT_PROBED: &str = "distance not probed";

impl Matrix<'_> {
    /// Edit distances above 0 that the list asks for in cells of this distance.
    fn distances(&self, of_cell: u8) -> BTreeSet<u8> {
        self.list.iter().flat_map(|query| query.clause.distances(of_cell)).collect()
    }

    /// Probes the matrix's distances on an engine, or returns the probes of an earlier session.
    pub(super) fn probe(&mut self, engine: &mut Engine, index: usize) -> Result<Probe> {
        let name = self.spec.engines[index].name.clone();
        let known = self.state.probes.iter().find(|probe| probe.engine == name);
        if let Some(known) = known.filter(|probe| probe.trouble.is_none()) {
            return Ok(known.clone());
        }
        self.shown.doing(&format!("probing {name}"));
        let mut distances: BTreeSet<u8> = self.spec.groups.iter().map(|g| g.distance).collect();
        distances.extend(self.spec.groups.iter().flat_map(|group| self.distances(group.distance)));
        let mut probe = self.probe_once(engine, &name, &distances)?;
        if probe.trouble.is_some() && self.has_died(engine, index)? {
            match self.restart(engine) {
                Ok(()) => probe = self.probe_once(engine, &name, &distances)?,
                Err(error) if error.is::<Stopped>() => return Err(error),
                // The walk finds it dead, and says so of its cells.
                Err(_) => {}
            }
        }
        self.state.put(&format!("probe-{index:02}.json"), &probe)?;
        self.shown.probed(&probe, &distances);
        self.state.probes.retain(|own| own.engine != name);
        self.state.probes.push(probe.clone());
        Ok(probe)
    }

    fn probe_once(
        &mut self,
        engine: &Engine,
        name: &str,
        distances: &BTreeSet<u8>,
    ) -> Result<Probe> {
        let start_ns = now_ns();
        let probe = probing::probe(engine, name, distances);
        self.time.asking_s += seconds_since(start_ns);
        probe
    }

    /// Marks of an engine's cells of a distance.
    pub(super) fn distance_marks(&self, probe: &Probe, of_cell: u8) -> Vec<String> {
        let asked = self.distances(of_cell);
        if probe.trouble.is_some() && !asked.is_empty() {
            return vec![NOT_PROBED.to_owned()];
        }
        let mark = |distance: u8| {
            let mark = probe.mark(distance)?;
            // One of the list's own beside the table's.
            let own = (distance != of_cell).then(|| format!(" where {distance} is asked"));
            Some(mark + &own.unwrap_or_default())
        };
        asked.into_iter().filter_map(mark).collect()
    }

    /// The answers to all queries, asked once, and whether the engine died of them and was started again; known ones
    /// from a sitting before. The inner error is why there are none.
    pub(super) fn answers(
        &mut self,
        engine: &mut Engine,
        place: &mut Loaded<'_>,
        group: Group,
    ) -> Result<Result<(Vec<Answer>, bool), String>> {
        let name = self.spec.engines[place.engine].name.clone();
        let is_own = |answer: &Answer| {
            answer.engine == name
                && answer.size == place.text.label
                && (answer.distance, answer.shards) == (group.distance, group.shards)
        };
        let known: Vec<Answer> =
            self.state.answers.iter().filter(|answer| is_own(answer)).cloned().collect();
        if known.len() == self.list.len() {
            return Ok(Ok((known, false)));
        }
        let mut answers = self.ask_all(engine, place, group)?;
        let lacks = |answer: &Answer| answer.hits.is_none() && answer.refused.is_none();
        let revived = answers.iter().any(lacks) && self.has_died(engine, place.engine)?;
        if revived {
            if let Err(reason) = self.revive(engine, place)? {
                return Ok(Err(reason));
            }
            answers = self.ask_all(engine, place, group)?;
        }
        let file = format!(
            "answers-{:02}-{:02}-{}x{}.json",
            place.engine, place.size, group.distance, group.shards
        );
        self.state.put(&file, &answers)?;
        self.state.answers.extend(answers.iter().cloned());
        Ok(Ok((answers, revived)))
    }

    fn ask_all(
        &mut self,
        engine: &Engine,
        place: &Loaded<'_>,
        group: Group,
    ) -> Result<Vec<Answer>> {
        let start_ns = now_ns();
        let name = &self.spec.engines[place.engine].name;
        let where_asked = Place { engine: name, text: place.text, index: &place.index, group };
        let (rows, timeout) = (self.rows.as_deref(), self.spec.timeout);
        let answers = probing::answers(&engine.server, &where_asked, &self.list, rows, timeout);
        self.time.asking_s += seconds_since(start_ns);
        answers
    }
}
