//! A job as TOML says it: the same form for the catalogue and for files that users write.

use super::hooks::{HookSpec, KNOWN};
use super::near_miss::unknown;
use super::vars::{self, Argument, GIVEN, Variable};
use anyhow::Result;
use plimsoll_core::units::Span;
use plimsoll_job::toml_text;
use plimsoll_job::usage::usage;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Longest run of a job that names no timeout.
const TIMEOUT: Span = Span::seconds(2 * 3600);

/// A file with a `[job]` table.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct JobFile {
    job: Job,
}

/// A job.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Job {
    /// Its name, unique in the catalogue.
    pub name: String,
    /// Purpose, in one or two sentences.
    pub description: String,
    /// Words by group, such as `scope` and `component`.
    #[serde(default)]
    pub tags: BTreeMap<String, Vec<String>>,
    /// Command of a job without roles.
    #[serde(default)]
    command: Vec<Argument>,
    #[serde(default)]
    vars: BTreeMap<String, Variable>,
    #[serde(default)]
    install: Vec<Vec<Argument>>,
    #[serde(default)]
    prepare: Vec<Vec<Argument>>,
    target: Option<TargetSpec>,
    /// Sets of arguments to choose from.
    #[serde(default)]
    pub roles: BTreeMap<String, Role>,
    /// The role when the user names none.
    pub default_role: Option<String>,
    /// Hooks in the order in which they begin.
    #[serde(default)]
    pub hooks: Vec<HookSpec>,
    /// Longest run of the command.
    #[serde(default = "timeout")]
    pub timeout: Span,
    /// JSON pointers into the record; the first that leads to a number is the job's raw figure.
    #[serde(default = "metrics")]
    pub metrics: Vec<String>,
    /// The raw figure that counts as score 1.
    pub baseline: Option<f64>,
    /// The file's name for messages, and its text.
    #[serde(skip)]
    file: (String, String),
}

/// Command and variables of one role.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Arguments of plimsoll.
    pub command: Vec<Argument>,
    /// Its variables.
    #[serde(default)]
    pub vars: BTreeMap<String, Variable>,
    /// Commands of plimsoll that make the job's files, once, in `{data}`.
    #[serde(default)]
    pub install: Vec<Vec<Argument>>,
    /// Commands of plimsoll before each run, when the target answers.
    #[serde(default)]
    pub prepare: Vec<Vec<Argument>>,
    /// An embedded target to start first.
    pub target: Option<TargetSpec>,
}

/// An embedded target.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TargetSpec {
    /// Arguments of `plimsoll serve`.
    pub serve: Vec<Argument>,
    /// Longest time until it answers.
    #[serde(default = "ready_within")]
    pub ready_within: Span,
}

const fn timeout() -> Span {
    TIMEOUT
}

const fn ready_within() -> Span {
    Span::seconds(30)
}

fn metrics() -> Vec<String> {
    vec!["/rate/ok_per_s".to_owned()]
}

impl Job {
    /// Reads a job; `shown` is the file's name for messages.
    ///
    /// # Errors
    /// Wrong TOML, a field that does not exist, a variable that is used and not declared, a wrong hook: one
    /// line each, with the line of the file where the form is wrong.
    pub fn parse(text: &str, shown: &str) -> Result<Self> {
        let mut file: JobFile = toml_text::read(text, shown).map_err(usage)?;
        file.job.check().map_err(|Fault { field, why }| {
            let path: Vec<&str> = field.iter().map(String::as_str).collect();
            let line = toml_text::line_of_field(text, &path).unwrap_or(1);
            usage(format!("{shown}:{line}: field `{}`: {why}", named(&field)))
        })?;
        file.job.file = (shown.to_owned(), text.to_owned());
        Ok(file.job)
    }

    /// Returns file and line of the word that a message quotes first, or of the field where its word is not found, and the name
    /// of the field: `my.toml:4: field `job.command``.
    #[must_use]
    pub fn place_of(&self, message: &str, role: Option<&str>, field: &str) -> String {
        let (shown, text) = &self.file;
        let path: Vec<&str> = match role {
            Some(role) => vec!["job", "roles", role, field],
            None => vec!["job", field],
        };
        let word = message.split('\'').nth(1).unwrap_or_default();
        let quoted = format!("\"{word}\"");
        let line = match text.lines().position(|line| !word.is_empty() && line.contains(&quoted)) {
            Some(index) => index + 1,
            None => toml_text::line_of_field(text, &path).unwrap_or(1),
        };
        format!("{shown}:{line}: field `{}`", path.join("."))
    }

