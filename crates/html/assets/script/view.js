// The stretch of x that plots show. All plots over the time of the run share one.

class View {
  constructor(isLog) {
    this.isLog = isLog;
    this.members = new Set();
    this.range = null;
  }

  /** The whole stretch that the data of all members cover. */
  full() {
    let low = Infinity;
    let high = -Infinity;
    for (const figure of this.members) {
      const extent = figure.extent();
      if (!extent) continue;
      low = Math.min(low, extent[0]);
      high = Math.max(high, extent[1]);
    }
    if (low > high) return [0, 1];
    if (low === high) return this.isLog ? [low / 2, high * 2] : [low, high + 1];
    return [low, high];
  }

  /** The stretch to show. */
  shown() {
    return this.range ?? this.full();
  }

  /** Shows a stretch, within the data and not shorter than a millionth of them. */
  show(from, to) {
    const full = this.full().map(this.along, this);
    let [low, high] = [from, to].map(this.along, this);
    const length = Math.min(Math.max(high - low, (full[1] - full[0]) * 1e-6), full[1] - full[0]);
    low = Math.min(Math.max(low, full[0]), full[1] - length);
    const isWhole = length > (full[1] - full[0]) * 0.9999;
    this.range = isWhole ? null : [low, low + length].map(this.back, this);
    this.changed();
  }

  reset() {
    this.range = null;
    this.changed();
  }

  /** Zooms around a position by a factor; below 1 is closer. */
  zoom(factor, around) {
    const [low, high] = this.shown().map(this.along, this);
    const centre = this.along(around ?? this.back((low + high) / 2));
    this.show(this.back(centre - (centre - low) * factor), this.back(centre + (high - centre) * factor));
  }

  /** Moves by a share of what is shown. */
  pan(share) {
    const [low, high] = this.shown().map(this.along, this);
    const full = this.full().map(this.along, this);
    const wanted = (high - low) * share;
    const step = Math.min(Math.max(wanted, full[0] - low), full[1] - high);
    this.show(this.back(low + step), this.back(high + step));
  }

  changed() {
    for (const figure of this.members) {
      figure.legend.classList.toggle("zoomed", this.range !== null);
      changed(figure);
    }
  }

  along(x) {
    return this.isLog ? Math.log(Math.max(x, 1e-300)) : x;
  }

  back(position) {
    return this.isLog ? Math.exp(position) : position;
  }
}

/** The views by the key with which plots ask to share one. */
const views = new Map();

function viewOf(plot) {
  const isLog = plot.kind === "curve" || plot.x_log === true;
  if (!plot.sync) return new View(isLog);
  if (!views.has(plot.sync)) views.set(plot.sync, new View(isLog));
  return views.get(plot.sync);
}

/** The part of uPlot's options that makes a plot react: cursor, zoom by dragging, moving by dragging with Shift. */
function cursorOptions(figure) {
  const { plot, view } = figure;
  const isOwn = (type) => type === "mousemove" || type === "mouseleave";
  return {
    y: false,
    drag: { x: true, y: false, setScale: false, dist: 4 },
    sync: plot.sync
      ? { key: plot.sync, setSeries: false, scales: ["x", null], filters: { pub: isOwn, sub: isOwn } }
      : undefined,
    points: { size: 7, width: 0 },
    bind: {
      mousedown: (u, _, select) => (event) => {
        if (event.shiftKey && event.button === 0) panBy(figure, event);
        else select(event);
        return null;
      },
      dblclick: () => () => {
        view.reset();
        return null;
      },
    },
  };
}

/** Moves the view with the mouse until its button is released. */
function panBy(figure, start) {
  const { view, chart } = figure;
  const moves = new AbortController();
  let last = start.clientX;
  const move = (event) => {
    view.pan((last - event.clientX) / chart.over.clientWidth);
    last = event.clientX;
  };
  on(document, "mousemove", move, { signal: moves.signal });
  on(document, "mouseup", () => moves.abort(), { signal: moves.signal });
}

/** Zooms to what was selected by dragging. */
function zoomToSelection(figure) {
  const { view, chart } = figure;
  const { left, width } = chart.select;
  if (width < 4) return;
  view.show(chart.posToVal(left, "x"), chart.posToVal(left + width, "x"));
  chart.setSelect({ left: 0, top: 0, width: 0, height: 0 }, false);
}

/** Two fingers zoom; one moves what is zoomed, or reads values. */
function addTouch({ chart, view }) {
  const { over } = chart;
  const fingers = new Map();
  on(over, "pointermove", (event) => {
    if (event.pointerType !== "touch") return;
    const before = [...fingers.values()];
    fingers.set(event.pointerId, event.clientX - over.getBoundingClientRect().left);
    const after = [...fingers.values()];
    if (after.length > 1 && before.length > 1) {
      const spread = ([a, b]) => Math.max(Math.abs(a - b), 10);
      view.zoom(spread(before) / spread(after), chart.posToVal((after[0] + after[1]) / 2, "x"));
    } else if (view.range && before.length) view.pan((before[0] - after[0]) / over.clientWidth);
    else chart.setCursor({ left: after[0], top: 10 }, true, true);
  });
  for (const type of ["pointerup", "pointercancel", "pointerleave"]) {
    on(over, type, (event) => fingers.delete(event.pointerId));
  }
}

/** Arrows read values (with Shift they move the view), plus and minus zoom, Escape resets. */
function addKeys(figure) {
  on(figure.area, "keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { view, chart } = figure;
    const at = chart.cursor.idx == null ? null : chart.data[0][chart.cursor.idx];
    const actions = {
      ArrowLeft: () => (event.shiftKey ? view.pan(-0.2) : moveCursor(figure, -1)),
      ArrowRight: () => (event.shiftKey ? view.pan(0.2) : moveCursor(figure, 1)),
      Home: () => moveCursor(figure, -Infinity),
      End: () => moveCursor(figure, Infinity),
      "+": () => view.zoom(0.5, at),
      "=": () => view.zoom(0.5, at),
      "-": () => view.zoom(2, at),
      Escape: () => {
        view.reset();
        chart.setCursor({ left: -10, top: -10 }, true, true);
      },
    };
    if (!Object.hasOwn(actions, event.key)) return;
    event.preventDefault();
    actions[event.key]();
  });
}

function moveCursor(figure, steps) {
  const { chart } = figure;
  const xs = chart.data[0];
  const { min, max } = chart.scales.x;
  let first = Math.max(indexAtMost(xs, min), 0);
  if (xs[first] < min) first++;
  const last = Math.max(indexAtMost(xs, max), first);
  if (xs.length === 0) return;
  const now = chart.cursor.idx ?? (steps > 0 ? first - 1 : last + 1);
  const index = Math.min(Math.max(now + steps, first), last);
  chart.setCursor({ left: chart.valToPos(xs[index], "x"), top: 10 }, true, true);
  announce(figure.spoken());
}
