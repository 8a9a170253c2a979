//! Resources of the target, the generator and the machine over time, beside the generator's health.

use crate::number::{bytes, count, significant};
use crate::sheet::{Cell, Line, Lines, Part, Plot, PlotKind, Section, Table, Tone, Values, YAxis};
use plimsoll_record::RunRecord;
use plimsoll_record::resources::{
    GENERATOR, Level, ResourceLine, WatchedResult, WatchedSecond, WatcherResult,
};
use std::collections::BTreeMap;

/// Most lines that are kept: beyond them, neighbours are merged. Even, so that one more is odd.
const LINES_MAX: usize = 8_192;
/// Most watched things with lines of their own.
const WATCHED_MAX: usize = 6;
/// Colours of the watched things.
const TONES: [&str; 8] = [
    "series-1", "series-2", "series-3", "series-4", "series-5", "series-6", "series-7", "series-8",
];

/// The seconds of a run's resources, in bounded memory: neighbours are merged two by two when there are too many.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Resources {
    lines: Vec<ResourceLine>,
    /// Lines of the file that make one of `lines`.
    span: usize,
    /// Lines that the last one has.
    last: usize,
}

impl Resources {
    /// Adds the next line.
    pub fn push(&mut self, line: ResourceLine) {
        self.span = self.span.max(1);
        match self.lines.last_mut() {
            Some(last) if self.last < self.span => {
                *last = together(last, &line);
                self.last += 1;
            }
            _ => {
                self.lines.push(line);
                self.last = 1;
            }
        }
        if self.lines.len() > LINES_MAX {
            let pair = |two: &[ResourceLine]| match two {
                [one, other] => together(one, other),
                rest => rest[0].clone(),
            };
            self.lines = self.lines.chunks(2).map(pair).collect();
            // Their number was odd, so that the last line is still one by itself.
            self.span *= 2;
        }
    }

    fn is_empty(&self) -> bool {
        self.lines.is_empty()
    }
}

/// Two neighbouring lines as one: sums are added, levels are those at the end.
fn together(one: &ResourceLine, next: &ResourceLine) -> ResourceLine {
    let mut sum = next.clone();
    sum.span_s += one.span_s;
    for (mine, before) in sum.watched.iter_mut().zip(&one.watched) {
        add_watched(mine, before);
    }
    let (mine, before) = (&mut sum.machine, &one.machine);
    let share = one.span_s / sum.span_s.max(1e-9);
    for (mine, before) in mine.cores_busy.iter_mut().zip(&before.cores_busy) {
        *mine = mine.zip(*before).map(|(mine, before)| mine + (before - mine) * share);
    }
    mine.disk_busy = mine.disk_busy.zip(before.disk_busy).map(|(a, b)| a + (b - a) * share);
    for (mine, before) in [
        (&mut mine.network_received_bytes, before.network_received_bytes),
        (&mut mine.network_sent_bytes, before.network_sent_bytes),
        (&mut mine.loopback_bytes, before.loopback_bytes),
        (&mut mine.disk_read_bytes, before.disk_read_bytes),
        (&mut mine.disk_written_bytes, before.disk_written_bytes),
    ] {
        *mine = mine.zip(before).map(|(mine, before)| mine + before);
    }
    sum
}

fn add_watched(mine: &mut WatchedSecond, before: &WatchedSecond) {
    for (mine, before) in [
        (&mut mine.cpu_user_s, before.cpu_user_s),
        (&mut mine.cpu_system_s, before.cpu_system_s),
        (&mut mine.throttled_s, before.throttled_s),
    ] {
        *mine = mine.zip(before).map(|(mine, before)| mine + before);
    }
    for (mine, before) in [
        (&mut mine.minor_faults, before.minor_faults),
        (&mut mine.major_faults, before.major_faults),
        (&mut mine.voluntary_switches, before.voluntary_switches),
        (&mut mine.involuntary_switches, before.involuntary_switches),
        (&mut mine.disk_read_bytes, before.disk_read_bytes),
        (&mut mine.disk_written_bytes, before.disk_written_bytes),
        (&mut mine.network_received_bytes, before.network_received_bytes),
        (&mut mine.network_sent_bytes, before.network_sent_bytes),
    ] {
        *mine = mine.zip(before).map(|(mine, before)| mine + before);
    }
}

/// Line of a plot, and the text of its values.
type Shown = (Line, fn(f64) -> String);

/// One figure of a watched thing.
struct Figure {
    name: &'static str,
    of: fn(&WatchedSecond, f64) -> Option<f64>,
    text: fn(f64) -> String,
}

