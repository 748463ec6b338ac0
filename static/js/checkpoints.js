// The newest checkpoint as it arrives: a row on top, how old it is, and a warning when none comes.

import { ago, bytes, number, put, say } from "figures";
import { element } from "rows";

export class Checkpoints {
  constructor(root) {
    this.root = root;
    this.body = root.querySelector('[data-part="checkpoints"]');
    this.late = root.querySelector('[data-part="checkpoint-late"]');
    this.newest = Number(this.body?.querySelector("tr")?.dataset.round ?? -1);
  }

  // One without an address is not for everybody: a row for it comes with the page alone.
  draw({ checkpoint, checkpoint_overdue: overdue }) {
    const words = checkpoint && { round: number(checkpoint.round), ago: ago(checkpoint.at) };
    if (this.body && checkpoint?.url && checkpoint.round > this.newest) {
      this.newest = checkpoint.round;
      this.body.prepend(row(checkpoint));
      this.body.closest("[hidden]")?.removeAttribute("hidden");
      this.root.querySelector('[data-part="no-checkpoints"]').hidden = true;
    }
    put(this.root, "checkpoint", words ? say("checkpoint_last", words) : "");
    if (!this.late) return; // the home page has no place for it
    this.late.hidden = !overdue;
    if (overdue) this.late.textContent = words ? say("checkpoint_late", words) : say("checkpoint_never");
  }
}

function row(checkpoint) {
  const code = element("code", { className: "hash", title: checkpoint.sha256, text: checkpoint.sha256 });
  const link = (href, phrase) => element("a", { href, download: "", text: say(phrase), children: [
    element("span", { className: "unseen", text: ` ${say("round")} ${number(checkpoint.round)}` }),
  ] });
  const links = [link(checkpoint.url, "download")];
  if (checkpoint.adapter_url) links.push(" ", link(checkpoint.adapter_url, "adapter"));
  return element("tr", { "data-round": checkpoint.round, children: [
    element("th", { scope: "row", text: number(checkpoint.round) }),
    element("td", { className: "right", text: number(checkpoint.loss) }),
    element("td", { className: "right", text: bytes(checkpoint.size_bytes) }),
    element("td", { className: "extra", children: [code] }),
    element("td", { className: "right", children: links }),
  ] });
}
