//! The two binaries of a release, built so that the folder, the time and the user leave no trace in them.
//!
//! One is linked by zig against an old glibc, so that it starts on every system of the last ten years. The other, for the
//! container image, is linked statically and needs no file at all.

use crate::programs::{Toolbox, cargo_program, run};
use crate::sources::Sources;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Oldest glibc with which the shared binary starts: that of RHEL 7 and Ubuntu 14.04, and the oldest that Rust supports.
pub const GLIBC: &str = "2.17";
/// Separator of flags in `CARGO_ENCODED_RUSTFLAGS`.
const UNIT: &str = "\u{1f}";
/// Flags of the static binary. It finds no function of the C library by its name, as getrandom would by default; without the second
/// flag random numbers came from `/dev/urandom`, which an empty root does not have.
const STATIC: [&str; 2] =
    ["-Ctarget-feature=+crt-static", "--cfg=getrandom_backend=\"linux_getrandom\""];

/// A target of the compiler.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its name, such as `x86_64-unknown-linux-gnu`.
    pub name: String,
    /// Its processor, such as `x86_64`.
    pub processor: String,
}

impl Target {
    /// Returns the target of this name.
    ///
    /// # Errors
    /// When releases have no such target.
    pub fn named(name: &str) -> Result<Self> {
        let known = ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu"];
        if !known.contains(&name) {
            bail!("--target {name}: not supported; expected {}", known.join(" or "));
        }
        let processor = name.split('-').next().unwrap_or_default().to_owned();
        Ok(Self { name: name.to_owned(), processor })
    }

    /// The target of this machine.
    ///
    /// # Errors
    /// When releases have no such target.
    pub fn own() -> Result<Self> {
        Self::named(&format!("{}-unknown-linux-gnu", std::env::consts::ARCH))
    }

    /// True if this machine has another processor.
    #[must_use]
    pub fn is_foreign(&self) -> bool {
        self.processor != std::env::consts::ARCH
    }

    /// Name of the processor in Debian's packages and in images.
    #[must_use]
    pub fn debian(&self) -> &'static str {
        if self.processor == "x86_64" { "amd64" } else { "arm64" }
    }

    /// A command that runs a program of this target, on another processor by an emulator with the C library of the cross compiler.
    ///
    /// # Errors
    /// When the emulator is missing.
    pub fn command(&self, program: &Path) -> Result<Command> {
        if !self.is_foreign() {
            return Ok(Command::new(program));
        }
        let emulator = format!("qemu-{}", self.processor);
        if !crate::programs::has(&emulator) {
            bail!(
                "{} runs here under {emulator}; install it: .ci/tools {emulator}:qemu-user",
                self.name
            );
        }
        let mut command = Command::new(emulator);
        command.args(["-L", &format!("/usr/{}-linux-gnu", self.processor)]).arg(program);
        Ok(command)
    }

    /// The compiler and linker of the static binary, if it is not `cc`.
    fn cross_compiler(&self) -> Option<String> {
        self.is_foreign().then(|| format!("{}-linux-gnu-gcc", self.processor))
    }
}

/// The binaries of one target.
#[derive(Clone, Debug)]
pub struct Built {
    /// Linked against the system's C library.
    pub shared: PathBuf,
    /// Linked statically.
    pub fixed: PathBuf,
}

impl Built {
    /// The binaries of a target, where they are built.
    #[must_use]
    pub fn of(sources: &Sources, target: &Target) -> Self {
        let program =
            |linked: &str| folder(sources, linked).join(&target.name).join("dist/plimsoll");
        Self { shared: program("shared"), fixed: program("static") }
    }
}

/// Folder of the builds that are linked in one way.
fn folder(sources: &Sources, linked: &str) -> PathBuf {
    sources.root.join("target/dist-build").join(linked)
}

/// Builds both binaries, below `target/dist-build` of the sources.
///
/// # Errors
/// When a build fails.
pub fn compile(sources: &Sources, toolbox: &Toolbox, target: &Target) -> Result<()> {
    let (shared, fixed) = (folder(sources, "shared"), folder(sources, "static"));
    let with_glibc = format!("{}.{GLIBC}", target.name);
    let mut zig = cargo(sources, toolbox, "zigbuild", &shared)?;
    run(zig.args(["--target", &with_glibc]).env("CARGO_ENCODED_RUSTFLAGS", flags(sources, &[])))?;
    let mut own = cargo(sources, toolbox, "build", &fixed)?;
    if let Some(compiler) = target.cross_compiler() {
        let name = target.name.replace('-', "_");
        own.env(format!("CARGO_TARGET_{}_LINKER", name.to_uppercase()), &compiler);
        own.env(format!("CC_{name}"), &compiler);
    }
    let fixed_flags = flags(sources, &STATIC);
    run(own.args(["--target", &target.name]).env("CARGO_ENCODED_RUSTFLAGS", fixed_flags))
}

