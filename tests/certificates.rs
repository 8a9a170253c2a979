//! Certificates of an authority of the test's own.

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// An authority that signs.
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A certificate with its key, both PEM.
pub struct Signed {
    pub certificate: String,
    pub key: String,
}

impl Authority {
    pub fn new(name: &str) -> Self {
        let mut params = CertificateParams::new(Vec::<String>::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        let key = KeyPair::generate().unwrap();
        let pem = params.self_signed(&key).unwrap().pem();
        Self { issuer: Issuer::new(params, key), pem }
    }

    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// Signs for these names; addresses are recognised.
    pub fn sign(&self, names: &[&str], purpose: ExtendedKeyUsagePurpose) -> Signed {
        self.sign_until(names, purpose, None)
    }

    /// The same with an end of its validity, as year, month and day.
    fn sign_until(
        &self,
        names: &[&str],
        purpose: ExtendedKeyUsagePurpose,
        end: Option<(i32, u8, u8)>,
    ) -> Signed {
        let names: Vec<String> = names.iter().map(ToString::to_string).collect();
        let mut params = CertificateParams::new(names).unwrap();
        params.distinguished_name.push(DnType::CommonName, "plimsoll test");
        params.extended_key_usages = vec![purpose];
        params.use_authority_key_identifier_extension = true;
        if let Some((year, month, day)) = end {
            params.not_after = rcgen::date_time_ymd(year, month, day);
        }
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap().pem();
        Signed { certificate, key: key.serialize_pem() }
    }

    pub fn server(&self, names: &[&str]) -> Signed {
        self.sign(names, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// A server's certificate that has expired.
    pub fn expired(&self, names: &[&str]) -> Signed {
        self.sign_until(names, ExtendedKeyUsagePurpose::ServerAuth, Some((2020, 1, 31)))
    }

    pub fn client(&self) -> Signed {
        self.sign(&["client.example"], ExtendedKeyUsagePurpose::ClientAuth)
    }
}
