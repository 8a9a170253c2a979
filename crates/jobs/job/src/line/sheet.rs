//! A load line on the page that is data: where it lies, the curve that it was read from, and the way of the search.

mod narrowing;
mod watched;

use plimsoll_core::seek::finding::{Finding, Measured};
use plimsoll_core::seek::goal::Bound;
use plimsoll_record::RunRecord;
use plimsoll_record::seek::SeekResult;
use plimsoll_report::number::{percent, significant};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::sheet::{
    Band, Cell, Field, Level, Listed, Mark, Part, Plot, PlotKind, Section, Sheet, Tone, YAxis,
};

/// Colours of the limits, one after the other.
const TONES: [&str; 4] = ["series-1", "series-2", "series-5", "series-6"];
/// Share of the capacity from which on a line is set by it.
const AT_CAPACITY: f64 = 0.9;
/// Rates that lie this far apart are shown on a logarithmic axis.
const WIDE: f64 = 10.0;

/// Adds the sections of a load line. Changes nothing for a record without one.
pub fn sheet(sheet: &mut Sheet, record: &RunRecord) {
    let Some(found) = record.job_results.seek() else { return };
    let finding = &found.finding;
    put_first(sheet, &decisions(found), false);
    // The times of a search are those of very different loads: together they describe none of them.
    for id in ["curve", "slowest"] {
        sheet.remove(id);
    }
    sheet.put_after("decide", line(found));
    if let Some(section) = narrowing::section(finding) {
        sheet.put_after("line", section);
    }
    sheet.put_after("line", rates(finding));
    bottleneck(sheet, finding);
}

/// The rows to decide from.
fn decisions(found: &SeekResult) -> Vec<Decision> {
    let finding = &found.finding;
    let rate = |label: &str, at: &[&str], rate: Option<f64>| {
        Decision::figure(label, Cell::or_unknown(rate, Cell::per_s).from(at))
    };
    if finding.watch.is_some() {
        return watched::decisions(finding);
    }
    let mut rows =
        vec![rate("certified rate", &["seek", "certified_rate_per_s"], found.certified_rate_per_s)];
    for (index, limit) in finding.limits.iter().enumerate().take(3) {
        let Some(late) = finding.certified.as_ref().and_then(|run| run.late_share.get(index))
        else {
            continue;
        };
        let at = index.to_string();
        let row = match limit.bound {
            Bound::Late { allowed } => Decision::figure(
                &format!("late at that rate, {}", limit.label),
                Cell::share(*late).from(&["seek", "certified", "late_share", &at]),
            )
            .against(&format!("<= {}", percent(allowed)), *late <= allowed),
            Bound::Mean { .. } => continue,
        };
        rows.push(row);
    }
    rows.push(rate(
        "best estimate of the line",
        &["seek", "estimate_per_s"],
        finding.estimate_per_s,
    ));
    let interval = finding.interval_per_s;
    let sure = percent(finding.confidence);
    rows.push(rate(
        &format!("lower end of its interval ({sure} confidence)"),
        &["seek", "interval_per_s", "0"],
        interval.map(|ends| ends.0),
    ));
    rows.push(rate("upper end", &["seek", "interval_per_s", "1"], interval.map(|ends| ends.1)));
    let failing = finding.failing.as_ref().map(|run| run.rate_per_s);
    rows.push(rate("lowest rate that surely fails", &["seek", "failing", "rate_per_s"], failing));
    let capacity = finding.capacity_per_s;
    rows.push(rate("completed under overload", &["seek", "capacity_per_s"], capacity));
    rows.push(rate("completed for a while", &["seek", "peak_per_s"], finding.peak_per_s));
    // A search that certified nothing knows little: that much is a result, and rows without a number are none.
    if found.certified_rate_per_s.is_none() {
        rows[0].value = Cell::text("none");
    }
    rows.retain(|row| row.value != Cell::Unknown);
    rows
}

/// The line in words and figures, and the users that it is.
fn line(found: &SeekResult) -> Section {
    let finding = &found.finding;
    let note = "The load line is the highest arrival rate at which every limit holds in the long run. The certified rate is the \
                highest one below it whose contiguous run held every limit.";
    let mut section = Section::new("line", "Load line", note);
    let tone = if found.certified_rate_per_s.is_some() || finding.watch.is_some() {
        Tone::Good
    } else {
        Tone::Warn
    };
    section = section.with(Part::Text(tone, format!("{}.", finding.reason)));
    if let Some(part) = watched::plot(finding) {
        section = section.with(part).with(watched::table(finding));
    }
    section = section.with(Part::Facts(facts(found)));
    for note in &finding.notes {
        section = section.with(Part::Text(Tone::Plain, note.clone()));
    }
    section
}

