//! CPU time of a second of sampling: `cost [THREADS] [SECONDS]` watches itself, with that many sleeping threads.
#![allow(clippy::print_stdout)]

use plimsoll_core::clock::now_ns;
use plimsoll_resources::resolve::{Search, resolve};
use plimsoll_resources::sampling::Sampling;
use rustix::time::{ClockId, clock_gettime};
use std::time::Duration;

fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|text| text.parse::<u64>());
    let threads = arguments.next().transpose()?.unwrap_or(100);
    let seconds = arguments.next().transpose()?.unwrap_or(10);
    for _ in 1..threads {
        std::thread::Builder::new().stack_size(64 * 1024).spawn(|| {
            loop {
                std::thread::park()
            }
        })?;
    }
    let search = Search { watches: &[], started: &[], addresses: &[], children: None };
    let found = resolve(&search).map_err(|(_, error)| error)?.ok_or("nothing is watched")?;
    let sampling = Sampling::start(found, None)?;
    sampling.measured_from(now_ns());
    // The first look reads what does not change.
    std::thread::sleep(Duration::from_millis(500));
    let before_s = cpu_s();
    std::thread::sleep(Duration::from_secs(seconds));
    let spent_ms = 1e3 * (cpu_s() - before_s) / seconds as f64;
    let result = sampling.finish(u64::MAX / 2);
    println!(
        "{threads} threads: {spent_ms:.2} ms of CPU time per second ({} looks)",
        result.samples
    );
    Ok(())
}
