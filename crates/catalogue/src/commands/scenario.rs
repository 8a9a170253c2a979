//! Scenario files: a table whose fields are the flags of a command, which becomes a command line.

use clap::builder::ValueParser;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{Arg, ArgAction, Id};
use plimsoll_core::scenario::{Scenario, path_from};
use plimsoll_job::toml_text::{line_of, wrong};
use plimsoll_workloads::edit_distance::near_miss;
use std::error::Error as _;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Commands that a file can be for.
const COMMANDS: [&str; 9] =
    ["load", "seek", "search", "rank", "voter", "hello", "visit", "feed", "fbench"];
/// Fields that only the older form has, which is that of records.
const OLDER: [&str; 5] = ["job", "load", "admission", "tls", "ignore_first"];

/// A field of a file, as the parser knows it.
struct Field {
    name: String,
    line: usize,
    /// Words of the command line, each with the line and the value that it comes from.
    words: Vec<(String, usize, String)>,
    id: Id,
    /// The argument as the parser's errors name it.
    shown: String,
    /// Its place among the arguments without a flag.
    index: Option<usize>,
}

/// Returns true if a file has the older form, that of records.
pub(super) fn is_older(text: &str, load: &clap::Command) -> bool {
    let Ok(table) = DeTable::parse(text) else { return false };
    let table = table.get_ref();
    let is_table = |name| table.get(name).is_some_and(|value| value.get_ref().is_table());
    if !is_table("rows") && !OLDER.iter().any(|name| table.contains_key(*name)) {
        return false;
    }
    let older = serde_json::to_value(Scenario::default()).unwrap_or_default();
    let is_newer = |name: &str| {
        older.get(name).is_none() && (name == "command" || named(load, name).is_some())
    };
    !table.keys().any(|key| is_newer(key.get_ref()))
}

/// Returns the words of a file, the name of the command first, and `more` behind them: flags that come in the place of fields.
///
/// # Errors
/// One line with file, line and field.
pub(super) fn words(
    text: &str,
    path: &Path,
    more: &[String],
    parser: &clap::Command,
) -> Result<Vec<String>, String> {
    let shown = path.display().to_string();
    let table = DeTable::parse(text).map_err(|error| wrong(text, &shown, &error))?;
    let file = File { text, shown, folder: path.parent().unwrap_or(Path::new("")) };
    let command = file.command(table.get_ref(), parser)?;
    let mut fields = Vec::new();
    for (key, value) in table.get_ref() {
        if key.get_ref() != "command" {
            let line = line_of(text, key.span().start);
            fields.extend(file.field(key.get_ref(), value.get_ref(), line, &command)?);
        }
    }
    fields.retain(|field| !is_overridden(&command, &field.id, more));
    // The parser wants what has no flag in its order, and a value may look like a flag.
    fields.sort_by_key(|field| field.index.unwrap_or(0));
    let mut words = vec![command.get_name().to_owned()];
    let in_fields = |has_flag: bool| {
        let fields = fields.iter().filter(move |field| field.index.is_none() == has_flag);
        fields.flat_map(|field| field.words.iter().map(|(word, _, _)| word.clone()))
    };
    words.extend(in_fields(true));
    words.extend(more.iter().cloned());
    let bare: Vec<String> = in_fields(false).collect();
    if !bare.is_empty() && !more.iter().any(|word| word == "--") {
        words.push("--".to_owned());
    }
    words.extend(bare);
    match command.clone().try_get_matches_from(&words) {
        Err(error) => Err(file.told(&error, &fields, &command)),
        Ok(_) => Ok(words),
    }
}

/// The argument of a command that a name is for: the name of a flag with `-` or `_`, its letter, several of it, or what
/// stands without a flag.
fn named<'a>(command: &'a clap::Command, name: &str) -> Option<&'a Arg> {
    let own = |arg: &&Arg| {
        !matches!(
            arg.get_action(),
            ArgAction::Help | ArgAction::Version | ArgAction::HelpShort | ArgAction::HelpLong
        )
    };
    let flag = name.replace('_', "-");
    let by_flag = |arg: &&Arg, flag: &str| {
        let others = arg.get_all_aliases().unwrap_or_default();
        arg.get_long() == Some(flag) || others.contains(&flag)
    };
    let mut letters = name.chars();
    let letter = letters.next().filter(|_| letters.next().is_none());
    let find = |is: &dyn Fn(&&Arg) -> bool| command.get_arguments().filter(own).find(|arg| is(arg));
    find(&|arg| by_flag(arg, &flag))
        .or_else(|| find(&|arg| letter.is_some() && arg.get_short() == letter))
        .or_else(|| find(&|arg| arg.is_positional() && is_bare_name(arg, name)))
        .or_else(|| {
            let one = flag.strip_suffix("es").into_iter().chain(flag.strip_suffix('s'));
            let one = one.chain((flag == "assertions").then_some("assert"));
            one.filter(|one| one.len() > 1)
                .find_map(|one| find(&|arg| by_flag(arg, one) && takes_many(arg)))
        })
}

