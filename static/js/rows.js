// Rows and marks of the live page. Everything is set as text: names are other people's words.

import { ago, clock, duration, number, percent, rate, say } from "figures";

const SVG = "http://www.w3.org/2000/svg";
const ACTIVITY_TONES = {
  training: ["ok", "ok"], averaging: ["ok", "ok"], matchmaking: ["ok", "idle"], paused: ["idle", "pause"],
};
const EVENT_TONES = {
  joined: ["ok", "ok"], left: ["idle", "idle"], lost: ["warn", "warn"], round: ["ok", "done"],
  state: ["idle", "idle"], checkpoint: ["ok", "done"], warning: ["bad", "bad"],
};

export function element(name, { text, className, children = [], ...attributes } = {}) {
  const made = document.createElement(name);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** A glyph beside words, so that colour is never the only sign. */
export function state([tone, glyph], words) {
  const picture = document.createElementNS(SVG, "svg");
  picture.setAttribute("aria-hidden", "true");
  const use = document.createElementNS(SVG, "use");
  use.setAttribute("href", `#g-${glyph}`);
  picture.append(use);
  return element("span", { className: `state ${tone}`, children: [picture, element("span", { text: words })] });
}

export const activity = (name) => say(name === "waiting" ? "waiting_activity" : name);

function memberRow(member) {
  const doing = activity(member.activity) + (member.reason ? `: ${member.reason}` : "");
  const tone = ACTIVITY_TONES[member.activity] ?? ["idle", "idle"];
  const behind = member.role === "sender" ? [" ", element("span", { className: "badge extra", text: say("sender") })] : [];
  return element("tr", { children: [
    element("th", { scope: "row", children: [element("bdi", { text: member.name }), ...behind] }),
    element("td", { children: [state(tone, doing)] }),
    element("td", { className: "right", text: rate(member.samples_per_s) }),
    element("td", { className: "right extra", text: percent(member.share) }),
    element("td", { className: "right extra", text: number(member.link_mbit_s) }),
    element("td", { className: "right extra", text: number(member.samples) }),
    element("td", { className: "right extra", text: number(member.round) }),
  ] });
}

export const memberRows = (members) => members.map(memberRow);

function eventRow(event) {
  const words = event.who ? [element("bdi", { text: event.who }), ` ${event.text}`] : [event.text];
  const when = new Date(event.at * 1000);
  const picture = state(EVENT_TONES[event.what] ?? ["idle", "idle"], "");
  return element("li", { children: [
    element("time", { datetime: when.toISOString(), title: `${when.toLocaleString()} (${ago(event.at)})`, text: clock(event.at) }),
    picture,
    element("span", { children: words }),
  ] });
}

export const eventRows = (events) => events.map(eventRow);

/** A round that only one peer gave to is shown as such, whether or not a coordinator was there. */
export const shownOutcome = ({ outcome, members }) => (outcome === "clean" && members <= 1 ? "alone" : outcome);

function peersWords({ members, asked }) {
  if (asked != null) return say("chosen_peers", { n: number(members), asked: number(asked) });
  return members === 1 ? say("one_peer") : say("so_many_peers", { n: number(members) });
}

/** The words of `phrase` (`mark` or `last_round`) for one round. */
export function roundWords(phrase, round) {
  const outcome = shownOutcome(round);
  return say(outcome === "alone" ? `${phrase}_alone` : phrase, {
    round: number(round.round), outcome: say(`outcome_${outcome}`),
    peers: peersWords(round),
    samples: number(round.samples), span: duration(round.duration_s),
  });
}

/** One mark per round, oldest left, with empty places in front; the list is summed up in words. */
export function stripMarks(strip, rounds, length) {
  const count = (outcome) => rounds.filter((round) => shownOutcome(round) === outcome).length;
  const marks = rounds.map((round) => element("li", { className: shownOutcome(round), title: roundWords("mark", round) }));
  const none = Array.from({ length: length - marks.length }, () => element("li", { className: "none", "aria-hidden": "true" }));
  strip.replaceChildren(...none, ...marks);
  strip.setAttribute("aria-label", say("strip", {
    n: rounds.length, clean: count("clean"), alone: count("alone"), partial: count("partial"),
    failed: count("failed") + count("undone"),
  }));
}
