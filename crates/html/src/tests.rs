use super::*;
use flate2::read::GzDecoder;
use plimsoll_core::clock::now_ns;
use plimsoll_core::interval::Interval;
use plimsoll_core::rng::splitmix64;
use plimsoll_record::fleet::{AgentFigures, AgentResult, FleetResult};
use plimsoll_record::{FailureSample, RunRecord, Sink as _, SloResult};
use plimsoll_report::forms::Forms;
use plimsoll_report::sections::{CLASSES_MAX, Course, sheet};
use plimsoll_report::{json, samples};
use serde_json::Value;
use std::io::Read as _;

/// The course of a run with these seconds.
fn course(seconds: &[Interval]) -> Course {
    let mut course = Course::default();
    seconds.iter().for_each(|second| course.interval(second).unwrap());
    course
}

fn page(record: &RunRecord, course: &Course) -> String {
    render(&sheet(record, course, &[Forms::LOAD]))
}

/// The page of a good run.
fn good() -> String {
    page(&samples::good(), &course(&samples::seconds()[1..]))
}

/// The values of an attribute in a page.
fn values<'a>(page: &'a str, attribute: &str) -> Vec<&'a str> {
    let begin = format!(" {attribute}=\"");
    page.split(&begin).skip(1).filter_map(|rest| rest.split('"').next()).collect()
}

/// The data block, unpacked.
fn data(page: &str) -> Value {
    let block = page.split("id=\"data\">").nth(1).unwrap().split('<').next().unwrap();
    let mut text = String::new();
    let bytes = STANDARD.decode(block).unwrap();
    GzDecoder::new(bytes.as_slice()).read_to_string(&mut text).unwrap();
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn unescaped(text: &str) -> String {
    let text = text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"");
    text.replace("&#39;", "'").replace("&amp;", "&")
}

/// Each number that says where it comes from is the number that the record has there. Returns how many there are.
#[track_caller]
fn expect_equal(page: &str, record: &RunRecord) -> usize {
    let record: Value = serde_json::from_str(&json::pretty(record)).unwrap();
    let mut number = 0;
    for cell in page.split(" data-v=\"").skip(1) {
        let (value, rest) = cell.split_once('"').unwrap();
        let shown: f64 = value.parse().unwrap_or_else(|_| panic!("{value}"));
        let Some(place) = rest.strip_prefix(" data-from=\"") else { continue };
        let place = unescaped(place.split('"').next().unwrap());
        let recorded = record.pointer(&place).unwrap_or_else(|| panic!("{place}"));
        assert_eq!(recorded.as_f64(), Some(shown), "{place}");
        number += 1;
    }
    number
}

#[test]
fn every_number_of_the_tables_is_that_of_the_record() {
    let mut odd = samples::good();
    odd.classes.insert("a/b~c \"<&>'".to_owned(), odd.classes["fuzzy"].clone());
    for index in 0..12 {
        let slo = SloResult {
            limit: "1ms".to_owned(),
            measured: 1.0 / f64::from(index + 3),
            unit: "ms".to_owned(),
            ..SloResult::default()
        };
        odd.slo.insert(format!("p{index}{{class=a/b}}"), slo);
    }
    let course = course(&samples::seconds()[1..]);
    for (record, least) in
        [(samples::good(), 95), (odd, 110), (samples::failed(), 20), (samples::followed(), 95)]
    {
        let number = expect_equal(&page(&record, &course), &record);
        assert!(number >= least, "{number} numbers of {}", record.job);
    }
}

#[test]
fn the_same_record_gives_the_same_bytes() {
    assert_eq!(good(), good());
    let other = page(&samples::failed(), &course(&samples::seconds()[1..]));
    assert_ne!(good(), other);
}

#[test]
fn the_policy_has_the_hash_of_the_only_script() {
    let page = good();
    assert_eq!(page.matches("<script").count(), 2, "the data block and the script");
    assert_eq!(page.matches("</script>").count(), 2);
    let script = page.rsplit_once("\n<script>").unwrap().1;
    let script = script.split("</script>").next().unwrap();
    let hash = STANDARD.encode(digest(&SHA256, script.as_bytes()));
    assert!(page.contains(&format!("script-src 'sha256-{hash}'")));
    // Neither styles nor scripts stand in the markup itself, and nothing of it leaves the file.
    let (head, rest) = page.split_once("<style>").unwrap();
    let markup =
        head.to_owned() + rest.split_once("</style>").unwrap().1.split("<script").next().unwrap();
    for word in [" style=", " onclick=", " onload=", "https://", "src=", "@import", "url("] {
        assert!(!markup.contains(word), "{word}");
    }
}

