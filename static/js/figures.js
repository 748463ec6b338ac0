// Figures for people: the twin of webapp/core/templatetags/ui.py, tested on the same table.

const PREFIXES = ["", "k", "M", "G", "T", "P"];
const SPANS = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const IN_FULL_BELOW = 100000;

const phrases = JSON.parse(document.getElementById("phrases").textContent);

/** The phrase of webapp/core/phrases.py with its `{parts}` filled in. */
export function say(name, parts = {}) {
  return phrases[name].replace(/\{(\w+)\}/g, (_, part) => parts[part]);
}

const isNumber = (value) => typeof value === "number" && Number.isFinite(value);
const grouped = (digits) => {
  const [whole, rest] = digits.split(".");
  const marks = whole.replace(/\B(?=(\d{3})+$)/g, ",");
  return rest === undefined ? marks : `${marks}.${rest}`;
};

/** Three significant digits of a value ≥ 0, in full notation from 0.001 up. */
function digits(value) {
  if (value === 0) return "0";
  if (Number(value.toPrecision(3)) < 0.001) {
    const [coefficient, exponent] = value.toExponential(2).split("e");
    return `${Number(coefficient)}e${Number(exponent)}`;
  }
  return grouped(String(Number(value.toPrecision(3))));
}

function scaled(value, from, unit = "") {
  const size = Number(Math.abs(value).toPrecision(3));
  let power = 0;
  if (size >= from) {
    power = Math.min(Math.floor(Math.log10(size) / 3 + 1e-9), PREFIXES.length - 1);
  }
  const text = digits(size / 1000 ** power);
  const sign = value < 0 && text !== "0" ? "-" : "";
  return `${sign}${text} ${PREFIXES[power]}${unit}`.trim();
}

export function number(value) {
  if (!isNumber(value)) return say("nothing");
  if (Number.isInteger(value) && Math.abs(value) < IN_FULL_BELOW) {
    return (value < 0 ? "-" : "") + grouped(String(Math.abs(value)));
  }
  return scaled(value, IN_FULL_BELOW);
}

export const bytes = (value) =>
  isNumber(value) ? scaled(value, 1000, "B") : say("nothing");

const tenth = (value) => String(Math.round(value * 10) / 10);

export function duration(seconds) {
  if (!isNumber(seconds)) return say("nothing");
  if (seconds < 1) return say("second", { n: tenth(Math.max(seconds, 0)) });
  const left = Math.round(seconds);
  const place = SPANS.findIndex(([, length]) => left >= length);
  const [name, length] = SPANS[place];
  const words = [say(name, { n: grouped(String(Math.floor(left / length))) })];
  const next = SPANS[place + 1];
  if (next && left % length >= next[1]) {
    words.push(say(next[0], { n: Math.floor((left % length) / next[1]) }));
  }
  return words.join(" ");
}

/** How long ago, of a number of seconds. */
export function since(seconds) {
  if (seconds < 2) return say("now");
  const [name, length] = SPANS.find((span) => seconds >= span[1]);
  return say("ago", { span: say(name, { n: grouped(String(Math.floor(seconds / length))) }) });
}

/** How long ago, of a moment in seconds since the epoch. */
export const ago = (moment) =>
  isNumber(moment) ? since(Date.now() / 1000 - moment) : say("nothing");

export function rate(perSecond) {
  if (!isNumber(perSecond)) return say("nothing");
  if (perSecond > 0 && perSecond < 0.1) return say("per_min", { n: tenth(perSecond * 60) });
  return say("per_s", { n: number(Number(perSecond.toPrecision(3))) });
}

export function percent(part, whole = 1) {
  if (!isNumber(part) || !whole) return say("nothing");
  const share = (100 * part) / whole;
  const text = Math.abs(share) < 10 ? tenth(share) : grouped(String(Math.round(share)));
  return say("percent", { n: text });
}

/** `14:02:10` in the visitor's own time zone. */
export const clock = (moment) =>
  new Date(moment * 1000).toLocaleTimeString([], { hour12: false });

/** Puts text into every element under `root` with this data-figure. Text, never markup. */
export function put(root, name, text) {
  for (const place of root.querySelectorAll(`[data-figure="${name}"]`)) {
    if (place.textContent !== text) place.textContent = text;
  }
}
