//! stdout, to the character.

use super::{fbench, lines};
use crate::process::Place;
use crate::server::{Server, Step, reply};

/// Puts `*` in the place of times, rates and shares, keeping their width.
fn masked(text: &str) -> String {
    text.lines()
        .map(|line| {
            let at = if line.contains("percentile:") { 26 } else { 24 };
            let field =
                line.get(at..at + 8).filter(|f| f.contains('.') && f.trim().parse::<f64>().is_ok());
            match field {
                Some(_) => format!("{}    *.**{}\n", &line[..at], &line[at + 8..]),
                None => format!("{line}\n"),
            }
        })
        .collect()
}

const EXPECTED: &str = "\
Starting clients...
..Stopping clients
Clients stopped.

Clients Joined.
*** HTTP keep-alive statistics ***
connection reuse count -- 18
***************** Benchmark Summary *****************
clients:                       2
ran for:                       7 seconds
cycle time:                    0 ms
lower response limit:          0 bytes
skipped requests:              0
failed requests:               2
successful requests:          18
cycles not held:              20
minimum response time:      *.** ms
maximum response time:      *.** ms
average response time:      *.** ms
25   percentile:              *.** ms
50   percentile:              *.** ms
75   percentile:              *.** ms
90   percentile:              *.** ms
95   percentile:              *.** ms
98   percentile:              *.** ms
99   percentile:              *.** ms
99.5 percentile:              *.** ms
99.6 percentile:              *.** ms
99.7 percentile:              *.** ms
99.8 percentile:              *.** ms
99.9 percentile:              *.** ms
actual query rate:          *.** Q/s
utilization:                *.** %
zero hit queries:              0
zero hit percentage:        *.** %
http request status breakdown:
       200 :       18 
       404 :        2 
*** plimsoll: times from the intended start, failures apart ***
";

#[test]
fn the_summary_is_the_originals_to_the_character() {
    let place = Place::new();
    let server = Server::start(|seen| {
        let status = if seen.path() == "/q3" { 404 } else { 200 };
        vec![Step::Send(reply(status, "", b"0123456789"))]
    });
    place.file("q.txt", lines(10));
    let ended =
        fbench(&place, &server, &["-n", "2", "-r", "0", "-s", "7", "-q", "q.txt", "--verbose"])
            .expect(0);
    let (summary, own) = ended.stdout.split_at(ended.stdout.find("*** plimsoll:").unwrap());
    let title = own.split_inclusive('\n').next().unwrap();
    assert_eq!(masked(&format!("{summary}{title}")), EXPECTED);
    // A result that needs no bounds has no reasons.
    let why = if own.contains("Result     valid, ") { "Result     " } else { "Why        " };
    for part in ["Result     ", why, "Ledger     ", "Status     200 = 18", "Latency, ms"] {
        assert!(own.contains(part), "no {part} in\n{own}");
    }
}

/// Returns what stands before the summary at the end.
fn lines_on_the_way(stdout: &str) -> &str {
    stdout.rsplit_once("Clients Joined.\n").map_or(stdout, |(before, _)| before)
}

#[test]
fn the_progress_line_is_printed_when_a_minute_is_left() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(3));
    // 60 s are the default; the original prints the line of a second that the run has not used up.
    for flags in [&["-r", "0"][..], &["-r", "0", "-s", "120"], &["-r", "0", "-s", "59"]] {
        let all = [&["-n", "2", "-q", "q.txt"], flags].concat();
        let ended = fbench(&place, &server, &all).expect(0);
        let progress = match flags.last() {
            Some(&"59") => String::new(),
            Some(&"120") => "[dummydate]: PROGRESS: vespa-fbench: Seconds left 120\n".to_owned(),
            _ => "[dummydate]: PROGRESS: vespa-fbench: Seconds left 60\n".to_owned(),
        };
        let expected =
            format!("Starting clients...\n..{progress}Stopping clients\nClients stopped.\n\n");
        assert_eq!(lines_on_the_way(&ended.stdout), expected);
    }
}

#[test]
fn a_dot_is_printed_when_its_client_has_nothing_left_to_ask() {
    let (place, server) = (Place::new(), Server::ok());
    for (client, count) in [(0, 1), (1, 8), (2, 1000)] {
        place.file(&format!("q{client}.txt"), lines(count));
    }
    let flags = ["-n", "3", "-c", "200", "-s", "3", "-r", "0", "-p", "1", "-q", "q%d.txt"];
    let ended = fbench(&place, &server, &flags);
    let keep = |line: &&str| !line.contains("  ") && !line.contains("***") && !line.contains("--");
    let seen: Vec<&str> = lines_on_the_way(&ended.stdout)
        .lines()
        .filter(|line| keep(line) && !line.starts_with("http request"))
        .collect();
    let expected = [
        "Starting clients...",
        ".",
        "Runtime: 1 sec",
        ".",
        "Runtime: 2 sec",
        "",
        "Runtime: 3 sec",
        "Stopping clients",
        "Clients stopped.",
        ".",
    ];
    assert_eq!(seen, expected, "{}", ended.stdout);
}

#[test]
fn an_interrupted_run_has_one_more_empty_line() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(3));
    let port = server.port();
    let args = ["fbench", "-n", "2", "-c", "50", "-s", "30", "-q", "q.txt", "127.0.0.1", &port];
    let running = place.start(args);
    while server.requests() < 10 {
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    running.signal(rustix::process::Signal::INT);
    let ended = running.wait(crate::process::PATIENCE).expect(3);
    let expected = "Starting clients...\nStopping clients\nClients stopped.\n..\n\
        Clients Joined.\n\n*** HTTP keep-alive statistics ***\n";
    assert!(ended.stdout.starts_with(expected), "{}", ended.stdout);
}

#[test]
fn a_run_with_a_record_can_be_printed_again() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(10));
    let port = server.port();
    let args = ["fbench", "-n", "2", "-r", "0", "-s", "7", "-q", "q.txt", "127.0.0.1", &port];
    let ended = place.run(args).expect(0);
    let again = place.run(["report", "--format", "fbench"]).expect(0);
    let summary = ended.stdout.split_once("Clients Joined.\n").unwrap().1;
    assert_eq!(again.stdout, summary);
}

#[test]
fn a_progress_line_does_not_reach_a_pipe() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(10));
    let ended = fbench(&place, &server, &["-n", "2", "-r", "0", "-q", "q.txt"]).expect(0);
    assert_eq!(ended.said(), "");
}
