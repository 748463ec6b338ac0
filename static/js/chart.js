// Plotly in our colours. The bundle is loaded by the page as a plain script.

import { number, say } from "figures";
import { census, Line, MOST_POINTS, shown, smoothed } from "lines";

const probe = document.createElement("i");
probe.hidden = true;
document.documentElement.append(probe);

/** A colour token as the browser resolves it in the present theme. */
export function colour(token) {
  probe.style.color = `var(--${token})`;
  return getComputedStyle(probe).color;
}

const CONFIG = {
  displaylogo: false,
  displayModeBar: "hover",
  responsive: true,
  modeBarButtonsToRemove: ["select2d", "lasso2d", "toggleSpikelines"],
};

/** What every chart of ours has in common, in the colours of the present theme. */
export function layout(x, y) {
  const ink = colour("ink-2");
  const clear = "rgba(0,0,0,0)";
  return {
    margin: { l: 52, r: 12, t: 8, b: 40 },
    paper_bgcolor: clear,
    plot_bgcolor: clear,
    font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: ink },
    xaxis: { gridcolor: clear, linecolor: colour("line"), zeroline: false, ...x },
    yaxis: { gridcolor: colour("line"), zeroline: false, ...y },
    modebar: { bgcolor: clear, color: ink, activecolor: colour("accent") },
    showlegend: false,
    hovermode: "x unified",
    hoverlabel: { bgcolor: colour("surface"), bordercolor: colour("line"), font: { color: colour("ink") } },
  };
}

const FEW = 8;

/** An axis of rounds, which are whole: where there are few, not more ticks than rounds. */
export const ofRounds = (span) => ({
  title: { text: say("round"), standoff: 6 }, tickformat: ",d", nticks: span < FEW ? span + 1 : 0,
});

export const draw = (place, traces, shape) => window.Plotly.react(place, traces, shape, CONFIG);

/** Frees what Plotly holds when the page goes; follows the theme and the size of its place. */
export function tend(place, redraw) {
  document.addEventListener("theme", redraw);
  new ResizeObserver(() => {
    if (place.offsetHeight && place.querySelector(".main-svg")) window.Plotly.Plots.resize(place);
  }).observe(place);
  addEventListener("pagehide", () => window.Plotly.purge(place));
  addEventListener("pageshow", (event) => event.persisted && redraw());
}

/** The curve of one collaboration: each round, its running mean, and the held-out loss. */
export class LossChart {
  constructor(place, note) {
    this.place = place;
    this.note = note;
    this.log = false;
    this.each = new Line();
    this.heldOut = new Line();
    tend(place, () => this.drawAll());
  }

  /** Whole histories: lists of [round, loss]. */
  fill(train, heldOut) {
    this.each.fill(train);
    this.heldOut.fill(heldOut);
    this.drawAll();
  }

  /** Rounds as they come; one may come twice. False: too many points, fetch a thinned history. */
  add(rounds) {
    let changed = false;
    const fresh = { x: [], y: [] };
    for (const { round, loss, held_out_loss: heldOut } of rounds) {
      const what = loss === null ? "" : this.each.put(round, loss);
      if (what === "new") fresh.x.push(round);
      const other = heldOut === null || heldOut === undefined ? "" : this.heldOut.put(round, heldOut);
      changed ||= what === "changed" || other !== "";
    }
    if (changed || !this.drawn || this.isShort) this.drawAll();
    else if (fresh.x.length) this.append(fresh.x);
    return !this.each.isFull && !this.heldOut.isFull;
  }

  append(x) {
    const tail = (values) => shown(values, this.log).slice(-x.length);
    const y = [tail(this.each.y), tail(smoothed(this.each.y))];
    window.Plotly.extendTraces(this.place, { x: [x, x], y }, [0, 1], MOST_POINTS);
    this.say();
  }

  /** Linear or logarithmic; nothing is lost on the way back. */
  setLog(log) {
    this.log = log;
    this.drawAll();
  }

  drawAll() {
    const { log } = this;
    const rounds = [...this.each.x, ...this.heldOut.x];
    const empty = rounds.length === 0;
    const counts = census([...this.each.y, ...this.heldOut.y]);
    this.place.hidden = empty || (log && counts.nonePositive);
    this.drawn = !this.place.hidden;
    this.say();
    if (!this.drawn) return;
    const trace = (line, y, more) => ({
      x: line.x.slice(), y: shown(y, log).slice(), type: "scatter", connectgaps: false, ...more,
    });
    const few = this.each.x.length < 3;
    const span = Math.max(...rounds) - Math.min(...rounds);
    this.isShort = span < FEW;
    draw(this.place, [
      trace(this.each, this.each.y, {
        name: say("train_loss"), mode: few ? "markers" : "lines", line: { color: colour("c0"), width: 1 },
        marker: { color: colour("c1"), size: 7 }, hovertemplate: "%{y:.4~g}",
      }),
      trace(this.each, smoothed(this.each.y), {
        mode: "lines", line: { color: colour("c1"), width: 2.5 }, hoverinfo: "skip",
      }),
      trace(this.heldOut, this.heldOut.y, {
        name: say("held_out_loss"), mode: "lines+markers", hovertemplate: "%{y:.4~g}",
        line: { color: colour("c2"), width: 2, dash: "dot" }, marker: { color: colour("c2"), size: 5 },
      }),
    ], layout(
      ofRounds(span),
      { type: log ? "log" : "linear", title: { text: say("loss"), standoff: 6 }, exponentformat: "e" },
    ));
  }

  /** The note on what the axis cannot show, and the sentence for those who do not see the curve. */
  say() {
    const counts = census([...this.each.y, ...this.heldOut.y]);
    const words = [];
    if (this.log && counts.nonePositive) words.push(say("none_positive"));
    else if (this.log && counts.notPositive === 1) words.push(say("one_not_shown"));
    else if (this.log && counts.notPositive) words.push(say("not_shown", { n: counts.notPositive }));
    if (counts.notNumbers) words.push(say("bad_points", { n: counts.notNumbers }));
    this.note.textContent = words.join(" · ");
    this.note.hidden = words.length === 0;
    const { x, y } = this.each;
    if (!x.length) return;
    this.place.setAttribute("aria-label", say("curve", {
      first: number(y[0]), from: number(x[0]), last: number(y.at(-1)), to: number(x.at(-1)),
    }));
  }
}
