//! Indices and documents.

use super::*;

#[test]
fn clients_find_out_who_they_speak_to() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let reply = es.raw("GET", "/", "");
    assert!(reply.head.to_lowercase().contains("x-elastic-product: elasticsearch"));
    assert_eq!(reply.json()["version"]["number"], "7.10.2");
    assert_eq!(reply.json()["tagline"], "You Know, for Search");
    assert_eq!(es.head("/"), 200);
    let health = es.ok("GET", "/_cluster/health?wait_for_status=yellow", &Json::Null);
    assert_eq!(health["status"], "green");
    assert!(es.ok("GET", "/_nodes/http", &Json::Null)["nodes"].is_object());
    let reply = es.raw("GET", "/_cluster/health?filter_path=status&pretty", "");
    assert_eq!(reply.body, "{\n  \"status\": \"green\"\n}\n");
}

#[test]
fn indices_come_and_go() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    assert_eq!(es.head("/books"), 404);
    let made = es.ok(
        "PUT",
        "/books",
        &json!({
            "settings": {"number_of_shards": 3, "number_of_replicas": 0, "refresh_interval": "1s"},
            "mappings": {"properties": {
                "title": {"type": "text", "fields": {"raw": {"type": "keyword"}}},
                "pages": {"type": "integer"},
                "author": {"properties": {"name": {"type": "keyword"}}}
            }}
        }),
    );
    assert_eq!(made, json!({"acknowledged": true, "shards_acknowledged": true, "index": "books"}));
    assert_eq!(es.head("/books"), 200);
    let shown = es.ok("GET", "/books", &Json::Null);
    assert_eq!(shown["books"]["settings"]["index"]["number_of_shards"], "3");
    let mapping = es.ok("GET", "/books/_mapping", &Json::Null);
    let properties = &mapping["books"]["mappings"]["properties"];
    assert_eq!(properties["title"]["fields"]["raw"]["type"], "keyword");
    assert_eq!(properties["author"]["properties"]["name"]["type"], "keyword");
    es.ok("PUT", "/books/_mapping", &json!({"properties": {"year": {"type": "date"}}}));
    let (status, error) =
        es.ask("PUT", "/books/_mapping", &json!({"properties": {"year": {"type": "long"}}}));
    assert_eq!(status, 400);
    assert_eq!(
        error["error"]["reason"],
        "mapper [year] cannot be changed from type [date] to [long]"
    );
    let (status, error) = es.ask("PUT", "/books", &Json::Null);
    assert_eq!(
        (status, &error["error"]["type"]),
        (400, &json!("resource_already_exists_exception"))
    );
    es.ok("PUT", "/books/_settings", &json!({"index": {"refresh_interval": "-1"}}));
    let shown = es.ok("GET", "/books/_settings", &Json::Null);
    assert_eq!(shown["books"]["settings"]["index"]["refresh_interval"], "-1");
    es.load("books", [("1".to_owned(), &json!({"title": "A b", "year": "2020-01-01"}))]);
    let table = es.raw("GET", "/_cat/indices?v&h=index,pri,docs.count", "").body;
    assert_eq!(table, "index pri docs.count\nbooks   3          1\n");
    let table = es.ok("GET", "/_cat/indices/boo*?format=json", &Json::Null);
    assert_eq!(table[0]["health"], "green");
    let count = es.raw("GET", "/_cat/count/books?h=count", "").body;
    assert_eq!(count, "1\n");
    let stats = es.ok("GET", "/books/_stats", &Json::Null);
    assert_eq!(stats["indices"]["books"]["primaries"]["docs"]["count"], 1);
    assert_eq!(es.ok("POST", "/books/_forcemerge", &Json::Null)["_shards"]["failed"], 0);
    assert_eq!(es.ok("POST", "/books/_flush", &Json::Null)["_shards"]["total"], 3);
    assert_eq!(es.ok("DELETE", "/books", &Json::Null), json!({"acknowledged": true}));
    assert_eq!(es.raw("GET", "/books", "").status, 404);
    // The name is free again, and nothing is left.
    es.load("books", [("2".to_owned(), &json!({"title": 5}))]);
    assert_eq!(es.ids("books", &json!({"match_all": {}})), ["2"]);
}

