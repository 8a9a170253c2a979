//! The server killed in the middle of a feed: whatever was acknowledged is there after the next start.

use super::clients::{LONG, vespa_command};
use super::sets::{Documents, dump, expect_equal, puts, some};
use crate::dice::{Dice, rounds};
use crate::exchange::Exchange;
use crate::process::{Place, Running, Target, curl, until};
use rustix::process::Signal;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

/// What one document may be: `None` is "not there".
type State = Option<Value>;

/// One writer: a connection of its own, and documents that nobody else writes.
struct Writer {
    number: usize,
    dice: Dice,
    /// The state that was acknowledged last.
    sure: BTreeMap<String, State>,
    /// The state that was asked for and not acknowledged when the server went.
    open: Option<(String, State)>,
}

impl Writer {
    /// Writes until the connection breaks or `stop` is set.
    fn run(&mut self, target: (String, u16), acknowledged: &AtomicUsize, stop: &AtomicBool) {
        let Some(mut server) = Exchange::connect(&target.0, target.1) else { return };
        while !stop.load(Ordering::Relaxed) {
            let name = format!("{}-{}", self.number, self.dice.below(40));
            let id = format!("id:kill:doc::{name}");
            let before = self.sure.get(&id).cloned().flatten();
            let value = self.dice.below(1 << 40);
            let (method, body, state) = match (self.dice.below(10), before) {
                (0 | 1, _) => ("DELETE", String::new(), None),
                (2..5, Some(mut fields)) => {
                    fields["score"] = value.into();
                    (
                        "PUT",
                        json!({"fields": {"score": {"assign": value}}}).to_string(),
                        Some(fields),
                    )
                }
                _ => {
                    let body = "words and ".repeat(self.dice.below(300) as usize + 1);
                    let fields = json!({"title": name, "body": body, "score": value});
                    ("POST", json!({ "fields": fields }).to_string(), Some(fields))
                }
            };
            self.open = Some((id, state));
            let line = format!("{method} /document/v1/kill/doc/docid/{name}");
            let Some((status, _)) = server.ask(&line, &body) else { return };
            // Nothing but an acknowledgement is expected; a refusal would not be a loss.
            assert_eq!(status, 200);
            let (id, state) = self.open.take().unwrap();
            self.sure.insert(id, state);
            acknowledged.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What the text search holds is what the store holds.
fn expect_searchable(target: &Target, count: usize) {
    let (status, body) = curl(&["-X", "POST", &format!("{}/state/v1/refresh", target.url)]);
    assert_eq!(status, 200, "{body}");
    let path = "/search/?yql=select%20*%20from%20doc%20where%20true&hits=0&timeout=20s";
    let (status, body) = curl(&[&format!("{}{path}", target.url)]);
    assert_eq!(status, 200, "{body}");
    let reply: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(reply["root"]["fields"]["totalCount"], count, "{body}");
}

#[test]
fn what_was_acknowledged_survives_the_server() {
    let place = Place::new();
    let mut dice = Dice::new();
    let mut writers: Vec<Writer> = (0..6)
        .map(|number| Writer { number, dice: dice.split(), sure: BTreeMap::new(), open: None })
        .collect();
    for round in 0..rounds() {
        let target = place.serve(&["search", "--data", "data", "--durability", "sync"]);
        let acknowledged = Arc::new(AtomicUsize::new(0));
        let stop = Arc::new(AtomicBool::new(false));
        let threads: Vec<_> = writers
            .drain(..)
            .map(|mut writer| {
                let address = (target.host.clone(), target.port);
                let (acknowledged, stop) = (Arc::clone(&acknowledged), Arc::clone(&stop));
                std::thread::spawn(move || {
                    writer.run(address, &acknowledged, &stop);
                    writer
                })
            })
            .collect();
        until("the feed has begun", LONG, || acknowledged.load(Ordering::Relaxed) > 0);
        let pause = dice.sleep(Duration::from_millis(700));
        target.process.signal(Signal::KILL);
        target.process.wait(LONG);
        stop.store(true, Ordering::Relaxed);
        writers = threads.into_iter().map(|thread| thread.join().unwrap()).collect();
        let target = place.serve(&["search", "--data", "data", "--durability", "sync"]);
        let (found, _) = dump(&place, &target, &["--slices", "3"]);
        let mut expected = Documents::new();
        for writer in &mut writers {
            // The last request may have been done or not, but nothing between.
            if let Some((id, state)) = writer.open.take() {
                let before = writer.sure.get(&id).cloned().flatten();
                let now = found.get(&id).cloned();
                assert!(now == state || now == before, "{id}: {now:?} is neither of the two");
                writer.sure.insert(id, now);
            }
            let there = writer.sure.iter().filter_map(|(id, state)| Some((id, state.as_ref()?)));
            expected.extend(there.map(|(id, fields)| (id.clone(), fields.clone())));
        }
        let count = acknowledged.load(Ordering::Relaxed);
        eprintln!("round {round}: killed after {pause:?} and {count} acknowledgements");
        expect_equal(&found, &expected);
        expect_searchable(&target, expected.len());
        target.process.signal(if dice.below(2) == 0 { Signal::KILL } else { Signal::TERM });
        target.process.wait(LONG);
    }
}

#[test]
fn what_vespa_feed_was_told_survives_the_server() {
    let documents = some(8000);
    let place = Place::new();
    let mut dice = Dice::new();
    place.file("feed.jsonl", puts(&documents));
    for round in 0..rounds().div_ceil(3) {
        let folder = format!("data-{round}");
        let serve = ["search", "--data", &folder, "--durability", "sync"];
        let target = place.serve(&serve);
        let command = vespa_command(&place, &target.url, ["feed", "--verbose", "feed.jsonl"]);
        let feed = Running::start(command, b"");
        until("the feed has begun", LONG, || !feed.stderr_so_far().is_empty());
        let pause = dice.sleep(Duration::from_millis(600));
        target.process.signal(Signal::KILL);
        target.process.wait(LONG);
        // It would go on trying for long.
        feed.signal(Signal::KILL);
        let told = feed.wait(LONG).stderr;
        // The last line may be cut.
        let lines = told.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        let told = lines.filter(|line| line.contains("got status 200"));
        let told: Vec<_> = told.map(|line| line.trim().split_once(" put ").unwrap().1).collect();
        eprintln!("round {round}: killed after {pause:?} and {} acknowledgements", told.len());
        assert!(!told.is_empty());
        let target = place.serve(&serve);
        let (found, _) = dump(&place, &target, &["--slices", "3"]);
        for id in told {
            assert!(found.contains_key(id), "{id} was acknowledged and is lost");
        }
        // Whatever is there is whole.
        for (id, fields) in &found {
            assert_eq!(fields, &documents[id]);
        }
        expect_searchable(&target, found.len());
    }
}
