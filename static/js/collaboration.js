// A collaboration, live: on its own page with everything, on the home page in miniature.
// Whatever the page lacks is skipped, so both are fed by the same code.

import { LossChart } from "chart";
import { Checkpoints } from "checkpoints";
import { LastRound } from "rounds";
import { clock, duration, number, percent, put, rate, say, since } from "figures";
import { Live } from "socket";
import { eventRows, memberRows, roundWords, stripMarks } from "rows";

const SPEAK_EVERY_MS = 10000;
const TONES = {
  draft: ["idle", "idle"], open: ["idle", "idle"], running: ["ok", "ok"], alone: ["ok", "ok"],
  nobody: ["warn", "idle"], short: ["warn", "idle"], paused: ["idle", "pause"], finished: ["ok", "done"], failed: ["bad", "bad"],
};
const STRIP_LENGTH = 40;

class Page {
  constructor(root) {
    this.root = root;
    this.api = root.dataset.api;
    const given = (name) => JSON.parse(document.getElementById(`live-${name}`).textContent);
    this.state = given("snapshot");
    this.rounds = given("rounds");
    this.events = given("events");
    this.find = (part) => root.querySelector(`[data-part="${part}"]`);
    this.checkpoints = new Checkpoints(root);
    this.lastRound = new LastRound(root);
    this.drawRounds();
    this.drawEvents();
    this.makeChart();
    this.draw();
    this.live = new Live(root.dataset.socket, {
      snapshot: this.api,
      onMessage: (message) => this.take(message),
      onFresh: (fresh) => this.drawFresh(fresh),
    });
  }

  makeChart() {
    const place = this.find("chart");
    if (!place) return;
    this.chart = new LossChart(place, this.find("chart-note"));
    this.find("log")?.addEventListener("change", (event) => this.chart.setLog(event.target.checked));
    this.loadHistory();
  }

  /** Again when it is asked for meanwhile: what is on its way may be older than what was missed. */
  async loadHistory() {
    this.outdated = true;
    if (this.loading) return;
    this.loading = true;
    while (this.outdated) {
      this.outdated = false;
      await this.fetchHistory().catch(() => null); // the curve stays; the next snapshot asks again
    }
    this.loading = false;
  }

  async fetchHistory() {
    const [train, heldOut] = await Promise.all(["loss", "held_out"].map((metric) =>
      fetch(`${this.api}/history?metric=${metric}&max_points=1000`).then((answer) => answer.json())));
    this.chart.fill(train.points, heldOut.points);
    const last = train.points.at(-1)?.[0] ?? -1;
    this.chart.add(this.rounds.filter(({ round }) => round > last)); // came while this was on its way
    this.drawEmptyChart();
  }

  take({ kind, new_rounds: rounds = [], new_events: events = [], ...rest }) {
    this.state = { ...this.state, ...rest };
    if (kind === "snapshot") this.catchUp();
    if (rounds.length) this.takeRounds(rounds);
    if (events.length) this.takeEvents(events);
    this.draw();
  }

  /** After a gap, and between the first paint and the first frame: what was missed is in the history, the last round and the event list. */
  async catchUp() {
    if (this.chart) this.loadHistory();
    if (this.state.last_round) this.takeRounds([this.state.last_round]);
    if (!this.find("events")) return;
    const answer = await fetch(`${this.api}/events`).catch(() => null);
    if (answer?.ok) this.takeEvents(await answer.json());
  }

  takeRounds(rounds) {
    const known = new Map(this.rounds.map((round) => [round.round, round]));
    for (const round of rounds) known.set(round.round, round);
    this.rounds = [...known.values()].sort((a, b) => a.round - b.round).slice(-STRIP_LENGTH);
    this.drawRounds();
    this.lastRound.note(this.rounds.at(-1).round);
    if (this.chart && !this.chart.add(rounds)) this.loadHistory();
    this.drawEmptyChart();
  }

  takeEvents(events) {
    const known = new Set(this.events.map((event) => event.id));
    const fresh = events.filter((event) => !known.has(event.id));
    this.events = [...fresh, ...this.events].sort((a, b) => b.id - a.id).slice(0, 50);
    this.drawEvents();
  }

  draw() {
    this.drawState();
    this.drawFigures();
    this.drawProgress();
    this.drawEffort();
    this.checkpoints.draw(this.state);
    const body = this.find("members");
    if (body) body.replaceChildren(...memberRows(this.state.members));
    const nobody = this.find("nobody");
    if (nobody) nobody.hidden = this.state.members.length > 0;
    this.find("members-table")?.toggleAttribute("hidden", this.state.members.length === 0);
  }

