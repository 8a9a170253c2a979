//! Judgement of replies: conditions of a success, and reasons of a failure.

use crate::checks::{Checks, Failure as CheckFailure, HitCounter, Seen, Shown};
use plimsoll_core::outcome::Failure;
use plimsoll_wire::http1::{Encoding, Keep, Reply, decode_body};

/// Largest body that is decoded for a check, bytes.
pub(super) const DECODED_MAX: usize = 16 << 20;
/// Longest text in samples, bytes.
pub(super) const SHOWN_MAX: usize = 500;

/// Rules by which a reply is a success, and the figures read from it.
#[derive(Clone, Debug, Default)]
pub struct Judge {
    /// Status and content.
    pub checks: Checks,
    /// Fewest body bytes of a success (`-l`).
    pub body_min_bytes: u64,
    /// Counts hits, where asked for.
    pub hits: Option<HitCounter>,
    /// Read hits from the header only (vespa-fbench) instead of header or body.
    pub hits_from_header_only: bool,
}

impl Judge {
    /// Returns what must be kept of a reply to judge it.
    #[must_use]
    pub fn keep(&self) -> Keep {
        Keep {
            head: self.hits.is_some(),
            body: self.checks.needs_body() || (self.hits.is_some() && !self.hits_from_header_only),
            stream: false,
        }
    }

    /// Returns how many hits a reply reports, if requested.
    pub(super) fn count(&self, reply: &Reply<'_>, body: &[u8]) -> Option<u64> {
        let counter = self.hits.as_ref()?;
        let body = if self.hits_from_header_only { b"" } else { body };
        counter.count(reply.header(HitCounter::HEADER), body)
    }

    pub(super) fn failure(
        &self,
        reply: &Reply<'_>,
        body: (&[u8], Shown),
        judged: Judged,
    ) -> Option<Failure> {
        match self.checks.judge(&judged.seen(reply.status, body)) {
            Err(CheckFailure::Status(_)) => Some(Failure::Status),
            Err(CheckFailure::Check(_)) => Some(Failure::Check),
            Ok(()) if reply.body_bytes < self.body_min_bytes => Some(Failure::Check),
            Ok(()) => None,
        }
    }
}

/// Facts of a judgement that are not in the reply.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Judged {
    pub hits: Option<u64>,
    pub service_ns: u64,
}

impl Judged {
    pub fn seen(self, status: u16, (body, shown): (&[u8], Shown)) -> Seen<'_> {
        Seen { status, body, shown, hits: self.hits, service_ns: self.service_ns }
    }
}

/// Decodes a body that has a content coding. Returns its bytes, and how much of the body they are.
pub fn plain_body<'a>(
    reply: &'a Reply<'a>,
    scratch: &'a mut Vec<u8>,
    decoded_max: usize,
) -> (&'a [u8], Shown) {
    if reply.encoding == Encoding::Identity || reply.body.is_empty() {
        return (reply.body, if reply.truncated { Shown::Cut } else { Shown::Whole });
    }
    match decode_body(reply, scratch, decoded_max) {
        Ok(body) => (body, Shown::Whole),
        Err(_) => (reply.body, Shown::Coded),
    }
}

/// Returns what to do about a status that is no success, where that is known: nothing for others.
pub(super) fn status_hint(reply: &Reply<'_>) -> String {
    match (reply.status, reply.header("Location")) {
        (300..=399, Some(location)) => {
            format!(" leads to {}; redirects are not followed", shown(location))
        }
        (401, _) => ": the server wants credentials; give --header 'Authorization: ...'".to_owned(),
        (403, _) => ": the server rejects these credentials, or none were sent".to_owned(),
        _ => String::new(),
    }
}

/// Returns how a reply began: its status, where a redirect leads, and the first bytes of its body where they were kept.
pub(super) fn beginning(reply: &Reply<'_>, body: &[u8]) -> String {
    let mut text = format!("HTTP {}", reply.status);
    if let Some(location) = reply.header("Location") {
        text.push_str(", Location: ");
        text.push_str(&shown(location));
    }
    if !body.is_empty() {
        text.push_str(": ");
        text.push_str(&shown(body));
    }
    text
}

/// Bytes as text for a person, cut to [`SHOWN_MAX`].
pub(super) fn shown(bytes: &[u8]) -> String {
    let cut = &bytes[..bytes.len().min(SHOWN_MAX)];
    String::from_utf8_lossy(cut).chars().map(|c| if c.is_control() { ' ' } else { c }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sample_of_a_refusal_tells_what_the_server_said() {
        let reply = Reply {
            status: 301,
            head: b"Location: /b\r\n",
            body: b"",
            encoding: Encoding::Identity,
            body_bytes: 0,
            truncated: false,
        };
        assert_eq!(beginning(&reply, b""), "HTTP 301, Location: /b");
        let busy = Reply { status: 503, head: b"", ..reply };
        assert_eq!(beginning(&busy, b"queue\nfull"), "HTTP 503: queue full");
        assert_eq!(beginning(&busy, &[b'x'; 9_000]).len(), SHOWN_MAX + "HTTP 503: ".len());
    }

    #[test]
    fn a_small_body_is_a_failed_check() {
        let judge = Judge { body_min_bytes: 10, ..Judge::default() };
        let reply = Reply {
            status: 200,
            head: b"",
            body: b"",
            encoding: Encoding::Identity,
            body_bytes: 9,
            truncated: false,
        };
        let failure =
            |reply: &Reply<'_>| judge.failure(reply, (b"", Shown::Whole), Judged::default());
        assert_eq!(failure(&reply), Some(Failure::Check));
        assert_eq!(failure(&Reply { body_bytes: 10, ..reply }), None);
        assert_eq!(failure(&Reply { status: 503, ..reply }), Some(Failure::Status));
    }
}
