//! Script and style of the page, from files of this crate, without their comments and blanks: a page is read once and kept for
//! years, so that code and style together must stay small.

mod lean;

use std::sync::LazyLock;

/// The files of the script, in the order in which they need each other.
const SCRIPTS: [&str; 12] = [
    include_str!("../assets/script/data.js"),
    include_str!("../assets/script/format.js"),
    include_str!("../assets/script/theme.js"),
    include_str!("../assets/script/figure.js"),
    include_str!("../assets/script/view.js"),
    include_str!("../assets/script/lines.js"),
    include_str!("../assets/script/legend.js"),
    include_str!("../assets/script/heat.js"),
    include_str!("../assets/script/grid.js"),
    include_str!("../assets/script/tables.js"),
    include_str!("../assets/script/live.js"),
    include_str!("../assets/script/start.js"),
];

/// Returns the style of the page; it has the few rules that uPlot needs.
pub fn style() -> &'static str {
    static STYLE: LazyLock<String> =
        LazyLock::new(|| lean::style(include_str!("../assets/page.css")));
    &STYLE
}

/// Returns the script: uPlot, and the page's own.
pub fn script() -> &'static str {
    static SCRIPT: LazyLock<String> = LazyLock::new(|| {
        let uplot = include_str!("../assets/uplot/uPlot.iife.min.js");
        let own = lean::script(&SCRIPTS.concat());
        format!("{}\n(()=>{{\"use strict\";\n{own}}})();\n", uplot.trim_end())
    });
    &SCRIPT
}

/// Licence of uPlot.
pub const UPLOT_LICENCE: &str = include_str!("../assets/uplot/LICENSE");

/// Version of uPlot.
pub const UPLOT_VERSION: &str = include_str!("../assets/uplot/VERSION");

#[cfg(test)]
mod tests;
