use super::*;
use crate::query::parse;
use serde_json::json;

fn query(text: &str) -> Query {
    parse(&format!("[[query]]\nname = \"q\"\n{text}"), "q").unwrap().remove(0)
}

fn http(call: Call) -> HttpCall {
    match call {
        Call::Http(call) => call,
        Call::Sql(text) => panic!("{text}"),
    }
}

fn elastic(text: &str, distance: u8) -> Value {
    let call = http(Dialect::Elasticsearch.search("i", &query(text), distance).unwrap());
    assert_eq!((call.method, call.path.as_str()), ("POST", "/i/_search"));
    let body: Value = serde_json::from_str(&call.body.unwrap().1).unwrap();
    assert_eq!(body["track_total_hits"], true);
    body["query"].clone()
}

fn yql(text: &str, distance: u8) -> Result<String, String> {
    let shown = Dialect::Vespa.shown("i", &query(text), distance)?;
    Ok(shown.strip_prefix("select * from doc where ").unwrap().to_owned())
}

fn sql(text: &str, distance: u8) -> Result<(String, Vec<String>), String> {
    let made = sql::select("plimsoll-1", &query(text), distance)?;
    let condition = made.text.split(" WHERE ").skip(1).collect::<Vec<_>>().join(" WHERE ");
    Ok((condition.rsplit_once(" LIMIT ").unwrap().0.to_owned(), made.parameters))
}

fn rows_of(text: &str) -> Rows {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("rows.csv");
    std::fs::write(&path, text).unwrap();
    Rows::load(&path).unwrap()
}

const FUZZY: &str = "kind = \"fuzzy\"\ntext = \"harbour\"";
const BOTH: &str =
    "kind = \"match\"\ntext = \"Two words\"\noperator = \"and\"\ndistance = \"cell\"";
const PHRASE: &str = "kind = \"phrase\"\ntext = \"Two words\"";

#[test]
fn words_within_a_distance() {
    let expected = json!({ "fuzzy": { "body": { "value": "harbour", "fuzziness": 4 } } });
    assert_eq!(elastic(FUZZY, 4), expected);
    assert_eq!(elastic(FUZZY, 0), json!({ "term": { "body": { "value": "harbour" } } }));
    let fuzzy = yql(FUZZY, 2).unwrap();
    assert_eq!(fuzzy, "body contains ({maxEditDistance: 2}fuzzy(\"harbour\"))");
    assert_eq!(yql(FUZZY, 0).unwrap(), "body contains \"harbour\"");
    let (condition, parameters) = sql(FUZZY, 3).unwrap();
    assert!(condition.contains("levenshtein_less_equal(word, $1, 3) <= 3"), "{condition}");
    // Words of any other length are not looked at: one of 300 characters would end the query with an error.
    assert!(condition.contains("CASE WHEN length(word) BETWEEN 4 AND 10 THEN"), "{condition}");
    assert!(condition.contains("FROM plimsoll_1_vocabulary WHERE field = 'body'"), "{condition}");
    assert_eq!(parameters, ["harbour"]);
}

#[test]
fn several_words() {
    let inner = json!({ "query": "Two words", "operator": "and", "fuzziness": 2 });
    assert_eq!(elastic(BOTH, 2), json!({ "match": { "body": inner } }));
    assert_eq!(elastic(BOTH, 0)["match"]["body"].get("fuzziness"), None);
    let both = yql(BOTH, 0).unwrap();
    assert_eq!(both, "(body contains \"two\" and body contains \"words\")");
    let (condition, parameters) = sql(BOTH, 0).unwrap();
    assert!(condition.contains(" AND ") && condition.contains("plainto_tsquery('simple', $2)"));
    assert_eq!(parameters, ["two", "words"]);
    let either = "kind = \"match\"\ntext = \"a b\"";
    assert_eq!(elastic(either, 2)["match"]["body"]["operator"], "or");
    assert_eq!(yql(either, 2).unwrap(), "(body contains \"a\" or body contains \"b\")");
}

#[test]
fn phrases_are_exact_or_not_expressible() {
    assert_eq!(elastic(PHRASE, 2), json!({ "match_phrase": { "body": { "query": "Two words" } } }));
    assert_eq!(yql(PHRASE, 2).unwrap(), "body contains phrase(\"two\", \"words\")");
    assert!(sql(PHRASE, 2).unwrap().0.contains("phraseto_tsquery('simple', $1)"));
    let fuzzy = query(&format!("{PHRASE}\ndistance = \"cell\""));
    for dialect in [Dialect::Elasticsearch, Dialect::Vespa, Dialect::Postgresql] {
        assert!(dialect.shown("i", &fuzzy, 2).is_err(), "{}", dialect.name());
        assert!(dialect.shown("i", &fuzzy, 0).is_ok(), "{}", dialect.name());
    }
    assert_eq!(
        Dialect::Elasticsearch.search("i", &fuzzy, 1).unwrap_err(),
        "match_phrase has no fuzziness"
    );
}

