//! The same shape of answers: members, kinds of values, status, and kinds of errors.
//!
//! What differs is a rule of this file with its reason, and a rule that nothing needs is an error:
//! the list in `docs/elasticsearch.md` is the list here.

use super::{JSON, LINES, Pair, Reply};
use serde_json::{Value, json};
use std::cell::Cell;
use std::collections::BTreeMap;

/// A request: method, path, body.
type Asked = (&'static str, &'static str, &'static str);

/// A difference that is meant: the ends of paths into an answer, and to requests that hold this.
struct Rule {
    request: &'static str,
    ends: &'static [&'static str],
    used: Cell<u32>,
}

fn rules() -> Vec<Rule> {
    let rule = |request, ends| Rule { request, ends, used: Cell::new(0) };
    vec![
        // Version 7 has a type in each reply; OpenSearch 2 has none.
        rule("", &["/_type"]),
        // The versions name their kind differently; one port answers Vespa's tools as well.
        rule("GET / ", &["/version/distribution", "/version/build_flavor"]),
        rule("GET / ", &["/id", "/class", "/bundle", "/serverBindings/[]"]),
        // What OpenSearch 2 has and version 7 has not.
        rule("_cluster/health", &["/discovered_master", "/discovered_cluster_manager"]),
        rule("_cat/health", &["/discovered_cluster_manager"]),
        rule("shape", &["/replication/type"]),
        // This process has no heap, and does not watch its processor.
        rule(
            "_cat/nodes",
            &["/heap.percent", "/cpu", "/node.roles", "/cluster_manager", "/master"],
        ),
        // The size of one shard is not counted.
        rule("_cat/shards", &["/store"]),
    ]
}

/// The members of a value with their kinds. Errors, results and states count as they are.
fn skeleton(value: &Value, path: &str, out: &mut BTreeMap<String, String>) {
    let exact = [
        "/type",
        "/result",
        "/status",
        "/relation",
        "/found",
        "/errors",
        "/timed_out",
        "/acknowledged",
    ];
    let kind = match value {
        Value::Object(object) if !object.is_empty() => {
            for (key, value) in object {
                skeleton(value, &format!("{path}/{key}"), out);
            }
            return;
        }
        Value::Array(items) if !items.is_empty() => {
            items.iter().for_each(|item| skeleton(item, &format!("{path}/[]"), out));
            return;
        }
        value if exact.iter().any(|end| path.ends_with(end)) => value.to_string(),
        Value::Null => "null".to_owned(),
        Value::Bool(_) => "boolean".to_owned(),
        Value::Number(_) => "number".to_owned(),
        Value::String(_) => "text".to_owned(),
        Value::Array(_) => "[]".to_owned(),
        Value::Object(_) => "{}".to_owned(),
    };
    // A list whose items differ keeps all their kinds.
    out.entry(path.to_owned())
        .and_modify(|known| {
            if !known.contains(&kind) {
                known.push_str(&kind);
            }
        })
        .or_insert(kind);
}

fn differences(asked: &str, real: &Reply, ours: &Reply, rules: &[Rule]) -> Vec<String> {
    let mut found = Vec::new();
    if (real.status, &real.kind) != (ours.status, &ours.kind) {
        found.push(format!("{} {} and {} {}", real.status, real.kind, ours.status, ours.kind));
    }
    let (mut left, mut right) = (BTreeMap::new(), BTreeMap::new());
    skeleton(&real.json(), "", &mut left);
    skeleton(&ours.json(), "", &mut right);
    for path in left.keys().chain(right.keys().filter(|path| !left.contains_key(*path))) {
        if left.get(path) == right.get(path) {
            continue;
        }
        let allows = |rule: &&Rule| {
            asked.contains(rule.request) && rule.ends.iter().any(|end| path.ends_with(end))
        };
        match rules.iter().find(allows) {
            Some(rule) => rule.used.set(rule.used.get() + 1),
            None => found.push(format!("{path}: {:?} and {:?}", left.get(path), right.get(path))),
        }
    }
    found
}

