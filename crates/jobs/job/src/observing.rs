//! Observations of requests beside their times: the server's own time, and trace ids.

use crate::usage::usage;
use anyhow::Result;
use clap::Args;
use plimsoll_core::scenario::Scenario;
use plimsoll_report::number::count;
use plimsoll_workloads::http::{ServerClock, TRACEPARENT, TRACEPARENT_BLANK};

/// Place of the id in `--trace-url`.
const PLACE: &str = "{trace_id}";

/// Flags of the server's own time and of traces.
#[derive(Args, Debug, Default)]
pub struct ObservingFlags {
    /// Header with the server's own time: header:NAME:UNIT
    ///
    /// header:NAME has a number of milliseconds, header:NAME:UNIT one of ns, us, ms or s. server-timing reads the header
    /// Server-Timing: its metric total, or the first with a duration; server-timing:METRIC reads that metric. The times are a
    /// third row beside response and service.
    #[arg(long, value_name = "WHERE", help_heading = "Replies")]
    server_time: Option<ServerClock>,
    /// Send W3C trace ids; sample RATIO of the traces [default: all]
    ///
    /// Every request has the header traceparent, with ids that follow from the seed. RATIO is a share such as 0.01 or 1%: its
    /// traces have the flag sampled. The record has the trace ids of the slowest requests.
    #[arg(
        long,
        value_name = "RATIO",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "1",
        value_parser = ratio,
        help_heading = "Requests"
    )]
    pub traceparent: Option<f64>,
    /// Address of a trace, with {trace_id}, for the slowest requests
    ///
    /// Such as 'https://tempo.example/trace/{trace_id}'. The page prints it for each of the slowest requests.
    #[arg(long, value_name = "URL", help_heading = "Requests")]
    pub trace_url: Option<String>,
}

/// Reads a share of traces: `0.01` or `1%`.
fn ratio(text: &str) -> Result<f64, String> {
    let number = |text: &str| text.parse::<f64>().ok();
    let share = match text.strip_suffix('%') {
        Some(percent) => number(percent).map(|percent| percent / 100.0),
        None => number(text),
    };
    let share = share.filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "expected a share from 0 to 1, such as 0.01 or 1%".to_owned())
}

impl ObservingFlags {
    /// The header of the server's own time as a scenario has it.
    pub fn server_time(&self) -> Option<String> {
        self.server_time.as_ref().map(ToString::to_string)
    }

    /// Rejects flags that the targets have no use for.
    ///
    /// # Errors
    /// Another protocol than HTTP; an address without a place for the id, or without traces.
    pub fn check(&self, urls: &[String]) -> Result<()> {
        let given = [
            ("--server-time", self.server_time.is_some()),
            ("--traceparent", self.traceparent.is_some()),
        ];
        let is_http = urls.iter().all(|url| url.starts_with("http"));
        if let Some((flag, _)) = given.iter().find(|(_, is)| *is && !is_http) {
            return Err(usage(format!(
                "{flag} is for http:// and https:// targets, whose requests have headers; leave it out"
            )));
        }
        check_url(self.trace_url.as_deref(), self.traceparent.is_some())
    }
}

fn check_url(url: Option<&str>, has_traces: bool) -> Result<()> {
    let Some(url) = url else { return Ok(()) };
    let is_address = ["http://", "https://"].iter().any(|scheme| url.starts_with(scheme));
    let is_plain =
        !url.chars().any(|c| c.is_whitespace() || c.is_control() || c == '<' || c == '>');
    if !is_address || !is_plain || !url.contains(PLACE) {
        return Err(usage(format!(
            "--trace-url '{url}': write an address with {PLACE} in it, such as https://tempo.example/trace/{PLACE}"
        )));
    }
    if !has_traces {
        return Err(usage("--trace-url needs requests with trace ids; use it with --traceparent"));
    }
    Ok(())
}

/// The header of the server's own time.
///
/// # Errors
/// A text that names none, of a file.
pub fn server_clock(scenario: &Scenario) -> Result<Option<ServerClock>> {
    let parse = |text: &String| {
        text.parse().map_err(|error| usage(format!("server_time '{text}': {error}")))
    };
    scenario.server_time.as_ref().map(parse).transpose()
}

