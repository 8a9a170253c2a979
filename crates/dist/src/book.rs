//! The book as HTML: a page for each chapter, one style for all, links between them, no scripts.

use crate::sources::Sources;
use crate::tree::Tree;
use anyhow::{Context, Result};
use pulldown_cmark::{CowStr, Event, Options, Parser, Tag, TagEnd, html};
use std::collections::{BTreeMap, BTreeSet};

/// Pages beside the book: their file in the sources, and their page.
const BESIDE: [(&str, &str); 5] = [
    ("README.md", "plimsoll.html"),
    ("ARCHITECTURE.md", "architecture.html"),
    ("CHANGELOG.md", "changelog.html"),
    ("CONTRIBUTING.md", "contributing.html"),
    ("SECURITY.md", "security.html"),
];

const STYLE: &str = "\
:root{color-scheme:light dark;--line:#8884}
body{font:17px/1.55 system-ui,sans-serif;max-width:58rem;margin:0 auto;padding:1rem 1.25rem 4rem}
nav{border-bottom:1px solid var(--line);padding-bottom:.5rem;margin-bottom:1.5rem;font-size:.9rem}
nav a{margin-right:1rem}
h1,h2,h3{line-height:1.25;margin:2rem 0 .75rem}
h1{margin-top:0}
code,pre{font-family:ui-monospace,monospace;font-size:.9em}
code{overflow-wrap:anywhere}
pre{overflow-x:auto;padding:.75rem;border:1px solid var(--line);border-radius:4px;line-height:1.4}
pre code{overflow-wrap:normal}
table{border-collapse:collapse;display:block;overflow-x:auto;font-size:.95em}
th,td{border:1px solid var(--line);padding:.3rem .6rem;text-align:left;vertical-align:top}
blockquote{margin-left:0;padding-left:1rem;border-left:3px solid var(--line)}
";

/// Returns the pages of the book, with the files that they point to.
///
/// # Errors
/// When a page cannot be read.
pub fn pages(sources: &Sources) -> Result<Tree> {
    let docs = Tree::read(&sources.root.join("docs"))?;
    let mut texts: BTreeMap<String, (String, String)> = BTreeMap::new();
    let mut tree = Tree::default();
    for (path, file) in &docs.files {
        match path.strip_suffix(".md") {
            Some(name) => {
                let text = String::from_utf8(file.bytes.clone()).with_context(|| path.clone())?;
                let page = if name == "README" { "index" } else { name };
                texts.insert(format!("docs/{path}"), (format!("{page}.html"), text));
            }
            None => _ = tree.files.insert(path.clone(), file.clone()),
        }
    }
    for (path, page) in BESIDE {
        texts.insert(path.to_owned(), (page.to_owned(), sources.read(path)?));
    }
    tree.add("LICENSE", sources.read("LICENSE")?);
    let mut places: BTreeMap<String, String> =
        texts.iter().map(|(path, (page, _))| (path.clone(), page.clone())).collect();
    for path in tree.files.keys() {
        let source = if path == "LICENSE" { path.clone() } else { format!("docs/{path}") };
        places.insert(source, path.clone());
    }
    for (path, (page, text)) in &texts {
        tree.add(page.clone(), rendered(path, text, &places));
    }
    Ok(tree)
}

/// A page as HTML.
fn rendered(path: &str, text: &str, places: &BTreeMap<String, String>) -> String {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH;
    let events: Vec<Event<'_>> = Parser::new_ext(text, options).collect();
    let events = without_markup(with_anchors(events));
    let mut body = String::new();
    html::push_html(&mut body, linked(events, path, places).into_iter());
    let title = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or("plimsoll");
    let title = title.replace('&', "&amp;").replace('<', "&lt;").replace('`', "");
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n\
         <nav><a href=\"index.html\">The book</a><a href=\"plimsoll.html\">plimsoll</a>\
         <a href=\"glossary.html\">Glossary</a><a href=\"changelog.html\">Changes</a></nav>\n\
         <main>\n{body}</main>\n</html>\n"
    )
}

