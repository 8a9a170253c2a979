// Lines over time or a rate, percentile curves, and scattered points: uPlot with bands, marks and limits of our own.

/** Tones whose lines are dashed, so that they differ without colour from those beside them. */
const DASHED = { style: "dashed", dash: [6, 4] };
const DOTTED = { style: "dotted", dash: [2, 3] };
const DASHES = { offered: DASHED, service: DASHED, server: DOTTED, max: DOTTED };
/** Points of a line from which several share a pixel. */
const DENSE = 1500;
const AXIS_FONT = "11px system-ui, sans-serif";

function lineFigure(figure) {
  const { plot, store } = figure;
  plot.series ??= [];
  plot.y = (plot.y ?? []).length ? plot.y : [{ unit: "" }];
  const view = viewOf(plot);
  const own = {
    view,
    isMerged: plot.kind === "scatter" || plot.series.some((series) => series.x),
    hidden: new Set(),
    extent: () => extentOf(figure),
    make: () => makeLines(figure),
    draw: () => drawLines(figure),
    resize: () => resizeChart(figure),
    spoken: () => spokenLines(figure),
    data: () => (figure.kept ??= own.isMerged ? mergedData(plot, store) : commonData(plot, store)),
  };
  view.members.add(figure);
  addLineLegend(figure, own);
  return own;
}

const commonData = (plot, store) => [store.numbers(plot.x), ...plot.series.map((series) => store.numbers(series.a))];

/** Lines that have an x of their own, as one ascending x: every point keeps a place of its own. */
function mergedData(plot, store) {
  const points = [];
  plot.series.forEach((series, line) => {
    const xs = store.numbers(series.x ?? plot.x);
    store.numbers(series.a).forEach((y, i) => {
      if (y != null && xs[i] != null) points.push({ x: xs[i], y, line });
    });
  });
  points.sort((a, b) => a.x - b.x);
  const lines = plot.series.map(() => new Array(points.length).fill(null));
  points.forEach(({ y, line }, i) => (lines[line][i] = y));
  return [points.map(({ x }) => x), ...lines];
}

/** The stretch of x that a plot covers by itself; null without data. */
function extentOf({ plot, data }) {
  const xs = data()[0];
  if (xs.length === 0) return null;
  const [low, high] = [xs[0], xs.at(-1)];
  if (plot.kind === "heat") return [low, columnEnd(xs, xs.length - 1)];
  if (plot.kind === "curve") return [1, Math.max(high, 10)];
  if (plot.kind !== "scatter" || plot.x_log) return [low, high];
  const margin = (high - low || Math.abs(high) || 1) * 0.04;
  return [low >= 0 ? Math.max(0, low - margin) : low - margin, high + margin];
}

function makeLines(figure) {
  const { plot, view } = figure;
  const xDistr = view.isLog ? 3 : 1;
  const scales = { x: { time: false, distr: xDistr, range: () => view.shown() } };
  plot.y.forEach((axis, i) => {
    scales[`y${i}`] = { distr: axis.log ? 3 : 1, range: (u, min, max) => yRange(figure, i, min, max) };
  });
  const series = plot.series.map((line) => lineOptions(figure, line));
  figure.chart = makeChart(figure, {
    scales,
    series: [{}, ...series],
    axes: [xAxis(figure), ...plot.y.map((axis, i) => yAxis(figure, axis, i))],
    hooks: {
      drawClear: [() => drawBands(figure)],
      drawAxes: [() => fillBetween(figure)],
      draw: [() => drawNotes(figure)],
      setCursor: [() => readLines(figure)],
    },
  });
}

