//! The address of a bus, as a URL: `nats://host:port` or `tls://host:port`, with a user or a token if need be; or `unix:PATH`.

use std::fmt;
use std::net::Ipv6Addr;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// Port of a NATS server if the URL names none.
const PORT: u16 = 4222;

/// Scheme of the bus between the processes of one machine.
const UNIX: &str = "unix:";

/// Address of a NATS server, or of the hub of another process. A secret in its URL is kept apart, and neither `Display` nor `Debug`
/// shows it.
#[derive(Clone, PartialEq, Eq)]
pub struct BusAddress {
    host: String,
    port: u16,
    is_tls: bool,
    login: Option<UrlLogin>,
    /// Socket of a hub, which has nothing of the above.
    socket: Option<PathBuf>,
}

/// The part of a URL before `@`.
#[derive(Clone, PartialEq, Eq)]
pub(crate) enum UrlLogin {
    User { name: String, password: String },
    Token(String),
}

/// Error of an address; it repeats nothing of a URL that holds a secret.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid address of a bus: {why}; write it as nats://HOST:PORT or tls://HOST:PORT")]
pub struct AddressError {
    why: String,
}

impl BusAddress {
    /// Host name or IP address, an IPv6 address without brackets.
    #[must_use]
    pub fn host(&self) -> &str {
        &self.host
    }

    /// TCP port.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns true if the URL asks for TLS.
    #[must_use]
    pub fn is_tls(&self) -> bool {
        self.is_tls
    }

    /// Address of a hub.
    #[must_use]
    pub fn of_socket(path: &Path) -> Self {
        let socket = Some(path.to_owned());
        Self { host: String::new(), port: 0, is_tls: false, login: None, socket }
    }

    /// Path of the socket if this is the address of a [`crate::Hub`], and not of a NATS server.
    #[must_use]
    pub fn socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    pub(crate) fn login(&self) -> Option<&UrlLogin> {
        self.login.as_ref()
    }

    /// Returns `host:port` or the path, as it stands in messages.
    #[must_use]
    pub fn place(&self) -> String {
        if let Some(path) = &self.socket {
            return path.display().to_string();
        }
        match self.host.contains(':') {
            true => format!("[{}]:{}", self.host, self.port),
            false => format!("{}:{}", self.host, self.port),
        }
    }
}

impl FromStr for BusAddress {
    type Err = AddressError;

    fn from_str(text: &str) -> Result<Self, AddressError> {
        let wrong = |why: &str| Err(AddressError { why: why.to_owned() });
        if let Some(path) = text.strip_prefix(UNIX) {
            return match Path::new(path).is_absolute() && !path.contains('\0') {
                true => Ok(Self::of_socket(Path::new(path))),
                false => wrong("unix: needs an absolute path"),
            };
        }
        let (is_tls, rest) = match text.split_once("://") {
            Some(("nats", rest)) => (false, rest),
            Some(("tls", rest)) => (true, rest),
            Some((scheme, _)) if scheme.len() < 16 && scheme.chars().all(char::is_alphanumeric) => {
                return wrong(&format!("unknown scheme '{scheme}'"));
            }
            Some(_) => return wrong("unknown scheme"),
            None => (false, text),
        };
        let rest = rest.strip_suffix('/').unwrap_or(rest);
        let (login, place) = match rest.rsplit_once('@') {
            Some((login, place)) => (Some(login), place),
            None => (None, rest),
        };
        if place.chars().any(|c| c.is_whitespace() || c.is_control()) {
            return wrong("it has a blank");
        }
        if place.contains(['/', '?', '#', ',']) {
            return wrong("it names more than one host and its port");
        }
        let (host, port) = split_port(place)?;
        if host.is_empty() {
            return wrong("it has no host");
        }
        if host.contains(['[', ']']) {
            return wrong("brackets are for an IPv6 address");
        }
        let login = login.map(parse_login).transpose()?;
        Ok(Self { host: host.to_owned(), port, is_tls, login, socket: None })
    }
}

fn split_port(place: &str) -> Result<(&str, u16), AddressError> {
    let wrong = |why: &str| AddressError { why: why.to_owned() };
    let (host, port) = match place.strip_prefix('[') {
        Some(rest) => {
            let (host, rest) = rest.split_once(']').ok_or_else(|| wrong("']' is missing"))?;
            let (address, _zone) = host.split_once('%').unwrap_or((host, ""));
            if address.parse::<Ipv6Addr>().is_err() {
                return Err(wrong("brackets are for an IPv6 address"));
            }
            (host, rest.strip_prefix(':').or((!rest.is_empty()).then_some(rest)))
        }
        None => match place.rsplit_once(':') {
            Some((host, _)) if host.contains(':') => {
                return Err(wrong("an IPv6 address needs brackets"));
            }
            Some((host, port)) => (host, Some(port)),
            None => (place, None),
        },
    };
    let port = match port {
        None => PORT,
        Some(port) => port
            .parse()
            .ok()
            .filter(|port| *port != 0)
            .ok_or_else(|| wrong("its port is not a number from 1 to 65535"))?,
    };
    Ok((host, port))
}

