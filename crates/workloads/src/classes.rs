//! Classes of requests: which kind of query is the heaviest?
//!
//! A request's class is the tag on its NDJSON line, else the first `NAME=REGEX` that matches its
//! target or body as they are sent (percent-encoding and all), else `other`, or `all` when there
//! are no rules and no tags.

use regex::bytes::Regex;

/// Most classes of one run: each has histograms of its own.
pub const CLASSES_MAX: usize = 64;
/// Longest name of a class, in bytes.
pub const CLASS_NAME_MAX_BYTES: usize = 64;

/// Name of the only class when nothing tells requests apart.
const ALL: &str = "all";
/// Name of the class of requests that no rule matches.
const OTHER: &str = "other";

/// Error of a class.
#[derive(Debug, thiserror::Error)]
pub enum ClassError {
    /// The rule is not `NAME=REGEX`.
    #[error("--class '{0}': write NAME=REGEX, such as fuzzy=maxEditDistance")]
    NoName(String),
    /// The expression cannot be read.
    #[error("--class {name}: invalid regular expression: {problem}")]
    Regex {
        /// The class.
        name: String,
        /// Message of the parser, in one line.
        problem: String,
    },
    /// The name is empty, too long or has control characters.
    #[error("class name '{0}': use 1 to 64 bytes without control characters")]
    Name(String),
    /// There are too many.
    #[error("more than 64 classes ('{0}' is one too many); tag requests by kind, not by text")]
    TooMany(String),
}

/// Returns the reason of a regular expression's error: the last of the parser's lines.
pub(crate) fn regex_problem(error: &regex::Error) -> String {
    let text = error.to_string();
    text.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned()
}

/// The classes of a run. An index into [`Classes::names`] stands for a class everywhere else.
#[derive(Clone, Debug, Default)]
pub struct Classes {
    names: Vec<String>,
    rules: Vec<(u8, Regex)>,
    rest: Option<u8>,
}

impl Classes {
    /// Reads the rules, each `NAME=REGEX`. Several rules may share a name.
    ///
    /// # Errors
    /// The first rule that cannot be used.
    pub fn new<S: AsRef<str>>(rules: &[S]) -> Result<Self, ClassError> {
        let mut classes = Self::default();
        for rule in rules {
            let rule = rule.as_ref();
            let (name, expression) =
                rule.split_once('=').ok_or_else(|| ClassError::NoName(rule.to_owned()))?;
            let regex = Regex::new(expression).map_err(|error| ClassError::Regex {
                name: name.to_owned(),
                problem: regex_problem(&error),
            })?;
            let class = classes.intern(name)?;
            classes.rules.push((class, regex));
        }
        Ok(classes)
    }

    fn intern(&mut self, name: &str) -> Result<u8, ClassError> {
        if let Some(known) = self.names.iter().position(|n| n == name) {
            return Ok(known as u8);
        }
        if name.is_empty() || name.len() > CLASS_NAME_MAX_BYTES || name.contains(char::is_control) {
            return Err(ClassError::Name(name.escape_debug().to_string()));
        }
        if self.names.len() == CLASSES_MAX {
            return Err(ClassError::TooMany(name.to_owned()));
        }
        self.names.push(name.to_owned());
        Ok((self.names.len() - 1) as u8)
    }

    /// The class of a request; a tag wins over the rules. Compute it once for a request that is
    /// sent often.
    ///
    /// # Errors
    /// When the tag is not a usable name, or the 65th.
    pub fn classify(
        &mut self,
        tag: Option<&str>,
        target: &[u8],
        body: &[u8],
    ) -> Result<u8, ClassError> {
        if let Some(tag) = tag {
            return self.intern(tag);
        }
        let hit = self.rules.iter().find(|(_, r)| r.is_match(target) || r.is_match(body));
        if let Some((class, _)) = hit {
            return Ok(*class);
        }
        if let Some(rest) = self.rest {
            return Ok(rest);
        }
        let rest = self.intern(if self.names.is_empty() { ALL } else { OTHER })?;
        self.rest = Some(rest);
        Ok(rest)
    }

    /// The names, by index. Once tags have been met among requests without one, the class of those
    /// that came first without a tag is called `other` too.
    #[must_use]
    pub fn names(&self) -> Vec<&str> {
        let alone = self.names.len() <= 1;
        let is_rest = |index| self.rest == Some(index as u8);
        let named = self.names.iter().enumerate().map(|(index, name)| match name.as_str() {
            ALL if is_rest(index) && !alone => OTHER,
            name => name,
        });
        named.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_rule_that_matches_wins() {
        let mut classes = Classes::new(&["fuzzy=fuzzy", "body=^\\{", "s=^/search"]).unwrap();
        assert_eq!(classes.classify(None, b"/search?fuzzy", b"").unwrap(), 0);
        assert_eq!(classes.classify(None, b"/search", b"{}").unwrap(), 1);
        assert_eq!(classes.classify(None, b"/search", b"").unwrap(), 2);
        assert_eq!(classes.classify(Some("s"), b"/fuzzy", b"").unwrap(), 2);
        assert_eq!(classes.classify(None, b"/x", b"").unwrap(), 3);
        assert_eq!(classes.names(), ["fuzzy", "body", "s", "other"]);
    }

    #[test]
    fn without_rules_there_is_one_class_until_a_tag_comes() {
        let mut classes = Classes::new::<&str>(&[]).unwrap();
        assert_eq!(classes.classify(None, b"/", b"").unwrap(), 0);
        assert_eq!(classes.names(), ["all"]);
        assert_eq!(classes.classify(Some("a"), b"/", b"").unwrap(), 1);
        assert_eq!(classes.names(), ["other", "a"]);
    }

    #[test]
    fn wrong_rules_and_too_many_classes_are_told() {
        assert!(Classes::new(&["abc"]).unwrap_err().to_string().contains("write NAME=REGEX"));
        assert!(Classes::new(&["=x"]).unwrap_err().to_string().contains("class name ''"));
        let error = Classes::new(&["a=("]).unwrap_err().to_string();
        assert!(
            error.contains("--class a: invalid regular expression: unclosed group")
                && !error.contains('\n'),
            "{error}"
        );
        let mut classes = Classes::default();
        for i in 0..64 {
            classes.classify(Some(&format!("c{i}")), b"", b"").unwrap();
        }
        let error = classes.classify(Some("c64"), b"", b"").unwrap_err();
        assert!(error.to_string().contains("'c64' is one too many"));
    }
}
