//! Who has the machine: tests that share it, a few for each core at once; then tests that measure time and use little of it, one for
//! each core and one more; and at last those that need all of it.

use std::cell::Cell;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};

/// Places for each core: most tests take one, and wait for time to pass or for a program to answer.
const PLACES_PER_CORE: usize = 4;
/// Places of a test that keeps a core busy.
const BUSY: usize = 3;

struct Users {
    places: usize,
    wait_to_share: usize,
    /// Of those that keep a core busy: who waits for one place does not overtake them, unless it takes a place that is too few for
    /// them.
    wait_to_be_busy: usize,
    /// Those that measure time and use little of it.
    quiet: usize,
    wait_for_quiet: usize,
    is_taken: bool,
}

static USERS: Mutex<Users> = Mutex::new(Users {
    places: 0,
    wait_to_share: 0,
    wait_to_be_busy: 0,
    quiet: 0,
    wait_for_quiet: 0,
    is_taken: false,
});
static CHANGED: Condvar = Condvar::new();

thread_local! {
    /// A test that has a share already needs no other: it would wait for itself.
    static HAS_SHARE: Cell<bool> = const { Cell::new(false) };
}

/// A test's share of the machine, until it is dropped.
pub struct Share(Kind);

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
            return Self(Kind::OfItsOwnTest);
        }
        let most = PLACES_PER_CORE * cores();
        let is_busy = wanted > 1;
        let mut users = lock();
        users.wait_to_share += 1;
        users.wait_to_be_busy += usize::from(is_busy);
        while users.is_taken
            || users.quiet > 0
            || users.places + wanted > most
            || (!is_busy && users.wait_to_be_busy > 0 && users.places + BUSY <= most)
        {
            users = CHANGED.wait(users).unwrap_or_else(PoisonError::into_inner);
        }
        users.wait_to_share -= 1;
        users.wait_to_be_busy -= usize::from(is_busy);
        users.places += wanted;
        // Whoever waited behind this one may have a place, too.
        CHANGED.notify_all();
        Self(Kind::Places(wanted))
    }

    /// For a test that measures time with a load that leaves most of a core idle: others like it run beside it, one for each core
    /// and one more, and no test that shares. Waits until those are done.
    pub fn quiet() -> Self {
        assert!(!HAS_SHARE.replace(true), "this test has a share of the machine already");
        let mut users = lock();
        users.wait_for_quiet += 1;
        while users.is_taken || users.places + users.wait_to_share > 0 || users.quiet > cores() {
            users = CHANGED.wait(users).unwrap_or_else(PoisonError::into_inner);
        }
        users.wait_for_quiet -= 1;
        users.quiet += 1;
        Self(Kind::Quiet)
    }

    /// Waits until nobody else is there, or wants to share: whoever is alone comes last, so that the others need not
    /// end and begin again around it.
    pub fn whole() -> Self {
        assert!(!HAS_SHARE.replace(true), "this test has a share of the machine already");
        let mut users = lock();
        while users.is_taken
            || users.places + users.wait_to_share > 0
            || users.quiet + users.wait_for_quiet > 0
        {
            users = CHANGED.wait(users).unwrap_or_else(PoisonError::into_inner);
        }
        users.is_taken = true;
        Self(Kind::Whole)
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut users = lock();
        match self.0 {
            Kind::Whole => users.is_taken = false,
            Kind::Quiet => users.quiet -= 1,
            Kind::Places(places) => users.places -= places,
            Kind::OfItsOwnTest => return,
        }
        HAS_SHARE.set(false);
        CHANGED.notify_all();
    }
}

fn cores() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn lock() -> MutexGuard<'static, Users> {
    USERS.lock().unwrap_or_else(PoisonError::into_inner)
}
