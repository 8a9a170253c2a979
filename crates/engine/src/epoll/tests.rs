//! Over real sockets.

use super::*;
use plimsoll_core::clock::SECOND_NS;
use std::io::{Read, Write};
use std::net::TcpListener;

fn until<T>(net: &mut EpollNet, mut wanted: impl FnMut(u32, Completion, &[u8]) -> Option<T>) -> T {
    let mut buffer = [0u8; 4096];
    let end_ns = now_ns() + 5 * SECOND_NS;
    while now_ns() < end_ns {
        net.wait(now_ns() + SECOND_NS, WaitMode::Sleep);
        while let Some((key, completion)) = net.next(&mut buffer) {
            if let Some(found) = wanted(key, completion, &buffer) {
                return found;
            }
        }
    }
    panic!("nothing came within 5 s");
}

#[test]
fn a_round_trip_over_a_real_socket() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let peer = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut got = [0u8; 4];
        stream.read_exact(&mut got).unwrap();
        stream.write_all(b"pong").unwrap();
        got
    });
    let mut net = EpollNet::new().unwrap();
    net.connect(3, address).unwrap();
    until(&mut net, |key, c, _| (key == 3 && c == Completion::Connected).then_some(()));
    assert_eq!(net.send(3, b"ping").unwrap(), 4);
    let answer = until(&mut net, |_, c, buffer| match c {
        Completion::Received(n) => Some(buffer[..n].to_vec()),
        _ => None,
    });
    assert_eq!(answer, b"pong");
    assert_eq!(&peer.join().unwrap(), b"ping");
    let trip = net.round_trip(3).unwrap();
    assert!(trip.min_us > 0 && trip.min_us < 1_000_000, "{trip:?}");
    until(&mut net, |_, c, _| (c == Completion::Closed).then_some(()));
}

/// A network whose only connection has received often enough to be waited for alone, and its peer.
fn alone() -> (EpollNet, std::net::TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut net = EpollNet::new().unwrap();
    net.connect(0, listener.local_addr().unwrap()).unwrap();
    let (mut peer, _) = listener.accept().unwrap();
    peer.set_nodelay(true).unwrap();
    until(&mut net, |_, c, _| (c == Completion::Connected).then_some(()));
    for _ in 0..LONE_AFTER {
        peer.write_all(b"x").unwrap();
        until(&mut net, |_, c, _| (c == Completion::Received(1)).then_some(()));
    }
    (net, peer)
}

fn is_waited_for_alone(net: &EpollNet) -> bool {
    net.slots[0].socket.as_ref().is_some_and(|socket| socket.waits)
}

#[test]
fn an_only_connection_receives_every_byte_in_order() {
    let (mut net, mut peer) = alone();
    let sent: Vec<u8> = (0..3_000_000u32).map(|i| (i.wrapping_mul(7919) >> 8) as u8).collect();
    let expected = sent.clone();
    let writer = std::thread::spawn(move || {
        for piece in sent.chunks(100_003) {
            peer.write_all(piece).unwrap();
        }
        drop(peer);
    });
    let mut got = Vec::new();
    until(&mut net, |key, c, buffer| {
        assert_eq!(key, 0);
        match c {
            Completion::Received(n) => got.extend_from_slice(&buffer[..n]),
            Completion::Closed => return Some(()),
            other => panic!("{other:?}"),
        }
        None
    });
    writer.join().unwrap();
    assert!(is_waited_for_alone(&net));
    assert!(got == expected, "{} of {} bytes", got.len(), expected.len());
}

#[test]
fn a_wait_on_an_only_connection_ends_in_time() {
    let (mut net, mut peer) = alone();
    let mut buffer = [0u8; 64];
    // Exact where it must be, since epoll waits; never over time where nothing comes.
    for wait_ns in [1_000_000, 10_000_000, 200_000_000u64] {
        let start_ns = now_ns();
        let until_ns = start_ns + wait_ns;
        while now_ns() < until_ns {
            net.wait(until_ns, WaitMode::Sleep);
            assert_eq!(net.next(&mut buffer), None);
        }
        let over_ns = now_ns() - until_ns;
        assert!(over_ns < 100_000_000, "{wait_ns} took {over_ns} ns more");
    }
    assert!(is_waited_for_alone(&net));
    // A second connection is seen at once, and so is the first again when the second is gone.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    net.connect(1, listener.local_addr().unwrap()).unwrap();
    until(&mut net, |key, c, _| (key == 1 && c == Completion::Connected).then_some(()));
    peer.write_all(b"y").unwrap();
    until(&mut net, |key, c, _| (key == 0 && c == Completion::Received(1)).then_some(()));
    net.close(1);
    peer.write_all(b"z").unwrap();
    until(&mut net, |key, c, _| (key == 0 && c == Completion::Received(1)).then_some(()));
    net.close(0);
    net.wait(now_ns() + 1_000_000, WaitMode::Sleep);
    assert_eq!(net.next(&mut buffer), None);
}

