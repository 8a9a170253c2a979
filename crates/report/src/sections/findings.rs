//! Findings about the bottleneck, in words. Each sentence names the figures that it follows from; where the data
//! say nothing, there is no sentence.

use super::timeline::{Seen, Timeline, ms, seconds};
use crate::number::{count, percent, significant, time};
use crate::rate;
use crate::sheet::{Part, Section, Tone};
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;

/// More than this share of requests that waited for a connection is a finding.
const WAITED_SHARE: f64 = 0.05;
/// Times above their floor by this factor have left it.
const LEFT_FLOOR: f64 = 4.0;
/// In this many columns of a table one after the other.
const LEFT_FLOOR_COLUMNS: usize = 3;
/// Samples of a column from which its 99th percentile can be compared.
const P99_SAMPLES: u64 = 100;
/// Share of a core, and of the time without a processor, that is a finding about the generator.
const BUSY_SHARE: f64 = 0.5;
const WITHHELD_SHARE: f64 = 0.01;
/// Share of failed requests from which their start is a finding.
const FAILED_SHARE: f64 = 0.01;
/// Share of the service time that the network takes in a finding.
const NETWORK_SHARE: f64 = 0.5;
/// Share of the time and of the requests of a class that is a finding.
const HEAVY_TIME: f64 = 0.6;
const HEAVY_REQUESTS: f64 = 0.25;

/// The findings, if there are any.
pub fn section(record: &RunRecord, timeline: &Timeline) -> Option<Section> {
    let all = [
        generator(record),
        at_limit(record),
        fell_behind(record, timeline),
        left_floor(record, timeline),
        waited(record),
        first_failures(record, timeline),
        network(record),
        heavy_class(record),
    ];
    let parts: Vec<Part> =
        all.into_iter().flatten().map(|text| Part::Text(Tone::Plain, text)).collect();
    if parts.is_empty() {
        return None;
    }
    let mut section = Section::new("bottleneck", "Where is the bottleneck?", "");
    section.parts = parts;
    Some(section)
}

fn generator(record: &RunRecord) -> Option<String> {
    let generator = &record.generator;
    match record.verdict.kind {
        VerdictKind::GeneratorLimited => {
            let mut text =
                "plimsoll or its machine limited the result, not the target: ".to_owned();
            if generator.busiest_thread >= BUSY_SHARE {
                text += &format!(
                    "its busiest thread used {} of a core, ",
                    percent(generator.busiest_thread)
                );
            }
            let withheld = generator.health.withheld();
            if withheld >= WITHHELD_SHARE {
                text += &format!("it had no processor for {} of the time, ", percent(withheld));
            }
            Some(
                text + &format!(
                    "and 1 % of the requests were sent at least {} late.",
                    time(generator.lag_ms.p99)
                ),
            )
        }
        VerdictKind::ConnectionLimited => Some(format!(
            "The number of connections limited the result, not the target: {} requests waited for a free one.",
            count(record.counters.waited)
        )),
        _ => None,
    }
}

/// Resources that the target, or the machine that it shares with the generator, used up.
fn at_limit(record: &RunRecord) -> Option<String> {
    let resources = record.job_results.resources()?;
    let of = |name: &str, limits: &[String]| {
        (!limits.is_empty()).then(|| format!("{name} used up: {}.", limits.join(", ")))
    };
    let targets = resources.targets().filter_map(|one| of(&one.name, &one.at_limit));
    let machine =
        of("The machine that the target shares with the generator", &resources.machine.at_limit);
    // Of a watched machine, only what was named is known to belong to the target.
    let watched = resources.watchers.iter().flat_map(|watcher| &watcher.watched);
    let watched = watched.filter_map(|one| of(&one.name, &one.at_limit));
    let targets = targets.chain(watched);
    let all: Vec<String> = targets.chain(machine.filter(|_| record.target.same_host)).collect();
    (!all.is_empty()).then(|| all.join(" "))
}

/// Requests that arrive at their own time, and more of them than the target answers.
fn fell_behind(record: &RunRecord, timeline: &Timeline) -> Option<String> {
    let rates = &record.rate;
    let most = timeline.fine.iter().map(|seen| seen.column.in_flight).max()?;
    rate::fell_behind(record).then(|| {
        format!(
            "The target fell behind the schedule: {} requests/s came, {} requests/s were answered, and up to {} were in flight. \
             Response times include the wait.",
            significant(rates.offered_per_s),
            significant(rates.achieved_per_s),
            count(most.into())
        )
    })
}

