//! Connections that speak frames.

use super::metrics::Bad;
use super::service::{Answer, Service};
use plimsoll_core::clock::now_ns;
use plimsoll_serving::room::{Seat, Served};
use plimsoll_serving::write_limit::WRITE;
use plimsoll_wire::rank::{FrameError, Incoming, RequestHeader, RequestReader, ResponseHeader};
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::net::tcp::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, watch};

/// Requests of one connection in the server; the next is read when one of them was answered.
pub(crate) const IN_FLIGHT_MAX: usize = 256;
/// Largest number of bytes of one read.
const READ_BYTES: usize = 16 * 1024;
/// Largest number of bytes of replies that are sent together.
const WRITE_BYTES: usize = 64 * 1024;
/// An answer on its way to its connection; it keeps its places until it was written.
struct Outgoing {
    header: ResponseHeader,
    answer: Answer,
    /// The place among the requests of the connection, and that of the connection.
    _permit: (OwnedSemaphorePermit, Served),
}

/// Serves one connection until the client closes, sends something else, or the server stops.
pub(crate) async fn serve(
    stream: TcpStream,
    service: Arc<Service>,
    idle: Duration,
    mut stopping: watch::Receiver<bool>,
    seat: &Arc<Seat>,
) {
    let (from, to) = stream.into_split();
    let (answers, queue) = mpsc::unbounded_channel();
    let writer = tokio::spawn(write(to, queue));
    tokio::select! {
        biased;
        // Requests that were read are answered while the server stops.
        _ = stopping.wait_for(|stopping| *stopping) => {}
        // Whoever does not read its replies has no more of its requests read.
        () = answers.closed() => {}
        () = read(from, &service, &answers, idle, seat) => {}
    }
    drop(answers);
    let _ = writer.await;
}

async fn read(
    mut from: OwnedReadHalf,
    service: &Arc<Service>,
    answers: &mpsc::UnboundedSender<Outgoing>,
    idle: Duration,
    seat: &Arc<Seat>,
) {
    let mut reader = RequestReader::new(service.config.request_bytes_max);
    let places = Arc::new(Semaphore::new(IN_FLIGHT_MAX));
    let mut buffer = vec![0; READ_BYTES];
    loop {
        let read = match tokio::time::timeout(idle, from.read(&mut buffer)).await {
            Ok(Ok(read)) => read,
            _ => 0,
        };
        if read == 0 {
            if !reader.is_between_requests() {
                service.metrics.count_bad(Bad::Cut);
            }
            return;
        }
        let mut rest = &buffer[..read];
        while !rest.is_empty() {
            match reader.receive(rest) {
                Ok(Incoming::More) => break,
                Ok(Incoming::Request { header, consumed }) => {
                    rest = &rest[consumed..];
                    let Ok(permit) = Arc::clone(&places).acquire_owned().await else { return };
                    submit(service, header, (permit, seat.serve()), answers);
                }
                Err(error) => {
                    service.metrics.count_bad(match error {
                        FrameError::Kind(_) => Bad::Kind,
                        FrameError::PayloadTooLong { .. } => Bad::Length,
                    });
                    return;
                }
            }
        }
    }
}

fn submit(
    service: &Arc<Service>,
    asked: RequestHeader,
    permit: (OwnedSemaphorePermit, Served),
    answers: &mpsc::UnboundedSender<Outgoing>,
) {
    let arrived_ns = now_ns();
    service.metrics.arrived(None, arrived_ns);
    let (answers, counted) = (answers.clone(), Arc::clone(service));
    let deliver = move |answer: Answer| {
        let header = reply_header(&asked, &answer);
        if answers.send(Outgoing { header, answer, _permit: permit }).is_err() {
            counted.metrics.abandoned.fetch_add(1, Ordering::Relaxed);
        }
    };
    service.submit(asked.request_id, arrived_ns, Box::new(deliver));
}

fn reply_header(asked: &RequestHeader, answer: &Answer) -> ResponseHeader {
    ResponseHeader {
        kind: answer.kind,
        request_id: asked.request_id,
        start_time_ns: asked.start_time_ns,
        processing_time_ns: answer.processing_ns,
        // No reply is larger than REPLY_BYTES_MAX.
        payload_bytes: answer.payload.len() as u32,
    }
}

/// Writes replies until there are no more to come, or the client takes none.
async fn write(mut to: OwnedWriteHalf, mut queue: mpsc::UnboundedReceiver<Outgoing>) {
    let mut bytes = Vec::new();
    // Places are given back when the replies have left.
    let mut leaving = Vec::new();
    while let Some(first) = queue.recv().await {
        let mut next = Some(first);
        while let Some(outgoing) = next {
            bytes.extend_from_slice(&outgoing.header.encode());
            bytes.extend_from_slice(&outgoing.answer.payload);
            leaving.push(outgoing);
            next = if bytes.len() < WRITE_BYTES { queue.try_recv().ok() } else { None };
        }
        match tokio::time::timeout(WRITE, to.write_all(&bytes)).await {
            Ok(Ok(())) => {}
            _ => return,
        }
        bytes.clear();
        leaving.clear();
    }
}
