//! Values that go into the texts of a fleet, checked where they are given.

use plimsoll_job::usage::usage;
use plimsoll_job::watching::{Wanted, Watch};
use std::fmt;
use std::str::FromStr;

/// Longest name of an object: that of a label of the DNS.
const NAME_MAX: usize = 63;

/// Returns true if a text is a label of the DNS as RFC 1123 has it: small letters, digits and `-`, none of them at an end.
fn is_label(text: &str) -> bool {
    let is_good = |sign: char| sign.is_ascii_lowercase() || sign.is_ascii_digit() || sign == '-';
    (1..=63).contains(&text.len())
        && text.chars().all(is_good)
        && !text.starts_with('-')
        && !text.ends_with('-')
}

/// Returns true if a text is a name of a label's key or value: letters, digits, `-`, `_` and `.`, with a letter or digit at both ends.
fn is_qualified(text: &str) -> bool {
    let is_good = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    let is_end = |sign: Option<char>| sign.is_some_and(|sign| sign.is_ascii_alphanumeric());
    text.len() <= 63
        && text.chars().all(is_good)
        && is_end(text.chars().next())
        && is_end(text.chars().next_back())
}

/// A checked text.
macro_rules! text {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[derive(Clone, Debug, PartialEq, Eq)]
        pub struct $name(String);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

text! {
    /// A name of an object, as RFC 1123 has labels.
    ObjectName
}

impl FromStr for ObjectName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match is_label(text) && text.len() <= NAME_MAX {
            true => Ok(Self(text.to_owned())),
            false => Err(format!(
                "use 1 to {NAME_MAX} small letters, digits and '-', with a letter or digit at both ends (RFC 1123)"
            )),
        }
    }
}

text! {
    /// Name of a container image, with a tag or a digest.
    Image
}

impl FromStr for Image {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (name, digest) = match text.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash is that of a port.
        let base = name.rfind('/').map_or(0, |at| at + 1);
        let (path, tag) = match name[base..].find(':') {
            Some(at) => (&name[..base + at], Some(&name[base + at + 1..])),
            None => (name, None),
        };
        let is_good = text.len() <= 512
            && is_path(path)
            && tag.is_none_or(is_tag)
            && digest.is_none_or(is_digest);
        match is_good {
            true => Ok(Self(text.to_owned())),
            false => Err("write NAME, NAME:TAG or NAME@sha256:DIGEST".to_owned()),
        }
    }
}

fn is_path(path: &str) -> bool {
    let is_part = |part: &str| {
        let is_good = |sign: char| {
            sign.is_ascii_lowercase() || sign.is_ascii_digit() || matches!(sign, '.' | '_' | '-')
        };
        let is_end =
            |sign: Option<char>| sign.is_some_and(|c| c.is_ascii_lowercase() || c.is_ascii_digit());
        part.chars().all(is_good) && is_end(part.chars().next()) && is_end(part.chars().next_back())
    };
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|sign| sign.is_ascii_digit());
    match path.split_once('/') {
        Some((first, rest)) => {
            let (host, port) = match first.split_once(':') {
                Some((host, port)) => (host, Some(port)),
                None => (first, None),
            };
            is_part(host) && port.is_none_or(is_port) && rest.split('/').all(is_part)
        }
        None => is_part(path),
    }
}

fn is_tag(tag: &str) -> bool {
    let is_good = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '.' | '_' | '-');
    (1..=128).contains(&tag.len()) && tag.chars().all(is_good) && !tag.starts_with(['.', '-'])
}

fn is_digest(digest: &str) -> bool {
    digest.strip_prefix("sha256:").is_some_and(|hex| {
        hex.len() == 64 && hex.bytes().all(|sign| matches!(sign, b'0'..=b'9' | b'a'..=b'f'))
    })
}

