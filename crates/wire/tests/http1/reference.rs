//! A second reader of replies: slow, plain, and over the whole stream at once. It shares no code
//! with the codec, so that a mistake has to be made twice to go unseen.

use plimsoll_wire::http1::{Encoding, Limits};

use crate::session::Seen;

/// How a conversation ended for the reference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The last reply was ended by the close.
    Clean,
    Protocol,
    Closed {
        began: bool,
    },
    /// The stream ended inside a line. A reader that looks at lines as they grow may have found
    /// fault already; one that waits for their end has not.
    InsideLine,
}

enum Stop {
    Protocol,
    /// The stream ended in a part that is read byte by byte.
    Short,
    InsideLine,
}

type Parsed<T> = Result<T, Stop>;

/// What `requests` (true for HEAD) are answered in `stream`, everything kept.
pub fn read(stream: &[u8], requests: &[bool], limits: &Limits) -> (Vec<Seen>, End) {
    let mut seen: Vec<Seen> = Vec::new();
    let mut rest = stream;
    for (index, &to_head) in requests.iter().enumerate() {
        if !seen.last().is_none_or(|reply| reply.reusable) {
            break;
        }
        let mut interim = false;
        let mut blanks = 0;
        loop {
            while let [b'\r' | b'\n', tail @ ..] = rest {
                blanks += 1;
                rest = tail;
            }
            if blanks > 16 {
                return (seen, End::Protocol);
            }
            if rest.is_empty() {
                return (seen, End::Closed { began: interim });
            }
            match reply(rest, to_head, limits) {
                Err(Stop::Protocol) => return (seen, End::Protocol),
                Err(Stop::Short) => return (seen, End::Closed { began: true }),
                Err(Stop::InsideLine) => return (seen, End::InsideLine),
                Ok((reply, _)) if reply.status == 101 => return (seen, End::Protocol),
                Ok((reply, used)) => {
                    rest = &rest[used..];
                    if reply.status >= 200 {
                        let by_close = reply.tag == BY_CLOSE;
                        seen.push(Seen { tag: index as u32 + 7, ..reply });
                        if by_close {
                            return (seen, End::Clean);
                        }
                        break;
                    }
                    interim = true;
                }
            }
        }
    }
    let blank = rest.iter().all(|byte| b"\r\n".contains(byte)) && rest.len() <= 16;
    (seen, if blank { End::Closed { began: false } } else { End::Protocol })
}

/// The tag of a reply that the close ends.
const BY_CLOSE: u32 = u32::MAX;

fn reply(bytes: &[u8], to_head: bool, limits: &Limits) -> Parsed<(Seen, usize)> {
    let begin = b"HTTP/1.";
    if bytes.iter().zip(begin).any(|(a, b)| a != b) {
        return Err(Stop::Protocol);
    }
    let lines = head_lines(bytes)?;
    let head_len: usize = lines.iter().map(|line| line.len()).sum();
    if bytes[..head_len].contains(&0) {
        return Err(Stop::Protocol);
    }
    let status_line = text(lines[0]);
    let fields_bytes: Vec<u8> = lines[1..lines.len() - 1].concat();
    let fields = fields(&lines[1..lines.len() - 1])?;

    let minor = status_line.as_bytes().get(7).copied().unwrap_or(0);
    let shape = status_line.get(8..9) == Some(" ")
        && minor.is_ascii_digit()
        && status_line.get(9..12).is_some_and(|s| s.bytes().all(|b| b.is_ascii_digit()));
    let behind = status_line.as_bytes().get(12).copied();
    if !shape || !matches!(behind, Some(b' ' | b'\r' | b'\n')) {
        return Err(Stop::Protocol);
    }
    let status: u16 = status_line[9..12].parse().map_err(|_| Stop::Protocol)?;
    if status < 100 {
        return Err(Stop::Protocol);
    }

    let connection = list(&fields, "connection");
    let has = |token: &str| connection.iter().any(|t| t == token);
    let version_keeps = if minor == b'0' { has("keep-alive") } else { true };
    let transfer: Vec<String> = list(&fields, "transfer-encoding")
        .iter()
        .map(|t| t.split(';').next().unwrap_or("").trim_matches(BLANKS).to_string())
        .filter(|t| t != "identity")
        .collect();
    let lengths: Vec<&str> =
        fields.iter().filter(|f| f.0 == "content-length").map(|f| &f.1[..]).collect();
    let doubtful = !transfer.is_empty() && (!lengths.is_empty() || minor == b'0');
    let mut reply = Seen {
        tag: 0,
        status,
        head: fields_bytes,
        body: Vec::new(),
        encoding: encoding(&fields, &transfer),
        body_bytes: 0,
        truncated: false,
        reusable: version_keeps && !has("close") && !doubtful,
    };
    let rest = &bytes[head_len..];
    let used = if to_head || status < 200 || status == 204 || status == 304 {
        0
    } else if let Some((last, before)) = transfer.split_last() {
        if before.iter().any(|t| t == "chunked") {
            return Err(Stop::Protocol);
        }
        if last == "chunked" {
            chunks(rest, limits, &mut reply.body)?
        } else {
            until_close(rest, limits, &mut reply)?
        }
    } else if lengths.is_empty() {
        until_close(rest, limits, &mut reply)?
    } else {
        let length = length(&lengths.join(",")).ok_or(Stop::Protocol)?;
        if length > limits.body_bytes {
            return Err(Stop::Protocol);
        }
        let length = length as usize;
        reply.body = rest.get(..length).ok_or(Stop::Short)?.to_vec();
        length
    };
    reply.body_bytes = reply.body.len() as u64;
    Ok((reply, head_len + used))
}