/// Headings with the anchors that links to them have.
fn with_anchors(mut events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let mut used: BTreeMap<String, u32> = BTreeMap::new();
    for at in 0..events.len() {
        if !matches!(events[at], Event::Start(Tag::Heading { .. })) {
            continue;
        }
        let inside = events[at + 1..]
            .iter()
            .take_while(|one| !matches!(one, Event::End(TagEnd::Heading(_))));
        let title: String = inside
            .filter_map(|one| match one {
                Event::Text(text) | Event::Code(text) => Some(text.as_ref()),
                _ => None,
            })
            .collect();
        let anchor = anchor(&title);
        let times = used.entry(anchor.clone()).or_default();
        let anchor = if *times == 0 { anchor } else { format!("{anchor}-{times}") };
        *times += 1;
        if let Event::Start(Tag::Heading { id, .. }) = &mut events[at] {
            *id = Some(anchor.into());
        }
    }
    events
}

/// The anchor of a heading, as forges make it: letters and digits in lower case, hyphens for blanks.
fn anchor(title: &str) -> String {
    let kept = title.trim().chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
    kept.flat_map(char::to_lowercase).map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Leaves out the marks of tests, and whatever else is HTML in a page.
fn without_markup(events: Vec<Event<'_>>) -> Vec<Event<'_>> {
    let is_markup = |event: &Event<'_>| {
        matches!(
            event,
            Event::Html(_)
                | Event::InlineHtml(_)
                | Event::Start(Tag::HtmlBlock)
                | Event::End(TagEnd::HtmlBlock)
        )
    };
    events.into_iter().filter(|event| !is_markup(event)).collect()
}

/// Leads links to the pages and files of the book. A link to a file that is not in it becomes its text.
fn linked<'a>(
    events: Vec<Event<'a>>,
    path: &str,
    places: &BTreeMap<String, String>,
) -> Vec<Event<'a>> {
    let mut kept = Vec::new();
    let mut is_text = false;
    for event in events {
        match event {
            Event::Start(Tag::Link { link_type, dest_url, title, id }) => {
                let Some(to) = destination(path, &dest_url, places) else {
                    is_text = true;
                    continue;
                };
                let dest_url = CowStr::from(to);
                kept.push(Event::Start(Tag::Link { link_type, dest_url, title, id }));
            }
            Event::End(TagEnd::Link) if is_text => is_text = false,
            other => kept.push(other),
        }
    }
    kept
}

/// The place in the book that a link of a page means; `None` if it is not in the book.
fn destination(from: &str, link: &str, places: &BTreeMap<String, String>) -> Option<String> {
    if link.starts_with('#') || link.contains("://") {
        return Some(link.to_owned());
    }
    let (file, fragment) = link.split_once('#').unwrap_or((link, ""));
    let mut parts: Vec<&str> = from.split('/').collect();
    parts.pop();
    for part in file.split('/') {
        match part {
            ".." => _ = parts.pop(),
            "." | "" => {}
            part => parts.push(part),
        }
    }
    let mut path = parts.join("/");
    if path == "docs" {
        path = "docs/README.md".to_owned();
    }
    let place = places.get(&path)?;
    Some(if fragment.is_empty() { place.clone() } else { format!("{place}#{fragment}") })
}

