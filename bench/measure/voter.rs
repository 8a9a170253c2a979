//! Votes: plimsoll's client beside VoltDB's own for Java, and its embedded database beside VoltDB and PostgreSQL.

use super::{Bench, Claim, Section};
use crate::child::{Child, client_jars, require};
use crate::server::Server;
use crate::statistics::{median, ratios, short, spread, whole};
use crate::table::Table;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::path::{Path, PathBuf};

/// Workers of every run of plimsoll's, each with one call under way.
const WORKERS: u32 = 200;
/// The client that is measured against.
const JAVA_CLIENT: &str = "voltdbclient-13.2.2";
/// Votes of the Java client at most: ten times a preset's. The more, the less its start weighs.
const JAVA_VOTES_MAX: u64 = 1_000_000;
/// How much longer than its own duration a client may take, s.
const PATIENCE_S: u32 = 60;
/// Longest warming of a database: it is warm when two runs in a row were no faster.
const WARM_RUNS: u32 = 8;
const GAIN: f64 = 0.05;

/// A database, and how it is called in tables.
struct Database {
    name: &'static str,
    kind: &'static str,
    /// What it is started with.
    flags: &'static [&'static str],
    /// What the client is told besides.
    client: &'static [&'static str],
    /// Whether it keeps a folder.
    has_folder: bool,
    /// Whether it grows faster for a while.
    is_warmed: bool,
}

/// All of them, those of plimsoll first.
const DATABASES: [Database; 5] = [
    own("plimsoll, none", &["--partitions", "1"], false),
    own("plimsoll, async", &["--partitions", "1", "--durability", "async"], true),
    own("plimsoll, sync", &["--partitions", "1", "--durability", "sync"], true),
    Database {
        name: "VoltDB 10.1.1",
        kind: "voltdb",
        flags: &["--partitions", "1", "--heap", "1GiB"],
        client: &[],
        has_folder: false,
        is_warmed: true,
    },
    Database {
        name: "PostgreSQL",
        kind: "postgresql",
        flags: &["--durability", "async"],
        client: &["--sql", "function"],
        has_folder: false,
        is_warmed: false,
    },
];
const NONE: usize = 0;
const ASYNC: usize = 1;
const SYNC: usize = 2;
const VOLTDB: usize = 3;
const POSTGRESQL: usize = 4;

