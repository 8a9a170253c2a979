//! The page that is data of a visit: its slices, where their time went, and its course.

use plimsoll_record::RunRecord;
use plimsoll_record::visit::{
    SLICES_MAX, SlicesTried, TimeShares, UnfinishedSlice, VisitCell, VisitMoment, VisitResult,
    VisitSlice,
};
use plimsoll_report::number::{count, counted, percent, significant};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{
    BARS_MAX, Bar, Bars, Cell, Field, Grid, Listed, Part, Plot, PlotKind, Section, Sheet, Table,
    Tone, YAxis,
};

/// Unfinished slices on the page; the record holds all.
const UNFINISHED_MAX: usize = 50;
/// Share of the time from which on it is a finding.
const MOST: f64 = 0.5;
/// Shorter times in which the output was the limit are nothing to speak of, s.
const LIMITED_SHOWN_S: f64 = 0.1;

/// Adds the sections of a visit. Changes nothing for a record without one.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let Some(visit) = record.job_results.visit() else { return };
    if !visit.matrix.is_empty() {
        put_first(sheet, &best(visit), false);
        sheet.put_after("decide", matrix(visit));
        return;
    }
    put_first(sheet, &decisions(visit), false);
    sheet.put_after("decide", received(visit));
    let mut after = "visit";
    for (id, section) in [
        ("course", course(visit)),
        ("slices", slices(visit)),
        ("at-once", at_once(visit)),
        ("unfinished", unfinished(visit)),
    ] {
        if let Some(section) = section {
            sheet.put_after(after, section);
            after = id;
        }
    }
    if let Some(text) = finding(visit) {
        plimsoll_job::line::say(sheet, text);
    }
}

fn decisions(visit: &VisitResult) -> Vec<Decision> {
    let done = Cell::count(visit.slices_done.into()).from(&["visit", "slices_done"]);
    let of = format!("{} slices", count(visit.slices.into()));
    let claimed = visit.document_count_claimed;
    let held =
        Cell::count(visit.document_count_received).from(&["visit", "document_count_received"]);
    let mut decisions = vec![
        Decision::figure("slices that came to their end", done)
            .against(&of, visit.slices_done == visit.slices && visit.slices > 0),
        Decision::figure("documents in completed replies", held).against(
            &format!("{} claimed", count(claimed)),
            claimed == visit.document_count_received,
        ),
    ];
    // Wrong counts can be right in sum.
    if visit.inconsistent_replies > 0 {
        let wrong = Cell::count(visit.inconsistent_replies);
        let wrong = wrong.from(&["visit", "inconsistent_replies"]);
        decisions.push(Decision::figure("replies with a wrong count", wrong).against("0", false));
    }
    decisions.extend([
        Decision::figure(
            "documents written",
            Cell::count(visit.documents).from(&["visit", "documents"]),
        ),
        Decision::figure(
            "documents/s",
            Cell::per_s(visit.documents_per_s).from(&["visit", "documents_per_s"]),
        ),
        Decision::figure(
            "body bits/s",
            Cell::number(visit.gbps, format!("{} Gbit/s", significant(visit.gbps)))
                .from(&["visit", "gbps"]),
        ),
        Decision::figure(
            "time in which the output was the limit",
            Cell::seconds(visit.output_limited_s).from(&["visit", "output_limited_s"]),
        ),
        Decision::figure("length", Cell::seconds(visit.seconds).from(&["visit", "seconds"])),
    ]);
    decisions
}

