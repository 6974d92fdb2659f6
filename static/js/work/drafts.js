// Texts that are being typed: reason, corrected step, comment. The browser's store has them from the first keystroke on.

import { getString } from "./page_config.js";

const SAVE_AFTER_MS = 800; // after the last keystroke

export class Drafts {
  #drafts = new Map(); // key -> draft

  constructor(store, outbox) {
    this.store = store;
    this.outbox = outbox;
  }

  put({ assignment, revision }, field, step, text) {
    const draft = { key: [assignment, revision, field, step].join("."), assignment, revision, field, step, text };
    this.#drafts.set(draft.key, draft);
    this.store.putDraft(draft);
    this.outbox.noteDrafts(this.#drafts.size);
  }

  // Return what was typed, or undefined if nothing was.
  read({ assignment, revision }, field, step) {
    return this.#drafts.get([assignment, revision, field, step].join("."))?.text;
  }

  // The text is saved or canceled. A saved one stays here until it is in the store as an edit.
  async drop({ assignment, revision }, field, step) {
    const key = [assignment, revision, field, step].join(".");
    const draft = this.#drafts.get(key);
    await this.outbox.whenStored();
    if (this.#drafts.get(key) !== draft) return; // typed again in the meantime
    this.#drafts.delete(key);
    this.store.dropDraft(key);
    this.outbox.noteDrafts(this.#drafts.size);
  }

  // The trace was left: what was typed and not saved is not wanted any more.
  dropAll(trace) {
    for (const draft of this.#drafts.values()) if (draft.assignment === trace.assignment) this.drop(trace, draft.field, draft.step);
  }

  // Take over the drafts of a page that was closed.
  adopt(drafts) {
    for (const draft of drafts) this.#drafts.set(draft.key, draft);
    this.outbox.noteDrafts(this.#drafts.size);
  }
}

// The texts of a trace: each keystroke changes the draft; the text becomes an edit when the annotator pauses or saves it.
export class TextEdits {
  #timer = null;

  constructor(page, drafts) {
    this.page = page;
    this.drafts = drafts;
  }

  comment(step, { isFocused = true } = {}) {
    if (!this.page.isOpen()) return;
    const { trace, comments } = this.page.work;
    promptText({
      question: getString("ask_comment", { number: this.page.view.numberOf(step) }),
      confirm: getString("confirm_comment"),
      text: this.drafts.read(trace, "comment", step) ?? comments.get(step) ?? "",
      isFocused,
      isSavedOnLeaving: true,
      typed: (text) => this.drafts.put(trace, "comment", step, text),
      dropped: () => this.drafts.drop(trace, "comment", step),
      done: (text) => {
        if (!this.page.isOpen() || this.page.work.trace !== trace) return;
        this.save("comment", step, text);
        this.page.paint();
      },
    });
  }

  typeExplanation(box, field) {
    if (!this.page.isOpen()) return;
    this.drafts.put(this.page.work.trace, field.name, Number(box.dataset.step), field.value);
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.saveExplanation(box), SAVE_AFTER_MS);
  }

  saveExplanation(box) {
    if (!this.page.isOpen() || !this.page.view.node.contains(box)) return;
    const step = Number(box.dataset.step);
    const category = box.querySelector("[name^=category]:checked")?.value ?? "";
    const cell = this.page.work.cell(step);
    if (cell.rating !== -1) return; // the box is just being removed
    if (category !== cell.category) this.page.enqueue(this.page.work.explain({ step, option: 0 }, category, cell.reason));
    for (const field of ["reason", "corrected"]) this.save(field, step, box.querySelector(`[name=${field}]`).value);
  }

  // Make an edit of a text, and forget its draft once the store has the edit.
  save(field, step, text) {
    const { work } = this.page;
    const cell = work.cell(step);
    if (field === "comment" && text !== (work.comments.get(step) ?? "")) this.page.enqueue(work.comment(step, text));
    if (field === "corrected" && text !== (work.written.get(step) ?? "")) this.page.enqueue(work.write(step, text));
    if (field === "reason" && text !== cell.reason) this.page.enqueue(work.explain({ step, option: 0 }, cell.category, text));
    this.drafts.drop(work.trace, field, step);
  }

  // Before the trace is left.
  saveAll() {
    finishPrompt();
    for (const box of this.page.view.node.querySelectorAll(".errorbox")) this.saveExplanation(box);
  }
}

// --- asking for a text below the trace: a dialog would cover the steps ---------------------------------------------

// `typed` gets the text at each input, `done` the text at the end, `dropped` is called if the annotator cancels. Escape only
// closes the field. `isSavedOnLeaving`: leaving the trace saves the text.
export function promptText({ question, confirm, text, typed = () => {}, done, dropped = () => {}, isFocused = true, isSavedOnLeaving = false }) {
  const form = document.getElementById("ask");
  form.dataset.saved = isSavedOnLeaving;
  form.querySelector("label span").textContent = question;
  form.querySelector("[type=submit]").textContent = confirm;
  const field = form.querySelector("textarea");
  field.value = text;
  form.hidden = false;
  if (isFocused) field.focus();
  const close = () => {
    form.hidden = true;
    form.onsubmit = form.onkeydown = form.onreset = form.oninput = null;
  };
  form.onreset = () => {
    close();
    dropped();
  };
  form.oninput = () => typed(field.value);
  form.onsubmit = (event) => {
    event?.preventDefault();
    close();
    done(field.value);
  };
  form.onkeydown = (event) => {
    if (event.isComposing || event.keyCode === 229) return; // Enter ends the composition of a character
    if (event.key === "Escape") close();
    if (event.key === "Enter" && !event.shiftKey && event.target === field) form.onsubmit(event);
  };
}

// The annotator leaves the trace: save the text if it belongs to the trace.
export function finishPrompt() {
  const form = document.getElementById("ask");
  if (!form.hidden && form.dataset.saved === "true") form.onsubmit();
  form.hidden = true;
}

export function closePrompt() {
  const form = document.getElementById("ask");
  form.hidden = true;
}
