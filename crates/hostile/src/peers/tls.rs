//! Servers of TLS: records, handshakes and certificates that are too large, or do not end.

use crate::case::Case;
use crate::peer::Wire;
use rcgen::{CertificateParams, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::io::{Error, Read, Result, Write};
use std::sync::{Arc, OnceLock};

const GROUP: &str = "TLS";
const LOAD: &str = "load https://127.0.0.1:PORT/ --clients 4 --duration DURATION --timeout 500ms --connect-timeout 1s --quiet";
const TRUSTING: &str = "load https://127.0.0.1:PORT/ --insecure --clients 4 --duration DURATION --timeout 500ms --connect-timeout 1s --quiet";

fn record_of_64_kib(wire: &mut Wire) -> Result<()> {
    wire.take(5)?;
    wire.send(&[0x16, 3, 3, 0xff, 0xff])?;
    wire.repeat(b"x")
}

/// A handshake message whose length is 2^24 - 1, in records of the usual size.
fn handshake_of_16_mib(wire: &mut Wire) -> Result<()> {
    wire.take(5)?;
    wire.send(&[&[0x16, 3, 3, 0x40, 0][..], &[2, 0xff, 0xff, 0xff], &[0; 16_380]].concat())?;
    wire.repeat(&[&[0x16, 3, 3, 0x40, 0][..], &[0; 16_384]].concat())
}

fn empty_records(wire: &mut Wire) -> Result<()> {
    wire.take(5)?;
    wire.repeat(&[0x16, 3, 3, 0, 0])
}

fn warnings(wire: &mut Wire) -> Result<()> {
    wire.take(5)?;
    wire.repeat(&[0x15, 3, 3, 0, 2, 1, 90])
}

fn clear_text(wire: &mut Wire) -> Result<()> {
    wire.take(5)?;
    wire.repeat(b"HTTP/1.1 400 Bad Request\r\n\r\n")
}

fn is_silent(wire: &mut Wire) -> Result<()> {
    wire.hold()
}

/// A certificate for this many names.
fn certificate(names: usize) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)> {
    let mut all: Vec<String> =
        (0..names).map(|n| format!("name-{n}.of-many-names.example")).collect();
    all.push("127.0.0.1".to_owned());
    let key = KeyPair::generate().map_err(Error::other)?;
    let params = CertificateParams::new(all).map_err(Error::other)?;
    let own = params.self_signed(&key).map_err(Error::other)?;
    let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
    Ok((vec![own.der().clone()], key))
}

fn server(names: usize, copies: usize, tickets: usize) -> Result<Arc<ServerConfig>> {
    let (own, key) = certificate(names)?;
    let chain = own.into_iter().cycle().take(copies).collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(provider);
    let builder = builder.with_safe_default_protocol_versions().map_err(Error::other)?;
    let mut config =
        builder.with_no_client_auth().with_single_cert(chain, key).map_err(Error::other)?;
    config.send_tls13_tickets = tickets;
    Ok(Arc::new(config))
}

/// Makes TLS with a configuration that is made once.
fn over_tls<'w>(
    wire: &'w mut Wire,
    config: &OnceLock<Arc<ServerConfig>>,
    shape: (usize, usize, usize),
) -> Result<StreamOwned<ServerConnection, &'w mut Wire>> {
    let config = match config.get() {
        Some(config) => config.clone(),
        None => {
            let made = server(shape.0, shape.1, shape.2)?;
            config.get_or_init(|| made).clone()
        }
    };
    let session = ServerConnection::new(config).map_err(Error::other)?;
    Ok(StreamOwned::new(session, wire))
}

fn certificate_of_2_mb(wire: &mut Wire) -> Result<()> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    over_tls(wire, &CONFIG, (60_000, 1, 2))?.read(&mut [0; 100]).map(drop)
}

fn chain_of_1000(wire: &mut Wire) -> Result<()> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    over_tls(wire, &CONFIG, (1, 1_000, 2))?.read(&mut [0; 100]).map(drop)
}

fn certificate_that_nobody_signed(wire: &mut Wire) -> Result<()> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    over_tls(wire, &CONFIG, (1, 1, 2))?.read(&mut [0; 100]).map(drop)
}

fn tickets(wire: &mut Wire) -> Result<()> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let mut stream = over_tls(wire, &CONFIG, (1, 1, 5_000))?;
    let _request = stream.read(&mut [0; 1_000])?;
    stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")?;
    stream.read(&mut [0; 1_000]).map(drop)
}

/// New keys, again and again, each of which the other side has to take up.
fn keys_without_end(wire: &mut Wire) -> Result<()> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let mut stream = over_tls(wire, &CONFIG, (1, 1, 2))?;
    let _request = stream.read(&mut [0; 1_000])?;
    loop {
        stream.conn.refresh_traffic_keys().map_err(Error::other)?;
        stream.flush()?;
        while stream.conn.wants_write() {
            stream.conn.write_tls(&mut stream.sock)?;
        }
    }
}

fn body_without_end(wire: &mut Wire) -> Result<()> {
    static CONFIG: OnceLock<Arc<ServerConfig>> = OnceLock::new();
    let mut stream = over_tls(wire, &CONFIG, (1, 1, 2))?;
    let _request = stream.read(&mut [0; 1_000])?;
    stream.write_all(b"HTTP/1.1 200 OK\r\n\r\n")?;
    loop {
        stream.write_all(&[b'x'; 16_384])?;
    }
}

/// The cases of this protocol.
pub const CASES: &[Case] = &[
    Case::new((GROUP, "a record of 64 KiB"), record_of_64_kib, LOAD, ""),
    Case::new((GROUP, "a handshake message of 16 MiB"), handshake_of_16_mib, LOAD, ""),
    Case::new((GROUP, "empty records without end"), empty_records, LOAD, ""),
    Case::new((GROUP, "warnings without end"), warnings, LOAD, ""),
    Case::new((GROUP, "clear text"), clear_text, LOAD, "TLS"),
    Case::new((GROUP, "silence"), is_silent, LOAD, ""),
    Case::new((GROUP, "a certificate of 2 MB"), certificate_of_2_mb, TRUSTING, ""),
    Case::new((GROUP, "a chain of 1,000 certificates"), chain_of_1000, TRUSTING, ""),
    Case::new(
        (GROUP, "a certificate that no authority signed"),
        certificate_that_nobody_signed,
        LOAD,
        "--insecure",
    ),
    Case::new((GROUP, "5,000 tickets in each session"), tickets, TRUSTING, ""),
    Case::new((GROUP, "new keys without end"), keys_without_end, TRUSTING, ""),
    Case::new((GROUP, "a body without end"), body_without_end, TRUSTING, ""),
];
