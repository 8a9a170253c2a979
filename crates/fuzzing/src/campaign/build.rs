//! Building the targets with what libFuzzer needs to see: counters of edges and compared values.

use super::{Plan, Sanitizer};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The programs of the targets.
pub struct Programs {
    by_name: BTreeMap<String, PathBuf>,
    /// Folder for inputs, findings and logs.
    pub work: PathBuf,
}

impl Programs {
    /// Builds the targets of a plan. The flags of the compiler are in `fuzz/.cargo/config.toml`, so that `cargo` alone builds
    /// the same.
    ///
    /// # Errors
    /// One line about what failed; the compiler's messages are on stderr.
    pub fn build(plan: &Plan) -> Result<Self, String> {
        let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz"));
        let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
        let mut command = Command::new(cargo);
        command.current_dir(folder).args([
            "build",
            "--release",
            "--locked",
            "--message-format=json-render-diagnostics",
        ]);
        for target in &plan.targets {
            command.args(["--bin", target.name]);
        }
        if plan.sanitizer == Some(Sanitizer::Address) {
            // The flag is one of a nightly compiler; its library is in every one for Linux.
            command.env("RUSTC_BOOTSTRAP", "1");
            command.args(["--config", "build.rustflags=[\"-Zsanitizer=address\"]"]);
            command.args(["--config", "build.target-dir=\"../target/fuzz-address\""]);
        }
        let output = command
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| format!("cargo cannot be started: {error}"))?;
        if !output.status.success() {
            return Err("the fuzz targets do not build".to_owned());
        }
        let mut by_name = BTreeMap::new();
        for line in output.stdout.split(|byte| *byte == b'\n') {
            let Ok(message) = serde_json::from_slice::<Value>(line) else { continue };
            let name = message.pointer("/target/name").and_then(Value::as_str);
            let program = message.get("executable").and_then(Value::as_str);
            if let (Some(name), Some(program)) = (name, program) {
                by_name.insert(name.to_owned(), PathBuf::from(program));
            }
        }
        let first = by_name.values().next().and_then(|path| path.ancestors().nth(3));
        let work = first.ok_or("cargo names no program that it built")?.join("fuzzing");
        Ok(Self { by_name, work })
    }

    /// The program of a target.
    ///
    /// # Errors
    /// When it was not built.
    pub fn of(&self, name: &str) -> Result<&Path, String> {
        let found = self.by_name.get(name).map(PathBuf::as_path);
        found.ok_or_else(|| format!("cargo built no program '{name}'; see fuzz/Cargo.toml"))
    }
}
