//! Was the generator, or a limit of connections, what was measured?

use super::effects::{
    Bound, Bounds, Marginal, WITHOUT_WAIT, least_quantile_ns, mean_delay_ns, most_quantile_ns,
    own_delays,
};
use super::{ConnectionLimit, Evidence, Health};
use crate::histogram::Histogram;

/// The judgement of the generator.
#[derive(Debug, Default)]
pub(super) struct Judgement {
    /// Reason why the figures are not the target's, whatever they are; nothing where they are.
    pub limits: Vec<String>,
    /// Reason why the bulk of the response times is the generator's own, if it is.
    pub late: Option<String>,
    /// The way a limit of connections shaped the figures, if it did.
    pub connections: Option<String>,
    /// Errors of figures that are still the target's.
    pub effects: Vec<String>,
    /// The same as numbers, always.
    pub bounds: Bounds,
}

/// A thread with less than this share of the stretch left has no time to be on time.
const LEFT: f64 = 0.03;
/// Of a shorter stretch the share of busy time says nothing, s.
const SHORTEST_S: f64 = 0.1;
/// Share of the stretch for which the process may be kept from a processor before the result is no longer the target's.
const WITHHELD: f64 = 0.2;
/// Share of the stretch below which a cause is reported in milliseconds, and only if it explains a delay.
const SAID: f64 = 0.005;
/// Share of p50 or p95 that may be the generator's own.
const OWN_SHARE: f64 = 0.5;
/// An effect below this is tolerated whatever its share, ns. The generator's own timers and a wake-up cost as much.
const OWN_FLOOR_NS: f64 = 1e6;
/// Share of a figure from which on an effect is worth a sentence.
const NOTICEABLE_SHARE: f64 = 0.1;
/// The same as a time, ns.
const NOTICEABLE_NS: f64 = 100_000.0;
/// Share of the due requests that may be missing before a rate is called short.
const SHORT: f64 = 0.02;
/// Share of requests that admission may refuse because the generator was late.
const REFUSED_LATE: f64 = 0.01;
/// A machine that was suspended for longer measured something else, s.
const SUSPENDED_S: f64 = 0.1;
/// A percentile needs this many requests beyond it before half of it can be called the generator's.
const TAIL: f64 = 5.0;

pub(super) fn judge(evidence: &Evidence<'_>) -> Judgement {
    let all = evidence.totals.all_classes();
    let measured = all.response;
    let bounds = bounds(evidence, &measured, &all.service);
    let mut judgement =
        Judgement { limits: limits(evidence, &measured), bounds, ..Judgement::default() };
    judgement.late = late(evidence, (&measured, &all.service));
    judgement.connections = waiting(evidence, &measured);
    // The cause is said once.
    let cause = judgement.late.is_none().then(|| cause(evidence));
    judgement.effects.extend(latency_effect(&bounds, &measured, cause.as_deref()));
    judgement.effects.extend(rate_effect(evidence, &bounds));
    judgement
}

/// Returns the reasons for which a rate does not describe the target, and how far it may be too low.
pub(super) fn judge_rate(evidence: &Evidence<'_>) -> (Vec<String>, Option<String>) {
    let all = evidence.totals.all_classes();
    let limits = limits(evidence, &all.response);
    let bounds = bounds(evidence, &all.response, &all.service);
    (limits, rate_effect(evidence, &bounds))
}

/// The bounds of the headline figures.
fn bounds(evidence: &Evidence<'_>, measured: &Histogram, service: &Histogram) -> Bounds {
    let delays = own_delays(evidence.totals, evidence.connections != ConnectionLimit::None);
    let of = |quantile: f64| {
        let low = least_ns(evidence, quantile, &delays, (measured, service));
        let shown = measured.quantile_ns(quantile) as f64;
        let high = match own_ns_a_round(evidence) {
            Some((_, own_ns)) => most_quantile_ns(measured, quantile, &delays, own_ns),
            None => shown,
        };
        [low / 1e6, high / 1e6]
    };
    Bounds { p50_ms: of(0.5), p95_ms: of(0.95), p99_ms: of(0.99), ok_per_s: rate_bounds(evidence) }
}