#[test]
fn a_document_has_versions() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let first = es.ask("PUT", "/d/_doc/1", &json!({"a": "one", "n": {"x": 1}}));
    assert_eq!(first.0, 201);
    assert_eq!(first.1["result"], "created");
    assert_eq!((&first.1["_version"], &first.1["_seq_no"]), (&json!(1), &json!(0)));
    let second = es.ok("POST", "/d/_doc/1?refresh=true", &json!({"a": "two", "n": {"x": 1}}));
    assert_eq!((&second["_version"], &second["result"]), (&json!(2), &json!("updated")));
    let (status, conflict) = es.ask("PUT", "/d/_create/1", &json!({"a": "x"}));
    assert_eq!(status, 409);
    assert_eq!(conflict["error"]["type"], "version_conflict_engine_exception");
    let stale = "/d/_doc/1?if_seq_no=0&if_primary_term=1";
    assert_eq!(es.ask("PUT", stale, &json!({})).0, 409);
    let fresh = "/d/_doc/1?if_seq_no=1&if_primary_term=1";
    assert_eq!(es.ask("PUT", fresh, &json!({"a": "three", "n": {"x": 1}})).0, 200);
    let update = es.ok("POST", "/d/_update/1", &json!({"doc": {"n": {"y": 2}}}));
    assert_eq!(update["_version"], 4);
    let noop = es.ok("POST", "/d/_update/1", &json!({"doc": {"n": {"y": 2}}}));
    assert_eq!((&noop["result"], &noop["_version"]), (&json!("noop"), &json!(4)));
    assert_eq!(es.ask("POST", "/d/_update/9", &json!({"doc": {"a": 1}})).0, 404);
    let upsert = json!({"doc": {"a": "new"}, "doc_as_upsert": true});
    assert_eq!(es.ask("POST", "/d/_update/9", &upsert).0, 201);
    // Read at once, before any refresh.
    let got = es.ok("GET", "/d/_doc/1", &Json::Null);
    assert_eq!(got["_source"], json!({"a": "three", "n": {"x": 1, "y": 2}}));
    assert_eq!(es.ok("GET", "/d/_source/1", &Json::Null), got["_source"]);
    assert_eq!(
        es.ok("GET", "/d/_doc/1?_source=n.x", &Json::Null)["_source"],
        json!({"n": {"x": 1}})
    );
    assert_eq!(es.head("/d/_doc/1"), 200);
    assert_eq!(es.head("/d/_doc/none"), 404);
    let several = es.ok("GET", "/d/_mget", &json!({"ids": ["1", "none", "9"]}));
    let found: Vec<_> = several["docs"].as_array().unwrap().iter().map(|d| &d["found"]).collect();
    assert_eq!(found, [true, false, true]);
    es.ok("POST", "/d/_refresh", &Json::Null);
    assert_eq!(es.ids("d", &json!({"match": {"a": "three"}})), ["1"]);
    assert!(es.ids("d", &json!({"match": {"a": "two"}})).is_empty());
    let gone = es.ok("DELETE", "/d/_doc/1?refresh=true", &Json::Null);
    assert_eq!((&gone["result"], &gone["_version"]), (&json!("deleted"), &json!(5)));
    assert_eq!(es.ask("DELETE", "/d/_doc/1", &Json::Null).0, 404);
    assert_eq!(es.ids("d", &json!({"match_all": {}})), ["9"]);
    let (status, named) = es.ask("POST", "/d/_doc", &json!({"a": 1}));
    assert_eq!(status, 201);
    assert_eq!(named["_id"].as_str().unwrap().len(), 20);
    let external = "/d/_doc/e?version=7&version_type=external";
    assert_eq!(es.ok("PUT", external, &json!({}))["_version"], 7);
    assert_eq!(es.ask("PUT", external, &json!({})).0, 409);
}

