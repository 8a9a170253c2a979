//! vespa-fbench's summary as one line of numbers, for scripts and plots.
//!
//! Each number that follows a `:` is printed, in the order of the input, all on one line separated by
//! blanks. For one summary of today's form these are: 1 clients, 2 ran for, 3 cycle time, 4 lower
//! limit, 5 skipped, 6 failed, 7 successful, 8 cycles not held, 9 min, 10 max, 11 average, 12 to 23
//! the percentiles 25, 50, 75, 90, 95, 98, 99, 99.5, 99.6, 99.7, 99.8, 99.9, 24 rate, 25
//! utilization, 26 zero hits, 27 zero hit percentage, then one count for each HTTP status. Several
//! summaries in one input give one long line, as the original does.
//!
//! [`Columns::Documented`] is the order that the original documented before 2020 and that its
//! plotting scripts still read: 1 to 16 as above up to p95 (without p98), 17 p99, 18 rate, 19
//! utilization, 20 zero hits.
//!
//! plimsoll's own block after the summary is left out: from a line that starts with [`OWN_BLOCK`]
//! up to the next summary.

use std::io::{self, BufRead, Write};

/// The way a line begins that opens plimsoll's own block after a summary in vespa-fbench's form.
pub const OWN_BLOCK: &str = "*** plimsoll";
/// The way the first line of a summary ends.
const SUMMARY: &str = "* Benchmark Summary *";
/// Longest line that is looked at: 64 KiB. The rest of a longer one is passed over.
const LINE_MAX_BYTES: u64 = 64 * 1024;

/// Set and order of the numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Columns {
    /// All, as they come.
    #[default]
    Newest,
    /// The 20 columns documented before 2020; what a summary lacks is left out at the end, or
    /// printed as `-` where a number follows.
    Documented,
}

/// The labels of the documented columns, in their order, as they begin after blanks are evened out.
const DOCUMENTED: [&str; 20] = [
    "clients",
    "ran for",
    "cycle time",
    "lower response limit",
    "skipped requests",
    "failed requests",
    "successful requests",
    "cycles not held",
    "minimum response time",
    "maximum response time",
    "average response time",
    "25 percentile",
    "50 percentile",
    "75 percentile",
    "90 percentile",
    "95 percentile",
    "99 percentile",
    "actual query rate",
    "utilization",
    "zero hit queries",
];

/// Reads summaries and writes one line. Returns how many numbers it holds; 0 means that the input
/// was no summary, which a caller should say.
///
/// # Errors
/// The first error of reading or writing.
pub fn filter(input: &mut dyn BufRead, columns: Columns, out: &mut dyn Write) -> io::Result<usize> {
    let mut row = Row { columns, out, printed: 0, documented: Default::default() };
    let (mut own, mut line) = (false, Vec::new());
    while next_line(input, &mut line)? {
        let text = String::from_utf8_lossy(&line);
        if text.contains(SUMMARY) {
            own = false;
            row.end_summary()?;
        } else if text.starts_with(OWN_BLOCK) {
            own = true;
        } else if !own && let Some((label, number)) = number_after_colon(&text) {
            row.take(label, number)?;
        }
    }
    row.end_summary()?;
    let printed = row.printed;
    out.write_all(b"\n")?;
    Ok(printed)
}

struct Row<'a> {
    columns: Columns,
    out: &'a mut dyn Write,
    printed: usize,
    documented: [Option<String>; DOCUMENTED.len()],
}

impl Row<'_> {
    fn take(&mut self, label: &str, number: &str) -> io::Result<()> {
        if self.columns == Columns::Newest {
            return self.print(number);
        }
        let label = label.split_whitespace().collect::<Vec<_>>().join(" ");
        if let Some(column) = DOCUMENTED.iter().position(|known| *known == label) {
            self.documented[column] = Some(number.to_owned());
        }
        Ok(())
    }

    fn end_summary(&mut self) -> io::Result<()> {
        let row = std::mem::take(&mut self.documented);
        let filled = row.iter().rposition(Option::is_some).map_or(0, |last| last + 1);
        row[..filled].iter().try_for_each(|n| self.print(n.as_deref().unwrap_or("-")))
    }

    fn print(&mut self, number: &str) -> io::Result<()> {
        if self.printed > 0 {
            self.out.write_all(b" ")?;
        }
        self.printed += 1;
        self.out.write_all(number.as_bytes())
    }
}

