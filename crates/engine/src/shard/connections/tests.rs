use super::*;
use crate::sim::closed_plan;
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::recorder::Times;
use plimsoll_core::schedule::{Arrivals, LoadModel};
use plimsoll_wire::http1::Http1;
use plimsoll_wire::{Event, Submission};
use std::sync::Arc;

/// Connections of an open load, `warm` of them from the beginning.
fn shared(connections: u32, warm: u32) -> Connections<Http1> {
    let mut plan = closed_plan(connections, SECOND_NS);
    plan.model = LoadModel::Open { rate_per_s: 1.0, arrivals: Arrivals::Uniform };
    plan.warm_connections = Some(warm);
    let mut all = Connections::new(&plan, 0, false);
    (0..warm).for_each(|key| all.give_back(key));
    all
}

fn open(all: &mut Connections<Http1>, key: u32) {
    let codec = Http1::default().open(&mut Vec::new());
    all.get_mut(key).opened(codec, 0);
}

/// Opens all that are idle.
fn open_all(all: &mut Connections<Http1>) {
    all.forget_idle();
    (0..all.in_play()).for_each(|key| open(all, key));
    (0..all.in_play()).for_each(|key| all.give_back(key));
}

/// A request on the connection that it is given.
fn begin(all: &mut Connections<Http1>, flights: &mut Flights<Http1>) -> (u32, u32) {
    let http = Http1::default();
    assert!(all.has_idle(&http));
    let (key, tag) = (all.pick(0).unwrap(), flights.take_slot());
    flights.get_mut(tag).begin(Submission::default(), 0, (key, 0), Times::default(), true);
    if all.get(key).is_open() {
        let codec = all.get_mut(key).codec_mut().unwrap();
        http.submit(codec, &flights.get(tag).request, tag, &mut Vec::new());
        flights.get_mut(tag).place = all.get_mut(key).submitted(tag).0;
    } else {
        all.get_mut(key).wait(tag);
    }
    (key, tag)
}

fn end(all: &mut Connections<Http1>, flights: &mut Flights<Http1>, (key, tag): (u32, u32)) {
    let codec = all.get_mut(key).codec_mut().unwrap();
    let reply = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";
    let event = Http1::default().receive(codec, reply, &mut Vec::new());
    assert!(matches!(event, Ok(Event::Reply { reusable: true, .. })));
    let place = flights.get(tag).place;
    assert_eq!(all.get_mut(key).take_off(place, tag), None);
    flights.release(tag);
    all.give_back(key);
}

#[test]
fn an_open_connection_is_picked_before_one_that_must_be_opened() {
    let (mut all, mut flights) = (shared(3, 3), Flights::new());
    let http = Http1::default();
    all.audit(&flights, &http);
    assert_eq!(all.pick(0), Some(0));
    open(&mut all, 0);
    all.give_back(0);
    all.audit(&flights, &http);
    let first = begin(&mut all, &mut flights);
    let second = begin(&mut all, &mut flights);
    assert_eq!((first.0, second.0), (0, 1), "the open one, then one that is to be opened");
    all.get_mut(1).dial(&[([127, 0, 0, 1], 80).into()], 0).unwrap();
    all.audit(&flights, &http);
    end(&mut all, &mut flights, first);
    all.audit(&flights, &http);
    assert_eq!((all.pick(0), all.pick(0), all.pick(0)), (Some(0), Some(2), None));
}

#[test]
fn a_client_has_its_own_connection_where_there_is_one_for_each() {
    let mut all = Connections::<Http1>::new(&closed_plan(3, SECOND_NS), 3, false);
    assert!(all.is_dedicated() && all.has_idle(&Http1::default()));
    assert_eq!((all.pick(2), all.pick(0)), (Some(2), Some(0)));
    all.get_mut(2).wait(7);
    assert_eq!(all.pick(2), None, "it is in use");
    let behind_slots = Connections::<Http1>::new(&closed_plan(3, SECOND_NS), 3, true);
    assert!(!behind_slots.is_dedicated());
}

#[test]
fn one_that_its_peer_closed_while_idle_moves_behind_the_open_ones() {
    let (mut all, flights) = (shared(2, 2), Flights::new());
    let http = Http1::default();
    open_all(&mut all);
    assert!(all.get_mut(0).lose(1).under_way.is_empty());
    all.give_back(0);
    all.audit(&flights, &http);
    assert!(all.has_idle(&http));
    all.audit(&flights, &http);
    assert_eq!((all.pick(0), all.pick(0)), (Some(1), Some(0)));
}

