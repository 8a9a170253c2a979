//! TOML files of users: values of the environment put in, and one line with file, line and field for what is wrong.

use plimsoll_workloads::edit_distance::near_miss;
use serde::de::DeserializeOwned;
use std::ops::Range;
use toml::de::{DeString, DeTable, DeValue};

/// Most names that an error lists; a longer list is cut.
const LISTED_MAX: usize = 12;
/// Fields of headers, in the words of flags, of records, and of `fbench`.
const HEADER_FIELDS: [&str; 3] = ["header", "headers", "H"];

/// Reads a file's text; `shown` is its name for messages.
///
/// # Errors
/// The line about wrong TOML, an unknown field or a wrong value.
pub fn read<T: DeserializeOwned>(text: &str, shown: &str) -> Result<T, String> {
    toml::from_str(text).map_err(|error| wrong(text, shown, &error))
}

/// Returns one line for an error of the TOML parser.
#[must_use]
pub fn wrong(text: &str, shown: &str, error: &toml::de::Error) -> String {
    let message = error.message().replace('\n', " ");
    let start = error.span().map_or(0, |span| span.start);
    let at = sharper(text, start, &message);
    let place = format!("{shown}:{}", line_of(text, at));
    if let Some(unknown) = unknown_field(&message) {
        return format!("{place}: {unknown}");
    }
    if let Some(field) = message.strip_prefix("missing field ") {
        return format!("{place}: field {field} is missing");
    }
    match field_at(text, at) {
        Some(field) => format!("{place}: field `{field}`: {}", plain(&message)),
        None => format!("{place}: {}", plain(&message)),
    }
}

/// The line of a place in a text, from 1.
#[must_use]
pub fn line_of(text: &str, at: usize) -> usize {
    text.bytes().take(at).filter(|byte| *byte == b'\n').count() + 1
}

/// The place that a message is about: the parser may know only the beginning of the table, and the message quotes a word of it.
fn sharper(text: &str, start: usize, message: &str) -> usize {
    let is_key = message.starts_with("unknown field");
    let mark = if is_key { Some('`') } else { message.chars().find(|c| matches!(c, '\'' | '"')) };
    let word = mark.and_then(|mark| message.split(mark).nth(1)).filter(|word| !word.is_empty());
    let (Some(word), Some(rest)) = (word, text.get(start..)) else { return start };
    if rest.starts_with(['"', '\'']) {
        return start;
    }
    let is_whole = |at: usize| {
        let before = rest[..at].chars().next_back();
        let behind = rest[at + word.len()..].trim_start();
        let begins = before.is_none_or(|c| !c.is_alphanumeric() && c != '_' && c != '-');
        begins && (!is_key || behind.starts_with('='))
    };
    rest.match_indices(word)
        .map(|(at, _)| at)
        .find(|at| is_whole(*at))
        .map_or(start, |at| start + at)
}

/// The words about a field that is not known, with the one that was probably meant in the place of all there are.
fn unknown_field(message: &str) -> Option<String> {
    let rest = message.strip_prefix("unknown field `")?;
    let (word, known) = rest.split_once("`, expected ")?;
    let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
    Some(match near_miss(word, &known) {
        Some(near) => format!("unknown field `{word}`; did you mean `{near}`?"),
        None => format!("unknown field `{word}`; expected {}", listed(&known)),
    })
}

/// Names for a sentence: `a`, `b` or `c`.
fn listed(names: &[&str]) -> String {
    let quoted: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
    match quoted.split_last() {
        Some((last, [])) => last.clone(),
        Some(_) if quoted.len() > LISTED_MAX => {
            format!("one of {}, ...", quoted[..LISTED_MAX].join(", "))
        }
        Some((last, others)) => format!("{} or {last}", others.join(", ")),
        None => "nothing here".to_owned(),
    }
}

/// A message of the reader in words for users of the file.
fn plain(message: &str) -> String {
    if let Some(rest) = message.strip_prefix("unknown variant `")
        && let Some((word, known)) = rest.split_once("`, expected ")
    {
        let known: Vec<&str> = known.split('`').skip(1).step_by(2).collect();
        return match near_miss(word, &known) {
            Some(near) => format!("'{word}' is not known; did you mean `{near}`?"),
            None => format!("'{word}' is not known; expected {}", listed(&known)),
        };
    }
    let typed = ["invalid type: ", "invalid value: "];
    let Some(rest) = typed.iter().find_map(|head| message.strip_prefix(head)) else {
        return message.to_owned();
    };
    match rest.rsplit_once(", expected ") {
        Some((found, expected)) => {
            format!("expected {}, not {}", expected_words(expected), found_words(found))
        }
        None => message.to_owned(),
    }
}

