//! The contract of a job, and the list in which the program keeps them.

use crate::together::Group;
use anyhow::Result;
use clap::{ArgMatches, Args};
use plimsoll_report::forms::Forms;
use tempfile::TempDir;

/// A job, or another command of the program: its flags, and what is done with them.
///
/// The flags are a struct with `#[derive(clap::Args)]`; its doc comment is the line in the list of commands, its
/// `after_help` the examples. One line in the list of the program ([`Command::of`]) adds the job.
pub trait Job: Args {
    /// The word on the command line.
    const NAME: &'static str;
    /// The forms in which its results are shown; by default those of a load.
    const FORMS: Forms = Forms::LOAD;

    /// Runs to the end, prints the result, and returns the exit code.
    ///
    /// # Errors
    /// Wrong usage, a target that cannot be reached, or a failure of the program.
    fn run(&self, program: &Program) -> Result<u8>;

    /// Words that agents get beside those of the command line, if files of the job name other files.
    ///
    /// # Errors
    /// A job that agents cannot carry out.
    fn words_for_agents(&self) -> Result<AgentWords> {
        Ok(AgentWords::default())
    }
}

/// Words of a command line for agents.
#[derive(Debug, Default)]
pub struct AgentWords {
    /// Flags with their values.
    pub words: Vec<String>,
    /// The word that names a file, and the file that agents get in its place.
    pub file: Option<(String, String)>,
    /// Place of files that they name, which goes with this value.
    pub files: Option<TempDir>,
}

/// A feed and a load at the same time, as command lines for agents.
pub struct Roles<'a> {
    /// Flags of the fleet.
    pub flags: &'a [String],
    /// Number of agents that feed, if the file names it.
    pub feed_agents: Option<u32>,
    /// Command line of the feed, the name of the command first.
    pub feed: &'a [String],
    /// Command line of the load.
    pub load: &'a [String],
    /// Runs the mix as the coordinator of both.
    pub job: &'a dyn Fn(Group) -> Result<u8>,
}

/// Functions of the program that a job may use.
#[derive(Clone, Copy)]
pub struct Program {
    /// Says what is wrong with a command line of this program, before it is run.
    pub check_words: fn(&[String]) -> Result<(), String>,
    /// Returns the parser of the whole program.
    pub parser: fn() -> clap::Command,
    /// Runs a command line of this program, and returns its exit code.
    pub run_words: fn(&[String]) -> Result<u8>,
    /// Runs a feed and a load at the same time, each by its own group of agents.
    pub run_roles: fn(&Roles<'_>) -> Result<u8>,
    /// Says what is wrong with flags of `serve rank`, before one is started with them.
    pub check_ranker: fn(&[String]) -> Result<()>,
    /// Returns the forms of all jobs, to show a record of any of them.
    pub forms: fn() -> Vec<Forms>,
}

/// An entry in the list of the program's commands.
#[derive(Clone, Copy)]
pub struct Command {
    name: &'static str,
    forms: Forms,
    arguments: fn(clap::Command) -> clap::Command,
    beside: Option<fn(clap::Command) -> clap::Command>,
    run: fn(&ArgMatches, &Program) -> Result<Result<u8>, clap::Error>,
    words_for_agents: fn(&ArgMatches) -> Result<Result<AgentWords>, clap::Error>,
}

impl Command {
    /// Returns the entry of a job.
    #[must_use]
    pub const fn of<J: Job>() -> Self {
        Self {
            name: J::NAME,
            forms: J::FORMS,
            arguments: J::augment_args,
            beside: None,
            run: |matches, program| Ok(J::from_arg_matches(matches)?.run(program)),
            words_for_agents: |matches| Ok(J::from_arg_matches(matches)?.words_for_agents()),
        }
    }

    /// The same entry with flags that the program has beside those of the job.
    #[must_use]
    pub const fn with_flags(mut self, flags: fn(clap::Command) -> clap::Command) -> Self {
        self.beside = Some(flags);
        self
    }

    /// The word on the command line.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// The forms in which results of the job are shown.
    #[must_use]
    pub const fn forms(&self) -> Forms {
        self.forms
    }

    /// The command for the parser of the whole program.
    #[must_use]
    pub fn parser(&self) -> clap::Command {
        let own = (self.arguments)(clap::Command::new(self.name));
        self.beside.map_or_else(|| own.clone(), |beside| beside(own.clone()))
    }

    /// Runs the job with what the parser found.
    ///
    /// # Errors
    /// The outer error is the parser's, the inner one the job's.
    pub fn run(&self, matches: &ArgMatches, program: &Program) -> Result<Result<u8>, clap::Error> {
        (self.run)(matches, program)
    }

    /// Words that agents get beside those of the command line.
    ///
    /// # Errors
    /// The outer error is the parser's, the inner one the job's.
    pub fn words_for_agents(
        &self,
        matches: &ArgMatches,
    ) -> Result<Result<AgentWords>, clap::Error> {
        (self.words_for_agents)(matches)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_report::forms::Below;
    use plimsoll_report::page::Tone;
    use plimsoll_report::samples;
    use plimsoll_report::text::{Style, render};

    /// Count to a number.
    #[derive(Args)]
    struct CountArgs {
        /// The number.
        #[arg(long, default_value_t = 3)]
        to: u8,
    }

    impl Job for CountArgs {
        const NAME: &'static str = "count";
        const FORMS: Forms = Forms {
            page: |page, record| {
                page.line(&format!("counted to {}", record.ledger.ok), Tone::Strong);
                Some(Below::Remarks)
            },
            ..Forms::LOAD
        };

        fn run(&self, program: &Program) -> Result<u8> {
            (program.check_ranker)(&[])?;
            Ok(self.to)
        }
    }

    #[test]
    fn an_entry_has_the_name_the_help_the_run_and_the_page_of_its_job() {
        let entry = Command::of::<CountArgs>();
        let parser = entry.parser();
        assert_eq!((entry.name(), parser.get_name()), ("count", "count"));
        assert_eq!(
            parser.get_about().map(ToString::to_string).as_deref(),
            Some("Count to a number")
        );
        let matches = parser.try_get_matches_from(["count", "--to", "7"]).unwrap();
        let good = Program {
            check_words: |_| Ok(()),
            parser: || clap::Command::new("plimsoll"),
            run_words: |_| Ok(0),
            run_roles: |_| Ok(0),
            check_ranker: |_| Ok(()),
            forms: || Vec::new(),
        };
        assert_eq!(entry.run(&matches, &good).unwrap().unwrap(), 7);
        let bad = Program { check_ranker: |_| anyhow::bail!("no ranker"), ..good };
        assert_eq!(entry.run(&matches, &bad).unwrap().unwrap_err().to_string(), "no ranker");
        let page = render(&samples::good(), None, &Style::default(), &[entry.forms()]);
        assert!(page.ends_with("counted to 300\n"), "{page}");
    }
}
