//! More calls than are let in: refused, counted, and nothing hangs.

use super::{database, rejected, run};
use crate::process::Place;

#[test]
fn bursts_of_500_into_a_queue_of_50_and_20_slots() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let flags = "--rhythm burst --burst 500 --delay 10ms --calls 10000 --mode managed --queue 50 --slots 20 --quiet";
    let args: Vec<&str> = ["voter", &target.url].into_iter().chain(flags.split(' ')).collect();
    let record = run(&place, &args);
    let full = record.count("/ledger/refused/queue_full");
    assert_eq!(record.count("/ledger/scheduled"), 10_000);
    // The first burst alone: 500 calls, of which 70 find a place at most, and some leave while they come.
    assert!(full > 1_000, "{:#}", record.0["ledger"]);
    assert_eq!(record.ok() + full + record.count("/ledger/refused/queue_timeout"), 10_000);
    assert_eq!(record.text("/voter/check"), "ok");
    assert_eq!(record.ok(), record.count("/voter/accepted") + rejected(&record));
    assert_eq!(record.count("/voter/processes/0/fails"), 10_000 - record.ok());
}

#[test]
fn a_queue_without_time_lets_calls_go() {
    let place = Place::busy();
    let target = database(&place, &[]);
    let flags = "--rhythm burst --burst 300 --delay 5ms --calls 6000 --mode managed --queue 1000 --slots 1 \
                 --queue-timeout 1ms --quiet";
    let words = flags.split_ascii_whitespace();
    let args: Vec<&str> = ["voter", &target.url].into_iter().chain(words).collect();
    let record = run(&place, &args);
    assert!(record.count("/ledger/refused/queue_timeout") > 0, "{:#}", record.0["ledger"]);
    assert_eq!(record.text("/voter/check"), "ok");
}