#[test]
fn three_pictures_and_all_tables_stand_in_the_markup() {
    let page = good();
    let pictures: Vec<&str> = page.split("<svg").skip(1).collect();
    assert!(pictures.len() >= 3);
    for id in ["throughput", "latency", "curve"] {
        let figure = page.split(&format!("id=\"plot-{id}\"")).nth(1).unwrap();
        let figure = figure.split("</figure>").next().unwrap();
        assert!(figure.contains("<svg") && figure.contains("<path") && figure.contains("<table"));
    }
    let figures = page.matches("<figure class=\"plot\"").count();
    assert_eq!(page.matches("<details class=\"twin\">").count(), figures);
    assert!(figures >= 8, "{figures}");
}

#[test]
fn code_and_style_are_at_most_100_kilobytes() {
    let bytes = assets::style().len() + assets::script().len();
    eprintln!("code and style: {bytes} bytes");
    assert!(bytes <= 100_000, "{bytes} bytes");
    assert!(!assets::script().contains("</script") && !assets::style().contains("</style"));
}

/// A run of a second has one column, which the pictures show as a dot.
#[test]
fn a_run_of_a_second_has_data() {
    let second = &samples::seconds()[1..2];
    let mut record = samples::record_of(second, samples::ending());
    record.duration_s = 1.0;
    let page = page(&record, &course(second));
    let data = data(&page);
    assert_eq!(data["arrays"]["t"]["d"].as_array().unwrap().len(), 1);
    assert!(page.contains("<circle") && page.contains("data-from=\"/latency_ms/response/p99\""));
    for plot in data["plots"].as_array().unwrap() {
        let cells = plot["cells"].as_array().map_or(1, Vec::len);
        assert!(cells > 0, "{plot}");
    }
}

#[test]
fn the_data_block_has_the_columns() {
    let course = course(&samples::seconds()[1..]);
    let data = data(&page(&samples::good(), &course));
    let columns = course.series.columns();
    let array = |name: &str| -> Vec<f64> {
        let array = &data["arrays"][name];
        let mut sum = 0;
        let deltas = array["d"].as_array().unwrap();
        let scale = array["s"].as_f64().unwrap();
        let at = |delta: &Value| {
            sum += delta.as_i64().unwrap();
            sum as f64 * scale
        };
        deltas.iter().map(at).collect()
    };
    assert_eq!(array("t"), [1.0, 2.0, 3.0]);
    assert_eq!(array("offered"), [100.0; 3]);
    for (shown, column) in array("p99").iter().zip(columns) {
        let exact = column.response.quantiles_ns(&[0.99])[0] as f64 / 1e6;
        assert!((shown - exact).abs() <= exact * 5e-4, "{shown} {exact}");
    }
    // All cells of the heat map together are all requests.
    let heat = data["plots"].as_array().unwrap().iter().find(|plot| plot["id"] == "heat").unwrap();
    let counts = heat["cells"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|run| run.as_array().unwrap().iter().skip(2).filter_map(Value::as_u64));
    assert_eq!(counts.sum::<u64>(), 300);
    let edges = heat["y"]["edges"].as_array().unwrap().len();
    assert!((20..=121).contains(&edges), "{edges}");
}

/// Text that tries to be markup, to hide, or to be endless.
const HOSTILE: &str = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"' --> ]]>\
                       \0\u{1b}[2J\u{202e}\u{2066}\u{feff}&amp;{{x}}${x}\n|`";

