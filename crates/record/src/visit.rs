//! Result of a visit of a corpus in its record.

use plimsoll_core::histogram::LatencySummary;
use plimsoll_core::moments::{Beside, Moment, joined_per_s};
use serde::{Deserialize, Serialize};

/// A visit's result.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisitResult {
    /// Documents written, each once.
    pub documents: u64,
    /// Traces of removed documents written.
    pub removes: u64,
    /// Number of documents and removes that the completed replies announced.
    pub document_count_claimed: u64,
    /// Number that they held.
    pub document_count_received: u64,
    /// Completed replies that did not hold as many as they announced.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub inconsistent_replies: u64,
    /// Entries that came a second time and were left out.
    pub duplicates: u64,
    /// Body bytes received, uncompressed as they came.
    pub bytes: u64,
    /// Sum of the MD5 digests of all ids written, modulo 2^128, in hexadecimal.
    pub id_digest: String,
    /// True if every slice came to its end and every count was right.
    pub complete: bool,
    /// Slices of the visit.
    pub slices: u32,
    /// Slices that came to their end.
    pub slices_done: u32,
    /// Replies that came to their end.
    pub replies: u64,
    /// Form of the server's replies: `object` or `lines`.
    pub form: String,
    /// Time of this run until everything was written, s.
    pub seconds: f64,
    /// Documents and removes per second of this run.
    pub documents_per_s: f64,
    /// Body bits per second of this run, in 10^9.
    pub gbps: f64,
    /// CPU of this process for 10^9 body bytes, s.
    pub cpu_s_per_gb: f64,
    /// Account of the slices' time.
    pub time: TimeShares,
    /// From sending a request to the first byte of its reply, ms; without those that came while nothing was received.
    #[serde(default)]
    pub first_byte_ms: LatencySummary,
    /// For how long nothing was received, since the output took no more, s. It is in no other time but `seconds`.
    #[serde(default)]
    pub output_limited_s: f64,
    /// For how long the output was written after the last byte had been received, s.
    #[serde(default)]
    pub output_last_s: f64,
    /// Number of slices that asked at once in the end, if that was found by measuring.
    #[serde(default)]
    pub slices_at_once: Option<u32>,
    /// Measurements that found it.
    #[serde(default)]
    pub slices_tried: Vec<SlicesTried>,
    /// Documents that an interrupted run had written before.
    pub resumed_from: u64,
    /// The files written.
    pub files: Vec<String>,
    /// The first slices by themselves, at most [`SLICES_MAX`] of them, in their order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub by_slice: Vec<VisitSlice>,
    /// The visit over time: rates, slices that asked, and the account of their time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub over_time: Vec<VisitMoment>,
    /// Slices that did not come to their end.
    pub unfinished: Vec<UnfinishedSlice>,
    /// Reason why the visit was ended early, if it was.
    pub trouble: Option<String>,
    /// Cells of a measurement; empty for an ordinary visit.
    pub matrix: Vec<VisitCell>,
}

/// A count that only some records have.
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// Most slices that are in a record by themselves.
pub const SLICES_MAX: usize = 1024;

/// A slice of a visit in this run. One that was resumed has the documents of earlier runs too.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisitSlice {
    /// Its number.
    pub slice: u32,
    /// True if it came to its end.
    pub done: bool,
    /// Documents and traces of removed documents written.
    pub documents: u64,
    /// Replies that came to their end.
    pub replies: u64,
    /// Body bytes received.
    pub bytes: u64,
    /// Waiting for the first byte of a reply in this run, s.
    pub first_byte_s: f64,
    /// Receiving the rest of replies in this run, s.
    pub receiving_s: f64,
    /// Between a reply and the next request in this run, s.
    pub between_s: f64,
}

