//! `plimsoll serve voltdb`: VoltDB's server for the community, with the schema of voter and procedures of plimsoll.

use super::Engine;
use super::jar_engine::{Artifact, JarEngine};
use super::node::{NodeServe, serve_node};
use anyhow::Result;
use plimsoll_core::units::Size;
use plimsoll_engine::exchange::Exchange;
use plimsoll_engine::target::Target;
use plimsoll_job::usage::usage;
use plimsoll_wire::volt::{Login, Request, Response, Value, Volt};
use std::path::Path;
use std::time::Duration;

/// Environment variable with the user's password.
pub const PASSWORD: &str = "VOLTDB_PASSWORD";
/// Longest wait for a login or an answer while the database starts.
const TRY: Duration = Duration::from_secs(5);

/// A file of plimsoll below the folder of engines.
macro_rules! own {
    ($name:literal, $path:literal) => {
        ($name, include_str!(concat!("../../engines/", $path)))
    };
    ($name:literal) => {
        own!($name, $name)
    };
}

/// Java packages that must be opened to the database.
const OPENED: [&str; 8] = [
    "--add-opens=java.base/java.lang=ALL-UNNAMED",
    "--add-opens=java.base/java.lang.invoke=ALL-UNNAMED",
    "--add-opens=java.base/java.net=ALL-UNNAMED",
    "--add-opens=java.base/java.nio=ALL-UNNAMED",
    "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
    "-Djava.security.egd=file:/dev/urandom",
    "-Dlog4j.configuration=file:{folder}/voltdb/log4j.properties",
    "-Dplimsoll.engine={folder}",
];

/// VoltDB, the last version whose server is in Maven's repository. Its own package of jars names no others, so that
/// all that it needs is named here.
pub const VOLTDB: JarEngine = JarEngine {
    name: "voltdb",
    version: "10.1.1",
    artifacts: &[
        Artifact { group: "org.voltdb", name: "voltdb", version: "10.1.1" },
        Artifact { group: "org.eclipse.jetty", name: "jetty-servlet", version: "9.4.33.v20201020" },
        Artifact {
            group: "org.eclipse.jetty",
            name: "jetty-continuation",
            version: "9.4.33.v20201020",
        },
        Artifact {
            group: "com.fasterxml.jackson.core",
            name: "jackson-databind",
            version: "2.11.3",
        },
        Artifact { group: "org.xerial.snappy", name: "snappy-java", version: "1.1.8.4" },
        Artifact { group: "org.apache.commons", name: "commons-lang3", version: "3.12.0" },
        Artifact { group: "ch.qos.reload4j", name: "reload4j", version: "1.2.25" },
        Artifact { group: "javax.xml.bind", name: "jaxb-api", version: "2.3.1" },
        Artifact { group: "org.glassfish.jaxb", name: "jaxb-runtime", version: "2.3.1" },
        Artifact { group: "org.apache.avro", name: "avro", version: "1.9.0" },
        Artifact { group: "com.google.guava", name: "guava", version: "19.0" },
        Artifact { group: "org.aeonbits.owner", name: "owner-java8", version: "1.0.12" },
        Artifact {
            group: "org.apache.felix",
            name: "org.apache.felix.framework",
            version: "5.6.12",
        },
        Artifact { group: "net.java.dev.jna", name: "jna", version: "4.5.2" },
        Artifact { group: "org.apache.calcite", name: "calcite-server", version: "1.18.0" },
    ],
    java: (11, 21),
    launcher: "VoltDBLauncher",
    files: &[
        own!("VoltDBLauncher.java"),
        own!("voltdb/log4j.properties"),
        own!("voltdb/schema.sql"),
        own!("voltdb/Initialize.java"),
        own!("voltdb/Vote.java"),
        own!("voltdb/Results.java"),
        own!("voltdb/GetStateHeatmap.java"),
        own!("voltdb/ContestantWinningStates.java"),
        own!("voltdb/Insert.java"),
        own!("voltdb/Select.java"),
        own!("voltdb/registry/RestClientException.java"),
        own!("voltdb/registry/SchemaRegistryClient.java"),
    ],
    options: &OPENED,
    prepare: &["org.voltdb.compiler.VoltCompiler", "voter.jar", "voltdb/schema.sql"],
    checksums: include_str!("../../engines/voltdb.sha256"),
    scheme: "volt",
    port: "port",
};

