//! Flags of outlets: where the seconds of a run go while it runs.

use crate::headers::read_headers_of;
use crate::usage::usage;
use anyhow::Result;
use clap::Args;
use plimsoll_core::secrets::remember;
use plimsoll_live::Address;
use plimsoll_outlets::otlp::Endpoint;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Destinations of the seconds of a run.
#[derive(Args, Clone, Debug, Default)]
pub struct OutletFlags {
    /// Send metrics each second to an OTLP receiver
    ///
    /// OTLP over HTTP in JSON. An address without a path, such as http://127.0.0.1:4318, gets /v1/metrics. A receiver that is
    /// slow or gone does not change the run; exports that were lost are counted in the record.
    #[arg(long, value_name = "URL", help_heading = "Output")]
    pub otlp: Option<String>,
    /// Header of each export; needs --otlp
    ///
    /// Such as 'Authorization: Bearer ${TOKEN}'. ${NAME} is a variable of the environment, @FILE a file with one header a
    /// line. Its value is kept out of all outputs. May be repeated.
    #[arg(long = "otlp-header", value_name = "HEADER", help_heading = "Output")]
    pub otlp_headers: Vec<String>,
    /// Write each second as a line of JSON to FILE
    ///
    /// - is stdout; the text of the result is then not printed.
    #[arg(long, value_name = "FILE", help_heading = "Output")]
    pub stream: Option<PathBuf>,
    /// Serve a page that follows the run
    ///
    /// On 127.0.0.1 and a free port, unless an address is given. Its address is printed on stderr, with a token without which
    /// the page is not shown. The same port has /metrics for Prometheus. At the end of the run, the page is the one of --html.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "127.0.0.1:0",
        help_heading = "Output"
    )]
    pub live: Option<Address>,
}

impl OutletFlags {
    /// True if the stream takes stdout, in the place of the text.
    #[must_use]
    pub fn takes_stdout(&self) -> bool {
        self.stream.as_deref() == Some(Path::new("-"))
    }

    /// Makes sure that the flags fit each other, and that the values of headers are known, before any load.
    ///
    /// # Errors
    /// The first flag that does not fit, or a header that cannot be read.
    pub fn check(&self) -> Result<()> {
        if self.otlp.is_none() && !self.otlp_headers.is_empty() {
            return Err(usage("--otlp-header needs --otlp URL"));
        }
        self.endpoint()?;
        self.headers().map(drop)
    }

    /// The receiver of exports. Read here and not by the parser, whose messages repeat what was written.
    ///
    /// # Errors
    /// An address that cannot be used.
    pub fn endpoint(&self) -> Result<Option<Endpoint>> {
        let read = |text: &String| text.parse().map_err(|error| usage(format!("--otlp {error}")));
        self.otlp.as_ref().map(read).transpose()
    }

    /// The headers of exports, each value remembered as a secret.
    ///
    /// # Errors
    /// The first line that is not a header.
    pub fn headers(&self) -> Result<Vec<(String, String)>> {
        let headers = read_headers_of("--otlp-header", &self.otlp_headers)?;
        for (_, value) in &headers {
            remember(value);
            // A receiver may repeat it without the word before it, such as Bearer.
            value.split_whitespace().skip(1).for_each(remember);
        }
        Ok(headers)
    }

    /// The flags again, for a process that runs the command.
    #[must_use]
    pub fn words(&self) -> Vec<String> {
        let otlp = self.otlp.iter().map(|endpoint| format!("--otlp={endpoint}"));
        let headers = self.otlp_headers.iter().map(|header| format!("--otlp-header={header}"));
        let stream = self.stream.iter().map(|path| format!("--stream={}", path.display()));
        let live = self.live.iter().map(|address| format!("--live={address}"));
        otlp.chain(headers).chain(stream).chain(live).collect()
    }

    /// The address of the live page, if there is to be one.
    #[must_use]
    pub fn live_address(&self) -> Option<Address> {
        self.live
    }

    /// Refuses the flags for a command that has no seconds to send.
    ///
    /// # Errors
    /// The first of these flags, if one was given.
    pub fn refuse(&self, why: &str) -> Result<()> {
        match self.words().first().and_then(|word| word.split('=').next()) {
            Some(flag) => Err(usage(format!("{flag}: {why}; leave it out"))),
            None => Ok(()),
        }
    }
}

/// Puts the address behind `--live` into the same word. Without that, a parser would take the URL in `--live URL` for it.
#[must_use]
pub fn joined(words: Vec<OsString>) -> Vec<OsString> {
    let mut all: Vec<OsString> = Vec::with_capacity(words.len());
    let mut is_open = true;
    for word in words {
        let is_address = || {
            word.to_str().is_some_and(|text| text.contains(':') && text.parse::<Address>().is_ok())
        };
        match all.last_mut() {
            Some(last) if is_open && last == "--live" && is_address() => {
                last.push("=");
                last.push(word);
            }
            _ => {
                is_open = is_open && word != "--";
                all.push(word);
            }
        }
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_behind_live_is_its_value_and_a_url_is_not() {
        let joined = |text: &str| {
            let words = joined(text.split(' ').map(OsString::from).collect());
            words.iter().map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
        };
        for (text, read) in [
            ("load --live 127.0.0.1:80 http://h/", "load --live=127.0.0.1:80 http://h/"),
            ("load --live http://h:80/", "load --live http://h:80/"),
            ("load http://h/ --live", "load http://h/ --live"),
            ("fbench --live localhost 8080", "fbench --live localhost 8080"),
            ("run f -- --live 127.0.0.1:80", "run f -- --live 127.0.0.1:80"),
        ] {
            assert_eq!(joined(text), read);
        }
    }

    #[test]
    fn a_header_without_a_receiver_is_rejected() {
        let flags = OutletFlags { otlp_headers: vec!["A: b".to_owned()], ..OutletFlags::default() };
        assert_eq!(flags.check().unwrap_err().to_string(), "--otlp-header needs --otlp URL");
        let flags = OutletFlags {
            otlp: Some("http://h:1".to_owned()),
            otlp_headers: vec!["no header".to_owned()],
            ..OutletFlags::default()
        };
        assert!(flags.check().unwrap_err().to_string().starts_with("--otlp-header: "));
        assert_eq!(flags.words()[0], "--otlp=http://h:1");
        let hidden = OutletFlags {
            otlp: Some("http://u:hidden-word@h".to_owned()),
            ..OutletFlags::default()
        };
        let error = hidden.check().unwrap_err().to_string();
        assert!(
            error.starts_with("--otlp 'http://***@h': ") && !error.contains("hidden-word"),
            "{error}"
        );
        assert!(flags.refuse("not here").unwrap_err().to_string().starts_with("--otlp: not here"));
    }
}
