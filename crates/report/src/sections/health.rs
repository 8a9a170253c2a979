//! The generator's own health over time, so that a reader can tell its delays from the target's.

use super::over_time::time_measure;
use super::timeline::{Measure, Timeline, ms};
use crate::series::Times;
use crate::sheet::{Cell, Part, Section, Tone, YAxis};
use plimsoll_record::RunRecord;

/// Lag, connections, traffic and CPU of the generator.
pub fn section(record: &RunRecord, timeline: &Timeline) -> Option<Section> {
    let generator = &record.generator;
    if let Some(import) = record.job_results.import() {
        let text = format!(
            "Unknown: lag, CPU, connections and traffic of the generator over time. {} does not give them, so that it cannot be \
             seen whether the generator kept up.",
            import.tool
        );
        let section = Section::new("health", "Health of the generator", "");
        return Some(section.with(Part::Text(Tone::Plain, text)));
    }
    if timeline.is_empty() && generator.threads == 0 {
        return None;
    }
    let note = "Lag: delay of the generator itself, from the intended start, with a free connection, to the sending. If lag is \
                large, the times above are partly plimsoll's.";
    let mut section = Section::new("health", "Health of the generator", note);
    if !timeline.is_empty() {
        section.parts.extend([lag(timeline), connections(timeline), traffic(timeline)]);
    }
    if generator.threads > 0 {
        section.parts.push(Part::Facts(facts(record)));
    }
    Some(section)
}

fn lag(timeline: &Timeline) -> Part {
    let longest = |name, label, tone, value| Measure {
        name,
        label,
        tone,
        axis: 0,
        below: None,
        value,
        cell: Cell::ms,
    };
    let measures = [
        time_measure!("lag_p50", "lag p50", "p50", None, lag.p50_ns),
        time_measure!("lag_p99", "lag p99", "lag", Some("lag p50"), lag.p99_ns),
        time_measure!("lag_max", "lag max", "max", None, lag.max_ns),
        longest("starved_max", "waited for a processor, max", "cpu", |seen| {
            (seen.column.starved_max_ns > 0).then(|| ms(seen.column.starved_max_ns))
        }),
        longest("receive_max", "reply waited to be read, max", "network", |seen| {
            (seen.column.receive_max_ns > 0).then(|| ms(seen.column.receive_max_ns))
        }),
    ];
    let plot = timeline.plot("lag", "Delays of the generator", vec![YAxis::log("ms")], &measures);
    Part::Plot(Box::new(plot))
}

fn connections(timeline: &Timeline) -> Part {
    let measures = [
        Measure {
            name: "in_flight",
            label: "in flight",
            tone: "neutral",
            axis: 0,
            below: None,
            value: |seen| Some(f64::from(seen.column.in_flight)),
            cell: |value| Cell::count(value as u64),
        },
        Measure {
            name: "connects",
            label: "connections opened/s",
            tone: "network",
            axis: 1,
            below: None,
            value: |seen| seen.per_s(seen.column.connects),
            cell: Cell::per_s,
        },
        Measure {
            name: "waited",
            label: "waited for a connection/s",
            tone: "warn",
            axis: 1,
            below: None,
            value: |seen| seen.per_s(seen.column.waited),
            cell: Cell::per_s,
        },
    ];
    let axes = vec![YAxis::linear(""), YAxis::linear("/s")];
    let plot = timeline.plot("connections", "Requests in flight, and connections", axes, &measures);
    Part::Plot(Box::new(plot))
}

fn traffic(timeline: &Timeline) -> Part {
    let rate = |value: f64| Cell::number(value, format!("{}/s", crate::number::bytes(value)));
    let measures = [
        Measure {
            name: "bytes_sent",
            label: "sent",
            tone: "series-1",
            axis: 0,
            below: None,
            value: |seen| seen.per_s(seen.column.bytes_sent),
            cell: rate,
        },
        Measure {
            name: "bytes_received",
            label: "received",
            tone: "series-2",
            axis: 0,
            below: None,
            value: |seen| seen.per_s(seen.column.bytes_received),
            cell: rate,
        },
    ];
    let axes = vec![YAxis::linear("B/s")];
    Part::Plot(Box::new(timeline.plot("traffic", "Bytes per second on the wire", axes, &measures)))
}

fn facts(record: &RunRecord) -> Vec<(String, Cell)> {
    let generator = &record.generator;
    let at = |field: &'static str| ["generator", field];
    let health = |field: &'static str| ["generator", "health", field];
    let cpu = generator.cpu_us_per_request;
    let mut facts = vec![
        (
            "CPU time per request",
            Cell::number(cpu, format!("{} us", crate::number::significant(cpu)))
                .from(&at("cpu_us_per_request")),
        ),
        (
            "busiest thread, share of a core",
            Cell::share(generator.busiest_thread).from(&at("busiest_thread")),
        ),
        ("threads", Cell::count(generator.threads.into()).from(&at("threads"))),
        ("most memory", Cell::bytes(generator.rss_max_bytes as f64).from(&at("rss_max_bytes"))),
    ];
    if !generator.wait.is_empty() {
        facts.push(("wait mode", Cell::text(generator.wait.clone())));
    }
    let own = &generator.health;
    let shares = [
        ("time waiting for a processor", own.starved, "starved"),
        ("time held back by a CPU quota", own.throttled, "throttled"),
        ("time taken by the hypervisor", own.stolen, "stolen"),
        ("time stopped by a signal", own.stopped, "stopped"),
    ];
    for (name, share, field) in shares {
        if share > 0.0 {
            facts.push((name, Cell::share(share).from(&health(field))));
        }
    }
    if generator.disturbed > 0 {
        facts.push((
            "requests sent in the aftermath of a stall",
            Cell::count(generator.disturbed).from(&at("disturbed")),
        ));
    }
    if generator.connection_wait_ms.count > 0 {
        let wait = &generator.connection_wait_ms;
        let place = |field: &'static str| ["generator", "connection_wait_ms", field];
        facts.push((
            "requests that waited for a connection",
            Cell::count(wait.count).from(&place("count")),
        ));
        facts.push(("longest wait for a connection", Cell::ms(wait.max).from(&place("max"))));
    }
    facts.into_iter().map(|(name, cell)| (name.to_owned(), cell)).collect()
}
