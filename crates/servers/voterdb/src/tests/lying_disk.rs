//! The log and the snapshots on a disk that loses what was not synced, and fails.

use super::{Client, LIMIT, NAMES};
use crate::{Durability, Server, VoterConfig, VoterError};
use plimsoll_disk::simulated::{Fault, Forgets, Plan, Simulated};
use plimsoll_disk::sweep::{self, Start, Store};
use plimsoll_serving::stop::Stop;
use plimsoll_wire::volt::{Login, Request, Value};
use std::collections::BTreeSet;
use std::io::Write;
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;

/// The first phone number of the votes.
const FIRST: i64 = 2_120_000_000;
/// The phone number that votes after each start.
const AT_START: i64 = FIRST + 100;
/// Bytes of the log above which a snapshot is written.
const LOG_BYTES: u64 = 250;

/// A server with two partitions.
struct Voter(Durability);

/// The writes that were answered.
#[derive(Default)]
struct Acknowledged {
    contestants: bool,
    votes: BTreeSet<i64>,
    greeting: bool,
    /// A vote and a contestant of one transaction.
    pair: bool,
}

fn config(durability: Durability) -> VoterConfig {
    VoterConfig {
        partitions: 2,
        durability,
        data: Some("/home/voter/data".into()),
        log_bytes_max: LOG_BYTES,
        ..VoterConfig::default()
    }
}

/// Lets a server serve while `ask` asks it. Nothing of its end gets to the disk unless `is_clean`. Returns true if it shut down
/// cleanly.
fn serving(
    server: Server,
    disk: &Simulated,
    is_clean: bool,
    ask: impl FnOnce(&mut Asking),
) -> bool {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let (address, stop) = (listener.local_addr().unwrap(), Stop::new().unwrap());
    let asked = stop.clone();
    let thread = std::thread::spawn(move || server.serve(listener, None, &asked));
    // A server that cannot begin its log may be gone before it answers.
    if let Ok(stream) = TcpStream::connect(address) {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let mut client = Client { stream, input: Vec::new(), next: 1 };
        let is_in = client.stream.write_all(Login::new("", "").message()).is_ok();
        if is_in && client.message().is_some() {
            ask(&mut Asking { client });
        }
    }
    if !is_clean {
        disk.switch_off();
    }
    stop.request();
    // A server whose log has failed says so here.
    thread.join().unwrap().is_ok()
}

/// A client of a server that may end at any moment.
struct Asking {
    client: Client,
}

