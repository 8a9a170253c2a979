//! `cpu-mpstat`: the columns of `mpstat -u`, sampled by ourselves, or by the real program where asked.

use super::sampler::Sampler;
use super::{Hook, SeriesFile, SeriesForm, proc_stat};
use anyhow::Result;
use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_job::child::{program, stop};
use plimsoll_job::usage::usage;
use rustix::process::Signal;
use serde::Deserialize;
use std::fs::File;
use std::io::Write;
use std::path::Path;
use std::process::{Child, Stdio};
use std::time::Duration;

const FILE: &str = "cpu-mpstat.txt";

#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Options {
    /// Arguments of mpstat: `-u`, `-P ALL` and the interval in seconds are understood by our own sampler.
    args: Option<Vec<String>>,
    /// Seconds between two samples; in the place of the one among `args`.
    interval: Option<u64>,
    /// Use the real mpstat when it is installed.
    #[serde(default)]
    real: bool,
}

pub struct CpuMpstat {
    every_s: u64,
    each_processor: bool,
    arguments: Vec<String>,
    real: bool,
    started_s: f64,
    sampler: Option<Sampler>,
    program: Option<Child>,
    warnings: Vec<String>,
}

impl CpuMpstat {
    pub fn new(options: Options) -> Result<Self> {
        let arguments = options.args.unwrap_or_else(|| vec!["-u".to_owned()]);
        let mut found = None;
        for word in &arguments {
            match word.parse() {
                Ok(seconds) => found = found.or(Some(seconds)),
                Err(_) if options.real || matches!(word.as_str(), "-u" | "-P" | "ALL") => {}
                Err(_) => {
                    return Err(usage(format!(
                        "hook cpu-mpstat: args: '{word}' is for the real mpstat; add \"real\": true"
                    )));
                }
            }
        }
        let every_s = options.interval.or(found).unwrap_or(1);
        if !(1..=3600).contains(&every_s) {
            return Err(usage("hook cpu-mpstat: interval: use 1 to 3600 seconds"));
        }
        Ok(Self {
            every_s,
            each_processor: arguments.iter().any(|word| word == "ALL"),
            arguments,
            real: options.real,
            started_s: 0.0,
            sampler: None,
            program: None,
            warnings: Vec::new(),
        })
    }

    fn start_real(&mut self, folder: &Path) -> Result<(), String> {
        let file = File::create(folder.join(FILE)).map_err(|error| error.to_string())?;
        let mut arguments = self.arguments.clone();
        arguments.retain(|word| word.parse::<u64>().is_err());
        let started = program("mpstat")
            .args(arguments)
            .arg(self.every_s.to_string())
            // Times of day as 24 hours of UTC, whatever the machine's own way.
            .envs([("LC_ALL", "C"), ("S_TIME_FORMAT", "ISO"), ("TZ", "UTC")])
            .stdin(Stdio::null())
            .stdout(file)
            .stderr(Stdio::null())
            .spawn();
        self.program = Some(started.map_err(|error| format!("mpstat: {error}; install sysstat"))?);
        Ok(())
    }
}

impl Hook for CpuMpstat {
    fn before(&mut self, folder: &Path) -> Result<(), String> {
        self.started_s = wall_us() as f64 / 1e6;
        if self.real {
            match self.start_real(folder) {
                Ok(()) => return Ok(()),
                Err(problem) => {
                    self.warnings.push(format!("{problem}; plimsoll samples /proc/stat itself"))
                }
            }
        }
        let mut last = proc_stat::read();
        if last.is_empty() {
            return Err("/proc/stat cannot be read".to_owned());
        }
        let machine = plimsoll_engine::health::machine();
        let head = format!(
            "Linux {} ({}) \t{} \t_{}_\t({} CPU)\n\n{:<12}{:>4}{}\n",
            machine.kernel,
            machine.hostname,
            &format_utc(wall_us())[..10],
            machine.architecture,
            last.len() - 1,
            time_of_day(self.started_s),
            "CPU",
            proc_stat::COLUMNS.map(|column| format!(" {column:>7}")).concat(),
        );
        let each = self.each_processor;
        let row = move |at_s: f64, out: &mut dyn Write| {
            let now = proc_stat::read();
            for (name, ticks) in &now {
                let before = last.iter().find(|(last, _)| last == name);
                let Some((_, before)) = before.filter(|_| each || name == "all") else { continue };
                let cells = proc_stat::shares(before, ticks).map(|share| format!(" {share:>7.2}"));
                writeln!(out, "{:<12}{name:>4}{}", time_of_day(at_s), cells.concat())?;
            }
            last = now;
            Ok(())
        };
        let every = Duration::from_secs(self.every_s);
        self.sampler = Some(Sampler::start(&folder.join(FILE), &head, every, Box::new(row))?);
        Ok(())
    }

    fn after(&mut self, _folder: &Path) -> Result<(), String> {
        if let Some(mut program) = self.program.take() {
            stop(&mut program, Signal::INT, Duration::from_secs(3));
        }
        self.sampler.take().map_or(Ok(()), |mut sampler| sampler.stop())
    }

    fn series(&self) -> Vec<SeriesFile> {
        vec![SeriesFile { name: FILE.to_owned(), form: SeriesForm::Mpstat(self.started_s) }]
    }

    fn warnings(&self) -> Vec<String> {
        self.warnings.clone()
    }
}

/// `HH:MM:SS`, UTC.
fn time_of_day(at_s: f64) -> String {
    format_utc((at_s * 1e6) as u64)[11..19].to_owned()
}
