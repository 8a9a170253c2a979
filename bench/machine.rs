//! Where and under which conditions was measured.

use anyhow::{Context, Result, bail};
use plimsoll_core::clock::{format_utc, now_ns, wall_us};
use rustix::thread::sched_getaffinity;
use std::time::Duration;

/// Which cores target and generator are pinned to.
#[derive(Clone, Copy, Debug)]
pub struct Cores {
    /// The target's.
    pub target: usize,
    /// The generator's.
    pub generator: usize,
}

impl Cores {
    /// The first two cores that this process may use; the same one twice when there is only one.
    ///
    /// # Errors
    /// When the kernel does not say.
    pub fn choose() -> Result<Self> {
        let allowed = sched_getaffinity(None)?;
        let mut cores = (0..rustix::thread::CpuSet::MAX_CPU).filter(|&core| allowed.is_set(core));
        let Some(target) = cores.next() else { bail!("this process may run on no core") };
        Ok(Self { target, generator: cores.next().unwrap_or(target) })
    }

    /// One line for the reader.
    pub fn describe(&self) -> String {
        if self.target == self.generator {
            return format!(
                "Only core {} may be used: target and generator share it, so that no figure below says what a \
                 generator can do.",
                self.target
            );
        }
        format!("target pinned to core {}, generator to core {}", self.target, self.generator)
    }
}

/// Processor, cores and kernel.
pub fn describe() -> String {
    let machine = plimsoll_engine::health::machine();
    format!("{}, {} cores, Linux {}", machine.cpu, machine.cpus, machine.kernel)
}

/// What the whole machine had done at one moment.
pub struct Conditions {
    at_ns: u64,
    busy_s: f64,
    own_s: f64,
    stolen_s: f64,
    load: String,
}

impl Conditions {
    /// As they are now.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn now() -> Result<Self> {
        let stat = std::fs::read_to_string("/proc/stat").context("reading /proc/stat")?;
        let load = std::fs::read_to_string("/proc/loadavg").context("reading /proc/loadavg")?;
        // user nice system idle iowait irq softirq steal; the guests' time is already in the users'.
        let ticks: Vec<f64> = stat
            .lines()
            .next()
            .unwrap_or_default()
            .split_whitespace()
            .skip(1)
            .take(8)
            .map(|field| field.parse().unwrap_or(0.0))
            .collect();
        let second = rustix::param::clock_ticks_per_second() as f64;
        let busy: f64 = [0, 1, 2, 5, 6, 7].iter().filter_map(|&at| ticks.get(at)).sum();
        Ok(Self {
            at_ns: now_ns(),
            busy_s: busy / second,
            stolen_s: ticks.get(7).copied().unwrap_or(0.0) / second,
            own_s: cpu_s(libc::RUSAGE_SELF) + cpu_s(libc::RUSAGE_CHILDREN),
            load: load.split_whitespace().next().unwrap_or_default().to_owned(),
        })
    }

    /// One line on when, where and beside whom was measured, for a stretch that began at `self`.
    ///
    /// # Errors
    /// When `/proc` cannot be read.
    pub fn since(&self, how_long: &str) -> Result<String> {
        let now = Self::now()?;
        let wall_s = Duration::from_nanos(now.at_ns - self.at_ns).as_secs_f64();
        let cores = plimsoll_engine::health::machine().cpus;
        let all_s = wall_s * f64::from(cores.max(1));
        // What the host took away is nobody's work here.
        let stolen_s = now.stolen_s - self.stolen_s;
        let others =
            ((now.busy_s - self.busy_s) - stolen_s - (now.own_s - self.own_s)).max(0.0) / all_s;
        Ok(format!(
            "Measured {} UTC on {}; {how_long}; other processes took {:.0} % of the \
             processors meanwhile and the host {:.1} %, load average {} before and {} after.",
            format_utc(wall_us()).replace('T', " ").trim_end_matches('Z'),
            describe(),
            others * 100.0,
            stolen_s * 100.0 / all_s,
            self.load,
            now.load,
        ))
    }
}

fn cpu_s(who: libc::c_int) -> f64 {
    let mut usage = std::mem::MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the pointer is to live memory of the right type, which was zeroed.
    let usage = unsafe {
        libc::getrusage(who, usage.as_mut_ptr());
        usage.assume_init()
    };
    let seconds = |time: libc::timeval| time.tv_sec as f64 + time.tv_usec as f64 / 1e6;
    seconds(usage.ru_utime) + seconds(usage.ru_stime)
}
