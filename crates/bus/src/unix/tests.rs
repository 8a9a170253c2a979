use super::*;
use crate::conformance::check;
use crate::{Faults, Faulty, Message};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use tempfile::TempDir;

/// Longest wait for something that must happen.
const SOON: Duration = Duration::from_secs(20);

struct Place {
    hub: Hub,
    folder: TempDir,
}

impl Place {
    fn new(bounds: Bounds) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let hub = Hub::listen(&folder.path().join("bus"), bounds).unwrap();
        Self { hub, folder }
    }

    fn connect(&self, bounds: Bounds) -> UnixBus {
        UnixBus::connect(&self.folder.path().join("bus"), bounds, Duration::ZERO).unwrap()
    }
}

fn until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline_ns = now_ns() + SOON.as_nanos() as u64;
    while !is_so() {
        assert!(now_ns() < deadline_ns, "{what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[test]
fn the_bus_over_a_socket_fulfils_all_claims() {
    let place = Place::new(Bounds::default());
    check(&|bounds| Box::new(place.connect(bounds)));
}

#[test]
fn a_faulty_bus_over_a_socket_without_faults_fulfils_all_claims() {
    let place = Place::new(Bounds::default());
    check(&|bounds| Box::new(Faulty::new(place.connect(bounds), Faults::default(), 1)));
}

#[test]
fn the_hub_itself_and_a_client_fulfil_all_claims_together() {
    let place = Place::new(Bounds::default());
    let count = AtomicU64::new(0);
    check(&|bounds| match count.fetch_add(1, Ordering::Relaxed) % 2 {
        0 => Box::new(place.hub.connection().connection(bounds)),
        _ => Box::new(place.connect(bounds)),
    });
}

#[test]
fn only_the_user_can_open_the_socket() {
    let place = Place::new(Bounds::default());
    let metadata = std::fs::metadata(place.folder.path().join("bus")).unwrap();
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[test]
fn the_end_of_the_hub_is_found_at_once_and_nothing_is_accepted_any_more() {
    let place = Place::new(Bounds::default());
    let client = place.connect(Bounds::default());
    let subscription = client.subscribe("a.*").unwrap();
    let Place { hub, folder } = place;
    hub.connection().publish("a.b", b"last").unwrap();
    drop(hub);
    // What was published before the end is still there.
    let last = subscription.next(SOON).unwrap().unwrap();
    assert_eq!(&last.payload[..], b"last");
    assert_eq!(subscription.next(SOON), Err(BusError::Closed));
    until("the client knows", || !client.state().is_connected());
    assert_eq!(client.publish("a.b", b""), Err(BusError::Disconnected));
    assert_eq!(client.flush(SOON), Err(BusError::Disconnected));
    assert_eq!(client.subscribe("a.c").map(drop), Err(BusError::Disconnected));
    let path = folder.path().join("bus");
    let again = UnixBus::connect(&path, Bounds::default(), Duration::ZERO);
    assert!(is_absence(&again.map(drop).unwrap_err()));
}

#[test]
fn a_client_that_is_gone_leaves_no_subscription_behind() {
    let place = Place::new(Bounds::default());
    let client = place.connect(Bounds::default());
    let _subscription = client.subscribe("a").unwrap();
    let kept = place.hub.connection().subscribe("a").unwrap();
    // As a process that is killed leaves it.
    client.stream.shutdown(Shutdown::Both).unwrap();
    until("the hub knows", || place.hub.peers() == 0);
    place.hub.connection().publish("a", b"1").unwrap();
    assert_eq!(&kept.next(SOON).unwrap().unwrap().payload[..], b"1");
}

/// A client that reads nothing: the hub keeps a bounded number of bytes for it, and serves the others as if it were not there.
#[test]
fn a_client_that_does_not_read_loses_its_own_messages_only() {
    let place = Place::new(Bounds { bytes: 1024 * 1024, ..Bounds::default() });
    let mut frozen = UnixStream::connect(place.folder.path().join("bus")).unwrap();
    let subscribe = Frame::Subscribe { id: 5, subject: "a".to_owned() }.encode();
    let flush = Frame::Flush { number: 1 }.encode();
    frozen.write_all(&[subscribe, flush].concat()).unwrap();
    assert_eq!(Frame::read(&mut frozen).unwrap(), Some(Frame::Flushed { number: 1 }));
    let (sender, reader) = (place.connect(Bounds::default()), place.connect(Bounds::default()));
    let subscription = reader.subscribe("a").unwrap();
    let payload = vec![7; 64 * 1024];
    let sent = 200u64;
    for _ in 0..sent {
        sender.publish("a", &payload).unwrap();
        let message = subscription.next(SOON).unwrap().unwrap();
        assert_eq!(message.payload.len(), payload.len());
    }
    assert_eq!(subscription.lost(), 0);
    // When it reads again, it learns how many it lost, and each message is received or counted.
    frozen.write_all(&Frame::Flush { number: 2 }.encode()).unwrap();
    let (mut received, mut lost) = (0, 0);
    while received + lost < sent {
        match Frame::read(&mut frozen).unwrap().unwrap() {
            Frame::Deliver { id: 5, message: Message { payload: own, .. } } => {
                assert!(own == payload);
                received += 1;
            }
            Frame::Lost { id: 5, messages } => lost += messages,
            Frame::Flushed { number: 2 } => {}
            other => panic!("{other:?}"),
        }
    }
    assert!(lost > sent / 2 && received > 0, "{received} received, {lost} lost");
}

#[test]
fn a_hub_that_does_not_read_is_waited_for_no_longer_than_promised() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
    let client = UnixBus::connect(&path, Bounds::default(), Duration::ZERO).unwrap();
    let (_kept, _) = listener.accept().unwrap();
    let payload = vec![0; 256 * 1024];
    let refused = (0..1000).find_map(|_| client.publish("a", &payload).err());
    assert_eq!(refused, Some(BusError::NotInTime { within: PUBLISH_WAIT_MAX }));
    assert!(client.state().is_connected());
    let within = Duration::from_millis(10);
    let flushed = client.flush(within).unwrap_err();
    assert!(matches!(flushed, BusError::NotInTime { .. }), "{flushed:?}");
    // Its end waits for no one either.
    drop(client);
}

#[test]
fn bytes_that_are_no_frame_end_their_connection_and_no_other() {
    let place = Place::new(Bounds::default());
    let client = place.connect(Bounds::default());
    let subscription = client.subscribe("a").unwrap();
    let invalid = Frame::Publish(Message { subject: "a b".to_owned(), payload: "".into() });
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), invalid.encode(), vec![1, 0, 0, 0, 99]] {
        let mut stream = UnixStream::connect(place.folder.path().join("bus")).unwrap();
        stream.write_all(&bytes).unwrap();
        let mut rest = Vec::new();
        // A reset is an end too: the hub had not read everything.
        let _ = stream.read_to_end(&mut rest);
        assert_eq!(rest, b"");
    }
    client.publish("a", b"1").unwrap();
    assert_eq!(&subscription.next(SOON).unwrap().unwrap().payload[..], b"1");
}

#[test]
fn a_hub_that_comes_late_is_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("bus");
    let client = std::thread::spawn({
        let path = path.clone();
        move || UnixBus::connect(&path, Bounds::default(), SOON).map(drop)
    });
    std::thread::sleep(Duration::from_millis(50));
    let _hub = Hub::listen(&path, Bounds::default()).unwrap();
    client.join().unwrap().unwrap();
}
