//! Words that agents get beside those of the command line: the files that a matrix file names.

use super::reading::read_text;
use super::{SearchArgs, wrong};
use crate::spec::expanded;
use anyhow::{Context as _, Result};
use plimsoll_core::scenario::RowsScenario;
use plimsoll_job::job::AgentWords;
use plimsoll_job::temporary::temporary_folder;
use plimsoll_job::usage::usage;
use serde::Serialize;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;

/// The words for agents: with them a matrix file has no file of its own to read.
pub fn for_agents(args: &SearchArgs) -> Result<AgentWords> {
    for (is_given, flag) in [
        (args.show, "--show"),
        (args.print_queries, "--print-queries"),
        (args.import.is_some(), "--import"),
    ] {
        if is_given {
            return Err(usage(format!(
                "{flag} measures nothing that agents could carry out; leave out the flags of the fleet"
            )));
        }
    }
    let spec = args.spec()?;
    let folder = temporary_folder("matrix")?;
    let (mut words, mut file) = (Vec::new(), None);
    if let Some(path) = &args.file {
        let text = read_text(path, &path.display().to_string(), "a matrix file")?;
        let own = folder.path().join("matrix.toml");
        write(&own, &expanded(&text, path).map_err(wrong)?)?;
        file = Some((path.display().to_string(), own.display().to_string()));
    }
    if args.queries.is_none() {
        // The ten for a text of the user's machine, or those of the matrix file.
        let path = folder.path().join("queries.toml");
        write(&path, &spec.queries)?;
        words.push(format!("--queries={}", path.display()));
    }
    if args.header.is_empty() {
        words.extend(spec.headers.iter().map(|line| format!("--header={line}")));
    }
    if let (Some(RowsScenario { file, order, per }), None) = (&spec.rows, args.rows.scenario()?) {
        words.push(format!("--rows={}", file.display()));
        words.push(format!("--rows-order={}", word(order)?));
        words.push(format!("--rows-per={}", word(per)?));
    }
    Ok(AgentWords { words, file, files: Some(folder) })
}

/// Writes a file that only this user can read: the environment may have put a secret into it.
fn write(path: &Path, text: &str) -> Result<()> {
    let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path);
    let written = file.and_then(|mut file| file.write_all(text.as_bytes()));
    written.with_context(|| path.display().to_string())
}

/// The word for a value, as flags and files have it.
fn word(value: &impl Serialize) -> Result<String> {
    let value = serde_json::to_value(value)?;
    Ok(value.as_str().context("a value of one word")?.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args as _, FromArgMatches as _};

    fn of(words: &[&str]) -> Result<AgentWords> {
        let command = SearchArgs::augment_args(clap::Command::new("search").no_binary_name(true));
        for_agents(&SearchArgs::from_arg_matches(&command.try_get_matches_from(words)?)?)
    }

    #[test]
    fn agents_get_the_files_that_a_matrix_file_names_as_flags() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        let list = "[[query]]\nname = \"a\"\nkind = \"match\"\ntext = \"{{word}}\"\n";
        std::fs::write(path("q.toml"), list).unwrap();
        let text = "engines = [\"index\"]\nchecks = [\"body~${PATH}\"]\nqueries = \"q.toml\"\nrows = \"rows.csv\"\nrows_per = \"user\"\n\
                    headers = [\"A: ${PATH}\", \"@secret\"]\n";
        std::fs::write(path("m.toml"), text).unwrap();
        let file = path("m.toml");
        let own = of(&[&file]).unwrap();
        let written = own.words[0].strip_prefix("--queries=").unwrap();
        assert_eq!(std::fs::read_to_string(written).unwrap(), list);
        let (given, instead) = own.file.as_ref().unwrap();
        let sent = std::fs::read_to_string(instead).unwrap();
        assert!(*given == file && sent.contains(&std::env::var("PATH").unwrap()), "{sent}");
        let rows = format!("--rows={}", path("rows.csv"));
        let secret = format!("--header=@{}", path("secret"));
        let expected =
            ["--header=A: ${PATH}", &secret, &rows, "--rows-order=circular", "--rows-per=user"];
        assert_eq!(own.words[1..], expected);
        // Flags replace what the file says, and go to the agents by themselves.
        let (queries, rows) = (path("q.toml"), path("other.csv"));
        let flags = ["--queries", &queries, "--rows", &rows, "--header", "C: d"];
        let own = of(&[&[&*file], &flags[..]].concat()).unwrap();
        assert!(own.words.is_empty() && own.file.is_some(), "{own:?}");
        // The ten queries for a text are made here: agents do not have the text.
        let own = of(&["--engine", "index"]).unwrap();
        let written = own.words[0].strip_prefix("--queries=").unwrap();
        assert!(std::fs::read_to_string(written).unwrap().contains("one word"));
        for flag in ["--show", "--print-queries"] {
            let error = of(&["--engine", "index", flag]).unwrap_err().to_string();
            assert!(error.starts_with(flag), "{error}");
        }
    }
}
