//! Trace ids of requests: the header `traceparent` of W3C Trace Context, patched into requests that were rendered before.

use plimsoll_core::rng::{Rng, derive_seed};
use plimsoll_wire::http1::Request;

/// Name of the header.
pub const TRACEPARENT: &str = "traceparent";
/// The value that is rendered and then patched: version 00, no ids yet, not sampled.
pub const TRACEPARENT_BLANK: &str = "00-00000000000000000000000000000000-0000000000000000-00";
/// Place of the trace id in the value, and its end.
const TRACE_ID: (usize, usize) = (3, 35);
/// Place of the parent id, and its end.
const PARENT_ID: (usize, usize) = (36, 52);
/// Place of the last digit of the flags: 1 if the trace is sampled.
const SAMPLED: usize = 54;

/// Gives each request of one shard ids of its own, from the seed.
#[derive(Clone, Debug)]
pub struct Tracing {
    rng: Rng,
    /// Share of requests that are sampled, 0 to 1.
    ratio: f64,
}

impl Tracing {
    /// Ids of one shard. The same seed gives the same ids in the same order.
    #[must_use]
    pub fn new(seed: u64, shard: u64, ratio: f64) -> Self {
        Self { rng: Rng::new(derive_seed(seed, &format!("{TRACEPARENT} {shard}"))), ratio }
    }

    /// Writes new ids into a request that was rendered with [`TRACEPARENT_BLANK`].
    pub fn patch(&mut self, request: &mut [u8]) {
        let Some(at) = place(request) else { return };
        let value = &mut request[at..at + TRACEPARENT_BLANK.len()];
        let (high, low, parent) = (self.rng.next_u64(), self.rng.next_u64(), self.rng.next_u64());
        // An id of zeros is invalid.
        put_hex(&mut value[TRACE_ID.0..TRACE_ID.0 + 16], high);
        put_hex(&mut value[TRACE_ID.0 + 16..TRACE_ID.1], low.max(1));
        put_hex(&mut value[PARENT_ID.0..PARENT_ID.1], parent.max(1));
        value[SAMPLED] = if self.rng.uniform() < self.ratio { b'1' } else { b'0' };
    }
}

/// The trace id of a request that has one.
#[must_use]
pub fn trace_id(request: &Request) -> Option<String> {
    let at = place(&request.bytes)?;
    let id = &request.bytes[at + TRACE_ID.0..at + TRACE_ID.1];
    Some(String::from_utf8_lossy(id).into_owned())
}

/// The place of the header's value. The first such line is that of the head.
fn place(request: &[u8]) -> Option<usize> {
    const LINE: &[u8] = b"\r\ntraceparent: 00-";
    let at = memchr::memmem::find(request, LINE)? + LINE.len() - 3;
    (at + TRACEPARENT_BLANK.len() <= request.len()).then_some(at)
}

/// Writes 16 lower-case digits.
fn put_hex(out: &mut [u8], value: u64) {
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    for (index, digit) in out.iter_mut().enumerate() {
        *digit = DIGITS[(value >> (60 - 4 * index)) as usize & 15];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rendered() -> Vec<u8> {
        format!(
            "GET /?a=traceparent: HTTP/1.1\r\nHost: h\r\n{TRACEPARENT}: {TRACEPARENT_BLANK}\r\n\r\n"
        )
        .into_bytes()
    }

    fn patched(tracing: &mut Tracing) -> String {
        let mut request = Request { bytes: rendered(), ..Request::default() };
        tracing.patch(&mut request.bytes);
        let text = String::from_utf8(request.bytes.clone()).unwrap();
        let value = text.lines().find_map(|line| line.strip_prefix("traceparent: ")).unwrap();
        assert_eq!(trace_id(&request).as_deref(), Some(&value[3..35]));
        assert_eq!(text.len(), rendered().len());
        value.to_owned()
    }

    /// `version "-" trace-id "-" parent-id "-" flags`, all lower-case hexadecimal, no id of zeros.
    fn is_valid(value: &str) -> bool {
        let parts: Vec<&str> = value.split('-').collect();
        let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
        let is_hex =
            |part: &&str| part.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b));
        lengths == [2, 32, 16, 2]
            && parts[0] == "00"
            && parts.iter().all(is_hex)
            && parts[1..3].iter().all(|id| id.bytes().any(|b| b != b'0'))
            && matches!(parts[3], "00" | "01")
    }

    #[test]
    fn each_request_has_valid_ids_of_its_own_and_the_same_seed_gives_the_same() {
        let (mut one, mut same) = (Tracing::new(7, 0, 1.0), Tracing::new(7, 0, 1.0));
        let values: Vec<String> = (0..100).map(|_| patched(&mut one)).collect();
        assert!(values.iter().all(|value| is_valid(value) && value.ends_with("-01")), "{values:?}");
        let mut distinct = values.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), 100);
        assert_eq!(values, (0..100).map(|_| patched(&mut same)).collect::<Vec<_>>());
        for mut other in [Tracing::new(8, 0, 1.0), Tracing::new(7, 1, 1.0)] {
            assert_ne!(patched(&mut other), values[0]);
        }
    }

    #[test]
    fn a_share_of_the_requests_is_sampled_and_all_have_the_header() {
        let mut tracing = Tracing::new(1, 0, 0.25);
        let values: Vec<String> = (0..4000).map(|_| patched(&mut tracing)).collect();
        assert!(values.iter().all(|value| is_valid(value)));
        let sampled = values.iter().filter(|value| value.ends_with("-01")).count();
        assert!((900..1100).contains(&sampled), "{sampled}");
        let mut none = Tracing::new(1, 0, 0.0);
        assert!((0..100).all(|_| patched(&mut none).ends_with("-00")));
    }

    #[test]
    fn a_request_without_the_header_stays_as_it_is() {
        let mut bytes = b"GET / HTTP/1.1\r\nHost: h\r\n\r\n".to_vec();
        let before = bytes.clone();
        Tracing::new(1, 0, 1.0).patch(&mut bytes);
        assert_eq!(bytes, before);
        assert_eq!(trace_id(&Request { bytes, ..Request::default() }), None);
    }
}
