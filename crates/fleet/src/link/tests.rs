use super::*;
use plimsoll_core::clock::MILLISECOND_NS;
use plimsoll_core::rng::Rng;

/// A network that loses, repeats and delays packets, and so reorders them.
struct Network {
    rng: Rng,
    lost: u64,
    repeated: u64,
    delay_ns: u64,
    flying: Vec<(u64, bool, Vec<u8>)>,
}

impl Network {
    fn carry(&mut self, packets: Vec<Packet>, to_first: bool, now_ns: u64) {
        for packet in packets {
            let copies = 1 + u64::from(self.rng.below(100) < self.repeated);
            for _ in 0..copies {
                if self.rng.below(100) >= self.lost {
                    let at_ns = now_ns + 1 + self.rng.below(self.delay_ns);
                    self.flying.push((at_ns, to_first, packet.encode()));
                }
            }
        }
    }

    fn arrived(&mut self, now_ns: u64) -> Vec<(bool, Packet)> {
        let (due, later) = self.flying.drain(..).partition(|(at_ns, ..)| *at_ns <= now_ns);
        self.flying = later;
        let due: Vec<(u64, bool, Vec<u8>)> = due;
        due.into_iter().map(|(_, to, bytes)| (to, Packet::decode(&bytes).unwrap())).collect()
    }
}

type Messages = Vec<Vec<u8>>;

/// Sends messages both ways through a bad network, and returns what arrived at each end.
fn exchange(seed: u64) -> [(Messages, Messages); 2] {
    let mut rng = Rng::new(seed);
    let (lost, repeated) = (rng.below(40), rng.below(40));
    let delay_ns = 1 + rng.below(400 * MILLISECOND_NS);
    let mut network = Network { rng: Rng::new(seed ^ 1), lost, repeated, delay_ns, flying: vec![] };
    let mut ends = [Link::new(1, 2, 0), Link::new(2, 1, 0)];
    let mut sent = [Vec::new(), Vec::new()];
    let mut arrived = [Vec::new(), Vec::new()];
    let mut now_ns = 0;
    while now_ns < 600 * SECOND_NS {
        now_ns += 10 * MILLISECOND_NS;
        for end in 0..2 {
            if sent[end].len() < 30 && rng.below(5) == 0 {
                let length = if rng.below(8) == 0 { rng.below(400_000) } else { rng.below(200) };
                let message = vec![rng.below(256) as u8; length as usize];
                ends[end].send(&message).unwrap();
                sent[end].push(message);
            }
            let packets = ends[end].poll(now_ns);
            network.carry(packets, end == 1, now_ns);
        }
        for (to_first, packet) in network.arrived(now_ns) {
            let end = usize::from(!to_first);
            arrived[end].extend(ends[end].receive(packet, now_ns));
        }
        if sent.iter().all(|sent| sent.len() == 30) && ends.iter().all(Link::is_settled) {
            break;
        }
    }
    let [first, second] = sent;
    let [at_first, at_second] = arrived;
    [(first, at_second), (second, at_first)]
}

#[test]
fn messages_arrive_once_and_in_order_over_a_bad_network() {
    for seed in 0..200 {
        for (sent, arrived) in exchange(seed) {
            assert!(sent == arrived, "seed {seed}: {} sent, {} arrived", sent.len(), arrived.len());
        }
    }
}

#[test]
fn packets_of_another_incarnation_are_ignored() {
    let (mut coordinator, mut again) = (Link::new(1, 2, 0), Link::new(3, 1, 0));
    again.send(b"late").unwrap();
    for packet in again.poll(5) {
        assert!(coordinator.receive(packet, 5).is_empty());
    }
    assert_eq!(coordinator.silent_ns(SECOND_NS), SECOND_NS);
}

#[test]
fn an_idle_link_sends_a_packet_each_second() {
    let mut link = Link::new(1, 2, 0);
    let mut sent = 0;
    for millisecond in 0..10_000 {
        sent += link.poll(millisecond * MILLISECOND_NS).len();
    }
    assert_eq!(sent, 9);
    assert_eq!(link.due_ns(), 10 * SECOND_NS);
}

#[test]
fn an_end_that_does_not_acknowledge_fills_the_backlog_and_no_more() {
    let mut link = Link::new(1, 2, 0);
    let message = vec![0; MESSAGE_MAX];
    for _ in 0..BACKLOG_MAX / MESSAGE_MAX {
        link.send(&message).unwrap();
    }
    assert_eq!(link.send(b"more"), Err(LinkError::Full(256)));
    assert_eq!(
        Link::new(1, 2, 0).send(&vec![0; MESSAGE_MAX + 1]),
        Err(LinkError::TooLong(MESSAGE_MAX + 1))
    );
    assert_eq!(link.poll(1).len() as u64, WINDOW, "and sends a window of it");
}

#[test]
fn the_offset_of_a_clock_is_right_within_half_a_round_trip() {
    for seed in 0..100 {
        let mut rng = Rng::new(seed);
        // The other clock began at another time.
        let ahead_ns = rng.below(20 * SECOND_NS) as i128 - i128::from(10 * SECOND_NS);
        let peer_of = |now_ns: u64| (i128::from(now_ns) + ahead_ns) as u64;
        let (mut one, mut other) = (Link::new(1, 2, 0), Link::new(2, 1, 0));
        one.measure_clock(0);
        let mut now_ns = 100 * SECOND_NS;
        while one.clock().is_none() {
            now_ns += 10 * MILLISECOND_NS;
            for packet in one.poll(now_ns) {
                let there_ns = now_ns + rng.below(MILLISECOND_NS);
                other.receive(packet, peer_of(there_ns));
                let answers = other.poll(peer_of(there_ns));
                let back_ns = there_ns + rng.below(MILLISECOND_NS);
                // One of three is lost.
                for packet in answers.into_iter().filter(|_| rng.below(3) > 0) {
                    one.receive(packet, back_ns);
                }
            }
            assert!(now_ns < 200 * SECOND_NS, "seed {seed}");
        }
        let clock = one.clock().unwrap();
        let wrong_ns = (clock.ahead_ns - ahead_ns).unsigned_abs() as u64;
        assert!(wrong_ns <= clock.round_trip_ns / 2 + 1, "seed {seed}: {wrong_ns} {clock:?}");
        assert_eq!(clock.own_ns(clock.peer_ns(now_ns)), now_ns);
    }
}
