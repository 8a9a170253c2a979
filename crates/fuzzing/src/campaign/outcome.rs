//! The messages of libFuzzer about a run.

use std::path::PathBuf;

/// The outcome of one target.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Outcome {
    /// Inputs that were tried.
    pub inputs: u64,
    /// Inputs per second.
    pub rate: f64,
    /// Edges and numbers of their visits that were seen.
    pub features: u64,
    /// Inputs that reach all of them.
    pub kept: u64,
    /// Kept inputs that were not known before.
    pub new_inputs: usize,
    /// Files of the inputs for which a property does not hold, or that take too long or too much.
    pub findings: Vec<PathBuf>,
    /// The property that does not hold.
    pub reason: Option<String>,
}

impl Outcome {
    /// Reads the messages of a run.
    pub fn read(text: &str) -> Self {
        let mut own = Self::default();
        let mut seconds = 0.0;
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            if line.starts_with('#') {
                own.features = after(line, "ft: ").unwrap_or(own.features);
                own.kept = after(line, "corp: ").unwrap_or(own.kept);
            } else if let Some(done) = line.strip_prefix("Done ") {
                seconds = after(done, " in ").unwrap_or(0) as f64;
            } else if line.starts_with("stat::number_of_executed_units:") {
                own.inputs = after(line, "units:").unwrap_or(0);
            } else if line.starts_with("stat::average_exec_per_sec:") {
                own.rate = after(line, "sec:").unwrap_or(0) as f64;
            } else if line.contains(" panicked at ") && own.reason.is_none() {
                own.reason = lines.peek().map(|line| line.chars().take(300).collect());
            } else if line.contains("ERROR: libFuzzer: timeout") {
                own.reason = Some("the input takes too long".to_owned());
            } else if line.contains("ERROR: libFuzzer: out-of-memory") {
                own.reason = Some("the input takes too much memory".to_owned());
            }
        }
        if seconds > 0.0 {
            own.rate = own.inputs as f64 / seconds;
        }
        own
    }

    /// One line about a target that has ended.
    pub fn line(&self, name: &str) -> String {
        let found = match self.findings.first() {
            None => String::new(),
            Some(path) => {
                let reason = self.reason.as_deref().unwrap_or("see its log");
                format!("  FINDING {} ({reason})", path.display())
            }
        };
        format!(
            "{name:20} {:>10} inputs {:>7.0}/s {:>6} features {:>4} new{found}",
            self.inputs, self.rate, self.features, self.new_inputs
        )
    }
}

/// The number behind a word.
fn after(line: &str, word: &str) -> Option<u64> {
    let rest = line[line.find(word)? + word.len()..].trim_start();
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    rest[..end].parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_messages_of_a_run_are_read() {
        let text = "INFO: Seed: 3\n#2\tINITED cov: 3 ft: 4 corp: 1/1b exec/s: 0 rss: 30Mb\n\
            #1048576\tpulse  cov: 120 ft: 345 corp: 67/1Kb lim: 4096 exec/s: 524288 rss: 40Mb\n\
            Done 1000000 runs in 4 second(s)\nstat::number_of_executed_units: 1000000\n\
            stat::average_exec_per_sec:     200000\n";
        let read = Outcome::read(text);
        let expected = Outcome {
            inputs: 1_000_000,
            rate: 250_000.0,
            features: 345,
            kept: 67,
            ..Outcome::default()
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn the_property_that_does_not_hold_is_named() {
        let text =
            "thread '<unnamed>' (7) panicked at crates/x.rs:3:9:\nassertion failed: a\nnote: run\n";
        assert_eq!(Outcome::read(text).reason.as_deref(), Some("assertion failed: a"));
        let text = "==9== ERROR: libFuzzer: timeout after 10 seconds\n";
        assert_eq!(Outcome::read(text).reason.as_deref(), Some("the input takes too long"));
    }
}
