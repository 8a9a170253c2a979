//! The page that is data of the ranking benchmark: its runs, its instances, and the stages of the requests.

use plimsoll_job::line;
use plimsoll_record::RunRecord;
use plimsoll_record::rank::{RankInstance, RankResult, RankRun, RankStage};
use plimsoll_report::number::{percent, significant};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{
    BARS_MAX, Bar, Bars, Cell, Field, Listed, Part, Section, Sheet, Tone, YAxis,
};

/// The instances' answers lie apart by more than this share of their mean: they did not do the same work.
const SPREAD_MAX: f64 = 0.1;
/// Share of a whole from which on a stage is a finding.
const MOST: f64 = 0.5;

/// Adds the sections of a ranking benchmark. Changes nothing for a record without one.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let Some(rank) = record.job_results.rank() else { return };
    line::sheet(sheet, record);
    put_first(sheet, &decisions(rank, record.job_results.seek().is_some()), false);
    if rank.runs.len() > 1 {
        // Times of several rates together describe none of them.
        sheet.remove("curve");
        sheet.remove("slowest");
    }
    let mut after = if sheet.section("rates").is_some() { "narrowing" } else { "decide" };
    if sheet.section(after).is_none() {
        after = "rates";
    }
    for (id, section) in
        [("runs", runs(rank)), ("stages", stages(rank)), ("instances", instances(rank))]
    {
        if let Some(section) = section {
            sheet.put_after(after, section);
            after = id;
        }
    }
    if let Some(text) = finding(rank) {
        line::say(sheet, text);
    }
}

/// The last run, which is the result.
fn decisions(rank: &RankResult, is_search: bool) -> Vec<Decision> {
    let Some((index, run)) = rank.runs.len().checked_sub(1).zip(rank.runs.last()) else {
        return Vec::new();
    };
    let place = index.to_string();
    let at = |field: &'static str| ["rank", "runs", place.as_str(), field];
    let achieved = Decision::figure(
        "answered/s in the last run",
        Cell::per_s(run.achieved_qps).from(&at("achieved_qps")),
    );
    let achieved = match run.stopped {
        true => achieved,
        false => {
            achieved.against(&format!("limits at {}/s", significant(run.requested_qps)), run.held)
        }
    };
    let ms = |label: &str, value: f64, field: &'static str| {
        Decision::figure(label, Cell::ms(value).from(&at(field)))
    };
    let mut rows = vec![achieved, ms("response p95 in the last run", run.p95_ms, "95p_ms")];
    if !is_search {
        rows.push(ms("response p50", run.p50_ms, "50p_ms"));
        rows.push(ms("response p99", run.p99_ms, "99p_ms"));
        rows.push(Decision::figure("failed", Cell::count(run.failed).from(&at("failed"))));
        let spread = Cell::share(rank.spread).from(&["rank", "spread"]);
        rows.push(Decision::figure("spread of the instances", spread));
    }
    rows
}

/// Every run at its rate.
fn runs(rank: &RankResult) -> Option<Section> {
    if rank.runs.is_empty() {
        return None;
    }
    let list = Listed { at: &["rank", "runs"], items: &rank.runs };
    let rate =
        || Field::new("rate/s", "requested_qps", |run: &RankRun| Cell::per_s(run.requested_qps));
    let ms = |label: &'static str, path: &'static str, of: fn(&RankRun) -> f64, tone| {
        Field::new(label, path, move |run: &RankRun| Cell::ms(of(run))).toned(tone)
    };
    let times = || {
        [
            ms("p50", "50p_ms", |run| run.p50_ms, "p50"),
            ms("p95", "95p_ms", |run| run.p95_ms, "p90"),
            ms("p99", "99p_ms", |run| run.p99_ms, "p99"),
        ]
    };
    let achieved =
        || Field::new("answered/s", "achieved_qps", |run: &RankRun| Cell::per_s(run.achieved_qps));
    let limits = |run: &RankRun| match (run.stopped, run.held) {
        (true, _) => "stopped",
        (false, true) => "held",
        (false, false) => "MISSED",
    };
    let mut fields = vec![
        Field::new("from", "from_s", |run: &RankRun| Cell::seconds(run.from_s)),
        Field::new("length", "duration_secs", |run: &RankRun| Cell::seconds(run.duration_secs)),
        rate(),
        achieved(),
    ];
    fields.extend(times());
    fields.push(Field::new("failed", "failed", |run: &RankRun| Cell::count(run.failed)));
    fields.push(Field::text("limits", move |run: &RankRun| limits(run).to_owned()));
    let tone = |run: &RankRun| match (run.stopped, run.held) {
        (true, _) => Tone::Warn,
        (false, true) => Tone::Good,
        (false, false) => Tone::Bad,
    };
    let table = list.table(&fields, tone);
    let note = "One row a run, in the order of time; the last one is the result. p50 to p99: response time.";
    let plot = (rank.runs.len() > 1).then(|| {
        let mut lines: Vec<Field<'_, RankRun>> = times().into_iter().map(Field::dots).collect();
        lines.push(achieved().toned("ok").on(1).dots());
        let axes = vec![YAxis::log("ms"), YAxis::linear("/s")];
        let caption = "Response times and answers per second, by rate";
        list.plot(("runs", caption), &rate(), axes, lines)
    });
    Some(
        Section::new("runs", "Runs", note)
            .with_some(plot.flatten().map(|plot| Part::Plot(Box::new(plot))))
            .with(Part::Table(table)),
    )
}

