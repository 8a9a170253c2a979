//! Queues on virtual time.

use crate::draw::Draw;
use crate::quirk::Quirk;
use plimsoll_core::rng::Rng;
use plimsoll_core::seek::plant::{Order, Pace, Plant, Trial, Window};
use std::cmp::Ordering;
use std::collections::BinaryHeap;

/// Arrivals of the load that is offered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrivals {
    /// Exponential gaps.
    Poisson,
    /// Even gaps.
    Uniform,
}

/// k servers, first come first served.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Queue {
    /// Servers.
    pub servers: usize,
    /// Time that a server is busy with a request.
    pub service: Draw,
    /// Added to every response time, off the servers, s.
    pub delay_s: f64,
    /// Arrivals.
    pub arrivals: Arrivals,
    /// The deviation.
    pub quirk: Quirk,
}

/// Times in descending order in a max-heap.
#[derive(Clone, Copy, PartialEq)]
struct Free(f64);

impl Eq for Free {}

impl PartialOrd for Free {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Free {
    fn cmp(&self, other: &Self) -> Ordering {
        other.0.total_cmp(&self.0)
    }
}

/// A [`Queue`] under load, judged by time limits.
#[derive(Clone)]
pub struct QueuePlant {
    queue: Queue,
    limits_s: Vec<f64>,
    rng: Rng,
    now_s: f64,
    /// Times at which each server is free, in the servers' own time.
    free: BinaryHeap<Free>,
    /// Ends of requests in flight, for what depends on their number.
    under_way: BinaryHeap<Free>,
    batch: Vec<f64>,
    last_done_s: f64,
    /// Time at which the starved generator may send again, s.
    may_send_s: f64,
    changing: Changing,
}

/// The state of a plant that changes.
#[derive(Clone, Copy, Debug, Default)]
struct Changing {
    /// Requests served so far, and the work that they were, s.
    served: f64,
    work_s: f64,
    /// Until when the neighbour stays or is away, s, and whether it is there.
    until_s: f64,
    is_there: bool,
    /// Work and beginning of the stretch over which a plant that scales looks at itself.
    looked: (f64, f64),
    servers: usize,
    /// Class of the request that was served last.
    class: usize,
}

impl QueuePlant {
    /// A plant that draws its service times from `seed`.
    #[must_use]
    pub fn new(queue: Queue, limits_s: &[f64], seed: u64) -> Self {
        Self {
            queue,
            limits_s: limits_s.to_vec(),
            rng: Rng::new(seed),
            now_s: 0.0,
            free: (0..queue.servers).map(|_| Free(0.0)).collect(),
            under_way: BinaryHeap::new(),
            batch: Vec::new(),
            last_done_s: 0.0,
            may_send_s: 0.0,
            changing: Changing { servers: queue.servers, ..Changing::default() },
        }
    }

    /// Servers that it has now.
    #[must_use]
    pub fn servers(&self) -> usize {
        self.changing.servers
    }

    /// Returns the factor by which services take longer now, in a plant that warms with its requests.
    #[must_use]
    pub fn warmth(&self) -> Option<f64> {
        let Quirk::Warms { factor, requests } = self.queue.quirk else { return None };
        Some(factor + (1.0 - factor) * (self.changing.served / requests).min(1.0))
    }

    /// Slow-down factor of a service that begins at `at_s`.
    fn slower(&mut self, at_s: f64) -> f64 {
        let served = self.changing.served;
        self.changing.served += 1.0;
        match self.queue.quirk {
            Quirk::Drift { share, over_s } => 1.0 + share * (at_s / over_s).min(1.0),
            Quirk::Cold { factor, until_s } if at_s < until_s => factor,
            Quirk::Warms { factor, requests } => {
                factor + (1.0 - factor) * (served / requests).min(1.0)
            }
            Quirk::Step { at_s: from_s, factor } if at_s >= from_s => factor,
            Quirk::Compacts { every_s, for_s, factor } if at_s % every_s < for_s => factor,
            Quirk::Classes { share, factor } => {
                self.changing.class = usize::from(self.rng.uniform() < share);
                if self.changing.class == 1 { factor } else { 1.0 }
            }
            Quirk::Degrades { from, share } => {
                let beyond = self.under_way.len().saturating_sub(from) as f64 / from as f64;
                1.0 + share * beyond.min(1.0)
            }
            Quirk::Throttles { busy_s, factor } if self.changing.work_s > busy_s => factor,
            Quirk::Neighbour { share, mean_s } => {
                while self.changing.until_s < at_s {
                    self.changing.until_s += mean_s * self.rng.exponential();
                    self.changing.is_there = !self.changing.is_there;
                }
                if self.changing.is_there { 1.0 / (1.0 - share) } else { 1.0 }
            }
            _ => 1.0,
        }
    }

