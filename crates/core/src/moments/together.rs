//! The figures of several parts of a run over time, as one.

use super::{MOMENTS_MAX, Moment};

/// Figures of a stretch of one part of a run, which add up with those of other parts at the same time.
pub trait Beside: Moment + Clone + Default {
    /// Its start and its end, s.
    fn stretch(&self) -> (f64, f64);

    /// A stretch without figures.
    fn empty(from_s: f64, to_s: f64) -> Self;

    /// Adds the rates of another part, times `share`: how much of this stretch the other's covers.
    fn add_rates(&mut self, other: &Self, share: f64);

    /// Adds what another part reports for the end of a stretch. `is_over`: that part has ended before.
    fn add_end(&mut self, other: &Self, is_over: bool);
}

/// The parts of a run together: stretches of equal length, as many as the part with the most of them has. The sum of each figure
/// per second over all stretches is that of the parts.
#[must_use]
pub fn together<T: Beside>(parts: &[Vec<T>]) -> Vec<T> {
    if let [only] = parts {
        return only.clone();
    }
    let end_s = parts.iter().filter_map(|part| part.last()).map(|last| last.stretch().1);
    let end_s = end_s.fold(0.0, f64::max);
    let count = parts.iter().map(Vec::len).max().unwrap_or(0).min(MOMENTS_MAX);
    let at = |index: usize| end_s * index as f64 / count as f64;
    let mut all: Vec<T> = (0..count).map(|index| T::empty(at(index), at(index + 1))).collect();
    for part in parts {
        let mut next = 0;
        for whole in &mut all {
            let (from_s, to_s) = whole.stretch();
            while part.get(next).is_some_and(|own| own.stretch().1 <= from_s) {
                next += 1;
            }
            let covering = part[next..].iter().take_while(|own| own.stretch().0 < to_s);
            for own in covering {
                let (own_from_s, own_to_s) = own.stretch();
                let common_s = own_to_s.min(to_s) - own_from_s.max(from_s);
                whole.add_rates(own, common_s.max(0.0) / (to_s - from_s).max(f64::MIN_POSITIVE));
            }
            let standing = part[next..].iter().find(|own| own.stretch().1 >= to_s - 1e-9);
            match standing.filter(|own| own.stretch().0 < to_s) {
                Some(own) => whole.add_end(own, false),
                None => {
                    part.last().into_iter().for_each(|last| whole.add_end(last, true));
                }
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rate, and a number at the end.
    #[derive(Clone, Debug, Default, PartialEq)]
    struct Own(f64, f64, f64, u32);

    impl Moment for Own {
        fn append(&mut self, _next: &Self) {}
    }

    impl Beside for Own {
        fn stretch(&self) -> (f64, f64) {
            (self.0, self.1)
        }

        fn empty(from_s: f64, to_s: f64) -> Self {
            Self(from_s, to_s, 0.0, 0)
        }

        fn add_rates(&mut self, other: &Self, share: f64) {
            self.2 += other.2 * share;
        }

        fn add_end(&mut self, other: &Self, is_over: bool) {
            self.3 += if is_over { 0 } else { other.3 };
        }
    }

    #[test]
    fn what_passed_in_all_parts_is_the_sum_over_time() {
        let one = vec![Own(0.0, 0.2, 10.0, 1), Own(0.2, 0.5, 20.0, 2), Own(0.5, 1.0, 4.0, 3)];
        let other = vec![Own(0.0, 0.3, 100.0, 10), Own(0.3, 0.4, 50.0, 20)];
        let sum = |all: &[Own]| all.iter().map(|own| own.2 * (own.1 - own.0)).sum::<f64>();
        let both = together(&[one.clone(), other.clone()]);
        assert_eq!(both.len(), 3);
        assert!((sum(&both) - sum(&one) - sum(&other)).abs() < 1e-9, "{both:?}");
        assert_eq!(both.iter().map(|own| own.3).collect::<Vec<_>>(), [22, 3, 3]);
        assert_eq!(together(std::slice::from_ref(&one)), one);
        assert!(together::<Own>(&[]).is_empty());
        assert!(together::<Own>(&[Vec::new(), Vec::new()]).is_empty());
    }
}
