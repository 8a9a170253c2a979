//! The sessions of a run, or of each of its parts.

use super::users::Filling;
use super::{Prepared, Source, SourceKind};
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::scenario::Scenario;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_wire::Sessions;
use plimsoll_wire::http::Http;
use plimsoll_workloads::http::{
    Cursor, Form, HttpSessions, Judge, Order, Park, ServerClock, Stream, Tracing, Troubles, Way,
    shuffled,
};
use plimsoll_workloads::ndjson::NdjsonReader;
use plimsoll_workloads::query_file::{ByteRange, Passes, Record, RecordReader};
use plimsoll_workloads::rows::RowFeed;
use plimsoll_workloads::script::Script;
use std::sync::Arc;

/// Parts from which sessions are made, once or for each period of a run.
pub struct SessionForm {
    pub(super) source: Source,
    pub(super) forms: Arc<Vec<Form>>,
    pub(super) judge: Judge,
    /// Header with the server's own time, if replies are asked for it.
    pub(super) server_clock: Option<ServerClock>,
    pub(super) troubles: Troubles,
    /// One a shard: where its reader of a streamed file waits between the parts of a run.
    pub(super) parks: Vec<Park>,
    /// Requests of each user, in models of users.
    pub(super) script: Option<Script>,
    /// Rows, and the requests cut for them.
    pub(super) filling: Option<Filling>,
}

impl SessionForm {
    /// Number of requests to choose from, where they can be asked in any order.
    #[must_use]
    pub fn length(&self) -> Option<usize> {
        match &self.source.kind {
            SourceKind::Rendered(rendered) => Some(rendered.per_target[0].len()),
            SourceKind::RecordStream(..) | SourceKind::NdjsonStream(..) => None,
        }
    }

    /// Returns whether some request is of a class; a streamed file is not searched for it.
    #[must_use]
    pub fn has_class(&self, class: u16) -> bool {
        match &self.source.kind {
            SourceKind::Rendered(rendered) => {
                let set = &rendered.per_target[0];
                (0..set.len()).any(|index| u16::from(set.class(index)) == class)
            }
            SourceKind::RecordStream(..) | SourceKind::NdjsonStream(..) => true,
        }
    }

    /// The run of `plan` with sessions that begin again.
    ///
    /// # Errors
    /// When the source cannot be read in the order that is asked for.
    pub fn prepared(&self, scenario: &Scenario, plan: ShardPlan) -> Result<Prepared> {
        Ok(Prepared {
            plan,
            sessions: self.sessions(scenario)?,
            class_names: self.source.class_names.clone(),
            distinct_requests: self.distinct(),
            troubles: self.troubles.clone(),
        })
    }

    fn distinct(&self) -> Option<u64> {
        let rows = self.filling.as_ref().map_or(1, |filling| filling.rows.len() as u64);
        Some(self.source.distinct()?.saturating_mul(rows))
    }

    /// Sessions for every shard: together, and with those of the other parts of the run, they walk the source once, whatever
    /// the number of shards. Requests in memory begin again; a streamed file goes on where the sessions before these ended.
    ///
    /// # Errors
    /// When the source cannot be read in the order that is asked for.
    pub fn sessions(&self, scenario: &Scenario) -> Result<Vec<Box<dyn Sessions<Http> + Send>>> {
        let Self { source, forms, judge, troubles, parks, script, filling, server_clock } = self;
        // Each part of a run has a seed of its own.
        let script = script.as_ref().map(|script| script.of_part(scenario.seed));
        let order = match &script {
            Some(_) => Order::File,
            None => order_of(scenario)?,
        };
        let permutation = match (&source.kind, order) {
            (SourceKind::Rendered(rendered), Order::Shuffle) => {
                Some(shuffled(rendered.per_target[0].len(), scenario.seed))
            }
            (
                SourceKind::RecordStream(..) | SourceKind::NdjsonStream(..),
                Order::Shuffle | Order::Random,
            ) => {
                return Err(usage(
                    "--order: a file of over 64 MiB is streamed in its own order; \
                 shuffle the file itself (shuf)",
                ));
            }
            _ => None,
        };
        let mut all: Vec<Box<dyn Sessions<Http> + Send>> = Vec::new();
        for (slice, park) in scenario.shards().zip(parks) {
            let (shard, shards) = (u64::from(slice.index), u64::from(slice.of));
            let range = ByteRange { index: shard, of: shards };
            let cursor = match (&source.kind, &script) {
                (SourceKind::Rendered(rendered), Some(script)) => {
                    Cursor::Users(rendered.clone(), script.clone())
                }
                (SourceKind::Rendered(rendered), None) => {
                    let length = rendered.per_target[0].len();
                    let mut way = Way::new(0..length, shard, shards, Passes::Unlimited);
                    if let Some(order) = &permutation {
                        way = way.shuffled(order.clone());
                    } else if order == Order::Random {
                        way = way.random(scenario.seed, shard);
                    }
                    Cursor::Rendered(rendered.clone(), way)
                }
                // A later part of the run asks on from where the one before it ended.
                (SourceKind::RecordStream(..) | SourceKind::NdjsonStream(..), _) => {
                    Cursor::Stream(match park.take() {
                        Some(stream) => stream,
                        None => source.kind.stream(range)?,
                    })
                }
            };
            let mut sessions = HttpSessions::new(
                vec![cursor],
                forms.clone(),
                source.classes.clone(),
                judge.clone(),
            );
            let tracing = scenario.traceparent;
            let tracing = tracing.map(|ratio| Tracing::new(scenario.seed, shard, ratio));
            sessions = sessions.with_server_time(server_clock.clone()).with_tracing(tracing);
            if let Some(Filling { rows, order, templates }) = filling {
                let each = script.as_ref().map(Script::requests);
                let seed = scenario.seed;
                let feed = RowFeed::new(rows.clone(), *order, seed, each, (shard, shards));
                sessions = sessions.with_rows(templates.clone(), feed);
            }
            all.push(Box::new(sessions.with_troubles(troubles.clone()).with_park(park)));
        }
        Ok(all)
    }
}

