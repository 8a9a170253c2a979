//! Whole replies and requests of HTTP/1.1 as hyper reads them.

use super::wire::{Wire, settle};
use bytes::Bytes;
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::service::service_fn;
use std::cell::RefCell;
use std::convert::Infallible;
use std::pin::pin;
use std::rc::Rc;
use std::task::Poll;

/// Status and body of the first reply in a server's bytes, if it is whole.
#[must_use]
pub fn reply(bytes: &[u8], is_head: bool) -> Option<(u16, Vec<u8>)> {
    let handshake = hyper::client::conn::http1::handshake::<_, Empty<Bytes>>(Wire::of(bytes));
    let mut handshake = pin!(handshake);
    let (mut sender, connection) = settle(|context| handshake.as_mut().poll(context))?.ok()?;
    let method = if is_head { "HEAD" } else { "GET" };
    let request = hyper::Request::builder().method(method).uri("/").header("host", "a");
    let sent = sender.send_request(request.body(Empty::new()).ok()?);
    let mut sent = pin!(sent);
    let mut connection = pin!(connection);
    let mut is_over = false;
    let mut drive = |context: &mut std::task::Context<'_>| {
        if !is_over {
            is_over = connection.as_mut().poll(context).is_ready();
        }
    };
    let response = settle(|context| {
        drive(context);
        sent.as_mut().poll(context)
    })?
    .ok()?;
    let status = response.status().as_u16();
    let body = response.into_body().collect();
    let mut body = pin!(body);
    let body = settle(|context| {
        drive(context);
        body.as_mut().poll(context)
    })?;
    Some((status, body.ok()?.to_bytes().to_vec()))
}

/// End and body of the first request in a client's bytes, if it is whole. The end is that of the input where nothing follows,
/// which is all that can be seen from outside: other inputs give nothing.
#[must_use]
pub fn request_body(bytes: &[u8]) -> Option<Vec<u8>> {
    let seen = Rc::new(RefCell::new(None));
    let own = seen.clone();
    let service = service_fn(move |request: hyper::Request<Incoming>| {
        let own = own.clone();
        async move {
            let body = request.into_body().collect().await;
            let mut first = own.borrow_mut();
            if first.is_none() {
                *first = Some(body.ok().map(|body| body.to_bytes().to_vec()));
            }
            Ok::<_, Infallible>(hyper::Response::new(Empty::<Bytes>::new()))
        }
    });
    let connection =
        hyper::server::conn::http1::Builder::new().serve_connection(Wire::of(bytes), service);
    let mut connection = pin!(connection);
    settle(|context| match connection.as_mut().poll(context) {
        Poll::Pending if seen.borrow().is_none() => Poll::Pending,
        _ => Poll::Ready(()),
    });
    seen.borrow_mut().take().flatten()
}
