//! The targets: nginx with one worker, and plimsoll's own, each pinned to the target's core.

use crate::child::{Child, require};
use crate::measure::Bench;
use anyhow::{Context, Result, bail};
use plimsoll_core::clock::{SECOND_NS, now_ns};
use rustix::process::Pid;
use rustix::thread::{CpuSet, sched_setaffinity};
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::time::Duration;

/// How long a target may take until it answers, ns.
const READY_NS: u64 = 90 * SECOND_NS;

const PACKING: &str = "  gzip on;\n  gzip_comp_level 9;\n";

/// A running target. Dropping it stops it.
pub struct Server {
    child: Option<Child>,
    /// `host:port`.
    address: String,
    /// What generators ask for.
    pub url: String,
}

impl Server {
    /// nginx with one worker and a file of 1 KB.
    ///
    /// # Errors
    /// When it is not installed or does not answer.
    pub fn nginx(bench: &Bench) -> Result<Self> {
        std::fs::write(bench.folder.path().join("f"), "x".repeat(1024))?;
        Self::nginx_with(bench, "", "/f")
    }

    /// The same with 200 KB of text that it packs for each request that accepts gzip, which takes some milliseconds.
    ///
    /// # Errors
    /// When it is not installed or does not answer.
    pub fn nginx_packing(bench: &Bench) -> Result<Self> {
        let mut rng = plimsoll_core::rng::Rng::new(1);
        let letter = |_| char::from(b'a' + (rng.next_u64() % 16) as u8);
        let text: String = (0..200_000).map(letter).collect();
        std::fs::write(bench.folder.path().join("text.html"), text)?;
        Self::nginx_with(bench, PACKING, "/text.html")
    }

    fn nginx_with(bench: &Bench, extra: &str, path: &str) -> Result<Self> {
        let folder = bench.folder.path();
        let port = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
        let configuration = folder.join("nginx.conf");
        std::fs::write(&configuration, nginx_configuration(folder, port, extra))?;
        let arguments = ["-e", "error.log", "-c"].map(str::to_owned);
        let mut arguments = arguments.to_vec();
        arguments[1] = folder.join("error.log").display().to_string();
        arguments.push(configuration.display().to_string());
        let child = Child::start(&require("nginx")?, &arguments, Some(bench.cores.target))?;
        let server = Self::at(child, format!("127.0.0.1:{port}"), path);
        let end_ns = now_ns() + READY_NS;
        while TcpStream::connect(&server.address).is_err() {
            server.still_starting(bench, end_ns)?;
        }
        Ok(server)
    }

    /// `plimsoll serve ...`, on any port.
    ///
    /// # Errors
    /// When it does not answer.
    pub fn plimsoll(bench: &Bench, kind: &str, extra: &[&str]) -> Result<Self> {
        let ready = bench.folder.path().join("ready");
        let _ = std::fs::remove_file(&ready);
        let mut arguments = vec!["serve".to_owned(), kind.to_owned(), "--ready-file".to_owned()];
        arguments.push(ready.display().to_string());
        arguments.extend(extra.iter().map(|&flag| flag.to_owned()));
        let child = Child::start(&bench.plimsoll, &arguments, Some(bench.cores.target))?;
        let mut server = Self::at(child, String::new(), "/");
        let end_ns = now_ns() + READY_NS;
        loop {
            let line = std::fs::read_to_string(&ready).unwrap_or_default();
            if let Some((kind, address)) = line.trim_end().split_once("://")
                && line.ends_with('\n')
            {
                let scheme = kind.rsplit(' ').next().unwrap_or("http");
                server.address = address.to_owned();
                server.url = format!("{scheme}://{address}/");
                return Ok(server);
            }
            server.still_starting(bench, end_ns)?;
        }
    }

    /// `host:port`.
    pub fn address(&self) -> &str {
        &self.address
    }

    fn at(child: Child, address: String, path: &str) -> Self {
        let url = format!("http://{address}{path}");
        Self { child: Some(child), address, url }
    }

    /// Waits a little, unless there is nothing left to wait for.
    fn still_starting(&self, bench: &Bench, end_ns: u64) -> Result<()> {
        let child = self.child.as_ref().context("a server that was stopped")?;
        if child.ends_within(10_000_000, &bench.interrupted)? {
            bail!("the target ended at once: {}", child.complaint()?);
        }
        if now_ns() > end_ns {
            bail!("the target did not answer within {} s", READY_NS / SECOND_NS);
        }
        Ok(())
    }

    /// Its process id.
    ///
    /// # Errors
    /// When it was stopped.
    pub fn id(&self) -> Result<i32> {
        Ok(self.child.as_ref().context("a server that was stopped")?.id())
    }

    /// CPU time that it has used, s, in steps of 10 ms.
    ///
    /// # Errors
    /// When it is gone.
    pub fn cpu_s(&self) -> Result<f64> {
        ticks_s(self.id()?, 11)
    }

    /// CPU time that it and its children have used, s: a real engine is a child of the program that serves it.
    ///
    /// # Errors
    /// When it is gone.
    pub fn tree_cpu_s(&self) -> Result<f64> {
        self.tree()?.into_iter().map(process_cpu_s).sum()
    }

