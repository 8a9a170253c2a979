//! The configuration file of the server. Secrets are in it and not on the command line, which every user of the machine can read.

use anyhow::{Context, Result};
use plimsoll_core::secrets::remember;
use plimsoll_core::system_error::with_advice;
use plimsoll_job::output::note;
use plimsoll_job::usage::usage;
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Environment variable with the user's password.
pub const PASSWORD: &str = "NATS_PASSWORD";
/// Length of a public NKey in letters.
const NKEY_LETTERS: usize = 56;
/// Bytes of chance in a new token.
const TOKEN_BYTES: usize = 32;

/// The certificate of the server.
#[derive(Clone, Copy)]
pub struct NatsTls<'a> {
    /// PEM file of the certificate.
    pub certificate: &'a Path,
    /// PEM file of its key.
    pub key: &'a Path,
    /// PEM file of the authorities that sign clients' certificates; `None` accepts clients without one.
    pub client_ca: Option<&'a Path>,
}

/// Credentials that clients must have.
#[derive(PartialEq, Eq)]
pub enum Access {
    Open,
    Token(String),
    User(String, String),
    Nkey(String),
}

impl Access {
    /// Reads the credentials that the flags name: a file with a token, a user whose password is in the environment, or a public
    /// NKey.
    ///
    /// # Errors
    /// A file or a value that is not valid.
    pub fn read(token_file: Option<&Path>, user: Option<&str>, nkey: Option<&str>) -> Result<Self> {
        let access = match (token_file, user, nkey) {
            (Some(file), ..) => Self::Token(token(file)?),
            (None, Some(user), _) => {
                let password = std::env::var(PASSWORD).ok();
                Self::user(user, password.as_deref())?
            }
            (None, None, Some(nkey)) => Self::nkey(nkey)?,
            (None, None, None) => Self::Open,
        };
        if let Self::Token(secret) | Self::User(_, secret) = &access {
            remember(secret);
        }
        Ok(access)
    }

    fn user(user: &str, password: Option<&str>) -> Result<Self> {
        if !is_plain(user) {
            return Err(usage("--user: write a name"));
        }
        let password = password.filter(|password| is_plain(password)).ok_or_else(|| {
            usage(format!("--user {user} needs a password; set {PASSWORD} to it"))
        })?;
        Ok(Self::User(user.to_owned(), password.to_owned()))
    }

    fn nkey(key: &str) -> Result<Self> {
        let is_public = key.len() == NKEY_LETTERS
            && key.starts_with('U')
            && key.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit());
        if !is_public {
            // A seed that was given by mistake is not repeated.
            return Err(usage(
                "--nkey: write the public key of a user, 56 letters and digits that begin with U (not its seed)",
            ));
        }
        Ok(Self::Nkey(key.to_owned()))
    }
}

fn is_plain(text: &str) -> bool {
    !text.is_empty() && !text.chars().any(char::is_control)
}

/// Reads a token from a file, or writes a new one into it if it does not exist.
fn token(file: &Path) -> Result<String> {
    let shown = file.display();
    match std::fs::read_to_string(file) {
        Ok(text) if is_plain(text.trim()) => Ok(text.trim().to_owned()),
        Ok(_) => Err(usage(format!("--token-file {shown}: write one token in one line"))),
        Err(error) if error.kind() == ErrorKind::NotFound => new_token(file),
        Err(error) => Err(usage(format!("--token-file {shown}: {}", with_advice(&error)))),
    }
}

fn new_token(file: &Path) -> Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    let filled = SystemRandom::new().fill(&mut bytes);
    filled.map_err(|_| anyhow::anyhow!("the system gives no random numbers for a token"))?;
    let token: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    write_secret(file, &format!("{token}\n")).map_err(|error| {
        usage(format!("--token-file {}: {}", file.display(), with_advice(&error)))
    })?;
    note(&format!("plimsoll: wrote a new token to {}", file.display()));
    Ok(token)
}

/// Writes a file that only its owner can read, and that did not exist.
fn write_secret(file: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(file)?;
    file.write_all(text.as_bytes())
}

/// Writes the configuration into a new file of a folder; port 0 is any free one.
///
/// # Errors
/// A file that cannot be written.
pub fn write(
    folder: &Path,
    host: &str,
    port: u16,
    access: &Access,
    tls: Option<&NatsTls<'_>>,
) -> Result<std::path::PathBuf> {
    let path = folder.join("nats.conf");
    let text = text(folder, host, port, access, tls);
    write_secret(&path, &text).with_context(|| path.display().to_string())?;
    Ok(path)
}

fn text(
    folder: &Path,
    host: &str,
    port: u16,
    access: &Access,
    tls: Option<&NatsTls<'_>>,
) -> String {
    let path = |path: &Path| quoted(&path.display().to_string());
    let port = if port == 0 { -1 } else { i32::from(port) };
    let mut text = format!(
        "host: {}\nport: {port}\nserver_name: plimsoll\nports_file_dir: {}\n",
        quoted(host),
        path(folder)
    );
    // Writing to a text cannot fail.
    let _ = match access {
        Access::Open => Ok(()),
        Access::Token(token) => writeln!(text, "authorization {{ token: {} }}", quoted(token)),
        Access::User(user, password) => writeln!(
            text,
            "authorization {{ users: [ {{ user: {}, password: {} }} ] }}",
            quoted(user),
            quoted(password)
        ),
        Access::Nkey(key) => {
            writeln!(text, "authorization {{ users: [ {{ nkey: {key} }} ] }}")
        }
    };
    if let Some(tls) = tls {
        let ca = tls.client_ca.map(|ca| format!(", ca_file: {}, verify: true", path(ca)));
        let _ = writeln!(
            text,
            "tls {{ cert_file: {}, key_file: {}{} }}",
            path(tls.certificate),
            path(tls.key),
            ca.unwrap_or_default()
        );
    }
    text
}

/// Quotes a text, so that the server takes no part of it for a setting or a variable.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_secret_cannot_leave_its_quotes() {
        let access = Access::Token("a\" } \\ $HOME".to_owned());
        let text = text(Path::new("/d"), "127.0.0.1", 0, &access, None);
        assert!(text.contains("port: -1\n"), "{text}");
        assert!(text.contains(r#"token: "a\" } \\ $HOME""#), "{text}");
        assert!(!text.contains("jetstream"));
    }

    #[test]
    fn a_token_is_made_once_and_only_its_owner_can_read_it() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("token");
        let first = token(&file).unwrap();
        assert!(first.len() == 2 * TOKEN_BYTES && token(&file).unwrap() == first);
        assert_eq!(file.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&file, "one\ntwo\n").unwrap();
        assert!(token(&file).unwrap_err().to_string().contains("one line"));
        assert!(token(&dir.path().join("no/such")).is_err());
    }

    #[test]
    fn credentials_that_are_not_valid_are_reported_without_them() {
        for error in [
            Access::user("ann", None),
            Access::user("ann", Some("se\ncret")),
            Access::user("", Some("secret")),
            Access::nkey("SUsecret"),
        ] {
            let error = error.map(drop).unwrap_err().to_string();
            assert!(!error.contains("cret"), "{error}");
        }
        assert!(Access::nkey(&format!("U{}", "A".repeat(55))).is_ok());
    }
}
