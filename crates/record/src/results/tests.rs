//! Sections are read by their keys, and an error names its field.

use super::*;
use serde_json::json;

fn read(value: Value) -> Result<JobResults, String> {
    serde_json::from_value(value).map_err(|error| error.to_string())
}

#[test]
fn sections_are_written_as_they_were_read_and_in_their_order() {
    let entry = CatalogueEntry { name: "mine".to_owned(), ..CatalogueEntry::default() };
    let results = JobResults::of(RankResult::default())
        .with(FbenchResult { statuses: [(200, 3)].into(), ..FbenchResult::default() })
        .with(entry.clone());
    let value = serde_json::to_value(&results).unwrap();
    let keys: Vec<&String> = value.as_object().unwrap().keys().collect();
    assert_eq!(keys, ["rank", "fbench", "catalogue"]);
    assert_eq!(read(value).unwrap(), results);
    assert_eq!(results.catalogue(), Some(&entry));
    assert_eq!((results.visit(), results.is_search()), (None, false));
}

#[test]
fn a_section_takes_the_place_of_one_with_its_key() {
    let feed = |operations| FeedResult { operations, ..FeedResult::default() };
    let mut results = JobResults::of(feed(1)).with(MixResult::default());
    results.extend(JobResults::of(feed(2)));
    assert_eq!(results.iter().map(JobResult::key).collect::<Vec<_>>(), ["feed", "mix"]);
    assert_eq!(results.feed().map(|feed| feed.operations), Some(2));
}

#[test]
fn an_error_names_section_and_field() {
    let mut rank = serde_json::to_value(RankResult::default()).unwrap();
    rank["spread"] = json!("wide");
    let error = read(json!({ "rank": rank })).unwrap_err();
    assert!(error.starts_with("rank.spread: ") && error.contains("wide"), "{error}");
    let error = read(json!({"rank": {"instances": []}})).unwrap_err();
    assert!(error.contains("rank: missing field `spread`"), "{error}");
    let error = read(json!({"seek": {"certified_rate_per_s": "x"}})).unwrap_err();
    assert!(error.contains("seek: certified_rate_per_s: "), "{error}");
}

#[test]
fn a_section_of_a_later_version_passes_through() {
    let value = json!({"later": {"figure": 1.5}});
    let results = read(value.clone()).unwrap();
    assert_eq!(results.unknown().map(|one| one.key.as_str()).collect::<Vec<_>>(), ["later"]);
    assert_eq!(serde_json::to_value(&results).unwrap(), value);
}
