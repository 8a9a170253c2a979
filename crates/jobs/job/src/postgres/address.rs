//! `postgres://` addresses, as users write them and as libpq's clients read them.

use crate::postgres::escapes::{decoded, encoded};
use crate::postgres::security::Security;
use crate::url::split_authority;
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::secrets::remember;
use plimsoll_core::units::Span;
use plimsoll_engine::tls::Tls;
use plimsoll_wire::postgres::{Login, Postgres};

/// Port of PostgreSQL.
const PORT: u16 = 5432;
/// Role and database of an address that names none, and the environment neither: those of `plimsoll serve postgresql`.
const DEFAULT: &str = "plimsoll";

/// A `postgres://USER:PASSWORD@HOST:PORT/DATABASE?sslmode=...`, taken apart.
#[derive(Clone)]
pub struct Address {
    pub(super) user: String,
    pub(super) password: Option<String>,
    /// Name or number of the machine.
    pub host: String,
    /// The port.
    pub port: u16,
    pub(super) database: String,
    pub(super) security: Security,
}

impl Address {
    /// Returns whether user, password, database and TLS are the same.
    #[must_use]
    pub fn has_same_login(&self, other: &Self) -> bool {
        (&self.user, &self.password, &self.database, &self.security)
            == (&other.user, &other.password, &other.database, &other.security)
    }

    /// The protocol of connections that log in there, each with these settings and with a limit for each statement.
    ///
    /// # Errors
    /// A NUL byte somewhere.
    pub fn protocol(&self, limit: Span, settings: &[(&str, &str)]) -> Result<Postgres> {
        // Without a limit, the server continues statements whose replies are not waited for any more.
        let limit = limit.ns.div_ceil(1_000_000).to_string();
        // A backslash in a literal is a plain character, as statements here assume.
        let own = [("statement_timeout", limit.as_str()), ("standard_conforming_strings", "on")];
        let settings = [&own, settings].concat();
        let login = Login::new(&self.user, self.password.as_deref(), &self.database, &settings);
        let protocol = Postgres::new(login.map_err(|error| usage(error.to_string()))?);
        Ok(protocol.requiring_tls(self.security.requires_tls()))
    }

    /// TLS to it, as its parameters say; goes with the [`Address::protocol`].
    ///
    /// # Errors
    /// If a certificate file cannot be read, or no certificate can be for the host.
    pub fn tls(&self) -> Result<Option<Tls>> {
        self.security.tls(&self.host)
    }

    /// Reads it, and what it leaves out from libpq's variables; messages show no password.
    ///
    /// # Errors
    /// When it is no such address.
    pub fn parse(text: &str) -> Result<Self> {
        Self::parse_with(text, |name| std::env::var(name).ok())
    }

    fn parse_with(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let variable = |name: &str| variable(name).filter(|value| !value.is_empty());
        let rest = text.split_once("://").map_or(text, |(_, rest)| rest);
        // A file that a parameter names may have an @ in its name, and a password a question mark.
        let known = rest.rsplit_once('?').filter(|(_, tail)| Security::begins(tail));
        let front = known.map_or(rest, |(front, _)| front);
        let login = front.rsplit_once('@').map(|(login, _)| login);
        let rest = &rest[login.map_or(0, |login| login.len() + 1)..];
        let wrong = |why: &str| {
            let shown = rest.split('?').next().unwrap_or_default();
            usage(format!("postgres://{shown}: {why}; write postgres://USER@HOST:PORT/DATABASE"))
        };
        let (place, parameters) = rest.split_once('?').unwrap_or((rest, ""));
        let (authority, database) = place.split_once('/').unwrap_or((place, ""));
        if database.contains(['#', '/']) {
            return Err(wrong("only a database may follow the port"));
        }
        let security = Security::parse(parameters, variable("PGSSLMODE").as_deref())
            .map_err(|why| usage(format!("postgres://{place}: {why}")))?;
        let usual = match variable("PGPORT").map(|port| port.parse()) {
            None => PORT,
            Some(Ok(port)) if port > 0 => port,
            Some(_) => return Err(usage("PGPORT is not a port; write 1 to 65535, or unset it")),
        };
        let authority = match variable("PGHOST") {
            Some(host) if authority.is_empty() || authority.starts_with(':') => {
                let is_one = !host.contains(['/', ',']);
                is_one.then(|| in_brackets(&host) + authority).ok_or_else(|| {
                    usage("PGHOST is not a single host; name one in the address (Unix sockets are not supported)")
                })?
            }
            _ => authority.to_owned(),
        };
        let (host, port) =
            split_authority(&authority, usual).ok_or_else(|| wrong("no HOST:PORT"))?;
        let (user, password) = match login.map(|login| login.split_once(':').unwrap_or((login, "")))
        {
            Some((user, password)) => (decoded(user), decoded(password)),
            None => (String::new(), String::new()),
        };
        let given = |text: String, name: &str| {
            Some(text).filter(|t| !t.is_empty()).or_else(|| variable(name))
        };
        let or_default = |text: Option<String>| text.unwrap_or_else(|| DEFAULT.to_owned());
        Ok(Self {
            user: or_default(given(user, "PGUSER")),
            password: given(password, "PGPASSWORD").inspect(|password| remember(password)),
            host,
            port,
            database: or_default(given(decoded(database), "PGDATABASE")),
            security,
        })
    }

