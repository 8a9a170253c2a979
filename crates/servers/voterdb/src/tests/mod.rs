//! Tests of the server as a whole, over its port.

mod application;
mod durability;
mod http;
mod limits;
mod logins;
mod lying_disk;
mod moments;
mod statements;
mod system;
mod threads;

use super::{Server, VoterConfig, VoterError};
use plimsoll_serving::stop::Stop;
use plimsoll_wire::volt::{
    FRAME_HEAD_BYTES, Login, LoginReply, Request, Response, Value, frame_length,
};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

/// Longer than anything takes on a busy machine; whoever waits so long has found a defect.
pub(super) const LIMIT: Duration = Duration::from_secs(60);

/// The twelve names, with the comma that a client forgot.
pub(super) const NAMES: &str = "Edwina Burnam,Tabatha Gehling,Kelly Clauss,Jessie Alloway,\
    Alana Bregman,Jessie Eichman,Allie Rogalski,Nita Coster,Kurt Walser,Ericka Dieter,\
    Loraine Nygren,Tania Mattioli";

/// A server on a port of its own.
pub(super) struct TestServer {
    pub(super) address: SocketAddr,
    /// Of the HTTP JSON API.
    pub(super) http: Option<SocketAddr>,
    stop: Stop,
    thread: Option<JoinHandle<Result<(), VoterError>>>,
}

impl TestServer {
    pub(super) fn start(config: VoterConfig) -> Self {
        Self::begin(config, None)
    }

    /// One whose lines about what should be looked at are kept.
    pub(super) fn telling(config: VoterConfig) -> (Self, Arc<Mutex<Vec<String>>>) {
        let told = Arc::new(Mutex::new(Vec::new()));
        let hears = Arc::clone(&told);
        let server = Server::open(config).unwrap();
        let server = server.telling(move |line| hears.lock().unwrap().push(line.to_owned()));
        (Self::serve(server, None), told)
    }

    pub(super) fn with_http(config: VoterConfig) -> Self {
        Self::begin(config, Some(TcpListener::bind("127.0.0.1:0").unwrap()))
    }

    fn begin(config: VoterConfig, http: Option<TcpListener>) -> Self {
        Self::serve(Server::open(config).unwrap(), http)
    }

    pub(super) fn serve(server: Server, http: Option<TcpListener>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let http_address = http.as_ref().map(|http| http.local_addr().unwrap());
        let (address, stop) = (listener.local_addr().unwrap(), Stop::new().unwrap());
        let asked = stop.clone();
        let thread = std::thread::spawn(move || server.serve(listener, http, &asked));
        Self { address, http: http_address, stop, thread: Some(thread) }
    }

    /// Two partitions, nothing else special.
    pub(super) fn plain() -> Self {
        Self::start(VoterConfig { partitions: 2, ..VoterConfig::default() })
    }

    /// A client that has logged in.
    pub(super) fn client(&self) -> Client {
        let mut client = Client::open(self.address);
        client.log_in(&Login::new("", ""));
        client
    }

    /// A client of a server whose contestants are there.
    pub(super) fn voter(&self) -> Client {
        let mut client = self.client();
        assert_eq!(client.long("Initialize", &[Value::Integer(6), Value::String(NAMES)]), 6);
        client
    }

    /// Stops and says how that went.
    pub(super) fn stop(mut self) {
        self.stop.request();
        self.thread.take().unwrap().join().unwrap().unwrap();
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.stop.request();
        if let Some(thread) = self.thread.take() {
            let ended = thread.join();
            // A test that fails already says enough.
            assert!(std::thread::panicking() || matches!(ended, Ok(Ok(()))), "{ended:?}");
        }
    }
}

/// One response, with what a test looks at.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Answered {
    pub(super) handle: i64,
    pub(super) status: i8,
    pub(super) text: String,
    /// Column names and rows of each table, values as texts.
    pub(super) tables: Vec<(Vec<String>, Vec<Vec<String>>)>,
}

/// A client that waits for each answer, or sends many calls and takes their answers later.
pub(super) struct Client {
    pub stream: TcpStream,
    input: Vec<u8>,
    next: i64,
}

