//! Engines that come as jars: names, artifacts and files of each, and its place once it is installed.

use super::engines_home;
use anyhow::{Context, Result};
use plimsoll_job::usage::usage;
use ring::digest::{SHA256, digest};
use std::path::{Path, PathBuf};

/// The file by which a folder is known as a whole installation of plimsoll: what was installed.
pub(super) const STAMP: &str = "installed-by-plimsoll.txt";
/// Oldest Java that runs what is compiled.
pub(super) const RELEASE: &str = "11";

/// The jar of the launcher.
pub const LAUNCHER_JAR: &str = "launcher.jar";
/// Classes as the virtual machine likes to have them, made by a first start.
pub const ARCHIVE: &str = "classes.jsa";

pub(super) const SHARED_SOURCE: (&str, &str) =
    ("Loopback.java", include_str!("../../engines/Loopback.java"));
const LOGGING: (&str, &str) =
    ("log4j2.properties", include_str!("../../engines/log4j2.properties"));
/// Option with which a search engine finds the settings of its logging. The log ends with the process, after what
/// the node says while it closes; a hook of its own could end it before.
const LOGGING_OPTIONS: [&str; 4] = [
    "-Dlog4j2.shutdownHookEnabled=false",
    "-Dlog4j2.disable.jmx=true",
    "-Dlog4j2.formatMsgNoLookups=true",
    "-Dlog4j2.configurationFile={folder}/log4j2.properties",
];

/// A library by its name in the world of Java.
pub struct Artifact {
    pub group: &'static str,
    pub name: &'static str,
    pub version: &'static str,
}

/// An engine that comes as jars.
pub struct JarEngine {
    /// Its word on the command line.
    pub name: &'static str,
    /// The version that is installed.
    pub version: &'static str,
    /// Artifacts to fetch, including dependencies.
    pub artifacts: &'static [Artifact],
    /// The oldest and the newest Java it runs on.
    pub java: (u32, u32),
    /// The class of the launcher.
    pub launcher: &'static str,
    /// Files of plimsoll in its folder, by name and text; those in Java become classes beside its jars.
    pub files: &'static [(&'static str, &'static str)],
    /// Further Java options; `{folder}` is where the engine is.
    pub options: &'static [&'static str],
    /// A class that is run once when all else is in place, and its arguments.
    pub prepare: &'static [&'static str],
    /// SHA-256 and name of every jar.
    pub checksums: &'static str,
    /// The scheme of its address.
    pub scheme: &'static str,
    /// Name of the launcher's option for the port.
    pub port: &'static str,
}

/// OpenSearch. Version 3 needs a Java that Debian 12 does not have.
pub const OPENSEARCH: JarEngine = JarEngine {
    name: "opensearch",
    version: "2.19.1",
    artifacts: &[
        Artifact { group: "org.opensearch", name: "opensearch", version: "2.19.1" },
        Artifact {
            group: "org.opensearch.plugin",
            name: "transport-netty4-client",
            version: "2.19.1",
        },
        Artifact { group: "org.opensearch.plugin", name: "analysis-common", version: "2.19.1" },
        Artifact { group: "org.opensearch.plugin", name: "reindex-client", version: "2.19.1" },
        Artifact { group: "org.apache.logging.log4j", name: "log4j-core", version: "2.21.0" },
    ],
    java: (11, 21),
    launcher: "OpenSearchLauncher",
    files: &[
        LOGGING,
        ("OpenSearchLauncher.java", include_str!("../../engines/OpenSearchLauncher.java")),
    ],
    options: &LOGGING_OPTIONS,
    prepare: &[],
    checksums: include_str!("../../engines/opensearch.sha256"),
    scheme: "http",
    port: "http.port",
};

/// Elasticsearch. Its logging library is a later one than it came with, which had a hole.
pub const ELASTICSEARCH: JarEngine = JarEngine {
    name: "elasticsearch",
    version: "7.10.2",
    artifacts: &[
        Artifact { group: "org.elasticsearch", name: "elasticsearch", version: "7.10.2" },
        Artifact {
            group: "org.elasticsearch.plugin",
            name: "transport-netty4-client",
            version: "7.10.2",
        },
        Artifact { group: "org.elasticsearch.plugin", name: "reindex-client", version: "7.10.2" },
        Artifact { group: "org.apache.logging.log4j", name: "log4j-core", version: "2.17.2" },
        Artifact { group: "org.apache.logging.log4j", name: "log4j-api", version: "2.17.2" },
    ],
    java: (11, 21),
    launcher: "ElasticsearchLauncher",
    files: &[
        LOGGING,
        ("ElasticsearchLauncher.java", include_str!("../../engines/ElasticsearchLauncher.java")),
    ],
    options: &LOGGING_OPTIONS,
    prepare: &[],
    checksums: include_str!("../../engines/elasticsearch.sha256"),
    scheme: "http",
    port: "http.port",
};

impl JarEngine {
    pub(super) fn folder(&self) -> Result<PathBuf> {
        Ok(engines_home()?.join(format!("{}-{}", self.name, self.version)))
    }

    /// Returns the Java options of an engine in this folder.
    pub fn java_options(&self, folder: &str) -> Vec<String> {
        self.options.iter().map(|option| option.replace("{folder}", folder)).collect()
    }

    /// Returns the stamp of a complete installation of this engine by this program.
    pub(super) fn stamp(&self) -> String {
        let mut all = self.checksums.to_owned();
        for (name, text) in self.files.iter().chain([&SHARED_SOURCE]) {
            all.push_str(name);
            all.push_str(text);
        }
        for text in self.options.iter().chain(self.prepare).chain([&RELEASE]) {
            all.push_str(text);
        }
        format!("{} {}\n{}\n", self.name, self.version, hex(all.as_bytes()))
    }
}

/// The folder of an installed engine.
///
/// # Errors
/// When it is not installed; names the command that does it.
pub fn installed(engine: &JarEngine) -> Result<PathBuf> {
    let folder = engine.folder()?;
    if std::fs::read_to_string(folder.join(STAMP)).is_ok_and(|text| text == engine.stamp()) {
        return Ok(folder);
    }
    let name = engine.name;
    Err(usage(format!(
        "{name} {} is not installed in {}; run: plimsoll install {name}",
        engine.version,
        folder.display()
    )))
}

/// All jars of an installation, the launcher first, always in the same order: the archive of classes is good for
/// one order only.
///
/// # Errors
/// When the folder cannot be read.
pub fn class_path(folder: &Path) -> Result<String> {
    let mut jars: Vec<String> = jars_in(&folder.join("jars"))?
        .into_iter()
        .map(|name| format!("{}/jars/{name}", folder.display()))
        .collect();
    jars.sort_unstable();
    jars.insert(0, format!("{}/{LAUNCHER_JAR}", folder.display()));
    Ok(jars.join(":"))
}

/// Names of the jars in a folder.
///
/// # Errors
/// When the folder cannot be read.
pub(super) fn jars_in(folder: &Path) -> Result<Vec<String>> {
    let entries = std::fs::read_dir(folder).with_context(|| folder.display().to_string())?;
    let names = entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned());
    Ok(names.filter(|name| name.ends_with(".jar")).collect())
}

/// SHA-256 of some bytes, in hexadecimal digits.
pub(super) fn hex(bytes: &[u8]) -> String {
    digest(&SHA256, bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect()
}
