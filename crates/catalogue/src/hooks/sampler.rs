//! A thread that writes a row at regular moments.

use plimsoll_core::clock::{now_ns, wall_us};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Writes the text of one moment; called with the wall time, s since the Unix epoch.
pub type Row = Box<dyn FnMut(f64, &mut dyn Write) -> std::io::Result<()> + Send>;

/// A sampler that runs until it is stopped or dropped.
pub struct Sampler {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<std::io::Result<()>>>,
}

impl Sampler {
    /// Writes `head` to a new file, then a row each interval, the first after one interval.
    ///
    /// # Errors
    /// When the file or the thread cannot be made.
    pub fn start(
        path: &Path,
        head: &str,
        interval: Duration,
        mut row: Row,
    ) -> Result<Self, String> {
        let shown = |error: std::io::Error| format!("{}: {error}", path.display());
        let mut file = BufWriter::new(File::create(path).map_err(shown)?);
        file.write_all(head.as_bytes()).map_err(shown)?;
        let (stop, stopped) = channel::<()>();
        let every_ns = interval.as_nanos() as u64;
        let sample = move || {
            // Due times are absolute, so that samples do not drift away from their grid.
            let mut due_ns = now_ns() + every_ns;
            loop {
                let wait = Duration::from_nanos(due_ns.saturating_sub(now_ns()));
                if stopped.recv_timeout(wait) != Err(RecvTimeoutError::Timeout) {
                    return file.flush();
                }
                row(wall_us() as f64 / 1e6, &mut file)?;
                file.flush()?;
                while due_ns <= now_ns() {
                    due_ns += every_ns;
                }
            }
        };
        let thread = std::thread::Builder::new().name("sampler".to_owned()).spawn(sample);
        Ok(Self { stop: Some(stop), thread: Some(thread.map_err(shown)?) })
    }

    /// Stops it.
    ///
    /// # Errors
    /// When a row could not be written.
    pub fn stop(&mut self) -> Result<(), String> {
        self.stop.take();
        match self.thread.take().map(JoinHandle::join) {
            None | Some(Ok(Ok(()))) => Ok(()),
            Some(Ok(Err(error))) => Err(format!("samples are missing: {error}")),
            Some(Err(_)) => Err("the sampler broke off".to_owned()),
        }
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

/// A sampler of CSV `index,timestamp,...`; `values` makes the rest of a row.
///
/// # Errors
/// As [`Sampler::start`].
pub fn csv(
    path: &Path,
    columns: &[String],
    interval: Duration,
    mut values: impl FnMut() -> Vec<String> + Send + 'static,
) -> Result<Sampler, String> {
    let head = format!("index,timestamp,{}\n", columns.join(","));
    let mut index = 0u64;
    let row = move |at_s: f64, out: &mut dyn Write| {
        let row = writeln!(out, "{index},{at_s:.3},{}", values().join(","));
        index += 1;
        row
    };
    Sampler::start(path, &head, interval, Box::new(row))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_come_on_a_grid_until_it_is_stopped() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("x.csv");
        let mut count = 0;
        let values = move || {
            count += 1;
            vec![count.to_string()]
        };
        let every = Duration::from_millis(20);
        let mut sampler = csv(&path, &["n".to_owned()], every, values).unwrap();
        std::thread::sleep(Duration::from_millis(150));
        sampler.stop().unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.starts_with("index,timestamp,n\n0,"), "{text}");
        let rows = text.lines().count() - 1;
        assert!((1..=7).contains(&rows), "{text}");
        assert!(csv(&dir.path().join("no/x"), &[], every, Vec::new).is_err());
    }
}
