//! Bodies of requests: reading them within limits, unpacking them.

use crate::arriving::Arriving;
use crate::parsed::{NoRoom, ParsedRoom};
use flate2::bufread::MultiGzDecoder;
use http_body_util::BodyExt;
use hyper::StatusCode;
use hyper::body::{Body as _, Bytes, Incoming};
use hyper::header::{CONTENT_ENCODING, HeaderMap, HeaderValue};
use plimsoll_serving::room::{Seat, Served};
use std::io::{self, Read as _};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest time that the body of a request may take to arrive.
const BODY: Duration = Duration::from_secs(60);
/// Limits of size and time for an unwanted body.
const MAX_DISCARDED_BYTES: usize = 128 << 20;
const DISCARD: Duration = Duration::from_secs(10);
/// Unwanted bodies that are waited for at a time. Meanwhile the connection of each has buffers of 64 to 128 KiB.
const DISCARDED_MAX: usize = 2000;
/// Bytes of request bodies that all ports together hold at a time.
pub const BUDGET_BYTES: usize = 512 << 20;
/// Bytes that are unpacked at once.
const UNPACKED_BYTES: usize = 64 << 10;
/// Steps in which the budget is taken, so that small bodies cost one step.
const STEP_BYTES: usize = 4096;

/// Reason why a body was not accepted.
pub struct BodyError {
    /// The status to answer with.
    pub status: StatusCode,
    /// The reason.
    pub message: String,
}

impl BodyError {
    fn new(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, message: message.into() }
    }

    fn too_large(size: usize, limit: usize) -> Self {
        let message = format!(
            "Document operation request size {size} bytes exceeds maximum size of {limit} bytes. \
             See https://docs.vespa.ai/en/reference/document-v1-api-reference.html"
        );
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    fn no_room(reason: NoRoom) -> Self {
        let status = match reason {
            NoRoom::TooMuch(_) => StatusCode::PAYLOAD_TOO_LARGE,
            NoRoom::Busy(_) => StatusCode::TOO_MANY_REQUESTS,
        };
        Self::new(status, reason.to_string())
    }

    fn overload() -> Self {
        let message =
            format!("Rejecting execution due to overload: {BUDGET_BYTES} bytes already enqueued");
        Self::new(StatusCode::TOO_MANY_REQUESTS, message)
    }
}

/// The memory of all ports together: for bodies, and for what is read from them.
pub struct Budget {
    bodies: Arc<Semaphore>,
    /// A permit for each unwanted body that is waited for.
    discarded: Semaphore,
    parsed: ParsedRoom,
}

impl Default for Budget {
    fn default() -> Self {
        let bodies = Arc::new(Semaphore::new(BUDGET_BYTES / STEP_BYTES));
        let discarded = Semaphore::new(DISCARDED_MAX);
        Self { bodies, discarded, parsed: ParsedRoom::default() }
    }
}

/// A whole body. Its share of the budget is returned when it is dropped.
pub struct WholeBody {
    /// The body, unpacked.
    pub bytes: Bytes,
    /// Its share of the budget.
    pub held: Held,
}

/// A share of the budget.
pub struct Held {
    budget: Arc<Budget>,
    permit: Option<OwnedSemaphorePermit>,
    bytes: usize,
    /// For what is read from the body.
    parsed: Option<OwnedSemaphorePermit>,
}

impl Held {
    fn none(budget: Arc<Budget>) -> Self {
        Self { budget, permit: None, bytes: 0, parsed: None }
    }

    /// Reserves the memory of what is read from the body, in bytes.
    ///
    /// # Errors
    /// When the requests in progress leave none, or it is more than any request may take.
    pub fn reserve(&mut self, bytes: usize) -> Result<(), BodyError> {
        self.parsed = self.budget.parsed.take(bytes).map_err(BodyError::no_room)?;
        Ok(())
    }

