//! `/proc/stat` in the columns of `mpstat -u`.

/// The columns, %.
pub const COLUMNS: [&str; 10] =
    ["%usr", "%nice", "%sys", "%iowait", "%irq", "%soft", "%steal", "%guest", "%gnice", "%idle"];

/// Ticks of one processor, or of all together: user, nice, system, idle, iowait, irq, softirq, steal, guest,
/// guest_nice.
pub type Ticks = [u64; 10];

/// All lines of `/proc/stat` about processors: `all` first, then each by its number.
#[must_use]
pub fn parse(text: &str) -> Vec<(String, Ticks)> {
    let line = |line: &str| {
        let (name, rest) = line.split_once(' ')?;
        let number = name.strip_prefix("cpu")?;
        let mut ticks = [0; 10];
        for (tick, word) in ticks.iter_mut().zip(rest.split_ascii_whitespace()) {
            *tick = word.parse().ok()?;
        }
        let name = if number.is_empty() { "all" } else { number };
        Some((name.to_owned(), ticks))
    };
    text.lines().filter_map(line).collect()
}

/// Shares of the time between two readings, %, as `mpstat` has them: guests are not part of `%usr` and `%nice`.
/// All 0 but `%idle` when no tick has passed.
#[must_use]
pub fn shares(before: &Ticks, after: &Ticks) -> [f64; 10] {
    let mut passed = [0u64; 10];
    for (index, ticks) in passed.iter_mut().enumerate() {
        // Idle and iowait may go back a little on some kernels.
        *ticks = after[index].saturating_sub(before[index]);
    }
    let [user, nice, system, idle, iowait, irq, softirq, steal, guest, guest_nice] = passed;
    let total = user + nice + system + idle + iowait + irq + softirq + steal;
    if total == 0 {
        return [0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 100.0];
    }
    let (user, nice) = (user.saturating_sub(guest), nice.saturating_sub(guest_nice));
    [user, nice, system, iowait, irq, softirq, steal, guest, guest_nice, idle]
        .map(|ticks| ticks as f64 / total as f64 * 100.0)
}

/// A reading of this machine; empty when it cannot be had.
#[must_use]
pub fn read() -> Vec<(String, Ticks)> {
    std::fs::read_to_string("/proc/stat").map(|text| parse(&text)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_those_of_mpstat() {
        let text = "cpu  100 0 50 800 10 0 5 35 20 0\ncpu0 1 2 3 4 5 6 7 8 9 10\nintr 5\n";
        let read = parse(text);
        assert_eq!(read.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["all", "0"]);
        let shares = shares(&[0; 10], &read[0].1);
        let expected = [8.0, 0.0, 5.0, 1.0, 0.0, 0.5, 3.5, 2.0, 0.0, 80.0];
        for (share, expected) in shares.iter().zip(expected) {
            assert!((share - expected).abs() < 1e-9, "{shares:?}");
        }
        assert!((shares.iter().sum::<f64>() - 100.0).abs() < 1e-9);
        assert_eq!(super::shares(&[5; 10], &[5; 10])[9], 100.0);
    }
}
