// The live page: the same page, to which the running plimsoll sends new columns, new sections, and in the end the report.

let live = null;

/** Seconds without anything new after which the page says so, and says so again. In a long run some pass between two updates. */
const SILENT_S = 15;
const SILENCE = "The run has nothing new, or this machine has no time for its page, which comes after everything else.";

/** Follows the run if the page is a live one. */
function follow(store) {
  const address = page.dataset.live;
  if (!address || live) return;
  live = { address, store, lastId: "", heard: [], hasEnded: false, newsAt: performance.now() };
  const state = make("span", "live");
  state.role = "status";
  live.say = (text, tone, title = "") => {
    setText(state, text);
    state.dataset.tone = tone;
    state.title = title;
  };
  live.clock = setInterval(noticeSilence, 1000);
  tools().prepend(state, stopButton(address));
  share(address);
}

/** A page whose figures stand still looks like a run that stands still. */
function noticeSilence() {
  const times = Math.floor((performance.now() - live.newsAt) / (SILENT_S * 1000));
  if (!document.hidden && times >= 1) live.say(`nothing new for ${times * SILENT_S} s`, "warn", SILENCE);
}

/** A browser has six connections to one server, for all its pages. So one page follows the run, and tells the others. */
function share(address) {
  // Only pages of this machine, or with TLS, have locks; another page follows by itself.
  if (!navigator.locks) return lead();
  live.channel = new BroadcastChannel(address);
  live.channel.onmessage = ({ data }) => hear(data);
  on(document, "visibilitychange", () => {
    if (document.hidden || !live.isBehind) return;
    live.source?.close();
    connect();
  });
  navigator.locks.request(address, { ifAvailable: true }, (lock) => {
    if (lock) return lead();
    connect();
    // When the page that leads is closed, the next one leads.
    navigator.locks.request(address, lead);
  });
}

/** Leads as long as the page is open. */
function lead() {
  live.leads = true;
  if (!live.source) connect();
  return new Promise(() => {});
}

function connect() {
  const { address, lastId, hasEnded } = live;
  if (hasEnded) return;
  const source = new EventSource(lastId ? `${address}&last=${encodeURIComponent(lastId)}` : address);
  let before = lastId;
  Object.assign(live, { source, heard: [], isBehind: false });
  const pass = (message) => {
    if (live.leads) live.channel?.postMessage(message);
    take(message);
  };
  source.onopen = () => pass({ type: "state", data: ["live", "good"] });
  for (const type of ["columns", "sections", "reload", "end"]) {
    on(source, type, ({ data, lastEventId }) => {
      pass({ type, data, before, id: lastEventId });
      before = lastEventId || before;
      if (!live.leads && lastEventId) catchUp();
    });
  }
  source.onerror = () => {
    pass({ type: "state", data: ["connection lost; trying again", "warn"] });
    // The browser tries again by itself unless the server refused; then the page does, more slowly.
    if (source.readyState === EventSource.CLOSED) setTimeout(connect, 2000);
  };
}

/** Takes what another page passes on, once this page has all that came before it. */
function hear(message) {
  const { heard } = live;
  if (document.hidden || message.before === undefined || message.type === "end") return take(message);
  heard.push(message);
  heard.splice(0, heard.length - 64);
  if (!live.source) catchUp();
}

/** Needs no connection of its own if what was heard goes on from what it has; else it asks for what it has missed. */
function catchUp() {
  const { heard, source } = live;
  if (heard[0]?.before - live.lastId > 0) return source || connect();
  source?.close();
  live.source = null;
  for (const message of heard.splice(0)) if (message.before === live.lastId) take(message);
}

function take({ type, data, before, id }) {
  // A page that nobody sees asks for what it has missed when somebody does: fifty that draw would keep the machine busy.
  if (document.hidden && before !== undefined && type !== "end" && live.channel) {
    live.isBehind = true;
    return;
  }
  if (id) live.lastId = id;
  const [text, tone] = type === "state" ? data : ["live", "good"];
  // A page that has lost its connection says that, and no more.
  live.newsAt = tone === "good" ? performance.now() : undefined;
  live.say(text, tone);
  if (type === "columns") receiveColumns(JSON.parse(data));
  if (type === "sections") receiveSections(JSON.parse(data));
  // The page has plots or sections that it had not when it was loaded.
  if (type === "reload") location.reload();
  if (type === "end") receiveEnd(data);
}

