//! A run in virtual time, as it was sabotaged and as an ideal generator would have done it.

use super::asker::Asker;
use crate::judging::{Four, Range, Reported, Tolerance, Truth};
use crate::targets::station::{Behaviour, Service, Station};
use plimsoll_core::admission::AdmissionModel;
use plimsoll_core::clock::{Clock, MILLISECOND_NS, SECOND_NS, VirtualClock};
use plimsoll_core::histogram::Histogram;
use plimsoll_core::interval::Interval;
use plimsoll_core::judged::{Judged, Point};
use plimsoll_core::record::Rates;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{Limits, LoadModel, Slice};
use plimsoll_core::slo::Slo;
use plimsoll_core::units::Span;
use plimsoll_core::verdict::{Bounds, ConnectionLimit, Evidence, Health, judge};
use plimsoll_engine::shard::{Message, Part, Shard, ShardEnd, ShardPlan, Timeouts};
use plimsoll_engine::sim::thread::{Absence, Thread, Why};
use plimsoll_engine::sim::{Link, SimNet};
use plimsoll_engine::target::Target;
use plimsoll_wire::http1::Http1;
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The clock's time when the load begins, ns.
pub const START_NS: u64 = SECOND_NS + MILLISECOND_NS;

/// A run with one thing wrong, or none.
#[derive(Clone, Debug)]
pub struct Scene {
    /// Seed of all draws.
    pub seed: u64,
    /// Line of the table to which it belongs.
    pub kind: &'static str,
    /// True if nothing but the target is wrong.
    pub healthy: bool,
    /// The kinds of which the verdict must be one; empty: any.
    pub kinds: &'static [&'static str],
    /// The load.
    pub model: LoadModel,
    /// The target.
    pub behaviour: Behaviour,
    /// Length of the load, its warm-up included, ns.
    pub duration_ns: u64,
    /// Length of the warm-up, ns.
    pub warmup_ns: u64,
    /// Longest time of a request and of a connect, ns.
    pub timeout_ns: u64,
    /// The admission.
    pub admission: AdmissionModel,
    /// Connections that the user asked for; `None` lets plimsoll choose.
    pub asked: Option<u32>,
    /// Number of connections at which no request ever waits for one.
    pub enough: u32,
    /// True if all connections that can be needed exist from the start.
    pub is_ideal: bool,
    /// The thread of the generator.
    pub thread: Thread,
    /// Time at which the user stops the run, ns on the clock.
    pub stop_ns: Option<u64>,
    /// Requests in a thousand that must not be repeated.
    pub posts: u64,
}

/// The results of a run.
pub struct Ended {
    /// The measured part.
    pub totals: Interval,
    /// The shard's own end.
    pub end: ShardEnd,
    /// Time at which everything was over, ns on the clock.
    pub over_ns: u64,
}

/// Connections that the simulated machine lets a process open.
const OPENABLE: u32 = 1 << 20;
/// Half-width of the truth's own interval, in standard errors, where its requests are not the same ones.
const SIGMAS: f64 = 4.0;

impl Scene {
    /// The same run by a generator that costs nothing, runs always, and never lacks a connection.
    #[must_use]
    pub fn ideal(&self) -> Scene {
        Scene { is_ideal: true, thread: Thread::default(), stop_ns: None, ..self.clone() }
    }

    /// Connections, those of them that are opened before the start, and what bounds them: as the command line has it.
    fn connections(&self) -> (u32, Option<u32>, ConnectionLimit) {
        if self.is_ideal {
            let enough = self.model.clients().unwrap_or(self.enough);
            return (enough, None, ConnectionLimit::None);
        }
        let scenario = Scenario {
            load: self.model.clone(),
            admission: self.admission,
            connections: self.asked,
            targets: vec!["http://simulated".to_owned()],
            ..Scenario::default()
        };
        let (most, limit) = scenario.connections_at_most(OPENABLE);
        let first = scenario.connection_count();
        (most, (first < most).then_some(first), limit)
    }

    fn plan(&self) -> ShardPlan {
        let (connections, warm_connections, connection_limit) = self.connections();
        let address = SocketAddr::from(([127, 0, 0, 1], 80));
        let target = Target { host: "simulated".to_owned(), port: 80, addresses: vec![address] };
        ShardPlan {
            model: self.model.clone(),
            slice: Slice::WHOLE,
            seed: self.seed,
            limits: Limits::after(self.duration_ns),
            warmup_ns: self.warmup_ns,
            ignore_first: 0,
            connections,
            warm_connections,
            connection_limit,
            admission: self.admission,
            timeouts: Timeouts { connect_ns: self.timeout_ns, request_ns: self.timeout_ns },
            targets: Arc::new(vec![target]),
            tls: None,
            classes: 1,
            spin_ns: 0,
            batching: self.model.is_full_speed(),
            preconnect: true,
            keep_alive: true,
            part: Part::default(),
        }
    }

    /// Carries the run out.
    ///
    /// # Panics
    /// When the load model cannot be run: the scene was drawn wrong.
    #[must_use]
    pub fn run(&self) -> Ended {
        self.run_over(Link::default())
    }

