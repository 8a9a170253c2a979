//! `plimsoll serve postgresql`: a private cluster of the distribution's PostgreSQL.

use super::account::Account;
use super::certificates::Certificates;
use super::java::in_path;
use super::log::EngineLog;
use super::supervise::{DataFolder, Place, Running, free_port, supervise};
use super::{LOG_NAME, check_room};
use anyhow::{Context, Result, bail};
use clap::ValueEnum;
use plimsoll_engine::exchange::Exchange;
use plimsoll_engine::target::Target;
use plimsoll_engine::tls::{Speaks, Tls, TlsOptions};
use plimsoll_job::child::{LOOK_EVERY, ends_with_us, wait_within};
use plimsoll_job::output::note;
use plimsoll_job::signals;
use plimsoll_job::usage::usage;
use plimsoll_wire::postgres::{Login, Postgres, Request};
use rustix::process::Signal;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// The variable that names the folder of PostgreSQL's programs.
const BIN: &str = "PLIMSOLL_POSTGRES_BIN";
/// The way PostgreSQL comes to a machine.
const INSTALL: &str = "apt-get install postgresql";
/// Oldest version whose extensions a role without privileges may create (`pg_trgm`).
const OLDEST: u32 = 13;
/// Free space that a cluster asks for, bytes: 40 MB when it is new, and its log of changes.
const ROOM_BYTES: u64 = 200_000_000;
/// The only role that may log in, and its database.
const ROLE: &str = "plimsoll";
/// The account that clusters of the distribution have.
const ACCOUNT: &str = "postgres";
/// Longest time that one try to log in may take.
const TRY: Duration = Duration::from_secs(2);

/// PostgreSQL's programs.
pub struct Found {
    /// The folder with `initdb` and `postgres`.
    pub bin: PathBuf,
    /// Their version.
    pub version: String,
}

/// The way the role proves who it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Method {
    /// Not at all: whoever reaches the port on this machine may use the database.
    Trust,
    /// SCRAM-SHA-256, PostgreSQL's default elsewhere.
    #[value(name = "scram-sha-256")]
    ScramSha256,
    /// MD5 of password and salt.
    Md5,
    /// The password as it is.
    Password,
}

/// Time at which a transaction is acknowledged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs, reason = "a comment here would be a line of --help")]
pub enum Durability {
    Sync,
    Async,
    None,
}

impl Method {
    const fn name(self) -> &'static str {
        match self {
            Method::Trust => "trust",
            Method::ScramSha256 => "scram-sha-256",
            Method::Md5 => "md5",
            Method::Password => "password",
        }
    }
}

/// Command-line options of a cluster.
pub struct ClusterServe<'a> {
    /// Its port; 0 is any.
    pub port: u16,
    /// Folder of its data; `None` is a temporary one.
    pub data: Option<&'a Path>,
    /// The file that keeps what it says.
    pub log: Option<&'a Path>,
    /// File for a copy of the ready line.
    pub ready_file: Option<&'a Path>,
    /// Time at which a transaction is acknowledged.
    pub durability: Durability,
    /// The way its role logs in.
    pub method: Method,
    /// True if it speaks TLS to clients that want it.
    pub tls: bool,
    /// Settings of its own, `name=value`.
    pub settings: &'a [String],
}

/// PostgreSQL's programs: in the folder that the environment names, in `PATH`, or where distributions put them.
///
/// # Errors
/// None there; names the package.
pub fn find() -> Result<Found> {
    let has_both = |bin: &PathBuf| bin.join("initdb").is_file() && bin.join("postgres").is_file();
    let given = std::env::var_os(BIN).filter(|bin| !bin.is_empty()).map(PathBuf::from);
    let bin = match given {
        Some(bin) if has_both(&bin) => bin,
        Some(bin) => {
            return Err(usage(format!(
                "{BIN}: {} holds no initdb and postgres; correct it, or unset it and {INSTALL}",
                bin.display()
            )));
        }
        // In PATH there may be links.
        None => in_path("initdb")
            .and_then(|initdb| initdb.canonicalize().ok()?.parent().map(Path::to_owned))
            .filter(has_both)
            .or_else(distributed)
            .ok_or_else(|| {
                usage(format!(
                    "postgresql: the server's programs are not here; install them: {INSTALL}"
                ))
            })?,
    };
    let postgres = bin.join("postgres");
    let said = Command::new(&postgres).arg("--version").stdin(Stdio::null()).output();
    let said = said.with_context(|| postgres.display().to_string())?;
    // postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)
    let text = String::from_utf8_lossy(&said.stdout);
    let version = text.split_whitespace().nth(2).unwrap_or_default().to_owned();
    let major: Option<u32> = version.split('.').next().and_then(|part| part.parse().ok());
    if major.is_none_or(|major| major < OLDEST) {
        return Err(usage(format!(
            "postgresql: {} is version '{version}' and {OLDEST} or later is needed; {INSTALL}",
            postgres.display()
        )));
    }
    Ok(Found { bin, version })
}