impl Asking {
    fn send(&mut self, calls: &[(&str, &[Value<'_>])]) -> bool {
        let mut bytes = Vec::new();
        for (procedure, params) in calls {
            let mut request = Request::default();
            request.call(procedure, params);
            request.put(self.client.next, &mut bytes);
            self.client.next += 1;
        }
        self.client.stream.write_all(&bytes).is_ok()
    }

    /// True if there is an answer, and it is a success.
    fn is_answered(&mut self) -> bool {
        let Some(message) = self.client.message() else { return false };
        plimsoll_wire::volt::Response::read(&message).unwrap().status == 1
    }

    fn call(&mut self, procedure: &str, params: &[Value<'_>]) -> bool {
        self.send(&[(procedure, params)]) && self.is_answered()
    }

    /// Votes that are sent together; adds those that were answered.
    fn vote(&mut self, phones: &[i64], done: &mut Acknowledged) {
        let params: Vec<[Value<'_>; 3]> = phones
            .iter()
            .map(|phone| [Value::BigInt(*phone), Value::Integer(1), Value::BigInt(9)])
            .collect();
        let calls: Vec<(&str, &[Value<'_>])> =
            params.iter().map(|params| ("Vote", &params[..])).collect();
        let first = self.client.next;
        if !self.send(&calls) {
            return;
        }
        // Partitions answer in their own order.
        let mut answered = 0;
        loop {
            let Some(message) = self.client.message() else { return };
            let response = plimsoll_wire::volt::Response::read(&message).unwrap();
            answered += 1;
            let mut tables = response.tables;
            let table = tables.next().unwrap().unwrap();
            let code = table.rows().next().unwrap().unwrap().values().next().unwrap().unwrap();
            // Without contestants no vote is accepted.
            if code.long() == Some(0) {
                done.votes.insert(phones[(response.handle - first) as usize]);
            }
            if answered == phones.len() {
                return;
            }
        }
    }
}

impl Store for Voter {
    type Acknowledged = Acknowledged;

    fn name(&self) -> &'static str {
        match self.0 {
            Durability::Sync => "log and snapshots of `serve voter`",
            Durability::Async => "`serve voter` with `--durability async`",
            Durability::None => "`serve voter` with `--durability none`",
        }
    }

    fn work(&self, disk: &Simulated) -> Acknowledged {
        let mut done = Acknowledged::default();
        let open = || Server::open_on(Arc::new(disk.clone()), config(self.0));
        let Ok(server) = open() else { return done };
        let has_ended = serving(server, disk, true, |asking| {
            let names = [Value::Integer(6), Value::String(NAMES)];
            done.contestants = asking.call("Initialize", &names);
            (0..4).for_each(|number| asking.vote(&[FIRST + number], &mut done));
            done.greeting = asking.call("Insert", &["French", "Salut", "Monde"].map(Value::String));
            let together: Vec<i64> = (4..8).map(|number| FIRST + number).collect();
            asking.vote(&together, &mut done);
        });
        // Answers that do not wait for the disk promise nothing until the server has shut down cleanly.
        let waits = self.0 == Durability::Sync;
        if !waits && !has_ended {
            done = Acknowledged::default();
        }
        let Ok(server) = open() else { return done };
        let mut passing = Acknowledged::default();
        let later = if waits { &mut done } else { &mut passing };
        serving(server, disk, false, |asking| {
            let pair =
                "insert into votes values (3, 'NY', 1); insert into contestants values (10, 'Yo')";
            later.pair = asking.call("@AdHoc", &[Value::String(pair)]);
            (8..10).for_each(|number| asking.vote(&[FIRST + number], later));
        });
        done
    }

    fn start(&self, disk: &Simulated, done: &Acknowledged) -> Start {
        let server = match Server::open_on(Arc::new(disk.clone()), config(self.0)) {
            Ok(server) => server,
            Err(error) => return Start::Said(error.to_string()),
        };
        let judged = judge(&server, done);
        if judged != Start::Whole {
            return judged;
        }
        serving(server, disk, false, |asking| {
            asking.vote(&[AT_START], &mut Acknowledged::default());
        });
        Start::Whole
    }
}

fn judge(server: &Server, done: &Acknowledged) -> Start {
    let wrong = |what: String| Start::Wrong(what);
    let mut there = BTreeSet::new();
    for vote in server.partitions.iter().flat_map(|partition| partition.votes().iter()) {
        // Each start votes once more.
        if !there.insert(vote.phone) && vote.phone != AT_START {
            return wrong(format!("the vote of {} is there twice", vote.phone));
        }
    }
    if let Some(lost) = done.votes.iter().find(|phone| !there.contains(phone)) {
        return wrong(format!("the vote of {lost} was answered and is gone"));
    }
    let contestants = server.partitions[0].replicated.contestants();
    let has_pair = [there.contains(&3), contestants.contains_key(&10)];
    let others = contestants.len() - usize::from(has_pair[1]);
    if has_pair[0] != has_pair[1] {
        return wrong(format!("half of a transaction is there: {has_pair:?}"));
    }
    if done.pair && !has_pair[0] {
        return wrong("a transaction was answered and is gone".to_owned());
    }
    if ![0, 6].contains(&others) || (done.contestants && others == 0) {
        return wrong(format!("{others} contestants of six"));
    }
    let has_greeting = server.partitions.iter().any(|one| one.greetings().contains_key("French"));
    if done.greeting && !has_greeting {
        return wrong("a greeting was answered and is gone".to_owned());
    }
    Start::Whole
}

#[test]
fn answered_writes_are_there_whatever_the_disk_does() {
    sweep::must_pass(&Voter(Durability::Sync), 3);
}

#[test]
fn a_clean_stop_is_kept_whatever_the_durability_and_the_disk() {
    for durability in [Durability::Async, Durability::None] {
        sweep::must_pass(&Voter(durability), 3);
        let finding = sweep::first_finding(&Voter(durability), Forgets::Files);
        assert!(finding.is_some(), "{durability:?}: the sweep does not see a lost sync");
    }
}

#[test]
fn a_stop_without_a_log_reports_a_snapshot_that_cannot_be_written() {
    let disk = Simulated::new();
    let server = Server::open_on(Arc::new(disk.clone()), config(Durability::None)).unwrap();
    disk.plan(Plan { at: 0, fault: Fault::FullFromThen }, 0);
    let (listener, stop) = (TcpListener::bind("127.0.0.1:0").unwrap(), Stop::new().unwrap());
    stop.request();
    let error = server.serve(listener, None, &stop).unwrap_err();
    assert!(matches!(error, VoterError::Snapshot(_)), "{error:?}");
    assert!(error.to_string().ends_with("all rows since the start are lost"), "{error}");
}

#[test]
fn answers_before_the_sync_are_found() {
    for forgets in [Forgets::Files, Forgets::Folders] {
        let finding = sweep::first_finding(&Voter(Durability::Sync), forgets);
        assert!(finding.is_some(), "{forgets:?}: the sweep does not see it");
    }
}
