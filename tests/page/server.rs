//! A small HTTP server on loopback that answers from a script, as Jenkins or a live run would.

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A server that ends with the test.
pub struct Server {
    port: u16,
    /// The requests so far: method, path with query, and the value of `Last-Event-ID`.
    pub requests: Arc<Mutex<Vec<[String; 3]>>>,
}

/// Answers a request by its path and the number of requests with this path before it; false closes the server's door.
type Answer = dyn Fn(&[String; 3], usize, &mut TcpStream) + Send + Sync;

impl Server {
    /// Starts a server. `answer` gets a request, how many came before it to the same path, and the connection.
    pub fn new(
        answer: impl Fn(&[String; 3], usize, &mut TcpStream) + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let answer: Arc<Answer> = Arc::new(answer);
        let seen = requests.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(stream), answer, seen) = (stream, answer.clone(), seen.clone()) else {
                    return;
                };
                std::thread::spawn(move || serve(stream, &*answer, &seen));
            }
        });
        Self { port, requests }
    }

    /// The address of a path.
    pub fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }
}

fn serve(mut stream: TcpStream, answer: &Answer, seen: &Mutex<Vec<[String; 3]>>) {
    let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
    let Some(first) = lines.next() else { return };
    let mut words = first.split(' ').map(str::to_owned);
    let mut request =
        [words.next().unwrap_or_default(), words.next().unwrap_or_default(), String::new()];
    for line in lines.take_while(|line| !line.is_empty()) {
        if let Some(id) = line.to_ascii_lowercase().strip_prefix("last-event-id:") {
            id.trim().clone_into(&mut request[2]);
        }
    }
    let path = |request: &[String; 3]| request[1].split('?').next().map(str::to_owned);
    let before = {
        let mut seen = seen.lock().unwrap();
        let before = seen.iter().filter(|other| path(other) == path(&request)).count();
        seen.push(request.clone());
        before
    };
    answer(&request, before, &mut stream);
}

/// Sends a whole reply; headers end with a line's end each.
pub fn reply(stream: &mut TcpStream, status: &str, headers: &str, body: &str) {
    let _ = write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{headers}\r\n{body}",
        body.len()
    );
}

/// Sends the head of a stream of events.
pub fn begin_events(stream: &mut TcpStream) {
    let _ = stream.write_all(
        b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\nretry: 50\n\n",
    );
}

/// Sends an event.
pub fn send_event(stream: &mut TcpStream, kind: &str, id: &str, data: &str) {
    let data: String = data.lines().map(|line| format!("data: {line}\n")).collect();
    let _ = write!(stream, "event: {kind}\nid: {id}\n{data}\n");
    let _ = stream.flush();
}
