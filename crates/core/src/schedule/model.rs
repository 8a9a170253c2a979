//! Load models as users write them.

mod written;

pub(crate) use written::time_ns;

use super::think::Think;
use super::users::{Pause, UserProfile};
use crate::units::Span;
use serde::{Deserialize, Serialize};
use thiserror::Error;
use written::{WrittenModel, WrittenStep};

/// The way load is offered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "model", rename_all = "kebab-case", try_from = "WrittenModel")]
pub enum LoadModel {
    /// `clients` users; each waits for its answer, thinks, and asks again.
    Closed {
        /// Their number.
        clients: u32,
        /// Think time between an answer and its next request.
        think: Think,
        /// Time from one intended start of a client to its next, ns; 0: none. A late client catches up,
        /// so the cycle is a rate that holds.
        cycle_ns: u64,
    },
    /// Requests at a constant rate, whatever the answers do.
    Open {
        /// Requests per second over the whole run.
        rate_per_s: f64,
        /// The way they follow each other.
        arrivals: Arrivals,
    },
    /// `size` requests at once, every `every_ns`.
    Burst {
        /// Requests in a burst.
        size: u32,
        /// From one burst to the next, ns.
        every_ns: u64,
    },
    /// `size` requests at once; when no more than `limit` of them are behind (waiting in the managed queue, or in flight
    /// where admission is direct), `delay_ns` more, and then the next.
    PacedBurst {
        /// Requests in a burst.
        size: u32,
        /// From the moment at which the backlog has fallen to the next burst, ns; from burst to burst without a limit.
        delay_ns: u64,
        /// The number that may be behind when the delay begins, over the whole run; without it, no limit.
        limit: Option<u32>,
    },
    /// A rate that changes: steps of constant or linearly changing rate, one after the other.
    Profile {
        /// The steps, in order.
        steps: Vec<Step>,
        /// The way requests follow each other.
        arrivals: Arrivals,
    },
    /// Users who come, ask a number of requests one after the other, and leave.
    Users {
        /// The way they come, or how many there must be.
        profile: UserProfile,
        /// Requests of each; 0: all of the source, once for each repeat.
        requests: u32,
        /// Think time between an answer and its next request.
        think: Pause,
        /// Time from one intended start of a user to its next; 0: none. A user whose answer is late asks at once and
        /// catches up.
        pace: Span,
    },
}

/// The way requests of an open model follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Arrivals {
    /// Equal gaps.
    #[default]
    Uniform,
    /// Independent exponential gaps: many users who do not know of each other.
    Poisson,
}

/// A stretch of a [`LoadModel::Profile`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(try_from = "WrittenStep")]
pub struct Step {
    /// Rate at its start, per second; 0 is a pause.
    pub from_per_s: f64,
    /// Rate at its end, per second.
    pub to_per_s: f64,
    /// Length, ns.
    pub duration_ns: u64,
}

/// A model that cannot be run.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ModelError {
    /// No clients.
    #[error("a closed model needs at least one client")]
    NoClients,
    /// More clients than are accepted.
    #[error("a closed model has at most 100,000 clients, not {0}")]
    ManyClients(u32),
    /// A rate that is not a positive, finite number.
    #[error("a rate must be a number above 0 and at most 10,000,000 per second, not {0}")]
    Rate(f64),
    /// A burst without requests or without a period.
    #[error("a burst needs a size of at least 1 and a period above 0")]
    Burst,
    /// Bursts that come to more than the highest rate that is accepted.
    #[error(
        "bursts may come to at most 10,000,000 requests per second, not {0:.0}; \
         use a smaller size or a longer period"
    )]
    BurstRate(f64),
    /// Bursts that wait for nothing.
    #[error(
        "bursts need a size of at least 1, and a delay above 0 or a limit of the backlog that the next one waits for"
    )]
    PacedBurst,
    /// A profile without load.
    #[error("a profile needs at least one step with a rate above 0 and a duration")]
    EmptyProfile,
}

/// The highest rate accepted, per second.
pub const RATE_MAX_PER_S: f64 = 1e7;
/// Most clients, and most connections, of a run.
pub const CLIENTS_MAX: u32 = 100_000;

fn burst_rate_ok(size: u32, every_ns: u64) -> Result<(), ModelError> {
    let rate_per_s = f64::from(size) / every_ns as f64 * 1e9;
    if rate_per_s > RATE_MAX_PER_S { Err(ModelError::BurstRate(rate_per_s)) } else { Ok(()) }
}

