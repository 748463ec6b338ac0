// My contributions: samples per day, and what my devices do right now.

import { colour, draw, layout, tend } from "chart";
import { say } from "figures";
import { activity, state } from "rows";
import { Live } from "socket";

const given = document.getElementById("days");
const place = document.getElementById("per-day");

function drawDays(days) {
  draw(place, [{
    type: "bar", x: days.map((day) => day.day), y: days.map((day) => day.samples),
    customdata: days.map((day) => day.tokens), marker: { color: colour("c1") },
    hovertemplate: `%{y:,} ${say("samples")}, %{customdata:,} ${say("tokens")}<extra></extra>`,
  }], layout({ type: "date" }, { rangemode: "tozero", title: { text: say("samples") }, tickformat: "~s" }));
}

if (place) {
  const days = JSON.parse(given.textContent);
  drawDays(days);
  tend(place, () => drawDays(days));
}

new Live("/ws/me/", {
  onMessage({ devices }) {
    const now = new Map(devices.map((one) => [one.device, one]));
    for (const cell of document.querySelectorAll("[data-device]")) {
      const one = now.get(cell.dataset.device);
      const words = one ? activity(one.activity) + (one.reason ? `: ${one.reason}` : "") : say("offline");
      cell.replaceChildren(state(one ? ["ok", "ok"] : ["idle", "idle"], words));
    }
  },
});
