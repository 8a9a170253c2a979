//! First inputs of a target: the files of the tests, the texts in the tests themselves, and a few of their own.

use std::fs;
use std::path::{Path, PathBuf};

/// Origin of inputs.
enum From {
    /// Files in a folder whose names end so; each is an input, behind these bytes.
    Files(&'static str, &'static str, &'static [u8]),
    /// Texts in the source of tests, in a file or all files of a folder; each is an input, behind these bytes.
    Texts(&'static str, &'static [u8]),
    /// This input.
    Own(&'static [u8]),
}

use From::{Files, Own, Texts};

const HTTP1: &[From] = &[
    Own(b"\x07\0HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabcHTTP/1.1 404 No\r\nContent-Length: 0\r\n\r\n"),
    Own(b"\x01\0HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=y\r\nabc\r\n0\r\nA: b\r\n\r\n"),
    Own(b"\x02\x04HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Encoding: gzip\r\n\r\nabc"),
    Own(b"\x03\x08HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 204 None\r\nX: a\r\n b\r\n\r\n"),
    Texts("crates/wire/tests/http1/cases.rs", b"\x05\0"),
];
const REQUESTS: &[From] = &[
    Own(b"\x05GET /a?b=c HTTP/1.1\r\nHost: x\r\n\r\nPOST /_stats?reset=1 HTTP/1.0\r\nContent-Length: 2\r\n\r\nab"),
    Own(b"\x01POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\nExpect: 100-continue\r\n\r\n2;a=b\r\nhi\r\n0\r\nA: b\r\n\r\n"),
    Texts("crates/servers/serving/src/http", b"\x03"),
];
const CODINGS: &[From] = &[
    Own(b"\0\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0"),
    Own(b"\x01\x78\x9c\x4b\x4c\x4a\x06\0\x02\x4d\x01\x27"),
    Own(b"\x05\x4b\x4c\x4a\x06\0"),
];
const HTTP2: &[From] = &[
    Own(b"\x07\0\0\0\x04\0\0\0\0\0\0\0\0\x04\x01\0\0\0\0\0\0\x01\x01\x04\0\0\0\x01\x88\0\0\x03\0\x01\0\0\0\x01abc"),
    Own(b"\xff\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x02\0\0\x01\x01\x04\0\0\0\x03\x88\0\0\x08\x07\0\0\0\0\0\0\0\0\x01\0\0\0\0"),
    Own(b"\x02\0\0\0\x04\0\0\0\0\0\0\0\x01\x01\x05\0\0\0\x05\x8d\0\0\x04\x03\0\0\0\0\x03\0\0\0\x07\0\0\x04\x08\0\0\0\0\0\0\0\0\x09"),
];
const HPACK: &[From] = &[
    Own(b"\0\x01\x88\0\x0c\x40\x0acustom-key\0"),
    Own(b"\0\x11\x82\x86\x84\x41\x8c\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff\0\x0c\x82\x86\x84\xbe\x58\x86\xa8\xeb\x10\x64\x9c\xbf"),
    Own(b"\0\x03\x3f\xe1\x1f\0\x01\x20\0\x02\xbe\xbf"),
];
const POSTGRES: &[From] = &[
    Own(b"\x06" as &[u8]),
    Own(b"\x062\0\0\0\x04D\0\0\0\x0b\0\x01\0\0\0\x011C\0\0\0\x0dSELECT 1\0Z\0\0\0\x05I"),
    Own(b"\x02E\0\0\0\x1eSERROR\0VERROR\0C42P01\0Mno\0\0Z\0\0\0\x05I"),
    Own(b"\x01R\0\0\0\x17\0\0\0\x0aSCRAM-SHA-256\0\0S\0\0\0\x08a\0b\0K\0\0\0\x0c\0\0\0\x01\0\0\0\x02"),
    Own(b"\x03R\0\0\0\x0c\0\0\0\x05abcdN\0\0\0\x08Sa\0\0G\0\0\0\x07\0\0\0"),
];
const VOLT: &[From] = &[
    Own(b"\0\0\0\0\x04Vote\0\0\0\0\0\0\0\x07\0\x03\x06\0\0\0\0\x7e\xa9\xb2\x81\x05\0\0\0\x01\x06\0\0\0\0\0\0\0\x02"),
    Own(b"\0\0\0\0\0\0\0\0\x07\x20\xfe\0\0\0\x02no\x80\0\0\0\x01\0\0"),
    Own(b"\0\0\0\0\0\0\0\0\x07\0\x01\x80\0\0\0\0\0\x01\0\0\0\x1c\0\0\0\x09\x80\0\x01\x06\0\0\0\x01n\0\0\0\x01\0\0\0\x08\0\0\0\0\0\0\0\x05"),
    Own(b"\x01\0\0\0\0\x08database\0\0\0\x01u\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
];
const VOLT_STREAM: &[From] = &[
    Own(b"\x06\0\0\0\x12\0\0\0\0\0\0\0\0\0\0\0\x01\x80\0\0\0\x01\0\0"),
    Own(b"\x02\0\0\0\x17\0\0\0\0\0\0\0\0\x01\x20\xfd\0\0\0\x02no\x80\0\0\0\x01\0\0\0"),
    Own(b"\x01\0\0\0\x02\0\x01"),
];
const RANK: &[From] = &[
    Own(b"\x05\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\x03abc"),
    Own(b"\x07\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x09\0\0\0\x03abc"),
    Own(b"\x16\x0e\x19\x1c\x19\x15\0\0"),
];
const IDS: &[From] =
    &[Texts("crates/wire/tests/vespa/ids.rs", b""), Texts("crates/wire/tests/vespa/paths.rs", b"")];
const FEEDS: &[From] = &[
    Own(b"\x07[{\"put\":\"id:a:music::1\",\"fields\":{\"title\":\"x\"}},\n{\"remove\":\"id:a:music::2\"}]"),
    Own(b"\x03{\"update\":\"id:a:music::1\",\"condition\":\"music.year>1\",\"create\":true,\"fields\":{\"a\":{\"assign\":1}}}\n"),
    Texts("crates/jobs/feed/src/operation.rs", b"\x09"),
    Texts("crates/jobs/feed/src/splitter.rs", b"\x02"),
];
const VISITS: &[From] = &[
    Own(b"\x07{\"pathId\":\"/document/v1/\",\"documents\":[{\"id\":\"id:a:b::1\",\"fields\":{}}],\"documentCount\":1,\"continuation\":\"AAA\"}"),
    Own(b"\x05{\"put\":\"id:a:b::1\",\"fields\":{}}\n{\"remove\":\"id:a:b::2\"}\n{\"continuation\":{\"percentFinished\":10}}\n"),
    Own(b"\x04\x1f\x8b\x08\0\0\0\0\0\0\xff\x4b\x4c\x4a\x06\0\xc2\x41\x24\x35\x03\0\0\0"),
    Texts("crates/jobs/visit/src/reply_tests.rs", b"\x0b"),
];
const QUERIES: &[From] = &[
    Own(b"\x00\x05/a?b=c\n/d\n\n/e f\n"),
    Own(b"\x01\x03/a\nbody\nmore\n/b\n\n/c\nx"),
    Own(b"\x05\x04/a\nYWJj\n/b\n-_\n"),
    Own(b"\x08\x09http://h/a\n/b\nGET /c\n"),
    Files("tests/docs/files", ".txt", b"\0\x07"),
    Texts("crates/workloads/src/query_file/tests.rs", b"\x01\x05"),
];
const ROWS: &[From] = &[
    Own(b"a,b\n1,\"x, \"\"y\"\"\"\n2,\n"),
    Own(b"{\"a\":1,\"b\":\"x\"}\n{\"a\":2,\"b\":null}\n"),
    Own(b"\xef\xbb\xbfterm\r\none\r\ntwo\r\n"),
    Files("tests/docs/files", ".csv", b""),
    Texts("crates/workloads/src/rows", b""),
];
const STATEMENTS: &[From] = &[
    Own(b"-- a comment\nselect 1\ninsert into t values (1)\n"),
    Own(b"Vote 2125550001 1 2\n@AdHoc 'select 1'\nHello null 1.5 'it''s'\n"),
    Files("tests/docs/files", ".sql", b""),
    Texts("crates/workloads/src/volt_calls.rs", b""),
];
const CORPORA: &[From] = &[
    Own(b"{\"title\":\"a\",\"body\":\"b\",\"score\":3}\n{\"id\":7,\"fields\":{\"title\":\"x\"}}\n"),
    Texts("crates/workloads/src/corpus", b""),
];
const JSON: &[From] = &[
    Own(b"/a/0/b\n{\"a\":[{\"b\":[1,2]}],\"c\":\"\\u00e9\\\"\"}"),
    Own(b"/root/fields/totalCount\n{\"root\":{\"fields\":{\"totalCount\":12}}}"),
    Own(b"\n[1,true,null,-1.5e3,\"\",{},[]]"),
    Texts("crates/workloads/src/json_scan.rs", b"/a\n"),
];
const RULES: &[From] = &[
    Own(b"hits>0\0{\"hits\":{\"total\":3}}"),
    Own(b"json:/a=1\0{\"a\":1}"),
    Own(b"status=200-299\0"),
    Own(b"X-Name: value"),
    Own(b"slow=^/search\0/search?x"),
    Texts("crates/workloads/src/checks/tests.rs", b""),
];
const TOML: &[From] = &[
    Files("jobs", ".toml", b""),
    Files("tests/docs/files", ".toml", b""),
    Texts("crates/catalogue/src/job.rs", b""),
    Texts("crates/jobs/search/src/spec/tests.rs", b""),
    Texts("crates/jobs/search/src/query/tests.rs", b""),
];
const SCENARIOS: &[From] = &[
    Files("tests/docs/files", ".toml", b""),
    Own(b"command = \"load\"\ntarget = \"http://h/\"\nrate = 100\nduration = \"10s\"\nheader = [\"A: b\"]\n"),
    Own(b"command = \"seek\"\ntarget = [\"http://h/\"]\nslo = \"p95=100ms\"\n[rows]\nfile = \"a.csv\"\n"),
    Texts("crates/catalogue/src/commands/scenario/tests.rs", b""),
];
const VALUES: &[From] = &[
    Texts("crates/core/src/units/tests.rs", b""),
    Texts("crates/core/src/slo.rs", b""),
    Texts("crates/core/src/slo/class.rs", b""),
    Texts("crates/core/src/assertion/tests.rs", b""),
    Texts("crates/core/src/schedule/users/tests.rs", b""),
    Texts("crates/record/src/bench_shape.rs", b""),
    Own(b"2026-11-26T04:30:11Z"),
];
const ADDRESSES: &[From] = &[
    Own(b"http://[::1]:8080/a?b=c#d"),
    Own(b"postgres://u:p%40x@h:5432,h2/d?sslmode=require&application_name=x"),
    Own(b"volt://u:p@h:21212"),
    Own(b"https://h/v1/metrics"),
    Own(b"127.0.0.1:9100"),
    Texts("crates/jobs/job/src/url.rs", b""),
    Texts("crates/jobs/job/src/postgres/address.rs", b""),
];
const BUSES: &[From] = &[
    Own(b"nats://127.0.0.1:4222"),
    Own(b"tls://u:p%40x@[::1]:4222/"),
    Own(b"nats://a-long-token-of-a-bus@h"),
    Own(b"unix:/tmp/a/bus"),
    Own(b"h:1"),
    Texts("crates/bus/src/address.rs", b""),
];
const GREETINGS: &[From] = &[
    Own(b"\x00INFO {\"server_id\":\"N\",\"version\":\"2.15.2\",\"max_payload\":1048576,\"tls_available\":true}\r\n"),
    Own(b"\x03INFO {\"version\":\"2.9.10\",\"tls_required\":true}\r\n"),
    Own(b"\x01INFO {}\n"),
    Own(b"\x05HTTP/1.1 400 Bad Request\r\n\r\n"),
];
const MESSAGES: &[From] = &[
    // A second of one class without values, and one whose lag has a block of cells with four bits each.
    Own(b"\x01\0\x08\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x90\x03\x04\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0"),
    Own(b"\x01\0\x02\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x02\x04\x02\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\x11\0\0\0\0\0\0\0\0\0"),
    Own(b"{\"Armed\":{\"phase\":3}}"),
    Own(b"{\"Started\":{\"phase\":0,\"late_ns\":120000}}"),
    Own(b"{\"Wants\":{\"sha256\":\"ab\",\"offset\":65536}}"),
    Own(b"{\"Failed\":{\"why\":\"no space\",\"code\":1}}"),
    Own(b"{\"Arm\":{\"phase\":1,\"at_ns\":400000000}}"),
    Own(b"\"Stop\""),
    Own(b"\x01\0\0\0\0\0\0\0\x01\0\0\0\0\0\0\0\x02\0\0\0\0\0\0\0\x03\x01\0\0\0\0\0\0\0\x04\0\0\0\0\0\0\0\0body"),
];
const FRAMES: &[From] = &[
    // Subscribe, unsubscribe, publish, flush, deliver, lost, flushed.
    Own(b"\x00\x0e\0\0\0\x01\x07\0\0\0\0\0\0\0\x03\0a.*"),
    Own(b"\x03\x0b\0\0\0\x02\xff\xff\xff\xff\xff\xff\xff\xff\0\0"),
    Own(b"\x02\x09\0\0\0\x03\x03\0a.bxyz\x0b\0\0\0\x04\x01\0\0\0\0\0\0\0\0\0"),
    Own(b"\x07\x11\0\0\0\x05\x03\0\0\0\0\0\0\0\x03\0a.bxyz"),
    Own(b"\x01\x13\0\0\0\x06\x03\0\0\0\0\0\0\0\xde\x03\0\0\0\0\0\0\0\0"),
    Own(b"\x00\x0b\0\0\0\x07\x01\0\0\0\0\0\0\0\0\0"),
    Own(b"\x00\xff\xff\xff\xff"),
];
const RECORDS: &[From] = &[Files("crates/record/tests/records", ".json", b"")];
const JOURNALS: &[From] = &[
    Own(b"{\"from_s\":0,\"to_s\":1,\"phase\":0}\n"),
    Own(b"{\"kind\":\"app\",\"at_s\":1.0,\"class\":\"\",\"status\":500,\"reason\":\"x\",\"request\":\"GET /\",\"reply\":\"\"}\n"),
    Texts("crates/core/src/interval/tests.rs", b""),
];
const HISTOGRAMS: &[From] = &[
    Own(b"HISTFAAAABx4nJNpmSzMwMDAxAABzFCaEUoz2X+AsIQZAB2NA2o="),
    Texts("crates/core/src/histogram", b""),
    Files("crates/import/tests/files", ".hlog", b""),
];
const IMPORTS: &[From] = &[Files("crates/import/tests/files", "", b"\xff")];
const TABLES: &[From] = &[
    Files("tests/docs/files", ".md", b""),
    Files("crates/jobs/fbench/testdata", ".txt", b""),
    Own(b"Users | 1GB | 5GB\n--- | --- | ---\n1 | 10.5 | - [1]\n10 | 3 | 4\n\n[1] cut\n"),
    Own(b"load 'a b' \"c\\\"d\" {x} --e"),
    Own(b"cpu  100 0 50 800 10 0 5 35 20 0\ncpu0 1 2 3 4 5 6 7 8 9 10\n"),
];
const YQL: &[From] = &[
    Texts("crates/servers/vespa/src/tests/yql_tests.rs", b""),
    Texts("crates/servers/vespa/src/tests/combining.rs", b""),
    Own(b"select * from music where artist contains \"x\" and year > 3 order by year desc limit 3 offset 1 timeout 5"),
    Own(b"select a, b from sources * where userQuery() or ({targetHits: 3}weakAnd(a contains \"b\"))"),
];
const SIMPLE: &[From] = &[
    Texts("crates/servers/vespa/src/tests/simple_tests.rs", b"\0"),
    Own(b"\x02a +b -c title:d \"e f\" (g h) i* year:>3"),
];
const PARAMETERS: &[From] = &[
    Own(b"yql=select+*+from+music+where+true&hits=3&offset=1&timeout=2s&ranking=bm25"),
    Own(b"{\"yql\":\"select * from music where artist contains @a\",\"a\":\"x\",\"presentation\":{\"timing\":true}}"),
    Own(b"query=a%20b&type=any&filter=%2Btags:x&recall=%2Bid:1&sorting=-year&restrict=music"),
];
const REQUEST: &[From] = &[
    Own(b"/document/v1/ns/music/docid/1?fieldSet=music:artist&timeout=5s"),
    Own(b"/document/v1/?cluster=c&wantedDocumentCount=10&stream=true&slices=4&sliceId=1"),
    Own(b"/document/v1/ns/music/group/a%20b/?selection=music.year%3E3&continuation=AAAABAAAAAE"),
];
const SEARCHES: &[From] = &[
    Texts("crates/servers/elastic/src/tests/semantics.rs", b"\n"),
    Texts("crates/servers/elastic/src/tests/errors.rs", b"\n"),
    Own(b"size=3&track_total_hits=true\n{\"query\":{\"bool\":{\"must\":[{\"match\":{\"title\":{\"query\":\"a b\",\"fuzziness\":\"AUTO\",\"operator\":\"and\"}}}],\"filter\":[{\"range\":{\"score\":{\"gte\":1,\"lt\":\"3\"}}}],\"must_not\":{\"term\":{\"name\":\"x\"}},\"should\":[{\"match_phrase\":{\"body\":\"c d\"}}],\"minimum_should_match\":\"1<75%\"}},\"sort\":[{\"score\":{\"order\":\"desc\",\"missing\":\"_last\"}},\"_score\"],\"_source\":[\"t*\"],\"from\":1}"),
    Own(b"q=title:a+AND+b&df=body\n"),
    Own(b"\n{\"query\":{\"multi_match\":{\"query\":\"a\",\"fields\":[\"title^3\",\"bo*\"],\"type\":\"best_fields\"}}}"),
    Own(b"\n{\"query\":{\"dis_max\":{\"queries\":[{\"prefix\":{\"name\":\"a\"}},{\"fuzzy\":{\"body\":{\"value\":\"ab\",\"fuzziness\":2}}},{\"exists\":{\"field\":\"at\"}},{\"ids\":{\"values\":[\"1\"]}},{\"terms\":{\"name\":[\"a\",\"b\"]}}]}}}"),
    Own(b"\n{\"query\":{\"range\":{\"at\":{\"gte\":\"now-1d/d\",\"format\":\"strict_date_optional_time\"}}}}"),
];
const BODIES: &[From] = &[
    Own(b"{\"properties\":{\"a\":{\"type\":\"text\",\"fields\":{\"raw\":{\"type\":\"keyword\",\"ignore_above\":10}}},\"b\":{\"type\":\"date\",\"format\":\"epoch_millis\"},\"c\":{\"properties\":{\"d\":{\"type\":\"long\"}}}},\"dynamic\":\"strict\"}\0{\"a\":\"x\",\"b\":1,\"c\":{\"d\":2}}"),
    Own(b"{}\0{\"a\":\"x\",\"b\":[1,2],\"c\":{\"d\":true},\"e\":1.5,\"f\":\"2020-01-01\"}"),
    Own(b"{\"index\":{\"_index\":\"i\",\"_id\":\"1\"}}\n{\"a\":1}\n{\"delete\":{\"_id\":2}}\n{\"update\":{\"_id\":\"1\",\"retry_on_conflict\":3}}\n{\"doc\":{}}\n"),
    Own(b"{\"index\":{\"number_of_shards\":3,\"refresh_interval\":\"-1\"}}"),
    Own(b"2020-01-31||+1M/d"),
    Texts("crates/servers/elastic/src/tests/mappings.rs", b""),
    Texts("crates/servers/elastic/src/mapping/date.rs", b""),
];
const PATHS: &[From] = &[
    Own(b"hits.hits._id,took\n{\"took\":1,\"hits\":{\"total\":2,\"hits\":[{\"_id\":\"a\"}]}}"),
    Own(b"**._id,-hits.**.x&pretty\n{\"hits\":{\"hits\":[{\"_id\":\"a\",\"x\":{\"x\":1}}]}}"),
];
const SQL: &[From] = &[
    Texts("crates/servers/voterdb/src/tests/statements.rs", b""),
    Own(b"Procedure=Vote&Parameters=[1,2,3]&User=u&Hashedpassword=00&jsonp=f"),
    Own(b"insert into contestants values (1, 'a'); update contestants set contestant_name = 'b' where contestant_number = 1; delete from votes"),
    Own(b"\x15\0\0\0\0\0\0\0\x01aaaaaaaaNY\0\0\0\0\0\0\x01\0\0\0"),
];
const LIVE: &[From] = &[
    Own(b"token=0123456789abcdef0123456789abcdef&last=3&page=1\nHost: 127.0.0.1:8000\n"),
    Own(b"\nHost: localhost\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\nLast-Event-Id: 7"),
    Own(b"last=1\nHost: [::1]:80\nHost: example.com\n"),
];
const REPLIES: &[From] = &[
    Own(b"{\"hits\":{\"total\":{\"value\":3},\"hits\":[{\"_id\":\"1\",\"_score\":1.0}]},\"timed_out\":false}"),
    Own(b"{\"root\":{\"fields\":{\"totalCount\":3},\"coverage\":{\"degraded\":{\"timeout\":true}},\"children\":[{\"id\":\"id:a:b::1\"}]}}"),
    Own(b"{\"version\":{\"number\":\"7.10.2\",\"distribution\":\"x\"},\"cluster_name\":\"c\"}"),
    Own(b"{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"no\"}}"),
    Own(b"{\"error\":{\"root_cause\":[{\"type\":\"a\",\"reason\":\"b\"}],\"reason\":\"c\"},\"status\":400}"),
    Own(b"{\"_all\":{\"primaries\":{\"store\":{\"size_in_bytes\":12},\"docs\":{\"count\":2}}},\"count\":2}"),
];

/// The origins of the inputs of each target.
const ORIGINS: &[(&str, &[From])] = &[
        ("http1_replies", HTTP1),
        ("http1_requests", REQUESTS),
        ("content_codings", CODINGS),
        ("http2_frames", HTTP2),
        ("hpack_blocks", HPACK),
        ("postgres_messages", POSTGRES),
        ("volt_messages", VOLT),
        ("volt_stream", VOLT_STREAM),
        ("rank_frames", RANK),
        ("document_ids", IDS),
        ("visit_tokens", &[Texts("crates/wire/tests/vespa/tokens.rs", b"")]),
        ("selections", &[Texts("crates/servers/documents/src/selection/tests", b"")]),
        ("document_bodies", &[Texts("crates/servers/documents/src/tests/operation_tests.rs", b"")]),
        ("schemas", &[
            Texts("crates/servers/documents/src/tests/schema_tests.rs", b""),
            Files("crates/servers/documents/src/tests", ".sd", b""),
            Files("tests/docs/files", ".sd", b""),
        ]),
        ("stored_documents", &[Own(b"\x02aaaaaaaabbbbbbbb\x05music"), Own(b"\x03aaaaaaaabbbbbbbb")]),
        ("visit_replies", VISITS),
        ("feed_operations", FEEDS),
        ("query_files", QUERIES),
        ("ndjson_requests", &[
            Own(b"{\"path\":\"/a\",\"method\":\"POST\",\"headers\":{\"A\":\"b\"},\"body\":{\"x\":1},\"class\":\"c\"}"),
            Texts("crates/workloads/src/ndjson.rs", b""),
        ]),
        ("row_files", ROWS),
        ("statement_files", STATEMENTS),
        ("corpus_files", CORPORA),
        ("json_scans", JSON),
        ("rules", RULES),
        ("toml_files", TOML),
        ("scenario_files", SCENARIOS),
        ("flag_values", VALUES),
        ("addresses", ADDRESSES),
        ("bus_addresses", BUSES),
        ("bus_greetings", GREETINGS),
        ("bus_frames", FRAMES),
        ("fleet_messages", MESSAGES),
        ("run_records", RECORDS),
        ("journals", JOURNALS),
        ("histograms", HISTOGRAMS),
        ("imports", IMPORTS),
        ("printed_tables", TABLES),
        ("yql", YQL),
        ("simple_queries", SIMPLE),
        ("search_parameters", PARAMETERS),
        ("document_requests", REQUEST),
        ("elastic_searches", SEARCHES),
        ("elastic_bodies", BODIES),
        ("filter_paths", PATHS),
        ("sql", SQL),
        ("live_requests", LIVE),
        ("engine_replies", REPLIES),
];

fn root() -> PathBuf {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../..")).to_owned()
}

/// The first inputs of a target.
#[must_use]
pub fn of(target: &str) -> Vec<Vec<u8>> {
    let mut inputs = Vec::new();
    let origins = ORIGINS.iter().find(|(name, _)| *name == target).map_or(&[][..], |(_, own)| own);
    for origin in origins {
        match origin {
            Own(bytes) => inputs.push(bytes.to_vec()),
            Files(folder, end, front) => {
                for path in files(&root().join(folder), end) {
                    inputs.extend(fs::read(path).map(|bytes| [front, &bytes[..]].concat()));
                }
            }
            Texts(source, front) => {
                for path in files(&root().join(source), ".rs") {
                    let text = fs::read_to_string(path).unwrap_or_default();
                    let found = texts(&text).into_iter();
                    inputs.extend(found.map(|text| [front, text.as_bytes()].concat()));
                }
            }
        }
    }
    inputs
}

/// The files of a folder whose names end so, in order; a file is one of its own.
fn files(path: &Path, end: &str) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return vec![path.to_owned()] };
    let mut found: Vec<PathBuf> = entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.is_file() && path.to_string_lossy().ends_with(end))
        .collect();
    found.sort();
    found
}

