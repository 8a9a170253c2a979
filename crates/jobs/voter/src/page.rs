//! The page of the voter benchmark: Erlvolt's lines, with what they leave open said beside them.

use crate::sheet;
use plimsoll_core::clock::format_utc;
use plimsoll_core::voter::WriteCheck;
use plimsoll_job::line;
use plimsoll_record::RunRecord;
use plimsoll_record::bench_shape::{Bench, Shape, Verbosity};
use plimsoll_record::voter::{TunePoint, TuneResult, VoterProcess, VoterResult};
use plimsoll_report::forms::{Below, Forms};
use plimsoll_report::number::{count, counted, percent, significant};
use plimsoll_report::page::{Column, Page, Tone};
use plimsoll_report::plain::printable;

/// The forms in which the voter benchmark is shown.
pub const FORMS: Forms = Forms {
    page: sections,
    headline: line::headline,
    figures: crate::figures::figures,
    sheet: sheet::sheet,
    ..Forms::LOAD
};

/// Columns that a contestant's name has, dots included.
const NAME_WIDTH: usize = 18;
/// Columns that a contestant's votes have.
const VOTES_WIDTH: usize = 11;
/// Most signs of a bar; each stands for a thousand calls a second up to there.
const BAR_MAX: usize = 60;
/// Points of a tuned load on the page; the record holds all.
const TRACE_MAX: usize = 12;

fn sections(page: &mut Page<'_>, record: &RunRecord) -> Option<Below> {
    let results = &record.job_results;
    whole(page, record, results.voter()?);
    // The times of a search are those of very different loads.
    Some(if results.seek().is_some() { Below::Books } else { Below::Figures })
}

/// Writes the votes and whether they are all there; on a verbose page below Erlvolt's lines, as many as its verbosity wants.
fn whole(page: &mut Page<'_>, record: &RunRecord, voter: &VoterResult) {
    let shape = voter.shape.as_ref();
    let verbosity = match page.is_verbose() {
        true => shape.map_or(Verbosity::Verbose, |shape| shape.verbosity),
        false => Verbosity::Quiet,
    };
    headline(page, record, voter);
    alerts(page, voter);
    if let Some(shape) = shape.filter(|_| verbosity >= Verbosity::NonVerbose) {
        page.line(&shape.to_string(), Tone::Plain);
    }
    if verbosity >= Verbosity::Verbose {
        phases(page, record, voter);
    }
    if let Some(found) = record.job_results.seek() {
        page.blank();
        line::sections(page, &found.finding);
        page.blank();
    }
    if let Some(tuned) = &voter.auto_tune {
        tune(page, tuned);
    }
    if page.is_verbose() {
        overall(page, record, voter);
    } else {
        clients(page, voter);
    }
    page.blank();
    answers(page, voter);
    if verbosity < Verbosity::Verbose && tone_of(voter.write_check()) != Tone::Bad {
        page.entry("Writes", &check_text(voter.write_check(), voter), tone_of(voter.write_check()));
    }
    page.blank();
}

/// Says which votes are missing, and which clients died.
fn alerts(page: &mut Page<'_>, voter: &VoterResult) {
    for (text, tone) in checks(voter).iter().filter(|(_, tone)| *tone == Tone::Bad) {
        page.alert("Writes", text, *tone);
    }
    for process in voter.processes.iter().filter(|process| !process.died.is_empty()) {
        let text = format!("client '{}': {}", printable(&process.client), printable(&process.died));
        page.alert("Died", &text, Tone::Bad);
    }
}

/// One line a client, if there are several.
fn clients(page: &mut Page<'_>, voter: &VoterResult) {
    if voter.processes.len() < 2 {
        return;
    }
    let columns = [
        Column::text("Clients"),
        Column::number("calls/s", 0),
        Column::number("calls", 0),
        Column::number("failed", 0),
        Column::number("for s", 1),
        Column::number("accepted", 2),
    ];
    let row = |process: &VoterProcess| {
        let cells = vec![
            format!("  {}", printable(&process.client)),
            count(process.rate_per_s as u64),
            count(process.calls + process.fails),
            count(process.fails),
            significant(process.seconds()),
            count(process.accepted),
        ];
        (cells, if process.fails > 0 { Tone::Bad } else { Tone::Plain })
    };
    let alive = voter.processes.iter().filter(|process| process.died.is_empty());
    page.table(&columns, &alive.map(row).collect::<Vec<_>>());
}

