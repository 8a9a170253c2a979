use super::*;
use crate::InProcess;

const SOON: Duration = Duration::from_secs(5);

fn numbers(subscription: &dyn Subscription, count: usize) -> Vec<u64> {
    let next = |_| subscription.next(SOON).unwrap().expect("a message");
    let payloads = (0..count).map(next).map(|message| message.payload);
    payloads.map(|bytes| u64::from_le_bytes(bytes[..].try_into().unwrap())).collect()
}

fn publish(bus: &dyn Bus, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| bus.publish("a", &number.to_le_bytes()).unwrap());
}

/// Publishes 0 to 1,999 through a faulty bus, and returns what arrives.
fn through(faults: Faults, seed: u64) -> (Vec<u64>, Injected) {
    let bus = Faulty::new(InProcess::new(), faults, seed);
    let subscription = bus.subscribe("a").unwrap();
    publish(&bus, 0..2000);
    let injected = bus.injected();
    let expected = 2000 - injected.dropped + injected.duplicated;
    let arrived = numbers(&*subscription, usize::try_from(expected).unwrap());
    assert_eq!(subscription.next(Duration::from_millis(50)), Ok(None), "more than expected");
    (arrived, injected)
}

#[test]
fn what_is_lost_or_repeated_is_counted_and_the_same_for_the_same_seed() {
    let faults = Faults { drop: 0.2, duplicate: 0.1, ..Faults::default() };
    let (first, injected) = through(faults, 7);
    assert!((300..500).contains(&injected.dropped), "{injected:?}");
    assert!((100..240).contains(&injected.duplicated), "{injected:?}");
    assert!(first.is_sorted(), "without reordering or delay, the order is kept");
    assert_eq!(through(faults, 7), (first.clone(), injected));
    assert_ne!(through(faults, 8).0, first);
}

#[test]
fn delays_alone_keep_the_order_and_reordering_loses_nothing() {
    let delay_max = Duration::from_millis(3);
    let (arrived, _) = through(Faults { delay_max, ..Faults::default() }, 1);
    assert_eq!(arrived, (0..2000).collect::<Vec<_>>());
    let (mut arrived, injected) = through(Faults { reorder: 0.1, ..Faults::default() }, 1);
    assert!(injected.reordered > 100 && !arrived.is_sorted(), "{injected:?}");
    arrived.sort_unstable();
    assert_eq!(arrived, (0..2000).collect::<Vec<_>>());
}

#[test]
fn a_cut_is_known_and_loses_both_directions_until_it_is_mended() {
    let other = InProcess::new();
    let bus = Faulty::new(other.clone(), Faults::default(), 1);
    let (here, there) = (bus.subscribe("a").unwrap(), other.subscribe("a").unwrap());
    publish(&other, 0..1);
    bus.partition().cut();
    assert!(!bus.state().is_connected());
    assert_eq!(bus.publish("a", b""), Err(BusError::Disconnected));
    assert_eq!(bus.flush(SOON), Err(BusError::Disconnected));
    assert!(bus.subscribe("b").is_err());
    publish(&other, 1..3);
    assert_eq!(numbers(&*here, 1), [0], "what had arrived is still to be read");
    assert_eq!(here.next(Duration::from_millis(20)), Ok(None));
    bus.partition().heal();
    assert!(bus.state().is_connected());
    publish(&bus, 3..4);
    assert_eq!(numbers(&*here, 1), [3]);
    assert_eq!(numbers(&*there, 4), [0, 1, 2, 3]);
    assert_eq!(bus.injected().partitioned, 2);
}

#[test]
fn a_silent_link_takes_messages_and_loses_them() {
    let other = InProcess::new();
    let bus = Faulty::new(other.clone(), Faults::default(), 1);
    let there = other.subscribe("a").unwrap();
    bus.partition().silence();
    publish(&bus, 0..5);
    assert!(bus.state().is_connected());
    let within = Duration::from_millis(30);
    assert_eq!(bus.flush(within), Err(BusError::NotInTime { within }));
    bus.partition().heal();
    publish(&bus, 5..6);
    assert_eq!(numbers(&*there, 1), [5]);
    assert_eq!(bus.injected().partitioned, 5);
}
