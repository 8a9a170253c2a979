//! How the page reacts: tables, theme, keys and mouse.

use super::browser::Browser;
use super::sheets::run;
use super::{LINE_COLOUR, texts};
use plimsoll_html::render;

fn open() -> Browser {
    let mut browser = super::chromium();
    browser.open("minute.html", &render(&run(60, "")));
    browser
}

#[test]
fn a_table_sorts_by_click_and_by_key() {
    let mut browser = open();
    let names = |browser: &mut Browser| texts(browser, "#classes table tbody td:first-child");
    let sorted = |browser: &mut Browser| {
        browser.value(
            "[...document.querySelectorAll('#classes th')].map((one) => one.ariaSort).join()",
        )
    };
    let first = ["search", "browse", "item 10", "item 9"];
    assert_eq!(names(&mut browser), first);
    assert_eq!(sorted(&mut browser), "none,none,none");
    browser.click("#classes th:nth-child(2) button");
    assert_eq!(names(&mut browser), ["browse", "search", "item 10", "item 9"], "the largest first");
    assert_eq!(sorted(&mut browser), "none,descending,none");
    browser.click("#classes th:nth-child(3) button");
    assert_eq!(names(&mut browser), ["item 9", "search", "browse", "item 10"], "unknown last");
    browser.press("Enter");
    assert_eq!(
        names(&mut browser),
        ["browse", "search", "item 9", "item 10"],
        "unknown last again"
    );
    assert_eq!(sorted(&mut browser), "none,none,ascending");
    browser.press("Enter");
    assert_eq!(names(&mut browser), first, "as the page had it");
    browser.click("#classes th:nth-child(1) button");
    assert_eq!(
        names(&mut browser),
        ["browse", "item 9", "item 10", "search"],
        "numbers in names count"
    );
    browser.assert_quiet("file://");
}

#[test]
fn the_theme_follows_the_system_until_the_reader_chooses() {
    let mut browser = open();
    let paper = "getComputedStyle(document.body).backgroundColor";
    let light = (browser.value(paper), browser.value(LINE_COLOUR));
    browser.prefer("dark", "");
    browser.settle();
    let dark = (browser.value(paper), browser.value(LINE_COLOUR));
    assert!(light.0 != dark.0 && light.1 != dark.1, "{light:?} {dark:?}");
    for (label, expected) in
        [("Theme: light", &light), ("Theme: dark", &dark), ("Theme: auto", &dark)]
    {
        browser.click(".theme");
        assert_eq!(texts(&mut browser, ".theme"), [label]);
        assert_eq!((browser.value(paper), browser.value(LINE_COLOUR)), *expected, "{label}");
    }
    browser.assert_quiet("file://");
}

/// The stretch of x that a plot shows, by the labels of its axis: they are on the canvas, so the button tells of a zoom.
fn zoomed(browser: &mut Browser) -> Vec<String> {
    let found = browser.value(
        "[...document.querySelectorAll('figure.plot:has(.zoomed)')].map((one) => one.dataset.plot)",
    );
    serde_json::from_value(found).unwrap()
}

const OVER_TIME: [&str; 6] = ["throughput", "latency", "heat", "generator", "cores", "traffic"];

#[test]
fn one_cursor_and_one_zoom_serve_all_plots_over_time() {
    let mut browser = open();
    let place = browser.place_of("#plot-latency .u-over", 0.5);
    browser.mouse("mouseMoved", place, 0);
    let at = texts(&mut browser, "#plot-latency .place");
    assert_eq!(at, ["30 s"], "in the middle of 59 s");
    assert_eq!(texts(&mut browser, "#plot-throughput .place"), at, "the neighbour follows");
    assert!(
        texts(&mut browser, "#plot-throughput .entry output")
            .iter()
            .all(|value| value.ends_with("/s"))
    );
    // From here to the right: a quarter of the run.
    let end = browser.place_of("#plot-latency .u-over", 0.75);
    browser.mouse("mousePressed", place, 0);
    browser.mouse("mouseMoved", ((place.0 + end.0) / 2.0, end.1), 0);
    browser.mouse("mouseMoved", end, 0);
    browser.mouse("mouseReleased", end, 0);
    assert_eq!(zoomed(&mut browser), OVER_TIME);
    let middle = browser.place_of("#plot-latency .u-over", 0.5);
    browser.mouse("mouseMoved", middle, 0);
    assert_eq!(texts(&mut browser, "#plot-latency .place"), ["37 s"]);
    // With Shift, dragging to the left moves to later times.
    let left = browser.place_of("#plot-latency .u-over", 0.1);
    const SHIFT: u32 = 8;
    browser.mouse("mousePressed", middle, SHIFT);
    browser.mouse("mouseMoved", left, SHIFT);
    browser.mouse("mouseReleased", left, SHIFT);
    browser.mouse("mouseMoved", middle, 0);
    assert_eq!(texts(&mut browser, "#plot-latency .place"), ["43 s"]);
    for _ in 0..2 {
        browser.mouse("mousePressed", middle, 0);
        browser.mouse("mouseReleased", middle, 0);
    }
    let double = "document.querySelector('#plot-latency .u-over').dispatchEvent(new MouseEvent('dblclick', {bubbles: true}))";
    browser.value(double);
    browser.settle();
    assert!(zoomed(&mut browser).is_empty());
    browser.assert_quiet("file://");
}

#[test]
fn keys_read_values_and_zoom() {
    let mut browser = open();
    // The keyboard alone reaches the plot.
    for _ in 0..40 {
        if browser.value("document.activeElement.closest('#plot-throughput .area') !== null")
            == true
        {
            break;
        }
        browser.press("Tab");
    }
    assert_eq!(browser.value("document.activeElement.className"), "area", "reached by Tab");
    browser.press("ArrowRight");
    browser.press("ArrowRight");
    assert_eq!(texts(&mut browser, "#plot-throughput .place"), ["1 s"]);
    let spoken = texts(&mut browser, "[role=status]");
    assert!(spoken[0].starts_with("1 s: offered 500/s, achieved 49"), "{spoken:?}");
    browser.press("End");
    assert_eq!(texts(&mut browser, "#plot-throughput .place"), ["59 s"]);
    browser.press("+");
    browser.press("+");
    assert_eq!(zoomed(&mut browser), OVER_TIME);
    browser.press("Home");
    assert_eq!(
        texts(&mut browser, "#plot-throughput .place"),
        ["45 s"],
        "the last quarter is shown"
    );
    browser.press("-");
    browser.press("-");
    assert!(zoomed(&mut browser).is_empty(), "all of it again");
    browser.press("+");
    browser.press("Escape");
    assert!(zoomed(&mut browser).is_empty());
    assert_eq!(texts(&mut browser, "#plot-throughput .place"), [""]);
    browser.assert_quiet("file://");
}

#[test]
fn a_line_can_be_hidden_and_shown() {
    let mut browser = open();
    let coloured =
        |browser: &mut Browser| browser.value(super::COLOURED)["cores"].as_i64().unwrap();
    let before = coloured(&mut browser);
    browser.click("#plot-cores .entry");
    let without = coloured(&mut browser);
    assert!(without < before, "{without} of {before}");
    assert_eq!(browser.value("document.querySelector('#plot-cores .entry').ariaPressed"), "false");
    browser.click("#plot-cores .entry");
    assert_eq!(coloured(&mut browser), before);
}