/// The newest of the folders where distributions put the programs.
fn distributed() -> Option<PathBuf> {
    let found =
        glob::glob("/usr/lib/postgresql/*/bin").ok()?.chain(glob::glob("/usr/pgsql-*/bin").ok()?);
    let version = |bin: &PathBuf| {
        let digits: String = bin.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
        digits.parse::<u32>().unwrap_or(0)
    };
    found.flatten().filter(|bin| bin.join("initdb").is_file()).max_by_key(version)
}

/// Runs a cluster until the user stops it.
///
/// # Errors
/// PostgreSQL is missing, the port is in use, the data is not its, or it ends by itself.
pub fn serve_cluster(serve: &ClusterServe<'_>) -> Result<u8> {
    signals::stop_flag()?;
    let password = password(serve.method)?;
    if let Some(wrong) = serve.settings.iter().find(|setting| !is_setting(setting)) {
        return Err(usage(format!(
            "--setting '{wrong}': write name=value; ports, folders and addresses have flags of their own"
        )));
    }
    let found = find()?;
    let account = Account::instead_of_root(ACCOUNT)?;
    if serve.port != 0 {
        free_port(serve.port)?;
    }
    let data = DataFolder::new(serve.data, "postgresql")?;
    check_room(&data.path, ROOM_BYTES, "postgresql")?;
    let log =
        EngineLog::create(&serve.log.map_or_else(|| data.path.join(LOG_NAME), PathBuf::from))?;
    let cluster = Cluster { found, account, folder: data.path.join("cluster"), log: log.clone() };
    cluster.make(data.is_temporary())?;
    cluster.set_up(serve.method, password.as_deref(), data.is_temporary())?;
    let tls = if serve.tls { Some(cluster.certify(&data.path)?) } else { None };
    // Found only now: making a cluster takes seconds, in which another process can take a free port.
    let port = free_port(serve.port)?;
    let mut command = cluster.program("postgres", Signal::INT);
    command.arg("-D").arg(&cluster.folder).args(server_settings(serve, port));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().context("starting postgres")?;
    log.follow(child.stdout.take().context("its stdout")?);
    log.follow(child.stderr.take().context("its stderr")?);
    // A fast shutdown: clients that are still there are not waited for.
    let running = Running { child, gently: Signal::INT };
    let place = Place {
        kind: "postgresql",
        scheme: "postgres",
        host: "127.0.0.1",
        ready_file: serve.ready_file,
    };
    let protocol = Postgres::new(Login::new(ROLE, password.as_deref(), ROLE, &[])?);
    let protocol = protocol.requiring_tls(serve.tls);
    supervise(&place, running, &log, &mut || {
        Ok(answers(&protocol, tls.as_ref(), port).then_some(port))
    })
}

/// The password of the environment, where one is needed: on the command line every user could read it.
fn password(method: Method) -> Result<Option<String>> {
    if method == Method::Trust {
        return Ok(None);
    }
    let is_plain = |password: &String| !password.is_empty() && !password.contains(char::is_control);
    let given = std::env::var("PGPASSWORD").ok().filter(is_plain);
    let given = given.ok_or_else(|| {
        usage(format!(
            "--auth {}: set PGPASSWORD to the password that role '{ROLE}' is to have",
            method.name()
        ))
    })?;
    Ok(Some(given))
}

fn is_setting(text: &str) -> bool {
    const OWN: [&str; 6] = [
        "port",
        "listen_addresses",
        "unix_socket_directories",
        "data_directory",
        "hba_file",
        "logging_collector",
    ];
    let Some((name, _)) = text.split_once('=') else { return false };
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
    !name.is_empty() && name.chars().all(plain) && !OWN.contains(&name)
}

