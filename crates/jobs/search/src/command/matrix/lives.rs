//! Engines that die: started again, and given their text again.

use super::{Loaded, Matrix, RESTARTED, seconds_since};
use crate::command::engine::Engine;
use crate::command::loading::{self, Order};
use anyhow::Result;
use plimsoll_core::clock::now_ns;
use plimsoll_job::signals::Stopped;
use plimsoll_record::search::{BUSY, Load};

impl Loaded<'_> {
    /// Sets or removes the mark of an engine that was still busy ingesting, by the present life of the engine.
    pub(super) fn mark_life(&self, marks: &mut Vec<String>) {
        marks.retain(|mark| mark != BUSY);
        marks.extend(self.busy.then(|| BUSY.to_owned()));
    }
}

impl Matrix<'_> {
    fn load(&mut self, engine: &Engine, place: &mut Loaded<'_>) -> Result<Load> {
        let name = &self.spec.engines[place.engine].name;
        self.shown.doing(&format!("ingesting {} into {name}", place.text.label));
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
        place.busy = load.busy;
        self.time.waiting_s += load.searchable_s;
        self.shown.loaded(&load);
        let number = self.state.loads.len();
        self.state.put(&format!("load-{number:04}.json"), &load)?;
        self.state.loads.push(load.clone());
        Ok(load)
    }

    /// Loads a text, once more where an engine of plimsoll dies of it; what went wrong for good is reported.
    pub(super) fn loaded(
        &mut self,
        engine: &mut Engine,
        place: &mut Loaded<'_>,
    ) -> Result<Option<String>> {
        let load = self.load(engine, place)?;
        if load.trouble.is_none() || !self.has_died(engine, place.engine)? {
            return Ok(load.trouble);
        }
        place.marks.push(RESTARTED.to_owned());
        Ok(self.revive(engine, place)?.err())
    }

    /// Returns true if an engine that plimsoll started is dead; reports that it will be restarted.
    pub(super) fn has_died(&self, engine: &mut Engine, index: usize) -> Result<bool> {
        if !engine.is_ours() || engine.is_alive()? {
            return Ok(false);
        }
        let (name, words) = (&self.spec.engines[index].name, engine.last_words());
        self.shown.notice(&format!("{name} died{words}; restarting it"));
        Ok(true)
    }

    /// Starts a dead engine again and loads its text; the inner error is the cells' reason.
    pub(super) fn revive(
        &mut self,
        engine: &mut Engine,
        place: &mut Loaded<'_>,
    ) -> Result<Result<(), String>> {
        let words = engine.last_words();
        if let Err(error) = self.restart(engine) {
            if error.is::<Stopped>() {
                return Err(error);
            }
            return Ok(Err(format!("the engine died{words}: {error:#}")));
        }
        let load = self.load(engine, place)?;
        Ok(load.trouble.map_or(Ok(()), |why| {
            Err(format!("the engine died{words}, and the text could not be ingested again: {why}"))
        }))
    }

    pub(super) fn restart(&mut self, engine: &mut Engine) -> Result<()> {
        let start_ns = now_ns();
        let restarted = engine.restart();
        self.time.starting_s += seconds_since(start_ns);
        restarted
    }
}

#[cfg(test)]
mod tests {
    use super::{BUSY, Loaded};
    use crate::command::text::Text;

    #[test]
    fn the_cells_of_a_restarted_engine_are_marked_busy_as_its_new_life_is() {
        let text = Text {
            label: "64MB".to_owned(),
            path: "text".into(),
            documents: 1,
            bytes: 1,
            mark: "m".to_owned(),
            source: None,
        };
        let life = |busy| Loaded {
            engine: 0,
            size: 0,
            shards: 1,
            text: &text,
            index: "index".to_owned(),
            marks: Vec::new(),
            busy,
        };
        let mut marks = vec!["engine restarted".to_owned()];
        life(true).mark_life(&mut marks);
        life(true).mark_life(&mut marks);
        assert_eq!(marks, ["engine restarted", BUSY], "a life that is busy marks its cells once");
        life(false).mark_life(&mut marks);
        assert_eq!(marks, ["engine restarted"], "a cell is measured again in an idle life");
    }
}
