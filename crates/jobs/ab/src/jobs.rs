//! The jobs whose blocks can be compared: where their target stands, and how a block gets its length.

use plimsoll_job::usage::usage;

/// Kind of a block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `load`.
    Load,
    /// `fbench`.
    Fbench,
    /// `voter` and `hello`.
    Voter,
    /// `feed`.
    Feed,
    /// `visit`.
    Visit,
    /// `rank`.
    Rank,
    /// `search`.
    Search,
    /// `seek`.
    Seek,
    /// A program that is not plimsoll.
    Command,
}

/// The way a block gets its length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Length {
    /// The plan sets it; the job itself leaves its beginning out.
    Planned,
    /// The plan sets it; the first seconds of the block are left out afterwards.
    Cut,
    /// A block is a whole run, as long as the job makes it.
    Whole,
}

/// Flags that belong to `ab` itself, which reads each block's record.
const OWN: [&str; 15] = [
    "--json",
    "--junit",
    "--csv",
    "--html",
    "--runs",
    "--no-record",
    "--quiet",
    "--verbose",
    "--name",
    "--label",
    "--live",
    "--stream",
    "--otlp",
    "--seed",
    "--assert",
];

/// Flags of an open load.
const OPEN: [&str; 5] = ["--rate", "--burst", "--rate-profile", "--users", "--every"];

impl Kind {
    /// The kind of the job with this name.
    ///
    /// # Errors
    /// A word that is no such job.
    pub fn of(word: &str) -> anyhow::Result<Self> {
        Ok(match word {
            "load" => Self::Load,
            "fbench" => Self::Fbench,
            "voter" | "hello" => Self::Voter,
            "feed" => Self::Feed,
            "visit" => Self::Visit,
            "rank" => Self::Rank,
            "search" => Self::Search,
            "seek" => Self::Seek,
            other => {
                return Err(usage(format!(
                    "'{other}' after -- is not a job that ab can compare; write load, fbench, seek, search, rank, voter, visit or \
                     feed with its flags, or --command before -- for another program"
                )));
            }
        })
    }

    /// The way its blocks get their length.
    #[must_use]
    pub fn length(self, words: &[String]) -> Length {
        match self {
            Self::Load if has(words, "--requests") => Length::Whole,
            Self::Load => Length::Planned,
            Self::Fbench => Length::Cut,
            Self::Voter if has_any(words, &["--calls", "--auto-tune", "--seek"]) => Length::Whole,
            Self::Voter => Length::Cut,
            Self::Rank if has_any(words, &["-q", "--qps"]) => Length::Planned,
            Self::Rank | Self::Feed | Self::Visit | Self::Search | Self::Command => Length::Whole,
            Self::Seek => Length::Planned,
        }
    }

    /// The flag that sets a block's length.
    #[must_use]
    pub fn length_flag(self) -> &'static str {
        match self {
            Self::Fbench => "-s",
            Self::Rank => "-d",
            _ => "--duration",
        }
    }

    /// The flag with which a job leaves its beginning out.
    #[must_use]
    pub fn warmup_flag(self) -> &'static str {
        if self == Self::Rank { "-w" } else { "--warmup" }
    }

    /// True if the job takes its times in whole seconds only.
    #[must_use]
    pub fn whole_seconds(self) -> bool {
        matches!(self, Self::Fbench | Self::Rank)
    }

    /// The metrics that get an answer unless the user names others.
    #[must_use]
    pub fn metrics(self, words: &[String], are_generators: bool) -> &'static [&'static str] {
        let is_open = has_any(words, &OPEN);
        match self {
            Self::Load if are_generators && is_open => &["p50", "p99", "cpu"],
            Self::Load if are_generators => &["rate", "cpu"],
            Self::Load | Self::Voter if is_open => &["p50", "p95", "p99"],
            Self::Rank if has_any(words, &["-q", "--qps"]) => &["p50", "p95", "p99"],
            Self::Rank | Self::Seek => &["max-rate"],
            Self::Voter if has_any(words, &["--seek", "--auto-tune"]) => &["max-rate"],
            Self::Visit => &["documents"],
            Self::Search => &["rate", "p95"],
            Self::Command => &["time"],
            Self::Load | Self::Fbench | Self::Voter | Self::Feed => &["rate"],
        }
    }

    /// True if two blocks of one pair may send the same requests: votes of the same telephones are rejected the second time.
    #[must_use]
    pub fn shares_seed(self) -> bool {
        self != Self::Voter
    }

    /// True if the job has `--seed`.
    #[must_use]
    pub fn has_seed(self) -> bool {
        matches!(self, Self::Load | Self::Voter | Self::Rank | Self::Search | Self::Seek)
    }
}