/// A label of pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodLabel {
    /// Its key, with a prefix or without.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl FromStr for PodLabel {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write KEY=VALUE, such as app=search".to_owned();
        let (key, value) = text.split_once('=').ok_or_else(wrong)?;
        let (prefix, name) = match key.split_once('/') {
            Some((prefix, name)) => (Some(prefix), name),
            None => (None, key),
        };
        let is_prefix = |prefix: &str| prefix.len() <= 253 && prefix.split('.').all(is_label);
        let is_good = prefix.is_none_or(is_prefix)
            && is_qualified(name)
            && (value.is_empty() || is_qualified(value));
        match is_good {
            true => Ok(Self { key: key.to_owned(), value: value.to_owned() }),
            false => Err(wrong()),
        }
    }
}

/// Processors, in thousandths of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cpu {
    /// Thousandths.
    pub milli: u64,
}

impl FromStr for Cpu {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "write a number of processors such as 2, 0.5 or 500m".to_owned();
        let number = |digits: &str| digits.parse::<u64>().ok().filter(|number| *number <= 100_000);
        let is_digits =
            |text: &str| !text.is_empty() && text.bytes().all(|sign| sign.is_ascii_digit());
        let milli = match (text.strip_suffix('m'), text.split_once('.')) {
            (Some(milli), _) if is_digits(milli) => milli.parse().ok(),
            (None, Some((whole, part)))
                if is_digits(whole) && is_digits(part) && part.len() <= 3 =>
            {
                let part = format!("{part:0<3}").parse().unwrap_or(0);
                number(whole).map(|whole| whole * 1000 + part)
            }
            (None, None) if is_digits(text) => number(text).map(|whole| whole * 1000),
            _ => None,
        };
        let milli = milli.filter(|milli| (1..=100_000_000).contains(milli)).ok_or_else(wrong)?;
        Ok(Self { milli })
    }
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.milli % 1000 {
            0 => write!(f, "{}", self.milli / 1000),
            _ => write!(f, "{}m", self.milli),
        }
    }
}

/// Memory in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// Bytes.
    pub bytes: u64,
}

/// Units of memory as Kubernetes writes them.
const UNITS: [(&str, u64); 8] = [
    ("Ki", 1 << 10),
    ("Mi", 1 << 20),
    ("Gi", 1 << 30),
    ("Ti", 1 << 40),
    ("k", 1_000),
    ("M", 1_000_000),
    ("G", 1_000_000_000),
    ("T", 1_000_000_000_000),
];

/// Least memory that an agent starts with.
const MEMORY_MIN: u64 = 32 << 20;

impl FromStr for Memory {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = text.split_at(digits);
        let factor = match unit {
            "" => Some(1),
            _ => UNITS.iter().find(|(name, _)| *name == unit).map(|(_, factor)| *factor),
        };
        let bytes = number.parse::<u64>().ok().zip(factor);
        let bytes = bytes.and_then(|(number, factor)| number.checked_mul(factor));
        let bytes = bytes.filter(|bytes| (MEMORY_MIN..=1 << 50).contains(bytes));
        bytes
            .map(|bytes| Self { bytes })
            .ok_or_else(|| "write at least 32Mi, such as 512Mi, 1Gi or 2G".to_owned())
    }
}

impl Memory {
    /// Mebibytes, rounded up.
    pub const fn mebibytes(self) -> u64 {
        self.bytes.div_ceil(1 << 20)
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let fits =
            |(_, factor): &&(&str, u64)| *factor >= 1 << 20 && self.bytes.is_multiple_of(*factor);
        match UNITS.iter().rev().filter(|(name, _)| name.ends_with('i')).find(fits) {
            Some((name, factor)) => write!(f, "{}{name}", self.bytes / factor),
            None => write!(f, "{}", self.bytes),
        }
    }
}

text! {
    /// Destination of ssh: a host, with a user or without.
    SshHost
}

