//! Figures of a run over time, for a record: as many as fit, however long the run was.

mod together;

pub use together::{Beside, together};

/// Most moments that are kept.
pub const MOMENTS_MAX: usize = 1024;

/// Figures of a stretch of time, which join with those of the stretch after it.
pub trait Moment {
    /// Adds the stretch that follows this one.
    fn append(&mut self, next: &Self);
}

/// Returns the figure per second of two stretches together, each given as its length in s and its own figure per second.
#[must_use]
pub fn joined_per_s(first: (f64, f64), second: (f64, f64)) -> f64 {
    let seconds = first.0 + second.0;
    if seconds > 0.0 { (first.0 * first.1 + second.0 * second.1) / seconds } else { 0.0 }
}

/// Stretches of a run, one after the other. When there are too many, neighbours are joined two by two, and from then on a
/// stretch covers twice as many moments.
#[derive(Clone, Debug)]
pub struct Moments<T> {
    kept: Vec<T>,
    /// Moments that a stretch covers.
    span: u64,
    /// Moments in the last stretch.
    in_last: u64,
}

impl<T> Default for Moments<T> {
    fn default() -> Self {
        Self { kept: Vec::new(), span: 1, in_last: 0 }
    }
}

impl<T: Moment + Clone> Moments<T> {
    /// Adds the next moment.
    pub fn push(&mut self, next: T) {
        match self.kept.last_mut() {
            Some(last) if self.in_last < self.span => {
                last.append(&next);
                self.in_last += 1;
            }
            _ => {
                self.kept.push(next);
                self.in_last = 1;
            }
        }
        if self.kept.len() > MOMENTS_MAX {
            let joined = self.kept.chunks(2).filter_map(|pair| {
                let (first, rest) = pair.split_first()?;
                let mut sum = first.clone();
                rest.iter().for_each(|next| sum.append(next));
                Some(sum)
            });
            self.kept = joined.collect();
            // One more than an even number: the last one had no neighbour, and goes on growing.
            self.span *= 2;
        }
    }

    /// The stretches, in the order of time.
    #[must_use]
    pub fn into_kept(self) -> Vec<T> {
        self.kept
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, PartialEq)]
    struct Counted {
        from: u64,
        to: u64,
        count: u64,
    }

    impl Moment for Counted {
        fn append(&mut self, next: &Self) {
            assert_eq!(self.to, next.from, "only neighbours are joined");
            self.to = next.to;
            self.count += next.count;
        }
    }

    #[test]
    fn a_longer_stretch_weighs_more() {
        assert_eq!(joined_per_s((1.0, 10.0), (3.0, 50.0)), 40.0);
        assert_eq!(joined_per_s((0.0, 10.0), (0.0, 50.0)), 0.0);
    }

    #[test]
    fn nothing_is_lost_however_long_a_run_is() {
        for length in [0, 1, 7, 1024, 1025, 1026, 2049, 3000, 100_000] {
            let mut moments = Moments::default();
            (0..length).for_each(|at| moments.push(Counted { from: at, to: at + 1, count: 1 }));
            let kept = moments.into_kept();
            assert!(kept.len() <= MOMENTS_MAX && kept.len() as u64 >= length.min(512));
            assert_eq!(kept.iter().map(|one| one.count).sum::<u64>(), length);
            let widths: Vec<u64> = kept.iter().map(|one| one.to - one.from).collect();
            if let Some((last, whole)) = widths.split_last() {
                assert!(whole.iter().all(|width| *width == whole[0]), "{length}: {widths:?}");
                assert!(whole.is_empty() || *last <= whole[0], "{length}: {last}");
            }
        }
    }
}
