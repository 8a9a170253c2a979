//! The login of a user.

use crate::Fault;
use bytes::BytesMut;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};
use postgres_protocol::message::frontend;
use std::fmt;
use thiserror::Error;

/// A login that cannot be sent.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum LoginError {
    /// Texts end with a NUL byte on the wire.
    #[error("user, password, database and settings must not hold a NUL byte")]
    Nul,
}

/// User, password and database of a run's connections.
#[derive(Clone)]
pub struct Login {
    user: String,
    password: Option<String>,
    startup: Vec<u8>,
}

/// Shows everything but the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Logs `user` in to `database`. `settings` are parameters of the server for each connection, such as
    /// `statement_timeout` in milliseconds.
    ///
    /// # Errors
    /// A NUL byte anywhere.
    pub fn new(
        user: &str,
        password: Option<&str>,
        database: &str,
        settings: &[(&str, &str)],
    ) -> Result<Self, LoginError> {
        let own = [
            ("user", user),
            ("database", database),
            ("client_encoding", "UTF8"),
            ("application_name", "plimsoll"),
        ];
        let mut startup = BytesMut::new();
        frontend::startup_message(own.into_iter().chain(settings.iter().copied()), &mut startup)
            .map_err(|_| LoginError::Nul)?;
        if password.is_some_and(|password| password.as_bytes().contains(&0)) {
            return Err(LoginError::Nul);
        }
        Ok(Self {
            user: user.to_owned(),
            password: password.map(str::to_owned),
            startup: startup.to_vec(),
        })
    }

    /// The first message of a connection.
    pub(super) fn startup(&self) -> &[u8] {
        &self.startup
    }

    fn password(&self) -> Result<&[u8], Fault> {
        let none = Fault::Protocol("the server asks for a password and none was given");
        self.password.as_deref().map(str::as_bytes).ok_or(none)
    }
}

/// Progress of the authentication.
#[derive(Default)]
pub(super) struct Authentication {
    scram: Option<Box<ScramSha256>>,
    done: bool,
}

impl fmt::Debug for Authentication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Authentication").field("done", &self.done).finish_non_exhaustive()
    }
}

const CUT: Fault = Fault::Protocol("a message of PostgreSQL's login is too short");
const UNSENDABLE: Fault = Fault::Protocol("the answer to PostgreSQL's login cannot be written");

impl Authentication {
    /// Returns true if the server has said that all is well.
    pub fn is_done(&self) -> bool {
        self.done
    }

    /// Answers one message of kind `R`.
    pub fn answer(&mut self, login: &Login, body: &[u8], out: &mut Vec<u8>) -> Result<(), Fault> {
        let (kind, rest) = body.split_first_chunk::<4>().ok_or(CUT)?;
        let mut said = BytesMut::new();
        match u32::from_be_bytes(*kind) {
            // Trust, or the end of the others. A server that was to prove itself and did not is not believed.
            0 if self.scram.is_none() => self.done = true,
            0 => {
                return Err(Fault::Protocol("the server broke off its login by SCRAM"));
            }
            3 => {
                frontend::password_message(login.password()?, &mut said).map_err(|_| UNSENDABLE)?;
            }
            5 => {
                let salt = *rest.first_chunk::<4>().ok_or(CUT)?;
                let hash = md5_hash(login.user.as_bytes(), login.password()?, salt);
                frontend::password_message(hash.as_bytes(), &mut said).map_err(|_| UNSENDABLE)?;
            }
            10 => self.begin_scram(login, rest, &mut said)?,
            11 => {
                let broken = Fault::Protocol("the server's part of SCRAM is not as it must be");
                let scram = self.scram.as_mut().ok_or(broken)?;
                scram.update(rest).map_err(|_| broken)?;
                frontend::sasl_response(scram.message(), &mut said).map_err(|_| UNSENDABLE)?;
            }
            12 => {
                let liar = Fault::Protocol("the server could not prove that it knows the password");
                let mut scram = self.scram.take().ok_or(liar)?;
                scram.finish(rest).map_err(|_| liar)?;
            }
            _ => {
                return Err(Fault::Protocol(
                    "the server asks for GSSAPI, SSPI or Kerberos, which plimsoll does not speak; \
                     allow scram-sha-256 in its pg_hba.conf",
                ));
            }
        }
        out.extend_from_slice(&said);
        Ok(())
    }

    fn begin_scram(
        &mut self,
        login: &Login,
        mechanisms: &[u8],
        said: &mut BytesMut,
    ) -> Result<(), Fault> {
        if !mechanisms.split(|&byte| byte == 0).any(|name| name == SCRAM_SHA_256.as_bytes()) {
            return Err(Fault::Protocol("the server offers no SASL mechanism but ones over TLS"));
        }
        let scram = ScramSha256::new(login.password()?, ChannelBinding::unsupported());
        frontend::sasl_initial_response(SCRAM_SHA_256, scram.message(), said)
            .map_err(|_| UNSENDABLE)?;
        self.scram = Some(Box::new(scram));
        Ok(())
    }
}

/// Reason why a server turns a connection away, as far as its code tells.
pub(super) fn refusal(code: &[u8]) -> &'static str {
    match code {
        b"28P01" => "PostgreSQL refused the login: wrong password",
        b"28000" => "PostgreSQL refused the login: this user is not allowed to connect from here",
        b"3D000" => "PostgreSQL refused the login: there is no such database",
        b"53300" => "PostgreSQL has no connection left (max_connections)",
        b"57P03" => "PostgreSQL is starting up or shutting down",
        b"57P01" | b"57P02" => {
            "PostgreSQL ended the connection: the server is being shut down or restarted"
        }
        _ => "PostgreSQL refused or ended the connection",
    }
}
