//! Plan of a visit, and of the engine for it.

use crate::{Visit, VisitForm, VisitSessions};
use anyhow::Result;
use plimsoll_core::clock::parse_utc;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{LoadModel, Think};
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::target::Target;
use plimsoll_job::prepare::{plan_of, tls_of};
use plimsoll_job::url::Url;
use plimsoll_job::usage::usage;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_workloads::render::HttpForm;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};

/// Everything that is needed to run a visit in whatever way.
pub struct Task {
    /// The scenario as the record keeps it.
    pub scenario: Scenario,
    /// The containers.
    pub targets: Vec<Target>,
    /// Their addresses.
    pub urls: Vec<Url>,
    /// As it is asked for, before the number of slices is known.
    pub form: VisitForm,
    /// The user's own.
    pub headers: Vec<(String, String)>,
    /// Failures in a row after which a slice is given up.
    pub failures_max: u32,
}

/// The path of a visit of everything.
pub const ROOT: &str = "/document/v1/";

/// The one path that all addresses name.
pub fn path_of(urls: &[Url]) -> Result<String> {
    let path = |url: &Url| match url.target.trim_end_matches('/') {
        "" | "/document/v1" => ROOT.to_owned(),
        below => format!("{below}/"),
    };
    let first = urls.first().map(path).unwrap_or_default();
    if urls.iter().any(|url| path(url) != first) {
        return Err(usage("the addresses have different paths; visit them one after the other"));
    }
    if first.contains('?') {
        return Err(usage(format!("'{first}': the path must not have parameters; use the flags")));
    }
    let below = first.strip_prefix(ROOT).map(|below| below.trim_end_matches('/'));
    match below.map(|below| below.split('/').collect::<Vec<_>>()).as_deref() {
        Some([""] | [_, _, "docid"] | [_, _, "group" | "number", _]) => Ok(first),
        Some([_, _, "docid" | "group" | "number", ..]) => Err(usage(format!(
            "'{first}' is a document, not a collection: `curl` reads one document; to visit, end the path in \
             /docid, /group/GROUP or /number/NUMBER"
        ))),
        _ => Err(usage(format!(
            "'{first}' is not a collection; leave out the path, or use /document/v1/NAMESPACE/TYPE/docid"
        ))),
    }
}

/// Returns whether Vespa looks only into the buckets that the visit names, and then does not cut it into slices.
pub fn pins_buckets(form: &VisitForm) -> bool {
    let located =
        form.path.split('/').nth(5).is_some_and(|part| part == "number" || part == "group");
    located || form.selection.as_deref().is_some_and(names_ids)
}

/// Returns whether a selection compares the id of a document, or the user or group in it.
fn names_ids(selection: &str) -> bool {
    let is_part_of_name = |c: char| c.is_alphanumeric() || matches!(c, '_' | '.');
    let text = selection.to_ascii_lowercase();
    let mut quote = None;
    for (at, c) in text.char_indices() {
        match (quote, c) {
            (Some(open), _) => quote = Some(open).filter(|_| c != open),
            (None, '"' | '\'') => quote = Some(c),
            (None, _) => {
                let (before, rest) = text.split_at(at);
                let Some(behind) = rest.strip_prefix("id") else { continue };
                let is_located = behind.starts_with(".user") || behind.starts_with(".group");
                let is_compared = behind.trim_start().starts_with('=')
                    || (before.trim_end().ends_with('=') && !behind.starts_with(is_part_of_name));
                if !before.ends_with(is_part_of_name) && (is_located || is_compared) {
                    return true;
                }
            }
        }
    }
    false
}

/// Reads seconds since 1970, or a time as RFC 3339 has it, as us.
pub fn time_us(flag: &str, text: &str) -> Result<u64> {
    let seconds = text.parse::<f64>().ok().filter(|s| *s >= 0.0 && *s < 1e11);
    let us = seconds.map(|s| (s * 1e6) as u64).or_else(|| rfc3339_us(text));
    us.ok_or_else(|| {
        usage(format!(
            "{flag} '{text}': write seconds since 1970, 2026-11-22T10:00:00Z or 2026-11-22T12:00:00+02:00"
        ))
    })
}

/// `2026-11-22T10:00:00Z`, with a fraction of a second or an offset such as `+02:00`.
fn rfc3339_us(text: &str) -> Option<u64> {
    let clock = text.find('T')?;
    let zone = clock + text[clock..].find(['Z', '+', '-'])?;
    let (local, zone) = text.split_at(zone);
    let (whole, fraction) = local.split_once('.').unwrap_or((local, "0"));
    let digits = !fraction.is_empty() && fraction.bytes().all(|byte| byte.is_ascii_digit());
    let fraction_us: i64 = format!("{:0<6.6}", fraction).parse().ok().filter(|_| digits)?;
    let whole_us = i64::try_from(parse_utc(&format!("{whole}Z"))?).ok()?;
    let east_min = match zone {
        "Z" => 0,
        _ => {
            let (hours, minutes) = zone.get(1..)?.split_once(':')?;
            let number = |text: &str, below: i64| {
                let two = text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
                text.parse::<i64>().ok().filter(|n| two && *n < below)
            };
            let minutes = number(hours, 24)? * 60 + number(minutes, 60)?;
            if zone.starts_with('-') { -minutes } else { minutes }
        }
    };
    u64::try_from(whole_us + fraction_us - east_min * 60_000_000).ok()
}