impl FromStr for SshHost {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (user, host) = match text.split_once('@') {
            Some((user, host)) => (Some(user), host),
            None => (None, text),
        };
        match user.is_none_or(is_host) && is_host(host) {
            true => Ok(Self(text.to_owned())),
            false => {
                Err("write HOST or USER@HOST; a port belongs into the configuration of ssh"
                    .to_owned())
            }
        }
    }
}

text! {
    /// A host name or an IPv4 address.
    HostName
}

impl FromStr for HostName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match is_host(text) {
            true => Ok(Self(text.to_owned())),
            false => Err("write a host name or an IPv4 address".to_owned()),
        }
    }
}

/// It never begins with '-', which would make an option of it.
fn is_host(text: &str) -> bool {
    let is_good = |sign: char| sign.is_ascii_alphanumeric() || matches!(sign, '-' | '_' | '.');
    (1..=253).contains(&text.len()) && text.chars().all(is_good) && !text.starts_with(['-', '.'])
}

text! {
    /// Public NKey of a user.
    PublicNkey
}

impl FromStr for PublicNkey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_good = |byte: u8| byte.is_ascii_uppercase() || byte.is_ascii_digit();
        match text.len() == 56 && text.starts_with('U') && text.bytes().all(is_good) {
            true => Ok(Self(text.to_owned())),
            false => Err("write the public key of a user, 56 letters and digits that begin with U (not its seed)".to_owned()),
        }
    }
}

impl PublicNkey {
    /// Reads the value of `--nkey`. A seed that was given by mistake is not repeated, as the parser of flags would do.
    ///
    /// # Errors
    /// The line about it.
    pub fn of_flag(text: Option<&str>) -> anyhow::Result<Option<Self>> {
        let key = text.map(str::parse).transpose();
        key.map_err(|error: String| usage(format!("--nkey: {error}")))
    }
}

/// Reads a thing that an agent is to watch on another machine, as the agent will read it.
///
/// # Errors
/// A text that names nothing there, such as a number of a process.
pub fn watched(text: &str) -> Result<String, String> {
    let watch: Watch = text.parse()?;
    let is_plain = !text.chars().any(char::is_control);
    // Nothing, or the number of a process, which another machine does not have.
    let is_named = matches!(watch.wanted, Wanted::Named(_));
    match is_plain && is_named {
        true => Ok(text.to_owned()),
        false => {
            Err("write the NAME of a program or a control group; LABEL=NAME names it in the record"
                .to_owned())
        }
    }
}

text! {
    /// Name or path of the program on the machines of the fleet.
    ProgramPath
}