/// Documents and bytes received, and the account of the time.
fn received(visit: &VisitResult) -> Section {
    let own = |cell: Cell, field: &'static str| cell.from(&["visit", field]);
    let first = |cell: Cell, field: &'static str| cell.from(&["visit", "first_byte_ms", field]);
    let mut facts = vec![
        ("traces of removed documents".to_owned(), own(Cell::count(visit.removes), "removes")),
        ("duplicates left out".to_owned(), own(Cell::count(visit.duplicates), "duplicates")),
        ("digest of the ids".to_owned(), Cell::text(visit.id_digest.clone())),
        ("replies".to_owned(), own(Cell::count(visit.replies), "replies")),
        ("form of the replies".to_owned(), Cell::text(visit.form.clone())),
        ("body bytes received".to_owned(), own(Cell::bytes(visit.bytes as f64), "bytes")),
        (
            "CPU for 10^9 body bytes".to_owned(),
            own(Cell::seconds(visit.cpu_s_per_gb), "cpu_s_per_gb"),
        ),
        (
            "writing after the last byte".to_owned(),
            own(Cell::seconds(visit.output_last_s), "output_last_s"),
        ),
        (
            "documents of earlier runs".to_owned(),
            own(Cell::count(visit.resumed_from), "resumed_from"),
        ),
    ];
    if visit.first_byte_ms.count > 0 {
        let times = &visit.first_byte_ms;
        facts.extend([
            ("first byte p50".to_owned(), first(Cell::ms(times.p50), "p50")),
            ("first byte p99".to_owned(), first(Cell::ms(times.p99), "p99")),
            ("first byte, longest".to_owned(), first(Cell::ms(times.max), "max")),
        ]);
    }
    let shares = Bar {
        name: "all slices".to_owned(),
        values: vec![visit.time.first_byte, visit.time.receiving, visit.time.between],
        text: String::new(),
    };
    let mut table = Table::new(&["", "#share of the slices' time"]);
    for (name, field, share) in parts(&visit.time) {
        let cell = Cell::share(share).from(&["visit", "time", field]);
        table.row(Tone::Plain, vec![Cell::text(name), cell]);
    }
    let bars = Bars {
        caption: "Where the time of the slices went".to_owned(),
        parts: legend(),
        bars: vec![shares],
        twin: table,
    };
    let note = "first byte: from a request to the first byte of its reply; receiving: from there to the last byte; between: from \
                there to the next request. Time in which the output took no more is in none of them.";
    let complete = if visit.complete {
        Part::Text(Tone::Good, "The visit is complete.".to_owned())
    } else {
        let why = visit.trouble.as_deref().unwrap_or(match visit.inconsistent_replies {
            0 => "not everything was read and written",
            _ => "some replies do not hold as many documents as they claim",
        });
        Part::Text(Tone::Bad, format!("The visit is NOT complete: {why}."))
    };
    Section::new("visit", "Visit", note)
        .with(complete)
        .with(Part::Bars(Box::new(bars)))
        .with(Part::Facts(facts))
}

fn parts(time: &TimeShares) -> [(&'static str, &'static str, f64); 3] {
    [
        ("first byte", "first_byte", time.first_byte),
        ("receiving", "receiving", time.receiving),
        ("between", "between", time.between),
    ]
}

fn legend() -> Vec<(String, &'static str)> {
    vec![
        ("first byte".to_owned(), "server"),
        ("receiving".to_owned(), "network"),
        ("between".to_owned(), "neutral"),
    ]
}

/// The visit over time.
fn course(visit: &VisitResult) -> Option<Section> {
    let list = Listed { at: &["visit", "over_time"], items: &visit.over_time };
    let until = Field::new("until s", "to_s", |one: &VisitMoment| Cell::seconds(one.to_s));
    let rates = vec![
        Field::new("documents/s", "documents_per_s", |one: &VisitMoment| {
            Cell::per_s(one.documents_per_s)
        })
        .toned("achieved"),
        Field::new("MB/s", "mb_per_s", |one: &VisitMoment| {
            Cell::number(one.mb_per_s, significant(one.mb_per_s))
        })
        .toned("series-6")
        .on(1),
    ];
    let axes = vec![YAxis::linear("/s"), YAxis::linear("MB/s")];
    let rates =
        list.plot(("visit-rates", "Documents and body bytes per second"), &until, axes, rates);
    let window = vec![
        Field::new("slices that asked", "asking", |one: &VisitMoment| {
            Cell::count(one.asking.into())
        })
        .toned("series-1"),
        Field::new("slices at their end", "slices_done", |one: &VisitMoment| {
            Cell::count(one.slices_done.into())
        })
        .toned("good"),
    ];
    let caption = "Window: slices that asked, and slices at their end";
    let window =
        list.plot(("visit-window", caption), &until, vec![YAxis::linear("slices")], window);
    let share = |value: f64| Cell::number(value, significant(value));
    let times = vec![
        Field::new("first byte", "first_byte", move |one: &VisitMoment| share(one.first_byte))
            .toned("server"),
        Field::new("receiving", "receiving", move |one: &VisitMoment| share(one.receiving))
            .toned("network"),
        Field::new("between", "between", move |one: &VisitMoment| share(one.between))
            .toned("neutral"),
    ];
    let caption = "Time of the slices: seconds for each second, all slices together";
    let times = list.plot(("visit-times", caption), &until, vec![YAxis::linear("s/s")], times);
    let note = "Seconds since the visit began. A wait is counted when its first byte comes.";
    let plots = [rates, window, times].into_iter().flatten();
    let parts: Vec<Part> = plots.map(|plot| Part::Plot(Box::new(plot))).collect();
    (!parts.is_empty())
        .then(|| Section { parts, ..Section::new("course", "The visit over time", note) })
}

