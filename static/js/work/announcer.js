// Tells screen readers what a key has done: the rating, and the step on which the light is now.

import { getString } from "./page_config.js";

const WAIT_MS = 100; // quick keys are told together
const BEGINNING = 120; // characters of a step
const HAS_FORMULA = /[$\\]/;

const region = document.getElementById("announce");
let waiting = [];
let timer = null;

export function say(text) {
  waiting.push(text);
  clearTimeout(timer);
  timer = setTimeout(() => {
    region.textContent = waiting.join(" ");
    waiting = [];
  }, WAIT_MS);
}

export class Announcer {
  #work = null;
  #stop = null;
  #rating = null;

  // Called whenever the page is painted.
  tell(work, view, current) {
    const isNew = work !== this.#work;
    const before = isNew ? null : this.#stop;
    if (before) {
      const { rating } = work.cell(before.step, before.option);
      if (rating !== this.#rating && rating !== null) say(getString("told_rating", { name: nameOf(view, before), rating: getString(`rating_${rating}`) }));
    }
    const isMoved = isNew || current?.step !== before?.step || current?.option !== before?.option;
    this.#work = work;
    this.#stop = current;
    this.#rating = current && work.cell(current.step, current.option).rating;
    if (isMoved) say(current ? describe(work, view, current) : document.getElementById("submit").textContent);
  }
}

function nameOf(view, { step, option }) {
  const number = view.numberOf(step);
  return option ? getString("step_alternative", { number, letter: String.fromCharCode(64 + option) }) : getString("told_step", { number });
}

function describe(work, view, stop) {
  const { rating } = work.cell(stop.step, stop.option);
  const row = view.rowFor(stop);
  const kind = row.querySelector(".kind")?.textContent.trim().replace(/\s+/g, " ");
  const { text } = work.trace.steps.find((step) => step.position === stop.step).options.find((option) => option.position === stop.option);
  const parts = [nameOf(view, stop), kind, getString(`rating_${rating}`)].filter(Boolean).join(", ");
  return HAS_FORMULA.test(text) ? `${parts}.` : `${parts}. ${text.slice(0, BEGINNING)}`;
}
