// A job of an organiser: its progress while it runs; its page is loaded anew when that is over.

const EVERY_MS = 2000;

/** Asks the site until the state is another one; then the page has something new to show. */
class Progress {
  constructor(place) {
    this.place = place;
    this.timer = setInterval(() => this.ask(), EVERY_MS);
  }

  async ask() {
    const answer = await fetch(this.place.dataset.progress).catch(() => null);
    if (!answer?.ok) return; // the site is away: the next time
    const { state, doing, percent } = await answer.json();
    if (state !== this.place.dataset.state) return this.reload();
    this.place.querySelector("[data-part=percent]").textContent = percent;
    this.place.querySelector("[data-part=doing]").textContent = doing;
    const bar = this.place.querySelector(".bar");
    bar.setAttribute("aria-valuenow", percent);
    bar.firstElementChild.style.width = `${percent}%`;
  }

  reload() {
    clearInterval(this.timer);
    location.reload();
  }
}

const place = document.querySelector("[data-progress]");
if (place) new Progress(place);
