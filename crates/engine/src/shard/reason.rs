//! The reason of a failure, on its way to the sample that is kept of it.

use crate::tls::TlsRefusal;
use plimsoll_core::outcome::Cause;
use plimsoll_wire::Fault;
use std::borrow::Cow;

/// The reason in words, and what is known of its cause.
#[derive(Clone, Debug)]
pub(super) struct Reason<'a> {
    /// In words.
    pub text: Cow<'a, str>,
    /// Its cause.
    pub cause: Cause,
}

impl<'a> From<&'a str> for Reason<'a> {
    fn from(text: &'a str) -> Self {
        Self { text: text.into(), cause: Cause::Unknown }
    }
}

impl<'a> From<&'a String> for Reason<'a> {
    fn from(text: &'a String) -> Self {
        text.as_str().into()
    }
}

impl From<String> for Reason<'_> {
    fn from(text: String) -> Self {
        Self { text: text.into(), cause: Cause::Unknown }
    }
}

impl<'a> From<&'a Reason<'_>> for Reason<'a> {
    fn from(reason: &'a Reason<'_>) -> Self {
        Self { text: (&*reason.text).into(), cause: reason.cause }
    }
}

impl From<Fault> for Reason<'_> {
    fn from(fault: Fault) -> Self {
        Self { text: fault.text().into(), cause: fault.cause() }
    }
}

impl From<&TlsRefusal> for Reason<'_> {
    fn from(refusal: &TlsRefusal) -> Self {
        Self { text: refusal.to_string().into(), cause: refusal.cause() }
    }
}
