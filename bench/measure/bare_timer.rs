//! What a machine allows: a loop that does nothing but sleep until the next due time, and the same loop with
//! one request at each due time.

use crate::statistics::quantile;
use anyhow::{Result, bail};
use plimsoll_core::clock::{SECOND_NS, now_ns};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity, set_current_timer_slack};
use rustix::time::Timespec;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::num::NonZeroU64;

/// How well the loop kept its times.
pub struct Paced {
    /// Due to awake, median, us.
    pub lag_p50_us: f64,
    /// Due to awake, p99, us.
    pub lag_p99_us: f64,
    /// Standard deviation of the gaps between wake-ups over their mean.
    pub gap_cv: f64,
}

/// Connections of the smallest client there can be, each used in turn.
struct BareClient {
    connections: Vec<TcpStream>,
    next: usize,
}

impl BareClient {
    fn connect(address: &str, connections: u32) -> Result<Self> {
        let connections = (0..connections)
            .map(|_| {
                let connection = TcpStream::connect(address)?;
                connection.set_nodelay(true)?;
                connection.set_nonblocking(true)?;
                Ok(connection)
            })
            .collect::<Result<Vec<_>>>()?;
        Ok(Self { connections, next: 0 })
    }

    /// Takes the reply to this connection's last request, and sends the next one.
    fn send(&mut self) -> Result<()> {
        let connection = &mut self.connections[self.next];
        let mut reply = [0u8; 4096];
        match connection.read(&mut reply) {
            Ok(0) => bail!("the target closed a connection of the bare client"),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error.into()),
        }
        connection.write_all(b"GET / HTTP/1.1\r\nHost: bare\r\n\r\n")?;
        self.next = (self.next + 1) % self.connections.len();
        Ok(())
    }
}

/// Wakes `rate` times a second for `seconds` on `core`.
///
/// # Errors
/// When the kernel refuses to move this thread.
pub fn bare_timer(core: usize, rate: u32, seconds: u32) -> Result<Paced> {
    paced(core, rate, seconds, || Ok(()))
}

/// Sends `rate` requests a second for `seconds` from `core`, looking at no reply in time: as little as can be
/// done about a request.
///
/// # Errors
/// When the target cannot be reached, or the kernel refuses to move this thread.
pub fn bare_client(
    core: usize,
    address: &str,
    connections: u32,
    rate: u32,
    seconds: u32,
) -> Result<Paced> {
    let mut client = BareClient::connect(address, connections)?;
    paced(core, rate, seconds, || client.send())
}

fn paced(
    core: usize,
    rate: u32,
    seconds: u32,
    mut at_due: impl FnMut() -> Result<()>,
) -> Result<Paced> {
    let allowed = sched_getaffinity(None)?;
    let mut one = CpuSet::new();
    one.set(core);
    sched_setaffinity(None, &one)?;
    // Without it the kernel may wake this thread 50 us late.
    let _ = set_current_timer_slack(NonZeroU64::new(1));
    let gap_ns = SECOND_NS / u64::from(rate);
    let start_ns = now_ns();
    let mut awake_ns = Vec::with_capacity((rate * seconds) as usize);
    for at in 1..=u64::from(rate * seconds) {
        let due_ns = start_ns + at * gap_ns;
        loop {
            let left_ns = due_ns.saturating_sub(now_ns());
            if left_ns == 0 {
                break;
            }
            let nap = Timespec { tv_sec: 0, tv_nsec: left_ns as i64 };
            let _ = rustix::thread::nanosleep(&nap);
        }
        awake_ns.push(now_ns());
        at_due()?;
    }
    sched_setaffinity(None, &allowed)?;
    let due = (1u64..).map(|at| start_ns + at * gap_ns);
    let lag_us: Vec<f64> =
        awake_ns.iter().zip(due).map(|(awake, due)| (awake - due) as f64 / 1e3).collect();
    let gaps: Vec<f64> = awake_ns.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    Ok(Paced {
        lag_p50_us: quantile(&lag_us, 0.5),
        lag_p99_us: quantile(&lag_us, 0.99),
        gap_cv: variance.sqrt() / mean,
    })
}
