//! `cpu-limit`: the processors that command and target may use.

use super::Hook;
use anyhow::Result;
use plimsoll_job::usage::usage;
use rustix::thread::{CpuSet, sched_getaffinity};
use serde_json::Value;
use std::path::Path;

pub struct CpuLimit {
    processors: CpuSet,
    /// True if they may be used at all.
    usable: bool,
}

impl CpuLimit {
    pub fn new(options: &Value) -> Result<Self> {
        let numbers = match options {
            Value::String(text) if text.contains([',', '-']) => list(text),
            Value::String(text) => mask(text),
            Value::Array(list) => list.iter().map(|n| n.as_u64().map(|n| n as usize)).collect(),
            _ => None,
        };
        let numbers = numbers.filter(|numbers| {
            !numbers.is_empty() && numbers.iter().all(|number| *number < CpuSet::MAX_CPU)
        });
        let numbers = numbers.ok_or_else(|| {
            usage(format!(
                "hook cpu-limit: {options}: write a mask in hexadecimal (\"0x3\"), \
                 a list (\"0-1,3\") or numbers ([0, 1])"
            ))
        })?;
        let mut processors = CpuSet::new();
        numbers.iter().for_each(|number| processors.set(*number));
        Ok(Self { processors, usable: false })
    }
}

impl Hook for CpuLimit {
    fn before(&mut self, _folder: &Path) -> Result<(), String> {
        let own = sched_getaffinity(None).map_err(|error| error.to_string())?;
        let mut usable = CpuSet::new();
        for cpu in
            (0..CpuSet::MAX_CPU).filter(|&cpu| self.processors.is_set(cpu) && own.is_set(cpu))
        {
            usable.set(cpu);
        }
        if usable.count() == 0 {
            return Err(
                "none of these processors may be used here; the run is not limited".to_owned()
            );
        }
        let missing = self.processors.count() - usable.count();
        (self.processors, self.usable) = (usable, true);
        if missing > 0 {
            plimsoll_job::output::note(&format!(
                "plimsoll: hook cpu-limit: {missing} of the processors are not there"
            ));
        }
        Ok(())
    }

    fn after(&mut self, _folder: &Path) -> Result<(), String> {
        Ok(())
    }

    fn processors(&self) -> Option<CpuSet> {
        self.usable.then_some(self.processors)
    }
}

/// `0-1,3`.
fn list(text: &str) -> Option<Vec<usize>> {
    let mut numbers = Vec::new();
    for part in text.split(',') {
        let (from, to) = part.split_once('-').unwrap_or((part, part));
        let (from, to): (usize, usize) = (from.trim().parse().ok()?, to.trim().parse().ok()?);
        if from > to || to >= CpuSet::MAX_CPU {
            return None;
        }
        numbers.extend(from..=to);
    }
    Some(numbers)
}

/// Hexadecimal digits, with or without `0x`, as taskset reads them.
fn mask(text: &str) -> Option<Vec<usize>> {
    let digits = text.trim().trim_start_matches("0x");
    let mut numbers = Vec::new();
    for (place, digit) in digits.chars().rev().enumerate() {
        let bits = digit.to_digit(16)?;
        numbers.extend((0..4).filter(|bit| bits & (1 << bit) != 0).map(|bit| place * 4 + bit));
    }
    Some(numbers)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn masks_and_lists() {
        assert_eq!(mask("0x3"), Some(vec![0, 1]));
        assert_eq!(mask("f0"), Some(vec![4, 5, 6, 7]));
        assert_eq!(list("0-1,3"), Some(vec![0, 1, 3]));
        for wrong in [
            json!("0x0"),
            json!("x"),
            json!("3-1"),
            json!(""),
            json!(null),
            json!([]),
            json!([99999]),
        ] {
            assert!(CpuLimit::new(&wrong).is_err(), "{wrong}");
        }
        let mut first = CpuLimit::new(&json!("0-0")).unwrap();
        assert_eq!(
            first.before(Path::new(".")).is_ok(),
            sched_getaffinity(None).unwrap().is_set(0)
        );
        assert!(CpuLimit::new(&json!([1023])).unwrap().before(Path::new(".")).is_err());
    }
}
