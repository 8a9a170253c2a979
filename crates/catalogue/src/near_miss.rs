//! Errors for an unknown word.

use plimsoll_job::usage::usage;
use plimsoll_workloads::edit_distance::near_miss;
use std::collections::HashSet;

/// Longest list of known words in an error message; a longer one is cut.
const LISTED_MAX: usize = 12;

/// `unknown WHAT 'WORD'` with the one that was probably meant, or the ones there are, each once.
#[must_use]
pub fn unknown(what: &str, word: &str, known: &[&str]) -> anyhow::Error {
    let mut seen = HashSet::new();
    let known: Vec<&str> = known.iter().copied().filter(|known| seen.insert(*known)).collect();
    let advice = match near_miss(word, &known).or_else(|| begun(word, &known)) {
        Some(near) => format!("did you mean '{near}'?"),
        None if known.is_empty() => format!("there are no {what}s here"),
        None => {
            let listed = &known[..known.len().min(LISTED_MAX)];
            let more = if known.len() > LISTED_MAX { ", ..." } else { "" };
            format!("write one of {}{more}", listed.join(", "))
        }
    };
    usage(format!("unknown {what} '{word}'; {advice}"))
}

/// The only known word that begins with what was written, for those who stopped early.
fn begun<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    let mut matching = known.iter().filter(|known| word.len() >= 3 && known.starts_with(word));
    matching.next().filter(|_| matching.next().is_none()).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_miss_is_named_and_otherwise_all_there_are() {
        let known = ["num_instances", "extra_args"];
        let message = |word| unknown("variable", word, &known).to_string();
        assert_eq!(
            message("num_instance"),
            "unknown variable 'num_instance'; did you mean 'num_instances'?"
        );
        assert_eq!(message("extra"), "unknown variable 'extra'; did you mean 'extra_args'?");
        assert!(message("qps").ends_with("write one of num_instances, extra_args"));
        // The jobs of recorded runs come once for each run.
        let recorded = unknown("job", "qps", &["voter", "load", "load", "load"]).to_string();
        assert!(recorded.ends_with("write one of voter, load"), "{recorded}");
        let begun = unknown("job", "quick", &["quickstart", "quickstart"]).to_string();
        assert!(begun.ends_with("did you mean 'quickstart'?"), "{begun}");
        assert!(unknown("variable", "x", &[]).to_string().contains("there are no variables"));
    }
}
