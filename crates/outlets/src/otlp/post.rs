//! One export: a request over HTTP, and the reading of its reply.

use crate::otlp::EXPORT_WAIT;
use crate::otlp::endpoint::Endpoint;
use crate::queue::{Carrier, left};
use plimsoll_core::secrets::{without_address_secrets, without_remembered};
use plimsoll_core::system_error::words;
use rustls::crypto::ring;
use serde::Deserialize;
use std::sync::Arc;
use std::time::Duration;
use ureq::Agent;
use ureq::tls::{Certificate, RootCerts, TlsConfig};

/// Longest part of a reply that is read, bytes.
const REPLY_BYTES_MAX: u64 = 64 * 1024;
/// Longest part of a reply that is shown, characters.
const SHOWN_CHARS_MAX: usize = 200;

/// Sends exports to one address, over one connection as long as it lasts.
pub(super) struct Post {
    agent: Agent,
    uri: String,
    headers: Vec<(String, String)>,
}

/// A reply that accepts a request and not all of its points.
#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Reply {
    partial_success: Partial,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Partial {
    /// A number, or a text as the JSON mapping has it.
    rejected_data_points: serde_json::Value,
    error_message: String,
}

impl Post {
    pub fn new(
        endpoint: &Endpoint,
        headers: &[(String, String)],
        version: &str,
    ) -> Result<Self, String> {
        let mut config = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(format!("plimsoll/{version}"));
        if endpoint.is_loopback() {
            config = config.proxy(None);
        }
        if endpoint.is_tls() {
            config = config.tls_config(tls()?);
        }
        Ok(Self {
            agent: config.build().into(),
            uri: endpoint.uri().to_owned(),
            headers: headers.to_vec(),
        })
    }
}

/// TLS with the authorities of this machine.
fn tls() -> Result<TlsConfig, String> {
    let found = rustls_native_certs::load_native_certs();
    if found.certs.is_empty() {
        return Err(
            "--otlp: this machine has no certificates of authorities; install the package \
                    ca-certificates, or set SSL_CERT_FILE"
                .to_owned(),
        );
    }
    let roots: Vec<Certificate<'static>> =
        found.certs.iter().map(|one| Certificate::from_der(one).to_owned()).collect();
    Ok(TlsConfig::builder()
        .root_certs(RootCerts::Specific(Arc::new(roots)))
        .unversioned_rustls_crypto_provider(Arc::new(ring::default_provider()))
        .build())
}

impl Carrier for Post {
    fn carry(&mut self, entry: &[u8], limit_ns: u64) -> Result<(), String> {
        let left = left(limit_ns).max(Duration::from_millis(1));
        let mut request = self.agent.post(&self.uri).content_type("application/json");
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let sent = request.config().timeout_global(Some(left)).build().send(entry);
        let mut reply = sent.map_err(|error| plain(&reason(&error)))?;
        let status = reply.status();
        let text = reply
            .body_mut()
            .with_config()
            .limit(REPLY_BYTES_MAX)
            .lossy_utf8(true)
            .read_to_string()
            .unwrap_or_default();
        match status.is_success() {
            true => accepted(&text),
            false => Err(plain(&format!("status {status} {text}"))),
        }
    }

    fn patience(&self) -> Duration {
        EXPORT_WAIT
    }

    fn is_cumulative(&self) -> bool {
        true
    }
}

/// Reads the body of a reply with a good status.
///
/// # Errors
/// One line for a reply that accepts only some of the points.
pub(super) fn accepted(text: &str) -> Result<(), String> {
    // Many receivers answer with no body, or with one that is not JSON.
    let partial = serde_json::from_str::<Reply>(text).unwrap_or_default().partial_success;
    let rejected: u64 = match &partial.rejected_data_points {
        serde_json::Value::String(text) => text.parse().unwrap_or(0),
        other => other.as_u64().unwrap_or(0),
    };
    match rejected {
        0 => Ok(()),
        _ => Err(plain(&format!("{rejected} points were rejected: {}", partial.error_message))),
    }
}

