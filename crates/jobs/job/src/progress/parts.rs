//! The parts of a message: figures that stand beside each other, the most important one first.

use plimsoll_core::interval::Interval;
use plimsoll_report::number::{count, significant, time};

/// Gap between the parts of a message.
const GAP: &str = "   ";

/// Summary of one second, in parts, the most important one first: no times where nothing was answered.
pub fn parts_of(second: &Interval, quantile: (&str, f64)) -> Vec<String> {
    let all = second.all_classes();
    let (ok, failed) = (second.ledger.ok, second.ledger.failed.total());
    let rate = significant(ok as f64 / second.seconds().max(1e-9));
    let mut parts = vec![format!("{rate:>8}/s")];
    let ms = |quantile| time(all.response.quantile_ns(quantile) as f64 / 1e6);
    match all.response.count() {
        0 => parts.push("no answer yet".to_owned()),
        _ => {
            parts.push(format!("p50 {:>8}", ms(0.5)));
            parts.push(format!("{} {:>8}", quantile.0, ms(quantile.1)));
        }
    }
    parts.push(format!("failed {}", count(failed)));
    parts
}

/// A part of a message without the blanks that align it.
pub(super) fn one_blank(part: &str) -> String {
    part.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// As many parts of a message, from the first on, as have room: half a number is a wrong one.
pub(super) fn fitting(parts: &[String], room: usize) -> String {
    let mut message = String::new();
    for part in parts.iter().filter(|part| !part.is_empty()) {
        let gap = if message.is_empty() { "" } else { GAP };
        if message.chars().count() + gap.len() + part.chars().count() > room {
            break;
        }
        message += gap;
        message += part;
    }
    message
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Checks that a part which does not fit is left out as a whole, with everything after it.
    #[test]
    fn a_message_is_not_cut_inside_a_part() {
        let parts = ["12,346/s", "p95 12.3 ms", "", "failed 0"].map(str::to_owned);
        assert_eq!(fitting(&parts, 80), "12,346/s   p95 12.3 ms   failed 0");
        assert_eq!(fitting(&parts, 32), "12,346/s   p95 12.3 ms");
        assert_eq!(fitting(&parts, 20), "12,346/s");
        assert_eq!(fitting(&parts, 3), "");
    }

    #[test]
    fn a_second_without_an_answer_shows_no_times() {
        let second = Interval::new(1);
        assert!(parts_of(&second, ("p99", 0.99)).contains(&"no answer yet".to_owned()));
        let mut second = Interval::new(1);
        second.to_ns = 1_000_000_000;
        second.ledger.ok = 7;
        second.classes[0].response.record(2_000_000);
        let line = fitting(&parts_of(&second, ("p99", 0.99)), 80);
        assert!(line.contains("7.00/s   p50  2.00 ms   p99"), "{line}");
    }
}
