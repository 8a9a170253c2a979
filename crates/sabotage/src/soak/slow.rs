//! Ten thousand slow or silent clients against each embedded server, while a healthy client measures.

use super::crowd::Crowd;
use super::watch::{Level, level};
use crate::sockets::process::{Process, address};
use crate::sockets::stage::Stage;
use plimsoll_core::clock::now_ns;
use plimsoll_engine::health::raise_descriptor_limit;
use rustix::process::Pid;
use serde_json::Value;
use std::fmt::Write as _;
use std::process::Command;
use std::time::Duration;

/// Memory that a connection may cost, bytes.
const BYTES_MAX: u64 = 64 * 1024;
/// Descriptors that a server may have more of afterwards: of files and threads that it opened meanwhile.
const DESCRIPTORS_MORE: u64 = 8;
/// Longest time for the server to see that all clients are gone.
const GOING: Duration = Duration::from_secs(10);
/// CPU time of the server with the clients and without load, share of a core: a client that sends nothing costs nothing.
const IDLE_MAX: f64 = 0.25;
/// Longest time for a healthy run, beyond its length.
const PATIENCE: Duration = Duration::from_secs(30);
/// Kernel ticks a second, as /proc counts them.
const TICKS_PER_S: f64 = 100.0;

/// The beginning of a request over HTTP. A server that tells protocols apart by their first bytes cannot do so yet with
/// the first of these.
const HTTP: &[u8] = b"POST /slow HTTP/1.1\r\nHost: localhost\r\nX-Slow: ";
/// A message of VoltDB's protocol with 256 bytes.
const VOLT: &[u8] = &[0, 0, 1, 0, 1];

/// A server, and the healthy client's command with `URL` for its address.
#[derive(Clone, Copy, Debug)]
pub struct Subject {
    /// Its name in the table.
    pub name: &'static str,
    /// The words after `plimsoll serve`.
    pub serve: &'static str,
    /// The words of the healthy client.
    pub healthy: &'static str,
    /// The bytes with which slow clients begin.
    pub opening: &'static [u8],
}

/// All embedded servers.
pub const SUBJECTS: [Subject; 6] = [
    Subject { name: "null", serve: "null", healthy: "load URL/ --rate 200", opening: HTTP },
    Subject {
        name: "queue",
        serve: "queue --servers 0 --service fixed:1ms",
        healthy: "load URL/ --rate 200",
        opening: HTTP,
    },
    Subject {
        name: "rank",
        serve: "rank --scale 8 --wait 1ms",
        healthy: "load URL/rank --rate 20",
        opening: HTTP,
    },
    Subject {
        name: "search, Vespa's API",
        serve: "search --durability none",
        healthy: "load URL/state/v1/health --rate 200",
        opening: HTTP,
    },
    Subject {
        name: "search, Elasticsearch's API",
        serve: "search --durability none",
        healthy: "load URL/_cluster/health --rate 200",
        opening: HTTP,
    },
    Subject {
        name: "voter",
        serve: "voter --partitions 1",
        healthy: "voter URL --rate 200",
        opening: VOLT,
    },
];

/// Slow clients, and how long everything takes.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Slow {
    /// Clients.
    pub count: usize,
    /// Interval at which every second one sends a byte.
    pub every: Duration,
    /// Time for which the server is left alone with them.
    pub alone: Duration,
    /// Length of each of the two runs of the healthy client.
    pub healthy: Duration,
}

/// The statements of a healthy run.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Healthy {
    /// Requests that were due.
    pub scheduled: u64,
    /// Requests that succeeded.
    pub ok: u64,
    /// p50 and p99 of the response time, ms.
    pub response_ms: [f64; 2],
}

/// One server and its clients.
#[derive(Clone, Debug, Default)]
pub struct Row {
    /// Its name.
    pub name: &'static str,
    /// Clients: asked for, connected, and still open at the end.
    pub clients: [usize; 3],
    /// The server without clients, with them, and after they have gone.
    pub levels: [Level; 3],
    /// CPU time of the server with the clients alone, share of a core.
    pub idle_cpu: f64,
    /// The healthy client without the others and beside them.
    pub healthy: [Healthy; 2],
}

