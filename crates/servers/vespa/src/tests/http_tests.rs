//! What goes over the wire: shapes, statuses, headers, parameters.

use super::{Client, JSON, TestServer, encode, start};
use serde_json::json;

const RED: &str = "{\"title\":\"Red wine\",\"body\":\"A dry red\",\"category\":\"Drinks\",\
    \"author\":\"Ann\",\"score\":1}";

fn three_documents(server: &TestServer) -> Client {
    let mut client = server.client();
    for (name, fields) in [
        ("one", RED),
        (
            "two",
            r#"{"title":"White wine","body":"Sweet","category":"drinks","author":"Bob","score":2}"#,
        ),
        ("three", r#"{"title":"Stone & \"rock\"","body":"red and dry","score":-3}"#),
    ] {
        assert_eq!(client.put(name, fields).status, 200);
    }
    client.refresh();
    client
}

const FORM: &str = "Content-Type: application/x-www-form-urlencoded\r\n";
const BENCHMARK: &str = "X-Yahoo-Vespa-Benchmarkdata: true\r\n";
const COVERAGE: &str = "X-Yahoo-Vespa-Benchmarkdata-Coverage: true\r\n";

#[test]
fn a_result_has_the_shape_of_vespa() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    let yql = encode("select * from doc where author contains 'ann'");
    let reply = client.get(&format!("/search/?yql={yql}&ranking=unranked"));
    assert_eq!(
        reply.body,
        r#"{"root":{"id":"toplevel","relevance":1.0,"fields":{"totalCount":1},"#.to_owned()
            + r#""coverage":{"coverage":100,"documents":3,"full":true,"nodes":1,"#
            + r#""results":1,"resultsFull":1},"#
            + r#""children":[{"id":"id:test:doc::one","relevance":0.0,"#
            + r#""source":"plimsoll","fields":{"sddocname":"doc","#
            + r#""documentid":"id:test:doc::one","title":"Red wine","body":"A dry red","#
            + r#""category":"Drinks","author":"Ann","score":1}}]}}"#
    );
    assert!(reply.head.contains("content-type: application/json;charset=utf-8"), "{}", reply.head);
    let yql = encode("select score, documentid from doc where title contains 'rock'");
    let reply = client.get(&format!("/search?yql={yql}&presentation.timing=true"));
    assert!(reply.body.starts_with(r#"{"timing":{"querytime":"#), "{}", reply.body);
    let json = reply.json();
    assert!(json["timing"]["searchtime"].is_f64() && json["timing"]["summaryfetchtime"].is_f64());
    let fields = &json["root"]["children"][0]["fields"];
    assert_eq!(*fields, json!({"score": -3, "documentid": "id:test:doc::three"}));
    let nothing = client.find("title contains 'absent'");
    assert!(nothing.json()["root"].get("children").is_none());
    assert_eq!((nothing.status, nothing.total()), (200, 0));
}

#[test]
fn parameters_come_from_url_json_and_form() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    let plus = "/search/?yql=select+*+from+doc+where+title+contains+%22wine%22&unknown=x&&flag";
    assert_eq!(client.get(plus).total(), 2);
    let yql = "select * from doc where title contains \"wine\"";
    let body = json!({
        "yql": yql, "hits": 1, "presentation": {"timing": true}, "input": {"query(q)": [1, 2]},
    });
    let reply = client.request("POST", "/search/", JSON, body.to_string().as_bytes());
    assert_eq!((reply.total(), reply.names().len()), (2, 1));
    assert!(reply.json().get("timing").is_some());
    // The URL wins over the body.
    let reply = client.request("POST", "/search/?hits=2", JSON, body.to_string().as_bytes());
    assert_eq!(reply.names().len(), 2);
    let body = json!({"yql": yql, "presentation.timing": "true"}).to_string();
    let reply = client.request("POST", "/search/", JSON, body.as_bytes());
    assert!(reply.json().get("timing").is_some());
    let form = format!("yql={}&count=1&start=1", encode(yql).replace("%20", "+"));
    let reply = client.request("POST", "/search/", FORM, form.as_bytes());
    assert_eq!((reply.total(), reply.names().len()), (2, 1));
    // No yql, but words; and no query at all.
    assert_eq!(client.get("/search/?query=red+-sweet").total(), 2);
    assert_eq!(client.get("/search/?query=white+dry&type=any").total(), 3);
    assert_eq!(client.get("/search/?query=red+wine&type=phrase").total(), 1);
    assert_eq!(client.get("/search/").error().0, 1);
    let path = format!("/search/?query=red&yql={}", encode("select * from doc where userQuery()"));
    assert_eq!(client.get(&path).total(), 2);
    let yql = encode("select * from doc where true limit 3 offset 2");
    assert_eq!(client.get(&format!("/search/?hits=0&offset=9&yql={yql}")).names().len(), 1);
}

#[test]
fn chunked_and_compressed_bodies_are_read() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    client.send(
        b"POST /search/ HTTP/1.1\r\nHost: t\r\nContent-Type: application/json\r\n\
          Transfer-Encoding: chunked\r\n\r\n10\r\n{\"query\": \"wine\"\r\n1\r\n}\r\n0\r\n\r\n",
    );
    assert_eq!(client.receive().unwrap().total(), 2);
    let mut packed = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    std::io::Write::write_all(&mut packed, br#"{"fields":{"title":"packed"}}"#).unwrap();
    let packed = packed.finish().unwrap();
    let headers = format!("{JSON}Content-Encoding: gzip\r\n");
    let path = super::document("packed");
    assert_eq!(client.request("POST", &path, &headers, &packed).status, 200);
    assert_eq!(client.get(&path).json()["fields"]["title"], "packed");
    let broken = client.request("POST", &path, &headers, b"no gzip");
    assert_eq!(broken.status, 400);
    assert!(broken.message().contains("not gzip"));
    // Requests that follow one another without waiting are answered in their order.
    client
        .send(b"GET /search/?query=wine HTTP/1.1\r\nHost: t\r\n\r\nGET /status.html HTTP/1.1\r\n");
    client.send(b"Host: t\r\n\r\n");
    assert_eq!(client.receive().unwrap().total(), 2);
    assert!(client.receive().unwrap().body.contains("OK"));
}

#[test]
fn errors_have_code_status_and_a_clear_message() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    let search = |text: &str| format!("/search/?yql={}", encode(text));
    let table = [
        (search("select * from doc where title has"), 400, 4, "query:L1:31 expected 'contains'"),
        (search("select * from doc where nosuch contains 'a'"), 400, 4, "Field 'nosuch' does not"),
        (search("select nosuch from doc where true"), 400, 4, "Field 'nosuch' does not exist"),
        (search("select * from music where true"), 400, 4, "source ref 'music'"),
        (search("select * from doc where score contains '1'"), 400, 4, "'score' is a number"),
        (search("select * from doc where title > 1"), 400, 4, "'title' is not a number"),
        (search("select * from doc where title in ('a')"), 400, 4, "'title' is text"),
        (search("select * from doc where score in (1.5)"), 400, 4, "needs whole numbers"),
        (search("select * from doc where true order by title"), 400, 4, "cannot be ordered by"),
        (search("select * from doc where title contains fuzzy('a b')"), 400, 4, "is 2 words"),
        (
            "/search/?query=a&hits=1000".into(),
            400,
            3,
            "1000 hits requested, configured limit: 400.",
        ),
        ("/search/?query=a&offset=1001".into(), 400, 3, "configured limit: 1000."),
        (search("select * from doc where true limit 401"), 400, 3, "401 hits requested"),
        ("/search/?query=a&hits=many".into(), 400, 4, "Could not set 'hits' to 'many'"),
        ("/search/?query=a&timeout=soon".into(), 400, 4, "Could not set 'timeout' to 'soon'"),
        ("/search/?query=a&timeout=0".into(), 504, 12, "within its timeout of 0 ms"),
        ("/search/?query=a&ranking=best".into(), 400, 4, "rank profile 'best' does not exist"),
        ("/search/?query=%ff".into(), 400, 4, "not percent-encoded UTF-8"),
        ("/search/?query=...".into(), 400, 1, "there is no word to look for"),
        (search("select * from doc where userQuery()"), 400, 1, "there is no word to look for"),
        ("/search/?query=a&type=best".into(), 400, 4, "no query type 'best'"),
        ("/search/?query=a&type=adv".into(), 400, 4, "'adv' is not supported by this server"),
        ("/search/?query=a&model.type.composite=x".into(), 400, 4, "no composite 'x'"),
        ("/search/?query=a&model.type.profile=x".into(), 400, 4, "'model.type.profile' is not"),
        ("/search/?query=a&default-index=x".into(), 400, 4, "Field 'x' does not exist"),
        (
            search("select * from doc where author contains near('a', 'b')"),
            400,
            4,
            "cut into words",
        ),
    ];
    for (path, status, code, message) in table {
        for headers in ["", BENCHMARK] {
            let reply = client.request("GET", &path, headers, b"");
            let (found, text) = reply.error();
            assert_eq!((reply.status, found), (status, code), "{path}: {}", reply.body);
            assert!(text.contains(message), "{path}: {text}");
            assert_eq!(reply.total(), 0);
            assert!(reply.json()["root"]["errors"][0]["summary"].is_string());
        }
    }
    let reply = client.request("POST", "/search/", JSON, b"{\"yql\": ");
    assert_eq!((reply.status, reply.error().0), (400, 4));
    let reply = client.request("POST", "/search/", "Content-Type: text/plain\r\n", b"yql");
    assert!(reply.error().1.contains("Content-Type 'text/plain'"));
    assert_eq!(client.request("DELETE", "/search/", "", b"").status, 405);
    // A client that sends before it listens is not cut off in the middle of sending.
    let large = vec![b' '; 32 << 20];
    let reply = server.client().request("POST", "/search/", JSON, &large);
    assert_eq!(reply.status, 413);
    // One that asks whether to send is told before.
    let mut asking = server.client();
    let head = "POST /search/ HTTP/1.1\r\nHost: t\r\nContent-Length: 33554432\r\n";
    asking.send(format!("{head}{JSON}Expect: 100-continue\r\n\r\n").as_bytes());
    assert_eq!(asking.receive().unwrap().status, 413);
}

