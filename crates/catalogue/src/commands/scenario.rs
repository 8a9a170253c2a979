//! Scenario files: a table whose fields are the flags of a command, which becomes a command line.

mod complaints;
mod names;

use clap::{Arg, Id};
use complaints::unknown;
use names::{field_name, is_old_name, is_switch, named, path_begins, takes_many};
use plimsoll_core::feed::FeedScenario;
use plimsoll_core::scenario::{Scenario, path_from};
use plimsoll_job::toml_text::{line_of, wrong};
use plimsoll_workloads::edit_distance::near_miss;
use std::path::Path;
use toml::de::{DeTable, DeValue};

/// Commands that a file can be for.
pub const COMMANDS: [&str; 9] =
    ["load", "seek", "search", "rank", "voter", "hello", "visit", "feed", "fbench"];
/// Fields that only the older form has, which is that of records.
const OLDER: [&str; 5] = ["job", "load", "admission", "tls", "ignore_first"];
/// Fields that only the older form of a feed has.
const OLDER_OF_FEEDS: [&str; 5] = ["load", "http", "tls", "duration", "seed"];

/// The command line that a file stands for.
#[derive(Clone, Debug, Default)]
pub struct CommandLine {
    /// Its words, the name of the command first.
    pub words: Vec<String>,
    /// One line, with file and line, for each field that has an old name.
    pub hints: Vec<String>,
    /// The flag of each field, with the field's name and line.
    flags: Vec<(String, String, usize)>,
    /// The name and the line of each value.
    values: Vec<(String, usize, String)>,
    shown: String,
}

impl CommandLine {
    /// Returns a message about flags with the fields' names in place of the flags, and the line of the first; none if it names no field.
    #[must_use]
    pub fn in_words_of_the_file(&self, message: &str) -> Option<String> {
        let (mut text, mut first) = (message.to_owned(), None);
        for (flag, name, line) in &self.flags {
            let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
            let at = |text: &str| {
                let starts = text.match_indices(flag.as_str()).map(|(at, _)| at);
                let is_whole =
                    |at: &usize| text[at + flag.len()..].chars().next().is_none_or(is_end);
                starts.filter(|at| text[..*at].ends_with([' ', '\'']) || *at == 0).find(is_whole)
            };
            if let Some(place) = at(message) {
                first = first.filter(|(before, _)| *before < place).or(Some((place, *line)));
            }
            while let Some(place) = at(&text) {
                text.replace_range(place..place + flag.len(), &format!("`{name}`"));
            }
        }
        match first {
            Some((_, line)) => Some(format!("{}:{line}: {text}", self.shown)),
            None => self.with_field_of_value(message),
        }
    }

    /// The same for a message that names no flag, but the value of one: a file that is missing.
    fn with_field_of_value(&self, message: &str) -> Option<String> {
        let is_about = |value: &String| {
            let begins = message.strip_prefix(value.as_str());
            value.len() > 1 && begins.is_some_and(|rest| rest.starts_with(':'))
        };
        let (name, line, _) = self.values.iter().find(|(_, _, value)| is_about(value))?;
        Some(format!("{}:{line}: field `{name}`: {message}", self.shown))
    }
}

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
    /// The new name, if the file has an old one.
    now: Option<String>,
}

/// Returns true if a file of a load has the older form, that of records.
pub(super) fn is_older(text: &str, load: &clap::Command) -> bool {
    let older = serde_json::to_value(Scenario::default()).unwrap_or_default();
    DeTable::parse(text).is_ok_and(|table| is_older_table(table.get_ref(), load, &OLDER, &older))
}

fn is_older_table(
    table: &DeTable<'_>,
    command: &clap::Command,
    marks: &[&str],
    older: &serde_json::Value,
) -> bool {
    let has_rows = table.get("rows").is_some_and(|value| value.get_ref().is_table());
    if !has_rows && !marks.iter().any(|name| table.contains_key(*name)) {
        return false;
    }
    let is_newer = |name: &str| {
        older.get(name).is_none() && (name == "command" || named(command, name).is_some())
    };
    !table.keys().any(|key| is_newer(key.get_ref()))
}

/// Returns the command line of a file, with `more` in it: flags that override fields.
///
/// # Errors
/// One line with file, line and field.
pub fn command_line(
    text: &str,
    path: &Path,
    more: &[String],
    parser: &clap::Command,
) -> Result<CommandLine, String> {
    let shown = path.display().to_string();
    let table = DeTable::parse(text).map_err(|error| wrong(text, &shown, &error))?;
    let folder = path.parent().unwrap_or(Path::new(""));
    let file = File { text, shown, folder, prefix: "" };
    let command = file.command(table.get_ref(), parser)?;
    file.line(table.get_ref(), more, &command)
}