#[test]
fn a_bulk_says_what_came_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let strict = json!({"mappings": {"dynamic": "strict", "properties": {"n": {"type": "long"}}}});
    es.ok("PUT", "/strict", &strict);
    let body = concat!(
        "{\"index\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"x\":1}\n",
        "{\"create\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"x\":2}\n",
        "{\"update\":{\"_index\":\"a\",\"_id\":\"1\"}}\n{\"doc\":{\"y\":3}}\r\n",
        "{\"delete\":{\"_index\":\"a\",\"_id\":\"none\"}}\n",
        "{\"index\":{\"_index\":\"strict\",\"_id\":5}}\n{\"n\":\"x\"}\n",
        "{\"index\":{\"_index\":\"strict\"}}\n{\"m\":1}\n",
        "{\"index\":{\"_index\":\"Bad\"}}\n{\"m\":1}\n",
        "{\"update\":{\"_index\":\"a\",\"_id\":\"2\"}}\n{\"doc\":{\"y\":3}}\n",
        "{\"index\":{\"_index\":\"a\",\"_id\":\"3\",\"routing\":\"r\"}}\n{\"x\":3}\n",
    );
    let reply = es.client.request("POST", "/_bulk?refresh=true", NDJSON, body.as_bytes()).json();
    assert_eq!(reply["errors"], true);
    let items = reply["items"].as_array().unwrap();
    let statuses: Vec<u64> = items
        .iter()
        .map(|item| item.as_object().unwrap().values().next().unwrap()["status"].as_u64().unwrap())
        .collect();
    assert_eq!(statuses, [201, 409, 200, 404, 400, 400, 400, 404, 201], "{reply}");
    assert_eq!(items[4]["index"]["error"]["type"], "mapper_parsing_exception");
    assert_eq!(items[5]["index"]["error"]["type"], "strict_dynamic_mapping_exception");
    assert_eq!(items[6]["index"]["error"]["type"], "invalid_index_name_exception");
    assert_eq!(es.ok("GET", "/a/_source/1", &Json::Null), json!({"x": 1, "y": 3}));
    let routed = es.search("a", &json!({"query": {"ids": {"values": ["3"]}}}));
    assert_eq!(routed["hits"]["hits"][0]["_routing"], "r");
    for bad in
        ["{\"index\":{}}\n{}\n", "{\"index\":{\"_index\":\"a\"}}\n{}", "{\"foo\":{}}\n", "x\n"]
    {
        let reply = es.client.request("POST", "/_bulk", NDJSON, bad.as_bytes());
        assert_eq!(reply.status, 400, "{bad}: {}", reply.body);
    }
}