/// `-c name=value` for everything in which the cluster differs from a new one.
fn server_settings(serve: &ClusterServe<'_>, port: u16) -> Vec<String> {
    let durability = match serve.durability {
        Durability::Sync => &["fsync=on", "synchronous_commit=on"][..],
        Durability::Async => &["fsync=on", "synchronous_commit=off"],
        Durability::None => &["fsync=off", "synchronous_commit=off", "full_page_writes=off"],
    };
    let own = [
        format!("port={port}"),
        "listen_addresses=127.0.0.1".to_owned(),
        // The port is the only way in.
        "unix_socket_directories=".to_owned(),
        format!("ssl={}", if serve.tls { "on" } else { "off" }),
        "max_connections=500".to_owned(),
        "logging_collector=off".to_owned(),
        "log_destination=stderr".to_owned(),
    ];
    let durability = durability.iter().map(|&text| text.to_owned());
    own.into_iter()
        .chain(durability)
        .chain(serve.settings.iter().cloned())
        .flat_map(|setting| ["-c".to_owned(), setting])
        .collect()
}

/// Returns true if the role can log in and is answered.
fn answers(protocol: &Postgres, tls: Option<&Tls>, port: u16) -> bool {
    let target = Target::resolve("127.0.0.1", port);
    let mut request = Request::default();
    let connected = Exchange::connect_secure(protocol.clone(), &target, tls, TRY);
    let asked = connected.and_then(|mut exchange| {
        // A text without a NUL byte can be sent.
        let _ = request.query("SELECT 1");
        exchange.ask(&request, |reply| reply.error.is_none())
    });
    matches!(asked, Ok(true))
}

/// The files of a cluster, and the programs that work on them.
struct Cluster {
    found: Found,
    account: Option<Account>,
    folder: PathBuf,
    log: EngineLog,
}

impl Cluster {
    /// One of PostgreSQL's programs, run by the owner of the files; `at_our_end` is the signal that it gets when
    /// this process dies.
    fn program(&self, name: &str, at_our_end: Signal) -> Command {
        let mut command = ends_with_us(self.found.bin.join(name), at_our_end);
        if let Some(account) = &self.account {
            account.take_on(&mut command);
        }
        // Where this process stands may be closed to it; messages in one language can be read by programs.
        command.current_dir("/").env("LC_ALL", "C.UTF-8");
        for variable in ["PGDATA", "PGPORT", "PGHOST", "PGUSER", "PGPASSWORD", "PGOPTIONS"] {
            command.env_remove(variable);
        }
        command
    }

    /// Makes the cluster, unless it is there.
    fn make(&self, is_temporary: bool) -> Result<()> {
        let shown = self.folder.display();
        if let Some(account) = &self.account {
            if is_temporary && let Some(above) = self.folder.parent() {
                std::fs::set_permissions(above, std::fs::Permissions::from_mode(0o755))?;
            }
            account.check_reach(&self.folder)?;
        }
        let major = self.found.version.split('.').next().unwrap_or_default();
        if let Ok(own) = std::fs::read_to_string(self.folder.join("PG_VERSION")) {
            if own.trim() != major {
                return Err(usage(format!(
                    "--data: {shown} was made by PostgreSQL {} and this is {major}; name another folder",
                    own.trim()
                )));
            }
            return Ok(());
        }
        std::fs::create_dir_all(&self.folder)
            .map_err(|error| usage(format!("--data {shown}: {error}; name another folder")))?;
        if let Some(account) = &self.account {
            account.own(&self.folder)?;
        }
        let mut command = self.program("initdb", Signal::TERM);
        command.arg("-D").arg(&self.folder).args([
            "--username=postgres",
            "--encoding=UTF8",
            "--locale=C.UTF-8",
            "--auth=reject",
            "--no-instructions",
        ]);
        if is_temporary {
            command.arg("--no-sync");
        }
        self.run(command, b"", "initdb")
    }

    /// Has the server speak TLS, and says where the authority is that clients are to trust, in `folder`.
    fn certify(&self, folder: &Path) -> Result<Tls> {
        let files = Certificates {
            authority: folder.join("ca.crt"),
            // As the server's own settings have them.
            certificate: self.folder.join("server.crt"),
            key: self.folder.join("server.key"),
        };
        files.make(self.account.as_ref())?;
        let shown = files.authority.display();
        note(&format!("TLS: the authority is {shown}; sslmode=verify-full&sslrootcert={shown}"));
        let ca_file = Some(files.authority);
        let speaks = Speaks::Postgresql;
        Ok(Tls::new(&TlsOptions { ca_file, speaks, ..TlsOptions::default() })?)
    }