/// Connections for this many slices and containers, opened as they are needed: a slice whose container dies finds one
/// to any other that lives, and all slices do when a single one is left. Less than that beyond 512, since each may
/// take a descriptor.
fn connections(slices: u32, containers: usize) -> u32 {
    let containers = u32::try_from(containers).unwrap_or(u32::MAX).max(1);
    let enough = (2 * slices).max(containers).max(512);
    slices.saturating_mul(containers).min(enough)
}

impl Task {
    /// The engine's plan for this many slices, and a form for each target.
    pub fn plan(&self, form: &VisitForm) -> Result<(ShardPlan, Arc<Vec<HttpForm>>)> {
        let mut scenario = self.scenario.clone();
        let slices = form.chosen().len() as u32;
        scenario.slice = form.part;
        scenario.load = LoadModel::Closed { clients: slices, think: Think::None, cycle_ns: 0 };
        scenario.connections = Some(connections(slices, self.targets.len()));
        scenario.threads = self.threads(form);
        let tls = tls_of(&scenario, &self.urls)?;
        let mut plan = plan_of(&scenario, self.targets.clone(), tls, 1);
        plan.preconnect = false;
        let mut headers = form.headers();
        headers.extend(self.headers.iter().cloned());
        let forms = self
            .urls
            .iter()
            .map(|url| HttpForm::new(&url.authority, &headers, false).map_err(usage))
            .collect::<Result<Vec<_>>>()?;
        Ok((plan, Arc::new(forms)))
    }

    /// Rejects a visit in more parts than slices: some parts would have none.
    pub fn check_parts(&self) -> Result<()> {
        let (slices, parts) = (self.form.chosen().len() as u32, self.form.part.of);
        if slices >= parts {
            return Ok(());
        }
        Err(usage(format!(
            "a visit of {slices} slices cannot be shared out to {parts} parts; use fewer parts, or more --slices"
        )))
    }

    /// Threads of each part, as many in one as in another: no more than slices.
    fn threads(&self, form: &VisitForm) -> u32 {
        self.scenario.threads.min(form.chosen().len() as u32 / form.part.of).max(1)
    }

    /// Sessions for all shards, and where their times to the first byte arrive at their end.
    pub fn sessions(
        &self,
        visit: &Arc<Visit>,
        forms: &Arc<Vec<HttpForm>>,
    ) -> (Vec<Box<dyn Sessions<Http> + Send>>, Receiver<Histogram>) {
        let shards = self.threads(visit.form());
        let (sender, counted) = channel();
        let one = |shard| {
            let own =
                VisitSessions::new(visit.clone(), forms.clone(), shard, shards, sender.clone());
            Box::new(own) as Box<dyn Sessions<Http> + Send>
        };
        ((0..shards).map(one).collect(), counted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> Result<String, String> {
        let url = Url::parse(&format!("http://h:1{text}")).unwrap();
        path_of(&[url]).map_err(|error| error.to_string())
    }

    #[test]
    fn a_selection_names_ids_only_where_it_compares_one() {
        for text in [
            "id == \"id:a:music::1\"",
            "id=\"id:a:music::1\"",
            "music.year > 3 and ID.user == 7",
            "id.group=\"a\"",
            "\"id:a:music::1\" == id",
        ] {
            assert!(names_ids(text), "{text}");
        }
        for text in [
            "music.paid == true",
            "music.id == 3",
            "3 == music.id",
            "music.title == 'id = x'",
            "id.namespace == \"a\"",
            "\"a\" == id.type",
            "true",
        ] {
            assert!(!names_ids(text), "{text}");
        }
    }

    #[test]
    fn only_collections_are_visited() {
        for (given, path_of_it) in [
            ("", ROOT),
            ("/document/v1", ROOT),
            ("/document/v1/n/t/docid", "/document/v1/n/t/docid/"),
            ("/document/v1/n/t/group/g/", "/document/v1/n/t/group/g/"),
            ("/document/v1/n/t/number/7", "/document/v1/n/t/number/7/"),
        ] {
            assert_eq!(path(given).as_deref(), Ok(path_of_it), "{given}");
        }
        for document in ["docid/1", "docid/a/b", "group/g/x", "number/7/x"] {
            let error = path(&format!("/document/v1/n/t/{document}")).unwrap_err();
            assert!(error.contains("is a document"), "{document}: {error}");
        }
        for other in ["/search/", "/document/v1/n", "/document/v1/n/t", "/document/v1/n/t/group"] {
            assert!(path(other).is_err(), "{other}");
        }
        assert!(path("/document/v1/?cluster=x").unwrap_err().contains("use the flags"));
    }

    #[test]
    fn times_have_seconds_fractions_and_offsets() {
        let us = |text| time_us("--from", text).ok();
        let ten = us("2026-11-22T10:00:00Z");
        assert!(ten.is_some());
        for same in [
            "2026-11-22T12:00:00+02:00",
            "2026-11-22T04:30:00-05:30",
            "2026-11-22T10:00:00.000Z",
            "2026-11-23T00:00:00+14:00",
        ] {
            assert_eq!(us(same), ten, "{same}");
        }
        assert_eq!(us("2026-11-22T10:00:00.25+00:00"), ten.map(|us| us + 250_000));
        assert_eq!((us("1"), us("0.5")), (Some(1_000_000), Some(500_000)));
        for wrong in [
            "yesterday",
            "2026-11-22T10:00:00",
            "2026-11-22T10:00:00+2",
            "2026-11-22T10:00:00+02:60",
            "2026-11-22T10:00:00.Z",
            "2026-11-22T10:00:00+0200",
            "1970-01-01T00:00:00+02:00",
            "-1",
        ] {
            assert_eq!(us(wrong), None, "{wrong}");
        }
    }
}
