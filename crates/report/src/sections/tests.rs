use super::*;
use crate::samples;
use crate::series::Times;
use crate::sheet::{Cell, Part, Plot, PlotKind, Section, Table, Tone};
use plimsoll_core::interval::Interval;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::{FailureSample, Network, Sink as _, SloResult};
use serde_json::json;

fn course(seconds: &[Interval]) -> Course {
    let mut course = Course::default();
    seconds.iter().for_each(|second| course.interval(second).unwrap());
    course
}

fn of(record: &RunRecord, seconds: &[Interval]) -> Sheet {
    sheet(record, &course(seconds), &[Forms::LOAD])
}

fn good() -> Sheet {
    of(&samples::good(), &samples::seconds()[1..])
}

fn first_table(section: &Section) -> &Table {
    let table = section.parts.iter().find_map(|part| match part {
        Part::Table(table) => Some(table),
        _ => None,
    });
    table.unwrap()
}

fn texts(sheet: &Sheet, id: &str) -> String {
    let section = sheet.section(id);
    let parts = section.map_or(&[][..], |section| &section.parts);
    let text = |part: &Part| match part {
        Part::Text(_, text) => Some(text.clone()),
        _ => None,
    };
    parts.iter().filter_map(text).collect::<Vec<_>>().join("\n")
}

#[test]
fn sections_stand_in_the_order_in_which_people_read_them() {
    let sheet = good();
    let ids: Vec<&str> = sheet.sections.iter().map(|section| section.id.as_str()).collect();
    assert_eq!(
        ids,
        [
            "asked",
            "decide",
            "throughput",
            "latency",
            "heat",
            "curve",
            "latency-rate",
            "classes",
            "phases",
            "failures",
            "slowest",
            "ledger",
            "health",
            "machine",
            "command"
        ]
    );
    assert_eq!(sheet.outcome, "Valid, 1 limit met, exit 0: these figures describe the target.");
    assert_eq!(sheet.title, "load: http://127.0.0.1:8080/search/");
}

#[test]
fn a_record_without_load_has_no_empty_sections() {
    let mut record = samples::good();
    let header = crate::assemble::RecordHeader {
        phases: Vec::new(),
        class_names: Vec::new(),
        ..samples::header()
    };
    record = RunRecord {
        job_results: record.job_results,
        ..crate::assemble::assemble(
            &header,
            &Interval::new(0),
            Vec::new(),
            crate::assemble::Ending::default(),
        )
    };
    let sheet = of(&record, &[]);
    let ids: Vec<&str> = sheet.sections.iter().map(|section| section.id.as_str()).collect();
    assert_eq!(ids, ["asked", "machine", "command"]);
}

#[test]
fn nine_rows_decide_and_what_was_missed_comes_first() {
    let mut record = samples::good();
    for (index, name) in ["p50", "p90", "p99", "errors", "rate", "mean", "max"].iter().enumerate() {
        let slo = SloResult {
            limit: "1".to_owned(),
            held: index != 5,
            measured: 2.5,
            unit: "ms".to_owned(),
            ..SloResult::default()
        };
        record.slo.insert((*name).to_owned(), slo);
    }
    let sheet = of(&record, &samples::seconds()[1..]);
    let table = first_table(sheet.section("decide").unwrap());
    assert!(table.rows.len() <= ROWS_MAX);
    let row: Vec<&str> = table.rows[0].cells.iter().map(Cell::shown).collect();
    assert_eq!(row, ["response mean", "2.50 ms", "1", "MISSED"]);
    assert_eq!(table.rows[0].tone, Tone::Bad);
    assert_eq!(first_table(sheet.section("limits").unwrap()).rows.len(), 8);
    assert!(sheet.section("decide").unwrap().note.contains("3 more limits"));
    // A verdict of the record is shown as it is, even if the figures seem to say otherwise.
    record.slo.get_mut("p95").unwrap().held = false;
    let again = of(&record, &[]);
    let rows = &first_table(again.section("limits").unwrap()).rows;
    assert_eq!(rows.iter().filter(|row| row.tone == Tone::Bad).count(), 2);
}