/// Links of the pages that lead nowhere, as `page: link`.
#[must_use]
pub fn broken(tree: &Tree) -> Vec<String> {
    let text = |path: &str| tree.files.get(path).map(|file| String::from_utf8_lossy(&file.bytes));
    let values = |text: &str, attribute: &str| -> BTreeSet<String> {
        let start = format!("{attribute}=\"");
        let parts = text.split(start.as_str()).skip(1);
        parts.filter_map(|part| part.split('"').next()).map(str::to_owned).collect()
    };
    let mut found = Vec::new();
    for page in tree.files.keys().filter(|path| path.ends_with(".html")) {
        let own = text(page).unwrap_or_default();
        for link in values(&own, "href").into_iter().filter(|link| !link.contains("://")) {
            let (file, fragment) = link.split_once('#').unwrap_or((&link, ""));
            let target = if file.is_empty() { page.as_str() } else { file };
            let is_there = match text(target) {
                None => false,
                Some(text) => fragment.is_empty() || values(&text, "id").contains(fragment),
            };
            if !is_there {
                found.push(format!("{page}: {link}"));
            }
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn book() -> Tree {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        pages(&Sources::at(&root).unwrap()).unwrap()
    }

    #[test]
    fn every_chapter_is_a_page_and_every_link_leads_somewhere() {
        let book = book();
        for page in [
            "index.html",
            "load.html",
            "plimsoll.html",
            "architecture.html",
            "grafana/plimsoll.json",
        ] {
            assert!(book.files.contains_key(page), "no {page}");
        }
        assert_eq!(broken(&book), Vec::<String>::new());
        let docs = Tree::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs")).unwrap();
        let chapters = docs.files.keys().filter(|path| path.ends_with(".md")).count();
        let pages = book.files.keys().filter(|path| path.ends_with(".html")).count();
        assert_eq!(pages, chapters + BESIDE.len());
    }

    #[test]
    fn pages_have_tables_anchors_and_titles_and_no_scripts_or_marks() {
        let book = book();
        let page = |name: &str| String::from_utf8(book.files[name].bytes.clone()).unwrap();
        let index = page("index.html");
        assert!(index.contains("<title>The book</title>") && index.contains("<table>"), "{index}");
        assert!(index.contains("<a href=\"load.html\">load.md</a>"), "{index}");
        for name in book.files.keys().filter(|path| path.ends_with(".html")) {
            let text = page(name);
            for word in ["<script", "<!--", "href=\"http://127"] {
                assert!(!text.contains(word), "{name}: {word}");
            }
            let links = text.split("href=\"").skip(1).filter_map(|rest| rest.split('"').next());
            let of_the_book = |link: &&str| !link.contains("://") && link.ends_with(".md");
            assert_eq!(links.filter(of_the_book).collect::<Vec<_>>(), [""; 0], "{name}");
            assert_eq!(text.matches("<h1").count(), 1, "{name}");
        }
    }

    #[test]
    fn a_broken_link_is_found_and_a_file_outside_the_book_is_text() {
        let places = BTreeMap::from([
            ("docs/a.md".to_owned(), "a.html".to_owned()),
            ("docs/b.md".to_owned(), "b.html".to_owned()),
            ("README.md".to_owned(), "plimsoll.html".to_owned()),
        ]);
        let text = "# A & B\n\n## Twice `x`\n\n## Twice x\n\n[b](b.md#there) [r](../README.md) [s](../crates/x.rs) [t](#twice-x-1)\n\n<!-- test: x -->\n<b>bold</b>\n";
        let mut tree = Tree::default();
        tree.add("a.html", rendered("docs/a.md", text, &places));
        let page = String::from_utf8(tree.files["a.html"].bytes.clone()).unwrap();
        assert!(page.contains("<title>A &amp; B</title>"), "{page}");
        assert!(
            page.contains("<h2 id=\"twice-x\">") && page.contains("<h2 id=\"twice-x-1\">"),
            "{page}"
        );
        assert!(page.contains("href=\"b.html#there\"") && page.contains("href=\"plimsoll.html\""));
        assert!(page.contains(" s ") && !page.contains("crates/x.rs"), "{page}");
        assert!(!page.contains("test: x") && page.contains("bold") && !page.contains("<b>"));
        for name in ["index", "plimsoll", "glossary", "changelog"] {
            tree.add(format!("{name}.html"), "");
        }
        assert_eq!(broken(&tree), ["a.html: b.html#there"]);
        tree.add("b.html", "<h2 id=\"there\">x</h2>");
        assert_eq!(broken(&tree), Vec::<String>::new());
    }
}
