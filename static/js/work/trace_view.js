// Builds a trace once, hidden if it was prefetched, and repaints it when ratings change.
// The markup is in <template> elements of the page, so that its text is translated like all other text.

import { size, typeset } from "./nodes.js";
import { answerBody, optionBody, problemBody } from "./rendering.js";

// Longer traces are laid out only near the screen. Chromium leaves the rest out of the accessibility tree, so that shorter
// ones are laid out whole.
const LAID_OUT_WHOLE = 80; // entries
// Whenever the browser draws, it looks at each box whose contents it may leave out. So entries share a box: far from the
// screen it looks at one for all of them.
const STRETCH = 10; // entries
const LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ";
const clone = (name) => document.getElementById(name).content.firstElementChild.cloneNode(true);
const slot = (node, name) => node.querySelector(`[data-slot="${name}"]`);
export const stopId = ({ step, option }) => `${step}.${option}`;

export class TraceView {
  constructor(work, { getString, root }) {
    this.work = work;
    this.getString = getString;
    this.rows = new Map(); // "step.option" -> row
    this.stops = new WeakMap(); // row -> its step and option
    this.painted = new Map(); // row -> what it shows
    this.boxes = new Map(); // position of a negative step -> the box below it
    this.node = root ?? clone("t-trace");
    this.node.dataset.assignment = work.trace.assignment;
    this.#build();
  }

  typeset(immediateCount) {
    typeset(this.node, immediateCount).then(() => this.#reachWideFormulas());
    return this;
  }

  // Elements that scroll horizontally must be focusable, so that the keyboard can scroll them.
  #reachWideFormulas() {
    for (const wide of this.node.querySelectorAll(".tex--display")) {
      if (wide.scrollWidth > wide.clientWidth) Object.assign(wide, { tabIndex: 0, role: "group", ariaLabel: this.getString("formula") });
    }
  }

