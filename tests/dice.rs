//! Random moments from a seed that is printed, for tests that kill something: PLIMSOLL_KILL_SEED gives another one, and
//! PLIMSOLL_KILL_ROUNDS more of them.

use plimsoll_core::clock::wall_us;
use plimsoll_core::rng::Rng;
use std::time::Duration;

/// How often each of these tests does what it does.
pub fn rounds() -> u64 {
    number_from("PLIMSOLL_KILL_ROUNDS").unwrap_or(5)
}

fn number_from(variable: &str) -> Option<u64> {
    let text = std::env::var(variable).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{variable}={text}: write a whole number")))
}

/// Random numbers.
pub struct Dice(Rng);

impl Dice {
    pub fn new() -> Self {
        let seed = number_from("PLIMSOLL_KILL_SEED").unwrap_or_else(wall_us);
        eprintln!("PLIMSOLL_KILL_SEED={seed}");
        Self(Rng::new(seed))
    }

    /// Others, for a thread of its own.
    pub fn split(&mut self) -> Self {
        Self(Rng::new(self.0.next_u64()))
    }

    /// Below `limit`.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0.below(limit.max(1))
    }

    /// Sleeps for less than `limit`.
    pub fn sleep(&mut self, limit: Duration) -> Duration {
        let pause = Duration::from_micros(self.below(limit.as_micros() as u64));
        std::thread::sleep(pause);
        pause
    }
}
