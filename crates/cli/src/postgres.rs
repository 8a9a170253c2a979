//! `plimsoll load postgres://...`: SQL statements instead of HTTP requests, under the same load models.

mod security;

use crate::execute::{Output, code, print_out, style, write_json};
use crate::keeping::{About, JobEnd, carry_out};
use crate::prepare::{check_limits, order_of, plan_of};
use crate::progress::Progress;
use crate::url::split_authority;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::{Scenario, TlsScenario};
use plimsoll_core::units::Span;
use plimsoll_engine::exchange::{Exchange, ExchangeError};
use plimsoll_engine::run::run;
use plimsoll_engine::shard::ShardPlan;
use plimsoll_engine::target::Target;
use plimsoll_engine::tls::Tls;
use plimsoll_wire::Sessions;
use plimsoll_wire::postgres::{Login, Postgres, Request};
use plimsoll_workloads::classes::Classes;
use plimsoll_workloads::http::{Order, Troubles, Way, shuffled};
use plimsoll_workloads::query_file::Passes;
use plimsoll_workloads::sql::{STATEMENTS_BYTES_MAX, SqlMode, SqlSessions, SqlSet};
use security::{Security, SslMode, told};
use serde_json::Map;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Port of PostgreSQL.
const PORT: u16 = 5432;
/// Role and database of an address that names none: those of `plimsoll serve postgresql`.
const DEFAULT: &str = "plimsoll";

/// Whether an address is one of PostgreSQL's.
#[must_use]
pub fn is_address(text: &str) -> bool {
    text.starts_with("postgres://") || text.starts_with("postgresql://")
}

/// A `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=...`, taken apart.
#[derive(Clone)]
pub struct Address {
    user: String,
    password: Option<String>,
    /// Name or number of the machine.
    pub host: String,
    /// The port.
    pub port: u16,
    database: String,
    security: Security,
}

impl Address {
    /// The protocol of connections that log in there, each with these settings and with a limit for each statement.
    ///
    /// # Errors
    /// A NUL byte somewhere.
    pub fn protocol(&self, limit: Span, settings: &[(&str, &str)]) -> Result<Postgres> {
        // The server goes on with what nobody waits for any more, unless it is told not to.
        let limit = limit.ns.div_ceil(1_000_000).to_string();
        // Backslashes are what they look like, as whoever writes or quotes a literal here takes for granted.
        let own = [("statement_timeout", limit.as_str()), ("standard_conforming_strings", "on")];
        let settings = [&own, settings].concat();
        let login = Login::new(&self.user, self.password.as_deref(), &self.database, &settings);
        let protocol = Postgres::new(login.map_err(|error| usage(error.to_string()))?);
        Ok(protocol.requiring_tls(self.security.requires_tls()))
    }

    /// TLS to it, as its parameters say; goes with the [`Address::protocol`].
    ///
    /// # Errors
    /// As [`Security::tls`].
    pub fn tls(&self) -> Result<Option<Tls>> {
        self.security.tls(&self.host)
    }

    /// Reads it; messages show no password.
    ///
    /// # Errors
    /// When it is no such address.
    pub fn parse(text: &str) -> Result<Self> {
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        let (login, rest) = rest.rsplit_once('@').map_or((None, rest), |(l, r)| (Some(l), r));
        let wrong = |why: &str| {
            let shown = rest.split('?').next().unwrap_or_default();
            usage(format!("postgres://{shown}: {why}; write postgres://USER@HOST:PORT/DATABASE"))
        };
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        if database.contains(['#', '/']) {
            return Err(wrong("only a database may follow the port"));
        }
        let security = Security::parse(parameters)
            .map_err(|why| usage(format!("postgres://{place}: {why}")))?;
        let (host, port) = split_authority(authority, PORT).ok_or_else(|| wrong("no HOST:PORT"))?;
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, "")))
        {
            Some((user, password)) => (decoded(user), decoded(password)),
            None => (String::new(), String::new()),
        };
        let or_default = |text: String| if text.is_empty() { DEFAULT.to_owned() } else { text };
        let from_environment = || std::env::var("PGPASSWORD").unwrap_or_default();
        let password = if password.is_empty() { from_environment() } else { password };
        Ok(Self {
            user: or_default(user),
            password: (!password.is_empty()).then_some(password),
            host,
            port,
            database: or_default(decoded(database)),
            security,
        })
    }

    /// The password, where there is one.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// As it may be shown and kept.
    #[must_use]
    pub fn shown(&self) -> String {
        let host =
            if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let Self { user, port, database, security, .. } = self;
        format!("postgres://{user}@{host}:{port}/{database}{}", security.shown())
    }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