    /// Runs of the ideal generator over lines that are a little slower, where that matters.
    #[must_use]
    pub fn ideals_over_other_lines(&self) -> Vec<Ended> {
        let lines: &[u64] = if self.model.has_askers() { &[21_000, 23_000, 29_000] } else { &[] };
        let over = |&latency_ns: &u64| {
            let (latency_min_ns, latency_max_ns) = (latency_ns, latency_ns + 2_000);
            self.ideal().run_over(Link { latency_min_ns, latency_max_ns, ..Link::default() })
        };
        lines.iter().map(over).collect()
    }

    fn run_over(&self, link: Link) -> Ended {
        let clock = VirtualClock::new();
        clock.advance_to(START_NS - MILLISECOND_NS);
        let peer = Rc::new(RefCell::new(Station::new(self.behaviour)));
        let mut net =
            SimNet::new(clock.clone(), peer, link, self.seed).driven_by(self.thread.clone());
        let stop = Arc::new(AtomicBool::new(false));
        if let Some(stop_ns) = self.stop_ns {
            let stop = stop.clone();
            net.at(stop_ns, move || stop.store(true, Ordering::Relaxed));
        }
        let totals = Rc::new(RefCell::new(Interval::new(1)));
        let kept = totals.clone();
        let outbox = move |message| match message {
            Message::Second(mut second) => {
                kept.borrow_mut().merge(&second);
                second.clear();
                Some(second)
            }
            Message::CountsFrom(_) | Message::Failure(_) | Message::WantsSpare => None,
        };
        let asker = Box::new(Asker::new(self.posts));
        let (protocol, outbox) = (Http1::default(), Box::new(outbox));
        let made = Shard::new(self.plan(), protocol, net, clock.clone(), asker, outbox, stop);
        let end = made.and_then(|shard| shard.run(|| START_NS));
        let end = end.unwrap_or_else(|error| panic!("seed {}: {error}", self.seed));
        let mut totals = totals.take();
        totals.in_flight = 0;
        totals.merge(&end.rest);
        Ended { totals, end, over_ns: clock.now_ns() }
    }

    /// The statements of the run about itself.
    #[must_use]
    pub fn reported(&self, ended: &Ended) -> Reported {
        let end = &ended.end;
        let (from_ns, to_ns) = end.measured_ns;
        let measured_s = to_ns.saturating_sub(from_ns) as f64 / SECOND_NS as f64;
        let (last_ns, failed_since) = end.last_success;
        let connections = match self.connections().2 {
            ConnectionLimit::Own(most) | ConnectionLimit::Machine(most)
                if end.connections < most =>
            {
                ConnectionLimit::Grown
            }
            limit => limit,
        };
        let verdict = judge(&Evidence {
            rates: rates(ended),
            measured_s,
            open: self.model.is_open(),
            full_speed: self.model.is_full_speed(),
            clients: self.model.clients(),
            connections,
            interrupted: end.interrupted,
            since_success: (to_ns.saturating_sub(last_ns) as f64 / 1e9, failed_since),
            health: Health { stolen: self.stolen(end.measured_ns), ..end.health },
            repeats: 1.0,
            cacheable: true,
            ..Evidence::of(&ended.totals)
        });
        Reported {
            kind: verdict.kind.name().to_owned(),
            reasons: verdict.reasons,
            ok: ended.totals.ledger.ok,
            figures: figures(ended),
            bounds: verdict.bounds.as_ref().map(ranges),
            balances: ended.totals.ledger.balance().is_ok(),
            limits: Vec::new(),
        }
    }

    /// Share of the stretch for which the host had the core: a kernel counts it for the machine, not for a thread.
    fn stolen(&self, (from_ns, to_ns): (u64, u64)) -> f64 {
        let by_host = self.thread.absences.iter().filter(|absence| absence.why == Why::Stolen);
        let within =
            |a: &Absence| a.end_ns().min(to_ns).saturating_sub(a.from_ns.max(from_ns)) as f64;
        by_host.map(within).sum::<f64>() / to_ns.saturating_sub(from_ns).max(1) as f64
    }

    /// The expected statements, from the run of the ideal generator. `others` are runs of it that began a moment
    /// earlier or later: clients that ask again fall into step with a target whose times are fixed, and into which step
    /// is a matter of microseconds.
    #[must_use]
    pub fn truth(&self, ideal: &Ended, others: &[Ended]) -> Truth {
        let mut truth = self.truth_of(ideal);
        for other in others {
            let more = self.truth_of(other).figures;
            for (one, more) in truth.figures.iter_mut().zip(more) {
                *one = one
                    .zip(more)
                    .map(|(a, b)| Range { low: a.low.min(b.low), high: a.high.max(b.high) });
            }
        }
        truth
    }

