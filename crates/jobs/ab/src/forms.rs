//! The forms in which a comparison is shown.

use crate::page::{csv, headline, sections};
use crate::sheet::sheet;
use plimsoll_report::forms::Forms;

/// Text, CSV and web page of a comparison.
pub const FORMS: Forms = Forms { page: sections, csv, headline, sheet, ..Forms::LOAD };
