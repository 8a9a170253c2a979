// A matrix as coloured cells with their values, on a canvas; its table has the same numbers.

const GRID_FONT = (ratio, size = 11) => `${size * ratio}px system-ui, sans-serif`;

function gridFigure(figure) {
  const own = {
    make: () => makeGrid(figure),
    draw: () => drawGrid(figure),
    resize: () => changed(figure),
    reading: make("output", "reading"),
  };
  figure.legend.append(own.reading);
  return own;
}

function makeGrid(figure) {
  const { area, plot, reading } = figure;
  figure.canvas = make("canvas", "");
  area.append(figure.canvas);
  area.classList.add("grid");
  let at = [0, -1];
  const read = (row, column) => {
    const isCell = plot.rows[row] !== undefined && plot.columns[column] !== undefined;
    setText(reading, isCell ? `${plot.rows[row]} · ${plot.columns[column]}: ${gridText(plot, row, column)}` : "");
  };
  on(area, "mousemove", (event) => {
    const { left, top, cell, high } = figure.layout;
    const box = figure.canvas.getBoundingClientRect();
    read(Math.floor((event.clientY - box.top - top) / high), Math.floor((event.clientX - box.left - left) / cell));
  });
  on(area, "mouseleave", () => setText(reading, ""));
  on(area, "keydown", (event) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    if (!Object.hasOwn(steps, event.key)) return;
    event.preventDefault();
    const limit = (index, count) => Math.min(Math.max(index, 0), count - 1);
    at = [limit(at[0] + steps[event.key][0], plot.rows.length), limit(at[1] + steps[event.key][1], plot.columns.length)];
    read(...at);
    announce(reading.textContent);
  });
  drawGrid(figure);
}

function gridText(plot, row, column) {
  return plot.text?.[row]?.[column] ?? amount(plot.values?.[row]?.[column], plot.unit ?? "");
}

/** Shortens a text until it fits. */
function fitted(ctx, text, width) {
  if (ctx.measureText(text).width <= width) return text;
  let kept = text.length;
  while (kept > 1 && ctx.measureText(`${text.slice(0, kept)}…`).width > width) kept--;
  return `${text.slice(0, kept)}…`;
}

function drawGrid(figure) {
  const { canvas, plot, area } = figure;
  const ratio = devicePixelRatio;
  const ctx = canvas.getContext("2d");
  ctx.font = GRID_FONT(ratio);
  const widest = Math.max(0, ...plot.rows.map((name) => ctx.measureText(name).width / ratio));
  const left = Math.min(widest + 12, area.clientWidth * 0.3);
  const cell = Math.min((area.clientWidth - left) / Math.max(plot.columns.length, 1), 140);
  const layout = { left, top: 22, cell, high: plot.rows.length > 30 ? 18 : 26 };
  figure.layout = layout;
  const height = layout.top + layout.high * plot.rows.length;
  canvas.width = Math.round(area.clientWidth * ratio);
  canvas.height = Math.round(height * ratio);
  canvas.style.width = `${area.clientWidth}px`;
  canvas.style.height = `${height}px`;
  ctx.scale(ratio, ratio);
  ctx.textBaseline = "middle";
  drawGridNames(ctx, plot, layout);
  drawGridCells(ctx, plot, layout);
}

function drawGridNames(ctx, plot, { left, top, cell, high }) {
  ctx.font = GRID_FONT(1);
  ctx.fillStyle = ink("muted");
  ctx.textAlign = "right";
  plot.rows.forEach((name, row) => ctx.fillText(fitted(ctx, name, left - 10), left - 8, top + (row + 0.5) * high));
  ctx.textAlign = "center";
  plot.columns.forEach((name, column) => {
    ctx.fillText(fitted(ctx, name, cell - 4), left + (column + 0.5) * cell, top / 2);
  });
}

function drawGridCells(ctx, plot, { left, top, cell, high }) {
  const known = (plot.values ?? []).flat().filter((value) => value != null);
  const low = Math.min(...known);
  const high_ = Math.max(...known);
  // Values over more than two powers of ten differ in their logarithms.
  const along = low > 0 && high_ / low > 100 ? Math.log : (value) => value;
  const share = (value) => (high_ > low ? (along(value) - along(low)) / (along(high_) - along(low)) : 0.5);
  const stops = heatInks();
  ctx.textAlign = "center";
  plot.rows.forEach((_, row) =>
    plot.columns.forEach((_, column) => {
      const value = plot.values?.[row]?.[column];
      const colour = value == null ? channels(ink("card")) : blended(stops, 0.08 + 0.92 * share(value));
      ctx.fillStyle = `rgb(${colour})`;
      ctx.fillRect(left + column * cell + 1, top + row * high + 1, cell - 2, high - 2);
      const text = value == null ? "–" : gridText(plot, row, column);
      ctx.fillStyle = luminance(colour) > 0.18 ? "#000" : "#fff";
      if (value == null) ctx.fillStyle = ink("muted");
      if (ctx.measureText(text).width > cell - 4) return;
      ctx.fillText(text, left + (column + 0.5) * cell, top + (row + 0.5) * high);
    }),
  );
}

/** Relative luminance as WCAG 2 has it. */
function luminance(colour) {
  const [r, g, b] = colour.map((channel) => {
    const share = channel / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  });
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
}
