//! Access: the token, and the name by which this machine is asked.

use http::HeaderMap;
use http::header::{AUTHORIZATION, HOST};
use ring::rand::{SecureRandom, SystemRandom};
use std::fmt::Write as _;
use std::net::IpAddr;

/// Random bytes of a token.
const TOKEN_BYTES: usize = 16;

/// A new token, in hexadecimal digits.
///
/// # Errors
/// When the system has no random numbers.
pub fn token() -> std::io::Result<String> {
    let mut bytes = [0; TOKEN_BYTES];
    SystemRandom::new()
        .fill(&mut bytes)
        .map_err(|_| std::io::Error::other("the system gives no random numbers"))?;
    Ok(bytes.iter().fold(String::new(), |mut text, byte| {
        // Writing to a text cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    }))
}

/// Compares in a time that does not depend on where two texts differ.
fn is_equal(left: &[u8], right: &[u8]) -> bool {
    let differing = left.iter().zip(right).fold(0, |sum, (left, right)| sum | (left ^ right));
    left.len() == right.len() && std::hint::black_box(differing) == 0
}

/// The value of a parameter of a query.
pub fn parameter<'a>(query: Option<&'a str>, name: &str) -> Option<&'a str> {
    let pairs = query.unwrap_or_default().split('&');
    pairs.filter_map(|pair| pair.split_once('=')).find(|(own, _)| *own == name).map(|(_, v)| v)
}

/// True if the request has the token: `token` in its query, or `Authorization: Bearer`.
pub fn has_token(query: Option<&str>, headers: &HeaderMap, token: &str) -> bool {
    let of_header = headers.get(AUTHORIZATION).and_then(|value| value.to_str().ok());
    let of_header = of_header.and_then(|value| value.strip_prefix("Bearer "));
    let given = parameter(query, "token").or(of_header);
    given.is_some_and(|given| is_equal(given.as_bytes(), token.as_bytes()))
}

/// True if the request names this machine by an IP address, or by `localhost`. Names of the domain name system can be made to
/// lead here by any other page.
pub fn has_own_host(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.split(':').next().unwrap_or_default(),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: http::HeaderName, values: &[&str]) -> HeaderMap {
        let mut headers = HeaderMap::new();
        for value in values {
            headers.append(name.clone(), value.parse().unwrap());
        }
        headers
    }

    #[test]
    fn tokens_differ_and_have_128_bits() {
        let (one, other) = (token().unwrap(), token().unwrap());
        assert_eq!((one.len(), one != other), (32, true));
        assert!(one.bytes().all(|byte| byte.is_ascii_hexdigit()));
    }

    #[test]
    fn only_the_whole_token_opens() {
        let none = HeaderMap::new();
        assert!(has_token(Some("x=1&token=abc"), &none, "abc"));
        for query in [
            None,
            Some(""),
            Some("token="),
            Some("token=ab"),
            Some("token=abcd"),
            Some("token=abd"),
        ] {
            assert!(!has_token(query, &none, "abc"), "{query:?}");
        }
        assert!(has_token(None, &headers(AUTHORIZATION, &["Bearer abc"]), "abc"));
        assert!(!has_token(None, &headers(AUTHORIZATION, &["Basic abc"]), "abc"));
    }

    #[test]
    fn names_that_others_can_point_here_are_refused() {
        for host in ["127.0.0.1:80", "localhost", "LocalHost:9", "[::1]:9", "10.0.0.7"] {
            assert!(has_own_host(&headers(HOST, &[host])), "{host}");
        }
        for host in
            ["evil.example:80", "localhost.evil.example", "127.0.0.1.evil.example", "", "[x]:1"]
        {
            assert!(!has_own_host(&headers(HOST, &[host])), "{host}");
        }
        assert!(!has_own_host(&HeaderMap::new()));
        assert!(!has_own_host(&headers(HOST, &["localhost", "evil.example"])));
    }
}
