//! The value of `--watch`: what is to be watched, as the user writes it.

use plimsoll_record::resources::GENERATOR;
use std::fmt;
use std::str::FromStr;

/// Longest label, characters: it is the head of a line of the page.
const LABEL_CHARS_MAX: usize = 40;

/// One value of `--watch`, such as `4711`, `nginx`, `nginx.service` or `db=postgres`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Watch {
    /// Name in record and page, if the user gave one.
    pub label: Option<String>,
    /// The thing itself.
    pub wanted: Wanted,
}

/// A thing to watch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Wanted {
    /// Nothing at all, not even the generator.
    Nothing,
    /// A process, by its number.
    Pid(u32),
    /// Processes by their name, or a control group by its path or unit.
    Named(String),
}

impl FromStr for Watch {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (label, wanted) = match text.split_once('=') {
            Some((label, wanted)) => (Some(label), wanted),
            None => (None, text),
        };
        if wanted.is_empty() {
            return Err("expected a PID, a process name or a control group".to_owned());
        }
        if let Some(label) = label {
            check_label(label)?;
        }
        let wanted = match wanted {
            "none" if label.is_none() => Wanted::Nothing,
            digits if digits.bytes().all(|byte| byte.is_ascii_digit()) => {
                let pid = digits.parse().ok().filter(|&pid| pid > 0 && i32::try_from(pid).is_ok());
                Wanted::Pid(pid.ok_or_else(|| format!("'{digits}' cannot be a PID"))?)
            }
            name => Wanted::Named(name.to_owned()),
        };
        Ok(Self { label: label.map(str::to_owned), wanted })
    }
}

fn check_label(label: &str) -> Result<(), String> {
    let fits = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | ':');
    if label == GENERATOR {
        return Err(format!("the label '{GENERATOR}' is plimsoll's own; use another one"));
    }
    if label.is_empty() || label.chars().count() > LABEL_CHARS_MAX || !label.chars().all(fits) {
        return Err(format!(
            "invalid label '{label}'; use 1 to {LABEL_CHARS_MAX} letters, digits, '_', '-', '.' or ':'"
        ));
    }
    Ok(())
}

/// As it was written.
impl fmt::Display for Watch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(label) = &self.label {
            write!(f, "{label}=")?;
        }
        match &self.wanted {
            Wanted::Nothing => f.write_str("none"),
            Wanted::Pid(pid) => write!(f, "{pid}"),
            Wanted::Named(name) => f.write_str(name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_a_pid_or_a_name_with_an_optional_label() {
        for (text, label, wanted) in [
            ("4711", None, Wanted::Pid(4711)),
            ("nginx", None, Wanted::Named("nginx".to_owned())),
            ("db=postgres", Some("db"), Wanted::Named("postgres".to_owned())),
            ("web-1=12", Some("web-1"), Wanted::Pid(12)),
            ("/sys/fs/cgroup/a.slice", None, Wanted::Named("/sys/fs/cgroup/a.slice".to_owned())),
            ("none", None, Wanted::Nothing),
        ] {
            let watch: Watch = text.parse().unwrap();
            assert_eq!((watch.label.as_deref(), &watch.wanted), (label, &wanted), "{text}");
            assert_eq!(watch.to_string(), text);
        }
    }

    #[test]
    fn a_value_that_names_nothing_is_rejected_with_what_to_write() {
        for (text, word) in [
            ("", "expected a PID"),
            ("x=", "expected a PID"),
            ("=nginx", "invalid label ''"),
            ("a b=nginx", "letters, digits"),
            ("generator=12", "use another one"),
            ("0", "cannot be a PID"),
            ("99999999999", "cannot be a PID"),
        ] {
            let error = text.parse::<Watch>().unwrap_err();
            assert!(error.contains(word), "{text}: {error}");
        }
    }
}