#[test]
fn benchmark_headers_keep_their_case_and_order() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    let names = |head: &str| -> Vec<String> {
        let lines = head.lines().filter(|line| line.to_lowercase().starts_with("x-yahoo"));
        lines.map(|line| line.split(':').next().unwrap().to_owned()).collect()
    };
    assert!(names(&client.get("/search/?query=wine").head).is_empty());
    let path = "/search/?query=wine&hits=1&offset=1";
    assert!(names(&client.request("GET", path, COVERAGE, b"").head).is_empty());
    let reply = client.request("GET", path, BENCHMARK, b"");
    let mut expected = vec![
        "X-Yahoo-Vespa-AttributeFetchTime",
        "X-Yahoo-Vespa-FillTime",
        "X-Yahoo-Vespa-NumErrors",
        "X-Yahoo-Vespa-NumFastHits",
        "X-Yahoo-Vespa-NumHits",
        "X-Yahoo-Vespa-QueryHits",
        "X-Yahoo-Vespa-QueryOffset",
        "X-Yahoo-Vespa-SearchTime",
        "X-Yahoo-Vespa-TotalHitCount",
    ];
    assert_eq!(names(&reply.head), expected);
    for line in [
        "X-Yahoo-Vespa-NumErrors: 0",
        "X-Yahoo-Vespa-NumHits: 1",
        "X-Yahoo-Vespa-QueryHits: 1",
        "X-Yahoo-Vespa-QueryOffset: 1",
        "X-Yahoo-Vespa-TotalHitCount: 2",
    ] {
        assert!(reply.head.lines().any(|have| have == line), "{line} in {}", reply.head);
    }
    let both = format!("{BENCHMARK}{COVERAGE}");
    let reply = client.request("GET", path, &both, b"");
    expected.extend([
        "X-Yahoo-Vespa-DocsSearched",
        "X-Yahoo-Vespa-NodesSearched",
        "X-Yahoo-Vespa-FullCoverage",
    ]);
    assert_eq!(names(&reply.head), expected);
    assert!(reply.head.contains("\r\nX-Yahoo-Vespa-DocsSearched: 3"), "{}", reply.head);
    let reply = client.request("GET", "/search/?hits=999&query=a", &both, b"");
    assert_eq!(reply.status, 400);
    assert!(reply.head.contains("X-Yahoo-Vespa-NumErrors: 1"), "{}", reply.head);
    // The next reply on the connection has none again.
    assert!(names(&client.get("/search/?query=wine").head).is_empty());
}