/// The table beside a plot has at most 40 rows, each of which is what its seconds are together.
#[test]
fn twins_are_exact_sums_of_the_seconds() {
    let seconds: Vec<Interval> = (0..130).map(|i| samples::second(i, 1, 40 + i % 17)).collect();
    let mut record = samples::record_of(&seconds, samples::ending());
    record.duration_s = 130.0;
    let sheet = of(&record, &seconds);
    for plot in sheet.plots() {
        assert!((1..=Plot::TWIN_ROWS_MAX).contains(&plot.twin.rows.len()), "{}", plot.id);
    }
    let number = |cell: &Cell| match cell {
        Cell::Number { value, .. } => *value,
        other => panic!("{other:?}"),
    };
    let twin = |id: &str| &sheet.plots().find(|plot| plot.id == id).unwrap().twin.rows;
    let together = 130usize.div_ceil(Plot::TWIN_ROWS_MAX);
    for (index, part) in seconds.chunks(together).enumerate() {
        let mut whole = Interval::new(2);
        part.iter().for_each(|second| whole.merge(second));
        let offered = whole.ledger.scheduled as f64 / whole.seconds();
        assert_eq!(number(&twin("throughput")[index].cells[2]), offered);
        let response = whole.all_classes().response;
        let shown: Vec<f64> = twin("latency")[index].cells[2..6].iter().map(number).collect();
        let exact = [0.5, 0.9, 0.99, 1.0].map(|q| response.quantile_ns(q) as f64 / 1e6);
        assert_eq!(shown, exact);
        let lag = [0.5, 0.99, 1.0].map(|q| whole.lag.quantile_ns(q) as f64 / 1e6);
        let shown: Vec<f64> = twin("lag")[index].cells[2..5].iter().map(number).collect();
        assert_eq!(shown, lag);
        let heat: f64 = twin("heat")[index].cells[2..].iter().map(number).sum();
        assert_eq!(heat as u64, response.count());
    }
    let by_rate: f64 = twin("latency-rate").iter().map(|row| number(&row.cells[2])).sum();
    assert_eq!(by_rate as u64, record.ledger.ok);
}

#[test]
fn columns_that_are_too_short_and_those_behind_the_end_have_no_rate() {
    let mut seconds = samples::seconds()[1..].to_vec();
    let mut tail = samples::second(4, 1, 3);
    tail.to_ns = tail.from_ns + 1_000_000;
    seconds.push(tail);
    let mut record = samples::good();
    record.duration_s = 3.5;
    let timeline = Timeline::new(&record, &course(&seconds).series);
    let rates: Vec<bool> = timeline.fine.iter().map(|seen| seen.per_s(1).is_some()).collect();
    // The second that begins after 3.5 s is the time in which replies were awaited.
    assert_eq!(rates, [true, true, true, false]);
    assert_eq!(Times::of(&timeline.fine[3].column.response), timeline.fine[3].response);
}

#[test]
fn a_good_run_has_no_finding() {
    assert_eq!(good().section("bottleneck"), None);
}