    /// Adds a server to a plant that was busy for long enough.
    fn scale_out(&mut self, at_s: f64) {
        let Quirk::ScalesOut { most, after_s } = self.queue.quirk else { return };
        let (work_s, from_s) = self.changing.looked;
        if at_s < from_s + after_s {
            return;
        }
        let servers = self.changing.servers as f64;
        let busy = (self.changing.work_s - work_s) / ((at_s - from_s) * servers);
        self.changing.looked = (self.changing.work_s, at_s);
        if busy > 0.7 && self.changing.servers < most {
            self.changing.servers += 1;
            self.free.push(Free(at_s));
        }
    }

    /// Serves a request that reaches the servers at `at_s`; returns its end, s, or nothing if it was rejected.
    fn serve(&mut self, at_s: f64) -> Option<f64> {
        let counts = matches!(self.queue.quirk, Quirk::Cap { .. } | Quirk::Degrades { .. });
        while counts && self.under_way.peek().is_some_and(|end| end.0 <= at_s) {
            self.under_way.pop();
        }
        if let Quirk::Cap { cap } = self.queue.quirk
            && self.under_way.len() >= cap
        {
            return None;
        }
        if let Quirk::Dies { at_s: end_s } = self.queue.quirk
            && at_s >= end_s
        {
            return None;
        }
        if let Quirk::Fails { share } = self.queue.quirk
            && self.rng.uniform() < share
        {
            return None;
        }
        self.scale_out(at_s);
        let service_s = self.queue.service.draw(&mut self.rng) * self.slower(at_s);
        self.changing.work_s += service_s;
        let mut extra_s = self.queue.delay_s;
        match self.queue.quirk {
            Quirk::Bimodal { share, slow_s } if self.rng.uniform() < share => extra_s += slow_s,
            _ => {}
        }
        let end_s = if let Quirk::Pauses { stop_s, period_s } = self.queue.quirk {
            let works_s = period_s - stop_s;
            // Real time to the time in which servers work, and back.
            let work = |t: f64| (t / period_s).floor() * works_s + (t % period_s).min(works_s);
            let real = |w: f64| (w / works_s).floor() * period_s + w % works_s;
            real(self.occupy(work(at_s), service_s))
        } else {
            self.occupy(at_s, service_s)
        };
        if counts {
            self.under_way.push(Free(end_s));
        }
        Some(end_s + extra_s)
    }

    fn occupy(&mut self, at_s: f64, service_s: f64) -> f64 {
        let free_s = self.free.pop().map_or(at_s, |free| free.0);
        let end_s = free_s.max(at_s) + service_s;
        self.free.push(Free(end_s));
        end_s
    }

    fn settle(
        &mut self,
        windows: &mut [Window],
        at: usize,
        response_s: Option<f64>,
        end: Option<usize>,
    ) {
        if let Some(ended) = end.and_then(|end| windows.get_mut(end)) {
            ended.completed += 1;
        }
        let window = &mut windows[at];
        window.scheduled += 1;
        window.failed += u64::from(response_s.is_none());
        let response_s = response_s.unwrap_or(f64::INFINITY);
        let finite_s = if response_s.is_finite() { response_s } else { 0.0 };
        let has_classes = matches!(self.queue.quirk, Quirk::Classes { .. });
        for (limit, limit_s) in self.limits_s.iter().enumerate() {
            if has_classes && limit != self.changing.class {
                window.exempt[limit] += 1;
                window.exempt_sum_s[limit] += finite_s;
            } else {
                window.late[limit] += u64::from(response_s > *limit_s);
            }
        }
        window.response_sum_s += finite_s;
    }

    /// Closes the batch that is being collected; it starts at `at_s`.
    fn close_batch(&mut self, at_s: f64, start_s: f64, window_s: f64, windows: &mut [Window]) {
        let waiting = std::mem::take(&mut self.batch);
        if waiting.is_empty() {
            return;
        }
        let service_s = self.queue.service.draw(&mut self.rng);
        let end_s = self.occupy(at_s, service_s) + self.queue.delay_s;
        self.last_done_s = self.last_done_s.max(end_s);
        for arrived_s in waiting {
            let at = window_of(arrived_s - start_s, window_s, windows.len());
            self.settle(
                windows,
                at,
                Some(end_s - arrived_s),
                Some(((end_s - start_s) / window_s) as usize),
            );
        }
    }

