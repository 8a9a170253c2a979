//! The collector: merges the shards' seconds, keeps them, and hands their memory back.

use crate::health::thread_cpu_ns;
use crate::shard::Message;
use plimsoll_core::interval::Interval;
use plimsoll_core::record::Sink;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::mpsc::{Receiver, Sender};

/// Seconds of all shards, merged.
pub(super) struct Collected {
    pub totals: Interval,
    /// CPU time that it took, ns.
    pub cpu_ns: u64,
    pub sink_error: Option<std::io::Error>,
}

/// Merges the shards' seconds and hands their memory back, emptied.
pub(super) struct Collector {
    /// The end of the last second that each shard has delivered, ns.
    reached_ns: Vec<u64>,
    /// Ways back to the shards.
    spares: Vec<Sender<Box<Interval>>>,
    /// Seconds that some shard still owes its part of, with the shard whose memory they are in.
    pending: BTreeMap<u64, (usize, Box<Interval>)>,
}

impl Collector {
    pub fn new(spares: Vec<Sender<Box<Interval>>>) -> Self {
        Self { reached_ns: vec![0; spares.len()], spares, pending: BTreeMap::new() }
    }

    /// Keeps the seconds that come until no shard is left; no message says that a shard has ended.
    pub fn collect(
        mut self,
        receiver: &Receiver<(u32, Option<Message>)>,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Interval),
    ) -> Collected {
        let mut collected = Collected { totals: Interval::default(), cpu_ns: 0, sink_error: None };
        while let Ok((index, message)) = receiver.recv() {
            match message {
                Some(Message::Failure(sample)) => {
                    if let Err(error) = sink.failure(&sample) {
                        collected.sink_error.get_or_insert(error);
                    }
                    continue;
                }
                Some(Message::CountsFrom(start_ns)) => {
                    sink.counts_from(start_ns);
                    continue;
                }
                Some(Message::WantsSpare) => continue,
                Some(Message::Second(second)) => self.add(index as usize, second),
                // What it has left comes with its end.
                None => self.reached_ns[index as usize] = u64::MAX,
            }
            let all_past = self.reached_ns.iter().copied().min().unwrap_or(0);
            self.take_until(all_past, &mut collected, sink, progress);
        }
        self.take_until(u64::MAX, &mut collected, sink, progress);
        collected.cpu_ns = thread_cpu_ns();
        collected
    }

    fn add(&mut self, shard: usize, second: Box<Interval>) {
        self.reached_ns[shard] = second.to_ns;
        match self.pending.entry(second.to_ns) {
            Entry::Occupied(mut merged) => {
                merged.get_mut().1.merge(&second);
                self.give_back(shard, second);
            }
            Entry::Vacant(place) => {
                place.insert((shard, second));
            }
        }
    }

    fn take_until(
        &mut self,
        end_ns: u64,
        collected: &mut Collected,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Interval),
    ) {
        while self.pending.first_key_value().is_some_and(|(&to_ns, _)| to_ns <= end_ns) {
            let Some((_, (shard, second))) = self.pending.pop_first() else { break };
            collected.take(&second, sink, progress);
            self.give_back(shard, second);
        }
    }

    /// Empties the memory here, where no one waits, and not on the shard's time.
    fn give_back(&self, shard: usize, mut second: Box<Interval>) {
        second.clear();
        // A shard that has ended no longer takes it.
        let _ = self.spares[shard].send(second);
    }
}

impl Collected {
    pub fn take(
        &mut self,
        second: &Interval,
        sink: &mut dyn Sink,
        progress: &mut dyn FnMut(&Interval),
    ) {
        self.totals.merge(second);
        if let Err(error) = sink.interval(second) {
            self.sink_error.get_or_insert(error);
        }
        progress(second);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::record::FailureSample;
    use std::sync::mpsc::channel;

    /// Keeps the end and the scheduled count of each second it is given.
    #[derive(Default)]
    struct Kept(Vec<(u64, u64)>);

    impl Sink for Kept {
        fn counts_from(&mut self, _start_ns: u64) {}

        fn interval(&mut self, interval: &Interval) -> std::io::Result<()> {
            self.0.push((interval.to_ns, interval.ledger.scheduled));
            Ok(())
        }

        fn failure(&mut self, _: &FailureSample) -> std::io::Result<()> {
            Ok(())
        }
    }

    fn second(to_ns: u64, scheduled: u64) -> Option<Message> {
        let mut interval = Interval::new(1);
        interval.to_ns = to_ns;
        interval.ledger.scheduled = scheduled;
        interval.lag.record(scheduled);
        Some(Message::Second(Box::new(interval)))
    }

    #[test]
    fn seconds_are_kept_in_order_once_every_shard_has_passed_them() {
        let (sender, receiver) = channel();
        let (ways, backs): (Vec<_>, Vec<_>) = (0..2).map(|_| channel()).unzip();
        // The second shard slept through its first second.
        for (shard, to_ns, scheduled) in [(0, 1, 5), (0, 2, 6), (1, 2, 10), (0, 3, 7), (1, 3, 20)] {
            sender.send((shard, second(to_ns, scheduled))).unwrap();
        }
        drop(sender);
        let (mut kept, mut seen) = (Kept::default(), Vec::new());
        let mut progress = |interval: &Interval| seen.push(interval.to_ns);
        let collected = Collector::new(ways).collect(&receiver, &mut kept, &mut progress);
        assert_eq!(kept.0, [(1, 5), (2, 16), (3, 27)]);
        assert_eq!(seen, [1, 2, 3]);
        assert_eq!(collected.totals.ledger.scheduled, 48);
        assert_eq!(collected.totals.lag.count(), 5);
        let returned: Vec<Vec<Box<Interval>>> =
            backs.iter().map(|b| b.try_iter().collect()).collect();
        assert_eq!((returned[0].len(), returned[1].len()), (3, 2), "each gets its own memory back");
        assert!(returned.iter().flatten().all(|interval| interval.is_empty()));
    }

    /// A shard that has ended owes nothing: the seconds of the others are kept as they come, and their memory goes back.
    #[test]
    fn a_shard_that_has_ended_holds_nobody_back() {
        let (sender, receiver) = channel();
        let (ways, backs): (Vec<_>, Vec<_>) = (0..2).map(|_| channel()).unzip();
        let (seen, progress) = channel();
        let collecting = std::thread::spawn(move || {
            let mut progress = |interval: &Interval| seen.send(interval.to_ns).unwrap();
            Collector::new(ways).collect(&receiver, &mut Kept::default(), &mut progress)
        });
        let longest = std::time::Duration::from_secs(10);
        for message in [(1, second(1, 5)), (1, None), (0, second(1, 5)), (0, second(2, 6))] {
            sender.send(message).unwrap();
        }
        assert_eq!(progress.recv_timeout(longest), Ok(1));
        assert_eq!(progress.recv_timeout(longest), Ok(2), "the other one still runs");
        assert!(backs[0].recv_timeout(longest).is_ok());
        sender.send((0, second(3, 7))).unwrap();
        assert_eq!(progress.recv_timeout(longest), Ok(3));
        drop(sender);
        assert_eq!(collecting.join().unwrap().totals.ledger.scheduled, 23);
    }
}
