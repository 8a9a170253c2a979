//! The page that is data of a job of the catalogue: its score, its variables, and the averages of its hooks.

use plimsoll_record::RunRecord;
use plimsoll_record::catalogue::{CatalogueEntry, Hooks};
use plimsoll_report::number::significant;
use plimsoll_report::sections::{Decision, put_first};
use plimsoll_report::series::Series;
use plimsoll_report::sheet::{Cell, Part, Section, Sheet, Table, Tone};

/// Adds the sections of a job of the catalogue, and of a mix that was run from a file. Changes nothing for another record.
pub(crate) fn sheet(sheet: &mut Sheet, record: &RunRecord, course: &Series) {
    (plimsoll_mix::page::FORMS.sheet)(sheet, record, course);
    let results = &record.job_results;
    let Some(entry) = results.catalogue() else { return };
    if let Some(score) = entry.score {
        let score = Cell::number(score, significant(score)).from(&["catalogue", "score"]);
        let limit =
            entry.baseline.map_or(String::new(), |base| format!("baseline {}", significant(base)));
        let row = Decision { limit, ..Decision::figure("score", score) };
        put_first(sheet, &[row], true);
    }
    sheet.put_after("decide", job(entry));
    if let Some(section) = results.hooks().and_then(hooks) {
        sheet.put_after("health", section);
    }
}

fn job(entry: &CatalogueEntry) -> Section {
    let number = |value: Option<f64>, field: &'static str| {
        Cell::or_unknown(value, |value| Cell::number(value, significant(value)))
            .from(&["catalogue", field])
    };
    let mut facts = vec![("job".to_owned(), Cell::text(entry.name.clone()))];
    if !entry.description.is_empty() {
        facts.push(("purpose".to_owned(), Cell::text(entry.description.clone())));
    }
    if let Some(role) = &entry.role {
        facts.push(("role".to_owned(), Cell::text(role.clone())));
    }
    let metric = entry.metric.as_deref().unwrap_or("none").trim_start_matches('/');
    facts.push(("figure of the job".to_owned(), Cell::text(metric)));
    facts.push(("its value".to_owned(), number(entry.value, "value")));
    if entry.baseline.is_some() {
        facts.push(("baseline".to_owned(), number(entry.baseline, "baseline")));
        facts.push(("score".to_owned(), number(entry.score, "score")));
    }
    let mut table = Table::new(&["variable", "value"]).captioned("Variables");
    for (name, value) in &entry.vars {
        table.row(Tone::Plain, vec![Cell::text(name.clone()), Cell::text(value.clone())]);
    }
    let note = "score: the figure of the job over its baseline. plimsoll report JOB --all --format html shows all its runs.";
    let variables = (!entry.vars.is_empty()).then_some(Part::Table(table));
    Section::new("catalogue", "Job of the catalogue", note)
        .with(Part::Facts(facts))
        .with_some(variables)
}

/// Averages over the measured window, and problems.
fn hooks(hooks: &Hooks) -> Option<Section> {
    if hooks.0.is_empty() {
        return None;
    }
    let mut table = Table::new(&["hook", "file", "column", "#average"]).sortable();
    let mut problems = Vec::new();
    for (hook, record) in &hooks.0 {
        for (file, columns) in &record.averages {
            for (column, value) in columns {
                let steps = ["hooks", hook, "averages", file, column];
                let average = Cell::number(*value, significant(*value)).from(&steps);
                let names = [hook, file, column].map(|name| Cell::text(name.clone()));
                table.row(Tone::Plain, names.into_iter().chain([average]).collect());
            }
        }
        let warnings = record.warnings.iter();
        problems.extend(warnings.map(|text| Part::Text(Tone::Warn, format!("{hook}: {text}"))));
    }
    let note = "Averages over the measured window, in the unit of the file; the files are in hooks/ of the record.";
    let mut section = Section::new("hooks", "Hooks", note);
    section.parts = problems;
    Some(section.with_some((!table.rows.is_empty()).then_some(Part::Table(table))))
}

#[cfg(test)]
mod tests {
    use super::*;
    use plimsoll_record::catalogue::HookRecord;
    use plimsoll_report::samples;
    use std::collections::BTreeMap;

    #[test]
    fn a_job_of_the_catalogue_has_its_score_and_the_averages_of_its_hooks() {
        let mut record = samples::good();
        record.job_results.put(CatalogueEntry {
            name: "mine".to_owned(),
            vars: BTreeMap::from([("clients".to_owned(), "16".to_owned())]),
            metric: Some("/rate/ok_per_s".to_owned()),
            value: Some(100.0),
            baseline: Some(50.0),
            score: Some(2.0),
            ..CatalogueEntry::default()
        });
        let columns = BTreeMap::from([("%idle".to_owned(), 43.2)]);
        let hook = HookRecord {
            averages: BTreeMap::from([("cpu/mpstat.txt".to_owned(), columns)]),
            warnings: vec!["perf is not there".to_owned()],
            ..HookRecord::default()
        };
        record.job_results.put(Hooks(BTreeMap::from([("cpu-mpstat".to_owned(), hook)])));
        let forms = plimsoll_report::forms::Forms { sheet, ..plimsoll_report::forms::Forms::LOAD };
        let page = plimsoll_report::sections::sheet(&record, &Default::default(), &[forms]);
        assert!(samples::check_places(&page, &record) > 10);
        let text = samples::outline(&page, &["decide", "catalogue", "hooks"]);
        for part in [
            "score | 2.00 </catalogue/score> | baseline 50.0",
            "its value: 100 </catalogue/value>",
            "clients | 16",
            "43.2 </hooks/cpu-mpstat/averages/cpu~1mpstat.txt/%idle>",
            "Warn: cpu-mpstat: perf is not there",
        ] {
            assert!(text.contains(part), "no '{part}' in\n{text}");
        }
    }
}
