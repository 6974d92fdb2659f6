// Keeps the highlighted step in the free area: below the problem, which sticks to the top, and above the dock. The
// layout settles only after a scroll, because steps outside the screen have estimated heights, and later again, when
// formulas and images arrive. So the position is checked until it stays right.

const QUIET_FRAMES = 1; // so many right positions in a row end the check; a change of the trace's size begins it again
const MAX_FRAMES = 60;
const UNCOVER_FRAMES = 5;
const VISIBLE = 48; // px of a step that are enough to rate it
const SCROLL_KEYS = new Set(["PageUp", "PageDown", "Home", "End", " "]);

export class StepScroller {
  #row = null;
  #heldAt = null; // px from the top of the screen, if the row must stay there
  #isChecking = false;
  #beside = null; // an element that fits the free area
  #fitted = "";
  #uncovering = 0; // the request of the next frame
  #frames = 0;
  #sizes = new ResizeObserver(() => {
    this.#fitBeside();
    this.#check();
  });

  constructor() {
    this.bar = document.querySelector(".top");
    this.dock = document.querySelector(".dock");
    this.#sizes.observe(this.dock);
    addEventListener("resize", () => {
      this.#measureProblem();
      this.#check();
    });
    // An annotator who scrolls wants to read something else: follow again when the highlight moves.
    for (const kind of ["wheel", "touchmove", "pointerdown"]) addEventListener(kind, () => this.release(), { passive: true, capture: true });
    addEventListener("keydown", (event) => SCROLL_KEYS.has(event.key) && this.release(), { capture: true });
  }

  // Begin with another trace.
  watch(node) {
    this.#sizes.disconnect();
    this.#sizes.observe(this.dock);
    this.#sizes.observe(node);
    this.problem = node.querySelector(".problem");
    this.#row = null;
    this.#measureProblem();
  }

  // On low screens the problem scrolls away.
  #measureProblem() {
    this.isSticky = this.problem && getComputedStyle(this.problem).position === "sticky";
  }

  release() {
    this.#row = null;
    cancelAnimationFrame(this.#uncovering);
  }

  // Keep a row where it is on the screen while the texts around it change their sizes.
  hold(row, change) {
    const { top } = row.getBoundingClientRect();
    change();
    this.#row = row;
    this.#heldAt = top;
    this.#check();
  }

  follow(row, { isSmooth }) {
    this.release();
    this.#row = row;
    this.#heldAt = null;
    const area = this.freeArea();
    const rect = row.getBoundingClientRect();
    // Scroll smoothly only if the step is visible already, so that no one waits for the step to rate.
    const behavior = isSmooth && this.#isInside(rect, area) && rect.height <= area.height ? "smooth" : "instant";
    scrollBy({ top: this.#distance(rect, area), behavior });
    this.#check();
  }

  // Bring something else into the free area, inner scrolling included; the highlight stays where it is. `range` is a
  // part of the node.
  lookAt(node, range = node) {
    this.release();
    node.scrollIntoView({ block: "center", behavior: "instant" });
    const inner = node.closest("pre");
    if (inner && inner.scrollHeight > inner.clientHeight) {
      inner.scrollTop += range.getBoundingClientRect().top - inner.getBoundingClientRect().top - inner.clientHeight / 2;
    }
    this.uncover(range);
  }

  // Scroll until the dock and the problem cover nothing of a node or range, also while texts around it are laid out.
  uncover(part, frames = UNCOVER_FRAMES) {
    const area = this.freeArea();
    const rect = part.getBoundingClientRect();
    if (rect.height && !this.#isInside(rect, area)) {
      const isTall = rect.height > area.height;
      scrollBy({ top: isTall || rect.top < area.top ? rect.top - area.top - 4 : rect.bottom - area.bottom + 4, behavior: "instant" });
    }
    cancelAnimationFrame(this.#uncovering);
    if (frames > 0) this.#uncovering = requestAnimationFrame(() => this.uncover(part, frames - 1));
  }

  // Keep an element that is fixed beside the trace within the free area. A custom property of the page would restyle every
  // step, and as a scroll padding it would scroll when the problem or the dock gets the focus.
  fit(beside) {
    this.#beside = beside;
    this.#fitted = "";
    this.#fitBeside();
  }

  #fitBeside() {
    if (!this.#beside?.isConnected) return;
    const { top, bottom } = this.freeArea();
    const area = `${Math.round(top)}px ${Math.round(innerHeight - bottom)}px`;
    if (area === this.#fitted) return;
    this.#fitted = area;
    this.#beside.style.insetBlock = area;
  }

  // Whether enough of the step is visible to rate it.
  shows(row) {
    const area = this.freeArea();
    const rect = row.getBoundingClientRect();
    const visible = Math.min(rect.bottom, area.bottom) - Math.max(rect.top, area.top);
    return visible >= Math.min(VISIBLE, rect.height / 2, Math.max(area.height, 0));
  }

  freeArea() {
    const top = this.bar.getBoundingClientRect().bottom + (this.isSticky ? this.problem.offsetHeight : 0);
    const bottom = this.dock.getBoundingClientRect().top;
    return { top, bottom, height: bottom - top };
  }

  // To the middle; a step that is taller than the free area starts at its top.
  #distance(rect, area) {
    if (this.#heldAt !== null) return rect.top - this.#heldAt;
    return rect.top - area.top - Math.max(0, (area.height - rect.height) / 2);
  }

  #isRight(rect, area) {
    return this.#heldAt === null ? this.#isInside(rect, area) : Math.abs(rect.top - this.#heldAt) < 2;
  }

  #isInside(rect, area) {
    if (rect.height > area.height) return Math.abs(rect.top - area.top) < 2;
    return rect.top >= area.top - 1 && rect.bottom <= area.bottom + 1;
  }

  #check() {
    this.#frames = MAX_FRAMES;
    if (this.#isChecking || !this.#row) return;
    this.#isChecking = true;
    let quiet = 0;
    const next = () => {
      if (!this.#row?.isConnected || quiet >= QUIET_FRAMES || this.#frames <= 0) {
        this.#isChecking = false;
        return;
      }
      this.#frames -= 1;
      const area = this.freeArea();
      const rect = this.#row.getBoundingClientRect();
      if (this.#isRight(rect, area)) quiet += 1;
      else {
        quiet = 0;
        scrollBy({ top: this.#distance(rect, area), behavior: "instant" });
      }
      requestAnimationFrame(next);
    };
    requestAnimationFrame(next);
  }
}