/** Makes the uPlot of a figure and shows its stretch of x. */
function makeChart(figure, options) {
  const chart = new uPlot(
    {
      width: Math.max(figure.width, 120),
      height: heightOf(figure),
      padding: [22, rightPadding(figure.plot), 0, 0],
      legend: { show: false },
      focus: { alpha: 1 },
      cursor: {
        ...cursorOptions(figure),
        dataIdx: figure.isMerged ? nearestPoint : undefined,
      },
      ...options,
      hooks: { ...options.hooks, setSelect: [() => zoomToSelection(figure)] },
    },
    figure.data(),
    figure.area,
  );
  figure.chart = chart;
  addKeys(figure);
  addTouch(figure);
  return chart;
}

/** Where one plot over time has a second axis, the others leave its place free, so that one moment is at one place. */
function rightPadding({ y, sync }) {
  const isAligned = sync && innerWidth > 640 && [...figures.values()].some(({ plot }) => plot.sync && plot.y.length > 1);
  return y.length > 1 ? 0 : isAligned ? 50 : 22;
}

function heightOf({ plot, width }) {
  if (plot.kind === "heat") return 260;
  return width < 500 ? 210 : plot.kind === "lines" ? 230 : 290;
}

function drawLines(figure) {
  const { chart, view } = figure;
  const [min, max] = view.shown();
  chart.batch(() => {
    if (!figure.kept) chart.setData(figure.data(), false);
    chart.setScale("x", { min, max });
    // A change of colours moves no scale, so it asks for the drawing itself.
    chart.redraw(true, true);
  });
}

function resizeChart(figure) {
  figure.chart.setSize({ width: Math.max(figure.width, 120), height: heightOf(figure) });
}

function lineOptions(figure, line) {
  const { store } = figure;
  const isScatter = line.dots || figure.plot.kind === "scatter";
  const stroke = () => toneInk(line.tone);
  // Thin and not dashed where the points are dense: it is clearer, and several times faster to draw.
  const isDense = store.numbers(line.a).length > DENSE;
  return {
    scale: `y${line.axis ?? 0}`,
    label: line.label,
    stroke,
    width: isDense ? 1 : 1.5,
    dash: isDense ? undefined : DASHES[line.tone]?.dash,
    spanGaps: figure.isMerged && !isScatter,
    paths: isScatter ? () => null : undefined,
    points: {
      show: isScatter,
      size: isScatter ? 6 : 8,
      width: 1,
      stroke,
      fill: () => (isScatter ? faded(toneInk(line.tone), 0.35) : toneInk(line.tone)),
      filter: isScatter || figure.isMerged ? undefined : lonelyPoints,
    },
  };
}

/** Numbers between two gaps, which no line would show. */
function lonelyPoints(u, series) {
  const numbers = u.data[series];
  const [from, to] = u.series[0].idxs;
  const found = [];
  for (let i = from; i <= to; i++) {
    if (numbers[i] != null && numbers[i - 1] == null && numbers[i + 1] == null) found.push(i);
  }
  return found.length ? found : null;
}

/** The nearest point of a line whose points stand at places of their own. */
function nearestPoint(u, series, index) {
  const numbers = u.data[series];
  if (series === 0 || numbers[index] != null) return index;
  const [from, to] = u.series[0].idxs;
  for (let away = 1; index - away >= from || index + away <= to; away++) {
    if (index - away >= from && numbers[index - away] != null) return index - away;
    if (index + away <= to && numbers[index + away] != null) return index + away;
  }
  return null;
}

/** The stretch of y: from zero, or between steps of a logarithmic axis; limits near the data are in it. */
function yRange({ plot }, axis, min, max) {
  const limits = (plot.limits ?? []).filter((limit) => (limit.axis ?? 0) === axis).map((limit) => limit.y);
  if (min == null || max == null) return plot.y[axis].log ? [1, 10] : [0, 1];
  if (plot.y[axis].log) {
    if (!(max > 0)) return [0.1, 1];
    const low = min > 0 ? min : max / 1000;
    const near = limits.filter((limit) => limit > low / 30 && limit < max * 30);
    const from = logEdge(Math.min(low, ...near), false);
    const to = logEdge(Math.max(max, ...near), true);
    return from < to ? [from, to] : [from / 2, to * 2];
  }
  const near = limits.filter((limit) => limit <= max * 2.5);
  const top = Math.max(max, ...near);
  const bottom = Math.min(min, 0);
  return top === bottom ? [bottom, bottom + 1] : [bottom, top + (top - bottom) * 0.08];
}

