//! All floods, by server.

use super::{Endpoint, Flood, Honest, attacks, bodies, frames, get, values};
use std::time::Duration;

/// Memory of the servers that answer without data.
const SMALL: u64 = 256 << 20;
/// Memory of a station whose replies wait: its limit of waiting bytes, and what the process has without them.
const WAITING: u64 = 700 << 20;
/// Memory of the search server: bodies and replies have 512 MiB each, and the process what it has without them.
const SEARCH: u64 = 1_500 << 20;

fn at_root(endpoint: &Endpoint, patience: Duration) -> std::io::Result<()> {
    get(endpoint, "/", patience)
}

fn at_stats(endpoint: &Endpoint, patience: Duration) -> std::io::Result<()> {
    get(endpoint, "/_stats", patience)
}

fn at_api(endpoint: &Endpoint, patience: Duration) -> std::io::Result<()> {
    get(endpoint, "/api/1.0/?Procedure=@Ping", patience)
}

fn at_page(endpoint: &Endpoint, patience: Duration) -> std::io::Result<()> {
    get(endpoint, &format!("/?token={}", endpoint.token), patience)
}

type Attack = (&'static str, fn(&super::Ground<'_>));

/// Floods that every server of HTTP/1.1 is given.
const HTTP: [Attack; 12] = [
    ("silent connections", attacks::silent),
    ("heads by the byte", attacks::slow_heads),
    ("bodies by the byte", attacks::slow_bodies),
    ("bodies of 2 MB without their last byte", attacks::unfinished_bodies),
    ("connections opened and closed", attacks::opens_and_closes),
    ("heads without end", attacks::endless_heads),
    ("request lines without end", attacks::endless_lines),
    ("pipelined requests, replies not read", attacks::pipelined),
    ("chunk extensions without end", attacks::chunk_extensions),
    ("chunks without end", attacks::endless_chunks),
    ("bodies of up to 2^63 bytes", attacks::giant_bodies),
    ("random bytes", attacks::noise),
];

/// Floods of the search server alone.
const OF_SEARCH: [Attack; 24] = [
    ("100 Continue expected, no body sent", attacks::expectations),
    ("HTTP/2: streams opened and reset", frames::rapid_reset),
    ("HTTP/2: CONTINUATION without end", frames::continuations),
    ("HTTP/2: PING and SETTINGS, answers not read", frames::pings),
    ("HTTP/2: HPACK bombs", frames::hpack_bombs),
    ("HTTP/2: replies behind closed windows", frames::closed_windows),
    ("HTTP/2: bodies without end on 500 streams", frames::unfinished_bodies),
    ("queries nested 50,000 deep", bodies::nested_queries),
    ("regular expressions, wildcards and fuzzy words", bodies::patterns),
    ("sizes and buckets of 2^31", bodies::sizes),
    ("gzip bombs as bodies", bodies::packed_bombs),
    ("bulk bodies of 90 MB", bodies::giant_bulks),
    ("bulk bodies of 200,000 lines", bodies::full_bulks),
    ("values that take gigabytes as a tree", values::trees),
    ("documents of millions of values", values::documents),
    ("small updates of a document of 5 MB", values::updates),
    ("replies of gigabytes", values::replies),
    ("long documents in 900 indices", values::drafts),
    ("long documents, faster than their index", values::backlog),
    ("new fields without end", bodies::new_fields),
    ("new indices without end", bodies::new_indices),
    ("forged ids and tokens", bodies::forged_tokens),
    ("deep and wide YQL and selections", bodies::deep_yql),
    ("documents nested 400,000 deep", bodies::nested_documents),
];

/// Floods of the voter database's own protocol.
const OF_VOTER: [Attack; 5] = [
    ("silent connections", attacks::silent),
    ("logins of 2^31 - 1 bytes", frames::volt_lengths),
    ("calls of 50 MiB without end", frames::volt_unfinished_calls),
    ("calls whose answers are not read", frames::volt_unread_answers),
    ("random bytes", attacks::noise),
];

/// Floods of the ranking server's frames.
const OF_RANK: [Attack; 2] = [
    ("frames of 2^32 - 1 bytes", frames::rank_lengths),
    ("requests whose replies are not read", frames::rank_unread_replies),
];

/// Floods of a live page alone, by a client without the token.
const OF_LIVE: [Attack; 2] = [
    ("tokens guessed without end", attacks::guesses),
    ("scrapes whose replies are not read", attacks::unread_scrapes),
];

/// A run with a live page; its target is a server of its own.
const LIVE: &str = "load --live --rate 200 --duration 1h --no-record";

/// All floods.
#[must_use]
pub fn all() -> Vec<Flood> {
    let make = |server, honest, port, memory_max| {
        move |&(name, attack): &Attack| {
            let is_nice = server == LIVE;
            Flood { server, name, attack, honest, is_nice, port, memory_max }
        }
    };
    let null = make("serve null", at_root as Honest, 0, WAITING);
    let queue = make("serve queue --servers 2 --service exponential:1ms", at_root, 0, WAITING);
    let search = make("serve search", bodies::honest, 0, SEARCH);
    let rank = make("serve rank --scale 8", at_stats, 1, SMALL + (1 << 30));
    let voter = make("serve voter --http-port 0", at_api, 1, WAITING);
    let volt = make("serve voter", frames::volt, 0, WAITING + (300 << 20));
    // Its thread leaves all processors to the run, and would be left none by a flood of the same machine.
    let live = make(LIVE, at_page, 0, SMALL);
    let mut all: Vec<Flood> = Vec::new();
    all.extend(HTTP.iter().map(null));
    all.extend(HTTP.iter().map(queue));
    all.extend(HTTP.iter().chain(&OF_SEARCH).map(search));
    all.extend(HTTP.iter().chain(&OF_RANK).map(rank));
    all.extend(HTTP.iter().map(voter));
    all.extend(OF_VOTER.iter().map(volt));
    all.extend(HTTP.iter().chain(&OF_LIVE).map(live));
    all
}
