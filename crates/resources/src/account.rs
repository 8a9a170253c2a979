//! Lines of one machine, and the figures of those that lie in the measured stretch.

use crate::limits;
use crate::summary::Summary;
use plimsoll_record::resources::{ResourceLine, ResourcesResult};
use std::collections::VecDeque;

/// Most lines that wait for the end of the measured stretch.
const WAITING_MAX: usize = 3600;

/// Lines of one machine, in the order of time.
#[derive(Clone, Debug, Default)]
pub struct Account {
    /// Lines of which it is not known yet whether they lie in the measured stretch.
    open: VecDeque<ResourceLine>,
    /// A line outside of it, in case that no line lies in it.
    outside: Option<ResourceLine>,
    summary: Summary,
}

impl Account {
    /// Takes the next line.
    pub fn take(&mut self, line: ResourceLine) {
        self.open.push_back(line);
        while self.open.len() > WAITING_MAX {
            let line = self.open.pop_front();
            line.iter().for_each(|line| self.summary.add(line));
        }
    }

    /// A time of the measured stretch is over, ns since its start.
    pub fn reached(&mut self, to_ns: f64) {
        while self.open.front().is_some_and(|line| middle_ns(line) <= to_ns) {
            let Some(line) = self.open.pop_front() else { break };
            if middle_ns(&line) >= 0.0 {
                self.summary.add(&line);
            } else {
                self.outside = Some(line);
            }
        }
    }

    /// Returns true if no line lies in the measured stretch, and none may.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.open.is_empty() && self.summary.samples() == 0
    }

    /// The figures over a measured stretch of this length. `things` has what is watched, in the order of the lines, with its limits;
    /// `memory_bytes` is all memory of the machine.
    #[must_use]
    pub fn finish(
        mut self,
        measured_ns: f64,
        things: ResourcesResult,
        memory_bytes: Option<u64>,
    ) -> ResourcesResult {
        self.reached(measured_ns);
        if self.summary.samples() == 0 {
            // A run that is much shorter than a line.
            let line = self.open.pop_front().or(self.outside.take());
            line.iter().for_each(|line| self.summary.add(line));
        }
        let mut machine = self.summary.machine();
        let online = machine.cores_busy.iter().flatten().count();
        let is_long_enough = self.summary.span_s() >= limits::SEEN_MIN_S;
        if is_long_enough {
            limits::tell_machine(&mut machine, memory_bytes);
        }
        machine.unknown = things.machine.unknown;
        let mut watched = things.watched;
        for (index, result) in watched.iter_mut().enumerate() {
            self.summary.put(index, result);
            if is_long_enough {
                limits::tell(result, online);
            }
        }
        ResourcesResult {
            samples: self.summary.samples(),
            watched,
            machine,
            remarks: things.remarks,
            watchers: things.watchers,
        }
    }
}

/// The middle of a line, ns since the start of the measured stretch.
fn middle_ns(line: &ResourceLine) -> f64 {
    (line.at_s - line.span_s / 2.0) * 1e9
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::resources::{MachineSecond, WatchedResult, WatchedSecond};

    fn line(at_s: f64, cpu_s: f64) -> ResourceLine {
        let watched = WatchedSecond {
            name: "db: mysqld".to_owned(),
            cpu_user_s: Some(cpu_s),
            cpu_system_s: Some(0.0),
            ..WatchedSecond::default()
        };
        let machine =
            MachineSecond { cores_busy: vec![Some(cpu_s), Some(0.0)], ..MachineSecond::default() };
        ResourceLine { at_s, span_s: 1.0, watched: vec![watched], machine }
    }

    fn things() -> ResourcesResult {
        let name = "db: mysqld".to_owned();
        let watched =
            vec![WatchedResult { name, cpu_cores_allowed: Some(1.0), ..WatchedResult::default() }];
        ResourcesResult { watched, ..ResourcesResult::default() }
    }

    /// The lines of the warm-up, and those behind the end, are in no figure.
    #[test]
    fn only_lines_of_the_measured_stretch_are_in_the_figures() {
        let mut account = Account::default();
        for (at_s, cpu_s) in [(-1.0, 0.1), (0.0, 0.1), (1.0, 1.0), (2.0, 0.98), (3.0, 0.1)] {
            account.take(line(at_s, cpu_s));
            account.reached((at_s - 1.0) * 1e9);
        }
        let result = account.finish(2e9, things(), None);
        let cpu = result.watched[0].cpu_cores.unwrap();
        assert_eq!((result.samples, cpu.max), (2, 1.0));
        assert!((cpu.mean - 0.99).abs() < 1e-9);
        assert_eq!(result.watched[0].at_limit, ["CPU 0.99 of 1 cores"]);
        assert_eq!(result.machine.at_limit, ["processor 0, 99 % busy"]);
    }

    #[test]
    fn without_a_line_there_are_names_and_no_figures() {
        let account = Account::default();
        assert!(account.is_empty());
        let result = account.finish(1e9, things(), Some(1));
        assert_eq!((result.samples, &result.watched), (0, &things().watched));
    }
}
