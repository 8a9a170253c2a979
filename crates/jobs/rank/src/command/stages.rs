//! Stages of the requests, as the servers that plimsoll has started report them.

use plimsoll_engine::target::Target;
use plimsoll_record::rank::RankStage;
use serde_json::Value;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

/// Longest time that a server may take to report.
const LIMIT: Duration = Duration::from_secs(2);
/// Most bytes of a report that are read.
const REPORT_MAX_BYTES: u64 = 1 << 20;
/// The stages, in the order of a request.
const ORDER: [&str; 8] =
    ["queue", "walk", "pagerank", "wait", "compress", "stories", "chase", "reply"];

/// Returns the stages of all servers. A server that does not answer has none, and nothing else depends on it.
pub fn of_servers(targets: &[Target]) -> Vec<RankStage> {
    let of_server = |(index, target): (usize, &Target)| {
        let report = target.addresses.first().and_then(|address| report(*address));
        report.map_or_else(Vec::new, |report| stages(index as u32 + 1, &report))
    };
    targets.iter().enumerate().flat_map(of_server).collect()
}

/// Asks a server for its report.
fn report(address: SocketAddr) -> Option<Value> {
    let mut stream = TcpStream::connect_timeout(&address, LIMIT).ok()?;
    stream.set_read_timeout(Some(LIMIT)).ok()?;
    stream.set_write_timeout(Some(LIMIT)).ok()?;
    let request = format!("GET /_stats HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).ok()?;
    let mut reply = Vec::new();
    stream.take(REPORT_MAX_BYTES).read_to_end(&mut reply).ok()?;
    let reply = String::from_utf8(reply).ok()?;
    let (head, body) = reply.split_once("\r\n\r\n")?;
    // A body in chunks has lengths around it; the report is one object between them.
    let body = body.get(body.find('{')?..=body.rfind('}')?)?;
    head.starts_with("HTTP/1.1 200").then(|| serde_json::from_str(body).ok())?
}

/// The stages of one report.
fn stages(instance: u32, report: &Value) -> Vec<RankStage> {
    let Some(own) = report.get("stages").and_then(Value::as_object) else { return Vec::new() };
    let stage = |(name, stage): (&String, &Value)| {
        let number = |path: &str| stage.pointer(path).and_then(Value::as_f64);
        Some(RankStage {
            instance,
            stage: name.clone(),
            requests: stage.pointer("/wall/count").and_then(Value::as_u64)?,
            wall_mean_ms: number("/wall/mean_ms")?,
            wall_p95_ms: number("/wall/p95_ms")?,
            cpu_mean_ms: number("/cpu/mean_ms")?,
        })
    };
    let mut all: Vec<RankStage> = own.iter().filter_map(stage).collect();
    let place = |stage: &RankStage| ORDER.iter().position(|name| *name == stage.stage);
    all.sort_by_key(|stage| place(stage).unwrap_or(ORDER.len()));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::TcpListener;

    fn report_text() -> String {
        let stage = |wall: f64, cpu: f64| json!({"wall": {"count": 5, "mean_ms": wall, "p95_ms": 2.0 * wall}, "cpu": {"count": 5, "mean_ms": cpu}});
        let stages = json!({"chase": stage(2.0, 1.9), "queue": stage(0.5, 0.0), "walk": stage(4.0, 3.5),
            "later": stage(1.0, 1.0), "broken": {"wall": 1}});
        json!({"target": "rank", "stages": stages}).to_string()
    }

    #[test]
    fn stages_are_in_the_order_of_a_request() {
        let all = stages(2, &serde_json::from_str(&report_text()).unwrap());
        let names: Vec<&str> = all.iter().map(|stage| stage.stage.as_str()).collect();
        assert_eq!(names, ["queue", "walk", "chase", "later"]);
        assert_eq!((all[1].instance, all[1].requests), (2, 5));
        assert_eq!((all[1].wall_mean_ms, all[1].wall_p95_ms, all[1].cpu_mean_ms), (4.0, 8.0, 3.5));
        assert!(stages(1, &json!({"target": "rank"})).is_empty());
    }

    #[test]
    fn a_server_that_answers_something_else_has_no_stages() {
        let answers = [
            format!("HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\r\n{}", report_text()),
            "HTTP/1.1 404 Not Found\r\n\r\n{}".to_owned(),
            "\u{0}\u{1}garbage".to_owned(),
        ];
        let mut found = Vec::new();
        for answer in answers {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let server = std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().unwrap();
                let mut request = [0; 256];
                let read = stream.read(&mut request).unwrap();
                assert!(request[..read].starts_with(b"GET /_stats HTTP/1.1\r\n"));
                stream.write_all(answer.as_bytes()).unwrap();
            });
            found.push(of_servers(&[Target::resolve("127.0.0.1", port)]).len());
            server.join().unwrap();
        }
        assert_eq!(found, [4, 0, 0]);
        let closed = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        assert!(of_servers(&[Target::resolve("127.0.0.1", closed)]).is_empty());
    }
}
