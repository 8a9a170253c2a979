//! Resources of the target, a line for each watched thing.

use crate::number::{bytes, count, significant};
use crate::page::{Page, Tone};
use crate::plain::{clip, printable};
use plimsoll_record::RunRecord;
use plimsoll_record::resources::{GENERATOR, Level, WatchedResult, WatcherResult, name_with_agent};

/// Things that have a line; the record holds all of them.
const LINES_MAX: usize = 8;
/// Longest name of a thing on the page, characters.
const NAME_CHARS_MAX: usize = 40;
/// Rates of the disk and of major faults below this are not worth a word, bytes/s and faults/s.
const DISK_MIN: f64 = 100e3;
const FAULTS_MIN: f64 = 1.0;

/// A line for each thing that was at a limit, one for the machine, and the remarks; on a verbose page a line for each watched thing
/// but the generator, which has a line of its own.
pub fn watched(page: &mut Page<'_>, record: &RunRecord) {
    let Some(resources) = record.job_results.resources() else { return };
    let mut lines: Vec<(String, Tone)> = Vec::new();
    let elsewhere = resources.watchers.iter().flat_map(|watcher| &watcher.watched);
    for one in resources.watched.iter().chain(elsewhere) {
        let is_shown = page.is_verbose() && one.name != GENERATOR || !one.at_limit.is_empty();
        if is_shown {
            let tone = if one.at_limit.is_empty() { Tone::Plain } else { Tone::Warn };
            lines.push((line(one), tone));
        }
    }
    let left_out = lines.len().saturating_sub(LINES_MAX);
    lines.truncate(LINES_MAX);
    if left_out > 0 {
        lines.push((format!("{left_out} more in the record"), Tone::Plain));
    }
    if !resources.machine.at_limit.is_empty() {
        let name = match resources.watchers.is_empty() {
            true => "machine".to_owned(),
            false => format!("machine {} (coordinator)", printable(&record.machine.hostname)),
        };
        let text = format!("{name}: at its limit: {}", limits(&resources.machine.at_limit));
        lines.push((text, Tone::Warn));
    }
    for watcher in &resources.watchers {
        lines.extend(machine_line(watcher, page.is_verbose()));
        lines.extend(
            watcher
                .remarks
                .iter()
                .map(|remark| (printable(&name_with_agent(&watcher.agent, remark)), Tone::Warn)),
        );
    }
    lines.extend(resources.remarks.iter().map(|remark| (printable(remark), Tone::Warn)));
    for (index, (text, tone)) in lines.iter().enumerate() {
        page.entry(if index == 0 { "Watched" } else { "" }, text, *tone);
    }
}

/// `machine db-host (agent db): 3.20 of 8 processors busy`, if it was at a limit or the page is verbose.
fn machine_line(watcher: &WatcherResult, is_verbose: bool) -> Option<(String, Tone)> {
    let machine = &watcher.machine;
    if machine.at_limit.is_empty() && !is_verbose {
        return None;
    }
    let cores: Vec<f64> = machine.cores_busy.iter().flatten().map(|core| core.mean).collect();
    let busy: f64 = cores.iter().sum();
    let mut text = format!(
        "machine {} (agent {}): {busy:.2} of {} processors busy",
        printable(&watcher.host),
        clip(&printable(&watcher.agent), NAME_CHARS_MAX),
        cores.len()
    );
    if cores.is_empty() {
        text = format!("machine {} (agent {}): unknown", watcher.host, watcher.agent);
    }
    if !machine.at_limit.is_empty() {
        text += &format!("; at its limit: {}", limits(&machine.at_limit));
    }
    let tone = if machine.at_limit.is_empty() { Tone::Plain } else { Tone::Warn };
    Some((text, tone))
}

fn limits(reached: &[String]) -> String {
    printable(&reached.join("; "))
}