fn facts(found: &SeekResult) -> Vec<(String, Cell)> {
    let finding = &found.finding;
    let mut facts = Vec::new();
    let mut fact =
        |name: &str, cell: Cell, at: &[&str]| facts.push((name.to_owned(), cell.from(at)));
    if let Some(binding) = &finding.binding {
        fact("limit that breaks first", Cell::text(binding.clone()), &[]);
    }
    if let Some(half) = finding.half_width {
        fact("half of the interval over the estimate", Cell::share(half), &["seek", "half_width"]);
    }
    let at = ["seek", "broke", "rate_per_s"];
    if let Some(broke) = &finding.broke {
        fact("a limit broke, perhaps by chance, at", Cell::per_s(broke.rate_per_s), &at);
    }
    let floor = finding.floor_s.filter(|floor| floor.is_finite());
    if let Some(floor_s) = floor {
        let cell = Cell::number(floor_s, Cell::ms(floor_s * 1e3).shown());
        fact("mean response time at the lowest load", cell, &["seek", "floor_s"]);
    }
    fact("length of the search", Cell::seconds(finding.elapsed_s), &["seek", "elapsed_s"]);
    if let Some(forecast) = &finding.forecast_first {
        let at = ["seek", "forecast_first", "total_s"];
        fact("forecast of it after the pilot", Cell::seconds(forecast.total_s), &at);
    }
    if let Some(users) = &found.users {
        let requests = Cell::count(users.requests.into());
        fact("requests of each user", requests, &["seek", "users", "requests"]);
        let certified = Cell::or_unknown(users.certified_per_s, Cell::per_s);
        fact("certified rate, users/s", certified, &["seek", "users", "certified_per_s"]);
        let estimate = Cell::or_unknown(users.estimate_per_s, Cell::per_s);
        fact("estimate of the line, users/s", estimate, &["seek", "users", "estimate_per_s"]);
        let ends = users.interval_per_s;
        let end = |end: Option<f64>| Cell::or_unknown(end, Cell::per_s);
        fact(
            "lower end of its interval, users/s",
            end(ends.map(|ends| ends.0)),
            &["seek", "users", "interval_per_s", "0"],
        );
        fact(
            "upper end, users/s",
            end(ends.map(|ends| ends.1)),
            &["seek", "users", "interval_per_s", "1"],
        );
    }
    facts
}

/// The share of late requests against the rate, with what is allowed.
fn rates(finding: &Finding) -> Section {
    let note = "Every rate that was measured. late: share of the requests that missed a limit, against the share that it \
                allows; the line is where the two meet. Seconds and requests are those of all stretches at the rate.";
    let section = Section::new("rates", "Late requests against rate", note);
    let list = Listed { at: &["seek", "curve"], items: &finding.curve };
    if finding.curve.is_empty() {
        return section.with(Part::Text(Tone::Warn, "No rate was measured.".to_owned()));
    }
    let rate = || Field::new("rate/s", "rate_per_s", |one: &Measured| Cell::per_s(one.rate_per_s));
    let mean = || {
        let mean = |one: &Measured| {
            Cell::number(one.response_mean_s, Cell::ms(one.response_mean_s * 1e3).shown())
        };
        Field::new("mean response", "response_mean_s", mean)
    };
    let mut lines = late_fields(finding);
    lines.push(mean().times(1e3).toned("service").on(1));
    let axes = vec![YAxis::linear("%"), YAxis::log("ms")];
    let caption = "Share of late requests, and mean response time, by arrival rate";
    let plot = list.plot(("rates", caption), &rate(), axes, lines);
    let mut fields = vec![
        rate(),
        Field::new("seconds", "seconds", |one: &Measured| Cell::seconds(one.seconds)),
        Field::new("requests", "scheduled", |one: &Measured| Cell::count(one.scheduled)),
    ];
    fields.extend(late_fields(finding));
    fields.push(Field::new("failed", "failed", |one: &Measured| Cell::count(one.failed)));
    fields.push(mean());
    let table = list.table(&fields, |one| if one.failed > 0 { Tone::Bad } else { Tone::Plain });
    section
        .with_some(plot.map(|plot| Part::Plot(Box::new(noted(plot, finding)))))
        .with(Part::Table(table))
}

