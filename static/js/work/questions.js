// The questions on the whole trace, below its steps. Only traces of projects that ask them load this module.

import { getString } from "./page_config.js";

const SAVE_AFTER_MS = 800; // after the last keystroke

function make(name, properties = {}, ...children) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...children);
  return node;
}

function makeChips({ code, choices }) {
  const chips = choices.map(([value, name], index) => {
    const input = make("input", { type: "radio", name: `answer-${code}`, value });
    const key = make("kbd", { textContent: String(index + 1), ariaHidden: "true" });
    return make("label", { className: "chip" }, input, make("span", { textContent: name, dir: "auto" }), key);
  });
  return make("div", { className: "chips" }, ...chips);
}

function makeQuestion(question) {
  const { code, title, kind, help, is_required: isRequired } = question;
  const node = make("fieldset", { className: "question" }, make("legend", { dir: "auto" }, title));
  Object.assign(node.dataset, { question: code, kind });
  if (!isRequired) node.firstChild.append(" ", make("span", { className: "muted", textContent: getString("optional") }));
  if (help) {
    node.append(make("p", { className: "muted small", id: `help-${code}`, textContent: help, dir: "auto" }));
    node.setAttribute("aria-describedby", `help-${code}`);
  }
  node.append(kind === "text" ? make("textarea", { rows: 2, maxLength: 20000, ariaLabel: title, dir: "auto" }) : makeChips(question));
  return node;
}

const inputOf = (field) => field.querySelector("input:checked") ?? field.querySelector("input, textarea");

export class TraceQuestions {
  #timers = new Map(); // code -> timer that saves a text

  constructor(page) {
    this.page = page;
  }

  show(view) {
    if (this.page.view !== view) return;
    this.work = view.work;
    this.node = view.node.querySelector(".questions") ?? this.#build(view);
    this.paint();
  }

  #build(view) {
    const node = make("li", { className: "questions" }, make("h2", { textContent: getString("questions") }), ...view.work.questions.map(makeQuestion));
    node.addEventListener("change", (event) => this.#save(event.target.closest(".question")));
    node.addEventListener("input", (event) => event.target.matches("textarea") && this.#type(event.target));
    node.addEventListener("keydown", (event) => this.#press(event));
    view.node.querySelector("[data-slot=steps]").append(node);
    return node;
  }

  // Show what is stored, or is being typed.
  paint() {
    if (!this.node || this.work !== this.page.work) return;
    for (const field of this.node.querySelectorAll(".question")) {
      const { question } = field.dataset;
      const stored = this.work.answers.get(question) ?? "";
      const value = this.page.drafts.read(this.work.trace, "answer", question) ?? stored;
      for (const input of field.querySelectorAll("input")) input.checked = input.value === value;
      const text = field.querySelector("textarea");
      if (text && text.value !== value) text.value = value;
    }
  }

  // Go to a question, or to the first one without an answer.
  focus(code = this.work?.unanswered()[0]) {
    const field = [...(this.node?.querySelectorAll(".question") ?? [])].find((each) => each.dataset.question === code);
    if (field) inputOf(field).focus();
  }

  showUndone(code) {
    this.page.paint();
    this.focus(code);
    this.page.dock.showToast(getString("undone_answer"));
  }

  saveAll() {
    if (this.work !== this.page.work) return;
    for (const field of this.node?.querySelectorAll(".question") ?? []) this.#save(field);
  }

  #type(text) {
    const field = text.closest(".question");
    const { question } = field.dataset;
    if (!this.page.isOpen()) return;
    this.page.drafts.put(this.work, "answer", question, text.value);
    clearTimeout(this.#timers.get(question));
    this.#timers.set(question, setTimeout(() => this.#save(field), SAVE_AFTER_MS));
  }

  #save(field) {
    if (!this.page.isOpen() || !this.page.view.node.contains(field)) return;
    const { question } = field.dataset;
    clearTimeout(this.#timers.get(question));
    const text = field.querySelector("textarea");
    const chosen = field.querySelector("input:checked")?.value;
    const stored = this.work.answers.get(question) ?? "";
    // An answer that the project no longer offers stays, unless another one replaces it.
    const isKept = !text && !chosen && !this.work.isAnswered(this.#questionOf(field), stored);
    this.page.texts.save("answer", question, text?.value ?? chosen ?? (isKept ? stored : ""));
    this.page.paint(); // it may have been the last thing that was missing
  }

  #questionOf(field) {
    return this.work.questions.find(({ code }) => code === field.dataset.question);
  }

  // Digits choose an answer, Enter ends a text. Then comes the next question, and the submit button after the last.
  #press(event) {
    const field = event.target.closest(".question");
    if (!field || event.isComposing || event.keyCode === 229 || event.ctrlKey || event.metaKey || event.altKey) return;
    const isText = event.target.matches("textarea");
    const input = isText ? null : /^[1-9]$/.test(event.key) && field.querySelectorAll("input")[Number(event.key) - 1];
    if (!input && !(isText && event.key === "Enter" && !event.shiftKey)) return;
    event.preventDefault();
    event.stopPropagation();
    if (this.page.isDeaf() || event.repeat) return;
    if (input) input.click();
    else this.#save(field);
    (field.nextElementSibling ? inputOf(field.nextElementSibling) : this.page.dock.submit).focus();
  }
}
