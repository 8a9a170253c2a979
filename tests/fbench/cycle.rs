//! The cycle time is a schedule, and summaries on the way.

use super::{counts, fbench, figure, lines};
use crate::process::Place;
use crate::server::Server;

#[test]
fn one_client_with_a_cycle_of_1_ms_holds_1000_per_second() {
    let place = Place::alone();
    let target = place.serve(&["null"]);
    place.file("q.txt", lines(10));
    let port = target.port.to_string();
    let args = ["fbench", "-n", "1", "-c", "1", "-s", "5", "-q", "q.txt", "--no-record"];
    let ended = place.run(args.into_iter().chain(["127.0.0.1", &port]));
    let (ok, failed) = counts(&ended);
    eprintln!("-n 1 -c 1 -s 5: {ok} requests, rate {}", figure(&ended, "actual query rate:"));
    assert_eq!(failed, 0);
    assert!((4975..=5025).contains(&ok), "{ok} requests in 5 s");
    assert!((figure(&ended, "actual query rate:") - 1000.0).abs() <= 5.0, "{}", ended.stdout);
    assert_eq!(target.stats()["requests"], ok);
}

#[test]
fn the_clients_share_the_cycle_evenly() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(10));
    let flags = ["-n", "4", "-c", "200", "-s", "2", "-q", "q.txt"];
    let ended = fbench(&place, &server, &flags);
    assert_eq!(counts(&ended), (40, 0), "4 clients, 5 a second each, 2 s\n{}", ended.stderr);
}

#[test]
fn a_negative_cycle_pauses_as_long_as_the_answer_took() {
    // A pause of the machine is a long answer, and so a long pause of the client.
    let place = Place::quiet();
    let server = Server::start(|_| {
        let pause = crate::server::Step::Sleep(std::time::Duration::from_millis(50));
        vec![pause, crate::server::Step::Send(crate::server::ok("x"))]
    });
    place.file("q.txt", lines(10));
    let ended = fbench(&place, &server, &["-n", "1", "-c", "-1", "-s", "2", "-q", "q.txt"]);
    let (ok, _) = counts(&ended);
    assert!((15..=20).contains(&ok), "{ok} requests of 50 ms with pauses of 50 ms in 2 s");
    assert!((40.0..=53.0).contains(&figure(&ended, "utilization:")), "{}", ended.stdout);
    assert_eq!(figure(&ended, "cycles not held:"), 0.0);
}

#[test]
fn summaries_on_the_way() {
    let (place, server) = (Place::new(), Server::ok());
    place.file("q.txt", lines(10));
    let flags = ["-n", "2", "-c", "50", "-s", "3", "-p", "1", "-q", "q.txt"];
    let ended = fbench(&place, &server, &flags);
    // One for each second, the last included, and one at the end.
    for second in 1..=3 {
        let text = format!("\n\nRuntime: {second} sec\n");
        assert_eq!(ended.stdout.matches(&text).count(), 1, "{text:?} in\n{}", ended.stdout);
    }
    assert_eq!(ended.stdout.matches("*** Benchmark Summary ***").count(), 4, "{}", ended.stdout);
    let ran_for = "ran for:                       3 seconds\n";
    assert_eq!(ended.stdout.matches(ran_for).count(), 4, "-s in each\n{}", ended.stdout);
    let middle = ended.stdout.split("Runtime: 2 sec").nth(1).unwrap();
    let line = middle.lines().find(|line| line.starts_with("successful requests:")).unwrap();
    let so_far: u64 = line[20..].trim().parse().unwrap();
    assert!((76..=82).contains(&so_far), "{so_far} of 40 a second after 2 s");
}

#[test]
fn rates_count_whole_cycles() {
    let (place, server) = (Place::quiet(), Server::ok());
    place.file("q.txt", lines(10));
    // 2 clients, 20 requests a second each: the last cycle counts, and so does not the time before the first.
    let flags = ["-n", "2", "-c", "50", "-s", "30", "-r", "1", "-q", "q.txt"];
    let ended = fbench(&place, &server, &flags);
    assert_eq!(counts(&ended), (40, 0));
    let rate = figure(&ended, "actual query rate:");
    assert!((39.0..=40.1).contains(&rate), "{rate}\n{}", ended.stdout);

    let flags = ["-n", "2", "-c", "50", "-s", "2", "-i", "20", "-q", "q.txt"];
    let ended = fbench(&place, &server, &flags);
    assert_eq!(counts(&ended), (40, 0));
    let rate = figure(&ended, "actual query rate:");
    assert!((39.0..=41.0).contains(&rate), "{rate}\n{}", ended.stdout);
    // The headline of the block below says the same: requests that do not count take no measured time.
    let line = ended.stdout.lines().find_map(|line| line.strip_suffix(" requests/s")).unwrap();
    let achieved = line.rsplit(' ').next().unwrap();
    assert!((achieved.parse::<f64>().unwrap() - rate).abs() < 1.5, "{line}, {rate}");
}

#[test]
fn a_client_that_never_counts_has_no_part_in_the_rate() {
    let (place, server) = (Place::quiet(), Server::ok());
    place.file("q0.txt", lines(3));
    place.file("q1.txt", lines(15));
    let flags = ["-n", "2", "-c", "50", "-s", "30", "-i", "5", "-r", "0", "-q", "q%d.txt"];
    let ended = fbench(&place, &server, &flags);
    assert_eq!(counts(&ended), (10, 0));
    let rate = figure(&ended, "actual query rate:");
    assert!((19.0..=20.1).contains(&rate), "{rate}\n{}", ended.stdout);
}