fn is_bare_name(arg: &Arg, name: &str) -> bool {
    let own = bare_name(arg);
    let is_address = own == "url" && matches!(name, "urls" | "target" | "targets");
    name == own
        || name == arg.get_id().as_str()
        || is_address
        || name.strip_suffix('s') == Some(&own)
}

/// The name in a file of an argument without a flag.
fn bare_name(arg: &Arg) -> String {
    let name = arg.get_value_names().and_then(|names| names.first());
    let name = name.map_or(arg.get_id().as_str(), |name| name.as_str());
    let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
    name[..end].to_ascii_lowercase()
}

fn field_name(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => long.replace('-', "_"),
        (None, Some(letter)) => letter.to_string(),
        (None, None) => bare_name(arg),
    }
}

fn takes_many(arg: &Arg) -> bool {
    let most = arg.get_num_args().map_or(1, |range| range.max_values());
    matches!(arg.get_action(), ArgAction::Append | ArgAction::Count) || most > 1
}

fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count)
}

/// Returns true if flags on the command line replace a field.
fn is_overridden(command: &clap::Command, id: &Id, more: &[String]) -> bool {
    more.iter().take_while(|word| *word != "--").any(|word| {
        let word = word.split_once('=').map_or(word.as_str(), |(flag, _)| flag);
        let arg = match word.strip_prefix("--") {
            Some(long) => named(command, long),
            None => word.strip_prefix('-').and_then(|rest| {
                let letter = rest.chars().next()?.to_string();
                named(command, &letter)
            }),
        };
        arg.is_some_and(|arg| arg.get_id() == id && !arg.is_positional())
    })
}

/// A file while it is read.
struct File<'a> {
    text: &'a str,
    shown: String,
    folder: &'a Path,
}

impl File<'_> {
    fn wrong(&self, line: usize, problem: &str) -> String {
        format!("{}:{line}: {problem}", self.shown)
    }

    fn command(
        &self,
        table: &DeTable<'_>,
        parser: &clap::Command,
    ) -> Result<clap::Command, String> {
        let field = table.get("command");
        let name = field.map_or(Some("load"), |value| value.get_ref().as_str());
        let known = name.filter(|name| COMMANDS.contains(name));
        let found = known.and_then(|name| parser.find_subcommand(name)).cloned();
        let mut found = found.ok_or_else(|| {
            let line = field.map_or(1, |value| line_of(self.text, value.span().start));
            let near = name.and_then(|name| near_miss(name, &COMMANDS));
            let told = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected {}", COMMANDS.join(", ")),
            };
            let name = name.map_or("the value".to_owned(), |name| format!("'{name}'"));
            self.wrong(line, &format!("field `command`: {name} is not a command of files; {told}"))
        })?;
        found.build();
        Ok(found)
    }

    /// The field as words; none for a switch that is off.
    fn field(
        &self,
        name: &str,
        value: &DeValue<'_>,
        line: usize,
        command: &clap::Command,
    ) -> Result<Option<Field>, String> {
        let problem = |why: &str| self.wrong(line, &format!("field `{name}`: {why}"));
        let off = format!("no-{}", name.replace('_', "-"));
        let (arg, value) = match (named(command, name), named(command, &off)) {
            (Some(arg), _) => (arg, value),
            // `keepalive = false` is `no_keepalive = true`.
            (None, Some(arg)) if is_switch(arg) => match value {
                DeValue::Boolean(true) => return Ok(None),
                DeValue::Boolean(false) => (arg, &DeValue::Boolean(true)),
                _ => return Err(problem("expected true or false")),
            },
            _ => return Err(self.wrong(line, &unknown(name, command))),
        };
        let values = values(arg, value).map_err(|why| problem(&why))?;
        let words = values.into_iter().map(|(own, at)| {
            let line = at.map_or(line, |at| line_of(self.text, at));
            (self.word(arg, own.as_deref()), line, own.unwrap_or_default())
        });
        let words: Vec<_> = words.collect();
        let field = Field {
            name: name.to_owned(),
            line,
            words,
            id: arg.get_id().clone(),
            shown: arg.to_string(),
            index: arg.is_positional().then(|| arg.get_index().unwrap_or(1)),
        };
        Ok((!field.words.is_empty()).then_some(field))
    }

    /// One word of the command line: `--flag=value`, with a path that begins at the file's folder.
    fn word(&self, arg: &Arg, value: Option<&str>) -> String {
        let is_path = arg.get_value_parser().type_id() == ValueParser::path_buf().type_id();
        let from_here = |path: &str| path_from(self.folder, Path::new(path)).display().to_string();
        let may_name_a_file = matches!(arg.get_long(), Some("body" | "header"));
        let value = value.map(|value| match value.strip_prefix('@') {
            Some(path) if may_name_a_file => format!("@{}", from_here(path)),
            _ if is_path => from_here(value),
            _ => value.to_owned(),
        });
        let flag = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, Some(letter)) => format!("-{letter}"),
            (None, None) => return value.unwrap_or_default(),
        };
        value.map_or(flag.clone(), |value| format!("{flag}={value}"))
    }

    /// One line for an error of the parser.
    fn told(&self, error: &clap::Error, fields: &[Field], command: &clap::Command) -> String {
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
            return format!("{}: field `{}` is missing", self.shown, names.join("`, `"));
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
                let told = near.map_or(format!("expected {}", known.join(", ")), |near| {
                    format!("did you mean '{near}'?")
                });
                format!("'{value}' is not known; {told}")
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
        self.wrong(line, &format!("field `{}`: {why}", field.name))
    }
}

