// Tables that sort: by a click on the head of a column, or by Enter or Space on it.

/** Gives every sortable table under an element its buttons. */
function addSorting(root) {
  for (const table of root.querySelectorAll("table.data[data-sort]")) {
    if (table.tHead?.querySelector("button")) continue;
    const heads = [...(table.tHead?.rows[0]?.cells ?? [])];
    [...table.tBodies[0].rows].forEach((row, i) => (row.place = i));
    heads.forEach((head, column) => {
      const button = makeButton("", "", () => sort(table, column, nextOrder(table, column)));
      button.append(...head.childNodes);
      head.append(button);
      head.ariaSort = "none";
    });
  }
}

/** First the order that people look for: the largest number, or the first name; then the other; then that of the page. */
function nextOrder(table, column) {
  const isNumber = [...table.tBodies[0].rows].some((row) => row.cells[column]?.dataset.v !== undefined);
  const orders = isNumber ? ["descending", "ascending", "none"] : ["ascending", "descending", "none"];
  const now = table.tHead.rows[0].cells[column].ariaSort;
  return orders[(orders.indexOf(now) + 1) % 3];
}

function sort(table, column, order) {
  const sign = order === "descending" ? -1 : 1;
  const body = table.tBodies[0];
  const rows = [...body.rows].map((row) => ({ row, key: sortKey(row.cells[column]) }));
  rows.sort((a, b) => {
    if (order === "none") return a.row.place - b.row.place;
    // Unknown values stand at the end in both orders.
    if (a.key === null || b.key === null) return (a.key === null) - (b.key === null) || a.row.place - b.row.place;
    return sign * compared(a.key, b.key) || a.row.place - b.row.place;
  });
  body.append(...rows.map(({ row }) => row));
  [...table.tHead.rows[0].cells].forEach((head, i) => (head.ariaSort = i === column ? order : "none"));
  table.sorted = [column, order];
}

function sortKey(cell) {
  if (!cell || cell.classList.contains("unknown")) return null;
  const value = cell.dataset.v;
  if (value === undefined) return cell.textContent;
  return value === "" || Number.isNaN(Number(value)) ? null : Number(value);
}

const words = new Intl.Collator("en", { numeric: true });

function compared(a, b) {
  if (typeof a === "number" && typeof b === "number") return a - b;
  return words.compare(String(a), String(b));
}

/** Gives command lines a button that copies them, where the browser allows it. */
function addCopying(root) {
  if (!navigator.clipboard) return;
  for (const command of root.querySelectorAll("pre.command")) {
    const button = makeButton("copy", "Copy", async () => {
      try {
        await navigator.clipboard.writeText(command.textContent);
        button.textContent = "Copied";
      } catch {
        button.textContent = "Select the text to copy it";
      }
    });
    command.after(button);
  }
}