fn per_s(count: Option<u64>, span_s: f64) -> Option<f64> {
    count.filter(|_| span_s > 0.0).map(|count| count as f64 / span_s)
}

fn cores(value: f64) -> String {
    format!("{} cores", significant(value))
}

fn whole(value: f64) -> String {
    count(value.round() as u64)
}

fn bytes_per_s(value: f64) -> String {
    format!("{}/s", bytes(value))
}

fn count_per_s(value: f64) -> String {
    format!("{}/s", significant(value))
}

const CPU: Figure = Figure {
    name: "CPU",
    of: |one, span_s| Some((one.cpu_user_s? + one.cpu_system_s?) / span_s).filter(|_| span_s > 0.0),
    text: cores,
};
const MEMORY: Figure =
    Figure { name: "memory", of: |one, _| one.rss_bytes.map(|bytes| bytes as f64), text: bytes };
const DISK: [Figure; 2] = [
    Figure { name: "read", of: |one, s| per_s(one.disk_read_bytes, s), text: bytes_per_s },
    Figure { name: "written", of: |one, s| per_s(one.disk_written_bytes, s), text: bytes_per_s },
];
const NETWORK: [Figure; 2] = [
    Figure {
        name: "received",
        of: |one, s| per_s(one.network_received_bytes, s),
        text: bytes_per_s,
    },
    Figure { name: "sent", of: |one, s| per_s(one.network_sent_bytes, s), text: bytes_per_s },
];
const SWITCHES: [Figure; 3] = [
    Figure { name: "waits", of: |one, s| per_s(one.voluntary_switches, s), text: count_per_s },
    Figure {
        name: "taken away",
        of: |one, s| per_s(one.involuntary_switches, s),
        text: count_per_s,
    },
    Figure { name: "major faults", of: |one, s| per_s(one.major_faults, s), text: count_per_s },
];

/// Meaning of the figures.
const NOTE: &str = "CPU in cores: 1 is one processor that is always busy. Memory: resident memory, or what is charged to a control \
                    group. A figure that could not be read is unknown, not 0.";

/// Figures of one machine.
struct Machine<'a> {
    /// Part of the names of its plots, which are unique on a page.
    mark: String,
    /// Place of its figures in the record.
    at: Vec<&'a str>,
    watched: &'a [WatchedResult],
    at_limit: &'a [String],
    remarks: &'a [String],
}

/// CPU, memory, disk, network and context switches of what was watched, and of the machine.
pub fn section(record: &RunRecord, resources: &Resources) -> Option<Section> {
    let kept = record.job_results.resources();
    // With agents, this process made no load, and its machine is one of several.
    let title = match kept.is_some_and(|kept| !kept.watchers.is_empty()) {
        true => format!("Resources of the coordinator's machine, {}", record.machine.hostname),
        false => "Resources of target and generator".to_owned(),
    };
    let is_known = kept.is_some_and(|kept| kept.samples > 0 || kept.watchers.is_empty());
    let of_record = kept.filter(|_| is_known).map(|kept| Machine {
        mark: String::new(),
        at: vec!["resources", "watched"],
        watched: &kept.watched,
        at_limit: &kept.machine.at_limit,
        remarks: &kept.remarks,
    });
    if of_record.is_none() && resources.is_empty() {
        return None;
    }
    let section = Section::new("resources", &title, NOTE);
    let section = filled(section, resources, "", of_record.as_ref());
    (!section.parts.is_empty()).then_some(section)
}

/// A section for each machine that an agent watched.
pub fn of_watchers(record: &RunRecord, course: &BTreeMap<String, Resources>) -> Vec<Section> {
    let kept = record.job_results.resources();
    let all = kept.map(|kept| &kept.watchers[..]).unwrap_or_default();
    let none = Resources::default();
    let each = |(index, one): (usize, &WatcherResult)| {
        let (id, place) = (format!("resources-{}", index + 1), index.to_string());
        let title = format!("Resources of {}, watched by agent {}", one.host, one.agent);
        let mut section = Section::new(&id, &title, NOTE);
        if let Some(why) = &one.trouble {
            let until = match one.until_s {
                Some(until_s) => format!("its figures end at {until_s:.1} s"),
                None => "there are no figures".to_owned(),
            };
            let text = format!("The agent did not watch to the end, and {until}: {why}.");
            section.parts.push(Part::Text(Tone::Warn, text));
        }
        let resources = one.file.as_ref().and_then(|file| course.get(file)).unwrap_or(&none);
        let machine = Machine {
            mark: format!("{}-", index + 1),
            at: vec!["resources", "watchers", &place, "watched"],
            watched: &one.watched,
            at_limit: &one.machine.at_limit,
            remarks: &one.remarks,
        };
        filled(section, resources, &machine.mark, Some(&machine))
    };
    all.iter().enumerate().map(each).collect()
}

