//! The claims of every bus on a real server, and a server that goes away.

use super::{SOON, Server, connect};
use crate::process::{Place, until};
use plimsoll_bus::{Bus, BusError, Faults, Faulty, Nats, Subscription, conformance};
use std::time::Duration;

#[test]
fn a_real_server_fulfils_the_claims_of_every_bus() {
    let place = Place::new();
    let server = Server::start(&place, "");
    conformance::check(&|bounds| {
        let mut options = server.options();
        options.bounds = bounds;
        Box::new(connect(&options))
    });
}

#[test]
fn a_faulty_link_to_a_real_server_loses_what_it_counts() {
    let place = Place::new();
    let server = Server::start(&place, "");
    let faults = Faults { drop: 0.1, duplicate: 0.1, reorder: 0.1, ..Faults::default() };
    let bus = Faulty::new(connect(&server.options()), faults, 3);
    let subscription = bus.subscribe("a").unwrap();
    for n in 0..2000u64 {
        bus.publish("a", &n.to_le_bytes()).unwrap();
    }
    let injected = bus.injected();
    let expected = 2000 - injected.dropped + injected.duplicated;
    (0..expected).for_each(|_| assert!(subscription.next(SOON).unwrap().is_some(), "{injected:?}"));
    assert_eq!(subscription.next(Duration::from_millis(100)), Ok(None));
    assert!(injected.dropped > 100 && injected.duplicated > 100, "{injected:?}");
}

/// Publishes until a message arrives.
fn until_it_arrives(bus: &Nats, subscription: &dyn Subscription, subject: &str) {
    until("a message that arrives", SOON, || {
        bus.publish(subject, b"x").is_ok()
            && subscription.next(Duration::from_millis(200)).unwrap().is_some()
    });
}

#[test]
fn a_server_that_was_killed_is_noticed_and_found_again_on_its_port() {
    let place = Place::new();
    let mut server = Server::start(&place, "");
    let port = server.port;
    let bus = connect(&server.options());
    let subscription = bus.subscribe("a.*").unwrap();
    for round in 0..3 {
        until_it_arrives(&bus, &*subscription, "a.b");
        server.kill();
        until("the loss of the link", SOON, || !bus.state().is_connected());
        assert_eq!(bus.publish("a.b", b""), Err(BusError::Disconnected), "round {round}");
        assert_eq!(bus.flush(SOON), Err(BusError::Disconnected));
        assert_eq!(bus.subscribe("b").map(drop), Err(BusError::Disconnected));
        assert_eq!(subscription.next(Duration::ZERO), Ok(None));
        server = Server::start_on(&place, port, "").expect("the port is free again");
        until("the link", SOON, || bus.state().is_connected());
        bus.flush(SOON).unwrap();
    }
    until_it_arrives(&bus, &*subscription, "a.c");
    drop(bus);
    assert_eq!(subscription.next(SOON), Err(BusError::Closed));
}

#[test]
fn a_server_that_stands_still_makes_no_call_wait_for_long() {
    let place = Place::new();
    let server = Server::start(&place, "");
    let bus = connect(&server.options());
    server.process.signal(rustix::process::Signal::STOP);
    let within = Duration::from_millis(50);
    // The signal takes effect a little later.
    let mut silent = Ok(());
    until("silence", SOON, || {
        silent = bus.flush(within);
        silent.is_err()
    });
    // The socket takes some, then the queue, and then calls end by their limit or by the loss of the link.
    let payload = vec![0; plimsoll_bus::PAYLOAD_MAX];
    let refused = (0..2000).find_map(|_| bus.publish("a", &payload).err());
    let has_noticed = bus.state();
    server.process.signal(rustix::process::Signal::CONT);
    assert_eq!(silent, Err(BusError::NotInTime { within }));
    assert!(
        matches!(refused, Some(BusError::NotInTime { .. } | BusError::Disconnected)),
        "512 MB were taken for a server that stands still: {refused:?}, {has_noticed:?}"
    );
    until("an answer again", SOON, || bus.flush(SOON).is_ok());
}

#[test]
fn a_subject_that_the_server_forbids_is_named() {
    let place = Place::new();
    let server = Server::start(
        &place,
        r#"authorization { users: [ { user: a, password: b, permissions: {
            publish: { deny: "no.>" }, subscribe: { deny: "no.>" } } } ] }"#,
    );
    let mut options = server.options();
    options.credentials =
        plimsoll_bus::Credentials::User { name: "a".to_owned(), password: "b".to_owned() };
    let bus = connect(&options);
    let forbidden = Err(BusError::Forbidden { subject: "no.a".to_owned() });
    assert_eq!(bus.subscribe("no.a").map(drop), forbidden);
    // The server says so only after the first message.
    bus.publish("no.b", b"").unwrap();
    bus.flush(SOON).unwrap();
    let forbidden = Err(BusError::Forbidden { subject: "no.b".to_owned() });
    assert_eq!(bus.publish("no.b", b""), forbidden);
    bus.publish("yes", b"").unwrap();
}
