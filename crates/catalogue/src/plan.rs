//! A job with its variables put in: the command lines of one run.

use super::hooks::{self, HookSpec};
use super::job::{Job, TargetSpec};
use super::vars::{Argument, Values, inputs, resolve, substitute, words};
use anyhow::Result;
use plimsoll_job::usage::usage;
use plimsoll_record::catalogue::CatalogueEntry;
use std::fmt::Write;
use std::path::Path;

/// Command-line options of a job's run.
#[derive(Clone, Debug, Default)]
pub struct Choices {
    /// `-i`, as given.
    pub inputs: Vec<String>,
    /// `-r`.
    pub role: Option<String>,
    /// `-k`.
    pub hooks: Vec<String>,
    /// `-a`.
    pub hook_arguments: Option<String>,
    /// `--disable-hooks`: none of the job's own.
    pub disable_hooks: bool,
}

/// One run of a job, ready to go.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The job.
    pub job: Job,
    /// The role, when the job has any.
    pub role: Option<String>,
    /// Variables with their values, and the folder of data.
    pub values: Values,
    /// Hooks in their order.
    pub hooks: Vec<HookSpec>,
    /// Commands that make the job's files.
    pub install: Vec<Vec<String>>,
    /// The embedded target.
    pub target: Option<TargetSpec>,
    prepare: Vec<Vec<Argument>>,
    command: Vec<Argument>,
    /// Words behind those of the job's own command.
    more: Vec<String>,
    vars: Values,
}

impl Plan {
    /// Makes it; `data` is the job's own folder.
    ///
    /// # Errors
    /// A variable, role or hook that does not exist, and all that is missing.
    pub fn new(job: &Job, choices: &Choices, data: &Path) -> Result<Self> {
        let (role, chosen) = job.role(choices.role.as_deref())?;
        let vars = resolve(&job.name, &chosen.vars, &inputs(&choices.inputs)?)?;
        let own: &[HookSpec] = if choices.disable_hooks { &[] } else { &job.hooks };
        let hooks = hooks::chosen(own, &choices.hooks, choices.hook_arguments.as_deref())?;
        let mut values = vars.clone();
        values.insert("data".to_owned(), data.to_string_lossy().into_owned());
        let install =
            chosen.install.iter().map(|line| substitute(line, &values)).collect::<Result<_>>()?;
        let plan = Self {
            job: job.clone(),
            role,
            values,
            hooks,
            install,
            target: chosen.target,
            prepare: chosen.prepare,
            command: chosen.command,
            more: Vec::new(),
            vars,
        };
        // Words that cannot be split are an error now, not when the target already runs.
        plan.command()?;
        Ok(plan)
    }

    /// The command's arguments, with what is known by now.
    ///
    /// # Errors
    /// A value that cannot be cut into words.
    pub fn command(&self) -> Result<Vec<String>> {
        Ok([substitute(&self.command, &self.values)?, self.more.clone()].concat())
    }

    /// Adds words to the command.
    pub fn add_words(&mut self, words: Vec<String>) {
        self.more.extend(words);
    }

    /// The commands before it.
    ///
    /// # Errors
    /// As [`Plan::command`].
    pub fn prepare(&self) -> Result<Vec<Vec<String>>> {
        self.prepare.iter().map(|line| substitute(line, &self.values)).collect()
    }

    /// Checks the words of all commands, as far as they are known before a target runs, with `check_words` of the program.
    ///
    /// # Errors
    /// The first command that this program does not understand, by where it stands in the job.
    pub fn check(&self, check_words: fn(&[String]) -> Result<(), String>) -> Result<()> {
        let lists = [
            ("install", self.install.clone()),
            ("target", self.serve()?.into_iter().collect()),
            ("prepare", self.prepare()?),
            ("command", vec![self.command()?]),
        ];
        for (name, list) in lists {
            for line in list {
                let words: Vec<String> = line.iter().map(|word| stand_in(word)).collect();
                check_words(&words).map_err(|why| {
                    let place = self.job.place_of(&why, self.role.as_deref(), name);
                    usage(format!("{place}: {why}"))
                })?;
            }
        }
        Ok(())
    }

    /// Arguments of the embedded target, `serve` included.
    ///
    /// # Errors
    /// As [`Plan::command`].
    pub fn serve(&self) -> Result<Option<Vec<String>>> {
        let Some(target) = &self.target else { return Ok(None) };
        let mut arguments = vec!["serve".to_owned()];
        arguments.extend(substitute(&target.serve, &self.values)?);
        Ok(Some(arguments))
    }

