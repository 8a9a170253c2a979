//! Identification of a service that is not the expected database, by its first bytes.

use plimsoll_engine::target::Target;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

/// Longest wait for the first bytes of a service.
const PATIENCE: Duration = Duration::from_secs(1);
/// Bytes that tell one service from another.
const LOOKED_AT: usize = 64;
/// Request that makes a silent web server answer.
const HTTP_QUESTION: &[u8] = b"GET / HTTP/1.0\r\n\r\n";

/// Names a service by what it says first.
fn name(said: &[u8]) -> Option<&'static str> {
    let begins = |with: &[u8]| said.starts_with(with);
    Some(match said {
        _ if begins(b"HTTP/") => "a web server (HTTP)",
        _ if begins(b"SSH-") => "an SSH server",
        _ if begins(b"RFB ") => "a VNC server",
        _ if begins(b"-ERR") || begins(b"-DENIED") => "Redis, or something like it",
        _ if begins(b"220 ") || begins(b"220-") => "a mail or FTP server",
        [0x15 | 0x16, 0x03, ..] => "a server that expects TLS",
        // An ErrorResponse: its length, then the severity.
        [b'E', 0, 0, _, _, b'S', ..] => "PostgreSQL",
        // A packet's length, its number, and version 10 of the greeting.
        [_, _, 0, 0, 0x0a, ..] => "MySQL, or something like it",
        // A frame of version 0 with a code: the answer to a login.
        [0, 0, 0, length, 0, ..] if *length >= 2 => "a server of VoltDB's protocol",
        _ => return None,
    })
}

/// Description of the service at `target`: a web server, say. `hello` is what the right one would have understood.
/// Takes a few seconds at most.
#[must_use]
pub fn looks_like(target: &Target, hello: &[u8]) -> String {
    let mut heard = Vec::new();
    for question in [hello, HTTP_QUESTION] {
        heard = ask(target, question);
        if let Some(name) = name(&heard) {
            return format!("it looks like {name}");
        }
        if !heard.is_empty() {
            break;
        }
    }
    if heard.is_empty() {
        return "it accepts connections and sends nothing".to_owned();
    }
    let begins: String = heard
        .iter()
        .take(16)
        .map(|&byte| if byte.is_ascii_graphic() { char::from(byte) } else { '.' })
        .collect();
    format!("its answer begins with '{begins}', which is no known protocol")
}

fn ask(target: &Target, question: &[u8]) -> Vec<u8> {
    let mut heard = vec![0; LOOKED_AT];
    let mut length = 0;
    for address in &target.addresses {
        let Ok(mut stream) = TcpStream::connect_timeout(address, PATIENCE) else { continue };
        let _ = stream.set_read_timeout(Some(PATIENCE));
        let _ = stream.set_write_timeout(Some(PATIENCE));
        // A service that closes at once may have sent the reason before.
        let _ = stream.write_all(question);
        while length < heard.len() {
            match stream.read(&mut heard[length..]) {
                Ok(read) if read > 0 => length += read,
                _ => break,
            }
            if name(&heard[..length]).is_some() {
                break;
            }
        }
        break;
    }
    heard.truncate(length);
    heard
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    #[test]
    fn services_are_known_by_their_first_bytes() {
        let cases: [(&[u8], &str); 6] = [
            (b"HTTP/1.1 400 Bad Request", "web server"),
            (b"SSH-2.0-OpenSSH_9.2", "SSH"),
            (&[0x15, 3, 1, 0, 2, 2, 70], "TLS"),
            (b"E\0\0\0\x8dSFATAL\0", "PostgreSQL"),
            (b"J\0\0\0\x0a8.0.36\0", "MySQL"),
            (&[0, 0, 0, 2, 0, 0xff], "VoltDB"),
        ];
        for (said, part) in cases {
            assert!(name(said).unwrap().contains(part), "{said:?}");
        }
        assert_eq!(name(b"hello"), None);
    }

    #[test]
    fn a_silent_one_is_given_up_and_an_unknown_one_quoted() {
        for (says, part) in [(&b""[..], "sends nothing"), (b"who are you?\x07", "'who.are.you?.'")]
        {
            let listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let port = listener.local_addr().unwrap().port();
            let thread = std::thread::spawn(move || {
                // The second look comes on a connection of its own, and only after silence.
                for _ in 0..if says.is_empty() { 2 } else { 1 } {
                    let (mut stream, _) = listener.accept().unwrap();
                    stream.write_all(says).unwrap();
                    let mut rest = Vec::new();
                    let _ = stream.read_to_end(&mut rest);
                }
            });
            let told = looks_like(&Target::resolve("127.0.0.1", port), b"\0\0\0\x01");
            assert!(told.contains(part), "{told}");
            thread.join().unwrap();
        }
    }
}
