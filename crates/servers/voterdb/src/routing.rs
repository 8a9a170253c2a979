//! Partition that a row belongs to.

use plimsoll_wire::volt::Ring;

/// The hash ring that clients receive, and that the server uses itself.
#[derive(Clone, Debug)]
pub(crate) struct Routing {
    pub(crate) ring: Ring,
    partitions: usize,
}

impl Routing {
    pub(crate) fn new(partitions: usize) -> Self {
        // There are a few hundred partitions at most.
        Self { ring: Ring::even(partitions as u32), partitions }
    }

    pub(crate) fn partitions(&self) -> usize {
        self.partitions
    }

    #[inline]
    pub(crate) fn of_long(&self, key: i64) -> usize {
        self.ring.partition_of_long(key) as usize
    }

    pub(crate) fn of_text(&self, key: &str) -> usize {
        self.ring.partition_of_str(key) as usize
    }
}
