//! Calls as a client writes them.

use super::frame::FRAME_HEAD_BYTES;
use super::kind::Kind;
use super::scan::{patch_length, put_counted};
use super::value::{Value, put_null};

/// The form of a call, and what only some forms can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// 0, 1 or 2. Version 0 carries none of the others, version 1 only the timeout of batches.
    pub version: u8,
    /// Longest time that a batch of statements may take, ms; 0 is without limit.
    pub timeout_ms: Option<i32>,
    /// True if the procedure is to run once at each partition.
    pub all_partitions: bool,
    /// The partition that it is meant for.
    pub partition: Option<i32>,
    /// True if it is one of a batch that is loaded.
    pub is_batch: bool,
    /// From 1, the most urgent, to 8.
    pub priority: Option<i8>,
    /// Time that the caller waits, us.
    pub request_timeout_us: Option<i32>,
}

impl Default for Form {
    /// Version 2 without extensions.
    fn default() -> Self {
        Self {
            version: 2,
            timeout_ms: None,
            all_partitions: false,
            partition: None,
            is_batch: false,
            priority: None,
            request_timeout_us: None,
        }
    }
}

/// One call, rendered but for its handle, which is written when it is submitted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Request {
    bytes: Vec<u8>,
    /// Position of the handle.
    handle_at: usize,
    /// Position of the count of parameters.
    count_at: usize,
    count: u16,
    key: Option<i64>,
}

impl Request {
    /// Becomes a call of this procedure, in version 2.
    ///
    /// # Panics
    /// In debug builds, as [`Request::param`] does.
    #[inline]
    pub fn call(&mut self, procedure: &str, params: &[Value<'_>]) {
        self.begin(procedure, &Form::default());
        for param in params {
            param.put_typed(&mut self.bytes);
        }
        self.counted(params.len());
    }

    /// Becomes a call of this procedure without parameters yet, in this form.
    #[inline]
    pub fn begin(&mut self, procedure: &str, form: &Form) {
        let out = &mut self.bytes;
        out.clear();
        self.key = None;
        self.count = 0;
        out.extend_from_slice(&[0; FRAME_HEAD_BYTES]);
        out.push(form.version);
        if form.version == 1 {
            match form.timeout_ms {
                Some(timeout_ms) => {
                    out.push(1);
                    out.extend_from_slice(&timeout_ms.to_be_bytes());
                }
                None => out.push(-1i8 as u8),
            }
        }
        put_counted(Some(procedure.as_bytes()), out);
        self.handle_at = out.len();
        out.extend_from_slice(&[0; 8]);
        if form.version == 2 {
            put_extensions(form, out);
        }
        self.count_at = out.len();
        out.extend_from_slice(&[0; 2]);
        patch_length(0, out);
    }

    /// Appends a parameter; null goes without a type.
    ///
    /// # Panics
    /// In debug builds, when there are 32,767 already.
    #[inline]
    pub fn param(&mut self, value: &Value<'_>) -> &mut Self {
        value.put_typed(&mut self.bytes);
        self.counted(1)
    }

    /// Position of the next parameter, for [`Request::replace`].
    #[must_use]
    pub const fn next_place(&self) -> ParamPlace {
        ParamPlace(self.bytes.len())
    }

    /// Puts another whole number where one of the same type stands: calls that differ in nothing else are copied from one that
    /// was rendered once.
    ///
    /// # Panics
    /// In debug builds, when there is no parameter of that type there, or the value is none that has a number's length.
    #[inline]
    pub fn replace(&mut self, place: ParamPlace, value: &Value<'_>) {
        let (kind, rest) = match self.bytes.get_mut(place.0..) {
            Some([kind, rest @ ..]) => (*kind, rest),
            _ => (0, Default::default()),
        };
        debug_assert_eq!(kind, value.kind().code() as u8, "no such parameter at {}", place.0);
        match value {
            Value::Integer(number) => write_over(rest, number.to_be_bytes()),
            Value::BigInt(number) => write_over(rest, number.to_be_bytes()),
            _ => debug_assert!(false, "{value:?} is not replaced"),
        }
    }

    /// Appends a null of this type.
    ///
    /// # Panics
    /// As [`Request::param`].
    pub fn null(&mut self, kind: Kind) -> &mut Self {
        self.bytes.push(kind.code() as u8);
        put_null(kind, &mut self.bytes);
        self.counted(1)
    }

    /// Adds this number of parameters.
    #[inline]
    fn counted(&mut self, more: usize) -> &mut Self {
        let most = i16::MAX as usize;
        debug_assert!(
            usize::from(self.count) + more <= most,
            "more parameters than can be counted"
        );
        self.count += more as u16;
        self.bytes[self.count_at..self.count_at + 2].copy_from_slice(&self.count.to_be_bytes());
        patch_length(0, &mut self.bytes);
        self
    }

    /// Says by which number the call is partitioned, for whoever chooses its connection. It is not sent.
    #[inline]
    pub fn partition(&mut self, key: i64) {
        self.key = Some(key);
    }

    /// The number by which the call is partitioned, where that was said.
    #[must_use]
    pub const fn partition_key(&self) -> Option<i64> {
        self.key
    }

    /// Becomes the same as `other` without allocating once there is room.
    #[inline]
    pub fn copy_from(&mut self, other: &Request) {
        self.bytes.clone_from(&other.bytes);
        self.handle_at = other.handle_at;
        self.count_at = other.count_at;
        self.count = other.count;
        self.key = other.key;
    }

    /// The message with its length, the handle being 0.
    #[must_use]
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// Appends the message with this handle.
    #[inline]
    pub fn put(&self, handle: i64, out: &mut Vec<u8>) {
        debug_assert!(!self.bytes.is_empty(), "a request without a call");
        let at = out.len() + self.handle_at;
        out.extend_from_slice(&self.bytes);
        if let Some(place) = out.get_mut(at..at + 8) {
            place.copy_from_slice(&handle.to_be_bytes());
        }
    }
}

/// Position of a parameter in a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ParamPlace(usize);

#[inline]
fn write_over<const N: usize>(rest: &mut [u8], bytes: [u8; N]) {
    if let Some(place) = rest.first_chunk_mut::<N>() {
        *place = bytes;
    }
}

/// The count of extensions and each of them.
#[inline]
fn put_extensions(form: &Form, out: &mut Vec<u8>) {
    let at = out.len();
    out.push(0);
    let mut put = |kind: u8, size: u8, payload: &[u8]| {
        out.extend_from_slice(&[kind, size]);
        out.extend_from_slice(payload);
        out[at] += 1;
    };
    if let Some(timeout_ms) = form.timeout_ms {
        put(1, 3, &timeout_ms.to_be_bytes());
    }
    if form.all_partitions {
        put(2, 0, &[]);
    }
    if let Some(partition) = form.partition {
        put(3, 3, &partition.to_be_bytes());
    }
    if form.is_batch {
        put(4, 0, &[]);
    }
    if let Some(priority) = form.priority {
        put(5, 1, &priority.to_be_bytes());
    }
    if let Some(timeout_us) = form.request_timeout_us {
        put(6, 3, &timeout_us.to_be_bytes());
    }
}
