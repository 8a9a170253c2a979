//! A made-up database that speaks VoltDB's protocol, keeps to the rules of the game, and misbehaves by its seed.

use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::rng::Rng;
use plimsoll_engine::net::NetError;
use plimsoll_engine::sim::{Act, Acts, Arrival, Peer};
use plimsoll_voter::GREETINGS;
use plimsoll_wire::volt::{
    Call, Kind, LoginCall, LoginReply, Response, ResponseWriter, Ring, Status, Topology, Value,
    Welcome, frame_length,
};
use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::rc::Rc;

/// Partitions of the cluster, dealt out to its hosts in turn.
const PARTITIONS: u32 = 6;
/// Hosts of the cluster: a port's number says which.
const HOSTS: i32 = 2;

/// What the cluster says of itself.
pub fn topology() -> Topology {
    let mut out = Vec::new();
    let mut writer = ResponseWriter::success(&mut out, 1, 0);
    let mut sites = writer.table(&[
        ("Partition", Kind::Integer),
        ("Sites", Kind::String),
        ("Leader", Kind::String),
    ]);
    for partition in 0..PARTITIONS as i32 {
        let leader = format!("{}:0", partition % HOSTS);
        sites.row(&[Value::Integer(partition), Value::String(&leader), Value::String(&leader)]);
    }
    let ring = Ring::even(PARTITIONS).to_bytes();
    writer
        .table(&[("HASHTYPE", Kind::String), ("HASHCONFIG", Kind::VarBinary)])
        .row(&[Value::String("ELASTIC"), Value::VarBinary(&ring)]);
    Topology::read(&Response::read(&out[4..]).unwrap()).unwrap()
}

/// How many of a thousand calls end like this.
#[derive(Clone, Copy, Debug, Default)]
pub struct Faults {
    /// The connection is closed, before or after the call was done.
    pub cut: u64,
    /// No answer ever comes; done or not.
    pub silent: u64,
    /// The server says that it does not know; done or not.
    pub unknown: u64,
    /// The server rolls back, and says so.
    pub failed: u64,
    /// Acknowledged and not done: what no database may do.
    pub lies: u64,
    /// Done twice.
    pub twice: u64,
    /// After so many connections nobody is let in any more.
    pub connections: Option<u64>,
    /// The login is refused.
    pub refuses: bool,
}

pub struct Server {
    rng: Rng,
    ring: Ring,
    faults: Faults,
    contestants: i32,
    held: HashMap<u64, (bool, Vec<u8>)>,
    /// The host that each connection leads to.
    hosts: HashMap<u64, i32>,
    /// Votes that came to the host that leads their partition, and others.
    pub at_leader: (u64, u64),
    opened: u64,
    /// Rows by telephone.
    pub votes: BTreeMap<i64, u64>,
    /// Votes by contestant.
    pub by_contestant: BTreeMap<i32, u64>,
    pub calls: u64,
    pub lied: u64,
    pub doubled: u64,
    /// How long calls take inside, ms; drawn up to this.
    pub service_max_ms: u64,
    /// Rows that a hello finds wrong, of a thousand.
    pub wrong_rows: u64,
}

