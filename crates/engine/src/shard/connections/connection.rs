//! One connection: its state, its codec, and the requests on it.

use plimsoll_core::schedule::Slice;
use plimsoll_wire::Protocol;
use std::net::SocketAddr;

/// Shortest pause after a connection could not be made, ns.
const BACKOFF_MIN_NS: u64 = 10_000_000;
/// Longest pause, ns.
const BACKOFF_MAX_NS: u64 = 200_000_000;
/// A peer that closes a connection within this time of its last reply has not waited for another request, ns.
const WORN_NS: u64 = 10_000_000;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::shard) enum State {
    /// Not connected; the next request connects.
    Closed,
    /// The socket is being connected.
    Connecting,
    /// The socket is up, TLS is being agreed; where it must be asked for first and is not granted yet, there is
    /// no session of it.
    Handshaking,
    /// Ready for requests.
    Open,
    /// It could not be made a moment ago; pausing.
    Resting,
}

/// A connection as its requests see it; what carries its bytes is the line's.
pub(in crate::shard) struct Connection<P: Protocol> {
    state: State,
    target: u32,
    /// Index of the address in use, modulo the target's addresses.
    address: usize,
    /// Addresses tried since the connection was asked for.
    tried: usize,
    /// When the first of them was dialled, ns.
    asked_ns: u64,
    /// When the last of them was dialled, ns.
    dialled_ns: u64,
    codec: Option<P::Conn>,
    /// Requests submitted and not ended, by tag.
    under_way: Vec<u32>,
    /// The request that this connection is being opened for.
    opening_for: Option<u32>,
    /// Requests submitted since it was opened.
    carried: u64,
    /// Those of them that the network has taken, whole or in part.
    handed_over: u64,
    /// Since when it could have taken a request, ns.
    free_since_ns: u64,
    backoff_ns: u64,
    /// True if it stands in one of the queues of idle connections.
    pub(super) queued: bool,
}

/// State of a lost connection.
pub(in crate::shard) struct Lost<P: Protocol> {
    pub codec: Option<P::Conn>,
    pub had_carried: bool,
    /// Requests that were submitted and have not ended.
    pub under_way: Vec<u32>,
    /// The request that waited for it.
    pub waiting: Option<u32>,
}

/// The target of a shard's `i`-th connection. Connections take turns over the whole run. Where a shard would then
/// only ever see some of the targets, as with two threads and two targets, its turns are shifted, so that its
/// requests have somewhere to go when a target does not answer; not so for clients who keep their connection.
pub(in crate::shard) fn target_of(slice: Slice, i: u64, targets: u64, dedicated: bool) -> u32 {
    let of = u64::from(slice.of);
    let common = greatest_common_divisor(of, targets);
    let period = targets / common;
    let shift = if dedicated { 0 } else { (i / period) % common };
    ((slice.global(i) + shift) % targets) as u32
}

fn greatest_common_divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { greatest_common_divisor(b, a % b) }
}

impl<P: Protocol> Connection<P> {
    pub fn new(target: u32, address: usize) -> Self {
        Self {
            state: State::Closed,
            target,
            address,
            tried: 0,
            asked_ns: 0,
            dialled_ns: 0,
            codec: None,
            under_way: Vec::new(),
            opening_for: None,
            carried: 0,
            handed_over: 0,
            free_since_ns: 0,
            backoff_ns: 0,
            queued: false,
        }
    }

    #[inline]
    pub const fn state(&self) -> State {
        self.state
    }

    #[inline]
    pub fn is_open(&self) -> bool {
        self.state == State::Open
    }

    #[inline]
    pub const fn target(&self) -> u32 {
        self.target
    }

    /// Back to the beginning, whatever the state was.
    pub fn reset(&mut self) {
        self.state = State::Closed;
        self.codec = None;
        (self.carried, self.handed_over) = (0, 0);
        self.tried = 0;
    }

    /// Begins to connect: the address to try next, unless all have been tried.
    pub fn dial(&mut self, addresses: &[SocketAddr], now_ns: u64) -> Option<SocketAddr> {
        if self.tried >= addresses.len() {
            return None;
        }
        if self.tried == 0 {
            self.asked_ns = now_ns;
        }
        self.tried += 1;
        self.dialled_ns = now_ns;
        self.state = State::Connecting;
        Some(addresses[self.address % addresses.len()])
    }

    /// When it was asked for last, ns.
    pub const fn asked_ns(&self) -> u64 {
        self.asked_ns
    }

    /// The address was no good.
    pub fn turn_to_next_address(&mut self) {
        self.address = self.address.wrapping_add(1);
    }

    /// Returns true if one of this many addresses has not been tried.
    pub const fn has_untried(&self, addresses: usize) -> bool {
        self.tried < addresses
    }

    /// No other address is to be tried.
    pub fn stop_trying(&mut self) {
        self.tried = usize::MAX;
    }

    /// The socket is up, and TLS is not agreed yet.
    pub fn begin_handshake(&mut self) {
        self.state = State::Handshaking;
    }

