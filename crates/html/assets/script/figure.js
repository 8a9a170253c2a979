// What all plots share: their place on the page, when they are drawn, the legend, and the way they react to the reader.

/** The plots of the page, by id. */
const figures = new Map();
let frame = 0;

/** Returns a new element. Texts are set as text, never as markup. */
function make(name, className, text = "") {
  const element = document.createElement(name);
  element.className = className;
  element.textContent = text;
  return element;
}

/** Has an event of an element answered. */
function on(element, type, answer, options) {
  element.addEventListener(type, answer, options);
}

/** Returns a new button. */
function makeButton(className, text, press) {
  const button = make("button", className, text);
  button.type = "button";
  on(button, "click", press);
  return button;
}

/** Says that a figure must be drawn anew: at once if it is in sight, else when it comes into sight. */
function changed(figure) {
  figure.isDirty = true;
  if (!frame) {
    frame = requestAnimationFrame(() => {
      frame = 0;
      for (const one of figures.values()) if (one.isSeen) refresh(one);
    });
  }
}

/** Draws a figure if something changed. A figure that has not been made yet is made. */
function refresh(figure) {
  if (!figure.isDirty) return;
  figure.isDirty = false;
  if (figure.isMade) figure.draw();
  else {
    figure.isMade = true;
    figure.make();
    figure.element.querySelector(":scope > svg")?.remove();
  }
}

const sight = new IntersectionObserver(
  (entries) => {
    for (const { target, isIntersecting } of entries) {
      const figure = figures.get(target.dataset.plot);
      if (figure?.element !== target) continue;
      figure.isSeen = isIntersecting;
      if (isIntersecting && figure.isMade) refresh(figure);
    }
  },
  { rootMargin: "200px" },
);

const widths = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const figure = figures.get(target.parentElement?.dataset.plot);
    if (figure?.isMade && figure.area === target && figure.width !== target.clientWidth) {
      figure.width = target.clientWidth;
      figure.resize();
    }
  }
});

const MAKERS = { lines: lineFigure, curve: lineFigure, scatter: lineFigure, heat: heatFigure, grid: gridFigure };

/** Prepares the place of a plot, with its legend; the plot itself is made by `refresh`. */
function addFigure(plot, store) {
  const element = document.getElementById(`plot-${plot.id}`);
  const maker = Object.hasOwn(MAKERS, plot.kind) && MAKERS[plot.kind];
  if (!element || !maker) return;
  const area = make("div", "area");
  area.tabIndex = 0;
  area.role = "group";
  const caption = element.querySelector("figcaption")?.textContent.trim() ?? plot.id;
  const keys = plot.kind === "grid" ? "" : ". Left and right arrows read values, plus and minus zoom, Escape resets.";
  area.ariaLabel = `Plot: ${caption}${keys}`;
  const legend = make("div", "legend");
  const figure = { plot, store, element, area, legend, isDirty: true, isMade: false, isSeen: isNear(element) };
  Object.assign(figure, maker(figure));
  element.querySelector("figcaption")?.after(legend, area);
  figure.width = area.clientWidth;
  figures.set(plot.id, figure);
  sight.observe(element);
  widths.observe(area);
}

function isNear(element) {
  const { top, bottom } = element.getBoundingClientRect();
  return bottom > -200 && top < innerHeight + 200;
}

/** Makes the plots in sight at once, and the others one after another, so that the page reacts meanwhile. */
async function drawAll() {
  const waiting = [...figures.values()].filter((figure) => !figure.isMade);
  for (const figure of waiting) if (figure.isSeen) refresh(figure);
  for (const figure of waiting) {
    if (figure.isMade) continue;
    await new Promise((proceed) => setTimeout(proceed));
    refresh(figure);
  }
  page.dataset.drawn = "";
  performance.mark("drawn");
}

/** One entry of a legend: its press shows or hides the line. */
function legendEntry(label, style, tone, toggle) {
  const entry = makeButton("entry", "", () => {
    const isShown = entry.ariaPressed !== "true";
    entry.ariaPressed = String(isShown);
    toggle(isShown);
  });
  entry.ariaPressed = "true";
  const swatch = make("i", `swatch ${style}`);
  swatch.style.color = `var(--tone-${tone}, var(--tone-neutral))`;
  const value = make("output", "");
  entry.append(swatch, make("span", "", label), value);
  return { entry, value };
}

/** Sets a text only if it differs, so that a moving cursor costs little. */
function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Reads the values under the cursor to those who do not see them. */
function announce(text) {
  let status = document.getElementById("status");
  if (!status) {
    status = make("div", "unseen");
    status.id = status.role = "status";
    document.body.append(status);
  }
  status.textContent = text;
}

/** For print: every plot is drawn in light colours, as wide as the paper. */
function preparePrint(isPrinting) {
  if (page.classList.contains("printing") === isPrinting) return;
  page.classList.toggle("printing", isPrinting);
  inks.clear();
  for (const figure of figures.values()) {
    figure.isDirty = true;
    figure.width = figure.area.clientWidth;
    if (figure.isMade) figure.resize();
    refresh(figure);
  }
}
