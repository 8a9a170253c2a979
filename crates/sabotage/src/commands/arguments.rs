//! The command line.

use plimsoll_sabotage::judging::Finding;

/// The usage.
pub const USAGE: &str = "plimsoll-sabotage [all|virtual|sockets|loaded|soak|slow] [OPTIONS]\n\
     plimsoll-sabotage serve [leak-bytes=N] [leak-descriptor=N]\n\
     \n\
     all      virtual and sockets (default)\n\
     virtual  runs in virtual time: --runs of them [default: 1000], from --seed on [default: 0]\n\
     sockets  the built program against real targets; PLIMSOLL names the program, or it is beside this one\n\
     loaded   the same on a loaded machine, with an observer of arrivals\n\
     soak     a long run with TLS, reconnects and failures: what grows? --minutes [default: 120], --rate [default: 20000]\n\
     slow     --clients slow and silent clients [default: 10000] against each embedded server\n\
     serve    the target of soak, which can lose memory and descriptors\n\
     --only   only sabotages, or servers, whose name contains KIND\n\
     --plant  soak: words for serve, such as leak-bytes=1024\n\
     --each   print each run and its scene, not only those with a finding\n\
     --even-if-busy  also judge runs during which others used the machine; figures may then be off\n\
     --page   also put the tables between the markers of FILE";

/// The command line, read.
pub struct Arguments {
    /// The command.
    pub command: String,
    /// Runs in virtual time, and the first seed.
    pub runs: u64,
    pub seed: u64,
    /// Part of a name.
    pub only: String,
    pub each: bool,
    pub even_if_busy: bool,
    /// File of the page.
    pub page: Option<String>,
    /// Length of a soak.
    pub minutes: f64,
    /// Requests per second of a soak.
    pub rate: f64,
    /// Slow clients.
    pub clients: usize,
    /// Words for the target.
    pub planted: Vec<String>,
}

const COMMANDS: [&str; 7] = ["all", "virtual", "sockets", "loaded", "soak", "slow", "serve"];

impl Arguments {
    /// Reads the command line.
    pub fn parse(mut given: impl Iterator<Item = String>) -> Result<Self, String> {
        let mut parsed = Self {
            command: "all".to_owned(),
            runs: 1_000,
            seed: 0,
            only: String::new(),
            each: false,
            even_if_busy: false,
            page: None,
            minutes: 120.0,
            rate: 20_000.0,
            clients: 10_000,
            planted: Vec::new(),
        };
        while let Some(argument) = given.next() {
            let mut value = || given.next().ok_or(format!("{argument} needs a value"));
            match argument.as_str() {
                "--runs" => parsed.runs = number(&argument, &value()?)?,
                "--seed" => parsed.seed = number(&argument, &value()?)?,
                "--minutes" => parsed.minutes = positive(&argument, &value()?)?,
                "--rate" => parsed.rate = positive(&argument, &value()?)?,
                "--clients" => parsed.clients = number(&argument, &value()?)? as usize,
                "--plant" => parsed.planted.push(value()?),
                "--only" => parsed.only = value()?,
                "--each" => parsed.each = true,
                "--even-if-busy" => parsed.even_if_busy = true,
                "--page" => parsed.page = Some(value()?),
                word if COMMANDS.contains(&word) => parsed.command = argument,
                word if parsed.command == "serve" => parsed.planted.push(word.to_owned()),
                _ => return Err(format!("unknown argument '{argument}'")),
            }
        }
        Ok(parsed)
    }

    /// Returns true if a finding is printed.
    pub fn shows(&self, finding: &Finding) -> bool {
        self.each || finding.wrong.is_some() || finding.false_alarm || !finding.defects.is_empty()
    }
}

fn number(argument: &str, text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("{argument} takes a whole number, not '{text}'"))
}

fn positive(argument: &str, text: &str) -> Result<f64, String> {
    let value = text.parse().ok().filter(|value: &f64| value.is_finite() && *value > 0.0);
    value.ok_or_else(|| format!("{argument} takes a number above 0, not '{text}'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &str) -> Result<Arguments, String> {
        Arguments::parse(words.split_whitespace().map(str::to_owned))
    }

    #[test]
    fn commands_and_their_options_are_read() {
        let soak = parse("soak --minutes 0.5 --rate 500 --plant leak-bytes=9").unwrap();
        assert_eq!((soak.command.as_str(), soak.minutes, soak.rate), ("soak", 0.5, 500.0));
        assert_eq!(soak.planted, ["leak-bytes=9"]);
        assert_eq!(parse("serve leak-bytes=9").unwrap().planted, ["leak-bytes=9"]);
        assert_eq!(parse("").unwrap().command, "all");
        for wrong in ["soak --minutes 0", "soak --minutes", "soaking", "--runs 1.5"] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
