//! Delays of a generator thread, as the kernel counts them.
//!
//! | what | where |
//! |---|---|
//! | ready to run, and other programs had the core | `/proc/thread-self/schedstat`, second field |
//! | a quota of the control group | `cpu.stat` of the group, `throttled_usec` (version 1: `throttled_time`, ns) |
//! | the hypervisor ran other machines | `/proc/stat`, `steal`, of the thread's processor, each 100 ms |
//! | stopped and continued | SIGCONT, which is delivered whenever a stopped process goes on |
//! | suspended | `CLOCK_BOOTTIME` runs on, `CLOCK_MONOTONIC` does not |

use crate::health::thread_cpu_ns;
use plimsoll_core::clock::now_ns;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicU64, Ordering};

/// Sums since some moment in the past; only differences mean anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct VitalSigns {
    /// CPU time of the thread, ns.
    pub cpu_ns: u64,
    /// Ready to run and not running, ns.
    pub run_delay_ns: u64,
    /// Number of times that it was given a processor.
    pub timeslices: u64,
    /// Held back by a quota, ns.
    pub throttled_ns: u64,
    /// Given to other machines by the hypervisor while the thread was on its processor or waited for it, ns. Counted in
    /// ticks of 10 ms.
    pub stolen_ns: u64,
    /// Times that the process was stopped and continued.
    pub stops: u64,
}

impl VitalSigns {
    /// Returns the increase since `earlier`.
    #[must_use]
    pub const fn since(&self, earlier: &Self) -> Self {
        Self {
            cpu_ns: self.cpu_ns.saturating_sub(earlier.cpu_ns),
            run_delay_ns: self.run_delay_ns.saturating_sub(earlier.run_delay_ns),
            timeslices: self.timeslices.saturating_sub(earlier.timeslices),
            throttled_ns: self.throttled_ns.saturating_sub(earlier.throttled_ns),
            stolen_ns: self.stolen_ns.saturating_sub(earlier.stolen_ns),
            stops: self.stops.saturating_sub(earlier.stops),
        }
    }

    /// Longest time that a reply that came at the wrong moment may have waited for the thread, ns: what is more than the usual
    /// cost of being woken.
    #[must_use]
    pub const fn kept_ns(&self) -> u64 {
        let held_ns = self.run_delay_ns + self.throttled_ns;
        let usual_ns = USUAL_NS + self.timeslices * WAKE_UP_NS;
        let held_ns = if held_ns > usual_ns { held_ns } else { 0 };
        held_ns + self.stolen_ns
    }
}

/// Run delay of a stretch that is not worth mentioning, ns.
const USUAL_NS: u64 = 50_000;
/// Run delay of a wake-up on a core that nothing else uses, ns.
const WAKE_UP_NS: u64 = 4_000;
/// A wait that took longer slept; a poll that finds something at once takes less, ns.
const SLEPT_NS: u64 = 4_000;
/// A wait that ended this much later than it should was kept from its end, ns.
const OVERSLEPT_NS: u64 = 300_000;

/// Looks of a thread at its network, from which follows since when the finds of a wait can have been there.
#[derive(Clone, Copy, Debug, Default)]
pub struct Looks {
    /// Time at which the last wait had looked, ns.
    looked_ns: u64,
    stops: u64,
}

impl Looks {
    /// The earliest moment at which what a wait found can have arrived, ns.
    ///
    /// A thread that slept was woken by it; one that did not may have had it before itself since it looked last. One that
    /// was stopped may have been kept from it during all of its sleep, and one that woke later than it wanted to since then.
    pub fn arrived_after(&mut self, wait: &Waited) -> u64 {
        let was_stopped = wait.stops != std::mem::replace(&mut self.stops, wait.stops);
        let looked_ns = std::mem::replace(&mut self.looked_ns, wait.to_ns);
        let overslept = wait.to_ns > wait.until_ns.saturating_add(OVERSLEPT_NS);
        if let (Some(in_vain_ns), false) = (wait.in_vain_ns, was_stopped) {
            in_vain_ns
        } else if wait.to_ns - wait.gathered_ns.unwrap_or(wait.from_ns) <= SLEPT_NS {
            looked_ns
        } else if was_stopped {
            wait.from_ns
        } else if overslept {
            // What had come before would have woken it.
            wait.until_ns
        } else {
            wait.to_ns
        }
    }
}

