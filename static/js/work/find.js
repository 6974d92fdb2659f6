// Search within a trace, folded texts included, and "go to step". Both are forms above the dock, so that they are in sight
// on every screen.

import { openAround } from "./folds.js";
import { getString } from "./page_config.js";

const WAIT_MS = 120;
const MAX_FOUND = 5000;
const LEFT_OUT = ".rate, .step__no, .step__notes, .gap__mark, .fold__toggle, .is-veiled, .is-veiled *, .errorbox__why";

function openForm(id) {
  const form = document.getElementById(id) ?? document.getElementById(`t-${id}`).content.firstElementChild.cloneNode(true);
  if (!form.isConnected) document.querySelector(".dock").prepend(form);
  form.querySelector("input").focus();
  form.querySelector("input").select();
  return form;
}

function closeForm(form) {
  form.remove();
  document.activeElement?.blur();
}

// Nodes of text, with formulas as their source.
function* textNodes(root) {
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT, (node) => {
    if (node.nodeType === Node.TEXT_NODE) return NodeFilter.FILTER_ACCEPT;
    if (node.matches(".katex")) return NodeFilter.FILTER_ACCEPT;
    return node.matches(LEFT_OUT) ? NodeFilter.FILTER_REJECT : NodeFilter.FILTER_SKIP;
  });
  let formula = null;
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    if (node.nodeType === Node.ELEMENT_NODE) {
      formula = node;
      yield node.querySelector("annotation")?.firstChild ?? node;
    } else if (!formula?.contains(node)) yield node;
  }
}

export class Find {
  #found = []; // ranges
  #at = -1;
  #timer = null;

  constructor(page) {
    this.page = page;
  }

  open() {
    const form = openForm("find");
    const input = form.querySelector("input");
    this.count = form.querySelector("[role=status]");
    input.oninput = () => {
      clearTimeout(this.#timer);
      this.#timer = setTimeout(() => this.#search(input.value), WAIT_MS);
    };
    form.onsubmit = (event) => {
      event.preventDefault();
      this.#step(1);
    };
    form.onreset = () => this.#close(form);
    form.querySelector("[data-previous]").onclick = () => this.#step(-1);
    form.onkeydown = (event) => {
      if (event.isComposing) return;
      if (event.key === "Escape") this.#close(form);
      if (event.key === "Enter" && event.shiftKey && event.target === input) {
        event.preventDefault();
        this.#step(-1);
      }
    };
    if (input.value) this.#search(input.value);
  }

  #close(form) {
    clearTimeout(this.#timer);
    this.forget();
    closeForm(form);
  }

  // Another trace is shown.
  forget() {
    this.#found = [];
    this.#at = -1;
    globalThis.CSS.highlights?.clear();
    if (this.count) this.count.textContent = "";
  }

  #search(text) {
    this.forget();
    const wanted = text.toLowerCase().trim();
    if (!wanted) return;
    for (const node of textNodes(this.page.view.node)) {
      const content = node.textContent.toLowerCase();
      for (let at = content.indexOf(wanted); at >= 0 && this.#found.length < MAX_FOUND; at = content.indexOf(wanted, at + wanted.length)) {
        const range = new Range();
        range.setStart(node, node.nodeType === Node.TEXT_NODE ? at : 0);
        range.setEnd(node, node.nodeType === Node.TEXT_NODE ? Math.min(at + wanted.length, node.length) : node.childNodes.length);
        this.#found.push(range);
      }
    }
    if (globalThis.Highlight) CSS.highlights.set("found", new Highlight(...this.#found));
    if (this.#found.length) this.#step(1);
    else this.count.textContent = getString("found_none");
  }

  #step(by) {
    if (!this.#found.length) return;
    this.#at = (this.#at + by + this.#found.length) % this.#found.length;
    const range = this.#found[this.#at];
    this.count.textContent = getString("found", { number: this.#at + 1, total: this.#found.length });
    if (globalThis.Highlight) CSS.highlights.set("found-now", new Highlight(range));
    this.#show(range);
  }

  #show(range) {
    const node = range.startContainer;
    const place = (node.parentElement ?? node).closest(".tex") ?? node.parentElement ?? node;
    openAround(place.firstChild ?? place, getString);
    place.closest(".is-off")?.classList.remove("is-off");
    for (let group = place.closest("details:not([open])"); group; group = group.parentElement.closest("details:not([open])")) group.open = true;
    this.page.scroller.lookAt(place, place.matches(".tex") ? place : range);
  }
}

export function openGoTo(page) {
  const form = openForm("goto");
  const steps = page.work.rateable();
  form.querySelector(".field__label").textContent = getString("go_to", { total: steps.length });
  form.onsubmit = (event) => {
    event.preventDefault();
    const step = steps[Number(form.querySelector("input").value) - 1];
    if (!step) return page.dock.showToast(getString("no_such_step", { total: steps.length }));
    closeForm(form);
    return goToStep(page, { step: step.position, option: 0 });
  };
  form.onreset = () => closeForm(form);
  form.onkeydown = (event) => {
    if (event.key === "Escape") closeForm(form);
  };
}

// A step that needs no rating is only shown.
function goToStep(page, stop) {
  if (page.work.stops().some((each) => each.step === stop.step)) return page.goTo(stop);
  const row = page.view.rowFor(stop);
  return row.classList.contains("is-veiled") ? page.dock.showToast(getString("not_revealed")) : page.scroller.lookAt(row);
}