#[test]
fn findings_name_the_figures_that_they_follow_from() {
    // The target falls behind: in flight grows, and response times leave their floor.
    let seconds: Vec<Interval> = (0..20u64)
        .map(|i| {
            let mut second = samples::second(i, 1, 200);
            if i >= 10 {
                second = samples::second(i, 1, 0);
                for _ in 0..150 {
                    second.classes[0].record_ok(400_000_000 + i * 1_000_000, 5_000_000);
                }
                second.ledger.ok = 150;
                second.ledger.failed.timeout = 20;
                second.counters.ended_in_time = 170;
                second.ledger.scheduled = 200;
                second.ledger.sent = 200;
            }
            second.in_flight = (i * 3) as u32;
            second
        })
        .collect();
    let mut record = samples::record_of(&seconds, samples::ending());
    record.duration_s = 20.0;
    record.rate.offered_per_s = 200.0;
    record.rate.achieved_per_s = 185.0;
    record.latency_ms.response.mean = 10.0;
    record.verdict.kind = VerdictKind::Valid;
    record.scenario =
        json!({"load": {"model": "open", "rate_per_s": 200.0, "arrivals": "uniform"}});
    record.network = Some(Network { rtt_floor_median_us: 900, ..Network::default() });
    record.latency_ms.service.p50 = 1.0;
    record.counters.waited = 3_000;
    let text = texts(&of(&record, &seconds), "bottleneck");
    for part in [
        "The target fell behind the schedule: 200 requests/s came, 185 requests/s were answered, and up to 57 were in flight.",
        "From 10.0 s on, the 99th percentile of the response time was",
        "3,000 of 4,000 requests waited for a free connection",
        "of the requests failed. The first failures came between 10.0 s and 11.0 s",
        "The network takes 90 % of the median service time",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    record.verdict.kind = VerdictKind::GeneratorLimited;
    record.generator.busiest_thread = 0.97;
    let text = texts(&of(&record, &seconds), "bottleneck");
    assert!(text.contains("its busiest thread used 97 % of a core"), "{text}");
    assert!(!text.contains("fell behind"), "the generator's limit is not the target's\n{text}");
}

#[test]
fn a_class_that_takes_most_of_the_time_is_a_finding() {
    let mut record = samples::good();
    record.classes.get_mut("fuzzy").unwrap().latency_ms.service.mean = 500.0;
    let text = texts(&of(&record, &[]), "bottleneck");
    assert!(text.starts_with("The class fuzzy has 12 % of the requests and takes 9"), "{text}");
}

#[test]
fn few_samples_of_each_kind_are_kept_and_secrets_are_not() {
    let mut course = Course::default();
    for index in 0..100 {
        let sample = FailureSample {
            kind: if index % 2 == 0 { "status" } else { "timeout" }.to_owned(),
            reason: format!("reason {}", index % 10),
            request: "GET /?token=abc HTTP/1.1\r\nAuthorization: Bearer hunter2\r\n".to_owned(),
            reply: "{\"password\":\"hunter2\"}".to_owned(),
            ..FailureSample::default()
        };
        course.failure(&sample).unwrap();
    }
    assert_eq!(course.failures.len(), 12);
    let mut record = samples::failed();
    record.ledger.failed.timeout = 50;
    let sheet = sheet(&record, &course, &[]);
    let all = format!("{sheet:?}");
    assert!(all.contains("reason 8") && all.contains("(left out)"));
    assert!(!all.contains("hunter2") && !all.contains("token=abc"));
}

#[test]
fn a_folder_gives_the_course_that_the_live_run_gave() {
    let dir = tempfile::tempdir().unwrap();
    let folder =
        crate::folder::RunFolder::create(dir.path(), "load", 1_795_294_102_123_456).unwrap();
    let mut journal = folder.journal(&samples::header()).unwrap();
    let mut live = Course::default();
    for second in samples::seconds() {
        journal.interval(&second).unwrap();
        live.interval(&second).unwrap();
    }
    for index in 0..20 {
        let failure = FailureSample {
            kind: "reset".to_owned(),
            reason: format!("{}", index % 3),
            ..FailureSample::default()
        };
        journal.failure(&failure).unwrap();
        live.failure(&failure).unwrap();
    }
    assert_eq!(Course::of_folder(folder.path()).unwrap(), live);
}

#[test]
fn a_job_adds_and_replaces_sections() {
    let job = Forms {
        sheet: |sheet, record, series| {
            sheet.remove("latency-rate");
            let text = format!("{} columns of {}", series.columns().len(), record.job);
            let own = Section::new("own", "Own", "").with(Part::Text(Tone::Plain, text));
            sheet.put_after("decide", own);
            sheet.put(Section::new("command", "Elsewhere", ""));
        },
        ..Forms::LOAD
    };
    let sheet = sheet(&samples::good(), &course(&samples::seconds()[1..]), &[job]);
    assert_eq!(sheet.sections[2].id, "own");
    assert_eq!(texts(&sheet, "own"), "3 columns of load");
    assert_eq!(sheet.section("latency-rate"), None);
    assert_eq!(sheet.sections.last().unwrap().title, "Elsewhere");
}

#[test]
fn a_missed_limit_is_bad_even_if_the_verdict_is_valid() {
    assert_eq!(good().tone, Tone::Good);
    let mut record = samples::good();
    record.slo.get_mut("p95").unwrap().held = false;
    assert_eq!(of(&record, &[]).tone, Tone::Bad);
}

#[test]
fn the_servers_own_time_stands_beside_the_others() {
    let mut seconds = samples::seconds()[1..].to_vec();
    for second in &mut seconds {
        let server = second.classes[0].server.get_or_insert_default();
        (0..50).for_each(|i| server.times.record(600_000 + i * 1_000));
    }
    let record = samples::record_of(&seconds, samples::ending());
    let sheet = of(&record, &seconds);
    let summary = first_table(sheet.section("curve").unwrap());
    let server = summary.rows.iter().find(|row| row.cells[0].shown() == "server").unwrap();
    assert_eq!(server.cells[1].shown(), "150");
    let heads = |id: &str| -> Vec<String> {
        let plot = sheet.plots().find(|plot| plot.id == id).unwrap();
        plot.twin.columns.iter().map(|column| column.name.clone()).collect()
    };
    assert!(heads("latency").contains(&"server p99".to_owned()), "{:?}", heads("latency"));
    assert_eq!(heads("curve")[3], "server");
    let without = good();
    let latency = without.plots().find(|plot| plot.id == "latency").unwrap();
    assert!(!latency.twin.columns.iter().any(|column| column.name.contains("server")));
}

#[test]
fn a_damaged_histogram_leaves_its_kind_of_time_out_of_the_curve() {
    let mut record = samples::good();
    record.histograms.insert("fuzzy/response".to_owned(), "damaged".to_owned());
    let sheet = of(&record, &[]);
    let plot = sheet.plots().find(|plot| plot.id == "curve").unwrap();
    let PlotKind::Curve(lines) = &plot.kind else { panic!("{:?}", plot.kind) };
    let labels: Vec<&str> = lines.lines.iter().map(|line| line.label.as_str()).collect();
    assert_eq!(labels, ["service"], "a curve of the other class alone is not that of the run");
    let text = texts(&sheet, "curve");
    let said = "The curve has no response times: histograms.fuzzy/response: a stored histogram";
    assert!(text.starts_with(said), "{text}");
    record.histograms.insert("fuzzy/service".to_owned(), "damaged".to_owned());
    let sheet = of(&record, &[]);
    assert!(!sheet.plots().any(|plot| plot.id == "curve"));
    assert_eq!(texts(&sheet, "curve").lines().count(), 2, "both are reported");
    let table = first_table(sheet.section("curve").unwrap());
    assert_eq!(table.rows[0].cells[0].shown(), "response", "the record has these figures itself");
}

#[test]
fn traces_of_the_slowest_requests_are_links() {
    let mut record = samples::good();
    record.slowest[0].trace_id = Some("4bf92f3577b34da6a3ce929d0e0e4736".to_owned());
    record.scenario["trace_url"] = json!("https://tempo.example/trace/{trace_id}");
    let sheet = of(&record, &[]);
    let rows = &first_table(sheet.section("slowest").unwrap()).rows;
    let url = "https://tempo.example/trace/4bf92f3577b34da6a3ce929d0e0e4736".to_owned();
    assert!(matches!(rows[0].cells.last(), Some(Cell::Link { url: own, .. }) if *own == url));
    assert_eq!(rows[1].cells.last(), Some(&Cell::Unknown));
}

/// Lines of a machine that an agent watched are in a section with its name, and in no plot of the coordinator's machine.
#[test]
fn each_watched_machine_has_a_section_of_its_own() {
    use plimsoll_record::resources::{
        MachineSecond, ResourceLine, ResourcesResult, WatchedResult, WatchedSecond, WatcherResult,
    };
    let name = "db: mysqld".to_owned();
    let watcher = |agent: &str, file: Option<&str>| WatcherResult {
        agent: agent.to_owned(),
        host: format!("{agent}-host"),
        file: file.map(str::to_owned),
        watched: vec![WatchedResult { name: name.clone(), ..WatchedResult::default() }],
        ..WatcherResult::default()
    };
    let lost = WatcherResult {
        trouble: Some("it has been silent for 10 s".to_owned()),
        until_s: Some(3.0),
        ..watcher("cache", None)
    };
    let mut record = samples::good();
    record.job_results.put(ResourcesResult {
        watchers: vec![watcher("db", Some("resources-db.ndjson")), lost],
        ..ResourcesResult::default()
    });
    let mut course = course(&samples::seconds()[1..]);
    let line = ResourceLine {
        at_s: 1.0,
        span_s: 1.0,
        watched: vec![WatchedSecond {
            name: name.clone(),
            cpu_user_s: Some(0.5),
            cpu_system_s: Some(0.25),
            ..WatchedSecond::default()
        }],
        machine: MachineSecond { cores_busy: vec![Some(0.75)], ..MachineSecond::default() },
    };
    let mut resources = Resources::default();
    resources.push(line);
    course.watchers.insert("resources-db.ndjson".to_owned(), resources);
    let sheet = sheet(&record, &course, &[Forms::LOAD]);
    assert!(sheet.section("resources").is_none(), "the coordinator's machine was not watched");
    let db = sheet.section("resources-1").unwrap();
    assert_eq!(db.title, "Resources of db-host, watched by agent db");
    let plots: Vec<&Plot> = db
        .parts
        .iter()
        .filter_map(|part| match part {
            Part::Plot(plot) => Some(&**plot),
            _ => None,
        })
        .collect();
    let ids: Vec<&str> = plots.iter().map(|plot| plot.id.as_str()).collect();
    assert_eq!(ids, ["resources-1-cpu", "resources-1-cores"]);
    assert_eq!(first_table(db).rows[0].cells[0], Cell::text("db: mysqld"));
    let text = texts(&sheet, "resources-2");
    assert!(text.contains("its figures end at 3.0 s: it has been silent for 10 s"), "{text}");
}
