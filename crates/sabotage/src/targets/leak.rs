//! A planted leak, so that a judgement of memory or descriptors can be seen to fail.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Interval at which a thread looks whether its server has ended.
const LOOK: Duration = Duration::from_millis(20);

/// Resources that a target loses; nothing by default.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Leak {
    /// Bytes of memory lost with each thousandth request.
    pub bytes_per_thousand: usize,
    /// A descriptor is lost every time this has passed.
    pub descriptor_every: Option<Duration>,
}

impl Leak {
    /// Loses the memory of the request with this number.
    pub fn bytes_of(&self, request: u64) {
        if self.bytes_per_thousand > 0 && request.is_multiple_of(1_000) {
            // Written to, so that the pages are resident.
            std::mem::forget(vec![1u8; self.bytes_per_thousand]);
        }
    }

    /// Loses descriptors on a thread of its own until `over`.
    pub fn descriptors_until(&self, over: Arc<AtomicBool>) {
        let Some(every) = self.descriptor_every else { return };
        std::thread::spawn(move || {
            let mut left = every;
            while !over.load(Ordering::Relaxed) {
                let pause = left.min(LOOK);
                std::thread::sleep(pause);
                left -= pause;
                if left.is_zero() {
                    left = every;
                    if let Ok(file) = File::open("/dev/null") {
                        std::mem::forget(file);
                    }
                }
            }
        });
    }
}
