//! Replies of HTTP/2 as h2 reads them, and header blocks as another reader of HPACK does.

use super::wire::{Wire, settle};
use std::collections::BTreeMap;
use std::pin::pin;
use std::task::{Context, Poll};

/// Status and body of each stream whose reply is whole, from a server's bytes to `count` requests.
#[must_use]
pub fn replies(bytes: &[u8], count: u32) -> BTreeMap<u32, (u16, Vec<u8>)> {
    read(bytes, count).unwrap_or_default()
}

fn read(bytes: &[u8], count: u32) -> Option<BTreeMap<u32, (u16, Vec<u8>)>> {
    let mut builder = h2::client::Builder::new();
    builder
        .initial_window_size(16 << 20)
        .initial_connection_window_size(64 << 20)
        .enable_push(false);
    let handshake = builder.handshake::<_, bytes::Bytes>(Wire::of(bytes));
    let mut handshake = pin!(handshake);
    let (mut sender, connection) = settle(|context| handshake.as_mut().poll(context))?.ok()?;
    let mut waiting = Vec::new();
    for _ in 0..count {
        let request = http::Request::builder().uri("http://h:1/a").body(()).ok()?;
        let (reply, _) = sender.send_request(request, true).ok()?;
        waiting.push((u32::from(reply.stream_id()), reply));
    }
    let mut connection = pin!(connection);
    let mut is_over = false;
    let mut drive = |context: &mut Context<'_>| {
        if !is_over {
            is_over = connection.as_mut().poll(context).is_ready();
        }
    };
    let mut found = BTreeMap::new();
    for (stream, mut reply) in waiting {
        let response = settle(|context| {
            drive(context);
            std::pin::Pin::new(&mut reply).poll(context)
        });
        let Some(Ok(response)) = response else { continue };
        let status = response.status().as_u16();
        let mut body = response.into_body();
        let (mut whole, mut is_sound) = (Vec::new(), true);
        let ended = settle(|context| {
            drive(context);
            match body.poll_data(context) {
                Poll::Ready(Some(Ok(piece))) => {
                    whole.extend_from_slice(&piece);
                    let _ = body.flow_control().release_capacity(piece.len());
                    Poll::Pending
                }
                Poll::Ready(Some(Err(_))) => {
                    is_sound = false;
                    Poll::Ready(())
                }
                Poll::Ready(None) => Poll::Ready(()),
                Poll::Pending => Poll::Pending,
            }
        });
        if ended.is_some() && is_sound {
            found.insert(stream, (status, whole));
        }
    }
    Some(found)
}

/// Another reader of header blocks, with the state of one connection.
pub struct Blocks(fluke_hpack::Decoder<'static>);

impl Default for Blocks {
    fn default() -> Self {
        Self(fluke_hpack::Decoder::new())
    }
}

impl Blocks {
    /// The fields of a block; nothing if it is wrong.
    pub fn read(&mut self, block: &[u8]) -> Option<Vec<(Vec<u8>, Vec<u8>)>> {
        self.0.decode(block).ok()
    }
}