/// Plots, table, limits and remarks of one machine.
fn filled(
    mut section: Section,
    resources: &Resources,
    mark: &str,
    kept: Option<&Machine<'_>>,
) -> Section {
    let watched = watched(resources);
    let plots = [
        ("cpu", "CPU", "cores", &[CPU][..]),
        ("memory", "Memory", "B", &[MEMORY][..]),
        ("disk", "Disk", "B/s", &DISK[..]),
        ("network", "Network", "B/s", &NETWORK[..]),
        ("switches", "Context switches and page faults", "/s", &SWITCHES[..]),
    ];
    for (id, caption, unit, figures) in plots {
        let id = format!("{mark}{id}");
        section.parts.extend(plot(resources, &watched, (&id, caption, unit), figures));
    }
    section.parts.extend(cores_plot(resources, mark));
    if let Some(kept) = kept {
        if !kept.watched.is_empty() {
            section.parts.push(Part::Table(table(kept)));
        }
        let at_limit = kept.watched.iter().flat_map(|one| {
            one.at_limit.iter().map(move |limit| format!("{} was at its limit: {limit}.", one.name))
        });
        let machine = kept.at_limit.iter();
        let machine = machine.map(|limit| format!("The machine was at its limit: {limit}."));
        section.parts.extend(at_limit.chain(machine).map(|text| Part::Text(Tone::Warn, text)));
        let remarks = kept.remarks.iter().map(|text| Part::Text(Tone::Plain, text.clone()));
        section.parts.extend(remarks);
    }
    section
}

/// Names of what was watched, the target first, with their places in the lines.
fn watched(resources: &Resources) -> Vec<(usize, String)> {
    let Some(first) = resources.lines.first() else { return Vec::new() };
    let mut names: Vec<(usize, String)> =
        first.watched.iter().map(|one| one.name.clone()).enumerate().collect();
    names.sort_by_key(|(_, name)| name == GENERATOR);
    names.truncate(WATCHED_MAX);
    names
}

fn plot(
    resources: &Resources,
    watched: &[(usize, String)],
    (id, caption, unit): (&str, &str, &str),
    figures: &[Figure],
) -> Option<Part> {
    let mut shown: Vec<Shown> = Vec::new();
    for (place, name) in watched {
        for figure in figures {
            let of = |line: &ResourceLine| (figure.of)(line.watched.get(*place)?, line.span_s);
            let numbers: Vec<Option<f64>> = resources.lines.iter().map(of).collect();
            if numbers.iter().all(Option::is_none) {
                continue;
            }
            let label = match figures.len() {
                1 => name.clone(),
                _ => format!("{name} {}", figure.name),
            };
            let tone = TONES[shown.len() % TONES.len()];
            let values = Values::new(&format!("{id}_{place}_{}", figure.name), numbers);
            shown.push((Line::new(&label, tone, values), figure.text));
        }
    }
    over_time(resources, (id, caption, unit), shown)
}

/// Busy share of the machine's processors: of each one if there are few, of the busiest and of all otherwise.
fn cores_plot(resources: &Resources, mark: &str) -> Option<Part> {
    let number = resources.lines.first()?.machine.cores_busy.len();
    let text: fn(f64) -> String = |percent| format!("{} %", significant(percent));
    let of = |take: &dyn Fn(&[Option<f64>]) -> Option<f64>| -> Vec<Option<f64>> {
        let lines = resources.lines.iter();
        lines.map(|line| take(&line.machine.cores_busy).map(|share| share * 100.0)).collect()
    };
    let mut shown = Vec::new();
    if number <= TONES.len() {
        for (core, tone) in TONES.iter().enumerate().take(number) {
            let values = of(&|cores| cores.get(core).copied().flatten());
            let values = Values::new(&format!("{mark}core_{core}"), values);
            shown.push((Line::new(&format!("processor {core}"), tone, values), text));
        }
    } else {
        let busiest = of(&|cores| cores.iter().flatten().copied().reduce(f64::max));
        let mean = of(&|cores| {
            let online: Vec<f64> = cores.iter().flatten().copied().collect();
            (!online.is_empty()).then(|| online.iter().sum::<f64>() / online.len() as f64)
        });
        shown.push((
            Line::new("busiest processor", "max", Values::new(&format!("{mark}core_max"), busiest)),
            text,
        ));
        shown.push((
            Line::new("all processors", "cpu", Values::new(&format!("{mark}core_mean"), mean)),
            text,
        ));
    }
    let id = format!("{mark}cores");
    over_time(resources, (&id, "Busy processors of the machine, %", "%"), shown)
}