#[test]
fn hostile_text_neither_runs_nor_hides() {
    let long = format!("{HOSTILE}{}", "x<".repeat(5_000_000));
    let mut record = samples::good();
    let class = record.classes["fuzzy"].clone();
    record.classes = [(HOSTILE.to_owned(), class.clone()), (long.clone(), class)].into();
    record.job = HOSTILE.to_owned();
    record.name.clone_from(&long);
    record.labels.insert(HOSTILE.to_owned(), long.clone());
    record.target.url = format!("http://{long}");
    record.warnings = vec![long.clone()];
    record.verdict.reasons = vec![HOSTILE.to_owned()];
    record.command = vec![HOSTILE.to_owned()];
    record.phases[0].name = HOSTILE.to_owned();
    record.phases[1].name.clone_from(&long);
    record.phases.push(record.phases[1].clone());
    for slow in &mut record.slowest {
        slow.request.clone_from(&long);
        slow.class = HOSTILE.to_owned();
    }
    record.slo.insert(HOSTILE.to_owned(), record.slo["p95"].clone());
    let mut course = course(&samples::seconds()[1..]);
    let failure = FailureSample {
        kind: HOSTILE.to_owned(),
        class: HOSTILE.to_owned(),
        reason: long.clone(),
        request: HOSTILE.to_owned(),
        reply: long,
        ..FailureSample::default()
    };
    course.failure(&failure).unwrap();
    let page = page(&record, &course);
    assert!(page.len() < 400_000, "{} bytes", page.len());
    assert_eq!(page.matches("<script").count(), 2);
    assert!(!page.contains("<img"));
    for c in ['\0', '\u{1b}', '\u{202e}', '\u{2066}'] {
        assert!(!page.contains(c), "{c:?}");
    }
    assert!(page.contains("\\u{202e}") && page.contains("&lt;/script&gt;"));
    assert!(values(&page, "id").iter().all(|id| !id.contains(' ')));
    // The names in the plots as well.
    let data = data(&page).to_string();
    assert!(data.contains("\\\\u{202e}") && !data.contains('\u{202e}'), "visible there too");
}

