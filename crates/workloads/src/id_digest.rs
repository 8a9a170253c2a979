//! A digest of a set of ids that does not depend on their order.

use md5::{Digest, Md5};
use serde::{Deserialize, Serialize};

/// The sum of the MD5 digests of all ids, each taken as a big-endian number of 128 bits, modulo 2^128.
///
/// Two dumps of the same corpus have the same digest in whatever order the documents came, and in three lines of
/// any language it can be computed again. It finds what is missing or there twice; it is no protection against
/// someone who wants two sets to look alike.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct IdDigest(u128);

impl IdDigest {
    /// The digest of a set with one id.
    #[must_use]
    pub fn of(id: impl AsRef<[u8]>) -> Self {
        Self(u128::from_be_bytes(Md5::digest(id).into()))
    }

    /// Adds a set that has nothing in common with this one.
    pub fn add(&mut self, other: Self) {
        self.0 = self.0.wrapping_add(other.0);
    }
}

impl TryFrom<String> for IdDigest {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let number = u128::from_str_radix(&text, 16).ok().filter(|_| text.len() == 32);
        number.map(Self).ok_or("a digest has 32 hexadecimal digits")
    }
}

impl From<IdDigest> for String {
    fn from(digest: IdDigest) -> Self {
        digest.to_string()
    }
}

impl std::fmt::Display for IdDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_order_does_not_matter_and_the_set_does() {
        let sum = |ids: &[&str]| {
            let mut all = IdDigest::default();
            ids.iter().for_each(|id| all.add(IdDigest::of(id)));
            all
        };
        assert_eq!(sum(&["a", "b", "c"]), sum(&["c", "a", "b"]));
        assert_ne!(sum(&["a", "b"]), sum(&["a", "b", "b"]));
        // md5sum's own words for "a".
        assert_eq!(sum(&["a"]).to_string(), "0cc175b9c0f1b6a831c399e269772661");
        assert_eq!(IdDigest::try_from(sum(&["a", "b"]).to_string()), Ok(sum(&["a", "b"])));
        assert!(IdDigest::try_from("xyz".to_owned()).is_err());
    }
}