impl LoadModel {
    /// Checks that the model can be run.
    ///
    /// # Errors
    /// The first thing that is impossible.
    pub fn validate(&self) -> Result<(), ModelError> {
        let rate_ok = |rate: f64, least: f64| {
            if rate.is_finite() && rate >= least && rate <= RATE_MAX_PER_S {
                Ok(())
            } else {
                Err(ModelError::Rate(rate))
            }
        };
        match self {
            LoadModel::Closed { clients: 0, .. } => Err(ModelError::NoClients),
            LoadModel::Closed { clients, .. } if *clients > CLIENTS_MAX => {
                Err(ModelError::ManyClients(*clients))
            }
            LoadModel::Closed { .. } => Ok(()),
            LoadModel::Open { rate_per_s, .. } => rate_ok(*rate_per_s, f64::MIN_POSITIVE),
            LoadModel::Burst { size, every_ns } => {
                if *size == 0 || *every_ns == 0 {
                    return Err(ModelError::Burst);
                }
                burst_rate_ok(*size, *every_ns)
            }
            LoadModel::PacedBurst { size, delay_ns, limit } => {
                if *size == 0 || (*delay_ns == 0 && limit.is_none()) {
                    return Err(ModelError::PacedBurst);
                }
                // Where the backlog is waited for, the target sets the pace.
                if limit.is_some() { Ok(()) } else { burst_rate_ok(*size, *delay_ns) }
            }
            LoadModel::Profile { steps, .. } => {
                for step in steps {
                    rate_ok(step.from_per_s, 0.0)?;
                    rate_ok(step.to_per_s, 0.0)?;
                }
                let loaded = |s: &Step| s.duration_ns > 0 && s.from_per_s + s.to_per_s > 0.0;
                if steps.iter().any(loaded) { Ok(()) } else { Err(ModelError::EmptyProfile) }
            }
            LoadModel::Users { profile, .. } if profile.steps().is_empty() => {
                Err(ModelError::EmptyProfile)
            }
            // Any other profile of users has been checked when it was made.
            LoadModel::Users { .. } => Ok(()),
        }
    }

    /// Number of clients of a closed model; `None` in other models.
    #[must_use]
    pub fn clients(&self) -> Option<u32> {
        match self {
            LoadModel::Closed { clients, .. } => Some(*clients),
            _ => None,
        }
    }

    /// The most users that there can be at the same time, in models of users.
    #[must_use]
    pub fn most_users(&self) -> Option<u64> {
        match self {
            LoadModel::Users { profile, .. } => Some(profile.most_at_once()),
            _ => None,
        }
    }

    /// Returns true if load comes by itself, independent of the answers: requests, or users with their first ones.
    #[must_use]
    pub fn is_open(&self) -> bool {
        match self {
            LoadModel::Closed { .. } => false,
            LoadModel::Users { profile, .. } => !profile.is_closed(),
            LoadModel::Open { .. }
            | LoadModel::Burst { .. }
            | LoadModel::PacedBurst { .. }
            | LoadModel::Profile { .. } => true,
        }
    }

    /// Returns true if each request has someone who waits for its answer before going on.
    #[must_use]
    pub fn has_askers(&self) -> bool {
        matches!(self, LoadModel::Closed { .. } | LoadModel::Users { .. })
    }

    /// Returns true if only the target sets the pace: every user is there from the first moment, and asks again at once.
    #[must_use]
    pub fn is_full_speed(&self) -> bool {
        match self {
            LoadModel::Closed { think, cycle_ns, .. } => *think == Think::None && *cycle_ns == 0,
            LoadModel::Users { profile, think, pace, .. } => {
                let at_once = profile.is_closed() || profile.is_at_once();
                at_once && *think == Pause::None && pace.ns == 0
            }
            LoadModel::Open { .. }
            | LoadModel::Burst { .. }
            | LoadModel::PacedBurst { .. }
            | LoadModel::Profile { .. } => false,
        }
    }

    /// The longest that a run of this model can take when no request takes longer than `longest_ns`, from its first
    /// moment to the answer that is due last, ns; `None` where it has no end of its own.
    #[must_use]
    pub fn longest_run_ns(&self, longest_ns: u64) -> Option<u64> {
        let LoadModel::Users { profile, requests, think, pace } = self else {
            return self.own_duration_ns();
        };
        let each_ns = longest_ns.saturating_add(think.longest_ns()).saturating_add(pace.ns);
        let stay_ns = each_ns.saturating_mul(u64::from((*requests).max(1)));
        Some(profile.own_duration_ns().saturating_add(stay_ns))
    }

    /// The length that a profile has by itself, ns; of users, until the last one may have come.
    #[must_use]
    pub fn own_duration_ns(&self) -> Option<u64> {
        match self {
            LoadModel::Profile { steps, .. } => {
                Some(steps.iter().fold(0, |sum: u64, step| sum.saturating_add(step.duration_ns)))
            }
            LoadModel::Users { profile, .. } => Some(profile.own_duration_ns()),
            _ => None,
        }
    }
}
