//! An interval as bytes, for messages: every count as LEB128, and histograms in blocks of cells.
//!
//! A coordinator reads one from each of its agents each second. Compared with a line of text there is no base64, nothing to
//! inflate and no field name, which is most of the time that reading takes.

use super::{CLASSES_MAX, ClassPart, Counters, Interval, ServerTimes};
use crate::delays::Delays;
use crate::histogram::{DecodeError, put_count, take_count};
use crate::ledger::Ledger;

/// The bytes of an interval.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Compact(Vec<u8>);

impl Compact {
    /// Bytes that came from somewhere else; they are checked when they are read.
    #[must_use]
    pub fn of_bytes(bytes: Vec<u8>) -> Self {
        Self(bytes)
    }

    /// The bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }

    /// Reads the interval into the memory of another one.
    ///
    /// # Errors
    /// When the bytes are no interval; then the content is undefined.
    pub fn refill(&self, interval: &mut Interval) -> Result<(), DecodeError> {
        interval.clear();
        let mut bytes = &self.0[..];
        let bytes = &mut bytes;
        interval.from_ns = take_count(bytes)?;
        interval.to_ns = take_count(bytes)?;
        interval.phase = take_u32(bytes)?;
        interval.in_flight = take_u32(bytes)?;
        interval.ledger = take_ledger(bytes)?;
        interval.counters = Counters::of_all(take_counts(bytes)?);
        interval.lag.add_compact(bytes)?;
        let delays = &mut interval.delays;
        delays.receive.add_compact(bytes)?;
        delays.send.add_compact(bytes)?;
        delays.starved.add_compact(bytes)?;
        delays.connection.add_compact(bytes)?;
        delays.disturbed = take_count(bytes)?;
        interval.unserved.add_compact(bytes)?;
        for _ in 0..take_count(bytes)? {
            let status = u16::try_from(take_count(bytes)?);
            let status = status.map_err(|_| DecodeError::new("a status is too large"))?;
            interval.statuses.insert(status, take_count(bytes)?);
        }
        let classes = take_count(bytes)?;
        if classes > CLASSES_MAX as u64 {
            return Err(DecodeError::new("there are too many classes"));
        }
        interval.classes.truncate(classes as usize);
        for index in 0..classes as usize {
            // Memory for a class is taken when its bytes are there.
            if index == interval.classes.len() {
                let mut class = ClassPart::default();
                refill_class(&mut class, bytes)?;
                interval.classes.push(class);
            } else {
                refill_class(&mut interval.classes[index], bytes)?;
            }
        }
        if bytes.is_empty() { Ok(()) } else { Err(DecodeError::new("bytes are left over")) }
    }
}

impl From<&Interval> for Compact {
    fn from(interval: &Interval) -> Self {
        let Interval {
            from_ns,
            to_ns,
            phase,
            in_flight,
            ledger,
            counters,
            lag,
            delays,
            unserved,
            statuses,
            classes,
        } = interval;
        let mut out = Vec::with_capacity(1024);
        for count in [*from_ns, *to_ns, (*phase).into(), (*in_flight).into()] {
            put_count(count, &mut out);
        }
        put_counts(ledger.columns(), &mut out);
        put_counts(counters.all(), &mut out);
        lag.put_compact(&mut out);
        let Delays { receive, send, starved, connection, disturbed } = delays;
        for part in [receive, send, starved, connection] {
            part.put_compact(&mut out);
        }
        put_count(*disturbed, &mut out);
        unserved.put_compact(&mut out);
        put_count(statuses.len() as u64, &mut out);
        for (status, count) in statuses {
            put_counts([(*status).into(), *count], &mut out);
        }
        put_count(classes.len() as u64, &mut out);
        classes.iter().for_each(|class| put_class(class, &mut out));
        Self(out)
    }
}

fn put_class(class: &ClassPart, out: &mut Vec<u8>) {
    let ClassPart {
        ledger,
        zero_hits,
        hits_known,
        service_sum_ns,
        service_min_ns,
        service_max_ns,
        failed_min_ns,
        response,
        service,
        failed,
        server,
    } = class;
    put_counts(ledger.columns(), out);
    let times = [*service_sum_ns, *service_min_ns, *service_max_ns, *failed_min_ns];
    put_counts([*zero_hits, *hits_known], out);
    put_counts(times, out);
    [response, service, failed].into_iter().for_each(|histogram| histogram.put_compact(out));
    put_count(server.is_some().into(), out);
    if let Some(server) = server {
        let ServerTimes { times, missing, malformed } = &**server;
        times.put_compact(out);
        put_counts([*missing, *malformed], out);
    }
}

