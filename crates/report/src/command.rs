//! The command line of a run, as records keep it and as a shell reads it.

use crate::plain::without_secrets;
use plimsoll_core::secrets::{is_secret_header, without_remembered};

/// The replacement of a secret.
pub const LEFT_OUT: &str = "***";

/// Returns the words of a command line with secrets left out: values of headers, passwords and secret parameters in addresses
/// and bodies, and values that were read from the environment and from files of headers.
#[must_use]
pub fn kept(words: &[String]) -> Vec<String> {
    words.iter().map(|word| kept_word(word)).collect()
}

fn kept_word(word: &str) -> String {
    // `--header=Name: value` and `-HName: value` are one word each.
    let (flag, value) = match (word.split_once('='), word.get(2..)) {
        (Some((flag, value)), _) if flag.starts_with("--") => (&word[..=flag.len()], value),
        (_, Some(value)) if word.starts_with('-') && !word.starts_with("--") => (&word[..2], value),
        _ => ("", word),
    };
    format!("{flag}{}", kept_value(value))
}

fn kept_value(value: &str) -> String {
    if let Some((name, secret)) = value.split_once(':') {
        let is_header =
            name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
        // A value that comes from the environment is not a secret by itself.
        let is_variable = secret.trim().starts_with("${") && secret.trim().ends_with('}');
        if is_header && !is_variable && is_secret_header(name) {
            return format!("{name}: {LEFT_OUT}");
        }
        if is_header && is_variable {
            return value.to_owned();
        }
    }
    without_remembered(without_secrets(value))
}

/// Returns the words as a POSIX shell reads them back: quoted where they must be.
#[must_use]
pub fn shell(words: &[String]) -> String {
    words.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ")
}

fn quoted(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,@%+".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &[&str]) -> Vec<String> {
        text.iter().map(|word| (*word).to_owned()).collect()
    }

    #[test]
    fn secrets_of_a_command_line_are_left_out() {
        let cases = [
            ("Authorization: Bearer abc", "Authorization: ***"),
            ("--header=X-Auth-Token: abc", "--header=X-Auth-Token: ***"),
            ("-HCookie: a=b", "-HCookie: ***"),
            ("X-Api-Key: ${KEY}", "X-Api-Key: ${KEY}"),
            ("http://me:pw@host/?token=abc&q=1", "http://***@host/?token=***&q=1"),
            ("password=hunter2&user=me", "password=***&user=me"),
            ("{\"password\": \"hunter2\"}", "{\"password\": \"***\"}"),
            ("volt://me:pw@host:21212", "volt://***@host:21212"),
            ("--rate", "--rate"),
            ("p95=5ms", "p95=5ms"),
        ];
        for (word, shown) in cases {
            assert_eq!(kept(&words(&[word])), [shown]);
        }
    }

    #[test]
    fn a_shell_reads_the_words_back() {
        let odd =
            words(&["plimsoll", "load", "it's", "a b", "$HOME", "", "\n", "p95{class=a}=5ms", "*"]);
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("printf '%s\\0' {}", shell(&odd))])
            .output()
            .unwrap();
        let read = String::from_utf8(output.stdout).unwrap();
        assert_eq!(read.split_terminator('\0').collect::<Vec<_>>(), odd);
        assert_eq!(
            shell(&words(&["load", "http://h/", "--slo", "p95=5ms"])),
            "load http://h/ --slo p95=5ms"
        );
    }
}
