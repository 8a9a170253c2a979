//! The connections of a shard: which one a request gets, which are idle, and how many more are needed.
//!
//! Invariants:
//! - a connection stands in one queue of idle ones or in none, and its mark says whether it does;
//! - one that could take a request and waits for none stands in a queue: no connection is forgotten;
//! - one that is being opened has a request that waits for it or is listed as opening ahead of need: either has a deadline;
//! - only an open one has a codec and requests in flight, and only one that is in play is open;
//! - a request is in flight on one connection, or waits for one, or waits to be sent again: in one place.

mod again;
mod ahead;
mod closed;
mod connection;
mod growing;
mod idle;

use super::ShardPlan;
use super::flight::{Flights, NOWHERE};
use again::Again;
use ahead::Ahead;
use closed::ClosedConnections;
pub(super) use connection::{Connection, Lost, State};
use growing::Growth;
use idle::IdleOpen;
use plimsoll_wire::Protocol;
use std::collections::BTreeSet;

/// Idle connections that are looked at for one that suits a request better.
const LOOKED_AT_MAX: usize = 64;

/// All connections of a shard.
pub(super) struct Connections<P: Protocol> {
    all: Vec<Connection<P>>,
    /// True if client i always uses connection i.
    dedicated: bool,
    keep_alive: bool,
    idle_open: IdleOpen,
    idle_closed: ClosedConnections,
    /// Closed ones that came when they were needed. No request opens one of them by itself: they open as those do that were
    /// never used.
    spare: ClosedConnections,
    /// Progress of growing the connections.
    growth: Growth,
    /// Those that are being opened before they are needed.
    ahead: Ahead,
    /// Requests to be sent once more.
    again: Again,
}

impl<P: Protocol> Connections<P> {
    /// The connections of a plan, dealt out to the targets in turn. Where each of `clients` clients can have one of
    /// its own and no one waits in a `queue`, each has.
    pub fn new(plan: &ShardPlan, clients: usize, is_queued: bool) -> Self {
        let dedicated = !is_queued && clients == plan.connections as usize;
        let growth = Growth::from(
            plan.warm_connections.map_or(plan.connections, |warm| warm.clamp(1, plan.connections)),
        );
        let targets = plan.targets.len().max(1) as u64;
        let connection = |i: u32| {
            let number = plan.slice.global(u64::from(i));
            let target = connection::target_of(plan.slice, u64::from(i), targets, dedicated);
            Connection::new(target, (number / targets) as usize)
        };
        Self {
            all: (0..plan.connections).map(connection).collect(),
            dedicated: dedicated && clients > 0,
            keep_alive: plan.keep_alive,
            // Each target has a connection among the first.
            idle_open: IdleOpen::new(
                growth.in_play().max(plan.targets.len() as u32),
                targets as usize,
                plan.seed,
            ),
            idle_closed: ClosedConnections::new(plan.targets.len()),
            spare: ClosedConnections::new(plan.targets.len()),
            growth,
            ahead: Ahead::new(),
            again: Again::default(),
        }
    }

    #[inline]
    pub fn get(&self, key: u32) -> &Connection<P> {
        &self.all[key as usize]
    }

    #[inline]
    pub fn get_mut(&mut self, key: u32) -> &mut Connection<P> {
        &mut self.all[key as usize]
    }

    #[inline]
    pub fn len(&self) -> u32 {
        self.all.len() as u32
    }

    /// The number that have come to be used; their keys are the first.
    #[inline]
    pub const fn in_play(&self) -> u32 {
        self.growth.in_play()
    }

    #[inline]
    pub const fn is_dedicated(&self) -> bool {
        self.dedicated
    }

    #[inline]
    pub const fn keep_alive(&self) -> bool {
        self.keep_alive
    }

    /// The run starts: all could take a request from now on.
    pub fn begin(&mut self, start_ns: u64) {
        self.growth.begin();
        self.all.iter_mut().for_each(|connection| connection.set_free_since(start_ns));
    }

    /// Returns true if a connection is open and takes one more request.
    #[inline]
    pub fn has_room(&self, key: u32, protocol: &P) -> bool {
        self.get(key).has_room(protocol, self.keep_alive)
    }

