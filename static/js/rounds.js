// The newest round in detail: the site writes it, and this page fetches it while somebody looks.

const SETTLE_MS = 2000; // receipts of one round come within so long
const EVERY_MS = 10000;

export class LastRound {
  constructor(root) {
    this.place = root.querySelector('[data-part="round"]');
    this.fetched = -EVERY_MS;
    if (!this.place) return;
    new IntersectionObserver((entries) => {
      this.seen = entries.at(-1).isIntersecting;
      this.plan();
    }).observe(this.place);
  }

  /** A round ended, or more became known of the last one. */
  note(round) {
    this.due = round;
    this.plan();
  }

  plan() {
    if (!this.seen || this.due === undefined || this.timer) return;
    const wait = Math.max(SETTLE_MS, this.fetched + EVERY_MS - performance.now());
    this.timer = setTimeout(() => this.fetch(), wait);
  }

  async fetch() {
    const round = this.due;
    this.due = undefined;
    const answer = await fetch(`${this.place.dataset.rounds}${round}/?part`).catch(() => null);
    if (answer?.ok) this.show(round, await answer.text());
    this.timer = undefined;
    this.fetched = performance.now();
    this.plan();
  }

  /** What the site has escaped; where receipts are missing, it is asked once more. */
  show(round, html) {
    const page = new DOMParser().parseFromString(html, "text/html");
    this.place.replaceChildren(...page.body.childNodes);
    const isIncomplete = this.place.querySelector("[data-awaited]") !== null;
    if (isIncomplete && this.asked !== round) this.due ??= round;
    this.asked = round;
  }
}
