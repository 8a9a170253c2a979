//! The live page of a real run: it follows, comes back after a lost connection, and becomes the report.

use super::{COLOURED, chromium};
use crate::process::{PATIENCE, Place, Running, curl, until};
use crate::record::Record;
use rustix::process::Signal;
use serde_json::Value;
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Second at which the last column of the throughput begins.
const LAST: &str = "(() => { const area = document.querySelector('#plot-throughput .area'); if (!area) return -1; area.focus(); \
                    area.dispatchEvent(new KeyboardEvent('keydown', {key: 'End', bubbles: true})); \
                    return parseFloat(document.querySelector('#plot-throughput .place').textContent); })()";

/// A way from the browser to the live page, which can be cut.
struct Way {
    address: SocketAddr,
    open: Arc<Mutex<Vec<TcpStream>>>,
    made: Arc<AtomicUsize>,
}

impl Way {
    fn to(host: &str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (open, made) = (Arc::new(Mutex::new(Vec::new())), Arc::new(AtomicUsize::new(0)));
        let (kept, counted, host) = (open.clone(), made.clone(), host.to_owned());
        std::thread::spawn(move || {
            for inside in listener.incoming().flatten() {
                // At the end of the run nobody listens there any more.
                let Ok(outside) = TcpStream::connect(&host) else { continue };
                counted.fetch_add(1, Ordering::SeqCst);
                let pairs = [(&inside, &outside), (&outside, &inside)];
                for (from, to) in pairs {
                    let (mut from, mut to) = (from.try_clone().unwrap(), to.try_clone().unwrap());
                    std::thread::spawn(move || {
                        let _ = std::io::copy(&mut from, &mut to);
                        let _ = to.shutdown(Shutdown::Write);
                    });
                }
                kept.lock().unwrap().extend([inside, outside]);
            }
        });
        Self { address, open, made }
    }

    /// Breaks all connections; new ones can be made.
    fn cut(&self) -> usize {
        let made = self.made.load(Ordering::SeqCst);
        for stream in self.open.lock().unwrap().drain(..) {
            let _ = stream.shutdown(Shutdown::Both);
        }
        made
    }
}

#[test]
fn a_live_page_follows_a_real_run_and_survives_a_lost_connection() {
    let mut browser = chromium();
    let place = Place::new();
    let target = place.serve(&["queue", "--servers", "4", "--service", "exponential:5ms"]);
    let args =
        ["load", &target.url, "--rate=200", "--duration=20s", "--live", "--html=report.html"];
    let run = place.start([&args[..], &["--name", "<script>alert(1)</script>"]].concat());
    let url = address(&run);
    let (host, path) = url.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let way = Way::to(host);
    browser.go(&format!("http://{}/{path}", way.address));
    browser.wait_for(&format!("{LAST} >= 3"));
    browser.wait_for("document.querySelector('.live')?.textContent === 'live'");
    // A mark that a page which is loaded again has not.
    browser.value("window.isTheSame = true");
    let before = browser.value(LAST).as_f64().unwrap();
    let made = way.cut();
    until("another connection", Duration::from_secs(20), || way.made.load(Ordering::SeqCst) > made);
    browser.wait_for("document.querySelector('.live')?.textContent === 'live'");
    browser.wait_for(&format!("{LAST} >= {}", before + 2.0));
    assert_eq!(
        browser.value("window.isTheSame === true"),
        true,
        "it resumes and is not loaded again"
    );
    let drawn = browser.value(COLOURED);
    assert!(
        drawn["throughput"].as_i64().unwrap() > 50 && drawn["heat"].as_i64().unwrap() > 50,
        "{drawn}"
    );
    let ended = run.wait(PATIENCE);
    browser.wait_for("document.documentElement.dataset.live === undefined && document.documentElement.dataset.drawn !== undefined");
    let state = "[document.title, document.body.innerText, document.querySelectorAll('*').length]";
    let last = (browser.value(state), browser.value(COLOURED));
    let report = place.read("report.html");
    browser.open("report.html", &report);
    let kept: (Value, Value) = (browser.value(state), browser.value(COLOURED));
    assert_eq!(last, kept, "the last state is the report\n{}", ended.stderr);
}

