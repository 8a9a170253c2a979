//! Globs and regular expressions, compiled.

use regex::{Regex, RegexBuilder};

/// The most memory that a compiled pattern may take, and again for matching.
const MAX_PATTERN_BYTES: usize = 1 << 20;

/// A compiled pattern. Its source stands beside it in the tree, so all are equal.
#[derive(Clone, Debug)]
pub(super) struct Pattern(Regex);

impl PartialEq for Pattern {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Pattern {
    /// A pattern that may match anywhere in a text, in time linear in the text.
    pub(super) fn regex(source: &str) -> Result<Self, String> {
        let mut builder = RegexBuilder::new(source);
        builder.size_limit(MAX_PATTERN_BYTES).dfa_size_limit(MAX_PATTERN_BYTES);
        builder.build().map(Self).map_err(|error| match error {
            regex::Error::CompiledTooBig(_) => "the pattern is too large".to_owned(),
            // The last line has the reason; those above it repeat the pattern.
            other => {
                let message = other.to_string();
                let reason = message.lines().last().unwrap_or_default();
                format!("a bad regular expression: {}", reason.trim_start_matches("error: "))
            }
        })
    }

    /// A pattern for whole texts, in which `*` is any number of characters and `?` is one.
    pub(super) fn glob(source: &str) -> Result<Self, String> {
        let mut pattern = String::with_capacity(source.len() + 16);
        pattern.push_str("(?s)^");
        let mut literal = [0; 4];
        let mut previous = ' ';
        for c in source.chars() {
            match c {
                // Several in a row are one, and cheaper.
                '*' if previous == '*' => {}
                '*' => pattern.push_str(".*"),
                '?' => pattern.push('.'),
                c => pattern.push_str(&regex::escape(c.encode_utf8(&mut literal))),
            }
            previous = c;
        }
        pattern.push('$');
        Self::regex(&pattern)
    }

    pub(super) fn matches(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

/// Returns true if a glob can match more than one text.
pub(super) fn has_wildcard(glob: &str) -> bool {
    glob.contains(['*', '?'])
}
