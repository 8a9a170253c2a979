//! Replies: whole ones, and ones that are sent while they are made.

use super::gzip;
use hyper::body::{Body, Bytes, Frame, SizeHint};
use hyper::header::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, VARY,
};
use hyper::{Response, StatusCode};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::sync::mpsc;

/// The reply of a handler.
pub type Reply = Response<ReplyBody>;

/// Pieces of a streamed reply that wait for the connection.
const PIECES: usize = 2;
/// Smaller replies are not packed.
const MIN_GZIP_BYTES: usize = 1024;

/// A streamed reply ended before its end: the connection is cut, so that the client sees it.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the reply broke off")]
pub struct BrokenOff;

/// The body of a reply.
pub enum ReplyBody {
    /// All of it.
    Whole(Option<Bytes>),
    /// Piece by piece; an empty piece is the end.
    Stream(mpsc::Receiver<Bytes>, bool),
}

impl Body for ReplyBody {
    type Data = Bytes;
    type Error = BrokenOff;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BrokenOff>>> {
        match self.get_mut() {
            Self::Whole(bytes) => Poll::Ready(bytes.take().map(|bytes| Ok(Frame::data(bytes)))),
            Self::Stream(_, true) => Poll::Ready(None),
            Self::Stream(pieces, ended) => pieces.poll_recv(context).map(|piece| match piece {
                Some(piece) if piece.is_empty() => {
                    *ended = true;
                    None
                }
                Some(piece) => Some(Ok(Frame::data(piece))),
                None => {
                    *ended = true;
                    Some(Err(BrokenOff))
                }
            }),
        }
    }

    fn is_end_stream(&self) -> bool {
        match self {
            Self::Whole(bytes) => bytes.as_ref().is_none_or(Bytes::is_empty),
            Self::Stream(_, ended) => *ended,
        }
    }

    fn size_hint(&self) -> SizeHint {
        match self {
            Self::Whole(bytes) => {
                SizeHint::with_exact(bytes.as_ref().map_or(0, |b| b.len() as u64))
            }
            Self::Stream(..) => SizeHint::default(),
        }
    }
}

/// The reply is no longer wanted: the client has left, or takes too long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gone;

/// Sender of the pieces of a streamed reply. Dropped without [`PieceSender::end`], the reply is cut.
pub struct PieceSender {
    pieces: mpsc::Sender<Bytes>,
    /// Longest time that the client may take no piece at all.
    patience: Duration,
}

impl PieceSender {
    /// Sends a piece; waits while two of them wait for the connection.
    pub async fn send(&self, piece: Vec<u8>) -> Result<(), Gone> {
        if piece.is_empty() {
            return Ok(());
        }
        let sent = tokio::time::timeout(self.patience, self.pieces.send(piece.into())).await;
        sent.map_err(|_| Gone)?.map_err(|_| Gone)
    }

    /// The reply is complete.
    pub async fn end(self) -> Result<(), Gone> {
        let sent = tokio::time::timeout(self.patience, self.pieces.send(Bytes::new())).await;
        sent.map_err(|_| Gone)?.map_err(|_| Gone)
    }

    /// Waits until the client has gone away.
    pub async fn gone(&self) {
        self.pieces.closed().await;
    }
}

/// A streamed body and its sender.
pub fn stream(patience: Duration) -> (PieceSender, ReplyBody) {
    let (sender, receiver) = mpsc::channel(PIECES);
    (PieceSender { pieces: sender, patience }, ReplyBody::Stream(receiver, false))
}

/// A reply with a body.
pub fn reply(status: StatusCode, kind: &'static str, body: ReplyBody) -> Reply {
    let mut reply = Response::new(body);
    *reply.status_mut() = status;
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static(kind));
    reply
}

/// A whole reply.
pub fn json(status: StatusCode, kind: &'static str, body: Vec<u8>) -> Reply {
    reply(status, kind, ReplyBody::Whole(Some(body.into())))
}

/// Marks a reply as gzip.
pub fn mark_gzip(reply: &mut Reply) {
    reply.headers_mut().insert(CONTENT_ENCODING, HeaderValue::from_static("gzip"));
}

/// Leaves the head alone, which says how long the body would be.
pub fn behead(reply: &mut Reply) {
    if let Some(length) = reply.body().size_hint().exact() {
        reply.headers_mut().insert(CONTENT_LENGTH, HeaderValue::from(length));
    }
    *reply.body_mut() = ReplyBody::Whole(None);
}

/// Packs a whole reply that is worth it, and says that replies depend on what the client takes.
pub fn pack(reply: &mut Reply, gzip: bool) {
    reply.headers_mut().insert(VARY, HeaderValue::from(ACCEPT_ENCODING));
    if !gzip || reply.headers().contains_key(CONTENT_ENCODING) {
        return;
    }
    if let ReplyBody::Whole(Some(bytes)) = reply.body_mut()
        && bytes.len() >= MIN_GZIP_BYTES
    {
        *bytes = gzip::whole(bytes).into();
        mark_gzip(reply);
    }
}
