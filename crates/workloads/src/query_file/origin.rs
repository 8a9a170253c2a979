//! Lines that name a whole URL, where the requests of a file go to one server.

use crate::authority::Authority;
use crate::error::Problem;

/// Makes a line the request target that it means: a path stays, a URL of the only server becomes its path. vespa-fbench sends lines as
/// they are; files of other tools have whole URLs in them, or methods before them.
///
/// # Errors
/// The problem of the line, and the remedy.
pub(crate) fn to_path(target: &mut Vec<u8>, own: &[Authority]) -> Result<(), Problem> {
    if target.first() == Some(&b'/') {
        return Ok(());
    }
    let wrong = |what: String| Err(Problem::NotATarget(what));
    let shown = shown(target);
    let Some((tls, rest_at)) = scheme(target) else {
        return wrong(match target.first() {
            Some(b'{' | b'[') => format!(
                "'{shown}' is JSON instead of a URL; NDJSON has one object such as {{\"path\":\"/a\"}} on each line, from the \
                 first on and without [ ] around them"
            ),
            _ if has_method(target) => format!(
                "'{shown}' begins with a method; write the path only, and --method, or NDJSON for several methods"
            ),
            _ => format!("'{shown}' does not begin with '/'; write /{shown}, or a whole URL"),
        });
    };
    let [own] = own else {
        return wrong(format!(
            "'{shown}' is a whole URL, and requests go to several targets in turn; write the path only"
        ));
    };
    let end = target[rest_at..].iter().position(|b| b"/?#".contains(b));
    let path_at = end.map_or(target.len(), |at| rest_at + at);
    let authority = String::from_utf8_lossy(&target[rest_at..path_at]).into_owned();
    if tls != own.tls || !is_same(&authority, own) {
        let scheme = if own.tls { "https" } else { "http" };
        return wrong(format!(
            "'{shown}' is not at {scheme}://{}, where the requests go; leave it out, or measure its server in a separate run",
            own.host_header()
        ));
    }
    // A fragment is the browser's own business.
    if let Some(fragment) = target[path_at..].iter().position(|&b| b == b'#') {
        target.truncate(path_at + fragment);
    }
    target.drain(..path_at);
    if target.first() != Some(&b'/') {
        target.insert(0, b'/');
    }
    Ok(())
}

/// Returns whether a URL has TLS, and the position of its authority.
fn scheme(target: &[u8]) -> Option<(bool, usize)> {
    let begins = |name: &str| {
        target.get(..name.len()).is_some_and(|front| front.eq_ignore_ascii_case(name.as_bytes()))
    };
    let known = [("http://", false), ("https://", true)];
    known.into_iter().find(|(name, _)| begins(name)).map(|(name, tls)| (tls, name.len()))
}

/// Returns true if `text` is the authority of `own`: names in any case, the port of the scheme said or not.
fn is_same(text: &str, own: &Authority) -> bool {
    let default_port = if own.tls { 443 } else { 80 };
    let after_bracket = text.rfind(']').map_or(0, |at| at + 1);
    let (host, port) = match text[after_bracket..].rfind(':') {
        Some(at) => {
            let (host, port) = text.split_at(after_bracket + at);
            (host, port[1..].parse().ok())
        }
        None => (text, Some(default_port)),
    };
    let bare = |host: &str| host.trim_start_matches('[').trim_end_matches(']').to_ascii_lowercase();
    port == Some(own.port) && bare(host) == bare(&own.host)
}

/// Returns true if a line is `GET /path` or the like.
fn has_method(target: &[u8]) -> bool {
    let word = target.split(|&b| b == b' ').next().unwrap_or_default();
    word.len() < target.len() && word.len() >= 3 && word.iter().all(u8::is_ascii_uppercase)
}

/// A line for a message.
fn shown(target: &[u8]) -> String {
    const MOST: usize = 80;
    let text = String::from_utf8_lossy(&target[..target.len().min(4 * MOST)]);
    let mut shown: String =
        text.chars().take(MOST).map(|c| if c.is_control() { ' ' } else { c }).collect();
    if text.chars().nth(MOST).is_some() {
        shown.push_str("...");
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str, own: &Authority) -> Result<String, String> {
        let mut target = line.as_bytes().to_vec();
        to_path(&mut target, std::slice::from_ref(own)).map_err(|problem| problem.to_string())?;
        Ok(String::from_utf8(target).unwrap())
    }

    #[test]
    fn urls_of_the_server_become_their_paths() {
        let own = Authority { host: "Shop.example".to_owned(), port: 80, tls: false };
        for (line, path) in [
            ("/a?b=http://x/", "/a?b=http://x/"),
            ("http://shop.example/a?b", "/a?b"),
            ("HTTP://SHOP.example:80/a#part", "/a"),
            ("http://shop.example", "/"),
            ("http://shop.example?q=1", "/?q=1"),
        ] {
            assert_eq!(read(line, &own).as_deref(), Ok(path), "{line}");
        }
        let own = Authority { host: "::1".to_owned(), port: 8443, tls: true };
        assert_eq!(read("https://[::1]:8443/x", &own).as_deref(), Ok("/x"));
    }

    #[test]
    fn what_is_no_target_is_refused_with_what_to_write() {
        let own = Authority { host: "h".to_owned(), port: 8080, tls: false };
        for (line, told) in [
            ("ok", "write /ok"),
            ("?q=1", "write /?q=1"),
            ("http://h/a", "is not at http://h:8080"),
            ("http://h:8081/a", "is not at http://h:8080"),
            ("https://h:8080/a", "is not at http://h:8080"),
            ("http://me@h:8080/a", "is not at http://h:8080"),
            ("http://other:8080/a", "measure its server in a separate run"),
            ("GET /a", "begins with a method"),
            ("[{\"path\":\"/ok\"}]", "one object such as"),
            ("{\"path\":\"/ok\"}", "one object such as"),
        ] {
            let problem = read(line, &own).unwrap_err();
            assert!(problem.contains(told) && !problem.contains('\n'), "{line}: {problem}");
        }
        let several = [own.clone(), own.clone()];
        assert!(to_path(&mut b"http://h:8080/a".to_vec(), &several).is_err());
        assert!(to_path(&mut b"/a".to_vec(), &several).is_ok());
        assert!(read(&"x".repeat(10_000), &own).unwrap_err().len() < 400);
    }
}
