//! Answers in words: what the page, the table and the list of runs say of a metric.

use crate::answers::LIMITED;
use plimsoll_record::ab::{AbAnswer, AbMetric, AbResult};
use plimsoll_report::number::{bytes, counted, percent, significant, time};

/// A relative change in percent, with its sign: `+6.1 %`.
#[must_use]
pub fn change(ratio: f64) -> String {
    let percent = (ratio - 1.0) * 100.0;
    match percent.abs() {
        size if size >= 99.5 => format!("{percent:+.0} %"),
        size if size >= 0.095 || size == 0.0 => format!("{percent:+.1} %"),
        _ => format!("{percent:+.2} %"),
    }
}

/// The interval of a change: `+4.0 to +8.3 %`.
#[must_use]
pub fn interval(metric: &AbMetric) -> Option<String> {
    let (low, high) = metric.interval?;
    let low = change(low);
    Some(format!("{} to {}", low.trim_end_matches(" %"), change(high)))
}

/// A value with its unit.
#[must_use]
pub fn value(metric: &AbMetric, value: Option<f64>) -> String {
    let Some(value) = value else { return "-".to_owned() };
    match metric.unit.as_str() {
        "ms" => time(value),
        "us" => time(value / 1e3),
        "s" => time(value * 1e3),
        "%" => percent(value),
        "B/s" => format!("{}/s", bytes(value)),
        "/s" => format!("{}/s", significant(value)),
        _ => significant(value),
    }
}

/// The margin in words: `5 %`.
fn margin(result: &AbResult) -> String {
    share(result.margin)
}

/// A share that a flag gives, in percent: `5 %`.
#[must_use]
pub fn share(share: f64) -> String {
    // Half a millionth is rounding.
    format!("{} %", (share * 1e8).round() / 1e6)
}

/// A note on the ratios of a comparison whose generator was late; `None` where all are as measured.
#[must_use]
pub fn late_note(result: &AbResult) -> Option<&'static str> {
    let is_late = result.generator.is_late && !result.generator.is_limit;
    is_late.then_some(
        "The generator was late: the ratios and intervals of named percentiles and of a named mean are at equal delays of \
         both sides; A, B, and all other rows are as measured",
    )
}

/// The answer in a few words, as the table has it.
#[must_use]
pub fn short(metric: &AbMetric, result: &AbResult) -> String {
    match metric.answer {
        None => "not named".to_owned(),
        Some(AbAnswer::Same) => format!("same within {}", margin(result)),
        Some(AbAnswer::CannotTell) => "cannot tell".to_owned(),
        Some(answer) => format!("B is {answer}"),
    }
}

/// The answer for a named metric in one sentence; `None` for one that was not named.
#[must_use]
pub fn sentence(metric: &AbMetric, result: &AbResult) -> Option<String> {
    let answer = metric.answer?;
    let said = match answer {
        AbAnswer::Better => "B is better".to_owned(),
        AbAnswer::Worse => "B is worse".to_owned(),
        AbAnswer::Same => format!("A and B are the same within {}", margin(result)),
        AbAnswer::CannotTell => "cannot tell".to_owned(),
    };
    let mut text = format!("{}: {said}", metric.name);
    if answer == AbAnswer::CannotTell {
        text += &format!(" ({})", metric.reason);
    }
    // Figures that are the generator's are not offered as the target's.
    let is_own = result.generator.is_limit || metric.reason == LIMITED;
    let figures = if is_own { None } else { interval(metric) };
    if let (Some(ratio), Some(interval)) = (metric.ratio, figures) {
        text += &format!(", {} ({interval})", change(ratio));
    }
    text += &format!(", {}", counted(metric.pairs, "pair"));
    if let Some(needed) = metric.pairs_needed {
        let all_s = result.plan.pilot_s + needed as f64 * result.plan.pair_s;
        text += &format!(
            "; about {} would show a difference of {} (--budget {})",
            counted(needed, "pair"),
            margin(result),
            budget(all_s)
        );
    }
    Some(text)
}

/// A budget as the flag takes it, rounded up.
fn budget(seconds: f64) -> String {
    let seconds = (seconds * 1.05).ceil();
    if seconds < 180.0 {
        format!("{seconds:.0}s")
    } else {
        format!("{:.0}m", (seconds / 60.0).ceil())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn metric(answer: AbAnswer) -> AbMetric {
        AbMetric {
            name: "p99".to_owned(),
            unit: "ms".to_owned(),
            answer: Some(answer),
            ratio: Some(1.061),
            interval: Some((1.04, 1.083)),
            pairs: 48,
            ..AbMetric::default()
        }
    }

    #[test]
    fn an_answer_is_a_sentence() {
        let result = AbResult { margin: 0.05, ..AbResult::default() };
        let say = |metric: &AbMetric| sentence(metric, &result).unwrap();
        assert_eq!(
            say(&metric(AbAnswer::Worse)),
            "p99: B is worse, +6.1 % (+4.0 to +8.3 %), 48 pairs"
        );
        assert!(say(&metric(AbAnswer::Same)).starts_with("p99: A and B are the same within 5 %,"));
        let mut open = metric(AbAnswer::CannotTell);
        open.reason = "the pairs differ too much from each other".to_owned();
        open.pairs_needed = Some(120);
        let mut result = result.clone();
        (result.plan.pair_s, result.plan.pilot_s) = (3.0, 20.0);
        let text = sentence(&open, &result).unwrap();
        assert!(text.starts_with("p99: cannot tell (the pairs differ"), "{text}");
        assert!(
            text.ends_with("about 120 pairs would show a difference of 5 % (--budget 7m)"),
            "{text}"
        );
        assert_eq!(sentence(&AbMetric::default(), &result), None);
    }

    #[test]
    fn only_a_late_comparison_that_has_answers_says_so() {
        let of = |is_late, is_limit| {
            let mut result = AbResult::default();
            (result.generator.is_late, result.generator.is_limit) = (is_late, is_limit);
            late_note(&result).is_some()
        };
        assert_eq!([of(false, false), of(true, false), of(true, true)], [false, true, false]);
    }

    #[test]
    fn changes_and_values_have_signs_and_units() {
        assert_eq!(
            (change(1.0), change(0.9995), change(2.5)),
            ("+0.0 %".to_owned(), "-0.05 %".to_owned(), "+150 %".to_owned())
        );
        let of = |unit: &str, own: f64| {
            value(&AbMetric { unit: unit.to_owned(), ..AbMetric::default() }, Some(own))
        };
        assert_eq!(of("ms", 1.5), "1.50 ms");
        assert_eq!(of("us", 86.0), "86.0 us");
        assert_eq!(of("%", 0.017), "1.7 %");
        assert_eq!(of("/s", 1234.5), "1,235/s");
        assert_eq!(value(&AbMetric::default(), None), "-");
    }
}
