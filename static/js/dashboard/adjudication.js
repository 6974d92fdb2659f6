// Keyboard shortcuts of the adjudication page, the same as on the work page. Without them the radio buttons do everything.

import { renderTexts } from "./trace_texts.js";

let form, rows, current;

const isTyping = (node) => node.closest("textarea, input:not([type=radio], [type=checkbox]), select");

function highlight(index, { scroll = true } = {}) {
  current = Math.min(Math.max(index, 0), rows.length - 1);
  for (const [number, row] of rows.entries()) row.classList.toggle("is-now", number === current);
  // Center the step, so that its neighbors are visible; a step taller than half the window starts at the top.
  if (scroll) rows[current].scrollIntoView({ block: rows[current].offsetHeight < innerHeight / 2 ? "center" : "start" });
}

// Go to the next step with a disagreement or a negative rating, else to the result.
function skipToOpen() {
  const next = rows.findIndex((row, number) => number > current && row.classList.contains("is-open"));
  highlight(next < 0 ? rows.length - 1 : next);
}

function choose(value) {
  const radio = form.querySelector(`input[name=first_error][value="${CSS.escape(value)}"]`);
  if (!radio) return;
  radio.checked = true;
  highlight(rows.findIndex((row) => row.contains(radio)));
}

function copyResult(letter) {
  const rater = form.querySelector(`[data-rater="${CSS.escape(letter)}"]`);
  if (rater?.dataset.firstError) choose(rater.dataset.firstError);
  return Boolean(rater);
}

const keys = {
  1: () => choose(rows[current].querySelector("input[name=first_error]").value),
  3: skipToOpen,
  0: () => choose("none"),
  n: () => form.elements.note.focus(),
  g: () => form.elements.becomes_gold.click(),
  j: () => highlight(current + 1),
  k: () => highlight(current - 1),
  ArrowDown: () => highlight(current + 1),
  ArrowUp: () => highlight(current - 1),
  x: () => form.requestSubmit(form.querySelector("[data-send-back]")),
  Enter: () => form.requestSubmit(form.querySelector("[data-decide]")),
};

function onKeydown(event) {
  if (!form) return;
  if (event.key === "Escape" && form.contains(event.target)) event.target.blur();
  if (event.ctrlKey || event.metaKey || event.altKey || event.repeat || isTyping(event.target)) return;
  if (event.key === "Enter" && event.target.closest("button, a, summary")) return;
  const act = keys[event.key];
  if (act) act();
  else if (!/^[a-i]$/.test(event.key) || !copyResult(event.key)) return;
  event.preventDefault();
}

function onChange(event) {
  const row = event.target.closest("tr[data-step]");
  if (row && form?.contains(row)) highlight(rows.indexOf(row), { scroll: false });
}

function start() {
  form = document.querySelector("[data-adjudication]");
  if (!form) return;
  rows = [...form.querySelectorAll("tr[data-step]")];
  form.querySelector("[data-keys]").hidden = false;
  highlight(rows.findIndex((row) => row.classList.contains("is-first-split")), { scroll: false });
  form.dataset.ready = "";
}

document.addEventListener("keydown", onKeydown);
document.addEventListener("change", onChange);
document.addEventListener("htmx:after:swap", () => {
  scrollTo(0, 0);
  renderTexts();
  start();
});
start();
