//! The live page against a scripted server: it follows, comes back after a lost connection, stops the run, and becomes the report.

use super::server::{Server, begin_events, reply, send_event};
use super::sheets::run;
use super::texts;
use plimsoll_html::render;
use serde_json::json;
use std::sync::Mutex;
use std::sync::mpsc::channel;
use std::time::Duration;

/// Columns of a run up to a time, as the running program sends them.
fn columns(from: usize, to: usize) -> String {
    let all = |value: fn(usize) -> f64| (from..to).map(value).collect::<Vec<f64>>();
    let t = all(|at| at as f64);
    let rate = all(|at| 500.0 + at as f64);
    json!({"from": from, "arrays": {"t": t, "offered": rate, "achieved": rate, "failed": all(|_| 0.0)}}).to_string()
}

#[test]
fn a_live_page_follows_the_run_and_becomes_the_report() {
    let report = render(&run(60, ""));
    let policy = "default-src 'none'; connect-src 'self';";
    let live = render(&run(1, ""))
        .replacen("<html ", "<html data-live=\"/events?token=secret\" ", 1)
        .replacen("default-src 'none';", policy, 1);
    let (begun, end) = (live, report.clone());
    let (finish, is_finished) = channel();
    let is_finished = Mutex::new(is_finished);
    let server = Server::new(move |request, before, stream| match (request[1].as_str(), before) {
        ("/", _) => reply(stream, "200 OK", "Content-Type: text/html\r\n", &begun),
        // The first connection breaks after ten columns.
        ("/events?token=secret", 0) => {
            begin_events(stream);
            send_event(stream, "columns", "9", &columns(0, 10));
            let section = json!({"decide": "<h2>Decide</h2><p>after ten</p>"});
            send_event(stream, "sections", "9", &section.to_string());
        }
        ("/events?token=secret", 1) => {
            begin_events(stream);
            send_event(stream, "columns", "19", &columns(10, 20));
            let _ = is_finished.lock().unwrap().recv_timeout(Duration::from_secs(60));
            send_event(stream, "end", "20", &end);
        }
        ("/stop?token=secret", 0) => reply(stream, "200 OK", "", ""),
        _ => reply(stream, "403 Forbidden", "", ""),
    });
    let mut browser = super::chromium();
    browser.go(&server.url("/"));
    // Twenty columns have come, in two parts; the last is at 19 s.
    browser.wait_for("document.querySelector('#decide p')?.textContent === 'after ten'");
    let last = "(() => { const area = document.querySelector('#plot-throughput .area'); area.focus(); \
                area.dispatchEvent(new KeyboardEvent('keydown', {key: 'End', bubbles: true})); \
                return document.querySelector('#plot-throughput .place').textContent === '19 s'; })()";
    browser.wait_for(last);
    let values = texts(&mut browser, "#plot-throughput .entry output");
    assert_eq!(values[0], "519/s", "{values:?}");
    {
        let requests = server.requests.lock().unwrap();
        let resumed =
            requests.iter().filter(|request| request[1].starts_with("/events")).nth(1).unwrap();
        assert_eq!(resumed[2], "9", "the page says which column it had last");
    }
    browser.click(".stop");
    browser.wait_for("document.querySelector('.stop').textContent === 'Stopping…'");
    let is_stop =
        |request: &[String; 3]| request[0] == "POST" && request[1] == "/stop?token=secret";
    assert!(server.requests.lock().unwrap().iter().any(is_stop));
    // The report takes the place of the page, in the same document.
    finish.send(()).unwrap();
    browser.wait_for("document.documentElement.dataset.live === undefined && document.documentElement.dataset.drawn !== undefined");
    let state = "[document.title, document.body.innerText, document.querySelectorAll('*').length]";
    let ended = (browser.value(state), browser.value(super::COLOURED));
    browser.open("report.html", &report);
    assert_eq!(
        (browser.value(state), browser.value(super::COLOURED)),
        ended,
        "the last state is the report"
    );
}