/// The texts in quotes of a source in Rust, with their escapes undone as far as tests use them.
fn texts(source: &str) -> Vec<String> {
    let (mut found, mut rest) = (Vec::new(), source);
    while let Some(at) = rest.find('"') {
        let before = &rest[..at];
        rest = &rest[at + 1..];
        let hashes = before.len() - before.trim_end_matches('#').len();
        if before.ends_with('\'') {
            continue;
        }
        if before.trim_end_matches('#').ends_with('r') {
            let close = format!("\"{}", "#".repeat(hashes));
            let Some(end) = rest.find(&close) else { break };
            found.push(rest[..end].to_owned());
            rest = &rest[end + close.len()..];
            continue;
        }
        let (text, length) = unescaped(rest);
        found.push(text);
        rest = &rest[length..];
    }
    found.retain(|text| !text.is_empty());
    found
}

/// A text up to its closing quote, and its length in the source with it.
fn unescaped(source: &str) -> (String, usize) {
    let mut text = String::new();
    let mut chars = source.char_indices();
    while let Some((at, c)) = chars.next() {
        match c {
            '"' => return (text, at + 1),
            '\\' => match chars.next() {
                Some((_, 'n')) => text.push('\n'),
                Some((_, 't')) => text.push('\t'),
                Some((_, 'r')) => text.push('\r'),
                Some((_, '0')) => text.push('\0'),
                Some((_, '\n')) => {
                    let rest = chars.as_str();
                    let blank = rest.len() - rest.trim_start().len();
                    chars = rest[blank..].char_indices();
                    // Positions start again: the length is that of what is left.
                    let (more, length) = unescaped(chars.as_str());
                    return (text + &more, source.len() - chars.as_str().len() + length);
                }
                Some((_, other)) => text.push(other),
                None => break,
            },
            other => text.push(other),
        }
    }
    (text, source.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_found_in_a_source() {
        let source = "f(\"a\\\"b\\n\", r#\"{\"x\": 1}\"#, '\"', \"c \\\n        d\"); g(\"e\")";
        assert_eq!(texts(source), ["a\"b\n", "{\"x\": 1}", "c d", "e"]);
    }

    #[test]
    fn every_target_has_first_inputs() {
        for target in crate::TARGETS {
            assert!(!of(target.name).is_empty(), "{}", target.name);
        }
    }
}
