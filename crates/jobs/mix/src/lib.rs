//! A feed and a query load at the same time, from one file: what searches feel while documents arrive.
//!
//! ```
//! let text = "[feed]\nurl = 'http://127.0.0.1:8080'";
//! assert!(plimsoll_mix::is_mix(text) && !plimsoll_mix::is_mix("duration = '2s'"));
//! ```

mod by_agents;
mod figures;
pub mod page;
mod sheet;

use anyhow::{Context, Result};
use plimsoll_core::clock::now_ns;
use plimsoll_core::feed::FeedScenario;
use plimsoll_core::interval::{ClassPart, Interval};
use plimsoll_core::scenario::Scenario;
use plimsoll_core::verdict::{Verdict, VerdictKind};
use plimsoll_engine::run::{RunEnd, run as run_engine};
use plimsoll_feed::Tally;
use plimsoll_feed::{Ended, Fed, Task, feed_result, feed_verdict};
use plimsoll_job::contact::reach;
use plimsoll_job::execute::print;
use plimsoll_job::exit;
use plimsoll_job::keeping::{About, JobEnd, Keeping, Nowhere, Started, carry_out};
use plimsoll_job::output::{Output, print_out};
use plimsoll_job::prepare::{Prepared, http_of, only_whole, prepare};
use plimsoll_job::progress::RunProgress;
use plimsoll_job::signals;
use plimsoll_job::together::Group;
use plimsoll_job::toml_text;
use plimsoll_job::usage::usage;
use plimsoll_record::JobResults;
use plimsoll_record::feed::{FeedResult, MixPart, MixResult};
use plimsoll_wire::http::Http;
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// End of the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Until {
    /// After both loads have ended.
    #[default]
    Both,
    /// After the duration of the queries; the rest of the input is not fed.
    Queries,
    /// After the whole input was fed.
    Feed,
}

/// A mix, as its file holds it.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Mix<F = FeedScenario, Q = Scenario> {
    #[serde(default = "name")]
    job: String,
    #[serde(default)]
    until: Until,
    /// Number of agents that feed, in a run by agents; the others load.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    feed_agents: Option<u32>,
    feed: F,
    queries: Q,
}

/// Tables of a mix that were read elsewhere, since they have the form of flags; the others have that of records.
#[derive(Clone, Debug, Default)]
pub struct Tables {
    /// `[feed]`.
    pub feed: Option<FeedScenario>,
    /// `[queries]`.
    pub queries: Option<Scenario>,
}

impl Tables {
    /// The whole mix; relative paths of what is read here begin at the file's folder.
    fn read(self, text: &str, path: &Path) -> Result<Mix, String> {
        let shown = path.display().to_string();
        let folder = path.parent().unwrap_or(Path::new(""));
        let feed = |feed: FeedScenario| feed.with_paths_from(folder);
        let queries = |queries: Scenario| queries.with_paths_from(folder);
        Ok(match (self.feed, self.queries) {
            (None, None) => toml_text::read::<Mix>(text, &shown)?.with(feed, queries),
            (Some(own), None) => {
                toml_text::read::<Mix<IgnoredAny, Scenario>>(text, &shown)?.with(|_| own, queries)
            }
            (None, Some(own)) => {
                toml_text::read::<Mix<FeedScenario, IgnoredAny>>(text, &shown)?.with(feed, |_| own)
            }
            (Some(feed), Some(queries)) => {
                toml_text::read::<Mix<IgnoredAny, IgnoredAny>>(text, &shown)?
                    .with(|_| feed, |_| queries)
            }
        })
    }
}

impl<F, Q> Mix<F, Q> {
    fn with(
        self,
        feed: impl FnOnce(F) -> FeedScenario,
        queries: impl FnOnce(Q) -> Scenario,
    ) -> Mix {
        let (feed, queries) = (feed(self.feed), queries(self.queries));
        Mix { job: self.job, until: self.until, feed_agents: self.feed_agents, feed, queries }
    }
}

fn name() -> String {
    "mix".to_owned()
}

/// Returns true if the text is a mix: it has a table of the feed's.
pub fn is_mix(text: &str) -> bool {
    text.parse::<toml::Table>().is_ok_and(|table| table.get("feed").is_some_and(|f| f.is_table()))
}

/// Returns the number of agents that feed, if a file of a mix names it.
///
/// # Errors
/// A value that is not a number of agents.
pub fn feed_agents(text: &str) -> Result<Option<u32>> {
    let table: toml::Table = text.parse().unwrap_or_default();
    let number =
        |value: &toml::Value| value.as_integer().and_then(|value| u32::try_from(value).ok());
    match table.get("feed_agents") {
        None => Ok(None),
        Some(value) => match number(value).filter(|&agents| agents > 0) {
            Some(agents) => Ok(Some(agents)),
            None => Err(usage(format!(
                "field `feed_agents`: {value} is not a number of agents; use 1 or more"
            ))),
        },
    }
}