/// Command-line options of the database.
pub struct DatabaseServe<'a> {
    /// Port of its protocol; 0 is any.
    pub port: u16,
    /// Port of its HTTP; 0 is any.
    pub http_port: u16,
    /// Folder of its log; `None` is a temporary one.
    pub data: Option<&'a Path>,
    /// The file that keeps what it says.
    pub log: Option<&'a Path>,
    /// File for a copy of the ready line.
    pub ready_file: Option<&'a Path>,
    /// Java's heap; what is in the tables comes on top.
    pub heap: Size,
    /// Partitions, each with a thread.
    pub partitions: u16,
    /// The only one who may log in, with the password in the environment; without, every user may.
    pub user: Option<&'a str>,
}

/// Runs the database until the user stops it.
///
/// # Errors
/// Java or the database is missing, a port is in use, a user without a password, or it ends by itself.
pub fn serve_database(serve: &DatabaseServe<'_>) -> Result<u8> {
    let login = login(serve.user, std::env::var(PASSWORD).ok().as_deref())?;
    let http_port = match serve.http_port {
        0 => 0,
        port => super::supervise::free_port(port)
            .map_err(|error| usage(error.to_string().replace("--port", "--http-port")))?,
    };
    let mut arguments = vec![format!("sites={}", serve.partitions), format!("http={http_port}")];
    arguments.extend(serve.user.map(|user| format!("user={user}")));
    serve_node(&NodeServe {
        engine: Engine::Voltdb,
        port: serve.port,
        data: serve.data,
        log: serve.log,
        ready_file: serve.ready_file,
        heap: serve.heap,
        settings: &[],
        arguments: &arguments,
        answers: &|port| answers(&login, port),
    })
}

fn login(user: Option<&str>, password: Option<&str>) -> Result<Login> {
    let Some(user) = user else { return Ok(Login::new("", "")) };
    if user.is_empty() || user.chars().any(char::is_control) {
        return Err(usage("--user: write a name"));
    }
    let password = password
        .filter(|password| !password.is_empty())
        .ok_or_else(|| usage(format!("--user {user} needs a password; set {PASSWORD} to it")))?;
    if password.chars().any(char::is_control) {
        return Err(usage(format!("{PASSWORD} holds a character that the database does not take")));
    }
    Ok(Login::new(user, password))
}

/// Returns true if it takes a login and answers, and its cluster runs.
fn answers(login: &Login, port: u16) -> bool {
    let target = Target::resolve("127.0.0.1", port);
    let asked =
        Exchange::connect(Volt::new(login.clone()), &target, TRY).and_then(|mut exchange| {
            let mut request = Request::default();
            request.call("@Ping", &[]);
            let pong = exchange.ask(&request, |reply| reply.is_success())?;
            request.call("@SystemInformation", &[Value::String("OVERVIEW")]);
            Ok(pong && exchange.ask(&request, runs)?)
        });
    // It listens before it accepts a login.
    asked.unwrap_or(false)
}

fn runs(response: &Response<'_>) -> bool {
    response.table(0).is_some_and(|table| {
        table.rows().flatten().any(|row| {
            row.text(1) == Some("CLUSTERSTATE")
                && row.text(2).is_some_and(|state| state.eq_ignore_ascii_case("running"))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_has_a_name_and_a_password() {
        assert_eq!(login(None, Some("left over")).unwrap().user(), "");
        assert_eq!(login(Some("ann"), Some("secret")).unwrap().user(), "ann");
        for (user, password, word) in [
            ("ann", None, PASSWORD),
            ("ann", Some(""), PASSWORD),
            ("ann", Some("a\nb"), PASSWORD),
            ("", Some("secret"), "--user"),
            ("a\tb", Some("secret"), "--user"),
        ] {
            let told = login(Some(user), password).map(|_| ()).unwrap_err().to_string();
            assert!(told.contains(word) && !told.contains("secret"), "{told}");
        }
    }
}
