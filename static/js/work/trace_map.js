// A map of the whole trace at the side: one mark for each entry, as tall as the entry is long, with its rating.

const MIN_WEIGHT = 1;
const WINDOW_AFTER_MS = 100; // the window may follow the scroll late; a key must not wait for it

export class TraceMap {
  #marks = new Map(); // position -> mark
  #shown = new Map(); // mark -> what it shows
  #entries = []; // { row, stop, mark }
  #timer = null;

  constructor(page, view) {
    this.page = page;
    this.view = view;
    this.node = document.createElement("div");
    this.node.className = "map";
    this.node.ariaHidden = "true"; // by keyboard, "Go to step" does the same
    this.window = document.createElement("b");
    this.node.append(this.window);
    this.#build();
    this.node.addEventListener("click", (event) => this.#goTo(event));
    this.node.addEventListener("pointermove", (event) => this.#describe(event));
    this.follow = () => (this.#timer ??= setTimeout(() => this.#showWindow(), WINDOW_AFTER_MS));
    addEventListener("scroll", this.follow, { passive: true });
    this.paint();
    this.follow();
  }

  close() {
    removeEventListener("scroll", this.follow);
    clearTimeout(this.#timer);
    this.node.remove();
  }

  #build() {
    const { steps } = this.view.work.trace;
    const weights = steps.map(({ options: [option] }) => MIN_WEIGHT + Math.sqrt(option?.text.length ?? 0) / 12);
    steps.forEach((step, index) => {
      const mark = document.createElement("i");
      mark.style.flexGrow = weights[index];
      const stop = step.is_rateable ? { step: step.position, option: 0 } : null;
      if (stop) this.#marks.set(step.position, mark);
      const row = stop ? this.view.rowFor(stop) : this.view.node.querySelector(`.obs[data-position="${step.position}"]`);
      this.#entries.push({ row, stop, mark });
      this.node.append(mark);
    });
  }

  paint() {
    const { work } = this.view;
    const current = this.page.current?.step;
    for (const [position, mark] of this.#marks) {
      const { rating } = work.cell(position);
      const shown = `${rating}${position === current ? " now" : ""}`;
      if (this.#shown.get(mark) === shown) continue;
      this.#shown.set(mark, shown);
      mark.dataset.shown = shown;
    }
  }

  #entryAt(event) {
    const at = event.clientY - this.node.getBoundingClientRect().top;
    return this.#entries.find(({ mark }) => bottomOf(mark) >= at) ?? this.#entries.at(-1);
  }

  #goTo(event) {
    const { row, stop } = this.#entryAt(event);
    if (row.classList.contains("is-veiled")) return;
    if (stop) this.page.goTo(stop);
    else this.page.scroller.lookAt(row);
  }

  #describe(event) {
    const { row } = this.#entryAt(event);
    this.node.title = [row.dataset.number, row.querySelector(".kind")?.textContent.trim()].filter(Boolean).join(" · ");
  }

  // The part of the trace that is on the screen.
  #showWindow() {
    this.#timer = null;
    const area = this.page.scroller.freeArea();
    const { left, width } = this.view.node.getBoundingClientRect();
    const entryAt = (y) => document.elementFromPoint(left + width / 2, y)?.closest(".step[data-number], .obs");
    const [first, last] = [entryAt(area.top + 12), entryAt(area.bottom - 12)].map((row) => this.#entries.find((entry) => entry.row === row));
    if (!first && !last) return;
    const [from, to] = [(first ?? last).mark.offsetTop, bottomOf((last ?? this.#entries.at(-1)).mark)];
    this.window.style.insetBlock = `${from}px ${this.node.clientHeight - to}px`;
  }
}

// A mark is taller than its share of the map if there are many: each has a gap.
const bottomOf = (mark) => mark.offsetTop + mark.offsetHeight;
