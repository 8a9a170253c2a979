use super::*;
use plimsoll_probe::Running;
use std::time::Duration;

const GET: &str = "GET / HTTP/1.1\r\nHost: x\r\n\r\n";

fn start(config: QueueConfig) -> Running<QueueSummary> {
    Running::start(move |listener, stop| run(listener, config, stop))
}

fn config(service: &str) -> QueueConfig {
    let service = service.parse().unwrap();
    let station = StationConfig { service, ..StationConfig::default() };
    QueueConfig { station, ..QueueConfig::default() }
}

#[test]
fn replies_come_after_their_service_and_in_order_on_a_connection() {
    let target = start(config("fixed:20ms"));
    let mut probe = target.probe();
    probe.send(&GET.repeat(3));
    for _ in 0..3 {
        assert_eq!(probe.reply().status, 200);
    }
    let summary = target.stop();
    assert_eq!((summary.arrivals.requests, summary.answered), (3, 3));
    assert_eq!(summary.service.max_ms, 20.0);
    assert!(summary.response.p50_ms >= 20.0);
    // A pipelined request arrives when the one before it has been answered.
    assert!(summary.arrivals.gaps.mean_us >= 20_000.0);
}

#[test]
fn several_connections_share_one_line() {
    let target = start(config("fixed:30ms"));
    let mut probes: Vec<_> = (0..4).map(|_| target.probe()).collect();
    let start_ns = now_ns();
    probes.iter_mut().for_each(|probe| probe.send(GET));
    probes.iter_mut().for_each(|probe| assert_eq!(probe.reply().status, 200));
    // One server needs four times 30 ms, however the machine is loaded.
    assert!(now_ns() - start_ns >= 120_000_000);
    let summary = target.stop();
    assert_eq!((summary.answered, summary.connections.accepted), (4, 4));
}

#[test]
fn every_nth_reply_is_an_error_and_the_cap_turns_away_at_once() {
    let mut faulty = config("fixed:0");
    faulty.station.error_every = 3;
    let target = start(faulty);
    let mut probe = target.probe();
    let statuses: Vec<u16> = (0..6)
        .map(|_| {
            probe.send(GET);
            probe.reply().status
        })
        .collect();
    assert_eq!(statuses, [200, 200, 503, 200, 200, 503]);
    assert_eq!(target.stop().errors, 2);

    let mut capped = config("fixed:60s");
    capped.station.in_flight_cap = Some(1);
    capped.reject_status = 429;
    let target = start(capped);
    let mut first = target.probe();
    first.send(GET);
    while target.stats("")["in_flight"] != 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
    let mut second = target.probe();
    second.send(GET);
    assert_eq!(second.reply().status, 429);
    assert_eq!(target.stats("")["rejected"]["in_flight_cap"], 1);
    // The first is still in service, and the target stops nevertheless.
    let summary = target.stop();
    assert_eq!((summary.in_flight, summary.answered), (1, 0));
}

#[test]
fn a_client_that_left_is_counted_as_abandoned() {
    // Long enough to be seen in flight on a machine that others use.
    let target = start(config("fixed:2s"));
    let mut probe = target.probe();
    let becomes = |name: &str| {
        let until_ns = now_ns() + 30_000_000_000;
        while target.stats("")[name] != 1 {
            assert!(now_ns() < until_ns, "{name} is not 1 within 30 s");
            std::thread::sleep(Duration::from_millis(1));
        }
    };
    probe.send(GET);
    becomes("in_flight");
    // Closing with a reset tells the target at once; a plain close is only seen as a half-close.
    let fd = probe.stream();
    let linger = Some(Duration::ZERO);
    rustix::net::sockopt::set_socket_linger(fd, linger).unwrap();
    drop(probe);
    becomes("abandoned");
    assert_eq!(target.stop().answered, 0);
}

#[test]
fn a_half_closed_client_still_gets_its_reply() {
    let target = start(config("fixed:30ms"));
    let mut probe = target.probe();
    probe.send(GET);
    probe.stream().shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(probe.reply().status, 200);
    assert!(probe.is_closed());
    target.stop();
}