  drawState() {
    const { state, online, peers, least, state_reason: reason } = this.state;
    const here = online === 0 ? "nobody" : online < least ? "short" : peers === 1 && online === 1 ? "alone" : "running";
    const key = state === "running" ? here : state;
    const place = this.find("state");
    const words = say(`state_${key}`);
    const why = reason || say(`why_${key}`, { least });
    if (`${words}${why}` === this.spoken) return;
    // Read aloud at most once in ten seconds, so a swarm that flickers does not chatter.
    place.setAttribute("aria-live", performance.now() - (this.spokenAt ?? -SPEAK_EVERY_MS) < SPEAK_EVERY_MS ? "off" : "polite");
    this.spokenAt = performance.now();
    this.spoken = `${words}${why}`;
    const [tone, glyph] = TONES[key];
    const badge = place.querySelector(".state");
    badge.className = `state ${tone}`;
    badge.querySelector("use").setAttribute("href", `#g-${glyph}`);
    put(this.root, "state", words);
    put(this.root, "why", why);
  }

  drawFigures() {
    const now = this.state;
    const last = now.last_round;
    put(this.root, "peers", number(now.peers));
    put(this.root, "peers-note", this.peersNote());
    put(this.root, "loss", number(now.loss ?? last?.loss));
    put(this.root, "loss-note", this.lossNote());
    put(this.root, "rate", number(now.samples_per_s));
    put(this.root, "rate-note", now.peers > 1 ? say("per_peer", { n: rate(now.samples_per_s / now.peers) }) : "");
    put(this.root, "round", number(now.round));
    const total = Number(this.root.dataset.totalRounds);
    put(this.root, "round-note", now.round <= total ? say("of_rounds", { total: number(total) }) : "");
  }

  peersNote() {
    const { online, peers, senders, behind, least } = this.state;
    if (!online) return say("peers_none");
    if (behind) return say("peers_catching_up", { n: number(behind) });
    if (online < least) return say("peers_short");
    if (peers === 1) return say("peers_one");
    return senders ? say("peers_behind", { n: number(senders) }) : say("peers_all");
  }

  lossNote() {
    const known = this.rounds.filter((round) => Number.isFinite(round.loss));
    if (known.length < 2) return say("no_change");
    const change = known.at(-1).loss - known[0].loss;
    const sign = change > 0 ? "+" : "";
    return say("loss_change", { change: sign + number(change), n: known.length });
  }

  drawProgress() {
    const { samples, target, samples_per_s: speed } = this.state;
    const bar = this.find("bar");
    if (bar) {
      const share = target ? Math.min(1, samples / target) : 0;
      bar.setAttribute("aria-valuenow", String(Math.round(100 * share)));
      bar.setAttribute("aria-valuetext", percent(share));
      bar.firstElementChild.style.width = `${100 * share}%`;
    }
    const left = speed > 0 ? Math.max(0, target - samples) / speed : null;
    const parts = { done: number(samples), target: number(target), span: duration(left) };
    put(this.root, "progress", say(left ? "progress_eta" : "progress", parts));
    this.drawEmptyChart(left);
  }

  drawEmptyChart(left = null) {
    const empty = this.find("chart-empty");
    if (!empty || !this.chart) return;
    empty.hidden = this.chart.each.x.length > 0;
    if (!empty.hidden) empty.textContent = left ? say("no_points_eta", { span: duration(left) }) : say("no_points");
  }

  drawRounds() {
    const last = this.rounds.at(-1) ?? this.state.last_round;
    const reason = last?.reason ? ` ${last.reason}` : "";
    put(this.root, "last-round", last ? roundWords("last_round", last) + reason : say("no_round"));
    const strip = this.find("strip");
    if (strip) stripMarks(strip, this.rounds, STRIP_LENGTH);
  }

  drawEvents() {
    const list = this.find("events");
    if (!list) return;
    list.replaceChildren(...eventRows(this.events));
    this.find("no-events").hidden = this.events.length > 0;
  }

  drawEffort() {
    const { effort } = this.state;
    put(this.root, "participants", number(effort.participants));
    put(this.root, "sessions", number(effort.sessions));
    put(this.root, "compute", duration(effort.compute_s));
    put(this.root, "mean-session", duration(effort.mean_session_s));
    put(this.root, "longest-session", duration(effort.longest_session_s));
    put(this.root, "samples", number(effort.samples));
  }

  drawFresh({ late, lost, at }) {
    const age = this.find("fresh");
    if (age) {
      age.classList.toggle("late", late || lost);
      put(this.root, "fresh", at ? say("updated", { ago: since((performance.now() - this.live.heard) / 1000) }) : say("waiting"));
    }
    const notice = this.find("stale");
    notice.hidden = !late && !lost;
    if (!notice.hidden) notice.textContent = say("stale", { at: clock(at ?? this.state.at) });
  }
}

for (const root of document.querySelectorAll("[data-live]")) new Page(root);
