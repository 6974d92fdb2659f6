// The clauses of the guideline that ratings cite, and the search for one. Only traces of projects that ask for them load
// this module.

import { getString } from "./page_config.js";

const MAX_CITED = 20; // as labeling/assignments/answer_sheet.py has it
const MAX_FOUND = 8;
const IS_NUMBER = /^[\p{Lu}\d][\d.]*$/u;

function make(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

const fold = (text) => text.normalize("NFKD").replace(/\p{M}/gu, "").toLowerCase();

// The clauses that match, best first: by number, by words of the title, by words of the text.
export function findClauses(clauses, typed) {
  const wanted = fold(typed.trim());
  const words = wanted.split(/\s+/).filter(Boolean);
  const has = (text) => words.every((word) => fold(text).includes(word));
  const rank = ({ code, title, excerpt }) => {
    if (fold(code) === wanted) return 0;
    if (fold(code).startsWith(wanted)) return 1;
    if (has(title)) return 2;
    return has(`${code} ${title} ${excerpt}`) ? 3 : null;
  };
  const ranked = clauses.map((clause) => [rank(clause), clause]).filter(([place]) => place !== null);
  return ranked.sort(([one], [other]) => one - other).map(([, clause]) => clause).slice(0, MAX_FOUND);
}

// The clause that a number names, if no longer number begins with it.
export function findByNumber(clauses, typed) {
  if (!IS_NUMBER.test(typed)) return null;
  const found = clauses.filter(({ code }) => code.startsWith(typed));
  return found.length === 1 && found[0].code === typed ? found[0] : null;
}

const cite = ({ code, digest, version }) => ({ clause: code, digest, version });

export class CitedClauses {
  #shown = new WeakMap(); // row -> the citations that it shows
  #picker = null;
  #goOn = null; // goes to what is missing after the last step, and returns whether there is anything

  constructor(page) {
    this.page = page;
  }

  // Open the search below a rated step. It closes with the choice, with Escape, or when it loses the focus.
  search(stop, goOn) {
    if (!this.page.isOpen()) return;
    this.#goOn = goOn;
    const number = this.page.view.numberOf(stop.step);
    this.#close();
    this.#picker = this.#build(stop, number);
    const row = this.page.view.rowFor(stop);
    row.querySelector(".step__body").append(this.#picker);
    const field = this.#picker.querySelector("input");
    this.#list(field);
    field.focus();
    const { scroller } = this.page;
    scroller.release(); // it would scroll back to the highlighted step
    scroller.uncover(row.offsetHeight < scroller.freeArea().height ? row : this.#picker);
  }

  #build(stop, number) {
    const field = make("input", { type: "text", autocomplete: "off", spellcheck: false, maxLength: 100, role: "combobox", ariaExpanded: "true", ariaAutoComplete: "list" });
    field.setAttribute("aria-controls", "clause-options");
    const label = make("label", { className: "field" }, make("span", { textContent: getString("clause_search", { number }) }), field);
    const options = make("ul", { id: "clause-options", role: "listbox", ariaLabel: getString("clause_search", { number }) });
    const picker = make("div", { className: "clausepick" }, label, options);
    const pick = (option) => option && this.#cite(stop, this.page.work.trace.clauses.find(({ code }) => code === option.dataset.clause));
    field.addEventListener("input", (event) => {
      this.#list(field);
      const found = event.isComposing ? null : findByNumber(this.page.work.trace.clauses, field.value.trim());
      if (found) this.#cite(stop, found);
    });
    field.addEventListener("keydown", (event) => {
      if (event.isComposing || event.keyCode === 229) return;
      const by = { ArrowDown: 1, ArrowUp: -1 }[event.key];
      if (by) this.#move(field, by);
      else if (event.key === "Enter") pick(options.querySelector("[aria-selected=true]"));
      else if (event.key === "Escape") this.#leave(stop);
      else return;
      event.preventDefault();
      event.stopPropagation();
    });
    field.addEventListener("blur", () => this.#close());
    // A press with a pointer must not take the focus before the click.
    options.addEventListener("pointerdown", (event) => event.preventDefault());
    options.addEventListener("click", (event) => pick(event.target.closest("[role=option]")));
    return picker;
  }

  // Show what matches; the first one is selected.
  #list(field) {
    const { clauses } = this.page.work.trace;
    const found = findClauses(clauses, field.value);
    const options = found.map(({ code, title, excerpt }, place) => {
      const option = make("li", { id: `clause-option-${place}`, role: "option", ariaSelected: String(place === 0), dir: "auto" }, make("b", { textContent: code }), ` ${title} `, make("span", { textContent: excerpt }));
      option.dataset.clause = code;
      return option;
    });
    const none = make("li", { role: "option", ariaDisabled: "true", className: "muted", textContent: getString("clause_none") });
    field.closest(".clausepick").querySelector("ul").replaceChildren(...(options.length ? options : [none]));
    field.setAttribute("aria-activedescendant", options[0]?.id ?? "");
  }

  #move(field, by) {
    const options = [...field.closest(".clausepick").querySelectorAll("[data-clause]")];
    const index = options.findIndex((each) => each.ariaSelected === "true");
    const next = options.at((index + by) % options.length);
    if (!next) return;
    for (const option of options) option.ariaSelected = String(option === next);
    field.setAttribute("aria-activedescendant", next.id);
    next.scrollIntoView({ block: "nearest" });
  }

  #cite(stop, clause) {
    if (!clause || !this.page.isOpen()) return;
    const number = this.page.view.numberOf(stop.step);
    const cited = this.page.work.cell(stop.step, stop.option).citations ?? [];
    const isNew = !cited.some((each) => each.clause === clause.code);
    const isTooMany = isNew && cited.length >= MAX_CITED;
    if (isNew && !isTooMany) this.#change(stop, [...cited, cite(clause)]);
    this.#leave(stop, true);
    if (isTooMany) this.page.dock.showToast(getString("clause_too_many", { count: MAX_CITED }));
    else this.page.dock.showToast(getString("clause_cited", { number, clause: clause.code }), { undo: isNew ? getString("undo") : "" });
  }

  #change(stop, citations) {
    this.page.enqueue(this.page.work.explain(stop, { citations: citations.length ? citations : null }));
    this.page.paint();
  }

  #close() {
    const picker = this.#picker;
    this.#picker = null; // first: removing what has the focus blurs it
    picker?.remove();
  }

  // Close the search and go back to the highlighted step. After the last one, go to what is missing if a clause was
  // chosen, or to the submit button.
  #leave(stop, isChosen = false) {
    this.#close();
    const row = this.page.current ? this.page.view.rowFor(this.page.current) : null;
    if (row) this.page.scroller.follow(row, { isSmooth: false });
    else if (isChosen && this.#goOn()) return;
    (row ?? (this.page.work.submitState().missing ? this.page.view.rowFor(stop) : this.page.dock.submit)).focus({ preventScroll: true });
  }

  // Show the cited clauses below the steps.
  paint() {
    const { work, view } = this.page;
    if (!work.trace.clauses) return;
    for (const { position, options } of work.rateable()) {
      for (const option of options) this.#paintStop(view, { step: position, option: option.position });
    }
  }

  #paintStop(view, stop) {
    const row = view.rowFor(stop);
    const { citations } = this.page.work.cell(stop.step, stop.option);
    const shown = citations ? JSON.stringify(citations) : "";
    if (!row || (this.#shown.get(row) ?? "") === shown) return;
    this.#shown.set(row, shown);
    const cited = citations ?? [];
    const list = row.querySelector(".clauses") ?? make("ul", { className: "clauses" });
    if (!list.isConnected) row.querySelector(".step__body").append(list);
    list.ariaLabel = getString("clause_list", { number: view.numberOf(stop.step) });
    list.replaceChildren(...cited.map((each) => this.#item(stop, each)));
  }

  #item(stop, citation) {
    const clause = this.page.work.trace.clauses.find(({ code }) => code === citation.clause);
    const button = make("button", { type: "button", className: "btn btn--bare btn--small", textContent: "×", ariaLabel: getString("clause_remove", { clause: citation.clause }) });
    button.addEventListener("click", (event) => {
      if (!this.page.isOpen()) return;
      const row = this.page.view.rowFor(stop);
      this.#change(stop, this.page.work.cell(stop.step, stop.option).citations.filter((each) => each.clause !== citation.clause));
      if (!event.detail) (row.querySelector(".clauses button") ?? row).focus(); // not clicked with a pointer
    });
    const item = make("li", { dir: "auto" }, make("b", { textContent: citation.clause }), ` ${clause?.title ?? ""}`, button);
    item.dataset.clause = citation.clause;
    return item;
  }
}
