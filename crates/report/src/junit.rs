//! The record as JUnit XML, which build servers show: a test case for each assertion and SLO, for each cell of a search
//! matrix, and one for the verdict.
//!
//! An assertion or SLO that was missed is a `failure` with the value that was found; a verdict that is not `valid` is an
//! `error`, since the run then says nothing about the target. Figures that another tool measured are not judged: `skipped`. Characters that XML cannot hold are shown as escapes.

use crate::compare::Comparison;
use crate::plain::reorders;
use crate::text::tables::actual;
use plimsoll_core::verdict::VerdictKind;
use plimsoll_record::RunRecord;
use plimsoll_record::search::Cell;
use quick_xml::Writer;
use quick_xml::events::{BytesDecl, BytesEnd, BytesStart, BytesText, Event};
use std::io;

/// Outcome of one test case.
enum Outcome {
    Held,
    /// Missed, with what was found.
    Failed(String),
    /// The run cannot say, with the reasons.
    Invalid(String),
    /// Not judged, with the reason.
    Skipped(String),
}

struct Case {
    group: String,
    name: String,
    kind: &'static str,
    outcome: Outcome,
}

/// The whole document, with a newline at the end.
#[must_use]
pub fn render(record: &RunRecord) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    write(&mut writer, record).expect("writing to memory cannot fail");
    let mut text = String::from_utf8_lossy(&writer.into_inner()).into_owned();
    text.push('\n');
    text
}

/// A comparison as JUnit XML: a test case for each rule, or for each answer if there are no rules. A rule that fails, and
/// without rules a figure that is worse, is a `failure`; a rule that cannot be judged is an `error`, and an answer that cannot be
/// given is `skipped`.
#[must_use]
pub fn render_comparison(comparison: &Comparison) -> String {
    let mut writer = Writer::new_with_indent(Vec::new(), b' ', 1);
    write_comparison(&mut writer, comparison).expect("writing to memory cannot fail");
    String::from_utf8_lossy(&writer.into_inner()).into_owned() + "\n"
}

fn compared(comparison: &Comparison) -> Vec<Case> {
    let rule = |rule: &crate::compare::RuleResult| {
        let name = format!("{} against A: {} ({})", rule.mark, rule.rule, rule.row);
        let outcome = match rule.judged {
            "holds" => Outcome::Held,
            "fails" => Outcome::Failed(rule.words.clone()),
            _ => Outcome::Invalid(format!("cannot tell: {}", rule.words)),
        };
        Case { group: rule.mark.clone(), name, kind: "rule", outcome }
    };
    if !comparison.rules.is_empty() {
        return comparison.rules.iter().map(rule).collect();
    }
    let rows = comparison.rows.iter().flat_map(|row| row.against.iter().map(move |one| (row, one)));
    rows.map(|(row, one)| {
        let outcome = match one.answer {
            Some("worse") => Outcome::Failed(format!("worse: {}", one.change())),
            Some("cannot tell") | None => Outcome::Skipped(one.words.clone()),
            Some(_) => Outcome::Held,
        };
        let name = format!("{} against A: {}", one.mark, row.name());
        Case { group: one.mark.clone(), name, kind: "answer", outcome }
    })
    .collect()
}

fn write_comparison(writer: &mut Writer<Vec<u8>>, comparison: &Comparison) -> io::Result<()> {
    let cases = compared(comparison);
    let job = comparison.sides.first().map_or(String::new(), |side| side.job.clone());
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let counts = counts(&cases);
    let with = |name: String| [vec![("name", name)], counts.to_vec()].concat();
    writer.write_event(Event::Start(element("testsuites", &with("plimsoll".to_owned()))))?;
    let skipped = cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped(_))).count();
    let own = [with(format!("compare {job}")), vec![("skipped", skipped.to_string())]].concat();
    writer.write_event(Event::Start(element("testsuite", &own)))?;
    writer.write_event(Event::Start(BytesStart::new("properties")))?;
    for side in &comparison.sides {
        let about = [("name", format!("run {}", side.mark)), ("value", side.folder.clone())];
        writer.write_event(Event::Empty(element("property", &about)))?;
    }
    writer.write_event(Event::End(BytesEnd::new("properties")))?;
    let job = format!("compare.{job}");
    cases.iter().try_for_each(|case| write_case(writer, &job, case))?;
    writer.write_event(Event::End(BytesEnd::new("testsuite")))?;
    writer.write_event(Event::End(BytesEnd::new("testsuites")))
}

