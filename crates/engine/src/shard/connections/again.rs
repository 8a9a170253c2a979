//! Requests that wait for a connection to be sent once more: those lost with a connection, and those that a peer has not
//! looked at, or has undone.

use std::collections::VecDeque;

/// The queue of them.
#[derive(Debug, Default)]
pub(in crate::shard) struct Again {
    waiting: VecDeque<u32>,
    /// True if one of them may find a connection that did not before.
    may_go: bool,
}

impl Again {
    /// A request waits.
    pub fn push(&mut self, tag: u32) {
        debug_assert!(!self.waiting.contains(&tag), "request {tag} would be sent twice");
        self.waiting.push_back(tag);
        self.may_go = true;
    }

    /// Takes the one that has waited longest.
    pub fn pop(&mut self) -> Option<u32> {
        self.waiting.pop_front()
    }

    /// It found no connection: it waits behind the others until something changes.
    pub fn put_back(&mut self, tag: u32) {
        self.waiting.push_back(tag);
    }

    /// A request no longer waits.
    pub fn remove(&mut self, tag: u32) {
        self.waiting.retain(|&other| other != tag);
    }

    #[inline]
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Something changed for the connections, whoever waits.
    pub fn look_again(&mut self) {
        self.may_go = true;
    }

    /// A connection has room.
    #[inline]
    pub fn see_room(&mut self) {
        self.may_go |= !self.waiting.is_empty();
    }

    /// Returns true if it is time to look for connections; whatever makes room from then on, or joins the queue, is a reason to
    /// look again.
    #[inline]
    pub fn begin_look(&mut self) -> bool {
        std::mem::take(&mut self.may_go)
    }

    /// Returns true if one of those that wait may find a connection now.
    #[inline]
    pub fn is_due(&self) -> bool {
        self.may_go && !self.waiting.is_empty()
    }

    /// All that wait.
    pub fn iter(&self) -> impl Iterator<Item = u32> + '_ {
        self.waiting.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::Again;

    #[test]
    fn they_are_looked_at_when_something_has_changed() {
        let mut again = Again::default();
        again.see_room();
        assert!(!again.begin_look() && !again.is_due(), "no request waits for the room");
        [4, 7, 9].into_iter().for_each(|tag| again.push(tag));
        assert!(again.is_due() && again.begin_look() && !again.begin_look());
        let first = again.pop().unwrap();
        again.put_back(first);
        assert!(!again.is_due(), "it found nothing, and nothing has changed");
        again.remove(7);
        assert_eq!((again.iter().collect::<Vec<_>>(), again.len()), (vec![9, 4], 2));
        again.see_room();
        assert!(again.is_due());
    }
}
