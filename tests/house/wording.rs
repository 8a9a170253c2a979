//! Plain words: the phrases of `phrases.txt` are in no page of the book, nor in the texts of the sources.

use std::path::Path;

use super::{read, root, sources};

/// Words with which no paragraph of documentation begins, unless it is a question.
const CLAUSES: [&str; 14] = [
    "What",
    "Whatever",
    "Who",
    "Whoever",
    "Whom",
    "Whose",
    "How",
    "Where",
    "Wherever",
    "Whether",
    "Which",
    "Whichever",
    "Why",
    "When",
];

/// A phrase that does not come back.
struct Phrase {
    /// Its words in lower case.
    said: Vec<String>,
    /// Only at the beginning of a sentence that is not a question.
    first: bool,
    /// Phrases in which it is right.
    unless: Vec<Vec<String>>,
    better: String,
}

/// A word of a text, in lower case.
struct Word {
    text: String,
    line: usize,
    /// It begins a sentence.
    first: bool,
    /// A mark stands between it and the word before, so that no phrase goes across.
    apart: bool,
}

fn split(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}

fn phrases() -> Vec<Phrase> {
    let list = read("tests/house/phrases.txt");
    let lines = list.lines().filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    let phrases = lines.map(|line| {
        let mut fields = line.split('|').map(str::trim);
        let said = fields.next().unwrap();
        let better = fields.next().unwrap_or_else(|| panic!("phrases.txt: {line}: what to write?"));
        let unless = fields.next().unwrap_or_default().split(';').map(split);
        Phrase {
            said: split(said.trim_start_matches('^')),
            first: said.starts_with('^'),
            unless: unless.filter(|words| !words.is_empty()).collect(),
            better: better.to_owned(),
        }
    });
    phrases.collect()
}

/// The words of a text whose first line has the number `line`.
fn words(text: &str, line: usize) -> Vec<Word> {
    let mut found: Vec<Word> = Vec::new();
    let (mut line, mut first, mut apart, mut blank_line) = (line, true, true, false);
    let mut rest = text;
    while let Some(next) = rest.chars().next() {
        let is_word = |c: char| c.is_alphanumeric() || c == '\'' || c == '_' || c == '-';
        let length = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if length > 0 {
            let text = rest[..length].to_lowercase();
            found.push(Word { text, line, first, apart });
            (first, apart, blank_line) = (false, false, false);
            rest = &rest[length..];
            continue;
        }
        if next == '\n' {
            line += 1;
            (first, apart) = (first || blank_line, apart || blank_line);
            blank_line = true;
        } else if !next.is_whitespace() {
            apart = true;
            first = matches!(next, '.' | '!' | '?') || (first && "*\"(".contains(next));
        }
        rest = &rest[next.len_utf8()..];
    }
    found
}

/// Whether the sentence that begins with a word ends in a question mark.
fn is_question(text: &str, line_of_text: usize, word: &Word) -> bool {
    let from = text.split_inclusive('\n').take(word.line - line_of_text).map(str::len).sum();
    let lower = text[from..].to_lowercase();
    let sentence = lower.find(&word.text).map_or("", |at| &lower[at..]);
    sentence.find(['.', '!', '?', '|']).is_some_and(|end| sentence[end..].starts_with('?'))
}

/// The phrases in a text, as lines of the form `name:line: said; write ... instead`.
pub(crate) fn faults(name: &str, line: usize, text: &str) -> Vec<String> {
    let words = words(text, line);
    let at = |i: usize, said: &[String]| {
        words.len() >= i + said.len()
            && said.iter().zip(&words[i..]).all(|(said, word)| *said == word.text)
            && words[i + 1..i + said.len()].iter().all(|word| !word.apart)
    };
    let mut found = Vec::new();
    for phrase in &phrases() {
        for (i, word) in words.iter().enumerate() {
            let asks = || is_question(text, line, word);
            if !at(i, &phrase.said) || (phrase.first && (!word.first || asks())) {
                continue;
            }
            let right = phrase.unless.iter().any(|around| {
                (0..around.len()).any(|before| i >= before && at(i - before, around))
            });
            if !right {
                let (said, better) = (phrase.said.join(" "), &phrase.better);
                found.push(format!("{name}:{}: '{said}'; write: {better}", word.line));
            }
        }
    }
    found
}