fn cases(record: &RunRecord) -> Vec<Case> {
    let mut cases: Vec<Case> = Vec::new();
    for one in &record.assertions {
        let outcome = match (one.held, one.actual) {
            (true, _) => Outcome::Held,
            (false, Some(_)) => Outcome::Failed(format!("{} is {}", one.metric, actual(one))),
            (false, None) if record.job_results.import().is_some() => Outcome::Failed(format!(
                "{} is unknown: the imported file does not give it",
                one.metric
            )),
            (false, None) => {
                Outcome::Failed(format!("{} is unknown: no such request succeeded", one.metric))
            }
        };
        let name = format!("{} {} {}", one.scope, one.metric, one.condition);
        cases.push(Case { group: one.scope.clone(), name, kind: "assertion", outcome });
    }
    cases.extend(cells(record));
    for (name, slo) in &record.slo {
        let outcome = if slo.held {
            Outcome::Held
        } else {
            let least = if slo.at_least { "at least " } else { "" };
            Outcome::Failed(format!("{name} is {least}{} {}", slo.measured, slo.unit))
        };
        let name = format!("SLO {name} {}", slo.limit);
        cases.push(Case { group: "slo".to_owned(), name, kind: "slo", outcome });
    }
    if let Some(rate) = record.missed_run_per_s() {
        let outcome = Outcome::Failed(format!("a limit was missed at {rate} requests/s"));
        let name = "the last run holds its limits".to_owned();
        cases.push(Case { group: "rank".to_owned(), name, kind: "slo", outcome });
    }
    let verdict = &record.verdict;
    let outcome = match verdict.kind {
        VerdictKind::Valid => Outcome::Held,
        VerdictKind::Imported => Outcome::Skipped(verdict.reasons.join("; ")),
        kind => Outcome::Invalid(format!("{}: {}", kind.name(), verdict.reasons.join("; "))),
    };
    let name = "the result is valid".to_owned();
    cases.push(Case { group: "verdict".to_owned(), name, kind: "verdict", outcome });
    cases
}

/// The cells of a matrix that was measured: one without a number is a failure with its reason.
fn cells(record: &RunRecord) -> Vec<Case> {
    let Some(search) = record.job_results.search() else { return Vec::new() };
    let case = |cell: &Cell| {
        let group = format!("cell.{}", cell.key.engine);
        let outcome = match &cell.reason {
            None => Outcome::Held,
            Some(reason) => Outcome::Failed(reason.clone()),
        };
        Case { group, name: cell.key.to_string(), kind: "cell", outcome }
    };
    search.cells.iter().map(case).collect()
}

/// Text without the characters that XML 1.0 cannot hold, and without marks that make it read as another one.
fn fit(text: &str) -> String {
    text.chars()
        .flat_map(|c| {
            let held = matches!(c, '\t' | '\n' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..) && !reorders(c);
            let escaped = if held { None } else { Some(c.escape_unicode()) };
            held.then_some(c).into_iter().chain(escaped.into_iter().flatten())
        })
        .collect()
}

fn element<'a>(name: &'a str, attributes: &[(&str, String)]) -> BytesStart<'a> {
    let mut start = BytesStart::new(name);
    for (key, value) in attributes {
        start.push_attribute((*key, fit(value).as_str()));
    }
    start
}

