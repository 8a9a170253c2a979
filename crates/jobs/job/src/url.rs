//! Addresses as users write them.

use crate::usage::usage;
use plimsoll_core::secrets::without_address_secrets;
use plimsoll_workloads::authority::Authority;
use std::sync::Arc;

/// An `http://` or `https://` address, taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    /// Host, port and whether TLS is used.
    pub authority: Authority,
    /// Path and query, beginning with `/`.
    pub target: String,
}

impl Url {
    /// Reads an address.
    ///
    /// # Errors
    /// A usage error that names what is missing.
    pub fn parse(text: &str) -> anyhow::Result<Self> {
        let whole = text;
        // A message does not repeat a password.
        let text = without_address_secrets(text);
        let Some((scheme, rest)) = whole.split_once("://") else {
            if text.starts_with("unix:") || text.starts_with('/') {
                return Err(usage(format!(
                    "'{text}': Unix sockets are not supported; write http://HOST:PORT/"
                )));
            }
            return Err(usage(format!("'{text}' has no scheme; write http://{text}")));
        };
        let tls = match scheme.to_ascii_lowercase().as_str() {
            "http" => false,
            "https" => true,
            "postgres" | "postgresql" => {
                return Err(usage(format!(
                    "'{scheme}://': SQL is supported only by plimsoll load, seek and search, and not together with HTTP; write http:// or https://"
                )));
            }
            other => {
                return Err(usage(format!(
                    "'{text}': unknown scheme '{other}'; write http:// or https://; plimsoll load and seek also \
                     know postgres:// and volt://"
                )));
            }
        };
        let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(end);
        let path = path.split('#').next().unwrap_or("");
        let target = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        plimsoll_workloads::query_file::check_target(target.as_bytes())
            .map_err(|problem| usage(format!("'{text}': {problem}")))?;
        if let Some((_, host)) = authority.rsplit_once('@') {
            // The user name and what follows it are not repeated: they may be a secret.
            return Err(usage(format!(
                "{scheme}://...@{host}: a user in the URL is not sent; \
                 write --header 'Authorization: Basic ...' instead"
            )));
        }
        let (host, port) =
            split_authority(authority, if tls { 443 } else { 80 }).ok_or_else(|| {
                usage(format!("'{text}': write http://HOST:PORT with a port of 1 to 65535"))
            })?;
        Ok(Self { authority: Authority { host, port, tls }, target })
    }
}

/// Splits `host:port`, `[v6]:port` or a bare host.
pub fn split_authority(text: &str, default_port: u16) -> Option<(String, u16)> {
    let (host, port) = match text.strip_prefix('[') {
        // Behind an IPv6 address in brackets there is nothing but a port.
        Some(rest) => {
            let (host, behind) = rest.split_once(']')?;
            let port = if behind.is_empty() { None } else { Some(behind.strip_prefix(':')?) };
            (host, port)
        }
        // More than one colon outside brackets is an IPv6 address without its brackets.
        None => match text.split_once(':') {
            Some((host, port)) => (host, Some(port)),
            None => (text, None),
        },
    };
    let port = match port {
        Some(port) => port.parse().ok().filter(|&port| port > 0)?,
        None => default_port,
    };
    let foreign = |c: char| c.is_whitespace() || c.is_control() || c == '[' || c == ']';
    (!host.is_empty() && !host.contains(foreign)).then(|| (host.to_owned(), port))
}

/// The servers that requests for these URLs go to.
#[must_use]
pub fn servers(urls: &[Url]) -> Arc<[Authority]> {
    let mut own: Vec<_> = urls.iter().map(|url| url.authority.clone()).collect();
    own.dedup();
    own.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_taken_apart() {
        let url = Url::parse("https://[::1]:8443/a?b=c#d").unwrap();
        assert_eq!((url.authority.host.as_str(), url.authority.port), ("::1", 8443));
        assert!(url.authority.tls);
        assert_eq!(url.target, "/a?b=c");
        assert_eq!(Url::parse("http://h").unwrap().authority.port, 80);
        assert_eq!(Url::parse("http://h?x").unwrap().target, "/?x");
        for wrong in [
            "h:80/x",
            "ftp://h/",
            "http://",
            "http://h:0/",
            "http://h:99999/",
            "http://::1/",
            "http://[::1]x/",
            "http://[::1]'",
            "http://[::1/",
            "http://a]b/",
            "http://[]/",
            "http://u:p@h/",
        ] {
            assert!(Url::parse(wrong).is_err(), "{wrong}");
        }
    }
}
