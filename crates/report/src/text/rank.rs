//! The runs of a ranking benchmark, each at a rate of its own.

use super::number::{counted, percent, significant};
use super::page::{Column, Page, Tone};
use plimsoll_core::record::RunRecord;
use serde_json::Value;

/// The instances' answers lie apart by more than this share of their mean: they did not do the same work.
const SPREAD_MAX: f64 = 0.1;

/// Returns what the record holds of the benchmark, where it is one.
pub fn result(record: &RunRecord) -> Option<&Value> {
    record.job_results.get("rank")
}

/// The last run as the head line: times of several rates together would be nobody's.
pub fn headline(page: &mut Page<'_>, rank: &Value) {
    let Some(last) = runs(rank).last() else {
        page.line("  no run came to its end", Tone::Bad);
        return;
    };
    let number = |name: &str| significant(last[name].as_f64().unwrap_or_default());
    let text = format!(
        "  {} requests/s of {}/s     response p50 {} ms   p95 {} ms   p99 {} ms",
        number("achieved_qps"),
        number("requested_qps"),
        number("50p_ms"),
        number("95p_ms"),
        number("99p_ms"),
    );
    page.line(&text, Tone::Strong);
}

/// All runs, and what each instance did in the last of them.
pub fn table(page: &mut Page<'_>, rank: &Value) {
    let right = |name, goes| Column { name, right: true, goes };
    let columns = [
        Column { name: "Runs", right: false, goes: 0 },
        right("for s", 3),
        right("answered/s", 0),
        right("p50 ms", 0),
        right("p95", 0),
        right("p99", 1),
        right("failed", 2),
        Column { name: "limits", right: false, goes: 0 },
    ];
    let row = |run: &Value| {
        let number = |name: &str| significant(run[name].as_f64().unwrap_or_default());
        let (limits, tone) = match (run["stopped"].as_bool(), run["held"].as_bool()) {
            (Some(true), _) => ("stopped", Tone::Warn),
            (_, Some(true)) => ("held", Tone::Good),
            _ => ("MISSED", Tone::Bad),
        };
        let mut cells = vec![format!("  {}/s", number("requested_qps")), number("duration_secs")];
        let columns = ["achieved_qps", "50p_ms", "95p_ms", "99p_ms", "failed"];
        cells.extend(columns.iter().map(|name| number(name)));
        cells.push(limits.to_owned());
        (cells, tone)
    };
    let rows: Vec<_> = runs(rank).iter().map(row).collect();
    if rows.is_empty() {
        return;
    }
    page.table(&columns, &rows);
    page.blank();
    let instances = rank["instances"].as_array().map_or(&[][..], Vec::as_slice);
    for (index, instance) in instances.iter().enumerate().filter(|_| instances.len() > 1) {
        let number = |name: &str| significant(instance[name].as_f64().unwrap_or_default());
        let text = format!(
            "instance {}: {}/s, p50 {} ms, p95 {} ms, {} failed",
            index + 1,
            number("achieved_per_s"),
            number("p50_ms"),
            number("p95_ms"),
            counted(instance["failed"].as_u64().unwrap_or_default(), "request")
        );
        page.entry(if index == 0 { "Instances" } else { "" }, &text, Tone::Plain);
    }
    let spread = rank["spread"].as_f64().unwrap_or_default();
    if instances.len() > 1 && spread > SPREAD_MAX {
        let text = format!(
            "the instances' answers lie {} apart: they do not have the same machine to themselves",
            percent(spread)
        );
        page.entry("Warning", &text, Tone::Warn);
    }
}

fn runs(rank: &Value) -> &[Value] {
    rank["runs"].as_array().map_or(&[], Vec::as_slice)
}

#[cfg(test)]
mod tests {
    use super::super::{Style, render};
    use crate::samples;

    #[test]
    fn a_benchmark_at_several_rates_is_not_one_figure() {
        let run = |rate: f64, ms: f64, held: bool, stopped: bool| {
            serde_json::json!({"requested_qps": rate, "achieved_qps": rate, "duration_secs": 5.0, "50p_ms": ms,
                "95p_ms": ms, "99p_ms": ms, "failed": 0, "held": held, "stopped": stopped})
        };
        let runs = [run(20.0, 21.0, true, false), run(40.0, 777.0, false, false)];
        let mut record = samples::good();
        let mut page = |runs: &[serde_json::Value]| {
            let rank = serde_json::json!({"runs": runs, "instances": [], "spread": 0.0});
            record.job_results.insert("rank".to_owned(), rank);
            render(&record, None, &Style::default())
        };
        let text = page(&runs);
        assert!(text.contains("40.0 requests/s of 40.0/s     response p50 777 ms"), "{text}");
        let place = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word} in {text}"));
        assert!(place("20.0/s") < place("Verdict") && place("MISSED") < place("Verdict"));
        assert!(!text.contains("Latency, ms"), "times of both rates together: {text}");
        assert!(page(&[run(20.0, 21.0, false, true)]).contains("stopped"));
    }
}
