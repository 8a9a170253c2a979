//! Assumptions and observations of a search, in words.

use super::basis::Basis;
use super::finding::{Finding, Verdict};
use super::watched::Watched;
use crate::schedule::Arrivals;

/// Things that arrive at the times of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arriving {
    /// Requests.
    Requests,
    /// Users, who ask several requests each.
    Users,
}

/// Returns up to six sentences: assumptions, late classes, lag of the generator, and ways to narrow the interval.
#[must_use]
pub fn notes(found: &Finding, arrivals: Arrivals, arriving: Arriving) -> Vec<String> {
    let mut notes = Vec::new();
    notes.extend(stationary(found));
    let (how, lower) = match arrivals {
        Arrivals::Poisson => ("a Poisson process", "in bursts"),
        Arrivals::Uniform => ("evenly spaced", "at random or in bursts"),
    };
    let (were, who) = match arriving {
        Arriving::Requests => (format!("Arrivals were {how}"), "requests"),
        Arriving::Users => (format!("Arrivals of users were {how}"), "users"),
    };
    notes.push(match found.certified.is_some() || has_line(found) {
        true => format!("{were}; the line is lower if {who} come {lower}."),
        false => format!("{were}."),
    });
    notes.extend(degrades(found));
    notes.extend(late(found));
    notes.extend(generator(&found.basis));
    notes.extend(time(found));
    notes
}

/// True if one line or several are reported.
fn has_line(found: &Finding) -> bool {
    found.interval_per_s.is_some()
        || found.watch.iter().flatten().any(|one| one.interval_per_s.is_some())
}

fn stationary(found: &Finding) -> Option<String> {
    let basis = &found.basis;
    if found.verdict == Verdict::Drifting {
        return Some(
            "The target was not stationary, so no line is given; --over-time of plimsoll seek follows a line that moves."
                .to_owned(),
        );
    }
    if found.watch.is_some() {
        return Some(
            "Within a state the target is assumed to be stationary: from stretch to stretch its capacity and its line \
             changed by no more than their errors explain."
                .to_owned(),
        );
    }
    if found.certified.is_none() && !has_line(found) {
        return None;
    }
    let times = match basis.capacity_looks {
        0 => "its capacity was not measured".to_owned(),
        1 => "its capacity was measured only once".to_owned(),
        n => format!(
            "its capacity was measured {n} times and differed by {} at most, no more than its errors explain",
            percent(basis.capacity_apart.unwrap_or_default())
        ),
    };
    let blocks = match (basis.tested, basis.blocks) {
        (_, 0) => String::new(),
        (true, n) => format!("; {n} blocks near the line show no trend and no step"),
        (false, n) => format!("; {n} blocks near the line are too few to show a trend"),
    };
    Some(format!(
        "The target is assumed to be stationary from {:.0} s to {:.0} s: {times}{blocks}.",
        found.since_s, found.elapsed_s
    ))
}

/// Returns a warning of a target that a short overload may keep overloaded.
fn degrades(found: &Finding) -> Option<String> {
    let (capacity, peak) = found.capacity_per_s.zip(found.peak_per_s)?;
    Some(format!(
        "The target completes {peak:.0}/s for a while, but {capacity:.0}/s under an overload that lasts: near the line, a \
         backlog may keep it overloaded."
    ))
}

/// Returns the requests that missed the binding limit, in words.
fn late(found: &Finding) -> Option<String> {
    let (basis, binding) = (&found.basis, found.binding.as_ref()?);
    if basis.requests == 0 || !has_line(found) {
        return None;
    }
    let whose = basis.class.as_ref().map_or(String::new(), |class| format!(" of class '{class}'"));
    let failed = match basis.failed {
        0 => "no request failed".to_owned(),
        1 => "1 request failed".to_owned(),
        n => format!("{n} requests failed"),
    };
    let share = if binding.starts_with("mean") {
        format!(
            "the mean of {} requests{whose} was {:.2} of the limit {binding}",
            count(basis.requests),
            basis.missed
        )
    } else {
        format!(
            "{} of {} requests{whose} missed {binding}, where {} may",
            percent(basis.missed),
            count(basis.requests),
            percent(basis.allowed)
        )
    };
    Some(format!("Near the line {share}; {failed}."))
}

fn generator(basis: &Basis) -> Option<String> {
    (basis.lag_p99_s > 0.0).then(|| {
        format!(
            "The generator sent 99 % of the requests less than {} late in every part that was judged; up to {} is tolerated.",
            millis(basis.lag_p99_s),
            millis(basis.lag_tolerated_s)
        )
    })
}

