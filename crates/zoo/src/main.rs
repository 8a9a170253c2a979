//! Prints the table: `plimsoll-zoo [SEEDS] [tuning|held-out|all] [MODEL] [trace]`.
#![allow(clippy::print_stdout)]

use plimsoll_zoo::models;
use plimsoll_zoo::table::{self, Outcome};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let argument = |at: usize| arguments.get(at).map(String::as_str).unwrap_or_default();
    let seeds: u64 = argument(0).parse().unwrap_or(100);
    let (mut chosen, mut first_seed) = (models::tuning(), 0);
    if argument(1) == "held-out" {
        (chosen, first_seed) = (models::held_out(), 1_000_000);
    }
    println!("{}", table::HEAD);
    for model in chosen.iter().filter(|model| model.name.starts_with(argument(2))) {
        let outcomes: Vec<Outcome> = {
            if let Ok(f) = std::env::var("FIRST") {
                first_seed = f.parse().unwrap();
            }
            (first_seed..first_seed + seeds)
        }
        .map(|seed| {
            let (outcome, found) = table::search(model, seed);
            if argument(3) == "trace" {
                println!("{seed} {outcome:.3?} {:?} slope {:?} cap {:?}", found.verdict, found.slope, found.capacity_per_s);
                for span in &found.phases {
                    println!("    {:?} {:.0}-{:.0}", span.phase, span.from_s, span.until_s);
                }
            }
            outcome
        })
        .collect();
        println!("{}", table::line(model.name, &outcomes));
    }
}