/// The late share of each limit.
fn late_fields(finding: &Finding) -> Vec<Field<'_, Measured>> {
    let limits = finding.curve.iter().map(|one| one.late_share.len()).max().unwrap_or(0);
    let field = |index: usize| {
        let label = match finding.limits.get(index) {
            Some(limit) => format!("late, {}", limit.label),
            None if limits == 1 => "late".to_owned(),
            None => format!("late, limit {}", index + 1),
        };
        let late =
            move |one: &Measured| Cell::or_unknown(one.late_share.get(index).copied(), Cell::share);
        Field::new(&label, &format!("late_share/{index}"), late)
            .times(100.0)
            .toned(TONES[index % TONES.len()])
    };
    (0..limits).map(field).collect()
}

/// Limits, the interval and the rates with a meaning.
fn noted(mut plot: Plot, finding: &Finding) -> Plot {
    let PlotKind::Lines(lines) = &mut plot.kind else { return plot };
    let rates = || finding.curve.iter().map(|one| one.rate_per_s);
    let (low, high) =
        rates().fold((f64::MAX, 0.0_f64), |(low, high), at| (low.min(at), high.max(at)));
    lines.x_is_log = low > 0.0 && high > low * WIDE;
    let level = |limit: &plimsoll_core::seek::goal::Limit| match limit.bound {
        Bound::Late { allowed } => Some(Level {
            y: allowed * 100.0,
            label: format!("{}: {} may be late", limit.label, percent(allowed)),
            axis: 0,
        }),
        Bound::Mean { limit_s } => {
            Some(Level { y: limit_s * 1e3, label: limit.label.clone(), axis: 1 })
        }
    };
    lines.levels = finding.limits.iter().filter_map(level).collect();
    if let Some((from, to)) = finding.interval_per_s {
        let label = format!("{} interval", percent(finding.confidence));
        lines.bands = vec![Band { from, to, label }];
    }
    let marks = [
        (finding.certified.as_ref(), "certified", "good"),
        (finding.failing.as_ref(), "fails", "bad"),
    ];
    let mark = |(run, label, tone): (Option<&Measured>, &str, &'static str)| {
        let x = run?.rate_per_s;
        Some(Mark { x, label: format!("{label} {}/s", significant(x)), tone })
    };
    lines.marks = marks.into_iter().filter_map(mark).collect();
    if let Some(x) = finding.estimate_per_s {
        let label = format!("estimate {}/s", significant(x));
        lines.marks.push(Mark { x, label, tone: "neutral" });
    }
    plot.is_pictured = true;
    plot
}

/// Adds the sentence about the bottleneck, if line and capacity are known.
fn bottleneck(sheet: &mut Sheet, finding: &Finding) {
    let (Some(line), Some(capacity)) = (finding.estimate_per_s, finding.capacity_per_s) else {
        return;
    };
    let limit = finding.binding.as_ref().map_or("a limit".to_owned(), Clone::clone);
    let text = if line >= AT_CAPACITY * capacity {
        format!(
            "The line, {}/s, lies at what the target completes under overload, {}/s: its throughput sets the line, and {limit} \
             breaks when it is reached.",
            significant(line),
            significant(capacity)
        )
    } else {
        format!(
            "The line, {}/s, lies below what the target completes under overload, {}/s: {limit} breaks while the target could \
             still do more, since response times grow and vary with load.",
            significant(line),
            significant(capacity)
        )
    };
    say(sheet, text);
}

/// Adds a sentence to the section about the bottleneck, once.
pub fn say(sheet: &mut Sheet, text: String) {
    let part = Part::Text(Tone::Plain, text);
    if sheet.section("bottleneck").is_none() {
        let section = Section::new("bottleneck", "Where is the bottleneck?", "");
        let before = ["machine", "command"];
        let at = sheet.sections.iter().position(|one| before.contains(&one.id.as_str()));
        sheet.sections.insert(at.unwrap_or(sheet.sections.len()), section);
    }
    if let Some(section) = sheet.section_mut("bottleneck")
        && !section.parts.contains(&part)
    {
        section.parts.push(part);
    }
}

#[cfg(test)]
mod tests;