    /// It is ready for requests. Returns the time that it took to open, ns.
    pub fn opened(&mut self, codec: P::Conn, now_ns: u64) -> u64 {
        self.backoff_ns = 0;
        self.codec = Some(codec);
        self.state = State::Open;
        self.tried = 0;
        self.free_since_ns = self.free_since_ns.max(now_ns);
        now_ns.saturating_sub(self.dialled_ns)
    }

    /// It could not be made: it pauses for the time returned, ns, which doubles up to its limit.
    pub fn rest(&mut self) -> u64 {
        self.reset();
        self.state = State::Resting;
        self.backoff_ns = (self.backoff_ns * 2).clamp(BACKOFF_MIN_NS, BACKOFF_MAX_NS);
        self.backoff_ns
    }

    /// Its pause is over.
    pub fn wake(&mut self, now_ns: u64) {
        self.state = State::Closed;
        self.free_since_ns = now_ns;
    }

    /// It is lost, with all that was on it.
    pub fn lose(&mut self, now_ns: u64) -> Lost<P> {
        let lost = Lost {
            codec: self.codec.take(),
            had_carried: self.carried > 0,
            under_way: std::mem::take(&mut self.under_way),
            waiting: self.opening_for.take(),
        };
        self.reset();
        self.free_since_ns = self.free_since_ns.max(now_ns);
        lost
    }

    #[inline]
    pub const fn codec(&self) -> Option<&P::Conn> {
        self.codec.as_ref()
    }

    #[inline]
    pub fn codec_mut(&mut self) -> Option<&mut P::Conn> {
        self.codec.as_mut()
    }

    /// Lends the codec, so that it can decode while its replies are settled.
    #[inline]
    pub fn take_codec(&mut self) -> Option<P::Conn> {
        self.codec.take()
    }

    #[inline]
    pub fn return_codec(&mut self, codec: P::Conn) {
        self.codec = Some(codec);
    }

    /// Since when it could have taken a request, ns.
    #[inline]
    pub const fn free_since_ns(&self) -> u64 {
        self.free_since_ns
    }

    #[inline]
    pub fn set_free_since(&mut self, at_ns: u64) {
        self.free_since_ns = at_ns;
    }

    /// Returns true if its peer closes it behind a reply: it has carried as many requests as the peer lets it.
    pub fn is_worn(&self, now_ns: u64) -> bool {
        let has_served = self.is_open() && self.carried > 0 && self.is_unused();
        has_served && now_ns.saturating_sub(self.free_since_ns) <= WORN_NS
    }

    /// Number of requests that it has carried since it was opened.
    #[inline]
    pub const fn carried(&self) -> u64 {
        self.carried
    }

    /// The request that waits for it to open, or to have room.
    #[inline]
    pub const fn opening_for(&self) -> Option<u32> {
        self.opening_for
    }

    #[inline]
    pub fn take_waiting(&mut self) -> Option<u32> {
        self.opening_for.take()
    }

    /// A request waits for it.
    pub fn wait(&mut self, tag: u32) {
        debug_assert!(self.opening_for.is_none(), "a connection is opened for one request");
        self.opening_for = Some(tag);
    }

    /// Requests submitted and not ended.
    #[inline]
    pub fn under_way(&self) -> &[u32] {
        &self.under_way
    }

    /// Returns true if no request is on it or waits for it.
    #[inline]
    pub fn is_unused(&self) -> bool {
        self.opening_for.is_none() && self.under_way.is_empty()
    }

    /// A request was submitted: its place in the list, and whether the connection had carried one before.
    #[inline]
    pub fn submitted(&mut self, tag: u32) -> (u32, bool) {
        let place = self.under_way.len() as u32;
        self.under_way.push(tag);
        let is_kept = self.carried > 0;
        self.carried += 1;
        (place, is_kept)
    }

    /// The network has taken all that was submitted, whole or in part.
    #[inline]
    pub fn all_handed_over(&mut self) {
        self.handed_over = self.carried;
    }

    /// Returns true if a request is in flight that the network had taken: only then is what comes an answer.
    pub fn awaits_answer(&self) -> bool {
        self.under_way.len() as u64 > self.carried - self.handed_over
    }

    /// Returns true if it has carried its only request, where each has a connection of its own, and that has ended.
    pub fn is_used_up(&self, keep_alive: bool) -> bool {
        !keep_alive && self.carried > 0 && self.under_way.is_empty()
    }

    /// Takes a request off its place, if it stands there: thousands may be in flight. Another one may have come to
    /// the place, and is returned.
    #[inline]
    pub fn take_off(&mut self, place: u32, tag: u32) -> Option<u32> {
        if self.under_way.get(place as usize) != Some(&tag) {
            return None;
        }
        self.under_way.swap_remove(place as usize);
        self.under_way.get(place as usize).copied()
    }

    /// Returns true if it is open and takes one more request.
    #[inline]
    pub fn has_room(&self, protocol: &P, keep_alive: bool) -> bool {
        let codec = self.codec.as_ref().filter(|_| self.state == State::Open);
        codec.is_some_and(|codec| takes_more(protocol, codec, self.carried, keep_alive))
    }

