//! What queries mean, where it is easy to mean something else.

use super::*;

fn loaded(es: &mut Elastic, index: &str, documents: &[Json]) {
    es.load(index, documents.iter().enumerate().map(|(at, one)| (at.to_string(), one)));
}

/// The reason of the error that a request gets with this status.
fn reason(es: &mut Elastic, path: &str, body: &Json, wanted: u16) -> String {
    let (status, json) = es.ask("POST", path, body);
    assert_eq!(status, wanted, "{path} {body} {json}");
    let root = &json["error"]["root_cause"][0]["reason"];
    root.as_str().unwrap_or_else(|| panic!("{json}")).to_owned()
}

#[test]
fn a_phrase_does_not_reach_from_one_value_into_the_next() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let documents = [json!({"t": ["one two", "three four"]}), json!({"t": "one two three four"})];
    loaded(&mut es, "v", &documents);
    let phrase = |slop: u64| json!({"match_phrase": {"t": {"query": "two three", "slop": slop}}});
    assert_eq!(es.ids("v", &phrase(0)), ["1"]);
    assert_eq!(es.ids("v", &phrase(99)), ["1"]);
    assert_eq!(es.ids("v", &phrase(100)), ["0", "1"]);
}

#[test]
fn dates_mean_what_they_mean_to_elasticsearch() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let dates = ["2019-12-31", "2020-01-01T12:00:00Z", "2020-06-15", "2021-01-01"];
    loaded(&mut es, "d", &dates.map(|date| json!({ "d": date })));
    let range = |bounds: Json| json!({"range": {"d": bounds}});
    // What a date leaves out is the first month and day, and the last moment of that.
    assert_eq!(es.ids("d", &range(json!({"lte": "2020"}))), ["0", "1"]);
    assert_eq!(es.ids("d", &range(json!({"gt": "2020"}))), ["2", "3"]);
    assert_eq!(es.ids("d", &range(json!({"gte": "2020", "lt": "2021"}))), ["1", "2"]);
    assert_eq!(es.ids("d", &range(json!({"lte": "2020||/y"}))), ["0", "1", "2"]);
    // A number of four digits is a year.
    assert_eq!(es.ids("d", &range(json!({"gte": 2021}))), ["3"]);
    assert_eq!(es.ids("d", &json!({"term": {"d": "2020"}})), ["1"]);
    loaded(&mut es, "n", &[json!({"d": "2020-01-01"}), json!({"d": 2021}), json!({"d": 2022000})]);
    assert_eq!(es.ids("n", &range(json!({"gte": "2020-06-01"}))), ["1"]);
    // The last of two that say the same counts, with what it says of the bound itself.
    loaded(&mut es, "w", &[json!({"n": 1}), json!({"n": 2}), json!({"n": 3})]);
    let numbers = |bounds: Json| json!({"range": {"n": bounds}});
    assert_eq!(es.ids("w", &numbers(json!({"gt": 1, "gte": 2, "lt": 9, "lte": 2}))), ["1"]);
    assert_eq!(es.ids("w", &numbers(json!({"from": 1, "to": 2, "include_lower": false}))), ["1"]);
}

#[test]
fn what_cannot_be_searched_can_be_sorted_by() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let off = |kind: &str| json!({"type": kind, "index": false});
    let properties = json!({"n": off("long"), "k": off("keyword"), "t": {"type": "text"}});
    es.ok("PUT", "/s", &json!({"mappings": {"properties": properties}}));
    let documents =
        [json!({"n": 3, "t": "x"}), json!({"n": 1, "k": "b", "t": "x"}), json!({"k": "a"})];
    loaded(&mut es, "s", &documents);
    let mut sorted = |by: &str| ids(&es.search("s", &json!({"sort": [{by: "asc"}]})));
    assert_eq!(sorted("n"), ["1", "0", "2"]);
    assert_eq!(sorted("k"), ["2", "1", "0"]);
    assert_eq!(es.ids("s", &json!({"exists": {"field": "n"}})), ["0", "1"]);
    let term = json!({"query": {"term": {"n": 3}}});
    let told = reason(&mut es, "/s/_search", &term, 400);
    assert!(told.contains("Cannot search on field [n] since it is not indexed"), "{told}");
    // A pattern passes by what cannot be searched.
    assert_eq!(es.ids("s", &json!({"multi_match": {"query": "x", "fields": ["*"]}})), ["0", "1"]);
    assert_eq!(ids(&es.ok("GET", "/s/_search?q=x", &Json::Null)), ["0", "1"]);
}