#[test]
fn a_request_that_was_lost_goes_again_on_its_own_connection() {
    let (mut all, http) = (shared(2, 2), Http1::default());
    open_all(&mut all);
    all.pick(0);
    all.get_mut(0).lose(1);
    all.give_back(0);
    assert_eq!(all.pick_again(0, (0, None), &http), Some(0), "closed, and to be opened anew");
    all.get_mut(0).begin_handshake();
    assert_eq!(all.pick_again(0, (0, None), &http), None, "it is being opened");
    all.get_mut(0).rest();
    assert_eq!(all.pick_again(0, (0, None), &http), Some(1), "it pauses: another one");
    assert_eq!(all.pick_again(0, (NOWHERE, None), &http), None, "none is left");
}

/// A request of HTTP names its host: another target would answer for a host that is not its own.
#[test]
fn a_request_that_names_its_target_goes_again_to_no_other() {
    let mut plan = closed_plan(4, SECOND_NS);
    plan.model = LoadModel::Open { rate_per_s: 1.0, arrivals: Arrivals::Uniform };
    plan.targets = Arc::new([&plan.targets[..], &plan.targets[..]].concat());
    let (mut all, http) = (Connections::<Http1>::new(&plan, 0, false), Http1::default());
    (0..4).for_each(|key| all.give_back(key));
    open_all(&mut all);
    let of_second = |all: &mut Connections<Http1>| all.pick_again(0, (NOWHERE, Some(1)), &http);
    assert_eq!([0, 1, 2, 3].map(|key| all.get(key).target()), [0, 1, 0, 1]);
    assert_eq!(
        (of_second(&mut all), of_second(&mut all), of_second(&mut all)),
        (Some(1), Some(3), None)
    );
    // A closed one is opened for it.
    all.get_mut(3).lose(1);
    all.give_back(3);
    assert_eq!((of_second(&mut all), of_second(&mut all)), (Some(3), None));
    assert_eq!((all.pick(0), all.pick(0), all.pick(0)), (Some(0), Some(2), None));
}

#[test]
fn connections_come_into_play_when_they_are_needed() {
    let (mut all, flights) = (shared(5, 2), Flights::<Http1>::new());
    assert!(all.may_grow() && all.in_play() == 2);
    assert_eq!((all.missing(0, 1, 0), all.missing(0, 20, 0)), (8, 1), "closed ones are of no use");
    assert_eq!(all.take_to_open(), Some(0), "what its peer closed comes first");
    assert_eq!((all.take_to_open(), all.take_to_open()), (Some(1), Some(2)));
    (0..3).for_each(|key| open(&mut all, key));
    (0..3).for_each(|key| all.give_back(key));
    all.audit(&flights, &Http1::default());
    assert_eq!((all.in_play(), all.missing(0, 1, 0)), (3, 5));
}

/// Otherwise a moment in which all are closed would open all of them at once.
#[test]
fn a_connection_that_came_when_it_was_needed_is_not_opened_again_by_the_next_request() {
    let (mut all, mut flights, http) = (shared(3, 2), Flights::new(), Http1::default());
    open_all(&mut all);
    assert_eq!((all.take_to_open(), all.take_to_open()), (Some(2), None));
    open(&mut all, 2);
    all.give_back(2);
    let begun: Vec<_> = (0..3).map(|_| begin(&mut all, &mut flights)).collect();
    begun.into_iter().for_each(|request| end(&mut all, &mut flights, request));
    all.closes(2, 1);
    assert!(all.get_mut(2).lose(1).under_way.is_empty());
    assert_eq!((all.pick(0), all.pick(0), all.has_idle(&http)), (Some(0), Some(1), false));
    (0..2).for_each(|key| all.put_back(key));
    all.audit(&flights, &http);
    assert!(all.may_grow() && all.missing(0, 1, 0) == 6);
    assert_eq!((all.take_to_open(), all.may_grow()), (Some(2), false), "it is no longer worn");
}

#[test]
#[should_panic(expected = "is forgotten")]
fn an_audit_finds_a_connection_that_nobody_gave_back() {
    let mut all = shared(2, 2);
    all.pick(0);
    all.audit(&Flights::new(), &Http1::default());
}

#[test]
#[should_panic(expected = "in one place each")]
fn an_audit_finds_a_request_that_is_nowhere() {
    let (mut all, mut flights) = (shared(2, 2), Flights::new());
    open(&mut all, 0);
    let (key, tag) = begin(&mut all, &mut flights);
    all.get_mut(key).take_off(0, tag);
    all.give_back(key);
    all.audit(&flights, &Http1::default());
}
