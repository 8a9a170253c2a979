//! A program that came to its end, and whether the machine is to blame for its exit code.

use std::time::Duration;

/// A program that came to its end.
#[derive(Debug)]
pub struct Ended {
    /// The exit code; `None` after a death by signal.
    pub code: Option<i32>,
    pub stdout: String,
    pub stderr: String,
    pub took: Duration,
}

impl Ended {
    /// Fails with everything that the program said unless it ended with `code`.
    ///
    /// Tests share a machine, and a run from which others took the processor says so with exit code 3: where 0 or 2 is
    /// expected, that judges the machine and not the program. What else the test asks is asked all the same, and the
    /// test is named when all have ended. A generator that was slow by itself is no excuse.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        if let (Some(3), 0 | 2, Some(line)) = (self.code, code, self.held_up_by_others())
            && line.contains("; MISSED ") == (code == 2)
        {
            crate::unquiet::note(line.split("; ").next().unwrap_or(line));
            return self;
        }
        assert_eq!(
            self.code,
            Some(code),
            "exit code\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout,
            self.stderr
        );
        self
    }

    /// The same, for a command that stands at this place of a page.
    #[track_caller]
    pub fn expect_of(self, at: &str, code: i32) -> Self {
        let is_expected = self.code == Some(code);
        if !is_expected && self.held_up_by_others().is_none() {
            panic!(
                "{at}: exit code {:?}, not {code}\n--- stdout\n{}\n--- stderr\n{}",
                self.code, self.stdout, self.stderr
            );
        }
        self.expect(code)
    }

    /// Returns its stderr, but for the line that says that others kept it from a processor: a test that asks
    /// what is *not* said does not ask about the machine.
    pub fn said(&self) -> String {
        let held_up = self.held_up_by_others();
        self.stderr
            .lines()
            .filter(|line| Some(*line) != held_up)
            .map(|line| format!("{line}\n"))
            .collect()
    }

    /// The line that says that others kept the generator from a processor, if that is all that speaks against the run.
    fn held_up_by_others(&self) -> Option<&str> {
        let limited = "NOT VALID: generator-limited";
        let is_limited = |line: &&str| {
            line.strip_prefix("plimsoll: ").is_some_and(|line| line.starts_with(limited))
        };
        if let Some(line) = self.stderr.lines().rev().find(is_limited) {
            return takes_a_processor(line).then_some(line);
        }
        // `report` prints the page of the run, and nothing on stderr.
        let first = self.stdout.lines().next()?;
        let is_page = first.starts_with("Result ") && first.contains(limited);
        (is_page && takes_a_processor(&first_reason(&self.stdout))).then_some(first)
    }
}

/// The reason of a limited run on its page, which breaks lines. Sentences on how far the figures may be off follow it, and name whatever
/// delayed the generator at all.
fn first_reason(page: &str) -> String {
    let text = page.split_whitespace().collect::<Vec<_>>().join(" ");
    let why = text.split_once(" limited the result, not the target ").map_or("", |(_, why)| why);
    let ends = [" p50 may be ", " p95 may be ", " p99 may be ", " a generator without ", " Run "];
    let end = ends.iter().filter_map(|end| why.find(end)).min().unwrap_or(why.len());
    why[..end].to_owned()
}

/// Returns true if a reason of a verdict names another program or machine that had the generator's processor.
pub fn takes_a_processor(reason: &str) -> bool {
    let others = [
        "other programs had its core",
        "it waited for a processor",
        "the hypervisor ran other machines",
        "a CPU quota held it back",
    ];
    others.iter().any(|one| reason.contains(one))
}

#[test]
fn only_others_excuse_a_limited_run() {
    let page = |reason: &str| Ended {
        code: Some(3),
        stdout: format!(
            "Result     NOT VALID: generator-limited, exit 3\n           at least 5 requests/s\n\
             Why        plimsoll or its machine limited the result, not\n           the target\n           {reason}\n           \
             p50 may be 1 ms too high: other programs had its core for 5 % of the time\n\nRun        load\n"
        ),
        stderr: String::new(),
        took: Duration::ZERO,
    };
    assert!(
        page("other programs had\n           its core for 45 % of the time")
            .held_up_by_others()
            .is_some()
    );
    assert!(page("generator CPU saturated (99 % busy)").held_up_by_others().is_none());
    let line = |line: &str| Ended { stdout: String::new(), stderr: line.to_owned(), ..page("") };
    let limited = "plimsoll: NOT VALID: generator-limited, exit 3: ";
    assert!(line(&format!("{limited}other programs had its core")).held_up_by_others().is_some());
    assert!(line(&format!("{limited}generator CPU saturated")).held_up_by_others().is_none());
    assert!(line("plimsoll: no such file").held_up_by_others().is_none());
}