/// The first time at which the 99th percentile leaves its floor for good measure.
fn left_floor(record: &RunRecord, timeline: &Timeline) -> Option<String> {
    let only_service = timeline.has_only_service();
    let known = |seen: &&Seen| {
        let times = if only_service { &seen.column.service } else { &seen.column.response };
        times.count() >= P99_SAMPLES
    };
    let columns: Vec<(&Seen, u64)> = timeline
        .coarse
        .iter()
        .filter(known)
        .filter_map(|seen| Some((seen, seen.times()?.p99_ns)))
        .collect();
    let floor_ns = columns.iter().map(|(_, p99_ns)| *p99_ns).min()?;
    let is_high = |p99_ns: u64| p99_ns as f64 >= floor_ns as f64 * LEFT_FLOOR;
    let stays = |part: &[(&Seen, u64)]| part.iter().all(|(_, p99_ns)| is_high(*p99_ns));
    let first = columns.windows(LEFT_FLOOR_COLUMNS).find(|part| stays(part))?;
    let (seen, p99_ns) = *first.first()?;
    let rate = seen.per_s(seen.column.ended)?;
    let in_flight = match record.job_results.import() {
        Some(_) => String::new(),
        None => format!(", with {} in flight", count(seen.column.in_flight.into())),
    };
    Some(format!(
        "From {} s on, the 99th percentile of the {} time was {}, over {LEFT_FLOOR} times its floor of {}. The target \
         answered {} requests/s then{}.",
        significant(seconds(seen.column.from_ns)),
        if only_service { "service" } else { "response" },
        time(ms(p99_ns)),
        time(ms(floor_ns)),
        significant(rate),
        in_flight
    ))
}

fn waited(record: &RunRecord) -> Option<String> {
    let waited = record.counters.waited;
    let share = waited as f64 / record.ledger.scheduled.max(1) as f64;
    let wait = &record.generator.connection_wait_ms;
    let is_found = share >= WAITED_SHARE && record.verdict.kind != VerdictKind::ConnectionLimited;
    is_found.then(|| {
        let longest = if wait.count > 0 { format!(", up to {}", time(wait.max)) } else { String::new() };
        format!(
            "{} of {} requests waited for a free connection{longest}: all connections were busy with the target.",
            count(waited),
            count(record.ledger.scheduled)
        )
    })
}

fn first_failures(record: &RunRecord, timeline: &Timeline) -> Option<String> {
    let failed = record.ledger.failed.total();
    let share = failed as f64 / record.ledger.finished().max(1) as f64;
    if share < FAILED_SHARE {
        return None;
    }
    let first = timeline.fine.iter().find(|seen| seen.column.failed > 0)?;
    let load = match record.job_results.import() {
        Some(_) => String::new(),
        None => format!(
            ", when {} requests/s were due and {} were in flight",
            significant(first.per_s(first.column.scheduled)?),
            count(first.column.in_flight.into())
        ),
    };
    Some(format!(
        "{} of the requests failed. The first failures came between {} s and {} s{load}.",
        percent(share),
        significant(seconds(first.column.from_ns)),
        significant(seconds(first.column.to_ns)),
    ))
}

fn network(record: &RunRecord) -> Option<String> {
    let network = record.network.as_ref()?;
    let service = record.latency_ms.service.p50;
    let floor_ms = f64::from(network.rtt_floor_median_us) / 1e3;
    let is_found = service > 0.0 && floor_ms >= service * NETWORK_SHARE && floor_ms > 0.0;
    is_found.then(|| {
        format!(
            "The network takes {} of the median service time: its round trip is {}, and the median service time {}.",
            percent((floor_ms / service).min(1.0)),
            time(floor_ms),
            time(service)
        )
    })
}

fn heavy_class(record: &RunRecord) -> Option<String> {
    let is_known = |field: &str| record.is_known(&format!("classes.*.{field}"));
    let needed = ["sent", "latency_ms.service.mean", "latency_ms.service.count"];
    if record.classes.len() < 2 || !needed.into_iter().all(is_known) {
        return None;
    }
    let spent = |class: &plimsoll_record::ClassRecord| {
        class.latency_ms.service.mean * class.latency_ms.service.count as f64
    };
    let whole: f64 = record.classes.values().map(spent).sum();
    let sent: u64 = record.classes.values().map(|class| class.sent).sum();
    let (name, class) = record.classes.iter().max_by(|a, b| spent(a.1).total_cmp(&spent(b.1)))?;
    let (time, requests) = (spent(class) / whole, class.sent as f64 / sent.max(1) as f64);
    (whole > 0.0 && time >= HEAVY_TIME && requests <= HEAVY_REQUESTS).then(|| {
        format!(
            "The class {name} has {} of the requests and takes {} of the service time.",
            percent(requests),
            percent(time)
        )
    })
}
