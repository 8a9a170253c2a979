//! The page of a run in a real Chromium: what it draws, how it reacts, and what it never does.

mod browser;
mod following;
mod live;
mod picture;
mod program;
mod reacting;
mod server;
mod sheets;

use crate::machine::Share;
use crate::process::find_program;
use browser::Browser;
use plimsoll_html::render;
use serde_json::{Value, json};
use sheets::{HOSTILE, points, run};

/// Starts Chromium, which keeps a core busy.
fn chromium() -> Browser {
    let share = Box::new(Share::busy());
    Browser::start(&find_program("chromium"), share)
}

/// Number of coloured pixels within the area of each plot: those of lines, points and cells, not of grid and letters.
const COLOURED: &str = "Object.fromEntries([...document.querySelectorAll('figure.plot')].map((figure) => {
  const canvas = figure.querySelector('canvas');
  if (!canvas) return [figure.dataset.plot, -1];
  const over = figure.querySelector('.u-over') ?? canvas;
  const [inner, outer] = [over.getBoundingClientRect(), canvas.getBoundingClientRect()];
  const ratio = canvas.width / outer.width;
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData((inner.left - outer.left) * ratio, (inner.top - outer.top) * ratio,
    inner.width * ratio, inner.height * ratio);
  let coloured = 0;
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b, a] = data.subarray(i, i + 4);
    if (a > 60 && Math.max(r, g, b) - Math.min(r, g, b) > 50) coloured++;
  }
  return [figure.dataset.plot, coloured];
}))";

fn plots_of(html: &str) -> usize {
    html.matches("<figure class=\"plot\"").count()
}

#[test]
fn every_plot_holds_data_and_nothing_goes_wrong() {
    let mut browser = chromium();
    let pages = [
        ("second", run(1, "")),
        ("minute", run(60, "")),
        ("hours", run(7_200, "")),
        ("hostile", run(30, HOSTILE)),
        ("points", points(10_000)),
    ];
    for (name, sheet) in pages {
        let html = render(&sheet);
        browser.open(&format!("{name}.html"), &html);
        let coloured = browser.value(COLOURED);
        let coloured = coloured.as_object().unwrap();
        assert_eq!(coloured.len(), plots_of(&html), "{name}: {coloured:?}");
        for (plot, pixels) in coloured {
            assert!(pixels.as_i64().unwrap() >= 8, "{name}: {plot} is empty: {pixels}");
        }
        assert_eq!(
            browser.value("document.querySelectorAll('figure.plot > svg').length"),
            0,
            "{name}"
        );
        assert_eq!(
            browser.value("document.querySelectorAll('main img, main script, main iframe').length"),
            0
        );
        browser.assert_quiet("file://");
    }
    // The pixels are those of the lines: without lines there are none.
    browser.open("minute.html", &render(&run(60, "")));
    browser
        .value("document.querySelectorAll('#plot-cores .entry').forEach((entry) => entry.click())");
    browser.settle();
    let pixels = browser.value(COLOURED)["cores"].as_i64().unwrap();
    assert!(pixels < 8, "{pixels} pixels without a line");
}

#[test]
fn hostile_texts_stand_on_the_page_as_text() {
    let mut browser = chromium();
    browser.open("hostile.html", &render(&run(30, HOSTILE)));
    let shown = browser.value("document.querySelector('h1').textContent");
    assert!(
        shown.as_str().unwrap().contains("</script></style><script>alert(1)</script>"),
        "{shown}"
    );
    // NUL and marks that turn the text around are written out.
    for hidden in ["\0", "\u{202e}"] {
        assert!(!browser.value("document.body.innerText").as_str().unwrap().contains(hidden));
    }
    let entries = browser.value("document.querySelectorAll('#plot-throughput .entry').length");
    assert_eq!(entries, 3, "the legend stands");
    browser.assert_quiet("file://");
}

#[test]
fn a_phone_shows_the_page_without_sideways_scroll() {
    let mut browser = chromium();
    for width in [320, 390, 768] {
        browser.size(width, 844);
        for (name, sheet) in [("minute", run(60, "")), ("hostile", run(30, HOSTILE))] {
            browser.open(&format!("{name}.html"), &render(&sheet));
            browser
                .value("document.querySelectorAll('details').forEach((one) => (one.open = true))");
            browser.settle();
            let widths = browser.value("[document.documentElement.scrollWidth, innerWidth]");
            assert!(widths[0].as_u64() <= widths[1].as_u64(), "{name} at {width}: {widths}");
            // The scroll is not hidden either: everything ends within the window, or within a table's own scroll.
            let wide = browser.value(
                "[...document.querySelectorAll('main *')].filter((one) => !one.closest('.scroll') && !one.closest('.unseen') && \
                 one.getBoundingClientRect().right > innerWidth + 1).map((one) => one.outerHTML.slice(0, 80))",
            );
            assert_eq!(wide, json!([]), "{name} at {width}");
        }
    }
}

