// Shows the launcher of this computer's system first, copies the command, and sees the device arrive.

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

const arrival = document.getElementById("arrival");
if (arrival) {
  const { known, collaboration, name } = JSON.parse(arrival.textContent);
  const line = page.querySelector("[data-arrival]");
  new Live("/ws/me/", {
    onMessage({ devices }) {
      const fresh = devices.find((one) => one.collaboration === collaboration && !known.includes(one.device));
      if (!fresh) return;
      line.querySelector(".state").className = "state ok";
      line.querySelector("use").setAttribute("href", "#g-ok");
      const doing = activity(fresh.activity) + (fresh.reason ? `: ${fresh.reason}` : "");
      line.querySelector("[data-words]").textContent = say("seen", { device: name, activity: doing });
      page.querySelector("[data-next]").hidden = false;
    },
  });
}
