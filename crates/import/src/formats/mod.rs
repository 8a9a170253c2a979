//! One file for each format, or for the few of one tool: bytes go in, an [`Imported`](crate::Imported) comes out.

mod ab;
mod ab_tables;
mod benchpress;
mod fbench;
mod feedsim;
mod gatling_log;
mod gatling_stats;
mod h2load;
mod hdr;
mod hey;
mod hgrm;
mod hlog;
mod k6_json;
mod k6_summary;
mod oha;
mod pgbench;
mod pgbench_logs;
mod request_csv;
mod vegeta;
mod vegeta_results;
mod wrk;

use crate::detect::Format;
use crate::error::ImportError;
use crate::imported::Imported;
use std::io::BufRead;

/// Settings of an import that no file gives.
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    /// Nanoseconds of one unit of the values in HdrHistogram's files.
    pub unit_ns: Option<f64>,
}

/// Reads a file of a format.
///
/// # Errors
/// If it is not of the format, or is cut.
pub fn parse(
    format: Format,
    input: &mut dyn BufRead,
    options: &Options,
) -> Result<Imported, ImportError> {
    match format {
        Format::Hlog => hlog::parse(input, options),
        Format::Hgrm => hgrm::parse(input, options),
        Format::Fbench => fbench::parse(input),
        Format::Feedsim => feedsim::table(input),
        Format::FeedsimLog => feedsim::log(input),
        Format::Benchpress => benchpress::parse(input),
        Format::GatlingLog => gatling_log::parse(input),
        Format::GatlingStats => gatling_stats::parse(input),
        Format::K6Summary => k6_summary::parse(input),
        Format::K6Json => k6_json::parse(input),
        Format::Wrk | Format::Wrk2 => wrk::parse(input, format == Format::Wrk2),
        Format::Hey => hey::parse(input),
        Format::HeyCsv => request_csv::hey(input),
        Format::Oha => oha::text(input),
        Format::OhaJson => oha::json(input),
        Format::OhaCsv => request_csv::oha(input),
        Format::Ab => ab::parse(input),
        Format::AbCsv => ab_tables::percentiles(input),
        Format::AbTsv => ab_tables::requests(input),
        Format::Vegeta => vegeta::text(input),
        Format::VegetaJson => vegeta::json(input),
        Format::VegetaResults => vegeta_results::parse(input),
        Format::H2load => h2load::parse(input),
        Format::Pgbench => pgbench::parse(input),
        Format::PgbenchLog => pgbench_logs::transactions(input),
        Format::PgbenchAggregate => pgbench_logs::aggregate(input),
    }
}
