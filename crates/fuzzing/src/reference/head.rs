//! Heads of HTTP/1.1 as httparse reads them.

/// Names and values in their order.
pub type Fields = Vec<(Vec<u8>, Vec<u8>)>;

fn owned(headers: &[httparse::Header<'_>]) -> Fields {
    headers.iter().map(|field| (field.name.as_bytes().to_vec(), field.value.to_vec())).collect()
}

/// Status and fields of a head that is whole.
#[must_use]
pub fn reply(bytes: &[u8]) -> Option<(u16, Fields)> {
    let mut headers = [httparse::EMPTY_HEADER; 64];
    let mut response = httparse::Response::new(&mut headers);
    let is_whole = response.parse(bytes).is_ok_and(|status| status.is_complete());
    let status = response.code.filter(|_| is_whole)?;
    Some((status, owned(response.headers)))
}

/// Length, method and target of a request's head that is whole.
#[must_use]
pub fn request(bytes: &[u8]) -> Option<(usize, String)> {
    let mut headers = [httparse::EMPTY_HEADER; 128];
    let mut request = httparse::Request::new(&mut headers);
    let Ok(httparse::Status::Complete(length)) = request.parse(bytes) else { return None };
    Some((length, format!("{} {}", request.method?, request.path?)))
}
