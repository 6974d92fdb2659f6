// Moving through a trace: to the next unrated step, to the fields of a negative step, and back with Escape. Tab starts
// at the highlighted step, and nothing that has the focus is covered. The tools for reading a trace are loaded when
// they are needed.

import { getString } from "./page_config.js";

export function move(page, by) {
  const stops = page.work?.stops() ?? [];
  const index = page.current ? stops.findIndex((stop) => isSame(stop, page.current)) : stops.length;
  const to = stops[Math.max(0, Math.min(stops.length - 1, index + by))];
  if (to) page.goTo(to);
}

const isSame = (one, other) => one.step === other.step && one.option === other.option;
const isAfter = (one, other) => one.step > other.step || (one.step === other.step && one.option > other.option);

// The next unrated step after the highlighted one, else the first.
export function goToUnrated(page) {
  const unrated = page.work?.unrated() ?? [];
  const to = unrated.find((stop) => page.current && isAfter(stop, page.current)) ?? unrated[0];
  if (to) page.goTo(to);
  else if (page.work && !goToMissing(page)) page.dock.showToast(page.dock.submit.textContent);
}

// Go to the fields below the last negative step up to the highlighted one.
export function explain(page) {
  const limit = page.current?.step ?? Infinity;
  const boxes = [...(page.view?.node.querySelectorAll(".errorbox") ?? [])];
  const box = boxes.findLast((each) => Number(each.dataset.step) <= limit) ?? boxes[0];
  [...(box?.querySelectorAll(".errorbox__why :is(input, textarea)") ?? [])].find((field) => field.checkVisibility())?.focus();
}

// Cycle the mark of a step after an error: it depends on the error, recovers from it, or does not depend on it.
export function markRecovery(page, stop) {
  if (!stop || !page.isOpen() || !page.work.rule.marks_recovery) return;
  const write = page.work.linkToError(stop);
  const number = page.view.numberOf(stop.step);
  if (!write) return page.dock.showToast(getString("no_link", { number }));
  page.enqueue(write);
  page.paint();
  page.dock.showToast(getString(`link_${write.error_link}`, { number }), { undo: getString("undo") });
}

function handleEscape(page, target) {
  const box = target.closest(".errorbox");
  if (box) return page.view.rowFor({ step: Number(box.dataset.step), option: 0 })?.focus();
  if (target.closest(".question")) return focusLitStep(page);
  const notice = document.querySelector("#notices > .note:last-child > button:last-child, .step__lost button");
  return notice?.closest("#notices") ? notice.click() : undefined;
}

function focusLitStep(page) {
  const target = (page.current && page.view.rowFor(page.current)) ?? page.dock.submit;
  target.focus({ preventScroll: true });
}

export function bindNavigation(page) {
  document.addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.isComposing) return;
    if (event.key === "Escape") handleEscape(page, event.target);
    const isAtStart = document.activeElement === document.body || document.activeElement === null;
    if (event.key === "Tab" && !event.shiftKey && isAtStart && page.view) {
      event.preventDefault();
      focusLitStep(page);
    }
  });
  document.addEventListener("focusin", ({ target }) => {
    if (!target.closest("#stage .ladder") || target.closest(".is-now") || !target.matches(":focus-visible")) return;
    page.scroller.release(); // it would scroll back to the highlighted step
    page.scroller.uncover(target.closest(".rate, .question") ?? target);
  });
}

// --- questions on the whole trace, in projects that ask them -------------------------------------------------------

// The next key may come at once, so this waits only for the module.
export const withQuestions = (page, act) =>
  page.questions
    ? act(page.questions)
    : import("./questions.js").then(
        ({ TraceQuestions }) => act((page.questions ??= new TraceQuestions(page))),
        () => page.dock.showToast(getString("not_loaded")),
      );

// Quotes of negative steps, in projects that ask for them.
export const withEvidence = (page, act) =>
  page.evidence
    ? act(page.evidence)
    : import("./evidence.js").then(
        ({ Evidence }) => act((page.evidence ??= new Evidence(page))),
        () => page.dock.showToast(getString("not_loaded")),
      );

// Clauses of the guideline, in projects whose ratings cite them.
export const withClauses = (page, act) =>
  page.clauses
    ? act(page.clauses)
    : import("./clauses.js").then(
        ({ CitedClauses }) => act((page.clauses ??= new CitedClauses(page))),
        () => page.dock.showToast(getString("not_loaded")),
      );

// Search the clause that the rating of a step cites. The rating counts that the step has when the key is pressed.
export function searchClause(page, stop) {
  if (!stop || !page.work.trace.asks_clauses || !page.isOpen()) return undefined;
  if (!page.work.trace.clauses?.length) return page.dock.showToast(getString("clause_missing"));
  if (page.work.cell(stop.step, stop.option).rating !== null) return withClauses(page, (clauses) => clauses.search(stop, () => goToMissing(page)));
  return page.dock.showToast(getString("clause_unrated", { number: page.view.numberOf(stop.step) }));
}

// Load what the project asks besides ratings.
export function loadQuestions(page, view) {
  if (view.work.questions.length) withQuestions(page, (questions) => questions.show(view));
  if (view.work.trace.asks_evidence) withEvidence(page, (evidence) => page.view && evidence.paint());
  if (view.work.trace.clauses) withClauses(page, (clauses) => page.view && clauses.paint());
}

// Go to the first one without an answer. Return whether there is one.
function goToQuestion(page) {
  const isOpen = page.work.unanswered().length > 0;
  if (isOpen) withQuestions(page, (questions) => questions.focus());
  return isOpen;
}

// Go to the first missing answer: about an error, a clause, or on the whole trace. Return whether there is one.
export function goToMissing(page) {
  const [step] = page.work.unexplained();
  const [uncited] = page.work.uncited();
  if (!step && uncited) searchClause(page, { step: uncited.position, option: 0 });
  if (!step) return Boolean(uncited) || goToQuestion(page);
  page.view.boxes.get(step.position).querySelector("input").focus();
  return true;
}

// --- tools for reading: filters, map, search, source, differences -------------------------------------------------

const LONG = 30; // entries of a trace; a longer one gets the tools at once
const DELAY_MS = 50; // rating comes first

export class ReaderLoader {
  #reader = null;
  #loading = null;

  constructor(page) {
    this.page = page;
  }

  show(view) {
    if (this.#reader) return this.#reader.show(view);
    const { trace } = view.work;
    if (trace.is_agent || trace.steps.length > LONG) setTimeout(() => this.#load().catch(() => {}), DELAY_MS);
    return undefined;
  }

  paint() {
    this.#reader?.paint();
  }

  // Call a method of the reader.
  async perform(name, ...values) {
    if (!this.page.view) return;
    const reader = await this.#load().catch(() => null);
    if (reader) reader[name](...values);
    else this.page.dock.showToast(getString("not_loaded"));
  }

  #load() {
    this.#loading ??= import("./reader.js").then(({ TraceReader }) => {
      this.#reader = new TraceReader(this.page);
      if (this.page.view) this.#reader.show(this.page.view);
      return this.#reader;
    });
    this.#loading.catch(() => (this.#loading = null)); // try again with the next key
    return this.#loading;
  }
}
