//! The login: the client's message, its check by a server, and the answer.

use super::frame::FRAME_HEAD_BYTES;
use super::kind::DecodeError;
use super::scan::{Scan, patch_length, put_counted};
use ring::digest;
use std::fmt;
use thiserror::Error;

/// The service that clients log in to.
const SERVICE: &str = "database";

/// The way a password is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scheme {
    /// 20 bytes; version 0 of the login knows only this.
    Sha1,
    /// 32 bytes.
    Sha256,
}

impl Scheme {
    /// Its code in a login of version 1.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Sha1 => 0,
            Self::Sha256 => 1,
        }
    }

    fn digest(self, password: &str) -> digest::Digest {
        let algorithm = match self {
            Self::Sha1 => &digest::SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => &digest::SHA256,
        };
        digest::digest(algorithm, password.as_bytes())
    }
}

/// The layout of a login.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LoginForm {
    /// Version 0, SHA-1.
    V0,
    /// Version 1 with SHA-1.
    V1Sha1,
    /// Version 1 with SHA-256.
    #[default]
    V1Sha256,
}

/// User and password of a run's connections, hashed.
#[derive(Clone, PartialEq, Eq)]
pub struct Login {
    user: String,
    message: Vec<u8>,
}

/// Shows everything but the password.
impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Default for Login {
    /// No user: accepted by servers without security.
    fn default() -> Self {
        Self::new("", "")
    }
}

impl Login {
    /// Logs in as `user`; both are empty for servers without security.
    #[must_use]
    pub fn new(user: &str, password: &str) -> Self {
        Self::with_form(user, password, LoginForm::default())
    }

    /// The same in another form.
    #[must_use]
    pub fn with_form(user: &str, password: &str, form: LoginForm) -> Self {
        let mut message = vec![0; FRAME_HEAD_BYTES];
        let scheme = match form {
            LoginForm::V0 | LoginForm::V1Sha1 => Scheme::Sha1,
            LoginForm::V1Sha256 => Scheme::Sha256,
        };
        match form {
            LoginForm::V0 => message.push(0),
            LoginForm::V1Sha1 | LoginForm::V1Sha256 => message.extend([1, scheme.code()]),
        }
        put_counted(Some(SERVICE.as_bytes()), &mut message);
        put_counted(Some(user.as_bytes()), &mut message);
        message.extend_from_slice(scheme.digest(password).as_ref());
        patch_length(0, &mut message);
        Self { user: user.to_owned(), message }
    }

    /// The user.
    #[must_use]
    pub fn user(&self) -> &str {
        &self.user
    }

    /// The first message of a connection, with its length.
    #[must_use]
    pub fn message(&self) -> &[u8] {
        &self.message
    }
}

/// A password as a server keeps it: by its hashes.
#[derive(Clone)]
pub struct Password {
    sha1: digest::Digest,
    sha256: digest::Digest,
}

/// Shows nothing of it.
impl fmt::Debug for Password {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Password").finish_non_exhaustive()
    }
}

impl Password {
    /// Keeps the hashes of this one.
    #[must_use]
    pub fn new(password: &str) -> Self {
        Self { sha1: Scheme::Sha1.digest(password), sha256: Scheme::Sha256.digest(password) }
    }

    /// Returns true if the login was made with it. Takes as long wherever a wrong one differs.
    #[must_use]
    pub fn matches(&self, login: &LoginCall<'_>) -> bool {
        let own = match login.scheme {
            Scheme::Sha1 => self.sha1.as_ref(),
            Scheme::Sha256 => self.sha256.as_ref(),
        };
        let differences = own.iter().zip(login.digest).fold(0, |sum, (one, two)| sum | (one ^ two));
        own.len() == login.digest.len() && std::hint::black_box(differences) == 0
    }
}

/// A login that cannot be read, and what to answer.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum LoginCallError {
    /// The password is hashed in another way than SHA-1 and SHA-256.
    #[error("a login with scheme {0}, which is not spoken")]
    Scheme(i8),
    /// The bytes are no login.
    #[error("the login cannot be read: {0}")]
    Bytes(#[from] DecodeError),
}

impl LoginCallError {
    /// The code that VoltDB answers it with.
    #[must_use]
    pub const fn code(self) -> i8 {
        LoginCode::FORMAT
    }
}

/// A login as a server reads it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct LoginCall<'a> {
    /// The version byte: 0, or one of those that have the layout of 1.
    pub version: i8,
    /// The way the password is hashed.
    pub scheme: Scheme,
    /// The service: `database`.
    pub service: &'a str,
    /// The user.
    pub user: &'a str,
    digest: &'a [u8],
}

/// Shows everything but the hash of the password.
impl fmt::Debug for LoginCall<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LoginCall")
            .field("version", &self.version)
            .field("scheme", &self.scheme)
            .field("service", &self.service)
            .field("user", &self.user)
            .finish_non_exhaustive()
    }
}

