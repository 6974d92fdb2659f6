// The labels of a machine beside the steps, for raters who were drawn to see them. If the trace has a URL to reveal labels,
// each label appears after the annotator's own answer to its step. Loaded only with such a trace.

import { post } from "../network.js";

function showLabel(view, step, label, { texts }) {
  const row = view.rowFor({ step, option: 0 });
  if (!row || row.querySelector("[data-suggestion]")) return;
  const mark = document.createElement("p");
  mark.className = "step__notes";
  mark.dataset.suggestion = label;
  mark.setAttribute("role", "note");
  mark.textContent = texts[label];
  row.querySelector(".step__body").append(mark);
}

// Ask for the labels of the steps that have an answer, once each.
function revealAnswered(page, view, asked) {
  const { suggestions } = view.work.trace;
  for (const { position } of view.work.rateable()) {
    const { rating } = view.work.cell(position);
    if (rating === null || asked.has(position)) continue;
    asked.add(position);
    post(suggestions.reveal_url, { step: position, rating }).then(
      ({ label }) => {
        if (label === null) return;
        showLabel(view, position, label, suggestions);
        if (page.view === view) page.dock.showToast(suggestions.texts[label]);
      },
      () => asked.delete(position), // no network: with the next answer
    );
  }
}

export function show(page, view) {
  const { suggestions } = view.work.trace;
  for (const [step, label] of Object.entries(suggestions.labels)) showLabel(view, Number(step), label, suggestions);
  if (!suggestions.reveal_url || view.node.dataset.reveals) return;
  view.node.dataset.reveals = "yes";
  const asked = new Set(Object.keys(suggestions.labels).map(Number));
  const reveal = () => revealAnswered(page, view, asked);
  new MutationObserver(reveal).observe(view.node, { subtree: true, attributes: true, attributeFilter: ["class"] });
  reveal();
}