/// Returns the command line of the table `[feed]` or `[queries]` of a mix; none if it is missing, or has the older form.
///
/// # Errors
/// One line with file, line and field.
pub(super) fn line_of_part(
    text: &str,
    path: &Path,
    part: &'static str,
    parser: &clap::Command,
) -> Result<Option<CommandLine>, String> {
    let shown = path.display().to_string();
    let table = DeTable::parse(text).map_err(|error| wrong(text, &shown, &error))?;
    let table = table.get_ref().get(part).and_then(|value| value.get_ref().as_table());
    let name = if part == "feed" { "feed" } else { "load" };
    let command = parser.find_subcommand(name).cloned();
    let (Some(table), Some(mut command)) = (table, command) else { return Ok(None) };
    command.build();
    let (marks, older) = match part {
        "feed" => (&OLDER_OF_FEEDS, serde_json::to_value(FeedScenario::default())),
        _ => (&OLDER, serde_json::to_value(Scenario::default())),
    };
    if is_older_table(table, &command, marks, &older.unwrap_or_default()) {
        return Ok(None);
    }
    let folder = path.parent().unwrap_or(Path::new(""));
    let prefix = if part == "feed" { "feed." } else { "queries." };
    File { text, shown, folder, prefix }.line(table, &[], &command).map(Some)
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

/// A file, or a table in it, while it is read.
struct File<'a> {
    text: &'a str,
    shown: String,
    folder: &'a Path,
    /// The table, with a dot: `queries.`.
    prefix: &'static str,
}

impl File<'_> {
    fn wrong(&self, line: usize, problem: &str) -> String {
        format!("{}:{line}: {problem}", self.shown)
    }

    fn wrong_field(&self, line: usize, name: &str, problem: &str) -> String {
        self.wrong(line, &format!("field `{}{name}`: {problem}", self.prefix))
    }

    /// The command line of a table.
    fn line(
        &self,
        table: &DeTable<'_>,
        more: &[String],
        command: &clap::Command,
    ) -> Result<CommandLine, String> {
        let mut fields = Vec::new();
        for (key, value) in table {
            if key.get_ref() != "command" || !self.prefix.is_empty() {
                let line = line_of(self.text, key.span().start);
                fields.extend(self.field(key.get_ref(), value.get_ref(), line, command)?);
            }
        }
        fields.retain(|field| !is_overridden(command, &field.id, more));
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
        if let Err(error) = command.clone().try_get_matches_from(&words) {
            return Err(self.complaint(&error, &fields, command));
        }
        let hint = |field: &Field| {
            let now = field.now.as_ref()?;
            let (prefix, name) = (self.prefix, &field.name);
            let hint = format!("field `{prefix}{name}` is now `{prefix}{now}`");
            Some((field.line, self.wrong(field.line, &hint)))
        };
        let mut hints: Vec<_> = fields.iter().filter_map(hint).collect();
        hints.sort();
        let hints = hints.into_iter().map(|(_, hint)| hint).collect();
        let flag = |field: &Field| {
            let flag =
                field.words.first().filter(|_| field.index.is_none())?.0.split('=').next()?;
            Some((flag.to_owned(), format!("{}{}", self.prefix, field.name), field.line))
        };
        let flags = fields.iter().filter_map(flag).collect();
        let value = |(field, word): (&Field, &(String, usize, String))| {
            let (flag, value) = word.0.split_once('=').unwrap_or(("", &word.0));
            let value = if flag.starts_with('-') { value } else { &word.0 };
            (format!("{}{}", self.prefix, field.name), word.1, value.to_owned())
        };
        let each =
            fields.iter().flat_map(|field| field.words.iter().map(move |word| (field, word)));
        let values = each.map(value).collect();
        Ok(CommandLine { words, hints, flags, values, shown: self.shown.clone() })
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
            let advice = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("expected {}", COMMANDS.join(", ")),
            };
            let name = name.map_or("the value".to_owned(), |name| format!("'{name}'"));
            self.wrong_field(
                line,
                "command",
                &format!("{name} is not a command of files; {advice}"),
            )
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
        let problem = |why: &str| self.wrong_field(line, name, why);
        let off = format!("no-{}", name.replace('_', "-"));
        let (arg, value) = match (named(command, name), named(command, &off)) {
            (Some(arg), _) => (arg, value),
            // `keepalive = false` is `no_keepalive = true`.
            (None, Some(arg)) if is_switch(arg) => match value {
                DeValue::Boolean(true) => return Ok(None),
                DeValue::Boolean(false) => (arg, &DeValue::Boolean(true)),
                _ => return Err(problem("expected true or false")),
            },
            _ => return Err(self.wrong(line, &unknown(name, self.prefix, command))),
        };
        if !self.prefix.is_empty() && arg.get_help_heading() == Some("Output") {
            return Err(problem("output belongs to the whole run; give the flag to plimsoll run"));
        }
        // Earlier files select the SQL mode of PostgreSQL with `method`.
        let is_mode = arg.get_long() == Some("method")
            && matches!(value.as_str(), Some("simple" | "prepared"));
        let mode = named(command, "sql_mode").filter(|_| is_mode);
        let (arg, is_old) = mode.map_or((arg, is_old_name(arg, name)), |mode| (mode, true));
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
            now: is_old.then(|| field_name(arg)),
        };
        Ok((!field.words.is_empty()).then_some(field))
    }

    /// One word of the command line: `--flag=value`, with a path that begins at the file's folder.
    fn word(&self, arg: &Arg, value: Option<&str>) -> String {
        let value = value.map(|value| match path_begins(arg, value) {
            Some(at) => {
                let (mark, path) = value.split_at(at);
                format!("{mark}{}", path_from(self.folder, Path::new(path)).display())
            }
            None => value.to_owned(),
        });
        let flag = match (arg.get_long(), arg.get_short()) {
            (Some(long), _) => format!("--{long}"),
            (None, Some(letter)) => format!("-{letter}"),
            (None, None) => return value.unwrap_or_default(),
        };
        value.map_or(flag.clone(), |value| format!("{flag}={value}"))
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
