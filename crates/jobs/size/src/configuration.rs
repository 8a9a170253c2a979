//! One number of nodes: the rate that it holds, and how its times grow with the rate.

use crate::records::Sized;
use crate::sizing::per_second;
use anyhow::Result;
use plimsoll_core::histogram::Histogram;
use plimsoll_core::slo::Slo;
use plimsoll_decide::sizing::line::{Batch, Crossing, Curve, Measured, late_share, reached};
use plimsoll_decide::sizing::queue::Service;
use plimsoll_decide::sizing::{Point, RelativeError};
use plimsoll_job::usage::usage;
use plimsoll_record::search::{Cell, SearchResult};
use plimsoll_record::seek::SeekResult;
use plimsoll_report::load::Loaded;
use plimsoll_report::number::{significant, time};
use plimsoll_report::series::{Column, Series};
use plimsoll_report::times::of_all_classes;

/// A limit on a percentile.
#[derive(Clone, Debug, PartialEq)]
pub struct Limit {
    /// Text, such as `p95=100ms`.
    pub text: String,
    /// Name of the percentile: `p95`.
    pub name: String,
    /// Share of requests that may be late.
    pub allowed: f64,
    /// The limit, ns.
    pub limit_ns: u64,
}

impl Limit {
    /// Reads it.
    ///
    /// # Errors
    /// If it is not a limit on a percentile.
    pub fn of(slo: &Slo, text: &str) -> Result<Self> {
        match slo {
            Slo::Quantile { quantile, limit } if *quantile < 1.0 => Ok(Self {
                text: text.to_owned(),
                name: slo.name(),
                allowed: 1.0 - quantile,
                limit_ns: limit.ns,
            }),
            _ => Err(usage(format!(
                "--slo {text}: sizing needs a limit on a percentile, such as p95=100ms"
            ))),
        }
    }

    /// The limit, ms.
    pub fn limit_ms(&self) -> f64 {
        self.limit_ns as f64 / 1e6
    }

    fn is(&self, label: &str) -> bool {
        let parsed = label.parse::<Slo>().ok().and_then(|slo| Self::of(&slo, label).ok());
        parsed.is_some_and(|other| {
            other.limit_ns == self.limit_ns && (other.allowed - self.allowed).abs() < 1e-9
        })
    }
}

/// Quantity that a limit's curve shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shows {
    /// The percentile, ms.
    Percentile,
    /// The share of requests that are later than the limit.
    LateShare,
}

/// One number of nodes.
#[derive(Clone, Debug)]
pub struct Configuration {
    /// Number of nodes.
    pub n: f64,
    /// The rates that it was measured to hold.
    pub points: Vec<Point>,
    /// Source of the rates, in words.
    pub source: String,
    /// Times over the rate, if more than one rate was measured.
    pub curve: Option<(Shows, Curve)>,
    /// Service times, if a rate was so low that they are nearly the response times.
    pub service: Option<Service>,
    /// Its records.
    pub runs: Vec<Loaded>,
}

/// Runs whose throughput is within this share of the highest one are repeats of it.
const REPEATS: f64 = 0.1;
/// Batches of a run, of whose spread its error is made.
const BATCHES: usize = 10;

impl Configuration {
    /// Makes it from the records of one number of nodes.
    ///
    /// # Errors
    /// If they do not show which rate it holds.
    pub fn of(n: f64, sized: &[&Sized], limit: Option<&Limit>, unit: &str) -> Result<Self> {
        let runs: Vec<Loaded> = sized.iter().map(|one| one.loaded.clone()).collect();
        let empty = Self {
            n,
            points: Vec::new(),
            source: String::new(),
            curve: None,
            service: None,
            runs: runs.clone(),
        };
        let seeks = || runs.iter().filter_map(|run| Some((run, run.record.job_results.seek()?)));
        let searches = || runs.iter().filter_map(|run| run.record.job_results.search());
        if seeks().next().is_some() {
            empty.of_seeks(seeks(), limit)
        } else if let Some(search) = searches().next() {
            empty.of_search(search, limit, unit)
        } else {
            match limit {
                Some(limit) => empty.of_curve(limit, unit),
                None => empty.of_throughput(),
            }
        }
    }

