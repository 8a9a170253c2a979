//! The words that people search for lead to the chapter that explains them.

use super::root;
use std::fs::read_to_string;

/// Words of the field, as people type them.
const TERMS: [&str; 9] = [
    "coordinated omission",
    "virtual user",
    "open model",
    "closed model",
    "backoff",
    "saturation",
    "retry",
    "percentile",
    "goodput",
];
/// Those that `--help` of a command has too.
const IN_HELP: [&str; 5] =
    ["coordinated omission", "virtual user", "open model", "backoff", "saturation"];

/// A text on one line, so that a line end does not divide a term.
fn plain(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").to_lowercase()
}

/// The pages that a line links to.
fn linked(line: &str) -> Vec<&str> {
    let ends = line.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    ends.map(|link| link.split('#').next().unwrap()).filter(|page| page.ends_with(".md")).collect()
}

#[test]
fn the_glossary_links_each_term_to_a_chapter_that_has_it() {
    let docs = root().join("docs");
    let glossary = read_to_string(docs.join("glossary.md")).unwrap();
    for term in TERMS {
        let row = glossary.lines().find(|line| {
            let word = line.strip_prefix("| ").and_then(|rest| rest.split(" | ").next());
            word.is_some_and(|word| word.split(", ").any(|one| one == term))
        });
        let row = row.unwrap_or_else(|| panic!("the glossary has no row for '{term}'"));
        let pages = linked(row);
        assert!(!pages.is_empty(), "no link for '{term}': {row}");
        for page in pages {
            let text = read_to_string(docs.join(page)).unwrap_or_else(|e| panic!("{page}: {e}"));
            assert!(plain(&text).contains(term), "{page} does not contain '{term}'");
        }
    }
}

#[test]
fn the_help_of_a_command_has_the_terms_that_people_search_for() {
    let parser = plimsoll::parser();
    let helps: Vec<String> = parser
        .get_subcommands()
        .cloned()
        .map(|mut command| plain(&command.render_long_help().to_string()))
        .collect();
    for term in IN_HELP {
        assert!(helps.iter().any(|help| help.contains(term)), "no --help contains '{term}'");
    }
}

/// Old names are hidden in the parser; each is in the table where a user looks.
#[test]
fn the_table_of_renamed_options_has_every_old_name() {
    let page = read_to_string(root().join("docs/scenarios.md")).unwrap();
    let mut seen = 0;
    for command in plimsoll::parser().get_subcommands() {
        for arg in command.get_arguments() {
            let shown = arg.get_visible_aliases().unwrap_or_default();
            let all = arg.get_all_aliases().unwrap_or_default();
            for old in all.iter().filter(|old| !shown.contains(old)) {
                seen += 1;
                let (name, new) = (command.get_name(), arg.get_long().unwrap());
                let is_row = |line: &&str| {
                    let cells: Vec<&str> = line.split(" | ").collect();
                    cells.len() == 4
                        && cells[0].contains(&format!("`{name}`"))
                        && cells[1] == format!("`--{old}`")
                        && cells[2] == format!("`--{new}`")
                        && cells[3].contains(&format!("`{}`", new.replace('-', "_")))
                };
                assert!(page.lines().any(|line| is_row(&line)), "{name} --{old}: not in the table");
            }
        }
    }
    assert!(seen > 8, "{seen}");
}
