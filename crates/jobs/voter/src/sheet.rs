//! The page that is data of the voter benchmark and of `hello`: laps, queue, votes, the check of writes, and a tuned load.

mod tuned;

use plimsoll_core::voter::WriteCheck;
use plimsoll_job::line;
use plimsoll_record::RunRecord;
use plimsoll_record::bench_shape::{Bench, Shape};
use plimsoll_record::voter::{VoterLap, VoterProcess, VoterResult};
use plimsoll_report::number::{count, counted};
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{
    BARS_MAX, Bar, Bars, Cell, Field, Listed, Part, Section, Sheet, Table, Tone, YAxis,
};

/// Client processes whose laps are plotted; the record has those of all.
const PROCESSES_PLOTTED: usize = 4;

/// Adds the sections of the benchmark. Changes nothing for a record without it.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, _course: &Series) {
    let Some(voter) = record.job_results.voter() else { return };
    line::sheet(sheet, record);
    let is_search = record.job_results.seek().is_some();
    put_first(sheet, &decisions(voter, is_search), !is_search);
    let mut after = if is_search { "narrowing" } else { "decide" };
    let sections = [
        voter.auto_tune.as_ref().and_then(tuned::section),
        laps(voter),
        is_vote(voter).then(|| writes(voter)),
        clients(voter),
        votes(voter),
        server(voter),
    ];
    for section in sections.into_iter().flatten() {
        let id = section.id.clone();
        sheet.put_after(after, section);
        after = SECTIONS.iter().find(|known| **known == id).copied().unwrap_or(after);
    }
}

/// The sections, in their order.
const SECTIONS: [&str; 6] = ["tuning", "laps", "writes", "clients", "votes", "server"];

fn is_vote(voter: &VoterResult) -> bool {
    voter.shape.as_ref().is_none_or(|shape: &Shape| shape.bench == Bench::Voter)
}

fn decisions(voter: &VoterResult, is_search: bool) -> Vec<Decision> {
    let mut rows = Vec::new();
    if is_vote(voter) {
        let check = voter.write_check();
        let rows_wrong = Cell::count(voter.check_rows).from(&["voter", "check_rows"]);
        let row = match check {
            WriteCheck::NotChecked => Decision::figure("rows missing or too many", Cell::Unknown),
            WriteCheck::Ok => {
                Decision::figure("rows missing or too many", rows_wrong).against("0", true)
            }
            WriteCheck::Missing(_) => {
                Decision::figure("rows missing", rows_wrong).against("0", false)
            }
            WriteCheck::Surplus(_) => {
                Decision::figure("rows too many", rows_wrong).against("0", false)
            }
        };
        rows.push(row);
        let accepted = Cell::count(voter.accepted).from(&["voter", "accepted"]);
        rows.push(Decision::figure("votes accepted", accepted));
        let unknown = Cell::count(voter.unknown).from(&["voter", "unknown"]);
        rows.push(Decision::figure("votes with an unknown outcome", unknown));
    }
    if !is_search {
        let per_s = Cell::per_s(voter.totals.per_s).from(&["voter", "totals", "per_s"]);
        rows.push(Decision::figure("transactions/s, first start to last end", per_s));
    }
    if let Some(tuned) = &voter.auto_tune {
        let rate = Cell::or_unknown(tuned.certified_rate_per_s, Cell::per_s);
        let rate = rate.from(&["voter", "auto_tune", "certified_rate_per_s"]);
        rows.push(Decision::figure(&format!("calls/s that hold {}", tuned.goal), rate));
    }
    rows
}