/// Runs the mix of a file: here, or by agents, of which `feeders` feed.
///
/// # Errors
/// Wrong usage, or a program failure.
pub fn run(
    (path, text): (&Path, &str),
    tables: Tables,
    output: &Output,
    dry_run: bool,
    feeders: Option<Group>,
) -> Result<u8> {
    let shown = path.display();
    let mut mix = tables.read(text, path).map_err(usage)?;
    mix.queries.job.clone_from(&mix.job);
    if dry_run {
        let mut shown = mix.clone();
        shown.queries = shown.queries.without_secrets();
        shown.feed = shown.feed.without_secrets();
        print_out(&format!("{}\n", serde_json::to_string_pretty(&shown)?))?;
        return Ok(exit::FINE);
    }
    run_mix(&mix, output, feeders).with_context(|| shown.to_string())
}

/// Sums over the seconds of the queries.
#[derive(Default)]
struct Parts {
    while_feeding: Sum,
    without: Sum,
}

#[derive(Default)]
struct Sum {
    seconds: f64,
    all: ClassPart,
}

impl Sum {
    fn add(&mut self, second: &Interval) {
        self.seconds += second.seconds();
        self.all.merge(&second.all_classes());
    }

    fn part(&self) -> MixPart {
        MixPart {
            seconds: self.seconds,
            ok: self.all.ledger.ok,
            failed: self.all.ledger.failed.total(),
            response: self.all.response.summary(),
            service: self.all.service.summary(),
        }
    }
}

/// Rejects parts that are not the same of both, or whose end follows from what other parts do.
fn check_part(mix: &Mix) -> Result<()> {
    if mix.feed.slice != mix.queries.slice {
        return Err(usage(format!(
            "the feed is part {} and the queries are part {}; give both the same slice",
            mix.feed.slice, mix.queries.slice
        )));
    }
    let why = "it ends when all parts have sent their share, which one part does not see; use until = \"both\"";
    match mix.until {
        Until::Both => Ok(()),
        Until::Feed => only_whole(mix.feed.slice, "a mix until the end of its feed", why),
        Until::Queries => only_whole(mix.feed.slice, "a mix until the end of its queries", why),
    }
}

fn run_mix(mix: &Mix, output: &Output, feeders: Option<Group>) -> Result<u8> {
    if feeders.is_none() {
        check_part(mix)?;
    }
    let prepared = prepare(&mix.queries)?;
    let mut task = match feeders {
        None => Task::new(&mix.feed, mix.until == Until::Queries)?,
        Some(feeders) => feeders.within(|| Task::new(&mix.feed, mix.until == Until::Queries))?,
    };
    output.check()?;
    reach(&prepared.plan.targets, mix.queries.connect_timeout)?;
    let plan = prepared.plan.clone();
    // How many requests each user has is known when the source has been read.
    let mut mix = mix.clone();
    mix.queries.load.clone_from(&plan.model);
    let mix = &mix;
    let about = About {
        plan: &plan,
        class_names: prepared.class_names.clone(),
        distinct_requests: prepared.distinct_requests,
        troubles: prepared.troubles.clone(),
    };
    let progress = RunProgress::new(&mix.queries, output.voice());
    let finished = carry_out(&mix.queries, &about, output, |keeping| {
        let (end, fed, parts) = match feeders {
            None => {
                let (end, feed, parts) = both(mix, prepared, &mut task, keeping, &progress)?;
                let (result, warnings) = feed_result(&task, &feed);
                (end, Fed { result, lacks: None, warnings }, parts)
            }
            Some(feeders) => by_agents::both((mix, feeders), prepared, &task, keeping, &progress)?,
        };
        progress.done();
        let Fed { result, lacks, mut warnings } = fed;
        let mix =
            MixResult { while_feeding: parts.while_feeding.part(), without: parts.without.part() };
        if parts.while_feeding.seconds < 1.0 {
            warnings.push(
                "the feed took less than 1 s, which is too short to measure queries beside it; feed more operations"
                    .to_owned(),
            );
        }
        let mut verdict = combined(&result, &end);
        if let (Some(verdict), Some(lacks)) = (&mut verdict, lacks) {
            verdict.reasons.push(format!("feed: {lacks}"));
        }
        let results = JobResults::of(mix).with(result);
        Ok(JobEnd { end, results, verdict, warnings })
    });
    progress.done();
    let finished = finished?;
    print(&finished, output, &page::FORMS)
}

/// A feed that left something out makes the whole partial; otherwise the queries are judged as always.
fn combined(result: &FeedResult, end: &RunEnd) -> Option<Verdict> {
    if result.complete || end.totals.ledger.ok == 0 {
        return None;
    }
    let own = feed_verdict(result, signals::is_stopped());
    let reasons = own.reasons.into_iter().map(|reason| format!("feed: {reason}")).collect();
    Some(Verdict::new(VerdictKind::Partial, reasons))
}

