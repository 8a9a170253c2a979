//! What the server tells of itself, and that it passes over nothing that would change an answer.

use super::*;

fn reason(error: &Json) -> String {
    error["error"]["reason"].as_str().unwrap_or_else(|| panic!("{error}")).to_owned()
}

#[test]
fn tables_are_sorted_chosen_and_aligned() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    for (index, shards) in [("few", 2), ("many", 10), ("more", 10)] {
        es.ok("PUT", &format!("/{index}"), &json!({"settings": {"number_of_shards": shards}}));
    }
    let mut text = |path: &str| es.raw("GET", path, "").body;
    let sorted = text("/_cat/indices?h=index,pri&v&s=pri:desc,index:desc");
    assert_eq!(sorted, "index pri\nmore   10\nmany   10\nfew     2\n");
    assert_eq!(text("/_cat/indices/few?h=i,p,nothing"), "few 2\n");
    assert_eq!(text("/_cat/indices?health=red"), "");
    assert_eq!(text("/_cat/indices?health=green&h=i").lines().count(), 3);
    let nodes = text("/_cat/nodes?v");
    let head: Vec<&str> = nodes.lines().next().unwrap().split_whitespace().collect();
    let columns =
        ["ip", "ram.percent", "load_1m", "load_5m", "load_15m", "node.role", "master", "name"];
    assert_eq!(head, columns);
    assert_eq!(nodes.lines().nth(1).unwrap().split_whitespace().count(), columns.len());
    assert_eq!(text("/_cat/nodes?h=id,version").split_whitespace().nth(1), Some("7.10.2"));
    assert!(text("/_cat/health?ts=false").starts_with("plimsoll"));
    assert!(text("/_cat/nodes?help").contains("load_1m | l\n"));
    let mut refused = |method: &str, path: &str, part: &str| {
        let (status, error) = es.ask(method, path, &Json::Null);
        assert!(status == 400 && reason(&error).contains(part), "{path}: {status} {error}");
    };
    refused("GET", "/_cat/indices?format=yaml", "does not implement format=[yaml]");
    refused("GET", "/_cat/indices?health=blue", "unknown value [blue] of [health]");
    refused("GET", "/_cat/aliases", "does not implement [_cat/aliases]");
    assert_eq!(es.ask("POST", "/_cat/indices", &Json::Null).0, 405);
    assert_eq!(es.ask("POST", "/", &Json::Null).0, 405);
}

#[test]
fn health_waits_for_nothing_that_will_not_come_and_says_so() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    es.ok("PUT", "/two", &json!({"settings": {"number_of_shards": 2}}));
    let mut status = |query: &str| {
        let (status, told) = es.ask("GET", &format!("/_cluster/health?{query}"), &Json::Null);
        assert_eq!(status == 408, told["timed_out"] == true, "{query}: {told}");
        status
    };
    for (query, wanted) in [
        ("wait_for_status=GREEN", 200),
        ("wait_for_status=purple", 400),
        ("level=shard", 400),
        ("timeout=xyz", 400),
        ("wait_for_nodes=1", 200),
        ("wait_for_nodes=%3E%3D2", 408),
        ("wait_for_nodes=some", 400),
        ("wait_for_active_shards=2", 200),
        ("wait_for_active_shards=all", 200),
        ("wait_for_active_shards=3", 408),
    ] {
        assert_eq!(status(query), wanted, "{query}");
    }
    let told = es.ok("GET", "/_cluster/health?level=shards", &Json::Null);
    assert_eq!(told["indices"]["two"]["number_of_shards"], 2);
    assert_eq!(told["indices"]["two"]["shards"]["1"]["primary_active"], true);
    let told = es.ok("GET", "/_cluster/health/two?level=indices", &Json::Null);
    assert!(
        told["indices"]["two"]["status"] == "green" && told["indices"]["two"]["shards"].is_null()
    );
}

#[test]
fn nothing_that_would_change_an_answer_is_passed_over() {
    let folder = tempfile::tempdir().unwrap();
    let server = server(folder.path(), FuzzyMode::Index);
    let mut es = Elastic::new(&server);
    let documents = [json!({"body": "a plimsoll line", "n": 1}), json!({"body": "a harbour"})];
    es.load("ships", documents.iter().enumerate().map(|(id, one)| (id.to_string(), one)));
    for (query, hits) in [("_exists_:n", 1), ("%22plimsoll%20line%22", 1), ("_exists_:nope", 0)] {
        let told = es.ok("GET", &format!("/ships/_search?q={query}"), &Json::Null);
        assert_eq!(told["hits"]["total"]["value"], hits, "{query}");
    }
    for (method, path) in [
        ("GET", "/ships/_search?explain=true"),
        ("GET", "/ships/_search?stored_fields=n"),
        ("GET", "/ships/_search?q=a&analyzer=english"),
        ("GET", "/ships/_doc/0?stored_fields=n"),
        ("PUT", "/_cluster/settings"),
        ("POST", "/_analyze"),
        ("GET", "/ships/_analyze"),
        ("GET", "/_tasks"),
        ("POST", "/_reindex"),
        ("POST", "/ships/_delete_by_query"),
        ("GET", "/ships/_field_caps"),
    ] {
        let (status, error) = es.ask(method, path, &Json::Null);
        let said = reason(&error);
        assert!(status == 400 && said.contains("does not implement"), "{method} {path}: {said}");
    }
    assert_eq!(es.ok("GET", "/ships/_search?explain=false", &Json::Null)["timed_out"], false);
    assert_eq!(es.ask("GET", "/ships/_stats/nope", &Json::Null).0, 400);
    let told = es.ok("GET", "/ships/_stats/docs,merge", &Json::Null);
    assert_eq!(told["_all"]["primaries"]["docs"]["count"], 2);
    assert_eq!(told["_all"]["primaries"].as_object().unwrap().len(), 1, "{told}");
    assert_eq!(es.ask("POST", "/ships/_mget", &json!({"ids": []})).0, 400);
    let lines = "{}\n{\"size\":0}";
    for (body, status) in [(lines.to_owned(), 400), (format!("{lines}\n"), 200)] {
        let reply = es.client.request("POST", "/_msearch", NDJSON, body.as_bytes());
        assert_eq!(reply.status, status, "{}", reply.body);
    }
}
