//! Reading the head of a request: what was asked, how its body is framed, what the reply must be.

use super::body::Body;
use super::refusal::{HEAD_BYTES_MAX, Refusal};
use httparse::{Header, Status};
use std::mem::MaybeUninit;

/// The most header fields in one head; one more is refused with 431.
pub const HEADER_COUNT_MAX: usize = 128;

/// The methods that are counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// `GET`.
    Get,
    /// `HEAD`.
    Head,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `DELETE`.
    Delete,
    /// `PATCH`.
    Patch,
    /// `OPTIONS`.
    Options,
    /// Any other.
    Other,
}

impl Method {
    /// Names in the order of the discriminants, as the statistics print them.
    pub const NAMES: [&'static str; 8] =
        ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "other"];

    fn of(text: &str) -> Self {
        match text {
            "GET" => Self::Get,
            "HEAD" => Self::Head,
            "POST" => Self::Post,
            "PUT" => Self::Put,
            "DELETE" => Self::Delete,
            "PATCH" => Self::Patch,
            "OPTIONS" => Self::Options,
            _ => Self::Other,
        }
    }
}

/// The way the connection goes on after the reply, and which header field says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Persistence {
    /// HTTP/1.1 without `Connection: close`: kept, and no field is needed.
    Kept,
    /// HTTP/1.0 with `Connection: keep-alive`: kept, and the reply must say so.
    KeptOnRequest,
    /// The connection is closed once the reply has left.
    Closed,
}

/// The way a request to `/_stats` wants its arrivals modelled for the closed form.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum StatsArrivals {
    /// Exponential gaps.
    #[default]
    Poisson,
    /// Equal gaps.
    Uniform,
}

/// The query of `/_stats`.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub struct StatsQuery {
    /// True if the counts start again after this reply.
    pub reset: bool,
    /// The arrival rate for which the closed-form truth is wanted.
    pub rate_per_s: Option<f64>,
    /// The arrival process that the truth is computed for.
    pub arrivals: StatsArrivals,
    /// True if a key or a value was not understood.
    pub malformed: bool,
}

/// The kind of a request: load, which is counted, or the statistics, which are not.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Route {
    /// Any path but those below.
    Load,
    /// `/_stats`.
    Stats(StatsQuery),
    /// `/_speed?factor=F`, for targets that change their speed; nothing if the query was not understood.
    Speed(Option<f64>),
}

/// Everything about a request that outlives its bytes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Asked {
    /// The method.
    pub method: Method,
    /// True if the connection stays open.
    pub persistence: Persistence,
    /// The resource.
    pub route: Route,
}

/// A parsed head.
#[derive(Debug, PartialEq)]
pub struct Head {
    /// Number of bytes that the head takes, with its empty line.
    pub length: usize,
    pub asked: Asked,
    pub body: Body,
    pub expects_continue: bool,
}

