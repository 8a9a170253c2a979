//! Windows of a phase that all agents know, while it lasts.

use plimsoll_core::seek::plant::Window;

/// Windows of several agents.
pub(super) struct Windows {
    /// Number of windows that each agent has sent; the largest number once it is lost.
    sent: Vec<usize>,
    /// Number of windows that all have sent.
    known: usize,
    sums: Vec<Window>,
}

impl Windows {
    pub fn of(agents: usize) -> Self {
        Self { sent: vec![0; agents], known: 0, sums: Vec::new() }
    }

    /// Adds the next windows of an agent, and returns all that every agent has sent if these are more than before.
    pub fn add(&mut self, agent: usize, windows: &[Window]) -> Option<&[Window]> {
        let from = self.sent[agent];
        if from == usize::MAX {
            return None;
        }
        add_all(&mut self.sums, from, windows);
        self.sent[agent] = from + windows.len();
        let known = self.sent.iter().copied().min().unwrap_or(0).min(self.sums.len());
        (std::mem::replace(&mut self.known, known) < known).then(|| &self.sums[..known])
    }

    /// An agent will send no more.
    pub fn lost(&mut self, agent: usize) {
        self.sent[agent] = usize::MAX;
    }
}

/// Adds windows to sums, the first of them to the sum at `from`.
pub(super) fn add_all(sums: &mut Vec<Window>, from: usize, windows: &[Window]) {
    let length = sums.len().max(from + windows.len());
    sums.resize(length, Window::default());
    for (sum, window) in sums[from..].iter_mut().zip(windows) {
        sum.add(window);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn windows(scheduled: &[u64]) -> Vec<Window> {
        scheduled.iter().map(|&scheduled| Window { scheduled, ..Window::default() }).collect()
    }

    #[test]
    fn a_window_is_known_once_every_agent_has_sent_it() {
        let mut all = Windows::of(2);
        assert_eq!(all.add(0, &windows(&[1, 2, 3])), None);
        assert_eq!(all.add(1, &windows(&[10])), Some(&windows(&[11])[..]));
        assert_eq!(all.add(0, &windows(&[4])), None, "the other one has sent no more");
        assert_eq!(all.add(1, &windows(&[20, 30])), Some(&windows(&[11, 22, 33])[..]));
        all.lost(1);
        assert_eq!(all.add(1, &windows(&[5])), None, "a lost agent adds nothing");
        assert_eq!(all.add(0, &windows(&[6])).map(<[Window]>::len), Some(5));
    }
}