/// The rate of the calls, or that of a tuned load; a search has a headline of its own.
fn headline(page: &mut Page<'_>, record: &RunRecord, voter: &VoterResult) {
    if record.job_results.seek().is_some() {
        return;
    }
    let Some(tuned) = &voter.auto_tune else {
        let rates = &record.rate;
        let mut text = format!("{} calls/s", significant(rates.ok_per_s));
        let failed = record.ledger.failed.total();
        if failed > 0 {
            text += &format!(", {} failed", percent(failed as f64 / record.ledger.sent as f64));
        }
        return page.headline(&text, if failed > 0 { Tone::Bad } else { Tone::Strong });
    };
    let text = match tuned.certified_rate_per_s.zip(tuned.checks.last()) {
        Some((rate, check)) => format!(
            "{} calls/s hold {}, with {} calls in flight",
            significant(rate),
            printable(&tuned.goal),
            count(check.under_way.into())
        ),
        None => "no rate was certified".to_owned(),
    };
    page.headline(&text, Tone::Strong);
}

fn phases(page: &mut Page<'_>, record: &RunRecord, voter: &VoterResult) {
    page.line(&format!("Hosts: {}", printable(&voter.hosts.join(" "))), Tone::Plain);
    let connections = counted(record.counters.connects, "connection");
    page.line(&format!("connect ... {connections}"), Tone::Plain);
    let prepared = match voter.rows_before {
        Some(rows) => format!("ok; {} in the key range{}", rows_of(rows), range_of(voter)),
        None => "ok".to_owned(),
    };
    page.line(&format!("preparation ... {prepared}"), Tone::Plain);
    let ledger = &record.ledger;
    page.line(
        &format!(
            "calls ... {} of {} answered in {} s",
            count(ledger.ok),
            count(ledger.scheduled),
            significant(record.duration_s)
        ),
        Tone::Plain,
    );
    let unfinished = match ledger.unfinished {
        0 => "ok".to_owned(),
        n => format!("{} had no end", counted(n, "call")),
    };
    page.line(&format!("cool down ... {unfinished}"), Tone::Plain);
    for text in checks(voter) {
        page.line(&format!("check writes ... {}", text.0), text.1);
    }
    if !voter.contestants.is_empty() {
        contestants(page, voter);
    }
    page.line("close ... ok", Tone::Plain);
}

fn contestants(page: &mut Page<'_>, voter: &VoterResult) {
    let votes: u64 = voter.contestants.iter().map(|one| one.votes).sum();
    let head = format!(
        "results ...  votes: {:>VOTES_WIDTH$} ({})",
        count(votes),
        counted(voter.contestants.len() as u64, "contestant")
    );
    page.line(&head, Tone::Plain);
    for one in &voter.contestants {
        let name = printable(&one.name);
        page.line(
            &format!("{name:.>NAME_WIDTH$}: {:>VOTES_WIDTH$}", count(one.votes)),
            Tone::Plain,
        );
    }
}

/// One line a key range.
fn checks(voter: &VoterResult) -> Vec<(String, Tone)> {
    if voter.processes.len() < 2 {
        let check = voter.write_check();
        return vec![(check_text(check, voter), tone_of(check))];
    }
    let one = |process: &VoterProcess| {
        let check = process.write_check();
        let of = VoterResult {
            accepted: process.accepted,
            unknown: process.unknown,
            rows_before: process.rows_before,
            rows_after: process.rows_after,
            check_reason: process.died.clone(),
            ..VoterResult::default()
        };
        (format!("'{}' {}", printable(&process.client), check_text(check, &of)), tone_of(check))
    };
    voter.processes.iter().map(one).collect()
}

fn tone_of(check: WriteCheck) -> Tone {
    match check {
        WriteCheck::Ok => Tone::Good,
        WriteCheck::NotChecked => Tone::Warn,
        WriteCheck::Missing(_) | WriteCheck::Surplus(_) => Tone::Bad,
    }
}

fn rows_of(rows: u64) -> String {
    format!("{} row{}", count(rows), if rows == 1 { "" } else { "s" })
}

fn range_of(voter: &VoterResult) -> String {
    match voter.key_range.of {
        0 | 1 => String::new(),
        of => format!(" {} of {of}", voter.key_range.index + 1),
    }
}