  #build() {
    const { problem } = this.work.trace;
    slot(this.node, "problem").replaceChildren(problemBody(problem.text, problem.images, this.getString));
    slot(this.node, "domain").textContent = problem.domain || this.getString("problem");
    slot(this.node, "count").textContent = this.getString("steps", { count: this.work.rateable().length });
    const verdict = slot(this.node, "verdict");
    verdict.hidden = problem.is_answer_right === null;
    if (!verdict.hidden) verdict.textContent = this.getString(problem.is_answer_right ? "answer_right" : "answer_wrong");
    const answer = slot(this.node, "answer");
    answer.hidden = !problem.reference_answer;
    if (problem.reference_answer) answer.replaceChildren(this.getString("reference_answer"), " ", answerBody(problem.reference_answer));
    const list = slot(this.node, "steps");
    let number = 0;
    const { steps } = this.work.trace;
    steps.forEach((step, index) => {
      const row = step.is_rateable ? this.#rateable(step, (number += 1), index) : this.#context(step, index);
      this.#listOf(step, list).append(row);
    });
    if (steps.length > LAID_OUT_WHOLE) this.#divide(list);
    this.after = clone("t-after");
  }

  #divide(list) {
    list.classList.add("ladder--long");
    const entries = [...list.children];
    for (let from = 0; from < entries.length; from += STRETCH) {
      const stretch = clone("t-stretch");
      slot(stretch, "entries").append(...entries.slice(from, from + STRETCH));
      list.append(stretch);
    }
  }

  // The list for a step: that of its subagent, nested in those that started it. Its steps in a row share one list.
  #listOf({ agent }, list) {
    const names = agent ? agent.split("/") : [];
    let node = list;
    names.forEach((name, depth) => {
      const path = names.slice(0, depth + 1).join("/");
      let group = node.lastElementChild;
      if (group?.dataset.agent !== path) {
        group = clone("t-subagent");
        group.dataset.agent = path;
        slot(group, "name").textContent = this.getString("subagent", { name });
        const { length } = this.work.rateable().filter((step) => step.agent === path || step.agent.startsWith(`${path}/`));
        slot(group, "count").textContent = this.getString("steps", { count: length });
        node.append(group);
      }
      node = slot(group, "steps");
    });
    return node;
  }

  // What the model writes after a step, up to the next output: it shows which lines of the output it uses.
  #textAfter(index) {
    const texts = [];
    for (const step of this.work.trace.steps.slice(index + 1)) {
      if (!step.is_rateable) {
        if (texts.length) break;
        continue;
      }
      texts.push(step.options[0].text, ...(step.options[0].parts ?? []).map((part) => part.text));
    }
    return texts.join("\n");
  }

  // In the trace of an agent, a text is a message to the user if a user's message follows it, or nothing.
  #shownKind(step, index) {
    const { steps, is_agent: isAgent } = this.work.trace;
    if (step.kind !== "reasoning" || !isAgent || !steps.some((each) => each.kind === "user")) return step.kind;
    const next = steps.slice(index + 1).find((each) => each.kind !== "reasoning");
    return !next || next.kind === "user" ? "message" : step.kind;
  }

  #rateable(step, number, index) {
    const row = this.#row(step, step.options[0], number, this.getString("step", { number }));
    row.id = `step-${step.position}`;
    this.rows.set(stopId({ step: step.position, option: 0 }), row);
    row.dataset.number = number;
    row.dataset.kind = this.#shownKind(step, index);
    if (step.kind !== "reasoning" || this.work.trace.is_agent) {
      row.classList.add("step--agent");
      slot(row, "body").prepend(this.#kind(step, row.dataset.kind));
    }
    return row;
  }

  #row(step, option, label, name) {
    const row = clone("t-step");
    const stop = { step: step.position, option: option?.position ?? 0 };
    this.stops.set(row, stop);
    row.dataset.stop = stopId(stop);
    slot(row, "number").textContent = label;
    slot(row, "body").append(optionBody(step, option ?? { text: "" }, this.getString));
    row.querySelector("legend").textContent = this.getString("rating_of", { name });
    for (const input of row.querySelectorAll("input")) input.name = `r${row.dataset.stop}`;
    return row;
  }

  #kind(step, shown = step.kind) {
    const node = clone(`t-kind-${shown}`);
    const tool = step.options[0]?.parts?.find((part) => part.name)?.name;
    if (tool) node.append(Object.assign(document.createElement("code"), { textContent: tool }));
    return node;
  }

  #context(step, index) {
    const row = clone("t-context");
    row.dataset.position = step.position;
    row.dataset.kind = step.kind;
    const text = step.options[0]?.text ?? "";
    slot(row, "head").prepend(this.#kind(step));
    slot(row, "size").textContent = size(text);
    const next = step.kind === "observation" ? this.#textAfter(index) : "";
    slot(row, "body").append(optionBody(step, step.options[0] ?? { text }, this.getString, { next }));
    return row;
  }

  // The box below a negative step: kind of error, reason, corrected step, alternatives.
  #errorBox(step) {
    const { trace } = this.work;
    const box = clone("t-error");
    box.dataset.step = step.position;
    slot(box, "category").hidden = !trace.asks_error_category;
    slot(box, "reason").hidden = !trace.asks_reason;
    slot(box, "corrected").hidden = !trace.asks_corrected_step;
    const alternatives = this.work.alternatives(step);
    slot(box, "title").hidden = alternatives.length === 0;
    slot(box, "title").querySelector("b").textContent = this.getString("alternatives_to", { number: this.numberOf(step.position) });
    alternatives.forEach((option, n) => slot(box, "alternatives").append(this.#alternative(step, option, LETTERS[n] ?? String(n + 1))));
    for (const input of box.querySelectorAll(".chip input")) input.name += step.position; // a radio group per box
    this.#fill(box);
    return box;
  }

  // Show what is stored, after an undo or an edit of another tab or device.
  fillErrorBoxes() {
    for (const box of this.boxes.values()) this.#fill(box);
  }

  #fill(box) {
    const step = Number(box.dataset.step);
    const cell = this.work.cell(step);
    for (const input of box.querySelectorAll("[name^=category]")) input.checked = cell.category.split(" ").includes(input.value);
    for (const input of box.querySelectorAll("[name^=severity]")) input.checked = input.value === String(cell.severity);
    const values = { reason: cell.reason, corrected: this.work.written.get(step) ?? "" };
    for (const [name, value] of Object.entries(values)) {
      const field = box.querySelector(`[name=${name}]`);
      if (field !== document.activeElement && field.value !== value) field.value = value;
    }
  }

  // If a step or a question has the focus, the focus moves with the highlight: the next key rates.
  keepFocus(stop) {
    if (document.activeElement?.closest(".step, .chips")) this.rowFor(stop)?.focus({ preventScroll: true });
  }

  toggleProblem() {
    const problem = this.node.querySelector(".problem");
    const isFolded = problem.classList.toggle("is-folded");
    problem.querySelector(".problem__fold").setAttribute("aria-expanded", String(!isFolded));
  }

  #alternative(step, option, letter) {
    const row = this.#row(step, option, letter, this.getString("alternative", { letter }));
    row.classList.add("alt");
    this.rows.set(stopId({ step: step.position, option: option.position }), row);
    return row;
  }

  // The number of the step at a position, as people count.
  numberOf(position) {
    return this.rows.get(stopId({ step: position, option: 0 }))?.dataset.number ?? position + 1;
  }

  // Show the ratings, with `current` highlighted. Only rows that change are touched.
  paint(current) {
    const end = this.work.end();
    this.#placeErrorBoxes(this.work.stepsToExplain());
    this.#placeAfter(end);
    const revealed = this.#revealedUpTo(current);
    const after = this.work.stepsAfterError();
    for (const row of this.rows.values()) this.#paintRow(row, current, end, revealed, after);
    if (revealed === this.revealed) return;
    this.revealed = revealed;
    for (const row of this.node.querySelectorAll(".obs")) row.classList.toggle("is-veiled", Number(row.dataset.position) > revealed);
  }

  #placeErrorBoxes(negatives) {
    const wanted = new Set(negatives.map((step) => step.position));
    for (const [position, box] of this.boxes) {
      if (wanted.delete(position)) continue;
      this.boxes.delete(position);
      for (const row of box.querySelectorAll(".alt")) {
        this.rows.delete(row.dataset.stop);
        this.painted.delete(row);
      }
      box.remove();
    }
    for (const step of negatives.filter((one) => wanted.has(one.position))) {
      const box = this.#errorBox(step);
      this.boxes.set(step.position, box);
      typeset(box);
      this.rows.get(stopId({ step: step.position, option: 0 })).after(box);
    }
  }

  #placeAfter(end) {
    if (!end) return this.after.remove();
    const row = this.rows.get(stopId({ step: end.position, option: 0 }));
    const box = row.nextElementSibling?.matches(".errorbox") ? row.nextElementSibling : row;
    if (box.nextElementSibling !== this.after) box.after(this.after);
    this.after.hidden = end.position === this.work.rateable().at(-1).position;
    return undefined;
  }

  #paintRow(row, current, end, revealed, after) {
    const { step, option } = this.stops.get(row);
    const { rating, flagged } = this.work.cell(step, option);
    const comment = (option === 0 && this.work.comments.get(step)) || "";
    const missing = (option === 0 && this.work.missing.get(step)) || "";
    const isCurrent = current !== null && step === current.step && option === current.option;
    const isNegative = end?.position === step && option === 0;
    const isPast = end !== null && step > end.position;
    const isVeiled = step > revealed;
    const link = option ? undefined : after.get(step);
    const shown = [rating, flagged, isCurrent, isNegative, isPast, isVeiled, comment, missing, link];
    const before = this.painted.get(row);
    if (before && shown.every((each, n) => each === before[n])) return;
    this.painted.set(row, shown);
    row.classList.toggle("is-now", isCurrent);
    for (let group = isCurrent && row.closest("details:not([open])"); group; group = group.parentElement.closest("details:not([open])")) group.open = true;
    if (isCurrent) row.setAttribute("aria-current", "step");
    else row.removeAttribute("aria-current");
    row.tabIndex = isCurrent ? 0 : -1;
    row.classList.toggle("is-rated", rating !== null);
    row.classList.toggle("is-neg", isNegative);
    row.classList.toggle("is-past", isPast);
    row.classList.toggle("is-veiled", isVeiled);
    for (const input of row.querySelectorAll(".rate input")) input.checked = input.value === String(rating);
    this.#paintNotes(row, { flagged }, comment, missing);
    const button = row.querySelector(".step__link");
    if (!button) return;
    button.hidden = link === undefined;
    row.dataset.link = link ?? "none";
    button.textContent = link === undefined ? "" : this.getString(`link_${link}`, { number: row.dataset.number });
  }

  // Steps after the first unrated one are hidden if the project reveals one step at a time.
  #revealedUpTo(current) {
    if (!this.work.trace.reveals_one_step_at_a_time) return Infinity;
    return Math.max(this.work.unrated()[0]?.step ?? Infinity, current?.step ?? 0);
  }

  #paintNotes(row, cell, comment, missing) {
    const notes = slot(row, "notes");
    notes.hidden = !cell.flagged && !comment && !missing;
    const omission = slot(notes, "missing");
    if (omission) Object.assign(omission, { hidden: !missing, textContent: missing && this.getString("missing", { text: missing }) });
    slot(notes, "unsure").hidden = !cell.flagged;
    slot(notes, "comment").hidden = !comment;
    slot(notes, "comment-text").textContent = comment ? `“${comment}”` : "";
  }

  rowFor(stop) {
    return this.rows.get(stopId(stop));
  }
}

export const stopFromRow = (row) => {
  const [step, option] = row.dataset.stop.split(".").map(Number);
  return { step, option };
};
