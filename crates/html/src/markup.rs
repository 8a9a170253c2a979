//! Sections of a page as markup: tables, facts, plots with their tables, samples. No attribute holds a style or a script.

use crate::escape::{line, lines};
use crate::{bars, flow, picture};
use plimsoll_report::sheet::{Cell, Column, Part, Plot, Row, Sample, Section, Table, Tone};
use plimsoll_report::traces::is_address;
use std::fmt::Write as _;

/// Longest request, reply or reason of a sample, characters.
const SAMPLE_CHARS_MAX: usize = 4_000;
/// Longest command, characters.
const COMMAND_CHARS_MAX: usize = 200_000;

/// Returns the class of a judgement, with a blank before it, as ` warn`.
pub const fn tone_class(tone: Tone) -> &'static str {
    match tone {
        Tone::Plain => "",
        Tone::Good => " good",
        Tone::Warn => " warn",
        Tone::Bad => " bad",
    }
}

/// Returns an id that is safe in an attribute and in a link.
pub fn id(text: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' { c } else { '-' };
    text.chars().take(80).map(plain).collect()
}

/// Returns a section with its headline.
pub fn section(section: &Section) -> String {
    format!("<section id=\"{}\">{}</section>\n", id(&section.id), inner(section))
}

/// Returns what stands inside a section.
pub fn inner(section: &Section) -> String {
    let mut out = format!("<h2>{}</h2>", line(&section.title));
    if !section.note.trim().is_empty() {
        let _ = write!(out, "<p class=\"note\">{}</p>", line(section.note.trim()));
    }
    for (index, part) in section.parts.iter().enumerate() {
        out.push('\n');
        out.push_str(&self::part(part, index));
    }
    out
}

fn part(part: &Part, index: usize) -> String {
    match part {
        Part::Text(Tone::Plain, text) => format!("<p>{}</p>", line(text)),
        Part::Text(tone, text) => {
            format!("<p class=\"{}\">{}</p>", tone_class(*tone).trim(), line(text))
        }
        Part::Facts(facts) => {
            let fact = |(name, value): &(String, Cell)| {
                format!("<dt>{}</dt>{}", line(name), cell("dd", value))
            };
            let all: String = facts.iter().map(fact).collect();
            format!("<dl class=\"facts\">{all}</dl>")
        }
        Part::Table(table) => scrolled(table),
        Part::Plot(plot) => figure(plot),
        Part::Command(text) => {
            format!("<pre class=\"command\">{}</pre>", lines(text, COMMAND_CHARS_MAX))
        }
        Part::Samples(samples) => samples.iter().map(sample).collect(),
        Part::Bars(bars) => format!(
            "<figure class=\"bars\" id=\"bars-{index}\"><figcaption>{}</figcaption>\
             <div class=\"scroll\">{}</div><details class=\"twin\"><summary>Table</summary>{}</details></figure>",
            line(&bars.caption),
            bars::svg(bars),
            scrolled(&bars.twin)
        ),
        Part::Flow(stages) => format!(
            "<figure class=\"flow\" id=\"flow-{index}\"><figcaption>{}</figcaption>{}</figure>",
            line(&flow::in_words(stages)),
            flow::svg(stages)
        ),
    }
}

fn sample(sample: &Sample) -> String {
    let mut out = format!(
        "<details class=\"sample\"><summary>{}: {}</summary>",
        line(&sample.title),
        line(&sample.reason)
    );
    for (name, text) in [("Request", &sample.request), ("Reply", &sample.reply)] {
        if text.is_empty() {
            let _ = write!(out, "<p>{name}: none.</p>");
        } else {
            let _ = write!(out, "<p>{name}</p><pre>{}</pre>", lines(text, SAMPLE_CHARS_MAX));
        }
    }
    out + "</details>\n"
}

fn figure(plot: &Plot) -> String {
    let own = id(&plot.id);
    let picture = if plot.is_pictured { picture::svg(plot) } else { String::new() };
    format!(
        "<figure class=\"plot\" id=\"plot-{own}\" data-plot=\"{own}\"><figcaption>{}</figcaption>{picture}\
         <details class=\"twin\"><summary>Table</summary>{}</details></figure>",
        line(&plot.caption),
        scrolled(&plot.twin)
    )
}

fn scrolled(table: &Table) -> String {
    format!("<div class=\"scroll\">{}</div>", self::table(table))
}

fn table(table: &Table) -> String {
    let sortable = if table.sortable { " data-sort" } else { "" };
    let mut out = format!("<table class=\"data\"{sortable}>");
    if !table.caption.is_empty() {
        let _ = write!(out, "<caption>{}</caption>", line(&table.caption));
    }
    out.push_str("<thead><tr>");
    for column in &table.columns {
        let class = if column.is_number { " class=\"n\"" } else { "" };
        let _ = write!(out, "<th scope=\"col\"{class}>{}</th>", line(&column.name));
    }
    out.push_str("</tr></thead><tbody>\n");
    out.extend(table.rows.iter().map(|one| row(one, &table.columns)));
    out + "</tbody></table>"
}

fn row(row: &Row, columns: &[Column]) -> String {
    let class = match tone_class(row.tone).trim() {
        "" => String::new(),
        class => format!(" class=\"{class}\""),
    };
    let is_number = |index: usize| columns.get(index).is_some_and(|column| column.is_number);
    let one = |(index, value): (usize, &Cell)| match value {
        // A word in place of a number stands where the number would.
        Cell::Text(text) if is_number(index) => format!("<td class=\"n\">{}</td>", line(text)),
        value => cell("td", value),
    };
    let cells: String = row.cells.iter().enumerate().map(one).collect();
    format!("<tr{class}>{cells}</tr>\n")
}

/// A value in an element, with the exact number and its place in the record.
fn cell(element: &str, value: &Cell) -> String {
    match value {
        Cell::Text(text) => format!("<{element}>{}</{element}>", line(text)),
        Cell::Link { text, url } if is_address(url) => format!(
            "<{element}><a href=\"{}\" rel=\"noreferrer noopener\">{}</a></{element}>",
            line(url),
            line(text)
        ),
        Cell::Link { text, .. } => format!("<{element}>{}</{element}>", line(text)),
        Cell::Number { value, text, from } if value.is_finite() => {
            let from = match from.as_str() {
                "" => String::new(),
                from => format!(" data-from=\"{}\"", line(from)),
            };
            format!("<{element} class=\"n\" data-v=\"{value}\"{from}>{}</{element}>", line(text))
        }
        Cell::Number { .. } | Cell::Unknown => {
            format!("<{element} class=\"n unknown\">unknown</{element}>")
        }
    }
}
