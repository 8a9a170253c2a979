//! One engine's address, asked by this program's own engine: over HTTP, or in PostgreSQL's protocol.

use crate::asking::{Answer, AskingSessions, render};
use crate::dialect::{Call, Dialect, SIMILARITY};
use anyhow::{Context, Result};
use plimsoll_core::clock::now_ns;
use plimsoll_core::outcome::Failure;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::schedule::{LoadModel, Slice, Think};
use plimsoll_core::units::Span;
use plimsoll_engine::exchange::{Exchange, ExchangeError};
use plimsoll_engine::run::run as run_engine;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::target::Target;
use plimsoll_engine::tls::Tls;
use plimsoll_job::headers::read_headers;
use plimsoll_job::keeping::Nowhere;
use plimsoll_job::postgres::{self, Address};
use plimsoll_job::prepare::{check_parts, http_of, plan_of, tls_of};
use plimsoll_job::signals;
use plimsoll_job::url::Url;
use plimsoll_job::usage::usage;
use plimsoll_wire::http::Http;
use plimsoll_wire::postgres::{Postgres, Reply, Request};
use plimsoll_workloads::checks::{Checks, Seen};
use plimsoll_workloads::render::{HttpForm, RenderedSet};
use std::time::Duration;

/// Longer than anything that is waited for here; requests have their own limits.
const LONG: Span = Span::seconds(7 * 24 * 3600);
/// Error code of a statement that exceeded its time limit.
const CANCELED: &[u8] = b"57014";

/// The way an engine is reached.
#[derive(Clone)]
pub enum Door {
    /// Over HTTP, with requests of this form.
    Http(HttpForm),
    /// In PostgreSQL's protocol.
    Postgres(Address),
}

/// An engine as it is asked.
#[derive(Clone)]
pub struct Server {
    /// Its language.
    pub dialect: Dialect,
    /// Its address.
    pub url: String,
    /// The way it is reached.
    pub door: Door,
    scenario: Scenario,
}

impl Server {
    /// The engine at an address.
    ///
    /// # Errors
    /// A wrong address or header, or an address that is not of the dialect's protocol.
    pub fn new(url: &str, dialect: Dialect, headers: &[String], timeout: Span) -> Result<Self> {
        let shown = plimsoll_core::secrets::without_address_secrets(url);
        let door = match (dialect, postgres::is_address(url)) {
            (Dialect::Postgresql, true) => Door::Postgres(Address::parse(url)?),
            (Dialect::Postgresql, false) => {
                return Err(usage(format!(
                    "'{shown}': PostgreSQL is at postgres://USER@HOST:PORT/DATABASE"
                )));
            }
            (_, true) => {
                return Err(usage(format!(
                    "'{shown}': write the dialect behind it: NAME={shown},postgresql"
                )));
            }
            (_, false) => Door::Http(http_form(url, headers)?),
        };
        let scenario = Scenario {
            job: "search".to_owned(),
            targets: vec![url.to_owned()],
            timeout,
            ..Scenario::default()
        };
        Ok(Self { dialect, url: shown, door, scenario })
    }

    /// Its whole address, with what must not be shown.
    #[must_use]
    pub fn address(&self) -> &str {
        &self.scenario.targets[0]
    }

    /// Its host and port, resolved.
    ///
    /// # Errors
    /// When the address is wrong.
    pub fn target(&self) -> Result<Target> {
        match &self.door {
            Door::Postgres(address) => Ok(Target::resolve(&address.host, address.port)),
            Door::Http(_) => {
                let url = Url::parse(&self.scenario.targets[0])?;
                Ok(Target::resolve(&url.authority.host, url.authority.port))
            }
        }
    }

    /// HTTP as this engine is used to.
    #[must_use]
    pub fn http(&self) -> Http {
        http_of(&self.scenario)
    }

    /// PostgreSQL's protocol as it is used in a cell.
    ///
    /// # Errors
    /// When the address holds what cannot be sent.
    pub fn postgres(&self, address: &Address, limit: Span) -> Result<Postgres> {
        address.protocol(limit, &[SIMILARITY])
    }

    /// A plan for this part of the users of this engine; a length is a warm-up and a duration.
    ///
    /// # Errors
    /// When the address is wrong, or TLS cannot be prepared.
    pub fn plan(
        &self,
        load: LoadModel,
        length: Option<(Span, Span)>,
        slice: Slice,
    ) -> Result<ShardPlan> {
        let (warmup, duration) = length.unwrap_or((Span::default(), LONG));
        let own = self.scenario.clone();
        let scenario = Scenario { load, warmup, duration: Some(duration), slice, ..own };
        check_parts(&scenario)?;
        let tls = match &self.door {
            Door::Http(_) => tls_of(&scenario, &[Url::parse(&self.scenario.targets[0])?])?,
            Door::Postgres(address) => address.tls()?,
        };
        Ok(plan_of(&scenario, vec![self.target()?], tls, 1))
    }

    /// Asks one request, for at most `timeout`.
    ///
    /// # Errors
    /// When this program's engine cannot run, or the user stops the program.
    pub fn ask_one(&self, call: &Call, timeout: Span) -> Result<Answer> {
        match (&self.door, call) {
            (Door::Http(form), Call::Http(call)) => {
                let mut set = RenderedSet::default();
                set.push(0, 0, |out| render(form, call, out));
                self.ask_rendered(set, timeout)
            }
            (Door::Postgres(address), Call::Sql(text)) => {
                signals::go_on("while an engine was asked")?;
                let protocol = self.postgres(address, timeout)?;
                let tls = address.tls()?;
                Ok(ask_sql(protocol, &self.target()?, tls.as_ref(), text, timeout))
            }
            _ => anyhow::bail!("{} uses another protocol", self.dialect.name()),
        }
    }

