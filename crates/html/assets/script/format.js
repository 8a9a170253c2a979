// Numbers as people read them.

const SCALES = [[1e12, "T"], [1e9, "G"], [1e6, "M"], [1e3, "k"]];

/** At most three significant digits, with separators of thousands: 0.0123, 1.23, 12,345. */
function significant(value) {
  const size = Math.abs(value);
  if (size === 0) return "0";
  if (size >= 1e15 || size < 1e-6) return value.toExponential(2);
  const digits = Math.max(0, 2 - Math.floor(Math.log10(size)));
  return value.toLocaleString("en-US", { maximumFractionDigits: digits });
}

/** Short, for the tick of an axis: 1.25k, 15M. Numbers from `least` on have a prefix. */
function short(value, least = 1e4) {
  const size = Math.abs(value);
  const [scale, prefix] = (size >= least && SCALES.find(([scale]) => size >= scale)) || [1, ""];
  return Number((value / scale).toPrecision(6)) + prefix;
}

const isBytes = (unit) => unit === "B" || unit === "B/s";

/** A value and its unit; a gap is a dash. */
function amount(value, unit) {
  if (value == null) return "–";
  if (isBytes(unit)) {
    const [scale, prefix] = SCALES.find(([scale]) => Math.abs(value) >= scale) ?? [1, ""];
    return `${significant(value / scale)} ${prefix}${unit}`;
  }
  return significant(value) + (unit.startsWith("/") || unit === "" ? "" : " ") + unit;
}

const TIME_STEPS = [
  0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 1800, 3600, 7200,
  14400, 28800, 86400,
];

/** A time of the run: seconds up to three minutes, then m:ss, then h:mm:ss. `length` is that of the whole run. */
function clock(seconds, length) {
  if (length < 180) return `${Number(seconds.toFixed(3))} s`;
  const sign = seconds < 0 ? "-" : "";
  const whole = Math.floor(Math.abs(seconds) + 1e-6);
  const two = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(whole / 60);
  const fraction = Math.abs(seconds) % 1 > 1e-3 ? (Math.abs(seconds) % 1).toFixed(1).slice(1) : "";
  const tail = two(whole % 60) + fraction;
  if (length < 3600) return `${sign}${minutes}:${tail}`;
  return `${sign}${Math.floor(minutes / 60)}:${two(minutes % 60)}:${tail}`;
}

/** The percentile at a position of the HDR scale, 1 / (1 - quantile). */
function percentile(position) {
  const nines = Math.max(0, Math.ceil(Math.log10(Math.max(position, 1))) - 1);
  return `${Number((100 * (1 - 1 / position)).toFixed(Math.min(nines, 7)))} %`;
}

/** The positions on the HDR scale that have a label. */
const PERCENTILES = [1, 2, 4, 10, 20, 100, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8];

/** Ticks of a logarithmic axis: powers of ten, and steps between them if there are few. */
function logSplits(min, max) {
  const decades = Math.log10(max / min);
  const steps = decades > 3 ? [1] : decades > 1 ? [1, 2, 5] : [1, 1.5, 2, 3, 4, 5, 7];
  const splits = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.ceil(Math.log10(max)); power++) {
    for (const step of steps) {
      const split = Number((step * 10 ** power).toPrecision(3));
      if (split >= min * 0.999 && split <= max * 1.001) splits.push(split);
    }
  }
  return splits;
}

/** A position of a logarithmic axis below or above a value: 1, 2 or 5 times a power of ten. */
function logEdge(value, isUpper) {
  const power = 10 ** Math.floor(Math.log10(value));
  const steps = [1, 2, 5, 10].map((step) => Number((step * power).toPrecision(3)));
  return isUpper ? (steps.find((step) => step >= value) ?? 10 * power) : steps.findLast((step) => step <= value);
}
