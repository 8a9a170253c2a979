//! Errors of the parser in the words of a file.

use super::names::field_name;
use super::{Field, File, OLDER, OLDER_OF_FEEDS};
use clap::error::{ContextKind, ContextValue, ErrorKind};
use plimsoll_workloads::edit_distance::near_miss;
use std::error::Error as _;

impl File<'_> {
    /// One line for an error of the parser.
    pub(super) fn complaint(
        &self,
        error: &clap::Error,
        fields: &[Field],
        command: &clap::Command,
    ) -> String {
        let texts = |kind| match error.get(kind) {
            Some(ContextValue::String(text)) => vec![text.clone()],
            Some(ContextValue::Strings(texts)) => texts.clone(),
            _ => Vec::new(),
        };
        let about = texts(ContextKind::InvalidArg);
        let name_of = |shown: &String| {
            let field = fields.iter().find(|field| field.shown == *shown);
            let arg = command.get_arguments().find(|arg| arg.to_string() == *shown);
            field.map(|field| field.name.clone()).or_else(|| arg.map(field_name))
        };
        let value = texts(ContextKind::InvalidValue).first().cloned().unwrap_or_default();
        let field = fields.iter().find(|field| about.contains(&field.shown));
        if error.kind() == ErrorKind::MissingRequiredArgument {
            let names: Vec<String> = about.iter().filter_map(name_of).collect();
            let names: Vec<String> =
                names.iter().map(|name| format!("`{}{name}`", self.prefix)).collect();
            return format!("{}: field {} is missing", self.shown, names.join(", "));
        }
        let Some(field) = field else {
            let line = error.to_string().lines().next().unwrap_or_default().to_owned();
            return format!("{}: {}", self.shown, line.trim_start_matches("error: "));
        };
        let own = field.words.iter().find(|(word, _, own)| *own == value || word.ends_with(&value));
        let line = own.map_or(field.line, |(_, line, _)| *line);
        let known = texts(ContextKind::ValidValue);
        let other = texts(ContextKind::PriorArg).first().and_then(name_of);
        let why = match (error.kind(), other) {
            (ErrorKind::ArgumentConflict, Some(other)) if other != field.name => {
                format!("contradicts `{other}`; give one of them")
            }
            (ErrorKind::ArgumentConflict, _) => "expected one value, not a list".to_owned(),
            (ErrorKind::InvalidValue, _) if !known.is_empty() => {
                let known: Vec<&str> = known.iter().map(String::as_str).collect();
                let near = near_miss(&value, &known);
                let advice = near.map_or(format!("expected {}", known.join(", ")), |near| {
                    format!("did you mean '{near}'?")
                });
                format!("'{value}' is not known; {advice}")
            }
            _ => error.source().map_or_else(
                || {
                    error
                        .to_string()
                        .lines()
                        .next()
                        .unwrap_or_default()
                        .trim_start_matches("error: ")
                        .to_owned()
                },
                |source| plain(&source.to_string(), &value),
            ),
        };
        self.wrong_field(line, &field.name, &why)
    }
}

/// Words about a field that the command does not have.
pub(super) fn unknown(name: &str, prefix: &str, command: &clap::Command) -> String {
    let known: Vec<String> = command.get_arguments().map(field_name).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let older = if command.get_name() == "feed" { &OLDER_OF_FEEDS } else { &OLDER };
    if older.contains(&name) && matches!(command.get_name(), "load" | "feed") {
        return format!(
            "field `{prefix}{name}` belongs to the older form of scenarios; see docs/scenarios.md"
        );
    }
    match near_miss(&name.replace('-', "_"), &known) {
        Some(near) => format!("unknown field `{prefix}{name}`; did you mean `{near}`?"),
        None => format!(
            "unknown field `{prefix}{name}`; the fields are the flags of plimsoll {0}, see plimsoll {0} --help",
            command.get_name()
        ),
    }
}

/// The message of a number parser, in words for users of the file.
fn plain(message: &str, value: &str) -> String {
    if message.contains("invalid digit") || message.contains("cannot parse integer") {
        return format!("'{value}' is not a whole number");
    }
    if message.contains("invalid float") || message.contains("cannot parse float") {
        return format!("'{value}' is not a number");
    }
    match message.split_once(" is not in ") {
        Some((number, range)) => {
            let range = range.replace("..=", " to ");
            format!("{number} is not accepted; expected a whole number from {range}")
        }
        None => message.to_owned(),
    }
}
