//! The memory that a reader takes, counted by thread: the programs that link this crate allocate through it.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Counting;

thread_local! {
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

fn grown(bytes: usize) {
    // A thread that ends has no counters left, and is no longer asked.
    let _ = LIVE.try_with(|live| {
        live.set(live.get() + bytes as isize);
        let _ = MOST.try_with(|most| most.set(most.get().max(live.get())));
    });
}

fn shrunk(bytes: usize) {
    let _ = LIVE.try_with(|live| live.set(live.get() - bytes as isize));
}

// SAFETY: every call is passed on to the system's allocator; the counters do not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        grown(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        shrunk(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // Both may be there at once.
        grown(size);
        shrunk(layout.size());
        // SAFETY: the caller keeps the contract.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Memory that a reader may take at once: bytes whatever it reads, and bytes for each byte of its input.
#[derive(Clone, Copy, Debug)]
pub struct Allowed {
    /// Bytes for an empty input.
    pub base: usize,
    /// Bytes for each byte of the input.
    pub each: usize,
}

/// The most that was allocated at once while `work` ran, above what was there before, bytes; and its result.
pub fn most<T>(work: impl FnOnce() -> T) -> (usize, T) {
    let before = LIVE.get();
    let outer = MOST.replace(before);
    let result = work();
    let most = MOST.get();
    MOST.set(outer.max(most));
    (usize::try_from(most - before).unwrap_or(0), result)
}

/// Runs `work` on an input of `length` bytes.
///
/// # Panics
/// When it takes more memory than is allowed.
pub fn within<T>(length: usize, allowed: Allowed, work: impl FnOnce() -> T) -> T {
    let (most, result) = most(work);
    let limit = allowed.base + allowed.each * length;
    assert!(
        most <= limit,
        "{most} bytes of memory for an input of {length} bytes; {limit} are allowed"
    );
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_that_was_there_at_once_is_counted() {
        let (bytes, ()) = most(|| {
            drop(vec![0u8; 1000]);
            let kept = vec![0u8; 300];
            drop(vec![0u8; 500]);
            drop(kept);
        });
        assert_eq!(bytes, 1000);
        let (inner, (outer, ())) = most(|| most(|| drop(vec![0u8; 70])));
        assert_eq!((inner, outer), (70, 70));
    }

    #[test]
    #[should_panic(expected = "are allowed")]
    fn a_reader_that_takes_more_is_a_finding() {
        within(10, Allowed { base: 100, each: 2 }, || drop(vec![0u8; 121]));
    }
}