/// Measures one server. The healthy client runs once without slow clients and once beside them.
///
/// # Errors
/// When the server does not start, or a healthy run leaves no record.
pub fn measure(stage: &Stage, subject: &Subject, slow: Slow) -> Result<Row, String> {
    raise_descriptor_limit();
    let mut command = Command::new(&stage.program);
    command.arg("serve").args(subject.serve.split(' '));
    let (process, ready) = Process::serve(command, stage.targets_core)?;
    let own = address(&ready)?;
    let now = || level(process.pid()).ok_or(format!("{}: the server has ended", subject.name));
    // Of two protocols on one port, the healthy client uses HTTP.
    let url = ready.replace("rank://", "http://");
    let without = healthy(stage, subject, &url, slow.healthy)?;
    let before = now()?;
    let crowd = Crowd::start(own, slow.count, subject.opening, slow.every);
    // Every slow client has sent its first byte by then.
    std::thread::sleep(slow.every);
    let used_s = cpu_s(process.pid());
    std::thread::sleep(slow.alone);
    let idle_cpu = (cpu_s(process.pid()) - used_s) / slow.alone.as_secs_f64();
    let beside = healthy(stage, subject, &url, slow.healthy)?;
    let with = now()?;
    let clients = [slow.count, crowd.connected, crowd.open()];
    drop(crowd);
    let until_ns = now_ns() + GOING.as_nanos() as u64;
    let mut after = now()?;
    while after.descriptors > before.descriptors && now_ns() < until_ns {
        std::thread::sleep(Duration::from_millis(50));
        after = now()?;
    }
    let (name, levels, healthy) = (subject.name, [before, with, after], [without, beside]);
    Ok(Row { name, clients, levels, idle_cpu, healthy })
}

fn healthy(
    stage: &Stage,
    subject: &Subject,
    url: &str,
    length: Duration,
) -> Result<Healthy, String> {
    let folder = tempfile::tempdir().map_err(|error| error.to_string())?;
    let (folder, json) = (folder.path(), folder.path().join("run.json"));
    let mut command = Command::new(&stage.program);
    command.args(subject.healthy.replace("URL", url).split(' '));
    command.args(["--timeout", "10s", "--quiet", "--no-record"]);
    command.args(["--duration", &format!("{}s", length.as_secs_f64())]).arg("--json").arg(&json);
    let mut process = Process::start(command, stage.generators_core, folder)?;
    let ended = process.wait(length + PATIENCE)?;
    let text = std::fs::read_to_string(&json).unwrap_or_default();
    let record: Value = serde_json::from_str(&text).map_err(|_| {
        let said = std::fs::read_to_string(folder.join("stderr")).unwrap_or_default();
        format!("{}: no record, exit {ended:?}: {}", subject.name, said.trim())
    })?;
    let number = |pointer: &str| record.pointer(pointer).and_then(Value::as_f64).unwrap_or(0.0);
    Ok(Healthy {
        scheduled: number("/ledger/scheduled") as u64,
        ok: number("/ledger/ok") as u64,
        response_ms: ["p50", "p99"].map(|name| number(&format!("/latency_ms/response/{name}"))),
    })
}

/// CPU time of a process so far, s.
fn cpu_s(pid: Pid) -> f64 {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.as_raw_nonzero()));
    let stat = stat.unwrap_or_default();
    // The name is in brackets and can hold anything.
    let rest = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    let ticks =
        rest.split_whitespace().skip(11).take(2).filter_map(|word| word.parse::<f64>().ok());
    ticks.sum::<f64>() / TICKS_PER_S
}

impl Row {
    /// Memory that a connection costs, bytes.
    #[must_use]
    pub fn bytes_per_client(&self) -> u64 {
        let [before, with, _] = self.levels;
        with.rss_bytes.saturating_sub(before.rss_bytes) / self.clients[1].max(1) as u64
    }