/// A page without its blocks, its code in backticks and its headings, line for line.
fn prose(page: &str) -> String {
    let mut fenced = false;
    let mut text = String::new();
    for line in page.lines() {
        fenced ^= line.starts_with("```");
        let is_prose = !fenced && !line.starts_with("```") && !line.starts_with('#');
        let parts = line.split('`').enumerate();
        let parts = parts.map(|(i, part)| if i % 2 == 0 { part } else { "," });
        text += &if is_prose { parts.collect::<String>() } else { ".".to_owned() };
        text.push('\n');
    }
    text
}

/// All pages that people read, by their path in the repository.
fn pages(dir: &str) -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root().join(dir)).unwrap() {
        let entry = entry.unwrap();
        let path = Path::new(dir).join(entry.file_name()).to_str().unwrap().to_owned();
        let hidden = entry.file_name().to_string_lossy().starts_with('.');
        if entry.path().is_dir() && !hidden && !path.ends_with("target") {
            found.extend(pages(&path));
        } else if path.ends_with(".md") {
            found.push(path);
        }
    }
    found
}

#[test]
fn the_pages_are_in_plain_words() {
    let all = ["docs", "crates", "fuzz"].into_iter().flat_map(pages);
    let top = ["README", "ARCHITECTURE", "CHANGELOG", "CONTRIBUTING", "SECURITY"];
    let all: Vec<String> = all.chain(top.map(|name| format!("{name}.md"))).collect();
    assert!(all.len() > 45, "only {} pages", all.len());
    let faults: Vec<String> =
        all.iter().flat_map(|page| faults(page, 1, &prose(&read(page)))).collect();
    assert!(faults.is_empty(), "{}\n{}", faults.len(), faults.join("\n"));
}

/// The string literals and the doc comments of a source, with the number of their first lines.
fn texts(source: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let (mut line, mut rest) = (1, source);
    while !rest.is_empty() {
        let (length, text) = match rest.as_bytes() {
            [b'/', b'/', ..] => comment(rest),
            [b'"', ..] => literal(rest),
            [b'r', b'#', b'"', ..] => raw_literal(rest),
            [b'\'', b'"', b'\'', ..] => (3, None),
            _ => (rest.chars().next().unwrap().len_utf8(), None),
        };
        found.extend(text.map(|text| (line, text)));
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    found
}

/// The length of a comment up to the end of its line, and its text if it is documentation.
fn comment(rest: &str) -> (usize, Option<String>) {
    let length = rest.find('\n').unwrap_or(rest.len());
    let line = &rest[..length];
    let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"));
    (length, text.map(prose))
}

fn literal(rest: &str) -> (usize, Option<String>) {
    let mut escaped = false;
    let end = rest[1..].find(|c| {
        let ends = c == '"' && !escaped;
        escaped = c == '\\' && !escaped;
        ends
    });
    let end = end.map_or(rest.len(), |end| end + 1);
    let text = without_fields(&rest[1..end]).replace("\\n", ". ").replace("\\\n", " \n");
    (rest.len().min(end + 1), Some(text))
}

/// A literal whose fields, such as `{told}`, have lost their names, which nobody reads.
fn without_fields(text: &str) -> String {
    let mut parts = text.split('{');
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |all, part| {
        let name = |c: char| c.is_alphanumeric() || c == '_';
        all + "{" + part.trim_start_matches(name)
    })
}

fn raw_literal(rest: &str) -> (usize, Option<String>) {
    let end = rest.find("\"#").filter(|end| *end > 2).unwrap_or(rest.len() - 2);
    (end + 2, Some(rest[3..end.max(3)].to_owned()))
}