/// A whole run: prepares it, logs in once to see that it can be done, runs, prints.
///
/// # Errors
/// Wrong usage, a server that is not there or refuses, or a program failure.
pub fn run_and_print(scenario: &Scenario, output: &Output) -> Result<u8> {
    check_limits(scenario)?;
    check(scenario)?;
    let mut addresses =
        scenario.targets.iter().map(|t| Address::parse(t)).collect::<Result<Vec<_>>>()?;
    let Some(first) = addresses.first() else { return Err(usage("no target; name an address")) };
    let is_same = |other: &Address| {
        (&other.user, &other.password, &other.database, &other.security)
            == (&first.user, &first.password, &first.database, &first.security)
    };
    if !addresses.iter().all(is_same) {
        return Err(usage(
            "the targets differ in user, password, database or parameters; run them apart",
        ));
    }
    let mut classes = Classes::new(&scenario.classes)?;
    let set = Arc::new(statements(scenario, &mut classes)?);
    let targets: Vec<Target> =
        addresses.iter().map(|address| Target::resolve(&address.host, address.port)).collect();
    let mut secure = Vec::new();
    for (target, address) in targets.iter().zip(&addresses) {
        secure.extend(log_in(target, address, scenario)?);
    }
    settle(&mut addresses, &secure);
    output.check()?;
    let shown =
        Scenario { targets: addresses.iter().map(Address::shown).collect(), ..scenario.clone() };
    let first = &addresses[0];
    let protocol =
        first.protocol(scenario.timeout, &[])?.with_statements(set.to_prepare().to_vec());
    let plan = plan_of(&shown, targets, first.tls()?, set.class_names().len());
    measure(&shown, &protocol, &set, &plan, output)
}

/// Decides what TLS that is only preferred comes to, so that all connections of a run are of one kind; where
/// targets differ, or one is not there to be asked, each connection finds out.
fn settle(addresses: &mut [Address], secure: &[bool]) {
    let is_all =
        |kind: bool| secure.len() == addresses.len() && secure.iter().all(|&secure| secure == kind);
    let mode = match (is_all(true), is_all(false)) {
        (true, false) => SslMode::Require,
        (false, true) => SslMode::Disable,
        _ => return,
    };
    for address in addresses.iter_mut().filter(|one| one.security.mode == SslMode::Prefer) {
        address.security.mode = mode;
    }
}

/// Refuses what makes no sense for SQL, before anything is sent.
fn check(scenario: &Scenario) -> Result<()> {
    let TlsScenario { ca_file, certificate_file, key_file, server_name, insecure } = &scenario.tls;
    let tls = ca_file.is_some() || certificate_file.is_some() || key_file.is_some();
    let wrong = if scenario.targets.iter().any(|target| !is_address(target)) {
        "some targets are postgres:// and some are not; run them apart"
    } else if !scenario.headers.is_empty() || scenario.post || scenario.http2 {
        "--header, --post and --http2 are HTTP's; leave them out for postgres://"
    } else if !scenario.checks.is_empty() || scenario.hits != "auto" {
        "--check and --hits are HTTP's: with postgres:// an error is a failure and rows are hits"
    } else if tls || server_name.is_some() || *insecure {
        "flags of TLS are HTTP's: write postgres://.../DATABASE?sslmode=verify-full&sslrootcert=FILE"
    } else if scenario.queries.is_some() == scenario.body.is_some() {
        "postgres:// needs SQL: --queries FILE with one statement a line, or --body 'SELECT ...'"
    } else {
        return Ok(());
    };
    Err(usage(wrong))
}

