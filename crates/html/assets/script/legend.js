// The legend of lines: their names, and their values under the cursor.

function addLineLegend(figure, own) {
  const { plot, legend } = figure;
  own.values = plot.series.map(({ label, tone, dots }, i) => {
    const style = dots || plot.kind === "scatter" ? "dot" : (DASHES[tone]?.style ?? "");
    const { entry, value } = legendEntry(label, style, tone, (show) => figure.chart?.setSeries(i + 1, { show }));
    legend.append(entry);
    return value;
  });
  own.place = addPlace(figure);
}

/** The x under the cursor, and the button that shows everything again. */
function addPlace({ legend, area }) {
  const place = make("output", "place");
  const whole = makeButton("whole", "Show all", () => {
    figures.get(area.parentElement.dataset.plot).view.reset();
    area.focus();
  });
  legend.append(place, whole, make("span", "hint", "drag: zoom · Shift + drag: move · double click: all"));
  return place;
}

/** The x of a plot, in words. */
function placeText({ plot, view }, x) {
  if (x == null) return "";
  if (plot.sync === "time") return clock(x, view.full()[1]);
  if (plot.kind === "curve") return percentile(x);
  return `${significant(x)} ${plot.x_label ?? ""}`.trim();
}

const unitOf = (plot, line) => line.unit ?? plot.y[line.axis ?? 0]?.unit ?? "";

function readLines(figure) {
  const { plot, chart, values, place, isSeen } = figure;
  if (!chart || !isSeen) return;
  const { idxs, idx } = chart.cursor;
  const isOver = idx != null && chart.cursor.left >= 0;
  plot.series.forEach((line, i) => {
    const at = isOver ? idxs[i + 1] : null;
    setText(values[i], at == null ? "" : amount(chart.data[i + 1][at], unitOf(plot, line)));
  });
  setText(place, isOver ? placeText(figure, chart.data[0][idx]) : "");
}

/** The values under the cursor as a sentence. */
function spokenLines({ plot, values, place }) {
  const known = plot.series.map((line, i) => `${line.label} ${values[i].textContent}`);
  return `${place.textContent}: ${known.join(", ")}`;
}