/// Rates, calls in flight, the queue and times, lap by lap.
fn laps(voter: &VoterResult) -> Option<Section> {
    let with_laps = || voter.processes.iter().enumerate().filter(|(_, one)| !one.laps.is_empty());
    with_laps().next()?;
    let note = "A lap is the time between two rolling lines of a client (--dump-interval). success and fails count from the \
                start; in flight and queued are those at the end of a lap; the longest times and waits are those in it.";
    let mut section = Section::new("laps", "Laps", note);
    for (index, process) in with_laps().take(PROCESSES_PLOTTED) {
        section = section.with_some(plots(index, process, voter.processes.len() > 1));
        section = section.with_some(times(index, process));
    }
    let left = with_laps().count().saturating_sub(PROCESSES_PLOTTED);
    if left > 0 {
        let text =
            format!("The record has the laps of {} more.", counted(left as u64, "client process"));
        section = section.with(Part::Text(Tone::Plain, text.replace("processs", "processes")));
    }
    Some(section)
}

fn until<'a>() -> Field<'a, VoterLap> {
    Field::new("until s", "at_s", |lap: &VoterLap| Cell::seconds(lap.at_s))
}

fn plots(index: usize, process: &VoterProcess, is_one_of_many: bool) -> Option<Part> {
    let place = index.to_string();
    let at = ["voter", "processes", place.as_str(), "laps"];
    let list = Listed { at: &at, items: &process.laps };
    let whose =
        if is_one_of_many { format!(" of client '{}'", process.client) } else { String::new() };
    let known = |queued: Option<u64>| Cell::or_unknown(queued, Cell::count);
    let fields = vec![
        Field::new("lap/s", "lap_per_s", |lap: &VoterLap| Cell::per_s(lap.lap_per_s))
            .toned("achieved"),
        Field::new("total/s", "total_per_s", |lap: &VoterLap| Cell::per_s(lap.total_per_s))
            .toned("offered"),
        Field::new("in flight", "pending", |lap: &VoterLap| Cell::count(lap.pending))
            .toned("series-6")
            .on(1),
        Field::new("queued", "queued", move |lap: &VoterLap| known(lap.queued)).toned("warn").on(1),
        Field::new("fails", "fails", |lap: &VoterLap| Cell::count(lap.fails)).toned("failed").on(1),
    ];
    let caption = format!("Calls per second, calls in flight and in the queue{whose}");
    let axes = vec![YAxis::linear("/s"), YAxis::linear("calls")];
    let id = format!("laps-{}", index + 1);
    list.plot((&id, &caption), &until(), axes, fields).map(|plot| Part::Plot(Box::new(plot)))
}

fn times(index: usize, process: &VoterProcess) -> Option<Part> {
    let place = index.to_string();
    let at = ["voter", "processes", place.as_str(), "laps"];
    let list = Listed { at: &at, items: &process.laps };
    let known = |ms: Option<f64>| Cell::or_unknown(ms, Cell::ms);
    let fields = vec![
        Field::new("client mean", "client_mean_ms", |lap: &VoterLap| Cell::ms(lap.client_mean_ms))
            .toned("response"),
        Field::new("client longest", "client_max_ms", |lap: &VoterLap| Cell::ms(lap.client_max_ms))
            .toned("max"),
        Field::new("server mean", "server_mean_ms", move |lap: &VoterLap| {
            known(lap.server_mean_ms)
        })
        .toned("server"),
        Field::new("server longest", "server_max_ms", move |lap: &VoterLap| {
            known(lap.server_max_ms)
        })
        .toned("warn"),
        Field::new("longest wait in the queue", "queue_wait_max_ms", move |lap: &VoterLap| {
            known(lap.queue_wait_max_ms)
        })
        .toned("lag"),
    ];
    let caption = format!(
        "Times of client '{}': from the intended start, in the server, in the queue",
        process.client
    );
    let id = format!("lap-times-{}", index + 1);
    list.plot((&id, &caption), &until(), vec![YAxis::log("ms")], fields)
        .map(|plot| Part::Plot(Box::new(plot)))
}