    /// CPU time that it, its children and theirs have used, s, those that have ended and were waited for included: a
    /// database may have a process for each connection.
    ///
    /// # Errors
    /// When it is gone.
    pub fn family_cpu_s(&self) -> Result<f64> {
        let mut all = vec![self.id()?];
        let mut cpu_s = 0.0;
        let mut looked = 0;
        while let Some(&process) = all.get(looked) {
            looked += 1;
            // One that has just ended is among those that its parent has waited for.
            let (Ok(own_s), Ok(ended_s)) = (process_cpu_s(process), ended_cpu_s(process)) else {
                continue;
            };
            cpu_s += own_s + ended_s;
            all.extend(children(process).unwrap_or_default());
        }
        Ok(cpu_s)
    }

    /// Binds it and its children to these cores, with all their threads and those that they will start.
    ///
    /// # Errors
    /// When it is gone.
    pub fn pin(&self, cores: &[usize]) -> Result<()> {
        let mut set = CpuSet::new();
        cores.iter().for_each(|&core| set.set(core));
        for process in self.tree()? {
            for task in std::fs::read_dir(format!("/proc/{process}/task"))?.flatten() {
                let id = task.file_name().to_str().and_then(|id| id.parse().ok());
                // A thread that has ended meanwhile needs no core.
                let _ = id.and_then(Pid::from_raw).map(|id| sched_setaffinity(Some(id), &set));
            }
        }
        Ok(())
    }

    /// Its process and the children of that.
    fn tree(&self) -> Result<Vec<i32>> {
        let parent = self.id()?;
        let mut all = vec![parent];
        all.extend(children(parent)?);
        Ok(all)
    }

    /// The body of a GET of `path` as JSON.
    ///
    /// # Errors
    /// When the target does not answer with JSON.
    pub fn get_json(&self, path: &str) -> Result<Value> {
        let mut stream = TcpStream::connect(&self.address)?;
        stream.set_read_timeout(Some(Duration::from_secs(5)))?;
        let address = &self.address;
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
        let mut reply = String::new();
        stream.read_to_string(&mut reply)?;
        let (_, body) = reply.split_once("\r\n\r\n").context("a reply without a body")?;
        let start = body.find('{').context("a reply without JSON")?;
        let end = body.rfind('}').context("a reply without JSON")?;
        serde_json::from_str(&body[start..=end]).with_context(|| format!("GET {path}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(child) = self.child.take() {
            let _ = child.stop();
        }
    }
}

/// The processes that a process has started and that live.
fn children(parent: i32) -> Result<Vec<i32>> {
    let mut all = Vec::new();
    for task in std::fs::read_dir(format!("/proc/{parent}/task"))?.flatten() {
        let children = std::fs::read_to_string(task.path().join("children"))?;
        all.extend(children.split_whitespace().filter_map(|id| id.parse::<i32>().ok()));
    }
    Ok(all)
}

/// CPU time of what a process has started and waited for, s, in steps of 10 ms.
fn ended_cpu_s(id: i32) -> Result<f64> {
    ticks_s(id, 13)
}

/// Two fields of a process's times in user and kernel mode, s: its own are behind 11 others, those of children that it
/// has waited for behind 13.
fn ticks_s(id: i32, behind: usize) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{id}/stat"))?;
    // The name may hold spaces; the fields after it are counted from its closing bracket.
    let fields = stat.rsplit_once(')').map_or("", |(_, fields)| fields).split_whitespace();
    let ticks: f64 = fields.skip(behind).take(2).map(|field| field.parse().unwrap_or(0.0)).sum();
    Ok(ticks / rustix::param::clock_ticks_per_second() as f64)
}

/// CPU time of a process with all of its threads, those that ended included, s.
fn process_cpu_s(id: i32) -> Result<f64> {
    let mut clock: libc::clockid_t = 0;
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: both pointers are to live memory of the right type.
    let failed = unsafe {
        libc::clock_getcpuclockid(id, &raw mut clock) != 0
            || libc::clock_gettime(clock, &raw mut time) != 0
    };
    if failed {
        bail!("process {id} has no CPU clock: it is gone");
    }
    Ok(time.tv_sec as f64 + time.tv_nsec as f64 / 1e9)
}

/// One process that is its own worker, so that it can be pinned, timed and ended as one.
fn nginx_configuration(folder: &Path, port: u16, extra: &str) -> String {
    let folder = folder.display();
    let scratch: String = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"]
        .iter()
        .map(|kind| format!("  {kind}_temp_path {folder}/{kind};\n"))
        .collect();
    format!(
        "master_process off;\ndaemon off;\npid {folder}/nginx.pid;\nerror_log {folder}/error.log;\n\
         events {{ worker_connections 1024; }}\n\
         http {{\n  access_log off;\n  keepalive_requests 1000000000;\n  keepalive_timeout 600s;\n{scratch}{extra}  \
         server {{ listen 127.0.0.1:{port}; root {folder}; }}\n}}\n"
    )
}
