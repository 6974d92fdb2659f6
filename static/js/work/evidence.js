// Quotes that show the error of a negative step. Only traces of projects that ask for them load this module.

import { config, getString } from "./page_config.js";

const MAX_QUOTES = 20; // as labeling/assignments/answer_sheet.py has them
const MAX_LENGTH = 2000;
// What the page may show in another way than the model wrote it: whitespace, signs of formulas and of Markdown, and marks
// that change the direction of a text, which the page shows by name.
const IGNORED = /[\s$\\()[\]`*_#|]/;
const NAMED_MARK = /⟦U\+(202[A-E]|206[6-9])⟧/g;
const DIRECTION_MARK = /[\u202a-\u202e\u2066-\u2069]/;

const original = (text) => text.replace(NAMED_MARK, (_, code) => String.fromCodePoint(Number.parseInt(code, 16)));

// The characters that count for a comparison, each with its place among the characters of the text.
function reduce(text) {
  const places = [];
  const kept = [];
  [...original(text)].forEach((character, place) => {
    if (IGNORED.test(character) || DIRECTION_MARK.test(character)) return;
    kept.push(character);
    places.push(place);
  });
  return { text: kept.join(""), places, lengths: kept.map((character) => character.length) };
}

// Find a quote in a text, nearest to the place where it is expected. Return its characters, or null.
export function findQuote(source, quote, expected = 0) {
  const [whole, wanted] = [reduce(source), reduce(quote)];
  if (!wanted.text) return null;
  let best = -1;
  for (let at = whole.text.indexOf(wanted.text); at >= 0; at = whole.text.indexOf(wanted.text, at + 1)) {
    if (best < 0 || Math.abs(at - expected) < Math.abs(best - expected)) best = at;
  }
  if (best < 0) return null;
  const indexOf = (unit) => {
    let index = 0;
    for (let passed = 0; passed < unit; index += 1) passed += whole.lengths[index];
    return index;
  };
  const start = whole.places[indexOf(best)];
  const end = whole.places[indexOf(best + wanted.text.length) - 1] + 1;
  return { text: [...original(source)].slice(start, end).join(""), start, end };
}

// The text of a part of the page, with the source of formulas.
function readText(range) {
  const content = range.cloneContents();
  for (const formula of content.querySelectorAll(".tex")) formula.replaceWith(formula.querySelector("annotation")?.textContent ?? formula.textContent);
  for (const label of content.querySelectorAll(".kind, .fold__toggle, .gap__mark")) label.remove();
  return content.textContent;
}

// Extend a selection to whole formulas.
function readSelection(body) {
  const selection = getSelection();
  if (selection.isCollapsed || !selection.rangeCount) return null;
  const range = selection.getRangeAt(0).cloneRange();
  const formulaAt = (node) => (node.nodeType === Node.TEXT_NODE ? node.parentElement : node).closest(".tex");
  const [first, last] = [formulaAt(range.startContainer), formulaAt(range.endContainer)];
  if (first) range.setStartBefore(first);
  if (last) range.setEndAfter(last);
  const before = document.createRange();
  before.setStart(body, 0);
  before.setEnd(range.startContainer, range.startOffset);
  return { text: readText(range), expected: reduce(readText(before)).text.length };
}

export class Evidence {
  #shown = new WeakMap(); // box -> the quotes that it shows

  constructor(page) {
    this.page = page;
  }

  // Attach the selected text to the step that it belongs to.
  quoteSelection() {
    const node = getSelection().anchorNode;
    const row = (node?.nodeType === Node.TEXT_NODE ? node.parentElement : node)?.closest?.(".step[data-stop]");
    const body = row?.querySelector("[data-slot=body]");
    const selected = body?.contains(getSelection().focusNode) ? readSelection(body) : null;
    if (!selected || !this.page.isOpen()) return this.#tell("evidence_none");
    const [step, option] = row.dataset.stop.split(".").map(Number);
    const stop = { step, option };
    if (option || this.page.work.cell(stop.step).rating !== -1) return this.#tell("evidence_not_negative", stop);
    if (this.add(stop, selected.text, selected.expected)) getSelection().removeAllRanges();
    return undefined;
  }

  #tell(name, stop) {
    this.page.dock.showToast(getString(name, { number: stop ? this.page.view.numberOf(stop.step) : "" }));
  }

  // Return whether the quote was added. One that the step does not contain is kept as it was typed.
  add(stop, text, expected) {
    const { work } = this.page;
    const source = work.trace.steps.find(({ position }) => position === stop.step).options[0].text;
    const quote = findQuote(source, text, expected) ?? { text: text.trim() };
    const quotes = work.cell(stop.step).evidence ?? [];
    if (!quote.text) return false;
    if (quotes.some((each) => each.text === quote.text && each.start === quote.start)) return true;
    if ([...quote.text].length > MAX_LENGTH || quotes.length >= MAX_QUOTES) return this.#tell("evidence_too_much") ?? false;
    this.#change(stop, [...quotes, quote]);
    this.page.dock.showToast(getString("evidence_added", { number: this.page.view.numberOf(stop.step) }), { undo: getString("undo") });
    return true;
  }

  #change(stop, quotes) {
    this.page.enqueue(this.page.work.explain(stop, { evidence: quotes.length ? quotes : null }));
    this.page.paint();
  }

  // Show the quotes in the boxes below negative steps.
  paint() {
    if (!this.page.work.trace.asks_evidence) return;
    for (const [step, box] of this.page.view.boxes) {
      const quotes = this.page.work.cell(step).evidence ?? [];
      const shown = JSON.stringify(quotes);
      if (this.#shown.get(box) === shown) continue;
      this.#shown.set(box, shown);
      const section = box.querySelector(".evidence") ?? this.#build(box, { step, option: 0 });
      section.querySelector("ul").replaceChildren(...quotes.map((quote, place) => this.#item(box, quote, place)));
    }
  }

  #build(box, stop) {
    const field = Object.assign(document.createElement("input"), { type: "text", maxLength: MAX_LENGTH, autocomplete: "off", dir: "auto" });
    field.placeholder = getString("evidence_hint", { key: Object.keys(config.keys).find((key) => config.keys[key] === "quote") ?? "" });
    const take = () => {
      if (this.page.isOpen() && this.add(stop, field.value)) field.value = "";
    };
    field.addEventListener("change", take);
    field.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" || event.isComposing || event.keyCode === 229) return;
      event.preventDefault();
      take();
    });
    const label = Object.assign(document.createElement("label"), { className: "field" });
    label.append(Object.assign(document.createElement("span"), { textContent: getString("evidence") }), field);
    const section = Object.assign(document.createElement("div"), { className: "evidence" });
    section.append(document.createElement("ul"), label);
    box.querySelector(".errorbox__why").append(section);
    return section;
  }

  #item(box, quote, place) {
    const stop = { step: Number(box.dataset.step), option: 0 };
    const item = document.createElement("li");
    const text = Object.assign(document.createElement("q"), { textContent: quote.text, dir: "auto" });
    if (quote.start !== undefined) Object.assign(text.dataset, { start: quote.start, end: quote.end });
    const button = Object.assign(document.createElement("button"), { type: "button", className: "btn btn--bare btn--small", textContent: "×", ariaLabel: getString("evidence_remove") });
    button.addEventListener("click", (event) => {
      const quotes = this.page.work.cell(stop.step).evidence.filter((_, each) => each !== place);
      if (this.page.isOpen()) this.#change(stop, quotes);
      if (!event.detail) box.querySelector(".evidence input").focus(); // not clicked with a pointer
    });
    item.append(text, button);
    return item;
  }
}