    /// Asks the one request of a set.
    ///
    /// # Errors
    /// As [`Server::ask_one`].
    pub fn ask_rendered(&self, set: RenderedSet, timeout: Span) -> Result<Answer> {
        let mut plan = self.plan(closed(1), None, Slice::WHOLE)?;
        plan.timeouts.request_ns = timeout.ns;
        plan.timeouts.connect_ns = plan.timeouts.connect_ns.min(timeout.ns);
        let (sessions, answers) = AskingSessions::new(set);
        let (http, stop) = (self.http(), signals::stop_flag()?);
        let ended =
            run_engine(&plan, || http, vec![Box::new(sessions)], &mut Nowhere, &mut |_| {}, &stop)?;
        if ended.interrupted {
            signals::go_on("while an engine was asked")?;
        }
        answers
            .try_recv()
            .ok()
            .and_then(|mut answers| answers.pop())
            .context("one request has one answer")
    }

    /// Reason why an answer is none, in the engine's own words or ours; none when it is one.
    #[must_use]
    pub fn trouble(&self, answer: &Answer) -> Option<String> {
        match answer.lost {
            Some(failure) => Some(format!("{} at {}", failure.name(), self.url)),
            None if answer.is_ok() => self.unsound(answer),
            None if self.dialect == Dialect::Postgresql => {
                Some(String::from_utf8_lossy(&answer.body).into_owned())
            }
            None => Some(self.dialect.message(answer.status, &answer.body)),
        }
    }

    /// Reason why an answer that says it is a success is none: it ran out of time, lacks shards, or some items of it failed.
    fn unsound(&self, answer: &Answer) -> Option<String> {
        let checks = Checks::new(&[self.dialect.checks()?]).ok()?.of_any_reply();
        let seen = Seen { status: 200, body: &answer.body, ..Seen::default() };
        checks.judge(&seen).err().map(|failure| failure.to_string())
    }
}

/// Returns true if an engine will not answer a request that it understood, now or later.
#[must_use]
pub fn is_refusal(answer: &Answer) -> bool {
    answer.lost.is_none() && (400..500).contains(&answer.status) && answer.status != 429
}

/// This many users who ask again as soon as they are answered.
#[must_use]
pub fn closed(clients: u32) -> LoadModel {
    LoadModel::Closed { clients, think: Think::None, cycle_ns: 0 }
}

fn http_form(url: &str, headers: &[String]) -> Result<HttpForm> {
    let parsed = Url::parse(url)?;
    if parsed.target != "/" {
        return Err(usage(format!("'{url}': write only scheme, host and port of an engine")));
    }
    let lines = read_headers(headers)?;
    HttpForm::new(&parsed.authority, &lines, false)
        .map_err(|error| usage(format!("--header: {error}")))
}

/// Asks PostgreSQL on a connection of its own. The first two columns of the first row become a JSON array.
fn ask_sql(
    protocol: Postgres,
    target: &Target,
    tls: Option<&Tls>,
    text: &str,
    timeout: Span,
) -> Answer {
    let start_ns = now_ns();
    let mut request = Request::default();
    if let Err(error) = request.query(text) {
        let body = error.to_string().into_bytes();
        return Answer { status: 400, body, ..Answer::default() };
    }
    // The server ends the statement itself; what it says then is waited for.
    let patience = Duration::from_nanos(timeout.ns) + Duration::from_secs(2);
    let answer = Exchange::connect_secure(protocol, target, tls, patience)
        .and_then(|mut exchange| exchange.ask(&request, read_reply));
    let mut answer = answer.unwrap_or_else(|error| Answer {
        lost: Some(match error {
            ExchangeError::Unresolved(_) | ExchangeError::Connect { .. } => Failure::Connect,
            ExchangeError::TimedOut(_) => Failure::Timeout,
            ExchangeError::Broken(_) => Failure::Reset,
            ExchangeError::Tls(_) => Failure::Tls,
            ExchangeError::Fault(_) => Failure::Protocol,
        }),
        ..Answer::default()
    });
    answer.service_ns = now_ns().saturating_sub(start_ns);
    answer
}

fn read_reply(reply: &Reply<'_>) -> Answer {
    if let Some(error) = reply.error {
        if error.code() == CANCELED {
            return Answer { lost: Some(Failure::Timeout), ..Answer::default() };
        }
        // Wrong statements and values are the asker's; what is left is the server's own trouble.
        let asked_wrongly =
            [b'2', b'4', b'0'].contains(&error.code().first().copied().unwrap_or(0));
        let body = plimsoll_workloads::sql::explained(reply).0.into_bytes();
        let status = if asked_wrongly { 400 } else { 500 };
        return Answer { status, body, ..Answer::default() };
    }
    let column = |index| {
        let text = reply.value(index).map(String::from_utf8_lossy)?;
        Some(serde_json::from_str(&text).unwrap_or_else(|_| text.into_owned().into()))
    };
    let columns: Vec<serde_json::Value> =
        (0..2).map(|index| column(index).unwrap_or_default()).collect();
    let body = serde_json::Value::Array(columns).to_string().into_bytes();
    Answer { status: 200, body, ..Answer::default() }
}
