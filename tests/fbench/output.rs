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
Stopping clients
Clients stopped.
..
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
        fbench(&place, &server, &["-n", "2", "-r", "0", "-s", "7", "-q", "q.txt"]).expect(0);
    let (summary, own) = ended.stdout.split_at(ended.stdout.find("*** plimsoll:").unwrap());
    let title = own.split_inclusive('\n').next().unwrap();
    assert_eq!(masked(&format!("{summary}{title}")), EXPECTED);
    for part in ["Latency", "Ledger", "Verdict", "Generator"] {
        assert!(own.contains(part), "no {part} in\n{own}");
    }
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
    assert_eq!(ended.stderr, "");
}
