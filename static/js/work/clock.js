// Active time: counts only while the page is visible and the person has done something lately, in one page at a time.
// It is measured by a clock that nobody can set. The server believes no more than the trace was in the person's hands.

export const IDLE_AFTER = 30_000; // reading a long step takes a while without touching anything
const BROADCAST_EVERY_MS = 500;

export class ActiveClock {
  #since = null;
  #touchedAt = -Infinity;
  #counted = 0;

  constructor({ now = () => performance.now(), visible = () => document.visibilityState === "visible" } = {}) {
    this.now = now;
    this.visible = visible;
  }

  // No scrolling: the page scrolls by itself. Who touches one page is not at another one, seen beside it or not.
  listen(target = document) {
    const others = new BroadcastChannel("stepmark-clock");
    others.onmessage = () => this.pause();
    let toldAt = -Infinity;
    const touched = () => {
      this.touch();
      if (this.now() - toldAt < BROADCAST_EVERY_MS) return;
      toldAt = this.now();
      others.postMessage("here");
    };
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "touchstart", "touchmove"]) {
      target.addEventListener(kind, touched, { passive: true, capture: true });
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

  // Milliseconds since the last call, to be given to one step. What was counted is never counted twice.
  take() {
    this.#settle();
    const whole = Math.round(this.#counted);
    this.#counted -= whole;
    return Math.max(0, whole);
  }

  #settle() {
    if (this.#since === null) return;
    const end = Math.min(this.now(), this.#touchedAt + IDLE_AFTER);
    this.#counted += Math.max(0, end - this.#since);
    this.#since = Math.max(this.#since, end);
  }
}
