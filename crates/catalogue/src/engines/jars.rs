//! Engines that come as jars: fetched, checked, compiled together with a launcher, and removed again.

use super::jar_engine::{
    JarEngine, LAUNCHER_JAR, RELEASE, SHARED_SOURCE, STAMP, hex, installed, jars_in,
};
use super::java::Java;
use super::unfinished::{Unfinished, lock, remove_unfinished, unfinished};
use super::{check_room, engines_home, maven};
use crate::install::Installed;
use anyhow::{Context, Result, bail};
use plimsoll_job::child::{End, follow, program};
use plimsoll_job::output::note;
use plimsoll_job::signals::Stopped;
use plimsoll_job::usage::usage;
use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

/// Free space that an installation asks for, bytes: jars, Maven's own copy of them, and the archive of classes.
const ROOM_BYTES: u64 = 300_000_000;
/// Longest compilation.
const COMPILE_LIMIT: Duration = Duration::from_secs(300);

/// Installs an engine, unless this version of it is there.
///
/// # Errors
/// The missing files, in one line.
pub fn install(engine: &JarEngine, force: bool) -> Result<Installed> {
    let folder = engine.folder()?;
    let home = engines_home()?;
    if !force && installed(engine).is_ok() {
        return Ok(Installed::Before);
    }
    let java = Java::find(engine)?;
    let (compiler, packer) = (java.tool("javac")?, java.tool("jar")?);
    let maven = maven::find(engine)?;
    check_room(&home, ROOM_BYTES, &format!("installing {}", engine.name))?;
    std::fs::create_dir_all(&home).map_err(|error| {
        usage(format!("{}: {error}; set PLIMSOLL_HOME to another folder", home.display()))
    })?;
    let _lock = lock(&home.join(format!(".{}.lock", engine.name)))?;
    // Another process may have done it in the meantime.
    if !force && installed(engine).is_ok() {
        return Ok(Installed::Before);
    }
    remove_unfinished(&home, engine.name)?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let work = Unfinished::new(&home, engine.name)?;
    note(&format!("plimsoll: fetching {} {} with Maven", engine.name, engine.version));
    maven::fetch(&maven, engine, &work.path)?;
    verify(&work.path.join("jars"), engine)?;
    compile(engine, &compiler, &packer, &work.path)?;
    prepare(engine, &java.program(), &work.path)?;
    // The archive of classes holds the names of the jars, so that it is made where they stay.
    std::fs::rename(&work.path, &folder).with_context(|| folder.display().to_string())?;
    note(&format!("plimsoll: starting {} once, so that it starts faster later", engine.name));
    if let Err(error) = super::node::archive_classes(engine, &java, &folder) {
        if error.is::<Stopped>() {
            return Err(error);
        }
        note(&format!("plimsoll: {} will start slower than it could: {error:#}", engine.name));
    }
    std::fs::write(folder.join(STAMP), engine.stamp())?;
    Ok(Installed::Now)
}

/// Removes an engine; whether it was there.
///
/// # Errors
/// When its folder cannot be removed.
pub fn clean(engine: &JarEngine) -> Result<bool> {
    let (folder, home) = (engine.folder()?, engines_home()?);
    if !folder.exists() && unfinished(&home, engine.name).is_empty() {
        return Ok(false);
    }
    // An installation that is still running keeps its files.
    let path = home.join(format!(".{}.lock", engine.name));
    let lock = lock(&path)?;
    remove_unfinished(&home, engine.name)?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .map_err(|error| usage(format!("{}: {error}", folder.display())))?;
    }
    let _ = std::fs::remove_file(&path);
    drop(lock);
    // An empty folder is of no use; one that is not empty stays.
    let _ = std::fs::remove_dir(&home);
    Ok(true)
}