impl Client {
    pub(super) fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        stream.set_write_timeout(Some(LIMIT)).unwrap();
        Self { stream, input: Vec::new(), next: 1 }
    }

    pub(super) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next message, without its length; nothing when the server has closed.
    pub(super) fn message(&mut self) -> Option<Vec<u8>> {
        loop {
            if let Some(length) = frame_length(&self.input).unwrap() {
                let message = self.input[FRAME_HEAD_BYTES..length].to_vec();
                self.input.drain(..length);
                return Some(message);
            }
            let mut buffer = [0; 64 * 1024];
            match self.stream.read(&mut buffer) {
                Ok(0) => return None,
                Ok(count) => self.input.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) => panic!("no answer: {error}"),
            }
        }
    }

    /// Logs in; panics unless it is let in.
    pub(super) fn log_in(&mut self, login: &Login) {
        self.send(login.message());
        let message = self.message().unwrap();
        let reply = LoginReply::read(&message).unwrap();
        assert!(matches!(reply, LoginReply::Welcome(_)), "{reply:?}");
    }

    /// Sends a call and returns its handle.
    pub(super) fn submit(&mut self, procedure: &str, params: &[Value<'_>]) -> i64 {
        let mut request = Request::default();
        request.call(procedure, params);
        let (mut bytes, handle) = (Vec::new(), self.next);
        request.put(handle, &mut bytes);
        self.next += 1;
        self.send(&bytes);
        handle
    }

    /// The next response.
    pub(super) fn answer(&mut self) -> Answered {
        let message = self.message().expect("the server closed the connection");
        let response = Response::read(&message).unwrap();
        let tables = response.tables.map(|table| {
            let table = table.unwrap();
            let columns = table.columns().map(|column| column.name.to_owned()).collect();
            let rows = table
                .rows()
                .map(|row| row.unwrap().values().map(|value| shown(&value.unwrap())).collect());
            (columns, rows.collect())
        });
        Answered {
            handle: response.handle,
            status: response.status,
            text: response.status_text.unwrap_or_default().to_owned(),
            tables: tables.collect(),
        }
    }

    pub(super) fn call(&mut self, procedure: &str, params: &[Value<'_>]) -> Answered {
        let handle = self.submit(procedure, params);
        let answer = self.answer();
        assert_eq!(answer.handle, handle);
        answer
    }

    /// The one number of a procedure that returns a `long`.
    pub(super) fn long(&mut self, procedure: &str, params: &[Value<'_>]) -> i64 {
        let answer = self.call(procedure, params);
        assert_eq!(answer.status, 1, "{answer:?}");
        answer.tables[0].1[0][0].parse().unwrap()
    }

    pub(super) fn vote(&mut self, phone: i64, contestant: i32, most: i64) -> i64 {
        let params = [Value::BigInt(phone), Value::Integer(contestant), Value::BigInt(most)];
        self.long("Vote", &params)
    }

    /// The rows of one statement.
    pub(super) fn rows(&mut self, sql: &str) -> Vec<Vec<String>> {
        let answer = self.call("@AdHoc", &[Value::String(sql)]);
        assert_eq!(answer.status, 1, "{sql}: {answer:?}");
        answer.tables.into_iter().next().unwrap().1
    }

    /// The one value of one statement.
    pub(super) fn cell(&mut self, sql: &str) -> String {
        let rows = self.rows(sql);
        assert_eq!((rows.len(), rows[0].len()), (1, 1), "{sql}: {rows:?}");
        rows[0][0].clone()
    }

    /// What is said to a statement that fails.
    pub(super) fn refusal(&mut self, sql: &str) -> String {
        let answer = self.call("@AdHoc", &[Value::String(sql)]);
        assert_eq!((answer.status, answer.tables.len()), (-2, 0), "{sql}: {answer:?}");
        answer.text
    }
}

/// A value as a text.
pub(super) fn shown(value: &Value<'_>) -> String {
    match value {
        Value::Null => "NULL".to_owned(),
        Value::String(text) => (*text).to_owned(),
        Value::Float(number) => number.to_string(),
        Value::VarBinary(bytes) => format!("{} bytes", bytes.len()),
        other => other.long().map_or_else(|| format!("{other:?}"), |number| number.to_string()),
    }
}