impl<'a> LoginCall<'a> {
    /// Reads a login from a message, its length not included. Every version but 0 has the layout of version 1:
    /// newer clients say 2 and mean the same.
    ///
    /// # Errors
    /// Another scheme than SHA-1 and SHA-256, or bytes that end too soon.
    pub fn read(body: &'a [u8]) -> Result<Self, LoginCallError> {
        let mut scan = Scan::new(body);
        let version = scan.i8()?;
        if version < 0 {
            return Err(DecodeError::Version(version).into());
        }
        let scheme = match version {
            0 => Scheme::Sha1,
            _ => match scan.i8()? {
                0 => Scheme::Sha1,
                1 => Scheme::Sha256,
                other => return Err(LoginCallError::Scheme(other)),
            },
        };
        let service = scan.some_text()?;
        let user = scan.some_text()?;
        Ok(Self { version, scheme, service, user, digest: scan.rest() })
    }

    /// Returns true if it is the database that is logged in to, and not one of the services that are not spoken.
    #[must_use]
    pub fn is_to_database(&self) -> bool {
        self.service == SERVICE
    }

    /// Returns true if the hash is as long as its scheme has it. A server without passwords asks for no more.
    #[must_use]
    pub const fn is_digest_whole(&self) -> bool {
        self.digest.len()
            == match self.scheme {
                Scheme::Sha1 => digest::SHA1_OUTPUT_LEN,
                Scheme::Sha256 => digest::SHA256_OUTPUT_LEN,
            }
    }
}

/// Codes of an answer to a login.
#[derive(Clone, Copy, Debug)]
pub enum LoginCode {}

impl LoginCode {
    /// Come in.
    pub const OK: i8 = 0;
    /// User or password are wrong.
    pub const REFUSED: i8 = -1;
    /// There are too many connections.
    pub const TOO_MANY: i8 = 1;
    /// The login took too long.
    pub const TIMEOUT: i8 = 2;
    /// The login cannot be read.
    pub const FORMAT: i8 = 3;
    /// The server joins its cluster again.
    pub const REJOINING: i8 = 4;
    /// There is no such service.
    pub const NO_SERVICE: i8 = 5;

    /// Returns true if the same login may be let in later.
    #[must_use]
    pub const fn is_for_now(code: i8) -> bool {
        matches!(code, Self::TOO_MANY | Self::TIMEOUT | Self::REJOINING)
    }

    /// The meaning of the code, in a sentence.
    #[must_use]
    pub const fn text(code: i8) -> &'static str {
        match code {
            Self::OK => "VoltDB let the login in",
            Self::REFUSED => "VoltDB refused the login: wrong user or password",
            Self::TOO_MANY => "VoltDB refused the login: it has too many connections",
            Self::TIMEOUT => "VoltDB refused the login: it took too long",
            Self::FORMAT => "VoltDB refused the login: it could not read it",
            Self::REJOINING => "VoltDB refused the login: the server is joining its cluster again",
            Self::NO_SERVICE => {
                "VoltDB refused the login: the service is not known or switched off"
            }
            _ => "VoltDB refused the login with a code that is not known",
        }
    }
}

/// The data of a server in its answer to a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Welcome<'a> {
    /// The host's number in its cluster.
    pub host_id: i32,
    /// The server's number for this connection.
    pub connection_id: i64,
    /// Time at which the cluster was started, ms since 1970. With the leader's address it names the cluster.
    pub cluster_start_ms: i64,
    /// The IPv4 address of the cluster's leader.
    pub leader_address: [u8; 4],
    /// The version and build of the server.
    pub build: &'a str,
}

/// The answer to a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LoginReply<'a> {
    /// Come in.
    Welcome(Welcome<'a>),
    /// No, with one of [`LoginCode`]; the server closes the connection.
    Refused(i8),
}

impl<'a> LoginReply<'a> {
    /// Reads an answer from a message, its length not included.
    ///
    /// # Errors
    /// Another version than 0 (2 asks for Kerberos), or bytes that end too soon.
    pub fn read(body: &'a [u8]) -> Result<Self, DecodeError> {
        let mut scan = Scan::new(body);
        let version = scan.i8()?;
        if version != 0 {
            return Err(DecodeError::Version(version));
        }
        let code = scan.i8()?;
        if code != LoginCode::OK {
            return Ok(Self::Refused(code));
        }
        Ok(Self::Welcome(Welcome {
            host_id: scan.i32()?,
            connection_id: scan.i64()?,
            cluster_start_ms: scan.i64()?,
            leader_address: scan.array()?,
            build: scan.some_text()?,
        }))
    }

    /// Appends the answer as a message with its length.
    pub fn put(&self, out: &mut Vec<u8>) {
        let at = out.len();
        out.extend_from_slice(&[0; FRAME_HEAD_BYTES + 1]);
        match self {
            Self::Refused(code) => out.push(*code as u8),
            Self::Welcome(welcome) => {
                out.push(LoginCode::OK as u8);
                out.extend_from_slice(&welcome.host_id.to_be_bytes());
                out.extend_from_slice(&welcome.connection_id.to_be_bytes());
                out.extend_from_slice(&welcome.cluster_start_ms.to_be_bytes());
                out.extend_from_slice(&welcome.leader_address);
                put_counted(Some(welcome.build.as_bytes()), out);
            }
        }
        patch_length(at, out);
    }
}
