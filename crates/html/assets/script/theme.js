// Light and dark. The colours are in page.css; a canvas asks for them here.

const THEMES = ["auto", "light", "dark"];
const darkScheme = matchMedia("(prefers-color-scheme: dark)");
const inks = new Map();
let probe = null;

/** The colour of a custom property of page.css, in the theme of the moment, as `rgb(…)`. */
function ink(name) {
  if (!inks.has(name)) {
    if (!probe?.isConnected) {
      probe = make("i", "");
      probe.hidden = true;
      document.body.append(probe);
    }
    probe.style.color = `var(--${name}, var(--tone-neutral))`;
    inks.set(name, getComputedStyle(probe).color);
  }
  return inks.get(name);
}

const toneInk = (tone) => ink(`tone-${tone ?? "neutral"}`);

/** The same colour, translucent. */
const faded = (colour, opacity) => colour.replace(/^rgba?\(([^,]+),([^,]+),([^,)]+).*$/, `rgba($1,$2,$3,${opacity})`);

/** Red, green and blue of a colour. */
const channels = (colour) => colour.match(/[\d.]+/g).slice(0, 3).map(Number);

/** The colours of the heat map from few to many, as red, green and blue. */
const heatInks = () => [0, 1, 2, 3, 4, 5].map((step) => channels(ink(`heat-${step}`)));

/** The colour at a share, 0 to 1, of the way from the first to the last. */
function blended(stops, share) {
  const at = Math.min(Math.max(share, 0), 1) * (stops.length - 1);
  const low = Math.min(Math.floor(at), stops.length - 2);
  return stops[low].map((from, i) => Math.round(from + (stops[low + 1][i] - from) * (at - low)));
}

/** Forgets the colours and draws every plot anew. */
function recolour() {
  inks.clear();
  for (const figure of figures.values()) changed(figure);
}

function addThemeButton() {
  // The report that replaces a live page keeps its theme.
  let at = Math.max(0, THEMES.indexOf(page.dataset.theme));
  const say = () => `Theme: ${THEMES[at]}`;
  const button = makeButton("theme", say(), () => {
    at = (at + 1) % THEMES.length;
    button.textContent = say();
    if (at) page.dataset.theme = THEMES[at];
    else delete page.dataset.theme;
    recolour();
  });
  tools().append(button);
}

/** The place of the page's buttons. */
function tools() {
  let place = document.querySelector(".tools");
  if (!place) {
    place = make("div", "tools");
    document.querySelector("header.top").prepend(place);
  }
  return place;
}
