//! Outlets of a run: the way from its seconds to their readers.

use crate::live::{self, Following};
use crate::output::{Output, lost_file};
use crate::usage::usage;
use anyhow::Result;
use plimsoll_core::clock::wall_us;
use plimsoll_core::interval::Interval;
use plimsoll_core::scenario::Scenario;
use plimsoll_core::system_error::with_advice;
use plimsoll_outlets::facts::Facts;
use plimsoll_outlets::otlp::Exporter;
use plimsoll_outlets::queue::Tally;
use plimsoll_outlets::series::Series;
use plimsoll_outlets::stream::{Model, Stream};
use plimsoll_record::{FailureSample, OutletUse, RunRecord, Sink};
use plimsoll_report::assemble::RecordHeader;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;

/// Outlets of a run that are open.
#[derive(Default)]
pub(crate) struct Outlets {
    facts: Facts,
    /// Sums of the run, if an outlet needs them.
    series: Option<Series>,
    exporter: Option<Exporter>,
    stream: Option<Stream>,
    /// The file of the stream; none for stdout.
    stream_file: Option<PathBuf>,
    used: Vec<OutletUse>,
    live: Option<Arc<Following>>,
}

impl Outlets {
    /// Opens what the flags ask for.
    ///
    /// # Errors
    /// A file that cannot be made, or a header that cannot be read.
    pub fn open(
        output: &Output,
        header: &RecordHeader,
        scenario: &Scenario,
        notes: &mut Vec<String>,
    ) -> Result<Self> {
        let flags = &output.outlets;
        let mut outlets = Self { facts: facts_of(header), ..Self::default() };
        let model = Model {
            open: scenario.load.is_open(),
            full_speed: scenario.load.is_full_speed(),
            clients: scenario.own_clients(),
            threads: scenario.threads,
            max_failed: scenario.max_failed.0,
        };
        outlets.live = live::open(output, header, &outlets.facts, model)?;
        if let Some(path) = &flags.stream {
            let stream = Stream::open(path, model).map_err(|error| {
                usage(format!("--stream {}: {}", path.display(), with_advice(&error)))
            })?;
            stream.begin(&outlets.facts);
            outlets.stream = Some(stream);
            outlets.stream_file = (!flags.takes_stdout()).then(|| path.clone());
        }
        if let Some(endpoint) = flags.endpoint()? {
            match Exporter::start(&endpoint, &flags.headers()?, &outlets.facts.version) {
                Ok(exporter) => {
                    let series = Series::new(&outlets.facts.classes, &outlets.facts.phases);
                    // Sums of 0, so that a receiver sees the first second as an increase.
                    exporter.export(&outlets.facts, &series, outlets.facts.started_us);
                    outlets.series = Some(series);
                    outlets.exporter = Some(exporter);
                }
                Err(problem) => notes.push(problem),
            }
        }
        Ok(outlets)
    }

    /// A sink that hands each second on to `inner` and to the outlets.
    pub fn beside<'a>(&'a mut self, inner: &'a mut (dyn Sink + Send)) -> Beside<'a> {
        Beside { outlets: self, inner }
    }

    /// Takes one finished second. Never waits.
    fn take(&mut self, second: &Interval) {
        let now_us = wall_us();
        if let Some(stream) = &mut self.stream {
            stream.second(&self.facts, second, now_us);
        }
        if let Some(live) = &self.live {
            live.take(second);
        }
        let Some(series) = &mut self.series else { return };
        series.add(second);
        if let Some(exporter) = &self.exporter {
            exporter.export(&self.facts, series, now_us);
        }
    }

    /// Sends the last sums with what was measured before the measured stretch, and waits for the receiver for a limited
    /// time. Returns a warning if something was lost.
    pub fn last_export(&mut self, warmup: Option<&Interval>) -> Option<String> {
        if let (Some(live), Some(warmup)) = (&self.live, warmup) {
            live.take_warmup(warmup);
        }
        let (series, exporter) = (self.series.as_mut()?, self.exporter.take()?);
        if let Some(warmup) = warmup {
            series.add_warmup(warmup);
        }
        exporter.export(&self.facts, series, wall_us());
        let (to, tally) = exporter.finish();
        let warning = otlp_warning(&to, &tally);
        self.used.push(use_of("otlp", to, &tally));
        warning
    }