fn expected_words(expected: &str) -> String {
    let words = match expected {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65,535",
        "u32" => "a whole number from 0 to 4,294,967,295",
        "u64" | "usize" => "a whole number of at least 0",
        "i64" | "i32" => "a whole number",
        "f64" | "f32" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list in brackets, such as [\"a\", \"b\"]",
        "a string" | "a borrowed string" | "path string" => "a text in quotes",
        "a map" => "a table",
        other if other.starts_with("struct ") || other.starts_with("internally tagged enum") => {
            "a table"
        }
        other => other,
    };
    words.to_owned()
}

fn found_words(found: &str) -> String {
    let quoted = found.split('`').nth(1);
    match (found.split(' ').next().unwrap_or_default(), quoted) {
        ("integer" | "floating" | "boolean", Some(value)) => value.to_owned(),
        ("string", _) => format!("the text {}", found.trim_start_matches("string ")),
        ("sequence", _) => "a list".to_owned(),
        ("map", _) => "a table".to_owned(),
        _ => found.to_owned(),
    }
}

/// The name of the field that a place is in, with the tables around it: `load.clients`.
fn field_at(text: &str, at: usize) -> Option<String> {
    let table = DeTable::parse(text).ok()?;
    within(table.get_ref(), at)
}

fn within(table: &DeTable<'_>, at: usize) -> Option<String> {
    table.iter().find_map(|(key, value)| {
        let inner = match value.get_ref() {
            DeValue::Table(inner) => within(inner, at),
            DeValue::Array(list) => list.iter().find_map(|one| match one.get_ref() {
                DeValue::Table(inner) => within(inner, at),
                _ => None,
            }),
            _ => None,
        };
        let is_here = key.span().contains(&at) || value.span().contains(&at);
        match inner {
            Some(inner) => Some(format!("{}.{inner}", key.get_ref())),
            None => is_here.then(|| key.get_ref().to_string()),
        }
    })
}

/// The line of a field, from 1: `["job", "hooks", "0", "name"]` is the name of the first hook. A field that is missing has the
/// line of the table or list around it, if there is one.
#[must_use]
pub fn line_of_field(text: &str, path: &[&str]) -> Option<usize> {
    let table = DeTable::parse(text).ok()?;
    Some(line_of(text, place_in(table.get_ref(), path)?))
}

fn place_in(table: &DeTable<'_>, path: &[&str]) -> Option<usize> {
    let (first, rest) = path.split_first()?;
    let (key, value) = table.iter().find(|(key, _)| key.get_ref() == first)?;
    let within = match value.get_ref() {
        DeValue::Table(inner) => place_in(inner, rest),
        DeValue::Array(list) => rest.split_first().and_then(|(index, rest)| {
            let one = index.parse().ok().and_then(|index: usize| list.get(index))?;
            let inner = one.get_ref().as_table().and_then(|inner| place_in(inner, rest));
            Some(inner.unwrap_or(one.span().start))
        }),
        _ => None,
    };
    Some(within.unwrap_or(key.span().start))
}

/// Returns a hint for each field at the top of a file that has an old name; `names` are pairs of old and new.
#[must_use]
pub fn renamed(text: &str, shown: &str, names: &[(&str, &str)]) -> Vec<String> {
    let Ok(table) = DeTable::parse(text) else { return Vec::new() };
    let hint = |key: &toml::Spanned<DeString<'_>>| {
        let (old, new) = names.iter().find(|(old, _)| key.get_ref() == old)?;
        let line = line_of(text, key.span().start);
        Some((line, format!("{shown}:{line}: field `{old}` is now `{new}`")))
    };
    let mut hints: Vec<_> = table.get_ref().keys().filter_map(hint).collect();
    hints.sort();
    hints.into_iter().map(|(_, hint)| hint).collect()
}

/// Puts the values of environment variables into the texts of a file, where `${NAME}` stands; `$${` is `${` itself. Lines stay
/// where they are. Headers stay as they are written: they are filled when requests are made, so that no record has the values.
///
/// # Errors
/// The line about a variable that is not set.
pub fn expanded(text: &str, shown: &str) -> Result<String, String> {
    expanded_by(text, shown, &|name| std::env::var(name).ok())
}

