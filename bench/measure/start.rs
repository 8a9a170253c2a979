//! From starting a program to the first byte of its first request.

use super::{Bench, Claim, Section};
use crate::generator::{Tool, Variant};
use crate::statistics::{median, ratios, short, spread};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::now_ns;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::io::Read;
use std::net::TcpListener;
use std::time::Duration;

/// Starts of each tool.
const STARTS: u32 = 20;
/// How long a start may take, s.
const LIMIT_S: u64 = 10;

/// Starts one tool, and kills it when its first request has come. Returns ms.
fn first_request_ms(bench: &Bench, variant: &Variant) -> Result<f64> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("http://{}/", listener.local_addr()?);
    let start_ns = now_ns();
    let child = variant.start(bench, &url, 2)?;
    let limit = Timespec { tv_sec: LIMIT_S as i64, tv_nsec: 0 };
    // wrk opens a connection only to see whether it can, and closes it; the first that asks is the one.
    let mut got = 0;
    while got == 0 {
        let waits = poll(&mut [PollFd::new(&listener, PollFlags::IN)], Some(&limit))?;
        if waits == 0 {
            bail!("{} did not connect within {LIMIT_S} s", variant.name);
        }
        let (mut stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(Duration::from_secs(LIMIT_S)))?;
        got = stream.read(&mut [0; 4096]).context("waiting for the first request")?;
    }
    let passed_ns = now_ns() - start_ns;
    drop(child);
    Ok(passed_ns as f64 / 1e6)
}

/// The median of twenty starts, each tool in turn.
///
/// # Errors
/// When a tool fails.
pub fn start(bench: &Bench) -> Result<Section> {
    let variants = [
        Variant::new(bench, Tool::Plimsoll, "plimsoll", &[])?,
        Variant::new(bench, Tool::H2load, "h2load --h1", &[])?,
        Variant::new(bench, Tool::Ab, "ab -k", &[])?,
        Variant::new(bench, Tool::Wrk, "wrk", &[])?,
    ];
    let mut times: Vec<Vec<f64>> = variants.iter().map(|_| Vec::new()).collect();
    for _ in 0..STARTS {
        for (variant, times) in variants.iter().zip(&mut times) {
            times.push(first_request_ms(bench, variant)?);
        }
    }
    let mut table = Table::new(&["generator", "start to first request ms", "ratio to wrk"]);
    for (variant, each) in variants.iter().zip(&times) {
        let ratio = ratios(each, &times[times.len() - 1]);
        table.row(vec![variant.name.clone(), spread(each, short), short(median(&ratio))]);
    }
    Ok(Section {
        title: "From starting the program to the first byte of its first request".to_owned(),
        tables: vec![table],
        claims: vec![Claim::most("start to first request, ms", median(&times[0]), 20.0)],
        notes: vec![format!(
            "{STARTS} starts of each tool in turn, 32 connections, seen by a listener of the benchmark itself; \
             fork and exec are in it."
        )],
    })
}