/// The reason why there was no reply.
fn reason(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Io(error) => words(error),
        ureq::Error::Timeout(_) => "no reply in time".to_owned(),
        ureq::Error::HostNotFound => "the name of the host is not known".to_owned(),
        ureq::Error::Rustls(error) => format!("TLS: {error}"),
        other => other.to_string(),
    }
}

/// Text of a receiver or of the network as one line without secrets and control characters.
fn plain(text: &str) -> String {
    let text = without_remembered(without_address_secrets(text));
    let words: Vec<&str> = text
        .split(|c: char| c.is_whitespace() || c.is_control())
        .filter(|w| !w.is_empty())
        .collect();
    let mut line = words.join(" ");
    if let Some((at, _)) = line.char_indices().nth(SHOWN_CHARS_MAX) {
        line.truncate(at);
        line += "...";
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::clock::now_ns;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    /// Answers one request with `reply` and returns what was asked.
    fn answer(reply: &'static str) -> (Endpoint, std::thread::JoinHandle<String>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint = format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let asked = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut text = String::new();
            let mut buffer = [0; 4096];
            while !text.ends_with("{\"x\":1}") {
                let read = stream.read(&mut buffer).unwrap();
                text.push_str(std::str::from_utf8(&buffer[..read]).unwrap());
            }
            stream.write_all(reply.as_bytes()).unwrap();
            text
        });
        (endpoint, asked)
    }

    fn carry(reply: &'static str) -> (Result<(), String>, String) {
        let (endpoint, asked) = answer(reply);
        let headers = [("X-Tenant".to_owned(), "seven".to_owned())];
        let mut post = Post::new(&endpoint, &headers, "0.1.0").unwrap();
        let result = post.carry(b"{\"x\":1}", now_ns() + 20_000_000_000);
        (result, asked.join().unwrap().to_ascii_lowercase())
    }

    #[test]
    fn an_export_is_json_with_the_headers_that_were_given() {
        let (result, asked) = carry("HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}");
        assert_eq!(result, Ok(()));
        assert!(asked.starts_with("post /v1/metrics http/1.1\r\n"), "{asked}");
        for header in
            ["content-type: application/json\r\n", "x-tenant: seven\r\n", "content-length: 7\r\n"]
        {
            assert!(asked.contains(header), "{asked}");
        }
    }

    #[test]
    fn a_reply_that_takes_only_a_part_is_a_loss() {
        let (result, _) = carry(
            "HTTP/1.1 200 OK\r\nContent-Length: 76\r\n\r\n{\"partialSuccess\":{\"rejectedDataPoints\":\"3\",\"errorMessage\":\"out of bounds\"}}",
        );
        assert_eq!(result, Err("3 points were rejected: out of bounds".to_owned()));
    }

    #[test]
    fn a_status_that_is_no_success_is_told_in_one_line() {
        let (result, _) =
            carry("HTTP/1.1 400 Bad Request\r\nContent-Length: 9\r\n\r\nbad\u{7}\nbody");
        assert_eq!(result, Err("status 400 Bad Request bad body".to_owned()));
        let (result, _) = carry("HTTP/1.1 302 Found\r\nLocation: /x\r\nContent-Length: 0\r\n\r\n");
        assert!(result.unwrap_err().starts_with("status 302"));
    }

    #[test]
    fn a_receiver_that_never_answers_costs_no_more_than_the_limit() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let endpoint: Endpoint =
            format!("http://{}", listener.local_addr().unwrap()).parse().unwrap();
        let mut post = Post::new(&endpoint, &[], "0.1.0").unwrap();
        let before_ns = now_ns();
        let result = post.carry(b"{}", before_ns + 200_000_000);
        assert!(result.unwrap_err().contains("no reply in time"));
        assert!(now_ns() - before_ns < 5_000_000_000);
    }
}
