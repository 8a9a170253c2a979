//! Prints the table of what search methods make of the zoo's plants.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use plimsoll_core::seek::goal::Goal;
use plimsoll_core::seek::rivals::Rival;
use plimsoll_zoo::ab;
use plimsoll_zoo::adversaries;
use plimsoll_zoo::changing;
use plimsoll_zoo::classes;
use plimsoll_zoo::enough;
use plimsoll_zoo::floors;
use plimsoll_zoo::history;
use plimsoll_zoo::intervals;
use plimsoll_zoo::models::{self, Model};
use plimsoll_zoo::parallel::map;
use plimsoll_zoo::sizing;
use plimsoll_zoo::table::{self, Outcome};
use plimsoll_zoo::watching;
use std::process::ExitCode;

const USAGE: &str = "plimsoll-zoo [SEEDS] [tuning|held-out|slow|degrading|classes|floors|enough|changing|watching|rivals|adversaries|all] [MODEL] \
                     [--width PERCENT] [--budget SECONDS] [--each] [--first-seed N]\n       \
                     plimsoll-zoo ab [SESSIONS] [MODEL] [--first-seed N] [--page FILE]\n       \
                     plimsoll-zoo intervals [RUNS] [TARGET] [--page FILE]\n       \
                     plimsoll-zoo history [--series N] [--seed N] [--page FILE]\n       \
                     plimsoll-zoo sizing [DRAWS] [--page FILE]";

/// Seeds of the held-out set begin here.
const HELD_OUT_SEEDS: u64 = 1_000_000;
/// A rival gets a fifth of the seeds: its searches are five to fifty times as long.
const RIVAL_SHARE: u64 = 5;

/// Arguments of the command line.
struct Arguments {
    seeds: u64,
    part: String,
    /// Beginning of the models' names.
    model: String,
    width: f64,
    budget_s: f64,
    /// True if every search is a line of its own.
    each: bool,
    /// Seeds of every set begin here; none: those of the published tables.
    first_seed: Option<u64>,
}

impl Arguments {
    fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            seeds: 100,
            part: "all".to_owned(),
            model: String::new(),
            width: 0.03,
            budget_s: 300.0,
            each: false,
            first_seed: None,
        };
        let mut place = 0;
        while let Some(argument) = given.next() {
            let mut number = || {
                let value = given.next().unwrap_or_default();
                let number = value.trim_end_matches('%').trim_end_matches('s').parse::<f64>();
                number
                    .ok()
                    .filter(|n| *n > 0.0 && n.is_finite())
                    .ok_or(format!("{argument} takes a number above 0, not {value:?}"))
            };
            match (argument.as_str(), place) {
                ("--width", _) => parsed.width = number()? / 100.0,
                ("--budget", _) => parsed.budget_s = number()?,
                ("--each", _) => parsed.each = true,
                ("--first-seed", _) => {
                    let value = given.next().unwrap_or_default();
                    let seed = value
                        .parse()
                        .map_err(|_| format!("{argument} takes a number, not {value:?}"))?;
                    parsed.first_seed = Some(seed);
                }
                (flag, 0 | 1) if flag.starts_with('-') => return Err(format!("no flag {flag}")),
                (seeds, 0) => {
                    parsed.seeds = seeds.parse().map_err(|_| format!("{seeds:?}: no number"))?;
                    place = 1;
                }
                (
                    "tuning" | "held-out" | "slow" | "degrading" | "classes" | "floors" | "enough"
                    | "changing" | "watching" | "rivals" | "adversaries" | "all",
                    1,
                ) => {
                    (parsed.part, place) = (argument, 2);
                }
                (_, 2) => (parsed.model, place) = (argument, 3),
                _ => return Err(format!("{argument:?} is no part of the zoo")),
            }
        }
        Ok(parsed)
    }

    fn has(&self, part: &str) -> bool {
        self.part == "all" || self.part == part
    }

    /// The first seed of a set whose published table begins at this one.
    fn first_seed(&self, published: u64) -> u64 {
        self.first_seed.unwrap_or(published)
    }

    fn chosen(&self, mut set: Vec<Model>) -> Vec<Model> {
        set.retain(|model| model.name.starts_with(&self.model));
        set
    }

    fn ours(&self, title: &str, set: Vec<Model>, first_seed: u64) {
        println!(
            "{title}, {} seeds a model, width {:.1} %, budget {:.0} s\n{}",
            self.seeds,
            100.0 * self.width,
            self.budget_s,
            table::HEAD
        );
        for model in self.chosen(set) {
            let goal = |seed| Goal {
                width: self.width,
                budget_s: self.budget_s,
                ..model.goal(first_seed + seed)
            };
            let searches = map(self.seeds, |seed| table::search(&model, &goal(seed)));
            if self.each {
                for (seed, (outcome, found)) in searches.iter().enumerate() {
                    println!("{}", table::each(first_seed + seed as u64, outcome, found));
                }
            }
            let outcomes: Vec<Outcome> = searches.into_iter().map(|(outcome, _)| outcome).collect();
            println!("{}", table::line(model.name, &outcomes, self.budget_s));
        }
        println!();
    }
}