    /// Returns true if connection `key`, whose codec is lent, takes one more request.
    #[inline]
    pub fn takes_more(&self, key: u32, codec: &P::Conn, protocol: &P) -> bool {
        connection::takes_more(protocol, codec, self.get(key).carried(), self.keep_alive)
    }

    /// Returns true if a connection can be picked; of those that are open, the one that has been idle longest comes first. Clients
    /// with connections of their own need not ask.
    #[inline]
    pub fn has_idle(&mut self, protocol: &P) -> bool {
        if self.dedicated {
            return true;
        }
        // What a schedule has given is gone from it: only a connection that can be picked counts.
        self.drop_stale(protocol);
        !self.idle_open.is_empty() || !self.idle_closed.is_empty()
    }

    /// A connection for a due request: an open one before one that must be opened. [`Connections::has_idle`] has been asked.
    #[inline]
    pub fn pick(&mut self, client: u32) -> Option<u32> {
        if self.dedicated {
            return self.get(client).is_unused().then_some(client);
        }
        loop {
            let key = self.take_open().or_else(|| self.take_closed())?;
            let connection = &mut self.all[key as usize];
            connection.queued = false;
            let state = connection.state();
            let is_free =
                matches!(state, State::Open | State::Closed) && connection.opening_for().is_none();
            debug_assert!(is_free, "a connection in state {state:?} was idle");
            if is_free {
                return Some(key);
            }
        }
    }

    /// Takes the open connection that is used next.
    #[inline]
    fn take_open(&mut self) -> Option<u32> {
        self.idle_open.take(|key| self.all[key as usize].target())
    }

    /// Takes the closed connection that is opened next.
    fn take_closed(&mut self) -> Option<u32> {
        let key = self.idle_closed.take()?;
        self.growth.opens_again();
        Some(key)
    }

    /// Takes a closed one of those that came when they were needed.
    fn take_spare(&mut self) -> Option<u32> {
        let key = self.spare.take()?;
        self.growth.opens_again();
        Some(key)
    }

    /// Takes connections that have no room any more from the front of the open ones.
    #[inline]
    fn drop_stale(&mut self, protocol: &P) {
        while let Some(key) = self.idle_open.front()
            && !self.has_room(key, protocol)
        {
            self.take_open();
            let connection = &mut self.all[key as usize];
            if connection.state() == State::Closed {
                // Its peer closed it while it was idle.
                let target = connection.target();
                self.closed(key).give_back(key, target);
            } else {
                // It takes less than when it was queued, and is given back when it takes more again.
                debug_assert!(connection.is_open(), "{:?}", connection.state());
                connection.queued = false;
            }
        }
    }

    /// The connection that a request written for connection `key` goes on: another one, if the codec says that this one does
    /// not suit it and one that does is idle.
    #[inline]
    pub fn better_for(&mut self, key: u32, request: &P::Request, protocol: &P) -> u32 {
        let suits =
            |key: u32| self.get(key).codec().is_none_or(|codec| protocol.suits(codec, request));
        if self.dedicated || suits(key) {
            return key;
        }
        let looked_at = self.idle_open.iter().take(LOOKED_AT_MAX);
        let mut suited = looked_at.filter(|&other| self.has_room(other, protocol) && suits(other));
        let Some(better) = suited.next() else { return key };
        drop(suited);
        self.idle_open.remove(better);
        self.get_mut(better).queued = false;
        self.put_back(key);
        better
    }

    /// Puts a connection that is not in use back among the idle ones, behind the others.
    #[inline]
    pub fn give_back(&mut self, key: u32) {
        self.again.see_room();
        self.queue_idle(key, IdleOpen::give_back, ClosedConnections::give_back);
    }

    /// Puts a connection that was picked and not used back where it was.
    pub fn put_back(&mut self, key: u32) {
        self.queue_idle(key, IdleOpen::put_back, ClosedConnections::put_back);
    }

    /// Puts a connection into the queue that its state says, unless it is in one.
    #[inline]
    fn queue_idle(
        &mut self,
        key: u32,
        open: fn(&mut IdleOpen, u32),
        closed: fn(&mut ClosedConnections, u32, u32),
    ) {
        let connection = &mut self.all[key as usize];
        if self.dedicated || connection.queued {
            return;
        }
        let target = connection.target();
        match connection.state() {
            State::Open => open(&mut self.idle_open, key),
            State::Closed => closed(self.closed(key), key, target),
            State::Connecting | State::Handshaking | State::Resting => return,
        }
        self.get_mut(key).queued = true;
    }

