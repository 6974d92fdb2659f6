// Active time: counts while the page is visible and was used recently, in one page at a time.
// The clock is monotonic. The server caps active time at the time the trace was assigned.

export const IDLE_AFTER = 30_000; // reading a long step takes a while without any input
const BROADCAST_EVERY_MS = 500;

export class ActiveClock {
  #since = null;
  #touchedAt = -Infinity;
  #counted = 0;
  #total = 0;

  constructor({ now = () => performance.now(), visible = () => document.visibilityState === "visible" } = {}) {
    this.now = now;
    this.visible = visible;
  }

  // Scrolling does not count as input, because the page scrolls itself. Input in one page pauses the clock of the others.
  listen(target = document) {
    const others = new BroadcastChannel("stepmark-clock");
    others.onmessage = () => this.pause();
    let broadcastAt = -Infinity;
    const onTouch = () => {
      this.touch();
      if (this.now() - broadcastAt < BROADCAST_EVERY_MS) return;
      broadcastAt = this.now();
      others.postMessage("here");
    };
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "touchstart", "touchmove"]) {
      target.addEventListener(kind, onTouch, { passive: true, capture: true });
    }
    document.addEventListener("visibilitychange", () => (this.visible() ? this.touch() : this.pause()));
    return this;
  }

  touch() {
    this.#settle();
    this.#touchedAt = this.now();
    this.#since = this.visible() ? this.#touchedAt : null;
  }

  pause() {
    this.#settle();
    this.#since = null;
  }

  // Return the active milliseconds since the last call. None are counted twice.
  take() {
    this.#settle();
    const whole = Math.round(this.#counted);
    this.#counted -= whole;
    return Math.max(0, whole);
  }

  // Return the active milliseconds since the page was opened.
  total() {
    this.#settle();
    return this.#total;
  }

  #settle() {
    if (this.#since === null) return;
    const end = Math.min(this.now(), this.#touchedAt + IDLE_AFTER);
    const active = Math.max(0, end - this.#since);
    this.#counted += active;
    this.#total += active;
    this.#since = Math.max(this.#since, end);
  }
}
