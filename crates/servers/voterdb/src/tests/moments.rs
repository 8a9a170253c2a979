//! What is read over all partitions is one moment, and what is asked of many ways agrees.

use super::TestServer;
use crate::VoterConfig;
use plimsoll_wire::volt::Ring;
use std::sync::atomic::{AtomicBool, Ordering};

#[test]
fn reads_over_all_partitions_see_one_moment() {
    let server = TestServer::start(VoterConfig {
        partitions: 2,
        network_threads: 2,
        ..VoterConfig::default()
    });
    let ring = Ring::even(2);
    // Pairs of phone numbers: the first of partition 0, the second of partition 1.
    let of = |partition| {
        let ring = &ring;
        (2_120_000_000..2_130_000_000i64)
            .filter(move |phone| ring.partition_of_long(*phone) == partition)
    };
    let pairs: Vec<(i64, i64)> = of(0).zip(of(1)).take(2_000).collect();
    let mut reader = server.voter();
    let mut writer = server.client();
    let is_done = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let is_done = &is_done;
        scope.spawn(move || {
            for (first, second) in pairs {
                // Contestant 1 always goes before contestant 2.
                assert_eq!(writer.vote(first, 1, 1), 0);
                assert_eq!(writer.vote(second, 2, 1), 0);
            }
            is_done.store(true, Ordering::Release);
        });
        let mut reads = 0;
        let mut last = 0;
        while !is_done.load(Ordering::Acquire) || reads == 0 {
            let rows = reader.rows(
                "select contestant_number, count(*) from votes group by contestant_number order by 1",
            );
            let count =
                |place: usize| -> i64 { rows.get(place).map_or(0, |row| row[1].parse().unwrap()) };
            let (first, second) = (count(0), count(1));
            assert!(first == second || first == second + 1, "{first} and {second}");
            assert!(first >= last, "votes went away");
            (last, reads) = (first, reads + 1);
        }
    });
    assert_eq!(reader.cell("select count(*) from votes"), "4000");
}

/// Draws numbers without a state that anybody else has.
struct Draw(u64);

impl Draw {
    fn below(&mut self, most: u64) -> u64 {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

#[test]
fn a_plain_model_says_the_same() {
    for seed in 0..4 {
        let server = TestServer::start(VoterConfig { partitions: 3, ..VoterConfig::default() });
        let mut client = server.voter();
        let mut draw = Draw(seed);
        let mut model: Vec<(i64, i32)> = Vec::new();
        for _ in 0..400 {
            let phone = 2_120_000_000 + draw.below(40) as i64;
            let contestant = draw.below(8) as i32;
            match draw.below(20) {
                0 => {
                    let gone = model.iter().filter(|(_, of)| *of == contestant).count();
                    let sql = format!("delete from votes where contestant_number = {contestant}");
                    assert_eq!(client.cell(&sql), gone.to_string());
                    model.retain(|(_, of)| *of != contestant);
                }
                1 => {
                    let sql = format!(
                        "update votes set contestant_number = contestant_number + 1 where phone_number = {phone}"
                    );
                    let touched = model.iter_mut().filter(|(own, _)| *own == phone);
                    let touched = touched.map(|(_, of)| *of += 1).count();
                    assert_eq!(client.cell(&sql), touched.to_string());
                }
                _ => {
                    let votes = model.iter().filter(|(own, _)| *own == phone).count();
                    let expected = match (1..=6).contains(&contestant) {
                        false => 1,
                        true if votes >= 3 => 2,
                        true => 0,
                    };
                    assert_eq!(client.vote(phone, contestant, 3), expected);
                    if expected == 0 {
                        model.push((phone, contestant));
                    }
                }
            }
        }
        model.sort_unstable();
        let shown = |rows: Vec<Vec<String>>| -> Vec<(i64, i32)> {
            rows.iter().map(|row| (row[0].parse().unwrap(), row[1].parse().unwrap())).collect()
        };
        let rows = client.rows("select phone_number, contestant_number from votes order by 1, 2");
        assert_eq!(shown(rows), model, "seed {seed}");
        for view in [
            "select sum(num_votes) from v_votes_by_phone_number",
            "select sum(num_votes) from v_votes_by_contestant_number_state",
        ] {
            assert_eq!(client.cell(view), model.len().to_string(), "seed {seed}: {view}");
        }
    }
}
