// The tools for reading a trace: filters by kind, a map, search, the source of a text, copy, differences of alternatives.

import { Find, openGoTo } from "./find.js";
import { isFolded, setOpen } from "./folds.js";
import { getString } from "./page_config.js";
import { TraceMap } from "./trace_map.js";
import { element } from "./nodes.js";
import { diffWords } from "./word_diff.js";

const KINDS = ["system", "user", "message", "reasoning", "action", "observation", "answer"];
const MAP_FROM = 8; // entries; shorter traces are on the screen anyway

// The text as the model wrote it.
function sourceOf({ text, parts }) {
  if (!parts?.length) return text;
  return parts.map((part) => [part.name, part.text].filter(Boolean).join("\n")).join("\n\n");
}

export class TraceReader {
  #off = new Set(); // kinds whose entries are collapsed to a line, in every trace from now on
  #rendered = new WeakMap(); // element -> the children that its source has replaced
  #map = null;

  constructor(page) {
    this.page = page;
    this.finder = new Find(page);
  }

  show(view) {
    this.view = view;
    this.#map?.close();
    this.#map = null;
    this.finder.forget();
    if (!view.node.querySelector(".reader")) this.#addToolbar(view);
    for (const button of view.node.querySelectorAll("[data-filter]")) this.#paintKind(button.dataset.filter, button);
    if (view.work.trace.steps.length < MAP_FROM) return;
    this.#map = new TraceMap(this.page, view);
    view.node.append(this.#map.node);
    this.page.scroller.fit(this.#map.node);
  }

  paint() {
    this.#map?.paint();
  }

  // --- filters --------------------------------------------------------------------------------------------------

  #addToolbar(view) {
    const kinds = KINDS.filter((kind) => this.#partsOf(kind).length);
    const bar = document.getElementById("t-reader").content.firstElementChild.cloneNode(true);
    const list = bar.querySelector("[data-slot=kinds]");
    list.hidden = kinds.length < 2;
    for (const kind of kinds) {
      const name = document.getElementById(`t-kind-${kind}`).content.textContent.trim();
      const count = element("span", "reader__count", String(this.#partsOf(kind).length));
      const button = element("button", "reader__kind", name, " ", count);
      Object.assign(button, { type: "button", onclick: () => this.#toggleKind(kind, button) });
      button.dataset.filter = kind;
      list.append(button);
    }
    bar.querySelector("[data-act=open_output]").hidden = !view.node.querySelector(".folded");
    view.node.querySelector(".problem__in").append(bar);
  }

  #toggleKind(kind, button) {
    if (!this.#off.delete(kind)) this.#off.add(kind);
    this.#keepPlace(() => this.#paintKind(kind, button));
  }

  #paintKind(kind, button) {
    const isOff = this.#off.has(kind);
    button.setAttribute("aria-pressed", String(!isOff));
    for (const each of this.#partsOf(kind)) each.classList.toggle("is-off", isOff);
  }

  // The entries of a kind, and of entries that mix kinds, such as a thought with a call, the parts of this kind.
  #partsOf(kind) {
    const all = this.view.node.querySelectorAll(`.ladder :is([data-kind=${kind}]:not(:has([data-part])), [data-part=${kind}])`);
    return [...all].filter((each) => !each.closest(".alt"));
  }

  // Change the size of texts without moving the highlighted step on the screen.
  #keepPlace(change) {
    this.page.scroller.hold(this.#row(), change);
  }

  #stop() {
    return this.page.current ?? this.page.work.stops().at(-1);
  }

  #row() {
    return this.view.rowFor(this.#stop());
  }

  // --- output ---------------------------------------------------------------------------------------------------

  // Open or close the folded texts of the highlighted step and of the entries around it, or of the whole trace.
  toggleOutput(isAll) {
    const entries = isAll ? [this.view.node.querySelector(".ladder")] : this.#entriesAround(this.#row());
    const boxes = entries.flatMap((entry) => [...entry.querySelectorAll(".folded")]);
    if (!boxes.length) return this.page.dock.showToast(getString("nothing_folded"));
    const isOpening = boxes.some(isFolded);
    return this.#keepPlace(() => {
      for (const box of boxes) setOpen(box, isOpening, getString);
    });
  }

  #entriesAround(row) {
    const entries = [...this.view.node.querySelectorAll(".ladder :is(.step:not(.alt), .obs)")];
    const at = entries.indexOf(row);
    const around = [row];
    for (const by of [-1, 1]) {
      for (let n = at + by; entries[n]?.matches(".obs:not(.is-veiled)"); n += by) around.push(entries[n]);
    }
    return around;
  }

  // --- search ---------------------------------------------------------------------------------------------------

  find() {
    this.finder.open();
  }

  goToStep() {
    openGoTo(this.page);
  }

  // --- source, copy, differences --------------------------------------------------------------------------------

  #option({ step, option }) {
    return this.page.work.trace.steps.find((each) => each.position === step).options.find((each) => each.position === option);
  }

  // Show the source of the highlighted step, or with Shift that of the problem.
  toggleSource(isProblem) {
    const box = isProblem ? this.view.node.querySelector("[data-slot=problem]") : this.#row().querySelector("[data-slot=body]");
    const source = isProblem ? this.page.work.trace.problem.text : sourceOf(this.#option(this.#stop()));
    this.#keepPlace(() => this.#swap(box, () => element("pre", "source", source)));
  }

  // Replace the content of an element, or bring it back. The name of the kind stays.
  #swap(box, build) {
    const before = this.#rendered.get(box);
    if (before) {
      this.#rendered.delete(box);
      box.replaceChildren(...before);
      return;
    }
    this.#rendered.set(box, [...box.childNodes]);
    box.replaceChildren(...[box.querySelector(":scope > .kind"), build()].filter(Boolean));
  }

  async copy() {
    const stop = this.#stop();
    const isCopied = await navigator.clipboard?.writeText(sourceOf(this.#option(stop))).then(() => true, () => false);
    this.page.dock.showToast(getString(isCopied ? "copied" : "not_copied", { number: this.view.numberOf(stop.step) }));
  }

  // Mark in each alternative what differs from the step.
  toggleDifferences() {
    const rows = [...this.view.node.querySelectorAll(".alt")];
    if (!rows.length) return this.page.dock.showToast(getString("no_alternatives"));
    return this.#keepPlace(() => {
      for (const row of rows) {
        const [step, option] = row.dataset.stop.split(".").map(Number);
        const [own, other] = [0, option].map((each) => sourceOf(this.#option({ step, option: each })));
        this.#swap(row.querySelector("[data-slot=body]"), () => showDifferences(own, other));
      }
    });
  }
}

function showDifferences(own, other) {
  const tags = { removed: "del", added: "ins" };
  const pieces = diffWords(own, other).map(([kind, text]) => (kind === "same" ? text : element(tags[kind], "", text)));
  return element("p", "difference", ...pieces);
}