impl Server {
    pub fn new(seed: u64, faults: Faults) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            rng: Rng::new(seed),
            ring: Ring::even(PARTITIONS),
            faults,
            contestants: 6,
            held: HashMap::new(),
            hosts: HashMap::new(),
            at_leader: (0, 0),
            opened: 0,
            votes: BTreeMap::new(),
            by_contestant: BTreeMap::new(),
            calls: 0,
            lied: 0,
            doubled: 0,
            service_max_ms: 5,
            wrong_rows: 0,
        }))
    }

    pub fn rows(&self) -> u64 {
        self.votes.values().sum()
    }

    fn happens(&mut self, per_mille: u64) -> bool {
        per_mille > 0 && self.rng.below(1000) < per_mille
    }

    /// The rules, and the row where they allow it.
    fn vote(&mut self, (phone, contestant, most): (i64, i32, i64), write: bool) -> i64 {
        if !(1..=self.contestants).contains(&contestant) {
            return 1;
        }
        if self.votes.get(&phone).is_some_and(|had| *had as i64 >= most) {
            return 2;
        }
        if write {
            *self.votes.entry(phone).or_default() += 1;
            *self.by_contestant.entry(contestant).or_default() += 1;
        }
        0
    }

    fn call(&mut self, connection: u64, body: &[u8], acts: &mut Acts) {
        let call = Call::read(body).unwrap();
        let (handle, ms) = (call.handle, self.rng.below(self.service_max_ms + 1));
        let (after_ns, ms) = (ms * MILLISECOND_NS, ms as i32);
        let params: Vec<Value<'_>> = call.params().map(|param| param.unwrap().1).collect();
        self.calls += 1;
        let mut out = Vec::new();
        if call.procedure == "Select" {
            let Value::String(dialect) = params[0] else { panic!("{params:?}") };
            let (_, hello, world) = *GREETINGS.iter().find(|row| row.0 == dialect).unwrap();
            let hello = if self.happens(self.wrong_rows) { "Bye" } else { hello };
            ResponseWriter::success(&mut out, handle, ms)
                .table(&[("HELLO", Kind::String), ("WORLD", Kind::String)])
                .row(&[Value::String(hello), Value::String(world)]);
            return acts.push((after_ns, Act::Bytes(out)));
        }
        assert_eq!(call.procedure, "Vote");
        let [Value::BigInt(phone), Value::Integer(contestant), Value::BigInt(most)] = params[..]
        else {
            panic!("{params:?}")
        };
        let ballot = (phone, contestant, most);
        let leads = self.hosts[&connection] == self.ring.partition_of_long(phone) % HOSTS;
        let count = if leads { &mut self.at_leader.0 } else { &mut self.at_leader.1 };
        *count += 1;
        let done = self.rng.below(2) == 0;
        if self.happens(self.faults.cut) {
            self.vote(ballot, done);
            return acts.push((after_ns, Act::Close));
        }
        if self.happens(self.faults.silent) {
            self.vote(ballot, done);
            return;
        }
        if self.happens(self.faults.unknown) {
            self.vote(ballot, done);
            let status = Status::RESPONSE_UNKNOWN;
            ResponseWriter::failure(&mut out, handle, status, "a host was lost", ms);
        } else if self.happens(self.faults.failed) {
            let status = Status::GRACEFUL_FAILURE;
            ResponseWriter::failure(&mut out, handle, status, "CONSTRAINT VIOLATION\nmore", ms);
        } else {
            let lies = self.happens(self.faults.lies);
            let code = self.vote(ballot, !lies);
            self.lied += u64::from(lies && code == 0);
            if code == 0 && self.happens(self.faults.twice) {
                *self.votes.entry(phone).or_default() += 1;
                self.doubled += 1;
            }
            ResponseWriter::vote_like(&mut out, handle, code, ms);
        }
        acts.push((after_ns, Act::Bytes(out)));
    }

    fn login(&mut self, connection: u64, body: &[u8], acts: &mut Acts) {
        assert!(LoginCall::read(body).unwrap().is_to_database());
        let reply = if self.faults.refuses {
            LoginReply::Refused(-1)
        } else {
            LoginReply::Welcome(Welcome {
                host_id: self.hosts[&connection],
                connection_id: 1,
                cluster_start_ms: 1,
                leader_address: [127, 0, 0, 1],
                build: "made-up",
            })
        };
        let mut out = Vec::new();
        reply.put(&mut out);
        acts.push((0, Act::Bytes(out)));
        if self.faults.refuses {
            acts.push((0, Act::Close));
        }
    }
}

impl Peer for Server {
    fn connecting(&mut self, connection: u64, address: SocketAddr, _: u64) -> Arrival {
        self.hosts.insert(connection, i32::from(address.port()) % HOSTS);
        self.opened += 1;
        if self.faults.connections.is_some_and(|most| self.opened > most) {
            return Arrival::Failed { after_ns: MILLISECOND_NS, error: NetError::Refused };
        }
        self.held.insert(connection, (false, Vec::new()));
        Arrival::Accepted { after_ns: MILLISECOND_NS }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], _: u64, acts: &mut Acts) {
        // What comes after the connection was closed here is not looked at.
        let Some((logged_in, mut held)) = self.held.remove(&connection) else { return };
        let mut logged_in = logged_in;
        held.extend_from_slice(bytes);
        let mut at = 0;
        while let Some(length) = frame_length(&held[at..]).unwrap() {
            if length > held.len() - at {
                break;
            }
            let body = &held[at + 4..at + length];
            if logged_in {
                self.call(connection, body, acts);
            } else {
                self.login(connection, body, acts);
            }
            logged_in = true;
            at += length;
            if matches!(acts.last(), Some((_, Act::Close | Act::Reset))) {
                return;
            }
        }
        held.drain(..at);
        self.held.insert(connection, (logged_in, held));
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.held.remove(&connection);
    }
}
