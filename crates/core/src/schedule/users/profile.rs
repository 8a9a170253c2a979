//! The way users come, as users write it: the steps of a profile, and what they come to.

use crate::units::Span;
use thiserror::Error;

/// The highest rate of users, per second.
pub const USER_RATE_MAX_PER_S: f64 = 1e7;
/// Most users of a step that names a number of them.
pub const STEP_USERS_MAX: u64 = 100_000_000;
/// Most users at the same time in steps that hold their number.
pub const CONCURRENT_MAX: u32 = 1_000_000;
/// Most levels of a step of stairs.
pub const LEVELS_MAX: u32 = 10_000;
/// Longest profile, ns: 30 days.
pub const PROFILE_MAX_NS: u64 = 30 * 24 * 3_600_000_000_000;

/// One step of a profile. The names in brackets are Gatling's.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum UserStep {
    /// No users arrive (`nothingFor`).
    Nothing {
        /// Its length.
        during: Span,
    },
    /// All come at the same moment (`atOnceUsers`).
    AtOnce {
        /// Their number.
        users: u64,
    },
    /// A number of users at equal gaps (`rampUsers`).
    Ramp {
        /// Their number.
        users: u64,
        /// Its length.
        during: Span,
    },
    /// A rate that stays (`constantUsersPerSec`).
    Constant {
        /// Users per second.
        per_s: f64,
        /// Its length.
        during: Span,
        /// At seeded random moments instead of equal gaps; as many as without.
        randomized: bool,
    },
    /// A rate that changes evenly (`rampUsersPerSec`).
    RampRate {
        /// Users per second at its start.
        from_per_s: f64,
        /// Users per second at its end.
        to_per_s: f64,
        /// Its length.
        during: Span,
        /// At seeded random moments; as many as without.
        randomized: bool,
    },
    /// A number of users around one moment: the inverse of a smoothed Heaviside function (`stressPeakUsers`).
    Peak {
        /// Their number.
        users: u64,
        /// Its length.
        during: Span,
    },
    /// Stairs of rates (`incrementUsersPerSec`).
    Increment {
        /// Users per second from one level to the next.
        by_per_s: f64,
        /// The stairs.
        stairs: Stairs,
        /// Users per second of the first level; 0 with ramps begins with a ramp to one increment.
        from_per_s: f64,
    },
    /// A number of users at the same time: a user who leaves is replaced (`constantConcurrentUsers`).
    Concurrent {
        /// Their number.
        users: u32,
        /// Its length.
        during: Span,
    },
    /// A number of users at the same time that changes evenly (`rampConcurrentUsers`).
    RampConcurrent {
        /// Number of users at its start.
        from: u32,
        /// Number of users at its end.
        to: u32,
        /// Its length.
        during: Span,
    },
    /// Stairs of numbers of users at the same time (`incrementConcurrentUsers`).
    IncrementConcurrent {
        /// Users from one level to the next.
        by: u32,
        /// The stairs.
        stairs: Stairs,
        /// Users of the first level; 0 with ramps begins with a ramp to one increment.
        from: u32,
    },
}

/// Levels one above the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stairs {
    /// Number of levels.
    pub times: u32,
    /// Time that each lasts.
    pub lasting: Span,
    /// Time that the ramp between two levels lasts; 0 for none. Stairs that begin at 0 have one before the first.
    pub ramps: Span,
}

/// Steps, one after the other. Written as text: `ramp 100 during 10s, constant 20/s during 1m randomized`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UserProfile {
    steps: Vec<UserStep>,
}

/// A profile that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("users, column {column}: {problem}")]
pub struct ProfileError {
    /// Position in the text, in characters from 1.
    pub column: usize,
    /// The error, and how to fix it.
    pub problem: String,
}

/// A part of an open profile: this many users over this time, in this shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Stretch {
    pub start_ns: u64,
    pub duration_ns: u64,
    pub users: u64,
    pub shape: Shape,
    pub randomized: bool,
}

/// The way the users of a stretch are spread over it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Shape {
    /// At equal gaps; all at once where the stretch has no length.
    Even,
    /// By a rate that changes evenly between these two.
    Line { from: f64, to: f64 },
    /// By the inverse of the normal distribution.
    Peak,
}

/// A part of a closed profile: the number of users to hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level {
    pub start_ns: u64,
    pub duration_ns: u64,
    pub from: u32,
    pub to: u32,
}

impl UserStep {
    /// Returns true if it holds a number of users instead of letting them come.
    #[must_use]
    pub const fn is_closed(&self) -> bool {
        matches!(
            self,
            Self::Concurrent { .. }
                | Self::RampConcurrent { .. }
                | Self::IncrementConcurrent { .. }
        )
    }

    /// Its length, ns.
    #[must_use]
    pub fn duration_ns(&self) -> u64 {
        match self {
            Self::AtOnce { .. } => 0,
            Self::Nothing { during }
            | Self::Ramp { during, .. }
            | Self::Constant { during, .. }
            | Self::RampRate { during, .. }
            | Self::Peak { during, .. }
            | Self::Concurrent { during, .. }
            | Self::RampConcurrent { during, .. } => during.ns,
            Self::Increment { stairs, from_per_s, .. } => stairs.duration_ns(*from_per_s == 0.0),
            Self::IncrementConcurrent { stairs, from, .. } => stairs.duration_ns(*from == 0),
        }
    }

