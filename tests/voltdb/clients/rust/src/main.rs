//! Votes through the crate voltdb-client-rust: a port, how many, and the first telephone number.

use std::collections::VecDeque;
use std::sync::mpsc::Receiver;
use voltdb_client_rust::{
    Node, Value, VoltError, VoltTable, block_for_result, get_node, volt_param,
};

const NAMES: &str =
    "Edwina Burnam,Tabatha Gehling,Kelly Clauss,Jessie Alloway,Alana Bregman,Jessie Eichman";
/// Votes that are under way at once.
const UNDER_WAY: usize = 1000;

#[derive(Default)]
struct Counts {
    outcomes: [u64; 3],
    failed: u64,
}

impl Counts {
    fn wait(&mut self, vote: &Receiver<VoltTable>) -> Result<(), VoltError> {
        match block_for_result(vote) {
            Ok(table) => self.outcomes[long(table)? as usize] += 1,
            Err(problem) => {
                eprintln!("{problem}");
                self.failed += 1;
            }
        }
        Ok(())
    }
}

fn main() -> Result<(), VoltError> {
    let words: Vec<i64> =
        std::env::args().skip(1).map(|word| word.parse().expect("a number")).collect();
    let [port, votes, phone] = words[..] else { panic!("write: votes PORT VOTES PHONE") };
    let node = get_node(&format!("127.0.0.1:{port}"))?;
    let names = NAMES.to_owned();
    let contestants = long(block_for_result(&node.call_sp("Initialize", volt_param![6i32, names])?)?)?;
    let before = results(&node)?;
    let mut counts = Counts::default();
    let mut under_way = VecDeque::new();
    for number in 0..votes {
        if under_way.len() == UNDER_WAY {
            counts.wait(&under_way.pop_front().expect("one is under way"))?;
        }
        // One telephone votes again and again, and nobody has the number 999.
        let caller = if number % 50 == 0 { phone } else { phone + number };
        let contestant = if number % 100 == 99 { 999i32 } else { 1 + (number % 6) as i32 };
        under_way.push_back(node.call_sp("Vote", volt_param![caller, contestant, 2i64])?);
    }
    for vote in &under_way {
        counts.wait(vote)?;
    }
    let [accepted, no_contestant, over_limit] = counts.outcomes;
    println!(
        "{{\"contestants\":{contestants},\"accepted\":{accepted},\"no_contestant\":{no_contestant},\
         \"over_limit\":{over_limit},\"failed\":{},\"counted\":{}}}",
        counts.failed,
        results(&node)? - before
    );
    Ok(())
}

fn long(mut table: VoltTable) -> Result<i64, VoltError> {
    table.advance_row();
    table.take::<i64>(0)
}

fn results(node: &Node) -> Result<i64, VoltError> {
    let mut table = block_for_result(&node.call_sp("Results", Vec::new())?)?;
    let mut votes = 0;
    while table.advance_row() {
        votes += table.fetch::<i64>("TOTAL_VOTES")?;
    }
    Ok(votes)
}
