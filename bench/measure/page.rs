//! How fast the page of a run is drawn and moved, in Chromium.

use super::{Bench, Claim, Section};
use crate::browser::Browser;
use crate::sheets::{points, run};
use crate::statistics::{median, short, spread};
use crate::table::Table;
use anyhow::{Context, Result};
use plimsoll_html::render;
use serde_json::Value;
use std::path::Path;

/// The browser that Debian packages.
pub const CHROMIUM: &str = "/usr/bin/chromium";
/// Longest time from opening the page of two hours to its last plot, ms.
const DRAWN_MS_MAX: f64 = 1_000.0;
/// Most bytes of the page of two hours.
const BYTES_MAX: f64 = 1_500_000.0;
/// Fewest frames a second while a plot is moved.
const FRAMES_MIN: f64 = 30.0;

/// Zooms in, drags the plot to and fro for 3 s with Shift held, and returns the frames of a second.
const FRAMES: &str = "(async () => {
  const frame = () => new Promise((done) => requestAnimationFrame(done));
  const [area, over] = ['.area', '.u-over'].map((name) => document.querySelector(`#plot-throughput ${name}`));
  over.scrollIntoView({ block: 'center' });
  area.dispatchEvent(new KeyboardEvent('keydown', { key: '+', bubbles: true }));
  for (let i = 0; i < 20; i++) await frame();
  const { left, top, width } = over.getBoundingClientRect();
  const mouse = (type, x) => over.dispatchEvent(new MouseEvent(type,
    { bubbles: true, shiftKey: true, button: 0, clientX: left + x, clientY: top + 50 }));
  mouse('mousedown', width / 2);
  const start = performance.now();
  let frames = 0;
  while (performance.now() - start < 3000) {
    mouse('mousemove', width / 2 + 200 * Math.sin(frames / 10));
    await frame();
    frames++;
  }
  mouse('mouseup', 0);
  return (frames * 1000) / (performance.now() - start);
})()";

/// A run of two hours at one second, and 100,000 points in one plot.
///
/// # Errors
/// When Chromium is missing or a figure cannot be read.
pub fn page(bench: &Bench) -> Result<Section> {
    anyhow::ensure!(Path::new(CHROMIUM).exists(), "{CHROMIUM} is missing; run: make bench-tools");
    let mut browser = Browser::start(Path::new(CHROMIUM), Box::new(()));
    let figure = |value: Value| value.as_f64().context("a figure of the page");
    let hours = render(&run(7_200, ""));
    let many = render(&points(100_000));
    let (mut drawn_ms, mut hours_frames, mut frames) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..bench.rounds {
        browser.open("hours.html", &hours);
        drawn_ms.push(figure(browser.value("performance.getEntriesByName('drawn')[0].startTime"))?);
        hours_frames.push(figure(browser.value(FRAMES))?);
        browser.open("points.html", &many);
        frames.push(figure(browser.value(FRAMES))?);
    }
    let mut table = Table::new(&["page", "bytes", "drawn after ms", "frames/s while moved"]);
    let row = |name: &str, page: &str, drawn: String, frames: &[f64]| {
        vec![name.to_owned(), page.len().to_string(), drawn, spread(frames, short)]
    };
    table.row(row("2 hours at 1 s", &hours, spread(&drawn_ms, short), &hours_frames));
    table.row(row("100,000 points in a plot", &many, String::new(), &frames));
    Ok(Section {
        title: "The page of a run in Chromium".to_owned(),
        tables: vec![table],
        claims: vec![
            Claim::most("bytes of the page of 2 hours", hours.len() as f64, BYTES_MAX),
            Claim::most("time until it is drawn, ms", median(&drawn_ms), DRAWN_MS_MAX),
            Claim::least("frames/s while it is moved", median(&hours_frames), FRAMES_MIN),
            Claim::least("frames/s while 100,000 points are moved", median(&frames), FRAMES_MIN),
        ],
        notes: vec![
            "Chromium has no window and no graphics card. Time counts from the start of the navigation to the last of all plots."
                .to_owned(),
        ],
    })
}
