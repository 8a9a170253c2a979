//! The way operations end: settled, out of time, or left over at the end of the feed.

use super::FeedSessions;
use crate::slots::Stage;
use plimsoll_core::clock::{MILLISECOND_NS, SECOND_NS};
use plimsoll_core::units::Span;
use std::sync::atomic::Ordering;

/// Time between two looks for operations whose time is over, ns.
const LOOK_NS: u64 = 100 * MILLISECOND_NS;
/// A target is never given up for refusing everything before this, however short the time of an operation is, ns.
const REFUSING_MIN_NS: u64 = 2 * SECOND_NS;

/// The end of an operation.
#[derive(Clone, Copy)]
pub(super) enum End<'a> {
    Accepted,
    FieldsIgnored,
    OperationIgnored,
    /// For this reason.
    Refused(&'a str),
}

/// Reasons for operations that the target did not do as asked.
pub(super) const FIELDS_IGNORED: &str = "the target ignored fields that it does not know (X-Vespa-Ignored-Fields); the rest was written";
pub(super) const OPERATION_IGNORED: &str = "the target ignored the operation: no cluster takes the document \
                                 (X-Vespa-Ignored-Operation)";

pub(super) fn out_of_time(why: &str, tries: u32) -> String {
    format!("{why}; sent {tries} times before its timeout")
}

impl FeedSessions {
    /// Ends operations that wait longer than --timeout, and the feed if the target accepted nothing for this time.
    /// Where one operation at a time tries, the others would otherwise wait for their turn long after their time.
    pub(super) fn expire(&mut self) {
        if self.now_ns < self.look_ns {
            return;
        }
        self.look_ns = self.now_ns + LOOK_NS;
        let timeout_ns = self.feed.settings.timeout_ns;
        // An operation that ends may bring up the next one on its document, whose time may be over as well.
        while let Some(since_ns) = self.now_ns.checked_sub(timeout_ns) {
            let over = self.slots.waiting_since(since_ns);
            if over.is_empty() {
                break;
            }
            for number in over {
                let slot = self.slots.get(number);
                let (code, tries) = (slot.last.unwrap_or(0), slot.tries);
                let why = self.said.get(&code).filter(|_| tries > 0);
                let why = why.map_or("an earlier operation on it was not settled", |why| why);
                let reason = out_of_time(why, tries);
                self.settle(number, code, End::Refused(&reason));
            }
        }
        let limit_ns = timeout_ns.max(REFUSING_MIN_NS);
        let Some(since_ns) = self.circuit.turned_away_since_ns() else { return };
        let last_ns = self.feed.now().accepted_at_ns.max(since_ns);
        if self.now_ns.saturating_sub(last_ns) >= limit_ns {
            let span = Span { ns: self.now_ns - last_ns };
            let last = self.said.values().next_back().map_or("", String::as_str);
            self.feed.stop(format!(
                "the target accepted nothing for {:.1} s, the limit of an operation \
                 (--timeout): {last}",
                span.as_seconds()
            ));
        }
    }

    /// An operation has come to its end.
    pub(super) fn settle(&mut self, number: u32, code: u16, end: End<'_>) {
        let now_ns = self.now_ns;
        let slot = self.slots.get(number);
        let (key, first_ns) = (slot.item.key, slot.first_ns);
        if code >= 100 {
            self.tally.code(code).whole.record(now_ns.saturating_sub(first_ns));
        }
        self.tally.last_ns = now_ns;
        let seen = &self.feed.seen[self.shard as usize];
        seen.under_way.store(u64::from(self.under_way), Ordering::Relaxed);
        let tally = &mut self.tally;
        let (count, reason) = match end {
            End::Accepted => (&mut tally.accepted, None),
            End::FieldsIgnored => (&mut tally.ignored_fields, Some(FIELDS_IGNORED)),
            End::OperationIgnored => (&mut tally.ignored_operations, Some(OPERATION_IGNORED)),
            End::Refused(reason) => (&mut tally.refused, Some(reason)),
        };
        *count += 1;
        if let Some(reason) = reason {
            let all = tally.refused + tally.ignored_fields + tally.ignored_operations;
            seen.refused.store(all, Ordering::Relaxed);
            let file = &self.feed.input.names()[slot.item.file as usize];
            let status = if code >= 100 { code } else { 0 };
            self.feed.failed.refused(&slot.item, &slot.bytes, file, status, reason);
        } else {
            seen.accepted.store(tally.accepted, Ordering::Relaxed);
            seen.accepted_at_ns.store(now_ns, Ordering::Relaxed);
        }
        if let Some(next) = self.order.leave(key, number) {
            self.slots.comes_up(next, now_ns);
        }
        self.slots.release(number);
    }

    /// Ends operations that are held at the end of the feed: they were not accepted, as far as is known.
    pub(super) fn leave(mut self) {
        let over = self.is_over() && !self.feed.is_stopped();
        self.tally.window = self.window.size();
        (self.tally.shrinks, self.tally.pauses) = (self.window.shrinks(), self.circuit.opened());
        let feed = &self.feed;
        let may_end = feed.may_end_early() && !feed.is_stopped();
        for slot in self.slots.held() {
            let never_sent = slot.last.is_none() && slot.stage != Stage::UnderWay;
            if may_end && never_sent {
                self.tally.leave(&slot.item);
                continue;
            }
            self.tally.unsettled += 1;
            let file = &feed.input.names()[slot.item.file as usize];
            let answer = match slot.last {
                Some(code) if code >= 100 => format!("; the last answer was HTTP {code}"),
                _ => String::new(),
            };
            let stage = match slot.stage {
                Stage::UnderWay => "no answer had come when the feed ended: it may have been done",
                _ => "the feed ended before it was accepted",
            };
            let status = slot.last.filter(|code| *code >= 100).unwrap_or(0);
            let reason = format!("{stage}{answer}");
            feed.failed.refused(&slot.item, &slot.bytes, file, status, &reason);
        }
        if !over {
            feed.input.close();
        }
        let mut batch = Some(std::mem::take(&mut self.batch));
        while let Some(mut waiting) = batch {
            while let Some((item, bytes)) = waiting.take() {
                feed.leave_unsent(&item, bytes, &mut self.tally);
            }
            batch = feed.input.take(self.shard, None).0;
        }
        // Nobody counts a feed that failed to start.
        let _ = self.counted.send(self.tally);
    }
}
