//! E-divisive with a t-test, as several tools for histories have it: the split with the largest energy distance (Matteson and
//! James 2014, exponent 1), and Student's t-test between the two parts. The p value is that of a split which was not chosen.

use plimsoll_decide::student::two_sided;

/// Fewest runs of a segment: a variance needs two.
const SEGMENT_LEAST: usize = 2;

/// Returns the first run after each change, oldest first.
pub fn e_divisive(values: &[f64], p_most: f64) -> Vec<usize> {
    let mut found = Vec::new();
    let mut open = vec![(0, values.len())];
    while let Some((from, to)) = open.pop() {
        let segment = &values[from..to];
        let Some(at) = split(segment) else { continue };
        if t_test(&segment[..at], &segment[at..]) <= p_most {
            found.push(from + at);
            open.extend([(from, from + at), (from + at, to)]);
        }
    }
    found.sort_unstable();
    found
}

/// The split with the largest energy distance: the number of runs before it.
fn split(values: &[f64]) -> Option<usize> {
    let n = values.len();
    let distance = |a: usize, b: usize| f64::abs(values[a] - values[b]);
    let (mut between, mut left) = (0.0, 0.0);
    let mut right: f64 = (0..n).map(|a| (a + 1..n).map(|b| distance(a, b)).sum::<f64>()).sum();
    let mut best: Option<(usize, f64)> = None;
    for at in 0..n {
        // The run `at` moves from the right part to the left one.
        let before: f64 = (0..at).map(|other| distance(at, other)).sum();
        let behind: f64 = (at + 1..n).map(|other| distance(at, other)).sum();
        between += behind - before;
        left += before;
        right -= behind;
        let (k, rest) = ((at + 1) as f64, (n - at - 1) as f64);
        if at + 1 < SEGMENT_LEAST || n - at - 1 < SEGMENT_LEAST {
            continue;
        }
        let pairs = |count: f64| count * (count - 1.0) / 2.0;
        let energy = 2.0 * between / (k * rest) - left / pairs(k) - right / pairs(rest);
        let weighed = k * rest / (k + rest) * energy;
        if best.is_none_or(|(_, most)| weighed > most) {
            best = Some((at + 1, weighed));
        }
    }
    best.map(|(at, _)| at)
}

/// Student's t-test with a common variance: its p value.
fn t_test(a: &[f64], b: &[f64]) -> f64 {
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let (mean_a, mean_b) = (mean(a), mean(b));
    let squares =
        |values: &[f64], mean: f64| values.iter().map(|value| (value - mean).powi(2)).sum::<f64>();
    let freedom = (a.len() + b.len() - 2) as f64;
    let variance = (squares(a, mean_a) + squares(b, mean_b)) / freedom;
    let error = (variance * (1.0 / a.len() as f64 + 1.0 / b.len() as f64)).sqrt();
    two_sided((mean_a - mean_b) / error, freedom)
}
