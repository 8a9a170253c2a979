//! The database under load, as users write it: `volt://` or `postgres://`.

use anyhow::Result;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use plimsoll_engine::target::Target;
use plimsoll_job::postgres;
use plimsoll_job::url::split_authority;
use plimsoll_job::usage::usage;

/// Port of VoltDB's clients.
const VOLT_PORT: u16 = 21212;
/// Most hosts of a run.
const HOSTS_MAX: usize = 256;
/// Variable with the password of VoltDB if the address has none.
pub const VOLT_PASSWORD: &str = "VOLTDB_PASSWORD";

/// Database of the calls.
pub enum Database {
    /// A server that speaks VoltDB's protocol.
    Volt(VoltAddress),
    /// PostgreSQL.
    Postgres(Box<postgres::Address>),
}

/// One cluster by its hosts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VoltAddress {
    /// User; empty where none is asked for.
    pub user: String,
    /// Password; empty where there is none.
    pub password: String,
    /// Hosts and ports, in the order they were named; one that is named twice has twice the connections.
    pub hosts: Vec<(String, u16)>,
}

impl Database {
    /// Reads the addresses of one run; messages show no password.
    ///
    /// # Errors
    /// When one is no address, or they do not belong together.
    pub fn parse(texts: &[String]) -> Result<Self> {
        let volt = texts.iter().filter(|text| text.starts_with("volt://")).count();
        let sql = texts.iter().filter(|text| postgres::is_address(text)).count();
        if let Some(other) =
            texts.iter().find(|text| !text.starts_with("volt://") && !postgres::is_address(text))
        {
            let shown = plimsoll_core::secrets::without_address_secrets(other);
            return Err(usage(format!(
                "target '{shown}': write volt://[USER@]HOST:PORT or postgres://USER@HOST:PORT/DATABASE"
            )));
        }
        match (volt, sql) {
            (_, 0) => Ok(Self::Volt(VoltAddress::parse(texts)?)),
            (0, 1) => Ok(Self::Postgres(Box::new(postgres::Address::parse(&texts[0])?))),
            (0, _) => {
                Err(usage("only one PostgreSQL server is supported; name one postgres:// target"))
            }
            _ => Err(usage(
                "some targets are volt:// and some postgres://; measure them in separate runs",
            )),
        }
    }

    /// As it may be shown and kept.
    #[must_use]
    pub fn shown(&self) -> Vec<String> {
        match self {
            Self::Volt(volt) => volt.shown(),
            Self::Postgres(sql) => vec![sql.shown()],
        }
    }

    /// The same for another process of plimsoll, which gets the password apart ([`Database::password`]).
    #[must_use]
    pub fn written(&self) -> Vec<String> {
        match self {
            Self::Volt(volt) => volt.written(),
            Self::Postgres(sql) => vec![sql.written()],
        }
    }

    /// `host:port` of every host.
    #[must_use]
    pub fn hosts(&self) -> Vec<String> {
        match self {
            Self::Volt(volt) => {
                volt.hosts.iter().map(|(host, port)| authority(host, *port)).collect()
            }
            Self::Postgres(sql) => vec![authority(&sql.host, sql.port)],
        }
    }

    /// The hosts, resolved.
    #[must_use]
    pub fn targets(&self) -> Vec<Target> {
        match self {
            Self::Volt(volt) => {
                volt.hosts.iter().map(|(host, port)| Target::resolve(host, *port)).collect()
            }
            Self::Postgres(sql) => vec![Target::resolve(&sql.host, sql.port)],
        }
    }

    /// The variable that hands the password to a process of plimsoll, with its value.
    #[must_use]
    pub fn password(&self) -> Option<(&'static str, String)> {
        match self {
            Self::Volt(volt) if volt.password.is_empty() => None,
            Self::Volt(volt) => Some((VOLT_PASSWORD, volt.password.clone())),
            Self::Postgres(sql) => {
                sql.password().map(|password| ("PGPASSWORD", password.to_owned()))
            }
        }
    }
}

