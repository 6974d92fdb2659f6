// Texts that are being typed: reason, corrected step, comment, omission, answer to a question on the whole trace. The
// browser's store keeps them from the first keystroke on. A draft belongs to the page in which it was typed. Another page
// takes it over when that page is closed.

import { showReplacedText } from "./messages.js";
import { getString } from "./page_config.js";

const SAVE_AFTER_MS = 800; // after the last keystroke
const KEPT_MS = 60 * 24 * 3600 * 1000; // drafts of closed pages
const EDIT_KINDS = { corrected: "write_step" }; // of fields, if they have another name

const placeOf = ({ assignment, revision }, field, step) => [assignment, revision, field, step].join(".");

function storedText(work, field, step) {
  if (field === "reason") return work.cell(step).reason;
  return ({ comment: work.comments, missing: work.missing, answer: work.answers }[field] ?? work.written).get(step) ?? ""; // `step`: or a question
}

export class Drafts {
  #drafts = new Map(); // place -> draft

  constructor(store, outbox) {
    this.store = store;
    this.outbox = outbox;
  }

  // `base`: the text that the draft replaces.
  put(work, field, step, text) {
    const { client } = this.outbox;
    const { assignment, revision } = work.trace;
    const place = placeOf(work.trace, field, step);
    const base = storedText(work, field, step);
    const draft = { key: `${client}.${place}`, client, at: Date.now(), assignment, revision, field, step, text, base };
    this.#drafts.set(place, draft);
    this.store.changeDrafts([draft], []);
    this.outbox.noteDrafts(this.#drafts.size);
  }

  // Return what was typed, or undefined if nothing was.
  read(trace, field, step) {
    return this.#drafts.get(placeOf(trace, field, step))?.text;
  }

  // The text is saved or canceled. A saved one stays here until it is in the store as an edit.
  async drop(trace, field, step) {
    const place = placeOf(trace, field, step);
    const draft = this.#drafts.get(place);
    await this.outbox.whenStored();
    if (!draft || this.#drafts.get(place) !== draft) return; // typed again in the meantime
    this.#drafts.delete(place);
    this.store.changeDrafts([], [draft.key]);
    this.outbox.noteDrafts(this.#drafts.size);
  }

  // The trace was left: texts that were typed and not saved are dropped.
  dropAll(trace) {
    for (const draft of this.#drafts.values()) if (draft.assignment === trace.assignment) this.drop(trace, draft.field, draft.step);
  }

  // Return the drafts of a trace that closed pages have left, the newest first.
  async loadLeft({ assignment, revision }) {
    const drafts = await this.store.drafts();
    if (!drafts.length) return drafts;
    const open = await this.outbox.openPages();
    const left = drafts.filter(({ client }) => !open.has(client)).sort((one, other) => other.at - one.at);
    const isUseless = (draft) => draft.at < Date.now() - KEPT_MS || (draft.assignment === assignment && draft.revision < revision);
    this.store.changeDrafts([], left.filter(isUseless).map(({ key }) => key));
    return left.filter((draft) => draft.assignment === assignment && draft.revision === revision);
  }

  // Take over the drafts of closed pages. Call `replaced` for a text that no longer fits: a newer one was typed, or
  // stored, in the meantime.
  adopt(work, left, replaced) {
    const adopted = [];
    for (const { field, step, text, base } of left) {
      const stored = storedText(work, field, step);
      const newer = this.read(work.trace, field, step);
      if (text !== stored && newer === undefined && stored === base) {
        this.put(work, field, step, text);
        adopted.push({ field, step });
      } else if (text && text !== (newer ?? stored)) replaced({ field: EDIT_KINDS[field] ?? field, step, yours: text });
    }
    this.store.changeDrafts([], left.map(({ key }) => key));
    return adopted;
  }
}

// The texts of a trace: each keystroke changes the draft; the text becomes an edit when the annotator pauses or saves it.
export class TextEdits {
  #timer = null;

  constructor(page, drafts) {
    this.page = page;
    this.drafts = drafts;
  }

  // What a closed page left of this trace.
  restore() {
    const { view, work } = this.page;
    const { assignment } = work.trace;
    const adopted = this.drafts.adopt(work, work.drafts ?? [], (text) => showReplacedText(text, { number: view.numberOf(text.step), assignment }));
    work.drafts = [];
    for (const { field, step } of adopted) {
      if (field === "comment" || field === "missing") this.comment(step, { field, isFocused: false });
      if (field === "answer") this.save(field, step, this.drafts.read(work.trace, field, step));
    }
    for (const step of work.stepsToExplain()) this.saveDrafts(step.position);
  }

  // The reason and the correction of a step belong to a negative rating. Until it returns, they are drafts: the server
  // keeps a correction, and submits it only with a negative rating.
  rate(stop, rating) {
    const { work } = this.page;
    const { reason } = work.cell(stop.step);
    this.page.enqueue(work.rate(stop, rating));
    if (stop.option === 0 && rating !== -1 && reason) this.drafts.put(work, "reason", stop.step, reason);
    this.saveDrafts(stop.step);
  }

  saveDrafts(step) {
    if (this.page.work.cell(step).rating !== -1) return;
    for (const field of ["reason", "corrected"]) {
      const text = this.drafts.read(this.page.work.trace, field, step);
      if (text !== undefined) this.save(field, step, text);
    }
  }

  // Ask for the comment on a step, or for what is missing after it.
  comment(step, { field = "comment", isFocused = true } = {}) {
    if (step === undefined || !this.page.isOpen()) return;
    finishPrompt(); // a text that is being typed there is saved
    const { work } = this.page;
    const { trace } = work;
    promptText({
      question: getString(`ask_${field}`, { number: this.page.view.numberOf(step) }),
      confirm: getString(`confirm_${field}`),
      text: this.drafts.read(trace, field, step) ?? storedText(work, field, step),
      isFocused,
      isSavedOnLeaving: field,
      typed: (text) => this.drafts.put(work, field, step, text),
      dropped: () => this.drafts.drop(trace, field, step),
      done: (text) => {
        if (!this.page.isOpen() || this.page.work.trace !== trace) return;
        this.save(field, step, text);
        this.page.paint();
      },
    });
  }

  typeExplanation(box, field) {
    if (!this.page.isOpen()) return;
    this.drafts.put(this.page.work, field.name, Number(box.dataset.step), field.value);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.saveExplanation(box), SAVE_AFTER_MS);
  }

  saveExplanation(box) {
    if (!this.page.isOpen() || !this.page.view.node.contains(box)) return;
    const step = Number(box.dataset.step);
    const cell = this.page.work.cell(step);
    const category = chosenKinds(box, cell);
    if (cell.rating !== -1) return; // the box is just being removed
    if (category !== cell.category) {
      this.page.enqueue(this.page.work.explain({ step, option: 0 }, { category }));
      this.page.paint(); // it may have been the last thing that was missing
    }
    const severity = Number(box.querySelector("[name^=severity]:checked")?.value) || null;
    if (severity !== cell.severity && box.querySelector("[name^=severity]")) this.page.enqueue(this.page.work.explain({ step, option: 0 }, { severity }));
    for (const field of ["reason", "corrected"]) this.save(field, step, box.querySelector(`[name=${field}]`).value);
  }

  // Make an edit of a text, and forget its draft once the store has the edit.
  save(field, step, text) {
    const { work } = this.page;
    const cell = work.cell(step);
    if (field === "comment" && text !== (work.comments.get(step) ?? "")) this.page.enqueue(work.comment(step, text));
    if (field === "missing" && text !== (work.missing.get(step) ?? "")) this.page.enqueue(work.omit(step, text));
    if (field === "corrected" && text !== (work.written.get(step) ?? "")) this.page.enqueue(work.write(step, text));
    if (field === "reason" && text !== cell.reason) this.page.enqueue(work.explain({ step, option: 0 }, { reason: text }));
    if (field === "answer" && text !== (work.answers.get(step) ?? "")) this.page.enqueue(work.answer(step, text));
    this.drafts.drop(work.trace, field, step);
  }

  // Before the trace is left.
  saveAll() {
    finishPrompt();
    for (const box of this.page.view.node.querySelectorAll(".errorbox")) this.saveExplanation(box);
    this.page.questions?.saveAll();
  }
}

// A kind that the project no longer has stays, unless another one replaces it.
function chosenKinds(box, { category }) {
  const inputs = [...box.querySelectorAll("[name^=category]")];
  const chosen = inputs.filter((input) => input.checked).map((input) => input.value);
  if (chosen.length && inputs[0].type === "radio") return chosen[0];
  const others = category.split(" ").filter((code) => code && !inputs.some((input) => input.value === code));
  return [...chosen, ...others].join(" ");
}

// --- asking for a text below the trace: a dialog would cover the steps ---------------------------------------------

// `typed` gets the text at each input, `done` the text at the end, `dropped` is called if the annotator cancels. Escape only
// closes the field. `missing`: a text is required, and this is called without one. `isSavedOnLeaving`: leaving the trace
// saves the text.
export function promptText({ question, confirm, text, typed = () => {}, done, missing, dropped = () => {}, isFocused = true, isSavedOnLeaving = false }) {
  const form = document.getElementById("ask");
  form.dataset.saved = isSavedOnLeaving; // or which text
  form.querySelector("label span").textContent = question;
  form.querySelector("[type=submit]").textContent = confirm;
  const field = form.querySelector("textarea");
  field.value = text;
  form.hidden = false;
  if (isFocused) field.focus();
  const close = () => {
    closePrompt();
    form.onsubmit = form.onkeydown = form.onreset = form.oninput = null;
  };
  form.onreset = () => {
    close();
    dropped();
  };
  form.oninput = () => typed(field.value);
  form.onsubmit = (event) => {
    event?.preventDefault();
    if (missing && !field.value.trim()) return missing();
    close();
    return done(field.value);
  };
  form.onkeydown = (event) => {
    if (event.isComposing || event.keyCode === 229) return; // Enter ends the composition of a character
    if (event.key === "Escape") close();
    if (event.key === "Enter" && !event.shiftKey && event.target === field) form.onsubmit(event);
  };
}

// The annotator leaves the trace, or opens the field for another text: save the text if it belongs to the trace.
export function finishPrompt() {
  const form = document.getElementById("ask");
  if (!form.hidden && form.dataset.saved !== "false") form.onsubmit();
  closePrompt();
}

export const isPromptOpen = () => !document.getElementById("ask").hidden;

export function closePrompt() {
  const form = document.getElementById("ask");
  // The browser does it with the next frame, and until then keys would go to the hidden field.
  if (form.contains(document.activeElement)) document.activeElement.blur();
  form.hidden = true;
}