function xAxis(figure) {
  const { plot, view } = figure;
  const isTime = plot.sync === "time";
  const options = { ...axisStyle(), space: 64, size: 34, gap: 4 };
  const isCurve = plot.kind === "curve";
  const text = isTime ? (split) => clock(split, view.full()[1]) : isCurve ? percentile : (split) => short(split);
  options.values = (u, splits) => splits.map(text);
  if (isTime) options.incrs = TIME_STEPS;
  if (view.isLog) {
    options.filter = (u, splits) => splits;
    options.splits = (u, axis, min, max) =>
      isCurve ? PERCENTILES.filter((at) => at >= min * 0.999 && at <= max * 1.001) : logSplits(min, max);
  }
  if (!isTime && !isCurve && plot.x_label) {
    Object.assign(options, { label: plot.x_label, labelSize: 16, labelGap: 0, labelFont: AXIS_FONT });
  }
  return options;
}

function axisStyle() {
  const line = () => ink("rule");
  return {
    stroke: () => ink("muted"),
    font: AXIS_FONT,
    grid: { stroke: line, width: 1 },
    ticks: { stroke: line, width: 1, size: 5 },
    border: { show: false },
  };
}

function yAxis(figure, axis, i) {
  const options = {
    ...axisStyle(),
    scale: `y${i}`,
    side: i === 0 ? 3 : 1,
    // All plots have the same width here, so that one moment stands at one place on all of them.
    size: 50,
    gap: 4,
    space: 34,
    values: (u, splits) => splits.map((split) => tickText(split, axis.unit)),
  };
  if (i > 0) options.grid = { show: false };
  if (axis.log) {
    options.splits = (u, _, min, max) => logSplits(min, max);
    options.filter = (u, splits) => splits;
  }
  return options;
}

const tickText = (value, unit) => (isBytes(unit) && value ? short(value, 1e3).replace(/[a-z]?$/i, " $&B") : short(value));

/** Draws on the canvas of a plot, in pixels of the page from the corner of the plot's area. */
function paint({ ctx, bbox }, draw) {
  const ratio = devicePixelRatio;
  ctx.save();
  ctx.scale(ratio, ratio);
  ctx.translate(bbox.left / ratio, bbox.top / ratio);
  ctx.font = AXIS_FONT;
  ctx.textBaseline = "bottom";
  draw(ctx, bbox.width / ratio, bbox.height / ratio);
  ctx.restore();
}

/** Keeps what is drawn next within the area of the plot. */
function clip(ctx, width, height) {
  ctx.beginPath();
  ctx.rect(0, 0, width, height);
  ctx.clip();
}

function write(ctx, text, x, y, align, colour) {
  ctx.textAlign = align;
  ctx.fillStyle = colour;
  ctx.fillText(text, x, y);
}

/** Phases and other stretches of x, shaded, with their names above them. */
function drawBands({ plot, chart }) {
  paint(chart, (ctx, width, height) => {
    (plot.bands ?? []).forEach(({ from, to, label }, i) => {
      const left = Math.max(chart.valToPos(from, "x"), 0);
      const wide = Math.min(chart.valToPos(to, "x"), width) - left;
      if (wide <= 0) return;
      ctx.fillStyle = faded(ink("muted"), i % 2 ? 0.05 : 0.1);
      ctx.fillRect(left, 0, wide, height);
      if (ctx.measureText(label).width < wide - 8) write(ctx, label, left + 4, -6, "left", ink("muted"));
    });
  });
}