/// Text before and after the first colon that a number follows: `:`, blanks, a sign or not, then
/// digits and full stops.
pub(crate) fn number_after_colon(line: &str) -> Option<(&str, &str)> {
    line.match_indices(':').find_map(|(colon, _)| {
        let rest = line[colon + 1..].trim_start();
        let sign = usize::from(rest.starts_with(['-', '+']));
        let digits = rest[sign..].bytes().take_while(|b| b.is_ascii_digit() || *b == b'.').count();
        (digits > 0).then(|| (&line[..colon], &rest[..sign + digits]))
    })
}

fn next_line(input: &mut dyn BufRead, line: &mut Vec<u8>) -> io::Result<bool> {
    line.clear();
    let read = io::Read::take(&mut *input, LINE_MAX_BYTES).read_until(b'\n', line)?;
    if read as u64 == LINE_MAX_BYTES && line.last() != Some(&b'\n') {
        input.skip_until(b'\n')?;
    }
    Ok(read > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Log of a user: the summary behind what was printed before it.
    const NEWEST: &str = concat!(
        "Starting clients...\n",
        "Client 4: ERROR: could not open file 'query004.txt' [read mode]\n",
        include_str!("../../testdata/vespa-fbench-summary.txt")
    );

    fn run(text: &str, columns: Columns) -> (String, usize) {
        let mut out = Vec::new();
        let count = filter(&mut text.as_bytes(), columns, &mut out).unwrap();
        (String::from_utf8(out).unwrap(), count)
    }

    #[test]
    fn the_newest_summary_gives_the_known_line() {
        let expected = "32 4 0 0 0 0 75463 75463 0.02 108.38 1.71 0.70 1.30 2.10 3.00 3.60 4.50 \
            5.30 6.70 7.70 10.66 21.40 73.80 18702.94 99.94 0 0.00 75463\n";
        assert_eq!(run(NEWEST, Columns::Newest), (expected.to_owned(), 28));
    }

    #[test]
    fn the_documented_order_leaves_out_what_came_later() {
        let expected = "32 4 0 0 0 0 75463 75463 0.02 108.38 1.71 0.70 1.30 2.10 3.00 3.60 5.30 \
            18702.94 99.94 0\n";
        assert_eq!(run(NEWEST, Columns::Documented), (expected.to_owned(), 20));
    }

    #[test]
    fn an_old_summary_reads_the_same_both_ways() {
        let drop = ["98 ", "99.", "zero", "http", "       200"];
        let old: String = NEWEST
            .lines()
            .filter(|line| !drop.iter().any(|start| line.starts_with(start)))
            .map(|line| line.replace("   percentile", " percentile") + "\n")
            .collect();
        assert_eq!(run(&old, Columns::Newest), run(&old, Columns::Documented));
        assert_eq!(run(&old, Columns::Newest).1, 19);
    }

    #[test]
    fn several_summaries_are_one_line_and_the_own_block_is_left_out() {
        let one = run(NEWEST, Columns::Newest).0;
        let text = format!("{NEWEST}{OWN_BLOCK} ***\nresponse p99: 5 ms\n{NEWEST}");
        for columns in [Columns::Newest, Columns::Documented] {
            let one = run(NEWEST, columns).0;
            assert_eq!(run(&text, columns).0, format!("{} {one}", one.trim_end()));
        }
        assert_eq!(run(&one, Columns::Newest), ("\n".to_owned(), 0), "a line of its own is none");
    }

    #[test]
    fn the_block_that_fbench_prints_is_recognised() {
        let style = plimsoll_report::text::Style::default();
        let own = crate::summary::own_block(&plimsoll_report::samples::good(), None, &style);
        assert!(own.contains(':') && own.starts_with(OWN_BLOCK), "{own}");
        let text = format!("{NEWEST}{own}");
        assert_eq!(run(&text, Columns::Newest), run(NEWEST, Columns::Newest));
    }

    #[test]
    fn signs_and_odd_input() {
        assert_eq!(run("a:-1\nb: +2.5 x\nc:\nd: e: 4\nno\n", Columns::Newest).0, "-1 +2.5 4\n");
        let long = format!("{}: 5\nx: 6\n", "y".repeat(100_000));
        assert_eq!(run(&long, Columns::Newest).0, "6\n");
    }
}