    /// Checks the numbers of a step.
    pub(super) fn check(&self) -> Result<(), String> {
        let users = |users: u64| {
            if (1..=STEP_USERS_MAX).contains(&users) {
                return Ok(());
            }
            Err(format!("{users} users; use 1 to {STEP_USERS_MAX}"))
        };
        let concurrent = |users: u32| {
            if users <= CONCURRENT_MAX {
                return Ok(());
            }
            Err(format!("{users} concurrent users; use at most {CONCURRENT_MAX}"))
        };
        let rate = |rate: f64| {
            if rate.is_finite() && (0.0..=USER_RATE_MAX_PER_S).contains(&rate) {
                return Ok(());
            }
            Err(format!("{rate} users per second; use 0 to {USER_RATE_MAX_PER_S}"))
        };
        match *self {
            Self::AtOnce { users: n } => users(n)?,
            Self::Ramp { users: n, .. } | Self::Peak { users: n, .. } => users(n)?,
            Self::Constant { per_s, .. } => rate(per_s)?,
            Self::RampRate { from_per_s, to_per_s, .. } => {
                rate(from_per_s)?;
                rate(to_per_s)?;
            }
            Self::Increment { by_per_s, stairs, from_per_s } => {
                stairs.check()?;
                rate(from_per_s)?;
                rate(by_per_s)?;
                rate(from_per_s + by_per_s * f64::from(stairs.times))?;
            }
            Self::Concurrent { users, .. } => concurrent(users)?,
            Self::RampConcurrent { from, to, .. } => concurrent(from.max(to))?,
            Self::IncrementConcurrent { by, stairs, from } => {
                stairs.check()?;
                concurrent(by.saturating_mul(stairs.times).saturating_add(from))?;
            }
            Self::Nothing { .. } => {}
        }
        if self.duration_ns() == 0 && !matches!(self, Self::AtOnce { .. }) {
            return Err("a step without a duration; add one, such as 'during 10s'".into());
        }
        Ok(())
    }
}

impl Stairs {
    fn check(&self) -> Result<(), String> {
        if (1..=LEVELS_MAX).contains(&self.times) {
            return Ok(());
        }
        Err(format!("{} levels; use 1 to {LEVELS_MAX}", self.times))
    }

    fn duration_ns(&self, ramp_first: bool) -> u64 {
        let ramps = if ramp_first { self.times } else { self.times.saturating_sub(1) };
        let levels_ns = self.lasting.ns.saturating_mul(u64::from(self.times));
        levels_ns.saturating_add(self.ramps.ns.saturating_mul(u64::from(ramps)))
    }

    /// The pieces of stairs that go up by `by` from `from`: value at start, value at end, length in ns.
    ///
    /// From 0 with ramps they are (ramp, level) again and again, and the first level is one increment; else (level, ramp)
    /// with a level at the end; without ramps levels only, of which the first is `from` itself, be it 0. So does Gatling.
    fn pieces(&self, from: f64, by: f64) -> Vec<(f64, f64, u64)> {
        let (ramp_ns, level_ns) = (self.ramps.ns, self.lasting.ns);
        let first = if from == 0.0 && ramp_ns > 0 { by } else { from };
        let mut pieces = Vec::with_capacity(2 * self.times as usize);
        for number in 0..self.times {
            let value = first + by * f64::from(number);
            if ramp_ns > 0 && (number > 0 || from == 0.0) {
                pieces.push((value - by, value, ramp_ns));
            }
            pieces.push((value, value, level_ns));
        }
        pieces
    }
}

impl UserProfile {
    /// A profile of these steps.
    ///
    /// # Errors
    /// When there is no user in it, when steps that let users come and steps that hold their number are mixed, or when a
    /// number is out of its range. The column is that of the step, counted in steps from 1.
    pub fn new(steps: Vec<UserStep>) -> Result<Self, ProfileError> {
        let columns: Vec<usize> = (1..=steps.len()).collect();
        Self::with_columns(steps, &columns)
    }

    pub(super) fn with_columns(
        steps: Vec<UserStep>,
        columns: &[usize],
    ) -> Result<Self, ProfileError> {
        let wrong = |index: usize, problem: String| ProfileError {
            column: columns.get(index).copied().unwrap_or(1),
            problem,
        };
        let mut closed = None;
        for (index, step) in steps.iter().enumerate() {
            step.check().map_err(|problem| wrong(index, problem))?;
            if matches!(step, UserStep::Nothing { .. }) {
                continue;
            }
            if *closed.get_or_insert(step.is_closed()) != step.is_closed() {
                let problem = "steps that hold a number of users (concurrent ...) and steps that let users \
                               come cannot be combined; use one kind per run";
                return Err(wrong(index, problem.to_owned()));
            }
        }
        let profile = Self { steps };
        if profile.own_duration_ns() > PROFILE_MAX_NS {
            return Err(wrong(0, "longer than 30 days; shorten a step".to_owned()));
        }
        let nobody = match profile.is_closed() {
            true => profile.most_at_once() == 0,
            false => profile.users() == 0,
        };
        if nobody {
            let problem = "no users arrive; write a step such as 'ramp 100 during 10s'";
            return Err(wrong(0, problem.to_owned()));
        }
        Ok(profile)
    }