#[test]
fn state_pages_answer() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    let health = client.get("/state/v1/health");
    assert_eq!(health.json()["status"]["code"], "up");
    assert_eq!(health.json()["metrics"]["values"][0]["values"]["last"], 3);
    assert_eq!(client.get("/ApplicationStatus").status, 200);
    assert_eq!(client.get("/status.html").status, 200);
    let handlers = client.get("/").json();
    let classes = handlers["handlers"].as_array().unwrap();
    assert!(classes.iter().any(|h| h["class"].as_str().unwrap().ends_with("DocumentV1ApiHandler")));
    client.get("/search/?query=wine");
    client.get("/search/?hits=999&query=wine");
    let metrics = client.get("/metrics").body;
    for line in [
        "plimsoll_search_requests_total{kind=\"search\",status=\"200\"} 1",
        "plimsoll_search_requests_total{kind=\"search\",status=\"400\"} 1",
        "plimsoll_search_requests_total{kind=\"put\",status=\"200\"} 3",
        "plimsoll_search_request_duration_seconds_count{kind=\"search\"} 2",
        "plimsoll_search_request_duration_seconds_bucket{kind=\"search\",le=\"+Inf\"} 2",
        "plimsoll_search_documents 3",
        "plimsoll_search_searchable_documents 3",
        "plimsoll_search_rejected_total 0",
    ] {
        assert!(metrics.lines().any(|have| have == line), "{line} in\n{metrics}");
    }
    let missing = client.get("/nothing/here");
    assert_eq!(missing.status, 404);
    assert!(missing.message().starts_with("Nothing at '/nothing/here'. Available paths are:\n"));
    assert_eq!(client.get("/state/v1/refresh").status, 405);
    assert_eq!(client.request("POST", "/metrics", "", b"").status, 405);
}

