//! The way the rate of a column grows with its users.

use super::Cell;

/// One column of a table: how the rate grows with users, and where it stops growing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scaling {
    /// Users and X(N) / X(1), where there is a rate for both.
    pub speedups: Vec<(u32, f64)>,
    /// The number of users at which a lone user's rate, multiplied, would reach the highest rate seen:
    /// X_max / X(1), the knee of the asymptotes. Beyond it requests wait.
    pub knee_users: Option<f64>,
    /// The highest rate, per second.
    pub highest_per_s: Option<f64>,
    /// True if the highest rate of all is at the most users that have one, so that there may be more.
    pub still_growing: bool,
}

/// A rate that is no more than this above an earlier one has not grown.
const GROWTH: f64 = 1.05;

/// The way a column's rate grows with its users. `cells` are those of one column, fewest users first.
#[must_use]
pub fn scaling(cells: &[&Cell]) -> Scaling {
    let rates: Vec<(u32, f64)> = cells
        .iter()
        .filter_map(|cell| Some((cell.key.users, cell.ok_per_s.filter(|rate| *rate > 0.0)?)))
        .collect();
    let alone = rates.iter().find(|(users, _)| *users == 1).map(|(_, rate)| *rate);
    let highest = rates.iter().map(|(_, rate)| *rate).reduce(f64::max);
    let before_last =
        rates.iter().rev().skip(1).map(|(_, rate)| *rate).reduce(f64::max).unwrap_or_default();
    let last = rates.last().map_or(0.0, |(_, rate)| *rate);
    Scaling {
        speedups: alone.map_or_else(Vec::new, |alone| {
            rates.iter().map(|(users, rate)| (*users, rate / alone)).collect()
        }),
        knee_users: alone.zip(highest).map(|(alone, highest)| highest / alone),
        highest_per_s: highest,
        still_growing: rates.len() > 1 && last > before_last * GROWTH,
    }
}

#[cfg(test)]
mod tests {
    use super::super::CellKey;
    use super::*;

    #[test]
    fn a_serial_server_has_its_knee_below_two_users() {
        let cell = |users, rate: Option<f64>| Cell {
            key: CellKey { users, ..CellKey::default() },
            ok_per_s: rate,
            ..Cell::default()
        };
        let cells = [cell(1, Some(0.231)), cell(5, Some(0.374)), cell(10, Some(0.374))];
        let serial = scaling(&cells.iter().collect::<Vec<_>>());
        assert!((serial.knee_users.unwrap() - 1.619).abs() < 1e-3);
        assert!(!serial.still_growing);
        let cells = [cell(1, Some(1.0)), cell(5, Some(4.0)), cell(10, Some(8.0)), cell(20, None)];
        let growing = scaling(&cells.iter().collect::<Vec<_>>());
        assert_eq!(growing.speedups, [(1, 1.0), (5, 4.0), (10, 8.0)]);
        assert!(growing.still_growing);
        assert_eq!(scaling(&[&cell(5, None)]), Scaling::default());
    }
}
