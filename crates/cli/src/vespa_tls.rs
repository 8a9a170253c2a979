//! Vespa's own TLS configuration file, for `fbench -D`.

use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::scenario::TlsScenario;
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

/// Reads the file that the environment names.
///
/// # Errors
/// When the variable is not set, or the file is not what Vespa documents.
pub fn read() -> Result<TlsScenario> {
    let path = std::env::var_os(VARIABLE).map(PathBuf::from).ok_or_else(|| {
        usage(format!("-D: {VARIABLE} is not set; set it to Vespa's TLS configuration, or use -T"))
    })?;
    let shown = path.display();
    let text = std::fs::read_to_string(&path)
        .map_err(|error| usage(format!("-D: {VARIABLE}={shown}: {error}; check the path")))?;
    let config: Config = serde_json::from_str(&text)
        .map_err(|error| usage(format!("-D: {shown}: {error}; see Vespa's mTLS documentation")))?;
    if config.disable_hostname_validation {
        return Err(usage(format!(
            "-D: {shown} turns host names off; plimsoll checks them, or nothing with --insecure"
        )));
    }
    Ok(TlsScenario {
        ca_file: Some(config.files.ca_certificates),
        certificate_file: Some(config.files.certificates),
        key_file: Some(config.files.private_key),
        server_name: None,
        insecure: false,
    })
}
