//! The rolling line of the voter benchmark, in Erlvolt's words.

use plimsoll_record::voter::VoterLap;
use plimsoll_report::number::{count, time};

/// A rolling line, as the original prints it; both latencies are there.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Lap {
    /// Since the first call was due, s.
    pub at_s: f64,
    /// Calls a second since the line before.
    pub lap_per_s: f64,
    /// Calls a second since the start.
    pub total_per_s: f64,
    /// Calls that were answered well.
    pub success: u64,
    /// Calls that were not.
    pub fails: u64,
    /// Calls in flight.
    pub pending: u64,
    /// Mean of the times from the intended start, ms, and the longest since the line before.
    pub client_ms: (f64, f64),
    /// The same of the times that the server reports, where it does.
    pub server_ms: Option<(f64, f64)>,
    /// Where there is a queue: calls that wait in it, and the longest wait since the line before, ms.
    pub queue: Option<(u64, f64)>,
}

impl Lap {
    /// The lap for the record, if the one before ended at `from_s`.
    #[must_use]
    pub fn record(&self, from_s: f64) -> VoterLap {
        VoterLap {
            from_s,
            at_s: self.at_s,
            lap_per_s: self.lap_per_s,
            total_per_s: self.total_per_s,
            success: self.success,
            fails: self.fails,
            pending: self.pending,
            client_mean_ms: self.client_ms.0,
            client_max_ms: self.client_ms.1,
            server_mean_ms: self.server_ms.map(|(mean, _)| mean),
            server_max_ms: self.server_ms.map(|(_, max)| max),
            queued: self.queue.map(|(queued, _)| queued),
            queue_wait_max_ms: self.queue.map(|(_, wait_ms)| wait_ms),
        }
    }

    /// The line.
    #[must_use]
    pub fn line(&self, client: &str) -> String {
        let server = self.server_ms.map_or(String::new(), |(mean, max)| {
            format!(", server avglat: {mean:>6.3}ms, maxlat: {max:>4.0}ms")
        });
        let queued = self.queue.map_or(String::new(), |(queued, wait_ms)| {
            format!(", queued: {:>7}, maxwait: {wait_ms:>4.0}ms", count(queued))
        });
        format!(
            "Client {client}: at {:>6.3}sec: lap {:>8} T/sec,  total {:>8} T/sec, success: {:>9}, fails: {}, \
             pending: {:>7}, avglat: {:>6.3}ms, maxlat: {}{server}{queued}",
            self.at_s,
            count(self.lap_per_s as u64),
            count(self.total_per_s as u64),
            count(self.success),
            count(self.fails),
            count(self.pending),
            self.client_ms.0,
            time(self.client_ms.1)
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_rolling_line_has_both_latencies() {
        let lap = Lap {
            at_s: 0.217,
            lap_per_s: 19_339.4,
            total_per_s: 19_368.0,
            success: 4203,
            fails: 0,
            pending: 111,
            client_ms: (5.73, 25.0),
            server_ms: Some((0.286, 3.0)),
            queue: Some((7, 40.0)),
        };
        assert_eq!(
            lap.line("VSD"),
            "Client VSD: at  0.217sec: lap   19,339 T/sec,  total   19,368 T/sec, success:     4,203, fails: 0, pending:     \
         111, avglat:  5.730ms, maxlat: 25.0 ms, server avglat:  0.286ms, maxlat:    3ms, queued:       7, maxwait:   40ms"
        );
    }
}