impl Arguments {
    fn changing(&self) {
        println!(
            "Plants that change, {} seeds each, budget {:.0} s\n{}",
            self.seeds,
            self.budget_s,
            changing::HEAD
        );
        for plant in changing::all().iter().filter(|plant| plant.name.starts_with(&self.model)) {
            let found = map(self.seeds, |seed| {
                plant.search(self.first_seed(HELD_OUT_SEEDS) + seed, self.budget_s)
            });
            if self.each {
                for (seed, (outcome, found)) in found.iter().enumerate() {
                    let ended = if outcome.is_right() { "right" } else { "wrong" };
                    let certified = found.certified.as_ref().map(|run| run.rate_per_s);
                    println!(
                        "  {seed} {ended}: {:?} certified {certified:?} interval {:?} capacity {:?} phases {:?}: {}",
                        found.verdict,
                        found.interval_per_s,
                        found.capacity_per_s,
                        found.phases.iter().map(|p| p.from_s as u32).collect::<Vec<_>>(),
                        found.reason
                    );
                }
            }
            let outcomes: Vec<changing::Outcome> =
                found.into_iter().map(|(outcome, _)| outcome).collect();
            println!("{}", changing::line_of(plant.name, &outcomes));
        }
        println!();
    }
}

impl Arguments {
    fn classes(&self, first_seed: u64) {
        println!(
            "Two classes, a limit on each, {} seeds a plant, width {:.1} %, budget {:.0} s\n{}",
            self.seeds,
            100.0 * self.width,
            self.budget_s,
            table::HEAD
        );
        for plant in classes::all().iter().filter(|plant| plant.name.starts_with(&self.model)) {
            let goal =
                |seed| Goal { width: self.width, ..plant.goal(first_seed + seed, self.budget_s) };
            let searches = map(self.seeds, |seed| plant.search(&goal(seed)));
            if self.each {
                for (seed, (outcome, found)) in searches.iter().enumerate() {
                    println!("{}", table::each(first_seed + seed as u64, outcome, found));
                }
            }
            let outcomes: Vec<Outcome> = searches.into_iter().map(|(outcome, _)| outcome).collect();
            println!("{}", table::line(plant.name, &outcomes, self.budget_s));
        }
        println!();
    }

    fn floors(&self) {
        println!("Failures at every rate, {} seeds each\n{}", self.seeds, floors::HEAD);
        let seeds = (self.first_seed(HELD_OUT_SEEDS), self.seeds);
        for floor in floors::all() {
            println!("{}", floors::line_of(&floor, self.budget_s, seeds, self.each));
        }
        println!();
    }

    fn enough(&self, first_seed: u64) {
        println!(
            "Budgets that are named as enough, {} seeds a model\n{}",
            self.seeds,
            enough::HEAD
        );
        let all = models::tuning().into_iter().chain(models::held_out()).chain(models::slow());
        for model in self.chosen(all.collect()) {
            println!(
                "{}",
                enough::line_of(&model, self.budget_s, self.width, first_seed, self.seeds)
            );
        }
        println!();
    }
}

/// A target is followed for twice as long as it is searched.
const WATCHED: f64 = 2.0;

impl Arguments {
    fn watching(&self) {
        let budget_s = WATCHED * self.budget_s;
        println!("Followed, {} seeds each, budget {budget_s:.0} s\n{}", self.seeds, watching::HEAD);
        for plant in watching::all().iter().filter(|plant| plant.name.starts_with(&self.model)) {
            let followed = map(self.seeds, |seed| {
                plant.follow(self.first_seed(HELD_OUT_SEEDS) + seed, budget_s)
            });
            if self.each {
                for (seed, (_, found)) in followed.iter().enumerate() {
                    println!("  {seed} {:?}: {}", found.verdict, found.reason);
                    found.watch.iter().flatten().for_each(|one| println!("    {one:?}"));
                }
            }
            let outcomes: Vec<_> = followed.into_iter().map(|(outcome, _)| outcome).collect();
            println!("{}", watching::line_of(plant.name, &outcomes));
        }
        println!();
    }
}

