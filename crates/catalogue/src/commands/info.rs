//! `plimsoll info`: the commands, roles, variables and hooks of a job, or the place of an engine.

use super::job_or_engine;
use crate::engines::Engine;
use crate::job::{Job, Role};
use crate::{QUICKSTART, QUICKSTART_IS};
use anyhow::Result;
use clap::Args;
use plimsoll_job::exit;
use plimsoll_job::job::{self, Program};
use plimsoll_job::output::print_out;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::fmt::Write;

const INFO_EXAMPLES: &str = "\
Examples:
  Roles, variables and hooks of a job:    plimsoll info fbench
  The same for your own file:             plimsoll info my.toml --json";

/// Show the commands, roles, variables and hooks of a job
///
/// Of an engine, it shows where it is.
#[derive(Args, Debug)]
#[command(after_help = INFO_EXAMPLES)]
pub struct InfoArgs {
    /// Job, TOML file, or engine
    #[arg(value_name = "JOB|FILE.toml|ENGINE")]
    job: String,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Returns an engine as `list --json` and `info --json` print it.
pub(super) fn engine_json(engine: Engine) -> Value {
    let state = engine.state();
    json!({
        "name": engine.name(),
        "description": engine.description(),
        "version": state.version,
        "installed": state.place,
        "bytes": state.bytes,
    })
}

fn engine_text(engine: Engine) -> String {
    let (name, state) = (engine.name(), engine.state());
    let installed = match (&state.place, state.bytes) {
        (Some(place), Some(bytes)) => format!("{} ({} MB)", place.display(), bytes / 1_000_000),
        (Some(place), None) => place.display().to_string(),
        (None, _) => format!("no; run: plimsoll install {name}"),
    };
    format!(
        "{name} {}\n  {}\n\n  installed  {installed}\n  serve      plimsoll serve {name} --port 0\n  \
         in a job   target = {{ serve = [\"{name}\", \"--port\", \"0\"], ready_within = \"2m\" }}\n",
        state.version,
        engine.description()
    )
}

impl job::Job for InfoArgs {
    const NAME: &'static str = "info";

    fn run(&self, _program: &Program) -> Result<u8> {
        info(self)
    }
}

/// Runs `info`.
///
/// # Errors
/// No such job, or a file that is wrong.
fn info(args: &InfoArgs) -> Result<u8> {
    if args.job == QUICKSTART {
        let text = if args.json {
            format!(
                "{:#}\n",
                json!({"name": QUICKSTART, "description": QUICKSTART_IS, "roles": {}})
            )
        } else {
            format!(
                "{QUICKSTART}\n  {QUICKSTART_IS}\n  It is code: its second rate depends on the result of its first.\n"
            )
        };
        print_out(&text)?;
        return Ok(exit::FINE);
    }
    if let Some(engine) = Engine::find(&args.job) {
        let json = || format!("{:#}\n", engine_json(engine));
        print_out(&if args.json { json() } else { engine_text(engine) })?;
        return Ok(exit::FINE);
    }
    let job = job_or_engine(&args.job)?;
    print_out(&if args.json { info_json(&job)? } else { info_text(&job)? })?;
    Ok(exit::FINE)
}

/// The roles of a job by name; one without a name when it has none.
fn roles(job: &Job) -> Result<Vec<(Option<String>, Role)>> {
    if job.roles.is_empty() {
        return Ok(vec![job.role(None)?]);
    }
    job.roles.keys().map(|name| job.role(Some(name))).collect()
}

/// A command as the job writes it, groups in brackets.
fn shown(arguments: &[crate::vars::Argument]) -> String {
    use crate::vars::Argument;
    let shown = |argument: &Argument| match argument {
        Argument::One(text) => text.clone(),
        Argument::Group(texts) => format!("[{}]", texts.join(" ")),
    };
    let words: Vec<String> = arguments.iter().map(shown).collect();
    format!("plimsoll {}", words.join(" "))
}

fn info_json(job: &Job) -> Result<String> {
    let role = |role: &Role| {
        let vars: BTreeMap<&String, Value> = role
            .vars
            .iter()
            .map(|(name, variable)| {
                let default = (!variable.required).then_some(&variable.default);
                (name, json!({"default": default, "required": variable.required, "help": variable.help}))
            })
            .collect();
        json!({"command": shown(&role.command), "vars": vars})
    };
    let roles: BTreeMap<String, Value> = roles(job)?
        .iter()
        .map(|(name, one)| (name.clone().unwrap_or_default(), role(one)))
        .collect();
    let hooks: Vec<Value> =
        job.hooks.iter().map(|hook| json!({"name": hook.name, "options": hook.options})).collect();
    let about = json!({
        "name": job.name,
        "description": job.description,
        "tags": job.tags,
        "default_role": job.default_role,
        "roles": roles,
        "hooks": hooks,
        "timeout": job.timeout,
        "metrics": job.metrics,
        "baseline": job.baseline,
    });
    Ok(format!("{about:#}\n"))
}

fn info_text(job: &Job) -> Result<String> {
    let mut out = format!("{}\n  {}\n", job.name, job.description);
    // Writing to a text cannot fail, here and below.
    for (group, words) in &job.tags {
        let _ = writeln!(out, "  {group}: {}", words.join(", "));
    }
    for (name, role) in roles(job)? {
        if let Some(name) = name {
            let is_default = job.default_role.as_ref() == Some(&name);
            let _ = writeln!(out, "\nrole {name}{}", if is_default { " (default)" } else { "" });
        } else {
            out.push('\n');
        }
        for line in &role.install {
            let _ = writeln!(out, "  install  {}", shown(line));
        }
        if let Some(target) = &role.target {
            let _ =
                writeln!(out, "  target   {}", shown(&target.serve).replacen(' ', " serve ", 1));
        }
        for line in &role.prepare {
            let _ = writeln!(out, "  prepare  {}", shown(line));
        }
        let _ = writeln!(out, "  run      {}", shown(&role.command));
        for (name, variable) in &role.vars {
            let value = if variable.required {
                "must be given".to_owned()
            } else {
                format!("'{}'", variable.default)
            };
            let _ = writeln!(out, "  -i {name}=  {value}  {}", variable.help);
        }
    }
    out.push('\n');
    for hook in &job.hooks {
        let _ = writeln!(out, "hook {}", hook.shown());
    }
    let baseline = job.baseline.map_or("none".to_owned(), |baseline| baseline.to_string());
    let _ = writeln!(
        out,
        "timeout {}, baseline {baseline}, figure {}",
        job.timeout,
        job.metrics.join(" or ")
    );
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{find, names};

    #[test]
    fn shows_every_job() {
        for name in names().into_iter().filter(|name| *name != QUICKSTART) {
            let job = find(name).unwrap();
            let text = info_text(&job).unwrap();
            assert!(
                text.contains("  run      plimsoll") && text.contains("hook cpu-mpstat"),
                "{text}"
            );
            let value: Value = serde_json::from_str(&info_json(&job).unwrap()).unwrap();
            assert_eq!(value["name"], name);
        }
    }
}