/// The sources of all crates, by their path in the repository, without tests.
fn production() -> Vec<(String, String)> {
    let all = sources(&root().join("crates")).into_iter().map(|(path, source)| {
        (path.strip_prefix(root()).unwrap().to_str().unwrap().to_owned(), source)
    });
    let read = |path: &str| {
        let is_test = path.contains("/tests/") || path.ends_with("tests.rs");
        path.contains("/src/") && !is_test
    };
    all.filter(|(path, _)| read(path)).collect()
}

#[test]
fn sources_are_in_plain_words() {
    let all = production();
    assert!(all.len() > 500, "only {} sources", all.len());
    let mut found = Vec::new();
    for (path, source) in &all {
        // A literal of this one word names the account of the system.
        let texts = texts(source).into_iter().filter(|(_, text)| text != "nobody");
        found.extend(texts.flat_map(|(line, text)| faults(path, line, &text)));
    }
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}

/// The paragraphs of documentation that begin with one of [`CLAUSES`] and are no questions, as `name:line: paragraph`.
/// A condition may come first ("When the queue is full, ..."): then a comma follows it.
fn clauses(name: &str, source: &str) -> Vec<String> {
    let text = |line: &str| {
        let line = line.trim_start();
        let text = line.strip_prefix("///").or_else(|| line.strip_prefix("//!"))?;
        Some(text.trim().to_owned()).filter(|text| !text.is_empty())
    };
    let lines: Vec<Option<String>> = source.lines().map(text).collect();
    let mut found = Vec::new();
    for (i, line) in lines.iter().enumerate() {
        if i > 0 && lines[i - 1].is_some() {
            continue;
        }
        let Some(begin) = line.as_deref().and_then(|text| text.split([' ', ',', '.', ';']).next())
        else {
            continue;
        };
        let paragraph: Vec<&str> = lines[i..].iter().map_while(Option::as_deref).collect();
        let paragraph = paragraph.join(" ");
        let end = paragraph.find(['.', '!', '?']).unwrap_or(paragraph.len());
        let is_question = paragraph[end..].starts_with('?');
        let is_condition = matches!(begin, "When" | "Where") && paragraph[..end].contains(',');
        if CLAUSES.contains(&begin) && !is_question && !is_condition {
            found.push(format!("{name}:{}: {paragraph}", i + 1));
        }
    }
    found
}

#[test]
fn documentation_begins_with_a_noun_phrase_or_a_verb() {
    let found: Vec<String> =
        production().iter().flat_map(|(path, source)| clauses(path, source)).collect();
    assert!(found.is_empty(), "{}\n{}", found.len(), found.join("\n"));
}

#[test]
fn a_clause_at_the_beginning_is_found() {
    let source = "/// What is due.\n/// When it ends.\n\n/// Why? Because.\n/// When full, it waits.\n\n//! How many.\n\
        /// Number.\n\n/// When it ends.\n\n/// Where it is full, it waits.\n";
    let lines: Vec<String> = clauses("a.rs", source);
    assert_eq!(
        lines,
        [
            "a.rs:1: What is due. When it ends.",
            "a.rs:7: How many. Number.",
            "a.rs:10: When it ends."
        ]
    );
}

#[test]
fn a_listed_phrase_is_found_with_its_line() {
    let text = "One.\nAn engine of\n  ours. `of ours` is code, of, ours are two.";
    let found = faults("page", 10, &prose(text));
    assert_eq!(
        found,
        ["page:11: 'of ours'; write: \"plimsoll's own ...\", \"that plimsoll started\""]
    );
    assert_eq!(faults("page", 1, "What is a success? It may or may not be one.").len(), 0);
    assert_eq!(faults("page", 1, "A first one. What was lost is lost.").len(), 1);
    assert_eq!(faults("page", 1, &prose("```\nan engine of ours\n```\n## What is lost")).len(), 0);
}

#[test]
fn texts_of_a_source_are_its_literals_and_documentation() {
    let source = "/// One \"a\".\nlet a = '\"'; // no\nlet b = \"two \\\"b\\\" \\\n  more\"; r#\"raw\"#;\n\"last\"";
    let found: Vec<(usize, String)> = texts(source);
    let lines: Vec<usize> = found.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 4, 5], "{found:?}");
    assert!(found[1].1.ends_with("more"), "{found:?}");
}
