//! Reading assertions.

use super::{Assertion, AssertionError, Condition, Metric, Point, Scope, Time, Which};
use crate::units::{Rate, Span};
use std::str::FromStr;

/// The words of an assertion: signs of comparison stand by themselves, a name may be in quotation marks.
fn words_of(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let mut chars = text.chars().peekable();
    let end = |word: &mut String, words: &mut Vec<String>| {
        if !word.is_empty() {
            words.push(std::mem::take(word));
        }
    };
    while let Some(c) = chars.next() {
        match c {
            '<' | '>' | '=' => {
                end(&mut word, &mut words);
                let mut sign = c.to_string();
                sign.extend(chars.next_if_eq(&'='));
                words.push(sign);
            }
            '"' => {
                end(&mut word, &mut words);
                let mut name = String::new();
                loop {
                    match chars.next() {
                        Some('"') => break,
                        Some(c) => name.push(c),
                        None => return Err("a quotation mark is not closed".to_owned()),
                    }
                }
                words.push(name);
            }
            ',' | '(' | ')' => end(&mut word, &mut words),
            c if c.is_whitespace() => end(&mut word, &mut words),
            c => word.push(c),
        }
    }
    end(&mut word, &mut words);
    Ok(words)
}

fn metric_of(word: &str) -> Result<Metric, String> {
    let (time, point) = match word.split_once('.') {
        Some(("response", point)) => (Time::Response, point),
        Some(("service", point)) => (Time::Service, point),
        _ => (Time::Response, word),
    };
    let times = |point| Ok(Metric::Time(time, point));
    match point {
        "min" => return times(Point::Min),
        "mean" => return times(Point::Mean),
        "max" => return times(Point::Max),
        "stddev" => return times(Point::Deviation),
        _ => {}
    }
    if let Some(digits) = point.strip_prefix('p')
        && let Ok(p) = digits.parse::<f64>()
    {
        if p > 0.0 && p <= 100.0 {
            return times(Point::Percentile(p));
        }
        return Err(format!("'{word}' is not a percentile; use p1 to p100"));
    }
    Ok(match word {
        "requests" | "requests.count" | "all.count" => Metric::Count(Which::All),
        "ok" | "ok.count" => Metric::Count(Which::Ok),
        "failed" | "failed.count" => Metric::Count(Which::Failed),
        "ok.percent" => Metric::Percent(Which::Ok),
        "failed.percent" => Metric::Percent(Which::Failed),
        "all.percent" | "requests.percent" => Metric::Percent(Which::All),
        "rate" => Metric::Rate,
        _ => {
            return Err(format!(
                "'{word}' is not a metric; expected min, mean, max, stddev, p95, requests, ok.count, \
                 ok.percent, failed.count, failed.percent and rate"
            ));
        }
    })
}

/// A value in the unit of the metric.
fn value_of(metric: Metric, word: &str) -> Result<f64, String> {
    let number = |text: &str| {
        let number = text.trim().parse::<f64>().ok().filter(|n| n.is_finite() && *n >= 0.0);
        number.ok_or_else(|| format!("'{word}' is not a number"))
    };
    match metric {
        Metric::Time(..) => {
            if word.ends_with(|c: char| c.is_ascii_digit()) {
                return Err(format!("'{word}' has no unit; write {word}ms or {word}s"));
            }
            let span: Span = word.parse().map_err(|error| format!("{error}"))?;
            Ok(span.ns as f64 / 1e6)
        }
        Metric::Percent(_) => match number(word.strip_suffix('%').unwrap_or(word))? {
            percent if percent <= 100.0 => Ok(percent),
            _ => Err(format!("'{word}' is more than 100 %")),
        },
        Metric::Rate => {
            word.parse::<Rate>().map(|rate| rate.per_s).map_err(|error| error.to_string())
        }
        Metric::Count(_) => number(word),
    }
}

fn share_of(word: &str) -> Result<f64, String> {
    let (digits, scale) = word.strip_suffix('%').map_or((word, 1.0), |digits| (digits, 0.01));
    let share = digits.parse::<f64>().ok().map(|share| share * scale);
    share
        .filter(|share| share.is_finite() && *share >= 0.0)
        .ok_or_else(|| format!("'{word}' is not a share; write 10% or 0.1"))
}

fn condition_of(metric: Metric, words: &[&str]) -> Result<Condition, String> {
    let value = |word: &str| value_of(metric, word);
    Ok(match words {
        ["<" | "lt", v] => Condition::Below(value(v)?),
        ["<=" | "lte", v] => Condition::AtMost(value(v)?),
        [">" | "gt", v] => Condition::Above(value(v)?),
        [">=" | "gte", v] => Condition::AtLeast(value(v)?),
        ["=" | "==" | "is", v] => Condition::Is(value(v)?),
        ["in", values @ ..] if !values.is_empty() => {
            Condition::In(values.iter().map(|v| value(v)).collect::<Result<_, _>>()?)
        }
        ["between", a, "and", b] | ["between", a, b] => {
            let (a, b) = (value(a)?, value(b)?);
            if a > b {
                return Err("the lower end of 'between' is above the upper one".to_owned());
            }
            Condition::Between(a, b)
        }
        ["around", v, "by" | "+-", d] | ["around", v, d] => Condition::Around(value(v)?, value(d)?),
        ["deviates" | "deviatesAround", v, "by", d] | ["deviates" | "deviatesAround", v, d] => {
            Condition::Deviates(value(v)?, share_of(d)?)
        }
        [] => return Err("a condition is missing".to_owned()),
        _ => {
            return Err(format!(
                "'{}' is not a condition; expected < <= > >= is in, 'between V and V', 'around V by D' \
                 and 'deviates V by 10%'",
                words.join(" ")
            ));
        }
    })
}

impl FromStr for Assertion {
    type Err = AssertionError;

    fn from_str(text: &str) -> Result<Self, AssertionError> {
        let wrong = |problem: String| AssertionError { text: text.to_owned(), problem };
        let words = words_of(text).map_err(wrong)?;
        let mut words: Vec<&str> = words.iter().map(String::as_str).collect();
        let scope = match words[..] {
            ["global", ..] => {
                words.drain(..1);
                Scope::Global
            }
            ["each" | "forAll", "class" | "request", ..] => {
                words.drain(..2);
                Scope::Each
            }
            ["each" | "forAll", ..] => {
                words.drain(..1);
                Scope::Each
            }
            ["class" | "details", name, ..] => {
                words.drain(..2);
                Scope::Class(name.to_owned())
            }
            [] => return Err(wrong("the assertion is empty".to_owned())),
            [first, ..] => {
                let problem = format!("'{first}' is not a scope; write global, each or class NAME");
                return Err(wrong(problem));
            }
        };
        let (metric, condition) =
            words.split_first().ok_or_else(|| wrong("a metric is missing".to_owned()))?;
        let metric = metric_of(metric).map_err(wrong)?;
        let condition = condition_of(metric, condition).map_err(wrong)?;
        Ok(Self { scope, metric, condition })
    }
}
