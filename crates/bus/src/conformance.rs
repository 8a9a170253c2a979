//! Claims that every bus must fulfil while nothing fails. They panic if it does not: they are for tests.

use crate::bus::{Bus, BusError, PAYLOAD_MAX, Subscription};
use crate::queue::Bounds;
use plimsoll_core::clock::now_ns;
use std::time::Duration;

/// Makes another connection to the bus that is tested, with these limits.
pub type Connect<'a> = &'a (dyn Fn(Bounds) -> Box<dyn Bus> + Sync);

/// Longest wait for something that must happen.
const SOON: Duration = Duration::from_secs(20);
/// Wait for something that must not happen.
const A_WHILE: Duration = Duration::from_millis(100);

/// Checks all claims.
pub fn check(connect: Connect<'_>) {
    keeps_the_order_of_one_publisher(connect);
    keeps_the_order_of_each_thread(connect);
    understands_wildcards(connect);
    accepts_the_largest_payload_and_none_above(connect);
    rejects_invalid_subjects(connect);
    serves_many_subscribers(connect);
    delivers_to_the_own_connection_too(connect);
    counts_what_a_full_queue_loses(connect);
    ends_a_subscription_that_is_dropped(connect);
    flushes_without_anyone_who_receives(connect);
}

fn received(subscription: &dyn Subscription) -> (String, Vec<u8>) {
    let message = subscription.next(SOON).expect("a bus that is open").expect("a message in time");
    (message.subject, message.payload.to_vec())
}

fn expect_nothing(subscription: &dyn Subscription) {
    assert_eq!(subscription.next(A_WHILE), Ok(None), "a message that must not come");
    assert_eq!(subscription.next(Duration::ZERO), Ok(None));
}

fn number(payload: &[u8]) -> u64 {
    u64::from_le_bytes(payload.try_into().expect("eight bytes"))
}

fn keeps_the_order_of_one_publisher(connect: Connect<'_>) {
    let (sender, receiver) = (connect(Bounds::default()), connect(Bounds::default()));
    let subscription = receiver.subscribe("conformance.order").expect("a subscription");
    for n in 0..20_000u64 {
        sender.publish("conformance.order", &n.to_le_bytes()).expect("a message accepted");
    }
    for n in 0..20_000 {
        let (subject, payload) = received(&*subscription);
        assert_eq!((subject.as_str(), number(&payload)), ("conformance.order", n));
    }
    assert_eq!(subscription.lost(), 0);
    expect_nothing(&*subscription);
}

fn keeps_the_order_of_each_thread(connect: Connect<'_>) {
    let (sender, receiver) = (connect(Bounds::default()), connect(Bounds::default()));
    let subscription = receiver.subscribe("conformance.threads.*").expect("a subscription");
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let sender = &sender;
            scope.spawn(move || {
                let subject = format!("conformance.threads.{thread}");
                for n in 0..500u64 {
                    sender.publish(&subject, &n.to_le_bytes()).expect("a message accepted");
                }
            });
        }
    });
    let mut next = [0; 8];
    for _ in 0..8 * 500 {
        let (subject, payload) = received(&*subscription);
        let thread: usize =
            subject.rsplit('.').next().and_then(|t| t.parse().ok()).expect("a thread");
        assert_eq!(number(&payload), next[thread], "{subject}");
        next[thread] += 1;
    }
}

fn understands_wildcards(connect: Connect<'_>) {
    let bus = connect(Bounds::default());
    let subscribed = |subject| bus.subscribe(subject).expect("a subscription");
    let one = subscribed("conformance.wild.*.x");
    let rest = subscribed("conformance.wild.>");
    let exact = subscribed("conformance.wild.a.x");
    for subject in
        ["conformance.wild.a.x", "conformance.wild.b.y", "conformance.wild", "conformance.wild.c.x"]
    {
        bus.publish(subject, b"").expect("a message accepted");
    }
    let subjects = |subscription: &dyn Subscription, count| -> Vec<String> {
        (0..count).map(|_| received(subscription).0).collect()
    };
    assert_eq!(subjects(&*one, 2), ["conformance.wild.a.x", "conformance.wild.c.x"]);
    let expected = ["conformance.wild.a.x", "conformance.wild.b.y", "conformance.wild.c.x"];
    assert_eq!(subjects(&*rest, 3), expected);
    assert_eq!(subjects(&*exact, 1), ["conformance.wild.a.x"]);
    [one, rest, exact].iter().for_each(|subscription| expect_nothing(&**subscription));
}