/// The result of a check, with the numbers that it was made from.
fn check_text(check: WriteCheck, of: &VoterResult) -> String {
    let must = match of.unknown {
        0 => count(of.accepted),
        unknown => format!("{} to {}", count(of.accepted), count(of.accepted + unknown)),
    };
    let grown = of.rows_before.zip(of.rows_after);
    let Some((before, after)) = grown else {
        let why = match of.check_reason.as_str() {
            "" => "the rows were not counted",
            why => why,
        };
        if of.accepted == 0 && of.unknown == 0 {
            return format!("not checked: {}", printable(why));
        }
        return format!("not checked: {}; {must} new rows must be there", printable(why));
    };
    let there = format!(
        "{} new rows ({} before, {} after) for {} accepted votes",
        signed(before, after),
        count(before),
        count(after),
        count(of.accepted)
    );
    let unknown = match of.unknown {
        0 => String::new(),
        n => format!(" and {} with an unknown outcome: {must} are right", counted(n, "call")),
    };
    match check {
        WriteCheck::Ok => format!("ok: {there}{unknown}"),
        wrong => format!("FAILED, {wrong}: {there}{unknown}"),
    }
}

fn signed(before: u64, after: u64) -> String {
    if after >= before { count(after - before) } else { format!("-{}", count(before - after)) }
}

fn overall(page: &mut Page<'_>, record: &RunRecord, voter: &VoterResult) {
    for process in &voter.processes {
        if !process.died.is_empty() {
            let text = format!(
                "Client '{}' DIED: {}",
                printable(&process.client),
                printable(&process.died)
            );
            page.line(&text, Tone::Bad);
            continue;
        }
        // A call may fail or be refused; either way it was asked for.
        let asked = process.calls + process.fails;
        let share = process.fails as f64 / asked.max(1) as f64 * 100.0;
        page.line(
            &format!(
                "Client '{}' overall: {} T/sec throughput, {share:.2}% fails, total transactions: {}, fails: {}, total time: {:.3}sec",
                printable(&process.client),
                count(process.rate_per_s as u64),
                count(asked),
                count(process.fails),
                process.seconds()
            ),
            Tone::Strong,
        );
    }
    if voter.processes.len() > 1 {
        together(page, voter);
    }
    let start = voter.processes.iter().map(|p| p.started_us).filter(|&us| us > 0).min();
    let end = voter.processes.iter().map(|p| p.ended_us).max();
    if let Some((start, end)) = start.zip(end) {
        let plain = |us| format_utc(us).replace('T', " ").trim_end_matches('Z').to_owned();
        let is_voter = voter.shape.as_ref().is_none_or(|shape| shape.bench == Bench::Voter);
        let votes = match voter.rows_before.zip(voter.rows_after) {
            Some((before, after)) => {
                format!("{:+} new votes", i128::from(after) - i128::from(before))
            }
            None if is_voter => "not counted".to_owned(),
            None => "not written to".to_owned(),
        };
        page.line(
            &format!(
                "Plimsoll {}, bench started {}, ended {}, database: {votes}",
                record.tool.version,
                plain(start),
                plain(end)
            ),
            Tone::Plain,
        );
    }
    if let Some((agreed, first)) = voter.agreed_start_us.zip(start) {
        let late_ms = (i128::from(first) - i128::from(agreed)) as f64 / 1e3;
        let text = format!(
            "Start agreed on for {}: the first call was made {late_ms:.3} ms after it",
            format_utc(agreed)
        );
        page.line(&text, Tone::Plain);
    }
    let signs = (voter.totals.per_s / 1e3) as usize;
    let room = BAR_MAX.min(page.width() - 3);
    let more = if signs > room { ">" } else { "" };
    let bar = "+".repeat(signs.min(room));
    page.line(&format!("[{bar}{more}]"), Tone::Plain);
}

fn together(page: &mut Page<'_>, voter: &VoterResult) {
    let totals = &voter.totals;
    page.line(
        &format!(
            "Total transactions per second: {} T/sec ({} in {:.3}sec, from the first start to the last end)",
            count(totals.per_s as u64),
            count(totals.transactions),
            totals.wall_s
        ),
        Tone::Strong,
    );
    page.line(
        &format!(
            "Sum of the clients' own rates: {} T/sec; start skew {:.3} ms between the first client and the last",
            count(totals.sum_of_rates_per_s as u64),
            totals.start_skew_ms
        ),
        Tone::Plain,
    );
}

