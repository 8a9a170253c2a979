//! A certificate for an engine on loopback, and the authority that vouches for it, made for it alone.

use super::account::Account;
use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

/// The names that a server on loopback goes by.
const NAMES: [&str; 3] = ["localhost", "127.0.0.1", "::1"];

/// Paths of the certificate files.
pub struct Certificates {
    /// The certificate of the authority, for clients.
    pub authority: PathBuf,
    /// The server's certificate.
    pub certificate: PathBuf,
    /// Its key, which only its account may read.
    pub key: PathBuf,
}

impl Certificates {
    /// Makes them, unless all are there: clients may have kept a copy of the authority.
    ///
    /// # Errors
    /// When a file cannot be written.
    pub fn make(&self, account: Option<&Account>) -> Result<()> {
        let Self { authority, certificate, key } = self;
        if [authority, certificate, key].iter().all(|path| path.is_file()) {
            return Ok(());
        }
        let (authority_pem, certificate_pem, key_pem) = signed()?;
        // The authority's key is not needed again: it is not kept.
        write(authority, &authority_pem, 0o644, None)?;
        write(certificate, &certificate_pem, 0o644, account)?;
        write(key, &key_pem, 0o600, account)
    }
}

/// An authority's certificate, a server's that it has signed, and the server's key, all PEM.
fn signed() -> Result<(String, String, String)> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, "plimsoll serve, on this machine only");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);
    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, NAMES[0]);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    Ok((authority, certificate, key.serialize_pem()))
}

fn write(path: &Path, text: &str, mode: u32, account: Option<&Account>) -> Result<()> {
    let shown = || path.display().to_string();
    // One that is there keeps its mode, which may be too open for a key.
    if path.exists() {
        std::fs::remove_file(path).with_context(shown)?;
    }
    let mut options = std::fs::OpenOptions::new();
    let mut file =
        options.write(true).create_new(true).mode(mode).open(path).with_context(shown)?;
    file.write_all(text.as_bytes()).with_context(shown)?;
    account.map_or(Ok(()), |account| account.own(path))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn files_are_made_once_and_the_key_is_closed() {
        let dir = tempfile::tempdir().unwrap();
        let [authority, certificate, key] =
            ["ca.crt", "server.crt", "server.key"].map(|name| dir.path().join(name));
        std::fs::write(&key, "open to all, and not a key").unwrap();
        let files = Certificates { authority, certificate, key };
        files.make(None).unwrap();
        let read =
            || [&files.authority, &files.certificate, &files.key].map(std::fs::read_to_string);
        let first = read().map(Result::unwrap);
        assert!(first[2].contains("PRIVATE KEY") && !first[0].contains("PRIVATE KEY"));
        assert_eq!(files.key.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        files.make(None).unwrap();
        assert_eq!(read().map(Result::unwrap), first);
        std::fs::remove_file(&files.authority).unwrap();
        files.make(None).unwrap();
        assert!(read().map(Result::unwrap).iter().zip(&first).all(|(new, old)| new != old));
    }
}
