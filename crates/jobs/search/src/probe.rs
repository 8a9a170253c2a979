//! Probe of an edit distance: words planted at known distances in an index of their own, and which of them come
//! back.
//!
//! An engine may answer 200 to a distance of 4 and search 2; only its hits tell.

use super::dialect::{Call, Dialect, Feeding, insert};
use super::query::{Clause, DISTANCE_MAX, Distance, Query};
use plimsoll_record::search::{Probe, ProbeAnswer};

/// Distances that are asked for.
pub const ASKED: std::ops::RangeInclusive<u8> = 0..=4;
/// Largest distance planted: one beyond all that may be asked for, so that an engine that reaches farther shows too.
const PLANTED: u8 = DISTANCE_MAX + 1;
/// The word that is asked for. Its letters all differ from the ones put in, and none of its neighbours are alike, so
/// that no planted word is nearer than it should be.
const WORD: &str = "lighthousekeysandrope";
/// Positions at which letters are replaced, in this order: never two side by side.
const PLACES: [usize; PLANTED as usize] = [6, 2, 10, 4, 8, 14, 16, 18, 0];
/// Replacement letters.
const LETTERS: [char; PLANTED as usize] = ['x', 'q', 'z', 'w', 'v', 'x', 'q', 'z', 'w'];
/// The category of all documents of the probe.
const CATEGORY: &str = "plimsollprobe";

/// The word at a distance.
fn spelt(distance: u8) -> String {
    let mut letters: Vec<char> = WORD.chars().collect();
    for (place, letter) in PLACES.iter().zip(LETTERS).take(usize::from(distance)) {
        letters[*place] = letter;
    }
    letters.into_iter().collect()
}

/// The word with two neighbouring letters in each other's place.
fn swapped() -> String {
    let mut letters: Vec<char> = WORD.chars().collect();
    letters.swap(11, 12);
    letters.into_iter().collect()
}

/// Ids and bodies of the documents.
#[must_use]
pub fn documents() -> Vec<(String, String)> {
    let mut all: Vec<(String, String)> =
        (0..=PLANTED).map(|distance| (format!("probe-{distance}"), spelt(distance))).collect();
    all.push(("probe-swap".to_owned(), swapped()));
    all.push(("probe-inside".to_owned(), format!("qqqqqqqq{WORD}qqqqqqqq")));
    all
}

/// The requests that write the documents.
#[must_use]
pub fn writes(dialect: Dialect, index: &str) -> Vec<Call> {
    let field = |body: &str| {
        serde_json::json!({
            "title": "", "body": body, "category": CATEGORY, "author": "plimsoll", "score": 0
        })
    };
    let (path, content_type) = dialect.bulk_path(index);
    match dialect.feeding() {
        Feeding::Bulk => {
            let mut lines = String::new();
            for (id, body) in documents() {
                let action = serde_json::json!({ "index": { "_id": id } });
                lines += &format!("{action}\n{}\n", field(&body));
            }
            vec![Call::with_body("POST", path, (content_type, lines))]
        }
        Feeding::Copy => {
            let rows: Vec<(String, serde_json::Map<String, serde_json::Value>)> = documents()
                .into_iter()
                .filter_map(|(id, body)| Some((id, field(&body).as_object()?.clone())))
                .collect();
            vec![Call::Sql(insert(index, &rows))]
        }
        Feeding::Single(_) => documents()
            .into_iter()
            .map(|(id, body)| {
                let fields = serde_json::json!({ "fields": field(&body) }).to_string();
                Call::with_body("POST", format!("{path}{id}"), (content_type, fields))
            })
            .collect(),
    }
}

/// The requests that take the documents away again. Where an engine has no index of its own for the probe, others
/// beside them stay.
#[must_use]
pub fn removes(dialect: Dialect, index: &str) -> Vec<Call> {
    match dialect.feeding() {
        Feeding::Bulk | Feeding::Copy => dialect.remove(index),
        Feeding::Single(path) => documents()
            .into_iter()
            .map(|(id, _)| Call::without_body("DELETE", format!("{path}{id}")))
            .collect(),
    }
}

fn category() -> Clause {
    Clause::Term { field: "category".to_owned(), values: vec![CATEGORY.into()] }
}

/// The query for all that is there of the documents.
#[must_use]
pub fn all() -> Query {
    Query { name: "all of the probe".to_owned(), clause: category(), repeat: 1, size: 1 }
}

/// The query for one distance. Where an engine has no index of its own for the probe, the category keeps other
/// documents out.
#[must_use]
pub fn query(dialect: Dialect, distance: u8) -> Query {
    let word = Clause::Fuzzy {
        field: "body".to_owned(),
        word: WORD.to_owned(),
        distance: Distance::Fixed(distance),
    };
    let clause = if dialect == Dialect::Vespa {
        Clause::Bool { must: vec![word, category()], should: vec![], must_not: vec![], minimum: 0 }
    } else {
        word
    };
    Query { name: format!("distance {distance}"), clause, repeat: 1, size: 20 }
}

