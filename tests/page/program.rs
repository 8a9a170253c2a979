//! The pages that the program itself writes.

use super::{COLOURED, plots_of};
use crate::process::Place;

#[test]
fn the_page_of_a_run_of_a_second_has_data_in_every_plot() {
    let mut browser = super::chromium();
    let place = Place::new();
    let target = place.serve(&["null"]);
    let url = format!("{}/<script>alert(1)</script>", target.url);
    let class = "<img src=x onerror=alert(2)>=script";
    let ended = place.run([
        "load",
        &url,
        "--rate",
        "200",
        "--duration",
        "1s",
        "--class",
        class,
        "--html",
        "report.html",
    ]);
    assert!(place.path().join("report.html").exists(), "{ended:?}");
    let html = place.read("report.html");
    for width in [1200, 390] {
        browser.size(width, 900);
        browser.open("report.html", &html);
        let coloured = browser.value(COLOURED);
        let coloured = coloured.as_object().unwrap();
        assert_eq!(coloured.len(), plots_of(&html), "{coloured:?}");
        assert!(coloured.len() >= 5, "{coloured:?}");
        for (plot, pixels) in coloured {
            assert!(pixels.as_i64().unwrap() >= 8, "{plot} is empty at {width}: {pixels}");
        }
        let widths = browser.value("[document.documentElement.scrollWidth, innerWidth]");
        assert!(widths[0].as_u64() <= widths[1].as_u64(), "{widths}");
    }
    browser.assert_quiet("file://");
}
