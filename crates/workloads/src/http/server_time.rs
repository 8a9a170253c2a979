//! The server's own time for a request, as a header of its reply says it.

use plimsoll_core::outcome::ServerTime;
use plimsoll_wire::http1::Reply;
use std::fmt;
use std::str::FromStr;

/// Name of the header of W3C's Server Timing.
const SERVER_TIMING: &str = "Server-Timing";
/// The metric of it that is taken if none is named and there are several.
const TOTAL: &[u8] = b"total";
/// Units of a header's number, with their length in ns.
const UNITS: [(&str, f64); 4] = [("ns", 1.0), ("us", 1e3), ("ms", 1e6), ("s", 1e9)];

/// The header that has the server's own time, and how it is read.
#[derive(Clone, Debug, PartialEq)]
pub enum ServerClock {
    /// A header with a number.
    Header {
        /// Its name.
        name: String,
        /// Its unit: `ns`, `us`, `ms` or `s`.
        unit: &'static str,
    },
    /// `Server-Timing`, whose durations are milliseconds.
    ServerTiming {
        /// The metric; without it `total`, or the first that has a duration.
        metric: Option<String>,
    },
}

impl ServerClock {
    /// Reads the server's own time of a reply.
    #[must_use]
    pub fn read(&self, reply: &Reply<'_>) -> ServerTime {
        match self {
            Self::Header { name, unit } => match reply.header(name) {
                None => ServerTime::Missing,
                Some(value) => time(value, unit_ns(unit)),
            },
            Self::ServerTiming { metric } => {
                let metric = metric.as_deref().map(str::as_bytes);
                let lines = reply
                    .headers()
                    .filter(|(name, _)| name.eq_ignore_ascii_case(SERVER_TIMING.as_bytes()));
                let mut found = ServerTime::Missing;
                for (own, duration) in lines.flat_map(|(_, value)| metrics(value)) {
                    let is_named = metric.is_none_or(|name| own.eq_ignore_ascii_case(name));
                    let Some(duration) = duration.filter(|_| is_named) else { continue };
                    let is_total = metric.is_none() && own.eq_ignore_ascii_case(TOTAL);
                    if found == ServerTime::Missing || is_total {
                        found = time(duration, unit_ns("ms"));
                    }
                    if is_total {
                        break;
                    }
                }
                found
            }
        }
    }
}

fn unit_ns(unit: &str) -> f64 {
    UNITS.iter().find(|(name, _)| *name == unit).map_or(1e6, |(_, ns)| *ns)
}

/// A number of a unit as ns. A text that is not a number of at least 0, and a time of over a year, are malformed.
fn time(value: &[u8], unit_ns: f64) -> ServerTime {
    const YEAR_NS: f64 = 366.0 * 86_400e9;
    let text = std::str::from_utf8(value).unwrap_or_default().trim();
    // What Rust reads beside decimal numbers (`inf`, `+1`) no server means.
    let is_decimal =
        text.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'e' | b'-'));
    match text.parse::<f64>() {
        Ok(number) if is_decimal && number >= 0.0 && number * unit_ns <= YEAR_NS => {
            ServerTime::Known((number * unit_ns).round() as u64)
        }
        _ => ServerTime::Malformed,
    }
}

/// The metrics of a `Server-Timing` line: names, each with the text of its duration, if it has one.
fn metrics(value: &[u8]) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
    split(value, b',').map(|metric| {
        let mut parts = split(metric, b';');
        let name = parts.next().unwrap_or_default().trim_ascii();
        let duration = parts.find_map(|part| {
            let at = part.iter().position(|&byte| byte == b'=')?;
            let is_duration = part[..at].trim_ascii().eq_ignore_ascii_case(b"dur");
            is_duration.then(|| unquoted(part[at + 1..].trim_ascii()))
        });
        (name, duration)
    })
}

fn unquoted(text: &[u8]) -> &[u8] {
    text.strip_prefix(b"\"").and_then(|text| text.strip_suffix(b"\"")).unwrap_or(text)
}

/// Splits at a byte that does not stand in quotes.
fn split(text: &[u8], at: u8) -> impl Iterator<Item = &[u8]> {
    let (mut is_quoted, mut is_escaped) = (false, false);
    text.split(move |&byte| {
        let escaped = std::mem::replace(&mut is_escaped, false);
        match byte {
            b'\\' if is_quoted && !escaped => is_escaped = true,
            b'"' if !escaped => is_quoted = !is_quoted,
            _ => {}
        }
        byte == at && !is_quoted
    })
}

