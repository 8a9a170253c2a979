//! Pages of the book as the tests read them: the fenced blocks, each with the mark before it.
//!
//! A mark is a comment, `<!-- test: KIND; OPTION; OPTION -->`, on one or more lines above the block. The kinds:
//!
//! | kind | meaning |
//! |---|---|
//! | `run` | commands; the runner executes them in the page's folder. Lines after one that begins with `$ ` are its output |
//! | `output` | a sample of what the command before prints |
//! | `input as FILE` | a file, which the commands that follow read |
//! | `sample NAME` | output that another test of the suite compares |
//! | `made by COMMAND` | tables that a target of the Makefile prints, which takes minutes to hours |
//! | `form REASON` | a grammar or a layout: nothing that a program could read or print |
//! | `not run REASON` | commands that need what a test does not have; their flags are checked all the same |
//!
//! The options: `serve ...` (a server that runs before), `behind PORT COMMAND` (another one), `before COMMAND`,
//! `after COMMAND`, `file NAME` (of tests/docs/files), `exit CODES`, `stderr`, `figures` (compared apart from the figures, which `make figures` writes), `shape` (the same, but not written), `with OLD => NEW` (in tests and for figures), `short OLD => NEW` (in tests only).

use crate::docs::root;

/// What a test does with a block.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Kind {
    Run,
    Output,
    Input(String),
    Sample(String),
    Made(String),
    Form(String),
    NotRun(String),
}

/// A fenced block of a page.
#[derive(Clone, Debug)]
pub struct Block {
    /// `PAGE:LINE` of its fence.
    pub at: String,
    pub kind: Option<Kind>,
    pub options: Vec<(String, String)>,
    pub lines: Vec<String>,
    /// Index of its first line in the lines of the page.
    pub first: usize,
    /// The line after its closing fence.
    pub below: String,
}

impl Block {
    /// The values of an option, in order.
    pub fn all<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a str> + 'a {
        self.options.iter().filter(move |(own, _)| own == name).map(|(_, value)| value.as_str())
    }

    pub fn has(&self, name: &str) -> bool {
        self.all(name).next().is_some()
    }
}

/// All pages whose blocks are held, by their paths from the root.
pub fn pages() -> Vec<String> {
    let folder = std::fs::read_dir(root().join("docs")).unwrap();
    let names = folder.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut pages: Vec<String> =
        names.filter(|name| name.ends_with(".md")).map(|name| format!("docs/{name}")).collect();
    pages.push("README.md".to_owned());
    pages.sort();
    pages
}

/// The blocks of a page, in order.
pub fn blocks(page: &str) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(page)).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let (mut blocks, mut at) = (Vec::new(), 0);
    while at < lines.len() {
        if !lines[at].starts_with("```") {
            at += 1;
            continue;
        }
        let first = at + 1;
        let length = lines[first..].iter().position(|line| line.starts_with("```"));
        let length = length.unwrap_or_else(|| panic!("{page}:{}: no end", at + 1));
        let (kind, options) = mark(&lines[..at], &format!("{page}:{}", at + 1));
        blocks.push(Block {
            at: format!("{page}:{}", at + 1),
            kind,
            options,
            lines: lines[first..first + length].iter().map(|line| (*line).to_owned()).collect(),
            first,
            below: lines.get(first + length + 1).unwrap_or(&"").to_string(),
        });
        at = first + length + 1;
    }
    blocks
}

/// The mark that ends these lines.
fn mark(above: &[&str], at: &str) -> (Option<Kind>, Vec<(String, String)>) {
    let ends = above.last().is_some_and(|line| line.ends_with("-->"));
    let begins = above.iter().rposition(|line| line.starts_with("<!-- test: "));
    let (true, Some(begins)) = (ends, begins) else { return (None, Vec::new()) };
    let text = above[begins..].join("; ");
    let Some((inside, "")) = text["<!-- test: ".len()..].split_once("-->") else {
        return (None, Vec::new());
    };
    let (first, rest) = inside.split_once("; ").unwrap_or((inside, ""));
    let (word, rest_of_kind) = named(first.trim());
    let kind = match (word, rest_of_kind) {
        ("run", "") => Kind::Run,
        ("output", "") => Kind::Output,
        ("input", name) if name.starts_with("as ") => Kind::Input(name[3..].to_owned()),
        ("sample", name) if !name.is_empty() => Kind::Sample(name.to_owned()),
        ("made", by) if by.starts_with("by ") => Kind::Made(by[3..].to_owned()),
        ("form", why) if !why.is_empty() => Kind::Form(why.to_owned()),
        ("not", why) if why.starts_with("run ") => Kind::NotRun(why[4..].to_owned()),
        (word, rest) => panic!("{at}: unknown kind of block '{word} {rest}'"),
    };
    (Some(kind), options(rest))
}

/// The options of a mark, separated by `; `.
pub fn options(text: &str) -> Vec<(String, String)> {
    let known = [
        "serve", "behind", "before", "after", "file", "exit", "stderr", "figures", "shape", "with",
        "short",
    ];
    let parts = text.split("; ").map(str::trim).filter(|part| !part.is_empty()).map(named);
    let option = |(word, value): (&str, &str)| {
        assert!(known.contains(&word), "unknown option '{word}' of a mark: {text}");
        (word.to_owned(), value.to_owned())
    };
    parts.map(option).collect()
}

/// A first word, and what follows it.
fn named(part: &str) -> (&str, &str) {
    part.split_once(' ').map_or((part, ""), |(word, rest)| (word, rest.trim()))
}

/// A command of a block, and the output that the block shows for it.
#[derive(Debug, PartialEq, Eq)]
pub struct Step {
    pub command: String,
    pub output: Vec<String>,
    /// Index of its first line of output in the block.
    pub first: usize,
}

/// The commands of a block: its lines, or those after `$ `, each with the lines that a shell would still read.
pub fn steps(lines: &[String]) -> Vec<Step> {
    let is_transcript = lines.iter().any(|line| line.starts_with("$ "));
    let mut steps: Vec<Step> = Vec::new();
    let mut is_open = false;
    for (index, line) in lines.iter().enumerate() {
        let prompted = line.strip_prefix("$ ");
        match steps.last_mut() {
            Some(step) if is_open => {
                step.command.push('\n');
                step.command.push_str(line);
            }
            Some(step) if is_transcript && prompted.is_none() => {
                step.output.push(line.clone());
                continue;
            }
            _ if line.trim().is_empty() => continue,
            _ => steps.push(Step {
                command: prompted.unwrap_or(line).to_owned(),
                output: Vec::new(),
                first: 0,
            }),
        }
        let step = steps.last_mut().unwrap();
        let ends = step.command.trim_end();
        is_open = ends.ends_with(['\\', '|']) || step.command.matches('\'').count() % 2 == 1;
        step.first = index + 1;
    }
    steps
}

#[test]
fn a_command_has_all_of_its_lines() {
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<Vec<_>>();
    let commands = |text: &str| -> Vec<String> {
        steps(&lines(text)).into_iter().map(|step| step.command).collect()
    };
    assert_eq!(commands("a \\\n  b\nc |\n  d"), ["a \\\n  b", "c |\n  d"]);
    assert_eq!(commands("curl 'x\n y' z\nd"), ["curl 'x\n y' z", "d"]);
    let shown = steps(&lines("$ a\nout\nmore\n$ b"));
    assert_eq!((shown[0].output.len(), shown[0].first), (2, 1));
    assert_eq!(shown[1].command, "b");
}
