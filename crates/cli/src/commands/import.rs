//! `plimsoll import`: reads what another load tool wrote into a run record.

use anyhow::Result;
use clap::Args;
use plimsoll_core::assertion::Assertion;
use plimsoll_core::clock::{format_utc, wall_us};
use plimsoll_import::record::{About, JOB, header_of, record_of};
use plimsoll_import::{Format, Imported, Options};
use plimsoll_job::exit;
use plimsoll_job::flags::ResultFlags;
use plimsoll_job::job::{Job, Program};
use plimsoll_job::output::{Output, lost_file, print_out, style, with_files};
use plimsoll_job::results::{Shown, write_results};
use plimsoll_job::tool;
use plimsoll_job::usage::usage;
use plimsoll_record::{Judge, RunRecord, Sink};
use plimsoll_report::folder::RunFolder;
use plimsoll_report::forms::Forms;
use plimsoll_report::sections::Course;
use plimsoll_report::text::render;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  Output of wrk (wrk --latency), kept as a record:
    plimsoll import wrk.txt --name before --label commit=3f2a9c1
  All requests of a test with k6 (k6 run --out json=k6.ndjson):
    plimsoll import k6.ndjson --format k6-json
  From a pipe, with an assertion on the service time:
    cat wrk.txt | plimsoll import - --assert 'global service.p99 < 50ms'
  A log of HdrHistogram whose values are microseconds:
    plimsoll import latency.hlog --unit us

Formats:
  hlog, hgrm              HdrHistogram: interval log; percentile distribution
  fbench                  summary of vespa-fbench
  feedsim, feedsim-log    FeedSim: feedsim_results.txt; the search as it is printed
  benchpress              metrics of DCPerf's benchpress (JSON)
  gatling-log             Gatling's simulation.log as text (2.3 to 3.11)
  gatling-stats           Gatling's js/stats.json, js/global_stats.json
  k6-summary, k6-json     k6: --summary-export or handleSummary; --out json
  wrk, wrk2, h2load       their output
  hey, hey-csv            hey: its output; -o csv
  oha, oha-json, oha-csv  oha: its output; --output-format json, csv
  ab, ab-csv, ab-tsv      ab: its output; -e FILE; -g FILE
  vegeta, vegeta-json     vegeta report; -type=json
  vegeta-results          vegeta encode --to json, csv
  pgbench, pgbench-log, pgbench-aggregate
                          pgbench: its output; -l; -l --aggregate-interval

A figure that the file does not give is unknown in the record: null in JSON, an empty cell in CSV.
'plimsoll compare' compares two imports, or an import and a run.
Exit codes: 0 imported, 2 an assertion failed, 64 the file cannot be imported.";

/// Read results of another load tool into a run record
///
/// HdrHistogram, vespa-fbench, FeedSim, benchpress, Gatling, k6, wrk, wrk2, hey, oha, ab, vegeta, h2load and pgbench.
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct ImportArgs {
    /// File of the other tool; - is stdin
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Format of the file [default: recognised from its content]
    #[arg(long, value_name = "NAME")]
    format: Option<Format>,
    /// Unit of the values in files of HdrHistogram: ns, us, ms or s
    ///
    /// By default the unit that the file gives, else ns in a log and ms in a distribution.
    #[arg(long, value_name = "UNIT", value_parser = unit_ns)]
    unit: Option<f64>,
    /// Assertion on the result; exit code 2 if it fails
    ///
    /// May be repeated. A figure that the file does not give fails it.
    #[arg(long = "assert", value_name = "ASSERTION")]
    assertions: Vec<Assertion>,
    /// Outputs.
    #[command(flatten)]
    output: ResultFlags,
}

/// Nanoseconds of a unit.
fn unit_ns(text: &str) -> Result<f64, String> {
    match text {
        "ns" => Ok(1.0),
        "us" => Ok(1e3),
        "ms" => Ok(1e6),
        "s" => Ok(1e9),
        _ => Err("expected ns, us, ms or s".to_owned()),
    }
}

impl Job for ImportArgs {
    const NAME: &'static str = JOB;
    const FORMS: Forms = plimsoll_import::FORMS;

    fn run(&self, program: &Program) -> Result<u8> {
        let output = self.output.output();
        output.check()?;
        let (format, imported) = self.read()?;
        let forms = (program.forms)();
        let (record, folder) = self.keep(&imported, format, &output)?;
        let course = match folder {
            Some(_) => None,
            None => Some(seconds_of(&imported)?),
        };
        let shown = Shown { record: &record, folder: folder.as_deref(), course: course.as_ref() };
        if !write_results(&output, shown, &forms)? {
            print_out(&render(&record, folder.as_deref(), &style(output.verbose), &forms))?;
        }
        Ok(with_files(exit::of_record(&record)))
    }
}

