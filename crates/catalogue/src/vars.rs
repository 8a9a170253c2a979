//! Variables of a job: what the user gave, what the job defaults to, and how they get into arguments.

use super::near_miss::unknown;
use anyhow::Result;
use plimsoll_job::usage::usage;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// Values by name.
pub type Values = BTreeMap<String, String>;

/// Names that the job's run gives, beside its variables.
pub const GIVEN: [&str; 4] = ["data", "target_url", "target_host", "target_port"];

/// A variable as a job describes it.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// Its value when the user gives none.
    #[serde(default)]
    pub default: String,
    /// True if the user must give one.
    #[serde(default)]
    pub required: bool,
    /// A value that means the same as an empty one, for scripts that write it.
    pub absent: Option<String>,
    /// One line of help.
    #[serde(default)]
    pub help: String,
}

/// An argument of a command: one text, or a group that is left out when a variable in it is empty.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Argument {
    /// `"-n"`, `"{clients}"`, `"{data}/queries.txt"`, or `"{extra_args...}"`, which becomes as many
    /// arguments as it has words.
    One(String),
    /// `["--slo", "{slo}"]`.
    Group(Vec<String>),
}

impl Argument {
    fn texts(&self) -> &[String] {
        match self {
            Argument::One(text) => std::slice::from_ref(text),
            Argument::Group(texts) => texts,
        }
    }
}

/// A part of an argument's text.
#[derive(Debug, PartialEq)]
enum Part<'a> {
    Text(String),
    Variable(&'a str),
}

/// Cuts `a{b}c`; `{{` and `}}` are braces.
fn parts(text: &str) -> Result<Vec<Part<'_>>, String> {
    let (mut parts, mut plain, mut rest) = (Vec::new(), String::new(), text);
    while let Some(at) = rest.find(['{', '}']) {
        plain.push_str(&rest[..at]);
        let brace = &rest[at..=at];
        rest = &rest[at + 1..];
        if let Some(after) = rest.strip_prefix(brace) {
            plain.push_str(brace);
            rest = after;
        } else if brace == "}" {
            return Err(format!("'{text}': a '}}' without a '{{'; write }}}} for a brace"));
        } else {
            let end = rest.find('}');
            let end = end.ok_or_else(|| format!("'{text}': a '{{' that is not closed"))?;
            parts.push(Part::Text(std::mem::take(&mut plain)));
            parts.push(Part::Variable(&rest[..end]));
            rest = &rest[end + 1..];
        }
    }
    plain.push_str(rest);
    parts.push(Part::Text(plain));
    Ok(parts)
}

/// The name in `{name...}`, when that is the whole of the text.
fn spread(text: &str) -> Option<&str> {
    text.strip_prefix('{')?.strip_suffix("...}").filter(|name| !name.contains(['{', '}']))
}

/// The names that a command's arguments use.
///
/// # Errors
/// A brace too many or too few, in words.
pub fn names(arguments: &[Argument]) -> Result<Vec<String>, String> {
    let mut names = Vec::new();
    for text in arguments.iter().flat_map(Argument::texts) {
        if let Some(name) = spread(text) {
            names.push(name.to_owned());
            continue;
        }
        for part in parts(text)? {
            if let Part::Variable(name) = part {
                names.push(name.to_owned());
            }
        }
    }
    Ok(names)
}

/// Puts values into arguments. A name without a value stays as it is written, which a dry run shows.
///
/// # Errors
/// An open quotation mark in a value that is cut into words.
pub fn substitute(arguments: &[Argument], values: &Values) -> Result<Vec<String>> {
    let mut out = Vec::new();
    for argument in arguments {
        if matches!(argument, Argument::Group(_)) {
            let used = names(std::slice::from_ref(argument)).map_err(usage)?;
            if used.iter().any(|name| values.get(name).is_some_and(String::is_empty)) {
                continue;
            }
        }
        for text in argument.texts() {
            if let Some(name) = spread(text) {
                let value = values.get(name).map_or("", String::as_str);
                out.extend(words(value).map_err(|problem| usage(format!("{name}: {problem}")))?);
            } else {
                let mut whole = String::new();
                for part in parts(text).map_err(usage)? {
                    match part {
                        Part::Text(text) => whole.push_str(&text),
                        Part::Variable(name) => match values.get(name) {
                            Some(value) => whole.push_str(value),
                            None => whole.push_str(&format!("{{{name}}}")),
                        },
                    }
                }
                out.push(whole);
            }
        }
    }
    Ok(out)
}

/// Cuts a text into words at blanks; quotation marks of both kinds keep blanks, a backslash the next character.
///
/// # Errors
/// A quotation mark that is not closed.
pub fn words(text: &str) -> Result<Vec<String>, String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    let mut characters = text.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            (c, Some(open)) if c == open => quote = None,
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            ('\\', None | Some('"')) => {
                word.get_or_insert_default().push(characters.next().unwrap_or('\\'));
            }
            (c, None) if c.is_whitespace() => words.extend(word.take()),
            (c, _) => word.get_or_insert_default().push(c),
        }
    }
    match quote {
        Some(open) => Err(format!("a quotation mark {open} is not closed in: {text}")),
        None => {
            words.extend(word);
            Ok(words)
        }
    }
}