/// A wait that has ended.
#[derive(Clone, Copy, Debug)]
pub struct Waited {
    /// Time at which it began, ns.
    pub from_ns: u64,
    /// Time at which it ended, ns.
    pub to_ns: u64,
    /// Time at which it should have ended at the latest, ns.
    pub until_ns: u64,
    /// Time at which it had gathered a batch and looked, ns, if it did that first.
    pub gathered_ns: Option<u64>,
    /// Time at which it had looked in vain last, ns, if it looked again and again.
    pub in_vain_ns: Option<u64>,
    /// Number of times that the process had been stopped when it ended.
    pub stops: u64,
}

static CONTINUED: AtomicU64 = AtomicU64::new(0);

extern "C" fn count_continued(_signal: libc::c_int) {
    CONTINUED.fetch_add(1, Ordering::Relaxed);
}

/// Number of times that this process was stopped and continued since the first thread read its vital signs.
#[inline]
pub fn stops() -> u64 {
    CONTINUED.load(Ordering::Relaxed)
}

/// Counts from now on how often this process is stopped and continued.
fn count_stops() {
    static INSTALLED: Once = Once::new();
    INSTALLED.call_once(|| {
        // SAFETY: the structure is zeroed, which is a valid value of it, and the handler only adds to an atomic.
        unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = count_continued as *const () as usize;
            action.sa_flags = libc::SA_RESTART;
            libc::sigaction(libc::SIGCONT, &raw const action, std::ptr::null_mut());
        }
    });
}

/// Reads the vital signs of the thread that made it.
#[derive(Debug)]
pub struct ThreadFiles {
    schedstat: Option<File>,
    quota: Option<Quota>,
    stat: Option<File>,
    stolen: Stolen,
    /// Number of processors of the machine.
    cpus: u64,
}

impl ThreadFiles {
    /// Opens the files of the calling thread; one that is not there counts as nothing.
    #[must_use]
    pub fn open() -> Self {
        count_stops();
        let open = |path| File::open(path).ok();
        Self {
            schedstat: open("/proc/thread-self/schedstat"),
            quota: Quota::own(),
            stat: open("/proc/stat"),
            stolen: Stolen::default(),
            cpus: processors(&std::fs::read_to_string("/proc/stat").unwrap_or_default()),
        }
    }

    /// Reads them.
    #[must_use]
    pub fn read(&mut self) -> VitalSigns {
        let (run_delay_ns, timeslices) =
            self.schedstat.as_ref().and_then(schedstat).unwrap_or_default();
        let at_ns = now_ns();
        if at_ns >= self.stolen.read_ns + STAT_EVERY_NS || self.stolen.read_ns == 0 {
            self.read_stat();
            self.stolen.read_ns = at_ns.max(1);
        }
        VitalSigns {
            cpu_ns: thread_cpu_ns(),
            run_delay_ns,
            timeslices,
            throttled_ns: self.quota.as_ref().map_or(0, Quota::throttled_ns),
            stolen_ns: self.stolen.sum_ns,
            stops: stops(),
        }
    }
}

impl ThreadFiles {
    fn read_stat(&mut self) {
        let Some(stat) = &self.stat else { return };
        let mut buffer = [0; STAT_BYTES];
        let length = stat.read_at(&mut buffer, 0).unwrap_or(0);
        let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        self.stolen.add(text, rustix::thread::sched_getcpu(), self.cpus);
    }
}

/// The lines of the first processors fit in here; of others the mean is taken.
const STAT_BYTES: usize = 4096;
/// Interval at which the count of the whole machine is read, ns: the kernel adds it up over all processors.
const STAT_EVERY_NS: u64 = 100_000_000;
/// A tick of `/proc/stat`, ns.
const TICK_NS: u64 = 10_000_000;

/// Time that the hypervisor took, as far as it concerns one thread.
#[derive(Clone, Copy, Debug, Default)]
struct Stolen {
    /// Time at which it was read last, ns.
    read_ns: u64,
    /// The processor that the thread was on, its count, and the mean of all, in ticks.
    cpu: usize,
    own: u64,
    mean: u64,
    /// Sum, ns.
    sum_ns: u64,
}