fn expanded_by(
    text: &str,
    shown: &str,
    value_of: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    // Wrong TOML is reported when the text is read.
    let Ok(table) = DeTable::parse(text) else { return Ok(text.to_owned()) };
    let mut found = Vec::new();
    within_table(table.get_ref(), &mut found);
    found.sort_by_key(|place| place.span.start);
    let (mut out, mut done) = (String::new(), 0);
    for Place { span, own, is_header } in found {
        let filled = filled(&own, value_of).map_err(|name| {
            let field = field_at(text, span.start).unwrap_or_default();
            let line = line_of(text, span.start);
            format!("{shown}:{line}: field `{field}`: the environment variable {name} is not set")
        })?;
        if is_header {
            continue;
        }
        out.push_str(&text[done..span.start]);
        let line_ends = text[span.clone()].matches('\n').count();
        out.push_str(&quoted(&filled, line_ends));
        done = span.end;
    }
    out.push_str(&text[done..]);
    Ok(out)
}

/// A text of a file that names a variable.
struct Place {
    span: Range<usize>,
    own: String,
    is_header: bool,
}

fn within_table(table: &DeTable<'_>, found: &mut Vec<Place>) {
    for (key, value) in table {
        let is_header = HEADER_FIELDS.contains(&key.get_ref().as_ref());
        texts(value.get_ref(), value.span(), is_header, found);
    }
}

fn texts(value: &DeValue<'_>, span: Range<usize>, is_header: bool, found: &mut Vec<Place>) {
    match value {
        DeValue::String(own) if own.contains("${") => {
            found.push(Place { span, own: own.to_string(), is_header });
        }
        DeValue::Array(list) => {
            list.iter().for_each(|one| texts(one.get_ref(), one.span(), is_header, found));
        }
        DeValue::Table(table) => within_table(table, found),
        _ => {}
    }
}

/// The text with the value of each `${NAME}`, or the first name without a value; `$${` is `${` itself.
///
/// # Errors
/// The name of a variable without a value.
pub fn filled(text: &str, value_of: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    let (mut out, mut rest) = (String::new(), text);
    while let Some(at) = rest.find("${") {
        if let Some(before) = rest[..at].strip_suffix('$') {
            out.push_str(before);
            out.push_str("${");
            rest = &rest[at + 2..];
            continue;
        }
        out.push_str(&rest[..at]);
        rest = &rest[at + 2..];
        let name = rest.split_once('}').map_or("", |(name, _)| name);
        let is_name = !name.is_empty()
            && !name.starts_with(|c: char| c.is_ascii_digit())
            && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        if !is_name {
            out.push_str("${");
            continue;
        }
        out.push_str(&value_of(name).ok_or_else(|| name.to_owned())?);
        rest = &rest[name.len() + 1..];
    }
    out.push_str(rest);
    Ok(out)
}