/// The peer answers, and resets the connection behind that: the send fails, and the answer is still there.
#[test]
fn what_came_before_a_reset_can_be_read_when_a_send_has_failed() {
    for is_taken in [false, true] {
        let (mut net, mut peer) = alone();
        // A socket that is closed with bytes that were not read is reset.
        net.send(0, b"ping").unwrap();
        peer.write_all(b"answer").unwrap();
        if is_taken {
            // A wait on the only connection has taken the bytes, and they were not asked for.
            net.wait(now_ns() + SECOND_NS, WaitMode::Sleep);
            assert!(is_waited_for_alone(&net) && net.lone.taken.is_some());
        }
        drop(peer);
        let end_ns = now_ns() + 5 * SECOND_NS;
        while net.send(0, b"p").is_ok() {
            assert!(now_ns() < end_ns, "a send on a connection that was reset succeeds");
        }
        let mut buffer = [0u8; 4];
        let pieces: Vec<Vec<u8>> = std::iter::from_fn(|| {
            let count = net.unread(0, &mut buffer);
            (count > 0).then(|| buffer[..count].to_vec())
        })
        .collect();
        assert_eq!(pieces.concat(), b"answer", "taken by a wait: {is_taken}");
        assert_eq!(net.unread(7, &mut buffer), 0, "there is no such connection");
    }
}

/// A reply that ends with its connection is whole after a close, and cut by a reset.
#[test]
fn a_reset_behind_a_full_buffer_is_no_close() {
    let (mut net, mut peer) = alone();
    net.send(0, b"ping").unwrap();
    peer.write_all(&[7; LONE_BYTES]).unwrap();
    net.wait(now_ns() + SECOND_NS, WaitMode::Sleep);
    // A socket that is closed with bytes that were not read is reset.
    drop(peer);
    std::thread::sleep(Duration::from_millis(50));
    let mut buffer = vec![0; 2 * LONE_BYTES];
    let (end_ns, mut received) = (now_ns() + 5 * SECOND_NS, 0);
    loop {
        assert!(now_ns() < end_ns, "the reset does not come");
        match net.next(&mut buffer) {
            Some((0, Completion::Received(count))) => received += count,
            None => net.wait(now_ns() + SECOND_NS, WaitMode::Sleep),
            other => {
                assert_eq!(other, Some((0, Completion::Failed(NetError::Reset))));
                break;
            }
        }
    }
    assert_eq!(received, LONE_BYTES);
}

#[test]
fn a_send_never_waits() {
    let (mut net, mut peer) = alone();
    peer.write_all(b"x").unwrap();
    until(&mut net, |_, c, _| (c == Completion::Received(1)).then_some(()));
    assert!(is_waited_for_alone(&net));
    let bytes = vec![0u8; 1 << 20];
    let taken: usize = (0..100).map_while(|_| net.send(0, &bytes).ok().filter(|&n| n > 0)).sum();
    assert!(taken < 100 << 20, "the peer reads nothing");
    std::thread::spawn(move || std::io::copy(&mut peer, &mut std::io::sink()));
    until(&mut net, |_, c, _| (c == Completion::Writable).then_some(()));
}

#[test]
fn a_closed_port_is_refused() {
    let address = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let mut net = EpollNet::new().unwrap();
    let at_once = net.connect(0, address);
    let error = at_once.err().unwrap_or_else(|| {
        until(&mut net, |_, c, _| match c {
            Completion::Failed(error) => Some(error),
            _ => None,
        })
    });
    assert_eq!(error, NetError::Refused);
}

#[test]
fn the_part_of_tcp_info_that_we_read_has_the_kernels_layout() {
    // linux/tcp.h: tcpi_pacing_rate at 104, tcpi_min_rtt at 148.
    assert_eq!(std::mem::offset_of!(TcpInfo, rtt_us), 68);
    assert_eq!(std::mem::offset_of!(TcpInfo, total_retrans), 100);
    assert_eq!(std::mem::offset_of!(TcpInfo, pacing_rate), 104);
    assert_eq!(std::mem::offset_of!(TcpInfo, min_rtt_us), 148);
}

/// A thread in a network of its own, where not even the loopback device is up: no address can be reached, and no port is
/// missing. Only root may have one.
#[test]
fn an_address_without_a_way_to_it_is_no_want_of_ports() {
    let errors = std::thread::spawn(|| {
        // SAFETY: it moves this thread alone, which ends here.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            return None;
        }
        let mut net = EpollNet::new().unwrap();
        Some(["[::1]:9", "127.0.0.1:9"].map(|at| net.connect(0, at.parse().unwrap())))
    });
    let Some([six, four]) = errors.join().unwrap() else { return };
    assert_eq!(six, Err(NetError::Unreachable));
    assert!(four.is_err_and(|error| error != NetError::Exhausted), "{four:?}");
}