/// A host and a port, as they stand in an address.
pub fn authority(host: &str, port: u16) -> String {
    if host.contains(':') { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

fn decoded(text: &str) -> String {
    percent_encoding::percent_decode_str(text).decode_utf8_lossy().into_owned()
}

impl VoltAddress {
    fn parse(texts: &[String]) -> Result<Self> {
        let mut hosts = Vec::new();
        let mut login: Option<(String, String)> = None;
        for text in texts {
            let rest = text.strip_prefix("volt://").unwrap_or(text);
            let (own, list) = rest.rsplit_once('@').map_or((None, rest), |(l, h)| (Some(l), h));
            if let Some(own) = own {
                let (user, password) = own.split_once(':').unwrap_or((own, ""));
                let own = (decoded(user), decoded(password));
                if login.as_ref().is_some_and(|other| *other != own) {
                    return Err(usage(
                        "the targets differ in user or password; use the same for all, or separate runs",
                    ));
                }
                login = Some(own);
            }
            for one in list.trim_end_matches('/').split(',') {
                let host = split_authority(one, VOLT_PORT).ok_or_else(|| {
                    let problem = match one {
                        "" => "the host is missing".to_owned(),
                        one => format!("'{one}' is not HOST:PORT"),
                    };
                    usage(format!(
                        "volt://{list}: {problem}; write volt://[USER@]HOST:PORT[,HOST:PORT]"
                    ))
                })?;
                hosts.push(host);
            }
        }
        if hosts.len() > HOSTS_MAX {
            return Err(usage(format!(
                "{} hosts are too many; name at most {HOSTS_MAX}",
                hosts.len()
            )));
        }
        let (user, password) = login.unwrap_or_default();
        let from_environment = || std::env::var(VOLT_PASSWORD).unwrap_or_default();
        let password = if password.is_empty() { from_environment() } else { password };
        plimsoll_core::secrets::remember(&password);
        Ok(Self { user, password, hosts })
    }

    fn shown(&self) -> Vec<String> {
        self.with_user(&self.user)
    }

    fn written(&self) -> Vec<String> {
        self.with_user(&utf8_percent_encode(&self.user, NON_ALPHANUMERIC).to_string())
    }

    fn with_user(&self, user: &str) -> Vec<String> {
        let user = if user.is_empty() { String::new() } else { format!("{user}@") };
        let hosts: Vec<String> =
            self.hosts.iter().map(|(host, port)| authority(host, *port)).collect();
        vec![format!("volt://{user}{}", hosts.join(","))]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(texts: &[&str]) -> Result<Database, String> {
        let texts: Vec<String> = texts.iter().map(|&text| text.to_owned()).collect();
        Database::parse(&texts).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_and_users_are_read_and_passwords_never_shown() {
        let Ok(Database::Volt(volt)) = parse(&["volt://me:s%40crt@a,b:1", "volt://[::1]:2"]) else {
            panic!("no volt address")
        };
        let hosts =
            [("a", 21212), ("b", 1), ("::1", 2)].map(|(host, port)| (host.to_owned(), port));
        assert_eq!((volt.user.as_str(), volt.password.as_str()), ("me", "s@crt"));
        assert_eq!(volt.hosts, hosts);
        assert_eq!(Database::Volt(volt).shown(), ["volt://me@a:21212,b:1,[::1]:2"]);
        let odd = VoltAddress {
            user: "m:e@x".to_owned(),
            ..VoltAddress::parse(&["volt://h".to_owned()]).unwrap()
        };
        let again = VoltAddress::parse(&odd.written()).unwrap();
        assert_eq!((again.user, again.password), (odd.user, String::new()));
        let sql = parse(&["postgres://me:secret@h:1/d"]).unwrap();
        assert_eq!(
            (sql.shown(), sql.hosts()),
            (vec!["postgres://me@h:1/d".into()], vec!["h:1".into()])
        );
    }

    #[test]
    fn what_is_no_database_is_told_so() {
        let cases: [(&[&str], &str); 6] = [
            (&["http://h:80"], "write volt://"),
            (&["volt://h:0"], "is not HOST:PORT"),
            (&["volt://"], "the host is missing; write volt://"),
            (&["volt://a:x@h", "volt://b:x@h"], "differ in user"),
            (&["volt://h", "postgres://h"], "in separate runs"),
            (&["postgres://h", "postgres://g"], "name one postgres"),
        ];
        for (texts, part) in cases {
            let told = parse(texts).err().unwrap();
            assert!(told.contains(part), "{texts:?}: {told}");
        }
        let told = parse(&["redis://me:secret@h"]).err().unwrap();
        assert!(!told.contains("secret"), "{told}");
    }
}
