//! Host that a vote is sent to, where a cluster has several: the one that leads the vote's partition.
//!
//! A vote is any telephone, and the engine says which host has room for one. So a host is given a vote of its own: votes that
//! belong elsewhere are set aside until their host is asked for one. A host that is sent the wrong vote passes it on inside the
//! cluster, which only takes longer; so what cannot be set aside is sent where there is room.

use super::ballots::Ballot;
use plimsoll_core::schedule::Slice;
use plimsoll_wire::volt::Topology;
use std::collections::VecDeque;
use std::sync::Arc;

/// Votes set aside for one host at most.
const ASIDE_MAX: usize = 1024;
/// Votes drawn at most until one of the host's own is found.
const DRAWS_MAX: u32 = 256;

/// A cluster's partitions, by the targets of a run.
#[derive(Clone, Debug)]
pub struct Routes {
    topology: Topology,
    /// The host behind each target.
    hosts: Vec<i32>,
}

impl Routes {
    /// For targets that lead to these hosts, by their numbers in the cluster; nothing where they are all one host, which
    /// owns every vote that it is sent or knows its host.
    #[must_use]
    pub fn new(topology: Topology, hosts: Vec<i32>) -> Option<Self> {
        let several = hosts.iter().any(|host| *host != hosts[0]);
        several.then_some(Self { topology, hosts })
    }

    fn host_of(&self, target: u32) -> Option<i32> {
        self.hosts.get(target as usize).copied()
    }

    /// The host that leads the partition of this telephone, if it is among the targets.
    fn owner(&self, phone: i64) -> Option<i32> {
        self.topology.leader_of_long(phone).filter(|host| self.hosts.contains(host))
    }
}

/// The votes of one shard, dealt out to hosts.
#[derive(Clone, Debug)]
pub(super) struct Dealer {
    routes: Arc<Routes>,
    slice: Slice,
    drawn: u64,
    /// By host: votes that wait until it is asked for one.
    aside: Vec<(i32, VecDeque<u64>)>,
}

impl Dealer {
    pub(super) fn new(routes: Arc<Routes>, slice: Slice) -> Self {
        let mut hosts = routes.hosts.clone();
        hosts.sort_unstable();
        hosts.dedup();
        let aside = hosts.into_iter().map(|host| (host, VecDeque::with_capacity(ASIDE_MAX)));
        Self { slice, drawn: 0, aside: aside.collect(), routes }
    }

    fn aside(&mut self, host: i32) -> Option<&mut VecDeque<u64>> {
        self.aside.iter_mut().find(|(own, _)| *own == host).map(|(_, votes)| votes)
    }

    /// The number of the next vote for this target. Each number is dealt once.
    #[inline]
    pub(super) fn deal(&mut self, target: u32, ballot: impl Fn(u64) -> Ballot) -> u64 {
        let here = self.routes.host_of(target);
        if let Some(item) = here.and_then(|here| self.aside(here)?.pop_front()) {
            return item;
        }
        for _ in 0..DRAWS_MAX {
            let item = self.draw();
            let owner = self.routes.owner(ballot(item).phone);
            let elsewhere = owner.filter(|owner| Some(*owner) != here);
            let Some(votes) = elsewhere.and_then(|owner| self.aside(owner)) else { return item };
            if votes.len() >= ASIDE_MAX {
                return item;
            }
            votes.push_back(item);
        }
        self.draw()
    }

    fn draw(&mut self) -> u64 {
        let item = self.slice.global(self.drawn);
        self.drawn += 1;
        item
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Ballots, Game};
    use plimsoll_wire::volt::{Kind, Response, ResponseWriter, Ring, Value};
    use std::collections::BTreeSet;

    /// Partitions dealt out to hosts 0, 1 and 2 in turn.
    fn topology(partitions: u32) -> Topology {
        let mut message = Vec::new();
        let config = Ring::even(partitions).to_bytes();
        let mut writer = ResponseWriter::success(&mut message, 1, 0);
        let columns =
            [("Partition", Kind::Integer), ("Sites", Kind::String), ("Leader", Kind::String)];
        let mut table = writer.table(&columns);
        for partition in 0..partitions {
            let leader = format!("{}:0", partition % 3);
            let sites = Value::String(&leader);
            table.row(&[Value::Integer(partition as i32), sites, Value::String(&leader)]);
        }
        let columns = [("HASHTYPE", Kind::String), ("HASHCONFIG", Kind::VarBinary)];
        let mut table = writer.table(&columns);
        table.row(&[Value::String("ELASTIC"), Value::VarBinary(&config)]);
        Topology::read(&Response::read(&message[4..]).unwrap()).unwrap()
    }

    #[test]
    fn every_host_is_dealt_its_own_votes_and_each_once() {
        let routes = Arc::new(Routes::new(topology(6), vec![2, 0, 1]).unwrap());
        let ballots = Ballots::new(Game::default()).unwrap();
        let mut dealer = Dealer::new(routes.clone(), Slice { index: 1, of: 3 });
        let mut seen = BTreeSet::new();
        for call in 0..20_000u32 {
            let target = call % 3;
            let item = dealer.deal(target, |item| ballots.ballot(item));
            assert!(seen.insert(item) && item % 3 == 1, "vote {item} is dealt twice, or another's");
            let owner = routes.owner(ballots.ballot(item).phone);
            assert_eq!(owner, routes.host_of(target));
        }
    }

    #[test]
    fn a_host_that_is_never_asked_holds_up_nobody() {
        let routes = Arc::new(Routes::new(topology(3), vec![0, 1, 2]).unwrap());
        let ballots = Ballots::new(Game::default()).unwrap();
        let mut dealer = Dealer::new(routes, Slice::WHOLE);
        let dealt: BTreeSet<u64> =
            (0..20_000).map(|_| dealer.deal(0, |item| ballots.ballot(item))).collect();
        assert_eq!(dealt.len(), 20_000);
        assert!(dealer.aside.iter().all(|(_, votes)| votes.len() <= ASIDE_MAX));
    }

    #[test]
    fn one_host_needs_no_routes() {
        assert!(Routes::new(topology(3), vec![0, 0]).is_none());
        assert!(Routes::new(topology(3), vec![0]).is_none());
        // A leader that is no target gets its votes through the others.
        let routes = Routes::new(topology(3), vec![0, 1]).unwrap();
        assert!((0..200).any(|phone| routes.owner(phone).is_none()));
    }
}
