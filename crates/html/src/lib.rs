//! The page of a run as one HTML file that needs nothing else.
//!
//! The same page gives the same bytes. Text of the run is escaped, and no script but the page's own can run: its hash is in the
//! content security policy. Without script and style, headline, verdict, all tables and three pictures are readable.
//!
//! ```
//! use plimsoll_report::sheet::{Part, Section, Sheet, Tone};
//!
//! let text = Part::Text(Tone::Plain, "<script>alert(1)</script>".to_owned());
//! let section = Section::new("asked", "What was asked", "").with(text);
//! let sheet = Sheet { title: "load".to_owned(), sections: vec![section], ..Sheet::default() };
//! let page = plimsoll_html::render(&sheet);
//! assert!(page.starts_with("<!doctype html>") && page.contains("&lt;script&gt;alert(1)"));
//! assert_eq!(page, plimsoll_html::render(&sheet));
//! ```

mod assets;
mod bars;
mod data;
mod escape;
mod flow;
mod markup;
mod picture;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plimsoll_report::sheet::{Section, Sheet};
use ring::digest::{SHA256, digest};
use std::fmt::Write as _;

pub use data::{Numbers, numbers};

/// Returns the page as one file.
#[must_use]
pub fn render(sheet: &Sheet) -> String {
    page(sheet, "", "")
}

/// Returns the page of a run that goes on. It follows the run by events from the path `events` of the server that it came from,
/// and asks for nothing elsewhere.
#[must_use]
pub fn render_live(sheet: &Sheet, events: &str) -> String {
    let follows = format!(" data-live=\"{}\"", escape::line(events));
    page(sheet, &follows, "; connect-src 'self'")
}

/// The page with attributes of its root, and with more that it may do.
fn page(sheet: &Sheet, attributes: &str, permitted: &str) -> String {
    let title = escape::line(&sheet.title);
    let mut out =
        format!("<!doctype html>\n<html lang=\"en\"{attributes}><head><meta charset=\"utf-8\">\n");
    let _ = write!(
        out,
        "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; script-src 'sha256-{}'; \
         style-src 'unsafe-inline'; img-src data:{permitted}\">\n\
         <title>{title}</title>\n<style>{}</style></head>\n<body>\n",
        STANDARD.encode(digest(&SHA256, assets::script().as_bytes())),
        assets::style()
    );
    out.push_str(&header(sheet));
    out.push_str("<main>\n");
    out.extend(sheet.sections.iter().map(markup::section));
    out.push_str("</main>\n");
    out.push_str(&footer(sheet));
    let _ = write!(
        out,
        "<script type=\"text/plain\" id=\"data\">{}</script>\n<script>{}</script>\n</body></html>\n",
        data::block(sheet),
        assets::script()
    );
    out
}

/// Returns each section with its id in the page.
pub fn sections(sheet: &Sheet) -> impl Iterator<Item = (String, &Section)> {
    sheet.sections.iter().map(|section| (markup::id(&section.id), section))
}

/// Returns the inner markup of a section: what a live page replaces.
#[must_use]
pub fn inner(section: &Section) -> String {
    markup::inner(section)
}

fn header(sheet: &Sheet) -> String {
    let mut out = format!(
        "<header class=\"top\"><h1>{}</h1><p class=\"when\">{}</p><p class=\"verdict verdict-{}{}\">{}</p>\n<nav>",
        escape::line(&sheet.title),
        escape::line(&sheet.when),
        markup::id(&sheet.verdict),
        markup::tone_class(sheet.tone),
        escape::line(&sheet.outcome)
    );
    for section in &sheet.sections {
        let _ = write!(
            out,
            "<a href=\"#{}\">{}</a> ",
            markup::id(&section.id),
            escape::line(&section.title)
        );
    }
    out + "</nav></header>\n"
}

fn footer(sheet: &Sheet) -> String {
    let mut out = String::from("<footer>");
    for remark in &sheet.footer {
        let _ = write!(out, "<p>{}</p>", escape::line(remark));
    }
    let _ = writeln!(
        out,
        "<details><summary>Plots by uPlot {}, MIT licence</summary><pre>{}</pre></details></footer>",
        escape::line(assets::UPLOT_VERSION.trim()),
        escape::lines(assets::UPLOT_LICENCE, usize::MAX)
    );
    out
}

#[cfg(test)]
mod tests;
