// The heat map: how many requests took how long, at each time. uPlot has the axes, the cells are drawn here.

function heatFigure(figure) {
  const { plot, store, legend } = figure;
  const view = viewOf(plot);
  const edges = plot.y.edges ?? [];
  const own = {
    view,
    extent: () => extentOf(figure),
    make: () => makeHeat(figure),
    draw: () => drawLines(figure),
    resize: () => resizeChart(figure),
    spoken: () => `${own.place.textContent}: ${own.reading.textContent}`,
    data: () => (figure.kept ??= [store.numbers(plot.x), store.numbers(plot.x).map(() => null)]),
    reading: make("output", "reading"),
    unit: plot.y.unit ?? "",
    edges,
  };
  const key = make("span", "heat-key");
  own.keyMost = make("span", "");
  key.append(make("span", "", "1"), make("i", ""), own.keyMost);
  legend.append(key, own.reading);
  view.members.add(figure);
  own.place = addPlace(figure);
  return own;
}

/** A column ends where the next begins; the last is as long as that before it. */
const columnEnd = (xs, i) => xs[i + 1] ?? xs[i] + (i > 0 ? xs[i] - xs[i - 1] : 1);

function makeHeat(figure) {
  const { plot, edges, unit } = figure;
  // As the axes of other plots have it.
  figure.plot = { ...plot, y: [{ unit, log: true }] };
  takeCells(figure, figure.cells ?? plot.cells ?? []);
  const range = () => heatRows(figure);
  figure.chart = makeChart(figure, {
    scales: { x: { time: false, range: () => figure.view.shown() }, y0: { distr: 3, range } },
    series: [{}, { scale: "y0", paths: () => null, points: { show: false } }],
    axes: [xAxis(figure), yAxis(figure, { unit, log: true }, 0)],
    hooks: {
      drawAxes: [() => drawHeat(figure)],
      draw: [() => drawNotes(figure)],
      setCursor: [() => readHeat(figure)],
    },
  });
  if (edges.length < 2) figure.legend.hidden = true;
}

/** Takes the counts, and finds the most in a cell and the rows that have some. */
function takeCells(figure, cells) {
  let [low, high, most] = [Infinity, -Infinity, 1];
  for (const run of cells) {
    low = Math.min(low, run[1]);
    high = Math.max(high, run[1] + run.length - 2);
    for (let i = 2; i < run.length; i++) if (run[i] > most) most = run[i];
  }
  Object.assign(figure, { cells, low, high, most });
  setText(figure.keyMost, `${significant(most)} requests`);
}

/** The stretch of y with counts in it, one row more on either side. */
function heatRows({ low, high, edges }) {
  if (edges.length < 2) return [1, 10];
  const positive = edges.find((edge) => edge > 0) ?? 1;
  return [Math.max(edges[Math.max(low - 1, 0)] ?? 0, positive), edges[Math.min(high + 1, edges.length - 1)] ?? edges.at(-1)];
}

/** Place of the first run of counts of a column, or of one after it. */
function firstRun(cells, col) {
  let [low, high] = [0, cells.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (cells[middle][0] < col) low = middle + 1;
    else high = middle;
  }
  return low;
}

function drawHeat(figure) {
  const { chart, edges } = figure;
  paint(chart, (ctx, width, height) => {
    clip(ctx, width, height);
    ctx.imageSmoothingEnabled = false;
    const wide = Math.max(1, Math.round(width));
    const picture = heatPicture(figure, wide);
    const place = (edge) => Math.round(chart.valToPos(Math.max(edge, chart.scales.y0.min), "y0"));
    for (let row = 0; row < edges.length - 1; row++) {
      const [bottom, top] = [place(edges[row]), place(edges[row + 1])];
      if (bottom > top) ctx.drawImage(picture, 0, row, wide, 1, 0, top, width, bottom - top);
    }
  });
}

/** A picture with one pixel a row and a column of the screen; where several columns meet, it shows their mean. */
function heatPicture({ chart, cells, edges, most }, wide) {
  const xs = chart.data[0];
  const rows = Math.max(edges.length - 1, 1);
  const sums = new Float32Array(wide * rows);
  const columns = new Uint16Array(wide);
  const { min, max } = chart.scales.x;
  const place = (x) => ((x - min) / (max - min)) * wide;
  let last = -1;
  for (let k = firstRun(cells, indexAtMost(xs, min)); k < cells.length; k++) {
    const run = cells[k];
    const col = run[0];
    if (!(xs[col] < max)) break;
    const from = Math.max(0, Math.floor(place(xs[col])));
    const to = Math.min(wide, Math.max(from + 1, Math.round(place(columnEnd(xs, col)))));
    for (let x = from; x < to; x++) {
      if (col !== last) columns[x]++;
      for (let i = 2; i < run.length; i++) sums[(run[1] + i - 2) * wide + x] += run[i];
    }
    last = col;
  }
  return coloured(sums, columns, wide, rows, most);
}

function coloured(sums, columns, wide, rows, most) {
  const canvas = document.createElement("canvas");
  canvas.width = wide;
  canvas.height = rows;
  const ctx = canvas.getContext("2d");
  const image = ctx.createImageData(wide, rows);
  const stops = heatInks();
  const shades = Array.from({ length: 256 }, (_, i) => blended(stops, i / 255));
  const scale = 255 / Math.log(1 + most);
  for (let i = 0; i < sums.length; i++) {
    if (sums[i] === 0) continue;
    const mean = sums[i] / columns[i % wide];
    const shade = shades[Math.min(255, Math.round(Math.log(1 + mean) * scale))];
    image.data.set(shade, i * 4);
    image.data[i * 4 + 3] = 255;
  }
  ctx.putImageData(image, 0, 0);
  return canvas;
}

/** Says how many requests the cell under the cursor has, or, without a mouse, where most of the column's are. */
function readHeat(figure) {
  const { chart, edges, reading, place, unit, isSeen } = figure;
  if (!chart || !isSeen) return;
  const { left, top } = chart.cursor;
  const xs = chart.data[0];
  const col = left < 0 ? -1 : indexAtMost(xs, chart.posToVal(left, "x"));
  setText(place, col < 0 ? "" : placeText(figure, xs[col]));
  if (col < 0) return setText(reading, "");
  const isPointed = chart.over.matches(":hover") && top >= 0;
  const counts = countsOf(figure.cells, col);
  const fullest = counts.reduce((best, one) => (one[1] > best[1] ? one : best), [-1, 0]);
  const row = isPointed ? indexAtMost(edges, chart.posToVal(top, "y0")) : fullest[0];
  if (row < 0 || row >= edges.length - 1) return setText(reading, "no requests");
  const count = counts.find((one) => one[0] === row)?.[1] ?? 0;
  setText(reading, `${significant(edges[row])} to ${amount(edges[row + 1], unit)}: ${count.toLocaleString("en-US")}`);
}

/** The counts of a column, as pairs of row and count. */
function countsOf(cells, col) {
  const counts = [];
  for (let k = firstRun(cells, col); cells[k]?.[0] === col; k++) {
    for (let i = 2; i < cells[k].length; i++) counts.push([cells[k][1] + i - 2, cells[k][i]]);
  }
  return counts;
}
