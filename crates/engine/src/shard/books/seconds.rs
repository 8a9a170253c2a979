//! The seconds of a run, handed out one by one, and the memory that comes back for the next ones.

use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::interval::Interval;
use plimsoll_core::record::FailureSample;

/// Messages of a shard while it runs.
pub enum Message {
    /// The start is agreed: from when the times of the seconds count, ns on the engine's clock.
    CountsFrom(u64),
    /// One second has passed.
    Second(Box<Interval>),
    /// A request failed; one of a bounded sample.
    Failure(Box<FailureSample>),
    /// Nothing: the shard asks for an empty interval.
    WantsSpare,
}

/// Receiver of a shard's messages; returns an empty interval for later use when there is one.
pub type Outbox = Box<dyn FnMut(Message) -> Option<Box<Interval>>>;

/// Ends of seconds, and the interval of the current one.
pub(super) struct Seconds {
    next_tick_ns: u64,
    measured_from_ns: u64,
    /// Time from the start of the run to that of this part, ns.
    offset_ns: u64,
    spare: Option<Box<Interval>>,
    outbox: Outbox,
}

impl Seconds {
    pub fn new(outbox: Outbox, spare: Interval) -> Self {
        let (next_tick_ns, spare) = (u64::MAX, Some(Box::new(spare)));
        Self { next_tick_ns, measured_from_ns: 0, offset_ns: 0, spare, outbox }
    }

    /// The run starts.
    pub fn begin(&mut self, measured_from_ns: u64, offset_ns: u64) {
        self.measured_from_ns = measured_from_ns;
        self.offset_ns = offset_ns;
        self.next_tick_ns = measured_from_ns + SECOND_NS;
    }

    /// Time at which the next second is over, ns.
    #[inline]
    pub const fn next_tick_ns(&self) -> u64 {
        self.next_tick_ns
    }

    /// A second is over: its end, ns since the run's start, and an empty interval for what follows. The keeper of the
    /// seconds may be behind: then this one goes on, so that nothing is lost and no memory added.
    pub fn passed(&mut self, now_ns: u64) -> Option<(u64, Box<Interval>)> {
        let passed = (now_ns - self.next_tick_ns) / SECOND_NS;
        let boundary_ns = self.next_tick_ns + passed * SECOND_NS;
        self.next_tick_ns = boundary_ns + SECOND_NS;
        let spare = self.spare.take().or_else(|| (self.outbox)(Message::WantsSpare))?;
        Some((boundary_ns - self.measured_from_ns + self.offset_ns, spare))
    }

    /// Hands out a full second.
    pub fn hand_out(&mut self, full: Interval) {
        debug_assert!(self.spare.is_none(), "a shard has two intervals");
        self.spare = (self.outbox)(Message::Second(Box::new(full)));
    }

    /// Hands out anything else. In each case an interval's memory may come back.
    pub fn tell(&mut self, message: Message) {
        let spare = (self.outbox)(message);
        self.spare = spare.or_else(|| self.spare.take());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;

    #[test]
    fn a_second_that_nobody_can_keep_yet_goes_on() {
        let told = Rc::new(RefCell::new(Vec::new()));
        let (kept, mut behind) = (told.clone(), 2);
        let outbox = move |message| match message {
            Message::Second(second) => {
                kept.borrow_mut().push(second.to_ns / SECOND_NS);
                None
            }
            Message::Failure(_) | Message::CountsFrom(_) => None,
            Message::WantsSpare => {
                behind -= 1;
                (behind == 0).then(|| Box::new(Interval::new(1)))
            }
        };
        let mut seconds = Seconds::new(Box::new(outbox), Interval::new(1));
        assert_eq!(seconds.next_tick_ns(), u64::MAX, "before the start no second is over");
        seconds.begin(10 * SECOND_NS, 100 * SECOND_NS);
        let mut ends = Vec::new();
        // The shard slept through the fourth second.
        for now_s in [11, 12, 13, 15] {
            let passed = seconds.passed(now_s * SECOND_NS + 5);
            ends.push(passed.as_ref().map(|(to_ns, _)| to_ns / SECOND_NS));
            if let Some((to_ns, _)) = passed {
                seconds.hand_out(Interval { to_ns, ..Interval::new(1) });
            }
            if now_s == 13 {
                seconds.spare = Some(Box::new(Interval::new(1)));
            }
        }
        assert_eq!(ends, [Some(101), None, Some(103), Some(105)]);
        assert_eq!(*told.borrow(), [101, 103, 105]);
        assert_eq!(seconds.next_tick_ns(), 16 * SECOND_NS);
    }
}