#[test]
fn the_page_reads_where_scripts_and_styles_are_blocked() {
    let html = render(&run(60, ""));
    let page = html.clone();
    // What Jenkins sends with the files of a build.
    let policy = "Content-Security-Policy: sandbox; default-src 'none'; img-src 'self'; style-src 'self';\r\nContent-Type: text/html\r\n";
    let server = server::Server::new(move |request, _, stream| match request[1].as_str() {
        "/report.html" => server::reply(stream, "200 OK", policy, &page),
        _ => server::reply(stream, "404 Not Found", "", ""),
    });
    let mut browser = chromium();
    browser.go(&server.url("/report.html"));
    assert!(browser.value("document.documentElement.dataset.drawn").is_null(), "no script ran");
    assert_eq!(browser.value("document.styleSheets.length"), 0, "no style is in use");
    let is_shown = "((one) => one.checkVisibility() && one.getBoundingClientRect().height > 0)";
    for (what, selector, least) in [
        ("headline", "h1", 1),
        ("verdict", ".verdict", 1),
        ("pictures of plots", "figure.plot > svg", 3),
        ("the flow", "svg.flow", 1),
    ] {
        let shown = browser.value(&format!(
            "[...document.querySelectorAll({})].filter({is_shown}).length",
            json!(selector)
        ));
        assert!(shown.as_u64().unwrap() >= least, "{what}: {shown}");
    }
    let shapes = browser.value(
        "[...document.querySelectorAll('figure.plot > svg')].map((one) => [...one.querySelectorAll('path')].filter((path) => \
         path.getTotalLength() > 100 && getComputedStyle(path).stroke !== 'none').length)",
    );
    assert!(
        shapes.as_array().unwrap().iter().all(|lines| lines.as_u64().unwrap() >= 2),
        "{shapes}"
    );
    // A table of a plot opens without a script.
    browser.value("document.querySelectorAll('details').forEach((one) => (one.open = true))");
    let hidden = browser.value(&format!(
        "[...document.querySelectorAll('table')].filter((one) => !{is_shown}(one)).length"
    ));
    assert_eq!(hidden, 0);
    assert_eq!(
        browser.value("document.querySelectorAll('table').length").as_u64().unwrap() as usize,
        html.matches("<table").count()
    );
}

#[test]
fn paper_has_light_colours_and_every_plot() {
    let mut browser = chromium();
    browser.prefer("dark", "");
    browser.open("minute.html", &render(&run(60, "")));
    let dark = browser.value(LINE_COLOUR);
    let sheet = browser.call("Page.printToPDF", json!({"printBackground": true}));
    let pdf = sheet["data"].as_str().unwrap();
    assert!(pdf.starts_with("JVBERi0"), "a PDF");
    assert!(pdf.len() > 60_000, "{} characters of base64 with all plots as images", pdf.len());
    browser.settle();
    assert_eq!(browser.value(LINE_COLOUR), dark, "the screen is as it was");
    browser.prefer("dark", "print");
    browser.settle();
    assert_eq!(
        browser.value("getComputedStyle(document.body).backgroundColor"),
        "rgb(255, 255, 255)"
    );
    let light = browser.value(LINE_COLOUR);
    assert_ne!(light, dark, "lines are drawn for white paper");
    for gone in ["nav", ".tools", "#plot-throughput .hint"] {
        let display = browser
            .value(&format!("getComputedStyle(document.querySelector({})).display", json!(gone)));
        assert_eq!(display, "none", "{gone}");
    }
    let widest = browser.value("Math.max(...[...document.querySelectorAll('canvas')].map((one) => one.getBoundingClientRect().width))");
    assert!(widest.as_f64().unwrap() <= 700.0, "plots are as wide as paper: {widest}");
    browser.assert_quiet("file://");
}

/// The most frequent strong colour of the plot of throughput.
const LINE_COLOUR: &str = "(() => {
  const canvas = document.querySelector('#plot-throughput canvas');
  const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d');
  copy.drawImage(canvas, 0, 0);
  const { data } = copy.getImageData(0, 0, canvas.width, canvas.height);
  const counts = new Map();
  for (let i = 0; i < data.length; i += 4) {
    const [r, g, b, a] = data.subarray(i, i + 4);
    if (a === 255 && Math.max(r, g, b) - Math.min(r, g, b) > 100) counts.set([r, g, b].join(), (counts.get([r, g, b].join()) ?? 0) + 1);
  }
  return [...counts].sort((a, b) => b[1] - a[1])[0]?.[0] ?? '';
})()";

#[test]
fn the_page_looks_as_it_did() {
    let html = render(&run(60, ""));
    let mut browser = chromium();
    for (name, scheme, width) in
        [("light", "light", 1200), ("dark", "dark", 1200), ("phone", "light", 390)]
    {
        browser.size(width, 1500);
        browser.prefer(scheme, "");
        browser.open("minute.html", &html);
        let shot = browser.screenshot();
        picture::assert_golden(name, &shot);
        if name == "light" {
            // The comparison sees a page that differs.
            browser.value("document.querySelector('#decide').remove()");
            let other = browser.screenshot();
            assert!(picture::difference(&shot, &other) > 0.05);
        }
    }
}

/// The text of an element, or of all that match.
fn texts(browser: &mut Browser, selector: &str) -> Vec<String> {
    let found = browser.value(&format!(
        "[...document.querySelectorAll({})].map((one) => one.textContent)",
        json!(selector)
    ));
    found.as_array().unwrap().iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
