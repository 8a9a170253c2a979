//! The credentials for a bus, from its URL or from flags.

use crate::address::{BusAddress, UrlLogin};
use plimsoll_core::secrets::remember;
use std::fmt;
use std::path::PathBuf;

/// Credentials of a client. `Debug` shows names and files, and no secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub enum Credentials {
    /// None.
    #[default]
    None,
    /// A user and its password.
    User {
        /// The name.
        name: String,
        /// The secret.
        password: String,
    },
    /// A token that all clients share.
    Token(String),
    /// A file with an NKey seed, which begins with `SU`.
    NkeyFile(PathBuf),
    /// A file with a JWT and an NKey seed, as `nsc` writes it.
    CredsFile(PathBuf),
}

/// Credentials as separate flags give them.
#[derive(Clone, Default)]
pub struct CredentialWords {
    /// Name of a user.
    pub user: Option<String>,
    /// Password of that user.
    pub password: Option<String>,
    /// A token.
    pub token: Option<String>,
    /// A file with an NKey seed.
    pub nkey_file: Option<PathBuf>,
    /// A `.creds` file.
    pub creds_file: Option<PathBuf>,
}

/// Credentials that do not belong together.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CredentialsError {
    /// More than one kind.
    #[error(
        "more than one kind of credentials for the bus; give a user and password, or a token, or an NKey seed file, \
         or a .creds file, either in the URL or beside it"
    )]
    Several,
    /// One without the other.
    #[error(
        "credentials for the bus are incomplete; a user needs a password, and a password a user"
    )]
    Incomplete,
    /// An empty value, or one with a line end.
    #[error("credentials for the bus are empty or hold a control character")]
    Invalid,
}

impl Credentials {
    /// Chooses the credentials that the URL or the flags give, and keeps them out of all records.
    ///
    /// # Errors
    /// Several kinds, or half of one.
    pub fn choose(words: CredentialWords, address: &BusAddress) -> Result<Self, CredentialsError> {
        let mut found = Vec::new();
        match (words.user, words.password) {
            (Some(name), Some(password)) => found.push(Self::User { name, password }),
            (None, None) => {}
            _ => return Err(CredentialsError::Incomplete),
        }
        found.extend(words.token.map(Self::Token));
        found.extend(words.nkey_file.map(Self::NkeyFile));
        found.extend(words.creds_file.map(Self::CredsFile));
        found.extend(address.login().map(|login| match login.clone() {
            UrlLogin::User { name, password } => Self::User { name, password },
            UrlLogin::Token(token) => Self::Token(token),
        }));
        let chosen = match found.len() {
            0 => return Ok(Self::None),
            1 => found.remove(0),
            _ => return Err(CredentialsError::Several),
        };
        let is_valid = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
        let valid = match &chosen {
            Self::User { name, password } => {
                remember(password);
                is_valid(name) && is_valid(password)
            }
            Self::Token(token) => {
                remember(token);
                is_valid(token)
            }
            _ => true,
        };
        if valid { Ok(chosen) } else { Err(CredentialsError::Invalid) }
    }

    /// Returns a name for messages: the kind, and of a user or a file the name.
    pub(crate) fn shown(&self) -> String {
        match self {
            Self::None => "no credentials".to_owned(),
            Self::User { name, .. } => format!("user '{}'", name.escape_debug()),
            Self::Token(_) => "the token".to_owned(),
            Self::NkeyFile(path) => format!("the NKey of {}", path.display()),
            Self::CredsFile(path) => format!("the credentials of {}", path.display()),
        }
    }
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Credentials({})", self.shown())
    }
}

impl fmt::Debug for CredentialWords {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CredentialWords")
            .field("user", &self.user)
            .field("password", &self.password.as_ref().map(|_| "***"))
            .field("token", &self.token.as_ref().map(|_| "***"))
            .field("nkey_file", &self.nkey_file)
            .field("creds_file", &self.creds_file)
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> BusAddress {
        text.parse().unwrap()
    }

    #[test]
    fn one_kind_of_credentials_is_chosen_and_never_shown() {
        let some = |text: &str| Some(text.to_owned());
        let plain = address("nats://h");
        let words = CredentialWords { token: some("hidden-1"), ..CredentialWords::default() };
        assert!(!format!("{words:?}").contains("hidden"));
        let chosen = Credentials::choose(words.clone(), &plain).unwrap();
        assert!(chosen == Credentials::Token("hidden-1".to_owned()));
        assert!(!format!("{chosen:?}").contains("hidden"));
        let with_login = address("nats://ann:hidden-2@h");
        let chosen = Credentials::choose(CredentialWords::default(), &with_login).unwrap();
        assert_eq!(format!("{chosen:?}"), "Credentials(user 'ann')");
        let several = Credentials::choose(words, &with_login);
        assert_eq!(several, Err(CredentialsError::Several));
        let half = CredentialWords { user: some("ann"), ..CredentialWords::default() };
        assert_eq!(Credentials::choose(half, &plain), Err(CredentialsError::Incomplete));
        let broken = CredentialWords { token: some("a\nb"), ..CredentialWords::default() };
        assert_eq!(Credentials::choose(broken, &plain), Err(CredentialsError::Invalid));
    }
}