#[test]
fn numbers_of_a_list_are_found() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let properties = json!({"f": {"type": "float"}, "d": {"type": "double"}});
    es.ok("PUT", "/l", &json!({"mappings": {"properties": properties}}));
    loaded(
        &mut es,
        "l",
        &[
            json!({"n": [1, 7], "f": 0.1, "d": 0.1, "b": true}),
            json!({"n": -3, "f": -0.0, "d": 1e300}),
            json!({"n": 9_007_199_254_740_993_i64, "f": 5, "b": false}),
        ],
    );
    let mut terms = |field: &str, values: Json| es.ids("l", &json!({"terms": {field: values}}));
    assert_eq!(terms("n", json!([7, -3, 2])), ["0", "1"]);
    assert_eq!(terms("n", json!(["1", 1.5, -3.0])), ["0", "1"]);
    assert_eq!(terms("n", json!([9_007_199_254_740_992_i64])), Vec::<String>::new());
    assert_eq!(terms("n", json!([9_007_199_254_740_993_i64])), ["2"]);
    assert_eq!(terms("f", json!([0.1, 0, 5.0])), ["0", "1", "2"]);
    assert_eq!(terms("d", json!([0.1, 1e300, 3])), ["0", "1"]);
    assert_eq!(terms("b", json!([true])), ["0"]);
    let many: Vec<i64> = (0..60_000).map(|n| n * 7).collect();
    assert_eq!(terms("n", json!(many)), ["0"]);
}

#[test]
fn orders_are_shown_as_elasticsearch_shows_them() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    loaded(&mut es, "o", &[json!({"p": 0.1, "t": "a a"}), json!({"p": [2.5, 0.3], "t": "a b"})]);
    let found = es.search("o", &json!({"sort": [{"p": {"mode": "max", "order": "desc"}}]}));
    assert_eq!(ids(&found), ["1", "0"]);
    assert_eq!(found["hits"]["hits"][1]["sort"], json!([0.1]));
    let average = json!({"sort": [{"p": {"order": "desc", "mode": "min"}}]});
    assert_eq!(
        reason(&mut es, "/o/_search", &average, 400),
        "plimsoll does not implement the sort mode [min]"
    );
    // By relevance alone is no order at all.
    let query = json!({"match": {"t": "a"}});
    for sort in [json!(["_score"]), json!([{"_score": "desc"}]), json!([{"_score": "asc"}])] {
        let ascending = sort == json!([{"_score": "asc"}]);
        let found = es.search("o", &json!({"query": query, "sort": sort}));
        assert_eq!(found["hits"]["max_score"].is_null(), ascending, "{found}");
        assert_eq!(found["hits"]["hits"][0].get("sort").is_some(), ascending, "{found}");
    }
    let found = es.search("o", &json!({"track_total_hits": -1}));
    assert!(found["hits"].get("total").is_none(), "{found}");
    let found = es.search("o", &json!({"track_total_hits": 0}));
    assert_eq!(found["hits"]["total"], json!({"value": 0, "relation": "gte"}));
}

#[test]
fn the_simple_language_is_not_half_understood() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    loaded(
        &mut es,
        "q",
        &[
            json!({"t": "hello there world", "n": 5}),
            json!({"t": "hello world 2", "n": 7}),
            json!({"t": "cat"}),
        ],
    );
    let mut found = |q: &str| {
        let mut ids = ids(&es.ok("GET", &format!("/q/_search?q={q}"), &Json::Null));
        ids.sort();
        ids
    };
    assert_eq!(found("t:%22hello%20world%22"), ["1"]);
    assert_eq!(found("t:%22hello%20world%22~1"), ["0", "1"]);
    assert_eq!(found("t:hel*"), ["0", "1"]);
    // Without a number the length of the word says how far: short words one edit, two letters none.
    assert_eq!(found("t:cbt~"), ["2"]);
    assert_eq!(found("t:dbt~"), Vec::<String>::new());
    for bad in ["hel*", "t:he*lo", "t:hell?", "t:hello^2", "n:[5%20TO%207]", "n:%3E5", "t:/h.*/"] {
        let (status, json) = es.ask("GET", &format!("/q/_search?q={bad}"), &Json::Null);
        assert_eq!(status, 400, "{bad} {json}");
        let reason = json["error"]["reason"].as_str().unwrap();
        assert!(reason.starts_with("plimsoll does not implement ["), "{reason}");
    }
}

