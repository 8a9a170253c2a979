//! Header lines that cannot break a request.

/// Returns true if a text is a token of RFC 9110, as methods and header names must be.
#[must_use]
pub fn is_token(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    !text.is_empty() && text.bytes().all(allowed)
}

/// Headers that follow from the request itself; one of the user's own would contradict them.
const OWN_HEADERS: [(&str, &str); 3] = [
    ("Content-Length", "it is computed from the body"),
    ("Transfer-Encoding", "bodies are sent whole, with Content-Length"),
    ("Connection", "choose whether connections are kept with the load's own option"),
];

/// Checks one header of a user's.
///
/// # Errors
/// One line: what is wrong and what to do.
pub fn check_header(name: &str, value: &str) -> Result<(), String> {
    check_form(name, value)?;
    match OWN_HEADERS.iter().find(|(own, _)| own.eq_ignore_ascii_case(name)) {
        Some((own, why)) => Err(format!("header {own} cannot be set: {why}")),
        None => Ok(()),
    }
}

/// Checks that a header is one well-formed line.
fn check_form(name: &str, value: &str) -> Result<(), String> {
    if !is_token(name) {
        let shown = name.escape_debug();
        return Err(format!("header name '{shown}' is not one word of letters, digits and '-'"));
    }
    let control = |c: &char| (c.is_control() && *c != '\t') || *c == '\u{7f}';
    if let Some(bad) = value.chars().find(control) {
        let shown = bad.escape_debug();
        return Err(format!(
            "header {name}: control character ({shown}) in its value; a header is one line"
        ));
    }
    Ok(())
}

/// Checks a header line that is sent verbatim, and returns its name. `Connection` is allowed, because the original sends
/// it too; what says where the body ends is not.
///
/// # Errors
/// As [`parse_header`].
pub fn check_verbatim(line: &str) -> Result<&str, String> {
    let (name, value) = split_header(line)?;
    if name.eq_ignore_ascii_case("Connection") {
        check_form(name, value)?;
    } else {
        check_header(name, value)?;
    }
    Ok(name)
}

fn split_header(line: &str) -> Result<(&str, &str), String> {
    line.split_once(':').ok_or_else(|| {
        let shown = line.escape_debug();
        format!("header '{shown}' has no colon; write it as 'Name: value'")
    })
}

/// Reads `Name: value`, as users write it after `--header` or `-H`.
///
/// # Errors
/// As [`check_header`], and when there is no colon.
pub fn parse_header(line: &str) -> Result<(String, String), String> {
    let (name, value) = split_header(line)?;
    let value = value.trim_matches([' ', '\t']);
    check_header(name, value)?;
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_headers_pass_and_are_trimmed() {
        let parsed = parse_header("X-Id:  a\tb: c ").unwrap();
        assert_eq!(parsed, ("X-Id".into(), "a\tb: c".into()));
        assert_eq!(parse_header("X-Empty:").unwrap().1, "");
    }

    #[test]
    fn a_verbatim_line_may_set_connection() {
        assert_eq!(check_verbatim("connection:close"), Ok("connection"));
        assert!(parse_header("Connection: close").unwrap_err().contains("cannot be set"));
        assert!(check_verbatim("Connection: a\rb").unwrap_err().contains("control character"));
    }

    #[test]
    fn bad_headers_are_told_in_one_line() {
        let cases =
            ["no colon", "a b: c", ": c", "X: a\nY: b", "X: a\rb", "X: \0", "content-length: 5"];
        for bad in cases {
            let error = parse_header(bad).unwrap_err();
            assert!(!error.contains('\n'), "{bad:?}: {error}");
            assert_eq!(check_verbatim(bad), Err(error));
        }
    }
}
