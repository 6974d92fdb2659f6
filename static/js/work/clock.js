// Active time: counts only while the page is visible and the person has done something lately.

export const IDLE_AFTER = 30_000; // reading a long step takes a while without touching anything

export class ActiveClock {
  #since = null;
  #touchedAt = -Infinity;
  #counted = 0;

  constructor({ now = () => performance.now(), visible = () => document.visibilityState === "visible" } = {}) {
    this.now = now;
    this.visible = visible;
  }

  listen(target = document) {
    for (const kind of ["keydown", "pointerdown", "pointermove", "wheel", "touchstart", "scroll"]) {
      target.addEventListener(kind, () => this.touch(), { passive: true, capture: true });
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
