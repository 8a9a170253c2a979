//! Operator, account and user of a bus as nsc makes them: JWTs that are signed with NKeys.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rcgen::{KeyPair, PKCS_ED25519, PublicKeyData as _, SigningKey as _};
use serde_json::{Value, json};

/// Prefixes of NKeys, so that their first letters are O, A, U and S.
const OPERATOR: u8 = 14 << 3;
const ACCOUNT: u8 = 0;
const USER: u8 = 20 << 3;
const SEED: u8 = 18 << 3;

/// A pair of keys, and the prefix of what it stands for.
struct Nkey {
    pair: KeyPair,
    prefix: u8,
}

impl Nkey {
    fn new(prefix: u8) -> Self {
        Self { pair: KeyPair::generate_for(&PKCS_ED25519).unwrap(), prefix }
    }

    fn public(&self) -> String {
        letters(&[&[self.prefix], self.pair.der_bytes()].concat())
    }

    fn seed(&self) -> String {
        // Behind the head of PKCS #8.
        let secret = &self.pair.serialize_der()[16..48];
        letters(&[&[SEED | (self.prefix >> 5), (self.prefix & 31) << 3], secret].concat())
    }

    /// A JWT about the holder of another key, signed with this one.
    fn sign(&self, name: &str, about: &Self, nats: &Value) -> String {
        let claims = json!({
            "jti": name, "iat": 1_700_000_000, "iss": self.public(), "sub": about.public(), "name": name, "nats": nats,
        });
        let head = URL_SAFE_NO_PAD.encode(r#"{"typ":"JWT","alg":"ed25519-nkey"}"#);
        let signed = format!("{head}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
        let signature = self.pair.sign(signed.as_bytes()).unwrap();
        format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
    }
}

/// Bytes and their checksum (CRC-16 of XMODEM) in base 32.
fn letters(bytes: &[u8]) -> String {
    let step = |crc: u16, byte: &u8| {
        (0..8).fold(crc ^ (u16::from(*byte) << 8), |crc, _| {
            (crc << 1) ^ if crc & 0x8000 == 0 { 0 } else { 0x1021 }
        })
    };
    let crc = bytes.iter().fold(0, step);
    let all = [bytes, &crc.to_le_bytes()].concat();
    let bit = |at: usize| all.get(at / 8).map_or(0, |byte| (byte >> (7 - at % 8)) & 1);
    let letter = |at: usize| {
        let index = (at..at + 5).fold(0, |index, at| (index << 1) | bit(at));
        char::from(b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"[usize::from(index)])
    };
    (0..all.len() * 8).step_by(5).map(letter).collect()
}

/// A user of an account: what the bus has to know, and what the user has to show.
pub struct Accounts {
    /// As `nsc generate config --mem-resolver` writes it.
    pub config: String,
    /// As `nsc generate creds` writes it.
    pub creds: String,
}

impl Accounts {
    pub fn new() -> Self {
        let (operator, account, user) = (Nkey::new(OPERATOR), Nkey::new(ACCOUNT), Nkey::new(USER));
        let of_operator = operator.sign("o", &operator, &json!({"type": "operator", "version": 2}));
        let limits = json!({
            "subs": -1, "data": -1, "payload": -1, "imports": -1, "exports": -1, "wildcards": true, "conn": -1, "leaf": -1,
        });
        let open = json!({"pub": {}, "sub": {}});
        let of_account = json!({
            "limits": limits, "default_permissions": open, "type": "account", "version": 2,
        });
        let of_account = operator.sign("a", &account, &of_account);
        let of_user = json!({
            "pub": {}, "sub": {}, "subs": -1, "data": -1, "payload": -1, "type": "user", "version": 2,
        });
        let of_user = account.sign("u", &user, &of_user);
        Self {
            config: format!(
                "operator: {of_operator}\nresolver: MEMORY\nresolver_preload: {{\n  {}: {of_account}\n}}\n",
                account.public()
            ),
            creds: format!(
                "-----BEGIN NATS USER JWT-----\n{of_user}\n------END NATS USER JWT------\n\n\
                 -----BEGIN USER NKEY SEED-----\n{}\n------END USER NKEY SEED------\n",
                user.seed()
            ),
        }
    }
}

#[test]
fn keys_have_the_letters_of_the_documentation_of_nats() {
    let public = "UDXU4RCSJNZOIQHZNWXHXORDPRTGNJAHAHFRGZNEEJCPQTT2M7NLCNF4";
    // The bytes of the key are what the letters stand for, without prefix and checksum.
    let bits: Vec<u8> = public
        .bytes()
        .flat_map(|letter| {
            let alphabet = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
            let index = alphabet.iter().position(|own| *own == letter).unwrap() as u8;
            (0..5).rev().map(move |at| (index >> at) & 1)
        })
        .collect();
    let bytes: Vec<u8> =
        bits.chunks(8).map(|bits| bits.iter().fold(0, |byte, bit| (byte << 1) | bit)).collect();
    assert_eq!(bytes[0], USER);
    assert_eq!(letters(&bytes[..33]), public);
}
