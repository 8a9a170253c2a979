//! A search over a plant, and what a record keeps of it.

use crate::method::{Method, result, search_as, verdict_of};
use crate::progress::SearchProgress;
use plimsoll_core::schedule::Arrivals;
use plimsoll_core::seek::finding::Measured;
use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::notes::Arriving;
use plimsoll_core::seek::plant::Plant;
use plimsoll_core::seek::search::seek;
use plimsoll_core::seek::watch::watch;
use plimsoll_core::verdict::Verdict;
use plimsoll_record::JobResults;

/// Share of the places of fixed connections that may be busy at the line before it is put in doubt.
const PLACES_BUSY: f64 = 0.8;

/// The goal of a search, and its method.
pub struct Quest<'a> {
    /// The limits and the time.
    pub goal: &'a Goal,
    /// The method.
    pub method: Method,
    /// Arrivals of requests, calls or users.
    pub arrivals: Arrivals,
    /// Requests or users.
    pub arriving: Arriving,
    /// True if the line is followed.
    pub watches: bool,
    /// Requests that a fixed number of connections carries at a time.
    pub places: Option<u32>,
}

/// Outcome of a search.
pub struct Sought {
    /// Sections of the record.
    pub results: JobResults,
    /// The verdict.
    pub verdict: Verdict,
    /// Warnings for the page.
    pub warnings: Vec<String>,
}

impl Quest<'_> {
    /// Searches.
    pub fn carry_out(&self, plant: &mut dyn Plant, progress: &SearchProgress) -> Sought {
        if let Some(rival) = self.method.rival() {
            let (results, verdict, _) = search_as(rival, plant, self.goal);
            return Sought { results, verdict, warnings: Vec::new() };
        }
        let search = if self.watches { watch } else { seek };
        let finding = search(plant, self.goal, &mut |event| progress.event(event));
        let held = self
            .places
            .zip(finding.certified.as_ref())
            .and_then(|(places, at_line)| held_by_connections(at_line, places));
        Sought {
            results: JobResults::of(result(&finding, self.arrivals, self.arriving)),
            verdict: verdict_of(&finding),
            warnings: held.into_iter().chain(repeated(finding.repeated)).collect(),
        }
    }
}

/// The warning about periods of the search that were measured again.
fn repeated(parts: u32) -> Option<String> {
    (parts > 0).then(|| {
        format!(
            "the generator was late in {parts} period{} of the search, which {} measured again: this machine \
             has stalls, or too little CPU for this rate",
            if parts == 1 { "" } else { "s" },
            if parts == 1 { "was" } else { "were" },
        )
    })
}

/// The warning that nearly all of a fixed number of connections were in use at the line, so that they may be the limit. By
/// Little's law the rate times the mean response time is the number of requests in flight or waiting.
fn held_by_connections(at_line: &Measured, places: u32) -> Option<String> {
    let busy = at_line.rate_per_s * at_line.response_mean_s;
    (busy >= PLACES_BUSY * f64::from(places)).then(|| {
        format!(
            "{busy:.1} requests were in flight or waiting at the line, and only {places} fit on the connections, which may be \
             the limit; use more --connections, or for HTTP leave the flag out"
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::seek::plant::Window;

    #[test]
    fn a_line_that_all_connections_are_busy_at_may_be_theirs() {
        let counts = Window { scheduled: 1000, response_sum_s: 50.0, ..Window::default() };
        let certified = Measured::new(100.0, 10.0, 1, &counts);
        assert!(
            held_by_connections(&certified, 6).is_some_and(|text| text.contains("5.0 requests"))
        );
        assert!(held_by_connections(&certified, 7).is_none());
    }
}