/// Returns true if the words have the flag, whatever its value.
#[must_use]
pub fn has(words: &[String], flag: &str) -> bool {
    value_at(words, flag).is_some()
}

/// Returns true if the words have any of the flags.
#[must_use]
pub fn has_any(words: &[String], flags: &[&str]) -> bool {
    flags.iter().any(|flag| has(words, flag))
}

/// The place of a flag in the words.
fn value_at(words: &[String], flag: &str) -> Option<usize> {
    let is_short = flag.len() == 2;
    words.iter().position(|word| {
        word == flag
            || word.strip_prefix(flag).is_some_and(|rest| rest.starts_with('=') || is_short)
    })
}

/// Returns the value of a flag.
#[must_use]
pub fn value<'a>(words: &'a [String], flag: &str) -> Option<&'a str> {
    let at = value_at(words, flag)?;
    match words[at].strip_prefix(flag)? {
        "" => words.get(at + 1).map(String::as_str),
        rest => Some(rest.strip_prefix('=').unwrap_or(rest)),
    }
}

/// Removes a flag with its value, wherever it stands.
pub fn remove(words: &mut Vec<String>, flag: &str) {
    while let Some(at) = value_at(words, flag) {
        let is_apart = words[at] == flag;
        words.remove(at);
        if is_apart && at < words.len() {
            words.remove(at);
        }
    }
}

/// Rejects flags of a block that `ab` sets itself.
///
/// # Errors
/// The first such flag.
pub fn check_flags(kind: Kind, words: &[String]) -> anyhow::Result<()> {
    if kind == Kind::Command {
        return Ok(());
    }
    if matches!(kind, Kind::Load | Kind::Voter) && has(words, "--slo") {
        return Err(usage(
            "--slo is not judged in the blocks of ab; leave it out, or use --fail-on before --",
        ));
    }
    match OWN.iter().find(|flag| has(words, flag)) {
        None => Ok(()),
        Some(flag @ &("--stream" | "--otlp" | "--live" | "--junit" | "--assert" | "--csv")) => {
            Err(usage(format!("{flag} is not supported for the blocks of ab; leave it out")))
        }
        Some(flag) => Err(usage(format!(
            "{flag} stands after --, where the job's flags are; write it before --, where it is for the whole comparison"
        ))),
    }
}

/// Rejects flags of one side that the blocks of both sides have in common.
///
/// # Errors
/// The first such flag.
pub fn check_side(kind: Kind, length: Length, words: &[String]) -> anyhow::Result<()> {
    let common = [
        (length != Length::Whole, kind.length_flag()),
        (length == Length::Planned, kind.warmup_flag()),
    ];
    match common.iter().find(|(is_common, flag)| *is_common && has(words, flag)) {
        Some((_, flag)) => Err(usage(format!(
            "{flag} must be the same for A and B; write it after --, where the job's flags are"
        ))),
        None => Ok(()),
    }
}

