//! Certificates of all kinds, shown to clients that look at them more or less closely.

use super::*;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::{ServerConfig, ServerConnection};

/// A certificate and its key.
type Shown = (CertificateDer<'static>, PrivateKeyDer<'static>);

fn params(name: &str, is_authority: bool) -> CertificateParams {
    let names = if is_authority { vec![] } else { vec![name.to_owned()] };
    let mut params = CertificateParams::new(names).unwrap();
    params.distinguished_name.push(rcgen::DnType::CommonName, name);
    if is_authority {
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    }
    params
}

fn key_of(key: &KeyPair) -> PrivateKeyDer<'static> {
    PrivateKeyDer::try_from(key.serialize_der()).unwrap()
}

/// An authority in PEM, and a certificate that it has signed.
fn signed(name: &str) -> (String, Shown) {
    let (key, own) = (KeyPair::generate().unwrap(), KeyPair::generate().unwrap());
    let authority = params("an authority", true);
    let pem = authority.self_signed(&key).unwrap().pem();
    let issuer = Issuer::new(authority, key);
    let certificate = params(name, false).signed_by(&own, &issuer).unwrap();
    (pem, (certificate.der().clone(), key_of(&own)))
}

/// A certificate that signs itself, as `openssl req -x509` makes it: an authority with a name.
fn of_itself(name: &str, change: impl FnOnce(&mut CertificateParams)) -> (String, Shown) {
    let key = KeyPair::generate().unwrap();
    let mut params = params(name, false);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    change(&mut params);
    let certificate = params.self_signed(&key).unwrap();
    (certificate.pem(), (certificate.der().clone(), key_of(&key)))
}

/// Outcome of a handshake with `host`, whose server shows this certificate.
fn meet(shown: &Shown, pem: &str, trust: Trust, host: &str) -> Result<(), TlsRefusal> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ca.crt");
    std::fs::write(&path, pem).unwrap();
    let speaks = Speaks::Postgresql;
    let options = TlsOptions { ca_file: Some(path), trust, speaks, ..TlsOptions::default() };
    let tls = Tls::new(&options).unwrap();
    let mut client = tls.connection(tls.name(host).unwrap()).unwrap();
    let provider = Arc::new(ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![shown.0.clone()], shown.1.clone_key())
        .unwrap();
    let mut server = ServerConnection::new(Arc::new(config)).unwrap();
    while client.is_handshaking() || server.is_handshaking() {
        let mut bytes = Vec::new();
        while client.wants_write() {
            client.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            server.read_tls(&mut rest).unwrap();
            server.process_new_packets().unwrap();
        }
        bytes.clear();
        while server.wants_write() {
            server.write_tls(&mut bytes).unwrap();
        }
        let mut rest = &bytes[..];
        while !rest.is_empty() {
            client.read_tls(&mut rest).unwrap();
            client.process_new_packets().map_err(|error| tls.refusal(&error, true))?;
        }
    }
    Ok(())
}

#[test]
fn chain_and_name_are_looked_at_as_far_as_was_asked() {
    let (authority, shown) = signed("right.example");
    let (stranger, _) = signed("right.example");
    let wrong = |end: Result<(), TlsRefusal>| matches!(end, Err(TlsRefusal::WrongName(_)));
    let untrusted = |end: Result<(), TlsRefusal>| matches!(end, Err(TlsRefusal::Untrusted(_)));
    assert_eq!(meet(&shown, &authority, Trust::Full, "right.example"), Ok(()));
    assert!(wrong(meet(&shown, &authority, Trust::Full, "wrong.example")));
    assert!(wrong(meet(&shown, &authority, Trust::Full, "127.0.0.1")));
    assert_eq!(meet(&shown, &authority, Trust::Chain, "wrong.example"), Ok(()));
    assert_eq!(meet(&shown, &authority, Trust::Chain, "127.0.0.1"), Ok(()));
    for trust in [Trust::Full, Trust::Chain] {
        assert!(untrusted(meet(&shown, &stranger, trust, "right.example")));
    }
    assert_eq!(meet(&shown, &stranger, Trust::Anything, "wrong.example"), Ok(()));
    let (authority, shown) = signed("127.0.0.1");
    assert_eq!(meet(&shown, &authority, Trust::Full, "127.0.0.1"), Ok(()));
    assert!(wrong(meet(&shown, &authority, Trust::Full, "localhost")));
}

#[test]
fn a_copy_of_a_certificate_that_signed_itself_is_enough() {
    let (own, shown) = of_itself("right.example", |_| {});
    let (stranger, _) = of_itself("right.example", |_| {});
    assert_eq!(meet(&shown, &own, Trust::Chain, "wrong.example"), Ok(()));
    assert_eq!(meet(&shown, &own, Trust::Full, "right.example"), Ok(()));
    let told = meet(&shown, &own, Trust::Full, "wrong.example").unwrap_err();
    assert!(matches!(told, TlsRefusal::WrongName(_)), "{told}");
    let told = meet(&shown, &stranger, Trust::Chain, "right.example").unwrap_err();
    assert!(matches!(told, TlsRefusal::Untrusted(_)), "{told}");
    let (own, shown) = of_itself("right.example", |params| {
        params.not_after = rcgen::date_time_ymd(2001, 1, 1);
    });
    let told = meet(&shown, &own, Trust::Chain, "right.example").unwrap_err();
    assert!(matches!(told, TlsRefusal::Untrusted(_)), "out of date: {told}");
}
