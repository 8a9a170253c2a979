//! All commands of the program, as its parser has them, and the examples in their help.

use clap::Command;

pub use plimsoll::commands;

/// The words that call a command, without the name of the program.
pub fn path(command: &Command) -> Vec<String> {
    let name = command.get_bin_name().unwrap_or("plimsoll");
    name.split(' ').skip(1).map(str::to_owned).collect()
}

/// The name of a command as people write it.
pub fn name(command: &Command) -> String {
    command.get_bin_name().unwrap_or("plimsoll").to_owned()
}

/// An example of a help.
#[derive(Clone, Debug)]
pub struct Example {
    /// The lines as they are printed.
    pub lines: Vec<String>,
    /// The line that a shell runs: lines that end with `\` or `|` are joined with the next one.
    pub shell: String,
    /// The words of each call of plimsoll in it, without the name of the program.
    pub calls: Vec<Vec<String>>,
}

/// The examples in the help of a command: the lines of the section `Examples:` that are no captions.
pub fn examples(command: &Command) -> Vec<Example> {
    let help = command.get_after_long_help().or_else(|| command.get_after_help());
    let help = help.map(ToString::to_string).unwrap_or_default();
    let section = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    let mut section = section.take_while(|line| !line.is_empty());
    let mut found = Vec::new();
    while let Some(line) = section.next() {
        let Some(start) = on_line(line) else { continue };
        let (mut lines, mut shell) = (vec![line.to_owned()], start.to_owned());
        while shell.ends_with(['\\', '|']) {
            let next = section.next().unwrap_or_else(|| panic!("{line}: nothing follows"));
            lines.push(next.to_owned());
            shell = format!("{} {}", shell.trim_end_matches('\\').trim_end(), next.trim());
        }
        let calls = calls(&shell);
        found.push(Example { lines, shell, calls });
    }
    found
}

/// The command on a line: after a caption and at least two blanks, or alone on a line of its own.
fn on_line(line: &str) -> Option<&str> {
    let text = line.trim_start();
    let after = text.split_once(":  ").map(|(_, rest)| rest.trim_start());
    match after.filter(|rest| rest.starts_with("plimsoll ")) {
        Some(rest) => {
            Some(rest.split_once("    (").map_or(rest, |(command, _)| command.trim_end()))
        }
        None => line.starts_with("    ").then_some(text),
    }
    .or_else(|| after.filter(|rest| *rest == "plimsoll"))
}

/// The calls of plimsoll in a line of shell, each as its words.
fn calls(shell: &str) -> Vec<Vec<String>> {
    let mut commands = vec![Vec::new()];
    let (mut word, mut quote, mut in_word, mut skips) = (String::new(), None, false, false);
    for c in shell.chars().chain([' ']) {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (Some(_), c) => word.push(c),
            (None, '\'' | '"') => (quote, in_word) = (Some(c), true),
            (None, c) if " |;&()<>".contains(c) => {
                if in_word {
                    let word = std::mem::take(&mut word);
                    // The file of a redirection is no word of the command.
                    if !std::mem::take(&mut skips) {
                        commands.last_mut().unwrap().push(word);
                    }
                    in_word = false;
                }
                match c {
                    '<' | '>' => skips = true,
                    ' ' => {}
                    _ => {
                        skips = false;
                        commands.push(Vec::new());
                    }
                }
            }
            (None, c) => {
                word.push(c);
                in_word = true;
            }
        }
    }
    assert_eq!(quote, None, "a quote without an end: {shell}");
    let is_assignment = |word: &&String| word.contains('=') && !word.starts_with('-');
    let call = |words: Vec<String>| {
        let skipped = words.iter().take_while(is_assignment).count();
        let words = &words[skipped..];
        let (program, words) = words.split_first()?;
        (program == "plimsoll").then(|| words.to_vec())
    };
    commands.into_iter().filter_map(call).collect()
}

#[test]
fn calls_are_found_in_a_line_of_shell() {
    let words = |shell: &str| calls(shell).iter().map(|call| call.join(",")).collect::<Vec<_>>();
    assert_eq!(words("plimsoll load URL --slo 'p95 < 1s'"), ["load,URL,--slo,p95 < 1s"]);
    assert_eq!(words("gunzip -c a | plimsoll split-file 4 > out"), ["split-file,4"]);
    assert_eq!(words("source <(plimsoll completions bash)"), ["completions,bash"]);
    assert_eq!(words("A=b plimsoll voter && plimsoll man"), ["voter", "man"]);
    assert_eq!(on_line("  All jobs:     plimsoll list"), Some("plimsoll list"));
    assert_eq!(on_line("  A caption, see plimsoll list:"), None);
}
