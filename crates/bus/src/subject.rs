//! Subjects: tokens with dots between them, and the wildcards of subscriptions, as in NATS.

use crate::bus::BusError;

/// Longest subject in bytes. A NATS server has no limit of its own below its line of 4 KiB.
pub const SUBJECT_BYTES_MAX: usize = 512;

/// Checks a subject that is published to.
pub fn check_published(subject: &str) -> Result<(), BusError> {
    check(subject)?;
    match subject.split('.').any(|token| matches!(token, "*" | ">")) {
        true => Err(wrong(subject, "wildcards are for subscriptions")),
        false => Ok(()),
    }
}

/// Checks a subject that is subscribed to.
pub fn check_subscribed(subject: &str) -> Result<(), BusError> {
    check(subject)?;
    let mut tokens = subject.split('.').rev().skip(1);
    match tokens.any(|token| token == ">") {
        true => Err(wrong(subject, "'>' can only be the last token")),
        false => Ok(()),
    }
}

fn check(subject: &str) -> Result<(), BusError> {
    if subject.len() > SUBJECT_BYTES_MAX {
        return Err(wrong(subject, "it is longer than 512 bytes"));
    }
    if subject.split('.').any(str::is_empty) {
        return Err(wrong(subject, "a token is empty"));
    }
    // A blank or a line end would end the subject in the protocol, and what follows would be read as something else.
    if subject.chars().any(|c| c.is_whitespace() || c.is_control()) {
        return Err(wrong(subject, "it has a blank or a control character"));
    }
    Ok(())
}

fn wrong(subject: &str, why: &'static str) -> BusError {
    let shown = subject.chars().take(80).flat_map(char::escape_debug).collect();
    BusError::Subject { subject: shown, why }
}

/// Returns true if the subject of a subscription has a wildcard.
pub fn has_wildcard(pattern: &str) -> bool {
    pattern.split('.').any(|token| matches!(token, "*" | ">"))
}

/// Returns true if a subscription to `pattern` receives what is published to `subject`.
pub fn matches(pattern: &str, subject: &str) -> bool {
    let mut tokens = subject.split('.');
    for wanted in pattern.split('.') {
        match (wanted, tokens.next()) {
            (">", Some(_)) => return true,
            ("*", Some(_)) => {}
            (wanted, Some(token)) if wanted == token => {}
            _ => return false,
        }
    }
    tokens.next().is_none()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_stand_for_one_token_or_for_the_rest() {
        for (pattern, subject, expected) in [
            ("a.b", "a.b", true),
            ("a.b", "a.b.c", false),
            ("a.b.c", "a.b", false),
            ("a.*", "a.b", true),
            ("a.*", "a", false),
            ("a.*", "a.b.c", false),
            ("*.b", "a.b", true),
            ("a.>", "a.b", true),
            ("a.>", "a.b.c", true),
            ("a.>", "a", false),
            (">", "a.b", true),
            ("a*", "ab", false),
        ] {
            assert_eq!(matches(pattern, subject), expected, "{pattern} and {subject}");
        }
    }

    #[test]
    fn rejects_subjects_that_the_protocol_would_read_as_something_else() {
        for subject in ["", "a..b", ".a", "a.", "a b", "a\r\nPUB x 0", "a\tb", &"a".repeat(513)] {
            assert!(check_published(subject).is_err(), "{subject:?}");
            assert!(check_subscribed(subject).is_err(), "{subject:?}");
        }
        assert!(check_published("a.*").is_err());
        assert!(check_subscribed("a.>.b").is_err());
        assert!(check_subscribed("a.*.>").is_ok());
        assert!(check_published("plimsoll.run-7.agent_3").is_ok());
    }
}
