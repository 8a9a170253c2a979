//! Sessions that ask numbered requests and believe an answer only if it has their number.

use crate::diary::Diary;
use plimsoll_core::outcome::{Failure, Outcome};
use plimsoll_core::recorder::Times;
use plimsoll_core::rng::Rng;
use plimsoll_wire::{Judgement, Protocol, Sessions, Submission, Turn};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Content of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Said {
    /// This request was done, and the content is complete.
    Done(u64),
    /// No, for this reason.
    No(Failure),
    /// Nothing that can be understood.
    Nothing,
}

/// A protocol in which numbered requests can be asked.
pub trait Tongue: Protocol {
    /// Writes the request with this number. Returns whether it may be asked twice.
    fn ask(request: &mut Self::Request, serial: u64, rng: &mut Rng) -> bool;

    /// Reads what an answer says, and its status.
    fn said(reply: &Self::Reply<'_>) -> (Said, u16);
}

/// Classes of requests.
pub const CLASSES: usize = 2;

/// Habits of the clients of a run.
#[derive(Clone, Copy, Debug, Default)]
pub struct Habits {
    /// Requests before it has nothing left to ask.
    pub source: Option<u64>,
    /// Pause of a client after a request of its own was lost, ns.
    pub pause_ns: u64,
}

/// Sessions that ask numbered requests.
pub struct Asker {
    diary: Rc<RefCell<Diary>>,
    rng: Rng,
    left: u64,
    pause_ns: u64,
    /// End of the pause of each client that pauses, ns.
    pauses: BTreeMap<u32, u64>,
}

impl Asker {
    /// Sessions that take the numbers of their requests from the diary.
    #[must_use]
    pub fn new(diary: Rc<RefCell<Diary>>, seed: u64, habits: Habits) -> Self {
        let left = habits.source.unwrap_or(u64::MAX);
        Self {
            diary,
            rng: Rng::new(seed),
            left,
            pause_ns: habits.pause_ns,
            pauses: BTreeMap::new(),
        }
    }
}

impl<P: Tongue> Sessions<P> for Asker {
    fn next(&mut self, client: u32, _target: u32, request: &mut P::Request) -> Turn {
        if self.left == 0 {
            return Turn::Exhausted;
        }
        if let Some(until_ns) = self.pauses.remove(&client) {
            return Turn::Rest { until_ns };
        }
        self.left -= 1;
        let item = self.diary.borrow().next_serial();
        let idempotent = P::ask(request, item, &mut self.rng);
        Turn::Ask(Submission { class: (item % CLASSES as u64) as u16, item, idempotent })
    }

    fn judge(&mut self, _: u32, what: &Submission, reply: &P::Reply<'_>, _: Times) -> Judgement {
        let (said, status) = P::said(reply);
        let outcome = match said {
            Said::Done(serial) if serial == what.item => Outcome::Ok,
            Said::No(failure) => Outcome::Failed(failure),
            Said::Done(_) | Said::Nothing => Outcome::Failed(Failure::Check),
        };
        Judgement { outcome, status, hits: Some(what.item % 3), body_bytes: 1 }
    }

    fn lost(&mut self, client: u32, _: &Submission, _: Failure, times: Times) {
        if self.pause_ns > 0 {
            self.pauses.insert(client, times.done_ns + self.pause_ns);
        }
    }

    fn describe(&self, what: &Submission, _: &P::Request) -> String {
        what.item.to_string()
    }

    fn explain(&self, _: &Submission, reply: &P::Reply<'_>) -> (String, String) {
        (format!("{:?}", P::said(reply)), String::new())
    }
}
