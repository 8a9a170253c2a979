//! What is refused, and how.

use super::*;

type Refused = (Json, &'static str, &'static str);

fn refused_queries() -> Vec<Refused> {
    let query = |query: Json| json!({ "query": query });
    vec![
        (query(json!({"foo": {}})), "parsing_exception", "unknown query [foo]"),
        (
            query(json!({"matsh": {}})),
            "parsing_exception",
            "unknown query [matsh] did you mean [match]?",
        ),
        (
            query(json!({"match": {"t": {"query": "x", "foo": 1}}})),
            "parsing_exception",
            "[match] query does not support [foo]",
        ),
        (
            query(json!({"match_phrase": {"t": {"query": "x y", "fuzziness": 2}}})),
            "parsing_exception",
            "[match_phrase] query does not support [fuzziness]",
        ),
        (
            query(json!({"match_phrase": {"t": {"query": "x y", "operator": "and"}}})),
            "parsing_exception",
            "[match_phrase] query does not support [operator]",
        ),
        (
            query(json!({"fuzzy": {"t": {"value": "x", "fuzziness": 4}}})),
            "illegal_argument_exception",
            "Valid edit distances are [0, 1, 2] but was [4]",
        ),
        (
            query(json!({"match": {"a": "x", "b": "y"}})),
            "parsing_exception",
            "[match] query doesn't support multiple fields, found [a] and [b]",
        ),
        (
            query(json!({"match_all": {}, "term": {}})),
            "parsing_exception",
            "[match_all] malformed query, expected [END_OBJECT] but found [FIELD_NAME]",
        ),
        (
            query(json!({"bool": {"mast": []}})),
            "x_content_parse_exception",
            "[1:19] [bool] unknown field [mast]",
        ),
        (
            query(json!({"bool": {"must": [{"foo": {}}]}})),
            "x_content_parse_exception",
            "[1:34] [bool] failed to parse field [must]",
        ),
        (
            query(json!({"bool": {"filter": [{"term": {"n": "abc"}}]}})),
            "search_phase_execution_exception",
            "all shards failed",
        ),
    ]
}

fn refused_searches() -> Vec<Refused> {
    vec![
        (
            json!({"ryft_enabled": true}),
            "parsing_exception",
            "Unknown key for a VALUE_BOOLEAN in [ryft_enabled].",
        ),
        (
            json!({"from": -1}),
            "illegal_argument_exception",
            "[from] parameter cannot be negative but was [-1]",
        ),
        (json!({"sort": ["nope"]}), "search_phase_execution_exception", "all shards failed"),
        (json!({"sort": ["t"]}), "search_phase_execution_exception", "all shards failed"),
        (json!({"size": 10_001}), "search_phase_execution_exception", "all shards failed"),
        (
            json!({"aggs": {}}),
            "illegal_argument_exception",
            "plimsoll does not implement [aggs] in a search",
        ),
    ]
}

#[test]
fn values_of_parameters_that_would_change_a_reply_are_rejected() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/e", &json!({}));
    for value in
        ["allow_no_indices=false", "require_alias=true", "realtime=false", "expand_wildcards=none"]
    {
        let (status, json) = es.ask("POST", &format!("/e*/_search?{value}"), &json!({}));
        let reason = format!("plimsoll does not implement [{value}]");
        assert_eq!((status, json["error"]["reason"].as_str()), (400, Some(reason.as_str())));
    }
    for value in ["allow_no_indices=true", "expand_wildcards=open,hidden", "realtime=true"] {
        es.ok("POST", &format!("/e*/_search?{value}"), &json!({}));
    }
}