fn rivals(models: &[Model], seeds: u64) {
    println!("Rivals, {seeds} seeds a model\n{}", table::RIVAL_HEAD);
    for rival in Rival::ALL {
        for model in models {
            let outcomes = map(seeds, |seed| table::rival(rival, model, seed));
            let name = format!("{rival:?} {}", model.name).to_lowercase();
            println!("{}", table::rival_line(&name, &outcomes));
        }
    }
    println!();
}

/// All methods on plants that change: the share of searches that name a line, or none.
fn compared(model: &str, (first_seed, seeds, budget_s): (u64, u64, f64)) {
    println!(
        "All methods on plants that change, {seeds} seeds each, plimsoll with {budget_s:.0} s\n{}",
        changing::COMPARED_HEAD
    );
    for plant in changing::all().iter().filter(|plant| plant.name.starts_with(model)) {
        let ours = map(seeds, |seed| plant.ours(first_seed + seed, budget_s));
        println!("{}", changing::compared_line(&format!("plimsoll {}", plant.name), &ours));
        for rival in Rival::ALL {
            let theirs = map(seeds, |seed| plant.rival(rival, first_seed + seed));
            let name = format!("{} {}", format!("{rival:?}").to_lowercase(), plant.name);
            println!("{}", changing::compared_line(&name, &theirs));
        }
    }
    println!();
}

fn quirks(seeds: u64, each: bool) {
    println!(
        "Adversaries, {seeds} seeds each: share that ended as it must, and the last one's reason"
    );
    for adversary in adversaries::all() {
        let found = map(seeds, |seed| adversary.search(seed));
        let right = found.iter().filter(|found| adversary.satisfied_by(found)).count();
        if each {
            for (seed, found) in found.iter().enumerate() {
                let ended = if adversary.satisfied_by(found) { "right" } else { "wrong" };
                println!(
                    "  {seed} {ended}: {:?} estimate {:?} {}",
                    found.verdict, found.estimate_per_s, found.reason
                );
            }
        }
        let reason = found.last().map(|found| found.reason.as_str()).unwrap_or_default();
        println!("{:12} {:5.1} %  {reason}", adversary.name, 100.0 * right as f64 / seeds as f64);
    }
}

/// The exit code of a part with a command line of its own.
fn ended(done: Result<(), String>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(problem) => {
            eprintln!("plimsoll-zoo: {problem}");
            ExitCode::from(64)
        }
    }
}

fn main() -> ExitCode {
    let given: Vec<String> = std::env::args().skip(1).collect();
    match given.first().map(String::as_str) {
        Some("ab") => return ab::command::run(&given[1..]),
        Some("intervals") => return intervals::command::run(&given[1..]),
        Some("history") => return history::run(&given[1..]),
        Some("sizing") => return ended(sizing::table::run(&given[1..])),
        _ => {}
    }
    let arguments = match Arguments::parse(given.into_iter()) {
        Ok(arguments) => arguments,
        Err(reason) => {
            eprintln!("plimsoll-zoo: {reason}\nusage: {USAGE}");
            return ExitCode::from(64);
        }
    };
    if arguments.has("tuning") {
        arguments.ours("Tuning set", models::tuning(), arguments.first_seed(0));
    }
    if arguments.has("held-out") {
        arguments.ours("Held-out set", models::held_out(), arguments.first_seed(HELD_OUT_SEEDS));
    }
    if arguments.has("slow") {
        arguments.ours("Slow set", models::slow(), arguments.first_seed(HELD_OUT_SEEDS));
    }
    if arguments.has("degrading") {
        let first_seed = arguments.first_seed(HELD_OUT_SEEDS);
        arguments.ours(
            "Targets that complete less under overload",
            models::degrading(),
            first_seed,
        );
    }
    if arguments.has("classes") {
        arguments.classes(arguments.first_seed(HELD_OUT_SEEDS));
    }
    if arguments.has("floors") {
        arguments.floors();
    }
    if arguments.has("enough") {
        arguments.enough(arguments.first_seed(HELD_OUT_SEEDS));
    }
    if arguments.has("changing") {
        arguments.changing();
    }
    if arguments.has("watching") {
        arguments.watching();
    }
    let few = arguments.seeds / RIVAL_SHARE;
    if arguments.has("rivals") {
        let all = models::tuning().into_iter().chain(models::slow());
        rivals(&arguments.chosen(all.collect()), few.clamp(1, 200));
        let seeds = (arguments.first_seed(HELD_OUT_SEEDS), few.clamp(1, 200), arguments.budget_s);
        compared(&arguments.model, seeds);
    }
    if arguments.has("adversaries") {
        quirks(few.clamp(1, 100), arguments.each);
    }
    ExitCode::SUCCESS
}