/// Cargo with everything that decides about the bytes of a build, and nothing of the user's settings.
fn cargo(sources: &Sources, toolbox: &Toolbox, verb: &str, folder: &Path) -> Result<Command> {
    let mut cargo = Command::new(cargo_program());
    cargo.args(["auditable", verb, "--profile", "dist", "--locked", "--package", "plimsoll"]);
    cargo.args(["--bin", "plimsoll", "--target-dir"]).arg(folder).current_dir(&sources.root);
    for (name, _) in std::env::vars_os() {
        let text = name.to_string_lossy();
        let decides =
            ["CARGO_PROFILE_", "CARGO_BUILD_", "CARGO_TARGET_", "CARGO_PKG_", "CARGO_ENCODED"];
        let is_flag =
            ["RUSTFLAGS", "CFLAGS", "CC", "CXX", "AR", "LDFLAGS", "RUSTC_WRAPPER", "TARGET_CC"];
        if decides.iter().any(|start| text.starts_with(start)) || is_flag.contains(&&*text) {
            cargo.env_remove(&name);
        }
    }
    let modified = sources.modified.map(|changed| changed.to_string()).unwrap_or_default();
    cargo
        .env("PATH", toolbox.path()?)
        .env("PLIMSOLL_COMMIT", &sources.commit)
        .env("PLIMSOLL_MODIFIED", modified)
        .env("SOURCE_DATE_EPOCH", sources.epoch.to_string())
        .env("CARGO_INCREMENTAL", "0")
        .env("CFLAGS", c_flags(sources))
        .env("LC_ALL", "C")
        .env("TZ", "UTC");
    Ok(cargo)
}

/// Folders of this machine, and the names that the binaries have for them.
fn folders(sources: &Sources) -> Vec<(PathBuf, &'static str)> {
    let home = std::env::var_os("HOME").map(PathBuf::from).unwrap_or_default();
    let cargo_home =
        std::env::var_os("CARGO_HOME").map_or_else(|| home.join(".cargo"), PathBuf::from);
    let rustup_home =
        std::env::var_os("RUSTUP_HOME").map_or_else(|| home.join(".rustup"), PathBuf::from);
    vec![(sources.root.clone(), "/plimsoll"), (cargo_home, "/cargo"), (rustup_home, "/rustup")]
}

fn flags(sources: &Sources, more: &[&str]) -> OsString {
    let remap = |(folder, name): (PathBuf, &str)| {
        format!("--remap-path-prefix={}={name}", folder.display())
    };
    // The profile asks for the latter too, and a static program kept its symbols all the same.
    let own = ["-Clink-arg=-Wl,--build-id=sha1", "-Cstrip=symbols"].map(str::to_owned);
    let flags = folders(sources).into_iter().map(remap).chain(own);
    let flags: Vec<String> = flags.chain(more.iter().map(|&flag| flag.to_owned())).collect();
    flags.join(UNIT).into()
}

fn c_flags(sources: &Sources) -> String {
    let remap =
        |(folder, name): (PathBuf, &str)| format!("-ffile-prefix-map={}={name}", folder.display());
    folders(sources).into_iter().map(remap).collect::<Vec<_>>().join(" ")
}

/// Version of the C library that is linked statically, such as `glibc 2.36`.
///
/// # Errors
/// When no program here tells it.
pub fn libc_version(target: &Target) -> Result<String> {
    if target.is_foreign() {
        let package = format!("libc6-dev-{}-cross", target.debian());
        let mut query = Command::new("dpkg-query");
        let text = crate::programs::output(query.args(["-W", "-f", "${Version}", &package]))?;
        let version: String =
            text.chars().take_while(|c| c.is_ascii_digit() || *c == '.').collect();
        return Ok(format!("glibc {version}"));
    }
    let text = crate::programs::output(Command::new("getconf").arg("GNU_LIBC_VERSION"));
    Ok(text.context("version of the C library")?.trim().to_owned())
}