/// Returns the places of words that are neither flags nor their values, the job itself left out.
#[must_use]
pub fn positionals(job: &clap::Command, words: &[String]) -> Vec<usize> {
    let takes_value = |word: &str| {
        job.get_arguments().any(|arg| {
            let is_it = match word.strip_prefix("--") {
                Some(long) => {
                    arg.get_long() == Some(long)
                        || arg.get_all_aliases().is_some_and(|all| all.contains(&long))
                }
                None => word.len() == 2 && arg.get_short() == word.chars().nth(1),
            };
            is_it && arg.get_action().takes_values() && !arg.is_require_equals_set()
        })
    };
    let mut found = Vec::new();
    let mut is_value = false;
    for (index, word) in words.iter().enumerate().skip(1) {
        if std::mem::take(&mut is_value) {
            continue;
        }
        if word.starts_with('-') && word.len() > 1 {
            is_value = !word.contains('=') && takes_value(word);
        } else {
            found.push(index);
        }
    }
    found
}

/// Puts a target in the place of the job's own.
///
/// # Errors
/// A target that the job cannot have.
pub fn set_target(
    kind: Kind,
    job: &clap::Command,
    words: &mut Vec<String>,
    target: &str,
) -> anyhow::Result<()> {
    match kind {
        Kind::Command => {
            let place = |word: &String| word.replace("{target}", target);
            if !words.iter().any(|word| word.contains("{target}")) {
                return Err(usage(
                    "the command after -- has no place for the address; write {target} where it belongs",
                ));
            }
            *words = words.iter().map(place).collect();
        }
        Kind::Rank => {
            remove(words, "--target");
            words.extend(["--target".to_owned(), target.to_owned()]);
        }
        Kind::Search => {
            remove(words, "--engine");
            let engine = match target.contains("://") && !target.contains('=') {
                true => format!("engine={target}"),
                false => target.to_owned(),
            };
            words.extend(["--engine".to_owned(), engine]);
        }
        Kind::Fbench => {
            let address = target.split_once("://").map_or(target, |(_, rest)| rest);
            let address = address.trim_end_matches('/');
            let Some((host, port)) = address.rsplit_once(':') else {
                return Err(usage(format!("'{target}' has no port; write HOST:PORT")));
            };
            for at in positionals(job, words).into_iter().rev() {
                words.remove(at);
            }
            words.extend([host.to_owned(), port.to_owned()]);
        }
        Kind::Load | Kind::Seek | Kind::Visit | Kind::Feed | Kind::Voter => {
            remove_if(words, kind == Kind::Voter, "--target");
            let places = positionals(job, words);
            let addresses: Vec<usize> =
                places.into_iter().filter(|&at| words[at].contains("://")).collect();
            let url = with_path_of(target, addresses.first().map(|&at| words[at].as_str()));
            for &at in addresses.iter().rev() {
                words.remove(at);
            }
            words.insert(addresses.first().copied().unwrap_or(1), url);
        }
    }
    Ok(())
}

fn remove_if(words: &mut Vec<String>, is_wanted: bool, flag: &str) {
    if is_wanted {
        remove(words, flag);
    }
}