    /// Reserves the budget for a body of this many bytes.
    fn cover(&mut self, bytes: usize) -> Result<(), BodyError> {
        let steps = bytes.div_ceil(STEP_BYTES) - self.bytes.div_ceil(STEP_BYTES);
        self.bytes = bytes;
        if steps == 0 {
            return Ok(());
        }
        let steps = u32::try_from(steps).map_err(|_| BodyError::overload())?;
        let more = Arc::clone(&self.budget.bodies).try_acquire_many_owned(steps);
        let more = more.map_err(|_| BodyError::overload())?;
        match &mut self.permit {
            Some(permit) => permit.merge(more),
            None => self.permit = Some(more),
        }
        Ok(())
    }
}

/// The body of a request, as far as it was not read.
pub struct Body {
    incoming: Incoming,
    budget: Arc<Budget>,
    seat: Arc<Seat>,
    /// There once the request has arrived whole.
    served: Option<Served>,
}

impl Body {
    /// A body that takes what it holds from a budget.
    pub fn new(incoming: Incoming, budget: &Arc<Budget>, seat: &Arc<Seat>) -> Self {
        let served = incoming.is_end_stream().then(|| seat.serve());
        Self { incoming, budget: Arc::clone(budget), seat: Arc::clone(seat), served }
    }

    /// Reads the whole body, unpacked when it is gzip. The limit holds for both forms.
    pub async fn read(
        &mut self,
        headers: &HeaderMap,
        max_bytes: usize,
    ) -> Result<WholeBody, BodyError> {
        let mut held = Held::none(Arc::clone(&self.budget));
        let reading = collect(&mut self.incoming, max_bytes, &mut held);
        let collected = tokio::time::timeout(BODY, reading);
        let bytes = collected.await.unwrap_or_else(|_| {
            let message = "The request body took too long to arrive";
            Err(BodyError::new(StatusCode::REQUEST_TIMEOUT, message))
        })?;
        self.served.get_or_insert_with(|| self.seat.serve());
        match headers.get(CONTENT_ENCODING).map(HeaderValue::as_bytes) {
            None | Some(b"identity") => Ok(WholeBody { bytes, held }),
            Some(b"gzip") => {
                let unpacked = unpack(&bytes, max_bytes, &mut held)?;
                Ok(WholeBody { bytes: unpacked.into(), held })
            }
            Some(_) => {
                let message = "The Content-Encoding is not supported: use gzip or none";
                Err(BodyError::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message))
            }
        }
    }

    /// Takes what was not read and throws it away, within limits. A reply that overtakes its
    /// request is followed by a reset, of the stream over HTTP/2 and of the connection over
    /// HTTP/1.1, in which some clients lose the reply (curl 7.88 is one over HTTP/2).
    pub async fn discard(&mut self) {
        if self.incoming.is_end_stream() {
            return;
        }
        // Whoever comes when too many are waited for gets the reply at once, too.
        let Ok(_permit) = self.budget.discarded.try_acquire() else { return };
        let discarding = async {
            let mut size = 0;
            while let Some(Ok(frame)) = self.incoming.frame().await {
                size += frame.data_ref().map_or(0, Bytes::len);
                if size > MAX_DISCARDED_BYTES {
                    break;
                }
            }
        };
        // Whoever is slower than this gets the reply at once.
        let _ = tokio::time::timeout(DISCARD, discarding).await;
    }
}

async fn collect(
    incoming: &mut Incoming,
    max_bytes: usize,
    held: &mut Held,
) -> Result<Bytes, BodyError> {
    let announced =
        incoming.size_hint().exact().map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    if let Some(size) = announced.filter(|size| *size > max_bytes) {
        return Err(BodyError::too_large(size, max_bytes));
    }
    let mut arriving = Arriving::default();
    while let Some(frame) = incoming.frame().await {
        let did_not_arrive = |reason: &dyn std::fmt::Display| {
            let message = format!("The request body did not arrive: {reason}");
            BodyError::new(StatusCode::BAD_REQUEST, message)
        };
        let Ok(data) = frame.map_err(|failure| did_not_arrive(&failure))?.into_data() else {
            continue;
        };
        let size = arriving.len() + data.len();
        if size > max_bytes {
            return Err(BodyError::too_large(size, max_bytes));
        }
        held.cover(size)?;
        arriving.add(data, announced).map_err(|failure| match failure.kind() {
            io::ErrorKind::OutOfMemory => BodyError::overload(),
            _ => did_not_arrive(&failure),
        })?;
    }
    Ok(arriving.whole())
}