#[test]
fn filters() {
    let terms = "kind = \"terms\"\nfield = \"category\"\nvalues = [\"games\", \"music\"]";
    assert_eq!(elastic(terms, 0), json!({ "terms": { "category": ["games", "music"] } }));
    let either = "(category contains \"games\" or category contains \"music\")";
    assert_eq!(yql(terms, 0).unwrap(), either);
    assert_eq!(sql(terms, 0).unwrap().0, "(category = $1 OR category = $2)");
    let range = "kind = \"range\"\nfield = \"score\"\nat-least = 5\nbelow = 9";
    assert_eq!(elastic(range, 0), json!({ "range": { "score": { "gte": 5, "lt": 9 } } }));
    assert_eq!(yql(range, 0).unwrap(), "(score >= 5 and score < 9)");
    assert_eq!(sql(range, 0).unwrap().0, "(score >= $1::numeric AND score < $2::numeric)");
    let prefix = "kind = \"prefix\"\ntext = \"Har\"";
    assert_eq!(elastic(prefix, 0), json!({ "prefix": { "body": { "value": "har" } } }));
    assert_eq!(yql(prefix, 0).unwrap(), "body contains ({prefix: true}\"har\")");
    assert_eq!(sql(prefix, 0).unwrap().1, ["'har':*"]);
    // A row may bring what no query would be written with.
    let rows = rows_of("w\nit's\n");
    let made = Dialect::filled_sql("i", &query("kind = \"prefix\"\ntext = \"{{w}}\""), 0, &rows, 0);
    let made = made.unwrap();
    assert!(made.contains("'''it''''s'':*'::tsquery"), "{made}");
    let exists = "kind = \"exists\"\nfield = \"author\"";
    assert_eq!(elastic(exists, 0), json!({ "exists": { "field": "author" } }));
    assert!(yql(exists, 0).unwrap_err().contains("without a value"));
    let ids = "kind = \"ids\"\nvalues = [\"s1\", \"s2\"]";
    assert_eq!(elastic(ids, 0), json!({ "ids": { "values": ["s1", "s2"] } }));
    assert!(yql(ids, 0).is_err());
    assert_eq!(sql(ids, 0).unwrap().0, "id IN ($1, $2)");
}

#[test]
fn clauses_together() {
    let text = "kind = \"bool\"\nmust = [{ kind = \"fuzzy\", text = \"a\" }]\n\
        should = [{ kind = \"all\" }, { kind = \"term\", field = \"category\", text = \"x\" }]\n\
        must-not = [{ kind = \"term\", field = \"score\", values = [7] }]\nminimum = 1";
    let expected = json!({ "bool": {
        "must": [{ "fuzzy": { "body": { "value": "a", "fuzziness": 1 } } }],
        "should": [{ "match_all": {} }, { "term": { "category": { "value": "x" } } }],
        "must_not": [{ "term": { "score": { "value": 7 } } }],
        "minimum_should_match": 1,
    }});
    assert_eq!(elastic(text, 1), expected);
    let made = yql(text, 1).unwrap();
    assert_eq!(
        made,
        "(body contains ({maxEditDistance: 1}fuzzy(\"a\")) and (true or category contains \"x\") and !(score = 7))"
    );
    let two_of_three = text
        .replace("minimum = 1", "minimum = 2")
        .replace("should = [", "should = [{ kind = \"exists\", field = \"title\" }, ");
    assert!(yql(&two_of_three, 1).is_err());
    let two_of_three =
        two_of_three.replace("kind = \"exists\", field = \"title\"", "kind = \"all\"");
    assert!(yql(&two_of_three, 1).unwrap_err().contains("at least N"));
    assert!(sql(&two_of_three, 1).unwrap().0.contains(")::int) >= 2"));
    let only_not = "kind = \"bool\"\nmust-not = [{ kind = \"all\" }]";
    assert_eq!(yql(only_not, 0).unwrap(), "(true and !(true))");
}