/** Fills the space between a line and the one that it names as `below`. uPlot's own bands take three times as long. */
function fillBetween({ plot, chart }) {
  const { data, series } = chart;
  const [from, to] = series[0].idxs;
  paint(chart, (ctx, width, height) => {
    clip(ctx, width, height);
    const step = Math.max(1, Math.floor((to - from) / width));
    plot.series.forEach((line, i) => {
      const low = plot.series.findIndex(({ label }) => label === line.below) + 1;
      if (!low || !series[i + 1].show) return;
      ctx.fillStyle = faded(toneInk(line.tone), 0.16);
      const y = `y${line.axis ?? 0}`;
      let run = [];
      const fill = () => {
        const places = [...run.map((at) => [at, i + 1]), ...run.reverse().map((at) => [at, low])];
        ctx.beginPath();
        for (const [at, k] of places) ctx.lineTo(chart.valToPos(data[0][at], "x"), chart.valToPos(data[k][at], y));
        ctx.fill();
        run = [];
      };
      // The same points are taken wherever the view stands, so that nothing shimmers when it moves.
      for (let at = Math.max(0, from - (from % step) - step); at < Math.min(to + 2 * step, data[0].length); at += step) {
        if (data[i + 1][at] == null || data[low][at] == null) fill();
        else run.push(at);
      }
      fill();
    });
  });
}

/** Units of the axes, limits with their words, and marks. */
function drawNotes({ plot, chart }) {
  paint(chart, (ctx, width, height) => {
    plot.y.forEach(({ unit }, i) => {
      if (!isBytes(unit)) write(ctx, unit, i ? width + 46 : -46, -9, i ? "right" : "left", ink("muted"));
    });
    for (const limit of plot.limits ?? []) drawLimit(chart, limit, ctx, width, height);
    const ends = [];
    const { min, max } = chart.scales.x;
    for (const { x, label, tone } of (plot.marks ?? []).toSorted((a, b) => a.x - b.x)) {
      if (x < min || x > max) continue;
      const at = Math.round(chart.valToPos(x, "x")) + 0.5;
      dashed(ctx, [2, 2], toneInk(tone), [at, 0, at, height]);
      // Words of near marks stand in rows, so that they do not cover each other.
      const wide = ctx.measureText(label).width;
      const left = at + wide + 8 > width ? at - wide - 4 : at + 4;
      const row = ends.findIndex((end) => end <= left);
      const place = row < 0 ? ends.length : row;
      if (place > 3 || left < 0) continue;
      ends[place] = left + wide + 6;
      outlined(ctx, label, left, 14 + 14 * place, "left", toneInk(tone));
    }
  });
}

/** A limit: a line with its words, or an arrow towards it if it lies outside. */
function drawLimit(chart, { y, label, axis }, ctx, width, height) {
  const key = `y${axis ?? 0}`;
  const { min, max } = chart.scales[key] ?? {};
  if (max == null) return;
  const colour = toneInk("bad");
  if (y > max) return write(ctx, `${label} ↑`, width - 4, -6, "right", colour);
  if (y < min) return outlined(ctx, `${label} ↓`, width - 4, height - 5, "right", colour);
  const at = Math.round(chart.valToPos(y, key)) + 0.5;
  dashed(ctx, [4, 3], colour, [0, at, width, at]);
  outlined(ctx, label, width - 4, at - 5, "right", colour);
}

function dashed(ctx, dash, colour, [fromX, fromY, toX, toY]) {
  ctx.lineWidth = 1;
  ctx.setLineDash(dash);
  ctx.strokeStyle = colour;
  ctx.beginPath();
  ctx.moveTo(fromX, fromY);
  ctx.lineTo(toX, toY);
  ctx.stroke();
  ctx.setLineDash([]);
}

/** A text that stays readable over lines. */
function outlined(ctx, text, x, y, align, colour) {
  ctx.textAlign = align;
  ctx.strokeStyle = ink("card");
  ctx.lineWidth = 3;
  ctx.lineJoin = "round";
  ctx.strokeText(text, x, y);
  write(ctx, text, x, y, align, colour);
}