    fn arrive(&mut self, t: f64, start_s: f64, window_s: f64, windows: &mut [Window]) -> f64 {
        let mut lag_s = 0.0;
        let mut sent_s = t;
        if let Quirk::Starved { most_per_s } = self.queue.quirk {
            // It may be half a second ahead of its own pace: bursts are no trouble, a lasting rate is.
            sent_s = t.max(self.may_send_s - 0.5);
            self.may_send_s = self.may_send_s.max(t) + 1.0 / most_per_s;
            lag_s = sent_s - t;
        }
        if let Quirk::Stalls { every_s, stall_s } = self.queue.quirk {
            let left_s = every_s - t % every_s;
            lag_s = if left_s < stall_s { left_s } else { 0.0 };
            sent_s = t + lag_s;
        }
        if let Quirk::Batches { size, patience_s } = self.queue.quirk {
            if let Some(&first_s) = self.batch.first()
                && t > first_s + patience_s
            {
                self.close_batch(first_s + patience_s, start_s, window_s, windows);
            }
            self.batch.push(t);
            if self.batch.len() >= size as usize {
                self.close_batch(t, start_s, window_s, windows);
            }
            return lag_s;
        }
        let end_s = self.serve(sent_s);
        self.last_done_s = self.last_done_s.max(end_s.unwrap_or(sent_s));
        let at = window_of(t - start_s, window_s, windows.len());
        let ended = end_s.map(|end_s| ((end_s - start_s) / window_s) as usize);
        self.settle(windows, at, end_s.map(|end_s| end_s - t), ended);
        lag_s
    }
}

fn window_of(since_s: f64, window_s: f64, windows: usize) -> usize {
    ((since_s / window_s) as usize).min(windows - 1)
}

impl Plant for QueuePlant {
    fn run(&mut self, order: &Order) -> Trial {
        let mut arrivals = Rng::new(order.seed);
        let start_s = self.now_s;
        self.may_send_s = start_s;
        let counts: Vec<usize> = order
            .segments
            .iter()
            .map(|s| ((s.duration_s / order.window_s).round() as usize).max(1))
            .collect();
        let mut windows = vec![Window::default(); counts.iter().sum()];
        let (mut t, mut judged, mut aborted) = (start_s, 0, false);
        let (mut due, mut late_sent) = (0u64, 0u64);
        let mut worst_lag_s = 0.0f64;
        let mut segment_end_s = start_s;
        'all: for (segment, count) in order.segments.iter().zip(counts) {
            // The gap of a segment begins at its start: exponential gaps have no memory.
            t = t.max(segment_end_s);
            segment_end_s += count as f64 * order.window_s;
            loop {
                let gap = match self.queue.arrivals {
                    Arrivals::Poisson => arrivals.exponential(),
                    Arrivals::Uniform => 1.0,
                };
                let next_s = t + gap / segment.rate_per_s;
                if next_s >= segment_end_s {
                    if self.queue.arrivals == Arrivals::Poisson {
                        t = segment_end_s;
                    }
                    break;
                }
                t = next_s;
                let lag_s = self.arrive(t, start_s, order.window_s, &mut windows);
                due += 1;
                late_sent += u64::from(lag_s > 1e-3);
                worst_lag_s = worst_lag_s.max(lag_s);
                // A verdict is known when the longest limit has passed.
                if let Some(abort) = order.abort {
                    let known_s =
                        t - start_s - self.limits_s.iter().fold(0.0, |a: f64, b| a.max(*b));
                    let known = (known_s / order.window_s) as usize;
                    if known_s > 0.0 && known > judged {
                        judged = known;
                        if abort.is_due(&windows[..known], &order.allowed) {
                            windows.truncate(known);
                            aborted = true;
                            break 'all;
                        }
                    }
                }
            }
        }
        let offered_until_s = if aborted { t } else { segment_end_s };
        if let Quirk::Batches { patience_s, .. } = self.queue.quirk {
            let first_s = self.batch.first().copied().unwrap_or(offered_until_s);
            self.close_batch(first_s + patience_s, start_s, order.window_s, &mut windows);
        }
        self.now_s = offered_until_s.max(self.last_done_s);
        let lag_p99_s = if late_sent * 100 > due { worst_lag_s } else { 0.0 };
        Trial {
            windows,
            elapsed_s: self.now_s - start_s,
            aborted,
            interrupted: false,
            pace: Pace { lag_p99_s },
        }
    }

    fn limits(&self) -> usize {
        self.limits_s.len()
    }
}
