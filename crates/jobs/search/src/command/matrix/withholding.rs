//! Cells that are known to have no number before anything is loaded for them.

use super::{CellKey, Group, Matrix, OnRefused, Probe, withheld};
use anyhow::Result;

impl Matrix<'_> {
    /// Keeps the cells of an engine that have no number whatever is loaded and measured.
    pub(super) fn withhold_what_cannot_be(&mut self, engine: usize, probe: &Probe) -> Result<()> {
        let sizes = self.all_sizes();
        for group in self.spec.groups.clone() {
            if let Some(reason) = self.doomed(engine, probe, group) {
                let mut keys = self.open_cells(engine, &sizes, Some(group.shards));
                keys.retain(|key| key.distance == group.distance);
                self.withhold(&keys, &reason)?;
            }
        }
        Ok(())
    }

    /// Reason why all cells of a group would be withheld whatever is loaded and measured, if so.
    fn doomed(&self, engine: usize, probe: &Probe, group: Group) -> Option<String> {
        let dialect = self.spec.engines[engine].dialect;
        if group.shards != 1 && !dialect.has_shards() {
            let name = dialect.name();
            return Some(format!("{name} has a fixed number of shards; use --shards 1"));
        }
        if self.spec.refused == OnRefused::Skip {
            return None;
        }
        self.list.iter().find_map(|query| {
            let unsaid = dialect.search("index", query, group.distance).err();
            let why = match unsaid {
                Some(why) => format!("{} cannot express it: {why}", dialect.name()),
                None if query.clause.is_fuzzy() => probe.refused(group.distance)?.to_owned(),
                None => return None,
            };
            Some(format!("query '{}' not answered: {why}", query.name))
        })
    }

    /// Keeps cells that cannot be measured; one line reports all of them.
    pub(super) fn withhold(&mut self, keys: &[CellKey], reason: &str) -> Result<()> {
        if let Some(first) = keys.first() {
            self.shown.withheld(&first.engine, keys.len(), reason);
        }
        for key in keys {
            self.store(withheld(key, reason), None)?;
        }
        Ok(())
    }
}
