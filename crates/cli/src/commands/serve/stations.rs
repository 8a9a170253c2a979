//! `plimsoll serve null` and `queue`: the flags of the stations.

use super::listening::{ListenArgs, listen, ready};
use anyhow::Result;
use clap::Args;
use plimsoll_core::units::Span;
use plimsoll_job::exit;
use plimsoll_job::flags::ArrivalsFlag;
use plimsoll_job::output::print_out;
use plimsoll_job::usage::usage;
use plimsoll_stations::null::{self, NullConfig};
use plimsoll_stations::queue::{
    self, Arrivals, QueueConfig, ServiceTime, Stall, StationConfig, truth_or_reason,
};

#[derive(Args, Debug)]
pub struct NullArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Bytes of body in each reply
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    body_bytes: usize,
    /// Number of threads
    #[arg(long, value_name = "N", default_value_t = 1)]
    threads: usize,
    /// Never sleep; takes a whole core per thread
    #[arg(long)]
    busy_poll: bool,
}

#[derive(Args, Debug)]
pub struct QueueArgs {
    #[command(flatten)]
    listen: ListenArgs,
    /// Number of servers; 0: unlimited, no request waits
    #[arg(long, value_name = "N", default_value_t = 1)]
    servers: u32,
    /// Service time, such as exponential:5ms
    ///
    /// fixed:5ms, exponential:5ms, lognormal:MEDIAN,SIGMA, gamma:SHAPE,MEAN or bimodal:SHARE,A,B.
    #[arg(long, value_name = "DISTRIBUTION", default_value = "exponential:5ms")]
    service: ServiceTime,
    /// Fixed delay added to each reply
    ///
    /// It occupies no server.
    #[arg(long, value_name = "TIME", default_value = "0s")]
    delay: Span,
    /// Length of regular stalls; needs --stall-every
    #[arg(long, value_name = "TIME")]
    stall: Option<Span>,
    /// Time from the end of one stall to that of the next
    ///
    /// The first stall begins this time minus --stall after the first request.
    #[arg(long, value_name = "TIME")]
    stall_every: Option<Span>,
    /// Answer every N-th request with 503; 0: none
    ///
    /// After its normal service time.
    #[arg(long, value_name = "N", default_value_t = 0)]
    error_every: u64,
    /// Largest number of requests in the station
    ///
    /// A further arrival is rejected at once.
    #[arg(long, value_name = "N")]
    cap: Option<u64>,
    /// Status of a rejected request, 429 or 503
    #[arg(long, value_name = "CODE", default_value_t = 503)]
    reject_status: u16,
    /// Bytes of body in each reply
    #[arg(long, value_name = "BYTES", default_value_t = 64)]
    body_bytes: usize,
    /// Seed of all random choices
    ///
    /// Of the service times.
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Rate for which to print predicted response times
    ///
    /// In requests per second. Queueing theory predicts them.
    #[arg(long, value_name = "PER_S")]
    rate: Option<f64>,
    /// Arrivals for --rate, uniform or poisson [default: poisson]
    ///
    /// uniform: equal gaps; poisson: independent exponential gaps.
    #[arg(long, value_enum, hide_possible_values = true, value_name = "KIND")]
    arrivals: Option<ArrivalsFlag>,
    /// Time to poll before a reply is due
    ///
    /// Polling instead of sleeping keeps the wake-up out of the service time; 0s saves CPU.
    #[arg(long, value_name = "TIME", default_value = "100us")]
    spin: Span,
}

/// Runs the null server.
///
/// # Errors
/// A wrong configuration, or an address that cannot be bound.
pub fn serve_null(args: &NullArgs) -> Result<u8> {
    let config = NullConfig {
        body_bytes: args.body_bytes,
        threads: args.threads,
        busy_poll: args.busy_poll,
    };
    config.validate().map_err(|error| usage(error.to_string()))?;
    let (listener, stop) = listen(&args.listen)?;
    ready("null", &["http"], &listener, &args.listen)?;
    null::run(listener, config, stop)?;
    Ok(exit::FINE)
}

/// Runs the station.
///
/// # Errors
/// A wrong configuration, or an address that cannot be bound.
pub fn serve_queue(args: &QueueArgs) -> Result<u8> {
    let stall = match (args.stall, args.stall_every) {
        (Some(length), Some(period)) => Some(Stall { length_ns: length.ns, period_ns: period.ns }),
        (None, None) => None,
        _ => return Err(usage("--stall and --stall-every go together; give both")),
    };
    let config = QueueConfig {
        station: StationConfig {
            servers: args.servers,
            service: args.service,
            delay_ns: args.delay.ns,
            stall,
            error_every: args.error_every,
            in_flight_cap: args.cap,
            seed: args.seed,
            ..StationConfig::default()
        },
        body_bytes: args.body_bytes,
        reject_status: args.reject_status,
        spin_ns: args.spin.ns,
        ..QueueConfig::default()
    };
    config.validate().map_err(|error| usage(error.to_string()))?;
    if args.rate.is_none() && args.arrivals.is_some() {
        return Err(usage("--arrivals goes with --rate; add --rate, or leave out --arrivals"));
    }
    if let Some(rate) = args.rate {
        if !(rate.is_finite() && rate > 0.0) {
            return Err(usage(format!("--rate {rate}: write a number above 0, such as 600")));
        }
        let arrivals = match args.arrivals {
            Some(ArrivalsFlag::Poisson) | None => Arrivals::Poisson,
            Some(ArrivalsFlag::Uniform) => Arrivals::Uniform,
        };
        print_out(&truth_text(&config, rate, arrivals))?;
    }
    let (listener, stop) = listen(&args.listen)?;
    ready("queue", &["http"], &listener, &args.listen)?;
    queue::run(listener, config, stop)?;
    Ok(exit::FINE)
}

fn truth_text(config: &QueueConfig, rate: f64, arrivals: Arrivals) -> String {
    match truth_or_reason(config, rate, arrivals) {
        Err(reason) => format!("truth at {rate}/s: no closed form: {reason}\n"),
        Ok(truth) => {
            let shown = |name: &str, ms: Option<f64>| {
                ms.map_or(String::new(), |ms| format!("  {name} {ms:.3} ms"))
            };
            format!(
                "truth at {rate}/s: {} ({})  busy {:.1} %{}{}{}{}{}\n",
                truth.model,
                truth.source,
                truth.utilization * 100.0,
                shown("mean", truth.mean_ms),
                shown("p50", truth.p50_ms),
                shown("p90", truth.p90_ms),
                shown("p95", truth.p95_ms),
                shown("p99", truth.p99_ms),
            )
        }
    }
}
