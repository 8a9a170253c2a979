//! Medians, spreads and ratios of a few rounds.

/// The middle of a list, or the mean of the two in the middle; not a number when it is empty.
pub fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let middle = sorted.len() / 2;
    match sorted.len() {
        0 => f64::NAN,
        length if length % 2 == 1 => sorted[middle],
        _ => f64::midpoint(sorted[middle - 1], sorted[middle]),
    }
}

/// Each round's value over the base's value of the same round.
pub fn ratios(values: &[f64], base: &[f64]) -> Vec<f64> {
    values.iter().zip(base).map(|(value, base)| value / base).collect()
}

/// `median (least to most)`, each as `format` writes it.
pub fn spread(values: &[f64], format: impl Fn(f64) -> String) -> String {
    if values.iter().all(|value| value.is_nan()) {
        return "-".to_owned();
    }
    let least = values.iter().copied().fold(f64::INFINITY, f64::min);
    let most = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let (least, most) = (format(least), format(most));
    if values.len() == 1 {
        return format(values[0]);
    }
    format!("{} ({least} to {most})", format(median(values)))
}

/// A count with its thousands set apart.
pub fn whole(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut out = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// With one or two digits after the point, or none where they would say nothing.
pub fn short(value: f64) -> String {
    match value.abs() {
        size if size >= 1000.0 => whole(value),
        size if size >= 100.0 => format!("{value:.0}"),
        size if size >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// The value that a share of `quantile` (0 to 1) of the values does not exceed; not a number when there are none.
pub fn quantile(values: &[f64], quantile: f64) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let rank = (quantile * sorted.len() as f64).ceil() as usize;
    sorted.get(rank.clamp(1, sorted.len().max(1)) - 1).copied().unwrap_or(f64::NAN)
}