/// The result of the check in a sentence.
fn checked(voter: &VoterResult) -> Part {
    let (tone, said) = match voter.write_check() {
        WriteCheck::Ok => (Tone::Good, "All writes are there.".to_owned()),
        WriteCheck::NotChecked => {
            let why = match voter.check_reason.as_str() {
                "" => "the rows were not counted",
                why => why,
            };
            (Tone::Warn, format!("The writes were not checked: {why}."))
        }
        wrong => (Tone::Bad, format!("The check FAILED: {wrong}.")),
    };
    Part::Text(tone, said)
}

/// Votes that the database rejected by its own rules, and calls sent again.
fn rejected(voter: &VoterResult) -> Vec<(String, Cell)> {
    vec![
        (
            "rejected: no such contestant".to_owned(),
            Cell::count(voter.rejected.contestant).from(&["voter", "rejected", "contestant"]),
        ),
        (
            "rejected: vote limit reached".to_owned(),
            Cell::count(voter.rejected.limit).from(&["voter", "rejected", "limit"]),
        ),
        (
            "sent again after serialisation failures".to_owned(),
            Cell::count(voter.retries).from(&["voter", "retries"]),
        ),
    ]
}

/// Rows in the database against acknowledged votes.
fn writes(voter: &VoterResult) -> Section {
    let note = "Every accepted vote must be a new row; a call with an unknown outcome may be one. One missing row fails the run.";
    let mut table = Table::new(&[
        "key range of",
        "#accepted",
        "#unknown",
        "#rows before",
        "#rows after",
        "#wrong rows",
        "check",
    ]);
    let mut row = |name: &str, at: &[&str], figures: [Option<u64>; 5], check: WriteCheck| {
        let fields = ["accepted", "unknown", "rows_before", "rows_after", "check_rows"];
        let mut cells = vec![Cell::text(name)];
        cells.extend(figures.iter().zip(fields).map(|(figure, field)| {
            Cell::or_unknown(*figure, Cell::count).from(&[at, &[field]].concat())
        }));
        cells.push(Cell::text(check.to_string()));
        table.row(if check.is_wrong() { Tone::Bad } else { Tone::Plain }, cells);
    };
    if voter.processes.len() > 1 {
        for (index, one) in voter.processes.iter().enumerate() {
            let place = index.to_string();
            let wrong = is_checked(one.write_check()).then_some(one.check_rows);
            let figures =
                [Some(one.accepted), Some(one.unknown), one.rows_before, one.rows_after, wrong];
            let at = ["voter", "processes", place.as_str()];
            row(&format!("client '{}'", one.client), &at, figures, one.write_check());
        }
    }
    let wrong = is_checked(voter.write_check()).then_some(voter.check_rows);
    let figures =
        [Some(voter.accepted), Some(voter.unknown), voter.rows_before, voter.rows_after, wrong];
    row("all calls", &["voter"], figures, voter.write_check());
    let mut section = Section::new("writes", "Check of the writes", note)
        .with(checked(voter))
        .with(Part::Table(table))
        .with(Part::Facts(rejected(voter)));
    if !voter.errors.is_empty() {
        let mut table = Table::new(&["calls that were surely not done", "#calls"]).sortable();
        for (why, calls) in &voter.errors {
            let calls = Cell::count(*calls).from(&["voter", "errors", why]);
            table.row(Tone::Bad, vec![Cell::text(why.clone()), calls]);
        }
        section = section.with(Part::Table(table));
    }
    section
}

fn is_checked(check: WriteCheck) -> bool {
    check != WriteCheck::NotChecked
}

