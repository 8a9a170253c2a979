//! Traces of the slowest requests: their ids, and links to them.

use crate::number::time;
use crate::page::{Page, Tone};
use crate::plain::printable;
use plimsoll_record::{RunRecord, SlowRequest};

/// Traces on the text page; the record holds more.
const LINES_MAX: usize = 5;

/// Longest address of a trace, bytes.
const URL_BYTES_MAX: usize = 2_000;

/// Address of the trace of a request: the scenario's `trace_url` with the id in its place. `None` without a trace, or if a
/// browser could take the address for something else than a page of the web.
#[must_use]
pub fn link(record: &RunRecord, slow: &SlowRequest) -> Option<String> {
    let url = record.scenario.get("trace_url")?.as_str()?;
    let id = slow.trace_id.as_deref()?;
    let is_id = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_hexdigit());
    let url = url.replace("{trace_id}", id);
    (is_id && is_address(&url)).then_some(url)
}

/// Returns true for an http or https address that can stand in markup and in Markdown as it is.
#[must_use]
pub fn is_address(url: &str) -> bool {
    let scheme = url.split_once("://").map_or("", |(scheme, _)| scheme);
    let is_web = ["http", "https"].iter().any(|web| scheme.eq_ignore_ascii_case(web));
    let is_plain = url.bytes().all(|byte| byte.is_ascii_graphic() && !b"<>\"'`\\".contains(&byte));
    is_web && is_plain && url.len() <= URL_BYTES_MAX
}

/// A line for each of the slowest requests that has a trace id: its response time, and the link or the id.
pub fn lines(page: &mut Page<'_>, record: &RunRecord) {
    let traced = record.slowest.iter().take(LINES_MAX).filter(|slow| slow.trace_id.is_some());
    for (index, slow) in traced.enumerate() {
        let what = link(record, slow).or_else(|| slow.trace_id.clone()).unwrap_or_default();
        let text = format!("{} {}", time(slow.response_ms), printable(&what));
        page.entry(if index == 0 { "Traces" } else { "" }, &text, Tone::Plain);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::page::Style;
    use serde_json::json;

    #[test]
    fn the_slowest_requests_have_links_to_their_traces() {
        let mut record = crate::samples::good();
        let style = Style::default();
        let text = |record: &RunRecord| {
            let mut page = Page::new(&style);
            lines(&mut page, record);
            page.finish()
        };
        assert_eq!(text(&record), "");
        let id = "4bf92f3577b34da6a3ce929d0e0e4736";
        record.slowest[0].trace_id = Some(id.to_owned());
        record.slowest[0].response_ms = 12.0;
        assert_eq!(text(&record), format!("Traces     12.0 ms {id}\n"));
        record.scenario["trace_url"] = json!("https://tempo.example/trace/{trace_id}?x=1");
        let link = format!("https://tempo.example/trace/{id}?x=1");
        assert_eq!(text(&record), format!("Traces     12.0 ms {link}\n"));
        record.scenario["trace_url"] = json!("javascript:alert('{trace_id}')");
        assert_eq!(text(&record), format!("Traces     12.0 ms {id}\n"), "the id alone");
    }

    #[test]
    fn only_addresses_of_the_web_are_links() {
        let mut record = crate::samples::good();
        record.slowest[0].trace_id = Some("4bf9".to_owned());
        let mut link = |template: &str| {
            record.scenario["trace_url"] = json!(template);
            super::link(&record, &record.slowest[0])
        };
        assert_eq!(link("http://a/{trace_id}").as_deref(), Some("http://a/4bf9"));
        assert_eq!(link("HTTPS://a/?q={trace_id}&x=1").as_deref(), Some("HTTPS://a/?q=4bf9&x=1"));
        for hostile in [
            "javascript:alert(1)//https://{trace_id}",
            " javascript:alert('{trace_id}')",
            "java\nscript:alert('{trace_id}')",
            "data:text/html,https://{trace_id}",
            "//a/{trace_id}",
            "https://a/\" onclick=\"alert(1)/{trace_id}",
            "https://a/' onclick='alert(1)/{trace_id}",
            "https://a/</script><script>alert(1)</script>{trace_id}",
            "https://a/\u{202e}{trace_id}",
            "https://a/\0{trace_id}",
            &format!("https://a/{}{{trace_id}}", "x".repeat(URL_BYTES_MAX)),
        ] {
            assert_eq!(link(hostile), None, "{hostile:?}");
        }
        record.scenario["trace_url"] = json!("https://a/{trace_id}");
        for hostile in ["", "\"><script>", "../..", "4bf9 "] {
            record.slowest[0].trace_id = Some(hostile.to_owned());
            assert_eq!(super::link(&record, &record.slowest[0]), None, "{hostile:?}");
        }
    }
}
