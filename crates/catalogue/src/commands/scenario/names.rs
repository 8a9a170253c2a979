//! Names of fields: those of the flags.

use clap::builder::ValueParser;
use clap::{Arg, ArgAction};

/// Returns the argument of a command that a name is for: the name of a flag with `-` or `_`, its letter, several of it, or what
/// stands without a flag.
pub fn named<'a>(command: &'a clap::Command, name: &str) -> Option<&'a Arg> {
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
    let is_own = |own: String| {
        let is_address = matches!(own.as_str(), "url" | "target")
            && matches!(name, "url" | "urls" | "target" | "targets");
        name == own || is_address || name.strip_suffix('s') == Some(&own)
    };
    name == arg.get_id().as_str() || bare_names(arg).any(is_own)
}

/// The names in a file of an argument without a flag: `url` and `file` of `URL|FILE`.
fn bare_names(arg: &Arg) -> impl Iterator<Item = String> {
    value_name(arg).split('|').map(|name| {
        let end = name.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(name.len());
        name[..end].to_ascii_lowercase()
    })
}

fn value_name(arg: &Arg) -> &str {
    let name = arg.get_value_names().and_then(|names| names.first());
    name.map_or(arg.get_id().as_str(), |name| name.as_str())
}

/// Returns the name of an argument in a file.
pub fn field_name(arg: &Arg) -> String {
    match (arg.get_long(), arg.get_short()) {
        (Some(long), _) => long.replace('-', "_"),
        (None, Some(letter)) => letter.to_string(),
        (None, None) => bare_names(arg).next().unwrap_or_default(),
    }
}

/// Returns true if an argument may have several values.
pub fn takes_many(arg: &Arg) -> bool {
    let most = arg.get_num_args().map_or(1, |range| range.max_values());
    matches!(arg.get_action(), ArgAction::Append | ArgAction::Count) || most > 1
}

/// Returns true if an argument has no value.
pub fn is_switch(arg: &Arg) -> bool {
    matches!(arg.get_action(), ArgAction::SetTrue | ArgAction::SetFalse | ArgAction::Count)
}

/// Returns true if a name is one that the option had before: a hidden alias.
pub fn is_old_name(arg: &Arg, name: &str) -> bool {
    let flag = name.replace('_', "-");
    let shown = arg.get_visible_aliases().unwrap_or_default();
    let all = arg.get_all_aliases().unwrap_or_default();
    all.contains(&flag.as_str()) && !shown.contains(&flag.as_str())
}

/// Returns the place in a value where a path begins, if it names a file: `@FILE`, `ndjson:FILE`, a pattern of names, or a whole path.
pub fn path_begins(arg: &Arg, value: &str) -> Option<usize> {
    let is_path = arg.get_value_parser().type_id() == ValueParser::path_buf().type_id();
    match value_name(arg) {
        _ if is_path => Some(0),
        "PATTERN" => Some(0),
        "URL|FILE" if !value.contains("://") => Some(0),
        "SOURCE" => value.starts_with("ndjson:").then_some("ndjson:".len()),
        name if name.ends_with("@FILE") => value.starts_with('@').then_some(1),
        _ => None,
    }
}