    /// Writes the last line of the stream, and puts into the record what became of all outlets.
    pub fn close(mut self, record: &mut RunRecord) {
        if let Some(stream) = self.stream.take() {
            let tally = stream.end(&self.facts, record);
            let to =
                self.stream_file.as_ref().map_or("-".to_owned(), |path| path.display().to_string());
            if let Some(warning) = stream_warning(&to, &tally) {
                if self.stream_file.is_some() {
                    lost_file(&warning);
                }
                record.warnings.push(warning);
            }
            self.used.push(use_of("stream", to, &tally));
        }
        record.outlets = self.used;
    }
}

/// A sink, and the outlets beside it.
pub(crate) struct Beside<'a> {
    outlets: &'a mut Outlets,
    inner: &'a mut (dyn Sink + Send),
}

impl Sink for Beside<'_> {
    fn counts_from(&mut self, start_ns: u64) {
        self.inner.counts_from(start_ns);
    }

    fn interval(&mut self, interval: &Interval) -> io::Result<()> {
        let kept = self.inner.interval(interval);
        self.outlets.take(interval);
        kept
    }

    fn failure(&mut self, sample: &FailureSample) -> io::Result<()> {
        if let Some(live) = &self.outlets.live {
            live.failure(sample);
        }
        self.inner.failure(sample)
    }
}

fn facts_of(header: &RecordHeader) -> Facts {
    let started_us = wall_us();
    Facts {
        run_id: match header.run_id.as_str() {
            // Series of different runs must differ, also where no record is kept.
            "" => format!("{:08x}", (started_us ^ u64::from(std::process::id()) << 20) as u32),
            id => id.to_owned(),
        },
        version: header.tool.version.clone(),
        job: header.job.clone(),
        name: header.naming.name.clone(),
        labels: header.naming.labels.clone(),
        classes: header.class_names.clone(),
        phases: header.phases.iter().map(|phase| phase.name.clone()).collect(),
        started_us,
    }
}

fn use_of(kind: &str, to: String, tally: &Tally) -> OutletUse {
    OutletUse {
        kind: kind.to_owned(),
        to,
        sent: tally.put,
        lost: tally.lost(),
        complete: tally.is_complete,
        error: tally.error.clone().filter(|_| tally.lost() > 0).unwrap_or_default(),
    }
}

fn otlp_warning(to: &str, tally: &Tally) -> Option<String> {
    let lost = tally.lost();
    if lost == 0 {
        return None;
    }
    let end = match tally.is_complete {
        true => "the last one arrived, so the sums there are complete",
        false => "the last one was lost too, so the sums there are not those of this record",
    };
    let why = tally.error.as_ref().map_or(String::new(), |error| format!(" ({error})"));
    Some(format!("{lost} of {} exports to {to} were lost{why}; {end}", tally.put))
}

fn stream_warning(to: &str, tally: &Tally) -> Option<String> {
    let lost = tally.lost();
    if lost == 0 {
        return None;
    }
    let why = tally.error.as_ref().map_or_else(
        || "its reader was too slow".to_owned(),
        |error| format!("it cannot be written: {error}"),
    );
    let place = if to == "-" { "stdout" } else { to };
    Some(format!("{lost} of {} lines of --stream {place} were lost: {why}", tally.put))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally(put: u64, delivered: u64, is_complete: bool, error: Option<&str>) -> Tally {
        Tally { put, delivered, superseded: 0, is_complete, error: error.map(str::to_owned) }
    }

    #[test]
    fn a_loss_is_told_with_its_reason_and_whether_the_sums_are_complete() {
        let to = "http://127.0.0.1:4318/v1/metrics";
        assert_eq!(otlp_warning(to, &tally(5, 5, true, Some("status 503"))), None);
        let warning = otlp_warning(to, &tally(5, 3, true, Some("status 503"))).unwrap();
        assert_eq!(
            warning,
            "2 of 5 exports to http://127.0.0.1:4318/v1/metrics were lost (status 503); the last one arrived, so the sums \
             there are complete"
        );
        let warning = otlp_warning(to, &tally(5, 0, false, None)).unwrap();
        assert!(warning.ends_with(
            "were lost; the last one was lost too, so the sums there are not those of this record"
        ));
        let warning = stream_warning("-", &tally(9, 7, false, None)).unwrap();
        assert_eq!(warning, "2 of 9 lines of --stream stdout were lost: its reader was too slow");
    }
}
