//! Other programs that a release needs: how they are run, and how they are installed.

use anyhow::{Context, Result, bail};
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// Runs a command to its end and returns its stdout.
///
/// # Errors
/// When it does not start, or ends with another code than 0; the error has its last lines.
pub fn output(command: &mut Command) -> Result<String> {
    let ended = ended(command)?;
    if !ended.status.success() {
        let text = String::from_utf8_lossy(&ended.stderr) + String::from_utf8_lossy(&ended.stdout);
        let lines: Vec<&str> = text.lines().collect();
        let last = lines[lines.len().saturating_sub(20)..].join("\n");
        bail!("{} ended with {}\n{last}", shown(command), ended.status);
    }
    Ok(String::from_utf8_lossy(&ended.stdout).into_owned())
}

/// Runs a command to its end, whatever its code.
///
/// # Errors
/// When it does not start; the error says what to install.
pub fn ended(command: &mut Command) -> Result<Output> {
    command.stdin(Stdio::null());
    command.output().with_context(|| {
        let name = command.get_program().to_string_lossy().into_owned();
        format!(
            "'{name}' cannot be started; if it is missing, run make dist or make dist-check, which install what they need"
        )
    })
}

/// Runs a command to its end; what it prints is shown as it comes.
///
/// # Errors
/// When it does not start, or ends with another code than 0.
pub fn run(command: &mut Command) -> Result<()> {
    let ended = command.stdin(Stdio::null()).status();
    let status = ended.with_context(|| format!("starting {}", shown(command)))?;
    if !status.success() {
        bail!("{} ended with {status}", shown(command));
    }
    Ok(())
}

fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(OsStr::to_string_lossy).collect::<Vec<_>>().join(" ")
}

/// True if a program is on the path.
#[must_use]
pub fn has(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Versions of the programs that make the binaries. Another version may make other bytes.
const ZIG: &str = "ziglang==0.15.2";
const ZIGBUILD: &str = "cargo-zigbuild==0.24.1";
const AUDITABLE: &str = "0.7.7";

/// The programs that make the binaries, installed below `target`.
pub struct Toolbox {
    folder: PathBuf,
}

impl Toolbox {
    /// Installs what is missing into a folder: zig and cargo-zigbuild as wheels, cargo-auditable by Cargo.
    ///
    /// # Errors
    /// When a registry cannot be reached, or Python is missing.
    pub fn install(folder: &Path) -> Result<Self> {
        let own = Self { folder: folder.to_owned() };
        let wanted = format!("{ZIG} {ZIGBUILD} cargo-auditable {AUDITABLE}");
        let installed = folder.join("installed");
        if std::fs::read_to_string(&installed).is_ok_and(|text| text == wanted) {
            return Ok(own);
        }
        std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
        let python = folder.join("python");
        run(Command::new("python3").args(["-m", "venv", "--clear"]).arg(&python))?;
        let pip = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check"];
        run(Command::new(python.join("bin/python")).args(pip).args([ZIG, ZIGBUILD]))?;
        let cargo = ["install", "--quiet", "--locked", "--force", "--version", AUDITABLE];
        run(Command::new(cargo_program())
            .args(cargo)
            .arg("cargo-auditable")
            .arg("--root")
            .arg(folder))?;
        std::fs::write(&installed, wanted).with_context(|| installed.display().to_string())?;
        Ok(own)
    }

    /// The search path with these programs before all others.
    ///
    /// # Errors
    /// When the folder's name cannot be in a search path.
    pub fn path(&self) -> Result<std::ffi::OsString> {
        let own = [self.folder.join("python/bin"), self.folder.join("bin")];
        let path = std::env::var_os("PATH").unwrap_or_default();
        Ok(std::env::join_paths(own.into_iter().chain(std::env::split_paths(&path)))?)
    }
}

/// The Cargo that this process was started by, or that of the path.
#[must_use]
pub fn cargo_program() -> std::ffi::OsString {
    std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into())
}
