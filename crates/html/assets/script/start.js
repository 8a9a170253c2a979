// The order in which the page comes to life.

async function start() {
  addThemeButton();
  addSorting(document);
  addCopying(document);
  followSections();
  const data = await readData();
  const store = new Store(data.arrays ?? {});
  for (const plot of data.plots ?? []) addFigure(plot, store);
  await drawAll();
  follow(store);
}

/** Marks the link of the section in sight. */
function followSections() {
  const links = new Map();
  for (const link of document.querySelectorAll("nav a[href^='#']")) links.set(link.hash.slice(1), link);
  const seen = new Set();
  const watcher = new IntersectionObserver(
    (entries) => {
      for (const { target, isIntersecting } of entries) seen[isIntersecting ? "add" : "delete"](target.id);
      let isFound = false;
      for (const [id, link] of links) {
        const isCurrent = !isFound && seen.has(id);
        isFound ||= isCurrent;
        if (isCurrent) link.setAttribute("aria-current", "true");
        else link.removeAttribute("aria-current");
      }
    },
    { rootMargin: "-10% 0px -60% 0px" },
  );
  for (const id of links.keys()) {
    const section = document.getElementById(id);
    if (section) watcher.observe(section);
  }
}

on(darkScheme, "change", recolour);
on(window, "beforeprint", () => preparePrint(true));
on(window, "afterprint", () => preparePrint(false));
on(matchMedia("print"), "change", (event) => preparePrint(event.matches));
start();