/// The headers of every request, with a place for trace ids if there are some.
///
/// # Errors
/// The user gives the same header; a share or an address of a file that is none.
pub fn with_traceparent(
    mut headers: Vec<(String, String)>,
    scenario: &Scenario,
) -> Result<Vec<(String, String)>> {
    check_url(scenario.trace_url.as_deref(), scenario.traceparent.is_some())?;
    let Some(share) = scenario.traceparent else { return Ok(headers) };
    if !(0.0..=1.0).contains(&share) {
        return Err(usage(format!("traceparent {share}: write a share from 0 to 1")));
    }
    if headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(TRACEPARENT)) {
        return Err(usage(
            "--traceparent and --header 'traceparent: ...' exclude each other; leave out the header",
        ));
    }
    headers.push((TRACEPARENT.to_owned(), TRACEPARENT_BLANK.to_owned()));
    Ok(headers)
}

/// Warnings about successful replies from which no time of the server could be read.
#[must_use]
pub fn server_time_warnings(totals: &plimsoll_core::interval::Interval) -> Vec<String> {
    let Some(server) = totals.all_classes().server else { return Vec::new() };
    let known = server.times.count();
    let all = count(known + server.missing + server.malformed);
    let mut warnings = Vec::new();
    if server.missing > 0 {
        warnings.push(format!(
            "{} of {all} successful replies have the server's own time; {} have no such header or metric (--server-time)",
            count(known),
            count(server.missing)
        ));
    }
    if server.malformed > 0 {
        warnings.push(format!(
            "{} of {all} successful replies have a server's own time that is not a number; they are left out (--server-time)",
            count(server.malformed)
        ));
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::interval::{Interval, ServerTimes};
    use plimsoll_core::outcome::ServerTime;

    #[test]
    fn a_share_is_a_number_or_a_percentage() {
        assert_eq!((ratio("1"), ratio("0.25"), ratio("5%")), (Ok(1.0), Ok(0.25), Ok(0.05)));
        for text in ["", "2", "-1", "101%", "nan", "half"] {
            assert!(ratio(text).is_err(), "{text}");
        }
    }

    #[test]
    fn flags_that_the_target_has_no_use_for_are_rejected() {
        let http = ["http://h/".to_owned()];
        let sql = ["postgres://h/".to_owned()];
        let told = |flags: &ObservingFlags, urls: &[String]| {
            flags.check(urls).map_or_else(|error| error.to_string(), |()| String::new())
        };
        let traced = |url: &str| ObservingFlags {
            traceparent: Some(1.0),
            trace_url: Some(url.to_owned()),
            ..ObservingFlags::default()
        };
        assert_eq!(told(&traced("https://t/{trace_id}"), &http), "");
        assert!(
            told(&traced("https://t/{trace_id}"), &sql).contains("--traceparent is for http://")
        );
        for url in
            ["https://t/", "t/{trace_id}", "javascript:{trace_id}", "https://t/{trace_id} <b>"]
        {
            assert!(
                told(&traced(url), &http).contains("write an address with {trace_id}"),
                "{url}"
            );
        }
        let alone = ObservingFlags { traceparent: None, ..traced("https://t/{trace_id}") };
        assert!(told(&alone, &http).contains("use it with --traceparent"));
    }

    #[test]
    fn a_header_of_the_users_own_and_trace_ids_exclude_each_other() {
        let scenario = Scenario { traceparent: Some(0.5), ..Scenario::default() };
        let headers = with_traceparent(Vec::new(), &scenario).unwrap();
        assert_eq!(headers, [(TRACEPARENT.to_owned(), TRACEPARENT_BLANK.to_owned())]);
        let own = vec![("TraceParent".to_owned(), "x".to_owned())];
        assert!(with_traceparent(own.clone(), &scenario).is_err());
        assert_eq!(with_traceparent(own.clone(), &Scenario::default()).unwrap(), own);
    }

    #[test]
    fn replies_without_a_time_are_counted_and_said() {
        let mut totals = Interval::new(1);
        assert!(server_time_warnings(&totals).is_empty());
        let mut server = ServerTimes::default();
        server.record(ServerTime::Known(1));
        totals.classes[0].server = Some(Box::new(server.clone()));
        assert!(server_time_warnings(&totals).is_empty());
        [ServerTime::Missing, ServerTime::Malformed]
            .into_iter()
            .for_each(|said| server.record(said));
        totals.classes[0].server = Some(Box::new(server));
        let warnings = server_time_warnings(&totals);
        assert!(
            warnings[0]
                .starts_with("1 of 3 successful replies have the server's own time; 1 have no")
        );
        assert!(
            warnings[1]
                .starts_with("1 of 3 successful replies have a server's own time that is not")
        );
    }
}