/// Reads the values of `-i`: `key=value`, or a JSON object.
///
/// # Errors
/// Neither of the two, or a value that is no text, number or truth value.
pub fn inputs(given: &[String]) -> Result<Values> {
    let mut values = Values::new();
    for text in given {
        if text.trim_start().starts_with('{') {
            let object: BTreeMap<String, Value> = serde_json::from_str(text).map_err(|error| {
                usage(format!("-i '{text}': {error}; write '{{\"key\": \"value\"}}' or key=value"))
            })?;
            for (key, value) in object {
                let value = match value {
                    Value::String(text) => text,
                    Value::Number(number) => number.to_string(),
                    Value::Bool(truth) => truth.to_string(),
                    other => {
                        return Err(usage(format!(
                            "-i: {key} is {other}; a variable is a text, a number, true or false"
                        )));
                    }
                };
                values.insert(key, value);
            }
        } else {
            let (key, value) =
                text.split_once('=').filter(|(key, _)| !key.trim().is_empty()).ok_or_else(
                    || usage(format!("-i '{text}': write key=value, or '{{\"key\": \"value\"}}'")),
                )?;
            values.insert(key.trim().to_owned(), value.to_owned());
        }
    }
    Ok(values)
}

/// The values of a job's variables.
///
/// # Errors
/// A name that the job does not have, or a mandatory variable without a value.
pub fn resolve(
    job: &str,
    variables: &BTreeMap<String, Variable>,
    given: &Values,
) -> Result<Values> {
    let known: Vec<&str> = variables.keys().map(String::as_str).collect();
    if let Some(name) = given.keys().find(|name| !variables.contains_key(*name)) {
        return Err(unknown(&format!("variable of {job}"), name, &known));
    }
    let value = |(name, variable): (&String, &Variable)| {
        let value = match given.get(name) {
            Some(value) if Some(value) == variable.absent.as_ref() => String::new(),
            Some(value) => value.clone(),
            None if variable.required => {
                let help = if variable.help.is_empty() { "no default" } else { &variable.help };
                return Err(usage(format!(
                    "{job} needs {name} ({help}); give it with -i {name}=VALUE"
                )));
            }
            None => variable.default.clone(),
        };
        Ok((name.clone(), value))
    };
    variables.iter().map(value).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> Argument {
        Argument::One(text.to_owned())
    }

    fn values(pairs: &[(&str, &str)]) -> Values {
        pairs.iter().map(|(k, v)| ((*k).to_owned(), (*v).to_owned())).collect()
    }

    #[test]
    fn values_with_blanks_stay_one_argument_and_spread_ones_become_several() {
        let arguments = [
            one("-q"),
            one("{file}"),
            one("a{{{x}}}"),
            Argument::Group(vec!["--slo".to_owned(), "{slo}".to_owned()]),
            one("{extra...}"),
            one("{later}"),
        ];
        let given =
            values(&[("file", "my file"), ("x", "1"), ("slo", ""), ("extra", "-q 100 'a b'")]);
        let made = substitute(&arguments, &given).unwrap();
        assert_eq!(made, ["-q", "my file", "a{1}", "-q", "100", "a b", "{later}"]);
        let with = values(&[("slo", "p95=1s"), ("extra", "")]);
        assert_eq!(substitute(&arguments[3..5], &with).unwrap(), ["--slo", "p95=1s"]);
        assert_eq!(names(&arguments).unwrap(), ["file", "x", "slo", "extra", "later"]);
        for wrong in ["{open", "close}"] {
            assert!(names(&[one(wrong)]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn words_are_cut_as_a_shell_cuts_them() {
        let cut = |text| words(text).unwrap();
        assert_eq!(cut(" -q 100,200  -d 5 "), ["-q", "100,200", "-d", "5"]);
        assert_eq!(cut(r#"'a b' "c \" d" e\ f ''"#), ["a b", "c \" d", "e f", ""]);
        assert!(cut("").is_empty() && words("'a").is_err());
    }

    #[test]
    fn both_ways_to_give_a_value() {
        let json = r#"{"num_instances": 2, "extra_args": "-q 100", "x": true}"#.to_owned();
        let read = inputs(&[json, "x=a=b".to_owned()]).unwrap();
        assert_eq!(read, values(&[("num_instances", "2"), ("extra_args", "-q 100"), ("x", "a=b")]));
        for wrong in ["{\"a\"", "{\"a\": [1]}", "{\"a\": null}", "nothing", "=x"] {
            assert!(inputs(&[wrong.to_owned()]).is_err(), "{wrong}");
        }
    }

    #[test]
    fn defaults_mandatory_ones_and_absent_ones() {
        let variables = BTreeMap::from([
            ("host".to_owned(), Variable { required: true, ..Variable::default() }),
            (
                "n".to_owned(),
                Variable {
                    default: "3".to_owned(),
                    absent: Some("-1".to_owned()),
                    ..Variable::default()
                },
            ),
        ]);
        let told = |given: &Values| resolve("j", &variables, given).unwrap_err().to_string();
        assert!(told(&Values::new()).contains("j needs host"));
        assert!(told(&values(&[("hostt", "x")])).contains("did you mean 'host'?"));
        let made = resolve("j", &variables, &values(&[("host", "h"), ("n", "-1")])).unwrap();
        assert_eq!(made, values(&[("host", "h"), ("n", "")]));
        let made = resolve("j", &variables, &values(&[("host", "h")])).unwrap();
        assert_eq!(made["n"], "3");
    }
}
