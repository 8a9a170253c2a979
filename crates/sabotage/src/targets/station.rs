//! A target in virtual time: what it does with a request depends on the request alone, and not on when it comes.
//!
//! So the same run with an ideal generator meets the same target, and each difference between the two is the
//! generator's.

use plimsoll_core::rng::{Rng, splitmix64};
use plimsoll_engine::sim::{Act, Acts, Arrival, Peer};
use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Time that a request is served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Service {
    /// Always this long, ns.
    Fixed(u64),
    /// Exponential with this mean, ns, drawn for each request.
    Exponential(u64),
}

/// Faults of requests; per mille, at most one fault per request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ills {
    /// Answered with status 500.
    pub failed: u64,
    /// Never answered.
    pub hanging: u64,
    /// Answered after `late_ns` more.
    pub late: u64,
    /// The body ends before its length, and the connection with it.
    pub cut: u64,
    /// The connection is closed without an answer.
    pub closed: u64,
    /// The connection is closed behind the answer.
    pub last: u64,
}

/// The way a [`Station`] behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behaviour {
    /// Every draw comes from here and from the request.
    pub seed: u64,
    /// The service time.
    pub service: Service,
    /// Requests served at once, others wait in order of arrival; 0: all that come.
    pub servers: u32,
    /// The faults.
    pub ills: Ills,
    /// Delay of a late answer, ns.
    pub late_ns: u64,
    /// Time from which no request is answered and no connection accepted, ns on the clock.
    pub dies_ns: Option<u64>,
}

/// A station with servers and a queue, which speaks HTTP/1.1.
pub struct Station {
    behaviour: Behaviour,
    /// Time at which each server is free, ns.
    free_ns: Vec<u64>,
    /// Bytes of each connection that are no whole request yet; `None` where nothing is answered any more.
    heads: BTreeMap<u64, Option<Vec<u8>>>,
}

const END: &[u8] = b"\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";
const LAST: &[u8] = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok";
const FAILED: &[u8] = b"HTTP/1.1 500 No\r\nContent-Length: 2\r\n\r\nno";
const CUT: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 200\r\n\r\nhalf";

impl Station {
    /// A station without requests.
    #[must_use]
    pub fn new(behaviour: Behaviour) -> Self {
        let free_ns = vec![0; behaviour.servers as usize];
        Self { behaviour, free_ns, heads: BTreeMap::new() }
    }

    /// The number in the path of a request, by which everything about it is drawn.
    fn item(head: &[u8]) -> u64 {
        let digits = head.iter().skip_while(|byte| **byte != b'/').skip(1);
        let digits = digits.take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number, digit| number.wrapping_mul(10) + u64::from(digit - b'0'))
    }

    /// Time at which a request that comes now has been served, ns.
    fn served_ns(&mut self, service_ns: u64, now_ns: u64) -> u64 {
        let Some(first) = self.free_ns.iter_mut().min_by_key(|free_ns| **free_ns) else {
            return now_ns + service_ns;
        };
        *first = (*first).max(now_ns) + service_ns;
        *first
    }

    fn answer(&mut self, connection: u64, head: &[u8], now_ns: u64, acts: &mut Acts) {
        let Behaviour { seed, service, ills, late_ns, .. } = self.behaviour;
        let mut rng = Rng::new(splitmix64(seed ^ splitmix64(Self::item(head))));
        let service_ns = match service {
            Service::Fixed(ns) => ns,
            Service::Exponential(mean_ns) => (rng.exponential() * mean_ns as f64) as u64,
        };
        let drawn = rng.below(1000);
        let after_ns = self.served_ns(service_ns, now_ns) - now_ns;
        let mut until = 0;
        let mut is = |share: u64| {
            let from = until;
            until += share;
            (from..until).contains(&drawn)
        };
        let mut over = true;
        if is(ills.hanging) {
            // Nothing, ever.
        } else if is(ills.closed) {
            acts.push((after_ns, Act::Close));
        } else if is(ills.cut) {
            acts.push((after_ns, Act::Bytes(CUT.to_vec())));
            acts.push((after_ns, Act::Close));
        } else if is(ills.last) {
            acts.push((after_ns, Act::Bytes(LAST.to_vec())));
            acts.push((after_ns, Act::Close));
        } else {
            over = false;
            let failed = is(ills.failed);
            let late_ns = if is(ills.late) { late_ns } else { 0 };
            let bytes = if failed { FAILED } else { ANSWER };
            acts.push((after_ns + late_ns, Act::Bytes(bytes.to_vec())));
        }
        if over {
            self.heads.insert(connection, None);
        }
    }

    fn is_dead(&self, now_ns: u64) -> bool {
        self.behaviour.dies_ns.is_some_and(|dies_ns| now_ns >= dies_ns)
    }
}