/// Compares every jar with its checksum.
fn verify(folder: &Path, engine: &JarEngine) -> Result<()> {
    let wanted: BTreeMap<&str, &str> = engine
        .checksums
        .lines()
        .filter_map(|line| line.split_once("  "))
        .map(|(sum, name)| (name, sum))
        .collect();
    let there = jars_in(folder)?;
    if let Some(extra) = there.iter().find(|name| !wanted.contains_key(name.as_str())) {
        bail!(
            "{}: Maven fetched {extra}, which does not belong to it; nothing was installed",
            engine.name
        );
    }
    for (name, sum) in wanted {
        let file = folder.join(name);
        let bytes = std::fs::read(&file).map_err(|_| {
            anyhow::anyhow!("{}: Maven fetched no {name}; nothing was installed", engine.name)
        })?;
        if hex(&bytes) != sum {
            bail!(
                "{}: {name} is not the file that plimsoll knows (its SHA-256 differs); nothing was installed; \
                 remove it from Maven's repository (~/.m2) and try again",
                engine.name
            );
        }
    }
    Ok(())
}

fn compile(engine: &JarEngine, compiler: &Path, packer: &Path, work: &Path) -> Result<()> {
    let mut arguments = vec!["--release", RELEASE, "-cp", "jars/*", "-d", "classes"];
    for (name, text) in engine.files.iter().chain([&SHARED_SOURCE]) {
        let path = work.join(name);
        std::fs::create_dir_all(path.parent().unwrap_or(work))?;
        std::fs::write(path, text)?;
        if name.ends_with(".java") {
            arguments.push(name);
        }
    }
    tool(compiler, &arguments, work)?;
    tool(packer, &["--create", "--file", LAUNCHER_JAR, "-C", "classes", "."], work)
}

/// Runs the class that makes what the engine needs besides its jars.
fn prepare(engine: &JarEngine, java: &Path, work: &Path) -> Result<()> {
    if engine.prepare.is_empty() {
        return Ok(());
    }
    let options = engine.java_options(".");
    let class_path = format!("{LAUNCHER_JAR}:jars/*");
    let mut arguments: Vec<&str> = options.iter().map(String::as_str).collect();
    arguments.extend(["-cp", &class_path]);
    arguments.extend(engine.prepare);
    tool(java, &arguments, work)
}

/// Runs a tool of the development kit to its end.
fn tool(path: &Path, arguments: &[&str], work: &Path) -> Result<()> {
    let said = work.join("tool.log");
    let mut command = program(path);
    let out = File::create(&said)?;
    command
        .args(arguments)
        .current_dir(work)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(out);
    let mut child = command.spawn().with_context(|| format!("starting {}", path.display()))?;
    match follow(&mut child, COMPILE_LIMIT, Duration::from_secs(5)) {
        End::Exit(Some(0)) => Ok(()),
        End::Stopped => {
            Err(Stopped { during: "while the launcher was compiled".to_owned() }.into())
        }
        end => {
            let text = std::fs::read_to_string(&said).unwrap_or_default();
            let line = text.lines().find(|line| line.contains("error")).unwrap_or_default();
            bail!("{} failed ({end:?}): {line}", path.display())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::jar_engine::{ELASTICSEARCH, OPENSEARCH};
    use super::super::voltdb::VOLTDB;
    use super::*;

    #[test]
    fn every_jar_has_a_checksum_and_a_wrong_one_is_named() {
        for engine in [&OPENSEARCH, &ELASTICSEARCH, &VOLTDB] {
            let lines: Vec<_> = engine.checksums.lines().collect();
            assert!(lines.len() > 40, "{} jars", lines.len());
            for line in lines {
                let (sum, name) = line.split_once("  ").unwrap();
                assert!(sum.len() == 64 && name.ends_with(".jar"), "{line}");
            }
            for artifact in engine.artifacts {
                let jar = format!("  {}-{}.jar", artifact.name, artifact.version);
                assert!(engine.checksums.contains(&jar), "{jar}");
            }
        }
        let dir = tempfile::tempdir().unwrap();
        let checksums =
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad  a-1.jar\n";
        let engine = JarEngine { checksums, ..OPENSEARCH };
        let told = || verify(dir.path(), &engine).unwrap_err().to_string();
        assert!(told().contains("no a-1.jar"), "{}", told());
        std::fs::write(dir.path().join("a-1.jar"), "abc").unwrap();
        verify(dir.path(), &engine).unwrap();
        std::fs::write(dir.path().join("a-1.jar"), "abd").unwrap();
        assert!(told().contains("a-1.jar is not the file"), "{}", told());
        std::fs::write(dir.path().join("b-1.jar"), "abc").unwrap();
        assert!(told().contains("fetched b-1.jar"), "{}", told());
    }
}
