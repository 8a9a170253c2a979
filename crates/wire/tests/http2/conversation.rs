//! The codec and the server of the `h2` crate talk to each other, over pipes in memory.

use std::time::Duration;

use bytes::Bytes;
use h2::server::{Builder, SendResponse};
use h2::{Reason, RecvStream};
use http::{HeaderMap, Request as Asked, Response};
use plimsoll_core::rng::Rng;
use plimsoll_wire::Fault;
use plimsoll_wire::http1::{Keep, Request};
use plimsoll_wire::http2::Http2;
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream, ReadHalf, WriteHalf};

use crate::session::{Ended, KEEP_ALL, STREAM, Seen, Session};

/// How many bytes a pipe holds: so few that both sides have to wait now and then.
const PIPE_BYTES: usize = 70_000;

/// Our side: sends `requests` as the connection takes them, tags from 0, until all have ended or the
/// connection has; with `resend`, also those that the server has not looked at. `after` may do something
/// between two reads.
async fn ask(
    codec: Http2,
    pipe: DuplexStream,
    requests: Vec<Request>,
    resend: bool,
    mut after: impl FnMut(&mut Session),
) -> Session {
    let (mut input, output): (ReadHalf<_>, WriteHalf<_>) = tokio::io::split(pipe);
    let (to_send, sender) = sender(output);
    let (mut session, mut rng) = (Session::new(codec), Rng::new(9113));
    let (mut sent, mut cancelled) = (0, 0);
    let mut again = Vec::new();
    let mut buffer = vec![0; 64 << 10];
    loop {
        if resend {
            // As the engine does with what a peer has not looked at.
            session.ended.retain(|ended| match ended {
                Ended::GivenUp { tag, unprocessed: true, .. } => {
                    again.push(*tag);
                    false
                }
                _ => true,
            });
        }
        while session.capacity() > 0 && (sent < requests.len() || !again.is_empty()) {
            let tag = again.pop().unwrap_or(sent as u32);
            session.submit(&requests[tag as usize], tag);
            sent = sent.max(tag as usize + 1);
        }
        let before = session.capacity();
        after(&mut session);
        cancelled += (session.capacity().saturating_sub(before)) as usize;
        to_send.send(std::mem::take(&mut session.out)).ok();
        if session.ended.len() + cancelled >= requests.len() || session.fault.is_some() {
            break;
        }
        let some = 1 + rng.below(buffer.len() as u64) as usize;
        match input.read(&mut buffer[..some]).await {
            Ok(0) | Err(_) => {
                session.fault = Some(session.end());
                break;
            }
            Ok(n) => session.feed(&buffer[..n]),
        }
    }
    drop(to_send);
    sender.await.unwrap();
    session
}

type ToSend = tokio::sync::mpsc::UnboundedSender<Vec<u8>>;

fn sender(mut output: WriteHalf<DuplexStream>) -> (ToSend, tokio::task::JoinHandle<()>) {
    let (to_send, mut queue) = tokio::sync::mpsc::unbounded_channel::<Vec<u8>>();
    let task = tokio::spawn(async move {
        while let Some(bytes) = queue.recv().await {
            if output.write_all(&bytes).await.is_err() {
                break;
            }
        }
    });
    (to_send, task)
}

/// The whole body of a request, whose windows are opened as it comes.
async fn body_of(mut stream: RecvStream) -> Vec<u8> {
    let mut body = Vec::new();
    while let Some(Ok(piece)) = stream.data().await {
        body.extend_from_slice(&piece);
        stream.flow_control().release_capacity(piece.len()).ok();
    }
    body
}

/// Answers with everything that was asked: method, target and fields in the head, the body as it came, and
/// its length in a trailer.
async fn echo(asked: Asked<RecvStream>, mut respond: SendResponse<Bytes>) {
    let (head, stream) = asked.into_parts();
    let body = body_of(stream).await;
    let mut response = Response::builder().status(200).header("x-method", head.method.as_str());
    response = response.header("x-uri", head.uri.to_string());
    if let Some(id) = head.headers.get("x-id") {
        response = response.header("x-id", id);
    }
    let response = response.header("x-fields", head.headers.len()).body(()).unwrap();
    let Ok(mut send) = respond.send_response(response, false) else { return };
    let mut trailers = HeaderMap::new();
    trailers.insert("x-length", body.len().into());
    if send.send_data(body.into(), false).is_ok() {
        send.send_trailers(trailers).ok();
    }
}

/// Serves connections of one kind until the client goes.
async fn serve<F, Fut>(builder: Builder, pipe: DuplexStream, answer: F)
where
    F: Fn(Asked<RecvStream>, SendResponse<Bytes>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    let mut connection = builder.handshake(pipe).await.unwrap();
    while let Some(Ok((asked, respond))) = connection.accept().await {
        tokio::spawn(answer(asked, respond));
    }
}