#[test]
fn pages_orders_and_totals() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let mapping = json!({"settings": {"number_of_shards": 4}, "mappings": {"properties": {
        "n": {"type": "long"}, "k": {"type": "keyword"}, "f": {"type": "double"},
        "t": {"type": "text"}}}});
    es.ok("PUT", "/o", &mapping);
    let documents: Vec<Json> = (0..500_i64)
        .map(|i| {
            let mut document =
                json!({"k": format!("k{:03}", i % 7), "f": i as f64 / 8.0, "t": "w"});
            if i % 5 != 0 {
                document["n"] = json!((i * 37) % 500);
            }
            document
        })
        .collect();
    es.load("o", documents.iter().enumerate().map(|(i, d)| (format!("{i:03}"), d)));
    let value = |i: usize| documents[i]["n"].as_i64();
    for (order, reverse) in [("asc", false), ("desc", true)] {
        let mut expected: Vec<usize> = (0..500).filter(|i| value(*i).is_some()).collect();
        expected
            .sort_by_key(|i| (if reverse { -value(*i).unwrap() } else { value(*i).unwrap() }, *i));
        let mut found = Vec::new();
        for from in [0, 100, 200, 300] {
            let body = json!({"sort": [{"n": {"order": order}}, "f"], "from": from, "size": 100});
            let page = es.search("o", &body);
            assert_eq!(page["hits"]["max_score"], Json::Null);
            found.extend(ids(&page).iter().map(|id| id.parse::<usize>().unwrap()));
        }
        assert_eq!(found, expected, "{order}");
        let body = json!({"sort": [{"n": order}], "from": 400, "size": 100});
        let missing = es.search("o", &body);
        assert_eq!(missing["hits"]["hits"].as_array().unwrap().len(), 100);
        assert!(missing["hits"]["hits"][0]["_source"].get("n").is_none());
    }
    let first = es.search("o", &json!({"sort": [{"n": {"missing": "_first"}}], "size": 1}));
    assert!(first["hits"]["hits"][0]["_source"].get("n").is_none());
    let by_text = es.search("o", &json!({"sort": ["k", {"f": "desc"}], "size": 2}));
    assert_eq!(by_text["hits"]["hits"][0]["sort"], json!(["k000", 497.0 / 8.0]));
    let scored = es
        .search("o", &json!({"query": {"match": {"t": "w"}}, "sort": ["_score", "f"], "size": 3}));
    assert!(scored["hits"]["hits"][0]["_score"].as_f64().unwrap() > 0.0);
    assert_eq!(scored["hits"]["hits"][0]["sort"][0], scored["hits"]["hits"][0]["_score"]);
    let total = |es: &mut Elastic, track: Json| {
        let found = es.search("o", &json!({"track_total_hits": track, "size": 0}));
        (found["hits"]["total"].clone(), found["hits"]["hits"].as_array().unwrap().len())
    };
    assert_eq!(total(&mut es, json!(true)).0, json!({"value": 500, "relation": "eq"}));
    assert_eq!(total(&mut es, json!(100)).0, json!({"value": 100, "relation": "gte"}));
    assert_eq!(total(&mut es, json!(false)), (Json::Null, 0));
    let plain = es.ok("GET", "/o/_search?rest_total_hits_as_int=true&size=0", &Json::Null);
    assert_eq!(plain["hits"]["total"], 500);
    let high = es.search("o", &json!({"query": {"match": {"t": "w"}}, "min_score": 1e9}));
    assert_eq!(high["hits"]["total"]["value"], 0);
    let q = es.ok("GET", "/o/_search?q=k:k001%20AND%20-t:none&size=1", &Json::Null);
    assert_eq!(q["hits"]["total"]["value"], 72);
    let body = "{\"index\":\"o\"}\n{\"size\":1}\n{\"index\":\"none\"}\n{}\n";
    let many = es.client.request("POST", "/_msearch", NDJSON, body.as_bytes()).json();
    assert_eq!(many["responses"][0]["hits"]["total"]["value"], 500);
    assert_eq!(many["responses"][1]["status"], 404);
}

/// The reason why a search of the index `w` is refused.
fn refusal(es: &mut Elastic, body: &Json) -> String {
    let (status, error) = es.ask("POST", "/w/_search", body);
    assert_eq!(status, 400, "{error}");
    error["error"]["root_cause"][0]["reason"].to_string()
}

#[test]
fn an_index_gives_out_as_many_hits_as_its_result_window_allows() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/w", &json!({"settings": {"index.max_result_window": 3}}));
    let document = json!({"t": "a"});
    es.load("w", (0..5).map(|id| (id.to_string(), &document)));
    assert_eq!(ids(&es.search("w", &json!({"from": 1, "size": 2}))).len(), 2);
    let reason = refusal(&mut es, &json!({"from": 1, "size": 3}));
    assert!(reason.contains("less than or equal to: [3] but was [4]"), "{reason}");
    es.ok("PUT", "/w/_settings", &json!({"index": {"max_result_window": "20000"}}));
    assert_eq!(ids(&es.search("w", &json!({"size": 15_000}))).len(), 5);
    let shown = es.ok("GET", "/w/_settings", &Json::Null);
    assert_eq!(shown["w"]["settings"]["index"]["max_result_window"], "20000");
    es.ok("PUT", "/w/_settings", &json!({"index.max_result_window": null}));
    let reason = refusal(&mut es, &json!({"size": 10_001}));
    assert!(reason.contains("less than or equal to: [10000] but was [10001]"), "{reason}");
    for bad in [json!(0), json!(-1), json!("x"), json!(100_001)] {
        let (status, error) =
            es.ask("PUT", "/w/_settings", &json!({ "max_result_window": bad.clone() }));
        let reason = error["error"]["reason"].to_string();
        assert!(
            status == 400 && reason.contains("[index.max_result_window] must be"),
            "{bad}: {reason}"
        );
    }
}