    /// The queue in which connection `key` stands when it is closed. Without keep-alive each request opens its own, whichever
    /// it is.
    fn closed(&mut self, key: u32) -> &mut ClosedConnections {
        if self.growth.is_first(key) || !self.keep_alive {
            &mut self.idle_closed
        } else {
            &mut self.spare
        }
    }

    /// Takes a connection out of the queue in which it stands.
    fn unqueue(&mut self, key: u32) {
        let connection = &mut self.all[key as usize];
        let target = connection.target();
        if !std::mem::take(&mut connection.queued) || self.closed(key).remove(key, target) {
            return;
        }
        // It broke with requests in flight, and still stands where it stood when it was open.
        self.idle_open.remove(key);
    }

    /// Takes all out of the queues.
    pub fn forget_idle(&mut self) {
        self.idle_open.clear();
        self.idle_closed.clear();
        self.spare.clear();
        self.all.iter_mut().for_each(|connection| connection.queued = false);
    }

    /// Requests to be sent once more.
    #[inline]
    pub fn again(&mut self) -> &mut Again {
        &mut self.again
    }

    /// Returns true if a request that waits to be sent once more may find a connection now.
    #[inline]
    pub fn is_again_due(&self) -> bool {
        self.again.is_due()
    }

    /// A connection for a request that is sent again; `target`: the only one that may take it, if it names one of several. One that
    /// was lost goes on its own connection, opened again: others that are open may be as dead as the one that it was lost on.
    pub fn pick_again(
        &mut self,
        client: u32,
        (lost_on, target): (u32, Option<u32>),
        protocol: &P,
    ) -> Option<u32> {
        if !self.dedicated && lost_on != NOWHERE {
            match self.get(lost_on).state() {
                State::Closed => {
                    self.unqueue(lost_on);
                    self.growth.opens_again();
                    return Some(lost_on);
                }
                State::Connecting | State::Handshaking => return None,
                State::Open if self.has_room(lost_on, protocol) => return Some(lost_on),
                State::Open | State::Resting => {}
            }
        }
        match target.filter(|_| !self.dedicated) {
            Some(target) => self.pick_of(target, protocol),
            None => self.has_idle(protocol).then(|| self.pick(client)).flatten(),
        }
    }

    /// A connection to one target, an open one before one that must be opened.
    fn pick_of(&mut self, target: u32, protocol: &P) -> Option<u32> {
        let leads_there = |key: &u32| {
            let connection = self.get(*key);
            connection.target() == target && connection.opening_for().is_none()
        };
        let is_good = |key: &u32| leads_there(key) && self.has_room(*key, protocol);
        let open = self.idle_open.iter().find(is_good);
        let closed = || self.idle_closed.iter().chain(self.spare.iter()).find(leads_there);
        let key = open.or_else(closed)?;
        self.unqueue(key);
        if self.get(key).state() == State::Closed {
            self.growth.opens_again();
        }
        Some(key)
    }

    /// Returns true if there are connections that have not been needed yet or are not any more, or some that are to be replaced.
    #[inline]
    pub fn may_grow(&self) -> bool {
        self.has_more() || self.growth.has_worn()
    }

    /// Returns true if there are connections that have not been needed yet or are not any more.
    #[inline]
    fn has_more(&self) -> bool {
        (self.in_play() as usize) < self.all.len() || !self.spare.is_empty()
    }

    /// Connection `key` is ready for requests.
    pub fn opened(&mut self, key: u32, codec: P::Conn, now_ns: u64) {
        let took_ns = self.get_mut(key).opened(codec, now_ns);
        if self.keep_alive {
            self.growth.opened(took_ns);
        }
    }

    /// Connection `key` is about to be closed. It is replaced if it had done its service.
    pub fn closes(&mut self, key: u32, now_ns: u64) {
        if self.keep_alive && !self.dedicated && self.get(key).is_worn(now_ns) {
            self.growth.is_worn();
        }
    }

