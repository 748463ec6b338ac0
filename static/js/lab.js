// The curves of an experiment.

import { colour, draw, layout, ofRounds, tend } from "chart";
import { say } from "figures";

const COLOURS = ["c1", "c2", "c3"];
const DASHES = ["solid", "dash", "dot"];

/** One line for each name: the mean over those seeds that are there at a round. */
function lines(runs) {
  const named = new Map();
  for (const { name, label, is_baseline: isBaseline, curve } of runs) {
    if (!named.has(name)) named.set(name, { label, isBaseline, rounds: new Map() });
    const { rounds } = named.get(name);
    for (const [round, loss] of curve) rounds.set(round, [...(rounds.get(round) ?? []), loss]);
  }
  return [...named.values()].map(({ label, isBaseline, rounds }) => {
    const x = [...rounds.keys()].sort((a, b) => a - b);
    const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
    return { label, isBaseline, x, y: x.map((round) => mean(rounds.get(round))) };
  });
}

/** Colour and dash, so that colour is never the only sign; baselines are grey. */
function styles(found) {
  let strategies = 0;
  let baselines = 0;
  return found.map(({ isBaseline }) => {
    const number = isBaseline ? baselines++ : strategies++;
    if (isBaseline) return { color: colour("c0"), width: 2, dash: number ? "dashdot" : "dot" };
    const dash = DASHES[Math.floor(number / COLOURS.length) % DASHES.length];
    return { color: colour(COLOURS[number % COLOURS.length]), width: 2.5, dash };
  });
}

function drawCurves(place, found) {
  const shape = layout(
    ofRounds(Math.max(0, ...found.map(({ x }) => x.at(-1) - x[0]))),
    { title: { text: say("loss"), standoff: 6 } },
  );
  const looks = styles(found);
  const traces = found.map(({ label, x, y }, number) => ({
    x, y, name: label, type: "scatter", line: looks[number], hovertemplate: "%{y:.3f}",
    mode: x.length < 2 ? "markers" : "lines", marker: { color: looks[number].color },
  }));
  const legend = { orientation: "h", yanchor: "bottom", y: 1.02, x: 0 };
  draw(place, traces, { ...shape, showlegend: true, legend });
}

const place = document.querySelector("[data-part=curves]");
if (place) {
  const found = lines(JSON.parse(document.getElementById("lab-runs").textContent));
  tend(place, () => drawCurves(place, found));
  drawCurves(place, found);
}
