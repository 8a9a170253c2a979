//! The statistics of `vespa feed`, with its keys in its order.
//!
//! Statistics of `vespa feed`, without the misleading counts: rates are over the time that passed, however short;
//! latency is that of the answers, from sending on; and figures by status follow the known keys.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_record::feed::{CodeTimes, FeedResult};
use std::fmt::Write;

/// The whole document, with a line end.
#[must_use]
pub fn statistics(feed: &FeedResult) -> String {
    let seconds = feed.seconds;
    let rate = |count: f64| if seconds > 0.0 { count / seconds } else { 0.0 };
    let answers: u64 = feed.codes.values().map(|code| code.count).sum();
    let good = |status: &str| status.starts_with('2');
    let errors: u64 = feed.codes.iter().filter(|(s, _)| !good(s)).map(|(_, code)| code.count).sum();
    let (min, avg, max) = latency(feed);
    let mut out = "{\n".to_owned();
    let mut line = |key: &str, value: String| {
        // Writing into a string does not fail.
        let _ = writeln!(out, "  \"{key}\": {value},");
    };
    line("feeder.operation.count", feed.operations.to_string());
    line("feeder.seconds", format!("{seconds:.3}"));
    line("feeder.ok.count", feed.accepted.to_string());
    line("feeder.ok.rate", format!("{:.3}", rate(feed.accepted as f64)));
    line("feeder.error.count", feed.operations.saturating_sub(feed.accepted).to_string());
    line("feeder.inflight.count", feed.unsettled.to_string());
    line("http.request.count", feed.requests.to_string());
    line("http.request.bytes", feed.body_bytes.to_string());
    line("http.request.MBps", format!("{:.3}", rate(feed.body_bytes as f64 / 1e6)));
    line("http.exception.count", feed.lost.values().sum::<u64>().to_string());
    line("http.response.count", answers.to_string());
    line("http.response.bytes", feed.reply_bytes.to_string());
    line("http.response.MBps", format!("{:.3}", rate(feed.reply_bytes as f64 / 1e6)));
    line("http.response.error.count", errors.to_string());
    line("http.response.latency.millis.min", format!("{min:.0}"));
    line("http.response.latency.millis.avg", format!("{avg:.0}"));
    line("http.response.latency.millis.max", format!("{max:.0}"));
    line("http.response.code.counts", counts(feed));
    line("plimsoll.retry.counts", map(feed.retries.iter().map(|(why, n)| (why, n.to_string()))));
    let times = |pick: fn(&CodeTimes) -> &LatencySummary| {
        map(feed.codes.iter().map(move |(status, code)| (status, summary(pick(code)))))
    };
    line("plimsoll.response.latency.millis.by.code", times(|code| &code.server));
    let whole = times(|code| &code.whole);
    let _ = writeln!(out, "  \"plimsoll.operation.latency.millis.by.code\": {whole}\n}}");
    out
}

/// Smallest, mean and largest time of all answers, ms.
fn latency(feed: &FeedResult) -> (f64, f64, f64) {
    let some = || feed.codes.values().filter(|code| code.count > 0).map(|code| &code.server);
    let count: f64 = some().map(|times| times.count as f64).sum();
    if count == 0.0 {
        return (0.0, 0.0, 0.0);
    }
    let sum: f64 = some().map(|times| times.mean * times.count as f64).sum();
    let min = some().map(|times| times.min).fold(f64::INFINITY, f64::min);
    (min, sum / count, some().map(|times| times.max).fold(0.0, f64::max))
}

fn counts(feed: &FeedResult) -> String {
    map(feed.codes.iter().map(|(status, code)| (status, code.count.to_string())))
}

fn map<'a>(members: impl Iterator<Item = (&'a String, String)>) -> String {
    let lines: Vec<_> = members.map(|(key, value)| format!("    \"{key}\": {value}")).collect();
    if lines.is_empty() { "{}".to_owned() } else { format!("{{\n{}\n  }}", lines.join(",\n")) }
}

fn summary(times: &LatencySummary) -> String {
    format!(
        "{{\"count\": {}, \"min\": {:.3}, \"avg\": {:.3}, \"p50\": {:.3}, \"p95\": {:.3}, \"p99\": {:.3}, \"max\": {:.3}}}",
        times.count, times.min, times.mean, times.p50, times.p95, times.p99, times.max
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_known_keys_come_first_and_in_their_order() {
        let times = |count, mean, max| LatencySummary {
            count,
            min: 0.4,
            mean,
            max,
            ..LatencySummary::default()
        };
        let code = |count, mean, max| CodeTimes {
            count,
            server: times(count, mean, max),
            whole: times(count, mean, max),
        };
        let feed = FeedResult {
            operations: 24,
            accepted: 24,
            seconds: 0.063,
            accepted_per_s: 24.0 / 0.063,
            requests: 30,
            body_bytes: 63_000,
            codes: [("200".to_owned(), code(24, 2.0, 9.0)), ("429".to_owned(), code(6, 0.5, 0.9))]
                .into(),
            retries: [("429".to_owned(), 6)].into(),
            ..FeedResult::default()
        };
        let text = statistics(&feed);
        let tree: serde_json::Value = serde_json::from_str(&text).unwrap();
        let keys: Vec<_> = text.lines().filter(|line| line.starts_with("  \"")).collect();
        let keys: Vec<_> = keys.iter().map(|line| line.split('"').nth(1).unwrap()).collect();
        assert_eq!(
            keys[..18],
            [
                "feeder.operation.count",
                "feeder.seconds",
                "feeder.ok.count",
                "feeder.ok.rate",
                "feeder.error.count",
                "feeder.inflight.count",
                "http.request.count",
                "http.request.bytes",
                "http.request.MBps",
                "http.exception.count",
                "http.response.count",
                "http.response.bytes",
                "http.response.MBps",
                "http.response.error.count",
                "http.response.latency.millis.min",
                "http.response.latency.millis.avg",
                "http.response.latency.millis.max",
                "http.response.code.counts",
            ]
        );
        // Over the time that passed, and not over a second at least.
        assert_eq!(tree["feeder.ok.rate"].as_f64(), Some(380.952));
        assert_eq!(tree["http.request.MBps"].as_f64(), Some(1.0));
        assert_eq!(tree["http.response.latency.millis.avg"].as_u64(), Some(2));
        assert_eq!(tree["http.response.code.counts"]["429"].as_u64(), Some(6));
        let by_code = &tree["plimsoll.response.latency.millis.by.code"]["200"];
        assert_eq!(by_code["avg"].as_f64(), Some(2.0));
        serde_json::from_str::<serde_json::Value>(&statistics(&FeedResult::default())).unwrap();
    }
}