/// Puts an engine's answers together: ids that came back for each distance, or its words of refusal.
#[must_use]
pub fn judge(engine: &str, answers: &[(u8, Result<Vec<String>, String>)]) -> Probe {
    let mut probe = Probe { engine: engine.to_owned(), ..Probe::default() };
    for (distance, answer) in answers {
        let one = match answer {
            Err(refused) => ProbeAnswer {
                distance: *distance,
                refused: Some(refused.clone()),
                found: Vec::new(),
            },
            Ok(ids) => {
                if *distance == 1 {
                    probe.swap_is_one = Some(ids.iter().any(|id| id == "probe-swap"));
                }
                if *distance == 0 {
                    probe.inside = Some(ids.iter().any(|id| id == "probe-inside"));
                }
                let mut found: Vec<u8> =
                    ids.iter().filter_map(|id| id.strip_prefix("probe-")?.parse().ok()).collect();
                found.sort_unstable();
                found.dedup();
                ProbeAnswer { distance: *distance, found, refused: None }
            }
        };
        probe.asked.push(one);
    }
    probe
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_workloads::edit_distance::edit_distance;

    #[test]
    fn words_are_as_far_as_they_say() {
        for distance in 0..=PLANTED {
            let far = edit_distance(WORD.as_bytes(), spelt(distance).as_bytes());
            assert_eq!(far, usize::from(distance));
        }
        assert_eq!(edit_distance(WORD.as_bytes(), swapped().as_bytes()), 2);
        assert!(!LETTERS.iter().any(|letter| WORD.contains(*letter)));
    }

    #[test]
    fn answers_say_what_was_searched() {
        let ids = |list: &[&str]| Ok(list.iter().map(|id| (*id).to_owned()).collect());
        let probe = judge(
            "e",
            &[
                (0, ids(&["probe-0"])),
                (1, ids(&["probe-0", "probe-1", "probe-swap"])),
                (2, ids(&["probe-2", "probe-1", "probe-0", "probe-swap"])),
                (3, Err("400: no".to_owned())),
                (4, ids(&["probe-2", "probe-1", "probe-0"])),
            ],
        );
        assert_eq!((probe.swap_is_one, probe.inside), (Some(true), Some(false)));
        assert_eq!(probe.asked[2].found, [0, 1, 2]);
        assert_eq!(probe.clamped_to(4), Some(2));
        assert_eq!(probe.refused(3), Some("400: no"));
    }

    #[test]
    fn an_engine_that_searches_as_far_as_it_is_asked_to_is_not_clamped() {
        // As one answers that means what it says: everything to the distance, and nothing beyond.
        let honest = |asked: u8| {
            let near = documents().into_iter().filter(|(_, body)| {
                edit_distance(WORD.as_bytes(), body.as_bytes()) <= usize::from(asked)
            });
            (asked, Ok(near.map(|(id, _)| id).collect()))
        };
        let probe = judge("e", &(0..=DISTANCE_MAX).map(honest).collect::<Vec<_>>());
        for asked in 0..=DISTANCE_MAX {
            assert_eq!((probe.clamped_to(asked), probe.mark(asked)), (None, None), "{asked}");
        }
        let farther = judge("e", &[(DISTANCE_MAX, honest(PLANTED).1)]);
        assert_eq!(farther.mark(DISTANCE_MAX).as_deref(), Some("reaches 9"));
    }

    #[test]
    fn a_shared_index_loses_the_probes_own_documents_only() {
        let shared = removes(Dialect::Vespa, "");
        assert_eq!(shared.len(), documents().len());
        let one = |call: &Call| matches!(call, Call::Http(call) if call.path.contains("/probe-"));
        assert!(shared.iter().all(one), "{shared:?}");
        assert_eq!(removes(Dialect::Elasticsearch, "i"), Dialect::Elasticsearch.remove("i"));
    }

    #[test]
    fn a_shared_index_is_asked_for_the_probes_own_documents() {
        let shared = Dialect::Vespa.shown("", &query(Dialect::Vespa, 3), 0).unwrap();
        assert!(shared.contains("maxEditDistance: 3") && shared.contains(CATEGORY), "{shared}");
        let own = Dialect::Elasticsearch.shown("i", &query(Dialect::Elasticsearch, 3), 0).unwrap();
        assert!(own.contains("\"fuzziness\":3") && !own.contains(CATEGORY), "{own}");
        assert_eq!(writes(Dialect::Elasticsearch, "i").len(), 1);
        assert_eq!(writes(Dialect::Vespa, "i").len(), documents().len());
        let rows = writes(Dialect::Postgresql, "i");
        assert!(
            matches!(&rows[..], [Call::Sql(text)] if text.contains("'probe-swap'")),
            "{rows:?}"
        );
    }
}
