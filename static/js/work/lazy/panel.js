// The panel beside the trace: rules and guideline, or the conversation with the leads. Loaded on first use. On a narrow
// screen it covers the trace, and the keys for the trace do nothing.

import { config, getString, urlOf } from "../page_config.js";
import { parsePage } from "../html.js";
import { loadMath, typeset } from "../nodes.js";

const panel = document.getElementById("panel");
const body = panel.querySelector("[data-slot=body]");
const button = document.querySelector("[data-act=guide]");
const covered = document.querySelectorAll(".work__main, .dock");
const narrow = matchMedia("(max-width: 68rem)");
const drafts = "stepmark-question";
let opener = null;

export const fetchHtml = (url, options = {}) =>
  fetch(url, { credentials: "same-origin", headers: { Accept: "text/html" }, ...options })
    .then(async (answer) => (answer.ok || answer.status === 422) && parsePage(await answer.text()).querySelector("[data-panel]"))
    .catch(() => null);

export const shownPanel = () => (panel.hidden ? null : panel.dataset.shown);

function cover() {
  const isCovering = !panel.hidden && narrow.matches;
  document.documentElement.toggleAttribute("data-covered", isCovering);
  for (const each of covered) each.inert = isCovering;
}

export function closePanel() {
  if (panel.hidden) return;
  const hadFocus = panel.contains(document.activeElement);
  panel.hidden = true;
  button.setAttribute("aria-expanded", "false");
  cover();
  if (hadFocus) (opener?.isConnected ? opener : document.body).focus();
}

// Show the content of a URL. `name` is also the name of the title's text.
async function openPanel(name, url) {
  const content = await fetchHtml(url);
  if (!content && panel.dataset.shown !== name) return false;
  if (content) body.replaceChildren(content);
  if (panel.hidden) opener = document.activeElement;
  panel.dataset.shown = name;
  panel.querySelector("h2").textContent = getString(`panel_${name}`);
  panel.hidden = false;
  button.setAttribute("aria-expanded", String(name === "guide"));
  cover();
  if (content) loadMath(config.katex).then(() => typeset(body));
  return true;
}

export async function toggleGuide(page) {
  if (shownPanel() === "guide") return closePanel();
  if (!(await openPanel("guide", config.urls.guide))) return page.dock.showToast(getString("panel_offline"));
  return (narrow.matches ? panel : body).focus({ preventScroll: true });
}

// --- questions ---------------------------------------------------------------------------------------------------

// Ask about a step of the trace; without one, about the whole trace.
export async function askAbout(page, stop) {
  const { assignment } = page.work.trace;
  if (!(await openPanel("questions", urlOf(assignment, "questions")))) return page.dock.showToast(getString("panel_offline"));
  if (page.work?.trace.assignment !== assignment) return closePanel();
  fillForm(page, stop?.step ?? null);
  markSteps(page);
  return body.querySelector("textarea").focus();
}

function fillForm(page, step) {
  const form = body.querySelector("[data-ask]");
  form.elements.step.value = step ?? "";
  const about = form.querySelector("[data-slot=about]");
  if (step !== null) about.textContent = about.dataset.template.replace("{number}", page.view.numberOf(step));
  form.elements.text.value = readDraft(form);
  form.addEventListener("input", () => writeDraft(form, form.elements.text.value));
}

// What is typed survives a reload and a closed tab.
const draftKey = (form) => [drafts, config.user, form.action.match(/\d+/g)?.at(-1), form.elements.step.value].join(".");

function readDraft(form) {
  try {
    return localStorage.getItem(draftKey(form)) ?? "";
  } catch {
    return ""; // refused
  }
}

function writeDraft(form, text) {
  try {
    if (text) localStorage.setItem(draftKey(form), text);
    else localStorage.removeItem(draftKey(form));
  } catch {
    // full or refused
  }
}

async function sendForm(page, form) {
  if ("sending" in form.dataset) return undefined; // a second press
  const step = form.elements.step?.value;
  form.dataset.sending = "";
  const fresh = await fetchHtml(form.action, { method: "POST", body: new FormData(form) });
  delete form.dataset.sending;
  if (form.hasAttribute("data-read")) {
    await page.messages.refresh();
    return loadQuestions(page);
  }
  if (!fresh) return page.dock.showToast(getString("question_unsent"));
  const isSent = !fresh.querySelector("[role=alert]");
  if (isSent) writeDraft(form, "");
  body.replaceChildren(fresh);
  fillForm(page, step ? Number(step) : null);
  markSteps(page);
  if (isSent) page.dock.showToast(getString("question_sent"));
  return body.focus();
}

// Load the conversations of the trace on the screen: into the panel if it shows them, and as marks beside the steps.
export async function loadQuestions(page) {
  if (!page.work) return;
  const { assignment } = page.work.trace;
  const fresh = await fetchHtml(urlOf(assignment, "questions"));
  if (!fresh || page.work?.trace.assignment !== assignment) return;
  if (shownPanel() === "questions") {
    const isOther = body.querySelector("[data-panel]").dataset.assignment !== String(assignment);
    const step = body.querySelector("[data-ask]").elements.step.value;
    if (!isOther && body.querySelector("[data-ask]").contains(document.activeElement)) {
      // The annotator is writing: replace the conversations only.
      for (const talk of body.querySelectorAll("[data-talk]")) talk.remove();
      body.querySelector("[data-panel]").append(...[...fresh.querySelectorAll("[data-talk]")].map((talk) => talk.cloneNode(true)));
    } else {
      body.replaceChildren(fresh.cloneNode(true));
      fillForm(page, isOther || !step ? null : Number(step));
    }
  }
  markSteps(page, fresh);
}

// Show beside each step whether a question about it is open or answered.
function markSteps(page, source = body) {
  for (const mark of page.view.node.querySelectorAll(".step__asked")) mark.remove();
  for (const talk of source.querySelectorAll("[data-talk]:not([data-talk=''])")) {
    const stop = { step: Number(talk.dataset.talk), option: 0 };
    const row = page.view.rowFor(stop);
    if (!row) continue;
    // Where steps are hidden from the annotator, the leads count them too.
    const title = body.querySelector(`[data-talk="${stop.step}"] [data-slot=title]`);
    if (title) title.textContent = getString("told_step", { number: row.dataset.number });
    const name = talk.dataset.news === "yes" ? "asked_news" : talk.dataset.open === "yes" ? "asked_open" : "asked_done";
    const mark = Object.assign(document.createElement("button"), { type: "button", className: "step__asked btn btn--small", textContent: getString(name) });
    mark.dataset.asked = name;
    mark.addEventListener("click", () => askAbout(page, stop));
    row.querySelector(".step__body").append(mark);
  }
}

let isBound = false;

export function bindPanel(page) {
  if (isBound) return;
  isBound = true;
  narrow.addEventListener("change", cover);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && !event.isComposing && !panel.hidden && !document.querySelector("[popover]:popover-open")) closePanel();
  });
  body.addEventListener("submit", (event) => {
    event.preventDefault();
    sendForm(page, event.target);
  });
  body.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey) && event.target.form) event.target.form.requestSubmit();
  });
  // Another trace is on the screen.
  new MutationObserver(() => shownPanel() === "questions" && loadQuestions(page)).observe(document.documentElement, { attributeFilter: ["data-ready"] });
}
