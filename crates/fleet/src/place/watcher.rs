//! The process of an agent that watches.

use super::Refused;
use super::agent::{AgentPost, Desk, other_role};
use crate::link::LinkError;
use crate::message::Up;
use plimsoll_engine::health::machine;
use plimsoll_record::resources::{ResourceLine, ResourcesResult};
use std::sync::atomic::Ordering;
use std::time::Duration;

/// Interval at which a wait looks whether the process was stopped.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// The next thing for an agent that watches to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchOrder {
    /// To count its lines from here, ns on the own clock.
    MeasuredFrom(u64),
    /// To take a last look: the load is over, or the process is to end.
    End,
}

impl AgentPost {
    /// Waits for the order to watch, and returns the name of the run.
    ///
    /// # Errors
    /// When the run ends before, or when this agent is to carry out a part of the load.
    pub fn watch_order(&self) -> Result<String, Refused> {
        self.wait(|desk: &mut Desk| match desk.plan {
            None => desk.watch.clone().map(Ok).or_else(|| desk.is_aborted()),
            Some(_) => Some(Err(other_role("it watches its machine, and sends no load"))),
        })
    }

    /// Reports what is watched, once the coordinator's clock is measured.
    pub fn watches(&self, things: ResourcesResult) {
        self.post.with(|desk| desk.member.watch(machine(), things));
    }

    /// Sends a line.
    ///
    /// # Errors
    /// When too much waits to be sent.
    pub fn used(&self, line: &ResourceLine) -> Result<(), LinkError> {
        self.post.with(|desk| desk.member.say(&Up::Used(Box::new(line.clone()))))
    }

    /// Waits for the next order.
    ///
    /// # Errors
    /// When the run was ended, or the coordinator is silent.
    pub fn next_watch_order(&self) -> Result<WatchOrder, Refused> {
        loop {
            let found = self.post.wait(LOOK_EVERY, |desk: &mut Desk| {
                let start = desk.measured_from.take().map(|ns| Ok(WatchOrder::MeasuredFrom(ns)));
                let stop = || desk.stop.load(Ordering::Relaxed).then_some(Ok(WatchOrder::End));
                // An end by the coordinator sets the stop too.
                desk.is_aborted().or(start).or_else(stop)
            });
            if let Some(order) = found {
                return order;
            }
        }
    }

    /// Sends what was watched, with the remarks of the end.
    ///
    /// # Errors
    /// When too much waits to be sent.
    pub fn watched(&self, things: ResourcesResult) -> Result<(), LinkError> {
        self.post.with(|desk| desk.member.watched(things))
    }
}
