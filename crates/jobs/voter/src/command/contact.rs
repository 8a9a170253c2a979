//! Requests to the database before and after the calls, on a separate connection.

use super::address::{Database, VoltAddress, authority};
use super::stranger::looks_like;
use crate::{
    Routes, contestants_sql, count_sql, hello_inserts, hello_table, postgres_schema, results_of,
    results_sql,
};
use anyhow::{Result, bail};
use plimsoll_core::units::Span;
use plimsoll_core::voter::KeyRange;
use plimsoll_engine::exchange::{Exchange, ExchangeError};
use plimsoll_engine::target::Target;
use plimsoll_engine::tls::TlsRefusal;
use plimsoll_job::postgres::{Address, NoLogin};
use plimsoll_job::usage::{unreachable, usage};
use plimsoll_record::bench_shape::Bench;
use plimsoll_record::voter::ContestantVotes;
use plimsoll_wire::postgres::{self, Postgres};
use plimsoll_wire::volt::{Host, Login, Refusal, Request, Response, Status, Topology, Value, Volt};
use plimsoll_wire::{Fault, Protocol};
use std::time::Duration;

/// Longest answer to a count or to the making of tables: both look at every partition.
const ANSWER_WITHIN: Span = Span::seconds(60);

/// A connection on which one asks and waits.
pub enum Contact {
    /// To a server of VoltDB's protocol.
    Volt(Box<Exchange<Volt>>),
    /// To PostgreSQL.
    Sql(Box<Exchange<Postgres>>),
}

/// The codec of calls to VoltDB, with this many in flight on a connection.
#[must_use]
pub fn volt_of(address: &VoltAddress, depth: u32) -> Volt {
    Volt::new(Login::new(&address.user, &address.password)).with_depth(depth)
}

fn patience(span: Span) -> Duration {
    Duration::from_nanos(span.ns)
}

impl Contact {
    /// Logs in at every host, and keeps the first connection.
    ///
    /// # Errors
    /// Nothing listens (the target failed), or the server rejects the login, or is no database of this kind.
    pub fn open(database: &Database, connect_timeout: Span) -> Result<Self> {
        let targets = database.targets();
        match database {
            Database::Volt(address) => {
                let mut first: Option<(Exchange<Volt>, Option<Host>)> = None;
                for (index, target) in targets.iter().enumerate() {
                    // One that is named twice is asked once.
                    if targets[..index].contains(target) {
                        continue;
                    }
                    let (exchange, host) = open_volt(address, target, connect_timeout)?;
                    match &first {
                        Some((_, one)) if one.map(cluster_of) != host.map(cluster_of) => {
                            return Err(usage(format!(
                                "{} and {} belong to different clusters, and rows would be counted at one only; name \
                                 hosts of one cluster",
                                authority(&target.host, target.port),
                                authority(&targets[0].host, targets[0].port)
                            )));
                        }
                        Some(_) => {}
                        None => first = Some((exchange, host)),
                    }
                }
                let first = first.map(|(exchange, _)| Self::Volt(Box::new(exchange)));
                first.ok_or_else(|| usage("no target; name a host"))
            }
            Database::Postgres(address) => {
                let target = targets.first().ok_or_else(|| usage("no target; name a host"))?;
                log_in(address, connect_timeout)?;
                open_sql(address, target).map(Box::new).map(Self::Sql)
            }
        }
    }

    /// Makes ready what the benchmark needs: the schema where it can, the contestants, the greetings. Returns what should be
    /// known of it with the result.
    ///
    /// # Errors
    /// The database refuses, or has not the procedures.
    pub fn prepare(&mut self, bench: Bench, names: &[String]) -> Result<Vec<String>> {
        let there = match (self, bench) {
            (Self::Volt(exchange), Bench::Voter) => initialize(exchange, names)?,
            (Self::Volt(exchange), Bench::Hello) => return greet(exchange).map(|()| Vec::new()),
            (Self::Sql(exchange), Bench::Voter) => {
                sql(exchange, &postgres_schema())?;
                let there = sql(exchange, &contestants_sql(names))?;
                there.and_then(|there| there.parse().ok()).unwrap_or_default()
            }
            (Self::Sql(exchange), Bench::Hello) => {
                return sql(exchange, &hello_table()).map(|_| Vec::new());
            }
        };
        let (asked, more) = (names.len() as i64, names.len() as i64 - there);
        let text = format!(
            "the database already has {there} contestants instead of the requested {asked}: votes for the other {more} are \
             rejected; use --contestants {there}, or empty the table contestants"
        );
        Ok((more > 0).then_some(text).into_iter().collect())
    }