    fn check(&self) -> Result<(), Fault> {
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
        if self.name.is_empty() || !self.name.chars().all(plain) {
            let why = format!("'{}' is not a name; use letters, digits, _ and -", self.name);
            return Err(fault(&["name"], why));
        }
        if self.timeout.ns == 0 {
            return Err(fault(&["timeout"], "must be more than 0; every wait has a limit"));
        }
        if self.baseline.is_some_and(|baseline| !(baseline.is_finite() && baseline > 0.0)) {
            return Err(fault(&["baseline"], "must be a number above 0"));
        }
        if let Some(pointer) = self.metrics.iter().find(|pointer| !pointer.starts_with('/')) {
            let why = format!("'{pointer}' is not a JSON pointer; begin it with '/'");
            return Err(fault(&["metrics"], why));
        }
        let own = [("command", !self.command.is_empty()), ("vars", !self.vars.is_empty())];
        let own = own.into_iter().chain([
            ("install", !self.install.is_empty()),
            ("prepare", !self.prepare.is_empty()),
            ("target", self.target.is_some()),
        ]);
        let own: Vec<&str> = own.filter(|(_, is)| *is).map(|(name, _)| name).collect();
        if self.roles.is_empty() {
            if self.default_role.is_some() {
                return Err(fault(&["default_role"], "the job has no roles; leave it out"));
            }
            self.base().check(&[])?;
        } else if let Some(own) = own.first() {
            return Err(fault(&[own], "must be in the roles, since the job has roles"));
        }
        for (name, role) in &self.roles {
            role.check(&["roles", name])?;
        }
        if let Some(name) = &self.default_role {
            self.role(Some(name)).map_err(|error| fault(&["default_role"], error.to_string()))?;
        }
        for (index, hook) in self.hooks.iter().enumerate() {
            let field = if KNOWN.contains(&hook.name.as_str()) { "options" } else { "name" };
            super::hooks::check(std::slice::from_ref(hook))
                .map_err(|error| fault(&["hooks", &index.to_string(), field], error.to_string()))?;
        }
        Ok(())
    }

    fn base(&self) -> Role {
        Role {
            command: self.command.clone(),
            vars: self.vars.clone(),
            install: self.install.clone(),
            prepare: self.prepare.clone(),
            target: self.target.clone(),
        }
    }

    /// The arguments and variables of a role, with its name when the job has any.
    ///
    /// # Errors
    /// A role that the job does not have, or none named where one must be.
    pub fn role(&self, asked: Option<&str>) -> Result<(Option<String>, Role)> {
        let known: Vec<&str> = self.roles.keys().map(String::as_str).collect();
        let Some(name) = asked.or(self.default_role.as_deref()) else {
            return if known.is_empty() {
                Ok((None, self.base()))
            } else {
                let known = known.join(", ");
                Err(usage(format!("{} needs a role; give one with -r: {known}", self.name)))
            };
        };
        match self.roles.get(name) {
            Some(role) => Ok((Some(name.to_owned()), role.clone())),
            None if known.is_empty() => {
                Err(usage(format!("-r {name}: {} has no roles; leave it out", self.name)))
            }
            None => Err(unknown(&format!("role of {}", self.name), name, &known)),
        }
    }
}

impl Role {
    /// Checks the role whose fields are in this table of the job.
    fn check(&self, table: &[&str]) -> Result<(), Fault> {
        let fault = |field: &[&str], why: String| fault(&[table, field].concat(), why);
        if self.command.is_empty() {
            let why = "is missing or empty; write command = [\"load\", ...]";
            return Err(fault(&["command"], why.to_owned()));
        }
        if let Some(name) = self.vars.keys().find(|name| GIVEN.contains(&name.as_str())) {
            let why = format!("the variable {name} is reserved for the run; rename it");
            return Err(fault(&["vars", name], why));
        }
        let serve = self.target.iter().map(|target| (vec!["target", "serve"], &target.serve));
        let lists = [("install", &self.install), ("prepare", &self.prepare)];
        let lists = lists
            .into_iter()
            .flat_map(|(name, list)| list.iter().map(move |one| (vec![name], one)));
        let command = [(vec!["command"], &self.command)];
        for (field, arguments) in serve.chain(lists).chain(command) {
            let used = vars::names(arguments).map_err(|why| fault(&field, why))?;
            let has_target = self.target.is_some() && !matches!(field[0], "target" | "install");
            let mut known: Vec<&str> = self.vars.keys().map(String::as_str).collect();
            known.push("data");
            if has_target {
                known.extend(GIVEN.iter().filter(|given| given.starts_with("target")));
            }
            if let Some(wrong) = used.iter().find(|used| !known.contains(&used.as_str())) {
                return Err(fault(&field, unknown("variable", wrong, &known).to_string()));
            }
        }
        Ok(())
    }
}

/// A wrong value of a field.
struct Fault {
    /// Tables and field, with the index in a list.
    field: Vec<String>,
    why: String,
}

/// A wrong value in the table of the job.
fn fault(field: &[&str], why: impl Into<String>) -> Fault {
    let field = std::iter::once("job").chain(field.iter().copied()).map(str::to_owned).collect();
    Fault { field, why: why.into() }
}

