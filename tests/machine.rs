//! Places on the machine: tests that share it come first, a few for each core at once, and more while it is idle; then tests that measure
//! time and use little of it, two for each core; and at last those that need all of it.

mod idle;

use idle::Idle;
use plimsoll_core::clock::{SECOND_NS, now_ns};
use std::cell::Cell;
use std::io::Write as _;
use std::sync::{Condvar, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Places for each core: most tests take one, and wait for time to pass or for a program to answer.
const PLACES_PER_CORE: usize = 4;
/// Places beyond those, for each core, while the machine is idle for this share of a second: all that run wait for something.
const MORE_PER_CORE: usize = 3;
const IDLE: f64 = 0.25;
/// Tests for each core that measure time and leave most of a core idle.
const QUIET_PER_CORE: usize = 2;
/// Places of a test that keeps a core busy.
const BUSY: usize = 3;
/// Time after the start in which no test has the machine for itself: those that share it come one after the other.
const ALL_HAVE_COME_NS: u64 = 2 * SECOND_NS;

struct Users {
    places: usize,
    wait_to_share: usize,
    /// Of those that keep a core busy: who waits for one place does not overtake them, unless it takes a place that is too few for
    /// them.
    wait_to_be_busy: usize,
    /// Those that measure time and use little of it.
    quiet: usize,
    /// Their turns, of long ones and of the others. Long ones begin first: one that began last would keep the machine idle for its
    /// whole time.
    quiet_turns: [Turns; 2],
    is_taken: bool,
    idle: Idle,
}

/// Numbers of the next that comes, and of the next that may begin.
#[derive(Clone, Copy)]
struct Turns {
    next: u64,
    begins: u64,
}

impl Turns {
    const NONE: Self = Self { next: 0, begins: 0 };

    fn come(&mut self) -> u64 {
        self.next += 1;
        self.next - 1
    }

    fn are_waiting(self) -> bool {
        self.next > self.begins
    }
}

impl Users {
    /// Returns true if a quiet test may begin: it is its turn, and no long one waits before it.
    fn is_turn(&self, kind: usize, turn: u64) -> bool {
        let waits_before = self.quiet_turns[..kind].iter().any(|turns| turns.are_waiting());
        self.quiet_turns[kind].begins == turn && !waits_before
    }

    /// Returns true if `wanted` places are free, or if the machine has time for more than there are places for.
    fn has_room(&mut self, wanted: usize) -> bool {
        let most = PLACES_PER_CORE * cores();
        if self.places + wanted <= most {
            return true;
        }
        // One in each second: what it needs is seen in the next one.
        self.places + wanted <= most + MORE_PER_CORE * cores()
            && self.idle.share().is_some_and(|share| share > IDLE)
    }
}

static USERS: Mutex<Users> = Mutex::new(Users {
    places: 0,
    wait_to_share: 0,
    wait_to_be_busy: 0,
    quiet: 0,
    quiet_turns: [Turns::NONE; 2],
    is_taken: false,
    idle: Idle::new(),
});
static BEGUN_NS: LazyLock<u64> = LazyLock::new(now_ns);
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// A test that has a share already needs no other: it would wait for itself.
    static HAS_SHARE: Cell<bool> = const { Cell::new(false) };
}

/// A test's share of the machine, until it is dropped.
pub struct Share {
    kind: Kind,
    since_ns: u64,
}

#[derive(Debug)]
enum Kind {
    Whole,
    Quiet,
    Places(usize),
    OfItsOwnTest,
}

impl Share {
    /// Waits for a place among those who share.
    pub fn part() -> Self {
        Self::places(1)
    }

    /// The same for a test that keeps a core busy, with a Java machine that starts, say.
    pub fn busy() -> Self {
        Self::places(BUSY)
    }

    fn places(wanted: usize) -> Self {
        if HAS_SHARE.replace(true) {
            return Self::of(Kind::OfItsOwnTest);
        }
        let most = PLACES_PER_CORE * cores();
        let is_busy = wanted > 1;
        let mut users = lock();
        users.wait_to_share += 1;
        users.wait_to_be_busy += usize::from(is_busy);
        while users.is_taken
            || users.quiet > 0
            || (!is_busy && users.wait_to_be_busy > 0 && users.places + BUSY <= most)
            || !users.has_room(wanted)
        {
            users = wait(users);
        }
        users.wait_to_share -= 1;
        users.wait_to_be_busy -= usize::from(is_busy);
        users.places += wanted;
        // Whoever waited behind this one may have a place, too.
        CHANGED.notify_all();
        Self::of(Kind::Places(wanted))
    }

    /// For a test that measures time with a load that leaves most of a core idle: others like it run beside it, two for each core,
    /// and no test that shares. Waits until those are done; the first that comes begins first, after all that are long.
    pub fn quiet(is_long: bool) -> Self {
        assert!(!HAS_SHARE.replace(true), "this test has a share of the machine already");
        let mut users = lock();
        let kind = usize::from(!is_long);
        let turn = users.quiet_turns[kind].come();
        while is_beginning()
            || users.is_taken
            || users.places + users.wait_to_share > 0
            || users.quiet >= QUIET_PER_CORE * cores()
            || !users.is_turn(kind, turn)
        {
            users = wait(users);
        }
        users.quiet_turns[kind].begins += 1;
        users.quiet += 1;
        // The next one may begin beside it.
        CHANGED.notify_all();
        Self::of(Kind::Quiet)
    }

    /// Waits until nobody else is there, or wants to share: whoever is alone comes last, so that the others need not
    /// end and begin again around it.
    pub fn whole() -> Self {
        assert!(!HAS_SHARE.replace(true), "this test has a share of the machine already");
        let mut users = lock();
        while is_beginning()
            || users.is_taken
            || users.places + users.wait_to_share > 0
            || users.quiet > 0
            || users.quiet_turns.iter().any(|turns| turns.are_waiting())
        {
            users = wait(users);
        }
        users.is_taken = true;
        Self::of(Kind::Whole)
    }

    fn of(kind: Kind) -> Self {
        Self { kind, since_ns: now_ns() }
    }

    /// Appends to the file that `PLIMSOLL_TEST_PLACES` names how long this share was held, s, its kind and its test: where the time
    /// of the suite goes.
    fn note(&self) {
        let Some(path) = std::env::var_os("PLIMSOLL_TEST_PLACES") else { return };
        let thread = std::thread::current();
        let held_s = (now_ns() - self.since_ns) as f64 / SECOND_NS as f64;
        let name = thread.name().unwrap_or("?");
        let line = format!("{held_s:7.1} {:?} {name}\n", self.kind);
        let file = std::fs::File::options().create(true).append(true).open(path);
        file.and_then(|mut file| file.write_all(line.as_bytes())).unwrap();
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        if !matches!(self.kind, Kind::OfItsOwnTest) {
            self.note();
        }
        let mut users = lock();
        match self.kind {
            Kind::Whole => users.is_taken = false,
            Kind::Quiet => users.quiet -= 1,
            Kind::Places(places) => users.places -= places,
            Kind::OfItsOwnTest => return,
        }
        HAS_SHARE.set(false);
        CHANGED.notify_all();
    }
}

/// Waits for a change, or for a second: the machine may be idle now.
fn wait(users: MutexGuard<'_, Users>) -> MutexGuard<'_, Users> {
    let waited = CHANGED.wait_timeout(users, Duration::from_secs(1));
    waited.unwrap_or_else(PoisonError::into_inner).0
}

fn is_beginning() -> bool {
    let begun_ns = *BEGUN_NS;
    now_ns() - begun_ns < ALL_HAVE_COME_NS
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn lock() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}