    /// Returns everything that is not as it must be.
    #[must_use]
    pub fn defects(&self) -> Vec<String> {
        let [asked, connected, _] = self.clients;
        let [before, with, after] = self.levels;
        let beside = self.healthy[1];
        let mut defects = Vec::new();
        let mut note = |is_wrong: bool, words: String| {
            if is_wrong {
                defects.push(format!("{}: {words}", self.name));
            }
        };
        note(connected < asked, format!("{connected} of {asked} clients could connect"));
        let held = with.descriptors.saturating_sub(before.descriptors) as usize;
        note(
            held < self.clients[2] / 2,
            format!("{} clients on {held} descriptors", self.clients[2]),
        );
        note(
            beside.ok < beside.scheduled || beside.scheduled == 0,
            format!("{} of {} requests succeeded beside them", beside.ok, beside.scheduled),
        );
        let bytes = self.bytes_per_client();
        note(bytes > BYTES_MAX, format!("{bytes} bytes of memory for each client"));
        note(
            self.idle_cpu > IDLE_MAX,
            format!("{:.0} % of a core while they do next to nothing", self.idle_cpu * 100.0),
        );
        note(
            after.descriptors > before.descriptors + DESCRIPTORS_MORE,
            format!("{} descriptors before, {} after", before.descriptors, after.descriptors),
        );
        defects
    }
}

/// Returns the table of all rows.
#[must_use]
pub fn markdown(rows: &[Row]) -> String {
    let mut text = "| server | clients | memory before, with, after, MB | for each client, kB | descriptors before, with, after | CPU with \
                    the clients alone | healthy client: succeeded | p50 without, beside, ms | p99 without, beside, ms |\n\
                    |---|--:|---|--:|---|--:|--:|---|---|\n"
        .to_owned();
    for row in rows {
        let memory = row.levels.map(|level| format!("{:.1}", level.rss_bytes as f64 / 1e6));
        let descriptors = row.levels.map(|level| level.descriptors.to_string());
        let [without, beside] = row.healthy;
        let pair =
            |at: usize| format!("{:.2}, {:.2}", without.response_ms[at], beside.response_ms[at]);
        // Writing to memory cannot fail.
        let _ = writeln!(
            text,
            "| {} | {} | {} | {:.1} | {} | {:.0} % | {} of {} | {} | {} |",
            row.name,
            row.clients[1],
            memory.join(", "),
            row.bytes_per_client() as f64 / 1e3,
            descriptors.join(", "),
            row.idle_cpu * 100.0,
            beside.ok,
            beside.scheduled,
            pair(0),
            pair(1),
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row() -> Row {
        let level = |rss_bytes, descriptors| Level { rss_bytes, descriptors, ..Level::default() };
        let healthy = Healthy { scheduled: 2_000, ok: 2_000, response_ms: [0.3, 0.9] };
        Row {
            name: "null",
            clients: [10_000, 10_000, 10_000],
            levels: [level(8_000_000, 12), level(12_000_000, 10_012), level(12_000_000, 12)],
            idle_cpu: 0.01,
            healthy: [healthy; 2],
        }
    }

    #[test]
    fn a_server_that_bears_them_has_no_defect() {
        assert_eq!(row().defects(), Vec::<String>::new());
        let line = "| null | 10000 | 8.0, 12.0, 12.0 | 0.4 | 12, 10012, 12 | 1 % | 2000 of 2000 | 0.30, 0.30 | 0.90, 0.90 |";
        assert!(markdown(&[row()]).contains(line), "{}", markdown(&[row()]));
    }

    #[test]
    fn each_way_to_suffer_from_them_is_a_defect() {
        type Spoil = (fn(&mut Row), &'static str);
        let spoil: [Spoil; 6] = [
            (|row| row.clients[1] = 9_000, "9000 of 10000 clients"),
            (|row| row.levels[1].descriptors = 1_024, "on 1012 descriptors"),
            (|row| row.healthy[1].ok = 1_999, "1999 of 2000 requests"),
            (|row| row.levels[1].rss_bytes = 8_000_000_000, "bytes of memory for each"),
            (|row| row.idle_cpu = 0.9, "90 % of a core"),
            (|row| row.levels[2].descriptors = 10_012, "10012 after"),
        ];
        for (spoil, words) in spoil {
            let mut row = row();
            spoil(&mut row);
            let defects = row.defects();
            assert!(defects.len() == 1 && defects[0].contains(words), "{defects:?}");
        }
    }
}