/// A field as messages name it: `job.hooks.name`.
fn named(field: &[String]) -> String {
    let is_name = |part: &&String| part.parse::<usize>().is_err();
    field.iter().filter(is_name).map(String::as_str).collect::<Vec<_>>().join(".")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(text: &str) -> String {
        Job::parse(text, "my.toml").unwrap_err().to_string()
    }

    /// Lines 1 to 3 of a job file, which are right.
    const HEAD: &str = "[job]\nname = \"x\"\ndescription = \"d\"\n";

    #[test]
    fn a_wrong_job_is_one_line_with_file_line_and_field() {
        for (more, line) in [
            ("comand = []\n", "my.toml:4: unknown field `comand`; did you mean `command`?"),
            (
                "",
                "my.toml:1: field `job.command`: is missing or empty; write command = [\"load\", ...]",
            ),
            (
                "command = [\"load\", \"{ur}\"]\nvars = { url = { required = true } }\n",
                "my.toml:4: field `job.command`: unknown variable 'ur'; did you mean 'url'?",
            ),
            (
                "command = [\"load\", \"{x\"]\n",
                "my.toml:4: field `job.command`: '{x': a '{' that is not closed",
            ),
            (
                "command = [\"load\"]\nvars = { data = {} }\n",
                "my.toml:5: field `job.vars.data`: the variable data is reserved for the run; rename it",
            ),
            (
                "command = [\"load\"]\ntimeout = \"0s\"\n",
                "my.toml:5: field `job.timeout`: must be more than 0; every wait has a limit",
            ),
            (
                "command = [\"load\"]\nbaseline = 0.0\n",
                "my.toml:5: field `job.baseline`: must be a number above 0",
            ),
            (
                "command = [\"load\"]\nmetrics = [\"rate\"]\n",
                "my.toml:5: field `job.metrics`: 'rate' is not a JSON pointer; begin it with '/'",
            ),
            (
                "command = [\"load\"]\ndefault_role = \"a\"\n",
                "my.toml:5: field `job.default_role`: the job has no roles; leave it out",
            ),
            (
                "command = [\"load\"]\n[job.roles.a]\ncommand = [\"load\"]\n",
                "my.toml:4: field `job.command`: must be in the roles, since the job has roles",
            ),
            (
                "[job.roles.a]\nvars = {}\ncommand = [\"load\", \"{b}\"]\n",
                "my.toml:6: field `job.roles.a.command`: unknown variable 'b'; write one of data",
            ),
            (
                "[job.target]\nserve = [\"null\"]\n",
                "my.toml:1: field `job.command`: is missing or empty; write command = [\"load\", ...]",
            ),
            (
                "command = [\"load\"]\n[[job.hooks]]\nname = \"perf\"\n[[job.hooks]]\nname = \"shel\"\n",
                "my.toml:8: field `job.hooks.name`: unknown hook 'shel'; did you mean 'shell'?",
            ),
        ] {
            assert_eq!(error_of(&format!("{HEAD}{more}")), line, "{more}");
        }
    }

    #[test]
    fn a_wrong_value_of_a_job_names_its_line() {
        for (more, word) in [
            ("command = [\n", "my.toml:4"),
            ("command = [\"load\", \"{target_url}\"]\n", "my.toml:4: field `job.command`: "),
            ("command = [\"load\"]\ntimeout = \"soon\"\n", "my.toml:5: field `job.timeout`: "),
            (
                "default_role = \"b\"\n[job.roles.abc]\ncommand = [\"load\"]\n",
                "my.toml:4: field `job.default_role`: unknown role of x 'b'; write one of abc",
            ),
            (
                "command = [\"load\"]\n[[job.hooks]]\nname = \"perf\"\noptions = { a = 1 }\n",
                "my.toml:7: field `job.hooks.options`: ",
            ),
        ] {
            let error = error_of(&format!("{HEAD}{more}"));
            assert!(error.starts_with(word) && !error.contains('\n'), "{more}: {error}");
        }
        assert!(
            error_of("[job]\nname = \"a b\"\ndescription = \"\"\ncommand = [\"x\"]\n")
                .contains("a b")
        );
    }

    #[test]
    fn a_role_must_be_named_when_there_is_no_default() {
        let text = "[job]\nname = \"x\"\ndescription = \"d\"\n\
                    [job.roles.client]\ncommand = [\"load\"]\n[job.roles.server]\ncommand = [\"serve\"]\n";
        let job = Job::parse(text, "f").unwrap();
        let error_of = |role| job.role(role).unwrap_err().to_string();
        assert_eq!(error_of(None), "x needs a role; give one with -r: client, server");
        assert!(error_of(Some("clinet")).contains("did you mean 'client'?"));
        assert_eq!(job.role(Some("server")).unwrap().0.as_deref(), Some("server"));
    }
}