    fn of_seeks<'a>(
        mut self,
        seeks: impl Iterator<Item = (&'a Loaded, &'a SeekResult)>,
        limit: Option<&Limit>,
    ) -> Result<Self> {
        let mut measured = Vec::new();
        for (run, seek) in seeks {
            let finding = &seek.finding;
            let folder = run.folder.display();
            let place = match limit {
                None => 0,
                Some(limit) => {
                    finding.limits.iter().position(|one| limit.is(&one.label)).ok_or_else(|| {
                        let had: Vec<&str> =
                            finding.limits.iter().map(|one| one.label.as_str()).collect();
                        usage(format!(
                            "{folder}: the search had the limit {}, not {}; seek that limit, or write --slo {}",
                            had.join(", "),
                            limit.text,
                            had.first().unwrap_or(&"p95=100ms")
                        ))
                    })?
                }
            };
            let (Some(estimate), Some((low, high))) =
                (finding.estimate_per_s, finding.interval_per_s)
            else {
                return Err(usage(format!(
                    "{folder}: the search found no load line: {}",
                    finding.reason
                )));
            };
            let z = plimsoll_core::normal::quantile(0.5 + 0.5 * finding.confidence);
            let share = (high - low) / (2.0 * z * estimate);
            let error = RelativeError { share, freedom: SEEK_FREEDOM }.of_run();
            self.points.push(Point { n: self.n, per_s: estimate, error: Some(error) });
            for one in &finding.curve {
                let share = one.late_share.get(place).copied().unwrap_or_default();
                let weight = one.scheduled as f64;
                let value = share.max(0.5 / weight.max(1.0));
                measured.push(Measured { per_s: one.rate_per_s, value, weight, error: None });
            }
        }
        self.source = "seek".to_owned();
        if limit.is_some() {
            self.curve = Some((Shows::LateShare, Curve::of(&measured)));
        }
        Ok(self)
    }

    /// The highest throughput of runs without a limit.
    fn of_throughput(mut self) -> Result<Self> {
        for run in &self.runs {
            let rates = &run.record.rate;
            let model = run.record.scenario.pointer("/load/model").and_then(|model| model.as_str());
            if model.is_some_and(|model| model != "closed")
                && rates.ok_per_s > 0.95 * rates.offered_per_s
            {
                return Err(usage(format!(
                    "{}: the target kept up with the {}/s offered, so the run does not show what it holds; use --slo with runs at several rates, a seek, or closed clients (--clients)",
                    run.folder.display(),
                    significant(rates.offered_per_s)
                )));
            }
        }
        let most = self.runs.iter().map(|run| run.record.rate.ok_per_s).fold(0.0, f64::max);
        if most <= 0.0 {
            return Err(usage(format!(
                "{}: no request succeeded, so there is no rate",
                self.runs[0].folder.display()
            )));
        }
        for run in &self.runs {
            let per_s = run.record.rate.ok_per_s;
            if per_s >= (1.0 - REPEATS) * most {
                let error = throughput_error(run).map(RelativeError::of_run);
                self.points.push(Point { n: self.n, per_s, error });
            }
        }
        "throughput".clone_into(&mut self.source);
        Ok(self)
    }

    /// The rate at which runs at several rates reach a limit.
    fn of_curve(mut self, limit: &Limit, unit: &str) -> Result<Self> {
        let mut late = Vec::new();
        let mut times = Vec::new();
        let mut lowest: Option<(f64, Histogram)> = None;
        for run in &self.runs {
            let series = Series::of_folder(&run.folder)?;
            let response = response(run)?;
            let per_s = offered(run);
            let batches = batches(run, &series, &response, limit.limit_ns);
            if let Some((value, error)) = late_share(&batches) {
                let weight = batches.iter().map(|one| one.requests as f64).sum();
                let error = error.filter(|error| error.share > 0.0);
                late.push(Measured { per_s, value, weight, error });
                let value = response.quantile_ns(1.0 - limit.allowed) as f64 / 1e6;
                times.push(Measured { per_s, value, weight, error: None });
            }
            if lowest.as_ref().is_none_or(|(low, _)| per_s < *low) {
                lowest = Some((per_s, response));
            }
        }
        let (crossing, error) = reached(&late, limit.allowed)
            .ok_or_else(|| usage(format!("{}: no request ended", self.runs[0].folder.display())))?;
        let Crossing::At(per_s) = crossing else {
            return Err(not_reached(self.n, unit, limit, crossing));
        };
        self.points.push(Point { n: self.n, per_s, error: error.map(RelativeError::of_run) });
        self.curve = Some((Shows::Percentile, Curve::of(&times)));
        self.service = lowest.and_then(|(low, times)| {
            // At half of the line or below, few requests wait.
            let quantile = |p: f64| times.quantile_ns(p) as f64;
            (low <= 0.5 * per_s).then(|| Service::of(quantile)).flatten()
        });
        self.source = format!("{} runs", self.runs.len());
        Ok(self)
    }

    /// The rate at which a column of a matrix reaches a limit, or its highest rate.
    fn of_search(
        mut self,
        search: &SearchResult,
        limit: Option<&Limit>,
        unit: &str,
    ) -> Result<Self> {
        let cells: Vec<&Cell> = search
            .cells
            .iter()
            .filter(|cell| cell.ok_per_s.is_some_and(|per_s| per_s > 0.0))
            .collect();
        let folder = self.runs[0].folder.display().to_string();
        let first = cells.first().ok_or_else(|| usage(format!("{folder}: no cell has a rate")))?;
        let same = |cell: &&Cell| {
            let (a, b) = (&cell.key, &first.key);
            (&a.engine, &a.size, a.distance, a.shards) == (&b.engine, &b.size, b.distance, b.shards)
        };
        if !cells.iter().all(same) {
            return Err(usage(format!(
                "{folder}: the matrix has several engines, sizes or groups; size one that has a single column"
            )));
        }
        let per_s = |cell: &Cell| cell.ok_per_s.unwrap_or_default();
        "users matrix".clone_into(&mut self.source);
        let Some(limit) = limit else {
            let most = cells.iter().max_by(|a, b| per_s(a).total_cmp(&per_s(b)));
            self.points.extend(most.map(|cell| Point {
                n: self.n,
                per_s: per_s(cell),
                error: error_of_cell(cell),
            }));
            return Ok(self);
        };
        let times = times_of_cells(&cells, limit).ok_or_else(|| {
            usage(format!("--slo {}: a matrix has p50, p90, p95, p99 and p99.9 only", limit.text))
        })?;
        match reached(&times, limit.limit_ms()) {
            Some((Crossing::At(held), _)) => {
                let near = cells
                    .iter()
                    .min_by(|a, b| (per_s(a) - held).abs().total_cmp(&(per_s(b) - held).abs()));
                let error = near.and_then(|cell| error_of_cell(cell));
                self.points.push(Point { n: self.n, per_s: held, error });
            }
            Some((crossing, _)) => return Err(not_reached(self.n, unit, limit, crossing)),
            None => return Err(usage(format!("{folder}: no cell has a rate"))),
        }
        self.curve = Some((Shows::Percentile, Curve::of(&times)));
        Ok(self)
    }
}