/// Runs both sides; fails when they wait for each other for ever.
fn converse<F, Fut>(
    codec: Http2,
    builder: Builder,
    requests: Vec<Request>,
    resend: bool,
    answer: F,
) -> Session
where
    F: Fn(Asked<RecvStream>, SendResponse<Bytes>) -> Fut,
    Fut: Future<Output = ()> + Send + 'static,
{
    run(async {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = serve(builder, theirs, answer);
        tokio::join!(ask(codec, ours, requests, resend, |_| {}), server).0
    })
}

fn run<T>(both: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let limited = async { tokio::time::timeout(Duration::from_secs(60), both).await };
    runtime.block_on(limited).expect("both sides wait for each other")
}

fn text(id: usize, body: &[u8], keep: Keep) -> Request {
    let line = format!("POST /echo/{id}?a=b HTTP/1.1\r\nHost: localhost:81\r\nX-Id: id {id}\r\n");
    let rest = format!("Accept: */*\r\nContent-Length: {}\r\n\r\n", body.len());
    let bytes = [line.as_bytes(), rest.as_bytes(), body].concat();
    Request { bytes, head: false, keep }
}

fn random(rng: &mut Rng, length: usize) -> Vec<u8> {
    (0..length).map(|_| rng.next_u64() as u8).collect()
}

/// Replies in the order of their tags.
fn replies(session: &Session) -> Vec<&Seen> {
    let mut seen: Vec<_> = session
        .ended
        .iter()
        .map(|ended| match ended {
            Ended::Reply(seen) => seen,
            other => panic!("{other:?}"),
        })
        .collect();
    seen.sort_by_key(|seen| seen.tag);
    seen
}

fn check_echo(session: &Session, bodies: &[Vec<u8>]) {
    assert_eq!(session.fault, None);
    let seen = replies(session);
    assert_eq!(seen.len(), bodies.len());
    for (id, (seen, body)) in seen.iter().zip(bodies).enumerate() {
        let head = format!(
            "x-method: POST\r\nx-uri: http://localhost:81/echo/{id}?a=b\r\nx-id: id {id}\r\n\
             x-fields: 3\r\n"
        );
        assert_eq!((seen.status, seen.tag as usize, &seen.head), (200, id, &head));
        assert!(seen.body == *body, "the body of {id} differs");
    }
}

fn echo_all(codec: Http2, builder: Builder, bodies: &[Vec<u8>]) {
    let keep = |id: usize| if id.is_multiple_of(2) { KEEP_ALL } else { STREAM };
    let requests = bodies.iter().enumerate().map(|(id, body)| text(id, body, keep(id)));
    check_echo(&converse(codec, builder, requests.collect(), true, echo), bodies);
}

#[test]
fn many_streams_on_one_connection() {
    let mut rng = Rng::new(1);
    let bodies: Vec<_> = (0..3000).map(|n| random(&mut rng, n % 700)).collect();
    echo_all(Http2::default(), Builder::new(), &bodies);
    // As many as the server likes, and one after the other.
    let codec = Http2 { streams_max: 1000, ..Http2::default() };
    echo_all(codec, Builder::new().max_concurrent_streams(7).clone(), &bodies[..500]);
    echo_all(Http2 { streams_max: 1, ..codec }, Builder::new(), &bodies[..500]);
}

#[test]
fn large_bodies_both_ways_through_windows_of_every_size() {
    let mut rng = Rng::new(2);
    let bodies: Vec<_> = (0..12).map(|n| random(&mut rng, n * 40_000)).collect();
    for (stream, connection, frame) in
        [(65_535, 65_535, 16_384), (1000, 65_535, 16_384), (1 << 20, 1 << 22, 1 << 20)]
    {
        let mut builder = Builder::new();
        builder.initial_window_size(stream).initial_connection_window_size(connection);
        builder.max_frame_size(frame);
        echo_all(Http2::default(), builder, &bodies);
    }
    let small: Vec<_> = (0..5).map(|n| random(&mut rng, n * 100)).collect();
    echo_all(Http2::default(), Builder::new().initial_window_size(1).clone(), &small);
}

#[test]
fn headers_are_understood_without_a_table_and_with_a_tiny_one() {
    let bodies = vec![vec![b'x'; 10]; 300];
    for table_bytes in [0, 60, 200, 1 << 16] {
        echo_all(Http2::default(), Builder::new().header_table_size(table_bytes).clone(), &bodies);
    }
}

#[test]
fn a_reply_larger_than_all_windows_is_streamed() {
    const PIECES: usize = 1400;
    let answer = |_, mut respond: SendResponse<Bytes>| async move {
        let mut send = respond.send_response(Response::new(()), false).unwrap();
        let piece = Bytes::from(vec![b'v'; 64 << 10]);
        for n in 0..PIECES {
            send.reserve_capacity(piece.len());
            while send.capacity() < piece.len() {
                if std::future::poll_fn(|cx| send.poll_capacity(cx)).await.is_none() {
                    return;
                }
            }
            send.send_data(piece.clone(), n + 1 == PIECES).unwrap();
        }
    };
    let requests = vec![text(0, b"", Keep { stream: true, ..Keep::default() })];
    let session = converse(Http2::default(), Builder::new(), requests, false, answer);
    assert_eq!(session.only().body.len(), PIECES * (64 << 10));
    assert!(session.only().body.iter().all(|&byte| byte == b'v'));
}

