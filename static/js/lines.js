// What a chart of two lines knows: its points, and which of them an axis can show. No drawing.

/** Points are kept up to this many per line; beyond it the page asks the site to thin them. */
export const MOST_POINTS = 1500;

const SMOOTHING = 0.25;
const isFinite_ = (value) => typeof value === "number" && Number.isFinite(value);

/** One line: rounds in growing order, each with one value (null: not a number). */
export class Line {
  constructor() {
    this.x = [];
    this.y = [];
  }

  fill(points) {
    this.x = points.map(([x]) => x);
    this.y = points.map(([, y]) => (isFinite_(y) ? y : null));
  }

  /** "new" at the end, "changed" (or put in between), or "" when nothing is different. */
  put(x, y) {
    const value = isFinite_(y) ? y : null;
    let place = this.x.length;
    while (place > 0 && this.x[place - 1] > x) place -= 1;
    if (place > 0 && this.x[place - 1] === x) {
      if (this.y[place - 1] === value) return "";
      this.y[place - 1] = value;
      return "changed";
    }
    this.x.splice(place, 0, x);
    this.y.splice(place, 0, value);
    return place === this.x.length - 1 ? "new" : "changed";
  }

  get isFull() {
    return this.x.length > MOST_POINTS;
  }
}

/** The running mean that the eye follows; it starts at the first value. */
export function smoothed(values) {
  let mean = null;
  return values.map((value) => {
    if (value === null) return mean;
    mean = mean === null ? value : mean + SMOOTHING * (value - mean);
    return mean;
  });
}

/** `values` as an axis can show them: a logarithmic one has no place for 0 and below. */
export const shown = (values, log) =>
  log ? values.map((value) => (value !== null && value > 0 ? value : null)) : values;

/** How many of `values` a logarithmic axis leaves out, how many are no numbers, and whether any stay. */
export function census(values) {
  const numbers = values.filter((value) => value !== null);
  const positive = numbers.filter((value) => value > 0);
  return {
    notPositive: numbers.length - positive.length,
    notNumbers: values.length - numbers.length,
    nonePositive: values.length > 0 && positive.length === 0,
    smallestPositive: positive.length ? Math.min(...positive) : null,
    largest: positive.length ? Math.max(...positive) : null,
  };
}
