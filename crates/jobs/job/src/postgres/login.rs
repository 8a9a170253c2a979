//! The login before a run: a fault is reported in the server's words and before any load, and `sslmode=prefer` is settled to TLS
//! or none.

use crate::postgres::address::Address;
use crate::postgres::security::{SslMode, told};
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::units::Span;
use plimsoll_engine::exchange::{Exchange, ExchangeError};
use plimsoll_engine::target::Target;
use plimsoll_engine::tls::Tls;
use plimsoll_wire::postgres::Request;
use std::time::Duration;

/// Settles `sslmode=prefer` to TLS or none, so that all connections of a run are of one kind; where
/// targets differ, or one is not there to be asked, each connection finds out.
pub fn settle(addresses: &mut [Address], secure: &[bool]) {
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

/// Reason why a login came to nothing.
#[derive(Debug)]
pub enum NoLogin {
    /// Nothing answers at the address.
    Nobody(ExchangeError),
    /// The server's words.
    Refused(String),
    /// The peer does not complete a login.
    Broken(ExchangeError),
}

impl NoLogin {
    /// Returns the line about it.
    pub fn told(self, address: &Address) -> anyhow::Error {
        let why = match self {
            Self::Refused(why) => why,
            Self::Nobody(error) | Self::Broken(error) => told(&error),
        };
        usage(format!("{}: {why}", address.shown()))
    }
}

/// Logs in once, with these limits for a statement and for the login. Returns whether that was over TLS.
///
/// # Errors
/// The outer ones are files of TLS that cannot be used; the inner ones are what came of the login.
pub fn log_in(
    target: &Target,
    address: &Address,
    statement: Span,
    login: Span,
) -> Result<Result<bool, NoLogin>> {
    let protocol = address.protocol(statement, &[])?;
    let patience = Duration::from_nanos(login.ns);
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
            Ok((is_secure, None)) => Ok(is_secure),
            Ok((_, Some(why))) => Err(NoLogin::Refused(why)),
            Err(error @ (ExchangeError::Unresolved(_) | ExchangeError::Connect { .. })) => {
                Err(NoLogin::Nobody(error))
            }
            Err(error) => Err(NoLogin::Broken(error)),
        }
    };
    let tls = address.tls()?;
    let mut end = attempt(tls.as_ref());
    // TLS that is only preferred may fail where a login in clear succeeds, for instance if the server rejects it.
    let may_go_in_clear = match &end {
        Err(NoLogin::Refused(_)) => true,
        Err(NoLogin::Broken(error)) => !matches!(error, ExchangeError::TimedOut(_)),
        Ok(_) | Err(NoLogin::Nobody(_)) => false,
    };
    if may_go_in_clear && tls.is_some() && address.security.mode == SslMode::Prefer {
        end = attempt(None).or(end);
    }
    Ok(end)
}

#[cfg(test)]
mod tests {
    use super::*;

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