fn over_time(
    resources: &Resources,
    (id, caption, unit): (&str, &str, &str),
    shown: Vec<Shown>,
) -> Option<Part> {
    if shown.is_empty() {
        return None;
    }
    let starts = resources.lines.iter().map(|line| line.at_s - line.span_s);
    let lines = Lines {
        x: Some(Values::of("t_resources", starts)),
        x_label: "s".to_owned(),
        is_time: true,
        y: vec![YAxis::linear(unit)],
        lines: shown.iter().map(|(line, _)| line.clone()).collect(),
        ..Lines::default()
    };
    let plot = Plot {
        id: format!("resources-{id}"),
        caption: caption.to_owned(),
        kind: PlotKind::Lines(lines),
        twin: twin(resources, &shown),
        is_pictured: false,
    };
    Some(Part::Plot(Box::new(plot)))
}

/// Means of neighbouring seconds, weighted by their lengths.
fn twin(resources: &Resources, shown: &[Shown]) -> Table {
    let heads: Vec<String> = ["#from s".to_owned(), "#to s".to_owned()]
        .into_iter()
        .chain(shown.iter().map(|(line, _)| format!("#{}", line.label)))
        .collect();
    let mut table = Table::new(&heads.iter().map(String::as_str).collect::<Vec<_>>());
    let together = resources.lines.len().div_ceil(Plot::TWIN_ROWS_MAX).max(1);
    for (group, lines) in resources.lines.chunks(together).enumerate() {
        let (Some(first), Some(last)) = (lines.first(), lines.last()) else { continue };
        let ends = [first.at_s - first.span_s, last.at_s];
        let mut cells: Vec<Cell> =
            ends.iter().map(|&s| Cell::number(s, format!("{s:.1}"))).collect();
        for (line, text) in shown {
            let values = line.y.numbers.iter().skip(group * together).take(lines.len());
            let known: Vec<(f64, f64)> = values
                .zip(lines)
                .filter_map(|(value, line)| Some(((*value)?, line.span_s)))
                .collect();
            let span_s: f64 = known.iter().map(|(_, span_s)| span_s).sum();
            let sum: f64 = known.iter().map(|(value, span_s)| value * span_s).sum();
            let mean = (span_s > 0.0).then(|| sum / span_s);
            cells.push(Cell::or_unknown(mean, |value| Cell::number(value, text(value))));
        }
        table.row(Tone::Plain, cells);
    }
    table
}

fn table(machine: &Machine<'_>) -> Table {
    let heads = [
        "",
        "found by",
        "#CPU, mean",
        "#CPU, max",
        "#memory, max",
        "#threads, max",
        "#disk read, mean",
        "#disk written, mean",
        "#received, mean",
        "#sent, mean",
    ];
    let mut table = Table::new(&heads).captioned("Over the measured stretch");
    for (index, one) in machine.watched.iter().enumerate() {
        let index = index.to_string();
        let cell = |level: Option<Level>,
                    name: &'static str,
                    at: &'static str,
                    text: fn(f64) -> String| {
            Cell::or_unknown(level, |level| {
                let value = if at == "max" { level.max } else { level.mean };
                let place = [&machine.at[..], &[&index, name, at]].concat();
                Cell::number(value, text(value)).from(&place)
            })
        };
        let cells = vec![
            Cell::text(one.name.clone()),
            Cell::text(one.found_by.clone()),
            cell(one.cpu_cores, "cpu_cores", "mean", cores),
            cell(one.cpu_cores, "cpu_cores", "max", cores),
            cell(one.rss_bytes, "rss_bytes", "max", bytes),
            cell(one.threads, "threads", "max", whole),
            cell(one.disk_read_bytes_per_s, "disk_read_bytes_per_s", "mean", bytes_per_s),
            cell(one.disk_written_bytes_per_s, "disk_written_bytes_per_s", "mean", bytes_per_s),
            cell(
                one.network_received_bytes_per_s,
                "network_received_bytes_per_s",
                "mean",
                bytes_per_s,
            ),
            cell(one.network_sent_bytes_per_s, "network_sent_bytes_per_s", "mean", bytes_per_s),
        ];
        table.row(if one.at_limit.is_empty() { Tone::Plain } else { Tone::Warn }, cells);
    }
    table
}