    /// The steps.
    #[must_use]
    pub fn steps(&self) -> &[UserStep] {
        &self.steps
    }

    /// Returns true if it holds a number of users instead of letting them come.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        self.steps.iter().any(UserStep::is_closed)
    }

    /// Returns true if all users come at the first moment of its steps, so that only the target sets their pace.
    #[must_use]
    pub fn is_at_once(&self) -> bool {
        let is = |step: &UserStep| matches!(step, UserStep::AtOnce { .. });
        self.steps.first().is_some_and(is) && self.users() == self.first_users()
    }

    fn first_users(&self) -> u64 {
        match self.steps.first() {
            Some(UserStep::AtOnce { users }) => *users,
            _ => 0,
        }
    }

    /// From its first moment to the end of its last step, ns.
    #[must_use]
    pub fn own_duration_ns(&self) -> u64 {
        self.steps.iter().fold(0, |sum: u64, step| sum.saturating_add(step.duration_ns()))
    }

    /// Number of users that come in all; 0 where their number depends on the answers.
    #[must_use]
    pub fn users(&self) -> u64 {
        if self.is_closed() {
            return 0;
        }
        self.stretches().iter().map(|stretch| stretch.users).sum()
    }

    /// The most users that there can be at the same time.
    #[must_use]
    pub fn most_at_once(&self) -> u64 {
        if !self.is_closed() {
            return self.users();
        }
        self.levels().iter().map(|level| u64::from(level.from.max(level.to))).max().unwrap_or(0)
    }

    /// The open steps as stretches with whole numbers of users. Fractions that rates leave are carried to the next
    /// step, so that no user is lost or added by cutting a profile into steps.
    pub(super) fn stretches(&self) -> Vec<Stretch> {
        let mut stretches = Vec::new();
        let (mut start_ns, mut area, mut whole) = (0, 0.0, 0u64);
        let mut push = |users: u64, duration_ns: u64, shape: Shape, randomized: bool| {
            if users > 0 {
                stretches.push(Stretch { start_ns, duration_ns, users, shape, randomized });
            }
            start_ns += duration_ns;
        };
        let mut counted = |from: f64, to: f64, duration_ns: u64| {
            area += (from + to) / 2.0 * (duration_ns as f64 / 1e9);
            // What adding up sums of fractions leaves must not decide whether there is one user more.
            let now = (area + 0.5 + 1e-9 + 4.0 * f64::EPSILON * area).floor() as u64;
            let users = now.saturating_sub(whole);
            whole = now;
            users
        };
        for step in &self.steps {
            match *step {
                UserStep::Nothing { during } => push(0, during.ns, Shape::Even, false),
                UserStep::AtOnce { users } => push(users, 0, Shape::Even, false),
                UserStep::Ramp { users, during } => push(users, during.ns, Shape::Even, false),
                UserStep::Peak { users, during } => push(users, during.ns, Shape::Peak, false),
                UserStep::Constant { per_s, during, randomized } => {
                    push(counted(per_s, per_s, during.ns), during.ns, Shape::Even, randomized);
                }
                UserStep::RampRate { from_per_s: from, to_per_s: to, during, randomized } => {
                    let shape = line(from, to);
                    push(counted(from, to, during.ns), during.ns, shape, randomized);
                }
                UserStep::Increment { by_per_s, stairs, from_per_s } => {
                    for (from, to, ns) in stairs.pieces(from_per_s, by_per_s) {
                        push(counted(from, to, ns), ns, line(from, to), false);
                    }
                }
                UserStep::Concurrent { .. }
                | UserStep::RampConcurrent { .. }
                | UserStep::IncrementConcurrent { .. } => {}
            }
        }
        stretches
    }

    /// The closed steps as levels, in the order of time; pauses are levels of 0.
    pub(super) fn levels(&self) -> Vec<Level> {
        let mut levels = Vec::new();
        let mut start_ns = 0;
        let mut push = |from: u32, to: u32, duration_ns: u64| {
            levels.push(Level { start_ns, duration_ns, from, to });
            start_ns += duration_ns;
        };
        for step in &self.steps {
            match *step {
                UserStep::Concurrent { users, during } => push(users, users, during.ns),
                UserStep::RampConcurrent { from, to, during } => push(from, to, during.ns),
                UserStep::IncrementConcurrent { by, stairs, from } => {
                    for (from, to, ns) in stairs.pieces(f64::from(from), f64::from(by)) {
                        // Sums of whole numbers below 2^53 are whole.
                        push(from as u32, to as u32, ns);
                    }
                }
                _ => push(0, 0, step.duration_ns()),
            }
        }
        levels
    }
}

fn line(from: f64, to: f64) -> Shape {
    if from == to { Shape::Even } else { Shape::Line { from, to } }
}
