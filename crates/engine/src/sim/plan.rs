//! A plan that simulated runs begin with.

use crate::shard::{Part, ShardPlan, Timeouts};
use crate::target::Target;
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::SECOND_NS;
use plimsoll_core::schedule::{Limits, LoadModel, Slice, Think};
use plimsoll_core::verdict::ConnectionLimit;
use std::net::SocketAddr;
use std::sync::Arc;

/// Clients without pauses, each with its own connection to one simulated server, for `duration_ns`. Everything is
/// measured, in one class, and every timeout is one second.
#[must_use]
pub fn closed_plan(clients: u32, duration_ns: u64) -> ShardPlan {
    let address = SocketAddr::from(([127, 0, 0, 1], 80));
    let target = Target { host: "simulated".to_owned(), port: 80, addresses: vec![address] };
    ShardPlan {
        model: LoadModel::Closed { clients, think: Think::None, cycle_ns: 0 },
        slice: Slice::WHOLE,
        seed: 1,
        limits: Limits::after(duration_ns),
        warmup_ns: 0,
        ignore_first: 0,
        connections: clients,
        warm_connections: None,
        connection_limit: ConnectionLimit::None,
        admission: AdmissionModel::Direct,
        timeouts: Timeouts { connect_ns: SECOND_NS, request_ns: SECOND_NS },
        targets: Arc::new(vec![target]),
        tls: None,
        classes: 1,
        spin_ns: 0,
        batching: false,
        preconnect: false,
        keep_alive: true,
        part: Part::default(),
    }
}