    /// Returns true if the last wait slept, by what the network has waited in all, ns.
    pub fn slept(&mut self, idle_ns: u64) -> bool {
        self.growth.slept(idle_ns)
    }

    /// Number of more that are needed for this many requests in flight, `depth` to a connection.
    pub fn missing(&mut self, in_flight: u32, depth: u32, now_ns: u64) -> u32 {
        // Without keep-alive a closed connection is as good as any: each request opens its own.
        let closed = if self.keep_alive { self.idle_closed.len() + self.spare.len() } else { 0 };
        self.growth.missing(in_flight, depth, closed as u32, now_ns)
    }

    /// When connections that are missing may be opened, though nothing else happens then, ns.
    #[inline]
    pub fn next_growth_ns(&self) -> u64 {
        let round_ns = if self.has_more() { self.growth.awaited_round_ns() } else { None };
        round_ns.unwrap_or(u64::MAX)
    }

    /// Takes the next connection to be opened before it is needed: one that its peer has closed comes before one that was
    /// never used.
    pub fn take_to_open(&mut self) -> Option<u32> {
        let again = if self.keep_alive { self.take_closed() } else { None };
        let again = again.or_else(|| self.take_spare());
        let key = again.or_else(|| self.growth.one_more(self.all.len()))?;
        self.get_mut(key).queued = false;
        Some(key)
    }

    /// Checks what must hold of the connections and of the requests on them.
    ///
    /// # Panics
    /// When it does not.
    pub fn audit(&self, flights: &Flights<P>, protocol: &P) {
        let mut queues = vec![0; self.all.len()];
        self.idle_open.iter().for_each(|key| queues[key as usize] += 1);
        self.idle_closed.iter().chain(self.spare.iter()).for_each(|key| {
            queues[key as usize] += 1;
            assert_eq!(self.get(key).state(), State::Closed, "connection {key} is to be opened");
        });
        let ahead: BTreeSet<(u32, u64)> = self.ahead.iter().copied().collect();
        let mut requests = self.audit_again(flights);
        for (key, queued) in (0..self.len()).zip(queues) {
            let connection = self.get(key);
            connection.audit();
            assert_eq!(queued, u32::from(connection.queued), "queues of connection {key}");
            let state = connection.state();
            let is_ready = state == State::Closed || self.has_room(key, protocol);
            let is_opening = matches!(state, State::Connecting | State::Handshaking);
            let is_ahead = ahead.contains(&(key, connection.asked_ns()));
            let has_deadline = connection.opening_for().is_some() || is_ahead;
            assert!(!is_opening || has_deadline, "nothing ends the opening of connection {key}");
            let is_wanted = self.dedicated || connection.opening_for().is_some();
            if key >= self.in_play() && !self.dedicated {
                let is_fresh = state == State::Closed && connection.is_unused();
                assert!(is_fresh && !connection.queued, "connection {key} is not in play");
            } else {
                assert!(!is_ready || is_wanted || connection.queued, "{key} is forgotten");
            }
            requests += connection.opening_for().iter().len() + connection.under_way().len();
            for (place, &tag) in connection.under_way().iter().enumerate() {
                let flight = flights.get(tag);
                assert!(flights.is_in_use(tag), "request {tag} has ended and is in flight");
                assert_eq!((flight.connection, flight.place), (key, place as u32), "{tag}");
            }
            if let Some(tag) = connection.opening_for() {
                assert!(flights.is_in_use(tag), "request {tag} has ended and waits");
                assert_eq!(flights.get(tag).connection, key, "request {tag} waits elsewhere");
            }
        }
        // Each place names its own connection, and a place on it: as many places as requests means one each.
        assert_eq!(requests, flights.len() as usize, "requests in flight are in one place each");
    }

    /// Checks what must hold of the requests to be sent once more, and counts them.
    fn audit_again(&self, flights: &Flights<P>) -> usize {
        for tag in self.again.iter() {
            assert!(flights.is_in_use(tag), "request {tag} has ended and is to be sent again");
            assert_eq!(flights.get(tag).connection, NOWHERE, "request {tag} waits for none");
        }
        self.again.len()
    }
}

#[cfg(test)]
mod tests;