/// Returns the ways to narrow the interval, and their time.
fn time(found: &Finding) -> Option<String> {
    let basis = &found.basis;
    if let Some(watched) = &found.watch {
        return watched_longer(watched, basis.width);
    }
    if let Some(half) = found.half_width {
        let wide = half > 1.05 * basis.width;
        let alike = basis.dispersion.map_or(basis.requests as f64, |d| basis.requests as f64 / d);
        let text = if wide {
            format!(
                "Late requests come in bursts: {} requests near the line are worth {:.0} independent ones. An interval \
                 of +- {} takes about {} in total.",
                count(basis.requests),
                alike.max(1.0),
                percent(basis.width),
                seconds(basis.needs_s)
            )
        } else {
            format!(
                "Four times the load near the line ({} here) would halve the interval.",
                seconds(basis.blocks_s)
            )
        };
        return Some(text);
    }
    let ended_early = matches!(found.verdict, Verdict::Interrupted | Verdict::Drifting);
    let why = match found.verdict {
        Verdict::Drifting => " in which the target does not change",
        _ => "",
    };
    ended_early.then(|| {
        format!("A search with these limits takes about {} at least{why}.", seconds(basis.needs_s))
    })
}

/// Returns the ways to narrow the interval of a target that was followed.
fn watched_longer(watched: &[Watched], width: f64) -> Option<String> {
    let last = watched.iter().rev().find(|one| one.interval_per_s.is_some())?;
    let ((low, high), line) = last.interval_per_s.zip(last.line_per_s)?;
    let (half, lasted_s) = ((high - low) / (2.0 * line), last.until_s - last.blocks_from_s);
    let how =
        "The interval of a state narrows with the square root of the time that the state lasts";
    Some(if half > 1.05 * width {
        format!(
            "{how}: the last one is +- {} after {}, and +- {} takes about {}.",
            percent(half),
            seconds(lasted_s),
            percent(width),
            seconds(lasted_s * (half / width).powi(2))
        )
    } else {
        format!("{how}.")
    })
}

/// With commas: `1,234,567`.
fn count(value: u64) -> String {
    let digits = value.to_string();
    let places = digits.len();
    let comma = |at: usize| at > 0 && (places - at).is_multiple_of(3);
    digits
        .char_indices()
        .flat_map(|(at, digit)| comma(at).then_some(',').into_iter().chain([digit]))
        .collect()
}

fn percent(share: f64) -> String {
    let percent = 100.0 * share;
    let places = if percent < 0.0995 { 2 } else { usize::from(percent < 9.95) };
    let text = format!("{percent:.places$}");
    let text =
        if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.') } else { &text };
    format!("{text} %")
}

fn millis(seconds: f64) -> String {
    let ms = 1e3 * seconds;
    if ms < 1.0 {
        format!("{ms:.2} ms")
    } else if ms < 10.0 {
        format!("{ms:.1} ms")
    } else {
        format!("{ms:.0} ms")
    }
}