fn statements(scenario: &Scenario, classes: &mut Classes) -> Result<SqlSet> {
    let mode = match scenario.method.as_deref() {
        None | Some("simple") => SqlMode::Simple,
        Some("prepared") => SqlMode::Prepared,
        Some(other) => {
            return Err(usage(format!(
                "--method '{other}': with postgres:// write simple (parsed and planned each time) or prepared"
            )));
        }
    };
    match (&scenario.queries, &scenario.body) {
        (Some(path), _) => {
            let shown = path.display().to_string();
            let text = read(path).map_err(|why| usage(format!("--queries {shown}: {why}")))?;
            SqlSet::parse(&text, mode, classes).map_err(|error| usage(format!("{shown}: {error}")))
        }
        (None, body) => {
            // A text of several lines is one statement here.
            let text = body.as_deref().unwrap_or_default().replace(['\r', '\n'], " ");
            SqlSet::parse(&text, mode, classes).map_err(|error| usage(format!("--body: {error}")))
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    let length = std::fs::metadata(path).map_err(|error| error.to_string())?.len();
    if length > STATEMENTS_BYTES_MAX {
        return Err("is longer than 64 MiB; split it".to_owned());
    }
    std::fs::read_to_string(path).map_err(|error| format!("{error}; give a file of UTF-8 text"))
}

/// Logs in once, so that what is wrong is told in the server's words and before any load. Tells whether that was
/// over TLS; nothing where nobody is there, which is a result as with HTTP: requests fail and are counted.
fn log_in(target: &Target, address: &Address, scenario: &Scenario) -> Result<Option<bool>> {
    let protocol = address.protocol(scenario.timeout, &[])?;
    let patience = Duration::from_nanos(scenario.connect_timeout.ns);
    let attempt = |tls: Option<&Tls>| {
        let mut request = Request::default();
        let asked = Exchange::connect_secure(protocol.clone(), target, tls, patience);
        let asked = asked.and_then(|mut exchange| {
            // A text without a NUL byte can be sent.
            let _ = request.query("SELECT 1");
            let refused = exchange
                .ask(&request, |reply| reply.error.map(|error| error.message().into_owned()))?;
            Ok((exchange.is_secure(), refused))
        });
        match asked {
            Ok((is_secure, None)) => Ok(Some(is_secure)),
            Ok((_, Some(why))) => Err((why, true)),
            Err(ExchangeError::Unresolved(_) | ExchangeError::Connect { .. }) => Ok(None),
            Err(error) => Err((told(&error), !matches!(error, ExchangeError::TimedOut(_)))),
        }
    };
    let tls = address.tls()?;
    let mut end = attempt(tls.as_ref());
    // What is only preferred may fail, at the server's door for instance, and go well without.
    if matches!(end, Err((_, true))) && tls.is_some() && address.security.mode == SslMode::Prefer {
        end = attempt(None).or(end);
    }
    end.map_err(|(why, _)| usage(format!("{}: {why}", address.shown())))
}

fn measure(
    scenario: &Scenario,
    protocol: &Postgres,
    set: &Arc<SqlSet>,
    plan: &ShardPlan,
    output: &Output,
) -> Result<u8> {
    let about = About {
        plan,
        class_names: set.class_names().to_vec(),
        distinct_requests: Some(set.len() as u64),
        troubles: Troubles::default(),
    };
    let sessions = sessions(scenario, set)?;
    let progress = Progress::new(scenario.length(), output.quiet);
    let finished = carry_out(scenario, &about, output, |keeping| {
        let mut show = |second: &Interval| progress.show(second);
        let end = run(plan, || protocol.clone(), sessions, keeping.sink, &mut show, &keeping.stop);
        progress.done();
        Ok(JobEnd { end: end?, results: Map::new(), verdict: None, warnings: Vec::new() })
    });
    progress.done();
    let finished = finished?;
    if !write_json(output, &finished.record)? {
        let folder = finished.folder.as_deref();
        print_out(&plimsoll_report::text::render(&finished.record, folder, &style()))?;
    }
    Ok(code(&finished))
}

fn sessions(
    scenario: &Scenario,
    set: &Arc<SqlSet>,
) -> Result<Vec<Box<dyn Sessions<Postgres> + Send>>> {
    let order = order_of(scenario)?;
    let permutation = (order == Order::Shuffle).then(|| shuffled(set.len(), scenario.seed));
    let shards = u64::from(scenario.threads);
    let one = |shard| {
        let mut way = Way::new(0..set.len(), shard, shards, Passes::Unlimited);
        if let Some(order) = &permutation {
            way = way.shuffled(order.clone());
        } else if order == Order::Random {
            way = way.random(scenario.seed, shard);
        }
        Box::new(SqlSessions::new(set.clone(), way)) as Box<dyn Sessions<Postgres> + Send>
    };
    Ok((0..shards).map(one).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart_and_shown_without_passwords() {
        let address = Address::parse("postgres://me:s%40crt@[::1]:5433/my%20db").unwrap();
        assert_eq!(address.password.as_deref(), Some("s@crt"));
        assert_eq!(address.database, "my db");
        assert_eq!(address.shown(), "postgres://me@[::1]:5433/my db");
        let bare = Address::parse("postgresql://127.0.0.1").unwrap();
        assert_eq!(bare.shown(), "postgres://plimsoll@127.0.0.1:5432/plimsoll");
        for wrong in
            ["postgres://me:secret@h:0/x?sslmode=require", "postgres://h/x/y", "postgres://"]
        {
            let told = Address::parse(wrong).err().unwrap().to_string();
            assert!(!told.contains("secret") && told.contains("write postgres://"), "{told}");
        }
        let told = Address::parse("postgres://me:secret@h/x?ssl=1").err().unwrap().to_string();
        assert!(told.starts_with("postgres://h/x: 'ssl' is no parameter"), "{told}");
        // A database is not needed before parameters.
        let address = Address::parse("postgres://me:a?b@h?sslmode=require").unwrap();
        assert_eq!(address.shown(), "postgres://me@h:5432/plimsoll?sslmode=require");
        assert_eq!(address.password.as_deref(), Some("a?b"));
    }

    #[test]
    fn what_is_preferred_is_settled_before_the_run() {
        let settled = |text: &str, secure: &[bool]| {
            let mut addresses = vec![Address::parse(text).unwrap(); 2];
            settle(&mut addresses, secure);
            assert_eq!(addresses[0].shown(), addresses[1].shown());
            addresses[0].security.mode
        };
        assert_eq!(settled("postgres://h", &[true, true]), SslMode::Require);
        assert_eq!(settled("postgres://h", &[false, false]), SslMode::Disable);
        assert_eq!(settled("postgres://h", &[true]), SslMode::Prefer);
        assert_eq!(settled("postgres://h", &[true, false]), SslMode::Prefer);
        assert_eq!(settled("postgres://h", &[]), SslMode::Prefer);
        let full = "postgres://h?sslmode=verify-full";
        assert_eq!(settled(full, &[true, true]), SslMode::VerifyFull);
    }
}
