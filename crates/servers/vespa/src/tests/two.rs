//! A client for HTTP/2 with prior knowledge.

use super::TestReply;
use http_body_util::{BodyExt, Full};
use hyper::Request;
use hyper::body::Bytes;
use hyper::client::conn::http2::{self, SendRequest};
use hyper_util::rt::{TokioExecutor, TokioIo};
use std::net::SocketAddr;
use tokio::net::TcpStream;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;

/// One connection.
pub(super) struct Two {
    runtime: Runtime,
    sender: SendRequest<Full<Bytes>>,
    /// Ends with the connection.
    connection: JoinHandle<hyper::Result<()>>,
}

async fn exchange(
    mut sender: SendRequest<Full<Bytes>>,
    request: Request<Full<Bytes>>,
) -> hyper::Result<TestReply> {
    sender.ready().await?;
    let reply = sender.send_request(request).await?;
    let status = reply.status().as_u16();
    let head: String = reply
        .headers()
        .iter()
        .map(|(name, value)| format!("{name}: {}\r\n", value.to_str().unwrap()))
        .collect();
    let raw = reply.into_body().collect().await?.to_bytes().to_vec();
    let body = String::from_utf8_lossy(&raw).into_owned();
    Ok(TestReply { status, head, body, raw })
}

fn request(method: &str, path: &str, headers: &str, body: &[u8]) -> Request<Full<Bytes>> {
    let mut request = Request::builder().method(method).uri(format!("http://t{path}"));
    for line in headers.lines() {
        let (name, value) = line.split_once(':').unwrap();
        request = request.header(name, value.trim());
    }
    request.body(Full::new(Bytes::copy_from_slice(body))).unwrap()
}

impl Two {
    pub(super) fn connect(address: SocketAddr) -> Self {
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.unwrap();
        let (sender, connection) = runtime.block_on(async {
            let stream = TcpStream::connect(address).await.unwrap();
            stream.set_nodelay(true).unwrap();
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .initial_stream_window_size(1 << 20)
                .initial_connection_window_size(16 << 20)
                .handshake(TokioIo::new(stream))
                .await
                .unwrap();
            (sender, tokio::spawn(connection))
        });
        Self { runtime, sender, connection }
    }

    pub(super) fn request(
        &mut self,
        method: &str,
        path: &str,
        headers: &str,
        body: &[u8],
    ) -> TestReply {
        let request = request(method, path, headers, body);
        self.runtime.block_on(exchange(self.sender.clone(), request)).unwrap()
    }

    /// Sends all at once, each on a stream of its own.
    pub(super) fn all(&mut self, requests: &[(&str, String, Vec<u8>)]) -> Vec<TestReply> {
        let replies: Vec<_> = requests
            .iter()
            .map(|(method, path, body)| {
                let request = request(method, path, "", body);
                self.runtime.spawn(exchange(self.sender.clone(), request))
            })
            .collect();
        let wait = |reply: JoinHandle<hyper::Result<TestReply>>| {
            self.runtime.block_on(reply).unwrap().unwrap()
        };
        replies.into_iter().map(wait).collect()
    }

    /// Keeps so many requests under way until `next` has none left; gives the statuses.
    // benches/writing.rs includes this file for it.
    #[allow(dead_code)]
    pub(super) fn flood(
        &self,
        width: usize,
        next: impl Fn() -> Option<(String, Vec<u8>)> + Clone + Send + 'static,
    ) -> Vec<u16> {
        let lanes: Vec<_> = (0..width)
            .map(|_| {
                let (next, sender) = (next.clone(), self.sender.clone());
                self.runtime.spawn(async move {
                    let mut statuses = Vec::new();
                    while let Some((path, body)) = next() {
                        let request = request("POST", &path, "", &body);
                        statuses.push(exchange(sender.clone(), request).await.unwrap().status);
                    }
                    statuses
                })
            })
            .collect();
        lanes.into_iter().flat_map(|lane| self.runtime.block_on(lane).unwrap()).collect()
    }

    /// Waits for the server to end the connection; gives whether it did so in order.
    pub(super) fn ended_in_order(self) -> bool {
        let Self { runtime, sender, connection } = self;
        let ended = runtime.block_on(connection).unwrap().is_ok();
        drop(sender);
        ended
    }
}