/// `filter`, `recall`, `sorting`, `restrict` and `sources`, which were silently ignored.
#[test]
fn parameters_that_restrict_and_order_hits_count() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    let all = client.get("/search/?query=red+white+rock").total();
    assert_eq!(all, 3);
    let found = |client: &mut super::Client, rest: &str| {
        let reply = client.get(&format!("/search/?query=red+white+rock&{rest}"));
        let mut names = reply.names();
        names.sort();
        names
    };
    let user = encode("select * from doc where userQuery()");
    for (rest, names) in [
        ("filter=%2Bwine", &["one", "two"][..]),
        ("model.filter=%2Bwine+-sweet", &["one"]),
        ("filter=-wine", &["three"]),
        ("filter=%2Bscore:1", &["one"]),
        // Without a sign it only counts for the order.
        ("filter=sweet", &["one", "three", "two"]),
        ("filter=+", &["one", "three", "two"]),
        ("recall=%2Bwine", &["one", "two"]),
        ("recall=%2Bwine+-sweet", &["one"]),
        (&format!("yql={user}&filter=%2Bwine&recall=-sweet"), &["one"]),
        ("restrict=doc", &["one", "three", "two"]),
        ("sources=plimsoll", &["one", "three", "two"]),
    ] {
        assert_eq!(found(&mut client, rest), names, "{rest}");
    }
    // A filter is a query where there is no other, and recall has no part in the relevance.
    assert_eq!(client.get("/search/?filter=%2Bwine").total(), 2);
    let relevance = |client: &mut super::Client, rest: &str| {
        let reply = client.get(&format!("/search/?query=dry&{rest}")).json();
        reply["root"]["children"][0]["relevance"].as_f64().unwrap()
    };
    let alone = relevance(&mut client, "");
    assert_eq!(relevance(&mut client, "recall=%2Bwine"), alone);
    assert!(relevance(&mut client, "filter=%2Bwine") > alone);
    assert!(relevance(&mut client, "filter=wine") > alone);
    // The order of the statement counts for more than the parameter.
    let names = |client: &mut super::Client, rest: &str| {
        client.get(&format!("/search/?query=red+white+rock&{rest}")).names()
    };
    let (up, down) =
        (names(&mut client, "sorting=%2Bscore"), names(&mut client, "ranking.sorting=-score"));
    assert_eq!(up, down.iter().rev().cloned().collect::<Vec<_>>());
    assert_eq!(up[0], "three");
    let yql = encode("select * from doc where userQuery() order by score");
    assert_eq!(names(&mut client, &format!("yql={yql}&sorting=-score")), up);
}

#[test]
fn parameters_that_would_change_the_answer_are_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let server = start(folder.path());
    let mut client = three_documents(&server);
    let fixed = encode("select * from doc where true");
    for (rest, told) in [
        ("query=wine&recall=sweet", "rank item"),
        ("query=wine&recall=", "recall"),
        ("query=wine&filter=%2B*ine", "*word"),
        ("query=wine&sorting=nosuch", "nosuch"),
        ("query=wine&sorting=title", "title"),
        ("query=wine&sorting=uca(author)", "'uca'"),
        ("query=wine&restrict=nosuch", "nosuch"),
        ("query=wine&sources=nosuch", "nosuch"),
        ("query=wine&collapsefield=author", "'collapsefield'"),
        ("query=wine&ranking.matchPhase.attribute=score", "'ranking.matchPhase.attribute'"),
        ("query=wine&queryProfile=mine", "'mine'"),
        (&format!("yql={fixed}&filter=%2Bwine"), "userQuery()"),
    ] {
        let (code, message) = client.get(&format!("/search/?{rest}")).error();
        assert!(code == 4 && message.contains(told), "{rest}: {code} {message}");
    }
    let body = json!({"query": "wine", "select": {"where": {"contains": ["title", "wine"]}}});
    let reply = client.request("POST", "/search/", JSON, body.to_string().as_bytes());
    assert!(reply.error().1.contains("'select.where"), "{}", reply.body);
}
