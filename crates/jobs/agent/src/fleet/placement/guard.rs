//! Protection of the bus of a placement: a token, an NKey or credentials of its clients, with TLS or without, and the files for them.

use crate::fleet::values::PublicNkey;

/// Credentials that a client of the bus must have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Login {
    /// A token that all clients share.
    #[default]
    Token,
    /// The NKey of the only user: the bus knows its public part, clients have the seed.
    Nkey(PublicNkey),
    /// A credentials file; the bus has the accounts that nsc made.
    Creds,
}

/// TLS of the bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Security {
    /// None.
    #[default]
    Plain,
    /// The bus has a certificate, and clients check it.
    Server,
    /// Clients have certificates too, and the bus checks them.
    Both,
}

/// Protection of the bus.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Guard {
    /// Credentials.
    pub login: Login,
    /// TLS.
    pub security: Security,
}

/// Files of a client, each with its flag, in the order of its command line.
pub type ClientFiles = Vec<(&'static str, &'static str)>;

/// Names of files of TLS, as cert-manager and Kubernetes have them.
pub const CA: &str = "ca.crt";
pub const CERTIFICATE: &str = "tls.crt";
pub const KEY: &str = "tls.key";

impl Guard {
    /// Scheme of the bus in an address.
    pub const fn scheme(&self) -> &'static str {
        match self.security {
            Security::Plain => "nats",
            Security::Server | Security::Both => "tls",
        }
    }

    /// Name of the credential, as a part of names and as a key of a secret.
    pub const fn credential(&self) -> &'static str {
        match self.login {
            Login::Token => "token",
            Login::Nkey(_) => "nkey",
            Login::Creds => "creds",
        }
    }

    /// The flag of a client for the file with its credential.
    pub const fn credential_flag(&self) -> &'static str {
        match self.login {
            Login::Token => "--bus-token-file",
            Login::Nkey(_) => "--bus-nkey",
            Login::Creds => "--bus-creds",
        }
    }

    /// Returns true if all clients share a token.
    pub fn has_token(&self) -> bool {
        self.login == Login::Token
    }

    /// Returns true if the bus speaks TLS.
    pub fn has_tls(&self) -> bool {
        self.security != Security::Plain
    }

    /// Returns true if clients must have certificates.
    pub fn wants_certificates(&self) -> bool {
        self.security == Security::Both
    }

    /// Files of TLS that a client reads.
    pub fn client_files(&self) -> ClientFiles {
        let all = [("--bus-cacert", CA), ("--bus-cert", CERTIFICATE), ("--bus-key", KEY)];
        let count = match self.security {
            Security::Plain => 0,
            Security::Server => 1,
            Security::Both => all.len(),
        };
        all[..count].to_vec()
    }

    /// The lines of nats-server's configuration: who may connect, and TLS with the files of a folder. `token` is the token's value,
    /// and `accounts` the file with accounts, relative to the configuration.
    pub fn server_lines(&self, token: &str, accounts: &str, folder: &str) -> String {
        let mut lines = vec![match &self.login {
            Login::Token => format!("authorization {{ token: {token} }}"),
            Login::Nkey(key) => format!("authorization {{ users: [ {{ nkey: {key} }} ] }}"),
            Login::Creds => format!("include \"{accounts}\""),
        }];
        if self.has_tls() {
            lines.push("tls {".to_owned());
            lines.push(format!("  cert_file: \"{folder}/{CERTIFICATE}\""));
            lines.push(format!("  key_file: \"{folder}/{KEY}\""));
            if self.wants_certificates() {
                lines.push(format!("  ca_file: \"{folder}/{CA}\""));
                lines.push("  verify: true".to_owned());
            }
            lines.push("}".to_owned());
        }
        lines.join("\n")
    }
}
