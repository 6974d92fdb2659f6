// The dock below the trace: position, progress track, submit button and save state.

import { getString } from "./page_config.js";

const TOAST_MS = 2600;
const SAVING_DELAY_MS = 400; // do not show "saving" for shorter times

// Setting the same value again would lay out the dock again.
const setText = (node, text) => node.textContent !== text && (node.textContent = text);
const setAttribute = (node, name, value) => node.getAttribute(name) !== value && node.setAttribute(name, value);

export class Dock {
  #toastTimer = null;
  #stateTimer = null;
  #marks = []; // of the track: node, and what it shows

  constructor(root, { getString }) {
    this.root = root;
    this.getString = getString;
    this.where = root.querySelector("#where");
    this.track = root.querySelector(".track");
    this.submit = root.querySelector("#submit");
    this.save = root.querySelector("#save");
    this.toast = document.getElementById("toast");
    this.subjects = root.querySelectorAll("[data-slot=subject]");
  }

  // `subject` is the position of the step that "unsure" and "comment" mean.
  paint(work, current, subject) {
    const stops = work.rateable();
    const rated = stops.filter((step) => work.cell(step.position).rating !== null).length;
    this.#paintTrack(work, stops, current);
    setAttribute(this.track, "aria-label", this.getString("rated_of", { count: rated, total: stops.length }));
    this.#paintPosition(stops, current);
    this.#paintSubmit(work);
    this.submit.classList.toggle("is-now", !current);
    const number = stops.findIndex((step) => step.position === subject) + 1;
    for (const slot of this.subjects) setText(slot, String(number || ""));
  }

  // A trace that was submitted elsewhere: only the save state is left.
  setDead(isDead) {
    for (const part of this.root.querySelectorAll(".dock__rates, .dock__more, #submit")) part.inert = isDead;
    this.root.dataset.dead = isDead;
  }

  #paintPosition(stops, current) {
    const number = stops.findIndex((step) => step.position === current?.step) + 1;
    this.where.dataset.step = number || "";
    if (!current) setText(this.where, this.getString("steps", { count: stops.length }));
    else if (current.option === 0) setText(this.where, this.getString("step_of", { number, total: stops.length }));
    else setText(this.where, this.getString("step_alternative", { number, letter: String.fromCharCode(64 + current.option) }));
  }

  #paintTrack(work, stops, current) {
    if (this.#marks.length !== stops.length) {
      this.#marks = stops.map(() => ({ node: document.createElement("i"), rating: undefined, isNow: false }));
      this.track.replaceChildren(...this.#marks.map((mark) => mark.node));
    }
    this.#marks.forEach((mark, n) => {
      const { rating } = work.cell(stops[n].position);
      const isNow = stops[n].position === current?.step;
      if (mark.rating !== rating) mark.node.dataset.rating = rating;
      if (mark.isNow !== isNow) mark.node.classList.toggle("is-now", isNow);
      Object.assign(mark, { rating, isNow });
    });
  }

  #paintSubmit(work) {
    const state = work.submitState();
    const isUnchanged = !state.missing && work.isUnchanged();
    const { code, missing, number } = isUnchanged ? { ...state, code: "unchanged" } : state;
    const isReady = missing === 0 && !isUnchanged;
    this.submit.dataset.state = code;
    setAttribute(this.submit, "aria-disabled", String(!isReady));
    this.submit.classList.toggle("btn--go", isReady);
    setText(this.submit, this.getString(`submit_${code}`, { count: missing, number }));
  }

  flashButton(rating) {
    const button = this.root.querySelector(`[data-rate="${rating}"]`);
    button.classList.add("is-pressed");
    setTimeout(() => button.classList.remove("is-pressed"), 140);
  }

  // Highlighted only for states that the annotator should know about.
  showState({ state, waiting, detail, isPersistent }) {
    clearTimeout(this.#stateTimer);
    const isQuiet = ["saving", "gathered", "saved", "draft"].includes(state);
    this.save.dataset.state = state; // immediately; the text follows if the state lasts
    this.save.dataset.waiting = waiting;
    this.save.dataset.persistent = isPersistent;
    const paint = () => {
      this.save.classList.toggle("save--wait", !isQuiet);
      this.save.querySelector("[data-slot=text]").textContent = this.getString(textOf(state, waiting), { count: waiting, detail });
      this.save.querySelector("[data-slot=login]").hidden = state !== "logged-out";
    };
    if (state === "saving" || state === "gathered") this.#stateTimer = setTimeout(paint, SAVING_DELAY_MS);
    else paint();
  }

  // `undo` is the text of the button that undoes what the toast reports.
  showToast(text, { undo = "", lasts = TOAST_MS } = {}) {
    say(text);
    this.toast.firstElementChild.textContent = text;
    this.toast.lastElementChild.hidden = !undo;
    this.toast.lastElementChild.firstElementChild.textContent = undo;
    this.toast.hidden = false;
    clearTimeout(this.#toastTimer);
    this.#toastTimer = setTimeout(() => (this.toast.hidden = true), lasts);
  }
}

// A comment or a submission may wait without a rating.
const textOf = (state, waiting) => `save_${state.replace("-", "_")}${!waiting && ["waiting", "logged-out"].includes(state) ? "_none" : ""}`;

// --- announcements for screen readers: what a key has done, and the step that is highlighted now -----------------

const WAIT_MS = 100; // keys in quick succession are announced together
const BEGINNING = 120; // characters of a step
const HAS_FORMULA = /[$\\]/;

const region = document.getElementById("announce");
let waiting = [];
let timer = null;

function say(text) {
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
