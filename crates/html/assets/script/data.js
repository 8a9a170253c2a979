// The data of the page: JSON in gzip in base64. An array is a list of differences: value[i] = s * (d[0] + … + d[i]).

/** The root of the page, which has its theme and its state. */
const page = document.documentElement;

/** Arrays by name. They are unpacked when a plot asks for them, once. */
class Store {
  constructor(packed) {
    this.packed = packed;
    this.arrays = new Map();
  }

  /** Returns the numbers of this name; `null` is a gap. An unknown name has no numbers. */
  numbers(name) {
    if (!this.arrays.has(name)) {
      this.arrays.set(name, unpacked(this.packed[name] ?? { s: 1, d: [] }));
    }
    return this.arrays.get(name);
  }

  /** Cuts an array to `from` numbers and appends others, as the live page receives them. */
  append(name, from, values) {
    const numbers = this.numbers(name);
    numbers.length = Math.min(from, numbers.length);
    while (numbers.length < from) numbers.push(null);
    for (const value of values) numbers.push(value);
  }
}

function unpacked({ s, d, n }) {
  // 12345 / 1000 is the number nearest to 12.345; 12345 * 0.001 may not be.
  const divisor = Math.round(1 / s);
  const isDivided = divisor >= 1 && Math.abs(divisor * s - 1) < 1e-9;
  const numbers = new Array(d.length);
  let sum = 0;
  for (let i = 0; i < d.length; i++) {
    sum += d[i];
    numbers[i] = isDivided ? sum / divisor : sum * s;
  }
  for (const gap of n ?? []) numbers[gap] = null;
  return numbers;
}

/** Reads the data block of the page. */
async function readData() {
  const text = document.getElementById("data")?.textContent.trim() ?? "";
  if (text === "") return { arrays: {}, plots: [] };
  const raw = atob(text);
  const bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; i++) bytes[i] = raw.charCodeAt(i);
  const json = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(json).text());
}

/** Index of the last number that is at most `value`, in ascending numbers; -1 if there is none. */
function indexAtMost(numbers, value) {
  let low = 0;
  let high = numbers.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (numbers[middle] <= value) low = middle + 1;
    else high = middle;
  }
  return low - 1;
}
