//! The search matrix from its command line: whole matrices against scripted engines, embedded ones and real ones.

pub mod engine;
mod going_on;
mod input;
mod matrix;
mod probing;
mod real;
mod reuse;
mod users;

use crate::process::{Ended, Place};
use crate::record::Record;
use engine::Engine;
use serde_json::Value;
use std::path::PathBuf;

/// Runs a matrix, or what else the command can do.
fn search(place: &Place, arguments: &[&str]) -> Ended {
    place.run([&["search"], arguments].concat())
}

/// A matrix of small cells.
fn small(place: &Place, arguments: &[&str]) -> Ended {
    let short = ["--sizes", "100kB", "--duration", "300ms", "--warmup", "100ms", "--users", "1,3"];
    search(place, &[arguments, &short].concat())
}

/// The folders of all records, the oldest first.
fn records(place: &Place) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(place.path().join("runs")) else { return Vec::new() };
    let mut all: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    all.sort();
    all
}

/// The newest record.
#[track_caller]
fn record(place: &Place) -> Record {
    let path = records(place).pop().unwrap().join("run.json");
    Record(serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap())
}

/// `mine=URL` of a scripted engine.
fn mine(engine: &Engine) -> String {
    format!("mine={}", engine.url)
}

fn list<'a>(record: &'a Record, name: &str) -> &'a Vec<Value> {
    record.0["search"][name].as_array().unwrap()
}

fn cells(record: &Record) -> &Vec<Value> {
    list(record, "cells")
}

/// Why cells have no number.
fn reasons(record: &Record) -> Vec<String> {
    let told = |cell: &Value| Some(cell["reason"].as_str()?.to_owned());
    cells(record).iter().filter_map(told).collect()
}
