//! The sign-flip test: if A and B are alike, the random order within a pair makes a log ratio as likely as its negative.
//!
//! Fisher, "The design of experiments" (1935), section 21. It assumes no distribution and no independence of the sizes:
//! machine drift and heavy tails change the power, and not the error.

use plimsoll_core::rng::Rng;

/// Up to this many pairs, all 2^n signs are tried.
const PAIRS_ENUMERATED: usize = 16;
/// Draws end with this many that are at least as extreme (Besag and Clifford, "Sequential Monte Carlo p-values", 1991).
const HITS: u32 = 50;
/// Most draws; the least p-value is their inverse.
const DRAWS_MOST: u32 = 200_000;
/// Signs are drawn in groups: one byte chooses the signs of eight values, whose sum is in a table.
const GROUP: usize = 8;

/// Returns the one-sided p-value for a mean above 0: the share of signs whose sum is at least the observed one.
///
/// Exact up to 16 values. Above, it is a Monte Carlo p-value with a fixed seed: at least 1/200,001, valid for any number of
/// draws, and with a standard error of a seventh of itself.
#[must_use]
pub fn upper(values: &[f64]) -> f64 {
    let observed: f64 = values.iter().sum();
    // Equal sums differ by rounding.
    let bound = observed - 1e-12 * values.iter().map(|value| value.abs()).sum::<f64>();
    let tables: Vec<[f64; 256]> = values.chunks(GROUP).map(sums).collect();
    if values.len() <= PAIRS_ENUMERATED {
        enumerated(&tables, bound)
    } else {
        drawn(&tables, bound)
    }
}

/// Returns the sums of up to eight values under each choice of signs.
fn sums(group: &[f64]) -> [f64; 256] {
    let mut table = [0.0; 256];
    for (signs, sum) in table.iter_mut().enumerate() {
        *sum = group
            .iter()
            .enumerate()
            .map(|(bit, value)| if signs >> bit & 1 == 0 { *value } else { -value })
            .sum();
    }
    table
}

/// Unused bits of a table repeat each choice equally often, so that shares are exact.
fn enumerated(tables: &[[f64; 256]], bound: f64) -> f64 {
    const NONE: [f64; 256] = [0.0; 256];
    let first = tables.first().unwrap_or(&NONE);
    let second = tables.get(1).unwrap_or(&NONE);
    let hits: usize =
        first.iter().map(|one| second.iter().filter(|two| one + **two >= bound).count()).sum();
    hits as f64 / (256.0 * 256.0)
}

fn drawn(tables: &[[f64; 256]], bound: f64) -> f64 {
    let mut rng = Rng::new(tables.len() as u64);
    let mut hits = 0;
    for draw in 1..=DRAWS_MOST {
        let mut sum = 0.0;
        for eight in tables.chunks(8) {
            let mut bits = rng.next_u64();
            for table in eight {
                sum += table[(bits & 0xff) as usize];
                bits >>= 8;
            }
        }
        hits += u32::from(sum >= bound);
        if hits == HITS {
            return f64::from(hits) / f64::from(draw);
        }
    }
    f64::from(hits + 1) / f64::from(DRAWS_MOST + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_have_the_exact_share_of_signs() {
        assert_eq!(upper(&[1.0, 1.0, 1.0]), 1.0 / 8.0);
        assert_eq!(upper(&[1.0, 2.0, -0.5]), 2.0 / 8.0);
        assert_eq!(upper(&[0.1; 10]), 1.0 / 1024.0);
        assert_eq!(upper(&[-0.1; 10]), 1.0);
        assert_eq!(upper(&[]), 1.0);
    }

    #[test]
    fn drawn_signs_agree_with_all_signs() {
        let mut rng = Rng::new(3);
        for _ in 0..20 {
            let values: Vec<f64> = (0..16).map(|_| rng.uniform() - 0.4).collect();
            let tables: Vec<[f64; 256]> = values.chunks(GROUP).map(sums).collect();
            let bound = values.iter().sum::<f64>() - 1e-9;
            let (all, some) = (enumerated(&tables, bound), drawn(&tables, bound));
            assert!((some / all).ln().abs() < 0.7, "{all} {some}");
        }
    }

    #[test]
    fn p_values_of_like_sides_are_not_too_small() {
        let mut rng = Rng::new(4);
        let small = (0..2_000)
            .filter(|_| {
                let values: Vec<f64> = (0..24)
                    .map(|_| (rng.uniform() - 0.5).signum() * rng.exponential().powi(4))
                    .collect();
                upper(&values) <= 0.025
            })
            .count();
        assert!(small <= 70, "{small} of 2,000 at a level of 2.5 %");
    }
}