    /// Says who may log in, and makes role and database where they are not there.
    fn set_up(&self, method: Method, password: Option<&str>, is_temporary: bool) -> Result<()> {
        let access = self.folder.join("pg_hba.conf");
        let text = format!("host {ROLE} {ROLE} 127.0.0.1/32 {}\n", method.name());
        std::fs::write(&access, text).with_context(|| access.display().to_string())?;
        if let Some(account) = &self.account {
            account.own(&access)?;
        }
        let marker = self.folder.join("plimsoll-role");
        let mut statements = String::new();
        if !marker.is_file() {
            statements.push_str(&format!(
                "CREATE ROLE {ROLE} LOGIN;\nCREATE DATABASE {ROLE} OWNER {ROLE};\n"
            ));
        }
        if let Some(password) = password {
            let kept = if method == Method::Md5 { "md5" } else { "scram-sha-256" };
            let quoted = password.replace('\'', "''");
            statements.push_str(&format!(
                "SET password_encryption = '{kept}';\nALTER ROLE {ROLE} PASSWORD '{quoted}';\n"
            ));
        }
        if statements.is_empty() {
            return Ok(());
        }
        // The server's mode for one user reads statements, one a line, and needs no port and no password.
        let mut command = self.program("postgres", Signal::TERM);
        command.args(["--single", "-D"]).arg(&self.folder);
        // Errors are logged without the statement, which can hold the password.
        command.args(["-c", "log_min_error_statement=panic"]);
        if is_temporary {
            command.args(["-c", "fsync=off"]);
        }
        command.arg("postgres");
        self.run(command, statements.as_bytes(), "setting up the role")?;
        std::fs::write(&marker, "")?;
        Ok(())
    }

    /// Runs a program to its end with something on its stdin.
    fn run(&self, mut command: Command, input: &[u8], what: &str) -> Result<()> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().with_context(|| what.to_owned())?;
        let mut running = Running { child, gently: Signal::TERM };
        self.log.follow(running.child.stdout.take().context("its stdout")?);
        self.log.follow(running.child.stderr.take().context("its stderr")?);
        if let Some(mut stdin) = running.child.stdin.take() {
            // One that does not read ends with an error of its own.
            let _ = stdin.write_all(input);
        }
        let status = loop {
            if let Some(status) = wait_within(&mut running.child, LOOK_EVERY) {
                break status;
            }
            signals::go_on(format!("during {what}"))?;
        };
        self.log.drain();
        // In its mode for one user the server ends well whatever its statements came to.
        let words = self.log.last_words();
        let wrong = ["ERROR:", "FATAL:", "PANIC:"].iter().any(|w| words.contains(w));
        // A start that was cut off may have made role and database, and not have noted it.
        if !status.success() || wrong && !words.ends_with("already exists") {
            bail!("postgresql: {what} failed: {words}");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_checked_and_durability_is_what_it_says() {
        for good in ["shared_buffers=256MB", "pg_trgm.similarity_threshold=0.1", "work_mem="] {
            assert!(is_setting(good), "{good}");
        }
        for wrong in ["port=1", "listen_addresses=*", "x", "=1", "a b=1", "hba_file=/x"] {
            assert!(!is_setting(wrong), "{wrong}");
        }
        let settings = ["fsync=off".to_owned()];
        let serve = |durability| ClusterServe {
            port: 0,
            data: None,
            log: None,
            ready_file: None,
            durability,
            method: Method::Trust,
            tls: durability == Durability::None,
            settings: &settings,
        };
        let sync = server_settings(&serve(Durability::Sync), 5).join(" ");
        assert!(sync.contains("-c fsync=on -c synchronous_commit=on -c fsync=off"), "{sync}");
        assert!(sync.contains("listen_addresses=127.0.0.1") && sync.contains("port=5 "));
        assert!(sync.contains("-c ssl=off"), "{sync}");
        let none = server_settings(&serve(Durability::None), 5).join(" ");
        assert!(none.contains("-c fsync=off") && none.contains("full_page_writes=off"), "{none}");
        assert!(none.contains("-c ssl=on"), "{none}");
    }
}