impl FromStr for ProgramPath {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let is_good = |sign: char| sign.is_ascii_alphanumeric() || "._/+-".contains(sign);
        let is_path = (1..=1024).contains(&text.len())
            && text.chars().all(is_good)
            && !text.starts_with('-')
            && (text.starts_with('/') || !text.contains('/'));
        match is_path {
            true => Ok(Self(text.to_owned())),
            false => {
                Err("write a name in PATH, or an absolute path of letters, digits and ._/+-"
                    .to_owned())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Texts that would leave their place in YAML, a shell, a unit, or the options of a program.
    const HOSTILE: [&str; 14] = [
        "", " ", "-x", "a b", "a\nb", "$(id)", "`id`", "a;id", "a'b", "a\"b", "a: b", "{a}", "a#b",
        "é",
    ];

    #[test]
    fn no_hostile_text_is_a_value() {
        for text in HOSTILE {
            assert!(text.parse::<ObjectName>().is_err(), "{text}");
            assert!(text.parse::<Image>().is_err(), "{text}");
            assert!(text.parse::<SshHost>().is_err(), "{text}");
            assert!(text.parse::<HostName>().is_err(), "{text}");
            assert!(text.parse::<ProgramPath>().is_err(), "{text}");
            assert!(text.parse::<Cpu>().is_err(), "{text}");
            assert!(text.parse::<PublicNkey>().is_err(), "{text}");
            assert!(text.parse::<Memory>().is_err(), "{text}");
            assert!(format!("{text}=v").parse::<PodLabel>().is_err(), "{text}");
            assert!(text.is_empty() || format!("k={text}").parse::<PodLabel>().is_err(), "{text}");
            assert!(text.is_empty() || format!("u@{text}").parse::<SshHost>().is_err(), "{text}");
        }
        for text in ["a@b@c", "u@-oProxyCommand=x", "host:22", ".hidden"] {
            assert!(text.parse::<SshHost>().is_err(), "{text}");
        }
    }

    #[test]
    fn names_are_labels_of_the_dns() {
        assert!("a-1".parse::<ObjectName>().is_ok() && "1".parse::<ObjectName>().is_ok());
        for wrong in ["A", "a_b", "a.b", "a-", &"a".repeat(NAME_MAX + 1)] {
            assert!(wrong.parse::<ObjectName>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn images_have_a_tag_or_a_digest_or_neither() {
        let digest = format!("plimsoll@sha256:{}", "0a".repeat(32));
        for right in ["plimsoll", "plimsoll:0.1.0", "h.test:5000/a/b_c:v1.2-x", "h:1/a", &digest] {
            assert!(right.parse::<Image>().is_ok(), "{right}");
        }
        for wrong in ["A", "a:", "a:b:c", "a@sha256:0", "a//b", "/a", "a/", "h:x/a", "a:-b", "h:5/"]
        {
            assert!(wrong.parse::<Image>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn quantities_are_those_of_kubernetes() {
        let cpu = |text: &str| text.parse::<Cpu>().map(|cpu| (cpu.milli, cpu.to_string()));
        assert_eq!(cpu("2"), Ok((2000, "2".to_owned())));
        assert_eq!(cpu("0.5"), Ok((500, "500m".to_owned())));
        assert_eq!(cpu("1500m"), Ok((1500, "1500m".to_owned())));
        let memory = |text: &str| text.parse::<Memory>().map(|memory| memory.to_string());
        assert_eq!(memory("1024Mi").as_deref(), Ok("1Gi"));
        assert_eq!(memory("1500Mi").as_deref(), Ok("1500Mi"));
        assert_eq!(memory("2G").as_deref(), Ok("2000000000"));
        for wrong in ["0", "0.0", "1.2345", ".5", "1.", "m", "-1", "1e3", "999999999999"] {
            assert!(wrong.parse::<Cpu>().is_err(), "{wrong}");
        }
        for wrong in ["1", "31Mi", "1GB", "1gi", "Gi", "99999999999999Ti", "1.5Gi"] {
            assert!(wrong.parse::<Memory>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_seed_is_no_public_key_and_a_number_is_nothing_to_watch_elsewhere() {
        let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
        assert!(public.parse::<PublicNkey>().is_ok());
        let seed = "SUACSSL3UAHUDXKFSNVUZRF5UHPMWZ6BFDTJ7M6USDXIEDNPPQYYYCU3VY";
        for wrong in [seed, &public[1..], &public.to_lowercase()] {
            let error = wrong.parse::<PublicNkey>().unwrap_err();
            assert!(error.contains("not its seed") && !error.contains(wrong), "{error}");
        }
        for right in ["mysqld", "db=postgres", "nginx.service", "$(id)"] {
            assert_eq!(watched(right).as_deref(), Ok(right));
        }
        for wrong in ["", "4711", "none", "db=12", "a\nb", "a b=c"] {
            assert!(watched(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn labels_may_have_a_prefix() {
        let label: PodLabel = "example.org/part-of=search_1".parse().unwrap();
        assert_eq!((label.key.as_str(), label.value.as_str()), ("example.org/part-of", "search_1"));
        for wrong in ["app", "=x", "a/b/c=x", "A.org/a=x", "a=b=c", "-a=b"] {
            assert!(wrong.parse::<PodLabel>().is_err(), "{wrong}");
        }
    }
}