#[test]
fn raw_texts_are_for_their_dialect_only() {
    let raw = query(
        "kind = \"raw\"\nelasticsearch = '{\"query\": {\"fuzzy\": {\"body\": {\"value\": \"x\", \"fuzziness\": {distance}}}}}'",
    );
    let shown = Dialect::Elasticsearch.shown("i", &raw, 3).unwrap();
    assert!(shown.contains("\"fuzziness\":3"), "{shown}");
    assert_eq!(Dialect::Vespa.shown("i", &raw, 3).unwrap_err(), "the query has no text for vespa");
}

#[test]
fn answers_are_read() {
    let es = Dialect::Elasticsearch;
    let reply =
        br#"{"hits":{"total":{"value":2,"relation":"eq"},"hits":[{"_id":"a"},{"_id":"b"}]}}"#;
    let found = es.read_found(reply);
    assert_eq!((found.hits, found.ids), (Some(2), vec!["a".to_owned(), "b".to_owned()]));
    let capped = br#"{"hits":{"total":{"value":10000,"relation":"gte"},"hits":[]}}"#;
    assert_eq!(es.read_found(capped).hits, None, "a lower bound is no count");
    assert_eq!(es.read_found(br#"{"hits":{"total":7,"hits":[]}}"#).hits, Some(7));
    let vespa = br#"{"root":{"fields":{"totalCount":1},"children":[{"fields":{"documentid":"id:plimsoll:doc::s17"}}]}}"#;
    let found = Dialect::Vespa.read_found(vespa);
    assert_eq!((found.hits, found.ids), (Some(1), vec!["s17".to_owned()]));
    assert_eq!(es.read_count(br#"{"count":5}"#), Some(5));
    assert_eq!(Dialect::Vespa.read_count(vespa), Some(1));
    assert_eq!(es.read_index_size(br#"[{"index":"i","store.size":"1234"}]"#), Some(1234));
    let hello = br#"{"version":{"distribution":"opensearch","number":"2.19.1"}}"#;
    let postgresql = Dialect::Postgresql;
    let found = postgresql.read_found(br#"[3,["s1","s2"]]"#);
    assert_eq!((found.hits, found.ids.len()), (Some(3), 2));
    assert_eq!(
        (postgresql.read_count(b"[7]"), postgresql.read_index_size(b"[8]")),
        (Some(7), Some(8))
    );
    assert_eq!(postgresql.read_version(br#"["15.8 (x)"]"#), "postgresql 15.8 (x)");
    assert_eq!(es.read_version(hello), "opensearch 2.19.1");
    assert_eq!(es.read_version(br#"{"version":{"number":"7.10.2"}}"#), "elasticsearch 7.10.2");
}

#[test]
fn an_engine_speaks_for_itself() {
    let es = Dialect::Elasticsearch;
    let body = br#"{"error":{"root_cause":[{"type":"x","reason":"[fuzzy] query does not \"support\" [x]"}],"ty"#;
    assert_eq!(es.message(400, body), "400: [fuzzy] query does not \"support\" [x]");
    assert_eq!(es.message(503, b""), "status 503");
    assert_eq!(es.message(502, b"<html>bad\ngateway"), "502: <html>bad gateway");
    let vespa =
        br#"{"root":{"errors":[{"code":3,"summary":"Illegal query","message":"no such field"}]}}"#;
    assert_eq!(Dialect::Vespa.message(400, vespa), "400: no such field");
    assert!(es.message(400, &[b'x'; 2000]).len() < 320);
}

#[test]
fn an_index_has_the_shards_and_fields_asked_for() {
    let made = http(Dialect::Elasticsearch.create("i", 5).remove(0));
    let body: Value = serde_json::from_str(&made.body.unwrap().1).unwrap();
    assert_eq!(body.pointer("/settings/index/number_of_shards"), Some(&json!(5)));
    assert_eq!(body.pointer("/mappings/properties/category/type"), Some(&json!("keyword")));
    let (before, after) = Statement::tables("a-b");
    assert!(
        before[2]
            .starts_with("CREATE TABLE a_b (id text PRIMARY KEY, title text NOT NULL, title_words")
    );
    assert!(
        after.iter().any(|text| text.contains("CREATE TABLE a_b_vocabulary AS SELECT 'title'"))
    );
}

#[test]
fn values_are_quoted_where_they_stand() {
    let statement = Statement {
        text: "a = $1 AND b = $2 AND c = $11".to_owned(),
        parameters: vec!["it's".to_owned(), "back\\slash".to_owned()],
    };
    assert_eq!(statement.inlined(), "a = 'it''s' AND b =  E'back\\\\slash' AND c = $11");
    let own = Statement { text: "SELECT '$1'".to_owned(), parameters: Vec::new() };
    assert_eq!(own.inlined(), "SELECT '$1'", "what its user wrote stays as it is");
}

#[test]
fn one_question_has_one_row_of_hits_and_ids() {
    let asked = Dialect::Postgresql.ask("i", &query(FUZZY), 2).unwrap();
    let Call::Sql(text) = asked else { panic!("{asked:?}") };
    assert!(
        text.starts_with("SELECT coalesce(max(hits), 0), coalesce(json_agg(id), '[]')"),
        "{text}"
    );
    let raw = query("kind = \"raw\"\npostgresql = \"SELECT 1 FROM {table}\"");
    let asked = Dialect::Postgresql.ask("a-b", &raw, 2).unwrap();
    assert_eq!(
        asked,
        Call::Sql("SELECT count(*), NULL FROM (SELECT 1 FROM a_b\n) AS asked".to_owned())
    );
}

#[test]
fn trigrams_narrow_only_where_they_lose_nothing() {
    let narrowed = |word: &str, distance| {
        let text = format!("kind = \"fuzzy\"\ntext = \"{word}\"");
        sql(&text, distance).unwrap().0.contains("word % $1")
    };
    assert!(narrowed("harbour", 1) && narrowed("administration", 2));
    assert!(!narrowed("harbour", 4) && !narrowed("sea", 1));
}

#[test]
fn hits_are_told_where_none_is_returned() {
    let none = query("kind = \"all\"\nsize = 0");
    let select = sql::select("i", &none, 2).unwrap().text;
    assert_eq!(select, "SELECT count(*) AS hits, NULL AS id FROM i WHERE true");
    let found = Dialect::Postgresql.read_found(b"[7,[null]]");
    assert_eq!((found.hits, found.ids.len()), (Some(7), 0));
}

#[test]
fn a_table_is_whole_once_the_last_of_it_is_made() {
    let (_, after) = Statement::tables("a-b");
    assert_eq!(after.last().unwrap(), "COMMENT ON TABLE a_b IS 'plimsoll: whole'");
    let asked = Dialect::Postgresql.count_whole("a-b").unwrap();
    assert!(matches!(&asked, Call::Sql(text) if text.contains("= 'plimsoll: whole'")), "{asked:?}");
    let elastic = Dialect::Elasticsearch;
    assert_eq!(elastic.count_whole("i"), elastic.count("i"));
}

#[test]
fn a_reply_that_was_cut_tells_its_hits_all_the_same() {
    let es = |relation: &str| {
        let text = format!(
            "{{\"took\":1,\"hits\":{{\"total\":{{\"value\":12,\"relation\":\"{relation}\"}},\"hits\":[{{\"_id\":\"a"
        );
        Dialect::Elasticsearch.read_found(text.as_bytes())
    };
    assert_eq!((es("eq").hits, es("eq").ids.len()), (Some(12), 0));
    assert_eq!(es("gte").hits, None, "at least N");
    let vespa = br#"{"root":{"fields":{"totalCount":9},"children":[{"id":"x"#;
    assert_eq!(Dialect::Vespa.read_found(vespa).hits, Some(9));
    assert_eq!(Dialect::Vespa.read_found(b"<html>").hits, None);
}

#[test]
fn removing_goes_on_until_all_is_gone() {
    let next = |body: &[u8]| Dialect::Vespa.remove_on(body).map(|call| http(call).path);
    assert_eq!(next(br#"{"documentCount":9}"#), None);
    let on = next(br#"{"documentCount":9,"continuation":"A B"}"#).unwrap();
    assert!(on.ends_with("&timeChunk=60s&continuation=A%20B"), "{on}");
    assert_eq!(Dialect::Elasticsearch.remove_on(br#"{"continuation":"x"}"#), None);
}

#[test]
fn a_document_is_known_by_its_texts() {
    let line = json!({ "id": "s1", "title": "", "body": "the sea", "score": 3 });
    let is = |body: &[u8]| Dialect::Vespa.is_document(body, &line);
    assert!(is(br#"{"id":"id:plimsoll:doc::s1","fields":{"body":"the sea","score":3}}"#));
    assert!(!is(br#"{"fields":{"body":"the land"}}"#) && !is(b"{\"pathId\":\"x\"}") && !is(b""));
    let asked = http(Dialect::Vespa.document("a/b").unwrap());
    assert_eq!(asked.path, "/document/v1/plimsoll/doc/docid/a%2Fb");
    assert_eq!(Dialect::Elasticsearch.document("a"), None);
}