impl SourceKind {
    /// A reader of one part of a streamed file.
    fn stream(&self, range: ByteRange) -> Result<Stream> {
        match self {
            SourceKind::RecordStream(file, options, _) => {
                let reader =
                    RecordReader::open(&mut file.clone(), options, range, Passes::Unlimited)?;
                Ok(Stream::Records(Box::new(reader), Record::default()))
            }
            SourceKind::NdjsonStream(file, own, _) => {
                let reader = NdjsonReader::of(file.clone(), range, Passes::Unlimited)?;
                Ok(Stream::Ndjson(Box::new(reader.going_to(own.clone()))))
            }
            SourceKind::Rendered(_) => Err(usage("requests in memory are not streamed")),
        }
    }
}

/// The order that a scenario asks for.
///
/// # Errors
/// A word that is none.
pub fn order_of(scenario: &Scenario) -> Result<Order> {
    match scenario.order.as_str() {
        "file" => Ok(Order::File),
        "shuffle" => Ok(Order::Shuffle),
        "random" => Ok(Order::Random),
        "block" | "interleaved" => Err(usage(format!(
            "--order {} is an order for users; use it with --users, or write file, shuffle or random",
            scenario.order
        ))),
        other => Err(usage(format!("--order '{other}': write file, shuffle or random"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::schedule::Slice;
    use plimsoll_wire::Turn;
    use plimsoll_wire::http1::Request;
    use plimsoll_workloads::authority::Authority;
    use plimsoll_workloads::classes::Classes;
    use plimsoll_workloads::query_file::{ReadOptions, RecordKind, SourceFile};
    use plimsoll_workloads::render::HttpForm;

    /// The paths of the next `count` requests.
    fn ask(sessions: &mut Box<dyn Sessions<Http> + Send>, count: usize) -> Vec<String> {
        let mut request = Request::default();
        let mut next = |_| {
            assert!(matches!(sessions.next(0, 0, &mut request), Turn::Ask(_)));
            let text = String::from_utf8_lossy(&request.bytes).into_owned();
            text.split(' ').nth(1).unwrap().to_owned()
        };
        (0..count).map(&mut next).collect()
    }

    /// A form whose requests are streamed from a file of this text.
    fn streamed(dir: &tempfile::TempDir, text: &str, threads: u32) -> SessionForm {
        let path = dir.path().join("q.txt");
        std::fs::write(&path, text).unwrap();
        let options = ReadOptions::new(RecordKind::Get);
        let kind = SourceKind::RecordStream(SourceFile::open(&path).unwrap(), options, 5);
        let classes = Classes::new::<String>(&[]).unwrap();
        let class_names = Vec::new();
        let authority = Authority { host: "h".to_owned(), port: 1, tls: false };
        let form = HttpForm::new(&authority, &[], false).unwrap();
        let form = Form::Own { form, method: "GET".to_owned(), body: None };
        SessionForm {
            source: Source { kind, classes, class_names, looks_like_search: false },
            forms: Arc::new(vec![form]),
            judge: Judge::default(),
            server_clock: None,
            troubles: Troubles::default(),
            parks: (0..threads).map(|_| Park::default()).collect(),
            script: None,
            filling: None,
        }
    }

    #[test]
    fn the_parts_of_a_run_share_a_streamed_file() {
        let dir = tempfile::tempdir().unwrap();
        let text: String = (0..97).map(|line| format!("/{line}\n")).collect();
        for (parts, threads) in [(1, 3), (2, 2), (3, 1), (5, 3)] {
            let union = |parts, threads| {
                let part = |index| {
                    let slice = Slice { index, of: parts };
                    let scenario = Scenario { threads, slice, ..Scenario::default() };
                    let mut sessions = streamed(&dir, &text, threads).sessions(&scenario).unwrap();
                    // Every shard asks some of its records twice.
                    sessions.iter_mut().flat_map(|own| ask(own, 10)).collect::<Vec<_>>()
                };
                let mut all: Vec<String> = (0..parts).flat_map(part).collect();
                all.sort_unstable();
                all
            };
            assert_eq!(union(parts, threads), union(1, parts * threads));
        }
    }

    #[test]
    fn each_part_of_a_run_goes_on_in_a_streamed_file() {
        let dir = tempfile::tempdir().unwrap();
        let form = streamed(&dir, "/a\n/b\n/c\n/d\n/e\n", 1);
        let scenario = Scenario { threads: 1, ..Scenario::default() };
        // Sessions that are made and not used take nothing away.
        drop(form.sessions(&scenario).unwrap());
        let mut first = form.sessions(&scenario).unwrap();
        assert_eq!(ask(&mut first[0], 2), ["/a", "/b"]);
        first.into_iter().for_each(|sessions| sessions.finish(0));
        let mut second = form.sessions(&scenario).unwrap();
        assert_eq!(ask(&mut second[0], 4), ["/c", "/d", "/e", "/a"]);
    }
}