    /// The password, where there is one.
    #[must_use]
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The address without its password, for messages and records.
    #[must_use]
    pub fn shown(&self) -> String {
        let Self { user, host, port, database, security, .. } = self;
        format!("postgres://{user}@{}:{port}/{database}{}", in_brackets(host), security.shown())
    }

    /// As another process of plimsoll reads it: all of it but the password.
    #[must_use]
    pub fn written(&self) -> String {
        let Self { user, host, port, database, security, .. } = self;
        format!(
            "postgres://{}@{}:{port}/{}?{}",
            encoded(user),
            in_brackets(host),
            encoded(database),
            security.written()
        )
    }
}

/// A host as it stands in front of a port.
fn in_brackets(host: &str) -> String {
    let is_number = host.contains(':') && !host.starts_with('[');
    if is_number { format!("[{host}]") } else { host.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_an_address_leaves_out_libpqs_variables_say() {
        let all = |name: &str| {
            let value = match name {
                "PGHOST" => "::1",
                "PGPORT" => "5433",
                "PGUSER" => "ann",
                "PGDATABASE" => "shop",
                "PGSSLMODE" => "require",
                "PGPASSWORD" => "secret",
                _ => return None,
            };
            Some(value.to_owned())
        };
        let shown = |text: &str| Address::parse_with(text, all).unwrap().shown();
        assert_eq!(shown("postgres://"), "postgres://ann@[::1]:5433/shop?sslmode=require");
        assert_eq!(shown("postgres://:1/"), "postgres://ann@[::1]:1/shop?sslmode=require");
        assert_eq!(shown("postgres://h"), "postgres://ann@h:5433/shop?sslmode=require");
        let full = "postgres://me@h:7/d?sslmode=disable";
        assert_eq!(shown(full), full, "the address comes first");
        let password = |text: &str| Address::parse_with(text, all).unwrap().password;
        assert_eq!(password("postgres://me@h").as_deref(), Some("secret"));
        assert_eq!(password("postgres://me:own@h").as_deref(), Some("own"));
        for (name, value, part) in [
            ("PGHOST", "/run/postgresql", "PGHOST is not a single host"),
            ("PGPORT", "many", "PGPORT is not a port"),
            ("PGSSLMODE", "yes", "expected disable, prefer"),
            ("PGUSER", "", "no HOST:PORT"),
        ] {
            let only = |asked: &str| (asked == name).then(|| value.to_owned());
            let told = Address::parse_with("postgres://", only).err().unwrap().to_string();
            assert!(told.contains(part), "{name}={value}: {told}");
        }
    }

    #[test]
    fn another_process_reads_the_same_address_but_for_the_password() {
        let files = "sslmode=require&sslrootcert=/a%26b/ca.crt&sslcert=/c%20d.crt&sslkey=/k.key";
        for text in [
            format!("postgres://m%3Ae:secret@[::1]:7/my%2Fdb%3F?{files}"),
            "postgres://me@h".to_owned(),
        ] {
            let none = |_: &str| None;
            let one = Address::parse_with(&text, none).unwrap();
            let written = one.written();
            assert!(!written.contains("secret"), "{written}");
            let other = Address::parse_with(&written, none).unwrap();
            let parts = |a: &Address| (a.user.clone(), a.host.clone(), a.port, a.database.clone());
            assert_eq!(parts(&one), parts(&other), "{written}");
            assert_eq!(one.security, other.security, "{written}");
        }
    }

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
        assert!(told.starts_with("postgres://h/x: unknown parameter 'ssl'"), "{told}");
        let file = "sslrootcert=/home/a@b/ca.crt";
        let address = Address::parse(&format!("postgres://me:s@h/db?{file}")).unwrap();
        assert_eq!((address.host.as_str(), address.database.as_str()), ("h", "db"));
        assert_eq!(address.password.as_deref(), Some("s"));
        // A database is not needed before parameters.
        let address = Address::parse("postgres://me:a?b@h?sslmode=require").unwrap();
        assert_eq!(address.shown(), "postgres://me@h:5432/plimsoll?sslmode=require");
        assert_eq!(address.password.as_deref(), Some("a?b"));
    }
}
