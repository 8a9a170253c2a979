//! A `VARCHAR(2)`, small enough to stand in a column of words.

/// A text of at most two characters: its UTF-8 bytes, the first one highest, filled up with zeros. So it compares as
/// its text does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct State(u64);

impl State {
    /// Characters of a state, at most.
    pub(crate) const CHARS_MAX: usize = 2;

    /// The state of a phone number with an unknown area code.
    pub(crate) const UNKNOWN: Self = Self((b'X' as u64) << 56 | (b'X' as u64) << 48);

    /// Returns `None` for a longer text, and for one with a NUL, which is also the padding.
    pub(crate) fn new(text: &str) -> Option<Self> {
        if text.chars().count() > Self::CHARS_MAX || text.contains('\0') {
            return None;
        }
        let mut bytes = [0; 8];
        bytes[..text.len()].copy_from_slice(text.as_bytes());
        Some(Self(u64::from_be_bytes(bytes)))
    }

    /// Its bytes as one number, for the log.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The state of such a number, if it is one.
    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        let bytes = bits.to_be_bytes();
        let text = std::str::from_utf8(&bytes).ok()?.trim_end_matches('\0');
        Self::new(text)
    }

    /// The text.
    pub(crate) fn with<R>(self, take: impl FnOnce(&str) -> R) -> R {
        let bytes = self.0.to_be_bytes();
        let length = 8 - self.0.trailing_zeros().min(64) as usize / 8;
        // Only whole texts are ever put in.
        take(std::str::from_utf8(&bytes[..length]).unwrap_or_default())
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.with(|text| f.write_str(text))
    }
}

#[cfg(test)]
mod tests {
    use super::State;

    #[test]
    fn a_state_is_its_text_and_compares_as_it() {
        for text in ["", "N", "NY", "XX", "é", "éé", "😀😀"] {
            let state = State::new(text).unwrap();
            assert_eq!(state.to_string(), text);
            assert_eq!(State::from_bits(state.bits()), Some(state));
        }
        assert_eq!(State::new("XX"), Some(State::UNKNOWN));
        assert_eq!(State::new("NYC"), None);
        assert_eq!(State::new("a\0"), None);
        assert_eq!(State::from_bits(u64::MAX), None);
        let mut texts = ["é", "B", "AB", "A", "😀"];
        texts.sort_unstable();
        let mut states = texts.map(|text| State::new(text).unwrap());
        states.sort_unstable();
        assert_eq!(states.map(|state| state.to_string()), texts);
    }
}
