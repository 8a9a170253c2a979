//! Prints the table of what plimsoll said about itself while it was sabotaged.
#![allow(clippy::print_stdout, clippy::print_stderr)]

use plimsoll_sabotage::judging::judge;
use plimsoll_sabotage::judging::table::Table;
use plimsoll_sabotage::virtual_time::draw;

fn main() {
    let count: u64 = std::env::args().nth(1).and_then(|a| a.parse().ok()).unwrap_or(100);
    let mut table = Table::default();
    for seed in 0..count {
        let scene = draw::scene(seed);
        let ended = scene.run();
        let ideal = scene.ideal().run();
        let reported = scene.reported(&ended);
        let finding = judge(&reported, &scene.truth(&ideal), scene.tolerance());
        table.add(scene.kind, &finding, scene.healthy);
        if finding.wrong.is_some() || finding.false_alarm.is_some() || finding.defects.len() > 1 {
            eprintln!("{seed} {} {:?}", scene.kind, finding);
        }
    }
    println!("{}", table.markdown());
}
