//! The servers of a run, each on processors of its own.

use super::{Preset, RankArgs};
use anyhow::Result;
use plimsoll_engine::target::Target;
use plimsoll_job::embedded::Embedded;
use plimsoll_job::usage::usage;
use rustix::thread::{CpuSet, sched_getaffinity};

/// Logical processors that one server uses well.
const PROCESSORS_EACH: usize = 100;
/// Most servers of a run.
const INSTANCES_MAX: usize = 64;

/// Running servers.
pub struct Instances {
    _processes: Vec<Embedded>,
    /// Their addresses.
    pub urls: Vec<String>,
}

/// The logical processors that this process may use.
pub fn processors() -> Vec<usize> {
    let allowed = sched_getaffinity(None).unwrap_or_default();
    (0..CpuSet::MAX_CPU).filter(|&processor| allowed.is_set(processor)).collect()
}

impl Instances {
    /// Starts what the flags ask for, or takes the servers that they name.
    ///
    /// # Errors
    /// When the flags make no sense or a server does not start.
    pub fn start(args: &RankArgs) -> Result<Self> {
        if !args.target.is_empty() {
            if args.instances.is_some() {
                return Err(usage(
                    "-n (--instances) starts servers and --target names running ones; give one",
                ));
            }
            if let Some(url) = args.target.iter().find(|url| !url.starts_with("rank://")) {
                return Err(usage(format!("--target '{url}': write rank://HOST:PORT")));
            }
            return Ok(Self { _processes: Vec::new(), urls: args.target.clone() });
        }
        let processors = processors();
        let count = args.instances.unwrap_or_else(|| processors.len().div_ceil(PROCESSORS_EACH));
        if count == 0 || count > INSTANCES_MAX {
            return Err(usage(format!("-n: use 1 to {INSTANCES_MAX} instances")));
        }
        let mut processes: Vec<Embedded> = Vec::new();
        for index in 0..count {
            let own = if count == 1 { Vec::new() } else { share(&processors, index, count) };
            processes.push(Embedded::start(&arguments(args, index), &own)?);
        }
        let urls = processes.iter().map(|process| process.url.clone()).collect();
        Ok(Self { _processes: processes, urls })
    }

    /// The addresses, resolved.
    ///
    /// # Errors
    /// When one is no address.
    pub fn targets(&self) -> Result<Vec<Target>> {
        self.urls
            .iter()
            .map(|url| {
                let address = url.trim_start_matches("rank://").trim_end_matches('/');
                let parts = address.rsplit_once(':');
                let parts = parts.and_then(|(host, port)| Some((host, port.parse::<u16>().ok()?)));
                let (host, port) = parts
                    .ok_or_else(|| usage(format!("--target '{url}': write rank://HOST:PORT")))?;
                Ok(Target::resolve(host.trim_matches(['[', ']']), port))
            })
            .collect()
    }
}

/// The processors of instance `index` of `count`: an even part, or one that it shares when there are too few.
fn share(processors: &[usize], index: usize, count: usize) -> Vec<usize> {
    if processors.len() < count {
        return processors.get(index % processors.len().max(1)).copied().into_iter().collect();
    }
    let (from, to) = (index * processors.len() / count, (index + 1) * processors.len() / count);
    processors[from..to].to_vec()
}

/// Returns what an instance is started with.
pub fn arguments(args: &RankArgs, index: usize) -> Vec<String> {
    let preset = if args.preset == Preset::Mini { "mini" } else { "feedsim" };
    let port = if args.port == 0 { 0 } else { args.port.saturating_add(index as u16) };
    let mut all: Vec<String> = ["rank", "--preset", preset, "--port"].map(str::to_owned).to_vec();
    all.push(port.to_string());
    let mut add = |flag: &str, value: Option<String>| {
        if let Some(value) = value {
            all.extend([flag.to_owned(), value]);
        }
    };
    add("--threads", args.threads.map(|n| n.to_string()));
    add("--cpu-threads", args.cpu_threads.map(|n| n.to_string()));
    add("--srv-io-threads", args.srv_io_threads.map(|n| n.to_string()));
    add("--walk-calls", args.icache.map(|n| n.to_string()));
    add("--scale", args.scale.map(|n| n.to_string()));
    add("--seed", Some(args.seed.wrapping_add(index as u64).to_string()));
    all
}

#[cfg(test)]
mod tests {
    use super::share;

    #[test]
    fn every_processor_belongs_to_one_instance() {
        let all: Vec<usize> = (0..7).collect();
        let parts: Vec<Vec<usize>> = (0..3).map(|index| share(&all, index, 3)).collect();
        assert_eq!(parts.concat(), all);
        assert!(parts.iter().all(|part| part.len() >= 2));
        assert_eq!(share(&[4], 5, 8), [4], "more instances than processors share them");
    }
}
