//! The files that a job needs: made once, and removed again by `clean`.

use super::plan::Plan;
use super::step::{Done, Step};
use anyhow::{Result, bail};
use plimsoll_job::output::note;
use plimsoll_job::signals::Stopped;
use plimsoll_job::usage::usage;
use std::path::Path;
use std::time::Duration;

/// The file by which a folder is known as one of plimsoll: the commands that made its content.
const MARKER: &str = "installed-by-plimsoll.txt";
/// Longest run of one command.
const LIMIT: Duration = Duration::from_secs(1800);

/// Result of an installation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Installed {
    /// The job needs no files.
    Nothing,
    /// They are there already.
    Before,
    /// They were made.
    Now,
}

/// Makes a job's files, unless the same commands of the same version have made them.
///
/// # Errors
/// A folder that is not ours, or a command that fails.
pub fn install(plan: &Plan, data: &Path, force: bool) -> Result<Installed> {
    if plan.install.is_empty() {
        return Ok(Installed::Nothing);
    }
    let marker = data.join(MARKER);
    let lines: Vec<String> = plan.install.iter().map(|line| line.join(" ")).collect();
    let made_by = format!("plimsoll {}\n{}\n", env!("CARGO_PKG_VERSION"), lines.join("\n"));
    if !force && std::fs::read_to_string(&marker).is_ok_and(|text| text == made_by) {
        return Ok(Installed::Before);
    }
    clean(data)?;
    std::fs::create_dir_all(data).map_err(|error| {
        usage(format!("--data {}: {error}; name another place", data.display()))
    })?;
    // Marked from the first moment, so that a broken installation can be cleaned; complete with the last line.
    std::fs::write(&marker, "not complete\n")?;
    let record = data.join("installed.json");
    for arguments in &plan.install {
        let shown = arguments.join(" ");
        note(&format!("plimsoll: {}: plimsoll {shown}", plan.job.name));
        let step = Step { arguments, processors: None, limit: LIMIT, shows_progress: true };
        match step.carry_out(&record)? {
            Done::Whole => {}
            Done::Stopped => {
                return Err(Stopped { during: "while its files were made".to_owned() }.into());
            }
            Done::Failed(end, _) => {
                bail!("installing {} failed ({end}): plimsoll {shown}", plan.job.name)
            }
        }
        let _ = std::fs::remove_file(&record);
    }
    std::fs::write(&marker, made_by)?;
    Ok(Installed::Now)
}

/// Removes a job's files; says whether there were any.
///
/// # Errors
/// A folder that plimsoll has not made, or that cannot be removed.
pub fn clean(data: &Path) -> Result<bool> {
    if !data.exists() {
        return Ok(false);
    }
    let empty = std::fs::read_dir(data).is_ok_and(|mut entries| entries.next().is_none());
    if !empty && !data.join(MARKER).is_file() {
        return Err(usage(format!(
            "{}: plimsoll has not made this folder and leaves it alone; name another --data DIR",
            data.display()
        )));
    }
    std::fs::remove_dir_all(data).map_err(|error| usage(format!("{}: {error}", data.display())))?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_folders_of_ours_are_removed() {
        let dir = tempfile::tempdir().unwrap();
        let (ours, theirs) = (dir.path().join("ours"), dir.path().join("theirs"));
        for folder in [&ours, &theirs] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("file"), "x").unwrap();
        }
        std::fs::write(ours.join(MARKER), "").unwrap();
        assert!(clean(&ours).unwrap() && !ours.exists());
        assert!(!clean(&ours).unwrap());
        assert!(clean(&theirs).unwrap_err().to_string().contains("leaves it alone"));
        assert!(theirs.join("file").exists());
    }
}