/// A text as TOML, over this many line ends: they are at its end, behind a backslash, and so not part of it.
fn quoted(text: &str, line_ends: usize) -> String {
    let quotes = if line_ends == 0 { "\"" } else { "\"\"\"" };
    let mut out = quotes.to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push_str(&format!("\\u{:04x}", u32::from(c))),
            c => out.push(c),
        }
    }
    if line_ends > 0 {
        out.push('\\');
        out.extend(std::iter::repeat_n('\n', line_ends));
    }
    out.push_str(quotes);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_core::scenario::Scenario;

    fn error_of(text: &str) -> String {
        read::<Scenario>(text, "s.toml").unwrap_err()
    }

    #[test]
    fn each_mistake_is_one_line_with_file_line_and_field() {
        for (text, line) in [
            ("seed = 1\ntimout = 2", "s.toml:2: unknown field `timout`; did you mean `timeout`?"),
            (
                "seed = 1\ntimeout = \"5x\"",
                "s.toml:2: field `timeout`: '5x' is not a duration; expected a number and a unit, such as 500ms, 10s or 1m30s",
            ),
            (
                "seed = \"one\"",
                "s.toml:1: field `seed`: expected a whole number of at least 0, not the text \"one\"",
            ),
            (
                "threads = -1",
                "s.toml:1: field `threads`: expected a whole number from 0 to 4,294,967,295, not -1",
            ),
            (
                "\nchecks = \"vespa\"",
                "s.toml:2: field `checks`: expected a list in brackets, such as [\"a\", \"b\"], not the text \"vespa\"",
            ),
            ("http2 = 1", "s.toml:1: field `http2`: expected true or false, not 1"),
            (
                "[load]\nmodel = \"burst\"\nsize = 1\nevry = \"1s\"",
                "s.toml:4: unknown field `evry`; did you mean `every`?",
            ),
            (
                "[load]\nmodel = \"burst\"\nsize = 1\nevery = \"1x\"",
                "s.toml:4: field `load.every`: '1x' is not a duration; expected a number and a unit, such as 500ms, 10s or 1m30s",
            ),
            (
                "[load]\nmodel = \"opn\"",
                "s.toml:2: field `load.model`: 'opn' is not known; did you mean `open`?",
            ),
        ] {
            assert_eq!(error_of(text), line, "{text}");
        }
        assert!(error_of("seed = ").starts_with("s.toml:1: "), "{}", error_of("seed = "));
        assert!(
            error_of("colour = 1").contains("expected one of `job`"),
            "{}",
            error_of("colour = 1")
        );
    }

    #[test]
    fn values_of_the_environment_come_into_texts_only() {
        let value_of = |name: &str| match name {
            "TOKEN" => Some("a\"b\n\\".to_owned()),
            _ => None,
        };
        let expanded = |text: &str| expanded_by(text, "s.toml", &value_of);
        let text = "checks = [\"body~${TOKEN}\", 'body~$${TOKEN} ${} ${1}'] # ${NOT}\nseed = 2\n";
        let scenario: Scenario = read(&expanded(text).unwrap(), "s.toml").unwrap();
        assert_eq!(scenario.checks, ["body~a\"b\n\\", "body~${TOKEN} ${} ${1}"]);
        for name in ["headers", "header", "H"] {
            let text = format!("{name} = [\"A: ${{TOKEN}}\"]");
            assert_eq!(expanded(&text).unwrap(), text, "the value would be in the record");
            assert_eq!(
                expanded(&format!("{name} = 'A: ${{NONE}}'")).unwrap_err(),
                format!("s.toml:1: field `{name}`: the environment variable NONE is not set")
            );
        }
        assert_eq!(
            expanded("seed = 1\nbody = \"x${NONE}\"").unwrap_err(),
            "s.toml:2: field `body`: the environment variable NONE is not set"
        );
    }

    #[test]
    fn an_error_behind_a_text_of_several_lines_has_its_line() {
        let value_of = |_: &str| Some(" a\"b ".to_owned());
        for quotes in ["\"\"\"", "'''"] {
            let text = format!("checks = [{quotes}\nbody~\n\n${{TOKEN}}{quotes}]\nseed = 2\n");
            let expanded = |text: &str| expanded_by(text, "s.toml", &value_of).unwrap();
            let scenario: Scenario = read(&expanded(&text), "s.toml").unwrap();
            assert_eq!((scenario.checks, scenario.seed), (vec!["body~\n\n a\"b ".to_owned()], 2));
            let line = error_of(&expanded(&text.replace("seed", "sed")));
            assert!(line.starts_with("s.toml:5: unknown field `sed`"), "{line}");
        }
    }

    #[test]
    fn a_field_has_its_line_and_a_missing_one_that_of_its_table() {
        let text = "[job]\nname = \"x\"\n[[job.hooks]]\nname = \"a\"\n[[job.hooks]]\nname = \"b\"\n\
                    [job.roles.r]\ncommand = []\n";
        for (path, line) in [
            (&["job", "name"][..], 2),
            (&["job", "hooks", "1", "name"], 6),
            (&["job", "hooks", "1", "options"], 5),
            (&["job", "roles", "r", "command"], 8),
            (&["job", "command"], 1),
        ] {
            assert_eq!(line_of_field(text, path), Some(line), "{path:?}");
        }
        assert_eq!(line_of_field(text, &["jobs", "name"]), None);
    }

    #[test]
    fn an_old_name_of_a_field_is_hinted_at_with_its_line() {
        let names = [("profile", "users_profile"), ("hits", "query_hits")];
        let text = "seed = 1\nprofile = \"a\" # hits\n";
        let hint = "m.toml:2: field `profile` is now `users_profile`";
        assert_eq!(renamed(text, "m.toml", &names), [hint]);
        assert!(renamed("users_profile = 1", "m.toml", &names).is_empty());
    }
}
