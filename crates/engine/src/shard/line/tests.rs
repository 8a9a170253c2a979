use super::end::UNREAD_ANSWERS_MAX;
use super::*;
use plimsoll_core::clock::VirtualClock;

/// A network that writes down what it is given, and takes this much of it.
#[derive(Default)]
struct Paper {
    sent: Vec<(u32, Vec<u8>)>,
    room: Option<usize>,
    is_broken: bool,
}

impl Net for Paper {
    fn connect(&mut self, _: u32, _: SocketAddr) -> Result<(), NetError> {
        Ok(())
    }

    fn send(&mut self, key: u32, bytes: &[u8]) -> Result<usize, NetError> {
        if self.is_broken {
            return Err(NetError::Reset);
        }
        let taken = bytes.len().min(self.room.unwrap_or(usize::MAX));
        self.sent.push((key, bytes[..taken].to_vec()));
        Ok(taken)
    }

    fn close(&mut self, _: u32) {}

    fn wait(&mut self, _: u64, _: WaitMode) {}

    fn next(&mut self, _: &mut [u8]) -> Option<(u32, Completion)> {
        None
    }

    fn unread(&mut self, _: u32, _: &mut [u8]) -> usize {
        0
    }

    fn round_trip(&self, _: u32) -> Option<RoundTrip> {
        None
    }

    fn idle_ns(&self) -> u64 {
        0
    }

    fn arrived_after_ns(&self) -> u64 {
        0
    }

    fn vitals(&mut self) -> VitalSigns {
        VitalSigns::default()
    }
}

fn line() -> Line<Paper> {
    Line::new(Paper::default(), 3)
}

/// Encodes a request, which waits for the end of the round; says whether that must not be waited for.
fn keep(line: &mut Line<Paper>, key: u32, request: &[u8]) -> bool {
    let (place, out) = line.draft(key);
    out.extend_from_slice(request);
    line.encoded(request.len());
    line.keep(key, place)
}

fn flush(line: &mut Line<Paper>) -> Vec<u32> {
    let mut broken = Vec::new();
    while let Some((key, result)) = line.flush_next() {
        broken.extend(result.is_err().then_some(key));
    }
    broken
}

#[test]
fn requests_of_a_round_go_out_together_and_in_their_order() {
    let mut line = line();
    assert!(!keep(&mut line, 1, b"one ") && !keep(&mut line, 2, b"other"));
    assert!(!keep(&mut line, 1, b"two"));
    line.audit();
    assert!(line.net.sent.is_empty());
    assert!(flush(&mut line).is_empty());
    assert_eq!(line.net.sent, [(2, b"other".to_vec()), (1, b"one two".to_vec())]);
    line.wait(0, WaitMode::Sleep);
    assert!(flush(&mut line).is_empty() && line.net.sent.len() == 2, "nothing goes twice");
}

#[test]
fn a_request_that_goes_at_once_takes_those_before_it_along() {
    let mut line = line();
    keep(&mut line, 0, b"first ");
    let (place, out) = line.draft(0);
    assert_eq!(place, Place::Behind);
    out.extend_from_slice(b"last");
    line.hand_over(0, place).unwrap();
    let (place, out) = line.draft(0);
    assert_eq!((place, out.len()), (Place::Alone, 0));
    out.extend_from_slice(b"alone");
    line.hand_over(0, place).unwrap();
    flush(&mut line);
    assert_eq!(line.net.sent, [(0, b"first last".to_vec()), (0, b"alone".to_vec())]);
}

#[test]
fn a_round_is_cut_short_when_there_is_much_to_send() {
    let mut line = line();
    let request = vec![b'x'; OUTGOING_BYTES / 4];
    let full: Vec<bool> = (0..4).map(|_| keep(&mut line, 0, &request)).collect();
    assert_eq!(full, [false, false, false, true]);
    assert!(!Line::<Paper>::may_wait(OUTGOING_BYTES));
    flush(&mut line);
}

#[test]
fn what_the_kernel_does_not_take_goes_first_when_it_takes_more() {
    let mut line = line();
    line.net.room = Some(3);
    line.write(1, b"abcdef").unwrap();
    line.write(1, b"gh").unwrap();
    assert_eq!(line.net.sent, [(1, b"abc".to_vec())], "nothing overtakes");
    line.net.room = None;
    line.writable(1).unwrap();
    line.writable(1).unwrap();
    line.write(1, b"i").unwrap();
    assert_eq!(line.net.sent[1..], [(1, b"defgh".to_vec()), (1, b"i".to_vec())]);
}

#[test]
fn a_peer_that_reads_no_answers_gets_a_bounded_number_of_them() {
    let mut line = line();
    line.net.room = Some(0);
    line.write(1, b"request").unwrap();
    let answer = [b'a'; 1 << 10];
    let mut answers = 0;
    while line.may_answer(1, answer.len()) {
        line.write(1, &answer).unwrap();
        answers += 1;
    }
    assert_eq!(answers, UNREAD_ANSWERS_MAX >> 10);
    // Whoever reads them may have as many as it likes.
    line.net.room = None;
    line.writable(1).unwrap();
    for _ in 0..3 * answers {
        assert!(line.may_answer(1, answer.len()));
        line.write(1, &answer).unwrap();
    }
}

#[test]
fn what_a_closed_connection_had_to_send_does_not_go_on_the_next_one() {
    let mut line = line();
    line.net.room = Some(1);
    line.write(0, b"old").unwrap();
    keep(&mut line, 0, b"older");
    line.close(0);
    line.net.room = None;
    assert!(flush(&mut line).is_empty());
    line.write(0, b"new").unwrap();
    assert_eq!(line.net.sent, [(0, b"o".to_vec()), (0, b"new".to_vec())]);
}

#[test]
fn a_connection_that_breaks_in_a_flush_leaves_the_others_alone() {
    let mut line = line();
    (0..3).for_each(|key| assert!(!keep(&mut line, key, b"request")));
    line.net.is_broken = true;
    assert_eq!(flush(&mut line), [2, 1, 0], "each is reported");
}

#[test]
#[should_panic(expected = "held back")]
fn nothing_is_held_back_while_the_shard_waits() {
    let mut line = line();
    keep(&mut line, 0, b"request");
    line.wait(1, WaitMode::Sleep);
}

#[test]
fn eight_short_requests_share_a_reading_of_the_clock() {
    let (mut line, clock) = (line(), VirtualClock::new());
    let read = |line: &mut Line<Paper>| {
        clock.advance_to(clock.now_ns() + 1);
        line.read_clock(&clock)
    };
    let readings: Vec<u64> = (0..9).map(|_| read(&mut line)).collect();
    assert_eq!(readings, [1, 1, 1, 1, 1, 1, 1, 1, 9]);
    assert!(line.shares_reading());
    line.encoded(SHARING_BYTES_MAX);
    assert_eq!(read(&mut line), 9);
    line.encoded(SHARING_BYTES_MAX + 1);
    assert!(!line.shares_reading() && read(&mut line) == 11, "a long one takes its time");
    let (place, _) = line.draft(0);
    line.hand_over(0, place).unwrap();
    assert_eq!(read(&mut line), 12, "so does the network");
}
