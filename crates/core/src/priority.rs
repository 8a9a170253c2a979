//! The order in which the threads of a run get a processor: those that send go before those that count, and these before those
//! that show.
//!
//! A low priority alone is not enough. Linux leaves a thread that runs its slice of up to 3 ms, even if one of a higher priority
//! wakes, unless the slice of that one is shorter ([EEVDF](https://docs.kernel.org/scheduler/sched-eevdf.html); threads have slices
//! of their own since 6.12). So threads that step back have one that is longer than the usual one.

/// Distance by which a thread steps back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepBack {
    /// Place behind the threads that send, from which it keeps up with them: a second must be kept before the next one is over. A
    /// second with 60 classes takes some 3 ms of work: at 12 such a thread has 7 % of a core beside one that is never idle, and
    /// 1 % beside six; at 19 it would have a quarter of a percent beside those.
    Behind,
    /// Place behind all others: what such a thread shows may be late.
    Last,
}

impl StepBack {
    const fn nice(self) -> i32 {
        match self {
            Self::Behind => 12,
            Self::Last => 19,
        }
    }
}

/// Slice of a thread that steps back, ns. The usual one depends on the number of processors and is at most 3 ms. Beside threads
/// that are never idle a longer slice is waited for in proportion, so it is hardly longer than that.
pub const SLICE_NS: u64 = 4_000_000;

/// Lets other threads go before the calling one, at once: a request that is due must not wait until this thread has encoded its
/// histograms or drawn its page, not even where both are bound to one core. It keeps a share beside threads that are never idle,
/// which an idle policy would not give it.
///
/// Should the system refuse, the run is as valid; its lag shows what that costs.
pub fn step_back(how: StepBack) {
    // SAFETY: the call reads no memory; the number 0 is the calling thread: for Linux a nice value is a thread's. On an error it
    // returns -1, which is as good as any other value here.
    let own = unsafe { libc::getpriority(libc::PRIO_PROCESS, 0) };
    // A thread may always step back, and often not forward.
    let nice = own.max(how.nice());
    let attributes = libc::sched_attr {
        size: size_of::<libc::sched_attr>() as u32,
        sched_policy: libc::SCHED_BATCH as u32,
        sched_flags: 0,
        sched_nice: nice,
        sched_priority: 0,
        sched_runtime: SLICE_NS,
        sched_deadline: 0,
        sched_period: 0,
    };
    // SAFETY: the call reads one structure of the size that it names, which outlives it, and concerns the calling thread only.
    let refused = unsafe { libc::syscall(libc::SYS_sched_setattr, 0, &raw const attributes, 0) };
    if refused == 0 {
        return;
    }
    // Sandboxes that do not know that call know these.
    let parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: as above.
    unsafe {
        libc::sched_setscheduler(0, libc::SCHED_BATCH, &raw const parameters);
        libc::setpriority(libc::PRIO_PROCESS, 0, nice);
    }
}