fn counts(cases: &[Case]) -> [(&'static str, String); 3] {
    let count = |is: fn(&Outcome) -> bool| cases.iter().filter(|case| is(&case.outcome)).count();
    [
        ("tests", cases.len().to_string()),
        ("failures", count(|o| matches!(o, Outcome::Failed(_))).to_string()),
        ("errors", count(|o| matches!(o, Outcome::Invalid(_))).to_string()),
    ]
}

fn write(writer: &mut Writer<Vec<u8>>, record: &RunRecord) -> io::Result<()> {
    let cases = cases(record);
    let counts = counts(&cases);
    let time = record.known("duration_s", record.duration_s).map(|s| ("time", format!("{s:.3}")));
    let counts: Vec<_> = counts.into_iter().chain(time).collect();
    let with = |own: &[(&'static str, String)]| [own, counts.as_slice()].concat();
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    let suites = element("testsuites", &with(&[("name", "plimsoll".to_owned())]));
    writer.write_event(Event::Start(suites))?;
    let skipped = cases.iter().filter(|case| matches!(case.outcome, Outcome::Skipped(_))).count();
    let own = [
        ("name", record.job.clone()),
        ("timestamp", record.started_at.trim_end_matches('Z').to_owned()),
        ("hostname", record.machine.hostname.clone()),
        ("skipped", skipped.to_string()),
    ];
    writer.write_event(Event::Start(element("testsuite", &with(&own))))?;
    properties(writer, record)?;
    cases.iter().try_for_each(|case| write_case(writer, &record.job, case))?;
    writer.write_event(Event::End(BytesEnd::new("testsuite")))?;
    writer.write_event(Event::End(BytesEnd::new("testsuites")))
}

fn properties(writer: &mut Writer<Vec<u8>>, record: &RunRecord) -> io::Result<()> {
    writer.write_event(Event::Start(BytesStart::new("properties")))?;
    let own = [
        ("run_id", record.run_id.clone()),
        ("target", record.target.url.clone()),
        ("verdict", record.verdict.kind.name().to_owned()),
        ("ok_per_s", format!("{:.3}", record.rate.ok_per_s)),
        ("tool", format!("plimsoll {}", record.tool.version)),
        ("name", record.name.clone()),
    ];
    let rate_known = record.is_known("rate.ok_per_s");
    let own = own.into_iter().filter(|(name, value)| match *name {
        "name" => !value.is_empty(),
        "ok_per_s" => rate_known,
        _ => true,
    });
    let own = own.map(|(name, value)| (name.to_owned(), value));
    let labels = record.labels.iter().map(|(key, value)| (format!("label.{key}"), value.clone()));
    for (name, value) in own.chain(labels) {
        let about = [("name", name), ("value", value)];
        writer.write_event(Event::Empty(element("property", &about)))?;
    }
    writer.write_event(Event::End(BytesEnd::new("properties")))
}

fn write_case(writer: &mut Writer<Vec<u8>>, job: &str, case: &Case) -> io::Result<()> {
    let about = [
        ("classname", format!("{job}.{}", case.group)),
        ("name", case.name.clone()),
        ("time", "0".to_owned()),
    ];
    let (tag, found) = match &case.outcome {
        Outcome::Held => return writer.write_event(Event::Empty(element("testcase", &about))),
        Outcome::Failed(found) => ("failure", found),
        Outcome::Invalid(found) => ("error", found),
        Outcome::Skipped(found) => ("skipped", found),
    };
    writer.write_event(Event::Start(element("testcase", &about)))?;
    let told = [("message", found.clone()), ("type", case.kind.to_owned())];
    writer.write_event(Event::Start(element(tag, &told)))?;
    writer.write_event(Event::Text(BytesText::new(&fit(&format!("{}: {found}", case.name)))))?;
    writer.write_event(Event::End(BytesEnd::new(tag)))?;
    writer.write_event(Event::End(BytesEnd::new("testcase")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;
    use plimsoll_core::assertion::Assertion;
    use plimsoll_record::rank::{RankResult, RankRun};
    use plimsoll_record::{Judge, SloResult};
    use quick_xml::Reader;
    use std::collections::BTreeMap;

    type Attributes = BTreeMap<String, String>;

    /// All elements with their attributes, as an XML reader finds them.
    fn elements(text: &str) -> Vec<(String, Attributes)> {
        let mut reader = Reader::from_str(text);
        let mut found = Vec::new();
        loop {
            match reader.read_event().unwrap() {
                Event::Start(e) | Event::Empty(e) => {
                    let attributes = e.attributes().map(|a| {
                        let a = a.unwrap();
                        let key = String::from_utf8_lossy(a.key.as_ref()).into_owned();
                        (key, a.unescape_value().unwrap().into_owned())
                    });
                    found.push((
                        String::from_utf8_lossy(e.name().as_ref()).into_owned(),
                        attributes.collect(),
                    ));
                }
                Event::Eof => return found,
                _ => {}
            }
        }
    }

    fn record(assertions: &[&str]) -> RunRecord {
        let mut record = samples::good();
        record.job = "a <job> & \"more\" \u{1}".to_owned();
        for text in assertions {
            let assertion: Assertion = text.parse().unwrap();
            let judged = assertion.judge(&record);
            record.assertions.extend(judged);
        }
        record
    }

    #[test]
    fn a_missed_assertion_is_a_failure_with_its_value() {
        let record =
            record(&["global p95 < 1us", "each failed.percent <= 100%", "class \"<x>\" p50 < 1s"]);
        let found = elements(&render(&record));
        let of = |name: &str| {
            found.iter().filter(|(n, _)| n == name).map(|(_, a)| a).collect::<Vec<_>>()
        };
        let cases = of("testcase");
        // Four assertions (one for each of two classes), the SLOs of the sample, and the verdict.
        assert_eq!(cases.len(), 4 + record.slo.len() + 1);
        assert_eq!(cases[0]["name"], "global p95 < 0.001ms");
        assert_eq!(cases[3]["name"], "class \"<x>\" p50 < 1000ms");
        let missed = record.slo.values().filter(|slo| !slo.held).count();
        let failures = of("failure");
        assert_eq!(failures.len(), 2 + missed);
        assert!(failures[0]["message"].starts_with("p95 is "), "{failures:?}");
        assert!(failures[1]["message"].contains("is unknown"), "{failures:?}");
        let suite = of("testsuite")[0];
        assert_eq!(suite["name"], "a <job> & \"more\" \\u{1}");
        assert_eq!(suite["tests"], cases.len().to_string());
        assert_eq!(suite["failures"], failures.len().to_string());
        assert_eq!(suite["errors"], "0");
    }

    #[test]
    fn a_figure_that_depends_on_lost_requests_and_a_missed_run_are_failures_with_their_reason() {
        let mut record = samples::good();
        record.slo.clear();
        let slo = SloResult {
            measured: 1000.0,
            unit: "ms".to_owned(),
            limit: "2s".to_owned(),
            at_least: true,
            ..SloResult::default()
        };
        record.slo.insert("p95".to_owned(), slo);
        let run = RankRun { requested_qps: 40.0, ..RankRun::default() };
        record.job_results.put(RankResult { runs: vec![run], ..RankResult::default() });
        let found = elements(&render(&record));
        let messages: Vec<_> = found
            .iter()
            .filter(|(name, _)| name == "failure")
            .map(|(_, a)| &a["message"])
            .collect();
        assert_eq!(messages, ["p95 is at least 1000 ms", "a limit was missed at 40 requests/s"]);
    }

    #[test]
    fn name_and_labels_of_a_run_are_properties() {
        let mut record = samples::good();
        let value_of = |record: &RunRecord, name: &str| {
            let found = elements(&render(record));
            let named = found.iter().find(|(tag, a)| tag == "property" && a["name"] == name);
            named.map(|(_, a)| a["value"].clone())
        };
        assert_eq!(value_of(&record, "name"), None);
        record.name = "nightly".to_owned();
        record.labels.insert("commit".to_owned(), "3f2a <b>".to_owned());
        assert_eq!(value_of(&record, "name").as_deref(), Some("nightly"));
        assert_eq!(value_of(&record, "label.commit").as_deref(), Some("3f2a <b>"));
    }

    #[test]
    fn a_run_that_is_not_valid_is_an_error() {
        let found = elements(&render(&samples::failed()));
        let error = &found.iter().find(|(name, _)| name == "error").unwrap().1;
        assert_eq!(error["type"], "verdict");
        assert!(!error["message"].is_empty());
    }
}