fn refill_class(class: &mut ClassPart, bytes: &mut &[u8]) -> Result<(), DecodeError> {
    class.ledger = take_ledger(bytes)?;
    [class.zero_hits, class.hits_known] = take_counts(bytes)?;
    let times = take_counts(bytes)?;
    [class.service_sum_ns, class.service_min_ns, class.service_max_ns, class.failed_min_ns] = times;
    class.response.add_compact(bytes)?;
    class.service.add_compact(bytes)?;
    class.failed.add_compact(bytes)?;
    class.server = match take_count(bytes)? {
        0 => None,
        _ => {
            let mut server = class.server.take().unwrap_or_default();
            server.times.add_compact(bytes)?;
            [server.missing, server.malformed] = take_counts(bytes)?;
            Some(server)
        }
    };
    Ok(())
}

fn put_counts<const N: usize>(counts: [u64; N], out: &mut Vec<u8>) {
    counts.into_iter().for_each(|count| put_count(count, out));
}

fn take_counts<const N: usize>(bytes: &mut &[u8]) -> Result<[u64; N], DecodeError> {
    let mut counts = [0; N];
    for count in &mut counts {
        *count = take_count(bytes)?;
    }
    Ok(counts)
}

fn take_ledger(bytes: &mut &[u8]) -> Result<Ledger, DecodeError> {
    take_counts(bytes).map(Ledger::of_columns)
}

fn take_u32(bytes: &mut &[u8]) -> Result<u32, DecodeError> {
    u32::try_from(take_count(bytes)?).map_err(|_| DecodeError::new("a number is too large"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::histogram::Histogram;
    use crate::interval::IntervalLine;
    use crate::outcome::{Failure, Outcome, ServerTime};
    use crate::rng::Rng;

    fn some(rng: &mut Rng) -> Interval {
        let mut own = Interval::new(rng.below(4) as usize);
        (own.from_ns, own.to_ns) = (rng.next_u64() >> 20, rng.next_u64());
        (own.phase, own.in_flight) = (rng.below(9) as u32, rng.below(99) as u32);
        let columns: [u64; crate::ledger::COLUMNS] = std::array::from_fn(|_| rng.next_u64() >> 9);
        own.ledger = Ledger::of_columns(columns);
        own.counters = Counters::of_all(std::array::from_fn(|_| rng.next_u64() >> rng.below(60)));
        let mut fill = |histogram: &mut Histogram| {
            for _ in 0..rng.below(40) {
                histogram.record_many(rng.next_u64() >> (20 + rng.below(30)), 1 + rng.below(300));
            }
        };
        fill(&mut own.lag);
        fill(&mut own.unserved);
        fill(&mut own.delays.starved);
        fill(&mut own.delays.connection);
        own.delays.disturbed = 3;
        own.statuses.extend([(200, 7), (599, u64::MAX)]);
        for class in &mut own.classes {
            fill(&mut class.response);
            class.record_ok(1_000_000, 900_000);
            class.record_failed(77);
            class.ledger.settle(Outcome::Failed(Failure::App));
            class.zero_hits = 1;
            class.server.get_or_insert_default().record(ServerTime::Known(5));
        }
        own
    }

    #[test]
    fn all_of_an_interval_reads_back_into_memory_that_was_used_before() {
        let mut rng = Rng::new(11);
        let mut back = some(&mut rng);
        for _ in 0..200 {
            let own = some(&mut rng);
            Compact::from(&own).refill(&mut back).unwrap();
            assert_eq!(back, own);
        }
    }

    /// Both forms of an interval say the same, so neither forgets a field that the other has.
    #[test]
    fn the_line_of_text_and_the_bytes_hold_the_same() {
        let mut own = some(&mut Rng::new(12));
        // Text has times in seconds as floating point numbers.
        (own.from_ns, own.to_ns) = (3_000_000_000, 4_000_000_000);
        let mut back = Interval::default();
        Compact::from(&own).refill(&mut back).unwrap();
        assert_eq!(Interval::try_from(&IntervalLine::from(&own)).unwrap(), back);
    }

    #[test]
    fn bytes_that_are_cut_off_or_changed_are_errors_or_another_interval_and_never_a_panic() {
        let mut rng = Rng::new(13);
        let whole = Compact::from(&some(&mut rng));
        let mut back = Interval::default();
        for length in 0..whole.0.len() {
            let cut = Compact::of_bytes(whole.0[..length].to_vec());
            assert!(cut.refill(&mut back).is_err(), "{length} bytes");
        }
        for _ in 0..20_000 {
            let mut bytes = whole.0.clone();
            let at = rng.below(bytes.len() as u64) as usize;
            bytes[at] = rng.next_u64() as u8;
            let _ = Compact::of_bytes(bytes).refill(&mut back);
        }
        assert!(back.classes.len() <= CLASSES_MAX);
    }
}