fn seconds(seconds: f64) -> String {
    if seconds < 600.0 { format!("{seconds:.0} s") } else { format!("{:.0} min", seconds / 60.0) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A line of 160/s, known to 5 % after two minutes.
    fn found() -> Finding {
        let found = serde_json::json!({
            "verdict": "ok", "reason": "the line is known to 5.0 %", "certified_last": true,
            "estimate_per_s": 160.0, "interval_per_s": [152.0, 168.0], "confidence": 0.95,
            "half_width": 0.05, "binding": "p95=100ms", "curve": [], "phases": [], "since_s": 12.4,
            "elapsed_s": 120.0,
            "basis": {
                "capacity_looks": 3, "capacity_apart": 0.021, "blocks": 18, "blocks_s": 72.0,
                "tested": true, "requests": 11500, "missed": 0.0531, "allowed": 0.05, "failed": 0,
                "dispersion": 50.0, "lag_p99_s": 0.0003, "lag_tolerated_s": 0.02, "width": 0.05,
                "needs_s": 120.0,
            },
        });
        serde_json::from_value(found).unwrap()
    }

    #[test]
    fn a_line_says_what_it_rests_on() {
        assert_eq!(
            notes(&found(), Arrivals::Poisson, Arriving::Requests),
            [
                "The target is assumed to be stationary from 12 s to 120 s: its capacity was measured 3 times and \
                 differed by 2.1 % at most, no more than its errors explain; 18 blocks near the line show no trend and no step.",
                "Arrivals were a Poisson process; the line is lower if requests come in bursts.",
                "Near the line 5.3 % of 11,500 requests missed p95=100ms, where 5 % may; no request failed.",
                "The generator sent 99 % of the requests less than 0.30 ms late in every part that was judged; up to \
                 20 ms is tolerated.",
                "Four times the load near the line (72 s here) would halve the interval.",
            ]
        );
    }

    #[test]
    fn of_users_it_says_how_users_come() {
        let text = notes(&found(), Arrivals::Uniform, Arriving::Users).join(" ");
        let part = "Arrivals of users were evenly spaced; the line is lower if users come at random or in bursts.";
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn a_wide_interval_says_why_and_how_long_a_narrow_one_takes() {
        let mut wide = found();
        (wide.verdict, wide.half_width, wide.basis.needs_s) =
            (Verdict::BudgetTooSmall, Some(0.12), 497.0);
        let text = notes(&wide, Arrivals::Uniform, Arriving::Requests).join(" ");
        for part in [
            "Arrivals were evenly spaced",
            "11,500 requests near the line are worth 230 independent ones",
            "An interval of +- 5 % takes about 497 s in total.",
        ] {
            assert!(text.contains(part), "no '{part}' in {text}");
        }
        wide.basis.needs_s = 7230.0;
        assert!(
            notes(&wide, Arrivals::Poisson, Arriving::Requests)
                .join(" ")
                .contains("takes about 120 min in total")
        );
    }

    #[test]
    fn a_class_is_named_and_failures_are_counted() {
        let mut found = found();
        found.binding = Some("p95{class=fuzzy}=100ms".to_owned());
        (found.basis.class, found.basis.failed) = (Some("fuzzy".to_owned()), 1);
        let text = notes(&found, Arrivals::Poisson, Arriving::Requests).join(" ");
        let part = "11,500 requests of class 'fuzzy' missed p95{class=fuzzy}=100ms, where 5 % may; 1 request failed.";
        assert!(text.contains(part), "{text}");
        found.binding = Some("mean{class=fuzzy}=100ms".to_owned());
        (found.basis.missed, found.basis.allowed) = (1.02, 1.0);
        let text = notes(&found, Arrivals::Poisson, Arriving::Requests).join(" ");
        assert!(
            text.contains("was 1.02 of the limit mean{class=fuzzy}=100ms; 1 request"),
            "{text}"
        );
    }

    #[test]
    fn what_ends_without_a_line_says_what_one_takes() {
        let mut none = found();
        (none.estimate_per_s, none.interval_per_s, none.half_width) = (None, None, None);
        none.basis.needs_s = 73.0;
        none.verdict = Verdict::Interrupted;
        let text = notes(&none, Arrivals::Poisson, Arriving::Requests).join(" ");
        assert!(text.contains("A search with these limits takes about 73 s at least."), "{text}");
        assert!(!text.contains("stationary") && !text.contains("ine is lower"), "{text}");
        assert!(!text.contains("Near the line"), "{text}");
        none.verdict = Verdict::Drifting;
        let text = notes(&none, Arrivals::Poisson, Arriving::Requests).join(" ");
        assert!(text.contains("The target was not stationary"), "{text}");
        assert!(text.contains("73 s at least in which the target does not change"), "{text}");
    }

    #[test]
    fn a_target_that_completes_less_under_overload_may_stay_overloaded() {
        let mut found = found();
        found.capacity_per_s = Some(180.0);
        let text = notes(&found, Arrivals::Poisson, Arriving::Requests).join(" ");
        assert!(!text.contains("overload"), "{text}");
        found.peak_per_s = Some(200.0);
        let text = notes(&found, Arrivals::Poisson, Arriving::Requests).join(" ");
        let part = "completes 200/s for a while, but 180/s under an overload that lasts";
        assert!(text.contains(part), "{text}");
    }

    #[test]
    fn of_a_target_that_was_followed_each_state_is_stationary() {
        let mut found = found();
        (found.estimate_per_s, found.interval_per_s, found.half_width) = (None, None, None);
        let one = Watched {
            from_s: 20.0,
            until_s: 60.0,
            state: 1,
            line_per_s: Some(160.0),
            interval_per_s: Some((150.0, 170.0)),
            capacity_per_s: Some(200.0),
            blocks: 8,
            blocks_from_s: 20.0,
            note: None,
        };
        found.watch = Some(vec![one]);
        let text = notes(&found, Arrivals::Poisson, Arriving::Requests).join(" ");
        assert!(
            text.starts_with("Within a state the target is assumed to be stationary"),
            "{text}"
        );
        let part = "the last one is +- 6.2 % after 40 s, and +- 5 % takes about 62 s.";
        assert!(text.contains(part), "{text}");
    }
}
