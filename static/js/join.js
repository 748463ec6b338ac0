// Shows the launcher of this computer's system first, copies the command, and tells what became of it.

import { say } from "figures";
import { activity } from "rows";
import { Live } from "socket";

const page = document.querySelector("[data-join]");
const choices = [...page.querySelectorAll('input[name="system"]')];

function show(system) {
  for (const choice of choices) choice.checked = choice.value === system;
  for (const part of page.querySelectorAll("[data-system]")) part.hidden = part.dataset.system !== system;
}

function detected() {
  const words = `${navigator.userAgentData?.platform ?? navigator.platform} ${navigator.userAgent}`;
  if (/win/i.test(words)) return "windows";
  return /mac|iphone|ipad/i.test(words) ? "macos" : "linux";
}

for (const choice of choices) choice.addEventListener("change", () => show(choice.value));
if (choices.length) show(detected());

for (const button of page.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
    const text = document.getElementById(button.dataset.copy).textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = say("copied");
    } catch {
      // Without the right to write the clipboard, the text is marked for Ctrl-C.
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    }
  });
}

const ASK_EVERY_MS = 2000;
const SETTLED = ["enrolled", "expired", "gone"];
const TONES = { enrolled: "ok", again: "ok", elsewhere: "warn", expired: "bad", gone: "bad" };

/** Tells what became of the launcher: the site knows its device, the private frames what that does. */
class Arrival {
  constructor({ url, collaboration, name }) {
    Object.assign(this, { url, collaboration, name, launcher: { state: "waiting" }, devices: [] });
    this.timer = setInterval(() => this.ask(), ASK_EVERY_MS);
    this.ask();
    new Live("/ws/me/", { onMessage: ({ devices }) => { this.devices = devices; this.tell(); } });
  }

  async ask() {
    if (document.hidden) return;
    try {
      const answer = await fetch(this.url, { headers: { Accept: "application/json" } });
      if (answer.ok) this.launcher = await answer.json();
      else if (answer.status === 404) this.launcher = { state: "gone" };
    } catch {
      return; // the site is away, or this browser was signed out: asked again
    }
    if (SETTLED.includes(this.launcher.state)) clearInterval(this.timer);
    this.tell();
  }

  tell() {
    const { state, device, name } = this.launcher;
    if (state === "waiting") return;
    const seen = this.devices.find((one) => (!this.collaboration || one.collaboration === this.collaboration) && one.device === device);
    if (!seen && device && device === this.seen) return; // its last word stands
    this.seen = seen?.device;
    const words = seen && state === "enrolled" ? [] : [say(`launcher_${state}`, { device: name })];
    if (seen) {
      const doing = activity(seen.activity) + (seen.reason ? `: ${seen.reason}` : "");
      words.push(say("seen", { device: name, activity: doing }));
      page.querySelector("[data-next]").hidden = false;
    }
    const line = page.querySelector("[data-arrival]");
    line.querySelector(".state").className = `state ${TONES[state]}`;
    line.querySelector("use").setAttribute("href", `#g-${TONES[state]}`);
    line.querySelector("[data-words]").textContent = words.join(" ");
  }
}

const arrival = document.getElementById("arrival");
if (arrival) new Arrival(JSON.parse(arrival.textContent));
