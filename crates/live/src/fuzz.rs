//! The function of the fuzz target in `fuzz/`.

use crate::access::{has_own_host, has_token, parameter};
use http::{HeaderMap, HeaderName, HeaderValue};

/// Returns true if a request with this query and these header fields may see the page with this token.
#[must_use]
pub fn may(query: Option<&str>, fields: &[(&[u8], &[u8])], token: &str) -> bool {
    let mut headers = HeaderMap::new();
    for (name, value) in fields {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(name), HeaderValue::from_bytes(value))
        {
            headers.append(name, value);
        }
    }
    let _ = parameter(query, "last").and_then(|text| text.parse::<u64>().ok());
    has_own_host(&headers) && has_token(query, &headers, token)
}
