//! Options of curl, wrk, hey, oha, ab, vegeta and k6, with the options of plimsoll that mean the same.

/// An option of another tool: its word, and plimsoll's options with the tools that mean this, and how it is written if that is
/// not obvious.
type Foreign = (&'static str, &'static [Counterpart]);

/// An option of plimsoll: its name, what follows it, and the tools; no tools where all agree.
type Counterpart = (&'static str, &'static str, &'static str);

const COOKIE: Counterpart = ("header", " 'Cookie: NAME=VALUE'", "");
const FOREIGN: &[Foreign] = &[
    ("-a", &[("header", " 'Authorization: Basic ...'", "")]),
    ("-A", &[("header", " 'User-Agent: ...'", "curl"), ("header", " 'Accept: ...'", "hey, oha")]),
    ("-b", &[COOKIE]),
    ("-c", &[("clients", "", "")]),
    ("-C", &[COOKIE]),
    ("-d", &[("duration", "", "wrk"), ("body", "", "curl, hey, oha")]),
    ("-D", &[("body", " @FILE", "")]),
    ("-E", &[("cert", "", "")]),
    ("-f", &[("queries", "", "")]),
    ("-H", &[("header", "", "")]),
    ("-I", &[("method", " HEAD", "")]),
    ("-j", &[("json", "", "")]),
    ("-k", &[("insecure", "", "")]),
    ("-m", &[("method", "", "hey, oha"), ("timeout", "", "curl")]),
    ("-n", &[("requests", "", "")]),
    ("-o", &[("json", " FILE", "")]),
    ("-p", &[("body", " @FILE", "")]),
    ("-q", &[("rate", "", "")]),
    ("-R", &[("rate", "", "")]),
    ("-s", &[("quiet", "", "")]),
    ("-t", &[("threads", "", "wrk"), ("timeout", "", "hey, oha")]),
    ("-T", &[("header", " 'Content-Type: ...'", "hey, oha"), ("timeout", "", "wrk2")]),
    ("-u", &[("header", " 'Authorization: Basic ...'", "")]),
    ("-X", &[("method", "", "")]),
    ("-z", &[("duration", "", "")]),
    ("--concurrency", &[("clients", "", "")]),
    ("--cookie", &[COOKIE]),
    ("--data", &[("body", "", "")]),
    ("--data-binary", &[("body", "", "")]),
    ("--data-raw", &[("body", "", "")]),
    ("--disable-keepalive", &[("no-keepalive", "", "")]),
    ("--host", &[("header", " 'Host: ...'", "")]),
    ("--iterations", &[("requests", "", "")]),
    ("--max-time", &[("timeout", "", "")]),
    ("--output", &[("json", " FILE", "")]),
    ("--qps", &[("rate", "", "")]),
    ("--targets", &[("queries", "", "")]),
    ("--user-agent", &[("header", " 'User-Agent: ...'", "")]),
    ("--vus", &[("users", "", ""), ("clients", "", "")]),
];

/// Options of some commands, with the options of other commands that do the same.
const ELSEWHERE: &[(&str, &str)] =
    &[("--clients", "users"), ("--duration", "budget"), ("--min-rate", "start-rate")];

/// Returns the option of a command that does what an option of other commands does.
pub fn elsewhere(word: &str, longs: &[&str]) -> Option<&'static str> {
    let known = ELSEWHERE.iter().find(|(own, _)| *own == word).map(|(_, long)| *long);
    known.filter(|long| longs.contains(long))
}

/// Returns plimsoll's options for an option of other tools, of those that the command has; empty where there is none.
pub fn counterparts(word: &str, longs: &[&str]) -> String {
    let known = FOREIGN.iter().find(|(own, _)| *own == word).map_or(&[][..], |(_, all)| all);
    let shown =
        known.iter().filter(|(long, _, _)| longs.contains(long)).map(|(long, how, tools)| {
            let tools = if tools.is_empty() { String::new() } else { format!(" ({tools})") };
            format!("--{long}{how}{tools}")
        });
    shown.collect::<Vec<_>>().join(" or ")
}

/// The words of the table, for the tests.
#[cfg(test)]
pub fn words() -> impl Iterator<Item = &'static str> {
    FOREIGN.iter().map(|(word, _)| *word)
}