    /// The command lines, one each, in their order; nothing is run.
    ///
    /// # Errors
    /// As [`Plan::command`].
    pub fn dry_run(&self, more: &[String]) -> Result<String> {
        let mut out = String::new();
        let mut line = |arguments: &[String], tail: &str| {
            let words: Vec<String> = arguments.iter().map(|word| quoted(word)).collect();
            // Writing to a text cannot fail.
            let _ = writeln!(out, "plimsoll {}{tail}", words.join(" "));
        };
        self.install.iter().for_each(|arguments| line(arguments, ""));
        if let Some(serve) = self.serve()? {
            line(&serve, " &");
        }
        self.prepare()?.iter().for_each(|arguments| line(arguments, ""));
        line(&[self.command()?, more.to_vec()].concat(), "");
        for hook in &self.hooks {
            let _ = writeln!(out, "# hook {}", hook.shown());
        }
        Ok(out)
    }

    /// Returns the job's entry in the record.
    ///
    /// # Errors
    /// As [`Plan::command`].
    pub fn entry(&self) -> Result<CatalogueEntry> {
        Ok(CatalogueEntry {
            name: self.job.name.clone(),
            description: self.job.description.clone(),
            role: self.role.clone(),
            vars: self.vars.clone(),
            args: self.command()?,
            hooks: self.hooks.iter().map(HookSpec::shown).collect(),
            baseline: self.job.baseline,
            ..CatalogueEntry::default()
        })
    }
}

/// A word with what is known of a target before it runs: that its port is a number.
fn stand_in(word: &str) -> String {
    word.replace("{target_url}", "http://127.0.0.1:1")
        .replace("{target_host}", "127.0.0.1")
        .replace("{target_port}", "1")
}

/// A word as a shell would have to be given it.
pub(crate) fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=,%@+{}".contains(c);
    let is_plain = !word.is_empty() && word.chars().all(plain);
    if is_plain && words(word).is_ok_and(|words| words == [word]) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dry(job: &str, choices: &Choices) -> String {
        let job = crate::find(job).unwrap();
        Plan::new(&job, choices, Path::new("data dir")).unwrap().dry_run(&[]).unwrap()
    }

    fn with(inputs: &[&str]) -> Choices {
        let inputs = inputs.iter().map(|input| (*input).to_owned()).collect();
        Choices { inputs, disable_hooks: true, ..Choices::default() }
    }

    #[test]
    fn feedsim_takes_what_benchpress_users_write() {
        assert_eq!(
            dry("feedsim_autoscale", &with(&[])),
            "plimsoll rank --preset feedsim --slo p95=500ms\n"
        );
        let both = with(&[r#"{"num_instances": 2, "extra_args": "-q 100"}"#]);
        let line = "plimsoll rank --preset feedsim -n 2 --slo p95=500ms -q 100\n";
        assert_eq!(dry("feedsim_autoscale", &both), line);
        let apart = with(&["num_instances=2", "extra_args=-q 100"]);
        assert_eq!(dry("feedsim_autoscale", &apart), line);
        let own = with(&[r#"{"num_instances": -1}"#, "method=feedsim"]);
        let line = "plimsoll rank --preset feedsim --slo p95=500ms --strategy feedsim\n";
        assert_eq!(dry("feedsim_autoscale", &own), line);
        assert_eq!(
            dry("feedsim_mini", &with(&[])),
            "plimsoll rank --preset mini --budget 3m -d 20\n"
        );
        assert_eq!(
            dry("feedsim_default", &with(&["extra_args=-t 4 -o 'my file'"])),
            "plimsoll rank --preset feedsim -n 1 --slo p95=500ms -t 4 -o 'my file'\n"
        );
    }

    #[test]
    fn a_dry_run_tells_every_step() {
        let printed = dry("fbench", &Choices::default());
        let lines: Vec<&str> = printed.lines().collect();
        assert_eq!(lines.len(), 7, "{printed}");
        assert!(
            lines[0].starts_with("plimsoll corpus write")
                && lines[0].contains("'data dir/feed.ndjson'")
        );
        assert_eq!(lines[2], "plimsoll serve search --port 0 &");
        assert!(
            lines[5].starts_with("plimsoll fbench -n 8")
                && lines[5].ends_with("{target_host} {target_port}")
        );
        assert!(lines[6].starts_with("# hook cpu-mpstat"));
    }
}