    /// Number of rows that the key range holds.
    ///
    /// # Errors
    /// The database does not answer, or refuses.
    pub fn count(&mut self, range: KeyRange) -> Result<u64> {
        let text = count_sql(range)?;
        let rows = match self {
            Self::Volt(exchange) => {
                let mut request = Request::default();
                request.call("@AdHoc", &[Value::String(&text)]);
                volt(exchange, &request, |reply| reply.long())?.and_then(|n| u64::try_from(n).ok())
            }
            Self::Sql(exchange) => sql(exchange, &text)?.and_then(|text| text.parse().ok()),
        };
        rows.ok_or_else(|| anyhow::anyhow!("the reply to the count of votes is not a number"))
    }

    /// The contestants with their votes, most first.
    ///
    /// # Errors
    /// As [`Contact::count`].
    pub fn results(&mut self) -> Result<Vec<ContestantVotes>> {
        let all = match self {
            Self::Volt(exchange) => {
                let mut request = Request::default();
                request.call("Results", &[]);
                volt(exchange, &request, results_of)?
            }
            Self::Sql(exchange) => {
                sql(exchange, results_sql())?.and_then(|text| serde_json::from_str(&text).ok())
            }
        };
        all.ok_or_else(|| anyhow::anyhow!("the results are not in the form of the voter's"))
    }
}

/// Returns the host that leads each partition, by the targets of a run; none if there is one host, or if the cluster does
/// not say: votes then go to any host, which passes them on.
///
/// # Errors
/// A host that does not let us in.
pub fn routes(address: &VoltAddress, targets: &[Target], limit: Span) -> Result<Option<Routes>> {
    let mut hosts = Vec::new();
    let mut topology = None;
    for target in targets {
        let (mut exchange, host) = open_volt(address, target, limit)?;
        let mut request = Request::default();
        Topology::ask(&mut request);
        topology = exchange.ask(&request, |reply| Topology::read(reply).ok())?;
        match host {
            Some(host) => hosts.push(host.id),
            None => return Ok(None),
        }
    }
    Ok(topology.and_then(|topology| Routes::new(topology, hosts)))
}

/// Says what went wrong with a connection that was just made.
fn refused(error: ExchangeError, target: &Target, shown: &str, hello: &[u8]) -> anyhow::Error {
    match error {
        ExchangeError::Unresolved(_) | ExchangeError::Connect { .. } => unreachable(format!(
            "{shown} cannot be reached: {error}; start the database or check the port; plimsoll serve voter starts plimsoll's own database"
        )),
        ExchangeError::Fault(Fault::Refused(why)) => {
            usage(format!("{shown}: {why}; give the password in VOLTDB_PASSWORD or in the URL"))
        }
        ExchangeError::Fault(Fault::Unready(why)) => {
            unreachable(format!("{shown}: {why}; try again later"))
        }
        ExchangeError::Tls(why) if !matches!(why, TlsRefusal::Foreign(_)) => {
            usage(format!("{shown}: {why}"))
        }
        error => usage(format!(
            "{shown}: {} is not the expected protocol: {}; check the port ({error})",
            authority(&target.host, target.port),
            looks_like(target, hello)
        )),
    }
}

/// Identity of a cluster, which all its hosts report alike.
fn cluster_of(host: Host) -> (i64, [u8; 4]) {
    (host.cluster_start_ms, host.leader_address)
}

/// Logs in at every host once, and calls `@Ping` there.
///
/// # Errors
/// Nothing listens (the target failed), or the server rejects the login, or is no VoltDB.
pub fn ping(address: &VoltAddress, targets: &[Target], limit: Span) -> Result<()> {
    for (index, target) in targets.iter().enumerate() {
        if !targets[..index].contains(target) {
            open_volt(address, target, limit)?;
        }
    }
    Ok(())
}

/// A connection that has proved good, and its peer.
fn open_volt(
    address: &VoltAddress,
    target: &Target,
    limit: Span,
) -> Result<(Exchange<Volt>, Option<Host>)> {
    let protocol = volt_of(address, 1);
    let hello = protocol.login.message().to_vec();
    let shown = format!("volt://{}", authority(&target.host, target.port));
    let mut ping = Request::default();
    ping.call("@Ping", &[]);
    let asked =
        Exchange::connect(protocol.clone(), target, patience(limit)).and_then(|mut exchange| {
            exchange.ask(&ping, |_| ())?;
            Ok(exchange.conn().host())
        });
    let host = asked.map_err(|error| refused(error, target, &shown, &hello))?;
    // Answers may take longer than a connection.
    let exchange = Exchange::connect(protocol, target, patience(ANSWER_WITHIN))
        .map_err(|error| refused(error, target, &shown, &hello))?;
    Ok((exchange, host))
}

