//! Memory for the forms that requests have and for the replies that clients have not taken, of all connections together: a thousand
//! clients that send most of a form, or read nothing, would have gigabytes of it.

use http_body_util::BodyExt;
use hyper::body::{Body, Bytes};
use std::sync::Arc;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Bytes of one form.
pub(super) const FORM_BYTES_MAX: usize = 2 << 20;
/// Bytes of all forms, and of all replies.
const FORMS_BYTES: usize = 128 << 20;
const REPLIES_BYTES: usize = 256 << 20;
/// Steps in which they are counted.
const STEP_BYTES: usize = 4096;

/// The memory that is left.
pub(super) struct Memory {
    forms: Arc<Semaphore>,
    replies: Arc<Semaphore>,
}

/// A form, which takes up memory until it is dropped.
pub(super) struct Form {
    pub(super) text: String,
    _share: Option<OwnedSemaphorePermit>,
}

/// Reason why a form is not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unread {
    /// It is too long, is no UTF-8, or broke off.
    Unreadable,
    /// Others leave no memory for it.
    Busy,
}

/// The bytes of a reply with their share of the memory.
struct Counted {
    bytes: Vec<u8>,
    _share: Option<OwnedSemaphorePermit>,
}

impl AsRef<[u8]> for Counted {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Default for Memory {
    fn default() -> Self {
        let room = |bytes: usize| Arc::new(Semaphore::new(bytes / STEP_BYTES));
        Self { forms: room(FORMS_BYTES), replies: room(REPLIES_BYTES) }
    }
}

fn take(room: &Arc<Semaphore>, bytes: usize) -> Option<Option<OwnedSemaphorePermit>> {
    match u32::try_from(bytes / STEP_BYTES) {
        Ok(0) => Some(None),
        Ok(steps) => Arc::clone(room).try_acquire_many_owned(steps).ok().map(Some),
        Err(_) => None,
    }
}

impl Memory {
    /// Reads a form. Its memory is taken as it arrives.
    ///
    /// # Errors
    /// When it cannot be read, or there is no memory for it.
    pub(super) async fn form<B>(&self, mut body: B) -> Result<Form, Unread>
    where
        B: Body<Data = Bytes> + Unpin,
    {
        let (mut bytes, mut share) = (Vec::new(), None);
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|_| Unread::Unreadable)?;
            let Ok(data) = frame.into_data() else { continue };
            let length = bytes.len() + data.len();
            if length > FORM_BYTES_MAX {
                return Err(Unread::Unreadable);
            }
            let more = length / STEP_BYTES - bytes.len() / STEP_BYTES;
            let more = take(&self.forms, more * STEP_BYTES).ok_or(Unread::Busy)?;
            match (&mut share, more) {
                (Some(share), Some(more)) => OwnedSemaphorePermit::merge(share, more),
                (share @ None, more) => *share = more,
                (Some(_), None) => {}
            }
            bytes.extend_from_slice(&data);
        }
        let text = String::from_utf8(bytes).map_err(|_| Unread::Unreadable)?;
        Ok(Form { text, _share: share })
    }

    /// The bytes of a reply, counted until the connection has taken them; nothing when too many replies wait.
    pub(super) fn reply(&self, bytes: Vec<u8>) -> Option<Bytes> {
        let share = take(&self.replies, bytes.len())?;
        Some(Bytes::from_owner(Counted { bytes, _share: share }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use http_body_util::Full;

    fn body(bytes: usize) -> Full<Bytes> {
        Full::new(Bytes::from(vec![b'a'; bytes]))
    }

    #[tokio::test]
    async fn forms_take_memory_until_they_are_dropped() {
        let memory = Memory::default();
        let mut forms = Vec::new();
        for _ in 0..FORMS_BYTES / FORM_BYTES_MAX {
            forms.push(memory.form(body(FORM_BYTES_MAX)).await.ok().unwrap());
        }
        let busy = memory.form(body(STEP_BYTES)).await.err();
        assert_eq!(busy, Some(Unread::Busy));
        assert_eq!(
            memory.form(body(STEP_BYTES - 1)).await.ok().unwrap().text.len(),
            STEP_BYTES - 1
        );
        forms.pop();
        assert!(memory.form(body(FORM_BYTES_MAX)).await.is_ok());
        let long = memory.form(body(FORM_BYTES_MAX + 1)).await.err();
        assert_eq!(long, Some(Unread::Unreadable));
        let bytes = memory.form(Full::new(Bytes::from_static(b"\xff"))).await.err();
        assert_eq!(bytes, Some(Unread::Unreadable));
    }

    #[test]
    fn replies_take_memory_until_they_are_taken() {
        let memory = Memory::default();
        let first = memory.reply(vec![b'a'; REPLIES_BYTES]).unwrap();
        assert!(memory.reply(vec![b'a'; STEP_BYTES]).is_none());
        assert_eq!(memory.reply(b"short".to_vec()).unwrap(), "short");
        drop(first);
        assert!(memory.reply(vec![b'a'; STEP_BYTES]).is_some());
    }
}