impl FromStr for ServerClock {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (kind, rest) = match text.split_once(':') {
            Some((kind, rest)) => (kind, Some(rest)),
            None => (text, None),
        };
        match (kind.to_ascii_lowercase().as_str(), rest) {
            ("server-timing", metric) => match metric {
                Some(name) if !is_token(name) => Err(format!("invalid metric '{name}'")),
                metric => Ok(Self::ServerTiming { metric: metric.map(str::to_owned) }),
            },
            ("header", Some(rest)) => {
                let (name, unit) = rest.split_once(':').unwrap_or((rest, "ms"));
                let known = UNITS.iter().find(|(known, _)| *known == unit);
                let Some((unit, _)) = known else {
                    return Err(format!("unknown unit '{unit}'; write ns, us, ms or s"));
                };
                if !is_token(name) {
                    return Err(format!("invalid header name '{name}'"));
                }
                Ok(Self::Header { name: name.to_owned(), unit })
            }
            _ => Err("write header:NAME, header:NAME:UNIT, server-timing or server-timing:METRIC"
                .to_owned()),
        }
    }
}

/// True for a token of RFC 9110, 5.6.2.
fn is_token(text: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(fits)
}

/// As it is written in flags.
impl fmt::Display for ServerClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name, unit } => write!(f, "header:{name}:{unit}"),
            Self::ServerTiming { metric: None } => f.write_str("server-timing"),
            Self::ServerTiming { metric: Some(metric) } => write!(f, "server-timing:{metric}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(clock: &str, head: &str) -> ServerTime {
        let clock: ServerClock = clock.parse().unwrap();
        let encoding = plimsoll_wire::http1::Encoding::Identity;
        let (head, body) = (head.as_bytes(), &b""[..]);
        clock.read(&Reply { status: 200, head, body, encoding, body_bytes: 0, truncated: false })
    }

    #[test]
    fn a_header_has_a_number_of_its_unit() {
        let head = "A: 1\r\nX-Time: 12.5 \r\n";
        assert_eq!(read("header:x-time", head), ServerTime::Known(12_500_000));
        assert_eq!(read("header:X-Time:us", head), ServerTime::Known(12_500));
        assert_eq!(read("header:X-Time:s", head), ServerTime::Known(12_500_000_000));
        assert_eq!(read("header:X-Time:ns", "X-Time: 3e2\r\n"), ServerTime::Known(300));
        assert_eq!(read("header:X-Other", head), ServerTime::Missing);
        for value in ["", "-1", "soon", "12ms", "1, 2", "inf", "nan", "+1", "1e30"] {
            let head = format!("X-Time: {value}\r\n");
            assert_eq!(read("header:X-Time", &head), ServerTime::Malformed, "{value}");
        }
    }

    #[test]
    fn server_timing_is_read_by_metric_and_in_milliseconds() {
        let head = "Server-Timing: cache;desc=\"a, b; dur=9\", db;dur=53.2, app;DUR=\"47\"\r\n\
                    server-timing: total;desc=x;dur=120\r\n";
        assert_eq!(read("server-timing", head), ServerTime::Known(120_000_000));
        assert_eq!(read("server-timing:db", head), ServerTime::Known(53_200_000));
        assert_eq!(read("Server-Timing:APP", head), ServerTime::Known(47_000_000));
        assert_eq!(read("server-timing:cache", head), ServerTime::Missing, "it has no duration");
        assert_eq!(read("server-timing:none", head), ServerTime::Missing);
        assert_eq!(
            read("server-timing", "Server-Timing: db;dur=2, x;dur=3\r\n"),
            ServerTime::Known(2_000_000)
        );
        assert_eq!(read("server-timing", "Server-Timing: db;dur=soon\r\n"), ServerTime::Malformed);
        assert_eq!(read("server-timing", "Server-Timing: miss\r\n"), ServerTime::Missing);
    }

    #[test]
    fn a_value_that_names_no_header_is_rejected_with_what_to_write() {
        for (text, word) in [
            ("x-time", "write header:NAME"),
            ("header", "write header:NAME"),
            ("header:", "invalid header name"),
            ("header:a b", "invalid header name"),
            ("header:x:min", "write ns, us, ms or s"),
            ("server-timing:", "invalid metric"),
        ] {
            let error = text.parse::<ServerClock>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
        for text in ["header:x-time:us", "server-timing", "server-timing:db"] {
            assert_eq!(text.parse::<ServerClock>().unwrap().to_string(), text);
        }
    }
}