/// `nginx: CPU 1.2 cores (max 1.4), memory 81.2 MB`.
fn line(one: &WatchedResult) -> String {
    let name = clip(&printable(&one.name), NAME_CHARS_MAX);
    let mut parts = Vec::new();
    match &one.cpu_cores {
        Some(cpu) => {
            let of = one.cpu_cores_allowed.map_or(String::new(), |of| format!(" of {of}"));
            parts.push(format!("CPU {:.2}{of} cores (max {:.2})", cpu.mean, cpu.max));
        }
        None => parts.push("CPU unknown".to_owned()),
    }
    parts.push(match &one.rss_bytes {
        Some(memory) => format!("memory {}", bytes(memory.max)),
        None => "memory unknown".to_owned(),
    });
    let above = |level: &Option<Level>, least: f64| level.filter(|level| level.mean >= least);
    if let Some(read) = above(&one.disk_read_bytes_per_s, DISK_MIN) {
        parts.push(format!("{}/s read from disk", bytes(read.mean)));
    }
    if let Some(written) = above(&one.disk_written_bytes_per_s, DISK_MIN) {
        parts.push(format!("{}/s written to disk", bytes(written.mean)));
    }
    if let Some(faults) = above(&one.major_faults_per_s, FAULTS_MIN) {
        parts.push(format!("{} major faults/s", significant(faults.mean)));
    }
    if let Some(processes) = one.processes.filter(|processes| processes.max > 1.0) {
        parts.push(format!("{} processes", count(processes.max as u64)));
    }
    let mut text = format!("{name}: {}", parts.join(", "));
    if !one.at_limit.is_empty() {
        text += &format!("; at its limit: {}", limits(&one.at_limit));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Style;
    use plimsoll_record::resources::{MachineResult, ResourcesResult};

    fn page(resources: ResourcesResult, verbose: bool) -> String {
        let mut record = crate::samples::good();
        record.job_results.put(resources);
        let style = Style { verbose, ..Style::default() };
        let mut page = Page::new(&style);
        watched(&mut page, &record);
        page.finish()
    }

    const fn level(mean: f64, max: f64) -> Option<Level> {
        Some(Level { mean, max })
    }

    #[test]
    fn what_was_used_up_has_a_line_and_a_verbose_page_has_every_watched_thing() {
        let nginx = WatchedResult {
            name: "nginx".to_owned(),
            cpu_cores: level(1.97, 2.0),
            cpu_cores_allowed: Some(2.0),
            rss_bytes: level(8e7, 8.12e7),
            disk_written_bytes_per_s: level(2e6, 3e6),
            processes: level(3.0, 3.0),
            at_limit: vec!["CPU 1.97 of 2 cores".to_owned()],
            ..WatchedResult::default()
        };
        let unknown = WatchedResult { name: "db".to_owned(), ..WatchedResult::default() };
        let generator = WatchedResult { name: GENERATOR.to_owned(), ..WatchedResult::default() };
        let machine = MachineResult {
            at_limit: vec!["all 2 processors, 99 % busy".to_owned()],
            ..MachineResult::default()
        };
        let remarks = vec!["db: no process any more, process 12 ended, at 3.0 s".to_owned()];
        let watched = vec![nginx, unknown, generator];
        let resources =
            ResourcesResult { samples: 3, watched, machine, remarks, watchers: Vec::new() };
        let at_limit = "Watched    nginx: CPU 1.97 of 2 cores (max 2.00), memory 81.2 MB, 2.00 MB/s written to disk, 3\n\
             \x20          processes; at its limit: CPU 1.97 of 2 cores\n";
        let machine = "           machine: at its limit: all 2 processors, 99 % busy\n\
             \x20          db: no process any more, process 12 ended, at 3.0 s\n";
        assert_eq!(page(resources.clone(), false), format!("{at_limit}{machine}"));
        let unknown = "           db: CPU unknown, memory unknown\n";
        assert_eq!(page(resources, true), format!("{at_limit}{unknown}{machine}"));
        assert_eq!(page(ResourcesResult::default(), true), "");
    }

    /// The machine of the coordinator is never taken for one that an agent watched.
    #[test]
    fn each_machine_is_named() {
        let at_limit = |limit: &str| MachineResult {
            cores_busy: vec![level(0.99, 1.0), level(0.5, 1.0)],
            at_limit: vec![limit.to_owned()],
            ..MachineResult::default()
        };
        let watcher = WatcherResult {
            agent: "db".to_owned(),
            host: "db-host".to_owned(),
            watched: vec![WatchedResult {
                name: name_with_agent("db", "mysqld"),
                cpu_cores: level(0.5, 0.6),
                ..WatchedResult::default()
            }],
            machine: at_limit("processor 0, 99 % busy"),
            remarks: vec!["mysqld: runs again, process 7, at 2.0 s".to_owned()],
            ..WatcherResult::default()
        };
        let resources = ResourcesResult {
            samples: 3,
            machine: at_limit("processor 1, 98 % busy"),
            watchers: vec![watcher],
            ..ResourcesResult::default()
        };
        let host = crate::samples::good().machine.hostname;
        let text = page(resources, true);
        for line in [
            "db: mysqld: CPU 0.50 cores (max 0.60), memory unknown",
            &format!("machine {host} (coordinator): at its limit: processor 1, 98 % busy"),
            "machine db-host (agent db): 1.49 of 2 processors busy; at its limit: processor 0, 99 % busy",
            "db: mysqld: runs again, process 7, at 2.0 s",
        ] {
            let joined: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(joined.contains(line), "{line}\n{text}");
        }
    }
}
