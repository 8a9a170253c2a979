//! `--duet`: processors of each side's generator and target, disjoint, and swapped from pair to pair.

use crate::arms::Arm;
use anyhow::Result;
use plimsoll_job::usage::usage;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Processors of one half of the machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Half {
    /// Those of the target that was started for the side; empty without one.
    pub target: Vec<usize>,
    /// Those of the generator.
    pub generator: Vec<usize>,
}

/// Returns the processors that this process may use.
///
/// # Errors
/// When the system does not tell.
pub fn processors() -> Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&processor| set.is_set(processor)).collect())
}

/// Divides processors into two equal halves; in each, the last one is the generator's and the others the target's.
///
/// # Errors
/// Too few processors; the line says how many it takes.
pub fn halves(processors: &[usize], has_targets: bool) -> Result<[Half; 2]> {
    let least = if has_targets { 4 } else { 2 };
    if processors.len() < least {
        let what = if has_targets { "2 generators and 2 targets" } else { "2 generators" };
        return Err(usage(format!(
            "--duet needs {least} processors, one each for {what}, and this process may use {}; leave it out, so that \
             the blocks run in turn",
            processors.len()
        )));
    }
    let each = processors.len() / 2;
    let half = |own: &[usize]| {
        let (generator, target) = (own[own.len() - 1], &own[..own.len() - 1]);
        match has_targets {
            true => Half { target: target.to_vec(), generator: vec![generator] },
            false => Half { target: Vec::new(), generator: own.to_vec() },
        }
    };
    Ok([half(&processors[..each]), half(&processors[each..2 * each])])
}

/// Rejects targets on this machine that the comparison did not start: it cannot give them processors of their own.
///
/// # Errors
/// Such a target.
pub fn check_targets(arms: &[Arm; 2], are_here: [bool; 2]) -> Result<()> {
    match arms.iter().zip(are_here).find(|(arm, is_here)| *is_here && arm.server.is_none()) {
        None => Ok(()),
        Some((arm, _)) => Err(usage(format!(
            "--duet: the target of {} runs on this machine, and ab did not start it, so that it has no processors of its own; \
             start it with --{}-command, or leave out --duet",
            arm.letter,
            arm.letter.to_ascii_lowercase()
        ))),
    }
}

/// The set of these processors.
#[must_use]
pub fn set(processors: &[usize]) -> CpuSet {
    let mut set = CpuSet::new();
    processors.iter().for_each(|&processor| set.set(processor));
    set
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_disjoint_and_equal() {
        let [a, b] = halves(&[0, 1, 2, 3, 6], true).unwrap();
        assert_eq!((a.target, a.generator), (vec![0], vec![1]));
        assert_eq!((b.target, b.generator), (vec![2], vec![3]));
        let [a, b] = halves(&[4, 5], false).unwrap();
        assert_eq!((a.generator, b.generator), (vec![4], vec![5]));
        assert!(a.target.is_empty());
    }

    #[test]
    fn too_few_processors_are_one_line() {
        let refusal = |processors: &[usize], has_targets| {
            halves(processors, has_targets).unwrap_err().to_string()
        };
        assert!(
            refusal(&[0, 1], true).starts_with("--duet needs 4 processors"),
            "{}",
            refusal(&[0, 1], true)
        );
        assert!(refusal(&[0], false).starts_with("--duet needs 2 processors"));
    }
}
