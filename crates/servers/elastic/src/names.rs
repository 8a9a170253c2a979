//! Names of indices, and patterns with `*`.

use super::error::ElasticError;

/// The longest name of an index, in bytes.
const MAX_BYTES: usize = 255;

/// Checks the name of a new index.
///
/// # Errors
/// When Elasticsearch would not take it.
pub(crate) fn check(name: &str) -> Result<(), ElasticError> {
    let bad = |what: &str| {
        let reason = format!("Invalid index name [{name}], {what}");
        let error = ElasticError::new(400, "invalid_index_name_exception", reason);
        Err(error.with("index_uuid", "_na_".into()).with("index", name.into()))
    };
    if name.is_empty() || name == "." || name == ".." {
        return bad("must not be '.' or '..'");
    }
    if let Some(c) = name.chars().find(|c| " \"\\<|>,?*/#:".contains(*c) || c.is_control()) {
        return bad(&format!(
            "must not contain the following characters [ , \", *, \\, <, |, ,, >, /, ?], nor [{c}]"
        ));
    }
    if name.starts_with(['_', '-', '+']) {
        return bad("must not start with '_', '-', or '+'");
    }
    if name.chars().any(char::is_uppercase) {
        return bad("must be lowercase");
    }
    if name.len() > MAX_BYTES {
        return bad(&format!("index name is too long, ({} > {MAX_BYTES})", name.len()));
    }
    Ok(())
}

/// Returns true if a name matches a pattern in which `*` is anything.
pub(crate) fn matches(pattern: &str, name: &str) -> bool {
    let Some((head, rest)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut name) = name.strip_prefix(head) else { return false };
    let mut parts: Vec<&str> = rest.split('*').collect();
    let last = parts.pop().unwrap_or("");
    for part in parts {
        match name.find(part) {
            Some(at) => name = &name[at + part.len()..],
            None => return false,
        }
    }
    name.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match() {
        for (pattern, name, wanted) in [
            ("*", "", true),
            ("log-*", "log-1", true),
            ("log-*", "blog-1", false),
            ("*-1", "log-1", true),
            ("a*b*c", "a1b2c", true),
            ("a*b*c", "a1c2b", false),
            ("a*a", "a", false),
            ("x", "x", true),
        ] {
            assert_eq!(matches(pattern, name), wanted, "{pattern} {name}");
        }
        assert!(check("good-1.x").is_ok());
        for bad in ["", "_x", "A", "a b", "a*", "..", &"x".repeat(256)] {
            assert!(check(bad).is_err(), "{bad}");
        }
    }
}
