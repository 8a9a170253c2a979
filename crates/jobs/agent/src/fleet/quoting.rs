//! Values in the languages of the forms, so that no value becomes a part of the language; and templates with places for them.

/// Quotes a text as one word of a POSIX shell.
pub fn shell(text: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._/:@=+,-".contains(sign);
    match !text.is_empty() && text.chars().all(is_plain) {
        true => text.to_owned(),
        false => format!("'{}'", text.replace('\'', r"'\''")),
    }
}

/// Quotes a text as a YAML string, in double quotes and in ASCII.
pub fn yaml(text: &str) -> String {
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            ' '..='~' => quoted.push(sign),
            _ => quoted.push_str(&format!("\\U{:08X}", u32::from(sign))),
        }
    }
    quoted + "\""
}

/// Quotes a text as a YAML string of a Compose file, in which `$` begins a variable.
pub fn compose(text: &str) -> String {
    yaml(&text.replace('$', "$$"))
}

/// Quotes a text as one word of a unit's command line, in which `%` begins a specifier and `$` a variable.
pub fn unit(text: &str) -> String {
    let is_plain = |sign: char| sign.is_ascii_alphanumeric() || "._/:@=+,-*".contains(sign);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut quoted = String::from("\"");
    for sign in text.chars() {
        match sign {
            '"' | '\\' => quoted.extend(['\\', sign]),
            '%' | '$' => quoted.extend([sign, sign]),
            ' '..='~' => quoted.push(sign),
            _ => quoted.push_str(&format!("\\U{:08x}", u32::from(sign))),
        }
    }
    quoted + "\""
}

/// Fills the places of a template, `@NAME@`. A place that is alone in its line takes as many lines as its value has, with the same
/// indentation, or none. Values are not read again.
pub fn fill(template: &str, values: &[(&str, String)]) -> String {
    let mut filled = String::with_capacity(template.len());
    for line in template.lines() {
        let content = line.trim_start();
        let indentation = &line[..line.len() - content.len()];
        let whole = values.iter().find(|(name, _)| content == format!("@{name}@"));
        match whole {
            Some((_, value)) => {
                for line in value.lines() {
                    filled.push_str(format!("{indentation}{line}").trim_end());
                    filled.push('\n');
                }
            }
            None => {
                let mut whole = String::new();
                fill_line(&mut whole, line, values);
                filled.push_str(whole.trim_end());
                filled.push('\n');
            }
        }
    }
    filled
}

fn fill_line(filled: &mut String, line: &str, values: &[(&str, String)]) {
    let mut rest = line;
    while let Some(at) = rest.find('@') {
        filled.push_str(&rest[..at]);
        let inside = &rest[at + 1..];
        let found = values.iter().find(|(name, _)| {
            inside.strip_prefix(name).is_some_and(|behind| behind.starts_with('@'))
        });
        match found {
            Some((name, value)) => {
                filled.push_str(value);
                rest = &inside[name.len() + 1..];
            }
            None => {
                filled.push('@');
                rest = inside;
            }
        }
    }
    filled.push_str(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::Command;

    /// Texts that would do harm outside of quotes.
    const HOSTILE: [&str; 12] = [
        "",
        " ",
        "$(touch owned)",
        "`touch owned`",
        "'; touch owned; '",
        "\"; touch owned; \"",
        "a\\",
        "a\nb",
        "- x: {y: z}\n# \u{85}\u{2028}é",
        "*& !x %y @z",
        "-n",
        "%h $HOME ${HOME} $$",
    ];

    #[test]
    fn a_shell_reads_a_quoted_word_as_it_was() {
        for text in HOSTILE {
            let script = format!("printf '%s.' {}", shell(text));
            let printed = Command::new("sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(printed.stdout).unwrap(), format!("{text}."), "{script}");
            let tilde = shell(&format!("~{text}"));
            assert!(tilde.starts_with('\''), "{tilde}");
        }
    }

    #[test]
    fn quoted_values_stay_in_one_line() {
        for text in HOSTILE {
            for quoted in [yaml(text), compose(text), unit(text)] {
                assert!(!quoted.is_empty() && quoted.is_ascii(), "{quoted}");
                assert!(!quoted.contains('\n'), "{quoted}");
            }
        }
        assert_eq!(compose("a$b\"c"), r#""a$$b\"c""#);
        assert_eq!(unit("a%b $c"), r#""a%%b $$c""#);
    }

    #[test]
    fn places_are_filled_once() {
        let values = [("A", "@B@".to_owned()), ("B", "x\ny".to_owned()), ("C", String::new())];
        assert_eq!(
            fill("a=@A@, u@h @D@\n  @B@\n  @C@\nend\n", &values),
            "a=@B@, u@h @D@\n  x\n  y\nend\n"
        );
    }
}