impl Stolen {
    /// Adds what has come since the last reading: of the thread's processor, or where it has changed that, the mean of all `cpus`.
    fn add(&mut self, stat: &str, cpu: usize, cpus: u64) {
        let Some((own, mean)) = steal(stat, cpu, cpus) else { return };
        let is_first = self.read_ns == 0;
        let ticks = match own {
            Some(own) if cpu == self.cpu => own.saturating_sub(self.own),
            _ => mean.saturating_sub(self.mean),
        };
        if !is_first {
            self.sum_ns += ticks * TICK_NS;
        }
        (self.cpu, self.own, self.mean) = (cpu, own.unwrap_or(0), mean);
    }
}

/// Number of processors that have a line in `/proc/stat`, at least 1.
fn processors(stat: &str) -> u64 {
    let lines = stat.lines().filter(|line| line.starts_with("cpu")).count() as u64;
    // The first one is all of them.
    lines.saturating_sub(1).max(1)
}

/// The eighth count of a processor's line in the beginning of `/proc/stat`, if it is there, and the mean of all `cpus` processors.
fn steal(stat: &str, cpu: usize, cpus: u64) -> Option<(Option<u64>, u64)> {
    // The last line may be cut inside a number.
    let (stat, _) = stat.rsplit_once('\n')?;
    let count = |line: &str| line.split_whitespace().nth(8)?.parse::<u64>().ok();
    let own_name = format!("cpu{cpu} ");
    let own = stat.lines().find(|line| line.starts_with(&own_name)).and_then(count);
    Some((own, count(stat.lines().next()?)? / cpus))
}

/// Second and third field: run delay, ns, and timeslices.
fn schedstat(file: &File) -> Option<(u64, u64)> {
    let mut buffer = [0; 96];
    let length = file.read_at(&mut buffer, 0).ok()?;
    let text = std::str::from_utf8(&buffer[..length]).ok()?;
    let mut fields = text.split_whitespace().skip(1);
    Some((fields.next()?.parse().ok()?, fields.next()?.parse().ok()?))
}

/// A control group with a CPU quota.
#[derive(Debug)]
struct Quota {
    stat: File,
    /// Length of a unit, ns.
    unit_ns: u64,
}

impl Quota {
    /// That of this process; none where no quota is set, so that nothing need be read.
    fn own() -> Option<Self> {
        let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
        groups.lines().find_map(|line| {
            let mut parts = line.splitn(3, ':');
            let (_, controllers, path) = (parts.next()?, parts.next()?, parts.next()?);
            if controllers.is_empty() {
                return Self::of_version_2(Path::new("/sys/fs/cgroup"), path);
            }
            let is_cpu = controllers.split(',').any(|one| one == "cpu");
            let roots = ["/sys/fs/cgroup/cpu,cpuacct", "/sys/fs/cgroup/cpu"];
            is_cpu
                .then(|| roots.iter().find_map(|root| Self::of_version_1(Path::new(root), path)))?
        })
    }

    fn of_version_2(root: &Path, path: &str) -> Option<Self> {
        let stat = stat_of_quota(root, path, |folder| {
            let limit = std::fs::read_to_string(folder.join("cpu.max")).unwrap_or_default();
            !limit.is_empty() && !limit.starts_with("max")
        })?;
        Some(Self { stat, unit_ns: 1_000 })
    }

    fn of_version_1(root: &Path, path: &str) -> Option<Self> {
        let stat = stat_of_quota(root, path, |folder| {
            let file = folder.join("cpu.cfs_quota_us");
            let quota = std::fs::read_to_string(file).unwrap_or_default();
            !quota.is_empty() && !quota.starts_with('-')
        })?;
        Some(Self { stat, unit_ns: 1 })
    }

    fn throttled_ns(&self) -> u64 {
        let mut buffer = [0; 1024];
        let length = self.stat.read_at(&mut buffer, 0).unwrap_or(0);
        let text = std::str::from_utf8(&buffer[..length]).unwrap_or_default();
        let value = text.lines().find_map(|line| {
            let (name, value) = line.split_once(' ')?;
            (name == "throttled_usec" || name == "throttled_time").then_some(value)
        });
        value.and_then(|value| value.trim().parse::<u64>().ok()).unwrap_or(0) * self.unit_ns
    }
}

/// The counts of the nearest group with a quota: it may stand above the process's own. In a container, `path` may be that of
/// the machine, of which only the container's root is there.
fn stat_of_quota(root: &Path, path: &str, has_quota: impl Fn(&Path) -> bool) -> Option<File> {
    let mut folder: PathBuf = root.join(path.trim_start_matches('/'));
    while !has_quota(&folder) {
        if folder == root || !folder.pop() {
            return None;
        }
    }
    File::open(folder.join("cpu.stat")).ok()
}

