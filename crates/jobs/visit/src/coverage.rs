//! Part of an interrupted visit's output that its tokens do not cover.

use super::form::VisitForm;
use super::ids::{IdSet, number_of};
use super::slice::SliceProgress;
use plimsoll_wire::vespa::{Bucket, DocumentId, ProgressToken};
use serde::Deserialize;

/// Looks at the lines of the output again and gathers those that may come once more.
pub struct Coverage<'a> {
    slices: &'a [SliceProgress],
    form: &'a VisitForm,
    tokens: Vec<Option<ProgressToken>>,
    /// Used bits of the buckets, where the tokens are Vespa's and count all buckets.
    bits: Option<u8>,
    /// Documents that may come again, by slice.
    pub uncovered: Vec<IdSet>,
    /// Documents that may come again in any slice.
    pub unknown: IdSet,
}

impl<'a> Coverage<'a> {
    /// Makes one for a visit of this form whose slices have this progress.
    pub fn new(slices: &'a [SliceProgress], form: &'a VisitForm) -> Self {
        let token = |slice: &SliceProgress| ProgressToken::decode(slice.token.as_deref()?).ok();
        let tokens: Vec<_> = slices.iter().map(token).collect();
        let known = tokens.iter().flatten().all(|t| t.total() == 1 << t.distribution_bits())
            && slices.iter().zip(&tokens).all(|(slice, t)| slice.token.is_none() || t.is_some());
        let first = tokens.iter().flatten().next().filter(|_| known);
        let bits = first.map(ProgressToken::distribution_bits);
        let uncovered = slices.iter().map(|_| IdSet::default()).collect();
        Self { slices, form, tokens, bits, uncovered, unknown: IdSet::default() }
    }

    /// Looks at one line.
    pub fn line(&mut self, line: &[u8]) {
        #[derive(Deserialize)]
        struct Line {
            #[serde(alias = "put", alias = "remove")]
            id: String,
        }
        let Ok(Line { id }) = serde_json::from_slice(line) else { return };
        let number = number_of(&id);
        let Some((bits, id)) = self.bits.zip(DocumentId::parse(&id).ok()) else {
            self.unknown.insert(number);
            return;
        };
        let position = Bucket::of_location(id.location(), bits).position();
        let slice = position % u64::from(self.form.slices.max(1));
        let Some(owner) = self.form.index_of(slice).filter(|&at| at < self.slices.len()) else {
            self.unknown.insert(number);
            return;
        };
        let covered = self.slices[owner].done
            || self.tokens[owner].as_ref().is_some_and(|token| {
                let pending = token.pending().any(|step| step.bucket.position() == position);
                position < token.cursor() && !pending
            });
        if !covered {
            self.uncovered[owner].insert(number);
        }
    }
}