/// Points of a users matrix: each number of users with its rate.
pub fn users_of(search: &SearchResult) -> Vec<Point> {
    let point = |cell: &Cell| {
        let per_s = cell.ok_per_s.filter(|per_s| *per_s > 0.0)?;
        Some(Point { n: f64::from(cell.key.users), per_s, error: error_of_cell(cell) })
    };
    search.cells.iter().filter_map(point).collect()
}

/// The error of a cell's rate, by the spread of its repeats.
fn error_of_cell(cell: &Cell) -> Option<RelativeError> {
    let [low, high] = cell.interval_per_s?;
    let freedom = (cell.repeats.len() as f64 - 1.0).max(1.0);
    let t = plimsoll_decide::student::quantile(0.975, freedom);
    let share = (high - low) / (2.0 * t * cell.ok_per_s?);
    Some(RelativeError { share, freedom }.of_run())
}

/// Degrees of freedom with which a search knows the interval of its line: it has some tens of blocks.
const SEEK_FREEDOM: f64 = 20.0;

/// The percentile of each cell of a matrix over its rate.
fn times_of_cells(cells: &[&Cell], limit: &Limit) -> Option<Vec<Measured>> {
    let point = |cell: &&Cell| {
        let times = &cell.latency_ms;
        let value = match limit.name.as_str() {
            "p50" => times.p50,
            "p90" => times.p90,
            "p95" => times.p95,
            "p99" => times.p99,
            "p99.9" => times.p99_9,
            _ => return None,
        };
        let weight = cell.ok.max(1) as f64;
        Some(Measured { per_s: cell.ok_per_s?, value, weight, error: None })
    };
    cells.iter().map(point).collect()
}