impl ImportArgs {
    fn name(&self) -> String {
        if self.file == Path::new("-") {
            "stdin".to_owned()
        } else {
            self.file.display().to_string()
        }
    }

    /// Reads the file.
    ///
    /// # Errors
    /// If it cannot be opened or is not of the format: one line with the file's name.
    fn read(&self) -> Result<(Format, Imported)> {
        let told = |problem: String| usage(format!("{}: {problem}", self.name()));
        if self.unit.is_some()
            && self.format.is_some_and(|format| !matches!(format, Format::Hlog | Format::Hgrm))
        {
            return Err(usage("--unit is for the formats hlog and hgrm; leave it out"));
        }
        let options = Options { unit_ns: self.unit };
        let mut input: Box<dyn BufRead> = if self.file == Path::new("-") {
            Box::new(std::io::stdin().lock())
        } else {
            let open = File::open(&self.file).and_then(|file| {
                let is_folder = file.metadata()?.is_dir();
                if is_folder { Err(std::io::ErrorKind::IsADirectory.into()) } else { Ok(file) }
            });
            let failed = |error| plimsoll_import::ImportError::Read(error).to_string();
            Box::new(BufReader::with_capacity(1 << 20, open.map_err(|error| told(failed(error)))?))
        };
        let read = plimsoll_import::read(&mut input, self.format, &options);
        let (format, imported) = read.map_err(|error| told(error.to_string()))?;
        if self.unit.is_some() && !matches!(format, Format::Hlog | Format::Hgrm) {
            let name = format.name();
            return Err(told(format!(
                "--unit is for the formats hlog and hgrm; this one is {name}"
            )));
        }
        Ok((format, imported))
    }

    /// Makes the record, and keeps it with its seconds.
    fn keep(
        &self,
        imported: &Imported,
        format: Format,
        output: &Output,
    ) -> Result<(RunRecord, Option<PathBuf>)> {
        let now_us = wall_us();
        let runs = output.runs.as_deref();
        let folder = runs
            .map(|runs| RunFolder::create_named(runs, JOB, output.naming(), now_us))
            .transpose()?;
        let about = About {
            tool: tool::own(),
            run_id: folder.as_ref().map(|f| f.run_id().to_owned()).unwrap_or_default(),
            imported_at: format_utc(now_us),
            naming: output.naming(),
            format: format.name(),
            file: self.file_name(),
        };
        let mut record = record_of(imported, &about);
        let judged = self.assertions.iter().flat_map(|assertion| assertion.judge(&record));
        record.assertions = judged.collect();
        let Some(folder) = folder else { return Ok((record, None)) };
        if let Err(problem) = keep_seconds(&folder, imported, &record) {
            lost_file(&format!("the seconds cannot be written: {problem}"));
        }
        if let Err(error) = folder.finish(&record) {
            lost_file(&error.to_string());
        }
        Ok((record, Some(folder.path().to_owned())))
    }

    /// The file without its folders, which say where on this machine it lay.
    fn file_name(&self) -> String {
        let last = self.file.file_name().map(|name| name.to_string_lossy().into_owned());
        if self.file == Path::new("-") { "stdin".to_owned() } else { last.unwrap_or_default() }
    }
}

/// The seconds for a page without a record that has them.
fn seconds_of(imported: &Imported) -> Result<Course> {
    let mut course = Course::default();
    if let Some(seconds) = &imported.seconds {
        seconds.each(|interval| course.interval(interval))?;
    }
    Ok(course)
}

/// Writes the seconds as a run of plimsoll does. A log of times that the source does not give is left out.
fn keep_seconds(folder: &RunFolder, imported: &Imported, record: &RunRecord) -> Result<()> {
    let Some(seconds) = &imported.seconds else { return Ok(()) };
    let mut journal = folder.journal(&header_of(record))?;
    seconds.each(|interval| journal.interval(interval))?;
    for kind in plimsoll_report::hlog::KINDS {
        let has_times = record.histograms.keys().any(|name| name.ends_with(&format!("/{kind}")));
        if !has_times {
            std::fs::remove_file(folder.path().join(format!("{kind}.hlog")))?;
        }
    }
    Ok(())
}