/// The least that a percentile of the target's own times can be, ns: from the response times without all delays, or
/// from what was measured from the sending on, which holds neither lag nor the wait for a connection.
fn least_ns(
    evidence: &Evidence<'_>,
    quantile: f64,
    delays: &[Marginal<'_>],
    (measured, service): (&Histogram, &Histogram),
) -> f64 {
    let totals = evidence.totals;
    let disturbed = totals.delays.disturbed as f64 / totals.ledger.ok.max(1) as f64;
    let low = least_quantile_ns(measured, quantile, delays, disturbed);
    let sent = least_quantile_ns(service, quantile, &delays[1..WITHOUT_WAIT], disturbed);
    low.max(sent).min(measured.quantile_ns(quantile) as f64)
}

/// The fewest and the most successful requests per second that the target may have done for an ideal generator.
fn rate_bounds(evidence: &Evidence<'_>) -> Bound {
    // What was held up before the stretch began has ended in it, and what was held up at its end behind it.
    let delays = &evidence.totals.delays;
    let longest = [&evidence.totals.lag, &delays.receive, &delays.send, &delays.starved];
    let longest_s = longest.iter().map(|times| times.max_ns() as f64 / 1e9).sum::<f64>();
    let edge = if evidence.measured_s > 0.0 { longest_s / evidence.measured_s } else { 0.0 };
    let edge = edge.min(1.0);
    [evidence.rates.ok_per_s * (1.0 - edge), steady_per_s(evidence) * (1.0 + edge)]
}

/// The most of them, far from the ends of the stretch.
fn steady_per_s(evidence: &Evidence<'_>) -> f64 {
    let ok_per_s = evidence.rates.ok_per_s;
    let ledger = &evidence.totals.ledger;
    if let Some((round_ns, own_ns)) = own_ns_a_round(evidence) {
        let left_ns = (round_ns - own_ns).max(round_ns * LEFT);
        return ok_per_s * round_ns / left_ns;
    }
    if shortfall(evidence) > SHORT && is_saturated(evidence) {
        let ok_share = ledger.ok as f64 / ledger.finished().max(1) as f64;
        return evidence.rates.offered_per_s * ok_share;
    }
    if ok_per_s > 0.0 && ledger.refused.queue_full + ledger.refused.queue_timeout > 0 {
        return ok_per_s * freed_slots(evidence);
    }
    ok_per_s
}

/// Of a closed load, by Little's law: the time in which each client goes round, ns, and the part of it that was this
/// process's. Of users it is not known how long they think; the shorter the round, the larger that part.
fn own_ns_a_round(evidence: &Evidence<'_>) -> Option<(f64, f64)> {
    let achieved_per_s = evidence.rates.achieved_per_s.max(evidence.rates.ok_per_s);
    if evidence.open || evidence.rates.ok_per_s <= 0.0 {
        return None;
    }
    let round_ns = match evidence.clients {
        Some(clients) => f64::from(clients) * 1e9 / achieved_per_s,
        None => evidence.totals.all_classes().response.mean_ns().max(1.0),
    };
    let may_wait = evidence.connections != ConnectionLimit::None;
    let own_ns = mean_delay_ns(evidence.totals, may_wait);
    Some((round_ns, own_ns + round_ns * evidence.health.withheld()))
}

/// Ratio of the requests that an ideal generator would have got through the same slots: each was held for the target's
/// time and for what this process added to it, the judging of its reply too. No more than were refused.
fn freed_slots(evidence: &Evidence<'_>) -> f64 {
    let (totals, ledger) = (evidence.totals, &evidence.totals.ledger);
    let held_ns = totals.all_classes().service.mean_ns().max(1.0);
    let sum = |times: &Histogram| times.mean_ns() * times.count() as f64;
    let delays = &totals.delays;
    let work_ns =
        evidence.health.busy * evidence.measured_s * 1e9 * f64::from(evidence.threads.max(1));
    let own_ns = (sum(&delays.receive) + sum(&delays.send) + work_ns) / ledger.sent.max(1) as f64
        + held_ns * evidence.health.withheld();
    let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
    let most = 1.0 + refused as f64 / ledger.finished().max(1) as f64;
    (held_ns / (held_ns - own_ns).max(held_ns * LEFT)).min(most)
}

/// Share of the requests that were due, admission's refusals left out, and did not end within the stretch.
fn shortfall(evidence: &Evidence<'_>) -> f64 {
    let ledger = &evidence.totals.ledger;
    let refused = ledger.refused.queue_full + ledger.refused.queue_timeout;
    let due = ledger.scheduled.saturating_sub(refused) as f64;
    let ended = evidence.totals.counters.ended_in_time as f64;
    if due > 0.0 { 1.0 - (ended / due).min(1.0) } else { 0.0 }
}

/// A run that is over in a moment has no time to be idle.
fn is_saturated(evidence: &Evidence<'_>) -> bool {
    evidence.health.left() < LEFT && evidence.measured_s >= SHORTEST_S
}

/// Returns the reasons for which no figure describes the target.
fn limits(evidence: &Evidence<'_>, measured: &Histogram) -> Vec<String> {
    let (health, totals) = (&evidence.health, evidence.totals);
    let percent = |share: f64| share * 100.0;
    let mut limits = Vec::new();
    if totals.counters.exhausted > 0 {
        limits.push(format!(
            "this machine had no file descriptor, local port or memory left {} times (ulimit -n, \
             net.ipv4.ip_local_port_range): these failures are not the target's",
            totals.counters.exhausted
        ));
    }
    if is_saturated(evidence) {
        let waiting = if health.withheld() > LEFT {
            format!(", and it waited for a processor for {:.0} %", percent(health.withheld()))
        } else {
            String::new()
        };
        limits.push(format!(
            "generator CPU saturated ({:.0} % busy{waiting}): the target may handle more; use more --threads, \
             cheaper checks or another machine",
            percent(health.busy)
        ));
    } else if health.withheld() > WITHHELD
        && evidence.measured_s >= SHORTEST_S
        && !measured.is_empty()
    {
        limits.push(format!(
            "{}: the figures describe a delayed generator; give it its own core or another machine",
            withheld(evidence, evidence.measured_s * SAID)
        ));
    }
    if health.suspended_s > SUSPENDED_S {
        limits.push(format!(
            "the machine was suspended for {:.1} s during the run",
            health.suspended_s
        ));
    }
    let refused = totals.counters.refused_late as f64;
    if refused > totals.ledger.scheduled as f64 * REFUSED_LATE {
        limits.push(format!(
            "{refused} requests were refused because the generator was late: the queue, or a free slot, would have taken \
             them in time"
        ));
    }
    limits
}

/// Returns, in words, everything that kept the process from a processor for `least_s` or longer.
fn withheld(evidence: &Evidence<'_>, least_s: f64) -> String {
    let said = who_withheld(&evidence.health, evidence.measured_s, least_s);
    if said.is_empty() { "the generator was delayed".to_owned() } else { said.join(", ") }
}

/// Returns, in words, everything that kept the process from a processor for at least this share of a run, if anything did.
#[must_use]
pub fn held_up_by(health: &Health, measured_s: f64, share: f64) -> Option<String> {
    let said = who_withheld(health, measured_s, share * measured_s);
    (!said.is_empty()).then(|| said.join(", "))
}

fn who_withheld(health: &Health, measured_s: f64, least_s: f64) -> Vec<String> {
    let parts = [
        (health.starved, "other programs had its core", "starved"),
        (health.throttled, "a CPU quota held it back", "throttled"),
        (health.stolen, "the hypervisor ran other machines", "stolen"),
        (health.stopped, "a signal stopped it", "stopped"),
    ];
    parts
        .iter()
        .map(|(share, what, _)| (*share, share * measured_s, what))
        .filter(|(_, time_s, _)| *time_s > 0.0 && *time_s >= least_s)
        .map(|(share, time_s, what)| {
            if share >= SAID {
                format!("{what} for {:.0} % of the time", share * 100.0)
            } else {
                format!("{what} for {:.1} ms", time_s * 1e3)
            }
        })
        .collect()
}

/// Returns the reason if the bulk of the response times is the generator's own. One short stall in the tail is not: it
/// is an effect. Nor is the wait for a connection if their number is limited: it has its own verdict.
fn late(evidence: &Evidence<'_>, times: (&Histogram, &Histogram)) -> Option<String> {
    let delays = own_delays(evidence.totals, evidence.connections == ConnectionLimit::Grown);
    let count = times.0.count() as f64;
    let (name, own, shown) =
        [("p50", 0.5), ("p95", 0.95)].into_iter().find_map(|(name, quantile)| {
            let shown_ns = times.0.quantile_ns(quantile) as f64;
            let own_ns = shown_ns - least_ns(evidence, quantile, &delays, times);
            let is_late = count * (1.0 - quantile) >= TAIL
                && own_ns > OWN_FLOOR_NS
                && own_ns > shown_ns * OWN_SHARE;
            is_late.then_some((name, own_ns / 1e6, shown_ns / 1e6))
        })?;
    Some(format!(
        "the generator was late: up to {own:.2} ms of {name} ({shown:.2} ms) come from the generator ({}); give it a core \
         of its own, more --threads or another machine",
        cause(evidence)
    ))
}

/// The largest delay, in words.
fn cause(evidence: &Evidence<'_>) -> String {
    let totals = evidence.totals;
    let tail = |times: &Histogram| {
        let marginal = Marginal { times, count: totals.ledger.ok.max(1) };
        marginal.exceeded_by_one_percent()
    };
    let lag = tail(&totals.lag);
    let receive = tail(&totals.delays.receive);
    let starved = tail(&totals.delays.starved);
    let send = tail(&totals.delays.send);
    let connection = match evidence.connections {
        ConnectionLimit::None => 0.0,
        _ => tail(&totals.delays.connection),
    };
    let worst = lag.max(receive).max(starved).max(send).max(connection);
    let mut said = if totals.delays.disturbed * 20 > totals.ledger.sent {
        format!(
            "it was delayed, and {:.1} % of the requests were sent during the delay or soon after it",
            totals.delays.disturbed as f64 * 100.0 / totals.ledger.sent.max(1) as f64
        )
    } else if worst == starved && starved > 0.0 {
        format!("replies waited up to {:.2} ms for it to get a processor", starved / 1e6)
    } else if worst == receive && receive > 0.0 {
        format!("replies waited up to {:.2} ms to be read", receive / 1e6)
    } else if worst == send && send > 0.0 {
        format!("it took up to {:.2} ms to send a request", send / 1e6)
    } else if worst == connection && connection > 0.0 {
        format!("requests waited up to {:.2} ms for a connection", connection / 1e6)
    } else {
        format!("p99 of its lag is {:.2} ms", lag / 1e6)
    };
    let withheld_ns = evidence.health.withheld() * evidence.measured_s * 1e9;
    // One stall bends the figures of a short run, and is a small share of its time.
    if evidence.health.withheld() >= 0.02 || (worst > 0.0 && withheld_ns >= worst / 2.0) {
        let explains_s = if worst > 0.0 { worst / 4e9 } else { f64::INFINITY };
        let least_s = (evidence.measured_s * SAID).min(explains_s);
        said += &format!("; {}", withheld(evidence, least_s));
    } else if let Some(own) = busy_percent(evidence) {
        said += &format!("; busy {own:.0} %");
    }
    if evidence.health.stops > 0 {
        said += &format!("; stopped by a signal {} times", evidence.health.stops);
    }
    said
}

/// Returns the share of the time in which the generator was busy. CPU time is read at the end of a run: before that it is unknown.
fn busy_percent(evidence: &Evidence<'_>) -> Option<f64> {
    (evidence.health.busy > 0.0).then_some(evidence.health.busy * 100.0)
}

/// Returns the error of the percentiles: too high or, in a closed model, too low.
fn latency_effect(bounds: &Bounds, measured: &Histogram, cause: Option<&str>) -> Option<String> {
    let moved: Vec<String> = bounds
        .percentiles()
        .into_iter()
        .filter_map(|(name, quantile, [low, high])| {
            let shown = measured.quantile_ns(quantile) as f64 / 1e6;
            let is_much = |ms: f64| ms * 1e6 > NOTICEABLE_NS && ms > shown * NOTICEABLE_SHARE;
            let ways: Vec<String> = [(shown - low, "high"), (high - shown, "low")]
                .into_iter()
                .filter(|(effect, _)| is_much(*effect))
                .map(|(effect, way)| format!("{effect:.2} ms too {way}"))
                .collect();
            (!ways.is_empty()).then(|| format!("{name} may be {}", ways.join(" or ")))
        })
        .collect();
    let cause = cause.map_or(String::new(), |cause| format!(": {cause}"));
    (!moved.is_empty()).then(|| format!("{}{cause}", moved.join(", ")))
}

/// Returns the error of the rate, which may be too low.
fn rate_effect(evidence: &Evidence<'_>, bounds: &Bounds) -> Option<String> {
    let (shown, fastest) = (evidence.rates.ok_per_s, bounds.ok_per_s[1]);
    let noticeable = fastest > shown * (1.0 + NOTICEABLE_SHARE);
    (shown > 0.0 && noticeable && evidence.measured_s >= SHORTEST_S).then(|| {
        let own = busy_percent(evidence)
            .map_or(String::new(), |own| format!(", which was {own:.0} % busy"));
        let times = fastest / shown;
        format!(
            "a generator without delays may have completed up to {}: replies waited for \
             plimsoll{own}{}",
            // 1,300 % more is hard to read as fourteen times.
            if bounds.leaves_open(shown) {
                format!("{times:.1} times as many requests")
            } else {
                format!("{:.0} % more requests", (times - 1.0) * 100.0)
            },
            if evidence.health.withheld() >= 0.02 {
                format!("; {}", withheld(evidence, evidence.measured_s * SAID))
            } else {
                String::new()
            }
        )
    })
}

/// Returns the reason if a limit of connections shaped the result, and whose limit it was.
fn waiting(evidence: &Evidence<'_>, measured: &Histogram) -> Option<String> {
    let totals = evidence.totals;
    let waits = &totals.delays.connection;
    let (limit, whose) = match evidence.connections {
        ConnectionLimit::None | ConnectionLimit::Grown => return None,
        ConnectionLimit::Asked(limit) => (limit, "that --connections allows"),
        ConnectionLimit::Own(limit) => (limit, "that plimsoll opens by itself"),
        ConnectionLimit::Machine(limit) => (limit, "that this process may open"),
    };
    let delays = [Marginal { times: waits, count: totals.ledger.ok.max(1) }];
    let moved =
        [("p50", 0.5), ("p95", 0.95), ("p99", 0.99)].into_iter().find_map(|(name, quantile)| {
            let shown_ns = measured.quantile_ns(quantile) as f64;
            let own_ns = shown_ns - least_quantile_ns(measured, quantile, &delays, 0.0);
            let shaped = own_ns > OWN_FLOOR_NS && own_ns > shown_ns * NOTICEABLE_SHARE;
            shaped.then(|| {
                format!("up to {:.2} of the {:.2} ms of {name}", own_ns / 1e6, shown_ns / 1e6)
            })
        });
    let is_much = |count: u64| count as f64 > totals.ledger.scheduled as f64 * SHORT;
    let unsent = totals.ledger.unsent.stopped;
    // With slots, a limit of connections is one only where it is the lower of the two.
    let refused = totals.ledger.refused.queue_full + totals.ledger.refused.queue_timeout;
    let what = match moved {
        Some(moved) => format!("waiting for one is {moved}"),
        None if is_much(unsent) && waits.count() > 0 => {
            format!("{unsent} requests that were due never got one")
        }
        None if is_much(refused) => {
            format!("{refused} requests were refused, though --slots would have let more in")
        }
        None => return None,
    };
    Some(format!(
        "all {limit} connections {whose} were in use: {what}; with more connections, more requests would have been in flight"
    ))
}

#[cfg(test)]
mod tests;
