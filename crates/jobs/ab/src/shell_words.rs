//! A command line in one value, split into words as a POSIX shell splits it, without expansions.

/// Splits at blanks; quotes and backslashes protect.
///
/// # Errors
/// A quote that is not closed.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => {
                let next = chars.next().ok_or_else(|| format!("'{text}' ends with a backslash"))?;
                let word = word.get_or_insert_default();
                // Between double quotes a backslash stands for itself, except in front of these.
                if quote.is_some() && !matches!(next, '$' | '`' | '"' | '\\') {
                    word.push('\\');
                }
                word.push(next);
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(open) = quote {
        return Err(format!("'{text}': the quote {open} is not closed"));
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::split;

    #[test]
    fn words_are_split_as_a_shell_does() {
        assert_eq!(split("a  b\tc").unwrap(), ["a", "b", "c"]);
        assert_eq!(
            split(r#"--header 'K: v w' "x \" y" z\ z ''"#).unwrap(),
            ["--header", "K: v w", "x \" y", "z z", ""]
        );
        // A regular expression means the same as in a shell.
        assert_eq!(
            split(r#""num=\d+" "\$x \\" 'a\d' a\d"#).unwrap(),
            [r"num=\d+", r"$x \", r"a\d", "ad"]
        );
        assert!(split(" ").unwrap().is_empty());
        assert!(split("it's").unwrap_err().contains("is not closed"));
        assert!(split("a\\").unwrap_err().contains("backslash"));
    }
}