#[test]
fn errors_are_those_of_elasticsearch() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let mapping = json!({"mappings": {"properties": {
        "t": {"type": "text"}, "n": {"type": "long"}, "b": {"type": "boolean"}}}});
    es.ok("PUT", "/e", &mapping);
    for (body, kind, reason) in refused_queries().into_iter().chain(refused_searches()) {
        let (status, json) = es.ask("POST", "/e/_search", &body);
        let error = &json["error"];
        assert_eq!((status, &json["status"]), (400, &json!(400)), "{body}: {json}");
        assert_eq!((error["type"].as_str(), error["reason"].as_str()), (Some(kind), Some(reason)));
        assert!(error["root_cause"][0]["type"].is_string(), "{json}");
        if kind == "parsing_exception" {
            assert!(error["line"].is_u64() && error["col"].is_u64(), "{json}");
        }
    }
    let placed = es.raw("POST", "/e/_search", "{\n \"query\": {\n  \"foo\": {}}}").json();
    assert_eq!((&placed["error"]["line"], &placed["error"]["col"]), (&json!(3), &json!(10)));
}

/// An error tells its causes as Elasticsearch tells them, in clauses and in shards.
#[test]
fn errors_tell_their_causes() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/e", &json!({"mappings": {"properties": {"n": {"type": "long"}}}}));
    let mut error = |query: Json| es.ask("POST", "/e/_search", &json!({ "query": query })).1;
    let inner = error(json!({"bool": {"must": [{"foo": {}}]}}));
    assert_eq!(inner["error"]["root_cause"][0]["reason"], "unknown query [foo]");
    assert_eq!(inner["error"]["caused_by"]["caused_by"]["reason"], "[1:34] unknown field [foo]");
    let fuzzy = json!({"match": {"t": {"query": "x", "fuzziness": "x"}}});
    let argument = error(json!({"bool": {"should": fuzzy}}));
    assert_eq!(argument["error"]["root_cause"][0]["type"], "x_content_parse_exception");
    assert_eq!(argument["error"]["caused_by"]["type"], "illegal_argument_exception");
    let shards = error(json!({"bool": {"must_not": {"match": {"n": "x"}}}}));
    let failed = &shards["error"]["failed_shards"][0];
    assert_eq!(failed["reason"]["type"], "query_shard_exception");
    assert_eq!(failed["reason"]["caused_by"]["type"], "number_format_exception");
    assert!(failed["reason"]["index_uuid"].is_string(), "{shards}");
    assert_eq!(shards["error"]["root_cause"][0]["index"], "e");
}

