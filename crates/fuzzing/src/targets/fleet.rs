//! Packets and messages between a coordinator and its agents.

use crate::holds::one_line;
use crate::memory::{Allowed, within};
use plimsoll_core::interval::{Compact, Interval};
use plimsoll_fleet::link::Packet;
use plimsoll_fleet::message::{Call, Down, Here, Up};

/// A histogram of some bytes may have cells for 300 KB, as many as a second has classes and kinds of times.
const MEMORY: Allowed = Allowed { base: 8 << 20, each: 40_000 };

/// A packet, and a message of either side. A second that can be read is written as bytes that read the same.
///
/// # Panics
/// When a property does not hold.
pub fn messages(bytes: &[u8]) {
    within(bytes.len(), MEMORY, || {
        if let Ok(packet) = Packet::decode(bytes) {
            assert_eq!(Packet::decode(&packet.encode()), Ok(packet));
        }
        match Up::decode(bytes) {
            Ok(Up::Second(second)) => read_second(&second),
            Ok(message) => {
                assert!(Up::decode(&message.encode()).is_ok(), "{message:?} cannot be read again");
                if let Up::Ended(ended) = message
                    && let Ok(end) = ended.end
                {
                    end.end(0).err().iter().for_each(one_line);
                }
            }
            Err(error) => one_line(&error),
        }
        for error in [
            serde_json::from_slice::<Down>(bytes).err(),
            serde_json::from_slice::<Call>(bytes).err(),
            serde_json::from_slice::<Here>(bytes).err(),
        ] {
            error.iter().for_each(one_line);
        }
    });
}

fn read_second(second: &Compact) {
    let mut interval = Interval::default();
    match second.refill(&mut interval) {
        Ok(()) => {
            let mut again = Interval::default();
            let read = Compact::from(&interval).refill(&mut again);
            assert!(
                read.is_ok() && again == interval,
                "a second that was read is written as another"
            );
        }
        Err(error) => one_line(&error),
    }
}