/// Each slice: documents, bytes, and where its time went.
fn slices(visit: &VisitResult) -> Option<Section> {
    if visit.by_slice.is_empty() {
        return None;
    }
    let list = Listed { at: &["visit", "by_slice"], items: &visit.by_slice };
    let fields = [
        Field::new("slice", "slice", |one: &VisitSlice| Cell::count(one.slice.into())),
        Field::new("documents", "documents", |one: &VisitSlice| Cell::count(one.documents)),
        Field::new("replies", "replies", |one: &VisitSlice| Cell::count(one.replies)),
        Field::new("body bytes", "bytes", |one: &VisitSlice| Cell::bytes(one.bytes as f64)),
        Field::new("first byte", "first_byte_s", |one: &VisitSlice| {
            Cell::seconds(one.first_byte_s)
        }),
        Field::new("receiving", "receiving_s", |one: &VisitSlice| Cell::seconds(one.receiving_s)),
        Field::new("between", "between_s", |one: &VisitSlice| Cell::seconds(one.between_s)),
        Field::text("end", |one: &VisitSlice| {
            if one.done { "done" } else { "NOT done" }.to_owned()
        }),
    ];
    let bar = |one: &VisitSlice| Bar {
        name: format!("slice {}", one.slice),
        values: vec![one.first_byte_s, one.receiving_s, one.between_s],
        text: format!("{} docs", count(one.documents)),
    };
    let tone = |one: &VisitSlice| if one.done { Tone::Plain } else { Tone::Bad };
    let bars = Bars {
        caption: "Time of each slice: first byte, receiving, between".to_owned(),
        parts: legend(),
        bars: visit.by_slice.iter().take(BARS_MAX).map(bar).collect(),
        twin: list.table(&fields, tone),
    };
    let mut note = "A slice reads one part of the corpus, reply after reply. A slice with far more documents than others sets the \
                    length of the visit. Documents of a resumed visit include those of earlier runs; times are of this run."
        .to_owned();
    if visit.by_slice.len() > BARS_MAX {
        note += &format!(
            " The picture has the first {BARS_MAX} slices, the table those of the record."
        );
    }
    if visit.slices as usize > SLICES_MAX {
        note +=
            &format!(" The record has the first {} of them.", counted(SLICES_MAX as u64, "slice"));
    }
    Some(Section::new("slices", "Slices", &note).with(Part::Bars(Box::new(bars))))
}

/// The measurements that found how many slices ask at once.
fn at_once(visit: &VisitResult) -> Option<Section> {
    let chosen = visit.slices_at_once?;
    let list = Listed { at: &["visit", "slices_tried"], items: &visit.slices_tried };
    let slices = Field::new("slices", "slices", |one: &SlicesTried| Cell::count(one.slices.into()));
    let rate = Field::new("MB/s", "mb_per_s", |one: &SlicesTried| {
        Cell::number(one.mb_per_s, significant(one.mb_per_s))
    });
    let caption = "Body bytes per second by the number of slices that asked at once";
    let plot = list.plot(
        ("visit-tried", caption),
        &slices,
        vec![YAxis::linear("MB/s")],
        vec![rate.toned("network")],
    )?;
    let chosen = Cell::count(chosen.into()).from(&["visit", "slices_at_once"]);
    let note = "Everything that was read to find this out is part of the visit.";
    Some(
        Section::new("at-once", "Slices at once", note)
            .with(Part::Facts(vec![("slices that asked at once in the end".to_owned(), chosen)]))
            .with(Part::Plot(Box::new(plot))),
    )
}

fn unfinished(visit: &VisitResult) -> Option<Section> {
    if visit.unfinished.is_empty() {
        return None;
    }
    let list = Listed { at: &["visit", "unfinished"], items: &visit.unfinished };
    let fields = [
        Field::new("slice", "slice", |one: &UnfinishedSlice| Cell::count(one.slice.into())),
        Field::text("reason", |one: &UnfinishedSlice| one.reason.clone()),
        Field::text("continuation", |one: &UnfinishedSlice| {
            one.token.clone().unwrap_or_else(|| "its beginning".to_owned())
        }),
    ];
    let shown = visit.unfinished.len().min(UNFINISHED_MAX);
    let table = list.some(&fields, UNFINISHED_MAX, |_| Tone::Bad);
    let note =
        format!("{shown} of {}.", counted(visit.unfinished.len() as u64, "unfinished slice"));
    Some(Section::new("unfinished", "Slices that did not finish", &note).with(Part::Table(table)))
}

/// The bottleneck in a sentence, if the figures show one.
fn finding(visit: &VisitResult) -> Option<String> {
    if visit.output_limited_s >= LIMITED_SHOWN_S && visit.output_limited_s >= MOST * visit.seconds {
        return Some(format!(
            "The output was the limit: for {} s of {} s nothing was received, since it took no more.",
            significant(visit.output_limited_s),
            significant(visit.seconds)
        ));
    }
    let time = &visit.time;
    if time.first_byte > MOST {
        return Some(format!(
            "The slices waited for first bytes for {} of their time: the target took that long to begin its replies.",
            percent(time.first_byte)
        ));
    }
    (time.receiving > MOST).then(|| {
        format!(
            "The slices received for {} of their time: replies came as fast as target and network brought them.",
            percent(time.receiving)
        )
    })
}