/// A stretch of a visit, all slices together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisitMoment {
    /// Its start, s since the visit began.
    pub from_s: f64,
    /// Its end, s since the visit began.
    pub to_s: f64,
    /// Documents and traces of removed documents per second.
    pub documents_per_s: f64,
    /// Body bytes per second, 10^6.
    pub mb_per_s: f64,
    /// Slices that asked at its end.
    pub asking: u32,
    /// Slices that were through at its end.
    pub slices_done: u32,
    /// Waiting for first bytes in replies that came meanwhile, s for each second and all slices together.
    pub first_byte: f64,
    /// Receiving the rest of replies meanwhile, s for each second and all slices together.
    pub receiving: f64,
    /// Between replies and the next requests, s for each second and all slices together.
    pub between: f64,
}

impl Moment for VisitMoment {
    fn append(&mut self, next: &Self) {
        let (before_s, after_s) = (self.to_s - self.from_s, next.to_s - next.from_s);
        let mean = |before, after| joined_per_s((before_s, before), (after_s, after));
        *self = Self {
            from_s: self.from_s,
            to_s: next.to_s,
            documents_per_s: mean(self.documents_per_s, next.documents_per_s),
            mb_per_s: mean(self.mb_per_s, next.mb_per_s),
            asking: next.asking,
            slices_done: next.slices_done,
            first_byte: mean(self.first_byte, next.first_byte),
            receiving: mean(self.receiving, next.receiving),
            between: mean(self.between, next.between),
        };
    }
}

impl Beside for VisitMoment {
    fn stretch(&self) -> (f64, f64) {
        (self.from_s, self.to_s)
    }

    fn empty(from_s: f64, to_s: f64) -> Self {
        Self { from_s, to_s, ..Self::default() }
    }

    fn add_rates(&mut self, other: &Self, share: f64) {
        self.documents_per_s += other.documents_per_s * share;
        self.mb_per_s += other.mb_per_s * share;
        self.first_byte += other.first_byte * share;
        self.receiving += other.receiving * share;
        self.between += other.between * share;
    }

    fn add_end(&mut self, other: &Self, is_over: bool) {
        self.asking += if is_over { 0 } else { other.asking };
        self.slices_done += other.slices_done;
    }
}

/// A number of slices that asked at once for a while.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct SlicesTried {
    /// Their number.
    pub slices: u32,
    /// Body bytes per second that they brought, 10^6.
    pub mb_per_s: f64,
}

/// Shares of the slices' time, 0 to 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct TimeShares {
    /// Waiting for the first byte of a reply.
    pub first_byte: f64,
    /// Receiving the rest of it.
    pub receiving: f64,
    /// Between a reply and the next request.
    pub between: f64,
}

impl TimeShares {
    /// From times in whatever unit.
    #[must_use]
    pub fn of(first_byte: f64, receiving: f64, between: f64) -> Self {
        let all = (first_byte + receiving + between).max(f64::MIN_POSITIVE);
        Self { first_byte: first_byte / all, receiving: receiving / all, between: between / all }
    }
}

/// A slice that did not come to its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct UnfinishedSlice {
    /// Its number.
    pub slice: u32,
    /// The reason.
    pub reason: String,
    /// Continuation token; absent at its beginning.
    pub token: Option<String>,
}

/// One way of visiting, measured for a while.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct VisitCell {
    /// Slices.
    pub slices: u32,
    /// True if replies streamed.
    pub stream: bool,
    /// Buckets at once for each request; none where the server chose.
    pub concurrency: Option<u32>,
    /// Time that it was measured, s.
    pub seconds: f64,
    /// Documents per second.
    pub documents_per_s: f64,
    /// Body bits per second, in 10^9.
    pub gbps: f64,
    /// Replies that came to their end.
    pub replies: u64,
    /// Account of the slices' time.
    pub time: TimeShares,
    /// CPU of this process for 10^9 body bytes, s.
    pub cpu_s_per_gb: f64,
    /// True if the whole corpus was through before the time was.
    pub whole: bool,
    /// Requests that failed.
    pub failed: u64,
}
