//! Foreign text as HTML. Nothing of it is markup, and nothing of it is invisible.

use plimsoll_report::plain::printable;

/// Longest text that stands in a cell or a line, characters. Records hold names of any length.
const CHARS_MAX: usize = 2_000;

/// Returns text on one line: markup is escaped, control characters and marks that reorder text are written out.
#[must_use]
pub fn line(text: &str) -> String {
    escaped(&printable(&shortened(text, CHARS_MAX)))
}

/// Returns text that keeps its lines and tabs.
#[must_use]
pub fn lines(text: &str, chars_max: usize) -> String {
    let text = shortened(text, chars_max);
    let keep = |line: &str| line.split('\t').map(printable).collect::<Vec<_>>().join("\t");
    let text: Vec<String> =
        text.split('\n').map(|line| keep(line.strip_suffix('\r').unwrap_or(line))).collect();
    escaped(&text.join("\n"))
}

/// The beginning of a text; the rest is counted.
fn shortened(text: &str, chars_max: usize) -> String {
    match text.char_indices().nth(chars_max) {
        None => text.to_owned(),
        Some((at, _)) => format!("{}... ({} bytes more)", &text[..at], text.len() - at),
    }
}

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_and_invisible_characters_are_written_out() {
        assert_eq!(
            line("</script><b a='1' c=\"2\">\0\u{202e}x\ny&"),
            "&lt;/script&gt;&lt;b a=&#39;1&#39; c=&quot;2&quot;&gt;\\u{0}\\u{202e}x\\ny&amp;"
        );
        assert_eq!(lines("a\r\n\tb\u{1b}[2J\u{2066}", 99), "a\n\tb\\u{1b}[2J\\u{2066}");
    }

    #[test]
    fn long_texts_are_cut_and_the_rest_is_counted() {
        let long = "ä".repeat(CHARS_MAX + 10);
        assert!(line(&long).ends_with("ä... (20 bytes more)"));
        assert_eq!(lines("abcdef", 3), "abc... (3 bytes more)");
    }
}