fn best(visit: &VisitResult) -> Vec<Decision> {
    let best = visit.matrix.iter().enumerate();
    let best = best.max_by(|a, b| a.1.documents_per_s.total_cmp(&b.1.documents_per_s));
    let Some((index, cell)) = best else { return Vec::new() };
    let place = index.to_string();
    let at = |field: &'static str| ["visit", "matrix", place.as_str(), field];
    let rate = Cell::per_s(cell.documents_per_s).from(&at("documents_per_s"));
    let slices = Cell::count(cell.slices.into()).from(&at("slices"));
    vec![
        Decision::figure("highest documents/s", rate),
        Decision::figure(&format!("with slices ({} replies)", form(cell)), slices),
        Decision::figure(
            "body bits/s there",
            Cell::number(cell.gbps, format!("{} Gbit/s", significant(cell.gbps))).from(&at("gbps")),
        ),
    ]
}

fn form(cell: &VisitCell) -> &'static str {
    if cell.stream { "streamed" } else { "chunked" }
}

/// Ways of visiting: the heat map of their rates, and all figures.
fn matrix(visit: &VisitResult) -> Section {
    let list = Listed { at: &["visit", "matrix"], items: &visit.matrix };
    let share = |label: &'static str, path: &'static str, of: fn(&TimeShares) -> f64| {
        Field::new(label, path, move |cell: &VisitCell| Cell::share(of(&cell.time)))
    };
    let fields = [
        Field::new("slices", "slices", |cell: &VisitCell| Cell::count(cell.slices.into())),
        Field::text("replies", |cell: &VisitCell| form(cell).to_owned()),
        Field::new("at once", "concurrency", |cell: &VisitCell| {
            cell.concurrency.map_or(Cell::text("server's choice"), |n| Cell::count(n.into()))
        }),
        Field::new("documents/s", "documents_per_s", |cell: &VisitCell| {
            Cell::per_s(cell.documents_per_s)
        }),
        Field::new("Gbit/s", "gbps", |cell: &VisitCell| {
            Cell::number(cell.gbps, significant(cell.gbps))
        }),
        Field::new("replies", "replies", |cell: &VisitCell| Cell::count(cell.replies)),
        share("first byte", "time/first_byte", |time| time.first_byte),
        share("receiving", "time/receiving", |time| time.receiving),
        share("between", "time/between", |time| time.between),
        Field::new("CPU s/GB", "cpu_s_per_gb", |cell: &VisitCell| Cell::seconds(cell.cpu_s_per_gb)),
        Field::new("failed", "failed", |cell: &VisitCell| Cell::count(cell.failed)),
    ];
    let tone = |cell: &VisitCell| if cell.failed > 0 { Tone::Bad } else { Tone::Plain };
    let note = "Each row is one way of visiting, measured for a while. at once: buckets at once for each request. Shares are those \
                of the slices' time.";
    Section::new("matrix", "Ways of visiting", note)
        .with(Part::Plot(Box::new(grid(visit, list.some(&fields, Plot::TWIN_ROWS_MAX, tone)))))
        .with(Part::Table(list.table(&fields, tone)))
}

fn grid(visit: &VisitResult, twin: Table) -> Plot {
    let mut slices: Vec<u32> = visit.matrix.iter().map(|cell| cell.slices).collect();
    slices.sort_unstable();
    slices.dedup();
    let name = |cell: &VisitCell| match cell.concurrency {
        Some(n) => format!("{}, {n} at once", form(cell)),
        None => form(cell).to_owned(),
    };
    let mut rows: Vec<String> = Vec::new();
    for cell in &visit.matrix {
        let name = name(cell);
        if !rows.contains(&name) {
            rows.push(name);
        }
    }
    let at = |row: &String, slices: u32| {
        let cell = visit.matrix.iter().find(|cell| cell.slices == slices && name(cell) == *row)?;
        Some((cell.documents_per_s, significant(cell.documents_per_s)))
    };
    let cells = rows.iter().map(|row| slices.iter().map(|slices| at(row, *slices)).collect());
    let grid = Grid {
        columns: slices.iter().map(|slices| counted((*slices).into(), "slice")).collect(),
        cells: cells.collect(),
        unit: "/s".to_owned(),
        rows,
    };
    Plot {
        id: "matrix-visit".to_owned(),
        caption: "Documents per second by slices and form of the replies".to_owned(),
        kind: PlotKind::Grid(grid),
        twin,
        is_pictured: false,
    }
}

#[cfg(test)]
mod tests;