/// The clocks of the machine at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Clocks {
    /// Time that the machine was suspended since it started, ns.
    suspended_ns: i64,
    /// The wall clock less the monotonic one, suspends left out, ns.
    wall_ns: i64,
}

impl Clocks {
    /// Reads them. The C library is asked, as for the wall time in records, and not the kernel directly: a library that is put
    /// between (`LD_PRELOAD`) then moves both or neither, and a test can suspend the machine.
    #[must_use]
    pub fn read() -> Self {
        let at = |clock| {
            let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
            // SAFETY: the call writes one timespec, which lives until it has returned.
            unsafe { libc::clock_gettime(clock, &raw mut time) };
            time.tv_sec * 1_000_000_000 + time.tv_nsec
        };
        let (monotonic_ns, boot_ns) = (at(libc::CLOCK_MONOTONIC), at(libc::CLOCK_BOOTTIME));
        Self { suspended_ns: boot_ns - monotonic_ns, wall_ns: at(libc::CLOCK_REALTIME) - boot_ns }
    }

    /// For how long the machine was suspended since `earlier`, s, and by how much the wall clock was set, s.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> (f64, f64) {
        let suspended_s = (self.suspended_ns - earlier.suspended_ns) as f64 / 1e9;
        // The two clocks are read one after the other.
        let suspended_s = if suspended_s > 1e-3 { suspended_s } else { 0.0 };
        (suspended_s, (self.wall_ns - earlier.wall_ns) as f64 / 1e9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::MILLISECOND_NS as MS;

    fn waited(from_ns: u64, to_ns: u64) -> Waited {
        Waited { from_ns, to_ns, until_ns: 100 * MS, gathered_ns: None, in_vain_ns: None, stops: 0 }
    }

    #[test]
    fn a_reply_that_did_not_wake_anybody_may_have_waited_since_the_last_look() {
        let mut looks = Looks::default();
        assert_eq!(looks.arrived_after(&waited(MS, 5 * MS)), 5 * MS, "it woke the thread");
        // Two milliseconds of work, then a look that finds something at once.
        assert_eq!(looks.arrived_after(&waited(7 * MS, 7 * MS + 900)), 5 * MS);
        let gathering =
            Waited { gathered_ns: Some(8 * MS + 49_000), ..waited(8 * MS, 8 * MS + 50_000) };
        assert_eq!(looks.arrived_after(&gathering), 7 * MS + 900);
        // Nothing had come when the batch was gathered: it slept until something did.
        let in_vain =
            Waited { gathered_ns: Some(8 * MS + 100_000), ..waited(8 * MS + 50_000, 9 * MS) };
        assert_eq!(looks.arrived_after(&in_vain), 9 * MS);
        // A stop in the sleep, and a sleep that ended too late.
        let stopped = Waited { stops: 1, ..waited(10 * MS, 30 * MS) };
        assert_eq!(looks.arrived_after(&stopped), 10 * MS);
        let late = Waited { until_ns: 35 * MS, stops: 1, ..waited(31 * MS, 60 * MS) };
        assert_eq!(looks.arrived_after(&late), 35 * MS);
        let on_time = Waited { until_ns: 65 * MS, stops: 1, ..waited(61 * MS, 65 * MS + 60_000) };
        assert_eq!(looks.arrived_after(&on_time), 65 * MS + 60_000);
        let polled = Waited { in_vain_ns: Some(69 * MS), stops: 1, ..waited(66 * MS, 70 * MS) };
        assert_eq!(looks.arrived_after(&polled), 69 * MS);
    }

    #[test]
    fn the_usual_cost_of_waking_is_no_delay() {
        let quiet = VitalSigns { run_delay_ns: 300_000, timeslices: 100, ..VitalSigns::default() };
        assert_eq!(quiet.kept_ns(), 0);
        let shared = VitalSigns { run_delay_ns: 6_000_000, timeslices: 3, ..VitalSigns::default() };
        assert_eq!(shared.kept_ns(), 6_000_000);
        assert_eq!(shared.since(&quiet).run_delay_ns, 5_700_000);
    }

    #[test]
    fn this_thread_has_vital_signs() {
        let mut files = ThreadFiles::open();
        let before = files.read();
        let clocks = Clocks::read();
        // However long each sleep lasts, each ends in a timeslice of its own.
        for _ in 0..20 {
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let passed = files.read().since(&before);
        assert!(passed.timeslices >= 5, "{passed:?}: it slept several times");
        let (suspended_s, step_s) = Clocks::read().since(&clocks);
        assert!(suspended_s == 0.0 && step_s.abs() < 1.0, "{suspended_s} {step_s}");
    }

    #[test]
    fn stolen_time_is_that_of_the_threads_processor() {
        let stat = |first: u64, second: u64| {
            let line = |name: &str, steal| format!("{name} 9 0 9 9 0 0 0 {steal} 0 0\n");
            let all = line("cpu ", first + second);
            all + &line("cpu0", first) + &line("cpu1", second)
        };
        let mut stolen = Stolen::default();
        assert_eq!(processors(&stat(50, 70)), 2);
        stolen.add(&stat(50, 70), 1, 2);
        assert_eq!(stolen.sum_ns, 0, "earlier values do not matter");
        stolen.read_ns = 1;
        stolen.add(&stat(90, 73), 1, 2);
        assert_eq!(stolen.sum_ns, 3 * TICK_NS);
        stolen.add("nonsense", 1, 2);
        assert_eq!(stolen.sum_ns, 3 * TICK_NS);
    }

    #[test]
    fn stolen_time_of_a_processor_whose_line_does_not_fit_is_the_mean_of_all() {
        let stat = |steal: u64| {
            let line =
                |name: &str, steal| format!("{name} 9999999 0 9999999 9 0 0 0 {steal} 0 0\n");
            let each = (0..128).map(|cpu| line(&format!("cpu{cpu}"), steal));
            let mut all = line("cpu ", 128 * steal) + &each.collect::<String>();
            all.truncate(STAT_BYTES);
            all
        };
        let mut stolen = Stolen::default();
        stolen.add(&stat(50), 127, 128);
        stolen.read_ns = 1;
        stolen.add(&stat(90), 127, 128);
        assert_eq!(stolen.sum_ns, 40 * TICK_NS);
    }

    /// The handler counts, and the default of SIGCONT stays what it is.
    #[test]
    fn a_process_that_goes_on_knows_that_it_was_stopped() {
        count_stops();
        let before = stops();
        // SAFETY: the signal goes to this process, which handles it.
        unsafe { libc::raise(libc::SIGCONT) };
        assert!(stops() > before);
    }

    #[test]
    fn a_quota_above_the_own_group_is_found() {
        let root = tempfile::tempdir().unwrap();
        let own = root.path().join("a/b");
        std::fs::create_dir_all(&own).unwrap();
        std::fs::write(own.join("cpu.max"), "max 100000\n").unwrap();
        assert!(Quota::of_version_2(root.path(), "/a/b").is_none());
        std::fs::write(root.path().join("a/cpu.max"), "50000 100000\n").unwrap();
        let stat = "usage_usec 5\nnr_periods 3\nnr_throttled 2\nthrottled_usec 1234\n";
        std::fs::write(root.path().join("a/cpu.stat"), stat).unwrap();
        let quota = Quota::of_version_2(root.path(), "/a/b").unwrap();
        assert_eq!(quota.throttled_ns(), 1_234_000);
    }

    /// The path of a container's process is that of the machine; its folders are not there.
    #[test]
    fn a_quota_of_version_1_is_found_above_the_own_group_and_in_a_container() {
        let root = tempfile::tempdir().unwrap();
        let above = root.path().join("a");
        std::fs::create_dir_all(above.join("b")).unwrap();
        for folder in [root.path(), &above.join("b")] {
            std::fs::write(folder.join("cpu.cfs_quota_us"), "-1\n").unwrap();
        }
        assert!(Quota::of_version_1(root.path(), "/a/b").is_none());
        for (folder, path) in [(&above, "/a/b"), (&root.path().to_owned(), "/docker/0123")] {
            std::fs::write(folder.join("cpu.cfs_quota_us"), "50000\n").unwrap();
            let stat = "nr_periods 3\nnr_throttled 2\nthrottled_time 1234\n";
            std::fs::write(folder.join("cpu.stat"), stat).unwrap();
            assert_eq!(Quota::of_version_1(root.path(), path).unwrap().throttled_ns(), 1_234);
        }
    }
}
