//! The figures of a feed beside queries that a comparison looks at.

use plimsoll_record::RunRecord;
use plimsoll_report::figures::{Figure, Unit, cpu, errors, times};

/// Returns the documents per second, and the times of the queries while documents arrived and after.
#[must_use]
pub fn figures(record: &RunRecord) -> Option<Vec<Figure>> {
    let mix = record.job_results.mix()?;
    let feed = record.job_results.feed();
    let documents = feed.map(|feed| Figure::new("documents", Unit::PerS, feed.accepted_per_s));
    let mut figures: Vec<Figure> = documents.into_iter().collect();
    figures.extend(errors(record));
    figures.extend(cpu(record));
    for (name, part) in [("while feeding", &mix.while_feeding), ("without", &mix.without)] {
        if part.seconds > 0.0 {
            let rate = Figure::new("rate", Unit::PerS, part.ok as f64 / part.seconds);
            figures.push(rate.of(name));
        }
        figures.extend(times(&part.response, false).into_iter().map(|figure| figure.of(name)));
    }
    Some(figures)
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::feed::{FeedResult, MixPart, MixResult};
    use plimsoll_report::samples;

    #[test]
    fn queries_have_figures_while_documents_arrive_and_after() {
        let mut record = samples::good();
        assert_eq!(figures(&record), None);
        let part = MixPart {
            seconds: 2.0,
            ok: 50,
            response: record.latency_ms.response,
            ..MixPart::default()
        };
        record.job_results.put(MixResult { while_feeding: part, without: MixPart::default() });
        record.job_results.put(FeedResult { accepted_per_s: 70.0, ..FeedResult::default() });
        let figures = figures(&record).unwrap();
        let value = |metric: &str, of: &str| {
            figures.iter().find(|one| one.metric == metric && one.of == of).map(|one| one.value)
        };
        assert_eq!(value("documents", ""), Some(70.0));
        assert_eq!(value("rate", "while feeding"), Some(25.0));
        assert_eq!(value("p95", "while feeding"), Some(record.latency_ms.response.p95));
        assert_eq!(value("rate", "without"), None);
    }
}
