//! Mean and largest value of each figure over the measured stretch.

use plimsoll_record::resources::{
    Level, MachineResult, MachineSecond, ResourceLine, WatchedResult, WatchedSecond,
};

/// Means and maxima of lines.
#[derive(Clone, Debug, Default)]
pub struct Summary {
    samples: u64,
    span_s: f64,
    watched: Vec<WatchedMeans>,
    machine: MachineMeans,
}

/// Mean and maximum of one figure, weighted by the lengths of the lines.
#[derive(Clone, Copy, Debug, Default)]
struct Mean {
    weighted: f64,
    span_s: f64,
    max: f64,
}

impl Mean {
    /// Adds a level, or a share.
    fn level(&mut self, value: Option<f64>, span_s: f64) {
        if let Some(value) = value {
            self.weighted += value * span_s;
            self.max = if self.span_s > 0.0 { self.max.max(value) } else { value };
            self.span_s += span_s;
        }
    }

    /// Adds what happened in the line, which counts by its time.
    fn rate(&mut self, value: Option<f64>, span_s: f64) {
        self.level(value.map(|value| value / span_s), span_s);
    }

    fn count(&mut self, value: Option<u64>, span_s: f64) {
        self.rate(value.map(|value| value as f64), span_s);
    }

    fn whole(&mut self, value: Option<u64>, span_s: f64) {
        self.level(value.map(|value| value as f64), span_s);
    }

    fn get(&self) -> Option<Level> {
        (self.span_s > 0.0).then(|| Level { mean: self.weighted / self.span_s, max: self.max })
    }
}

#[derive(Clone, Copy, Debug, Default)]
struct WatchedMeans {
    processes: Mean,
    threads: Mean,
    cpu: Mean,
    cpu_user: Mean,
    cpu_system: Mean,
    throttled: Mean,
    rss: Mean,
    minor_faults: Mean,
    major_faults: Mean,
    voluntary: Mean,
    involuntary: Mean,
    disk_read: Mean,
    disk_written: Mean,
    received: Mean,
    sent: Mean,
}

impl WatchedMeans {
    fn add(&mut self, second: &WatchedSecond, span_s: f64) {
        let cpu = second.cpu_user_s.zip(second.cpu_system_s);
        self.processes.whole(second.processes, span_s);
        self.threads.whole(second.threads, span_s);
        self.cpu.rate(cpu.map(|(user, system)| user + system), span_s);
        self.cpu_user.rate(second.cpu_user_s, span_s);
        self.cpu_system.rate(second.cpu_system_s, span_s);
        self.throttled.rate(second.throttled_s, span_s);
        self.rss.whole(second.rss_bytes, span_s);
        self.minor_faults.count(second.minor_faults, span_s);
        self.major_faults.count(second.major_faults, span_s);
        self.voluntary.count(second.voluntary_switches, span_s);
        self.involuntary.count(second.involuntary_switches, span_s);
        self.disk_read.count(second.disk_read_bytes, span_s);
        self.disk_written.count(second.disk_written_bytes, span_s);
        self.received.count(second.network_received_bytes, span_s);
        self.sent.count(second.network_sent_bytes, span_s);
    }

    fn put(&self, result: &mut WatchedResult) {
        result.processes = self.processes.get();
        result.threads = self.threads.get();
        result.cpu_cores = self.cpu.get();
        result.cpu_user_cores = self.cpu_user.get();
        result.cpu_system_cores = self.cpu_system.get();
        result.throttled_cores = self.throttled.get();
        result.rss_bytes = self.rss.get();
        result.minor_faults_per_s = self.minor_faults.get();
        result.major_faults_per_s = self.major_faults.get();
        result.voluntary_switches_per_s = self.voluntary.get();
        result.involuntary_switches_per_s = self.involuntary.get();
        result.disk_read_bytes_per_s = self.disk_read.get();
        result.disk_written_bytes_per_s = self.disk_written.get();
        result.network_received_bytes_per_s = self.received.get();
        result.network_sent_bytes_per_s = self.sent.get();
    }
}

#[derive(Clone, Debug, Default)]
struct MachineMeans {
    cores: Vec<Mean>,
    available_min: Option<u64>,
    received: Mean,
    sent: Mean,
    loopback: Mean,
    disk_read: Mean,
    disk_written: Mean,
    disk_busy: Mean,
}

