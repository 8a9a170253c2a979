//! Addresses that an agent may send load to.

use anyhow::Result;
use plimsoll_engine::target::{Guard, guard};
use plimsoll_job::usage::usage;
use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

/// A target that an agent accepts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum AllowedTarget {
    /// Any.
    Any,
    /// Addresses that begin with the same bits.
    Network(IpAddr, u8),
    /// A host name.
    Host(String),
    /// All host names below a domain.
    Below(String),
}

impl FromStr for AllowedTarget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "any" {
            return Ok(Self::Any);
        }
        if let Some(domain) = text.strip_prefix("*.") {
            return host(domain).map(Self::Below);
        }
        let (address, bits) = match text.split_once('/') {
            Some((address, bits)) => (address, Some(bits)),
            None => (text, None),
        };
        let Ok(address) = address.parse::<IpAddr>() else {
            return match bits {
                None => host(text).map(Self::Host),
                Some(_) => Err("a network is written as 10.1.0.0/16".to_owned()),
            };
        };
        let most = if address.is_ipv4() { 32 } else { 128 };
        let bits = bits.map_or(Ok(most), |bits| {
            bits.parse()
                .ok()
                .filter(|bits| *bits <= most)
                .ok_or_else(|| format!("the length of a network is a number from 0 to {most}"))
        })?;
        Ok(Self::Network(address, bits))
    }
}

/// Returns a target as it was written, for the command line of an agent.
///
/// # Errors
/// A text that is no target, with the forms that are.
pub fn written(text: &str) -> Result<String, String> {
    text.parse::<AllowedTarget>().map(|_| text.to_owned())
}

fn host(text: &str) -> Result<String, String> {
    let is_good = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.' | '_');
    match !text.is_empty() && text.chars().all(is_good) {
        true => Ok(text.to_ascii_lowercase()),
        false => {
            Err("write a host name, *.DOMAIN, an address, a network such as 10.1.0.0/16, or any"
                .to_owned())
        }
    }
}

impl AllowedTarget {
    fn covers(&self, name: &str, address: IpAddr) -> bool {
        let name = name.to_ascii_lowercase();
        match self {
            Self::Any => true,
            Self::Network(network, bits) => is_within(address, *network, *bits),
            Self::Host(host) => name == *host,
            Self::Below(domain) => {
                name.strip_suffix(domain.as_str()).is_some_and(|front| front.ends_with('.'))
            }
        }
    }
}

/// An address as 128 bits, those of IPv4 in the place that IPv6 has for them.
fn bits_of(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_ipv6_mapped()),
        IpAddr::V6(address) => u128::from(address),
    }
}

fn is_within(address: IpAddr, network: IpAddr, bits: u8) -> bool {
    let address = address.to_canonical();
    if address.is_ipv4() != network.is_ipv4() {
        return false;
    }
    let width = if network.is_ipv4() { u32::from(bits) + 96 } else { u32::from(bits) };
    let mask = u128::MAX.checked_shl(128 - width).unwrap_or(0);
    bits_of(address) & mask == bits_of(network) & mask
}

/// Targets that an agent without `--allow-target` accepts: this machine.
fn is_own_machine(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The rule of one agent.
struct Rule(Vec<AllowedTarget>);

impl Guard for Rule {
    fn allows(&self, name: &str, address: IpAddr) -> bool {
        match self.0.is_empty() {
            true => is_own_machine(address),
            false => self.0.iter().any(|allowed| allowed.covers(name, address)),
        }
    }
}

impl fmt::Debug for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.0).finish()
    }
}

/// From now on, this process sends load only to these targets.
pub fn restrict(allowed: Vec<AllowedTarget>) {
    guard::set(Box::new(Rule(allowed)));
}

/// Says which target was not allowed.
///
/// # Errors
/// One line, if there was one.
pub fn check() -> Result<()> {
    match guard::rejected() {
        None => Ok(()),
        Some(name) => Err(usage(format!(
            "this agent does not send load to {name}; start it with --allow-target {name}, or a network or domain around it"
        ))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn allows(words: &[&str], name: &str, address: &str) -> bool {
        let rule = Rule(words.iter().map(|word| word.parse().unwrap()).collect());
        rule.allows(name, address.parse().unwrap())
    }

    #[test]
    fn an_agent_sends_load_to_its_own_machine_unless_more_is_allowed() {
        for address in ["127.0.0.1", "127.9.9.9", "::1", "::ffff:127.0.0.1"] {
            assert!(allows(&[], "name", address), "{address}");
        }
        for address in ["10.0.0.1", "192.168.1.1", "8.8.8.8", "169.254.169.254", "::2", "fd00::1"] {
            assert!(!allows(&[], "localhost", address), "{address}");
        }
        assert!(!allows(&["10.0.0.0/8"], "localhost", "127.0.0.1"), "the list is the whole list");
        assert!(allows(&["any"], "x", "8.8.8.8"));
    }

    #[test]
    fn networks_and_names_are_compared_bit_by_bit_and_label_by_label() {
        assert!(allows(&["10.1.0.0/16"], "x", "10.1.255.255"));
        assert!(!allows(&["10.1.0.0/16"], "x", "10.2.0.0"));
        assert!(allows(&["10.1.2.3"], "x", "10.1.2.3") && !allows(&["10.1.2.3"], "x", "10.1.2.4"));
        assert!(allows(&["0.0.0.0/0"], "x", "1.2.3.4") && !allows(&["0.0.0.0/0"], "x", "fd00::1"));
        assert!(allows(&["fd00::/8"], "x", "fdff::1") && !allows(&["fd00::/8"], "x", "fe00::1"));
        assert!(allows(&["search.test"], "Search.test", "10.0.0.1"));
        assert!(!allows(&["search.test"], "evilsearch.test", "10.0.0.1"));
        assert!(
            allows(&["*.test"], "a.b.test", "10.0.0.1") && !allows(&["*.test"], "test", "10.0.0.1")
        );
        for wrong in ["", "10.0.0.0/33", "a/8", "host name", "::/129", "*."] {
            assert!(wrong.parse::<AllowedTarget>().is_err(), "{wrong}");
        }
    }
}
