//! Source of a run's requests: rendered once when they fit into memory, else streamed.

use super::Form;
use crate::error::InputError;
use crate::ndjson::{NdjsonReader, NdjsonRequest};
use crate::query_file::{Passes, Record, RecordReader};
use crate::render::{RenderedSet, RequestParts};
use plimsoll_core::rng::{Rng, derive_seed};
use std::sync::Arc;

/// Order in which the requests of a file are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// As they stand in the file, again and again.
    #[default]
    File,
    /// Each once in a seeded order, then again in the same.
    Shuffle,
    /// Drawn with replacement.
    Random,
}

/// Requests in memory, rendered for each target.
#[derive(Debug)]
pub struct Rendered {
    /// One set a target, all of the same length.
    pub per_target: Vec<RenderedSet>,
}

/// One reader's way through rendered requests: every `step`-th of `first..last`, `passes` times.
#[derive(Clone, Debug)]
pub struct Way {
    first: u64,
    length: u64,
    /// The next position, counted over all passes.
    at: u64,
    step: u64,
    passes: Passes,
    order: Walk,
}

#[derive(Clone, Debug)]
enum Walk {
    File,
    Shuffled(Arc<Vec<u32>>),
    Random(Box<Rng>),
}

/// A seeded order of `length` requests, shared by all readers of a run.
#[must_use]
pub fn shuffled(length: usize, seed: u64) -> Arc<Vec<u32>> {
    let mut order: Vec<u32> = (0..length as u32).collect();
    Rng::new(derive_seed(seed, "order")).shuffle(&mut order);
    Arc::new(order)
}

impl Way {
    /// Returns a way through the requests `range` that begins with number `start` and advances by `step`.
    #[must_use]
    pub fn new(range: std::ops::Range<usize>, start: u64, step: u64, passes: Passes) -> Self {
        Self {
            first: range.start as u64,
            length: range.len() as u64,
            at: start,
            step: step.max(1),
            passes,
            order: Walk::File,
        }
    }

    /// In a seeded order instead of the file's.
    #[must_use]
    pub fn shuffled(mut self, order: Arc<Vec<u32>>) -> Self {
        self.order = Walk::Shuffled(order);
        self
    }

    /// Drawn with replacement; `stream` tells the readers of one run apart.
    #[must_use]
    pub fn random(mut self, seed: u64, stream: u64) -> Self {
        let own = derive_seed(seed.wrapping_add(stream), "random order");
        self.order = Walk::Random(Box::new(Rng::new(own)));
        self
    }

    /// The index of the next request; `None` when the passes are used up.
    #[inline]
    pub fn next_index(&mut self) -> Option<usize> {
        if self.length == 0 {
            return None;
        }
        let (pass, position) = if self.at < self.length {
            (0, self.at)
        } else {
            (self.at / self.length, self.at % self.length)
        };
        if let Passes::Count(passes) = self.passes
            && pass >= passes
        {
            return None;
        }
        self.at += self.step;
        let position = match &mut self.order {
            Walk::File => position,
            Walk::Shuffled(order) => u64::from(order[position as usize]),
            Walk::Random(rng) => rng.below(self.length),
        };
        Some((self.first + position) as usize)
    }
}

/// A file that is read while the run goes on.
pub enum Stream {
    /// The query file format.
    Records(Box<RecordReader>, Record),
    /// NDJSON.
    Ndjson(Box<NdjsonReader>),
}

impl Stream {
    /// Writes the next request; its line and class tag are returned. `None` at the end of all passes.
    ///
    /// # Errors
    /// When the file changed or became unreadable after it was checked.
    pub fn next(
        &mut self,
        form: &Form,
        out: &mut Vec<u8>,
    ) -> Result<Option<(u64, Option<String>)>, InputError> {
        match self {
            Stream::Records(reader, record) => {
                if !reader.next_repeating(record)? {
                    return Ok(None);
                }
                form.record(&record.target, &record.body, out);
                Ok(Some((record.line, None)))
            }
            Stream::Ndjson(reader) => {
                let Some(request) = reader.next_request()? else { return Ok(None) };
                form.ndjson(&request, out);
                Ok(Some((request.line, request.class)))
            }
        }
    }
}

impl Form {
    /// Appends the request for a record of a query file.
    pub fn record(&self, target: &[u8], body: &[u8], out: &mut Vec<u8>) {
        match self {
            Form::Fbench(form) => form.render(target, body, out),
            Form::Own { form, method, body: fixed, .. } => {
                let has_body = !body.is_empty() || method == "POST";
                let body = fixed.as_deref().or(has_body.then_some(body));
                form.render(&RequestParts { method, target, headers: &[], body }, out);
            }
        }
    }

    /// Appends the request of an NDJSON line.
    pub fn ndjson(&self, request: &NdjsonRequest, out: &mut Vec<u8>) {
        match self {
            Form::Fbench(form) => {
                let body = request.body.as_deref().unwrap_or_default();
                form.render(request.path.as_bytes(), body, out);
            }
            Form::Own { form, .. } => form.render(
                &RequestParts {
                    method: &request.method,
                    target: request.path.as_bytes(),
                    headers: &request.headers,
                    body: request.body.as_deref(),
                },
                out,
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(mut way: Way) -> Vec<usize> {
        std::iter::from_fn(|| way.next_index()).collect()
    }

    #[test]
    fn passes_and_steps() {
        assert_eq!(all(Way::new(2..5, 0, 1, Passes::Count(2))), [2, 3, 4, 2, 3, 4]);
        let odd = all(Way::new(0..5, 1, 2, Passes::Count(2)));
        let even = all(Way::new(0..5, 0, 2, Passes::Count(2)));
        assert_eq!((odd, even), (vec![1, 3, 0, 2, 4], vec![0, 2, 4, 1, 3]));
        assert!(all(Way::new(0..0, 0, 1, Passes::Unlimited)).is_empty());
    }

    #[test]
    fn a_shuffle_asks_each_once() {
        let order = shuffled(50, 3);
        let mut seen = all(Way::new(0..50, 0, 1, Passes::Count(1)).shuffled(order.clone()));
        assert_ne!(seen, (0..50).collect::<Vec<_>>());
        seen.sort_unstable();
        assert_eq!(seen, (0..50).collect::<Vec<_>>());
        assert_eq!(order, shuffled(50, 3));
    }
}
