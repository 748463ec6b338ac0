// A live connection that says how fresh it is, and comes back by itself.

const LATE_AFTER_MS = 5000;
const LOST_AFTER_MS = 2500;
const POLL_EVERY_MS = 5000;
const FIRST_WAIT_MS = 1000;
const LONGEST_WAIT_MS = 30000;
const FINAL_CODES = new Set([4401, 4403, 4404]);

/**
 * Follows `path`. `snapshot` (optional) is the URL that gives the same document by HTTP: asked
 * when a frame is missing and, while the socket is down, every five seconds.
 *
 * `onMessage(document)` gets each message. `onFresh({late, lost, at})` comes once a second: `late`
 * without a message for 5 s, `lost` with the socket closed for 2.5 s; `at` is the site's time of
 * what is shown, in seconds. Nothing is received, asked or reported while the page is hidden.
 */
export class Live {
  constructor(path, { snapshot = null, onMessage, onFresh = () => {} }) {
    Object.assign(this, { path, snapshot, onMessage, onFresh });
    this.seq = null;
    this.at = null;
    this.heard = this.openAt = performance.now();
    this.wait = FIRST_WAIT_MS;
    this.ended = false;
    this.timer = setInterval(() => this.tick(), 1000);
    document.addEventListener("visibilitychange", () => this.visible());
    addEventListener("pagehide", () => this.stop());
    addEventListener("pageshow", (event) => event.persisted && this.visible());
    if (!document.hidden) this.open();
  }

  open() {
    if (this.socket || this.ended) return;
    const scheme = location.protocol === "https:" ? "wss:" : "ws:";
    const socket = new WebSocket(`${scheme}//${location.host}${this.path}`);
    this.socket = socket;
    socket.onmessage = (event) => socket === this.socket && this.take(JSON.parse(event.data));
    socket.onclose = (event) => socket === this.socket && this.closed(event.code);
  }

  closed(code) {
    this.socket = null;
    this.seq = null;
    this.ended = FINAL_CODES.has(code);
    this.tick();
    if (this.ended || document.hidden) return;
    // Half to all of a wait that doubles: a restarted site is not met by everybody at once.
    clearTimeout(this.retry);
    this.retry = setTimeout(() => this.open(), this.wait * (0.5 + Math.random() / 2));
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT_MS);
  }

  /** Drops the connection without a word and keeps what is shown. */
  stop() {
    clearTimeout(this.retry);
    const socket = this.socket;
    this.socket = null;
    socket?.close();
  }

  visible() {
    if (document.hidden) {
      this.stop();
      return;
    }
    this.wait = FIRST_WAIT_MS;
    this.seq = null;
    this.heard = this.openAt = performance.now();
    this.open();
  }

  take(message) {
    const missed = message.kind === "frame" && this.seq !== null && message.seq !== this.seq + 1;
    this.seq = message.seq;
    this.wait = FIRST_WAIT_MS;
    this.accept(message);
    if (missed) this.poll();
  }

  accept(message) {
    this.at = message.at;
    this.heard = performance.now();
    this.onMessage(message);
    this.tick();
  }

  async poll() {
    if (!this.snapshot || this.polling || this.ended) return;
    this.polling = true;
    this.polled = performance.now();
    try {
      const answer = await fetch(this.snapshot, { headers: { Accept: "application/json" } });
      if (answer.ok) this.accept({ kind: "snapshot", ...(await answer.json()) });
    } catch {
      // The site is away: what is shown stays, marked with its age.
    } finally {
      this.polling = false;
    }
  }

  tick() {
    if (document.hidden) return;
    const now = performance.now();
    const open = this.socket?.readyState === WebSocket.OPEN;
    if (open) this.openAt = now;
    const late = now - this.heard > LATE_AFTER_MS;
    const lost = now - this.openAt > LOST_AFTER_MS;
    if (!open && lost && now - (this.polled ?? 0) > POLL_EVERY_MS) this.poll();
    this.onFresh({ late, lost, at: this.at });
  }
}
