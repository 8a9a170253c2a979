//! Tests that could not judge all that they are about, because the machine was not quiet: named when all have ended.

use std::collections::BTreeMap;
use std::sync::{Mutex, Once, PoisonError};

static NOTED: Mutex<BTreeMap<String, String>> = Mutex::new(BTreeMap::new());

/// Notes that the calling test could not judge something, and why.
pub fn note(why: &str) {
    static AT_EXIT: Once = Once::new();
    AT_EXIT.call_once(|| {
        // SAFETY: the function takes nothing, returns nothing, and does not unwind.
        unsafe { libc::atexit(tell) };
    });
    let thread = std::thread::current();
    let test = thread.name().unwrap_or("a test without a name").to_owned();
    let mut noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    noted.insert(test, why.to_owned());
}

extern "C" fn tell() {
    let noted = NOTED.lock().unwrap_or_else(PoisonError::into_inner);
    eprintln!("\nthe machine was not quiet: {} tests could not judge everything", noted.len());
    for (test, why) in noted.iter() {
        eprintln!("  {test}: {why}");
    }
}