#[test]
fn what_would_be_ignored_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    loaded(&mut es, "i", &[json!({"t": "a", "k": "b", "n": 1})]);
    let of_match = |key: &str, value: Json| json!({"match": {"t": {"query": "a", key: value}}});
    let several = |kind: &str, key: &str, value: Json| json!({"multi_match": {"query": "a", "fields": ["t"], "type": kind, key: value}});
    for query in [
        of_match("cutoff_frequency", json!(0.001)),
        of_match("fuzzy_rewrite", json!("top_terms_10")),
        json!({"fuzzy": {"t": {"value": "a", "rewrite": "top_terms_10"}}}),
        json!({"prefix": {"t": {"value": "a", "rewrite": "scoring_boolean"}}}),
        json!({"term": {"t": {"value": "a", "rewrite": "constant_score"}}}),
        several("cross_fields", "tie_breaker", json!(0.3)),
        several("phrase", "fuzziness", json!(1)),
        json!({"term": {"_index": "i"}}),
        json!({"exists": {"field": "_routing"}}),
        json!({"prefix": {"_id": "0"}}),
        json!({"range": {"_seq_no": {"gte": 0}}}),
    ] {
        reason(&mut es, "/i/_search", &json!({ "query": query }), 400);
    }
    let prefix = json!({"prefix": {"t": {"value": "a", "rewrite": "constant_score"}}});
    assert_eq!(es.ids("i", &prefix), ["0"]);
    assert_eq!(es.ids("i", &json!({"exists": {"field": "_id"}})), ["0"]);
    let pure = |positive: bool| json!({"bool": {"must_not": [{"match": {"t": "x"}}], "adjust_pure_negative": positive}});
    assert_eq!(es.ids("i", &pure(true)), ["0"]);
    assert_eq!(es.ids("i", &pure(false)), Vec::<String>::new());
    reason(&mut es, "/i/_search", &json!({"sort": ["n"], "track_scores": true}), 400);
    es.ok("POST", "/i/_search", &json!({"track_scores": true}));
    for parameter in [
        "search_type=dfs_query_then_fetch",
        "allow_partial_search_results=false",
        "q=a&default_operator=xor",
    ] {
        reason(&mut es, &format!("/i/_search?{parameter}"), &Json::Null, 400);
    }
    es.ok("POST", "/i/_search?search_type=query_then_fetch", &Json::Null);
}

#[test]
fn a_search_of_several_goes_where_its_routing_says() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/m", &json!({"settings": {"number_of_shards": 8}}));
    loaded(&mut es, "m", &vec![json!({"t": "a"}); 64]);
    let alone = es.ok("POST", "/m/_search?routing=x&size=0", &Json::Null);
    let alone = alone["hits"]["total"]["value"].as_u64().unwrap();
    assert!(alone < 64);
    let body = "{\"index\":\"m\",\"routing\":\"x\"}\n{\"size\":0}\n";
    let reply = es.client.request("POST", "/_msearch", NDJSON, body.as_bytes()).json();
    assert_eq!(reply["responses"][0]["hits"]["total"]["value"], alone, "{reply}");
    let body = "{\"index\":\"m\",\"search_type\":\"dfs_query_then_fetch\"}\n{}\n";
    assert_eq!(es.client.request("POST", "/_msearch", NDJSON, body.as_bytes()).status, 400);
}

#[test]
fn a_word_stands_for_a_thousand_others_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let letters = || (b'a'..=b'z').map(char::from);
    let words: Vec<Json> = letters()
        .flat_map(|a| letters().map(move |b| json!({"t": format!("word{a}{b}")})))
        .collect();
    loaded(&mut es, "x", &words);
    let twice: Vec<Json> = letters()
        .flat_map(|a| letters().map(move |b| json!({"t": format!("{a}word{b}")})))
        .collect();
    loaded(&mut es, "y", &twice);
    es.load("x", twice.iter().enumerate().map(|(at, one)| (format!("y{at}"), one)));
    let query =
        json!({"fuzzy": {"t": {"value": "word", "fuzziness": 2, "max_expansions": 100_000}}});
    assert_eq!(es.ids("x", &query).len(), 1024);
    // A word that is longer than any takes no memory to speak of.
    let long = json!({"fuzzy": {"t": {"value": "word".repeat(50_000), "fuzziness": 2}}});
    assert_eq!(es.ids("x", &long), Vec::<String>::new());
    let near = format!("{}x", "word".repeat(30));
    es.load("x", [("long".to_owned(), &json!({ "t": near }))]);
    let long = json!({"fuzzy": {"t": {"value": "word".repeat(30), "fuzziness": 1}}});
    assert_eq!(es.ids("x", &long), ["long"]);
}