fn not_reached(n: f64, unit: &str, limit: &Limit, crossing: Crossing) -> anyhow::Error {
    let more = match crossing {
        Crossing::Above(per_s) => {
            format!(
                "holds it at all measured rates, up to {}; add a run at a higher rate",
                per_second(per_s)
            )
        }
        Crossing::Below(per_s) | Crossing::At(per_s) => {
            format!(
                "misses it at all measured rates, from {}; add a run at a lower rate",
                per_second(per_s)
            )
        }
    };
    usage(format!(
        "--slo {}: the curve of {n} {} does not reach {}: it {more}, or use a seek",
        limit.text,
        if n == 1.0 { unit.trim_end_matches('s') } else { unit },
        time(limit.limit_ms())
    ))
}

/// Response times of all classes together. Another tool may have given service times only, or a few percentiles.
fn response(run: &Loaded) -> Result<Histogram> {
    let folder = run.folder.display();
    if !run.record.histograms.keys().any(|name| name.ends_with("/response")) {
        return Err(usage(format!(
            "{folder}: the record has no histogram of response times, which --slo needs; leave out --slo or this run"
        )));
    }
    of_all_classes(&run.record, "response")
        .map_err(|problem| usage(format!("{folder}: {problem}; leave out this run")))
}

/// The rate that a run put on the target: what was offered, or what closed clients achieved.
fn offered(run: &Loaded) -> f64 {
    let rates = &run.record.rate;
    if rates.offered_per_s > 0.0 { rates.offered_per_s } else { rates.ok_per_s }
}

/// Requests of a run and the late ones among them, in stretches of equal length; all in one if its seconds are not known.
fn batches(run: &Loaded, series: &Series, response: &Histogram, limit_ns: u64) -> Vec<Batch> {
    let batch = |column: &Column| {
        let cells = column.response.cells();
        let late: u64 =
            cells.iter().filter(|cell| cell.highest_ns > limit_ns).map(|cell| cell.count).sum();
        let lost = column.failed + column.refused + column.unsent;
        Batch { requests: column.ok + lost, late: late + lost }
    };
    let found: Vec<Batch> = series.coarse(BATCHES).iter().map(batch).collect();
    if !found.is_empty() {
        return found;
    }
    let ledger = &run.record.ledger;
    let lost = ledger.scheduled.saturating_sub(ledger.ok);
    let late = response.count_above(limit_ns) + lost;
    vec![Batch { requests: response.cells().map(|(_, count)| count).sum::<u64>() + lost, late }]
}

/// The error of a run's throughput, by the spread of its batches.
fn throughput_error(run: &Loaded) -> Option<RelativeError> {
    let columns = Series::of_folder(&run.folder).ok()?.coarse(BATCHES);
    let rates: Vec<f64> = columns
        .iter()
        .filter(|column| column.seconds() > 0.5)
        .map(|column| column.ok as f64 / column.seconds())
        .collect();
    let count = rates.len() as f64;
    if rates.len() < 2 {
        return None;
    }
    let mean = rates.iter().sum::<f64>() / count;
    let squares: f64 = rates.iter().map(|rate| (rate - mean).powi(2)).sum();
    let share = (squares / (count - 1.0) / count).sqrt() / mean;
    share.is_finite().then_some(RelativeError { share, freedom: count - 1.0 })
}
