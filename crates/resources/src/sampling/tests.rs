use super::*;
use crate::resolve::{Search, resolve};
use plimsoll_core::priority;
use plimsoll_record::resources::{GENERATOR, RESOURCES};

fn read(path: &Path) -> Vec<ResourceLine> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn resolved() -> Resolved {
    resolve(&Search { watches: &[], started: &[], addresses: &[], children: None })
        .unwrap()
        .unwrap()
}

/// Burns the processor until a moment of the monotonic clock.
fn burn_until(end_ns: u64) {
    let mut sum = 0u64;
    while now_ns() < end_ns {
        sum = (0..10_000u64).fold(sum, |a, b| a ^ b.wrapping_mul(a | 1));
    }
    assert_ne!(sum, 1);
}

/// The lines end with the run's own seconds, those of the warm-up are negative, and only the measured ones are in the means.
#[test]
fn lines_follow_the_clock_of_the_run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(RESOURCES);
    let sampling = Sampling::start(resolved(), Some(&path)).unwrap();
    let origin_ns = now_ns() + SECOND_NS + SECOND_NS / 2;
    sampling.measured_from(origin_ns);
    assert!(sampling.knows_start());
    burn_until(origin_ns + SECOND_NS + SECOND_NS / 2);
    sampling.reached(SECOND_NS);
    let result = sampling.finish(SECOND_NS + SECOND_NS / 2);
    let lines = read(&path);
    let ends: Vec<f64> = lines.iter().map(|line| line.at_s).collect();
    assert!(lines.len() >= 4 && ends[0] < 0.0, "{ends:?}");
    // A loaded machine may delay a look, and drop one.
    for pair in lines.windows(2) {
        assert!((pair[1].at_s - pair[1].span_s - pair[0].at_s).abs() < 1e-6, "{ends:?} have a gap");
    }
    assert!(ends.iter().any(|at_s| at_s.abs() < 0.2), "{ends:?}: the warm-up ends with a line");
    assert!(result.samples >= 1 && result.samples < lines.len() as u64, "{result:?}");
    let own = result.generator().unwrap();
    assert_eq!(own.pids, [std::process::id()]);
    let cpu = own.cpu_cores.unwrap();
    assert!(cpu.mean > 0.3, "{cpu:?}: this thread was never idle");
    assert!(own.rss_bytes.is_some_and(|rss| rss.mean > 1e6));
    assert!(own.disk_read_bytes_per_s.is_some());
    assert!(own.network_sent_bytes_per_s.is_none());
    assert!(own.unknown["network_sent_bytes"].contains("shares the network"), "{:?}", own.unknown);
    assert!(result.machine.cores_busy.iter().flatten().count() > 0);
}

/// A run of a tenth of a second has a line, also when its start was told at its end.
#[test]
fn a_short_run_has_a_line() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(RESOURCES);
    let sampling = Sampling::start(resolved(), Some(&path)).unwrap();
    let began_ns = now_ns();
    burn_until(began_ns + SECOND_NS / 10);
    sampling.measured_from(began_ns);
    let result = sampling.finish(SECOND_NS / 10);
    assert!(!read(&path).is_empty());
    assert!(result.samples >= 1, "{result:?}");
    assert!(result.generator().unwrap().cpu_cores.is_some());
    // A tenth of a second is too few ticks to say that a processor is used up.
    assert!(result.watched.iter().all(|one| one.at_limit.is_empty()), "{result:?}");
    assert!(result.machine.at_limit.is_empty(), "{result:?}");
}

#[test]
fn a_process_that_ends_is_a_remark_with_its_time() {
    let mut child = std::process::Command::new("sleep").arg("600").spawn().unwrap();
    let watches = [child.id().to_string().parse().unwrap()];
    let found =
        resolve(&Search { watches: &watches, started: &[], addresses: &[], children: None });
    let sampling = Sampling::start(found.unwrap().unwrap(), None).unwrap();
    sampling.measured_from(now_ns());
    std::thread::sleep(Duration::from_millis(1300));
    child.kill().unwrap();
    child.wait().unwrap();
    std::thread::sleep(Duration::from_millis(1100));
    let result = sampling.finish(2_400_000_000);
    let expected = format!("sleep: no process any more, process {} ended, at ", child.id());
    assert!(result.remarks.iter().any(|one| one.starts_with(&expected)), "{:?}", result.remarks);
    let watched = &result.watched[0];
    assert_eq!((watched.name.as_str(), watched.processes.unwrap().max), ("sleep", 1.0));
    assert!(result.watched[1].name == GENERATOR);
}

#[test]
fn a_file_that_cannot_be_written_is_a_remark_and_the_figures_stay() {
    let sampling = Sampling::start(resolved(), Some(Path::new("/dev/full"))).unwrap();
    sampling.measured_from(now_ns());
    std::thread::sleep(Duration::from_millis(200));
    let result = sampling.finish(SECOND_NS / 5);
    assert!(result.samples >= 1);
    assert!(result.remarks.iter().any(|one| one.contains("could not be written")), "{result:?}");
}

/// Policy, nice value and slice of the calling thread.
fn own() -> (u32, i32, u64) {
    // SAFETY: zero is a value of all fields, which are numbers.
    let mut found: libc::sched_attr = unsafe { std::mem::zeroed() };
    let size = size_of::<libc::sched_attr>() as u32;
    // SAFETY: the call writes no more than `size` bytes, and concerns the calling thread.
    let code = unsafe { libc::syscall(libc::SYS_sched_getattr, 0, &raw mut found, size, 0) };
    assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
    (found.sched_policy, found.sched_nice, found.sched_runtime)
}

fn after(steps: &'static [StepBack]) -> (u32, i32, u64) {
    let thread = std::thread::spawn(|| {
        steps.iter().for_each(|step| step_back(*step));
        own()
    });
    thread.join().unwrap()
}

#[test]
fn a_thread_steps_back_and_others_stay_where_they_are() {
    let before = own();
    let batch = libc::SCHED_BATCH as u32;
    for (how, nice) in [(&[StepBack::Behind], 12), (&[StepBack::Last], 19)] {
        let (policy, found, slice_ns) = after(how);
        assert_eq!((policy, found), (batch, nice.max(before.1)));
        // Systems before 6.12 have one slice for all, and name none.
        assert!([0, priority::SLICE_NS].contains(&slice_ns), "{slice_ns} ns");
    }
    // Back is never forward, which may be forbidden.
    assert_eq!(after(&[StepBack::Last, StepBack::Behind]).1, 19);
    assert_eq!(own(), before);
}
