//! The forms in which a search matrix is shown.

use crate::{compare, csv, figures, page, sheet};
use plimsoll_report::forms::Forms;

/// The page, the CSV and the comparison of a search matrix.
pub const FORMS: Forms = Forms {
    page: page::sections,
    csv: |record| record.job_results.search().map(csv::rows),
    headline: page::headline,
    figures: figures::figures,
    compare: compare::records,
    sheet: sheet::sheet,
    merge: |_, _| None,
};
