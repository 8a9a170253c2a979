//! Probes of edit distances, by words that are planted at known distances.

use serde::{Deserialize, Serialize};

/// Probe of an edit distance: words planted at known distances, and those that the engine found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Probe {
    /// The engine's name.
    pub engine: String,
    /// One entry a distance asked.
    pub asked: Vec<ProbeAnswer>,
    /// True if two neighbouring letters that change places are one edit (Damerau) and not two.
    pub swap_is_one: Option<bool>,
    /// True if the word was found inside a longer one.
    pub inside: Option<bool>,
    /// Reason why nothing could be learnt, if so.
    pub trouble: Option<String>,
}

/// Words found for one distance.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct ProbeAnswer {
    /// The distance asked for.
    pub distance: u8,
    /// Distances of the planted words that came back, ascending.
    pub found: Vec<u8>,
    /// The engine's own words, where it refused.
    pub refused: Option<String>,
}

impl Probe {
    /// The largest distance that the engine really searched when asked for `distance`, where that is less.
    #[must_use]
    pub fn clamped_to(&self, distance: u8) -> Option<u8> {
        let answer = self.asked.iter().find(|answer| answer.distance == distance)?;
        if answer.refused.is_some() {
            return None;
        }
        let reached = answer.found.iter().copied().max()?;
        (reached < distance).then_some(reached)
    }

    /// The engine's own words, where it refused the distance.
    #[must_use]
    pub fn refused(&self, distance: u8) -> Option<&str> {
        let answer = self.asked.iter().find(|answer| answer.distance == distance)?;
        answer.refused.as_deref()
    }

    /// Mark of a cell with this distance.
    #[must_use]
    pub fn mark(&self, distance: u8) -> Option<String> {
        if let Some(reached) = self.clamped_to(distance) {
            return Some(format!("clamped to {reached}"));
        }
        let answer = self.asked.iter().find(|answer| answer.distance == distance)?;
        let wanted = 0..=distance;
        if answer.refused.is_none() && answer.found.is_empty() {
            return Some(format!("found nothing at distance {distance}"));
        }
        if answer.refused.is_none() && answer.found.iter().any(|found| !wanted.contains(found)) {
            let most = answer.found.iter().copied().max().unwrap_or_default();
            return Some(format!("reaches {most}"));
        }
        None
    }
}