impl Peer for Station {
    fn connecting(&mut self, connection: u64, _: SocketAddr, now_ns: u64) -> Arrival {
        if self.is_dead(now_ns) {
            let error = plimsoll_engine::net::NetError::Refused;
            return Arrival::Failed { after_ns: 0, error };
        }
        self.heads.insert(connection, Some(Vec::new()));
        Arrival::Accepted { after_ns: 0 }
    }

    fn received(&mut self, connection: u64, bytes: &[u8], now_ns: u64, acts: &mut Acts) {
        if self.is_dead(now_ns) {
            acts.push((0, Act::Reset));
            return;
        }
        let Some(Some(head)) = self.heads.get_mut(&connection) else { return };
        head.extend_from_slice(bytes);
        while let Some(Some(head)) = self.heads.get_mut(&connection)
            && let Some(end) = head.windows(END.len()).position(|window| window == END)
        {
            let rest = head.split_off(end + END.len());
            let whole = std::mem::replace(head, rest);
            self.answer(connection, &whole, now_ns, acts);
        }
    }

    fn woken(&mut self, _: u64, _: u64, _: u64, _: &mut Acts) {}

    fn closed(&mut self, connection: u64) {
        self.heads.remove(&connection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn station(servers: u32, ills: Ills) -> Station {
        let behaviour = Behaviour {
            seed: 7,
            service: Service::Fixed(10),
            servers,
            ills,
            late_ns: 100,
            dies_ns: None,
        };
        let mut station = Station::new(behaviour);
        station.connecting(1, SocketAddr::from(([127, 0, 0, 1], 80)), 0);
        station
    }

    fn asked(station: &mut Station, item: u64, now_ns: u64) -> Acts {
        let mut acts = Acts::new();
        let request = format!("GET /{item} HTTP/1.1\r\nHost: a\r\n\r\n");
        let (front, back) = request.as_bytes().split_at(9);
        station.received(1, front, now_ns, &mut acts);
        assert!(acts.is_empty(), "half a request was answered");
        station.received(1, back, now_ns, &mut acts);
        acts
    }

    #[test]
    fn a_single_server_serves_one_after_the_other() {
        let mut one = station(1, Ills::default());
        let times: Vec<u64> = [0, 0, 4, 50].map(|at| asked(&mut one, at, at)[0].0).into();
        assert_eq!(times, [10, 20, 26, 10]);
        let mut any = station(0, Ills::default());
        assert_eq!([0, 0, 4].map(|at| asked(&mut any, at, at)[0].0), [10, 10, 10]);
    }

    #[test]
    fn the_same_requests_fail_whenever_they_come() {
        let ills = Ills { failed: 300, ..Ills::default() };
        let failed = |first_ns: u64| -> Vec<u64> {
            let mut station = station(0, ills);
            let fails = |item: &u64| {
                let acts = asked(&mut station, *item, first_ns + item);
                acts[0].1 == Act::Bytes(FAILED.to_vec())
            };
            (0..1000).filter(fails).collect()
        };
        let of_one_run = failed(0);
        assert!((250..350).contains(&of_one_run.len()), "{}", of_one_run.len());
        assert_eq!(of_one_run, failed(12_345));
    }

    #[test]
    fn a_connection_that_hangs_or_is_closed_answers_nothing_more() {
        for ills in [
            Ills { hanging: 1000, ..Ills::default() },
            Ills { cut: 1000, ..Ills::default() },
            Ills { closed: 1000, ..Ills::default() },
            Ills { last: 1000, ..Ills::default() },
        ] {
            let mut station = station(0, ills);
            let acts = asked(&mut station, 1, 0);
            assert_eq!(acts.iter().any(|(_, act)| *act == Act::Close), ills.hanging == 0);
            assert!(asked(&mut station, 2, 1).is_empty(), "{ills:?}");
        }
    }
}