impl Database {
    /// Settles `sslmode=prefer` by one login to PostgreSQL, so that all connections of a run are of one kind.
    ///
    /// # Errors
    /// Nothing listens there, or the server rejects the login.
    pub fn settle(&mut self, connect_timeout: Span) -> Result<()> {
        let Self::Postgres(sql) = self else { return Ok(()) };
        let is_secure = log_in(sql, connect_timeout)?;
        plimsoll_job::postgres::settle(std::slice::from_mut(&mut **sql), &[is_secure]);
        Ok(())
    }
}

/// Logs in to PostgreSQL once, and returns whether that was over TLS.
///
/// # Errors
/// Nothing listens (the target failed), or the server rejects the login, or is no PostgreSQL.
fn log_in(address: &Address, limit: Span) -> Result<bool> {
    let target = Target::resolve(&address.host, address.port);
    let end = plimsoll_job::postgres::log_in(&target, address, ANSWER_WITHIN, limit)?;
    end.map_err(|why| match why {
        NoLogin::Refused(why) => {
            usage(format!("{}: {why}; check user, PGPASSWORD and database", address.shown()))
        }
        NoLogin::Nobody(error) | NoLogin::Broken(error) => sql_refused(error, &target, address),
    })
}

fn open_sql(address: &Address, target: &Target) -> Result<Exchange<Postgres>> {
    let protocol = address.protocol(ANSWER_WITHIN, &[])?;
    let tls = address.tls()?;
    Exchange::connect_secure(protocol, target, tls.as_ref(), patience(ANSWER_WITHIN))
        .map_err(|error| sql_refused(error, target, address))
}

fn sql_refused(error: ExchangeError, target: &Target, address: &Address) -> anyhow::Error {
    let mut hello = Vec::new();
    if let Ok(protocol) = address.protocol(ANSWER_WITHIN, &[]) {
        protocol.open(&mut hello);
    }
    refused(error, target, &address.shown(), &hello)
}

/// Asks VoltDB, and takes from a success what is wanted.
fn volt<T>(
    exchange: &mut Exchange<Volt>,
    request: &Request,
    read: impl FnOnce(&Response<'_>) -> T,
) -> Result<T> {
    let answer = exchange.ask(request, |reply| match reply.refusal() {
        None => Ok(read(reply)),
        Some(refusal) => Err((refusal, first_line(reply))),
    })?;
    answer.map_err(|(refusal, why)| match refusal {
        Refusal::NoProcedure => usage(format!(
            "{why}: the schema is missing; install it with plimsoll serve voltdb, or use plimsoll serve voter"
        )),
        Refusal::Constraint | Refusal::Other => anyhow::anyhow!("the database said: {why}"),
    })
}

/// First line of what VoltDB says of a call.
fn first_line(reply: &Response<'_>) -> String {
    let why = reply.status_text.unwrap_or_else(|| Status::name(reply.status));
    why.lines().next().unwrap_or_default().trim().to_owned()
}

/// Asks PostgreSQL in the simple protocol; the first value of the last row.
fn sql(exchange: &mut Exchange<Postgres>, text: &str) -> Result<Option<String>> {
    let mut request = postgres::Request::default();
    request.query(text)?;
    let answer = exchange.ask(&request, |reply| match reply.error {
        Some(error) => Err(error.message().into_owned()),
        None => Ok(reply.value(0).map(|value| String::from_utf8_lossy(value).into_owned())),
    })?;
    answer.map_err(|why| anyhow::anyhow!("the database said: {why}"))
}

/// Calls `Initialize`, and returns the number of contestants in the database.
fn initialize(exchange: &mut Exchange<Volt>, names: &[String]) -> Result<i64> {
    let csv = names.join(",");
    let count = Value::Integer(names.len() as i32);
    let mut request = Request::default();
    request.call("Initialize", &[count, Value::String(&csv)]);
    let there = volt(exchange, &request, |reply| reply.long())?;
    let Some(there) = there.filter(|there| *there > 0) else {
        bail!("the reply to Initialize has no number of contestants");
    };
    // All calls of a missing procedure would fail: it is found now. No contestant has the number 0, so nothing is written.
    request.call("Vote", &[Value::BigInt(0), Value::Integer(0), Value::BigInt(1)]);
    volt(exchange, &request, |_| there)
}

/// Puts the greetings in; one that is there is there from an earlier run.
fn greet(exchange: &mut Exchange<Volt>) -> Result<()> {
    for request in hello_inserts() {
        let refusal = exchange.ask(&request, |reply| {
            let refusal = reply.refusal()?;
            Some((refusal, reply.status_text.unwrap_or_default().trim().to_owned()))
        })?;
        match refusal {
            None | Some((Refusal::Constraint, _)) => {}
            Some((Refusal::NoProcedure, why)) => {
                return Err(usage(format!(
                    "{why}: the hello schema is missing; install it with plimsoll serve voltdb, or use plimsoll serve voter"
                )));
            }
            Some((Refusal::Other, why)) => bail!("the database said: {why}"),
        }
    }
    Ok(())
}
