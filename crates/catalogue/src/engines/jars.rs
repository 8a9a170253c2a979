//! Engines that come as jars: fetched, checked, compiled together with a launcher, and removed again.

use super::jar_engine::{
    JarEngine, LAUNCHER_JAR, RELEASE, SHARED_SOURCE, STAMP, hex, installed, jars_in,
};
use super::java::Java;
use super::{check_room, engines_home, maven};
use crate::install::Installed;
use anyhow::{Context, Result, bail};
use plimsoll_job::child::{End, follow, program};
use plimsoll_job::output::note;
use plimsoll_job::signals::{self, Stopped};
use plimsoll_job::usage::usage;
use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

/// Free space that an installation asks for, bytes: jars, Maven's own copy of them, and the archive of classes.
const ROOM_BYTES: u64 = 300_000_000;
/// Longest compilation.
const COMPILE_LIMIT: Duration = Duration::from_secs(300);
/// Pause between two looks at a lock that another installation holds.
const LOCK_PAUSE: Duration = Duration::from_millis(200);

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
    remove_unfinished(&home, engine)?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder).with_context(|| folder.display().to_string())?;
    }
    let work = Unfinished::new(&home, engine)?;
    note(&format!("plimsoll: fetching {} {} with Maven", engine.name, engine.version));
    maven::fetch(&maven, engine, &work.0)?;
    verify(&work.0.join("jars"), engine)?;
    compile(engine, &compiler, &packer, &work.0)?;
    prepare(engine, &java.program(), &work.0)?;
    // The archive of classes holds the names of the jars, so that it is made where they stay.
    std::fs::rename(&work.0, &folder).with_context(|| folder.display().to_string())?;
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
    if !folder.exists() && unfinished(&home, engine).is_empty() {
        return Ok(false);
    }
    // Nothing is taken away from an installation that is under way.
    let path = home.join(format!(".{}.lock", engine.name));
    let lock = lock(&path)?;
    remove_unfinished(&home, engine)?;
    if folder.exists() {
        std::fs::remove_dir_all(&folder)
            .map_err(|error| usage(format!("{}: {error}", folder.display())))?;
    }
    let _ = std::fs::remove_file(&path);
    drop(lock);
    // An empty folder is of no use to anybody; one that is not empty stays.
    let _ = std::fs::remove_dir(&home);
    Ok(true)
}

/// A folder that goes away again unless it was renamed.
struct Unfinished(PathBuf);

impl Unfinished {
    fn new(home: &Path, engine: &JarEngine) -> Result<Self> {
        let path = home.join(format!(".{}-{}", engine.name, std::process::id()));
        std::fs::create_dir_all(&path)?;
        Ok(Self(path))
    }
}

/// The folders that installations of an engine have begun and not finished.
fn unfinished(home: &Path, engine: &JarEngine) -> Vec<PathBuf> {
    let begin = format!(".{}-", engine.name);
    let is_one = |entry: &std::fs::DirEntry| {
        let name = entry.file_name();
        let number = name.to_str().and_then(|name| name.strip_prefix(&begin));
        number.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let Ok(entries) = std::fs::read_dir(home) else { return Vec::new() };
    entries.flatten().filter(is_one).map(|entry| entry.path()).collect()
}

/// Removes them. The holder of the lock knows that those who made them are gone; one of them may have had the number that this
/// process has, and its half of a jar would be taken for a whole one.
fn remove_unfinished(home: &Path, engine: &JarEngine) -> Result<()> {
    for path in unfinished(home, engine) {
        std::fs::remove_dir_all(&path).with_context(|| path.display().to_string())?;
    }
    Ok(())
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Waits until no other process installs the same; ends with the file.
fn lock(path: &Path) -> Result<File> {
    let open = || {
        // Whoever removed the last engine has removed the folder, too.
        let folder = path.parent().map_or(Ok(()), std::fs::create_dir_all);
        folder.and_then(|()| File::create(path)).with_context(|| path.display().to_string())
    };
    let mut file = open()?;
    loop {
        match file.try_lock() {
            Ok(()) if is_at(&file, path) => return Ok(file),
            // Who had it has removed it: it locks nobody out any more.
            Ok(()) => file = open()?,
            Err(TryLockError::WouldBlock) => std::thread::sleep(LOCK_PAUSE),
            // A file system without locks has nobody else on it either, as far as can be known.
            Err(TryLockError::Error(_)) => return Ok(file),
        }
        signals::go_on("while another installation was running")?;
    }
}

/// Returns true if an open file is the one of this name.
fn is_at(file: &File, path: &Path) -> bool {
    let own = file.metadata().map(|about| (about.dev(), about.ino()));
    let there = path.metadata().map(|about| (about.dev(), about.ino()));
    matches!((own, there), (Ok(own), Ok(there)) if own == there)
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
    fn what_was_begun_and_not_finished_is_known_and_goes() {
        let home = tempfile::tempdir().unwrap();
        let names = [".opensearch-17", ".opensearch-4000000", ".opensearch-x", ".elasticsearch-17"];
        for name in names {
            std::fs::create_dir(home.path().join(name)).unwrap();
            std::fs::write(home.path().join(name).join("half.jar"), "PK").unwrap();
        }
        remove_unfinished(home.path(), &OPENSEARCH).unwrap();
        let left = names.map(|name| home.path().join(name).exists());
        assert_eq!(left, [false, false, true, true]);
        assert!(unfinished(home.path(), &OPENSEARCH).is_empty());
    }

    #[test]
    fn a_lock_that_was_removed_locks_nobody_out() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().join("home");
        let path = home.join(".lock");
        let first = lock(&path).unwrap();
        assert!(is_at(&first, &path));
        let waiting = {
            let path = path.clone();
            std::thread::spawn(move || lock(&path).map(|file| is_at(&file, &path)))
        };
        // As `clean` does: the waiting one has it open by now, or opens another.
        std::thread::sleep(LOCK_PAUSE);
        std::fs::remove_dir_all(&home).unwrap();
        drop(first);
        assert!(waiting.join().unwrap().unwrap(), "the lock of a file that is gone");
    }

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