#[test]
fn resets_and_refusals_come_one_by_one() {
    let answer = |asked: Asked<RecvStream>, mut respond: SendResponse<Bytes>| async move {
        match asked.uri().path().strip_prefix("/echo/").unwrap().parse::<u32>().unwrap() % 4 {
            0 => echo(asked, respond).await,
            1 => respond.send_reset(Reason::REFUSED_STREAM),
            2 => respond.send_reset(Reason::INTERNAL_ERROR),
            _ => {
                let mut send = respond.send_response(Response::new(()), false).unwrap();
                send.send_data(Bytes::from_static(b"half"), false).unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
                send.send_reset(Reason::CANCEL);
            }
        }
    };
    let requests = (0..400).map(|id| text(id, b"x", KEEP_ALL)).collect();
    let session = converse(Http2::default(), Builder::new(), requests, false, answer);
    assert_eq!((session.fault, session.ended.len()), (None, 400));
    for ended in &session.ended {
        match ended {
            Ended::Reply(seen) => assert_eq!(seen.tag % 4, 0),
            Ended::GivenUp { tag, fault: Fault::Reset { began, why }, unprocessed } => {
                assert_eq!((*unprocessed, *began), (tag % 4 == 1, tag % 4 == 3), "{tag}: {why}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn a_server_that_leaves_answers_what_it_took() {
    let requests: Vec<_> = (0..50).map(|id| text(id, b"x", KEEP_ALL)).collect();
    let session = run(async {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = async {
            let mut connection = Builder::new().handshake(theirs).await.unwrap();
            let mut taken = 0;
            while let Some(Ok((asked, respond))) = connection.accept().await {
                tokio::spawn(echo(asked, respond));
                taken += 1;
                if taken == 10 {
                    connection.graceful_shutdown();
                }
            }
        };
        tokio::join!(
            ask(Http2 { streams_max: 20, ..Http2::default() }, ours, requests, false, |_| {}),
            server
        )
        .0
    });
    // The connection closes when the last that was taken is through: no request has failed.
    let replied = replies(&session).len();
    assert!((10..50).contains(&replied), "{replied}");
    assert_eq!(session.fault, Some(Fault::Closed { began: false }));
    assert_eq!(session.capacity(), 0);
}

#[test]
fn a_server_that_breaks_off_says_why() {
    let requests: Vec<_> = (0..5).map(|id| text(id, b"x", KEEP_ALL)).collect();
    let session = run(async {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = async {
            let mut connection: h2::server::Connection<_, Bytes> =
                Builder::new().handshake(theirs).await.unwrap();
            let held = connection.accept().await;
            connection.abrupt_shutdown(Reason::ENHANCE_YOUR_CALM);
            while connection.accept().await.is_some() {}
            drop(held);
        };
        tokio::join!(ask(Http2::default(), ours, requests, false, |_| {}), server).0
    });
    let why = "the peer gave up the connection: ENHANCE_YOUR_CALM";
    let told = session.ended.iter().all(|ended| {
        matches!(ended, Ended::GivenUp { fault: Fault::Reset { why: said, .. }, .. } if *said == why)
    });
    assert!(told, "{:?}", session.ended);
    assert!(matches!(session.fault, Some(Fault::Reset { why: said, .. }) if said == why));
}

#[test]
fn cancelled_requests_do_not_disturb_the_others() {
    let mut rng = Rng::new(3);
    let bodies: Vec<_> = (0..300).map(|_| random(&mut rng, 20_000)).collect();
    let requests = bodies.iter().enumerate().map(|(id, body)| text(id, body, KEEP_ALL)).collect();
    let session = run(async {
        let (ours, theirs) = tokio::io::duplex(PIPE_BYTES);
        let server = serve(Builder::new(), theirs, echo);
        let (mut next, mut goes_on) = (5, true);
        // Every tenth is cancelled as soon as there has been time to begin it.
        let cancel_some = |session: &mut Session| {
            let ended =
                |tag| session.ended.iter().any(|e| matches!(e, Ended::Reply(s) if s.tag == tag));
            if next < 300 && session.ended.len() as u32 + 10 > next && !ended(next) {
                goes_on &= session.cancel(next);
            }
            next += if session.ended.len() as u32 + 10 > next { 10 } else { 0 };
        };
        let codec = Http2 { streams_max: 20, ..Http2::default() };
        let session = tokio::join!(ask(codec, ours, requests, false, cancel_some), server).0;
        assert!(goes_on);
        session
    });
    assert_eq!(session.fault, None);
    let seen = replies(&session);
    assert!((270..=300).contains(&seen.len()), "{}", seen.len());
    for seen in seen {
        assert!(seen.body == bodies[seen.tag as usize]);
    }
}
