//! Memory: how it grows with connections, and that it does not grow with time.

use super::{Bench, Claim, Section};
use crate::child::Child;
use crate::server::Server;
use crate::statistics::{short, whole};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::{SECOND_NS, now_ns};
use serde_json::Value;

/// When the long run is looked at, s.
const EARLY_S: u64 = 10;
/// When it is looked at again, s; it ends just after.
const LATE_S: u64 = 60;
/// Runs that only have to open their connections, s.
const SHORT_S: u64 = 4;

/// The most memory a process has had in use so far, MB of 10^6 bytes; none when it has ended.
fn peak_mb(child: &Child) -> Option<f64> {
    let status = std::fs::read_to_string(format!("/proc/{}/status", child.id())).ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: f64 = kib.split_whitespace().next()?.parse().ok()?;
    Some(kib * 1024.0 / 1e6)
}

/// One closed run; its peak memory at each of `at_s`, and at its end, and its requests.
fn run(bench: &Bench, server: &Server, clients: u32, at_s: &[u64], end_s: u64) -> Result<Peaks> {
    let line = format!(
        "load {} --clients {clients} --duration {end_s}s --no-record --quiet --json -",
        server.url
    );
    let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
    let start_ns = now_ns();
    let child = Child::start(&bench.plimsoll, &arguments, Some(bench.cores.generator))?;
    let mut peaks = Peaks::default();
    while !child.ends_within(20_000_000, &bench.interrupted)? {
        let passed_ns = now_ns() - start_ns;
        let Some(peak) = peak_mb(&child) else { continue };
        peaks.last_mb = peak;
        if at_s.get(peaks.at_mb.len()).is_some_and(|&at| passed_ns >= at * SECOND_NS) {
            peaks.at_mb.push(peak);
            eprint!("\r{clients} connections, {} s: {peak:.1} MB   ", passed_ns / SECOND_NS);
        }
        if passed_ns > (end_s + 30) * SECOND_NS {
            bail!("plimsoll did not end in time");
        }
    }
    let ended = child.finish(1, &bench.interrupted)?;
    let record: Value = serde_json::from_str(&ended.output)
        .with_context(|| format!("plimsoll's record; it said: {}", ended.errors.trim()))?;
    let figure = |path: &str| record.pointer(path).and_then(Value::as_f64).unwrap_or(f64::NAN);
    peaks.requests = figure("/ledger/ok");
    peaks.connections = figure("/counters/connects");
    if peaks.connections < f64::from(clients) {
        bail!("only {} of {clients} connections were opened", peaks.connections);
    }
    Ok(peaks)
}

#[derive(Default)]
struct Peaks {
    at_mb: Vec<f64>,
    last_mb: f64,
    requests: f64,
    connections: f64,
}

/// Peak memory (VmHWM) with 32, 1000 and 10,000 connections.
///
/// # Errors
/// When a run fails.
pub fn memory(bench: &Bench) -> Result<Section> {
    let server = Server::plimsoll(bench, "null", &[])?;
    let long = run(bench, &server, 32, &[EARLY_S, LATE_S], LATE_S + 1)?;
    let &[early, late] = &long.at_mb[..] else { bail!("the long run ended early") };
    let thousand = run(bench, &server, 1000, &[], SHORT_S)?;
    let ten_thousand = run(bench, &server, 10_000, &[], SHORT_S)?;
    eprint!("\r{:<60}\r", "");
    let mut table = Table::new(&["connections", "after", "requests so far", "peak memory MB"]);
    let share = long.requests * EARLY_S as f64 / (LATE_S + 1) as f64;
    let seconds = |s: u64| format!("{s} s");
    table.row(vec!["32".into(), seconds(EARLY_S), format!("about {}", whole(share)), short(early)]);
    table.row(vec!["32".into(), seconds(LATE_S), whole(long.requests), short(late)]);
    for (clients, peaks) in [("1,000", &thousand), ("10,000", &ten_thousand)] {
        let end = seconds(SHORT_S);
        table.row(vec![clients.into(), end, whole(peaks.requests), short(peaks.last_mb)]);
    }
    Ok(Section {
        title: "Memory of the generator, all histograms on".to_owned(),
        tables: vec![table],
        claims: vec![
            Claim::most("memory with 1,000 connections, MB", thousand.last_mb, 60.0),
            Claim::most("memory with 10,000 connections, MB", ten_thousand.last_mb, 250.0),
            Claim::most("growth from 10 s to 60 s at full speed, MB", late - early, 0.5),
        ],
        notes: vec![
            "Peak resident memory as the kernel counts it (VmHWM), one run each; buffers of sockets are the kernel's \
             and not in it."
                .to_owned(),
        ],
    })
}