fn accepts_the_largest_payload_and_none_above(connect: Connect<'_>) {
    let bus = connect(Bounds::default());
    let subscription = bus.subscribe("conformance.large").expect("a subscription");
    let bytes: Vec<u8> = (0..=PAYLOAD_MAX).map(|n| n as u8).collect();
    let refused = bus.publish("conformance.large", &bytes);
    assert_eq!(refused, Err(BusError::TooLarge { bytes: PAYLOAD_MAX + 1 }));
    bus.publish("conformance.large", &bytes[1..]).expect("the largest payload");
    bus.publish("conformance.large", b"").expect("an empty payload");
    assert!(received(&*subscription).1 == bytes[1..], "other bytes arrived");
    assert_eq!(received(&*subscription).1, b"");
}

fn rejects_invalid_subjects(connect: Connect<'_>) {
    let bus = connect(Bounds::default());
    for subject in ["", "a..b", "a b", "a\r\nPING", "a.*", ">"] {
        let refused = bus.publish(subject, b"");
        assert!(matches!(refused, Err(BusError::Subject { .. })), "{subject:?}: {refused:?}");
    }
    for subject in ["", "a..b", "a b", "a.>.b"] {
        let refused = bus.subscribe(subject).map(drop);
        assert!(matches!(refused, Err(BusError::Subject { .. })), "{subject:?}: {refused:?}");
    }
    assert!(bus.state().is_connected());
    bus.flush(SOON).expect("a bus that still answers");
}

fn serves_many_subscribers(connect: Connect<'_>) {
    let (sender, receiver) = (connect(Bounds::default()), connect(Bounds::default()));
    let subscribe = |_| receiver.subscribe("conformance.many").expect("a subscription");
    let subscriptions: Vec<_> = (0..100).map(subscribe).collect();
    for n in 0..50u64 {
        sender.publish("conformance.many", &n.to_le_bytes()).expect("a message accepted");
    }
    for subscription in &subscriptions {
        (0..50).for_each(|n| assert_eq!(number(&received(&**subscription).1), n));
    }
}

fn delivers_to_the_own_connection_too(connect: Connect<'_>) {
    let bus = connect(Bounds::default());
    let subscription = bus.subscribe("conformance.own").expect("a subscription");
    bus.publish("conformance.own", b"1").expect("a message accepted");
    assert_eq!(received(&*subscription).1, b"1");
    expect_nothing(&*subscription);
}

fn counts_what_a_full_queue_loses(connect: Connect<'_>) {
    let sender = connect(Bounds::default());
    let receiver = connect(Bounds { messages: 10, ..Bounds::default() });
    let full = receiver.subscribe("conformance.full").expect("a subscription");
    let end = receiver.subscribe("conformance.end").expect("a subscription");
    for n in 0..1000u64 {
        sender.publish("conformance.full", &n.to_le_bytes()).expect("a message accepted");
    }
    sender.publish("conformance.end", b"").expect("a message accepted");
    received(&*end);
    let deadline_ns = now_ns() + SOON.as_nanos() as u64;
    while full.lost() < 990 && now_ns() < deadline_ns {
        std::thread::sleep(Duration::from_millis(5));
    }
    assert_eq!((full.lost(), end.lost()), (990, 0));
    (0..10).for_each(|n| assert_eq!(number(&received(&*full).1), n));
    expect_nothing(&*full);
    sender.publish("conformance.full", &7u64.to_le_bytes()).expect("a message accepted");
    assert_eq!(number(&received(&*full).1), 7, "there is room again");
}

fn ends_a_subscription_that_is_dropped(connect: Connect<'_>) {
    let bus = connect(Bounds::default());
    let kept = bus.subscribe("conformance.dropped").expect("a subscription");
    for n in 0..20u64 {
        drop(bus.subscribe("conformance.dropped").expect("a subscription"));
        bus.publish("conformance.dropped", &n.to_le_bytes()).expect("a message accepted");
    }
    (0..20).for_each(|n| assert_eq!(number(&received(&*kept).1), n));
}

fn flushes_without_anyone_who_receives(connect: Connect<'_>) {
    let bus = connect(Bounds::default());
    bus.publish("conformance.alone", b"1").expect("a message accepted");
    bus.flush(SOON).expect("an answer");
    let late = bus.subscribe("conformance.alone").expect("a subscription");
    expect_nothing(&*late);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Faults, Faulty, InProcess};

    /// Connections of one process, each with bounds of its own.
    fn connect(bus: &InProcess, bounds: Bounds) -> InProcess {
        bus.connection(bounds)
    }

    #[test]
    fn the_bus_of_one_process_fulfils_all_claims() {
        let bus = InProcess::new();
        check(&|bounds| Box::new(connect(&bus, bounds)));
    }

    #[test]
    fn a_faulty_bus_without_faults_fulfils_all_claims() {
        let bus = InProcess::new();
        check(&|bounds| Box::new(Faulty::new(connect(&bus, bounds), Faults::default(), 1)));
    }
}