/// The lines of a head with their ends; the last of them is the empty one.
fn head_lines(bytes: &[u8]) -> Parsed<Vec<&[u8]>> {
    let mut lines = Vec::new();
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        if !line.ends_with(b"\n") {
            break;
        }
        lines.push(line);
        if line == b"\n" || line == b"\r\n" {
            return Ok(lines);
        }
    }
    Err(Stop::InsideLine)
}

const BLANKS: &[char] = &[' ', '\t', '\r', '\n'];

fn text(bytes: &[u8]) -> String {
    bytes.iter().map(|&byte| byte as char).collect()
}

/// Names in lower case, values with their folded lines.
fn fields(lines: &[&[u8]]) -> Parsed<Vec<(String, String)>> {
    let mut fields: Vec<(String, String)> = Vec::new();
    for line in lines {
        let line = text(line);
        if line.starts_with([' ', '\t']) {
            fields.last_mut().ok_or(Stop::Protocol)?.1.push_str(&line);
            continue;
        }
        let (name, value) = line.split_once(':').ok_or(Stop::Protocol)?;
        let name = name.trim_end_matches([' ', '\t']);
        if name.is_empty() || !name.chars().all(|c| ('!'..='\x7f').contains(&c)) {
            return Err(Stop::Protocol);
        }
        fields.push((name.to_ascii_lowercase(), value.to_string()));
    }
    Ok(fields)
}

fn list(fields: &[(String, String)], name: &str) -> Vec<String> {
    let values = fields.iter().filter(|field| field.0 == name);
    let tokens = values.flat_map(|field| field.1.split(','));
    let tokens = tokens.map(|token| token.trim_matches(BLANKS).to_ascii_lowercase());
    tokens.filter(|token| !token.is_empty()).collect()
}

fn encoding(fields: &[(String, String)], transfer: &[String]) -> Encoding {
    let mut codings = list(fields, "content-encoding");
    codings.extend(transfer.iter().filter(|t| *t != "chunked").cloned());
    codings.retain(|coding| coding != "identity");
    match &codings[..] {
        [] => Encoding::Identity,
        [one] if one == "gzip" || one == "x-gzip" => Encoding::Gzip,
        [one] if one == "deflate" => Encoding::Deflate,
        _ => Encoding::Other,
    }
}

fn length(values: &str) -> Option<u64> {
    let mut lengths = Vec::new();
    for value in values.split(',') {
        let digits = value.trim_matches(BLANKS);
        if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_digit()) {
            return None;
        }
        lengths.push(digits.parse::<u64>().ok()?);
    }
    lengths.windows(2).all(|pair| pair[0] == pair[1]).then(|| lengths[0])
}

fn until_close(rest: &[u8], limits: &Limits, reply: &mut Seen) -> Parsed<usize> {
    if rest.len() as u64 > limits.body_bytes {
        return Err(Stop::Protocol);
    }
    reply.body = rest.to_vec();
    reply.reusable = false;
    reply.tag = BY_CLOSE;
    Ok(rest.len())
}

fn chunks(bytes: &[u8], limits: &Limits, body: &mut Vec<u8>) -> Parsed<usize> {
    let mut at = 0;
    loop {
        let line = line_at(bytes, at)?;
        at += line.len();
        let line = text(&line[..line.len() - 1]);
        let plain = match line.split_once(';') {
            Some((plain, _)) => plain,
            None => line.strip_suffix('\r').unwrap_or(&line),
        };
        let digits = plain.trim_end_matches([' ', '\t']);
        if digits.is_empty() || !digits.chars().all(|c| c.is_ascii_hexdigit()) {
            return Err(Stop::Protocol);
        }
        let size = u64::from_str_radix(digits, 16).map_err(|_| Stop::Protocol)?;
        if size > limits.body_bytes - body.len() as u64 {
            return Err(Stop::Protocol);
        }
        if size == 0 {
            break;
        }
        let size = size as usize;
        body.extend_from_slice(bytes.get(at..at + size).ok_or(Stop::Short)?);
        at += size;
        at += match &bytes[at..] {
            [b'\r', b'\n', ..] => 2,
            [b'\n', ..] => 1,
            [] | [b'\r'] => return Err(Stop::Short),
            _ => return Err(Stop::Protocol),
        };
    }
    loop {
        let line = line_at(bytes, at)?;
        at += line.len();
        if line == b"\n" || line == b"\r\n" {
            return Ok(at);
        }
        if line[0] == b'\r' {
            return Err(Stop::Protocol);
        }
    }
}

fn line_at(bytes: &[u8], at: usize) -> Parsed<&[u8]> {
    let line = bytes[at..].split_inclusive(|&byte| byte == b'\n').next().unwrap_or(b"");
    if line.ends_with(b"\n") { Ok(line) } else { Err(Stop::InsideLine) }
}