impl MachineMeans {
    fn add(&mut self, second: &MachineSecond, span_s: f64) {
        let cores = self.cores.len().max(second.cores_busy.len());
        self.cores.resize(cores, Mean::default());
        for (mean, busy) in self.cores.iter_mut().zip(&second.cores_busy) {
            mean.level(*busy, span_s);
        }
        let available = [self.available_min, second.memory_available_bytes];
        self.available_min = available.into_iter().flatten().min();
        self.received.count(second.network_received_bytes, span_s);
        self.sent.count(second.network_sent_bytes, span_s);
        self.loopback.count(second.loopback_bytes, span_s);
        self.disk_read.count(second.disk_read_bytes, span_s);
        self.disk_written.count(second.disk_written_bytes, span_s);
        self.disk_busy.level(second.disk_busy, span_s);
    }

    fn result(&self) -> MachineResult {
        MachineResult {
            cores_busy: self.cores.iter().map(Mean::get).collect(),
            memory_available_min_bytes: self.available_min,
            network_received_bytes_per_s: self.received.get(),
            network_sent_bytes_per_s: self.sent.get(),
            loopback_bytes_per_s: self.loopback.get(),
            disk_read_bytes_per_s: self.disk_read.get(),
            disk_written_bytes_per_s: self.disk_written.get(),
            disk_busy: self.disk_busy.get(),
            ..MachineResult::default()
        }
    }
}

impl Summary {
    /// Adds a line.
    pub fn add(&mut self, line: &ResourceLine) {
        if line.span_s <= 0.0 {
            return;
        }
        self.samples += 1;
        self.span_s += line.span_s;
        let things = self.watched.len().max(line.watched.len());
        self.watched.resize(things, WatchedMeans::default());
        for (means, second) in self.watched.iter_mut().zip(&line.watched) {
            means.add(second, line.span_s);
        }
        self.machine.add(&line.machine, line.span_s);
    }

    /// Number of lines.
    #[must_use]
    pub const fn samples(&self) -> u64 {
        self.samples
    }

    /// Time that the lines cover, s.
    #[must_use]
    pub const fn span_s(&self) -> f64 {
        self.span_s
    }

    /// Puts the figures of a watched thing into its result; nothing if there were no lines.
    pub fn put(&self, index: usize, result: &mut WatchedResult) {
        if let Some(means) = self.watched.get(index) {
            means.put(result);
        }
    }

    /// The machine.
    #[must_use]
    pub fn machine(&self) -> MachineResult {
        self.machine.result()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(span_s: f64, cpu_s: Option<f64>, rss: Option<u64>) -> ResourceLine {
        let watched = WatchedSecond {
            cpu_user_s: cpu_s,
            cpu_system_s: cpu_s.map(|_| 0.5 * span_s),
            rss_bytes: rss,
            ..WatchedSecond::default()
        };
        let machine = MachineSecond {
            cores_busy: vec![Some(0.25), None],
            memory_available_bytes: rss,
            ..MachineSecond::default()
        };
        ResourceLine { at_s: 0.0, span_s, watched: vec![watched], machine }
    }

    /// A line of half a second weighs half as much, and one without the figure not at all.
    #[test]
    fn means_are_weighted_by_time_and_know_nothing_of_unknown_figures() {
        let mut summary = Summary::default();
        for line in
            [line(1.0, Some(1.0), Some(30)), line(0.5, Some(0.2), Some(60)), line(1.0, None, None)]
        {
            summary.add(&line);
        }
        let mut result = WatchedResult::default();
        summary.put(0, &mut result);
        let cpu = result.cpu_cores.unwrap();
        assert!(
            (cpu.mean - (1.5 + 0.9 * 0.5) / 1.5).abs() < 1e-12 && (cpu.max - 1.5).abs() < 1e-12
        );
        assert_eq!(result.rss_bytes, Some(Level { mean: 40.0, max: 60.0 }));
        assert_eq!((result.disk_read_bytes_per_s, result.threads), (None, None));
        let machine = summary.machine();
        assert_eq!(machine.cores_busy, [Some(Level { mean: 0.25, max: 0.25 }), None]);
        assert_eq!(machine.memory_available_min_bytes, Some(30));
        assert_eq!((summary.samples(), summary.span_s(), machine.disk_busy), (3, 2.5, None));
    }

    #[test]
    fn without_lines_there_are_no_figures() {
        let summary = Summary::default();
        let mut result = WatchedResult::default();
        summary.put(0, &mut result);
        assert_eq!(result, WatchedResult::default());
        assert_eq!(summary.machine(), MachineResult::default());
    }
}