/// The address of the live page of a run, once it is there.
fn address(run: &Running) -> String {
    until("the address of the live page", Duration::from_secs(30), || {
        run.stderr_so_far().contains("/?token=")
    });
    let said = run.stderr_so_far();
    said.split_whitespace().find(|word| word.contains("/?token=")).unwrap().to_owned()
}

/// A browser has six connections to one server; its tabs share one of them.
#[test]
fn fifty_tabs_of_a_laptop_that_sleeps_hold_nothing_up_and_become_the_report() {
    let mut browser = chromium();
    let place = Place::new();
    let target = place.serve(&["null"]);
    // Longer than any machine needs for fifty tabs: the run is stopped once it was seen again.
    let args = ["load", &target.url, "--rate=200", "--duration=600s", "--live"];
    let run = place.start([&args[..], &["--html=report.html", "--json=r.json"]].concat());
    let url = address(&run);
    let (forbidden, _) = url.split_once("?token=").unwrap();
    assert_eq!(curl(&[forbidden]).0, 403, "without the token");
    let tabs: Vec<String> = (0..50).map(|_| browser.open_tab(&url)).collect();
    for tab in &tabs {
        browser.turn_to(tab);
        browser.wait_for(
            "document.readyState === 'complete' && Boolean(document.querySelector('.live'))",
        );
    }
    browser.signal(Signal::STOP);
    std::thread::sleep(Duration::from_secs(10));
    browser.signal(Signal::CONT);
    browser.turn_to(&tabs[49]);
    browser.wait_for("document.querySelector('.live')?.textContent === 'live'");
    let peak_bytes = run.memory_peak_bytes().unwrap();
    assert!(peak_bytes < 200_000_000, "{peak_bytes} bytes");
    run.signal(Signal::INT);
    let ended = run.wait(PATIENCE).expect(3);
    let record = Record(serde_json::from_str(&place.read("r.json")).unwrap());
    let planned = 200.0 * record.number("/duration_s");
    let scheduled = record.count("/ledger/scheduled") as f64;
    assert!((scheduled - planned).abs() < 2.0, "{scheduled}, not {planned}: {}", ended.stderr);
    let state = "[document.title, document.body.innerText]";
    let report_tab = browser.open_tab("about:blank");
    browser.turn_to(&report_tab);
    browser.open("report.html", &place.read("report.html"));
    browser.wait_for("document.documentElement.dataset.drawn !== undefined");
    let report = browser.value(state);
    for tab in &tabs {
        browser.turn_to(tab);
        until("the tab is the report", PATIENCE, || browser.value(state) == report);
    }
}

#[test]
fn the_button_of_a_live_page_stops_a_real_run() {
    let mut browser = chromium();
    let place = Place::new();
    let target = place.serve(&["null"]);
    let run = place.start(["load", &target.url, "--rate=100", "--duration=120s", "--live"]);
    let url = address(&run);
    browser.go(&url);
    browser.wait_for(&format!("{LAST} >= 1"));
    // In its first seconds the page loads itself again when it gets its plots.
    browser.wait_for("(() => { const stop = document.querySelector('.stop'); stop?.click(); return Boolean(stop); })()");
    let ended = run.wait(Duration::from_secs(30)).expect(3);
    assert!(ended.stdout.contains("partial"), "{}", ended.stdout);
    browser.wait_for("document.querySelector('.verdict').className.includes('verdict-partial')");
}

#[test]
fn a_live_page_that_stands_still_says_so() {
    let mut browser = chromium();
    let place = Place::new();
    let target = place.serve(&["null"]);
    let run = place.start(["load", &target.url, "--rate=100", "--duration=600s", "--live"]);
    browser.go(&address(&run));
    browser.wait_for(&format!("{LAST} >= 1"));
    // The process gets no time, as the thread of the page does where other programs keep all processors busy.
    run.signal(Signal::STOP);
    browser.wait_for("document.querySelector('.live')?.textContent === 'nothing new for 15 s'");
    let why = browser.value("document.querySelector('.live').title");
    assert!(why.as_str().unwrap().contains("no time for its page"), "{why}");
    run.signal(Signal::CONT);
    browser.wait_for("document.querySelector('.live')?.textContent === 'live'");
}