fn parse_login(login: &str) -> Result<UrlLogin, AddressError> {
    let wrong = || AddressError { why: "the part before '@' is not valid".to_owned() };
    let decoded = |text: &str| {
        let text = decode(text).filter(|text| !text.chars().any(char::is_control));
        text.ok_or_else(wrong)
    };
    let login = match login.split_once(':') {
        Some((name, password)) => {
            UrlLogin::User { name: decoded(name)?, password: decoded(password)? }
        }
        None => UrlLogin::Token(decoded(login)?),
    };
    match &login {
        UrlLogin::User { name: secret, .. } | UrlLogin::Token(secret) if secret.is_empty() => {
            Err(wrong())
        }
        _ => Ok(login),
    }
}

/// Decodes `%41`; `None` if a percent sign is followed by something else, or the result is not text.
fn decode(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let digit = |byte: u8| char::from(byte).to_digit(16);
        let value = digit(rest.next()?)? * 16 + digit(rest.next()?)?;
        bytes.push(u8::try_from(value).ok()?);
    }
    String::from_utf8(bytes).ok()
}

impl fmt::Display for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(path) = &self.socket {
            return write!(f, "{UNIX}{}", path.display());
        }
        let scheme = if self.is_tls { "tls" } else { "nats" };
        let login = match &self.login {
            None => "",
            Some(UrlLogin::User { .. }) => "***:***@",
            Some(UrlLogin::Token(_)) => "***@",
        };
        write!(f, "{scheme}://{login}{}", self.place())
    }
}

impl fmt::Debug for BusAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BusAddress({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_with_its_login_and_shown_without() {
        for (text, shown) in [
            ("nats://127.0.0.1:4223", "nats://127.0.0.1:4223"),
            ("bus.example", "nats://bus.example:4222"),
            ("tls://bus.example/", "tls://bus.example:4222"),
            ("nats://[::1]:5", "nats://[::1]:5"),
            ("nats://[::1]", "nats://[::1]:4222"),
            ("nats://ann:se%40cret@h:1", "nats://***:***@h:1"),
            ("nats://tokenvalue@h:1", "nats://***@h:1"),
        ] {
            let address: BusAddress = text.parse().unwrap();
            assert_eq!(address.to_string(), shown);
            assert!(!format!("{address:?}").contains("cret"), "{address:?}");
        }
        let address: BusAddress = "nats://ann:se%40cret@h:1".parse().unwrap();
        let expected = UrlLogin::User { name: "ann".into(), password: "se@cret".into() };
        assert!(address.login() == Some(&expected));
    }

    #[test]
    fn a_socket_has_a_path_and_nothing_else() {
        let address: BusAddress = "unix:/run/me/bus".parse().unwrap();
        assert_eq!(address.to_string(), "unix:/run/me/bus");
        assert_eq!(address.socket(), Some(Path::new("/run/me/bus")));
        assert_eq!(address, BusAddress::of_socket(Path::new("/run/me/bus")));
        let nats: BusAddress = "nats://h:1".parse().unwrap();
        assert_eq!(nats.socket(), None);
    }

    #[test]
    fn an_invalid_address_is_reported_without_its_secret() {
        for text in [
            "",
            "nats://",
            "http://ann:secret@h",
            "ann:secret@://x",
            "nats://ann:secret@h:0",
            "nats://ann:secret@h:70000",
            "nats://ann:secret@::1",
            "nats://ann:secret@[::1",
            "nats://ann:secret@[::1]x",
            "nats://ann:secret@[[{}]",
            "nats://ann:secret@h]",
            "nats://ann:secret@[h]:1",
            "nats://ann:secret%4@h",
            "nats://:secret@h",
            "nats://@h",
            "nats://ann:secret@h/path",
            "nats://ann:secret@a,b",
            "nats://ann:secret@a b",
            "unix:",
            "unix:relative/secret",
        ] {
            let error = text.parse::<BusAddress>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
            assert!(error.contains("nats://HOST:PORT"), "{error}");
        }
    }
}