/// Asks both engines everything, in this order.
pub fn compare(pair: &mut Pair) {
    let rules = rules();
    let mut wrong = Vec::new();
    let lists =
        [indices(), documents(), bulks(), searches(), queries(), refused(), states(), ends()];
    for (method, path, body) in lists.into_iter().flatten() {
        let asked = format!("{method} {path} {body}");
        let kind = if path.contains("bulk") || path.contains("msearch") { LINES } else { JSON };
        let real = pair.real.send(method, path, kind, body);
        let ours = pair.ours.send(method, path, kind, body);
        let found = differences(&asked, &real, &ours, &rules);
        if !found.is_empty() {
            wrong.push(format!(
                "{asked}\n  {}\n  {}\n  {}",
                found.join("\n  "),
                real.text,
                ours.text
            ));
        }
    }
    otherwise(pair, &mut wrong);
    for rule in &rules {
        if rule.used.get() == 0 {
            wrong.push(format!("nothing needs the rule {:?} {:?}", rule.request, rule.ends));
        }
    }
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}

/// What is meant to be answered otherwise: by the status of both, and a word of ours.
fn otherwise(pair: &mut Pair, wrong: &mut Vec<String>) {
    pair.real.ok("PUT", "/shape", &Value::Null);
    pair.ours.ok("PUT", "/shape", &Value::Null);
    let fuzzy = r#"{"query":{"match":{"b":{"query":"x","fuzziness":4}}}}"#;
    for (method, path, body, real, ours, word) in [
        // A distance that is beyond the mode is refused instead of being cut to 2.
        ("POST", "/shape/_search", fuzzy, 200, 400, "Valid edit distances"),
        // What is not there says so.
        ("POST", "/shape/_search", r#"{"aggs":{}}"#, 200, 400, "does not implement"),
        (
            "POST",
            "/shape/_search",
            r#"{"query":{"wildcard":{"b":"x*"}}}"#,
            200,
            400,
            "does not implement",
        ),
        ("POST", "/_analyze", r#"{"text":"x"}"#, 200, 400, "does not implement [_analyze]"),
        ("GET", "/_template", "", 200, 400, "does not implement [_template]"),
        ("GET", "/_cat/master", "", 200, 400, "does not implement [_cat/master]"),
        ("GET", "/shape/_search?explain=true", "", 200, 400, "does not implement [explain]"),
        // The simple `q` has no syntax that could be wrong.
        ("GET", "/shape/_search?q=b:(", "", 400, 200, "hits"),
        // Paths without a name of the API belong to Vespa's.
        ("GET", "/shape/nope/1", "", 400, 404, "/document/v1/"),
    ] {
        let told = pair.real.send(method, path, JSON, body);
        let said = pair.ours.send(method, path, JSON, body);
        if (told.status, said.status) != (real, ours) || !said.text.contains(word) {
            wrong.push(format!(
                "{method} {path} {body}: {} and {} {}",
                told.status, said.status, said.text
            ));
        }
    }
    // Of what the engines tell of themselves there is less here, and nothing else.
    for path in ["/_cluster/stats", "/_nodes", "/shape/_stats"] {
        let (real, ours) =
            (pair.real.ok("GET", path, &json!(null)), pair.ours.ok("GET", path, &json!(null)));
        let both: Vec<&String> = ours.as_object().unwrap().keys().collect();
        if let Some(own) = both.iter().find(|key| real.get(key.as_str()).is_none()) {
            wrong.push(format!("GET {path}: only ours has {own}"));
        }
    }
    pair.real.ok("DELETE", "/shape", &Value::Null);
    pair.ours.ok("DELETE", "/shape", &Value::Null);
}

const SHAPE: &str = r#"{"settings":{"number_of_shards":2,"number_of_replicas":0},"mappings":{"properties":{"body":{"type":"text"},"tag":{"type":"keyword"},"n":{"type":"long"},"d":{"type":"date"}}}}"#;
const STRICT: &str = r#"{"settings":{"number_of_replicas":0},"mappings":{"dynamic":"strict","properties":{"a":{"type":"text"}}}}"#;

fn indices() -> Vec<Asked> {
    vec![
        ("GET", "/", ""),
        ("PUT", "/shape", SHAPE),
        ("PUT", "/shape", SHAPE),
        ("PUT", "/strict", STRICT),
        ("PUT", "/Shape", ""),
        ("PUT", "/_x", ""),
        ("GET", "/_x", ""),
        ("PUT", "/sh%20ape", ""),
        ("PUT", "/bad", r#"{"settings":{"number_of_shards":0}}"#),
        ("PUT", "/bad", r#"{"settings":{"no_such_setting":0}}"#),
        ("PUT", "/bad", r#"{"mappings":{"properties":{"a":{"type":"nope"}}}}"#),
        ("PUT", "/bad", r#"{"nonsense":1}"#),
        ("PUT", "/bad", r#"{"settings":"#),
        ("GET", "/shape", ""),
        ("GET", "/shape/_mapping", ""),
        ("GET", "/shape/_settings", ""),
        ("HEAD", "/shape", ""),
        ("HEAD", "/nope", ""),
        ("GET", "/nope", ""),
        ("DELETE", "/nope", ""),
        ("GET", "/nope/_search", ""),
        ("GET", "/nope/_doc/1", ""),
        ("GET", "/nope/_count", ""),
        ("GET", "/nope/_mapping", ""),
        ("POST", "/nope/_refresh", ""),
        ("GET", "/shape/_alias", ""),
        ("GET", "/_alias/nope", ""),
        ("PATCH", "/shape", ""),
    ]
}

fn documents() -> Vec<Asked> {
    vec![
        ("PUT", "/shape/_doc/1", r#"{"body":"hello world","tag":"a","n":1}"#),
        ("PUT", "/shape/_doc/1", r#"{"body":"hello there","tag":"a","n":2}"#),
        ("POST", "/shape/_doc", r#"{"body":"no id"}"#),
        ("PUT", "/shape/_create/1", r#"{"body":"x"}"#),
        ("PUT", "/shape/_doc/2?refresh=true", r#"{"body":"second one","n":5}"#),
        ("PUT", "/shape/_doc/3", r#"{"n":"many"}"#),
        ("PUT", "/shape/_doc/3", r#"{"n":"#),
        ("PUT", "/shape/_doc/3?refresh=wait_for", r#"{"new":"one","f":1.5,"b":true,"o":{"x":1}}"#),
        ("PUT", "/strict/_doc/1", r#"{"zzz":1}"#),
        ("GET", "/shape/_mapping", ""),
        ("GET", "/shape/_doc/1", ""),
        ("GET", "/shape/_doc/99", ""),
        ("HEAD", "/shape/_doc/1", ""),
        ("HEAD", "/shape/_doc/99", ""),
        ("GET", "/shape/_source/1", ""),
        ("GET", "/shape/_source/99", ""),
        ("GET", "/shape/_doc/1?_source=false", ""),
        ("GET", "/shape/_doc/1?_source_includes=n", ""),
        ("POST", "/shape/_update/1", r#"{"doc":{"n":7}}"#),
        ("POST", "/shape/_update/1", r#"{"doc":{"n":7}}"#),
        ("POST", "/shape/_update/99", r#"{"doc":{"n":7}}"#),
        ("POST", "/shape/_update/98", r#"{"doc":{"n":7},"doc_as_upsert":true}"#),
        ("DELETE", "/shape/_doc/98", ""),
        ("DELETE", "/shape/_doc/98", ""),
        ("PUT", "/shape/_doc/1?if_seq_no=999&if_primary_term=1", r#"{"n":1}"#),
        (
            "POST",
            "/_mget",
            r#"{"docs":[{"_index":"shape","_id":"1"},{"_index":"shape","_id":"99"},{"_index":"nope","_id":"1"}]}"#,
        ),
        ("POST", "/shape/_mget", r#"{"ids":["1","99"]}"#),
        ("POST", "/shape/_mget", "{}"),
        ("GET", "/shape/_doc", ""),
        ("DELETE", "/shape/_doc", ""),
    ]
}

const MIXED: &str = r#"{"index":{"_index":"shape","_id":"10"}}
{"n":1}
{"create":{"_index":"shape","_id":"10"}}
{"n":1}
{"delete":{"_index":"shape","_id":"nope"}}
{"update":{"_index":"shape","_id":"nope2"}}
{"doc":{"n":1}}
{"index":{"_index":"shape","_id":"11"}}
{"n":"words"}
{"update":{"_index":"shape","_id":"10"}}
{"doc":{"n":3}}
{"delete":{"_index":"shape","_id":"10"}}
"#;

fn bulks() -> Vec<Asked> {
    vec![
        ("POST", "/_bulk", MIXED),
        (
            "POST",
            "/_bulk",
            "{\"index\":{\"_index\":\"shape\",\"_id\":\"10\",\"nonsense\":1}}\n{\"n\":1}\n",
        ),
        ("POST", "/_bulk", "{\"foo\":{\"_index\":\"shape\",\"_id\":\"10\"}}\n{\"n\":1}\n"),
        ("POST", "/_bulk", "{\"index\":{\"_index\":\"shape\",\"_id\":\"10\"}}\n{\"n\":1}"),
        ("POST", "/_bulk", "{\"index\":{}}\n{\"n\":1}\n"),
        ("POST", "/_bulk", ""),
        ("POST", "/_bulk", "not json\n"),
        ("POST", "/_bulk", "{\"index\":{\"_index\":\"Bad\",\"_id\":\"1\"}}\n{\"n\":1}\n"),
        ("POST", "/_bulk", "{\"index\":{\"_index\":\"shape\",\"_id\":\"10\"}}\n{\"n\":\n"),
        (
            "POST",
            "/strict/_bulk?refresh=true",
            "{\"index\":{\"_id\":\"1\"}}\n{\"a\":\"x\",\"zzz\":1}\n{\"index\":{\"_id\":\"2\"}}\n{\"a\":\"x\"}\n",
        ),
        ("POST", "/shape/_refresh", ""),
        ("POST", "/shape/_flush", ""),
        ("POST", "/shape/_forcemerge", ""),
    ]
}

fn searches() -> Vec<Asked> {
    vec![
        ("GET", "/shape/_count", ""),
        ("POST", "/shape/_count", r#"{"query":{"match":{"body":"hello"}}}"#),
        ("POST", "/shape/_count", r#"{"query":{"nope":{}}}"#),
        ("POST", "/shape/_count", r#"{"query":{"match":{"n":"x"}}}"#),
        ("POST", "/shape/_count", r#"{"size":3}"#),
        ("POST", "/shape/_search", ""),
        ("POST", "/shape/_search", r#"{"query":{"match":{"body":"hello"}}}"#),
        ("POST", "/shape/_search", r#"{"query":{"match":{"body":"nothing"}}}"#),
        ("POST", "/shape/_search", r#"{"size":0}"#),
        ("POST", "/shape/_search", r#"{"track_total_hits":false}"#),
        ("POST", "/shape/_search", r#"{"track_total_hits":1}"#),
        ("POST", "/shape/_search", r#"{"sort":[{"n":"desc"}]}"#),
        ("POST", "/shape/_search", r#"{"sort":["_doc"]}"#),
        ("POST", "/shape/_search", r#"{"sort":[{"body":"desc"}]}"#),
        ("POST", "/shape/_search", r#"{"sort":[{"nofield":"desc"}]}"#),
        ("POST", "/shape/_search", r#"{"_source":["n"]}"#),
        (
            "POST",
            "/shape/_search",
            r#"{"_source":{"excludes":["n"]},"version":true,"seq_no_primary_term":true}"#,
        ),
        ("POST", "/shape/_search", r#"{"size":-1}"#),
        ("POST", "/shape/_search", r#"{"from":-1}"#),
        ("POST", "/shape/_search", r#"{"size":10001}"#),
        ("POST", "/shape/_search", r#"{"from":9999,"size":10}"#),
        ("POST", "/shape/_search", r#"{"size":"x"}"#),
        ("POST", "/shape/_search", r#"{"query":"#),
        ("POST", "/shape/_search", r#"{"query":{"match_all":{}}} trailing"#),
        ("POST", "/shape/_search", "not json"),
        ("POST", "/shape/_search?nope=1", ""),
        ("GET", "/shape/_search?q=body:hello", ""),
        ("GET", "/shape/_search?size=x", ""),
        (
            "POST",
            "/shape/_msearch",
            "{}\n{\"query\":{\"match_all\":{}}}\n{\"index\":\"nope\"}\n{}\n{}\n{\"query\":{\"match\":{\"n\":\"x\"}}}\n",
        ),
        (
            "POST",
            "/shape/_msearch",
            "{}\n{\"query\":{\"match_all\":{}}}\n{}\n{\"query\":{\"nope\":{}}}\n",
        ),
        ("POST", "/nope*/_search", ""),
        ("POST", "/shape,nope/_search", ""),
        ("POST", "/shape,nope/_search?ignore_unavailable=true", ""),
        ("PUT", "/shape/_search", ""),
    ]
}

fn queries() -> Vec<Asked> {
    const QUERIES: [&str; 12] = [
        r#"{"query":{"match":{"n":{"query":"x","lenient":true}}}}"#,
        r#"{"query":{"match":{"body":{"query":"helo","fuzziness":1.5}}}}"#,
        r#"{"query":{"fuzzy":{"body":{"value":"helo","fuzziness":1}}}}"#,
        r#"{"query":{"bool":{}}}"#,
        r#"{"query":{"bool":{"must":[{"match":{"body":"hello"}}],"must_not":{"term":{"tag":"b"}}}}}"#,
        r#"{"query":{"ids":{"values":["1"]}}}"#,
        r#"{"query":{"exists":{"field":"n"}}}"#,
        r#"{"query":{"prefix":{"body":"he"}}}"#,
        r#"{"query":{"match_phrase":{"body":"hello there"}}}"#,
        r#"{"query":{"range":{"n":{"gte":1}}}}"#,
        r#"{"query":{"terms":{"tag":["a","b"]}}}"#,
        r#"{"query":{"match":{"nofield":"x"}}}"#,
    ];
    QUERIES.map(|query| ("POST", "/shape/_search", query)).to_vec()
}

fn refused() -> Vec<Asked> {
    const REFUSED: [&str; 37] = [
        r#"{"query":{"nope":{"body":"x"}}}"#,
        r#"{"query":{"match":{"body":{"query":"x","nope":1}}}}"#,
        r#"{"query":{"match":{"body":"x","tag":"y"}}}"#,
        r#"{"query":{"match":{}}}"#,
        r#"{"query":{}}"#,
        r#"{"query":[]}"#,
        r#"{"query":"x"}"#,
        r#"{"query":{"match_phrase":{"body":{"query":"a b","fuzziness":2}}}}"#,
        r#"{"query":{"match_phrase":{"body":{"query":"a b","operator":"and"}}}}"#,
        r#"{"query":{"match":{"n":"x"}}}"#,
        r#"{"query":{"match_phrase":{"n":"x"}}}"#,
        r#"{"query":{"term":{"n":"x"}}}"#,
        r#"{"query":{"range":{"n":{"gte":"x"}}}}"#,
        r#"{"query":{"range":{"n":{"foo":1}}}}"#,
        r#"{"query":{"range":{"d":{"gte":"not a date"}}}}"#,
        r#"{"query":{"term":{"n":{"value":null}}}}"#,
        r#"{"query":{"term":{"tag":["a"]}}}"#,
        r#"{"query":{"terms":{"tag":"a"}}}"#,
        r#"{"query":{"fuzzy":{"body":{"value":"helo","fuzziness":"x"}}}}"#,
        r#"{"query":{"fuzzy":{"n":{"value":"1"}}}}"#,
        r#"{"query":{"prefix":{"n":"1"}}}"#,
        r#"{"query":{"match":{"body":{"query":"helo","fuzziness":"x"}}}}"#,
        r#"{"query":{"match":{"body":{"query":"helo","fuzziness":-1}}}}"#,
        r#"{"query":{"match":{"body":{"query":"x","operator":"xor"}}}}"#,
        r#"{"query":{"match":{"body":{"query":"x y","minimum_should_match":"x"}}}}"#,
        r#"{"query":{"bool":{"must":[{"match":{"body":"hello"}}],"nope":[]}}}"#,
        r#"{"query":{"bool":{"must":"x"}}}"#,
        r#"{"query":{"bool":{"must":[{"nope":{}}]}}}"#,
        r#"{"query":{"bool":{"filter":{"match":{"body":{"query":"x","fuzziness":"x"}}}}}}"#,
        r#"{"query":{"bool":{"should":[{"bool":{"nope":1}}]}}}"#,
        r#"{"query":{"bool":{"must_not":[{"range":{"n":{"gte":"x"}}}]}}}"#,
        r#"{"query":{"ids":{"values":["1"],"nope":1}}}"#,
        r#"{"query":{"match_all":{"nope":1}}}"#,
        r#"{"query":{"exists":{"nope":1}}}"#,
        r#"{"query":{"match_all":{}},"nope":1}"#,
        r#"{"query":{"match_all":{}},"ryft_enabled":true}"#,
        r#"{"query":{"match_all":{},"match_none":{}}}"#,
    ];
    REFUSED.map(|query| ("POST", "/shape/_search", query)).to_vec()
}

fn states() -> Vec<Asked> {
    vec![
        ("GET", "/_cat/indices/shape", ""),
        ("GET", "/_cat/indices/shape?format=json", ""),
        ("GET", "/_cat/indices/nope", ""),
        ("GET", "/_cat/indices/shape?v&h=index,docs.count", ""),
        ("GET", "/_cat/count/shape?format=json", ""),
        ("GET", "/_cat/health?format=json", ""),
        ("GET", "/_cat/shards/shape?format=json", ""),
        ("GET", "/_cat/nodes?format=json", ""),
        ("POST", "/_cat/nodes", ""),
        ("POST", "/", ""),
        ("GET", "/_cluster/health?level=indices", ""),
        ("GET", "/_cluster/health/shape?level=shards", ""),
        ("GET", "/_cluster/health?wait_for_status=purple", ""),
        ("GET", "/_cluster/health?wait_for_nodes=%3E%3D2&timeout=100ms", ""),
        ("GET", "/_cluster/health?timeout=xyz", ""),
        ("GET", "/_cluster/settings", ""),
        ("GET", "/shape/_stats/nope", ""),
        ("POST", "/shape/_mget", r#"{"ids":[]}"#),
        ("POST", "/shape/_msearch", "{}\n{\"size\":0}"),
        ("GET", "/shape/_search?q=_exists_:n", ""),
        ("GET", "/shape/_search?q=%22hello%20there%22", ""),
        ("GET", "/_cluster/health", ""),
        ("GET", "/_cluster/health/shape", ""),
        ("GET", "/_cluster/health/nope?timeout=100ms", ""),
        ("GET", "/_cluster/health?wait_for_status=green&timeout=1s", ""),
        ("POST", "/_cluster/health", ""),
        ("GET", "/_nope", ""),
        ("PUT", "/shape/_mapping", r#"{"properties":{"extra":{"type":"keyword"}}}"#),
        ("PUT", "/shape/_mapping", r#"{"properties":{"body":{"type":"long"}}}"#),
        ("PUT", "/shape/_settings", r#"{"index":{"refresh_interval":"5s"}}"#),
        ("PUT", "/shape/_settings", r#"{"index":{"number_of_shards":3}}"#),
        ("PUT", "/shape/_settings", r#"{"index":{"nope":3}}"#),
    ]
}

fn ends() -> Vec<Asked> {
    vec![("DELETE", "/shape", ""), ("DELETE", "/strict", ""), ("GET", "/shape/_search", "")]
}