    /// Checks what must hold of a connection by itself.
    ///
    /// # Panics
    /// When it does not.
    pub(super) fn audit(&self) {
        let state = self.state;
        assert_eq!(self.codec.is_some(), self.is_open(), "a codec in state {state:?}");
        assert!(self.is_open() || self.under_way.is_empty(), "requests in state {state:?}");
        let waits = self.opening_for.is_some();
        assert!(
            state != State::Closed || !waits,
            "a request waits for a connection that is not opened"
        );
    }
}

/// Returns true if a connection that has carried this many requests takes one more.
#[inline]
pub(super) fn takes_more<P: Protocol>(
    protocol: &P,
    codec: &P::Conn,
    carried: u64,
    keep_alive: bool,
) -> bool {
    (keep_alive || carried == 0) && protocol.capacity(codec) > 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_wire::http1::Http1;

    fn open() -> Connection<Http1> {
        let mut connection = Connection::new(0, 0);
        connection.dial(&[SocketAddr::from(([127, 0, 0, 1], 1))], 2);
        assert_eq!(connection.opened(Http1::default().open(&mut Vec::new()), 5), 3);
        connection
    }

    #[test]
    fn each_address_is_tried_once_from_the_one_that_worked_last() {
        let addresses: Vec<SocketAddr> =
            (1..=3).map(|port| SocketAddr::from(([127, 0, 0, 1], port))).collect();
        let mut connection = Connection::<Http1>::new(0, 4);
        let mut ports = Vec::new();
        while let Some(address) = connection.dial(&addresses, 4 + ports.len() as u64) {
            assert_eq!((connection.state(), connection.asked_ns()), (State::Connecting, 4));
            ports.push(address.port());
            connection.turn_to_next_address();
        }
        assert_eq!(ports, [2, 3, 1]);
        assert!(!connection.has_untried(3));
        let pauses_ns: Vec<u64> = (0..6).map(|_| connection.rest()).collect();
        assert_eq!(pauses_ns, [10, 20, 40, 80, 160, 200].map(|ms| ms * 1_000_000));
        connection.wake(7);
        assert_eq!((connection.state(), connection.free_since_ns()), (State::Closed, 7));
        assert_eq!(connection.dial(&addresses, 8), Some(addresses[1]), "all may be tried again");
        assert_eq!(connection.asked_ns(), 8);
    }

    #[test]
    fn a_request_is_taken_off_wherever_it_stands() {
        let mut connection = open();
        let placed: Vec<(u32, bool)> =
            [10, 11, 12].into_iter().map(|tag| connection.submitted(tag)).collect();
        assert_eq!(placed, [(0, false), (1, true), (2, true)]);
        assert_eq!(connection.take_off(0, 10), Some(12), "the last one has its place now");
        assert_eq!(connection.take_off(0, 11), None, "it does not stand there");
        assert_eq!(connection.take_off(1, 11), None, "no request comes to its place");
        assert_eq!((connection.under_way(), connection.carried()), (&[12][..], 3));
        connection.audit();
    }

    #[test]
    fn a_lost_connection_hands_over_all_that_was_on_it() {
        let mut connection = open();
        connection.submitted(3);
        connection.wait(4);
        let lost = connection.lose(9);
        assert_eq!((lost.under_way, lost.waiting), (vec![3], Some(4)));
        assert!(lost.had_carried && lost.codec.is_some());
        assert!(connection.is_unused() && connection.state() == State::Closed);
        assert_eq!((connection.carried(), connection.free_since_ns()), (0, 9));
        connection.audit();
    }

    #[test]
    fn without_keep_alive_a_connection_has_room_for_one_request() {
        let mut connection = open();
        let http = Http1::default();
        assert!(connection.has_room(&http, true) && connection.has_room(&http, false));
        connection.submitted(0);
        connection.take_off(0, 0);
        assert!(connection.has_room(&http, true) && !connection.has_room(&http, false));
        connection.begin_handshake();
        assert!(!connection.has_room(&http, true));
    }

    #[test]
    fn every_shard_sees_every_target() {
        for (of, targets) in [(1, 1), (1, 3), (2, 2), (2, 4), (4, 2), (6, 4), (3, 5), (4, 4)] {
            let mut count = vec![0; targets as usize];
            for index in 0..of {
                let slice = Slice { index, of };
                let mut own = vec![0; targets as usize];
                for i in 0..targets {
                    own[target_of(slice, i, targets, false) as usize] += 1;
                    count[target_of(slice, i, targets, false) as usize] += 1;
                }
                assert!(own.iter().all(|n| *n == 1), "{index} of {of}, {targets}: {own:?}");
            }
            assert!(count.iter().all(|n| *n == of), "{of}, {targets}: {count:?}");
            // One connection a shard: as even as can be, and the same for those who keep theirs.
            let first = |index| target_of(Slice { index, of }, 0, targets, false);
            assert!((0..of).all(|index| u64::from(first(index)) == u64::from(index) % targets));
            let kept = target_of(Slice { index: of - 1, of }, 5, targets, true);
            assert_eq!(u64::from(kept), (5 * u64::from(of) + u64::from(of) - 1) % targets);
        }
    }
}
