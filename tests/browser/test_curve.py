"""The curve of the live page: what an axis cannot show is counted, and points stay bounded."""

from __future__ import annotations

import pytest

from tests.browser.wait import until

pytestmark = pytest.mark.browser


def with_chart(given: str, body: str) -> str:
    """JavaScript: a function whose `body` finds a new `chart`, its `place` and its `note`."""
    return f"""async ({given}) => {{
  const {{ LossChart }} = await import("chart");
  const note = document.createElement("p"), place = document.createElement("div");
  place.style.height = "300px";
  document.querySelector("main").append(place, note);
  const chart = new LossChart(place, note);
  {body}
}}"""


CHART = with_chart(
    "values",
    """
  chart.fill(values.map((value, at) => [at, value === "NaN" ? NaN : value]), []);
  chart.setLog(true);
  await new Promise(requestAnimationFrame);
  const log = place.hidden ? null : place._fullLayout.yaxis.range.map((edge) => 10 ** edge);
  const words = note.textContent;
  chart.setLog(false);
  return { log, words, shown: place.data[0].y.filter((value) => value !== null).length };
""",
)


@pytest.mark.parametrize(
    ("values", "note", "low", "shown"),
    [
        ([0, -1, 1e-9, 5, "NaN", 12], "2 points ≤ 0 not shown", 1e-9, 5),
        ([0, 0, 0], "No value is above 0", None, 3),
        ([0, 0, 0, 7], "3 points ≤ 0 not shown", 7, 4),
        ([3], "", 3, 1),
    ],
    ids=["mixed", "all zero", "one positive", "one point"],
)
def test_b12_a_logarithmic_axis_counts_what_it_cannot_show(
    site, page, collaboration, values, note, low, shown
):
    page.goto(f"{site.url}/c/demo/")
    until(page, "window.Plotly !== undefined")
    seen = page.evaluate(CHART, values)
    assert note in seen["words"] if note else seen["words"] == ""
    assert seen["shown"] == shown
    if low is None:
        assert seen["log"] is None
    else:
        assert low / 30 <= seen["log"][0] <= low


TICKS = with_chart(
    "rounds",
    """
  for (let round = 0; round < rounds; round += 1)
    chart.add([{ round, loss: 5 - round / rounds, held_out_loss: null }]);
  return [...place.querySelectorAll(".xtick text")].map((tick) => tick.textContent);
""",
)


def test_rounds_are_whole_however_few_there_are(site, page, collaboration):
    page.goto(f"{site.url}/c/demo/")
    until(page, "window.Plotly !== undefined")
    for rounds in (1, 2, 3, 5, 9, 40):
        ticks = page.evaluate(TICKS, rounds)
        assert len(set(ticks)) == len(ticks) >= min(rounds, 3), ticks


def test_b13_a_thousand_updates_keep_points_and_memory_bounded(site, page, collaboration):
    page.goto(f"{site.url}/c/demo/")
    until(page, "window.Plotly !== undefined")
    session = page.context.new_cdp_session(page)
    used = []
    for start in (0, 500):
        page.evaluate(
            """async (start) => {
          const { LossChart } = await import("chart");
          const main = document.querySelector("main");
          const place = document.createElement("div"), note = document.createElement("p");
          place.style.height = "300px";
          main.append(place, note);
          window.kept ??= new LossChart(place, note);
          for (let at = start; at < start + 500; at += 1) {
            window.kept.add([{ round: at, loss: 5 / (1 + at / 100), held_out_loss: null }]);
            if (at % 10 === 0) await new Promise(requestAnimationFrame);
          }
        }""",
            start,
        )
        session.send("HeapProfiler.collectGarbage")
        used.append(session.send("Runtime.getHeapUsage")["usedSize"])
    points = page.evaluate("window.kept.place.data.map(trace => trace.x.length)")
    assert max(points) <= 1500 and points[0] == 1000
    assert used[1] - used[0] < 50e6
    page.evaluate("dispatchEvent(new PageTransitionEvent('pagehide'))")
    assert page.evaluate("window.kept.place._fullLayout") is None