/// Words about a field that the command does not have.
fn unknown(name: &str, command: &clap::Command) -> String {
    let known: Vec<String> = command.get_arguments().map(field_name).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    if OLDER.contains(&name) && command.get_name() == "load" {
        return format!(
            "field `{name}` belongs to the older form of scenarios; see docs/scenarios.md"
        );
    }
    match near_miss(&name.replace('-', "_"), &known) {
        Some(near) => format!("unknown field `{name}`; did you mean `{near}`?"),
        None => format!(
            "unknown field `{name}`; the fields are the flags of plimsoll {0}, see plimsoll {0} --help",
            command.get_name()
        ),
    }
}

/// The message of a number parser, in words for users of the file.
fn plain(told: &str, value: &str) -> String {
    if told.contains("invalid digit") || told.contains("cannot parse integer") {
        return format!("'{value}' is not a whole number");
    }
    if told.contains("invalid float") || told.contains("cannot parse float") {
        return format!("'{value}' is not a number");
    }
    match told.split_once(" is not in ") {
        Some((number, range)) => {
            let range = range.replace("..=", " to ");
            format!("{number} is not accepted; expected a whole number from {range}")
        }
        None => told.to_owned(),
    }
}

/// A value, and its place in the text where it is one of a list; a switch has no value.
type Value = (Option<String>, Option<usize>);

/// The values of a field, each with its place; a switch that is on has none, and one that is off is left out.
fn values(arg: &Arg, value: &DeValue<'_>) -> Result<Vec<Value>, String> {
    match (value, is_switch(arg)) {
        (DeValue::Boolean(is), true) => Ok(if *is { vec![(None, None)] } else { Vec::new() }),
        (_, true) => Err("expected true or false".to_owned()),
        (DeValue::Array(list), false) if takes_many(arg) => list
            .iter()
            .map(|one| Ok((Some(text_of(one.get_ref())?), Some(one.span().start))))
            .collect(),
        (DeValue::Array(_), false) => Err("expected one value, not a list".to_owned()),
        (value, false) => Ok(vec![(Some(text_of(value)?), None)]),
    }
}

fn text_of(value: &DeValue<'_>) -> Result<String, String> {
    match value {
        DeValue::String(text) => Ok(text.to_string()),
        DeValue::Integer(number) => Ok(number.to_string().replace('_', "")),
        DeValue::Float(number) => Ok(number.to_string().replace('_', "")),
        DeValue::Datetime(time) => Ok(time.to_string()),
        DeValue::Boolean(is) => Err(format!("expected a text or a number, not {is}")),
        DeValue::Array(_) => Err("expected a text or a number, not a list".to_owned()),
        DeValue::Table(_) => Err("expected a text or a number, not a table".to_owned()),
    }
}

#[cfg(test)]
mod tests;