    fn truth_of(&self, ideal: &Ended) -> Truth {
        let measured = figures(ideal);
        let response = ideal.totals.all_classes().response;
        let refused = &ideal.totals.ledger.refused;
        // Who is refused depends on who came first by microseconds.
        let coupled = !self.model.has_askers() && refused.queue_full + refused.queue_timeout == 0;
        let count = response.count() as f64;
        let figures: Four<Option<Range>> = [0, 1, 2, 3].map(|i| {
            // What an end cuts off is as long as the end was early or late.
            let cut_off = self.stop_ns.is_some() || self.behaviour.dies_ns.is_some();
            if cut_off || count == 0.0 {
                return None;
            }
            let exact = Range::exact(measured[i]);
            if coupled {
                return Some(exact);
            }
            // Who asks again after an answer does not ask the same requests when answers come at other times.
            Some(match [0.50, 0.95, 0.99].get(i) {
                Some(quantile) => sampled(&response, *quantile),
                None => {
                    let error = match self.behaviour.service {
                        Service::Exponential(_) => SIGMAS / count.sqrt(),
                        Service::Fixed(_) => 0.0,
                    };
                    Range { low: exact.low * (1.0 - error), high: exact.high * (1.0 + error) }
                }
            })
        });
        // Where an ideal generator sees no request end, or none any more, there is nothing to be valid.
        let served = self.ideal().reported(ideal).kind != "target-failed";
        let healthy = self.healthy && count > 0.0 && served;
        Truth { figures, healthy, kinds: self.kinds, limits: Vec::new() }
    }

    /// The way limits far from both sides of the truth are judged in a run: half and twice the ideal generator's own figures.
    #[must_use]
    pub fn limits(&self, ended: &Ended, ideal: &Ended) -> Vec<(String, bool)> {
        let judged = Judged::of(&ideal.totals, self.timeout_ns);
        let p95_ns = judged.quantile(0.95).map_or(0.0, Point::ns);
        let ok_per_s = rates(ideal).ok_per_s;
        let of = Judged::of(&ended.totals, self.timeout_ns);
        let limits = [0.5, 2.0].into_iter().flat_map(|factor| {
            let limit = Span { ns: (p95_ns * factor) as u64 };
            let errors = (judged.lost_share() * factor).min(1.0);
            let limits = [
                Slo::Quantile { quantile: 0.95, limit },
                Slo::Errors(errors),
                Slo::Rate(ok_per_s * factor),
            ];
            limits.map(|slo| (format!("{factor} {}", slo.name()), slo))
        });
        let held = |slo: &Slo| slo.judge(&of, &ended.totals.ledger, &rates(ended)).held;
        limits.map(|(name, slo)| (name, held(&slo))).collect()
    }

    /// The uncertainty of the truth: the histogram's three digits, a round trip for connections that the two runs open
    /// at different moments, one more where the peer closes them, and the requests at the edges of the stretch.
    #[must_use]
    pub fn tolerance(&self) -> Tolerance {
        let seconds = (self.duration_ns - self.warmup_ns) as f64 / 1e9;
        let at_the_edges = 2.0 + f64::from(self.model.clients().unwrap_or(0));
        let ills = &self.behaviour.ills;
        let time_ms = if ills.last + ills.closed + ills.cut > 0 { 0.13 } else { 0.05 };
        Tolerance { share: 0.01, time_ms, rate_per_s: at_the_edges / seconds }
    }

    /// Time at which the run must be over at the latest, ns on the clock: its length, a timeout and 2 s.
    #[must_use]
    pub const fn over_by_ns(&self) -> u64 {
        START_NS + self.duration_ns + self.timeout_ns + 2 * SECOND_NS
    }
}

fn ranges(bounds: &Bounds) -> Four<Range> {
    let of = |[low, high]: [f64; 2]| Range { low, high };
    [bounds.p50_ms, bounds.p95_ms, bounds.p99_ms, bounds.ok_per_s].map(of)
}

fn rates(ended: &Ended) -> Rates {
    let (from_ns, to_ns) = ended.end.measured_ns;
    let seconds = to_ns.saturating_sub(from_ns) as f64 / SECOND_NS as f64;
    if seconds <= 0.0 {
        return Rates::default();
    }
    let per_s = |count: u64| count as f64 / seconds;
    let counters = &ended.totals.counters;
    Rates {
        offered_per_s: per_s(ended.totals.ledger.scheduled),
        achieved_per_s: per_s(counters.ended_in_time),
        ok_per_s: per_s(counters.ok_in_time),
    }
}

/// The headline figures of a run.
#[must_use]
pub fn figures(ended: &Ended) -> Four<f64> {
    let response = ended.totals.all_classes().response;
    let ms = |quantile| response.quantile_ns(quantile) as f64 / MILLISECOND_NS as f64;
    [ms(0.50), ms(0.95), ms(0.99), rates(ended).ok_per_s]
}

/// The range of a quantile, by the binomial error of this many samples.
fn sampled(histogram: &Histogram, quantile: f64) -> Range {
    let count = histogram.count().max(1) as f64;
    let error = SIGMAS * (quantile * (1.0 - quantile) / count).sqrt();
    let ms = |quantile: f64| {
        histogram.quantile_ns(quantile.clamp(0.0, 1.0)) as f64 / MILLISECOND_NS as f64
    };
    Range { low: ms(quantile - error), high: ms(quantile + error) }
}