/// Whatever a record says that the address of its traces is.
#[test]
fn the_slowest_requests_link_to_traces_and_to_nothing_else() {
    let mut record = samples::good();
    let id = "4bf92f3577b34da6a3ce929d0e0e4736";
    record.slowest[0].trace_id = Some(id.to_owned());
    let mut links = |template: &str| {
        record.scenario["trace_url"] = serde_json::json!(template);
        let page = page(&record, &course(&samples::seconds()[1..]));
        let slowest = page.split("<section id=\"slowest\">").nth(1).unwrap();
        let slowest = slowest.split("</section>").next().unwrap().to_owned();
        assert!(slowest.contains(id), "the id at least: {slowest}");
        assert_eq!(page.matches("<script").count(), 2);
        let links: Vec<&str> = slowest.split("<a ").skip(1).collect();
        links.iter().map(|link| link.split('>').next().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(
        links("https://tempo.example/trace?id={trace_id}&org=1"),
        [format!(
            "href=\"https://tempo.example/trace?id={id}&amp;org=1\" rel=\"noreferrer noopener\""
        )]
    );
    for hostile in [
        "javascript:alert('{trace_id}')",
        "https://x/\" onclick=\"alert(1)\" x=\"{trace_id}",
        "https://x/</script><script>alert(1)</script>{trace_id}",
        "\u{1}javascript:alert(1)//http://{trace_id}",
    ] {
        assert_eq!(links(hostile), Vec::<String>::new(), "{hostile:?}");
    }
}

#[test]
fn twenty_five_thousand_classes_are_two_hundred_rows() {
    let mut record = samples::good();
    let class = record.classes["fuzzy"].clone();
    for index in 0..25_000u64 {
        let mut class = class.clone();
        class.latency_ms.service.mean = index as f64;
        record.classes.insert(format!("class {index}"), class);
    }
    let page = page(&record, &course(&samples::seconds()[1..]));
    assert!(page.len() < 400_000, "{} bytes", page.len());
    let section = page.split("<section id=\"classes\">").nth(1).unwrap();
    let section = section.split("</section>").next().unwrap();
    assert_eq!(section.matches("<tr").count(), 1 + CLASSES_MAX + 1);
    assert!(section.contains("<td>class 24999</td>") && section.contains("24,802 other classes"));
    let sent: f64 = section
        .split("<tr")
        .skip(2)
        .map(|row| {
            let cell = row.split("data-v=\"").nth(1).unwrap();
            cell.split('"').next().unwrap().parse::<f64>().unwrap()
        })
        .sum();
    assert_eq!(sent as u64, record.classes.values().map(|class| class.sent).sum::<u64>());
}

/// A second of a busy run: times with a tail, some failures, a rate that varies.
fn busy(index: u64) -> Interval {
    let mut interval = Interval::new(2);
    interval.from_ns = index * 1_000_000_000;
    interval.to_ns = interval.from_ns + 1_000_000_000 + splitmix64(index) % 3_000_000;
    let requests = 900 + splitmix64(index + 7) % 300;
    for i in 0..requests {
        let dice = splitmix64(index * 10_000 + i);
        let tail = 1.0 / (1.0 - (dice % 1_000_000) as f64 / 1_000_001.0);
        let service_ns = (2_000_000.0 * tail.powf(0.6)) as u64 + splitmix64(dice) % 900_000;
        let part = &mut interval.classes[(dice % 2) as usize];
        part.record_ok(service_ns + splitmix64(dice + 1) % 400_000, service_ns);
        part.ledger.ok += 1;
        part.ledger.sent += 1;
        interval.lag.record(5_000 + splitmix64(dice + 2) % 80_000);
    }
    let failed = splitmix64(index + 3) % 4;
    (0..failed).for_each(|i| interval.classes[0].record_failed(5_000_000_000 + i));
    interval.classes[0].ledger.sent += failed;
    interval.ledger.failed.timeout = failed;
    interval.classes[0].ledger.failed.timeout = failed;
    interval.ledger.ok = requests;
    interval.ledger.sent = requests + failed;
    interval.ledger.scheduled = requests + failed;
    interval.in_flight = (splitmix64(index + 4) % 40) as u32;
    interval.counters.ended_in_time = requests + failed;
    interval.counters.ok_in_time = requests;
    interval.counters.bytes_sent = requests * 120;
    interval.counters.bytes_received = requests * 4_096 + splitmix64(index) % 9_000;
    interval
}

/// Two hours at a thousand requests a second.
#[test]
fn two_hours_at_one_second_are_at_most_1_5_megabytes() {
    let mut course = Course::default();
    let mut all = Vec::new();
    // Every second is another one; a run of 400 of them is repeated, because making them takes longer than the page.
    let seconds: Vec<Interval> = (0..400).map(busy).collect();
    for index in 0..7_200u64 {
        let mut second = seconds[(splitmix64(index) % 400) as usize].clone();
        let length_ns = second.to_ns - second.from_ns;
        second.from_ns = index * 1_000_000_000;
        second.to_ns = second.from_ns + length_ns;
        course.interval(&second).unwrap();
        all.push(second.ledger.scheduled);
    }
    assert_eq!(course.series.columns().len(), 7_200);
    let record = samples::good();
    let started = now_ns();
    let page = page(&record, &course);
    eprintln!(
        "2 h: {} bytes, {:.2} s in this build",
        page.len(),
        (now_ns() - started) as f64 / 1e9
    );
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
    let data = data(&page);
    assert_eq!(data["arrays"]["offered"]["d"].as_array().unwrap().len(), 7_200);
    let twin = page.split("id=\"plot-throughput\"").nth(1).unwrap();
    let twin = twin.split("</figure>").next().unwrap();
    assert_eq!(twin.matches("<tr").count(), 41);
}

/// Every agent is another one, some were lost, and each has a line of its own in the reasons.
#[test]
fn a_run_by_a_thousand_agents_and_two_hours_fit_into_1_5_megabytes_together() {
    let agent = |number: u32| AgentResult {
        name: format!("agent-{number}.rack-{}.example", number % 40),
        host: format!("host-{number}"),
        part: format!("{}/1000", number + 1),
        figures: Some(AgentFigures {
            sent: splitmix64(number.into()) % 1_000_000,
            p95_ms: (splitmix64(number.into()) % 100_000) as f64 / 997.0,
            ..AgentFigures::default()
        }),
        trouble: (number % 100 == 7).then(|| "it has been silent for 10 s".to_owned()),
        ..AgentResult::default()
    };
    let agents: Vec<AgentResult> = (0..1000).map(agent).collect();
    let lost = agents.iter().filter(|agent| agent.trouble.is_some());
    let troubles = lost.map(|agent| format!("agent {}: it has been silent", agent.name)).collect();
    let mut record = samples::good();
    record.job_results.put(FleetResult { agents, troubles, ..FleetResult::default() });
    let mut course = Course::default();
    let seconds: Vec<Interval> = (0..40).map(busy).collect();
    for index in 0..7_200u64 {
        let mut second = seconds[(splitmix64(index) % 40) as usize].clone();
        (second.from_ns, second.to_ns) = (index * 1_000_000_000, (index + 1) * 1_000_000_000);
        course.interval(&second).unwrap();
    }
    let page = page(&record, &course);
    assert!(page.len() <= 1_500_000, "{} bytes", page.len());
    assert!(page.contains("agent-7.rack-7.example: it has been silent"));
    assert!(page.contains("agent-150.rack-30.example"), "the first rows are shown");
}