/// Parses the head at the start of `data`; `None` while more bytes are needed.
///
/// # Errors
/// A [`Refusal`] when the bytes cannot become a request that this server answers.
pub fn parse(data: &[u8]) -> Result<Option<Head>, Refusal> {
    let mut fields = [const { MaybeUninit::<Header<'_>>::uninit() }; HEADER_COUNT_MAX];
    let mut request = httparse::Request::new(&mut []);
    let length = match request.parse_with_uninit_headers(data, &mut fields) {
        Ok(Status::Complete(length)) => length,
        Ok(Status::Partial) if data.len() < HEAD_BYTES_MAX => return Ok(None),
        Ok(Status::Partial) | Err(httparse::Error::TooManyHeaders) => {
            return Err(Refusal::HeadTooLarge);
        }
        Err(_) => return Err(Refusal::Malformed),
    };
    if length > HEAD_BYTES_MAX {
        return Err(Refusal::HeadTooLarge);
    }
    let is_http_1_1 = request.version == Some(1);
    let framing = Framing::of(request.headers, is_http_1_1)?;
    let asked = Asked {
        method: Method::of(request.method.unwrap_or_default()),
        persistence: framing.persistence(is_http_1_1),
        route: route(request.path.unwrap_or_default()),
    };
    let expects_continue = framing.expects_continue && is_http_1_1;
    Ok(Some(Head { length, asked, body: framing.body(), expects_continue }))
}

/// Returns true if the last `added` bytes of `data` may have completed the head, so that a head that
/// arrives byte by byte is not parsed from its start for each of them.
pub fn may_be_whole(data: &[u8], added: usize) -> bool {
    let tail = &data[data.len().saturating_sub(added + 3)..];
    let blank_line =
        |at: usize| matches!(tail.get(at + 1..), Some([b'\n', ..] | [b'\r', b'\n', ..]));
    memchr::memchr_iter(b'\n', tail).any(blank_line)
}

/// The header fields that decide where the request ends and whether the connection is kept.
#[derive(Default)]
struct Framing {
    content_length: Option<u64>,
    chunked: bool,
    close: bool,
    keep_alive: bool,
    expects_continue: bool,
}

impl Framing {
    fn of(fields: &[Header<'_>], is_http_1_1: bool) -> Result<Self, Refusal> {
        let mut framing = Self::default();
        for field in fields {
            // Lengths first: most fields are none of these four.
            match field.name.len() {
                6 if field.name.eq_ignore_ascii_case("expect") => {
                    framing.expects_continue = field.value.eq_ignore_ascii_case(b"100-continue");
                }
                10 if field.name.eq_ignore_ascii_case("connection") => {
                    framing.connection(field.value);
                }
                14 if field.name.eq_ignore_ascii_case("content-length") => {
                    framing.length(field.value)?;
                }
                17 if field.name.eq_ignore_ascii_case("transfer-encoding") => {
                    framing.coding(field.value)?;
                }
                _ => {}
            }
        }
        // Two framings in one request are how requests are smuggled past a proxy.
        if framing.chunked && (framing.content_length.is_some() || !is_http_1_1) {
            return Err(Refusal::Malformed);
        }
        Ok(framing)
    }

    fn connection(&mut self, value: &[u8]) {
        for option in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            self.close |= option.eq_ignore_ascii_case(b"close");
            self.keep_alive |= option.eq_ignore_ascii_case(b"keep-alive");
        }
    }

    fn length(&mut self, value: &[u8]) -> Result<(), Refusal> {
        for part in value.split(|byte| *byte == b',').map(<[u8]>::trim_ascii) {
            if part.is_empty() || !part.iter().all(u8::is_ascii_digit) {
                return Err(Refusal::Malformed);
            }
            let text = std::str::from_utf8(part).map_err(|_| Refusal::Malformed)?;
            let length = text.parse::<u64>().map_err(|_| Refusal::Malformed)?;
            if self.content_length.is_some_and(|known| known != length) {
                return Err(Refusal::Malformed);
            }
            self.content_length = Some(length);
        }
        Ok(())
    }

    fn coding(&mut self, value: &[u8]) -> Result<(), Refusal> {
        if self.chunked || !value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
            return Err(Refusal::UnknownCoding);
        }
        self.chunked = true;
        Ok(())
    }

    fn persistence(&self, is_http_1_1: bool) -> Persistence {
        match (self.close, is_http_1_1, self.keep_alive) {
            (false, true, _) => Persistence::Kept,
            (false, false, true) => Persistence::KeptOnRequest,
            _ => Persistence::Closed,
        }
    }

    fn body(&self) -> Body {
        if self.chunked { Body::chunked() } else { Body::sized(self.content_length.unwrap_or(0)) }
    }
}

fn route(target: &str) -> Route {
    match target.strip_prefix("/_speed") {
        Some("") => return Route::Speed(None),
        Some(rest) if rest.starts_with('?') => return Route::Speed(speed(&rest[1..])),
        _ => (),
    }
    match target.strip_prefix("/_stats") {
        Some("") => Route::Stats(StatsQuery::default()),
        Some(rest) => rest.strip_prefix('?').map_or(Route::Load, |q| Route::Stats(stats_query(q))),
        None => Route::Load,
    }
}

/// Fastest and slowest that a target may be made, as a multiple of what it was started with.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.001..=1_000.0;

fn speed(query: &str) -> Option<f64> {
    let factor = query.strip_prefix("factor=")?.parse().ok()?;
    SPEEDS.contains(&factor).then_some(factor)
}

fn stats_query(text: &str) -> StatsQuery {
    let mut query = StatsQuery::default();
    for pair in text.split('&').filter(|pair| !pair.is_empty()) {
        match pair.split_once('=') {
            Some(("reset", "1")) => query.reset = true,
            Some(("reset", "0")) => query.reset = false,
            Some(("arrivals", "poisson")) => query.arrivals = StatsArrivals::Poisson,
            Some(("arrivals", "uniform")) => query.arrivals = StatsArrivals::Uniform,
            Some(("rate", value)) => match value.parse::<f64>() {
                Ok(rate) if rate.is_finite() && rate > 0.0 => query.rate_per_s = Some(rate),
                _ => query.malformed = true,
            },
            _ => query.malformed = true,
        }
    }
    query
}

#[cfg(test)]
mod tests {
    use super::*;

    fn whole(text: &str) -> Head {
        parse(text.as_bytes()).unwrap().unwrap()
    }

    fn refusal(text: &str) -> Refusal {
        parse(text.as_bytes()).unwrap_err()
    }

    #[test]
    fn every_proper_prefix_is_partial() {
        let text = "POST /a?b=c HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n";
        for end in 0..text.len() {
            assert_eq!(parse(&text.as_bytes()[..end]), Ok(None), "prefix of {end} bytes");
        }
        let head = whole(text);
        assert_eq!(head.length, text.len());
        assert_eq!(head.body, Body::sized(3));
        assert_eq!(head.asked.method, Method::Post);
    }

    #[test]
    fn persistence_follows_version_and_connection_field() {
        let of = |text: &str| whole(text).asked.persistence;
        assert_eq!(of("GET / HTTP/1.1\r\n\r\n"), Persistence::Kept);
        assert_eq!(of("GET / HTTP/1.1\r\nconnection: TE, Close\r\n\r\n"), Persistence::Closed);
        assert_eq!(of("GET / HTTP/1.0\r\n\r\n"), Persistence::Closed);
        let kept = "GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n";
        assert_eq!(of(kept), Persistence::KeptOnRequest);
    }

    #[test]
    fn contradictory_framing_is_refused() {
        let head = "POST / HTTP/1.1\r\n";
        for fields in [
            "Content-Length: 3\r\nContent-Length: 4\r\n\r\n",
            "Content-Length: 3, 4\r\n\r\n",
            "Content-Length: +3\r\n\r\n",
            "Content-Length: \r\n\r\n",
            "Content-Length: 99999999999999999999\r\n\r\n",
            "Content-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
        ] {
            assert_eq!(refusal(&format!("{head}{fields}")), Refusal::Malformed, "{fields}");
        }
        let coded = format!("{head}Transfer-Encoding: gzip, chunked\r\n\r\n");
        assert_eq!(refusal(&coded), Refusal::UnknownCoding);
        assert_eq!(whole(&format!("{head}Content-Length: 3, 3\r\n\r\n")).body, Body::sized(3));
    }

    #[test]
    fn a_head_above_the_limits_is_refused() {
        let long = format!("GET / HTTP/1.1\r\nA: {}", "x".repeat(HEAD_BYTES_MAX));
        assert_eq!(refusal(&long), Refusal::HeadTooLarge);
        let many = format!("GET / HTTP/1.1\r\n{}\r\n", "A: b\r\n".repeat(HEADER_COUNT_MAX + 1));
        assert_eq!(refusal(&many), Refusal::HeadTooLarge);
        assert_eq!(refusal("GET / HTTP/2.0\r\n\r\n"), Refusal::Malformed);
    }

    #[test]
    fn the_stats_route_reads_its_query() {
        let of = |target: &str| route(target);
        assert_eq!(of("/_stats"), Route::Stats(StatsQuery::default()));
        assert_eq!(of("/_statsx"), Route::Load);
        assert_eq!(of("/"), Route::Load);
        let Route::Stats(query) = of("/_stats?reset=1&rate=250.5&arrivals=uniform") else {
            panic!("not the statistics");
        };
        assert!(query.reset && !query.malformed);
        assert_eq!(query.rate_per_s, Some(250.5));
        assert_eq!(query.arrivals, StatsArrivals::Uniform);
        assert_eq!(of("/_speed?factor=1.5"), Route::Speed(Some(1.5)));
        assert_eq!(of("/_speeds"), Route::Load);
        for bad in ["factor=0", "factor=-1", "factor=NaN", "factor=1e9", "factor=", "x=1"] {
            assert_eq!(of(&format!("/_speed?{bad}")), Route::Speed(None), "{bad}");
        }
        for bad in ["/_stats?rate=x", "/_stats?rate=-1", "/_stats?rates=1", "/_stats?reset"] {
            assert!(matches!(of(bad), Route::Stats(query) if query.malformed), "{bad}");
        }
    }

    #[test]
    fn a_head_is_parsed_again_only_when_an_empty_line_arrived() {
        let text = b"GET / HTTP/1.1\r\nHost: x\r\n\r\n";
        let parses = (1..=text.len()).filter(|end| may_be_whole(&text[..*end], 1)).count();
        assert_eq!(parses, 1);
        assert!(may_be_whole(text, 1) && may_be_whole(b"GET / HTTP/1.1\n\n", 1));
    }
}