function receiveColumns({ from = 0, arrays = {}, whole = {}, cells = {}, plots, reset }) {
  const { store } = live;
  const start = reset ? 0 : from;
  for (const [name, values] of Object.entries(arrays)) store.append(name, start, values);
  for (const [name, values] of Object.entries(whole)) store.append(name, 0, values);
  if (plots) for (const plot of plots) redefine(plot);
  for (const figure of figures.values()) {
    const sent = cells[figure.plot.id];
    if (figure.plot.kind === "heat" && (sent || reset)) {
      const { from: first = start, runs = sent ?? [] } = sent ?? {};
      const kept = (figure.cells ?? figure.plot.cells ?? []).filter(([col]) => col < first);
      takeCells(figure, [...kept, ...runs]);
    }
    figure.hasNewData = true;
    changed(figure);
  }
}

/** Takes what a plot's definition says anew; a plot whose lines are others is made again. */
function redefine(plot) {
  const figure = figures.get(plot.id);
  if (!figure) return addFigure(plot, live.store);
  const lines = (one) => JSON.stringify([one.kind, one.series, one.columns, one.rows]);
  const hasOtherRows = plot.kind === "heat" && String(plot.y.edges) !== String(figure.edges);
  if (lines(plot) === lines(figure.plot) && !hasOtherRows) {
    for (const part of ["bands", "marks", "limits", "values", "text"]) figure.plot[part] = plot[part];
    return changed(figure);
  }
  removeFigure(figure);
  addFigure(plot, live.store);
  drawAll();
}

function removeFigure(figure) {
  figure.chart?.destroy();
  figure.view?.members.delete(figure);
  sight.unobserve(figure.element);
  widths.unobserve(figure.area);
  figure.area.remove();
  figure.legend.remove();
  figures.delete(figure.plot.id);
}

/** Replaces the inner part of sections; plots that are drawn stay, with their new tables. */
function receiveSections(sections) {
  for (const [id, html] of Object.entries(sections)) {
    const section = document.getElementById(id);
    if (!section) continue;
    // A parsed document runs no script; the server has escaped the texts in it.
    const fresh = new DOMParser().parseFromString(html, "text/html").body;
    const all = (selector) => [...section.querySelectorAll(selector)];
    const sorted = all("table").map((table) => table.sorted);
    const isOpen = all("details").map((details) => details.open);
    for (const place of fresh.querySelectorAll("figure.plot")) {
      const own = document.getElementById(place.id);
      if (!own || !section.contains(own) || !figures.has(own.dataset.plot)) continue;
      const twin = place.querySelector("details.twin");
      if (twin) own.querySelector("details.twin")?.replaceWith(document.adoptNode(twin));
      place.replaceWith(own);
    }
    section.replaceChildren(...fresh.childNodes);
    all("details").forEach((details, i) => (details.open = isOpen[i]));
    addSorting(section);
    all("table").forEach((table, i) => sorted[i] && table.tHead.rows[0].cells[sorted[i][0]] && sort(table, ...sorted[i]));
    addCopying(section);
  }
}

/** The report takes the place of the live page, in the same document. */
function receiveEnd(html) {
  live.source?.close();
  if (live.hasEnded) return;
  live.hasEnded = true;
  clearInterval(live.clock);
  const report = new DOMParser().parseFromString(html, "text/html");
  const position = scrollY;
  for (const figure of [...figures.values()]) removeFigure(figure);
  views.clear();
  for (const name of ["live", "drawn"]) delete page.dataset[name];
  document.head.replaceWith(document.adoptNode(report.head));
  document.body.replaceWith(document.adoptNode(report.body));
  inks.clear();
  start().then(() => scrollTo(0, position));
}

function stopButton(address) {
  const token = new URL(address, location.href).searchParams.get("token") ?? "";
  const button = makeButton("stop", "Stop the run", async () => {
    button.disabled = true;
    button.textContent = "Stopping…";
    const reply = await fetch(`/stop?token=${encodeURIComponent(token)}`, { method: "POST" }).catch(() => null);
    if (reply?.ok) return;
    button.disabled = false;
    button.textContent = "Stop the run (not reached; try again)";
  });
  return button;
}