/// The outcomes of the calls, and the server's own times.
fn answers(page: &mut Page<'_>, voter: &VoterResult) {
    let is_voter = voter.shape.as_ref().is_none_or(|shape: &Shape| shape.bench == Bench::Voter);
    if is_voter {
        let votes = format!(
            "{} accepted, {} rejected (no such contestant {}, vote limit reached {}), {} with an unknown outcome",
            count(voter.accepted),
            count(voter.rejected.total()),
            count(voter.rejected.contestant),
            count(voter.rejected.limit),
            count(voter.unknown)
        );
        page.entry("Votes", &votes, Tone::Plain);
    }
    let errors: Vec<String> = voter
        .errors
        .iter()
        .map(|(what, n)| format!("{}: {}", printable(what), count(*n)))
        .collect();
    if !errors.is_empty() {
        page.entry("Not done", &errors.join(", "), Tone::Bad);
    }
    if voter.retries > 0 {
        let text = format!("{} after serialisation failures", counted(voter.retries, "retry"));
        page.entry("Again", &text.replace("retrys", "retries"), Tone::Plain);
    }
    let server = &voter.server.ms;
    if server.count > 0 {
        let text = format!(
            "mean {:.3} ms, p50 {:.0} ms, p99 {:.0} ms, max {:.0} ms inside the server, which reports whole milliseconds",
            server.mean, server.p50, server.p99, server.max
        );
        page.entry("Server", &text, Tone::Plain);
    }
}

/// True if the limit held in every window, so that the limit of the load is not known.
fn grew_to_the_end(tuned: &TuneResult) -> bool {
    let missed = |point: &TunePoint| !point.held && point.rate_per_s > 0.0;
    tuned.windows_held == tuned.windows && !tuned.trace.iter().any(missed)
}

fn tune(page: &mut Page<'_>, tuned: &TuneResult) {
    page.blank();
    let goal = printable(&tuned.goal);
    for (index, check) in tuned.checks.iter().enumerate() {
        let held = match (check.held, check.counts) {
            (true, true) => "held",
            (true, false) => "held, too short to count",
            (false, _) => "MISSED",
        };
        let text = format!(
            "{} in flight: {}/s, late {} of {} in {} s, {held}",
            count(check.under_way.into()),
            significant(check.rate_per_s),
            percent(check.late),
            count(check.calls),
            significant(check.seconds)
        );
        let tone = if check.held { Tone::Good } else { Tone::Bad };
        page.entry(if index == 0 { "Checked" } else { "" }, &text, tone);
    }
    let text = match tuned.best_rate_per_s.zip(tuned.best_under_way) {
        Some((rate, under_way)) => format!(
            "median of {}/s with {} in flight; {goal} held in {} of {} windows{}",
            significant(rate),
            significant(under_way),
            count(tuned.windows_held),
            count(tuned.windows),
            if grew_to_the_end(tuned) {
                "; it was never missed, so a longer run may find a higher rate"
            } else {
                ""
            }
        ),
        None if tuned.windows == 0 => "too short to settle".to_owned(),
        None => format!("{goal} held in none of {} windows", count(tuned.windows)),
    };
    page.entry("Tuned", &text, Tone::Plain);
    let whose = match tuned.latency.as_str() {
        "server" => "the time that the server reports",
        _ => "this client's time, from the intended start of a call",
    };
    if !page.is_verbose() {
        return page.blank();
    }
    page.entry("Late by", whose, Tone::Plain);
    page.blank();
    let columns = [
        Column::number("Tuning, s", 0),
        Column::number("in flight", 0),
        Column::number("calls/s", 0),
        Column::number("late", 0),
        Column::text("limit"),
    ];
    let row = |point: &TunePoint| {
        let cells = vec![
            format!("{:.3}", point.at_s),
            count(point.under_way.into()),
            count(point.rate_per_s as u64),
            percent(point.late),
            if point.held { "held" } else { "missed" }.to_owned(),
        ];
        (cells, Tone::Plain)
    };
    let step = tuned.trace.len().div_ceil(TRACE_MAX).max(1);
    let rows: Vec<_> = tuned.trace.iter().step_by(step).map(row).collect();
    if !rows.is_empty() {
        page.table(&columns, &rows);
    }
    page.note("--seek finds the rate of an open load, with an interval");
    page.blank();
}

#[cfg(test)]
pub mod tests;