/// Runs both on threads of their own.
fn both(
    mix: &Mix,
    prepared: Prepared,
    task: &mut Task,
    keeping: Keeping<'_>,
    progress: &RunProgress,
) -> Result<(RunEnd, Ended, Parts)> {
    let Prepared { mut plan, sessions, .. } = prepared;
    let (fed, asked) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    let (feed_stop, feed_over) =
        (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
    match mix.until {
        Until::Both => {}
        Until::Queries => task.plan.part.end_early = Some(asked.clone()),
        Until::Feed => plan.part.end_early = Some(fed.clone()),
    }
    let watch = task.watch(
        vec![keeping.stop.clone()],
        feed_stop.clone(),
        feed_over.clone(),
        Started::now(),
    )?;
    task.start_reader()?;
    let (feed_plan, feed_http) = (task.plan.clone(), task.http);
    let (feed_sessions, counted) = task.sessions();
    let http: Http = http_of(&mix.queries);
    let mut parts = Parts::default();
    let started_ns = now_ns();
    let (end, feed_end) = std::thread::scope(|scope| {
        let feeding = scope.spawn(|| {
            let end = run_engine(
                &feed_plan,
                || feed_http,
                feed_sessions,
                &mut Nowhere,
                &mut |_| {},
                &feed_stop,
            );
            fed.store(true, Ordering::Relaxed);
            // A deadline for the next accepted operation is over with the feed, and not with the queries.
            feed_over.store(true, Ordering::Relaxed);
            end
        });
        let mut second = |second: &Interval| {
            progress.show(second);
            let feeding = !fed.load(Ordering::Relaxed);
            let part = if feeding { &mut parts.while_feeding } else { &mut parts.without };
            part.add(second);
        };
        let end = run_engine(&plan, || http, sessions, keeping.sink, &mut second, &keeping.stop);
        asked.store(true, Ordering::Relaxed);
        (end, feeding.join())
    });
    feed_over.store(true, Ordering::Relaxed);
    // A watch that broke has no course to show, and the feed is as good as with it.
    let over_time = watch.join().unwrap_or_default();
    let feed_end = feed_end.map_err(|_| {
        anyhow::anyhow!("the feed ended with a defect in plimsoll; please report it")
    })?;
    feed_end?;
    // The process's time is that of both together: none of it can be given to the feed's.
    let tally = Tally::of_shards(&counted);
    let stopped = signals::is_stopped();
    let ended = Ended { started_ns, cpu_s: 0.0, stopped, tally, over_time };
    Ok((end?, ended, parts))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::schedule::Slice;

    #[test]
    fn a_part_of_a_mix_is_the_same_part_of_both_and_ends_with_both() {
        let slice = Slice { index: 1, of: 3 };
        let mix = |feed, queries, until| Mix {
            job: name(),
            until,
            feed_agents: None,
            feed: FeedScenario { slice: feed, ..FeedScenario::default() },
            queries: Scenario { slice: queries, ..Scenario::default() },
        };
        let error = |mix: Mix| check_part(&mix).unwrap_err().to_string();
        assert!(check_part(&mix(slice, slice, Until::Both)).is_ok());
        assert!(check_part(&mix(Slice::WHOLE, Slice::WHOLE, Until::Feed)).is_ok());
        let text = error(mix(Slice::WHOLE, slice, Until::Both));
        assert!(text.contains("the feed is part 1 of 1 and the queries are part 2 of 3"), "{text}");
        for until in [Until::Feed, Until::Queries] {
            let text = error(mix(slice, slice, until));
            assert!(text.contains("cannot be part 2 of 3") && text.contains("both"), "{text}");
        }
    }

    #[test]
    fn a_mix_is_told_from_a_scenario_and_reads_back() {
        let text = "[feed]\ntargets = [\"http://h:1\"]\nfiles = [\"a\"]\nload = { model = \"open\", \
                    rate_per_s = 5 }\n[queries]\ntargets = [\"http://h:1/x\"]\nduration = \"3s\"\n";
        assert!(is_mix(text));
        let mix = Tables::default().read(text, Path::new("in/m.toml")).unwrap();
        assert_eq!(mix.feed.files, [Path::new("in/a")]);
        assert_eq!((mix.job.as_str(), mix.until), ("mix", Until::Both));
        assert_eq!(mix.feed.retries, 10);
        let (feed, queries) = (FeedScenario::default(), Scenario::default());
        let tables = Tables { feed: Some(feed), queries: Some(queries.clone()) };
        let text = "[feed]\nurl = 'http://h:1'\n[queries]\nrate = 5\n";
        assert_eq!(tables.read(text, Path::new("m.toml")).unwrap().queries, queries);
        let message = Tables::default().read(text, Path::new("m.toml")).unwrap_err();
        assert!(message.starts_with("m.toml:2: unknown field `url`"), "{message}");
        assert!(!is_mix("targets = [\"http://h:1/x\"]"));
        assert!(toml::from_str::<Mix>(&format!("untill = \"feed\"\n{text}")).is_err());
    }
}