const fn own(name: &'static str, flags: &'static [&'static str], has_folder: bool) -> Database {
    Database { name, kind: "voter", flags, client: &[], has_folder, is_warmed: false }
}

/// What one run took.
#[derive(Clone, Copy)]
struct Took {
    /// Votes that were answered.
    votes: f64,
    per_s: f64,
    client_cpu_s: f64,
    server_cpu_s: f64,
}

impl Took {
    fn client_cpu_us(&self) -> f64 {
        self.client_cpu_s * 1e6 / self.votes
    }

    fn per_server_cpu_s(&self) -> f64 {
        self.votes / self.server_cpu_s
    }
}

/// Clients and databases in turn, round by round.
///
/// # Errors
/// When VoltDB cannot be installed, something is missing or does not start, or a run fails.
pub fn voter(bench: &Bench) -> Result<Section> {
    install(bench)?;
    let load = compile(bench)?;
    let mut all: [Vec<Took>; 5] = Default::default();
    let mut java = Vec::new();
    for round in 0..bench.rounds as usize {
        for step in 0..DATABASES.len() {
            let at = (round + step) % DATABASES.len();
            let database = &DATABASES[at];
            eprint!("\rround {} of {}: {:<30}", round + 1, bench.rounds, database.name);
            let folder = bench.folder.path().join("voter-data");
            let server = start(bench, database, &folder)?;
            if database.is_warmed {
                warm(bench, database, &server, round)?;
            }
            all[at].push(vote(bench, database, &server, bench.seconds, round)?);
            if at == NONE {
                // The same server takes the other client's votes.
                let votes = all[at].last().map_or(0.0, |took| took.votes) as u64;
                java.push(vote_in_java(bench, &load, &server, votes.min(JAVA_VOTES_MAX), round)?);
            }
            drop(server);
            let _ = std::fs::remove_dir_all(&folder);
        }
    }
    eprint!("\r{:<60}\r", "");
    Ok(section(&all, &java))
}

fn install(bench: &Bench) -> Result<()> {
    let arguments = ["install", "voltdb"].map(str::to_owned);
    let ended = Child::start(&bench.plimsoll, &arguments, None)?.finish(600, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("installing VoltDB failed: {}", ended.errors.trim());
    }
    Ok(())
}

fn start(bench: &Bench, database: &Database, folder: &Path) -> Result<Server> {
    let shown = folder.display().to_string();
    let mut flags = database.flags.to_vec();
    if database.has_folder {
        flags.extend(["--data", &shown]);
    }
    Server::plimsoll(bench, database.kind, &flags)
}

/// Votes until that grows no faster, with all cores for whatever the database does besides: Java compiles what it runs.
fn warm(bench: &Bench, database: &Database, server: &Server, round: usize) -> Result<()> {
    server.pin(&[bench.cores.target, bench.cores.generator])?;
    let (mut best, mut since) = (0.0_f64, 0);
    for run in 0..WARM_RUNS {
        let seed = 1_000 * (round + 1) + run as usize;
        let took = vote(bench, database, server, bench.seconds.div_ceil(2), seed)?;
        since = if took.per_s > best * (1.0 + GAIN) { 0 } else { since + 1 };
        best = best.max(took.per_s);
        if since == 2 {
            break;
        }
    }
    server.pin(&[bench.cores.target])
}

/// plimsoll's client, as users call it: histograms and the check of writes are part of what it does.
fn vote(
    bench: &Bench,
    database: &Database,
    server: &Server,
    seconds: u32,
    seed: usize,
) -> Result<Took> {
    // An earlier build knows `--clients` by this name.
    let words = format!(
        "voter {} --workers {WORKERS} --duration {seconds}s --seed {} --no-record --quiet --json -",
        server.url.trim_end_matches('/'),
        seed + 1
    );
    let mut arguments: Vec<String> = words.split(' ').map(str::to_owned).collect();
    arguments.extend(database.client.iter().map(|&word| word.to_owned()));
    let before_s = server.family_cpu_s()?;
    let child = Child::start(&bench.plimsoll, &arguments, Some(bench.cores.generator))?;
    let ended = child.finish(seconds + PATIENCE_S, &bench.interrupted)?;
    let server_cpu_s = server.family_cpu_s()? - before_s;
    // It ends with 3 when it judges that a run does not say much about the target; it is itself what is measured here.
    if !matches!(ended.code, Some(0 | 3)) {
        bail!("voting at {} ended with {:?}: {}", database.name, ended.code, ended.errors.trim());
    }
    let record: Value = serde_json::from_str(&ended.output).context("the record of a vote")?;
    let number = |path: &str| -> Result<f64> {
        record.pointer(path).and_then(Value::as_f64).with_context(|| format!("no {path}"))
    };
    let check = record.pointer("/voter/check").and_then(Value::as_str).unwrap_or("none");
    let (votes, sent) = (number("/ledger/ok")?, number("/ledger/sent")?);
    if votes != sent || votes == 0.0 || check != "ok" {
        bail!("{}: {votes} of {sent} votes were answered, check of writes: {check}", database.name);
    }
    let per_s = number("/rate/ok_per_s")?;
    Ok(Took { votes, per_s, client_cpu_s: ended.cpu_s, server_cpu_s })
}

/// The program that votes through the Java client, and the class path that it runs with.
struct JavaLoad {
    java: PathBuf,
    class_path: String,
}

fn compile(bench: &Bench) -> Result<JavaLoad> {
    let jars = client_jars(JAVA_CLIENT)?.join("*").display().to_string();
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../bench/java/VoteLoad.java");
    let classes = bench.folder.path().join("classes").display().to_string();
    let source = source.display().to_string();
    let arguments = ["-d", &classes, "-cp", &jars, &source].map(str::to_owned);
    let compiler = Child::start(&require("javac")?, &arguments, None)?;
    let ended = compiler.finish(120, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("javac {source}: {}", ended.errors.trim());
    }
    Ok(JavaLoad { java: require("java")?, class_path: format!("{classes}:{jars}") })
}

/// What the Java client took.
struct JavaTook {
    /// The process from its start to its end, a call, us.
    whole_cpu_us: f64,
    /// The second half of its votes, when everything is compiled, a call, us.
    warm_cpu_us: f64,
    /// The second half.
    per_s: f64,
}

/// The Java client: half of its votes to warm up, half to be timed by itself.
fn vote_in_java(
    bench: &Bench,
    load: &JavaLoad,
    server: &Server,
    votes: u64,
    round: usize,
) -> Result<JavaTook> {
    let port = server.address().rsplit_once(':').context("an address without a port")?.1;
    let half = (votes / 2).max(1);
    let mut arguments: Vec<String> = [
        "-Xmx512m",
        "-XX:+UseSerialGC",
        "--add-opens=java.base/sun.nio.ch=ALL-UNNAMED",
        "-cp",
        &load.class_path,
        "VoteLoad",
        port,
    ]
    .map(str::to_owned)
    .to_vec();
    let numbers = [half, half, u64::from(WORKERS), round as u64 + 1];
    arguments.extend(numbers.map(|number| number.to_string()));
    let child = Child::start(&load.java, &arguments, Some(bench.cores.generator))?;
    let ended = child.finish(PATIENCE_S * 2, &bench.interrupted)?;
    if ended.code != Some(0) {
        bail!("the Java client ended with {:?}: {}", ended.code, ended.errors.trim());
    }
    let told: Value =
        serde_json::from_str(ended.output.trim()).context("the Java client's line")?;
    let number = |name: &str| told[name].as_f64().with_context(|| format!("no {name}"));
    let (votes, answered) = (number("votes")?, number("answered")?);
    if votes != answered {
        bail!("the Java client: {answered} of {votes} votes were answered");
    }
    Ok(JavaTook {
        whole_cpu_us: ended.cpu_s * 1e6 / votes,
        warm_cpu_us: number("cpu_s")? * 1e6 / half as f64,
        per_s: half as f64 / number("seconds")?,
    })
}

fn column(all: &[Took], value: impl Fn(&Took) -> f64) -> Vec<f64> {
    all.iter().map(value).collect()
}

fn section(all: &[Vec<Took>; 5], java: &[JavaTook]) -> Section {
    let times = |gains: &[f64]| spread(gains, |gain| format!("{gain:.2}"));
    let own_us = column(&all[NONE], Took::client_cpu_us);
    let java_us: Vec<f64> = java.iter().map(|took| took.whole_cpu_us).collect();
    let warm_us: Vec<f64> = java.iter().map(|took| took.warm_cpu_us).collect();
    let java_per_s: Vec<f64> = java.iter().map(|took| took.per_s).collect();
    let mut clients =
        Table::new(&["client, at the same server", "CPU us a call", "plimsoll over it", "votes/s"]);
    let warm = format!("{JAVA_CLIENT}, once warm");
    for (name, cpu_us, per_s) in [
        ("plimsoll", &own_us, &column(&all[NONE], |took| took.per_s)),
        (JAVA_CLIENT, &java_us, &java_per_s),
        (&warm, &warm_us, &java_per_s),
    ] {
        let ratio = times(&ratios(&own_us, cpu_us));
        clients.row(vec![name.to_owned(), spread(cpu_us, short), ratio, spread(per_s, whole)]);
    }
    let header =
        ["database, on one core", "votes a CPU second", "plimsoll (none) over it", "votes/s"];
    let mut databases = Table::new(&header);
    let per_cpu_s = |at: usize| column(&all[at], Took::per_server_cpu_s);
    for (at, database) in DATABASES.iter().enumerate() {
        databases.row(vec![
            database.name.to_owned(),
            spread(&per_cpu_s(at), whole),
            times(&ratios(&per_cpu_s(NONE), &per_cpu_s(at))),
            spread(&column(&all[at], |took| took.per_s), whole),
        ]);
    }
    let of_java = [("", &java_us), (", once warm", &warm_us)];
    let mut claims = Vec::from(of_java.map(|(when, us)| {
        let what = format!("CPU a call, of the Java client's{when}");
        Claim::most(&what, median(&ratios(&own_us, us)), 1.0 / 3.0)
    }));
    for (name, at) in [("none", NONE), ("async", ASYNC)] {
        for (peer, other, goal) in [("VoltDB's", VOLTDB, 5.0), ("PostgreSQL's", POSTGRESQL, 20.0)] {
            let what = format!("votes a CPU second ({name}), of {peer}");
            claims.push(Claim::least(
                &what,
                median(&ratios(&per_cpu_s(at), &per_cpu_s(other))),
                goal,
            ));
        }
    }
    let per_s = |at: usize| column(&all[at], |took| took.per_s);
    let of_async = ratios(&per_s(SYNC), &per_s(ASYNC));
    claims.push(Claim::least("votes/s (sync), of async's", median(&of_async), 0.5));
    claims.push(Claim::least("votes/s by one client core (none)", median(&per_s(NONE)), 150_000.0));
    let notes = vec![
        format!(
            "`plimsoll voter` with {WORKERS} workers, histograms and the check of writes on, which holds in every run. Each \
             database on one core, the client on another; a database's CPU is that of all its processes, from the first \
             connection to the last count. VoltDB has one partition, no command log and serial garbage collection, and is \
             warmed with both cores until it grows no faster; PostgreSQL does one function call a vote with \
             `synchronous_commit=off`."
        ),
        format!(
            "{JAVA_CLIENT} votes asynchronously with as many in flight, {} votes at most. CPU of both clients is that of the \
             whole process, start and compilation included; `once warm` is the second half of its votes, by its own \
             process clock.",
            whole(JAVA_VOTES_MAX as f64)
        ),
    ];
    let title = "Votes, beside VoltDB's client, VoltDB and PostgreSQL".to_owned();
    Section { title, tables: vec![clients, databases], claims, notes }
}