#[test]
fn requests_that_cannot_be_meant_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let mapping =
        json!({"mappings": {"properties": {"t": {"type": "text"}, "n": {"type": "long"}}}});
    es.ok("PUT", "/e", &mapping);
    let missing = es.ask("GET", "/none/_search", &Json::Null);
    assert_eq!(missing.0, 404);
    assert_eq!(missing.1["error"]["type"], "index_not_found_exception");
    assert_eq!(missing.1["error"]["reason"], "no such index [none]");
    assert_eq!(es.ask("GET", "/none*/_search", &Json::Null).0, 200);
    let reply = es.client.request("POST", "/e/_search", "Content-Type: text/plain\r\n", b"{}");
    assert_eq!(reply.status, 406);
    assert_eq!(es.client.request("POST", "/e/_search", "", b"{}").status, 406);
    assert_eq!(es.raw("POST", "/e/_search", "{").status, 400);
    assert_eq!(es.raw("GET", "/e/_search?foo=1", "").status, 400);
    assert_eq!(es.raw("PUT", "/E", "").status, 400);
    assert_eq!(es.raw("PUT", "/f", r#"{"nonsense":{}}"#).status, 400);
    assert_eq!(es.raw("PUT", "/f", r#"{"settings":{"number_of_shards":0}}"#).status, 400);
    let bad_type = r#"{"mappings":{"properties":{"x":{"type":"nope"}}}}"#;
    let reply = es.raw("PUT", "/f", bad_type).json();
    assert_eq!(
        reply["error"]["caused_by"]["reason"],
        "No handler for type [nope] declared on field [x]"
    );
    let (status, json) = es.ask("PUT", "/e/_doc/1", &json!({"n": "x"}));
    assert_eq!((status, &json["error"]["type"]), (400, &json!("mapper_parsing_exception")));
    assert_eq!(es.raw("PUT", "/e/_doc/1", "{\"t\":").status, 400);
    assert_eq!(es.raw("PUT", "/e/_doc/1", "").status, 400);
    assert_eq!(es.raw("PATCH", "/e", "").status, 405);
}

#[test]
fn too_many_searches_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let front = FrontConfig { query_queue: 0, ..FrontConfig::default() };
    let server = with_front(folder.path(), front);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/q", &Json::Null);
    let (status, json) = es.ask("GET", "/q/_search", &Json::Null);
    assert_eq!((status, &json["error"]["type"]), (429, &json!("es_rejected_execution_exception")));
}

#[test]
fn one_search_of_many_shards_has_room_in_the_queue() {
    let folder = tempfile::tempdir().unwrap();
    let front = FrontConfig { query_queue: 4, query_threads: 1, ..FrontConfig::default() };
    let server = with_front(folder.path(), front);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/q", &json!({"settings": {"number_of_shards": 24}}));
    let document = json!({"t": "a"});
    es.load("q", (0..50).map(|at| (at.to_string(), &document)));
    let found = es.search("q", &json!({"query": {"match": {"t": "a"}}}));
    assert_eq!(found["_shards"], json!({"total": 24, "successful": 24, "skipped": 0, "failed": 0}));
    assert_eq!(found["hits"]["total"]["value"], 50);
}

#[test]
fn what_is_too_much_is_said_to_be() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let body = format!("{{\"query\":{{\"match_all\":{{}}}}}}{}", " ".repeat(17 << 20));
    es.ok("PUT", "/m", &json!({"settings": {"refresh_interval": "213503d"}}));
    for path in ["/m/_search", "/m/_count", "/m/_mget"] {
        let reply = es.raw("POST", path, &body);
        assert_eq!(reply.status, 413, "{}", reply.body);
        assert_eq!(reply.json()["error"]["type"], "content_too_long_exception");
    }
    let reply = es.raw("POST", "/_bulk", &"\n".repeat(200_001));
    assert_eq!(reply.status, 413, "{}", reply.body);
    let reply = es.raw("POST", "/_msearch", &"\n".repeat(2002));
    assert_eq!((reply.status, reply.body.contains("at most 1000 searches")), (400, true));
    // A hint of what was meant would take kilobytes for each character of a name.
    let long = format!("{{\"query\":{{\"{}\":{{}}}}}}", "m".repeat(15 << 20));
    let reply = es.raw("POST", "/m/_search", &long);
    assert_eq!(reply.status, 400);
    assert_eq!(reply.json()["error"]["type"], "parsing_exception");
    // Numbers at the end of what there is do not end the thread of a shard.
    let external = |version: u64| format!("/m/_doc/1?version={version}&version_type=external");
    assert_eq!(es.ask("PUT", &external(u64::MAX), &json!({})).0, 400);
    assert_eq!(es.ask("PUT", &external(i64::MAX as u64), &json!({})).0, 201);
    assert_eq!(es.ask("PUT", "/m/_doc/1", &json!({"a": 1})).0, 200);
    let never = json!({"range": {"d": {"gte": "9223372036854775807||/y"}}});
    es.load("m", [("2".to_owned(), &json!({"d": "2020-01-01"}))]);
    assert_eq!(es.ask("POST", "/m/_search", &json!({"query": never})).0, 200);
    let never = json!({"range": {"d": {"gt": "9223372036854775807||/y"}}});
    assert_eq!(es.ask("POST", "/m/_search", &json!({"query": never})).0, 400);
}

#[test]
fn a_search_that_takes_too_long_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.load("s", [("1".to_owned(), &json!({"a": "b"}))]);
    let reply = es.ok("GET", "/s/_search?timeout=1nanos", &Json::Null);
    assert_eq!(reply["timed_out"], true);
    assert_eq!(reply["_shards"]["failed"], 0);
    assert_eq!(reply["hits"]["hits"], json!([]));
    // The reply to a count cannot say that it is not whole.
    let (status, reply) = es.ask("GET", "/s/_count?timeout=1nanos", &Json::Null);
    assert_eq!((status, &reply["error"]["type"]), (504, &json!("timeout_exception")), "{reply}");
}