#[test]
fn a_stall_holds_replies_back() {
    let mut stalled = config("fixed:0");
    stalled.station.stall = Some(Stall { length_ns: 150_000_000, period_ns: 200_000_000 });
    let target = start(stalled);
    let mut probe = target.probe();
    let until = now_ns() + 600_000_000;
    while now_ns() < until {
        probe.send(GET);
        assert_eq!(probe.reply().status, 200);
    }
    let summary = target.stop();
    // A client that waits for each reply meets every stall at its beginning.
    assert!(summary.response.max_ms > 100.0, "{:?}", summary.response);
    assert!(summary.response.p50_ms < 50.0, "{:?}", summary.response);
}

#[test]
fn the_statistics_carry_the_closed_form_and_start_again() {
    let target = start(config("exponential:2ms"));
    let mut probe = target.probe();
    for _ in 0..20 {
        probe.send(GET);
        probe.reply();
    }
    let stats = target.stats("?rate=100&reset=1");
    assert_eq!(stats["target"], "queue");
    assert_eq!((&stats["requests"], &stats["answered"]), (&20.into(), &20.into()));
    assert_eq!(stats["service"]["count"], 20);
    let least = stats["service"]["mean_ms"].as_f64().unwrap();
    assert!(stats["response"]["mean_ms"].as_f64().unwrap() >= least);
    assert_eq!(stats["truth"]["model"], "M/M/1");
    // 1 / (500 - 100) s.
    assert!((stats["truth"]["mean_ms"].as_f64().unwrap() - 2.5).abs() < 1e-9);
    assert_eq!(stats["config"]["station"]["service"]["kind"], "exponential");
    let stats = target.stats("?rate=100&arrivals=uniform");
    assert_eq!(stats["requests"], 0);
    assert_eq!(stats["truth"]["model"], "D/M/1");
    let stats = target.stats("?rate=600");
    assert!(stats["no_truth_because"].as_str().unwrap().contains("overloaded"));
    let mut probe = target.probe();
    probe.send("GET /_stats?rate=0 HTTP/1.1\r\n\r\n");
    assert_eq!(probe.reply().status, 400);
    target.stop();
}

#[test]
fn the_speed_changes_on_command_and_is_no_load() {
    let target = start(config("fixed:40ms"));
    let mut probe = target.probe();
    probe.send("GET /_speed?factor=8 HTTP/1.1\r\n\r\n");
    assert_eq!(probe.reply().status, 200);
    probe.send(GET);
    probe.reply();
    let stats = target.stats("?rate=10");
    assert_eq!(stats["requests"], 1);
    assert_eq!(stats["service"]["max_ms"], 5.0);
    assert!(stats["no_truth_because"].as_str().unwrap().contains("speed"));
    for bad in ["/_speed", "/_speed?factor=0", "/_speed?factor=x"] {
        let mut probe = target.probe();
        probe.send(&format!("GET {bad} HTTP/1.1\r\n\r\n"));
        assert_eq!(probe.reply().status, 400, "{bad}");
    }
    target.stop();
}

#[test]
fn out_of_range_configurations_name_what_is_wrong() {
    let with = |change: fn(&mut QueueConfig)| {
        let mut config = QueueConfig::default();
        change(&mut config);
        config.validate().unwrap_err().to_string()
    };
    assert_eq!(QueueConfig::default().validate(), Ok(()));
    assert!(with(|c| c.station.servers = SERVERS_MAX + 1).contains("servers is 65537"));
    assert!(with(|c| c.station.delay_ns = DELAY_NS_MAX + 1).contains("delay"));
    assert!(with(|c| c.station.waiting_max = WAITING_MAX + 1).contains("waiting"));
    assert!(with(|c| c.station.in_flight_cap = Some(0)).contains("cap"));
    assert!(with(|c| c.body_bytes = BODY_BYTES_MAX + 1).contains("body"));
    assert!(with(|c| c.spin_ns = 2 * SECOND_NS).contains("spin"));
    assert!(with(|c| c.reject_status = 500).contains("500"));
    assert!(with(|c| c.station.stall = Some(Stall { length_ns: 5, period_ns: 5 })).contains("ns"));
    let full = |c: &mut QueueConfig| {
        c.station.stall = Some(Stall { length_ns: 1_000_000, period_ns: 1_000_000 });
    };
    assert!(with(full).contains("thousandth"));
    let exponential = ServiceTime::Exponential { mean_ns: u64::MAX };
    let mut config = QueueConfig::default();
    config.station.service = exponential;
    assert!(config.validate().unwrap_err().to_string().contains("mean"));
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let error = run(listener, config, Stop::new().unwrap()).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::InvalidInput);
}