/// Unpacks a body in steps, each covered by the budget before it is kept: a thousand packed bombs must not be unpacked first
/// and rejected afterwards.
fn unpack(bytes: &[u8], max_bytes: usize, held: &mut Held) -> Result<Vec<u8>, BodyError> {
    // A body may have several members, one behind the other (RFC 1952, 2.2).
    let mut decoder = MultiGzDecoder::new(bytes);
    let mut unpacked = Vec::new();
    let mut piece = vec![0; UNPACKED_BYTES];
    loop {
        let count = decoder.read(&mut piece).map_err(|failure| {
            let message = format!("The request body is not gzip: {failure}");
            BodyError::new(StatusCode::BAD_REQUEST, message)
        })?;
        if count == 0 {
            return Ok(unpacked);
        }
        let size = unpacked.len() + count;
        if size > max_bytes {
            return Err(BodyError::too_large(size, max_bytes));
        }
        // The packed bytes are still there.
        held.cover(bytes.len() + size)?;
        unpacked.extend_from_slice(&piece[..count]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::Compression;
    use flate2::write::GzEncoder;
    use hyper::service::service_fn;
    use hyper::{Request, Response};
    use hyper_util::rt::TokioIo;
    use plimsoll_serving::room::Room;
    use std::io::Write as _;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::{TcpListener, TcpStream};

    #[test]
    fn all_members_of_a_compressed_body_are_read_and_nothing_else() {
        let member = |text: &str| {
            let mut packer = GzEncoder::new(Vec::new(), Compression::default());
            packer.write_all(text.as_bytes()).unwrap();
            packer.finish().unwrap()
        };
        let unpacked = |bytes: &[u8]| {
            let mut held = Held::none(Arc::new(Budget::default()));
            unpack(bytes, 1 << 20, &mut held).map_err(|error| error.message)
        };
        let both = [member("one "), member("two")].concat();
        assert_eq!(unpacked(&both).unwrap(), b"one two");
        assert!(unpacked(&[&both[..], b"garbage"].concat()).is_err());
        assert!(unpacked(&both[..both.len() - 1]).is_err());
        assert!(unpacked(b"").is_err(), "no member");
    }

    /// A client whose request lacks its last byte, and that a server refuses.
    async fn refused(budget: &Arc<Budget>) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let server = listener.accept().await.unwrap().0;
        let (budget, seat) = (Arc::clone(budget), Arc::new(Room::new(1).seat().await));
        let service = service_fn(move |request: Request<Incoming>| {
            let mut body = Body::new(request.into_body(), &budget, &seat);
            async move {
                body.discard().await;
                Response::builder().status(429).body(String::new())
            }
        });
        let connection = hyper::server::conn::http1::Builder::new();
        tokio::spawn(connection.serve_connection(TokioIo::new(server), service));
        let request = b"POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 10\r\n\r\n123456789";
        client.write_all(request).await.unwrap();
        client
    }

    /// The first bytes of the reply, unless it does not come within this time.
    async fn reply(client: &mut TcpStream, within: Duration) -> Option<String> {
        let mut bytes = [0; 12];
        let read = tokio::time::timeout(within, client.read_exact(&mut bytes)).await.ok()?;
        read.unwrap();
        Some(String::from_utf8(bytes.to_vec()).unwrap())
    }

    #[tokio::test]
    async fn a_refused_body_is_waited_for_unless_too_many_are() {
        let discarded = Semaphore::new(1);
        let budget = Arc::new(Budget { discarded, ..Budget::default() });
        let mut first = refused(&budget).await;
        assert_eq!(reply(&mut first, Duration::from_millis(200)).await, None);
        let (long, refusal) = (Duration::from_secs(5), Some("HTTP/1.1 429".to_owned()));
        let mut second = refused(&budget).await;
        assert_eq!(reply(&mut second, long).await, refusal, "there is no room to wait for it");
        first.write_all(b"0").await.unwrap();
        assert_eq!(reply(&mut first, long).await, refusal);
        let mut third = refused(&budget).await;
        assert_eq!(reply(&mut third, Duration::from_millis(200)).await, None, "there is again");
    }
}