/// CPU and other time of each stage.
fn stages(rank: &RankResult) -> Option<Section> {
    if rank.stages.is_empty() {
        return None;
    }
    let list = Listed { at: &["rank", "stages"], items: &rank.stages };
    let fields = [
        Field::new("instance", "instance", |one: &RankStage| Cell::count(one.instance.into())),
        Field::text("stage", |one: &RankStage| one.stage.clone()),
        Field::new("requests", "requests", |one: &RankStage| Cell::count(one.requests)),
        Field::new("CPU, mean", "cpu_mean_ms", |one: &RankStage| Cell::ms(one.cpu_mean_ms)),
        Field::new("time, mean", "wall_mean_ms", |one: &RankStage| Cell::ms(one.wall_mean_ms)),
        Field::new("time, p95", "wall_p95_ms", |one: &RankStage| Cell::ms(one.wall_p95_ms)),
    ];
    let is_one = rank.stages.iter().all(|one| one.instance == 1);
    let bar = |one: &RankStage| Bar {
        name: if is_one { one.stage.clone() } else { format!("{}: {}", one.instance, one.stage) },
        values: vec![one.cpu_mean_ms],
        text: format!("{} ms", significant(one.cpu_mean_ms)),
    };
    let wall = |one: &RankStage| Bar {
        values: vec![one.wall_mean_ms],
        text: format!("{} ms", significant(one.wall_mean_ms)),
        ..bar(one)
    };
    let bars = |caption: &str, part: &str, tone, bars: Vec<Bar>| {
        Part::Bars(Box::new(Bars {
            caption: caption.to_owned(),
            parts: vec![(part.to_owned(), tone)],
            bars,
            twin: list.table(&fields, |_| Tone::Plain),
        }))
    };
    let some = || rank.stages.iter().take(BARS_MAX);
    let note = "As the servers report them, since their start: warm-up and all rates of a search included. A stage may work on \
                several threads, so that its CPU time can be longer than the time that passes; queue and wait use none.";
    Some(
        Section::new("stages", "Stages of the requests", note)
            .with(bars(
                "Mean CPU time of a request, by stage",
                "CPU",
                "cpu",
                some().map(bar).collect(),
            ))
            .with(bars(
                "Mean time that passed, by stage",
                "time",
                "response",
                some().map(wall).collect(),
            )),
    )
}

/// The instances in the last run.
fn instances(rank: &RankResult) -> Option<Section> {
    if rank.instances.len() < 2 {
        return None;
    }
    let list = Listed { at: &["rank", "instances"], items: &rank.instances };
    let fields = [
        Field::new("rate/s", "requested_per_s", |one: &RankInstance| {
            Cell::per_s(one.requested_per_s)
        }),
        Field::new("answered/s", "achieved_per_s", |one: &RankInstance| {
            Cell::per_s(one.achieved_per_s)
        }),
        Field::new("p50", "p50_ms", |one: &RankInstance| Cell::ms(one.p50_ms)),
        Field::new("p95", "p95_ms", |one: &RankInstance| Cell::ms(one.p95_ms)),
        Field::new("failed", "failed", |one: &RankInstance| Cell::count(one.failed)),
    ];
    let tone = |one: &RankInstance| if one.failed > 0 { Tone::Bad } else { Tone::Plain };
    let mut section = Section::new("instances", "Instances in the last run", "");
    if rank.spread > SPREAD_MAX {
        let text = format!(
            "The instances' answers lie {} apart: they do not have equal shares of the machine.",
            percent(rank.spread)
        );
        section = section.with(Part::Text(Tone::Warn, text));
    }
    Some(section.with(Part::Table(list.table(&fields, tone))))
}

/// Where most of the servers' CPU time and of the time of requests goes, if it does.
fn finding(rank: &RankResult) -> Option<String> {
    let own: Vec<&RankStage> = rank.stages.iter().filter(|one| one.instance == 1).collect();
    let cpu: f64 = own.iter().map(|one| one.cpu_mean_ms).sum();
    let wall: f64 = own.iter().map(|one| one.wall_mean_ms).sum();
    let queue = own.iter().find(|one| one.stage == "queue" && one.wall_mean_ms > MOST * wall);
    if let Some(queue) = queue {
        return Some(format!(
            "Requests wait for a worker of the server for most of their time: {} ms on average. The server is saturated.",
            significant(queue.wall_mean_ms)
        ));
    }
    let most = own.iter().max_by(|a, b| a.cpu_mean_ms.total_cmp(&b.cpu_mean_ms))?;
    (cpu > 0.0 && most.cpu_mean_ms > MOST * cpu).then(|| {
        format!(
            "The stage {} takes most of the servers' CPU time: {} ms of a request.",
            most.stage,
            significant(most.cpu_mean_ms)
        )
    })
}

#[cfg(test)]
mod tests;
