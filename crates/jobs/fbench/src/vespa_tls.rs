//! Vespa's own TLS configuration file, for `fbench -D`.

use anyhow::Result;
use plimsoll_core::scenario::TlsScenario;
use plimsoll_core::system_error::with_advice;
use plimsoll_job::output::note;
use plimsoll_job::usage::usage;
use serde::Deserialize;
use std::path::PathBuf;

const VARIABLE: &str = "VESPA_TLS_CONFIG_FILE";

#[derive(Deserialize)]
struct Config {
    files: Files,
    #[serde(default, rename = "disable-hostname-validation")]
    disable_hostname_validation: bool,
}

#[derive(Deserialize)]
struct Files {
    #[serde(rename = "private-key")]
    private_key: PathBuf,
    certificates: PathBuf,
    #[serde(rename = "ca-certificates")]
    ca_certificates: PathBuf,
}

/// The mode in which Vespa's clients speak plain text although there is a configuration.
const PLAIN_CLIENT: &str = "plaintext_client_mixed_server";
const MODE: &str = "VESPA_TLS_INSECURE_MIXED_MODE";

/// Reads the file that the environment names. `None` is plain text, which Vespa's programs speak where it names none.
///
/// # Errors
/// When the file is not what Vespa documents.
pub fn read() -> Result<Option<TlsScenario>> {
    let Some(path) = std::env::var_os(VARIABLE).filter(|path| !path.is_empty()) else {
        note(&format!("plimsoll: -D: {VARIABLE} is not set: requests are sent in plain text"));
        return Ok(None);
    };
    if std::env::var_os(MODE).is_some_and(|mode| mode == PLAIN_CLIENT) {
        note(&format!("plimsoll: -D: {MODE} is {PLAIN_CLIENT}: requests are sent in plain text"));
        return Ok(None);
    }
    let path = PathBuf::from(path);
    let shown = path.display();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| usage(format!("-D: {VARIABLE}={shown}: {}", with_advice(&error))))?;
    let config: Config = serde_json::from_str(&text)
        .map_err(|error| usage(format!("-D: {shown}: {error}; see Vespa's mTLS documentation")))?;
    if config.disable_hostname_validation {
        let (certificate, key) = (config.files.certificates, config.files.private_key);
        return Err(usage(format!(
            "-D: {shown} disables the check of host names, which plimsoll does not support; remove disable-hostname-validation and \
             name the host of the certificate with -A HOST, or verify nothing: -C {} -K {} --insecure instead of -D",
            certificate.display(),
            key.display()
        )));
    }
    Ok(Some(TlsScenario {
        ca_file: Some(config.files.ca_certificates),
        certificate_file: Some(config.files.certificates),
        key_file: Some(config.files.private_key),
        server_name: None,
        insecure: false,
    }))
}