/// The client processes, and what they are together.
fn clients(voter: &VoterResult) -> Option<Section> {
    if voter.processes.is_empty() {
        return None;
    }
    let list = Listed { at: &["voter", "processes"], items: &voter.processes };
    let fields = [
        Field::text("client", |one: &VoterProcess| one.client.clone()),
        Field::new("calls", "calls", |one: &VoterProcess| Cell::count(one.calls)),
        Field::new("fails", "fails", |one: &VoterProcess| Cell::count(one.fails)),
        Field::new("own calls/s", "rate_per_s", |one: &VoterProcess| Cell::per_s(one.rate_per_s)),
        Field::text("end", |one: &VoterProcess| match one.died.as_str() {
            "" => "ended".to_owned(),
            why => format!("DIED: {why}"),
        }),
    ];
    let tone = |one: &VoterProcess| if one.died.is_empty() { Tone::Plain } else { Tone::Bad };
    let totals = &voter.totals;
    let at = |field: &'static str| ["voter", "totals", field];
    let facts = vec![
        ("transactions".to_owned(), Cell::count(totals.transactions).from(&at("transactions"))),
        ("first start to last end".to_owned(), Cell::seconds(totals.wall_s).from(&at("wall_s"))),
        ("transactions/s".to_owned(), Cell::per_s(totals.per_s).from(&at("per_s"))),
        (
            "sum of the clients' own rates".to_owned(),
            Cell::per_s(totals.sum_of_rates_per_s).from(&at("sum_of_rates_per_s")),
        ),
        ("start skew".to_owned(), Cell::ms(totals.start_skew_ms).from(&at("start_skew_ms"))),
    ];
    let note = "calls: those that came to their end; fails: those that failed, were refused by the queue or have no known end.";
    let shape = voter.shape.as_ref().map(|shape| Part::Text(Tone::Plain, shape.to_string()));
    Some(
        Section::new("clients", "Clients", note)
            .with_some(shape)
            .with(Part::Facts(facts))
            .with(Part::Table(list.table(&fields, tone))),
    )
}

/// Votes of the contestants as the database counts them.
fn votes(voter: &VoterResult) -> Option<Section> {
    if voter.contestants.is_empty() {
        return None;
    }
    let list = Listed { at: &["voter", "contestants"], items: &voter.contestants };
    let fields = [
        Field::new("number", "number", |one: &plimsoll_record::voter::ContestantVotes| {
            Cell::count(one.number.into())
        }),
        Field::text("contestant", |one: &plimsoll_record::voter::ContestantVotes| one.name.clone()),
        Field::new("votes", "votes", |one: &plimsoll_record::voter::ContestantVotes| {
            Cell::count(one.votes)
        }),
    ];
    let bar = |one: &plimsoll_record::voter::ContestantVotes| Bar {
        name: one.name.clone(),
        values: vec![one.votes as f64],
        text: count(one.votes),
    };
    let bars = Bars {
        caption: "Votes in the database, earlier runs included".to_owned(),
        parts: vec![("votes".to_owned(), "achieved")],
        bars: voter.contestants.iter().take(BARS_MAX).map(bar).collect(),
        twin: list.table(&fields, |_| Tone::Plain),
    };
    Some(Section::new("votes", "Votes", "").with(Part::Bars(Box::new(bars))))
}

/// The times that the server reports.
fn server(voter: &VoterResult) -> Option<Section> {
    let ms = &voter.server.ms;
    if ms.count == 0 {
        return None;
    }
    let at = |field: &'static str| ["voter", "server", "ms", field];
    let points = [
        ("mean", "mean", ms.mean),
        ("p50", "p50", ms.p50),
        ("p90", "p90", ms.p90),
        ("p95", "p95", ms.p95),
        ("p99", "p99", ms.p99),
        ("longest", "max", ms.max),
    ];
    let mut facts = vec![("calls".to_owned(), Cell::count(ms.count).from(&at("count")))];
    facts.extend(points.map(|(name, field, value)| {
        (name.to_owned(), Cell::number(value, format!("{value:.3} ms")).from(&at(field)))
    }));
    let note = "Measured inside the server, which reports whole milliseconds; all other times are measured by this client.";
    Some(Section::new("server", "Times that the server reports", note).with(Part::Facts(facts)))
}

#[cfg(test)]
mod tests;
