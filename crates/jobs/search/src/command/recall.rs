//! Recall: documents that engines found of those known to be in a synthetic text.

use super::text::Text;
use crate::query::Query;
use crate::truth::expected;
use anyhow::Result;
use plimsoll_record::search::{Answer, Recall};
use plimsoll_workloads::corpus::Synthetic;
use std::collections::BTreeMap;

/// Every answer to a query whose truth is known, beside that truth.
///
/// # Errors
/// When the text cannot be made again.
pub fn recall(answers: &[Answer], texts: &[Text], list: &[Query]) -> Result<Vec<Recall>> {
    let mut truths: BTreeMap<(String, String, u8), Option<u64>> = BTreeMap::new();
    let mut all = Vec::new();
    for text in texts {
        let Some(options) = &text.source else { continue };
        let corpus = Synthetic::new(options)?;
        for answer in answers.iter().filter(|answer| answer.size == text.label) {
            let (Some(found), Some(query)) =
                (answer.hits, list.iter().find(|query| query.name == answer.query))
            else {
                continue;
            };
            let place = (text.label.clone(), answer.query.clone(), answer.distance);
            let truth =
                truths.entry(place).or_insert_with(|| expected(&corpus, query, answer.distance));
            if let Some(expected) = *truth {
                all.push(Recall {
                    engine: answer.engine.clone(),
                    size: text.label.clone(),
                    distance: answer.distance,
                    shards: answer.shards,
                    query: answer.query.clone(),
                    expected,
                    found,
                });
            }
        }
    }
    Ok(all)
}
