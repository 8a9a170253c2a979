//! `filter_path` and `pretty`.

use super::super::names::matches;
use crate::params::Params;
use serde_json::{Map, Value as Json};

/// Returns true if a shape is asked for.
pub(crate) fn is_asked(params: &Params) -> bool {
    paths(params).is_some() || params.flag("pretty")
}

fn paths(params: &Params) -> Option<&str> {
    params.get("filter_path").filter(|paths| !paths.is_empty())
}

/// The reply in the shape that was asked for.
pub(crate) fn shape(body: Vec<u8>, params: &Params) -> Vec<u8> {
    if !is_asked(params) {
        return body;
    }
    let (paths, pretty) = (paths(params), params.flag("pretty"));
    let Ok(mut json) = serde_json::from_slice::<Json>(&body) else { return body };
    if let Some(paths) = paths {
        let split = |path: &str| path.split('.').map(ToOwned::to_owned).collect::<Vec<_>>();
        let (without, with): (Vec<&str>, Vec<&str>) =
            paths.split(',').partition(|path| path.starts_with('-'));
        let with: Vec<_> = with.into_iter().map(split).collect();
        let without: Vec<_> = without.iter().map(|path| split(&path[1..])).collect();
        if !with.is_empty() {
            let all: Vec<&[String]> = with.iter().map(Vec::as_slice).collect();
            json = kept(&json, &all).unwrap_or_else(|| Json::Object(Map::new()));
        }
        for path in &without {
            remove(&mut json, path);
        }
    }
    if pretty {
        let mut shaped = serde_json::to_vec_pretty(&json).unwrap_or(body);
        shaped.push(b'\n');
        return shaped;
    }
    json.to_string().into_bytes()
}

/// Returns the members of a value that the paths choose.
fn kept(json: &Json, paths: &[&[String]]) -> Option<Json> {
    if paths.iter().any(|path| path.is_empty()) {
        return Some(json.clone());
    }
    match json {
        Json::Object(object) => {
            let mut found = Map::new();
            for (key, value) in object {
                let mut next: Vec<&[String]> = Vec::new();
                for path in paths {
                    if path[0] == "**" {
                        // Any number of steps, none too.
                        next.push(path);
                        if path.get(1).is_some_and(|step| matches(step, key)) {
                            next.push(&path[2..]);
                        }
                    } else if matches(&path[0], key) {
                        next.push(&path[1..]);
                    }
                }
                // `**` may come to the same step in many ways, in twice as many at each level.
                next.sort_unstable_by_key(|path| (path.as_ptr(), path.len()));
                next.dedup_by_key(|path| (path.as_ptr(), path.len()));
                if !next.is_empty()
                    && let Some(value) = kept(value, &next)
                {
                    found.insert(key.clone(), value);
                }
            }
            (!found.is_empty()).then_some(Json::Object(found))
        }
        Json::Array(items) => {
            let found: Vec<Json> = items.iter().filter_map(|item| kept(item, paths)).collect();
            (!found.is_empty()).then_some(Json::Array(found))
        }
        _ => None,
    }
}

fn remove(json: &mut Json, path: &[String]) {
    let Some((first, rest)) = path.split_first() else { return };
    match json {
        Json::Object(object) => {
            if rest.is_empty() {
                object.retain(|key, _| !matches(first, key));
                return;
            }
            for (key, value) in object {
                if matches(first, key) {
                    remove(value, rest);
                }
            }
        }
        Json::Array(items) => items.iter_mut().for_each(|item| remove(item, path)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn parts_of_a_reply_are_chosen() {
        let whole = json!({"took": 1, "hits": {"total": 2, "hits": [{"_id": "a", "_score": 1.0}]}});
        let shaped = |path: &str| {
            let params = Params::read(&format!("filter_path={path}")).unwrap();
            let body = shape(whole.to_string().into_bytes(), &params);
            serde_json::from_slice::<Json>(&body).unwrap()
        };
        assert_eq!(shaped("took"), json!({"took": 1}));
        assert_eq!(shaped("hits.hits._id"), json!({"hits": {"hits": [{"_id": "a"}]}}));
        assert_eq!(shaped("**._id,took"), json!({"took": 1, "hits": {"hits": [{"_id": "a"}]}}));
        assert_eq!(shaped("h*.total"), json!({"hits": {"total": 2}}));
        assert_eq!(shaped("-hits"), json!({"took": 1}));
        assert_eq!(shaped("x"), json!({}));
    }

    #[test]
    fn any_number_of_steps_many_times_over_a_deep_reply_takes_no_longer_than_once() {
        let mut whole = json!({"x": 1});
        for _ in 0..100 {
            whole = json!({"a": whole});
        }
        // Without a bound on what is looked for in each level, this takes 2^50 steps.
        let params = Params::read(&format!("filter_path={}x", "**.*.".repeat(25))).unwrap();
        let body = shape(whole.to_string().into_bytes(), &params);
        assert_eq!(serde_json::from_slice::<Json>(&body).unwrap(), whole);
    }
}
