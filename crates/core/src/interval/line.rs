//! An interval as text: a line of `intervals.ndjson`.

use super::{ClassPart, Counters, Interval, ServerTimes};
use crate::delays::DelaysLine;
use crate::histogram::{DecodeError, Histogram, add_some, encode_some};
use crate::ledger::Ledger;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// One line of `intervals.ndjson`: an interval with its histograms encoded.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct IntervalLine {
    pub from_s: f64,
    pub to_s: f64,
    pub phase: u32,
    pub in_flight: u32,
    pub ledger: Ledger,
    pub counters: Counters,
    pub lag: String,
    #[serde(default, skip_serializing_if = "DelaysLine::is_empty")]
    pub delays: DelaysLine,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub unserved: String,
    pub statuses: BTreeMap<u16, u64>,
    pub classes: Vec<ClassLine>,
}

/// One class inside an [`IntervalLine`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ClassLine {
    pub ledger: Ledger,
    pub zero_hits: u64,
    pub hits_known: u64,
    #[serde(default)]
    pub service_sum_ns: u64,
    #[serde(default)]
    pub service_min_ns: u64,
    #[serde(default)]
    pub service_max_ns: u64,
    #[serde(default)]
    pub failed_min_ns: u64,
    pub response: String,
    pub service: String,
    pub failed: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server: Option<ServerLine>,
}

/// The server's own times inside a [`ClassLine`].
#[derive(Clone, Debug, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct ServerLine {
    pub times: String,
    pub missing: u64,
    pub malformed: u64,
}

impl IntervalLine {
    /// Reads a line of the journal; `None` if it is not one.
    #[must_use]
    pub fn of_json(line: &[u8]) -> Option<Self> {
        serde_json::from_slice(line).ok()
    }
}

/// Most histograms of a second that are packed. To pack one takes longer than all else that is done with it, and the
/// second must be kept before the next is over, by a thread that every other goes before.
const PACKED_MAX: usize = 16;

impl From<&Interval> for IntervalLine {
    fn from(interval: &Interval) -> Self {
        let filled = |part: &ClassPart| {
            let own = [&part.response, &part.service, &part.failed];
            let server = part.server.iter().map(|server| &server.times);
            own.into_iter().chain(server).filter(|h| !h.is_empty()).count()
        };
        let is_packed = interval.classes.iter().map(filled).sum::<usize>() <= PACKED_MAX;
        let encode = |histogram: &Histogram| match is_packed {
            true => histogram.encode(),
            false => histogram.encode_stored(),
        };
        Self {
            from_s: interval.from_ns as f64 / 1e9,
            to_s: interval.to_ns as f64 / 1e9,
            phase: interval.phase,
            in_flight: interval.in_flight,
            ledger: interval.ledger,
            counters: interval.counters,
            lag: encode(&interval.lag),
            delays: DelaysLine::from(&interval.delays),
            unserved: encode_some(&interval.unserved),
            statuses: interval.statuses.clone(),
            classes: interval
                .classes
                .iter()
                .map(|c| ClassLine {
                    ledger: c.ledger,
                    zero_hits: c.zero_hits,
                    hits_known: c.hits_known,
                    service_sum_ns: c.service_sum_ns,
                    service_min_ns: c.service_min_ns,
                    service_max_ns: c.service_max_ns,
                    failed_min_ns: c.failed_min_ns,
                    response: encode(&c.response),
                    service: encode(&c.service),
                    failed: encode(&c.failed),
                    server: c.server.as_ref().map(|server| ServerLine {
                        times: encode(&server.times),
                        missing: server.missing,
                        malformed: server.malformed,
                    }),
                })
                .collect(),
        }
    }
}

impl Interval {
    /// Becomes what a line holds, in the memory that it has: a reader of many lines takes none for each.
    ///
    /// # Errors
    /// When a histogram cannot be read; then the content is undefined.
    pub fn refill(&mut self, line: &IntervalLine) -> Result<(), DecodeError> {
        self.clear();
        self.from_ns = (line.from_s * 1e9).round() as u64;
        self.to_ns = (line.to_s * 1e9).round() as u64;
        (self.phase, self.in_flight) = (line.phase, line.in_flight);
        (self.ledger, self.counters) = (line.ledger, line.counters);
        self.lag.add_encoded(&line.lag)?;
        self.delays.refill(&line.delays)?;
        add_some(&mut self.unserved, &line.unserved)?;
        self.statuses.clone_from(&line.statuses);
        self.classes.resize_with(line.classes.len(), ClassPart::default);
        for (class, line) in self.classes.iter_mut().zip(&line.classes) {
            class.ledger = line.ledger;
            (class.zero_hits, class.hits_known) = (line.zero_hits, line.hits_known);
            class.service_sum_ns = line.service_sum_ns;
            (class.service_min_ns, class.service_max_ns) =
                (line.service_min_ns, line.service_max_ns);
            class.failed_min_ns = line.failed_min_ns;
            class.response.add_encoded(&line.response)?;
            class.service.add_encoded(&line.service)?;
            class.failed.add_encoded(&line.failed)?;
            class.server = line.server.as_ref().map(read_server).transpose()?;
        }
        Ok(())
    }
}

impl TryFrom<&IntervalLine> for Interval {
    type Error = DecodeError;

    fn try_from(line: &IntervalLine) -> Result<Self, DecodeError> {
        let mut interval = Self::default();
        interval.refill(line)?;
        Ok(interval)
    }
}

fn read_server(line: &ServerLine) -> Result<Box<ServerTimes>, DecodeError> {
    Ok(Box::new(ServerTimes {
        times: Histogram::decode(&line.times)?,
        missing: line.missing,
        malformed: line.malformed,
    }))
}
