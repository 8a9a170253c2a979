//! Times of a record, all classes together, from the histograms that it keeps.

use crate::plain::printable;
use plimsoll_core::histogram::Histogram;
use plimsoll_record::RunRecord;

/// Returns the times of one kind, such as `response`, of all classes together; an empty histogram if the record keeps none.
///
/// # Errors
/// A damaged histogram, which the error names: the others have the times of a part of the requests only.
pub fn of_all_classes(record: &RunRecord, kind: &str) -> Result<Histogram, String> {
    let mut all = Histogram::new();
    for (name, encoded) in &record.histograms {
        if name.rsplit_once('/').is_some_and(|(_, own)| own == kind) {
            let added = all.add_encoded(encoded);
            added.map_err(|error| format!("histograms.{}: {error}", printable(name)))?;
        }
    }
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::samples;

    #[test]
    fn times_are_those_of_every_class_or_an_error() {
        let mut record = samples::good();
        let ok = record.ledger.ok;
        assert_eq!(of_all_classes(&record, "response").unwrap().count(), ok);
        assert!(of_all_classes(&record, "server").unwrap().is_empty());
        record.histograms.insert("fuzzy/response".to_owned(), "damaged".to_owned());
        let error = of_all_classes(&record, "response").unwrap_err();
        let place = "histograms.fuzzy/response: a stored histogram cannot be decoded";
        assert!(error.starts_with(place), "{error}");
        assert_eq!(of_all_classes(&record, "service").unwrap().count(), ok);
    }
}
