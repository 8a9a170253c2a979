//! Account of each client: time for which it was measured, and number of its ended requests.

use plimsoll_core::schedule::{LoadModel, Slice};

/// The first measured moment of a client that has had none.
const NOT_YET: u64 = u64::MAX;

/// The clients of a closed model; without clients of their own other models write nothing here.
pub(super) struct Clients {
    /// Requests of each client that do not count.
    ignore_first: u32,
    /// Requests that have ended, as far as that matters for the ones that do not count.
    ended: Vec<u32>,
    /// First measured moment, ns.
    from_ns: Vec<u64>,
    /// End of the last request, ns.
    to_ns: Vec<u64>,
    /// Time at which each client had nothing left to ask, ns; 0: it had.
    exhausted_ns: Vec<u64>,
    /// True if a session had nothing left to ask.
    exhausted: bool,
}

impl Clients {
    pub fn new(clients: usize, ignore_first: u32) -> Self {
        Self {
            ignore_first,
            ended: vec![0; clients],
            from_ns: vec![0; clients],
            to_ns: vec![0; clients],
            exhausted_ns: vec![0; clients],
            exhausted: false,
        }
    }

    /// The run starts.
    pub fn begin(&mut self, measured_from_ns: u64) {
        self.from_ns.fill(if self.ignore_first > 0 { NOT_YET } else { measured_from_ns });
    }

    /// Returns true if the requests of a client count by now, by how many of it have ended.
    #[inline]
    pub fn counts(&self, client: u32) -> bool {
        self.ignore_first == 0
            || self.ended.get(client as usize).is_none_or(|&ended| ended >= self.ignore_first)
    }

    /// Starts the time of a client. If its first requests do not count, the time begins when it could send the first
    /// one that does.
    #[inline]
    pub fn asked(&mut self, client: u32, could_ask_ns: u64) {
        let client = client as usize;
        if self.ignore_first > 0 && self.ended.get(client) == Some(&self.ignore_first) {
            self.from_ns[client] = could_ask_ns;
        }
    }

    /// A request of a client has ended.
    #[inline]
    pub fn ended(&mut self, client: u32, done_ns: u64) {
        if let Some(to_ns) = self.to_ns.get_mut(client as usize) {
            *to_ns = done_ns;
        }
        if self.ignore_first > 0
            && let Some(ended) = self.ended.get_mut(client as usize)
        {
            *ended = ended.saturating_add(1);
        }
    }

    /// A client has nothing left to ask.
    pub fn exhausted(&mut self, client: u32, now_ns: u64) {
        self.exhausted = true;
        if let Some(exhausted_ns) = self.exhausted_ns.get_mut(client as usize) {
            *exhausted_ns = now_ns;
        }
    }

    pub const fn is_anybody_exhausted(&self) -> bool {
        self.exhausted
    }

    /// Returns true if the run ended because nothing was left to ask. Where clients have a cycle, it ends before its time also
    /// because their next ones begin after it: not so when all had nothing left.
    pub fn is_exhausted(&self, cycle_ns: u64) -> bool {
        self.exhausted && (cycle_ns == 0 || !self.exhausted_ns.contains(&0))
    }

    /// The number that had a measured moment.
    pub fn measured(&self) -> u32 {
        self.from_ns.iter().filter(|&&from_ns| from_ns != NOT_YET).count() as u32
    }

    /// Sum of the times for which each was measured, ns: see [`Clients::one_elapsed_ns`].
    pub fn elapsed_ns(&self, model: &LoadModel, slice: Slice, to_ns: Option<u64>) -> u64 {
        (0..self.from_ns.len()).map(|client| self.one_elapsed_ns(client, model, slice, to_ns)).sum()
    }

    /// Returns the time for which a client was measured, ns: until it had nothing left to ask, or to the end of the schedule; where that was
    /// cut short (`None`), to its last answer.
    fn one_elapsed_ns(
        &self,
        client: usize,
        model: &LoadModel,
        slice: Slice,
        to_ns: Option<u64>,
    ) -> u64 {
        let from_ns = self.from_ns[client];
        let exhausted_ns = self.exhausted_ns[client];
        if exhausted_ns == 0 {
            let last_ns = self.to_ns[client].max(to_ns.unwrap_or(0));
            return last_ns.saturating_sub(from_ns);
        }
        let offset_ns = match model {
            // Its first cycle began later than the run: as many cycles as requests are its time.
            LoadModel::Closed { clients, cycle_ns, .. } if self.ignore_first == 0 => {
                let number = u128::from(slice.global(client as u64));
                (u128::from(*cycle_ns) * number / u128::from((*clients).max(1))) as u64
            }
            _ => 0,
        };
        exhausted_ns.saturating_sub(from_ns.saturating_add(offset_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::schedule::Think;

    const fn closed(cycle_ns: u64) -> LoadModel {
        LoadModel::Closed { clients: 2, think: Think::None, cycle_ns }
    }

    #[test]
    fn a_client_is_measured_from_its_first_request_that_counts() {
        let mut clients = Clients::new(2, 2);
        clients.begin(100);
        for (could_ask_ns, done_ns) in [(100, 110), (110, 120), (121, 130), (131, 140)] {
            assert_eq!(clients.counts(0), could_ask_ns > 120);
            clients.asked(0, could_ask_ns);
            clients.ended(0, done_ns);
        }
        assert!(clients.counts(7), "a client without a place here is not counted out");
        assert_eq!((clients.measured(), clients.counts(1)), (1, false));
        let whole = clients.elapsed_ns(&closed(0), Slice::WHOLE, None);
        assert_eq!(whole, 140 - 121);
        assert_eq!(clients.elapsed_ns(&closed(0), Slice::WHOLE, Some(200)), 200 - 121);
    }

    #[test]
    fn a_client_with_nothing_left_was_measured_until_then() {
        let mut clients = Clients::new(2, 0);
        clients.begin(100);
        clients.ended(0, 150);
        clients.exhausted(1, 190);
        assert!(clients.is_anybody_exhausted() && clients.is_exhausted(0));
        assert!(!clients.is_exhausted(40), "the other one still has its cycle");
        // The second of two clients began half a cycle later.
        let elapsed_ns = clients.elapsed_ns(&closed(40), Slice::WHOLE, Some(200));
        assert_eq!(elapsed_ns, (200 - 100) + (190 - 120));
        clients.exhausted(0, 195);
        assert!(clients.is_exhausted(40));
    }
}
