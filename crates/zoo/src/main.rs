//! Prints the table: `plimsoll-zoo [SEEDS] [tuning|held-out|rivals|adversaries|all] [MODEL]`.
#![allow(clippy::print_stdout)]

use plimsoll_core::seek::rivals::Rival;
use plimsoll_zoo::adversaries;
use plimsoll_zoo::models::{self, Model};
use plimsoll_zoo::table::{self, Outcome};

/// Seeds of the held-out set begin here.
const HELD_OUT_SEEDS: u64 = 1_000_000;
/// A rival gets a fifth of the seeds: its searches are five to fifty times as long.
const RIVAL_SHARE: u64 = 5;

fn ours(title: &str, models: &[Model], first_seed: u64, seeds: u64) {
    println!("{title}, {seeds} seeds a model\n{}", table::HEAD);
    for model in models {
        let search = |seed| table::search(model, seed).0;
        let outcomes: Vec<Outcome> = (first_seed..first_seed + seeds).map(search).collect();
        println!("{}", table::line(model.name, &outcomes));
    }
    println!();
}

fn rivals(models: &[Model], seeds: u64) {
    println!(
        "Rivals, {seeds} seeds a model\nmethod and model         |        p5/med/p95 %     <3%   <5%  >20% |      | time \
         med/p95 s"
    );
    for rival in Rival::ALL {
        for model in models {
            let outcomes: Vec<Outcome> =
                (0..seeds).map(|seed| table::rival(rival, model, seed)).collect();
            let name = format!("{rival:?} {}", model.name).to_lowercase();
            println!("{}", table::rival_line(&name, &outcomes));
        }
    }
    println!();
}

fn quirks(seeds: u64) {
    println!(
        "Adversaries, {seeds} seeds each: share that ended as it must, and the last one's reason"
    );
    for adversary in adversaries::all() {
        let found: Vec<_> = (0..seeds).map(|seed| adversary.search(seed)).collect();
        let right = found.iter().filter(|found| adversary.satisfied_by(found)).count();
        let reason = found.last().map(|found| found.reason.as_str()).unwrap_or_default();
        println!("{:12} {:5.1} %  {reason}", adversary.name, 100.0 * right as f64 / seeds as f64);
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str).unwrap_or_default();
    let seeds: u64 = argument(0).parse().unwrap_or(100);
    let chosen = |set: Vec<Model>| -> Vec<Model> {
        set.into_iter().filter(|model| model.name.starts_with(argument(2))).collect()
    };
    let part = |name: &str| matches!(argument(1), "" | "all") || argument(1) == name;
    if part("tuning") {
        ours("Tuning set", &chosen(models::tuning()), 0, seeds);
    }
    if part("held-out") {
        ours("Held-out set", &chosen(models::held_out()), HELD_OUT_SEEDS, seeds);
    }
    if part("rivals") {
        rivals(&chosen(models::tuning()), (seeds / RIVAL_SHARE).clamp(1, 200));
    }
    if part("adversaries") {
        quirks((seeds / RIVAL_SHARE).clamp(1, 100));
    }
}