/// A target without a path has that of the address whose place it takes.
fn with_path_of(target: &str, own: Option<&str>) -> String {
    let path = |url: &str| {
        let (_, rest) = url.split_once("://")?;
        let (_, path) = rest.split_at(rest.find(['/', '?'])?);
        Some(if path.starts_with('?') { format!("/{path}") } else { path.to_owned() })
    };
    let is_bare = path(target).is_none_or(|path| path == "/");
    match own.and_then(path).filter(|_| is_bare) {
        Some(path) => format!("{}{path}", target.trim_end_matches('/')),
        None => target.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Arg, ArgAction};

    fn words(text: &str) -> Vec<String> {
        text.split(' ').map(str::to_owned).collect()
    }

    fn job() -> clap::Command {
        clap::Command::new("load")
            .arg(Arg::new("url").num_args(1..))
            .arg(Arg::new("rate").long("rate").alias("qps"))
            .arg(Arg::new("n").short('n'))
            .arg(Arg::new("http2").long("http2").action(ArgAction::SetTrue))
            .arg(Arg::new("live").long("live").num_args(0..=1).require_equals(true))
    }

    fn with_target(kind: Kind, text: &str, target: &str) -> String {
        let mut words = words(text);
        set_target(kind, &job(), &mut words, target).unwrap();
        words.join(" ")
    }

    #[test]
    fn a_target_takes_the_place_of_the_jobs_own_and_keeps_its_path() {
        let load = |text: &str, target: &str| with_target(Kind::Load, text, target);
        assert_eq!(
            load("load --rate 5 http://h/x?y", "http://a:1"),
            "load --rate 5 http://a:1/x?y"
        );
        assert_eq!(
            load("load --http2 http://h/x http://i", "http://a:1/z"),
            "load --http2 http://a:1/z"
        );
        assert_eq!(load("load http://h?q=sea", "http://a:1"), "load http://a:1/?q=sea");
        assert_eq!(load("load http://h?u=/x", "http://a:1/"), "load http://a:1/?u=/x");
        assert_eq!(load("load http://h/x", "http://a:1?z"), "load http://a:1?z");
        assert_eq!(load("load --qps http://v", "http://a:1"), "load http://a:1 --qps http://v");
        assert_eq!(
            with_target(Kind::Feed, "feed http://h file.json --rate 3", "http://b:2"),
            "feed http://b:2 file.json --rate 3"
        );
        assert_eq!(
            with_target(Kind::Fbench, "fbench -n 8 -n9 h 80", "http://b:2/"),
            "fbench -n 8 -n9 b 2"
        );
        assert_eq!(
            with_target(Kind::Rank, "rank --target=rank://a:1 --rate 3", "rank://b:2"),
            "rank --rate 3 --target rank://b:2"
        );
        assert_eq!(
            with_target(Kind::Voter, "voter VSD volt://h:1 --target x --rate 1", "volt://b:2"),
            "voter VSD volt://b:2 --rate 1"
        );
        assert_eq!(
            with_target(Kind::Search, "search --engine index --rate 1", "http://e:1"),
            "search --rate 1 --engine engine=http://e:1"
        );
        assert_eq!(with_target(Kind::Search, "search", "scan"), "search --engine scan");
        assert_eq!(
            with_target(Kind::Command, "wrk -c1 {target}/x", "http://b"),
            "wrk -c1 http://b/x"
        );
        let mut none = words("wrk -c1");
        assert!(set_target(Kind::Command, &job(), &mut none, "http://b").is_err());
        assert!(set_target(Kind::Fbench, &job(), &mut none, "host").is_err());
    }

    #[test]
    fn flags_are_found_with_their_values() {
        let words = words("load --rate=5 -n8 --duration 3s");
        assert_eq!(value(&words, "--rate"), Some("5"));
        assert_eq!(value(&words, "-n"), Some("8"));
        assert_eq!(value(&words, "--duration"), Some("3s"));
        assert!(!has(&words, "--dur") && !has(&words, "-x"));
    }

    #[test]
    fn flags_of_the_whole_comparison_are_rejected_after_the_dashes() {
        let checked = |text: &str| check_flags(Kind::Load, &words(text)).map_err(|e| e.to_string());
        assert!(checked("load --json x").unwrap_err().contains("write it before --"));
        assert!(checked("load --stream=-").unwrap_err().contains("not supported for the blocks"));
        assert!(checked("load --rate 5").is_ok());
        assert!(checked("load --slo p95=5ms").unwrap_err().contains("use --fail-on before --"));
        assert!(check_flags(Kind::Seek, &words("seek --slo=p95=5ms")).is_ok());
        assert!(check_flags(Kind::Command, &words("wrk --json x")).is_ok());
        let of_side = |text: &str| check_side(Kind::Load, Length::Planned, &words(text));
        for text in ["--duration 10s", "--warmup=5s"] {
            let printed = of_side(text).unwrap_err().to_string();
            assert!(printed.contains("must be the same for A and B"), "{printed}");
        }
        assert!(of_side("--timeout 5s").is_ok());
        assert!(check_side(Kind::Voter, Length::Whole, &words("--duration 1s")).is_ok());
        assert!(Kind::of("mix").unwrap_err().to_string().contains("write load, fbench"));
    }
}
